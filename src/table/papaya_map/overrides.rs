//! Which keys have a tier of their own, whatever they are asked for.

use std::borrow::Borrow;
use std::hash::{Hash, RandomState};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::table::eras::TierNumber;

/// Tiers by key. As long as there was no override a check pays one load for them, and they take no memory.
pub struct Overrides<K> {
    by_key: OnceLock<papaya::HashMap<K, TierNumber>>,
    /// The tiers that were made for callers to name; all others are for overrides. Held by who makes either; nobody who
    /// checks knows it.
    named: Mutex<Vec<TierNumber>>,
}

impl<K> Default for Overrides<K> {
    fn default() -> Self {
        Self { by_key: OnceLock::new(), named: Mutex::default() }
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

    /// The right to make tiers and overrides. Calls take turns.
    pub fn turn(&self) -> Turn<'_, K> {
        // Whoever panicked with it has left a tier that nobody can name: one for overrides.
        Turn { overrides: self, named: self.named.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Takes a key's tier away again, and returns it.
    pub fn clear<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<TierNumber>
    where
        K: Borrow<Q>,
    {
        self.by_key.get()?.pin().remove(key).copied()
    }
}

/// One who makes tiers and overrides.
pub struct Turn<'a, K> {
    overrides: &'a Overrides<K>,
    named: MutexGuard<'a, Vec<TierNumber>>,
}

impl<K: Hash + Eq> Turn<'_, K> {
    /// Of so many tiers those that are for overrides.
    pub fn unnamed(&self, tiers: TierNumber) -> impl Iterator<Item = TierNumber> {
        (1..=tiers).filter(|tier| !self.named.contains(tier))
    }

    /// Of so many tiers one for overrides that no key but this has: its own before all others.
    pub fn unused_but_by(&self, key: &K, tiers: TierNumber) -> Option<TierNumber> {
        let by_key = self.overrides.by_key.get().map(papaya::HashMap::pin);
        let is_others = |tier: TierNumber| {
            by_key.as_ref().is_some_and(|all| all.iter().any(|(other, &its)| its == tier && other != key))
        };
        let own = by_key.as_ref().and_then(|all| all.get(key)).copied();
        own.into_iter().chain(self.unnamed(tiers)).find(|&tier| !is_others(tier))
    }

    /// Notes a tier that a caller can name.
    pub fn name(&mut self, tier: TierNumber) {
        self.named.push(tier);
    }

    /// Gives a key a tier of its own.
    pub fn set(&self, key: K, tier: TierNumber) {
        let by_key = self.overrides.by_key.get_or_init(|| papaya::HashMap::with_hasher(RandomState::new()));
        by_key.pin().insert(key, tier);
    }
}
