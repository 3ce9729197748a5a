//! The told wait is the shortest that works, whatever the limit and the moment: a nanosecond less is refused, and
//! then one nanosecond is what is left to wait.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::time::Duration;

use common::manual;
use proptest::prelude::*;
use tidegate::{Alignment, Denied, ExactLimiter, Limit, Manual, Pass, Rate, Window};

const SECOND_NS: u64 = 1_000_000_000;
const NANOSECOND: Duration = Duration::from_nanos(1);

/// A limit, and the largest cost it ever passes.
fn any_limit() -> impl Strategy<Value = (Limit, u64)> {
    let alignment =
        prop_oneof![Just(Alignment::Clock), Just(Alignment::PerKey), Just(Alignment::FirstRequest)];
    let period_ns = prop_oneof![
        1_000_000..1_000_000_000_u64,
        1..10_000 * SECOND_NS,
        (1..4_000_u64).prop_map(|seconds| seconds * SECOND_NS),
    ];
    let numbers = (1..40_u64, 0..60_u64, period_ns, 2..21_u32, 1..2_000_u64);
    (0..4_u8, numbers, alignment, any::<bool>()).prop_map(|(kind, numbers, alignment, count_refused)| {
        let (burst, more, period_ns, multiple, tokens) = numbers;
        let period = Duration::from_nanos(period_ns);
        let first = Window::new(burst, period);
        let limit = match kind {
            0 => Limit::bucket(Rate::new(tokens.min(10 * period_ns), period), burst),
            1 => Limit::window(first),
            2 => Limit::sliding_window(first),
            _ => Limit::burst_sustain(first, Window::new(burst + more, period * multiple)),
        };
        let alignment =
            if kind == 2 && alignment == Alignment::FirstRequest { Alignment::Clock } else { alignment };
        (limit.align(alignment).count_refused(count_refused), burst)
    })
}

/// The times of some requests of one key, and their costs: what is used up before the wait is asked for.
fn any_history() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let gap_ns = prop_oneof![0..3_u64, 0..SECOND_NS, 0..1_000 * SECOND_NS];
    prop::collection::vec((gap_ns, 1..40_u64), 1..12)
}

/// Plays the history, asks for `cost` until it is refused, waits as told less `lead`, and asks again.
///
/// `None` where nothing was refused. The wait is that of the last refusal.
fn ask_again(
    limit: Limit,
    start: Duration,
    history: &[(u64, u64)],
    cost: u64,
    lead: Duration,
) -> Option<(Duration, Result<Pass, Denied>)> {
    let (limiter, clock): (ExactLimiter<u64, Manual>, Manual) = manual(limit);
    clock.set(start);
    for &(gap_ns, cost) in history {
        clock.advance(Duration::from_nanos(gap_ns));
        let _either = limiter.check_n(&7, cost);
    }
    let refused = (0..100).find_map(|_| limiter.check_n(&7, cost).err())?;
    let wait = refused.retry_after()?;
    clock.advance(wait - lead);
    Some((wait, limiter.check_n(&7, cost)))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_wait_works_and_a_nanosecond_less_does_not(
        (limit, burst) in any_limit(),
        start_ns in prop_oneof![Just(0), 0..5 * 31_557_600 * SECOND_NS],
        history in any_history(),
        cost in 1..40_u64,
    ) {
        let start = Duration::from_nanos(start_ns);
        let cost = cost.min(burst);
        if let Some((wait, answer)) = ask_again(limit, start, &history, cost, Duration::ZERO) {
            prop_assert!(wait > Duration::ZERO);
            prop_assert!(answer.is_ok(), "after {wait:?}: {answer:?}");
            let (_, answer) = ask_again(limit, start, &history, cost, NANOSECOND).unwrap();
            let denied = answer.expect_err("one nanosecond early");
            // A window counts this refusal too, and may have to wait for more than the last one did.
            let left = denied.retry_after().unwrap();
            prop_assert!(left >= NANOSECOND, "{wait:?} and {left:?}");
            if limit == limit.count_refused(false) {
                prop_assert_eq!(left, NANOSECOND, "{:?}", wait);
            }
        }
    }
}
