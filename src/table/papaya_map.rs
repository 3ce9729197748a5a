//! The map that ships under the exact table: papaya's, with the hash computed once and kept beside the key. Only this
//! file and what stands below it name papaya.

mod overrides;

pub use overrides::{Overrides, Turn};

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, Hasher};

use papaya::{Equivalent, HashMap, LocalGuard};

use super::exact::{Entry, Map, SEALED, Stored};
use crate::sync::{AtomicU64, Ordering, zeroed_words};

/// Entries by key and by place.
pub struct PapayaMap<K>(HashMap<Stored<K>, AtomicU64, KeptHash>);

/// Passes on the hash that [`Stored`] and the look-ups carry.
#[derive(Clone, Copy, Debug, Default)]
struct KeptHash;

#[derive(Clone, Copy, Debug, Default)]
struct KeptHasher(u64);

impl BuildHasher for KeptHash {
    type Hasher = KeptHasher;

    #[inline]
    fn build_hasher(&self) -> KeptHasher {
        KeptHasher(0)
    }
}

impl Hasher for KeptHasher {
    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, _bytes: &[u8]) {
        debug_assert!(false, "only whole hashes are written");
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

impl<K> Hash for Stored<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl<K: Eq> PartialEq for Stored<K> {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.key == other.key
    }
}

impl<K: Eq> Eq for Stored<K> {}

/// Looks a key up by what it borrows as.
struct ByKey<'q, Q: ?Sized>(u64, &'q Q);

impl<Q: ?Sized> Hash for ByKey<'_, Q> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

impl<K: Borrow<Q>, Q: Eq + ?Sized> Equivalent<Stored<K>> for ByKey<'_, Q> {
    #[inline]
    fn equivalent(&self, stored: &Stored<K>) -> bool {
        self.1 == stored.key.borrow()
    }
}

/// Looks a key up by the place it stands in.
struct ByPlace(u64, u32);

impl Hash for ByPlace {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

impl<K> Equivalent<Stored<K>> for ByPlace {
    fn equivalent(&self, stored: &Stored<K>) -> bool {
        self.0 == stored.hash && self.1 == stored.place
    }
}

impl<K> PapayaMap<K> {
    /// Whether there is memory for an empty map of `max_keys` and as many places. papaya would end the process over
    /// it, so it is asked for here first, and given back.
    pub(crate) fn has_memory(max_keys: usize) -> bool {
        // The map sets aside 18 bytes for each key, their number rounded up to a power of two; a place is 8.
        const BYTES_PER_KEY: usize = 26;
        let bytes = max_keys.checked_next_power_of_two().and_then(|keys| keys.checked_mul(BYTES_PER_KEY));
        bytes.and_then(|bytes| zeroed_words(bytes / 8)).is_some()
    }
}

impl<K: Eq> PapayaMap<K> {
    /// An empty map with room for `max_keys`. Where keys come and go it makes another index of that size
    /// from time to time, to be rid of the marks that removed keys leave.
    pub fn new(max_keys: usize) -> Self {
        Self(HashMap::with_capacity_and_hasher(max_keys, KeptHash))
    }
}

impl<K> std::fmt::Debug for PapayaMap<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PapayaMap").finish_non_exhaustive()
    }
}

impl<K: Eq> Map<K> for PapayaMap<K> {
    type Guard<'m>
        = LocalGuard<'m>
    where
        K: 'm;

    #[inline]
    fn guard(&self) -> LocalGuard<'_> {
        self.0.guard()
    }

    #[inline]
    fn get<'g, Q>(&'g self, hash: u64, key: &Q, guard: &'g LocalGuard<'_>) -> Option<Entry<'g>>
    where
        K: Borrow<Q> + 'g,
        Q: Eq + ?Sized,
    {
        let (stored, word) = self.0.get_key_value(&ByKey(hash, key), guard)?;
        Some(Entry { place: stored.place, word })
    }

    fn get_at<'g>(
        &'g self,
        hash: u64,
        place: u32,
        guard: &'g LocalGuard<'_>,
    ) -> Option<(&'g K, &'g AtomicU64)>
    where
        K: 'g,
    {
        let (stored, word) = self.0.get_key_value(&ByPlace(hash, place), guard)?;
        Some((&stored.key, word))
    }

    fn insert(&self, stored: Stored<K>, word: u64, guard: &LocalGuard<'_>) -> bool {
        self.0.try_insert(stored, AtomicU64::new(word), guard).is_ok()
    }

    fn remove_sealed(&self, hash: u64, place: u32, guard: &LocalGuard<'_>) -> bool {
        // ORDERING: Relaxed: sealed is for good, so whoever reads it reads the truth.
        let is_sealed = |_: &Stored<K>, word: &AtomicU64| word.load(Ordering::Relaxed) == SEALED;
        matches!(self.0.remove_if(&ByPlace(hash, place), is_sealed, guard), Ok(Some(_)))
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}
