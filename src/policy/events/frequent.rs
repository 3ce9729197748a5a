//! Who comes most often, in bounded memory: the sketch of Misra and Gries, which a space-saving sketch of half as many places
//! can be made of and the other way round.
//!
//! Each id that is held has a count. When there is no room for another one, the median of all counts is taken off each, and
//! those go that have nothing left: half of them at least. So nothing is sorted or sifted when an id comes, and a purge is
//! paid for by the ids that came since the last one.
//!
//! # Bound
//!
//! What a count is too low by is what was taken off at purges since its id was first counted: never more than `taken_off`, the sum of
//! all. A purge takes as much off half of the places at least, so `places / 2 · taken_off` is at most all that was ever added.
//! Two sketches merge by adding their counts and their `taken_off`, and the bound stays.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Counts by id, each beside a value that tells what it counts; ids are hashes that nobody can choose.
#[derive(Debug)]
pub(super) struct Frequent<V> {
    counts: HashMap<u64, (u64, V), BuildHasherDefault<AsItIs>>,
    places: usize,
    taken_off: u64,
    /// What a median is found in.
    scratch: Vec<u64>,
}

impl<V: Copy> Frequent<V> {
    /// Room for so many ids, 2 at least. All of its memory is taken here.
    pub(super) fn new(places: usize) -> Self {
        let places = places.max(2);
        // A map that is never more than half full tidies up where it stands, and does not grow.
        let counts = HashMap::with_capacity_and_hasher(2 * places, BuildHasherDefault::default());
        Self { counts, places, taken_off: 0, scratch: Vec::with_capacity(places) }
    }

    /// Counts an id; its count before, if it was held. A weight of 0 has it held, until the next purge.
    #[inline]
    pub(super) fn add(&mut self, id: u64, weight: u64, value: V) -> Option<u64> {
        if let Some((count, _)) = self.counts.get_mut(&id) {
            let before = *count;
            *count = before.saturating_add(weight);
            return Some(before);
        }
        self.insert(id, weight, value);
        None
    }

    #[inline(never)]
    fn insert(&mut self, id: u64, weight: u64, value: V) {
        if self.counts.len() == self.places {
            self.purge();
        }
        self.counts.insert(id, (weight, value));
    }

    fn purge(&mut self) {
        self.scratch.clear();
        self.scratch.extend(self.counts.values().map(|(count, _)| count));
        let middle = self.scratch.len() / 2;
        let median = *self.scratch.select_nth_unstable(middle).1;
        self.taken_off = self.taken_off.saturating_add(median);
        self.counts.retain(|_, (count, _)| {
            *count = count.saturating_sub(median);
            *count > 0
        });
    }

    /// Counts all that another one has counted, and leaves it empty; `each` is given its ids and counts.
    pub(super) fn merge(&mut self, other: &mut Self, mut each: impl FnMut(u64, u64)) {
        for (id, (count, value)) in other.counts.drain().filter(|(_, (count, _))| *count > 0) {
            each(id, count);
            self.add(id, count, value);
        }
        self.taken_off = self.taken_off.saturating_add(std::mem::take(&mut other.taken_off));
    }

    /// Halves all counts.
    pub(super) fn halve(&mut self) {
        if self.counts.is_empty() && self.taken_off == 0 {
            return;
        }
        self.counts.retain(|_, (count, _)| {
            *count /= 2;
            *count > 0
        });
        // Rounded up, after a half for the counts that were rounded down.
        self.taken_off = self.taken_off.saturating_add(1).div_ceil(2);
    }

    /// Whether an id is held.
    pub(super) fn holds(&self, id: u64) -> bool {
        self.counts.contains_key(&id)
    }

    /// All ids that are held, with their counts and values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64, V)> {
        self.counts.iter().map(|(&id, &(count, value))| (id, count, value))
    }

    /// What each count may be too low by.
    pub(super) fn taken_off(&self) -> u64 {
        self.taken_off
    }
}

/// Ids are hashes already.
#[derive(Debug, Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Ids are written whole; nothing else is.
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// An id as a hash would have it: the map wants all of its bits to differ.
    fn id(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    proptest! {
        /// Counts are too low by `taken_off` at most, and never too high, whatever is halved and merged in between.
        #[test]
        fn a_count_is_within_its_bound(
            places in 2_usize..12,
            steps in prop::collection::vec((0_u64..30, 0_u64..50, 0_u8..40), 1..400),
        ) {
            let (mut sketch, mut other) = (Frequent::new(places), Frequent::<()>::new(places));
            let mut truth = BTreeMap::<u64, f64>::new();
            for (number, weight, step) in steps {
                match step {
                    0 => {
                        sketch.merge(&mut other, |_, _| ());
                        sketch.halve();
                        truth.values_mut().for_each(|count| *count /= 2.0);
                    }
                    1 => sketch.merge(&mut other, |_, _| ()),
                    step => {
                        if step % 2 == 0 { &mut sketch } else { &mut other }.add(id(number), weight, ());
                        *truth.entry(id(number)).or_default() += weight as f64;
                    }
                }
                prop_assert!(sketch.counts.len() <= places && other.counts.len() <= places);
            }
            sketch.merge(&mut other, |_, _| ());
            let counted: BTreeMap<u64, u64> = sketch.iter().map(|(id, count, ())| (id, count)).collect();
            for (id, truth) in truth {
                let count = counted.get(&id).copied().unwrap_or(0);
                let most = (count + sketch.taken_off()) as f64;
                prop_assert!(count as f64 <= truth && truth <= most, "{count} {truth} {most}");
            }
        }

        /// Without halving, what is taken off is no more than all that was added ÷ half of the places.
        #[test]
        fn what_is_taken_off_is_bounded(
            places in 2_usize..40,
            adds in prop::collection::vec((0_u64..200, 1_u64..9), 1..600),
        ) {
            let mut sketch = Frequent::new(places);
            let all: u64 = adds.iter().map(|(_, weight)| weight).sum();
            adds.into_iter().for_each(|(number, weight)| _ = sketch.add(id(number), weight, ()));
            prop_assert!(sketch.taken_off() * (places as u64).div_ceil(2) <= all);
        }
    }

    #[test]
    fn four_places_and_a_fifth_id() {
        let mut sketch = Frequent::new(4);
        for (number, weight) in [(1, 9), (2, 1), (3, 4), (4, 1)] {
            assert_eq!(sketch.add(id(number), weight, number), None);
        }
        // The median of 1, 1, 4, 9 is the third of them.
        assert_eq!(sketch.add(id(5), 2, 5), None);
        assert_eq!(sketch.add(id(5), 1, 5), Some(2));
        let mut counts: Vec<_> = sketch.iter().collect();
        counts.sort_by_key(|&(_, count, _)| count);
        assert_eq!(counts, [(id(5), 3, 5), (id(1), 5, 1)]);
        assert_eq!(sketch.taken_off(), 4);
    }

    #[test]
    fn memory_is_taken_once() {
        let mut sketch = Frequent::new(100);
        let capacity = sketch.counts.capacity();
        for number in 0..200_000 {
            sketch.add(id(number), 1 + number % 3, ());
        }
        assert_eq!((sketch.counts.capacity(), sketch.scratch.capacity()), (capacity, 100));
    }

    #[test]
    fn counts_do_not_wrap() {
        let mut sketch = Frequent::new(2);
        sketch.add(id(1), u64::MAX, ());
        sketch.add(id(1), 5, ());
        sketch.add(id(2), u64::MAX, ());
        sketch.add(id(3), u64::MAX, ());
        assert_eq!(sketch.iter().collect::<Vec<_>>(), [(id(3), u64::MAX, ())]);
        assert_eq!(sketch.taken_off(), u64::MAX);
    }
}
