//! The slot table and the exact table decide alike while there is room, and a batch as its keys one by one: every
//! field of every answer.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use proptest::prelude::*;
use tidegate::{Alignment, ExactLimiter, Limit, Limiter, Manual, Rate, Window};

const SEED: u64 = 7;

fn alignments() -> impl Strategy<Value = Alignment> {
    prop_oneof![Just(Alignment::Clock), Just(Alignment::PerKey), Just(Alignment::FirstRequest)]
}

fn limits() -> impl Strategy<Value = Limit> {
    let bucket = (1..1_000_u64, 1..100_000_u64, 1..50_u64)
        .prop_map(|(n, millis, burst)| Limit::bucket(Rate::new(n, Duration::from_millis(millis)), burst));
    let window = (1..20_u64, 1..60_000_u64)
        .prop_map(|(limit, millis)| Limit::window(Window::new(limit, Duration::from_millis(millis))));
    let both = (1..10_u64, 0..20_u64, 1..10_000_u64, 2..30_u32).prop_map(|(burst, more, millis, ratio)| {
        let short = Duration::from_millis(millis);
        Limit::burst_sustain(Window::new(burst, short), Window::new(burst + more, short * ratio))
    });
    let sliding = (1..20_u64, 1..60_000_u64, prop_oneof![Just(Alignment::Clock), Just(Alignment::PerKey)]);
    let sliding = sliding.prop_map(|(limit, millis, alignment)| {
        (Limit::sliding_window(Window::new(limit, Duration::from_millis(millis))), alignment)
    });
    let others = (prop_oneof![bucket, window, both], alignments());
    (prop_oneof![3 => others, 1 => sliding], any::<bool>())
        .prop_map(|((limit, alignment), count)| limit.align(alignment).count_refused(count))
}

/// What happens next: time moves on, or a key asks.
#[derive(Clone, Copy, Debug)]
enum Step {
    Advance(u64),
    Check { key: u16, cost: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let advance =
        prop_oneof![0..1_000_u64, 0..1_000_000_000_u64, 0..400_000_000_000_u64].prop_map(Step::Advance);
    let check = (0..6_u16, prop_oneof![4 => Just(1), 1 => 0..60_u64])
        .prop_map(|(key, cost)| Step::Check { key, cost });
    prop::collection::vec(prop_oneof![1 => advance, 3 => check], 1..200)
}

proptest! {
    #[test]
    fn every_answer_is_the_same(limit in limits(), steps in steps(), unix in 0..2_000_000_000_u64) {
        let clock = Manual::at_unix(Duration::from_secs(unix));
        let slots = Limiter::builder(limit).max_keys(64).seed(SEED).clock(clock.clone()).build().unwrap();
        let exact = ExactLimiter::<u16>::builder(limit).max_keys(64).seed(SEED).clock(clock.clone()).build().unwrap();
        for step in steps {
            match step {
                Step::Advance(ns) => clock.advance(Duration::from_nanos(ns)),
                Step::Check { key, cost } => {
                    let (ours, theirs) = (slots.check_n(&key, cost), exact.check_n(&key, cost));
                    prop_assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{:?}", step);
                }
            }
        }
        prop_assert_eq!(slots.stats().forced_evictions, 0);
        prop_assert_eq!(slots.stats().full, 0);
    }

    /// Batches of every length, on a table so small that keys are turned away and evicted.
    #[test]
    fn a_batch_is_answered_as_its_keys_one_by_one(
        limit in limits(),
        batches in prop::collection::vec((0..1_000_000_000_u64, prop::collection::vec(0..60_u16, 0..50)), 1..20),
    ) {
        let clock = Manual::new();
        let build = || Limiter::builder(limit).max_keys(2).seed(SEED).clock(clock.clone()).build().unwrap();
        let (one_by_one, batched) = (build(), build());
        for (advance_ns, keys) in batches {
            clock.advance(Duration::from_nanos(advance_ns));
            let wanted: Vec<String> = keys.iter().map(|key| format!("{:?}", one_by_one.check(key))).collect();
            let mut answers = Vec::new();
            batched.check_many(&keys, |answer| answers.push(format!("{answer:?}")));
            prop_assert_eq!(answers, wanted);
            prop_assert_eq!(batched.stats(), one_by_one.stats());
        }
    }
}
