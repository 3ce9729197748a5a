//! Properties that hold for every kind of word.
#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "shares of a range, and a test fails by panicking"
)]

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::limit::Rate;
use crate::time::timebase::{HORIZON_LEAST_NS, HORIZON_WANTED_NS, VALUE_BITS, VALUE_MAX};

const SECOND: u64 = 1_000_000_000;

fn alignments() -> impl Strategy<Value = Alignment> {
    prop_oneof![Just(Alignment::Clock), Just(Alignment::PerKey), Just(Alignment::FirstRequest)]
}

/// Limits of every kind that build.
fn limits() -> impl Strategy<Value = Limit> {
    let bucket = (1..=10_000_000_000_u64, 1..=10_000_u64, 1..=1_000_000_000_u64)
        .prop_map(|(n, seconds, burst)| Limit::bucket(Rate::new(n, Duration::from_secs(seconds)), burst));
    let window = (1..=1_000_000_u64, 1..=400 * 24 * 3600 * 1000_u64)
        .prop_map(|(limit, millis)| Limit::window(Window::new(limit, Duration::from_millis(millis))));
    let both = (1..=1_000_u64, 0..=10_000_u64, 1..=100_000_u64, 2..=1_000_u32).prop_map(
        |(limit, more, millis, ratio)| {
            let burst = Duration::from_millis(millis);
            Limit::burst_sustain(Window::new(limit, burst), Window::new(limit + more, burst * ratio))
        },
    );
    (prop_oneof![bucket, window, both], alignments(), any::<bool>())
        .prop_map(|(limit, alignment, count)| limit.align(alignment).count_refused(count))
}

/// A rule with a word that it reached by itself, and the moment after the last request.
fn histories() -> impl Strategy<Value = (Rule, u64, u64)> {
    let steps = prop::collection::vec((0..=u64::MAX, 0..=200_u64), 0..40);
    (limits(), steps).prop_filter_map("does not build", |(limit, steps)| {
        let rule = Rule::new(&limit).ok()?;
        let longest = Rule::longest_period_ns(&limit);
        let (mut ns, mut word) = (longest, 0);
        for (step, cost) in steps {
            ns += step % (longest / 2 + 1);
            // Costs of up to two thirds of the limit, small ones more often.
            let cost = cost * cost * limit_of(&rule) / 60_000;
            word = rule.decide(word, rule.time().units(ns), cost).next;
        }
        Some((rule, word, rule.time().units(ns)))
    })
}

/// The largest cost that can ever fit.
fn limit_of(rule: &Rule) -> u64 {
    rule.parts(0, 0).into_iter().map(|part| part.limit).min().unwrap_or(1)
}

proptest! {
    #[test]
    fn the_word_0_is_idle_from_the_start(limit in limits(), fingerprint in any::<u64>()) {
        prop_assume!(Rule::new(&limit).is_ok());
        let rule = Rule::new(&limit).unwrap();
        let start = rule.time().units(Rule::longest_period_ns(&limit));
        prop_assert!(rule.is_idle(0, start));
        prop_assert!(rule.is_idle(0, start + rule.phase(fingerprint)));
        prop_assert_eq!(rule.debt(0, start), 0);
        for part in rule.parts(0, start) {
            prop_assert_eq!((part.used, part.next, part.reset), (0, start, start));
        }
    }

    #[test]
    fn an_idle_word_decides_as_a_fresh_one((rule, word, now) in histories(), later in 0..VALUE_MAX >> 1, cost in 0..300_u64) {
        let moment = now + later % (rule.time().units(rule.time().end_ns()) - now).max(1);
        prop_assume!(rule.is_idle(word, moment));
        let (mine, fresh) = (rule.decide(word, moment, cost), rule.decide(0, moment, cost));
        prop_assert_eq!(mine.outcome, fresh.outcome);
        if cost > 0 && mine.outcome == Outcome::Pass {
            prop_assert_eq!(mine.next, fresh.next);
        }
    }

    #[test]
    fn idle_from_is_the_first_idle_moment((rule, word, now) in histories()) {
        let from = rule.idle_from(word);
        prop_assert!(rule.is_idle(word, from));
        prop_assert!(!rule.is_idle(word, from - 1));
        prop_assert_eq!(rule.is_idle(word, now), now >= from);
    }

    #[test]
    fn a_retry_passes_when_it_says_and_not_a_unit_before((rule, word, now) in histories(), part in 0.0..1.0_f64) {
        let limit = limit_of(&rule);
        let cost = 1 + (part * (limit - 1) as f64) as u64;
        let mut decided = rule.decide(word, now, limit);
        for _ in 0..2 {
            decided = rule.decide(decided.next, now, cost);
        }
        prop_assume!(matches!(decided.outcome, Outcome::Exhausted));
        let (_, at) = rule.retry_at(decided.next, now, cost);
        prop_assert!(at > now);
        prop_assert_eq!(rule.decide(decided.next, at, cost).outcome, Outcome::Pass);
        prop_assert!(matches!(rule.decide(decided.next, at - 1, cost).outcome, Outcome::Exhausted));
    }

    #[test]
    fn time_going_back_admits_nothing_more((rule, word, now) in histories(), back in 1..u64::MAX, cost in 1..300_u64) {
        let earlier = now.saturating_sub(back % now.max(1));
        let (then, before) = (rule.decide(word, now, cost).outcome, rule.decide(word, earlier, cost).outcome);
        prop_assert!(then == Outcome::Pass || before != Outcome::Pass, "{then:?} now, {before:?} earlier");
    }

    #[test]
    fn a_pass_is_charged_in_full((rule, word, now) in histories(), cost in 1..300_u64) {
        let left = |word| rule.parts(word, now).map(|part| part.limit.saturating_sub(part.used));
        let decided = rule.decide(word, now, cost);
        prop_assert!(decided.next <= VALUE_MAX);
        if decided.outcome == Outcome::Pass {
            for (before, after) in left(word).into_iter().zip(left(decided.next)) {
                prop_assert_eq!(before - after, cost);
            }
        }
    }

    #[test]
    fn what_remains_passes_and_no_more((rule, word, now) in histories()) {
        let remaining = rule.remaining(word, now);
        prop_assert!(remaining <= limit_of(&rule));
        prop_assert_eq!(rule.decide(word, now, remaining).outcome, Outcome::Pass);
        prop_assert_ne!(rule.decide(word, now, remaining + 1).outcome, Outcome::Pass);
    }

    #[test]
    fn a_dry_word_lets_nothing_in_until_it_says((rule, word, now) in histories(), drained in any::<bool>()) {
        let word = if drained { rule.decide(word, now, rule.remaining(word, now)).next } else { word };
        let (least, until) = (rule.decide(word, now, 1), rule.dry_until(word, now));
        prop_assert_eq!(rule.fits(1), true);
        if let Some(until) = until {
            prop_assert_eq!(least, Decided { outcome: Outcome::Exhausted, next: word });
            prop_assert!(until > now);
        } else {
            // Where a refusal counts nothing stays as it is, until the count is saturated.
            let is_dry = least.outcome == Outcome::Exhausted && least.next == word;
            let observed_max = rule.parts(word, now).iter().any(|part| part.used == part.used_max);
            prop_assert!(!is_dry || observed_max);
        }
        if let Some(until) = until {
            prop_assert!(until > now);
            prop_assert_eq!(rule.decide(word, until - 1, 1), least);
            prop_assert_eq!(rule.decide(word, until, 1).outcome, Outcome::Pass);
        }
    }

    #[test]
    fn debt_is_the_larger_share((rule, word, now) in histories()) {
        let debt = rule.debt(word, now);
        prop_assert!(debt <= WHOLE_DEBT);
        for part in rule.parts(word, now) {
            let share = u128::from(part.used.min(part.limit)) * u128::from(WHOLE_DEBT);
            prop_assert!(u128::from(debt) * u128::from(part.limit) >= share);
        }
        prop_assert_eq!(debt == 0, rule.parts(word, now).iter().all(|part| part.used == 0));
    }

    #[test]
    fn parts_give_more_when_they_say((rule, word, now) in histories()) {
        for (index, part) in rule.parts(word, now).into_iter().enumerate().filter(|(_, part)| part.used > 0) {
            let used_at = |moment| rule.parts(word, moment)[index].used;
            prop_assert!(used_at(part.next) < part.used);
            prop_assert!(used_at(part.next - 1) >= part.used);
            prop_assert_eq!(used_at(part.reset), 0);
            prop_assert!(used_at(part.reset - 1) > 0);
        }
    }

    #[test]
    fn a_key_begins_owing_what_it_is_told(
        limit in limits(), after in 0..1_u64 << 50, fingerprint in any::<u64>(), debt in 0..=WHOLE_DEBT,
    ) {
        prop_assume!(Rule::new(&limit).is_ok());
        let rule = Rule::new(&limit).unwrap();
        let now = rule.moment(Rule::longest_period_ns(&limit) + after, fingerprint);
        let word = rule.begin(now, debt);
        prop_assert!(word <= VALUE_MAX);
        prop_assert!(!rule.is_idle(word, now));
        for part in rule.parts(word, now) {
            let owed = (u128::from(debt) * u128::from(part.limit)).div_ceil(u128::from(WHOLE_DEBT));
            prop_assert_eq!(u128::from(part.used), owed);
        }
    }

    #[test]
    fn who_owes_less_ranks_lower((rule, word, now) in histories(), debts in any::<[u16; 2]>(), later in any::<u32>()) {
        let [a, b] = debts.map(|debt| rule.begin(now, u32::from(debt)));
        if rule.debt(a, now) < rule.debt(b, now) {
            prop_assert!(rule.rank(a, now) < rule.rank(b, now));
        }
        if rule.ranks_for_good() {
            prop_assert_eq!(rule.rank(word, now), rule.rank(word, now + u64::from(later)));
        }
        prop_assert_eq!(rule.ranks_for_good(), rule.parts(word, now)[0].name == WindowName::Bucket);
    }

    /// A bucket can have been left a whole depth before it is full again, a window from its start on.
    #[test]
    fn a_word_was_left_no_earlier_than_a_period_before_it_ends((rule, word, now) in histories(), cost in 1..300_u64) {
        let decided = rule.decide(word, now, cost);
        prop_assume!(decided.outcome == Outcome::Pass);
        let left_at = rule.left_at(decided.next);
        prop_assert!(left_at <= now);
        let part = rule.parts(decided.next, now)[0];
        prop_assert_eq!(left_at, part.reset.saturating_sub(part.period));
    }

    #[test]
    fn a_moment_is_the_time_and_the_phase_of_the_key(limit in limits(), after in 0..1_u64 << 50, fingerprint in any::<u64>()) {
        prop_assume!(Rule::new(&limit).is_ok());
        let rule = Rule::new(&limit).unwrap();
        let ns = Rule::longest_period_ns(&limit) + after;
        prop_assert_eq!(rule.moment(ns, fingerprint) - rule.time().units(ns), rule.phase(fingerprint));
    }

    #[test]
    fn layouts_hold_what_they_were_made_for(
        burst in 1..1_u64 << 20, more in 0..1_u64 << 10, ratio in 2..400_u64, tick_bits in 1..30_u32,
        fraction_bits in 0..40_u32, first_request in any::<bool>(), counts in any::<[u64; 4]>(),
    ) {
        let needs = Needs {
            tick_max: 1 << tick_bits, fraction_bits, first_request, ratio, burst, sustain: Some(burst + more),
        };
        let Ok(layout) = Layout::new(&needs) else { return Ok(()) };
        prop_assert!(layout.burst_max() > burst && layout.sustain_max() > burst + more);
        prop_assert!(!first_request || layout.grid_bits() >= 6.min(fraction_bits));
        let [time, index, sustain, burst] = counts;
        let time_max = needs.tick_max << layout.grid_bits();
        let index = if first_request { index % ratio } else { 0 };
        let packed = layout.pack(Counts { time: time % (time_max + 1), index, sustain, burst });
        let back = layout.unpack(packed);
        prop_assert!(packed <= VALUE_MAX);
        prop_assert_eq!((back.time, back.index), (time % (time_max + 1), index));
        prop_assert_eq!(back.burst, burst.min(layout.burst_max()));
        prop_assert_eq!(back.sustain, sustain.min(layout.sustain_max()));
    }
}

fn rule(limit: Limit) -> Rule {
    Rule::new(&limit).unwrap()
}

fn windows(burst: u64, sustain: u64) -> Limit {
    let (short, long) = (Duration::from_secs(15), Duration::from_secs(300));
    Limit::burst_sustain(Window::new(burst, short), Window::new(sustain, long))
}

/// A count at its capacity stays there, refuses, and leaves its neighbours alone.
#[test]
fn saturated_counts_refuse_and_never_carry() {
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let rule = rule(windows(3, 5).align(alignment));
        let Kind::Windowed(windowed) = rule.kind else { panic!("not windowed") };
        let layout = *windowed.layout();
        let now = rule.time().units(900 * SECOND);
        let mut word = 0;
        for _ in 0..200_000 {
            word = rule.decide(word, now, 3).next;
        }
        let opened = layout.unpack(rule.decide(0, now, 1).next);
        let counts = layout.unpack(word);
        assert_eq!((counts.time, counts.index), (opened.time, opened.index));
        assert_eq!(counts.burst, layout.burst_max().min(600_000));
        assert_eq!(counts.sustain, layout.sustain_max().min(600_000));
        let saturated = layout.pack(Counts { burst: u64::MAX, sustain: u64::MAX, ..opened });
        let refused = rule.decide(saturated, now, 1);
        assert_eq!(refused.next, saturated);
        assert_eq!(refused.outcome, Outcome::Exhausted);
        assert_eq!(rule.refusing(saturated, now, 1), Refusing { first: true, sustain: true });
    }
}

/// A thousand keys do not start again in one instant: their phases spread over the whole period.
#[test]
fn phases_spread_over_the_longest_period() {
    let rule = rule(windows(30, 100));
    let period = rule.parts(0, rule.time().units(900 * SECOND))[1].period;
    let mut phases: Vec<u64> = (0..1000_u64).map(|key| rule.phase(key * ((1 << 48) / 1000))).collect();
    phases.dedup();
    assert_eq!(phases.len(), 1000);
    assert!(phases.iter().all(|&phase| phase < period));
    assert!(phases[999] > period - period / 500);
    assert_eq!(self::rule(windows(30, 100).align(Alignment::Clock)).phase(u64::MAX), 0);
}

/// Wall time is tied to windows on the clock alone: by the burst period, and by the longest.
#[test]
fn only_windows_on_the_clock_are_tied_to_the_wall() {
    let (single, both) = (Window::new(3, Duration::from_secs(15)), windows(3, 5));
    let wall = |limit: Limit, alignment| Rule::wall_periods_ns(&limit.align(alignment));
    assert_eq!(wall(Limit::window(single), Alignment::Clock), Some((15 * SECOND, 15 * SECOND)));
    assert_eq!(wall(both, Alignment::Clock), Some((15 * SECOND, 300 * SECOND)));
    for alignment in [Alignment::PerKey, Alignment::FirstRequest] {
        assert_eq!(wall(Limit::window(single), alignment), None);
        assert_eq!(wall(both, alignment), None);
    }
    assert_eq!(wall(Limit::bucket(Rate::per_second(1), 1), Alignment::Clock), None);
}

/// The grid of openings: never coarser than 1/64 of the burst period, finer when bits allow.
#[test]
fn the_grid_of_openings_is_fine() {
    for limit in
        [windows(30, 100), windows(1_000, 10_000), Limit::window(Window::new(100, Duration::from_secs(60)))]
    {
        let Kind::Windowed(windowed) = rule(limit.align(Alignment::FirstRequest)).kind else {
            panic!("not windowed")
        };
        assert!(windowed.layout().grid_bits() >= 6);
    }
    let opens = rule(windows(30, 100).align(Alignment::FirstRequest));
    for ns in [900 * SECOND, 907 * SECOND + 7, 914_999_999_999] {
        let now = opens.time().units(ns);
        let part = opens.parts(opens.decide(0, now, 1).next, now)[0];
        assert!((part.period - part.period / 64..=part.period).contains(&(part.next - now)), "at {ns} ns");
    }
    let Kind::Windowed(windowed) = opens.kind else { panic!() };
    assert!(windowed.layout().grid_bits() >= 10, "{}", windowed.layout().grid_bits());
}

/// Which windows refuse, and which of them is waited for.
#[test]
fn a_refusal_names_the_windows_that_it_comes_from() {
    let (burst, sustain, both) = (
        Refusing { first: true, sustain: false },
        Refusing { first: false, sustain: true },
        Refusing { first: true, sustain: true },
    );
    for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        for count_refused in [true, false] {
            let rule = rule(windows(3, 5).align(alignment).count_refused(count_refused));
            let now = rule.time().units(900 * SECOND);
            let later = rule.time().units(915 * SECOND);
            for (cost, refusing) in [(4, burst), (5, burst), (6, both)] {
                assert_eq!(rule.decide(0, now, cost), Decided { outcome: Outcome::TooLarge, next: 0 });
                assert_eq!(rule.refusing(0, now, cost), refusing);
            }
            assert_eq!(rule.retry_at(0, now, 3), (WindowName::Burst, now), "nothing to wait for");
            let used = rule.decide(0, now, 3);
            assert_eq!(used.outcome, Outcome::Pass);
            let refused = |word: u64, moment: u64, cost: u64| {
                let decided = rule.decide(word, moment, cost);
                assert_eq!(decided.outcome, Outcome::Exhausted);
                let waits_for = rule.retry_at(decided.next, moment, cost).0;
                (decided.next, rule.refusing(decided.next, moment, cost), waits_for)
            };
            if count_refused {
                // 3 + 1, then 3 + 2, then 3 + 3 of 3 and 5.
                let (word, refusing, waits_for) = refused(used.next, now, 1);
                assert_eq!((refusing, waits_for), (burst, WindowName::Burst));
                let (word, refusing, waits_for) = refused(word, now, 1);
                assert_eq!((refusing, waits_for), (burst, WindowName::Sustain), "none is left of 5");
                let (word, refusing, waits_for) = refused(word, now, 1);
                assert_eq!((refusing, waits_for), (both, WindowName::Sustain));
                let (_, refusing, waits_for) = refused(word, later, 1);
                assert_eq!((refusing, waits_for), (sustain, WindowName::Sustain));
            } else {
                for (cost, refusing, waits_for) in
                    [(2, burst, WindowName::Burst), (3, both, WindowName::Sustain)]
                {
                    assert_eq!(refused(used.next, now, cost), (used.next, refusing, waits_for));
                }
                assert_eq!(refused(used.next, later, 3), (used.next, sustain, WindowName::Sustain));
                assert_eq!(rule.decide(used.next, later, 2).outcome, Outcome::Pass);
            }
        }
    }
    let equal = rule(windows(3, 3));
    let now = equal.time().units(900 * SECOND);
    assert_eq!(equal.decide(0, now, 3).outcome, Outcome::Pass, "all of both");
    assert_eq!(equal.decide(0, now, 4).outcome, Outcome::TooLarge);
    assert_eq!(equal.refusing(0, now, 4), both);
    let single = rule(Limit::window(Window::new(3, Duration::from_secs(15))));
    let now = single.time().units(900 * SECOND);
    let word = single.decide(single.decide(0, now, 3).next, now, 1).next;
    assert_eq!(single.refusing(word, now, 1), burst);
    assert_eq!(single.retry_at(word, now, 1).0, WindowName::Window);
}

#[test]
fn each_slip_in_a_pair_of_windows_has_its_error() {
    let pair = |burst: (u64, u64), sustain: (u64, u64)| {
        let window = |(limit, seconds)| Window::new(limit, Duration::from_secs(seconds));
        Rule::new(&Limit::burst_sustain(window(burst), window(sustain))).map(|_| ())
    };
    let seconds = Duration::from_secs;
    assert_eq!(pair((0, 15), (5, 300)), Err(ConfigError::Zero { field: "burst limit" }));
    assert_eq!(pair((3, 15), (0, 300)), Err(ConfigError::Zero { field: "sustain limit" }));
    assert_eq!(pair((3, 0), (5, 300)), Err(ConfigError::ZeroPeriod { field: "burst period" }));
    assert_eq!(pair((3, 15), (5, 0)), Err(ConfigError::ZeroPeriod { field: "sustain period" }));
    for sustain in [1, 14, 15, 16, 299, 301] {
        let error = ConfigError::NotAMultiple { burst: seconds(15), sustain: seconds(sustain) };
        assert_eq!(pair((3, 15), (5, sustain)), Err(error));
    }
    assert_eq!(pair((3, 15), (2, 300)), Err(ConfigError::SustainBelowBurst { burst: 3, sustain: 2 }));
    assert_eq!(pair((3, 15), (3, 30)), Ok(()));
}

/// Time lasts for the wanted 36 years from the latest start, two longest periods above 0; and the counts get every
/// bit that its periods leave.
#[test]
fn time_takes_its_bits_and_counts_the_rest() {
    for alignment in [Alignment::Clock, Alignment::PerKey] {
        let rule = rule(windows(3, 5).align(alignment));
        assert_eq!(rule.time().end_ns(), HORIZON_WANTED_NS + 2 * 300 * SECOND);
        // Beside the shorter horizon, for limits that would not fit otherwise.
        let end_ns = HORIZON_LEAST_NS + 2 * 300 * SECOND;
        let ticks = end_ns / (15 * SECOND) + 20;
        let free = VALUE_BITS - (u64::BITS - ticks.leading_zeros());
        let built = Rule::new(&windows(3, u64::MAX).align(alignment));
        let Err(ConfigError::TooWide { limit_max, .. }) = built else { panic!("{built:?}") };
        assert_eq!(limit_max, (1 << (free - 3)) - 2, "4 has three bits");
    }
}

/// The furthest phase at the end of time still has its place in the word.
#[test]
fn the_last_moment_of_all_fits_the_word() {
    // Burst periods to the end of time: 10 less than 2^26, and up to 20 more with a phase.
    let period = Duration::from_nanos(HORIZON_WANTED_NS / ((1 << 26) - 50));
    for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        let rule =
            rule(Limit::burst_sustain(Window::new(3, period), Window::new(5, period * 20)).align(alignment));
        let last = rule.moment(u64::MAX, u64::MAX);
        let word = rule.decide(0, last, 2).next;
        assert!(word <= VALUE_MAX);
        assert_eq!(rule.parts(word, last).map(|part| part.used), [2, 2]);
        assert_eq!(rule.decide(word, last, 2).outcome, Outcome::Exhausted);
    }
}

/// Windows whose time leaves no room for any count are told so, not that their limit may be 0.
#[test]
fn periods_that_leave_no_count_are_the_error() {
    let limit = Limit::burst_sustain(
        Window::new(3, Duration::from_nanos(1)),
        Window::new(5, Duration::from_secs(4_000_000)),
    );
    let built = Rule::new(&limit.align(Alignment::FirstRequest));
    assert!(matches!(built, Err(ConfigError::PeriodsTooWide { .. })), "{built:?}");
}

/// What the error says would fit does fit, and one more does not.
#[test]
fn the_largest_limit_that_an_error_allows_builds() {
    let (short, long) = (Duration::from_secs(15), Duration::from_secs(300));
    let both = |burst, sustain| Limit::burst_sustain(Window::new(burst, short), Window::new(sustain, long));
    for (burst, sustain) in
        [(1_000_000_000, 10_000_000_000), (10, 1 << 50), (1 << 40, 1 << 40), (1 << 60, 1 << 60)]
    {
        for alignment in [Alignment::Clock, Alignment::FirstRequest] {
            let limit = both(burst, sustain).align(alignment);
            let Err(ConfigError::TooWide { field, limit_max, other: Some((_, other)), .. }) =
                Rule::new(&limit)
            else {
                panic!("{limit:?}")
            };
            let lowered = |by: u64| match field {
                "burst limit" => both(limit_max + by, other).align(alignment),
                _ => both(other, limit_max + by).align(alignment),
            };
            assert!(Rule::new(&lowered(0)).is_ok(), "{:?}", lowered(0));
            assert!(Rule::new(&lowered(1)).is_err(), "{:?}", lowered(1));
        }
    }
    // Beside a sustain limit that leaves room, it is the burst limit that is too large.
    let built = Rule::new(&both(200_000_000, 1_000_000_000).align(Alignment::Clock));
    assert!(matches!(built, Err(ConfigError::TooWide { field: "burst limit", .. })), "{built:?}");
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let limit = |count| Limit::window(Window::new(count, short)).align(alignment);
        let Err(ConfigError::TooWide { limit_max, .. }) = Rule::new(&limit(u64::MAX)) else {
            panic!("it fits")
        };
        assert!(Rule::new(&limit(limit_max)).is_ok() && Rule::new(&limit(limit_max + 1)).is_err());
    }
}
