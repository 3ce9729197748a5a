//! The refused who are told to come back one after the other: `stagger`.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::{SEED, at_once, secs};
use proptest::prelude::*;
use tidegate::{
    Alignment, Denied, ExactLimiter, Limit, Limiter, Manual, Rate, Reason, SingleLimiter, Window,
};

const MS: Duration = Duration::from_millis(1);
const NS: Duration = Duration::from_nanos(1);
const HOUR: Duration = Duration::from_secs(3_600);

fn staggering(limit: Limit) -> (Limiter<Manual>, Manual) {
    staggering_up_to(limit, HOUR)
}

fn staggering_up_to(limit: Limit, wait_max: Duration) -> (Limiter<Manual>, Manual) {
    let clock = Manual::new();
    let builder = Limiter::builder(limit).seed(SEED).stagger(true).stagger_wait_max(wait_max);
    (builder.clock(clock.clone()).build().unwrap(), clock)
}

/// A key with nothing left.
fn drain(limiter: &Limiter<Manual>, key: &str, tokens: u64) {
    assert!(limiter.check_n(key, tokens).is_ok());
}

fn staggered(denied: &Denied) -> Duration {
    denied.retry_after_staggered().unwrap()
}

/// The waits that so many refusals are told.
fn waits(limiter: &Limiter<Manual>, key: &str, refusals: usize) -> Vec<Duration> {
    (0..refusals).map(|_| staggered(&limiter.check(key).unwrap_err())).collect()
}

#[test]
fn each_refused_comes_back_an_emission_interval_after_the_one_before() {
    let (limiter, _clock) = staggering(Limit::bucket(Rate::per_second(100), 5));
    drain(&limiter, "title", 5);
    assert_eq!(waits(&limiter, "title", 4), [10, 20, 30, 40].map(Duration::from_millis));
    // One that costs 3 waits until three tokens have come back after those before it have taken theirs.
    let dear = limiter.check_n("title", 3).unwrap_err();
    assert_eq!((dear.retry_after(), staggered(&dear)), (Some(30 * MS), 70 * MS));
    assert_eq!(waits(&limiter, "title", 1), [80 * MS]);
}

#[test]
fn of_a_window_they_come_back_a_share_of_its_period_apart() {
    let window = Limit::window(Window::new(100, secs(60))).align(Alignment::Clock);
    let (limiter, clock) = staggering(window);
    drain(&limiter, "title", 100);
    clock.advance(secs(10));
    // Each rounded up to a nanosecond.
    let expected = [secs(50), 50_600 * MS + NS, 51_200 * MS + 2 * NS];
    assert_eq!(waits(&limiter, "title", 3), expected);

    let both = Limit::burst_sustain(Window::new(30, secs(15)), Window::new(40, secs(300)));
    let (limiter, _clock) = staggering(both.align(Alignment::Clock));
    drain(&limiter, "title", 30);
    assert_eq!(waits(&limiter, "title", 2), [secs(15), secs(15) + 500 * MS + NS]);
    // It does not fit the sustain window, of which 32 are used, and waits for that: 7.5 s for each unit of it.
    let dear = limiter.check_n("title", 10).unwrap_err();
    assert_eq!(staggered(&dear), secs(300));
    assert_eq!(waits(&limiter, "title", 1), [secs(300) + 7_500 * MS]);
}

#[test]
fn of_a_sliding_window_too() {
    let limit = Limit::sliding_window(Window::new(10, secs(60))).align(Alignment::Clock);
    let (limiter, _clock) = staggering(limit);
    drain(&limiter, "title", 10);
    let first = limiter.check("title").unwrap_err();
    assert_eq!(first.retry_after_staggered(), first.retry_after());
    assert_eq!(waits(&limiter, "title", 1), [staggered(&first) + secs(6)]);
}

#[test]
fn nobody_is_staggered_unless_told() {
    let limiter =
        Limiter::builder(Limit::bucket(Rate::per_second(100), 5)).clock(Manual::new()).build().unwrap();
    drain(&limiter, "title", 5);
    assert_eq!(waits(&limiter, "title", 3), [10 * MS; 3]);
}

#[test]
fn every_limiter_can() {
    let limit = Limit::bucket(Rate::per_second(100), 5);
    let exact = ExactLimiter::<String>::builder(limit).stagger(true).clock(Manual::new()).build().unwrap();
    assert!(exact.check_n("title", 5).is_ok());
    let single = SingleLimiter::builder(limit).stagger(true).clock(Manual::new()).build().unwrap();
    assert!(single.check_n(5).is_ok());
    for wait in [10, 20, 30].map(Duration::from_millis) {
        assert_eq!(staggered(&exact.check("title").unwrap_err()), wait);
        assert_eq!(staggered(&single.check().unwrap_err()), wait);
    }
    let exact = ExactLimiter::<String>::builder(limit).stagger(true).stagger_wait_max(15 * MS);
    let exact = exact.clock(Manual::new()).build().unwrap();
    let single = SingleLimiter::builder(limit).stagger(true).stagger_wait_max(15 * MS);
    let single = single.clock(Manual::new()).build().unwrap();
    assert!(exact.check_n("title", 5).is_ok() && single.check_n(5).is_ok());
    for wait in [10, 15, 15].map(Duration::from_millis) {
        assert_eq!(staggered(&exact.check("title").unwrap_err()), wait);
        assert_eq!(staggered(&single.check().unwrap_err()), wait);
    }
}

#[test]
fn no_place_is_further_away_than_the_longest_wait() {
    let (limiter, clock) = staggering_up_to(Limit::bucket(Rate::per_second(100), 5), 25 * MS);
    drain(&limiter, "title", 5);
    assert_eq!(waits(&limiter, "title", 4), [10, 20, 25, 25].map(Duration::from_millis));
    // The row is no longer for having been at its end.
    clock.advance(5 * MS);
    assert_eq!(waits(&limiter, "title", 2), [25 * MS; 2]);

    // What is never enough is never told: not even where the longest wait is shorter.
    let (limiter, _clock) = staggering_up_to(Limit::bucket(Rate::per_minute(1), 1), Duration::ZERO);
    drain(&limiter, "title", 1);
    assert_eq!(waits(&limiter, "title", 2), [secs(60); 2]);
}

#[test]
fn places_come_up_as_time_passes() {
    let (limiter, clock) = staggering(Limit::bucket(Rate::per_second(100), 5));
    drain(&limiter, "title", 5);
    assert_eq!(waits(&limiter, "title", 10).last(), Some(&(100 * MS)));
    // Nobody has come: the places that are past are gone, and so are their tokens' takers.
    clock.advance(35 * MS);
    drain(&limiter, "title", 3);
    assert_eq!(waits(&limiter, "title", 2), [75 * MS, 85 * MS]);
    // The row is empty again.
    clock.advance(secs(1));
    drain(&limiter, "title", 5);
    assert_eq!(waits(&limiter, "title", 1), [10 * MS]);
}

#[test]
fn who_is_not_told_takes_no_place() {
    let (limiter, _clock) = staggering(Limit::bucket(Rate::per_second(100), 5));
    drain(&limiter, "title", 5);
    assert!(!limiter.allow("title"));
    assert_eq!(limiter.peek("title").retry_after(1), Some(10 * MS));
    let too_large = limiter.check_n("title", 6).unwrap_err();
    assert_eq!((too_large.reason(), too_large.retry_after_staggered()), (Reason::TooLarge, None));
    let first = limiter.check("title").unwrap_err();
    assert_eq!((too_large.retry_after_staggered_secs(), first.retry_after_staggered_secs()), (u64::MAX, 1));
    assert!(limiter.reserve("title", 1, Duration::ZERO).is_err());
    // To read it twice is to be told the same twice.
    assert_eq!([staggered(&first), staggered(&first)], [10 * MS; 2]);
    assert_eq!(waits(&limiter, "title", 1), [20 * MS]);
}

#[test]
fn a_key_stands_in_a_row_of_its_own_as_far_as_there_are_rows() {
    let (limiter, _clock) = staggering(Limit::bucket(Rate::per_second(100), 5));
    let keys: Vec<String> = (0..2_000).map(|key| key.to_string()).collect();
    let firsts = keys.iter().map(|key| {
        drain(&limiter, key, 5);
        waits(&limiter, key, 1)[0]
    });
    // 2 000 keys in 256 rows: about 8 stand in each, and nobody in more than 30 or so.
    let longest = firsts.max().unwrap();
    assert!((60 * MS..300 * MS).contains(&longest), "{longest:?}");
}

#[test]
fn a_clock_that_steps_back_leaves_no_wait_above_the_longest() {
    let clock = Manual::at_unix(secs(100_000));
    let builder = Limiter::builder(Limit::bucket(Rate::per_second(1), 5)).seed(SEED).stagger(true);
    let limiter = builder.stagger_wait_max(secs(60)).clock(clock.clone()).build().unwrap();
    clock.advance(secs(1_000));
    drain(&limiter, "title", 5);
    assert_eq!(waits(&limiter, "title", 3).last(), Some(&secs(3)));
    clock.set(secs(500));
    for wait in waits(&limiter, "title", 3) {
        assert!(wait <= secs(500 + 60), "{wait:?}");
    }
}

#[test]
fn under_another_limit_the_next_places_are_as_far_apart_as_that_one_says() {
    let (limiter, _clock) = staggering(Limit::bucket(Rate::per_second(100), 5));
    drain(&limiter, "title", 5);
    assert_eq!(waits(&limiter, "title", 2), [10 * MS, 20 * MS]);
    limiter.set_limit(Limit::bucket(Rate::per_second(10), 5), tidegate::CarryOver::KeepUsed).unwrap();
    assert_eq!(waits(&limiter, "title", 2), [100 * MS, 200 * MS]);
    // A long row of a slow limit is none of a fast one's.
    assert_eq!(waits(&limiter, "title", 1_000).last(), Some(&(100_200 * MS)));
    limiter.set_limit(Limit::bucket(Rate::per_second(100), 5), tidegate::CarryOver::KeepUsed).unwrap();
    assert_eq!(waits(&limiter, "title", 2), [10 * MS, 20 * MS]);

    let builder = Limiter::builder(Limit::bucket(Rate::per_second(1), 1)).max_tiers(1).stagger(true);
    let limiter = builder.clock(Manual::new()).build().unwrap();
    let paid = limiter.tier(Limit::bucket(Rate::per_second(100), 1)).unwrap();
    assert!(limiter.check_in(paid, "title", 1).is_ok());
    let wait = || staggered(&limiter.check_in(paid, "title", 1).unwrap_err());
    assert_eq!([wait(), wait()], [10 * MS, 20 * MS]);
}

#[test]
fn who_is_forgotten_is_so_in_the_row_too() {
    let limit = Limit::bucket(Rate::per_second(100), 5);
    let (limiter, _clock) = staggering(limit);
    let exact = ExactLimiter::<String>::builder(limit).stagger(true).clock(Manual::new()).build().unwrap();
    for _ in 0..2 {
        assert!(limiter.check_n("title", 5).is_ok() && exact.check_n("title", 5).is_ok());
        assert_eq!(waits(&limiter, "title", 3).last(), Some(&(30 * MS)));
        let told = || staggered(&exact.check("title").unwrap_err());
        assert_eq!([told(), told(), told()].last(), Some(&(30 * MS)));
        assert!(limiter.reset("title") && exact.remove("title").is_some());
    }
}

/// Threads that are refused at once each get a place of their own.
#[test]
fn threads_take_different_places() {
    const THREADS: usize = 4;
    const EACH: usize = 2_000;
    let (limiter, _clock) = staggering(Limit::bucket(Rate::per_second(1_000), 5));
    drain(&limiter, "title", 5);
    let told = at_once(THREADS, |_| waits(&limiter, "title", EACH));
    for own in &told {
        assert!(own.is_sorted(), "a thread's places follow each other");
    }
    let places: BTreeSet<Duration> = told.into_iter().flatten().collect();
    let expected: BTreeSet<Duration> = (1..=8_000).map(|place| place * MS).collect();
    assert_eq!(places, expected);
}

/// The same on the real clock: nobody's place is another's, so the last of so many is as far away as there are.
#[test]
fn threads_take_different_places_on_the_real_clock() {
    let limit = Limit::bucket(Rate::per_second(10), 5);
    let limiter = Limiter::builder(limit).stagger(true).build().unwrap();
    assert!(limiter.check_n("title", 5).is_ok());
    let told = at_once(4, |_| {
        let take = |_| limiter.check("title").err()?.retry_after_staggered();
        (0..100).filter_map(take).collect::<Vec<_>>()
    });
    let mut waits: Vec<Duration> = told.into_iter().flatten().collect();
    waits.sort();
    // 100 ms for each, less what passed meanwhile: that, and what came back, is seconds at most.
    let all = 100 * MS * u32::try_from(waits.len()).unwrap();
    assert!(
        waits.len() > 300 && *waits.last().unwrap() > all - secs(8),
        "{:?} of {}",
        waits.last(),
        waits.len()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Never shorter than the shortest wait, always enough, an emission interval from one to the next; and a herd that
    /// obeys is let through, each at its first return.
    #[test]
    fn a_herd_that_obeys_is_let_through(
        tokens in 1_u64..5_000,
        period_ms in 1_u64..100_000,
        burst in 1_u64..50,
        herd in 1_usize..200,
        early_ns in 0_u64..2_000_000_000,
    ) {
        let limit = Limit::bucket(Rate::new(tokens, Duration::from_millis(period_ms)), burst);
        let (limiter, clock) = staggering_up_to(limit, 100_000 * HOUR);
        clock.advance(Duration::from_nanos(early_ns));
        drain(&limiter, "title", burst);
        let refused: Vec<Denied> = (0..herd).map(|_| limiter.check("title").unwrap_err()).collect();
        let waits: Vec<Duration> = refused.iter().map(staggered).collect();
        let interval_ns = (period_ms * 1_000_000) as f64 / tokens as f64;
        for (denied, wait) in refused.iter().zip(&waits) {
            prop_assert!(*wait >= denied.retry_after().unwrap());
        }
        for pair in waits.windows(2) {
            let apart_ns = (pair[1] - pair[0]).as_nanos() as f64;
            prop_assert!((apart_ns - interval_ns).abs() <= 0.1 * interval_ns, "{apart_ns} {interval_ns}");
        }
        let mut passed = Duration::ZERO;
        for wait in waits {
            clock.advance(wait.saturating_sub(passed));
            passed = wait;
            prop_assert!(limiter.allow("title"), "{wait:?}");
        }
    }

    /// Whatever each costs.
    #[test]
    fn a_herd_of_different_costs_is_let_through(
        rate in 1_u64..1_000,
        burst in 1_u64..20,
        costs in prop::collection::vec(1_u64..20, 1..60),
    ) {
        let (limiter, clock) = staggering_up_to(Limit::bucket(Rate::per_second(rate), burst), 100_000 * HOUR);
        drain(&limiter, "title", burst);
        let costs: Vec<u64> = costs.into_iter().map(|cost| cost.min(burst)).collect();
        let told: Vec<Duration> =
            costs.iter().map(|&cost| staggered(&limiter.check_n("title", cost).unwrap_err())).collect();
        let mut passed = Duration::ZERO;
        for (cost, wait) in costs.into_iter().zip(told) {
            clock.advance(wait.checked_sub(passed).unwrap());
            passed = wait;
            prop_assert!(limiter.check_n("title", cost).is_ok(), "{cost} after {wait:?}");
        }
    }

    /// The same of windows: so many a period come back, and each passes.
    #[test]
    fn a_herd_that_waits_for_windows_is_let_through(
        limit in 1_u64..100,
        period_s in 1_u64..1_000,
        herd in 1_usize..300,
        late_ms in 0_u64..1_000,
    ) {
        let window = Limit::window(Window::new(limit, secs(period_s))).align(Alignment::Clock);
        let (limiter, clock) = staggering_up_to(window.count_refused(false), 100_000 * HOUR);
        clock.advance(Duration::from_millis(late_ms));
        drain(&limiter, "title", limit);
        let waits = waits(&limiter, "title", herd);
        let interval_ns = (period_s * 1_000_000_000) as f64 / limit as f64;
        for pair in waits.windows(2) {
            let apart_ns = (pair[1] - pair[0]).as_nanos() as f64;
            prop_assert!((apart_ns - interval_ns).abs() <= 0.1 * interval_ns, "{apart_ns} {interval_ns}");
        }
        let mut passed = Duration::ZERO;
        for wait in waits {
            clock.advance(wait.saturating_sub(passed));
            passed = passed.max(wait);
            prop_assert!(limiter.allow("title"), "{wait:?}");
        }
    }

    /// Whatever the limit and the cost: no panic, no wait that is too short, none that is longer than it may be.
    #[test]
    fn extremes_are_told_something_true(
        tokens in prop_oneof![1_u64..10, Just(10_000_000_000)],
        period in prop_oneof![Just(secs(1)), Just(secs(86_400 * 365))],
        burst in prop_oneof![1_u64..10, Just(1_000_000)],
        costs in prop::collection::vec(prop_oneof![1_u64..10, any::<u64>()], 1..20),
        wait_max in prop_oneof![Just(Duration::ZERO), Just(Duration::MAX), Just(HOUR)],
    ) {
        let tokens = if period == secs(1) { tokens } else { tokens.min(10) };
        let (limiter, _clock) = staggering_up_to(Limit::bucket(Rate::new(tokens, period), burst), wait_max);
        for cost in costs {
            let Err(denied) = limiter.check_n("title", cost) else { continue };
            let (exact, staggered) = (denied.retry_after(), denied.retry_after_staggered());
            prop_assert_eq!(exact.is_some(), staggered.is_some());
            if let (Some(exact), Some(staggered)) = (exact, staggered) {
                prop_assert!(exact <= staggered && staggered <= exact.max(wait_max), "{exact:?} {staggered:?}");
            }
        }
    }
}
