//! Who comes most often, in bounded memory: the sketch of Misra and Gries in each of many small sets. (A space-saving sketch can
//! be made of one of Misra and Gries, and the other way round.)
//!
//! An id falls on one set, which holds four. Each id that is held has a count. Where another one comes and there is no room, as
//! much is taken off each of the four and off the newcomer as the least of them has: one of them, at least, is then gone.
//!
//! # Bound
//!
//! A count is never too high. It is too low by what was taken off in its set since it came: at most by `taken_off`, the sum over
//! all times, of that set. What is taken off is taken off five at a time, so five times `taken_off` is at most all that
//! ever fell on the set; and sets are chosen by a hash, so that of many ids each set gets its share. Two sketches of as many sets merge by adding
//! the counts of one to the other, set by set, and both `taken_off`.

use crate::sync::{Ordering, Tally};

/// Ids of a set. They and their counts fill a line of the cache: counting an id that is held touches no other.
const WAYS: usize = 4;

/// Counts by id, each beside a number that tells what it counts; ids are hashes that nobody can choose, and not 0. One thread at a
/// time may use it; which one, and that it sees what the one before it did, whoever holds it has to see to. Words are atomic for
/// want of another way to change what is shared.
#[derive(Debug)]
pub(super) struct Frequent {
    /// A power of two of them.
    sets: Box<[Set]>,
}

#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Set {
    /// 0 where there is none, and a count of 0 then.
    ids: [Word; WAYS],
    counts: [Word; WAYS],
    values: [Word; WAYS],
    taken_off: Word,
}

/// A word of one thread at a time.
#[derive(Debug, Default)]
struct Word(Tally);

impl Word {
    #[inline(always)]
    fn get(&self) -> u64 {
        // ORDERING: Relaxed: the thread that wrote it last is this one, or one that this one comes after.
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn set(&self, value: u64) {
        // ORDERING: Relaxed: as in `get`.
        self.0.store(value, Ordering::Relaxed);
    }

    fn take(&self) -> u64 {
        let value = self.get();
        self.set(0);
        value
    }

    fn add(&self, more: u64) {
        self.set(self.get().saturating_add(more));
    }
}

/// An id that was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Counted {
    pub(super) count: u64,
    pub(super) id: u64,
    /// What the count may be too low by.
    pub(super) taken_off: u64,
    pub(super) value: u64,
}

/// What became of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It was not held, and is.
    New,
    /// It was held, with this count.
    Before(u64),
    /// It was not held, and is not: nothing is left of its weight.
    NoRoom,
}

impl Frequent {
    /// Room for so many ids or up to twice as many. All of its memory is taken here.
    pub(super) fn new(ids: usize) -> Self {
        let sets = ids.div_ceil(WAYS).next_power_of_two();
        Self { sets: (0..sets).map(|_| Set::default()).collect() }
    }

    #[inline(always)]
    fn set(&self, id: u64) -> &Set {
        &self.sets[self.number(id)]
    }

    /// The number of the set that an id falls on.
    #[inline(always)]
    fn number(&self, id: u64) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "the low bits are all that is wanted")]
        let low = id as usize;
        low & (self.sets.len() - 1)
    }

    /// Counts an id. A weight of 0 has it held until another needs its place.
    #[inline(always)]
    pub(super) fn add(&self, id: u64, weight: u64, value: u64) -> Added {
        self.set(id).add(id, weight, value)
    }

    /// Counts all that another one of as many sets has counted, and leaves it without; `each` is given its ids and counts, and says
    /// whether it goes on holding an id.
    pub(super) fn merge(&self, other: &Self, mut each: impl FnMut(u64, u64) -> bool) {
        debug_assert_eq!(self.sets.len(), other.sets.len());
        for (set, theirs) in self.sets.iter().zip(&other.sets) {
            set.taken_off.add(theirs.taken_off.take());
            for at in 0..WAYS {
                let (id, count) = (theirs.ids[at].get(), theirs.counts[at].take());
                if count > 0 {
                    set.add(id, count, theirs.values[at].get());
                }
                if id != 0 && !each(id, count) {
                    theirs.ids[at].set(0);
                }
            }
        }
    }

    /// Halves all counts.
    pub(super) fn halve(&self) {
        for set in &self.sets {
            if set.taken_off.get() == 0 && set.ids.iter().all(|id| id.get() == 0) {
                continue;
            }
            set.counts.iter().for_each(|count| count.set(count.get() / 2));
            set.forget_the_uncounted();
            // Rounded up, after a half for the counts that were rounded down.
            set.taken_off.set(set.taken_off.get().saturating_add(1).div_ceil(2));
        }
    }

    /// Holds an id no longer that counts nothing.
    pub(super) fn forget(&self, id: u64) {
        let set = self.set(id);
        if let Some(at) = set.position(id).filter(|&at| set.counts[at].get() == 0) {
            set.ids[at].set(0);
        }
    }

    /// Whether an id is held.
    pub(super) fn holds(&self, id: u64) -> bool {
        self.set(id).position(id).is_some()
    }

    /// All ids that were counted.
    pub(super) fn iter(&self) -> impl Iterator<Item = Counted> {
        self.sets.iter().flat_map(|set| {
            let all = (0..WAYS).map(|at| Counted {
                count: set.counts[at].get(),
                id: set.ids[at].get(),
                taken_off: set.taken_off.get(),
                value: set.values[at].get(),
            });
            all.filter(|counted| counted.count > 0)
        })
    }
}

impl Set {
    #[inline(always)]
    fn position(&self, id: u64) -> Option<usize> {
        self.ids.iter().position(|held| held.get() == id)
    }

    #[inline(always)]
    fn add(&self, id: u64, weight: u64, value: u64) -> Added {
        let Some(at) = self.position(id) else { return self.insert(id, weight, value) };
        let before = self.counts[at].get();
        self.counts[at].set(before.saturating_add(weight));
        Added::Before(before)
    }

    #[inline(never)]
    fn insert(&self, id: u64, weight: u64, value: u64) -> Added {
        let least = self.counts.iter().map(Word::get).fold(u64::MAX, u64::min);
        if least > 0 {
            let off = least.min(weight);
            self.counts.iter().for_each(|count| count.set(count.get() - off));
            self.taken_off.add(off);
            self.forget_the_uncounted();
            return if weight > off { self.put(id, weight - off, value) } else { Added::NoRoom };
        }
        self.put(id, weight, value)
    }

    /// Takes an empty place, or that of an id that counts nothing.
    fn put(&self, id: u64, weight: u64, value: u64) -> Added {
        let uncounted = || self.counts.iter().position(|count| count.get() == 0);
        let Some(at) = self.position(0).or_else(uncounted) else { return Added::NoRoom };
        self.ids[at].set(id);
        self.counts[at].set(weight);
        self.values[at].set(value);
        Added::New
    }

    fn forget_the_uncounted(&self) {
        for (id, count) in self.ids.iter().zip(&self.counts) {
            if count.get() == 0 {
                id.set(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Counts are too low by `taken_off` at most, and never too high, whatever is halved and merged in between; five times
        /// what was taken off is no more than what came.
        #[test]
        fn a_count_is_within_its_bound(
            ids in prop_oneof![Just(4_usize), Just(32)],
            steps in prop::collection::vec((1_u64..80, 0_u64..50, 0_u8..60), 1..600),
        ) {
            let (sketch, other) = (Frequent::new(ids), Frequent::new(ids));
            let mut truth = BTreeMap::<u64, f64>::new();
            let (mut all, mut is_halved) = (BTreeMap::<usize, u64>::new(), false);
            for (id, weight, step) in steps {
                match step {
                    0 => {
                        sketch.merge(&other, |id, _| id % 3 == 0);
                        sketch.halve();
                        truth.values_mut().for_each(|count| *count /= 2.0);
                        is_halved = true;
                    }
                    1 => sketch.merge(&other, |id, _| id % 3 == 0),
                    step => {
                        if step % 2 == 0 { &sketch } else { &other }.add(id, weight, 0);
                        *truth.entry(id).or_default() += weight as f64;
                        *all.entry(sketch.number(id)).or_default() += weight;
                    }
                }
            }
            sketch.merge(&other, |_, _| false);
            let counted: BTreeMap<u64, u64> = sketch.iter().map(|counted| (counted.id, counted.count)).collect();
            for (id, truth) in truth {
                let count = counted.get(&id).copied().unwrap_or(0);
                let most = (count + sketch.set(id).taken_off.get()) as f64;
                prop_assert!(count as f64 <= truth && truth <= most, "{count} {truth} {most}");
            }
            for (set, all) in all {
                let taken_off = sketch.sets[set].taken_off.get();
                prop_assert!(is_halved || taken_off * 5 <= all, "{taken_off} of {all}");
            }
        }
    }

    #[test]
    fn four_places_and_a_fifth_id() {
        let sketch = Frequent::new(4);
        for (id, weight) in [(1, 9), (2, 2), (3, 4), (4, 2)] {
            assert_eq!(sketch.add(id, weight, id), Added::New);
        }
        assert_eq!(sketch.add(9, 1, 9), Added::NoRoom);
        assert_eq!(sketch.add(2, 1, 2), Added::Before(1));
        // One is the least: it is taken off all, and 4 has nothing left.
        assert_eq!(sketch.add(10, 6, 10), Added::New);
        assert_eq!(sketch.add(10, 1, 10), Added::Before(5));
        let mut counts: Vec<_> = sketch.iter().collect();
        counts.sort_unstable();
        let counted = [(1, 2), (2, 3), (6, 10), (7, 1)];
        assert_eq!(counts, counted.map(|(count, id)| Counted { count, id, taken_off: 2, value: id }));
    }

    #[test]
    fn who_counts_nothing_makes_room_first() {
        let sketch = Frequent::new(4);
        (1..=4).for_each(|id| _ = sketch.add(id, 0, 0));
        assert_eq!((sketch.add(1, 0, 0), sketch.holds(1)), (Added::Before(0), true));
        assert_eq!(
            (1..=4).map(|id| sketch.add(id + 100, 1, 0)).filter(|&added| added == Added::New).count(),
            4
        );
        assert_eq!((sketch.add(200, 0, 0), sketch.holds(200)), (Added::NoRoom, false));
        let counted: Vec<_> = sketch.iter().map(|counted| (counted.count, counted.taken_off)).collect();
        assert_eq!(counted, [(1, 0); 4]);
    }

    #[test]
    fn counts_do_not_wrap() {
        let sketch = Frequent::new(4);
        (1..=4).for_each(|id| _ = sketch.add(id, u64::MAX, 0));
        sketch.add(1, 5, 0);
        assert_eq!(sketch.add(9, u64::MAX, 0), Added::NoRoom);
        assert_eq!(sketch.add(10, 7, 0), Added::New);
        assert_eq!(
            sketch.iter().collect::<Vec<_>>(),
            [Counted { count: 7, id: 10, taken_off: u64::MAX, value: 0 }]
        );
    }

    #[test]
    fn a_count_is_on_one_line() {
        assert_eq!((size_of::<Set>(), align_of::<Set>()), (128, 64));
        assert_eq!(std::mem::offset_of!(Set, values), 64);
    }
}
