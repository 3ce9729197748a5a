//! Real threads: on the real clock, where stale times are real, and on keys that come, go and are evicted.
//!
//! No absolute time is asserted. An upper bound on what is admitted always holds; a lower one may meet a machine
//! that gives the threads no time, and is tried again.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{at_once, manual, secs};
use tidegate::{Alignment, Clock, ExactLimiter, Limit, Manual, Precise, Rate, Ticking, Window};

const THREADS: usize = 4;
const ATTEMPTS: usize = 4;

/// What a load by all threads for `span` came to, in the limiter's own time.
struct Load {
    admitted: u64,
    /// From before the first check to after the last.
    elapsed: Duration,
    /// From after a first check to before a refused one: all that was due in it must have been admitted, however
    /// late a busy machine lets a thread go on.
    refused_after: Duration,
    lag_max: Duration,
}

fn load<C: Clock>(limiter: &ExactLimiter<u64, C>, span: Duration) -> Load {
    let clock = limiter.clock();
    let before = clock.precise();
    let threads = at_once(THREADS, |_| {
        let end = Instant::now() + span;
        let mut admitted = u64::from(limiter.allow(&7));
        let opened = clock.precise();
        loop {
            let now = clock.precise();
            let passed = (0..64).filter(|_| limiter.allow(&7)).count() as u64;
            admitted += passed;
            if passed < 64 && Instant::now() >= end {
                return (admitted, opened, now);
            }
        }
    });
    let opened = threads.iter().map(|&(_, opened, _)| opened).min().unwrap();
    let refused = threads.iter().map(|&(_, _, refused)| refused).max().unwrap();
    Load {
        admitted: threads.iter().map(|&(admitted, _, _)| admitted).sum(),
        elapsed: Duration::from_nanos(clock.precise() - before),
        refused_after: Duration::from_nanos(refused.saturating_sub(opened)),
        lag_max: clock.lag_max(),
    }
}

/// A bucket under a load far above its rate: never above the stated bound, and hardly below what is due.
fn a_bucket_holds<C: Clock>(clock: impl Fn() -> C, rate: u64, burst: u64) {
    for attempt in 1..=ATTEMPTS {
        let limit = Limit::bucket(Rate::per_second(rate), burst);
        let limiter = ExactLimiter::<u64>::builder(limit).clock(clock()).build().unwrap();
        let load = load(&limiter, Duration::from_millis(700));
        let due = |time: Duration| u128::from(rate) * time.as_nanos() / 1_000_000_000;
        let bound = u128::from(burst) + due(load.elapsed + load.lag_max) + THREADS as u128;
        let admitted = u128::from(load.admitted);
        assert!(admitted <= bound, "{admitted} admitted, bound {bound}, rate {rate}");
        let due = u128::from(burst) + due(load.refused_after);
        if admitted * 100 >= due * 99 {
            return;
        }
        println!("attempt {attempt}: {admitted} of {due} due at {rate}/s");
    }
    panic!("less than 99 % of what was due at {rate}/s, {ATTEMPTS} times");
}

#[test]
fn a_bucket_on_the_ticking_clock_admits_what_is_due_and_no_more() {
    a_bucket_holds(Ticking::new, 100_000, 50_000);
    a_bucket_holds(Ticking::new, 1_000, 2_000);
}

#[test]
fn a_bucket_on_the_precise_clock_admits_what_is_due_and_no_more() {
    a_bucket_holds(Precise::new, 100_000, 50_000);
    a_bucket_holds(Precise::new, 1_000, 2_000);
}

/// The peers' failure: a stale timestamp under contention reads as a huge refill. A slow bucket shows it.
#[test]
fn a_slow_bucket_admits_its_burst_and_nothing_else() {
    fn hold<C: Clock>(clock: C) {
        let limit = Limit::bucket(Rate::per_hour(1), 100);
        let limiter = ExactLimiter::<u64>::builder(limit).clock(clock).build().unwrap();
        assert_eq!(load(&limiter, Duration::from_millis(300)).admitted, 100);
    }
    hold(Ticking::new());
    hold(Precise::new());
}

/// Windows of `period` under a load for ten of them.
fn windows_hold<C: Clock>(clock: impl Fn() -> C, alignment: Alignment) {
    let (calls, period) = (2_000_u64, Duration::from_millis(50));
    let limit = Limit::window(Window::new(calls, period)).align(alignment);
    for attempt in 1..=ATTEMPTS {
        let limiter = ExactLimiter::<u64>::builder(limit).clock(clock()).build().unwrap();
        let load = load(&limiter, period * 10);
        // Full periods that fit, and one cut at either end. A window that opens at a request may be short by a
        // step of its grid, a 64th.
        let shortest = if alignment == Alignment::FirstRequest { period * 63 / 64 } else { period };
        let most = (load.elapsed + load.lag_max).as_nanos() / shortest.as_nanos() + 2;
        let admitted = u128::from(load.admitted);
        assert!(admitted <= u128::from(calls) * most, "{admitted} in {most} windows");
        let least = (load.refused_after.as_nanos() / period.as_nanos()).saturating_sub(1);
        if admitted >= u128::from(calls) * least {
            return;
        }
        println!("attempt {attempt}: {admitted} in {least} windows");
    }
    panic!("a window of {calls} was not used up, {ATTEMPTS} times, {alignment:?}");
}

#[test]
fn windows_on_the_real_clock_admit_their_limit_each() {
    for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        windows_hold(Ticking::new, alignment);
        windows_hold(Precise::new, alignment);
    }
}

/// A window that outlasts the test: exactly the limit, whoever asks.
#[test]
fn a_long_window_admits_exactly_its_limit() {
    fn hold<C: Clock>(clock: C) {
        let limit = Limit::burst_sustain(Window::new(500, secs(600)), Window::new(700, secs(6_000)));
        let limit = limit.align(Alignment::FirstRequest);
        let limiter = ExactLimiter::<u64>::builder(limit).clock(clock).build().unwrap();
        assert_eq!(load(&limiter, Duration::from_millis(200)).admitted, 500);
    }
    hold(Ticking::new());
    hold(Precise::new());
}

/// Every thread meets every key for the first time at the same moment.
#[test]
fn a_race_to_insert_a_key_admits_exactly_its_limit() {
    const KEYS: u64 = 20_000;
    for limit in [Limit::bucket(Rate::per_second(1), 3), Limit::window(Window::new(3, secs(60)))] {
        let (limiter, _clock) = manual::<u64>(limit);
        let admitted = at_once(THREADS, |_| {
            let check = |key| (0..2).filter(|_| limiter.allow(&key)).count();
            (0..KEYS).map(check).collect::<Vec<_>>()
        });
        for key in 0..usize::try_from(KEYS).unwrap() {
            let sum: usize = admitted.iter().map(|counts| counts[key]).sum();
            assert_eq!(sum, 3, "{limit:?}: key {key}");
        }
        assert_eq!(limiter.len() as u64, KEYS, "{limit:?}");
    }
}

/// Twelve keys in a table of four, while time moves: no key gets more than its bucket is owed, the table never
/// overflows, and keys do come and go.
#[test]
fn an_eviction_that_races_with_checks_admits_no_key_over_its_bound() {
    const KEYS: usize = 12;
    const BURST: u64 = 3;
    const STEPS: u64 = 300;
    let clock = Manual::new();
    let limiter = ExactLimiter::<usize>::builder(Limit::bucket(Rate::per_second(1), BURST))
        .max_keys(4)
        .seed(common::SEED)
        .clock(clock.clone())
        .build()
        .unwrap();
    let admitted: [AtomicU64; KEYS] = std::array::from_fn(|_| AtomicU64::new(0));
    let over = AtomicBool::new(false);
    at_once(THREADS, |number| {
        for turn in 0..STEPS * 400 {
            // One thread moves time, a token's worth at a time.
            if number == 0 && turn % 400 == 399 {
                clock.advance(secs(1));
            }
            let key = usize::try_from(turn).unwrap() * (2 * number + 1) / 50 % KEYS;
            if limiter.allow(&key) {
                admitted[key].fetch_add(1, Ordering::Relaxed);
            }
            if limiter.len() > 4 {
                over.store(true, Ordering::Relaxed);
            }
        }
    });
    assert!(!over.load(Ordering::Relaxed), "more than max_keys keys were held");
    let owed = BURST + clock.elapsed().as_secs() + THREADS as u64;
    for (key, admitted) in admitted.iter().enumerate() {
        let admitted = admitted.load(Ordering::Relaxed);
        assert!(admitted <= owed, "key {key}: {admitted} admitted, {owed} owed");
    }
    let total: u64 = admitted.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    assert!(total > 4 * STEPS / 4, "only {total} were admitted: newcomers find no room");
}

/// The same on frozen time: nobody is idle, so the first four keys stay, each gets its limit, and no one else any.
#[test]
fn a_full_table_on_frozen_time_serves_the_keys_it_holds() {
    for round in 0..200 {
        let clock = Manual::new();
        let limiter = ExactLimiter::<usize>::builder(Limit::window(Window::new(5, secs(60))))
            .max_keys(4)
            .clock(clock)
            .build()
            .unwrap();
        let admitted = at_once(THREADS, |number| {
            let mut counts = [0; 16];
            for turn in 0..160 {
                let key = (turn + 4 * number) % 16;
                counts[key] += u32::from(limiter.allow(&key));
            }
            counts
        });
        let sums: Vec<u32> = (0..16).map(|key| admitted.iter().map(|counts| counts[key]).sum()).collect();
        let served = sums.iter().filter(|&&sum| sum > 0).count();
        assert_eq!(served, 4, "round {round}: {sums:?}");
        assert!(sums.iter().all(|&sum| sum == 0 || sum == 5), "round {round}: {sums:?}");
        assert_eq!(limiter.len(), 4, "round {round}");
    }
}
