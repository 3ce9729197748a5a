//! Counts that many threads add to, exact, and for most of them without an instruction that others notice.
//!
//! The first threads to count have a set of counts each, which nobody else writes: they load and store. All later ones share a few
//! sets, and add.

use crate::policy::shares::thread_number;
use crate::sync::{Ordering, Padded, Tally};

/// Threads with a set of their own, by number from 1; the set of number 0 is nobody's.
const OWN: usize = 28;
/// Sets of all others.
const SHARED: usize = 4;

/// `N` counts.
pub(super) struct Tallies<const N: usize> {
    sets: Box<[Padded<[Tally; N]>; OWN + SHARED]>,
}

impl<const N: usize> Tallies<N> {
    pub(super) fn new() -> Self {
        let set = |_| Padded(std::array::from_fn(|_| Tally::new(0)));
        Self { sets: Box::new(std::array::from_fn(set)) }
    }

    /// Counts one. A count that there is not is none.
    #[inline]
    pub(super) fn add(&self, count: usize) {
        let number = thread_number();
        // ORDERING: Relaxed, all of them: they are counts, and order nothing.
        if number < OWN {
            let Some(own) = self.sets[number].0.get(count) else { return };
            own.store(own.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        } else if let Some(shared) = self.sets[OWN + number % SHARED].0.get(count) {
            shared.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was counted, by all threads.
    pub(super) fn of(&self, count: usize) -> u64 {
        let each = self.sets.iter().filter_map(|set| set.0.get(count));
        // ORDERING: Relaxed: as in `add`.
        each.map(|count| count.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_sets_miss_nothing() {
        let tallies = Tallies::<3>::new();
        for _ in 0..4 {
            std::thread::scope(|scope| {
                for _ in 0..20 {
                    scope.spawn(|| (0..2_000).for_each(|at| tallies.add(at % 2)));
                }
            });
        }
        assert_eq!([0, 1, 2].map(|count| tallies.of(count)), [80_000, 80_000, 0]);
        tallies.add(3);
    }
}
