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
        Timeline { start_unix_s: first_s - first_s % step_s, step_s, slots: vec![Slot::default(); count] }
    }

    /// The slot of a time; `None` outside the span.
    pub fn slot_mut(&mut self, at_unix_ns: u64) -> Option<&mut Slot> {
        let since_s = (at_unix_ns / 1_000_000_000).checked_sub(self.start_unix_s)?;
        self.slots.get_mut(usize::try_from(since_s / self.step_s).ok()?)
    }
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

    proptest! {
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
