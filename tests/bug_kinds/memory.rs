//! Memory: what is kept for keys, and for how long.

use super::*;
use tidegate::Reason;

/// A limiter of at most `max_keys` keys on a clock moved by hand.
fn bounded(limit: Limit, max_keys: usize) -> (ExactLimiter<u64, Manual>, Manual) {
    let clock = Manual::new();
    let limiter = ExactLimiter::<u64>::builder(limit)
        .max_keys(max_keys)
        .seed(common::SEED)
        .clock(clock.clone())
        .build()
        .unwrap();
    assert_eq!(limiter.max_keys(), max_keys);
    (limiter, clock)
}

/// Class: every key ever seen is kept for ever.
#[test]
fn keys_do_not_grow_for_ever() {
    for limit in limits_of_ten() {
        let (limiter, clock) = bounded(limit, 100);
        for key in 0..20_000 {
            assert!(limiter.allow(&key), "{limit:?}: key {key} is new");
            assert!(limiter.len() <= 100, "{limit:?}: {} keys", limiter.len());
            // Each key is idle long before a hundred others have come.
            clock.advance(secs(2));
        }
    }
}

/// Class: a key that is pushed out starts afresh, so a flood of strangers buys a drained key a new limit.
#[test]
fn a_flood_of_strangers_resets_no_key() {
    for limit in limits_of_ten() {
        let (limiter, _clock) = bounded(limit, 10);
        for key in 0..10 {
            assert!(limiter.check_n(&key, 10).is_ok(), "{limit:?}");
        }
        for stranger in 10..5_000 {
            let denied = limiter.check(&stranger).unwrap_err();
            assert_eq!(denied.reason(), Reason::Full, "{limit:?}");
            assert!(!limiter.allow(&(stranger % 10)), "{limit:?}");
        }
        for key in 0..10 {
            let denied = limiter.check(&key).unwrap_err();
            assert_eq!(denied.reason(), Reason::Exhausted, "{limit:?}");
        }
        assert_eq!(limiter.len(), 10, "{limit:?}");
    }
}

/// Class: the same while strangers come and go idle around the drained key.
#[test]
fn a_key_that_owes_outlives_the_idle_around_it() {
    let (limiter, clock) = bounded(Limit::bucket(Rate::per_second(1), 10), 5);
    assert!(limiter.check_n(&KEY, 10).is_ok());
    for second in 1..=1_000_u64 {
        clock.advance(secs(1) - NANOSECOND);
        assert!(!limiter.allow(&KEY), "second {second}");
        clock.advance(NANOSECOND);
        assert!(limiter.allow(&KEY), "second {second}");
        for stranger in 0..4 {
            // Idle again in one second; the one after the next finds its place.
            let _maybe_full = limiter.check(&(1_000_000 + second * 4 + stranger));
        }
        assert!(limiter.len() <= 5);
    }
}

/// Class: a sweep stops the world: one request pays for the removal of all idle keys.
#[test]
fn one_newcomer_does_not_sweep_the_table() {
    let (limiter, clock) = bounded(Limit::bucket(Rate::per_second(1), 10), 10_000);
    for key in 0..10_000 {
        assert!(limiter.allow(&key));
    }
    clock.advance(secs(3_600));
    assert!(limiter.allow(&10_000), "an idle key makes room");
    assert!(limiter.len() <= 10_000);
    assert!(limiter.len() > 9_000, "{} keys are left", limiter.len());
}

/// Class: capacity 0 means no bound.
#[test]
fn a_capacity_of_nothing_is_an_error() {
    let limit = Limit::bucket(Rate::per_second(1), 10);
    let built = ExactLimiter::<u64>::builder(limit).max_keys(0).clock(Manual::new()).build();
    assert!(built.is_err());
    let (limiter, _clock) = bounded(limit, 1);
    assert!(limiter.allow(&1));
    assert_eq!(limiter.check(&2).unwrap_err().reason(), Reason::Full);
    assert!(limiter.allow(&1), "the key that is there is served");
}

/// Class: a full table turns away the keys that it holds, or keeps turning newcomers away when all is idle.
#[test]
fn a_full_table_opens_again_when_its_keys_are_idle() {
    for limit in limits_of_ten() {
        let (limiter, clock) = bounded(limit, 3);
        for round in 0..100_u64 {
            let keys = 3 * round..3 * round + 3;
            for key in keys.clone() {
                assert!(limiter.allow(&key), "{limit:?}, round {round}");
            }
            let denied = limiter.check(&u64::MAX).unwrap_err();
            assert_eq!(denied.reason(), Reason::Full, "{limit:?}, round {round}");
            keys.for_each(|key| assert!(limiter.allow(&key), "{limit:?}, {key}"));
            clock.advance(secs(200));
        }
    }
}

/// Class: one idle key among many that are live is never found, so that a table is full for good.
#[test]
fn one_idle_key_among_many_makes_room_in_the_end() {
    let (limiter, clock) = bounded(Limit::bucket(Rate::per_second(1), 1_000), 1_000);
    for key in 0..999 {
        assert!(limiter.check_n(&key, 1_000).is_ok());
    }
    assert!(limiter.allow(&999));
    clock.advance(secs(10));
    let turned_away = (0..1_000).take_while(|_| !limiter.allow(&1_000)).count();
    assert!(turned_away < 100, "{turned_away} refusals before the idle key was found");
    assert!((0..999).all(|key| limiter.check_n(&key, 11).is_err()), "the live keys are as they were");
}
