//! Histories: random steps of a clock moved by hand, with requests of a few keys in between.

use std::time::Duration;

use proptest::prelude::*;
use tidegate::Manual;

const SECOND_NS: u64 = 1_000_000_000;

/// Keys from 0 to this, less one, make requests.
pub const KEYS: u64 = 3;

/// One step of a sequence. Times are in eighths of the limit's own interval, plus some nanoseconds, so that edges
/// are met exactly, nearly, and not at all.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Advance { eighths: u64, ns: u64 },
    Back { eighths: u64, ns: u64 },
    Check { key: u64, cost: u64 },
}

fn any_step(cost_max: u64) -> impl Strategy<Value = Step> {
    let few_ns = prop_oneof![4 => Just(0), 2 => 0..3_u64, 1 => 0..1_000_000_007_u64];
    let far = prop_oneof![8 => 0..20_u64, 1 => 0..5_000_u64];
    prop_oneof![
        4 => (far, few_ns.clone()).prop_map(|(eighths, ns)| Step::Advance { eighths, ns }),
        1 => (0..20_u64, few_ns).prop_map(|(eighths, ns)| Step::Back { eighths, ns }),
        10 => (0..KEYS, prop_oneof![3 => Just(1), 1 => 0..=cost_max])
            .prop_map(|(key, cost)| Step::Check { key, cost }),
    ]
}

/// Up to 120 steps, with costs of up to `cost_max`.
pub fn any_steps(cost_max: u64) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(any_step(cost_max), 1..120)
}

/// Plays `steps` from `start_ns` on; calls `check` with the time, the key and the cost of each request;
/// it says whether it made the request (at some moments a test cannot tell what is right).
///
/// Where the clock steps back, every key is there from the start: a limiter may evict an idle key for a new one,
/// and what it then must not admit at an earlier time is a bound (see the bug kinds), no equality with a twin that
/// forgets nothing.
pub fn play(
    clock: &Manual,
    steps: &[Step],
    start_ns: u64,
    interval_ns: u64,
    mut check: impl FnMut(u128, u64, u64) -> bool,
) {
    let mut now_ns = start_ns;
    let span_ns = |eighths: u64, ns: u64| interval_ns.saturating_mul(eighths) / 8 + ns;
    clock.set(Duration::from_nanos(now_ns));
    let steps_back = |step: &Step| matches!(step, Step::Back { .. });
    if steps.iter().any(steps_back) {
        for key in 0..KEYS {
            while !check(u128::from(now_ns), key, 1) {
                now_ns += 1;
                clock.set(Duration::from_nanos(now_ns));
            }
        }
    }
    for &step in steps {
        match step {
            Step::Advance { eighths, ns } => now_ns += span_ns(eighths, ns),
            Step::Back { eighths, ns } => now_ns = now_ns.saturating_sub(span_ns(eighths, ns)),
            Step::Check { key, cost } => {
                check(u128::from(now_ns), key, cost);
                continue;
            }
        }
        clock.set(Duration::from_nanos(now_ns));
    }
}

/// Times to start at: the clock's origin, and up to five years after it.
pub fn any_start_ns() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..5 * 31_557_600 * SECOND_NS]
}

/// `cases` histories, or as many as `PROPTEST_CASES` says: each finds what it finds, nothing is kept on disk.
pub fn config(cases: u32) -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig { cases: wanted.unwrap_or(cases), failure_persistence: None, ..ProptestConfig::default() }
}
