//! A limiter whose keys somebody else has hashed: what a policy asks of it beside checks.

use std::hash::Hash;

use super::Limiter;
use crate::account::Named;
use crate::answer::Standing;
use crate::table::{OWN, SlotTable};
use crate::time::Clock;

impl<C: Clock> Limiter<C> {
    /// How the key of this hash stands, as [`peek`](Self::peek) tells it.
    pub(crate) fn peek_hashed(&self, hash: u64) -> Standing {
        let tier = self.overrides.tier_of(&hash, OWN);
        self.standing_of(Named { hash, fingerprint: SlotTable::fingerprint(hash), tier })
    }

    /// How a key stands that was never seen.
    pub(crate) fn fresh(&self) -> Standing {
        self.core.standing_in(self.core.engine.era_in(OWN), (0, self.core.engine.precise_ns()), 0)
    }

    /// What the table knows a key by.
    #[inline]
    pub(crate) fn hash_of<K: Hash + ?Sized>(&self, key: &K) -> u64 {
        self.core.hashing.of(key)
    }

    /// Has the line of a key fetched that is soon checked.
    #[inline]
    pub(crate) fn fetch(&self, hash: u64) {
        self.table.lines().fetch(&[hash]);
    }
}
