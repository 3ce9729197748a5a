//! How near keys came to their limits: the highest share that each of them used, and what the highest of those are.

use indicatif::HumanCount;
use serde::Serialize;

/// What the keys of one limit used of it, each at its peak, in whole percent, rounded down. Above 100 where refused requests
/// count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Headroom {
    /// The limit: `bucket`, `limit`, `burst limit`, `sustain limit`, or the name of a rule.
    pub of: String,
    /// How many keys.
    pub keys: u64,
    /// What half of the keys stay within: the median.
    pub p50_percent: u32,
    /// What 99 in 100 stay within.
    pub p99_percent: u32,
    /// What 999 in 1,000 stay within; of fewer than 1,000 keys, the highest.
    pub p999_percent: u32,
    /// The highest.
    pub peak_percent: u32,
    /// What a reader takes away.
    pub sentence: String,
    /// All of them, from the lowest.
    #[serde(skip)]
    pub peaks_percent: Vec<u32>,
}

impl Headroom {
    /// Of the clients of one limit, or of a part of it.
    pub fn of_clients(part: &str, peaks_percent: Vec<u32>) -> Self {
        Self::new(part, peaks_percent, |who, used| format!("{who} {used} of its {part}"), "client")
    }

    /// Of the keys of a rule.
    pub fn of_rule(rule: &str, peaks_percent: Vec<u32>) -> Self {
        Self::new(rule, peaks_percent, |who, used| format!("{rule}: {who} {used} of its limit"), "key")
    }

    fn new(of: &str, mut peaks_percent: Vec<u32>, said: impl Fn(&str, &str) -> String, key: &str) -> Self {
        peaks_percent.sort_unstable();
        let rank = |per_mille| at_rank(&peaks_percent, per_mille);
        // A percentile that falls on the last one is that one.
        let (who, used) = match peaks_percent.len() {
            0 | 1 => (format!("the only {key}"), rank(1_000)),
            2..100 => (format!("the busiest of {} {key}s", peaks_percent.len()), rank(1_000)),
            100..1_000 => (format!("the 99th percentile {key}"), rank(990)),
            _ => (format!("the 99.9th percentile {key}"), rank(999)),
        };
        let verb = if used > 100 { "asked for" } else { "used" };
        let used = format!("{verb} {} %", HumanCount(used.into()));
        Self {
            of: of.to_owned(),
            keys: peaks_percent.len() as u64,
            p50_percent: rank(500),
            p99_percent: rank(990),
            p999_percent: rank(999),
            peak_percent: rank(1_000),
            sentence: said(&who, &used),
            peaks_percent,
        }
    }
}

/// The smallest value that so many in 1,000 stay within (the nearest rank); 0 of none.
fn at_rank(sorted: &[u32], per_mille: usize) -> u32 {
    let rank = (sorted.len() * per_mille).div_ceil(1_000);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        // 1 to 2,000: the 999th of 1,000 is the 1,998th.
        let headroom = Headroom::of_clients("sustain limit", (1..=2_000).rev().collect());
        assert_eq!((headroom.p50_percent, headroom.p99_percent), (1_000, 1_980));
        assert_eq!((headroom.p999_percent, headroom.peak_percent), (1_998, 2_000));
        assert_eq!(headroom.sentence, "the 99.9th percentile client asked for 1,998 % of its sustain limit");
    }

    #[test]
    fn few_keys_have_no_high_percentile() {
        let said = |keys: usize| Headroom::of_rule("pages", vec![41; keys]).sentence;
        assert_eq!(said(1), "pages: the only key used 41 % of its limit");
        assert_eq!(said(99), "pages: the busiest of 99 keys used 41 % of its limit");
        assert_eq!(said(100), "pages: the 99th percentile key used 41 % of its limit");
        assert_eq!(said(1_000), "pages: the 99.9th percentile key used 41 % of its limit");
    }

    proptest! {
        #[test]
        fn so_many_stay_within(
            peaks in prop::collection::vec(0_u32..300, 1..400), per_mille in 1_usize..=1_000
        ) {
            let mut sorted = peaks;
            sorted.sort_unstable();
            let value = at_rank(&sorted, per_mille);
            let within = |value: u32| sorted.iter().filter(|peak| **peak <= value).count() * 1_000;
            prop_assert!(within(value) >= sorted.len() * per_mille);
            // No smaller value does.
            prop_assert!(value == 0 || within(value - 1) < sorted.len() * per_mille);
        }
    }
}
