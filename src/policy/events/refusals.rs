//! How often a rule refused, by limit and window: exact, and shared by no two threads that refuse at once on different cores.

use std::sync::OnceLock;

use crate::answer::Denied;
use crate::decision::{WindowName, Windows};
use crate::policy::shares::thread_number;
use crate::sync::{Ordering, Padded, Tally};

/// Sets of counts, by thread.
const SETS: usize = 8;
/// Counts of a set: of eight limits with two windows each.
const COUNTS: usize = 16;

/// The counts of one rule, for as long as the policy lives.
#[derive(Default)]
pub(crate) struct Refusals {
    /// Made at the first refusal: most rules of many never refuse.
    sets: OnceLock<Box<[Padded<[Tally; COUNTS]>; SETS]>>,
}

impl Refusals {
    /// A limit of this number refused.
    #[inline]
    pub(crate) fn add(&self, limit: u8, denied: &Denied) {
        let is_second = usize::from(denied.binding() == WindowName::Sustain);
        let sets = self.sets.get_or_init(Box::default);
        let count = &sets[thread_number() % SETS].0[(2 * usize::from(limit) + is_second) % COUNTS];
        // ORDERING: Relaxed: it is a count, and orders nothing.
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// What a limit has refused, for each of its windows.
    pub(crate) fn of(&self, limit: usize, windows: &Windows) -> Vec<(WindowName, u64)> {
        let count = |at: usize| {
            let each = self.sets.get().into_iter().flat_map(|sets| sets.iter());
            // ORDERING: Relaxed: as in `add`.
            each.map(|set| set.0[at % COUNTS].load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
        };
        windows.iter().enumerate().map(|(at, window)| (window.name, count(2 * limit + at))).collect()
    }
}
