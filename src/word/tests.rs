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
use crate::time::timebase::{
    HORIZON_LEAST_NS, HORIZON_WANTED_NS, VALUE_BITS, VALUE_MAX, horizon_wanted_ns, value_max,
};

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
    let sliding = (1..=10_000_u64, 1..=400 * 24 * 3600 * 1000_u64)
        .prop_map(|(limit, millis)| Limit::sliding_window(Window::new(limit, Duration::from_millis(millis))));
    let both = (1..=1_000_u64, 0..=10_000_u64, 1..=100_000_u64, 2..=1_000_u32).prop_map(
        |(limit, more, millis, ratio)| {
            let burst = Duration::from_millis(millis);
            Limit::burst_sustain(Window::new(limit, burst), Window::new(limit + more, burst * ratio))
        },
    );
    (prop_oneof![bucket, window, sliding, both], alignments(), any::<bool>())
        .prop_map(|(limit, alignment, count)| limit.align(alignment).count_refused(count))
        .prop_filter("a sliding window never begins anew", |limit| {
            !matches!((limit.shape(), limit.alignment()), (Shape::Sliding(_), Alignment::FirstRequest))
        })
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
        prop_assert!(rule.fits(limit_of(&rule)) && !rule.fits(limit_of(&rule) + 1));
    }

    #[test]
    fn a_dry_word_lets_nothing_in_until_it_says((rule, word, now) in histories(), drained in any::<bool>()) {
        let word = if drained { rule.decide(word, now, rule.remaining(word, now)).next } else { word };
        let (least, until) = (rule.decide(word, now, 1), rule.dry_until(word, now));
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

    /// A bucket can have been left a whole depth before it is full again, a window from its start on; a sliding window
    /// counts for two.
    #[test]
    fn a_word_was_left_no_earlier_than_what_it_counts_for_before_it_ends((rule, word, now) in histories(), cost in 1..300_u64) {
        let decided = rule.decide(word, now, cost);
        prop_assume!(decided.outcome == Outcome::Pass);
        let left_at = rule.left_at(decided.next);
        prop_assert!(left_at <= now);
        let part = rule.parts(decided.next, now)[0];
        let periods = if part.name == WindowName::Sliding { 2 } else { 1 };
        prop_assert_eq!(left_at, part.reset.saturating_sub(periods * part.period));
    }

    /// Whatever a word counts at the end of time, it is forgotten at a time that a word can hold.
    #[test]
    fn words_last_to_the_end_of_time(limit in limits(), fingerprint in any::<u64>()) {
        prop_assume!(Rule::new(&limit).is_ok());
        let rule = Rule::new(&limit).unwrap();
        let last = rule.moment(rule.time().end_ns(), fingerprint);
        let decided = rule.decide(0, last, 1);
        prop_assert_eq!(decided.outcome, Outcome::Pass);
        prop_assert_eq!(rule.parts(decided.next, last)[0].used, 1);
        prop_assert!(rule.idle_from(decided.next) > last && rule.idle_from(decided.next) <= VALUE_MAX + 1);
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
        value_bits in 54..=VALUE_BITS,
    ) {
        let needs = Needs {
            tick_max: 1 << tick_bits, fraction_bits, first_request, ratio, burst, sustain: Some(burst + more),
            value_bits,
        };
        let Ok(layout) = Layout::new(&needs) else { return Ok(()) };
        prop_assert!(layout.burst_max() > burst && layout.sustain_max() > burst + more);
        prop_assert!(!first_request || layout.grid_bits() >= 6.min(fraction_bits));
        let [time, index, sustain, burst] = counts;
        let time_max = needs.tick_max << layout.grid_bits();
        let index = if first_request { index % ratio } else { 0 };
        let packed = layout.pack(Counts { time: time % (time_max + 1), index, sustain, burst });
        let back = layout.unpack(packed);
        prop_assert!(packed <= value_max(value_bits));
        prop_assert_eq!((back.time, back.index), (time % (time_max + 1), index));
        prop_assert_eq!(back.burst, burst.min(layout.burst_max()));
        prop_assert_eq!(back.sustain, sustain.min(layout.sustain_max()));
    }

    #[test]
    fn sliding_layouts_hold_what_they_were_made_for(
        limit in 1..1_u64 << 24, window_bits in 1..40_u32, window in any::<u64>(), counts in any::<[u64; 2]>(), small in any::<bool>(),
    ) {
        let window_max = 1 << window_bits;
        let layout = match SlidingLayout::new(VALUE_BITS, window_max, limit) {
            Ok(layout) => layout,
            Err(limit_max) => {
                prop_assert!(limit_max < limit);
                prop_assert!(SlidingLayout::new(VALUE_BITS, window_max, limit_max + 1).is_err());
                prop_assert!(limit_max == 0 || SlidingLayout::new(VALUE_BITS, window_max, limit_max).is_ok());
                return Ok(());
            }
        };
        prop_assert!(layout.count_max() > limit);
        let [previous, current] = if small { counts.map(|count| count % (limit + 2)) } else { counts };
        let packed = layout.pack(SlidingCounts { window: window % (window_max + 1), previous, current });
        let back = layout.unpack(packed);
        prop_assert!(packed <= VALUE_MAX);
        prop_assert_eq!(back.window, window % (window_max + 1));
        prop_assert_eq!(back.previous, previous.min(layout.count_max()));
        prop_assert_eq!(back.current, current.min(layout.count_max()));
    }

    /// The rule as it is written, in 128 bits: what passes is what it says, from any word at any moment.
    #[test]
    fn a_sliding_window_decides_by_its_rule(
        limit in 1..100_000_u64, millis in 1_000..1_000_000_u64, counts in any::<[u32; 2]>(), elapsed in any::<u64>(), cost in 1..100_000_u64,
    ) {
        let rule = Rule::new(&Limit::sliding_window(Window::new(limit, Duration::from_millis(millis)))).unwrap();
        let Kind::Windows(Windows::Sliding(sliding)) = rule.kind else { panic!("not sliding") };
        let period = rule.parts(0, 0)[0].period;
        let [previous, current] = counts.map(|count| u64::from(count) % (limit + limit / 4 + 2));
        prop_assume!(previous.max(current) <= sliding.layout().count_max());
        let (elapsed, window) = (elapsed % period, 1_000);
        let word = sliding.layout().pack(SlidingCounts { window, previous, current });
        let moment = window * period + elapsed;
        let [wide_previous, wide_current, wide_cost] = [previous, current, cost].map(u128::from);
        let wanted = wide_previous * u128::from(period - elapsed) + (wide_current + wide_cost) * u128::from(period);
        let fits = wanted <= u128::from(limit) * u128::from(period);
        prop_assert_eq!(rule.decide(word, moment, cost).outcome == Outcome::Pass, fits);
    }
}

mod beside;
mod examples;
mod moved;
mod ordered;
