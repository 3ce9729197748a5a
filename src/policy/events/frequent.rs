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

/// Ids of a set. They and their counts fill a line of the cache: counting an id that is held touches no other.
const WAYS: usize = 4;

/// Counts by id, each beside a value that tells what it counts; ids are hashes that nobody can choose, and not 0.
#[derive(Debug)]
pub(super) struct Frequent<V> {
    /// A power of two of them.
    sets: Box<[Set<V>]>,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Set<V> {
    /// 0 where there is none, and a count of 0 then.
    ids: [u64; WAYS],
    counts: [u64; WAYS],
    values: [V; WAYS],
    taken_off: u64,
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

impl<V: Copy + Default> Frequent<V> {
    /// Room for so many ids or up to twice as many. All of its memory is taken here.
    pub(super) fn new(ids: usize) -> Self {
        let empty = Set { ids: [0; WAYS], counts: [0; WAYS], values: [V::default(); WAYS], taken_off: 0 };
        Self { sets: vec![empty; ids.div_ceil(WAYS).next_power_of_two()].into_boxed_slice() }
    }

    #[inline]
    fn set_mut(&mut self, id: u64) -> &mut Set<V> {
        let at = self.place(id);
        &mut self.sets[at]
    }

    #[inline]
    fn place(&self, id: u64) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "the low bits are all that is wanted")]
        let low = id as usize;
        low & (self.sets.len() - 1)
    }

    /// Counts an id. A weight of 0 has it held until another needs its place.
    #[inline]
    pub(super) fn add(&mut self, id: u64, weight: u64, value: V) -> Added {
        let set = self.set_mut(id);
        match set.ids.iter().position(|&held| held == id) {
            Some(at) => {
                let before = set.counts[at];
                set.counts[at] = before.saturating_add(weight);
                Added::Before(before)
            }
            None => set.insert(id, weight, value),
        }
    }

    /// Counts all that another one of as many sets has counted, and leaves it empty; `each` is given its ids and counts.
    pub(super) fn merge(&mut self, other: &mut Self, mut each: impl FnMut(u64, u64)) {
        debug_assert_eq!(self.sets.len(), other.sets.len());
        for (set, theirs) in self.sets.iter_mut().zip(&mut other.sets) {
            set.taken_off = set.taken_off.saturating_add(std::mem::take(&mut theirs.taken_off));
            for at in 0..WAYS {
                let (id, count) = (theirs.ids[at], theirs.counts[at]);
                if count > 0 {
                    each(id, count);
                    match set.ids.iter().position(|&held| held == id) {
                        Some(at) => set.counts[at] = set.counts[at].saturating_add(count),
                        None => _ = set.insert(id, count, theirs.values[at]),
                    }
                }
            }
            (theirs.ids, theirs.counts) = ([0; WAYS], [0; WAYS]);
        }
    }

    /// Halves all counts.
    pub(super) fn halve(&mut self) {
        for set in &mut self.sets {
            if set.ids == [0; WAYS] && set.taken_off == 0 {
                continue;
            }
            set.counts.iter_mut().for_each(|count| *count /= 2);
            set.forget_the_uncounted();
            // Rounded up, after a half for the counts that were rounded down.
            set.taken_off = set.taken_off.saturating_add(1).div_ceil(2);
        }
    }

    /// Whether an id is held.
    pub(super) fn holds(&self, id: u64) -> bool {
        self.sets[self.place(id)].ids.contains(&id)
    }

    /// All ids that were counted, with their counts, what those may be too low by, and their values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64, u64, V)> {
        self.sets.iter().flat_map(|set| {
            let all = (0..WAYS).map(|at| (set.ids[at], set.counts[at], set.taken_off, set.values[at]));
            all.filter(|&(_, count, _, _)| count > 0)
        })
    }
}

impl<V: Copy> Set<V> {
    #[inline(never)]
    fn insert(&mut self, id: u64, weight: u64, value: V) -> Added {
        let least = self.counts.iter().copied().fold(u64::MAX, u64::min);
        if least > 0 {
            let off = least.min(weight);
            self.counts.iter_mut().for_each(|count| *count -= off);
            self.taken_off = self.taken_off.saturating_add(off);
            self.forget_the_uncounted();
            return if weight > off { self.put(id, weight - off, value) } else { Added::NoRoom };
        }
        self.put(id, weight, value)
    }

    /// Takes an empty place, or that of an id that counts nothing.
    fn put(&mut self, id: u64, weight: u64, value: V) -> Added {
        let empty = self.ids.iter().position(|&held| held == 0);
        let Some(at) = empty.or_else(|| self.counts.iter().position(|&count| count == 0)) else {
            return Added::NoRoom;
        };
        (self.ids[at], self.counts[at], self.values[at]) = (id, weight, value);
        Added::New
    }

    fn forget_the_uncounted(&mut self) {
        for at in 0..WAYS {
            if self.counts[at] == 0 {
                self.ids[at] = 0;
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
            let (mut sketch, mut other) = (Frequent::new(ids), Frequent::<()>::new(ids));
            let mut truth = BTreeMap::<u64, f64>::new();
            let (mut all, mut is_halved) = (BTreeMap::<usize, u64>::new(), false);
            for (id, weight, step) in steps {
                match step {
                    0 => {
                        sketch.merge(&mut other, |_, _| ());
                        sketch.halve();
                        truth.values_mut().for_each(|count| *count /= 2.0);
                        is_halved = true;
                    }
                    1 => sketch.merge(&mut other, |_, _| ()),
                    step => {
                        if step % 2 == 0 { &mut sketch } else { &mut other }.add(id, weight, ());
                        *truth.entry(id).or_default() += weight as f64;
                        *all.entry(sketch.place(id)).or_default() += weight;
                    }
                }
            }
            sketch.merge(&mut other, |_, _| ());
            let counted: BTreeMap<u64, u64> = sketch.iter().map(|(id, count, _, ())| (id, count)).collect();
            for (id, truth) in truth {
                let count = counted.get(&id).copied().unwrap_or(0);
                let most = (count + sketch.sets[sketch.place(id)].taken_off) as f64;
                prop_assert!(count as f64 <= truth && truth <= most, "{count} {truth} {most}");
            }
            for (set, all) in all {
                let taken_off = sketch.sets[set].taken_off;
                prop_assert!(is_halved || taken_off * 5 <= all, "{taken_off} of {all}");
            }
        }
    }

    #[test]
    fn four_places_and_a_fifth_id() {
        let mut sketch = Frequent::new(4);
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
        let counted = [(1, 7), (2, 1), (3, 2), (10, 6)];
        assert_eq!(counts, counted.map(|(id, count)| (id, count, 2, id)));
    }

    #[test]
    fn who_counts_nothing_makes_room_first() {
        let mut sketch = Frequent::new(4);
        (1..=4).for_each(|id| _ = sketch.add(id, 0, ()));
        assert_eq!((sketch.add(1, 0, ()), sketch.holds(1)), (Added::Before(0), true));
        assert_eq!(
            (1..=4).map(|id| sketch.add(id + 100, 1, ())).filter(|&added| added == Added::New).count(),
            4
        );
        assert_eq!((sketch.add(200, 0, ()), sketch.holds(200)), (Added::NoRoom, false));
        let counted: Vec<_> = sketch.iter().map(|(_, count, taken_off, ())| (count, taken_off)).collect();
        assert_eq!(counted, [(1, 0); 4]);
    }

    #[test]
    fn counts_do_not_wrap() {
        let mut sketch = Frequent::new(4);
        (1..=4).for_each(|id| _ = sketch.add(id, u64::MAX, ()));
        sketch.add(1, 5, ());
        assert_eq!(sketch.add(9, u64::MAX, ()), Added::NoRoom);
        assert_eq!(sketch.add(10, 7, ()), Added::New);
        assert_eq!(sketch.iter().collect::<Vec<_>>(), [(10, 7, u64::MAX, ())]);
    }

    #[test]
    fn a_count_is_on_one_line() {
        assert_eq!((size_of::<Set<u64>>(), align_of::<Set<u64>>()), (128, 64));
        assert_eq!(std::mem::offset_of!(Set<u64>, values), 64);
    }
}
