//! Limits that some keys have beside the limiter's own: `tier`, `set_override`.
#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "small numbers of a test, which fails by panicking"
)]

mod common;

use std::collections::HashMap;
use std::time::Duration;

use common::{SEED, at_once, secs};
use proptest::prelude::*;
use tidegate::{
    Alignment, CarryOver, ConfigError, ExactLimiter, Limit, Limiter, Manual, OnFull, Rate, Reason, Tier,
    Window,
};

fn per_second(rate: u64, burst: u64) -> Limit {
    Limit::bucket(Rate::per_second(rate), burst)
}

fn window(limit: u64) -> Limit {
    Limit::window(Window::new(limit, secs(60))).align(Alignment::Clock)
}

fn limiter(limit: Limit, max_tiers: u8) -> (Limiter<Manual>, Manual) {
    let clock = Manual::new();
    let builder = Limiter::builder(limit).max_keys(1_000).max_tiers(max_tiers).seed(SEED);
    (builder.clock(clock.clone()).build().unwrap(), clock)
}

#[test]
fn a_key_has_one_count_whichever_tier_it_is_asked_by() {
    let (limiter, clock) = limiter(per_second(1, 10), 2);
    let paid = limiter.tier(per_second(10, 100)).unwrap();
    assert!(limiter.check_n("ada", 10).is_ok());
    assert_eq!(limiter.check("ada").unwrap_err().retry_after(), Some(secs(1)));
    // Of the 100 ten are used.
    assert_eq!(limiter.check_in(paid, "ada", 90).unwrap().remaining(), 0);
    assert_eq!(limiter.check_in(paid, "ada", 1).unwrap_err().retry_after(), Some(Duration::from_millis(100)));
    // Back in the lower tier she owes 90 more than the whole of it, at one a second.
    assert_eq!((limiter.peek("ada").debt(), limiter.peek_in(paid, "ada").debt()), (90, 0));
    assert_eq!(limiter.check("ada").unwrap_err().retry_after(), Some(secs(91)));
    // The free tier was asked last, so one comes back a second.
    clock.advance(secs(5));
    assert_eq!(limiter.peek_in(paid, "ada").remaining(), 5);
    assert_eq!(limiter.check_in(paid, "ada", 6).unwrap_err().retry_after(), Some(Duration::from_millis(100)));
    // And now ten.
    clock.advance(secs(5));
    assert_eq!(limiter.peek_in(paid, "ada").remaining(), 55);
    assert_eq!(limiter.check("ada").unwrap_err().retry_after(), Some(secs(36)));
}

#[test]
fn tiers_whose_rates_do_not_divide_each_other_lose_and_mint_nothing() {
    let (limiter, clock) = limiter(Limit::bucket(Rate::new(7, Duration::from_millis(13)), 1_000), 3);
    let tiers = [(11, 17), (999_983, 104_729), (1, 1)].map(|(tokens, millis)| {
        limiter.tier(Limit::bucket(Rate::new(tokens, Duration::from_millis(millis)), 1_000)).unwrap()
    });
    // No time passes: by whatever tier, 1 000 pass in all.
    let passed: u64 = (0..400_u64)
        .map(|number| {
            let cost = 1 + number % 7;
            let passes = match number % 4 {
                0 => limiter.check_n("ada", cost).is_ok(),
                tier => limiter.check_in(tiers[tier as usize - 1], "ada", cost).is_ok(),
            };
            u64::from(passes) * cost
        })
        .sum();
    // Each adoption rounds up to a unit of time, far less than a token.
    assert!((998..=1_000).contains(&passed), "{passed}");
    clock.advance(secs(10_000));
    assert_eq!(limiter.peek("ada").remaining(), 1_000);
}

#[test]
fn windows_count_on_over_tiers() {
    for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        let limit = |limit| {
            Limit::burst_sustain(Window::new(limit, secs(15)), Window::new(3 * limit, secs(300)))
                .align(alignment)
        };
        let (limiter, clock) = limiter(limit(10), 1);
        let paid = limiter.tier(limit(30)).unwrap();
        assert_eq!((0..12).filter(|_| limiter.allow("ada")).count(), 10);
        // Refused requests count: twelve did.
        assert_eq!(limiter.peek_in(paid, "ada").remaining(), 18, "{alignment:?}");
        assert_eq!((0..20).filter(|_| limiter.check_in(paid, "ada", 1).is_ok()).count(), 18);
        assert!(!limiter.allow("ada"));
        clock.advance(secs(301));
        assert_eq!(limiter.peek("ada").remaining(), 10);
    }
}

#[test]
fn an_override_goes_before_every_tier_and_leaves_what_was_used() {
    let (limiter, _) = limiter(per_second(1, 10), 2);
    let paid = limiter.tier(per_second(10, 100)).unwrap();
    assert!(limiter.check_n("ada", 4).is_ok());
    limiter.set_override("ada", per_second(2, 20)).unwrap();
    assert_eq!(limiter.override_of("ada"), Some(per_second(2, 20)));
    assert_eq!(limiter.override_of("bob"), None);
    assert_eq!(limiter.check_n("ada", 6).unwrap().remaining(), 10);
    assert_eq!(limiter.check_in(paid, "ada", 1).unwrap().remaining(), 9, "by the override");
    assert_eq!(limiter.peek_in(paid, "bob").remaining(), 100);
    let mut seen = Vec::new();
    limiter.check_many(&["ada", "bob"], |answer| seen.push(answer.unwrap().remaining()));
    assert_eq!(seen, [8, 9]);
    assert!(limiter.allow("ada"));
    assert_eq!(limiter.clear_override("ada"), Some(per_second(2, 20)));
    assert_eq!(limiter.clear_override("ada"), None);
    assert_eq!((limiter.peek("ada").remaining(), limiter.peek("ada").debt()), (0, 3), "13 of 10 are used");
}

#[test]
fn a_place_for_an_override_is_shared_and_given_again() {
    let (limiter, clock) = limiter(per_second(1, 10), 1);
    limiter.set_override("ada", per_second(2, 20)).unwrap();
    limiter.set_override("bob", per_second(2, 20)).unwrap();
    let told = limiter.set_override("eve", per_second(3, 30)).unwrap_err();
    assert_eq!(told, ConfigError::TooManyTiers { tiers_max: 1 });
    assert!(told.to_string().contains("max_tiers"), "{told}");
    assert_eq!(limiter.override_of("eve"), None);
    assert!(limiter.check_n("ada", 15).is_ok());
    assert_eq!(limiter.clear_override("ada"), Some(per_second(2, 20)));
    assert!(limiter.set_override("eve", per_second(3, 30)).is_err(), "bob has it still");
    limiter.clear_override("bob");
    limiter.set_override("eve", per_second(3, 30)).unwrap();
    assert_eq!(limiter.peek("eve").remaining(), 30);
    // Ada's word was left by the limit whose place eve's has now. It is the limiter's own again, and comes back at one
    // token a second.
    assert_eq!(limiter.peek("ada").debt(), 5);
    clock.advance(secs(6));
    assert!(limiter.allow("ada") && !limiter.allow("ada"));
}

/// Bug class: what a key has used comes back at a rate that is none of its limits', because its place was taken from it.
#[test]
fn an_override_that_changes_in_the_last_place_is_not_forgiven() {
    let (limiter, clock) = limiter(per_second(1_000, 1_000), 1);
    let exact = ExactLimiter::builder(per_second(1_000, 1_000)).max_tiers(1).clock(clock.clone());
    let exact = exact.build().unwrap();
    for limit in [per_second(1, 100), per_second(2, 100)] {
        limiter.set_override("crawler", limit).unwrap();
        exact.set_override("crawler", limit).unwrap();
        _ = (limiter.check_n("crawler", 100), exact.check_n("crawler", 100));
        clock.advance(secs(3));
    }
    // Of 100 three came back by the first limit; then 100 did not fit, and six more came back.
    assert_eq!(limiter.peek("crawler").remaining(), 9);
    assert_eq!(exact.peek("crawler").remaining(), 9);
    for limit in [per_second(3, 100), per_second(4, 100)] {
        limiter.set_override("crawler", limit).unwrap();
        exact.set_override("crawler", limit).unwrap();
        clock.advance(secs(1));
    }
    // It was not asked meanwhile.
    assert_eq!((limiter.peek("crawler").remaining(), exact.peek("crawler").remaining()), (16, 16));
}

/// Where there are more places: its own is the one that is used again.
#[test]
fn an_override_that_changes_and_changes_is_not_forgiven() {
    let (limiter, clock) = limiter(per_second(1_000, 1_000), 3);
    limiter.set_override("crawler", per_second(1, 100)).unwrap();
    assert!(limiter.check_n("crawler", 100).is_ok());
    for rate in 2..9 {
        limiter.set_override("crawler", per_second(rate, 100)).unwrap();
        clock.advance(secs(1));
    }
    // It was not asked since the first.
    assert_eq!(limiter.peek("crawler").remaining(), 7);
}

#[test]
fn what_tiers_are_refused() {
    let (limiter, _) = limiter(per_second(1, 10), 1);
    let (other, _) = self::limiter(per_second(5, 50), 1);
    assert!(matches!(limiter.tier(window(5)), Err(ConfigError::KindChanged { .. })));
    assert!(matches!(limiter.tier(per_second(0, 5)), Err(ConfigError::Zero { field: "rate" })));
    let foreign = other.tier(per_second(7, 70)).unwrap();
    assert_eq!(limiter.set_tier_limit(foreign, per_second(1, 1)), Err(ConfigError::ForeignTier));
    assert_eq!(limiter.tier_limit(foreign), per_second(1, 10));
    assert_eq!(limiter.check_in(foreign, "ada", 1).unwrap().remaining(), 9, "the limiter's own limit");
    limiter.tier(per_second(2, 20)).unwrap();
    assert_eq!(limiter.tier(per_second(3, 30)).unwrap_err(), ConfigError::TooManyTiers { tiers_max: 1 });
    assert!(
        Limiter::builder(per_second(1, 1)).build().unwrap().tier(per_second(1, 2)).is_err(),
        "none unless told"
    );
}

#[test]
fn most_tiers_leave_room_for_ordinary_limits() {
    let (limiter, clock) = limiter(per_second(100, 200), 255);
    let tiers: Vec<Tier> =
        (1..=255).map(|number| limiter.tier(per_second(100 + number, 200 + number)).unwrap()).collect();
    assert!(limiter.tier(per_second(9, 9)).is_err());
    for (tier, burst) in tiers.iter().zip(201..) {
        assert_eq!(limiter.check_in(*tier, &burst, 1).unwrap().remaining(), burst - 1);
        assert_eq!(limiter.tier_limit(*tier), per_second(burst - 100, burst));
    }
    assert!(limiter.resolution() <= Duration::from_nanos(500), "{:?}", limiter.resolution());
    clock.advance(secs(9));
    assert_eq!(limiter.peek_in(tiers[254], &455).remaining(), 455);
}

/// Time lasts nine years where there is room for tiers, and limits may be changed while seven are left of it.
#[test]
fn time_lasts_nine_years_and_limits_change_in_the_first_two() {
    const YEAR_S: u64 = 365 * 86_400;
    for limit in [per_second(1, 10), window(10)] {
        let (limiter, clock) = limiter(limit, 3);
        assert!((9 * YEAR_S..10 * YEAR_S).contains(&limiter.horizon().as_secs()), "{:?}", limiter.horizon());
        assert!(limiter.resolution() < Duration::from_nanos(2), "{:?}", limiter.resolution());
        clock.advance(secs(2 * YEAR_S));
        limiter.tier(limit).unwrap();
        clock.advance(secs(YEAR_S / 2));
        assert!(matches!(
            limiter.tier(limit),
            Err(ConfigError::BeyondHorizon { field: "the limiter's age", .. })
        ));
    }
}

#[test]
fn the_limit_of_one_tier_changes_alone() {
    let (limiter, _) = limiter(per_second(1, 10), 2);
    let [low, high] = [20, 200].map(|burst| limiter.tier(per_second(1, burst)).unwrap());
    for (tier, key) in [(low, "low"), (high, "high")] {
        assert!(limiter.check_in(tier, key, 15).is_ok());
    }
    assert!(limiter.check_n("own", 5).is_ok());
    limiter.set_tier_limit(low, per_second(3, 16)).unwrap();
    assert_eq!(limiter.peek_in(low, "low").remaining(), 1);
    assert_eq!(limiter.peek_in(high, "high").remaining(), 185);
    limiter.set_limit(per_second(1, 100), CarryOver::Proportional).unwrap();
    assert_eq!(limiter.peek("own").remaining(), 50, "half of it");
    assert_eq!(
        (limiter.peek_in(low, "low").remaining(), limiter.peek_in(high, "high").remaining()),
        (1, 185)
    );
    limiter.set_limit(per_second(1, 100), CarryOver::Reset).unwrap();
    assert_eq!(limiter.peek_in(high, "high").remaining(), 200, "every key's, of every tier");
}

#[test]
fn receipts_and_places_in_line_are_of_their_tier() {
    let (limiter, clock) = limiter(per_second(1, 10), 1);
    let paid = limiter.tier(per_second(10, 100)).unwrap();
    let receipt = limiter.take_in(paid, "ada", 60).unwrap();
    assert_eq!(receipt.standing().remaining(), 40);
    // Asked by the lower limit meanwhile, which charges nothing.
    assert!(!limiter.allow("ada"));
    clock.advance(secs(1));
    assert_eq!(limiter.refund(receipt), 50, "ten have come back");
    assert_eq!(limiter.charge_in(paid, "bob", 150).unwrap().debt(), 50);
    let place = limiter.reserve_in(paid, "eve", 100, secs(0)).unwrap();
    assert_eq!(place.wait(), secs(0));
    let place = limiter.reserve_in(paid, "eve", 20, secs(3)).unwrap();
    assert_eq!(place.wait(), secs(2));
    assert!(limiter.cancel(place));
    assert_eq!(limiter.reserve_in(paid, "eve", 20, secs(1)).unwrap_err().reason(), Reason::Exhausted);
}

/// In a tiny table, where a newcomer takes the slot of whoever owes least: a drained key of a small tier owes fewer tokens
/// than a key of a large one that has hardly begun, and must not go, nor stand before those who may.
#[test]
fn a_flood_evicts_nobody_who_owes_more_than_half_of_its_own_tier() {
    for rate in [3, 5, 7, 11] {
        let limiter = Limiter::builder(Limit::bucket(Rate::per_hour(1_000), 1_000))
            .max_keys(64)
            .max_tiers(1)
            .seed(SEED)
            .on_full(OnFull::EvictLeast)
            .clock(Manual::new())
            .build()
            .unwrap();
        // Long after the start words differ by their units more than by what they owe.
        limiter.clock().advance(secs(1_000_000));
        let small = limiter.tier(Limit::bucket(Rate::per_hour(rate), 3)).unwrap();
        let drained: Vec<u32> =
            (0..20).filter(|key| (0..3).all(|_| limiter.check_in(small, key, 1).is_ok())).collect();
        assert_eq!(drained.len(), 20);
        for newcomer in 1_000..6_000_u32 {
            _ = limiter.check_n(&newcomer, 10);
        }
        assert!(limiter.stats().forced_evictions > 4_000);
        assert_eq!(limiter.stats().full, 0);
        for key in drained {
            assert!(limiter.check_in(small, &key, 1).is_err(), "{key} was let go");
        }
    }
}

/// Threads check one key, each by another tier, while a third limit comes and goes as its override, and tiers change: of
/// as many tokens as each limit has, so many pass in all.
#[test]
fn what_is_used_in_one_tier_is_used_in_all_of_them_at_once() {
    const BURST: u64 = 20_000;
    let limit = |a_day| Limit::bucket(Rate::per_day(a_day), BURST);
    let limiter = Limiter::builder(limit(1)).max_keys(10).max_tiers(4).clock(Manual::new()).build().unwrap();
    let exact = ExactLimiter::<String>::builder(limit(1)).max_tiers(4).clock(Manual::new()).build().unwrap();
    let tiers = [2, 3].map(|a_day| limiter.tier(limit(a_day)).unwrap());
    let exact_tiers = [2, 3].map(|a_day| exact.tier(limit(a_day)).unwrap());
    let passed = at_once(4, |thread| {
        let mut passed = [0_u64; 2];
        for round in 0..2 * BURST {
            match thread {
                0 => {
                    passed[0] += u64::from(limiter.allow("key"));
                    passed[1] += u64::from(exact.allow("key"));
                }
                3 if round < 100 => {
                    limiter.set_override("key", limit(5 + round % 2)).unwrap();
                    exact.set_override("key", limit(5 + round % 2)).unwrap();
                    limiter.set_tier_limit(tiers[0], limit(7 + round % 3)).unwrap();
                    exact.set_tier_limit(exact_tiers[0], limit(7 + round % 3)).unwrap();
                    limiter.clear_override("key");
                    exact.clear_override("key");
                }
                3 => break,
                tier => {
                    passed[0] += u64::from(limiter.check_in(tiers[tier - 1], "key", 1).is_ok());
                    passed[1] += u64::from(exact.check_in(exact_tiers[tier - 1], "key", 1).is_ok());
                }
            }
        }
        passed
    });
    for limiter in 0..2 {
        let all: u64 = passed.iter().map(|of| of[limiter]).sum();
        // A word that goes to another tier is rounded up by less than a token's millionth.
        assert!((BURST - 1..=BURST).contains(&all), "{passed:?}");
    }
}

#[cfg(feature = "snapshot")]
#[test]
fn a_snapshot_needs_room_for_as_many_tiers_and_holds_none() {
    let builder = |tiers| {
        Limiter::builder(per_second(1, 10)).max_tiers(tiers).max_keys(100).clock(Manual::at_unix(secs(1_000)))
    };
    let limiter = builder(3).build().unwrap();
    assert!(limiter.check_n("bob", 7).is_ok());
    let mut bytes = Vec::new();
    assert_eq!(limiter.save(&mut bytes).unwrap(), 1);
    let told = builder(0).restore(&bytes[..]).unwrap_err().to_string();
    assert!(told.starts_with("max_tiers is 3 in the snapshot and 0 in the builder"), "{told}");
    let restored = builder(3).restore(&bytes[..]).unwrap();
    assert_eq!(restored.peek("bob").remaining(), 3);
    // With a tier in use nothing is written that would be read as another limit's.
    restored.tier(per_second(10, 100)).unwrap();
    let error = restored.save(Vec::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
}

/// What a naive limiter keeps for a key: what it owes, and by which limit it was last asked, at whose rate that comes back.
#[derive(Clone, Copy)]
struct Naive {
    owed: u64,
    at_s: u64,
    by: By,
}

#[derive(Clone, Copy)]
enum By {
    Tier(u8),
    /// The override's, by its number in `LIMITS`.
    Override(u8),
}

impl Naive {
    /// What is owed now, where the tiers have these limits.
    fn now(self, at_s: u64, tiers: [u8; 3]) -> u64 {
        let number = match self.by {
            By::Tier(tier) => tiers[usize::from(tier)],
            By::Override(number) => number,
        };
        self.owed.saturating_sub(LIMITS[usize::from(number)].0 * (at_s - self.at_s))
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Check { key: u8, tier: u8, cost: u64 },
    Wait(u64),
    SetOverride { key: u8, limit: u8 },
    ClearOverride { key: u8 },
    SetTier { tier: u8, limit: u8 },
}

/// Rates (whole tokens a second) and bursts.
const LIMITS: [(u64, u64); 5] = [(1, 10), (3, 17), (7, 100), (100, 4), (2, 2_000)];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..4_u8;
    let step = prop_oneof![
        8 => (key.clone(), 0..3_u8, 0..25_u64).prop_map(|(key, tier, cost)| Step::Check { key, tier, cost }),
        3 => (0..12_u64).prop_map(Step::Wait),
        1 => (key.clone(), 0..5_u8).prop_map(|(key, limit)| Step::SetOverride { key, limit }),
        1 => key.prop_map(|key| Step::ClearOverride { key }),
        1 => (0..3_u8, 0..5_u8).prop_map(|(tier, limit)| Step::SetTier { tier, limit }),
    ];
    proptest::collection::vec(step, 1..80)
}

proptest! {
    /// Both limiters against one that keeps debts in tokens, at whole seconds and with whole tokens a second. A word that
    /// goes from tier to tier is rounded up to a unit of time each time, far less than the millionth of a token that is waited for here.
    #[test]
    fn tiers_and_overrides_as_a_naive_limiter_has_them(steps in steps()) {
        let limit = |number: u8| { let (rate, burst) = LIMITS[usize::from(number)]; per_second(rate, burst) };
        let (slots, clock) = limiter(limit(0), 7);
        let exact = ExactLimiter::<u8>::builder(limit(0)).max_tiers(7).clock(clock.clone()).build().unwrap();
        let mut limits = [0_u8, 1, 2];
        let tiers = [1, 2].map(|number| (slots.tier(limit(number)).unwrap(), exact.tier(limit(number)).unwrap()));
        let (mut naive, mut overrides) = (HashMap::<u8, Naive>::new(), HashMap::<u8, u8>::new());
        let mut at_s = 0;
        for step in steps {
            match step {
                Step::Wait(s) => { at_s += s; clock.advance(secs(s)); }
                Step::SetOverride { key, limit: number } => {
                    prop_assert_eq!(slots.set_override(&key, limit(number)), Ok(()));
                    prop_assert_eq!(exact.set_override(&key, limit(number)), Ok(()));
                    overrides.insert(key, number);
                }
                Step::ClearOverride { key } => {
                    let had = overrides.remove(&key).map(limit);
                    prop_assert_eq!(slots.clear_override(&key), had);
                    prop_assert_eq!(exact.clear_override(&key), had);
                }
                Step::SetTier { tier, limit: number } => {
                    // What came back so far came back at the rate before.
                    for entry in naive.values_mut() {
                        *entry = Naive { owed: entry.now(at_s, limits), at_s, ..*entry };
                    }
                    match tier.checked_sub(1) {
                        None => {
                            slots.set_limit(limit(number), CarryOver::KeepUsed).unwrap();
                            exact.set_limit(limit(number), CarryOver::KeepUsed).unwrap();
                        }
                        Some(place) => {
                            let (in_slots, in_exact) = tiers[usize::from(place)];
                            slots.set_tier_limit(in_slots, limit(number)).unwrap();
                            exact.set_tier_limit(in_exact, limit(number)).unwrap();
                        }
                    }
                    limits[usize::from(tier)] = number;
                }
                Step::Check { key, tier, cost } => {
                    let by = overrides.get(&key).map_or(By::Tier(tier), |&number| By::Override(number));
                    let number = match by { By::Tier(tier) => limits[usize::from(tier)], By::Override(number) => number };
                    let burst = LIMITS[usize::from(number)].1;
                    let owed = naive.get(&key).map_or(0, |entry| entry.now(at_s, limits));
                    let passes = cost == 0 || owed + cost <= burst;
                    let answers = match tier.checked_sub(1) {
                        None => [slots.check_n(&key, cost), exact.check_n(&key, cost)],
                        Some(place) => {
                            let (in_slots, in_exact) = tiers[usize::from(place)];
                            [slots.check_in(in_slots, &key, cost), exact.check_in(in_exact, &key, cost)]
                        }
                    };
                    for answer in answers {
                        prop_assert_eq!(answer.is_ok(), passes, "{} of {} owed, {}: {:?}", owed, burst, cost, answer);
                    }
                    if passes && cost > 0 {
                        naive.insert(key, Naive { owed: owed + cost, at_s, by });
                    } else if cost > 0 && cost <= burst {
                        // It was asked, and told when to come back.
                        naive.insert(key, Naive { owed, at_s, by });
                        let rate = LIMITS[usize::from(number)].0;
                        let wait = Duration::from_secs_f64((owed + cost - burst) as f64 / rate as f64);
                        for answer in answers {
                            let told = answer.unwrap_err().retry_after().unwrap();
                            prop_assert!(told.abs_diff(wait) < Duration::from_micros(1), "{:?} for {:?}", told, wait);
                        }
                    }
                }
            }
        }
    }
}
