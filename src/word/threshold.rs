//! Whether a word uses so large a share of its limit, in a comparison or two: every admitted check of a policy that tells of
//! it asks.

use super::{Counts, Kind, Rule, Windows};
use crate::decision::WindowName;

/// What a word of one rule has to reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threshold {
    /// Of a bucket, how far ahead of now the arrival time stands at least, in units; of windows what the first one counts.
    first: u64,
    /// Of fixed windows, what the sustain window counts, where it stands in a word; more than any where there is none.
    sustain: u64,
    /// Of fixed windows, where the counts stand in a word.
    places: [u64; 2],
}

impl Threshold {
    fn one(first: u64) -> Self {
        Self { first, sustain: u64::MAX, places: [0; 2] }
    }
}

impl Rule {
    /// What uses so many percent of the limit, 1 to 100, of either window.
    pub(crate) fn threshold(&self, percent: u8) -> Threshold {
        let share = |limit: u64| {
            let used = (u128::from(limit) * u128::from(percent)).div_ceil(100);
            u64::try_from(used).unwrap_or(u64::MAX).max(1)
        };
        match &self.kind {
            // So many tokens are used when the one that completes them has begun to be.
            Kind::Bucket(bucket) => {
                Threshold::one((share(bucket.tokens(bucket.depth())) - 1) * bucket.interval() + 1)
            }
            Kind::Windows(Windows::Fixed(windowed)) => {
                let ([first, sustain], layout) = (windowed.limits(), windowed.layout());
                let sustain = Counts { time: 0, index: 0, sustain: share(sustain), burst: 0 };
                let sustain = if windowed.is_single() { u64::MAX } else { layout.pack(sustain) };
                Threshold { first: share(first), sustain, places: layout.places() }
            }
            Kind::Windows(Windows::Sliding(sliding)) => Threshold::one(share(sliding.limit())),
        }
    }

    /// The bucket, the only window, or the burst window.
    #[inline]
    pub(crate) fn first_window(&self) -> WindowName {
        match &self.kind {
            Kind::Bucket(_) => WindowName::Bucket,
            Kind::Windows(Windows::Fixed(windowed)) if windowed.is_single() => WindowName::Window,
            Kind::Windows(Windows::Fixed(_)) => WindowName::Burst,
            Kind::Windows(Windows::Sliding(_)) => WindowName::Sliding,
        }
    }

    /// Whether a word that was charged at this moment uses as much.
    #[inline]
    pub(crate) fn reaches(&self, threshold: &Threshold, word: u64, moment: u64) -> bool {
        match &self.kind {
            Kind::Bucket(_) => word.saturating_sub(moment) >= threshold.first,
            Kind::Windows(Windows::Fixed(_)) => {
                let [burst, sustain] = threshold.places;
                word & burst >= threshold.first || word & sustain >= threshold.sustain
            }
            Kind::Windows(Windows::Sliding(sliding)) => {
                let counts = sliding.layout().unpack(word);
                // What the window before weighs now is at most what it counted.
                counts.previous + counts.current >= threshold.first
                    && sliding.part(word, moment).used >= threshold.first
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::limit::{Alignment, Limit, Rate, Window};
    use crate::word::{Outcome, VALUE_BITS};

    fn limits() -> impl Strategy<Value = Limit> {
        let window = |limit, seconds| Window::new(limit, Duration::from_secs(seconds));
        let alignment = prop_oneof![Just(Alignment::Clock), Just(Alignment::PerKey)];
        prop_oneof![
            (1_u64..1_000, 1_u64..300).prop_map(|(rate, burst)| Limit::bucket(Rate::per_minute(rate), burst)),
            (1_u64..300, any::<bool>())
                .prop_map(move |(limit, counts)| Limit::window(window(limit, 60)).count_refused(counts)),
            (1_u64..300, alignment).prop_map(move |(limit, alignment)| {
                Limit::sliding_window(window(limit, 60)).align(alignment)
            }),
            (1_u64..60, 60_u64..300, any::<bool>()).prop_map(move |(burst, sustain, from_first)| {
                let alignment = if from_first { Alignment::FirstRequest } else { Alignment::Clock };
                Limit::burst_sustain(window(burst, 15), window(sustain, 300)).align(alignment)
            }),
        ]
    }

    proptest! {
        /// The comparison says what the division says that people are told.
        #[test]
        fn a_word_reaches_a_share_when_so_many_percent_are_used(
            limit in limits(),
            percent in 1_u8..=100,
            checks in prop::collection::vec((0_u64..20_000_000_000, 1_u64..40), 1..60),
        ) {
            let rule = Rule::narrow(&limit, VALUE_BITS).unwrap();
            let threshold = rule.threshold(percent);
            let mut ns = 1_000_000_000_000;
            let mut word = 0;
            for (pause_ns, cost) in checks {
                ns += pause_ns;
                let moment = rule.time().units(ns);
                let decided = rule.decide(word, moment, cost);
                word = decided.next;
                if decided.outcome == Outcome::Pass {
                    let used = |part: &super::super::Part| u128::from(part.used) * 100 >= u128::from(percent) * u128::from(part.limit);
                    let is_past = rule.parts(word, moment).iter().any(used);
                    prop_assert_eq!(rule.reaches(&threshold, word, moment), is_past, "{:?} {}", limit, percent);
                }
            }
        }
    }

    #[test]
    fn four_of_five_tokens_are_80_percent() {
        let rule = Rule::narrow(&Limit::bucket(Rate::per_second(1), 5), VALUE_BITS).unwrap();
        let threshold = rule.threshold(80);
        let now = rule.time().units(1_000_000_000_000);
        let mut word = 0;
        let reached = [(); 5].map(|()| {
            word = rule.decide(word, now, 1).next;
            rule.reaches(&threshold, word, now)
        });
        assert_eq!(reached, [false, false, false, true, true]);
    }
}
