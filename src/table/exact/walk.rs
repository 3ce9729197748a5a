//! What meets keys without charging them: forgetting one, judging all of them, walking from place to place.
//!
//! The protocol stands at the head of `exact.rs`. A guard is held for one place at a time, so that a long walk keeps
//! no memory from being given back; no lock is held at all.

use std::borrow::Borrow;
use std::ops::Range;

use super::{Entry, ExactTable, Map, PENDING, SEALED, seal};
use crate::sync::{AtomicU64, Ordering};
use crate::table::places::LIVE;
use crate::table::{Engine, Era};
use crate::time::Clock;
use crate::word::TABLE_BIT;

/// How often a key that is charged while it is judged is judged again, before it is kept.
#[cfg(not(tidegate_loom))]
const JUDGEMENTS: usize = 256;
#[cfg(tidegate_loom)]
const JUDGEMENTS: usize = 2;

/// A key's word as it was met.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The key's hash, marked as the table keeps it.
    pub hash: u64,
    /// The value of its word.
    pub word: u64,
    /// The precise time in the limiter's nanoseconds, just after the word was read.
    pub ns: u64,
}

/// A key that stands in a place, and its word.
struct Met<'g, K> {
    hash: u64,
    key: &'g K,
    word: &'g AtomicU64,
}

impl<M> ExactTable<M> {
    /// Forgets a key, and gives its last value back; `None` if it had not begun.
    ///
    /// A check that races was charged to that value, or begins anew.
    pub fn forget<K, Q>(&self, hash: u64, key: &Q) -> Option<u64>
    where
        M: Map<K>,
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let hash = hash | LIVE;
        let guard = self.map.guard();
        let entry = self.map.get(hash, key, &guard)?;
        // ORDERING: Release, as in `seal`. Whatever stood there: an exchange gives back the last value that anyone
        // was charged on, and only one thread gets it.
        let value = entry.word.swap(SEALED, Ordering::Release);
        // Sealed already, it may be by a thread that has stopped.
        self.remove(hash, entry.place, &guard);
        (value & TABLE_BIT == 0).then_some(value)
    }

    /// Forgets each key that `keep` turns down, and tells how many there were. A key whose word changes under the
    /// judgement is judged again, [`JUDGEMENTS`] times at most; then it stays.
    pub fn retain<K, C>(&self, engine: &Engine<C>, mut keep: impl FnMut(&K, Seen) -> bool) -> usize
    where
        M: Map<K>,
        C: Clock,
    {
        self.places.used().filter(|&place| self.judge(engine, place, &mut keep)).count()
    }

    /// Whether the key in a place was turned down, and forgotten.
    fn judge<K, C>(&self, engine: &Engine<C>, place: u32, keep: &mut impl FnMut(&K, Seen) -> bool) -> bool
    where
        M: Map<K>,
        C: Clock,
    {
        let guard = self.map.guard();
        let Some(met) = self.meet(place, &guard) else { return false };
        for _ in 0..JUDGEMENTS {
            let Some(seen) = self.look(engine, place, &met, &guard) else { return false };
            if keep(met.key, seen) {
                return false;
            }
            if seal(met.word, seen.word) {
                self.remove(met.hash, place, &guard);
                return true;
            }
        }
        false
    }

    /// Has every word adopted by a new era, and every entry promoted that has none yet: who promotes it may not know of
    /// the era.
    pub fn walk<K, C>(&self, engine: &Engine<C>, era: Era<'_>)
    where
        M: Map<K>,
        C: Clock,
    {
        for place in self.places.used() {
            let guard = self.map.guard();
            let Some(Met { hash, word, .. }) = self.meet(place, &guard) else { continue };
            // ORDERING: Acquire, as in `look_everywhere`.
            if word.load(Ordering::Acquire) == PENDING {
                _ = self.promote(engine, Entry { place, word }, hash, 0_u64);
            }
            engine.adopt(word, era);
        }
    }

    /// The next key among `places`, which are used up to its own.
    pub fn next<K, C>(&self, engine: &Engine<C>, places: &mut Range<u32>) -> Option<(K, Seen)>
    where
        M: Map<K>,
        K: Clone,
        C: Clock,
    {
        places.find_map(|place| {
            let guard = self.map.guard();
            let met = self.meet(place, &guard)?;
            let seen = self.look(engine, place, &met, &guard)?;
            Some((met.key.clone(), seen))
        })
    }

    /// The key in a place that has been used.
    fn meet<'g, K>(&'g self, place: u32, guard: &'g M::Guard<'_>) -> Option<Met<'g, K>>
    where
        M: Map<K>,
    {
        let hash = self.places.at(place)?;
        let (key, word) = self.map.get_at(hash, place, guard)?;
        Some(Met { hash, key, word })
    }

    /// How a key stands; nothing if it has not begun, or leaves.
    fn look<K, C>(
        &self,
        engine: &Engine<C>,
        place: u32,
        met: &Met<'_, K>,
        guard: &M::Guard<'_>,
    ) -> Option<Seen>
    where
        M: Map<K>,
        C: Clock,
    {
        // ORDERING: Relaxed: one word, and nothing is read by it.
        let word = met.word.load(Ordering::Relaxed);
        if word == SEALED {
            self.remove(met.hash, place, guard);
        }
        (word & TABLE_BIT == 0).then(|| Seen { hash: met.hash, word, ns: engine.precise_ns() })
    }
}
