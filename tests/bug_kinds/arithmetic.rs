//! Arithmetic: rates, bursts and costs at the ends of their ranges.

use super::*;
use crate::common::manual;
use tidegate::{Reason, WindowState};

/// Class: the time of one token is kept in whole nanoseconds, so every rate above 10^9 a second becomes one of
/// a few (600 M/s turns into 1 G/s, 10 G/s into 1 G/s or unlimited).
#[test]
fn more_than_a_billion_a_second_is_not_truncated() {
    for rate in [600_000_000, 999_999_999, 1_000_000_001, 1_700_000_000, 3_000_000_000, 10_000_000_000] {
        let (limiter, clock) = manual::<u64>(Limit::bucket(Rate::per_second(rate), rate));
        assert_eq!(drain(&limiter), rate);
        clock.advance(Duration::from_millis(500));
        assert_eq!(drain(&limiter), rate / 2, "{rate}/s in half a second");
        clock.advance(Duration::from_millis(500));
        // Half of an odd rate leaves half a token over.
        assert_eq!(drain(&limiter), rate.div_ceil(2), "{rate}/s, second half");
    }
}

/// Class: the same in small: a nanosecond of 3 × 10^9/s is three tokens.
#[test]
fn tokens_shorter_than_a_nanosecond_come_one_by_one() {
    for tokens in [1, 2, 3, 10] {
        let rate = Rate::new(tokens, NANOSECOND);
        let (limiter, clock) = manual::<u64>(Limit::bucket(rate, 1_000));
        assert_eq!(drain(&limiter), 1_000);
        for _ in 0..100 {
            clock.advance(NANOSECOND);
            assert_eq!(drain(&limiter), tokens);
        }
    }
}

/// Class: one an hour times a large burst overflows the time until the bucket is full.
#[test]
fn a_slow_rate_with_a_large_burst_builds_or_errors() {
    let mut built = 0;
    for power in 0..64 {
        let burst = 1 << power;
        for rate in [Rate::per_hour(1), Rate::per_day(1), Rate::per_second(1)] {
            let clock = Manual::new();
            let builder = ExactLimiter::<u64>::builder(Limit::bucket(rate, burst));
            let Ok(limiter) = builder.clock(clock.clone()).build() else {
                continue;
            };
            built += 1;
            assert_eq!(drain(&limiter), burst, "{rate:?}");
            let wait = limiter.check(&KEY).unwrap_err().retry_after().unwrap();
            clock.advance(wait - NANOSECOND);
            assert!(!limiter.allow(&KEY), "{rate:?}, burst {burst}");
            clock.advance(NANOSECOND);
            assert_eq!(drain(&limiter), 1, "{rate:?}, burst {burst}");
        }
    }
    // A thousand an hour's worth, 41 days, is no exotic limit.
    assert!(built > 3 * 10, "only {built} of them built");
}

/// Class: integer division of the period by the rate: 2000/s becomes 1000/s (half a millisecond is no
/// millisecond).
#[test]
fn two_thousand_a_second_stay_two_thousand() {
    let (limiter, clock) = manual::<u64>(Limit::bucket(Rate::per_second(2_000), 2_000));
    drain(&limiter);
    clock.advance(Duration::from_micros(500) - NANOSECOND);
    assert_eq!(passed(&limiter, 2), 0);
    clock.advance(NANOSECOND);
    assert_eq!(passed(&limiter, 2), 1);
    clock.advance(secs(1));
    assert_eq!(drain(&limiter), 2_000);
}

/// Class: a poll that comes before a token is whole throws the fraction away, so a limiter that is asked often
/// refills slowly or never.
#[test]
fn the_refill_keeps_its_fraction_at_high_polling() {
    for (tokens, period_ns, poll_ns, polls) in [
        (3, 1_000_000_000, 1_000_000, 10_000),
        (7, 1_000_000_000, 999_983, 10_000),
        (1, 1_000, 1, 100_000),
        (3, 1_001, 1, 100_100),
        (999, 1_000, 1, 100_000),
    ] {
        let rate = Rate::new(tokens, Duration::from_nanos(period_ns));
        let (limiter, clock) = manual::<u64>(Limit::bucket(rate, 10));
        let mut admitted = drain(&limiter);
        for _ in 0..polls {
            clock.advance(Duration::from_nanos(poll_ns));
            admitted += passed(&limiter, 2);
        }
        let due = tokens * poll_ns * polls / period_ns;
        assert_eq!(admitted, 10 + due, "{rate:?} polled every {poll_ns} ns");
    }
}

/// Class: a burst near the top of its type wraps, and the limit is gone.
#[test]
fn a_huge_burst_is_never_unlimited() {
    for burst in [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 62) + 1, u64::MAX / 10] {
        let limits = [
            Limit::bucket(Rate::per_second(1), burst),
            Limit::bucket(Rate::per_second(u64::MAX), burst),
            Limit::window(Window::new(burst, secs(10))),
            Limit::burst_sustain(Window::new(burst, secs(10)), Window::new(burst, secs(100))),
        ];
        for limit in limits {
            let builder = ExactLimiter::<u64>::builder(limit);
            let Ok(limiter) = builder.clock(Manual::new()).build() else {
                continue;
            };
            assert_eq!(drain(&limiter), burst, "{limit:?}");
            assert_eq!(passed(&limiter, 100), 0, "{limit:?}");
        }
    }
}

/// Class: a cost near the top of its type wraps to a small one and passes, or leaves the state wrapped.
#[test]
fn a_huge_cost_never_passes_and_leaves_no_trace() {
    for limit in limits_of_ten() {
        let (limiter, _clock) = manual::<u64>(limit);
        for round in 0..10 {
            for cost in [u64::MAX, u64::MAX - 1, 1 << 63, 1 << 62, 1 << 32, 11] {
                let denied = limiter.check_n(&KEY, cost).unwrap_err();
                assert_eq!(denied.reason(), Reason::TooLarge, "{limit:?} {cost}");
                assert_eq!(denied.retry_after(), None, "{limit:?} {cost}");
                assert_eq!(denied.remaining(), 10 - round, "{limit:?} {cost}");
            }
            assert!(limiter.allow(&KEY), "{limit:?}");
        }
        assert!(!limiter.allow(&KEY), "{limit:?}");
    }
}

/// Class: remaining is limit minus used, and used can be more: it wraps to a huge number.
#[test]
fn remaining_never_underflows() {
    for limit in limits_of_ten() {
        let (limiter, clock) = manual::<u64>(limit);
        clock.set(secs(1_000));
        passed(&limiter, 10);
        for _ in 0..50 {
            let denied = limiter.check_n(&KEY, 10).unwrap_err();
            assert_eq!(denied.remaining(), 0, "{limit:?}");
        }
        clock.set(secs(1));
        let denied = limiter.check(&KEY).unwrap_err();
        assert_eq!(denied.remaining(), 0, "{limit:?} after a step back");
        assert!(denied.windows().iter().all(|window| window.remaining <= window.limit));
        assert_eq!(limiter.check_n(&KEY, 0).unwrap().remaining(), 0);
    }
}

/// Class: rate 0 or burst 0 divides by zero or admits everything.
#[test]
fn nothing_of_nothing_is_an_error() {
    let limits = [
        Limit::bucket(Rate::per_second(0), 10),
        Limit::bucket(Rate::per_second(10), 0),
        Limit::bucket(Rate::new(10, Duration::ZERO), 10),
        Limit::window(Window::new(0, secs(10))),
        Limit::window(Window::new(10, Duration::ZERO)),
    ];
    for limit in limits {
        let built = ExactLimiter::<u64>::builder(limit).clock(Manual::new()).build();
        assert!(built.is_err(), "{limit:?}");
    }
}

/// Class: a count that outgrows its field carries into its neighbour: the other window's count, or time.
#[test]
fn saturated_counts_never_carry() {
    let window = |limit, seconds| Window::new(limit, secs(seconds));
    for (limit, cost) in [
        (Limit::window(window(30, 15)), 30),
        (Limit::burst_sustain(window(30, 15), window(100, 300)), 30),
        (Limit::burst_sustain(window(1_000, 15), window(4_000, 300)), 1_000),
    ] {
        for alignment in [Alignment::Clock, Alignment::FirstRequest] {
            let (limiter, clock) = manual::<u64>(limit.align(alignment));
            assert!(limiter.check_n(&KEY, cost).is_ok());
            let mut seen = limiter.check_n(&KEY, cost).unwrap_err().windows();
            for _ in 0..1_000_000 {
                let now = limiter.check_n(&KEY, cost).unwrap_err().windows();
                let grew = |(old, new): (&WindowState, &WindowState)| old.observed <= new.observed;
                assert!(seen.iter().zip(now.iter()).all(grew), "{limit:?}");
                seen = now;
            }
            clock.advance(secs(15));
            if seen.len() == 2 {
                let denied = limiter.check(&KEY).unwrap_err();
                assert_eq!(denied.windows()[0].observed, 1, "{limit:?}: burst rolled");
                assert_eq!(denied.retry_after(), Some(secs(285)), "{limit:?}");
                clock.advance(secs(285));
            }
            assert_eq!(drain(&limiter), cost, "{limit:?}: all is new");
        }
    }
}

/// Class: remaining underflows when more is used than the limit is: after a debt there seems to be room without end.
#[test]
fn remaining_underflows_after_a_debt() {
    for limit in limits_of_ten() {
        for debt in [1, 7, 1 << 20, u64::MAX] {
            let (limiter, clock) = manual::<u64>(limit.debt_max(debt));
            let receipt = limiter.charge(&KEY, u64::MAX).unwrap();
            assert!(receipt.charged() > 10 && receipt.debt() > 0, "{receipt:?}");
            for _ in 0..3 {
                let seen = limiter.peek(&KEY);
                assert_eq!((seen.remaining(), limiter.allow(&KEY)), (0, false), "{limit:?}: {seen:?}");
                for window in &seen.windows() {
                    assert!(window.remaining <= window.limit && window.observed <= window.observed_max);
                }
                clock.advance(NANOSECOND);
            }
            assert_eq!(limiter.check_n(&KEY, 11).unwrap_err().reason(), Reason::TooLarge, "{limit:?}");
            assert_eq!(limiter.charge(&KEY, 1).unwrap().standing().remaining(), 0, "{limit:?}");
        }
    }
}
