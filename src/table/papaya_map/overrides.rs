//! Which keys have a tier of their own, whatever they are asked for.

use std::borrow::Borrow;
use std::hash::{Hash, RandomState};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::table::eras::TierNumber;

/// Tiers by key. As long as there was no override a check pays one load for them, and they take no memory.
pub struct Overrides<K> {
    by_key: OnceLock<papaya::HashMap<K, TierNumber>>,
    /// The tiers that were made for overrides. Held by who changes one; nobody who checks knows it.
    made: Mutex<Vec<TierNumber>>,
}

impl<K> Default for Overrides<K> {
    fn default() -> Self {
        Self { by_key: OnceLock::new(), made: Mutex::default() }
    }
}

impl<K: Hash + Eq> Overrides<K> {
    /// The tier of a key that has one of its own, else the one that is `asked` for.
    #[inline(always)]
    pub fn tier_of<Q: Hash + Eq + ?Sized>(&self, key: &Q, asked: TierNumber) -> TierNumber
    where
        K: Borrow<Q>,
    {
        self.get(key).unwrap_or(asked)
    }

    /// The tier of a key that has one of its own.
    #[inline(always)]
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<TierNumber>
    where
        K: Borrow<Q>,
    {
        Self::look(self.by_key.get()?, key)
    }

    #[cold]
    #[inline(never)]
    fn look<Q: Hash + Eq + ?Sized>(by_key: &papaya::HashMap<K, TierNumber>, key: &Q) -> Option<TierNumber>
    where
        K: Borrow<Q>,
    {
        by_key.pin().get(key).copied()
    }

    /// The right to change overrides. Calls take turns.
    pub fn turn(&self) -> Turn<'_, K> {
        // Whoever panicked with it has left no tier half made.
        Turn { overrides: self, made: self.made.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

/// One who changes overrides.
pub struct Turn<'a, K> {
    overrides: &'a Overrides<K>,
    made: MutexGuard<'a, Vec<TierNumber>>,
}

impl<K: Hash + Eq> Turn<'_, K> {
    /// The tiers that were made for overrides.
    pub fn made(&self) -> &[TierNumber] {
        &self.made
    }

    /// One of them that no key has.
    pub fn unused(&self) -> Option<TierNumber> {
        let by_key = self.overrides.by_key.get()?.pin();
        self.made.iter().copied().find(|tier| by_key.values().all(|its| its != tier))
    }

    /// Notes a tier that was made for overrides.
    pub fn note(&mut self, tier: TierNumber) {
        self.made.push(tier);
    }

    /// Gives a key a tier of its own.
    pub fn set(&self, key: K, tier: TierNumber) {
        let by_key = self.overrides.by_key.get_or_init(|| papaya::HashMap::with_hasher(RandomState::new()));
        by_key.pin().insert(key, tier);
    }

    /// Takes it away again, and returns it.
    pub fn clear<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<TierNumber>
    where
        K: Borrow<Q>,
    {
        self.overrides.by_key.get()?.pin().remove(key).copied()
    }
}
