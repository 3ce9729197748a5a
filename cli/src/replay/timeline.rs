//! Requests counted by time, in slots of a length that people use.

use serde::Serialize;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Lengths of a slot, in seconds; past the last they double. Those below a day divide it.
#[rustfmt::skip]
const STEPS_S: [u64; 27] = [
    1, 2, 3, 5, 10, 15, 20, 30,
    MINUTE, 2 * MINUTE, 3 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 20 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR, 6 * HOUR, 8 * HOUR, 12 * HOUR,
    DAY, 2 * DAY, 7 * DAY, 14 * DAY,
];

/// Requests by time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// When the first slot begins, in seconds since the Unix epoch: a multiple of the step.
    pub start_unix_s: u64,
    /// How long a slot lasts, in seconds.
    pub step_s: u64,
    /// The slots, one after the other.
    pub slots: Vec<Slot>,
    /// Requests before the first slot or after the last: strays, far from all others.
    pub outside: u64,
}

/// The requests of one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// How many passed.
    pub passed: u64,
    /// How many were refused.
    pub refused: u64,
}

impl Timeline {
    /// Empty slots from the first to the last time, at most `slots_max` (at least 2) of them.
    pub fn spanning(first_unix_ns: u64, last_unix_ns: u64, slots_max: usize) -> Self {
        let (first_s, last_s) = (first_unix_ns / 1_000_000_000, last_unix_ns / 1_000_000_000);
        let slots_max = (slots_max as u64).max(2);
        let doubled = (1..36).map(|doublings| (14 * DAY) << doublings);
        let needed = |step_s: u64| last_s / step_s - first_s / step_s + 1;
        let step_s = STEPS_S
            .into_iter()
            .chain(doubled)
            .find(|step_s| needed(*step_s) <= slots_max)
            .unwrap_or(u64::MAX);
        let count = usize::try_from(needed(step_s)).unwrap_or(usize::MAX);
        let slots = vec![Slot::default(); count];
        Timeline { start_unix_s: first_s - first_s % step_s, step_s, slots, outside: 0 }
    }

    /// The number of a time's slot; `None` outside the span.
    pub fn slot_of(&self, at_unix_ns: u64) -> Option<usize> {
        let since_s = (at_unix_ns / 1_000_000_000).checked_sub(self.start_unix_s)?;
        usize::try_from(since_s / self.step_s).ok().filter(|slot| *slot < self.slots.len())
    }

    /// The slot of a time; `None` outside the span.
    pub fn slot_mut(&mut self, at_unix_ns: u64) -> Option<&mut Slot> {
        let slot = self.slot_of(at_unix_ns)?;
        self.slots.get_mut(slot)
    }
}

/// How few of the requests may be strays, at either end: one in so many, or a single one.
const STRAYS_ONE_IN: usize = 1_000;

/// In fewer requests than this, a single one is no stray.
const STRAYS_FROM: usize = 20;

/// How much longer strays must make the time to be left out.
const STRAYS_STRETCH: u64 = 10;

/// What is nearer than this to the others is no stray, however close together they are.
const STRAYS_BEYOND_NS: u64 = MINUTE * 1_000_000_000;

/// The first and the last of the times, in nanoseconds, that a timeline is worth drawing for; `None` without any. One line
/// of a clock that was never set (1970) would press all others into a single slot.
pub fn span_without_strays<T>(times: &[T], at: impl Fn(&T) -> u64) -> Option<(u64, u64)> {
    let (first, last) = (at(times.first()?), at(times.last()?));
    if times.len() < STRAYS_FROM {
        return Some((first, last));
    }
    let strays = (times.len() / STRAYS_ONE_IN).max(1);
    let (low, high) = (at(&times[strays]), at(&times[times.len() - 1 - strays]));
    let most = (high - low).max(STRAYS_BEYOND_NS);
    if (last - first) / STRAYS_STRETCH <= most {
        return Some((first, last));
    }
    // What is near to the others is one of them: only the far ones are left out.
    let from = times.partition_point(|time| at(time) < low.saturating_sub(most));
    let to = times.partition_point(|time| at(time) <= high.saturating_add(most));
    Some((at(&times[from]), at(&times[to - 1])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NS: u64 = 1_000_000_000;

    #[test]
    fn steps_are_round_and_slots_begin_at_round_times() {
        for (span_s, step_s) in [
            (0, 1),
            (59, 1),
            (60, 2),
            (7_199, 2 * MINUTE),
            (DAY - 1, 30 * MINUTE),
            (4 * DAY, 2 * HOUR),
            (365 * DAY, 7 * DAY),
            (20_000 * DAY, 448 * DAY),
        ] {
            let first_s = 1_772_442_000; // an hour on the dot
            let timeline = Timeline::spanning(first_s * NS, (first_s + span_s) * NS, 60);
            assert_eq!(timeline.step_s, step_s, "{span_s}");
            assert_eq!(timeline.start_unix_s % step_s, 0);
        }
    }

    #[test]
    fn strays_do_not_stretch_the_span() {
        let span = |seconds: &[u64]| {
            let span = span_without_strays(seconds, |second| second * NS);
            span.map(|(first, last)| (first / NS, last / NS))
        };
        let hour: Vec<u64> = (1_000_000..1_003_600).collect();
        assert_eq!(span(&[]), None);
        assert_eq!(span(&[7]), Some((7, 7)));
        assert_eq!(span(&hour), Some((1_000_000, 1_003_599)));
        let with = |before: &[u64], after: &[u64]| span(&[before, &hour, after].concat());
        // Far ones go, at either end; a near one stays, and so do strays that are too many.
        assert_eq!(with(&[0], &[]), Some((1_000_000, 1_003_599)));
        assert_eq!(with(&[0, 999_000], &[1_004_000, u64::MAX / NS]), Some((999_000, 1_004_000)));
        assert_eq!(with(&[], &[1_020_000]), Some((1_000_000, 1_020_000)));
        assert_eq!(with(&[0; 9], &[]), Some((0, 1_003_599)));
        // Few requests have no strays; many at one time may have one, but not one a few minutes off.
        assert_eq!(span(&[0, 1_000_000, 1_000_001]), Some((0, 1_000_001)));
        let at_once = [5_000_u64; 30];
        assert_eq!(span(&[&[0], at_once.as_slice()].concat()), Some((5_000, 5_000)));
        assert_eq!(span(&[&[4_500], at_once.as_slice()].concat()), Some((4_500, 5_000)));
    }

    proptest! {
        #[test]
        fn few_are_outside(mut times in prop::collection::vec(any::<u64>(), 1..200)) {
            times.sort_unstable();
            let (first, last) = span_without_strays(&times, |time| *time).unwrap();
            let outside = times.iter().filter(|time| !(first..=last).contains(*time)).count();
            prop_assert!(first <= last && outside <= 2);
        }

        #[test]
        fn every_time_of_the_span_has_a_slot(a in any::<u64>(), b in any::<u64>(), max in 2_usize..300) {
            let (first, last) = (a.min(b), a.max(b));
            let mut timeline = Timeline::spanning(first, last, max);
            prop_assert!(timeline.slots.len() <= max);
            prop_assert!(timeline.slot_mut(first).is_some());
            prop_assert!(timeline.slot_mut(last).is_some());
            prop_assert!(timeline.slot_mut(first / 2 + last / 2).is_some());
        }
    }
}
