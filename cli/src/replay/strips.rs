//! Requests by time as they are drawn: finer than a page of text has room for, by what became of them, a strip for each
//! rule.

use super::Outcome;
use super::timeline::Timeline;

/// About as many slots as a drawing has room for.
const SLOTS_MAX: usize = 240;

/// What became of a request, as drawings tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It passed.
    Passed,
    /// The only part of a limit refused it, or a rule.
    Refused,
    /// The burst window alone refused it.
    Burst,
    /// The sustain window alone.
    Sustain,
    /// Both windows.
    Both,
    /// There was no room for its client.
    NoRoom,
    /// A rule that only watches would have refused it.
    Watched,
}

impl Part {
    /// All of them; those after the first are refusals.
    pub const ALL: [Part; 7] =
        [Part::Passed, Part::Refused, Part::Burst, Part::Sustain, Part::Both, Part::NoRoom, Part::Watched];

    /// That of an outcome.
    pub fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Passed => Part::Passed,
            Outcome::Burst => Part::Burst,
            Outcome::Sustain => Part::Sustain,
            Outcome::Both => Part::Both,
            Outcome::Limit => Part::Refused,
            Outcome::Full => Part::NoRoom,
        }
    }
}

/// Counts of requests, in the order of [`Part::ALL`].
pub type Counts = [u64; Part::ALL.len()];

/// Requests by time, in one or more strips over one axis.
#[derive(Clone, Debug, Default)]
pub struct Strips {
    /// The axis; its own counts stay 0.
    pub axis: Timeline,
    /// The strips, from top to bottom.
    pub strips: Vec<Strip>,
}

/// The requests of one limit or rule.
#[derive(Clone, Debug)]
pub struct Strip {
    /// What stands above it; nothing where there is only one.
    pub title: String,
    /// What came in each slot.
    pub slots: Vec<Counts>,
}

impl Strips {
    /// Empty strips from the first to the last time in nanoseconds; without slots if there are none.
    pub fn spanning(span: Option<(u64, u64)>, titles: impl IntoIterator<Item = String>) -> Self {
        let axis =
            span.map_or_else(Timeline::default, |(first, last)| Timeline::spanning(first, last, SLOTS_MAX));
        let slots = vec![Counts::default(); axis.slots.len()];
        let strips = titles.into_iter().map(|title| Strip { title, slots: slots.clone() }).collect();
        Self { axis, strips }
    }

    /// One request of a strip; one outside the span is not drawn.
    pub fn add(&mut self, strip: usize, at_unix_ns: u64, part: Part) {
        if let Some(slot) = self.axis.slot_of(at_unix_ns) {
            self.strips[strip].slots[slot][part as usize] += 1;
        }
    }
}

impl Strip {
    /// All requests of it.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for slot in &self.slots {
            total.iter_mut().zip(slot).for_each(|(sum, count)| *sum += count);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stand_in_their_strip_and_slot() {
        const S: u64 = 1_000_000_000;
        let mut strips = Strips::spanning(Some((0, 239 * S)), ["a".to_owned(), "b".to_owned()]);
        assert_eq!((strips.axis.step_s, strips.strips[1].slots.len()), (1, 240));
        for (strip, second, part) in
            [(0, 0, Part::Passed), (1, 7, Part::Both), (1, 7, Part::Both), (1, 239, Part::Watched)]
        {
            strips.add(strip, second * S, part);
        }
        strips.add(0, 240 * S, Part::Passed);
        assert_eq!(strips.strips[0].total(), [1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(strips.strips[1].slots[7], [0, 0, 0, 0, 2, 0, 0]);
        assert_eq!(strips.strips[1].total(), [0, 0, 0, 0, 2, 0, 1]);
        assert!(Strips::spanning(None, []).strips.is_empty());
    }

    #[test]
    fn parts_stand_at_their_numbers() {
        assert!(Part::ALL.iter().enumerate().all(|(at, part)| *part as usize == at));
    }
}
