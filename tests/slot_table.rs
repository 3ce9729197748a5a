//! The slot table where room is short: who goes, who stays, and what is counted.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test fails by panicking")]

use std::time::Duration;

use tidegate::{ConfigError, Limit, Limiter, Manual, OnFull, Rate, Reason, Window};

fn bucket() -> Limit {
    Limit::bucket(Rate::per_second(1), 100)
}

/// A limiter whose one window is the whole table, so that it is easily full.
fn tiny(on_full: OnFull) -> (Limiter<Manual>, Manual) {
    let clock = Manual::new();
    let limiter = Limiter::builder(bucket()).max_keys(1).on_full(on_full).clock(clock.clone()).seed(3);
    (limiter.build().unwrap(), clock)
}

/// Fills every slot with keys that have used `cost` of 100; how many there were.
fn fill(limiter: &Limiter<Manual>, cost: u64) -> u64 {
    (0..)
        .take_while(|key| limiter.stats().forced_evictions == 0 && limiter.check_n(key, cost).is_ok())
        .count() as u64
}

#[test]
fn a_drained_key_is_never_evicted_and_a_newcomer_is_refused() {
    let (limiter, clock) = tiny(OnFull::EvictLeast);
    let keys = fill(&limiter, 100);
    assert_eq!(keys, 32);
    let denied = limiter.check(&9_999).unwrap_err();
    assert_eq!((denied.reason(), denied.remaining()), (Reason::Full, 0));
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(100) + Duration::from_nanos(1)));
    assert!((0..keys).all(|key| !limiter.allow(&key)));
    assert_eq!(limiter.stats().forced_evictions, 0);
    assert!(limiter.stats().full >= 1);
    clock.advance(Duration::from_secs(49));
    assert_eq!(limiter.check(&9_999).unwrap_err().reason(), Reason::Full, "51 owed is more than half");
    clock.advance(Duration::from_secs(1));
    assert!(limiter.allow(&9_999), "50 owed is half");
    let stats = limiter.stats();
    assert_eq!((stats.forced_evictions, stats.forgiven_limits), (1, 0.5));
}

#[test]
fn the_key_that_owes_least_makes_room() {
    let (limiter, _clock) = tiny(OnFull::EvictLeast);
    for key in 0..32_u64 {
        assert!(limiter.check_n(&key, if key == 17 { 10 } else { 40 }).is_ok());
    }
    assert!(limiter.allow(&100));
    assert_eq!(limiter.stats().forgiven_limits, f64::from(6_554) / f64::from(1 << 16), "a tenth, rounded up");
    for key in (0..32_u64).filter(|key| *key != 17) {
        assert_eq!(limiter.check_n(&key, 0).unwrap().remaining(), 60, "{key} kept its debt");
    }
}

#[test]
fn refuse_forgives_nobody() {
    let (limiter, _clock) = tiny(OnFull::Refuse);
    assert_eq!(fill(&limiter, 1), 32);
    assert_eq!(limiter.check(&9_999).unwrap_err().reason(), Reason::Full);
    assert_eq!((limiter.stats().forced_evictions, limiter.stats().forgiven_limits), (0, 0.0));
}

#[test]
fn inherit_hands_the_debt_on() {
    let (limiter, _clock) = tiny(OnFull::Inherit);
    for key in 0..32_u64 {
        assert!(limiter.check_n(&key, 50).is_ok());
    }
    assert_eq!(limiter.check(&9_999).unwrap().remaining(), 49, "it began with half used");
    assert_eq!((limiter.stats().forced_evictions, limiter.stats().forgiven_limits), (1, 0.0));
}

/// The newcomer pays for its victim, which is unknown from then on.
#[test]
fn a_victim_starts_anew_where_a_newcomer_inherits() {
    let (limiter, _clock) = tiny(OnFull::Inherit);
    for key in 0..32_u64 {
        assert!(limiter.check_n(&key, if key == 17 { 25 } else { 50 }).is_ok());
    }
    assert_eq!(limiter.check(&9_999).unwrap().remaining(), 74);
    let left = |key: u64| limiter.check_n(&key, 0).unwrap().remaining();
    assert!((0..32).all(|key| left(key) == if key == 17 { 100 } else { 50 }));
}

#[test]
fn inherit_hands_on_both_windows() {
    let (short, long) = (Duration::from_secs(15), Duration::from_secs(300));
    let limit = Limit::burst_sustain(Window::new(10, short), Window::new(40, long));
    let limiter =
        Limiter::builder(limit).max_keys(1).on_full(OnFull::Inherit).clock(Manual::new()).build().unwrap();
    for key in 0..32_u64 {
        assert!(limiter.check_n(&key, 5).is_ok());
    }
    let pass = limiter.check(&9_999).unwrap();
    assert_eq!(pass.windows().iter().map(|window| window.remaining).collect::<Vec<_>>(), [4, 19]);
}

#[test]
fn admit_lets_the_newcomer_pass_uncounted() {
    let (limiter, _clock) = tiny(OnFull::Admit);
    for key in 0..32_u64 {
        assert!(limiter.check_n(&key, 100).is_ok());
    }
    assert!((0..200).all(|_| limiter.allow(&9_999)));
    assert_eq!(limiter.stats().untracked, 200);
    assert!((0..32_u64).all(|key| !limiter.allow(&key)), "the others keep their limit");
}

/// Of idle keys the one that has been idle longest makes room, without being forgiven anything.
#[test]
fn an_idle_key_makes_room_for_nothing() {
    let (limiter, clock) = tiny(OnFull::EvictLeast);
    for key in 0..32_u64 {
        assert!(limiter.allow(&key));
        clock.advance(Duration::from_millis(10));
    }
    clock.advance(Duration::from_secs(2));
    assert!(limiter.allow(&9_999));
    let stats = limiter.stats();
    assert_eq!((stats.forced_evictions, stats.full, stats.claims), (0, 0, 33));
}

/// Class: evicting a key resets its limit, by way of a clock that steps back.
#[test]
fn takeover_and_a_step_back_mint_nothing() {
    let (limiter, clock) = tiny(OnFull::EvictLeast);
    let mut admitted = 0;
    for turn in 0..50_u64 {
        clock.set(Duration::from_secs(1_000));
        admitted += (0..200).filter(|_| limiter.allow(&7)).count();
        assert!(admitted <= 200, "{admitted} in two moments");
        clock.set(Duration::from_secs(5_000));
        for newcomer in 0..40_u64 {
            let _ = limiter.allow(&(1_000 * (turn + 1) + newcomer));
        }
    }
}

#[test]
fn the_estimate_of_live_keys_is_exact_in_a_small_table_and_near_in_a_large_one() {
    let clock = Manual::new();
    let limiter = Limiter::builder(bucket()).max_keys(1_000).clock(clock.clone()).build().unwrap();
    (0..500_u64).for_each(|key| assert!(limiter.allow(&key)));
    assert_eq!(limiter.stats().live_estimate, 500);
    clock.advance(Duration::from_secs(10));
    assert_eq!(limiter.stats().live_estimate, 0);

    let limiter = Limiter::builder(bucket()).max_keys(200_000).clock(clock).build().unwrap();
    (0..100_000_u64).for_each(|key| assert!(limiter.allow(&key)));
    let live = limiter.stats().live_estimate;
    assert!((90_000..110_000).contains(&live), "{live}");
}

/// With exactly `max_keys` keys that all owe, at most 0.1 % find no room.
#[test]
fn a_table_at_its_capacity_turns_away_a_thousandth_at_most() {
    const KEYS: u64 = 200_000;
    let limiter =
        Limiter::builder(bucket()).max_keys(KEYS as usize).on_full(OnFull::Refuse).clock(Manual::new());
    let limiter = limiter.seed(1).build().unwrap();
    let turned_away = (0..KEYS).filter(|key| limiter.check_n(key, 100).is_err()).count() as u64;
    assert!(turned_away * 1_000 <= KEYS, "{turned_away} of {KEYS}");
    assert_eq!(limiter.stats().full, turned_away);
}

#[test]
fn a_table_takes_24_bytes_a_key() {
    let limiter =
        Limiter::builder(bucket()).max_keys(1_000_000).prefault(true).clock(Manual::new()).build().unwrap();
    assert!(limiter.bytes() < 24_001_000, "{}", limiter.bytes());
}

#[test]
fn more_memory_than_there_is_is_an_error_and_so_is_none() {
    for (keys, expected) in [(0, "0"), (1 << 47, "140737488355328"), (usize::MAX, "18446744073709551615")] {
        let error = Limiter::builder(bucket()).max_keys(keys).clock(Manual::new()).build().unwrap_err();
        let text = error.to_string();
        assert!(text.contains("max_keys") && text.contains(expected), "{text}");
        assert!(!matches!(error, ConfigError::TooManyKeys { keys_max: 0, .. }));
    }
}
