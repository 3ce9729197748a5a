//! A clock whose coarse reading lags: when a refusal needs the precise one, and what waits it tells.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::{Alignment, Clock, ExactLimiter, Limit, Limiter, Rate, Reason, Window};

const MS: u64 = 1_000_000;

/// Two readings that the test sets, a bound on what is between them, and a count of precise reads.
#[derive(Clone, Default)]
struct Lagging(Arc<Readings>);

#[derive(Default)]
#[allow(clippy::type_complexity, reason = "a step of a test")]
struct Readings {
    coarse_ns: AtomicU64,
    precise_ns: AtomicU64,
    precise_reads: AtomicU64,
    unix_ns: AtomicU64,
    /// `u64::MAX`: not known.
    lag_bound_ns: AtomicU64,
    /// Whether the next question for the bound finds none.
    none_once: AtomicBool,
    /// What another thread does during the next precise read.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Lagging {
    fn new(lag_bound_ns: u64) -> Self {
        let clock = Self::default();
        clock.0.lag_bound_ns.store(lag_bound_ns, Ordering::Relaxed);
        clock
    }

    fn set(&self, coarse_ns: u64, precise_ns: u64) {
        assert!(coarse_ns <= precise_ns);
        self.0.coarse_ns.store(coarse_ns, Ordering::Relaxed);
        self.0.precise_ns.store(precise_ns, Ordering::Relaxed);
        self.0.unix_ns.store(precise_ns, Ordering::Relaxed);
        self.0.precise_reads.store(0, Ordering::Relaxed);
    }

    fn precise_reads(&self) -> u64 {
        self.0.precise_reads.load(Ordering::Relaxed)
    }
}

impl Clock for Lagging {
    fn coarse(&self) -> u64 {
        self.0.coarse_ns.load(Ordering::Relaxed)
    }

    fn precise(&self) -> u64 {
        self.0.precise_reads.fetch_add(1, Ordering::Relaxed);
        let meanwhile = self.0.meanwhile.lock().unwrap().take();
        if let Some(step) = meanwhile {
            step();
        }
        self.0.precise_ns.load(Ordering::Relaxed)
    }

    fn lag_bound_ns(&self) -> Option<u64> {
        if self.0.none_once.swap(false, Ordering::Relaxed) {
            return None;
        }
        Some(self.0.lag_bound_ns.load(Ordering::Relaxed)).filter(|&ns| ns != u64::MAX)
    }

    fn never_steps_back(&self) -> bool {
        true
    }

    fn unix(&self) -> Duration {
        Duration::from_nanos(self.0.unix_ns.load(Ordering::Relaxed))
    }
}

fn one_a_second(clock: &Lagging) -> Limiter<Lagging> {
    let limit = Limit::bucket(Rate::per_second(1), 1);
    let limiter = Limiter::builder(limit).clock(clock.clone()).build().unwrap();
    assert!(limiter.allow("a"));
    limiter
}

#[test]
fn a_refusal_that_no_lag_can_change_does_not_read_the_precise_clock() {
    let clock = Lagging::new(50 * MS);
    let limiter = one_a_second(&clock);
    clock.set(100 * MS, 149 * MS);
    assert!(!limiter.allow("a"));
    assert_eq!(clock.precise_reads(), 0);
}

#[test]
fn a_refusal_within_the_lag_bound_reads_it_and_may_pass() {
    let clock = Lagging::new(50 * MS);
    let limiter = one_a_second(&clock);
    clock.set(960 * MS, 999 * MS);
    assert!(!limiter.allow("a"));
    assert_eq!(clock.precise_reads(), 1);
    clock.set(960 * MS, 1000 * MS);
    assert!(limiter.allow("a"), "the token is back by the precise clock");
    assert_eq!(clock.precise_reads(), 1);
}

#[test]
fn without_a_bound_every_refusal_reads_it() {
    let clock = Lagging::new(u64::MAX);
    let limiter = one_a_second(&clock);
    clock.set(0, 1);
    for reads in 1..=3 {
        assert!(!limiter.allow("a"));
        assert_eq!(clock.precise_reads(), reads);
    }
    clock.set(0, 1000 * MS);
    assert!(limiter.allow("a"));
}

#[test]
fn a_window_that_may_be_over_by_the_precise_clock_is_not_refused_by_the_coarse_one() {
    let clock = Lagging::new(50 * MS);
    let limit = Limit::window(Window::new(1, Duration::from_secs(1))).align(Alignment::Clock);
    let limiter = ExactLimiter::builder(limit).clock(clock.clone()).build().unwrap();
    assert!(limiter.allow(&1));
    clock.set(900 * MS, 940 * MS);
    assert!(!limiter.allow(&1));
    assert_eq!(clock.precise_reads(), 0);
    clock.set(960 * MS, 1000 * MS);
    assert!(limiter.allow(&1));
}

/// The first check of a key reads the precise clock, so its word may be ahead of the coarse one.
#[test]
fn a_lag_is_not_added_to_the_wait() {
    let clock = Lagging::new(50 * MS);
    let shapes = [
        (Limit::bucket(Rate::per_second(1), 1), 1000),
        (Limit::bucket(Rate::per_second(1), 3), 1000),
        (Limit::window(Window::new(3, Duration::from_secs(1))).align(Alignment::FirstRequest), 1000),
    ];
    for (limit, wait_ms) in shapes {
        clock.set(7_000 * MS, 7_040 * MS);
        let limiter = Limiter::builder(limit).clock(clock.clone()).build().unwrap();
        clock.set(8_000 * MS, 8_040 * MS);
        while limiter.allow("a") {}
        let denied = limiter.check("a").unwrap_err();
        assert_eq!(denied.reason(), Reason::Exhausted);
        let wait = denied.retry_after().unwrap();
        let grid = Duration::from_millis(16); // a window may be shorter by one step of its grid
        let longest = Duration::from_millis(wait_ms);
        assert!(wait <= longest && wait + grid > longest, "{limit:?}: {wait:?}");
        assert_eq!(denied.retry_after_secs(), 1, "{limit:?}");
    }
}

/// The counter never steps back, but a limiter on the wall's periods follows the wall, which may.
#[test]
fn a_wait_after_the_wall_was_set_back_is_long_enough() {
    const S: u64 = 1000 * MS;
    let clock = Lagging::new(0);
    let at = |counter_s: u64, wall_s: u64| {
        clock.set(counter_s * S, counter_s * S);
        clock.0.unix_ns.store(wall_s * S, Ordering::Relaxed);
    };
    at(0, 3_000);
    let (burst, sustain) =
        (Window::new(1, Duration::from_secs(15)), Window::new(100, Duration::from_secs(300)));
    let limit = Limit::burst_sustain(burst, sustain).align(Alignment::Clock);
    let limiter = Limiter::builder(limit).clock(clock.clone()).build().unwrap();
    at(16, 3_016);
    assert!(limiter.allow("b") && limiter.allow("a"));
    at(30, 2_900);
    let wait = limiter.check("a").unwrap_err().retry_after().unwrap().as_secs();
    at(30 + wait - 1, 2_900 + wait - 1);
    assert!(!limiter.allow("a"));
    at(30 + wait, 2_900 + wait);
    assert!(limiter.allow("a"), "after {wait} s");
}

/// The burst of one key has ended by the precise clock alone: it owes least, and makes room.
#[test]
fn who_owes_least_is_asked_again_by_the_precise_clock() {
    const S: u64 = 1000 * MS;
    let clock = Lagging::new(u64::MAX);
    let (burst, sustain) =
        (Window::new(10, Duration::from_secs(15)), Window::new(100, Duration::from_secs(300)));
    let limit = Limit::burst_sustain(burst, sustain).align(Alignment::Clock).count_refused(false);
    let limiter = Limiter::builder(limit).max_keys(1).clock(clock.clone()).build().unwrap();
    for burst in 0..8 {
        clock.set((15 * burst + 1) * S, (15 * burst + 1) * S);
        assert!((0..31).all(|key| (0..9).all(|_| limiter.allow(&key))));
    }
    clock.set(118 * S, 118 * S);
    assert!((0..9).all(|_| limiter.allow(&1000)));
    clock.set(120 * S - MS, 120 * S + MS);
    assert!(limiter.allow(&5000), "{:?}", limiter.stats());
}

/// Who owed least is charged before it is evicted: the next one makes room.
#[test]
fn who_owes_least_may_be_charged_meanwhile() {
    let clock = Lagging::new(u64::MAX);
    let limit = Limit::bucket(Rate::per_day(1), 100);
    let limiter = Arc::new(Limiter::builder(limit).max_keys(1).clock(clock.clone()).build().unwrap());
    for key in 0..32_u64 {
        let cost = [40, 45].get(usize::try_from(key).unwrap()).copied().unwrap_or(90);
        assert!(limiter.check_n(&key, cost).is_ok());
    }
    let other = limiter.clone();
    *clock.0.meanwhile.lock().unwrap() = Some(Box::new(move || assert!(other.check_n(&0_u64, 30).is_ok())));
    assert!(limiter.allow(&77_u64), "{:?}", limiter.stats());
    assert_eq!(limiter.stats().forgiven_limits, f64::from(29_492) / f64::from(1 << 16), "45 %, rounded up");
}

/// A clock that gives no bound once is read then, though it would give one if it were asked again in the same check.
#[test]
fn a_clock_that_wants_to_be_read_is_read() {
    let clock = Lagging::new(50 * MS);
    let limiter = one_a_second(&clock);
    clock.set(100 * MS, 5_000 * MS); // the coarse reading has stopped
    assert!(!limiter.allow("a"));
    clock.0.none_once.store(true, Ordering::Relaxed);
    assert!(limiter.allow("a"));

    let exact =
        ExactLimiter::builder(Limit::bucket(Rate::per_second(1), 1)).clock(clock.clone()).build().unwrap();
    assert!(exact.allow(&1));
    clock.set(5_100 * MS, 10_000 * MS);
    assert!(!exact.allow(&1));
    clock.0.none_once.store(true, Ordering::Relaxed);
    assert!(exact.allow(&1));
}
