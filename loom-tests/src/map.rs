//! A map of a few fixed slots in place of papaya: every operation is one atomic step or two, so that
//! loom can explore what happens between them. Key `k` lives in slot `k`; an entry that was removed
//! stays alive, as a guard would keep it.

use std::borrow::Borrow;
use std::sync::OnceLock;

use tidegate::internals::{AtomicU64, Entry, Map, Ordering, SEALED, Stored};

/// Entries that one execution may make.
const ENTRIES: usize = 8;

/// Slots for keys 0, 1, …; each holds the number of its entry plus one.
#[derive(Debug)]
pub struct SlotMap {
    slots: Vec<AtomicU64>,
    entries: Vec<(OnceLock<Stored<u64>>, AtomicU64)>,
    made: AtomicU64,
}

impl SlotMap {
    /// A map for keys below `keys`.
    pub fn new(keys: usize) -> Self {
        Self {
            slots: (0..keys).map(|_| AtomicU64::new(0)).collect(),
            entries: (0..ENTRIES).map(|_| (OnceLock::new(), AtomicU64::new(0))).collect(),
            made: AtomicU64::new(0),
        }
    }

    /// The hash that models give key `k`: told apart by slot, and marked as the table wants it.
    pub fn hash(key: u64) -> u64 {
        1 << 56 | key
    }

    fn entry(&self, number: u64) -> Option<(&Stored<u64>, &AtomicU64)> {
        let (stored, word) = self.entries.get(usize::try_from(number.checked_sub(1)?).ok()?)?;
        Some((stored.get()?, word))
    }

    fn slot(&self, hash: u64) -> &AtomicU64 {
        &self.slots[(hash & 0xff) as usize]
    }

    /// The word of a key, if it has an entry.
    pub fn word(&self, key: u64) -> Option<u64> {
        let (_, word) = self.entry(self.slot(Self::hash(key)).load(Ordering::Acquire))?;
        Some(word.load(Ordering::Acquire))
    }
}

impl Map<u64> for SlotMap {
    type Guard<'m> = ();

    fn guard(&self) {}

    fn get<'g, Q>(&'g self, hash: u64, key: &Q, guard: &'g ()) -> Option<Entry<'g>>
    where
        u64: Borrow<Q> + 'g,
        Q: Eq + ?Sized,
    {
        let _ = (key, guard);
        let (stored, word) = self.entry(self.slot(hash).load(Ordering::Acquire))?;
        Some(Entry { place: stored.place, word })
    }

    fn get_at<'g>(&'g self, hash: u64, place: u32, _guard: &'g ()) -> Option<(&'g u64, &'g AtomicU64)>
    where
        u64: 'g,
    {
        let (stored, word) = self.entry(self.slot(hash).load(Ordering::Acquire))?;
        (stored.place == place).then_some((&stored.key, word))
    }

    fn insert(&self, stored: Stored<u64>, word: u64, _guard: &()) -> bool {
        let slot = self.slot(stored.hash);
        if slot.load(Ordering::Acquire) != 0 {
            return false;
        }
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let place = usize::try_from(number).expect("a model makes few entries");
        let (kept, kept_word) = &self.entries[place];
        kept_word.store(word, Ordering::Relaxed);
        kept.set(stored).expect("an entry is made once");
        slot.compare_exchange(0, number + 1, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn remove_sealed(&self, hash: u64, place: u32, _guard: &()) -> bool {
        let slot = self.slot(hash);
        let number = slot.load(Ordering::Acquire);
        let Some((stored, word)) = self.entry(number) else { return false };
        stored.place == place
            && word.load(Ordering::Relaxed) == SEALED
            && slot.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn count(&self) -> usize {
        self.slots.iter().filter(|slot| slot.load(Ordering::Acquire) != 0).count()
    }
}
