//! Edges: the last request, the first after a pause, and the nanosecond of the wait.

use super::*;
use crate::common::manual;
use tidegate::{Reason, WindowName};

/// Class: after a long idle time one more than the burst passes, because an idle bucket starts above full.
#[test]
fn a_long_idle_time_gives_no_extra_request() {
    for limit in limits_of_ten() {
        for idle in [secs(100), secs(86_400), secs(86_400 * 366)] {
            let (limiter, clock) = manual::<u64>(limit);
            assert_eq!(passed(&limiter, 50), 10, "{limit:?} fresh");
            clock.advance(idle);
            assert_eq!(passed(&limiter, 50), 10, "{limit:?} after {idle:?}");
            clock.advance(idle + NANOSECOND);
            assert!(limiter.check_n(&KEY, 10).is_ok(), "{limit:?}");
            assert_eq!(passed(&limiter, 50), 0, "{limit:?} after one of ten");
        }
    }
}

/// Class: tokens pile up without a cap while a key is idle.
#[test]
fn an_idle_key_saves_up_no_unlimited_burst() {
    let mut limits = limits_of_ten();
    limits.push(Limit::bucket(Rate::per_second(1_000_000_000), 10));
    limits.push(Limit::bucket(Rate::new(7, NANOSECOND), 10));
    for limit in limits {
        let (limiter, clock) = manual::<u64>(limit);
        let _ = limiter.allow(&KEY);
        for hours in [1, 24, 24 * 365] {
            clock.advance(secs(3_600 * hours));
            assert_eq!(passed(&limiter, 1_000), 10, "{limit:?} after {hours} h");
        }
    }
}

/// Class: a request for more than the limit is told to wait, and waits for ever.
#[test]
fn one_more_than_the_burst_is_too_large_not_told_to_wait() {
    for limit in limits_of_ten() {
        let (limiter, clock) = manual::<u64>(limit);
        for _ in 0..3 {
            let denied = limiter.check_n(&KEY, 11).unwrap_err();
            assert_eq!(denied.reason(), Reason::TooLarge, "{limit:?}");
            assert_eq!(denied.retry_after(), None, "{limit:?}");
            assert_eq!(denied.remaining(), 10, "{limit:?}: nothing was counted");
            clock.advance(secs(1_000));
        }
        assert!(limiter.check_n(&KEY, 10).is_ok(), "{limit:?}");
    }
}

/// Class: the told wait is one nanosecond short, so that the obedient are refused again; or a whole period long.
#[test]
fn the_wait_is_exact_to_the_nanosecond_on_both_sides() {
    let mut limits = limits_of_ten();
    for (tokens, period) in [
        (3, secs(1)),
        (7, secs(1)),
        (999_999_937, secs(1)),
        (1, Duration::from_nanos(1_000_003)),
        (13, secs(3_600)),
    ] {
        limits.push(Limit::bucket(Rate::new(tokens, period), 10));
    }
    for alignment in ALIGNMENTS {
        for period in [Duration::from_nanos(1_000_000_007), Duration::from_millis(7)] {
            limits.push(Limit::window(Window::new(10, period)).align(alignment));
            if alignment != Alignment::FirstRequest {
                limits.push(Limit::sliding_window(Window::new(10, period)).align(alignment));
            }
        }
    }
    for limit in limits {
        for start in [Duration::ZERO, nanos(123_456_789_123), secs(31_557_600)] {
            for (spent, cost) in [(10, 1), (10, 10), (7, 4), (4, 9)] {
                exact_wait(limit.count_refused(false), start, spent, cost);
            }
        }
    }
}

/// Spends `spent` at `start`, and walks to the nanosecond at which `cost` passes by what the refusal says.
fn exact_wait(limit: Limit, start: Duration, spent: u64, cost: u64) {
    let refused_at = |lead: Duration| {
        let (limiter, clock) = manual::<u64>(limit);
        clock.set(start);
        assert!(limiter.check_n(&KEY, spent).is_ok());
        let denied = limiter.check_n(&KEY, cost).unwrap_err();
        let wait = denied.retry_after().unwrap();
        clock.advance(wait - lead);
        (limiter.check_n(&KEY, cost), wait)
    };
    let context = format!("{limit:?} at {start:?}: {cost} after {spent}");
    let (answer, wait) = refused_at(Duration::ZERO);
    assert!(answer.is_ok(), "{context}: {wait:?} is too short");
    let (answer, _) = refused_at(NANOSECOND);
    let still = answer.expect_err(&format!("{context}: {wait:?} is too long"));
    assert_eq!(still.retry_after(), Some(NANOSECOND), "{context}");
    assert_eq!(still.retry_after_secs(), 1, "{context}");
}

/// Class: the burst's end is named although the refused request itself used up sustain: the wait is too short.
#[test]
fn a_refusal_that_uses_up_sustain_waits_for_sustain() {
    let limit = Limit::burst_sustain(Window::new(10, secs(10)), Window::new(12, secs(100)));
    let (limiter, clock) = manual::<u64>(limit.align(Alignment::Clock));
    assert!(limiter.check_n(&KEY, 10).is_ok());
    let first = limiter.check(&KEY).unwrap_err();
    assert_eq!(first.retry_after(), Some(secs(10)), "one is left in sustain");
    let second = limiter.check(&KEY).unwrap_err();
    assert_eq!(second.retry_after(), Some(secs(100)), "none is left");
    assert_eq!(second.binding(), WindowName::Sustain);
    let refuses: Vec<bool> = second.windows().iter().map(|window| window.refuses).collect();
    assert_eq!(refuses, [true, false], "judged before it was counted");
    clock.set(secs(100) - NANOSECOND);
    assert!(!limiter.allow(&KEY));
    clock.set(secs(100));
    assert!(limiter.allow(&KEY));
}

/// Class: after a refusal the shown remaining stays at 0 although the limit has refilled.
#[test]
fn remaining_comes_back_from_zero() {
    let (limiter, clock) = manual::<u64>(Limit::bucket(Rate::per_second(1), 10));
    passed(&limiter, 20);
    for token in 0..=10 {
        let pass = limiter.check_n(&KEY, 0).unwrap();
        assert_eq!(pass.remaining(), token);
        assert_eq!(pass.reset_after(), secs(10 - token));
        clock.advance(secs(1));
    }
    for limit in limits_of_ten() {
        let (limiter, clock) = manual::<u64>(limit);
        passed(&limiter, 20);
        let reset = limiter.check_n(&KEY, 0).unwrap().reset_after();
        clock.advance(reset - NANOSECOND);
        let left = limiter.check_n(&KEY, 0).unwrap();
        assert_eq!(left.reset_after(), NANOSECOND, "{limit:?}");
        clock.advance(NANOSECOND);
        let full = limiter.check_n(&KEY, 0).unwrap();
        assert_eq!(full.remaining(), 10, "{limit:?}");
        assert_eq!(full.reset_after(), Duration::ZERO, "{limit:?}");
        assert_eq!(full.next_after(), Duration::ZERO, "{limit:?}");
    }
}

/// Class: a look at the state charges for it, or leaves a key behind.
#[test]
fn a_cost_of_nothing_changes_nothing() {
    for limit in limits_of_ten() {
        let (limiter, _clock) = manual::<u64>(limit);
        for _ in 0..100 {
            assert_eq!(limiter.check_n(&KEY, 0).unwrap().remaining(), 10);
        }
        assert!(limiter.is_empty(), "{limit:?}");
        passed(&limiter, 10);
        let before = limiter.check_n(&KEY, 0).unwrap();
        for _ in 0..100 {
            assert_eq!(limiter.check_n(&KEY, 0).unwrap().remaining(), 0);
        }
        let observed = |pass: tidegate::Pass| pass.windows().iter().map(|w| w.observed).sum::<u64>();
        let after = limiter.check_n(&KEY, 0).unwrap();
        assert_eq!(observed(after), observed(before), "{limit:?}");
    }
}
