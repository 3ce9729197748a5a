//! The slot table on the real clock, with real threads: what is due is admitted, and no more.
//!
//! An upper bound always holds. A lower one may meet a machine that gives the threads no time, and is
//! tried again.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{LEASE, at_once};
use tidegate::{Clock, Limit, Limiter, Manual, Precise, Rate, Ticking};

const ATTEMPTS: usize = 4;

/// Hammers one key; prints admitted, due and bound, and tells whether 99 % of what was due came.
fn holds<C: Clock>(clock: C, rate: u64, burst: u64, threads: usize) -> bool {
    let limit = Limit::bucket(Rate::per_second(rate), burst);
    let limiter = Limiter::builder(limit).clock(clock).max_keys(1_000).build().unwrap();
    let clock = limiter.clock();
    let before = clock.precise();
    let loads = at_once(threads, |_| {
        let end = Instant::now() + Duration::from_millis(250);
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
    let elapsed_ns = clock.precise() - before;
    let opened = loads.iter().map(|load| load.1).min().unwrap();
    let refused = loads.iter().map(|load| load.2).max().unwrap();
    let in_time = |ns: u128| u128::from(rate) * ns / 1_000_000_000;
    let admitted: u128 = loads.iter().map(|load| u128::from(load.0)).sum();
    let lag_ns = (clock.lag_max() + LEASE).as_nanos();
    let bound = u128::from(burst) + in_time(u128::from(elapsed_ns) + lag_ns) + threads as u128;
    let due = u128::from(burst) + in_time(u128::from(refused.saturating_sub(opened)));
    println!("{rate}/s, burst {burst}, {threads} threads: {admitted} admitted, {due} due, bound {bound}");
    assert!(admitted <= bound, "{admitted} admitted, bound {bound}");
    // A bucket of a few milliseconds overflows while the machine gives the threads no time.
    admitted * 100 >= due * 99 || burst < rate / 20
}

#[test]
fn bursts_rates_and_threads_on_the_real_clock() {
    for (rate, burst) in [(1_000, 1), (1_000, 1_000), (100_000, 100), (100_000, 50_000)] {
        for threads in [1, 2, 4] {
            let is_due = |_| {
                holds(Ticking::new(), rate, burst, threads) && holds(Precise::new(), rate, burst, threads)
            };
            assert!((0..ATTEMPTS).any(is_due), "less than 99 % of what was due at {rate}/s, burst {burst}");
        }
    }
}

/// Many threads meet on new keys, in a table with room: each key admits its burst, once.
#[test]
fn threads_that_meet_on_new_keys_share_one_word() {
    for round in 0..200_u64 {
        let limiter =
            Limiter::builder(Limit::bucket(Rate::per_hour(1), 5)).max_keys(100).clock(Manual::new());
        let limiter = limiter.seed(round).build().unwrap();
        let admitted = at_once(4, |_| {
            let admits = |key: u64| (0..5).filter(|_| limiter.allow(&key)).count() as u64;
            (0..20).map(admits).sum::<u64>()
        });
        assert_eq!(admitted.iter().sum::<u64>(), 5 * 20);
        assert_eq!((limiter.stats().forced_evictions, limiter.stats().full), (0, 0));
    }
}

/// A table so small that keys evict each other all the time: what one key is admitted stays within its
/// limit and what was forgiven. Drained keys are never evicted.
#[test]
fn evictions_that_race_with_checks_stay_within_what_is_counted() {
    const BURST: u64 = 4;
    for round in 0..50_u64 {
        let limiter =
            Limiter::builder(Limit::bucket(Rate::per_hour(1), BURST)).max_keys(1).clock(Manual::new());
        let limiter = limiter.seed(round).build().unwrap();
        let admitted = at_once(4, |thread| {
            let keys = (0..2_000_u64).map(|step| (step * 7 + thread as u64 * 13) % 48);
            keys.filter(|key| limiter.allow(key)).count() as u64
        });
        let admitted: u64 = admitted.iter().sum();
        // Every admission stands on a word of the table or was forgiven; 32 words hold a burst each. Each
        // share was rounded up.
        let stats = limiter.stats();
        let forgiven = (stats.forgiven_limits * BURST as f64).floor() as u64;
        assert!(admitted <= 32 * BURST + forgiven, "{admitted} admitted, {forgiven} forgiven");
    }
}
