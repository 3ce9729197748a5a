//! Limits that are changed in the middle of something else: a clock does, when it is read, what another thread could do then.
#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "small numbers of a test, which fails by panicking"
)]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::secs;
use tidegate::{
    Alignment, CarryOver, Clock, ConfigError, Limit, Limiter, Manual, Rate, SingleLimiter, Window,
};

type Hook = Box<dyn FnOnce() + Send>;

/// A clock at whose next precise reading something happens.
#[derive(Clone, Default)]
struct Hooked {
    ns: Arc<AtomicU64>,
    lag_ns: Arc<AtomicU64>,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl Hooked {
    fn at(time: Duration) -> Self {
        let clock = Self::default();
        clock.advance(time);
        clock
    }

    fn advance(&self, by: Duration) {
        self.ns.fetch_add(by.as_nanos() as u64, Ordering::SeqCst);
    }

    fn next(&self, hook: impl FnOnce() + Send + 'static) {
        *self.hook.lock().unwrap() = Some(Box::new(hook));
    }
}

impl Clock for Hooked {
    fn coarse(&self) -> u64 {
        self.ns.load(Ordering::SeqCst) - self.lag_ns.load(Ordering::SeqCst)
    }

    fn precise(&self) -> u64 {
        let ns = self.ns.load(Ordering::SeqCst);
        let hook = self.hook.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        ns
    }

    fn unix(&self) -> Duration {
        secs(999_999_990) + Duration::from_nanos(self.ns.load(Ordering::SeqCst))
    }
}

/// A thread that leases has found the key dry when the limit is changed: the refusal is told by the new limit.
#[test]
fn a_refusal_at_the_first_change_is_told_by_the_new_limit() {
    let limits: [fn(u64) -> Limit; 3] = [
        |limit| Limit::bucket(Rate::per_second(1), limit),
        |limit| Limit::window(Window::new(limit, secs(60))),
        |limit| Limit::sliding_window(Window::new(limit, secs(60))),
    ];
    for limit in limits {
        let clock = Hooked::at(secs(10));
        clock.lag_ns.store(1_000, Ordering::SeqCst);
        let limiter =
            Arc::new(SingleLimiter::builder(limit(5)).seed(1).clock(clock.clone()).build().unwrap());
        limiter.warm();
        assert!(limiter.check_n(5).is_ok());
        limiter.warm();
        let other = Arc::clone(&limiter);
        clock.next(move || other.set_limit(limit(6), CarryOver::KeepUsed).unwrap());
        let (denied, again) = (limiter.check_n(3).unwrap_err(), limiter.check_n(3).unwrap_err());
        assert_eq!((denied.limit(), denied.retry_after()), (6, again.retry_after()));
    }
}

/// A check adopts a key while the walk is on its way, with a reading that lags: what came back meanwhile is not used.
#[test]
fn who_adopts_a_word_reads_the_time_first() {
    let limit = |rate, burst| Limit::bucket(Rate::per_second(rate), burst);
    let clock = Hooked::at(secs(10));
    let limiter =
        Arc::new(SingleLimiter::builder(limit(1_000_000, 1_000)).clock(clock.clone()).build().unwrap());
    assert!(limiter.check_n(1_000).is_ok());
    clock.advance(Duration::from_millis(1)); // full again
    clock.lag_ns.store(1_000_000, Ordering::SeqCst);
    let other = Arc::clone(&limiter);
    let walked = Arc::clone(&limiter);
    let hooked = clock.clone();
    // The first reading is of the change itself, the second of its walk.
    clock.next(move || hooked.clone().next(move || assert!(other.allow())));
    limiter.set_limit(limit(1, 5_000), CarryOver::KeepUsed).unwrap();
    assert_eq!(walked.peek().windows()[0].observed, 1);
}

/// The clock panics in a walk while another change waits for its turn: that finishes the walk before its own.
#[test]
fn a_walk_that_panicked_is_finished_by_the_next() {
    let limit = |rate| Limit::bucket(Rate::per_second(rate), 1_000);
    let clock = Hooked::at(secs(10));
    let limiter = Arc::new(SingleLimiter::builder(limit(10)).clock(clock.clone()).build().unwrap());
    assert!(limiter.check_n(500).is_ok());
    let hooked = clock.clone();
    clock.next(move || {
        hooked.clone().next(|| {
            thread::sleep(Duration::from_millis(200));
            panic!("the clock");
        });
    });
    let first = Arc::clone(&limiter);
    let first = thread::spawn(move || first.set_limit(limit(13), CarryOver::KeepUsed));
    thread::sleep(Duration::from_millis(100));
    limiter.set_limit(limit(17), CarryOver::KeepUsed).unwrap();
    assert!(first.join().is_err());
    assert_eq!((limiter.limit(), limiter.peek().remaining()), (limit(17), 500));
}

/// A refund finds that its receipt is void after it has lowered the word, in the next window: what it puts back is what it took.
#[test]
fn a_void_refund_in_the_next_window_puts_back_what_it_took() {
    let window = Window::new(30, secs(15));
    let both = Limit::burst_sustain(window, Window::new(100, secs(300)));
    for limit in [both, Limit::sliding_window(window)] {
        let clock = Hooked::at(secs(10));
        let limit = limit.align(Alignment::Clock);
        let limiter = Limiter::builder(limit).max_keys(1_000).seed(1).clock(clock.clone()).build().unwrap();
        let limiter = Arc::new(limiter);
        let receipt = limiter.take("a", 10).unwrap();
        assert!(limiter.check_n("a", 20).is_ok());
        clock.advance(secs(15));
        let observed =
            || limiter.peek("a").windows().iter().map(|window| window.observed).collect::<Vec<_>>();
        let before = observed();
        assert!(before[0] < 30, "its first window is over");
        // One of them is in the key's part.
        let other = Arc::clone(&limiter);
        clock.next(move || (0..2_000_u32).for_each(|key| assert!(other.reset(&key))));
        assert_eq!((limiter.refund(receipt), observed()), (0, before), "{limit:?}");
    }
}

/// Refunds race with changes between rates of different units: what is put back is put back in the new ones.
#[test]
fn refunds_beside_changes_of_the_rate_put_back_what_they_took() {
    let limit = |rate| Limit::bucket(Rate::per_second(rate), 10);
    let clock = Manual::new();
    let limiter = SingleLimiter::builder(limit(10)).leases(false).clock(clock.clone()).build().unwrap();
    clock.advance(secs(30 * 86_400));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in (0..2_u64).cycle() {
                limiter.set_limit(limit(10 + 3 * round), CarryOver::KeepUsed).unwrap();
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let mut longest = Duration::ZERO;
        for _ in 0..1_000_000 {
            match limiter.take(1) {
                Ok(receipt) => _ = limiter.refund(receipt),
                // What was not given back, because the limit had changed.
                Err(_) => {
                    longest = longest.max(limiter.peek().reset_after());
                    assert!(limiter.reset());
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
        // Ten at most are used, and none is owed for days.
        assert!(longest <= secs(2), "{longest:?}");
    });
}

/// A limit whose time would end soon, in a limiter that has been at work for long, is an error.
#[test]
fn a_limit_lasts_for_seven_years_from_its_change() {
    let clock = Manual::new();
    let week = Limit::bucket(Rate::new(7, secs(7 * 365 * 86_400)), 1);
    let limiter = SingleLimiter::builder(week).clock(clock.clone()).build().unwrap();
    let fastest = Limit::bucket(Rate::per_second(10_000_000_000), 1);
    let error = limiter.set_limit(fastest, CarryOver::KeepUsed).unwrap_err();
    assert!(matches!(error, ConfigError::BeyondHorizon { .. }), "{error}");
    let quicker = Limit::bucket(Rate::per_second(1), 1);
    limiter.set_limit(quicker, CarryOver::KeepUsed).unwrap();
    assert!(limiter.horizon() >= secs(7 * 365 * 86_400) && limiter.resolution() <= Duration::from_nanos(1));
}

/// Down to one and back, with more used than the words of the lower limit can count: nobody gets anything back by it.
#[test]
fn what_cannot_be_counted_any_more_stays_used() {
    const MANY: u64 = 1_000_000;
    let windows = |limit| Limit::window(Window::new(limit, secs(60)));
    let limits: [Box<dyn Fn(u64) -> Limit>; 4] = [
        Box::new(move |limit| windows(limit).align(Alignment::FirstRequest)),
        Box::new(|limit| Limit::sliding_window(Window::new(limit, secs(60)))),
        Box::new(|limit| Limit::burst_sustain(Window::new(limit, secs(15)), Window::new(limit, secs(300)))),
        Box::new(|limit| Limit::bucket(Rate::new(limit, secs(3_600)), limit)),
    ];
    for limit in limits {
        let Ok(limiter) = SingleLimiter::builder(limit(MANY)).seed(1).clock(Manual::new()).build() else {
            continue; // so many of two windows do not fit
        };
        assert!(limiter.check_n(MANY).is_ok());
        limiter.set_limit(limit(1), CarryOver::KeepUsed).unwrap();
        limiter.set_limit(limit(MANY), CarryOver::KeepUsed).unwrap();
        assert_eq!(limiter.peek().remaining(), 0, "{:?}", limit(MANY));
    }
}
