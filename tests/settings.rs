//! Settings and ends of a limiter: seeds, memory at once, how keys are told apart, horizon and resolution.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::hash::{Hash, Hasher};
use std::time::Duration;

use tidegate::internals::{Answer, Engine, Hot, Origin, Outcome, Rule, SlotTable};
use tidegate::{Alignment, ExactLimiter, Limit, Limiter, Manual, OnFull, Rate, Window};

const YEAR: Duration = Duration::from_secs(366 * 24 * 60 * 60);

fn hour() -> Window {
    Window::new(5, Duration::from_secs(3_600))
}

#[test]
fn a_seed_fixes_the_phases() {
    let resets = |seed: Option<u64>| -> Vec<Duration> {
        let builder = Limiter::builder(Limit::window(hour())).clock(Manual::new());
        let builder = if let Some(seed) = seed { builder.seed(seed) } else { builder };
        let limiter = builder.build().unwrap();
        (0..20).map(|key| limiter.check(&key).unwrap().reset_after()).collect()
    };
    assert_eq!(resets(Some(7)), resets(Some(7)));
    assert_ne!(resets(Some(7)), resets(Some(8)));
    assert_ne!(resets(None), resets(None));
}

#[test]
#[cfg(target_os = "linux")]
fn prefault_has_the_memory_at_once() {
    let resident_kib = || -> u64 {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let limit = Limit::bucket(Rate::per_second(1), 1);
    let grown_by = |prefault: bool| {
        let before = resident_kib();
        let builder = Limiter::builder(limit).max_keys(4_000_000).prefault(prefault);
        let limiter = builder.clock(Manual::new()).build().unwrap();
        let grown = resident_kib().saturating_sub(before);
        assert!(limiter.bytes() > 90 << 20);
        grown >> 10
    };
    let (lazy, at_once) = (grown_by(false), grown_by(true));
    assert!(lazy < 40 && at_once > 80, "{lazy} MiB without, {at_once} MiB with");
}

/// A key whose hash says nothing of it.
#[derive(Clone, PartialEq, Eq)]
struct Alike(u32);

impl Hash for Alike {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[test]
fn keys_of_equal_hash_count_apart() {
    let limit = Limit::bucket(Rate::per_hour(1), 2);
    let limiter = ExactLimiter::<Alike>::builder(limit).max_keys(50).clock(Manual::new()).build().unwrap();
    for key in 0..50 {
        assert_eq!((0..10).filter(|_| limiter.allow(&Alike(key))).count(), 2, "key {key}");
    }
}

#[test]
fn a_slot_knows_a_key_by_48_bits_of_its_hash() {
    let limit = Limit::bucket(Rate::per_hour(1), 1);
    let clock = Manual::new();
    let origin = Origin::fixed(Rule::longest_period_ns(&limit), &clock);
    let engine = Engine::new(Rule::new(&limit).unwrap(), clock, origin);
    let hash = 0x1234_5678_9abc_def1_u64;
    for bit in 0..64 {
        // One window is the whole table.
        let table = SlotTable::new(1, OnFull::Refuse, Hot::new(1)).unwrap();
        let passes = |hash| matches!(table.check(&engine, hash, 1), Answer::Decided(it) if it.decided.outcome == Outcome::Pass);
        assert!(passes(hash));
        assert_eq!(passes(hash ^ (1 << bit)), bit < 48, "bit {bit}");
    }
}

#[test]
fn the_horizon_is_36_years_or_seven_at_least() {
    let horizon = |limit| Limiter::builder(limit).clock(Manual::new()).build().unwrap().horizon();
    let sustain = Window::new(50, Duration::from_secs(36_000));
    for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        assert!(horizon(Limit::window(hour()).align(alignment)) >= 36 * YEAR);
        assert!(horizon(Limit::burst_sustain(hour(), sustain).align(alignment)) >= 36 * YEAR);
    }
    assert!(horizon(Limit::bucket(Rate::per_second(100), 200)) >= 36 * YEAR);
    assert!(horizon(Limit::bucket(Rate::per_second(10_000_000_000), 1_000)) >= 7 * YEAR);
    assert!(horizon(Limit::bucket(Rate::new(1, 30 * YEAR), 1)) >= 7 * YEAR);
    assert!(horizon(Limit::window(Window::new(1, 7 * YEAR))) >= 7 * YEAR);
}

/// At the horizon a limit is whole once more; a hundred years later what was used then is used still.
#[test]
fn after_the_horizon_nothing_comes_back() {
    let bucket = Limit::bucket(Rate::per_second(1), 5);
    let windows = [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest]
        .map(|alignment| Limit::window(hour()).align(alignment));
    for limit in windows.into_iter().chain([bucket]) {
        let clock = Manual::new();
        let limiter = Limiter::builder(limit).clock(clock.clone()).build().unwrap();
        let passed = || (0..20).filter(|_| limiter.allow("key")).count();
        assert_eq!(passed(), 5);
        clock.set(limiter.horizon());
        assert_eq!(passed(), 5, "{limit:?} at the horizon");
        clock.set(limiter.horizon() + 100 * YEAR);
        let _ = passed(); // time may last a little longer than promised
        for years in 1..50 {
            clock.set(limiter.horizon() + (100 + years) * YEAR);
            assert_eq!(passed(), 0, "{limit:?} {years} years later");
        }
    }
}

#[test]
fn a_token_comes_back_a_step_early_at_most() {
    let day = Duration::from_secs(86_400);
    let mut is_coarse = false;
    for bits in [1, 10, 20, 40, 50, 58, 60] {
        let clock = Manual::new();
        let builder = Limiter::builder(Limit::bucket(Rate::per_day(1), 1 << bits)).clock(clock.clone());
        let limiter = builder.build().unwrap();
        assert!(limiter.check_n("key", 1 << bits).is_ok());
        let step = limiter.resolution();
        is_coarse |= step > Duration::from_secs(1);
        assert!(bits > 10 || step == Duration::from_nanos(1), "{step:?}");
        if step < day {
            clock.set(day - step - Duration::from_nanos(1));
            assert!(!limiter.allow("key"), "2^{bits}: earlier than a step of {step:?}");
        }
        clock.set(day);
        assert!(limiter.allow("key"), "2^{bits}: late, with a step of {step:?}");
    }
    assert!(is_coarse, "a huge burst at a tiny rate has coarse steps");
}
