//! Clock: time that steps, stalls or ends.

use super::*;
use crate::common::manual;
use tidegate::{Limiter, WindowName};

/// Class: a clock that steps back makes the elapsed time negative, which panics or, unsigned, admits everything.
#[test]
fn a_step_back_neither_panics_nor_admits() {
    for limit in limits_of_ten() {
        let (limiter, clock) = manual::<u64>(limit);
        clock.set(secs(1_000));
        assert_eq!(drain(&limiter), 10, "{limit:?}");
        for back in [secs(999), secs(500), secs(1), Duration::ZERO] {
            clock.set(back);
            assert_eq!(passed(&limiter, 20), 0, "{limit:?} at {back:?}");
        }
    }
}

/// Class: after a step back the limiter denies for longer than the step, because it waits for lost time twice.
#[test]
fn a_step_back_denies_by_at_most_the_step() {
    let before = secs(1_000);
    let step = secs(600);
    for limit in limits_of_ten() {
        let (limiter, clock) = manual::<u64>(limit.count_refused(false));
        clock.set(before);
        drain(&limiter);
        let wait = limiter.check(&KEY).unwrap_err().retry_after().unwrap();
        clock.set(before - step);
        let longer = limiter.check(&KEY).unwrap_err().retry_after().unwrap();
        assert_eq!(longer, wait + step, "{limit:?}");
        clock.advance(longer);
        assert!(limiter.allow(&KEY), "{limit:?}");
    }
}

/// Class: two clocks a moment apart take turns, and each turn to the later one is credited as new time.
#[test]
fn alternating_timestamps_mint_nothing() {
    let (early, late) = (secs(1_000), secs(1_003));
    let lazy = limits_of_ten_in_any_alignment().into_iter().map(|limit| limit.align(Alignment::FirstRequest));
    // Both in one window, which has none before it.
    let sliding = Limit::sliding_window(Window::new(10, secs(10))).align(Alignment::Clock);
    for limit in lazy.chain([sliding]) {
        let (limiter, clock) = manual::<u64>(limit);
        clock.set(early);
        drain(&limiter);
        let mut admitted = 0;
        for _ in 0..10_000 {
            clock.set(late);
            admitted += passed(&limiter, 1);
            clock.set(early);
            admitted += passed(&limiter, 1);
        }
        // The bucket is owed the 3 s once; a window is owed nothing before its end.
        let kind = limiter.check_n(&KEY, 0).unwrap().windows()[0].name;
        let owed = if kind == WindowName::Bucket { 3 } else { 0 };
        assert_eq!(admitted, owed, "{limit:?}");
    }
}

/// Class: the same by way of memory: at the later time a drained key is idle and makes room for another; at the
/// earlier one it is unknown, and starts afresh. Every turn would buy it a new limit.
#[test]
fn alternating_timestamps_and_eviction_mint_nothing() {
    for limit in limits_of_ten() {
        for max_keys in [1, 2, 100_000] {
            let clock = Manual::new();
            let builder = ExactLimiter::<u64>::builder(limit).max_keys(max_keys);
            let limiter = builder.clock(clock.clone()).build().unwrap();
            let mut admitted = 0;
            for turn in 0..100 {
                clock.set(secs(1_000));
                admitted += passed(&limiter, 20);
                assert!(admitted <= 20, "{limit:?}: {admitted} in two moments");
                // All is idle, and a newcomer takes its place.
                clock.set(secs(2_000));
                let _ = limiter.allow(&(1_000 + turn));
            }
        }
    }
}

/// Class: a timestamp read long ago is compared with a newer one by unsigned subtraction: a huge refill.
#[test]
fn a_stale_timestamp_is_no_refill() {
    for limit in limits_of_ten() {
        let (limiter, clock) = manual::<u64>(limit);
        for round in 1..=5_u64 {
            clock.set(secs(1_000 * round));
            assert_eq!(drain(&limiter), 10, "{limit:?} {round}");
            clock.set(secs(1_000 * round) - NANOSECOND);
            assert_eq!(passed(&limiter, 100), 0, "{limit:?} {round}");
            clock.set(Duration::ZERO);
            assert_eq!(passed(&limiter, 100), 0, "{limit:?} {round}");
        }
    }
}

/// Class: time outgrows its field, wraps to a small number, and every limit opens (or stays shut for ever
/// without an error). The end of the horizon must fail closed.
#[test]
fn a_counter_at_its_end_fails_closed() {
    for limit in limits_of_ten() {
        let (limiter, clock) = manual::<u64>(limit);
        clock.set(nanos(u128::from(u64::MAX) - 5));
        let mut admitted = passed(&limiter, 1_000);
        for _ in 0..10 {
            clock.advance(NANOSECOND);
            admitted += passed(&limiter, 1_000);
            admitted += u64::from(limiter.check_n(&KEY, 10).is_ok());
        }
        clock.advance(secs(1));
        admitted += passed(&limiter, 1_000);
        assert!(admitted <= 10, "{limit:?} admitted {admitted}");
    }
}

/// Class: the same, met by a key that was spent long before: its state must not look old and idle for ever after.
#[test]
fn years_up_to_the_end_never_admit_more_than_a_limit_each() {
    const YEAR_S: u64 = 31_557_600;
    for limit in limits_of_ten() {
        let (limiter, clock) = manual::<u64>(limit);
        for year in 0..584 {
            clock.set(secs(year * YEAR_S));
            let admitted = passed(&limiter, 30);
            assert!(admitted <= 10, "{limit:?} year {year}: {admitted}");
            if year <= 20 {
                assert_eq!(admitted, 10, "{limit:?} year {year}");
            }
        }
    }
}

#[test]
fn a_forced_eviction_after_a_step_back_gives_no_window_twice() {
    for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        let clock = Manual::new();
        let at = |seconds: u64| clock.set(Duration::from_secs(seconds));
        let limit = Limit::window(Window::new(10, Duration::from_secs(1))).align(alignment);
        let builder = Limiter::builder(limit).max_keys(1).seed(1);
        let limiter = builder.clock(clock.clone()).build().unwrap();
        let mut given = 0;
        let mut ask = |cost: u64| given += if limiter.check_n(&0_u64, cost).is_ok() { cost } else { 0 };
        for second in 0..10 {
            at(second);
            ask(10);
        }
        at(10);
        ask(1);
        assert!((1..32_u64).all(|key| limiter.check_n(&key, 5).is_ok()));
        at(0);
        assert!(limiter.check_n(&100_u64, 5).is_ok(), "forces key 0 out, which owes a tenth");
        for second in 0..=10 {
            at(second);
            ask(10);
        }
        let forgiven = (limiter.stats().forgiven_limits * 10.0).ceil();
        // One window more where they begin within a second.
        let windows = if alignment == Alignment::Clock { 11 } else { 12 };
        assert!(given as f64 <= f64::from(windows * 10) + forgiven, "{alignment:?}: {given}");
    }
}
