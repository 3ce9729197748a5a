//! A refresher that is stopped, starved or left behind by a fork must do no harm: on a simulated
//! source, whatever stops and comes back, every bound holds with the recorded lag in it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use tidegate::internals::{Refresher, STALL_NS, SharedTime, TICK_NS, Trust};
use tidegate::{Alignment, Clock, ExactLimiter, Limit, Manual, Rate, Window};

const SECOND: u64 = 1_000_000_000;

/// The shared time of `Ticking` on a source that the test moves.
#[derive(Clone)]
struct Simulated {
    time: Arc<SharedTime>,
    source: Manual,
    refresher: Arc<Mutex<Refresher>>,
}

impl Simulated {
    fn new() -> Self {
        Self { time: Arc::default(), source: Manual::new(), refresher: Arc::default() }
    }

    /// Moves the source on, with a refresher that visits when it should, or without.
    fn run(&self, ns: u64, is_refreshed: bool) {
        let end = self.source.coarse() + ns;
        if is_refreshed {
            let visit = || self.time.visit(&mut self.refresher.lock().unwrap(), || self.source.coarse());
            let mut next = self.source.coarse() + visit();
            while next < end {
                self.source.set(Duration::from_nanos(next));
                self.coarse(); // other callers come by, so that the refresher does not fall asleep
                next += visit();
            }
        }
        self.source.set(Duration::from_nanos(end));
    }

    fn now(&self) -> u64 {
        self.source.coarse()
    }
}

impl Clock for Simulated {
    fn coarse(&self) -> u64 {
        self.time.coarse(|| self.source.coarse())
    }
    fn precise(&self) -> u64 {
        self.time.precise(|| self.source.coarse())
    }
    fn lag_bound_ns(&self) -> Option<u64> {
        thread_local! {
            static TRUST: Trust = const { Trust::new() };
        }
        TRUST.with(Trust::once_more).then_some(STALL_NS)
    }
    fn never_steps_back(&self) -> bool {
        true
    }
    fn unix(&self) -> Duration {
        self.source.unix()
    }
    fn lag_max(&self) -> Duration {
        Duration::from_nanos(self.time.lag_max_ns())
    }
}

/// Sends a request every `gap` through 10 windows of 15 s, the refresher present where
/// `is_refreshed` says so; the times of those admitted, and the lag recorded at the end.
fn traffic(limit: Limit, gap: u64, is_refreshed: impl Fn(u64) -> bool) -> (Vec<u64>, u64) {
    let clock = Simulated::new();
    let limiter = ExactLimiter::<u32>::builder(limit).clock(clock.clone()).build().unwrap();
    let mut admitted = Vec::new();
    while clock.now() < 150 * SECOND {
        clock.run(gap, is_refreshed(clock.now()));
        if limiter.allow(&7) {
            admitted.push(clock.now());
        }
    }
    let lag = clock.time.lag_max_ns();
    (admitted, lag)
}

/// In every interval between two admissions: at most burst + rate · (Δ + lag).
fn assert_bucket_bound(admitted: &[u64], per_second: u64, burst: u64, lag: u64) {
    for (i, from) in admitted.iter().enumerate() {
        for (j, to) in admitted.iter().enumerate().skip(i) {
            let due = burst as u128 * SECOND as u128 + per_second as u128 * (to - from + lag) as u128;
            let count = (j - i + 1) as u128 * SECOND as u128;
            assert!(count <= due, "{} admitted in {} ns with a lag of {lag} ns", j - i + 1, to - from);
        }
    }
}

/// Between any two admissions: at most the limit for each window that the limiter's time, late by up
/// to the lag, can have been in.
fn assert_window_bound(admitted: &[u64], period: u64, limit: u64, lag: u64) {
    for (i, from) in admitted.iter().enumerate() {
        for (j, to) in admitted.iter().enumerate().skip(i) {
            let windows = to / period - from.saturating_sub(lag) / period + 1;
            assert!((j - i + 1) as u64 <= windows * limit, "{} admitted in {windows} windows", j - i + 1);
        }
    }
}

fn bucket() -> Limit {
    Limit::bucket(Rate::per_second(2), 5)
}

fn window() -> Limit {
    Limit::window(Window::new(30, Duration::from_secs(15))).align(Alignment::Clock)
}

#[test]
fn a_refresher_stopped_for_good_costs_what_the_stall_is_worth_once() {
    for gap in [SECOND / 10, SECOND / 3, SECOND] {
        let (admitted, lag) = traffic(bucket(), gap, |now| now < 10 * SECOND);
        assert_bucket_bound(&admitted, 2, 5, lag);
        let (admitted, lag) = traffic(window(), gap, |now| now < 10 * SECOND);
        assert_window_bound(&admitted, 15 * SECOND, 30, lag);
    }
}

/// After the stall is noticed nothing is lost either: a stopped refresher does not refuse what is due.
#[test]
fn what_is_due_is_admitted_without_a_refresher() {
    let (admitted, _) = traffic(bucket(), SECOND / 10, |_| false);
    assert!(admitted.len() >= 5 + 2 * 149, "{}", admitted.len());
    let (admitted, _) = traffic(window(), SECOND / 10, |now| now < 20 * SECOND);
    assert!(admitted.len() >= 30 * 9, "{}", admitted.len());
}

/// The stall is worth something, once: a full bucket is emptied at the time that stands still, and
/// once more at the time that is found. Without the lag in it the bound would be broken.
#[test]
fn a_stall_is_paid_out_once() {
    let clock = Simulated::new();
    let limiter = ExactLimiter::<u32>::builder(bucket()).clock(clock.clone()).build().unwrap();
    assert!(limiter.allow(&7), "known from here on: a new key is charged at a precise time");
    clock.run(SECOND, true);
    clock.run(10 * SECOND, false);
    let burst = (0..100).filter(|_| limiter.allow(&7)).count();
    assert_eq!((burst, clock.time.stalls()), (5 + 5, 1));
    assert!((5 + 2 * 10) as u64 * SECOND <= 5 * SECOND + 2 * clock.time.lag_max_ns());
    clock.run(10 * SECOND, false);
    assert_eq!((0..100).filter(|_| limiter.allow(&7)).count(), 5, "not again");
    assert_eq!(clock.time.stalls(), 1);
}

/// A limiter whose bucket is dry by a time that has stopped, and full by the source.
fn dry_and_stopped() -> ExactLimiter<u32, Simulated> {
    let clock = Simulated::new();
    let limiter = ExactLimiter::<u32>::builder(bucket()).clock(clock.clone()).build().unwrap();
    assert!(limiter.allow(&7), "known from here on: a new key is charged at a precise time");
    clock.run(SECOND, true);
    while limiter.allow(&7) {}
    clock.run(10 * SECOND, false);
    limiter
}

/// What `work` returns on a thread of its own, which has never refused.
fn on_a_new_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().unwrap())
}

#[test]
fn a_thread_refuses_63_times_at_most_by_a_time_that_has_stopped() {
    let refused = on_a_new_thread(|| {
        let limiter = dry_and_stopped(); // the thread's first refusal is among this
        (0..1_000).take_while(|_| !limiter.allow(&7)).count()
    });
    assert_eq!(refused, 63);
}

#[test]
fn a_threads_first_refusal_reads_the_counter() {
    let limiter = on_a_new_thread(dry_and_stopped);
    assert!(on_a_new_thread(|| limiter.allow(&7)), "so it is none");
}

#[test]
fn while_the_refresher_runs_the_lag_is_about_a_tick() {
    let (_, lag) = traffic(bucket(), SECOND / 50, |_| true);
    assert!(lag <= 2 * TICK_NS, "{lag}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn bounds_hold_whenever_it_stops_and_comes_back(
        stops in prop::collection::vec((1..40_u64, 1..20_u64), 1..4),
        gap in SECOND / 20..2 * SECOND,
        per_second in 1..5_u64,
        burst in 1..20_u64,
    ) {
        let is_refreshed = |now: u64| {
            let mut at = 0;
            stops.iter().all(|&(run, stop)| {
                let from = at + run;
                at = from + stop;
                !(from..at).contains(&(now / SECOND))
            })
        };
        let (admitted, lag) = traffic(Limit::bucket(Rate::per_second(per_second), burst), gap, is_refreshed);
        assert_bucket_bound(&admitted, per_second, burst, lag);
        let limit = Limit::window(Window::new(burst, Duration::from_secs(15))).align(Alignment::Clock);
        let (admitted, lag) = traffic(limit, gap, is_refreshed);
        assert_window_bound(&admitted, 15 * SECOND, burst, lag);
    }
}
