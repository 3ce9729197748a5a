//! What a thread keeps of a hot key for itself: its lease, and that the key is dry.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{SEED, secs};
use tidegate::{Alignment, Clock, Limit, Limiter, Manual, Rate, Reason, SingleLimiter, Window};

const KEY: u64 = 7;

fn in_another_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// A limiter whose key this thread has leased of: two tokens are used.
fn leased(limit: Limit) -> (Limiter<Manual>, Manual) {
    let clock = Manual::new();
    clock.set(secs(10));
    let limiter = Limiter::builder(limit).seed(SEED).clock(clock.clone()).build().unwrap();
    assert!(limiter.allow(&KEY));
    limiter.warm(&KEY);
    assert!(limiter.allow(&KEY));
    (limiter, clock)
}

#[test]
fn a_larger_cost_takes_the_threads_own_lease() {
    let window = Limit::window(Window::new(16_000, secs(3_600))).align(Alignment::Clock);
    let sliding = Limit::sliding_window(Window::new(16_000, secs(3_600))).align(Alignment::Clock);
    for limit in [Limit::bucket(Rate::per_hour(1), 16_000), window, window.count_refused(false), sliding] {
        let (limiter, _clock) = leased(limit);
        let denied = limiter.check_n(&KEY, 16_001).unwrap_err();
        assert_eq!(denied.reason(), Reason::TooLarge, "no lease makes room above the limit");
        // All that is there, though the word alone has less.
        assert!(limiter.check_n(&KEY, 15_998).is_ok(), "{limit:?}");
        assert!(!limiter.allow(&KEY) && !in_another_thread(|| limiter.allow(&KEY)), "{limit:?}");
        // Step by step, each cost above what is leased.
        let (limiter, _clock) = leased(limit);
        let costs = [3_000, 2_999, 1, 3_001, 1, 3_996];
        let admitted: u64 = costs.into_iter().filter(|&cost| limiter.check_n(&KEY, cost).is_ok()).sum();
        let rest = (0..).take_while(|_| limiter.allow(&KEY)).count() as u64;
        assert_eq!(admitted + rest, 15_998, "{limit:?}");
        assert!(!in_another_thread(|| limiter.allow(&KEY)), "{limit:?}");
    }
}

#[test]
fn what_lapses_is_counted() {
    let (limiter, clock) = leased(Limit::bucket(Rate::per_hour(1), 16_000));
    assert!(limiter.allow(&KEY));
    clock.advance(Duration::from_millis(1));
    assert!(limiter.allow(&KEY));
    // A 16th of the 15 998 that were left, less the one that was spent.
    assert_eq!((limiter.stats().leases, limiter.stats().lapsed), (1, 15_998 / 16 - 1));
}

#[test]
fn a_lease_is_not_spent_before_its_time() {
    let (limiter, clock) = leased(Limit::bucket(Rate::per_hour(1), 16_000));
    in_another_thread(|| while limiter.allow(&KEY) {});
    clock.set(secs(9));
    assert!(!limiter.allow(&KEY), "the clock stepped back");
}

/// Limiters of one seed know a key by the same name; still their leases are their own.
#[test]
fn no_limiter_has_another_ones() {
    let limit = Limit::bucket(Rate::per_hour(1), 1_000);
    let build = || Limiter::builder(limit).seed(SEED).clock(Manual::new()).build().unwrap();
    let (one, two, three) = (build(), build(), build());
    in_another_thread(|| {
        two.warm(&KEY);
        while two.allow(&KEY) {}
    });
    assert!(one.allow(&KEY));
    one.warm(&KEY);
    assert!(one.allow(&KEY), "and a lease with it");
    assert!(!two.allow(&KEY), "is dry, and hot");
    // Nor does one know another's key to be dry.
    three.warm(&KEY);
    while three.allow(&KEY) {}
    assert!(!three.allow(&KEY));
    in_another_thread(|| one.warm(&KEY));
    assert!(one.allow(&KEY));
}

/// Every cost, on a key that its thread knows to be dry, with the limiter hot all the while.
#[test]
fn a_dry_key_answers_every_cost() {
    let window = Window::new(100, secs(60));
    let both = Limit::burst_sustain(window, Window::new(150, secs(120)));
    let single = Limit::window(window);
    let limits = [
        Limit::bucket(Rate::per_minute(1), 100),
        single.align(Alignment::Clock).count_refused(false),
        single.align(Alignment::FirstRequest).count_refused(false),
        both.align(Alignment::PerKey).count_refused(false),
        Limit::sliding_window(window),
        Limit::sliding_window(Window::new(100, Duration::from_millis(4))).align(Alignment::Clock),
        single.align(Alignment::Clock),
        both,
    ];
    for limit in limits {
        let clock = Manual::new();
        let build =
            |leases| Limiter::builder(limit).leases(leases).seed(SEED).clock(clock.clone()).build().unwrap();
        let (hot, cold) = (build(true), build(false));
        hot.warm(&KEY);
        while hot.allow(&KEY) {}
        while cold.allow(&KEY) {}
        for _ in 0..50 {
            for cost in [1, 7, 100, 101, 0, 3, u64::MAX] {
                let (hot, cold) = (hot.check_n(&KEY, cost), cold.check_n(&KEY, cost));
                assert_eq!(format!("{hot:?}"), format!("{cold:?}"), "{limit:?}, {cost}");
                clock.advance(Duration::from_micros(20));
            }
        }
    }
}

/// A clock whose coarse reading stands still where it is put.
#[derive(Clone, Default)]
struct Lagging {
    coarse: Arc<AtomicU64>,
    precise: Arc<AtomicU64>,
    reads: Arc<AtomicUsize>,
    has_no_bound: Arc<AtomicU64>,
}

impl Clock for Lagging {
    fn coarse(&self) -> u64 {
        self.coarse.load(Ordering::SeqCst)
    }

    fn precise(&self) -> u64 {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.precise.load(Ordering::SeqCst)
    }

    fn lag_bound_ns(&self) -> Option<u64> {
        (self.has_no_bound.load(Ordering::SeqCst) == 0).then_some(50_000_000)
    }

    fn unix(&self) -> Duration {
        Duration::from_nanos(self.precise.load(Ordering::SeqCst))
    }
}

#[test]
fn a_key_known_to_be_dry_is_so_by_the_precise_clock() {
    for is_single in [false, true] {
        let clock = Lagging::default();
        let limit = Limit::bucket(Rate::per_second(1), 1);
        let keyed = Limiter::builder(limit).clock(clock.clone()).build().unwrap();
        let single = SingleLimiter::builder(limit).clock(clock.clone()).build().unwrap();
        let allow = || if is_single { single.allow() } else { keyed.allow(&KEY) };
        let warm = || if is_single { single.warm() } else { keyed.warm(&KEY) };
        let reads = || clock.reads.load(Ordering::SeqCst);
        assert!(allow());
        warm();
        assert!(!allow(), "and known to be dry from here on");
        let before = reads();
        assert!(!allow() && !allow());
        assert_eq!(reads(), before, "a second from its end no lag can matter");
        clock.has_no_bound.store(1, Ordering::SeqCst);
        assert!(!allow());
        assert_eq!(reads(), before + 1, "a clock without a bound wants to be read");
        clock.precise.store(999_999_999, Ordering::SeqCst);
        assert!(!allow());
        clock.precise.store(1_000_000_000, Ordering::SeqCst);
        assert!(allow(), "the token is back, though the coarse time stands still");
        assert!(!allow());
        clock.has_no_bound.store(0, Ordering::SeqCst);
        clock.coarse.store(1_960_000_000, Ordering::SeqCst);
        clock.precise.store(2_000_000_000, Ordering::SeqCst);
        warm();
        assert!(allow(), "the token is back within the bound");
    }
}

#[test]
fn a_dry_key_whose_token_comes_back_within_the_lag_bound_is_looked_up() {
    let clock = Lagging::default();
    let limit = Limit::bucket(Rate::per_second(100), 1);
    let limiter = Limiter::builder(limit).clock(clock.clone()).build().unwrap();
    assert!(limiter.allow(&KEY));
    limiter.warm(&KEY);
    assert!(!limiter.allow(&KEY) && !limiter.allow(&KEY));
    clock.precise.store(10_000_000, Ordering::SeqCst);
    assert!(limiter.allow(&KEY), "10 ms later, though the coarse time stands still");
}
