//! Limits that some keys of an [`ExactLimiter`] have beside its own.

use std::borrow::Borrow;
use std::hash::Hash;
use std::time::Duration;

use super::ExactLimiter;
use crate::answer::{Denied, Pass, Standing};
use crate::error::ConfigError;
use crate::limit::Limit;
use crate::receipt::{Receipt, Reservation};
use crate::tier::Tier;
use crate::time::Clock;

impl<K: Hash + Eq, C: Clock> ExactLimiter<K, C> {
    /// Makes a tier, as [`Limiter::tier`](crate::Limiter::tier) does.
    ///
    /// # Errors
    /// A [`ConfigError`], and nothing is changed, in the cases told there.
    pub fn tier(&self, limit: Limit) -> Result<Tier, ConfigError> {
        self.core.tier(&self.overrides, limit, None, |era| self.table.walk(&self.core.engine, era))
    }

    /// The limit of a tier.
    pub fn tier_limit(&self, tier: Tier) -> Limit {
        self.core.limit_of(self.core.number_of(tier))
    }

    /// Changes the limit of a tier while requests are decided, as [`set_limit`](Self::set_limit) does the limiter's own;
    /// what was used stays used.
    ///
    /// # Errors
    /// A [`ConfigError`], and nothing is changed, in the cases told there, and if another limiter made the tier.
    pub fn set_tier_limit(&self, tier: Tier, limit: Limit) -> Result<(), ConfigError> {
        self.core.set_tier_limit(tier, limit, None, |era| self.table.walk(&self.core.engine, era))
    }

    /// Gives `key` a limit of its own, as [`Limiter::set_override`](crate::Limiter::set_override) does; the whole key is kept.
    ///
    /// # Errors
    /// As of [`tier`](Self::tier).
    pub fn set_override<Q>(&self, key: &Q, limit: Limit) -> Result<(), ConfigError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.core.set_override(&self.overrides, key.to_owned(), limit, None, |era| {
            self.table.walk(&self.core.engine, era)
        })
    }

    /// Takes the limit of its own from `key` again, and returns it; `None` if it had none. What was used stays used.
    pub fn clear_override<Q>(&self, key: &Q) -> Option<Limit>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let tier = self.overrides.clear(key)?;
        Some(self.core.limit_of(tier))
    }

    /// The limit of its own that `key` has.
    pub fn override_of<Q>(&self, key: &Q) -> Option<Limit>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.overrides.get(key).map(|tier| self.core.limit_of(tier))
    }

    /// Decides a request by the limit of a tier, or by the key's [own](Self::set_override); else as
    /// [`check_n`](Self::check_n) does.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on.
    pub fn check_in<Q>(&self, tier: Tier, key: &Q, cost: u64) -> Result<Pass, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let named = self.named_in(key, self.core.number_of(tier));
        let answer = self.table.check_in(&self.core.engine, named.hash, key, cost, named.tier);
        self.core.respond(answer, named.fingerprint, cost)
    }

    /// How `key` stands by the limit of a tier, or by its own; see [`peek`](Self::peek).
    pub fn peek_in<Q>(&self, tier: Tier, key: &Q) -> Standing
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.standing_of(self.named_in(key, self.core.number_of(tier)), key)
    }

    /// Charges `key` by the limit of a tier, or by its own, as [`charge`](Self::charge) does.
    ///
    /// # Errors
    /// [`Denied`] in the cases told there.
    pub fn charge_in<Q>(&self, tier: Tier, key: &Q, cost: u64) -> Result<Receipt, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let named = self.named_in(key, self.core.number_of(tier));
        self.core.charge(named, cost, |order| self.order(named, key, order))
    }

    /// Decides a request by the limit of a tier, or by the key's own, as [`take`](Self::take) does.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on.
    pub fn take_in<Q>(&self, tier: Tier, key: &Q, cost: u64) -> Result<Receipt, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let named = self.named_in(key, self.core.number_of(tier));
        self.core.take(named, cost, |order| self.order(named, key, order))
    }

    /// Takes a place in the key's line by the limit of a tier, or by the key's own, as [`reserve`](Self::reserve) does.
    ///
    /// # Errors
    /// [`Denied`], and nothing is charged, in the cases told there.
    pub fn reserve_in<Q>(
        &self,
        tier: Tier,
        key: &Q,
        cost: u64,
        wait_max: Duration,
    ) -> Result<Reservation, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let named = self.named_in(key, self.core.number_of(tier));
        self.core.reserve(named, cost, wait_max, |order| self.order(named, key, order))
    }
}
