//! Limits that some keys of a [`Limiter`] have beside its own.

use std::hash::Hash;
use std::time::Duration;

use super::Limiter;
use crate::answer::{Denied, Pass, Standing};
use crate::error::ConfigError;
use crate::limit::Limit;
use crate::receipt::{Receipt, Reservation};
use crate::tier::Tier;
use crate::time::Clock;

impl<C: Clock> Limiter<C> {
    /// Makes a tier: a limit of the same kind, periods and alignment as the limiter's own, for keys that are checked by it. It
    /// lives as long as the limiter; of windows it counts in the same bits as that one. Needs a place of [`max_tiers`](crate::Builder::max_tiers), and is a
    /// change of limits: as after [`set_limit`](Self::set_limit), whose page tells more, receipts that were issued before are
    /// void, and from the first one on every check of the limiter takes the slower road.
    ///
    /// ```
    /// # use tidegate::{Limit, Limiter, Rate};
    /// let limiter = Limiter::builder(Limit::bucket(Rate::per_hour(60), 10)).max_tiers(2).build()?;
    /// let paid = limiter.tier(Limit::bucket(Rate::per_hour(6_000), 100))?;
    ///
    /// assert!(limiter.check_n("ada", 10).is_ok() && !limiter.allow("ada"));
    /// // Ada pays. Of the 100 she has used 10.
    /// assert_eq!(limiter.check_in(paid, "ada", 1).map(|pass| pass.remaining()).ok(), Some(89));
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// A [`ConfigError`], and nothing is changed, if the limit cannot be honoured (time and counts have fewer bits than without
    /// tiers), does not follow the limiter's own, or is one tier too many.
    pub fn tier(&self, limit: Limit) -> Result<Tier, ConfigError> {
        self.core.tier(&self.overrides, limit, Some(self.table.hot()), |era| {
            self.table.walk(&self.core.engine, era)
        })
    }

    /// The limit of a tier.
    pub fn tier_limit(&self, tier: Tier) -> Limit {
        self.core.limit_of(self.core.number_of(tier))
    }

    /// Changes the limit of a tier while requests are decided, as [`set_limit`](Self::set_limit) does the limiter's own; it is one of
    /// the changes that are counted there. What was used stays used.
    ///
    /// # Errors
    /// A [`ConfigError`], and nothing is changed, in the cases told there, and if another limiter made the tier.
    pub fn set_tier_limit(&self, tier: Tier, limit: Limit) -> Result<(), ConfigError> {
        self.core.set_tier_limit(tier, limit, Some(self.table.hot()), |era| {
            self.table.walk(&self.core.engine, era)
        })
    }

    /// Gives `key` a limit of its own, whatever tier it is checked by, from the next check on: an internal caller, a
    /// customer with a contract. What was used stays used. Each different limit takes one place of
    /// [`max_tiers`](crate::Builder::max_tiers) as long as some key has it; when all are taken, one that no key has any more is
    /// given to the next, and what was used by it is the limiter's own limit's again. A key costs some 40 bytes, and there
    /// may be any number. They are known by the key's whole hash.
    ///
    /// A limit that no override has yet is a change of limits, as [`set_limit`](Self::set_limit) is, and voids the receipts of
    /// all keys. Each set of limits that the limiter has ever had at once takes some 150 bytes for each limit in it, and there
    /// may be 65 535: give overrides of a few kinds.
    ///
    /// A request that is being decided meanwhile may be decided by the limit before; or, if that was another override whose
    /// place is given to a third key at the same moment, by that.
    ///
    /// ```
    /// # use tidegate::{Limit, Limiter, Rate};
    /// let limiter = Limiter::builder(Limit::bucket(Rate::per_hour(60), 10)).max_tiers(1).build()?;
    /// limiter.set_override("crawler", Limit::bucket(Rate::per_hour(1), 2))?;
    /// assert!(limiter.allow("crawler") && limiter.allow("crawler") && !limiter.allow("crawler"));
    /// assert!(limiter.check_n("ada", 10).is_ok());
    ///
    /// assert!(limiter.clear_override("crawler").is_some());
    /// assert_eq!(limiter.peek("crawler").remaining(), 8);
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// As of [`tier`](Self::tier).
    pub fn set_override<K: Hash + ?Sized>(&self, key: &K, limit: Limit) -> Result<(), ConfigError> {
        self.set_override_hashed(self.core.hashing.of(key), limit)
    }

    pub(crate) fn set_override_hashed(&self, hash: u64, limit: Limit) -> Result<(), ConfigError> {
        self.core.set_override(&self.overrides, hash, limit, Some(self.table.hot()), |era| {
            self.table.walk(&self.core.engine, era)
        })
    }

    /// Takes the limit of its own from `key` again, and returns it; `None` if it had none. What was used stays used.
    pub fn clear_override<K: Hash + ?Sized>(&self, key: &K) -> Option<Limit> {
        self.clear_override_hashed(self.core.hashing.of(key))
    }

    pub(crate) fn clear_override_hashed(&self, hash: u64) -> Option<Limit> {
        let tier = self.overrides.clear(&hash)?;
        Some(self.core.limit_of(tier))
    }

    /// The limit of its own that `key` has.
    pub fn override_of<K: Hash + ?Sized>(&self, key: &K) -> Option<Limit> {
        self.override_of_hashed(self.core.hashing.of(key))
    }

    pub(crate) fn override_of_hashed(&self, hash: u64) -> Option<Limit> {
        self.overrides.get(&hash).map(|tier| self.core.limit_of(tier))
    }

    /// Decides a request by the limit of a tier, or by the key's [own](Self::set_override); else as
    /// [`check_n`](Self::check_n) does.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on.
    pub fn check_in<K: Hash + ?Sized>(&self, tier: Tier, key: &K, cost: u64) -> Result<Pass, Denied> {
        let key = self.named_in(key, self.core.number_of(tier));
        let answer = self.table.check_in(&self.core.engine, key.hash, cost, key.tier);
        self.core.respond(answer, key.fingerprint, cost)
    }

    /// How `key` stands by the limit of a tier, or by its own; see [`peek`](Self::peek).
    pub fn peek_in<K: Hash + ?Sized>(&self, tier: Tier, key: &K) -> Standing {
        self.standing_of(self.named_in(key, self.core.number_of(tier)))
    }

    /// Charges `key` by the limit of a tier, or by its own, as [`charge`](Self::charge) does.
    ///
    /// # Errors
    /// [`Denied`] in the cases told there.
    pub fn charge_in<K: Hash + ?Sized>(&self, tier: Tier, key: &K, cost: u64) -> Result<Receipt, Denied> {
        let key = self.named_in(key, self.core.number_of(tier));
        self.core.charge(key, cost, |order| self.table.order(&self.core.engine, key.hash, order))
    }

    /// Decides a request by the limit of a tier, or by the key's own, as [`take`](Self::take) does.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on.
    pub fn take_in<K: Hash + ?Sized>(&self, tier: Tier, key: &K, cost: u64) -> Result<Receipt, Denied> {
        let key = self.named_in(key, self.core.number_of(tier));
        self.core.take(key, cost, |order| self.table.order(&self.core.engine, key.hash, order))
    }

    /// Takes a place in the key's line by the limit of a tier, or by the key's own, as [`reserve`](Self::reserve) does.
    ///
    /// # Errors
    /// [`Denied`], and nothing is charged, in the cases told there.
    pub fn reserve_in<K: Hash + ?Sized>(
        &self,
        tier: Tier,
        key: &K,
        cost: u64,
        wait_max: Duration,
    ) -> Result<Reservation, Denied> {
        let key = self.named_in(key, self.core.number_of(tier));
        self.core.reserve(key, cost, wait_max, |order| self.table.order(&self.core.engine, key.hash, order))
    }
}
