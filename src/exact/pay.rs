//! What is done with a key of an [`ExactLimiter`] beside checking it, and with the limit itself.

use std::borrow::Borrow;
use std::hash::Hash;
use std::time::Duration;

use super::ExactLimiter;
use crate::answer::Denied;
use crate::error::ConfigError;
use crate::limit::Limit;
use crate::receipt::{Receipt, Reservation};
use crate::time::Clock;
use crate::word::CarryOver;

impl<K: Hash + Eq, C: Clock> ExactLimiter<K, C> {
    /// Charges a cost that is known only now, as [`Limiter::charge`](crate::Limiter::charge) does.
    ///
    /// # Errors
    /// [`Denied`] with [`Reason::Full`](crate::Reason::Full), and nothing is charged, if the key is new and there is no
    /// room for it.
    pub fn charge<Q>(&self, key: &Q, cost: u64) -> Result<Receipt, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let named = self.named(key);
        self.core.charge(named, cost, |order| self.order(named, key, order))
    }

    /// Decides a request as [`check_n`](Self::check_n) does, and answers with a receipt; no refusal is counted.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on.
    pub fn take<Q>(&self, key: &Q, cost: u64) -> Result<Receipt, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let named = self.named(key);
        self.core.take(named, cost, |order| self.order(named, key, order))
    }

    /// Gives back what a receipt is still good for, as [`Limiter::refund`](crate::Limiter::refund) does.
    pub fn refund(&self, receipt: Receipt) -> u64 {
        self.refund_part(receipt, u64::MAX)
    }

    /// Gives back `tokens` of what was charged, as [`Limiter::refund_part`](crate::Limiter::refund_part) does.
    pub fn refund_part(&self, receipt: Receipt, tokens: u64) -> u64 {
        self.core.refund(&receipt, tokens, None, |order, is_good| {
            self.table.order_on(&self.core.engine, receipt.hash, receipt.owner, order, is_good)
        })
    }

    /// Gives `key` back up to `tokens` of what it has used, as [`Limiter::refund_key`](crate::Limiter::refund_key) does:
    /// **this adds to what the key may be admitted**.
    pub fn refund_key<Q>(&self, key: &Q, tokens: u64) -> u64
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let named = self.named(key);
        self.core.credit(tokens, named, None, |order| self.order(named, key, order))
    }

    /// Makes `key` one that was never seen, as [`Limiter::reset`](crate::Limiter::reset) does; it keeps its place.
    pub fn reset<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let named = self.named(key);
        self.core.reset(named, None, |order| self.order(named, key, order))
    }

    /// Takes a place in the key's line, as [`Limiter::reserve`](crate::Limiter::reserve) does.
    ///
    /// # Errors
    /// [`Denied`], and nothing is charged, in the cases told there.
    pub fn reserve<Q>(&self, key: &Q, cost: u64, wait_max: Duration) -> Result<Reservation, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let named = self.named(key);
        self.core.reserve(named, cost, wait_max, |order| self.order(named, key, order))
    }

    /// Gives a reservation back if it is the last in line, as [`Limiter::cancel`](crate::Limiter::cancel) does.
    pub fn cancel(&self, reservation: Reservation) -> bool {
        let Receipt { hash, owner, .. } = reservation.receipt;
        self.core.cancel(&reservation, None, |order, is_good| {
            self.table.order_on(&self.core.engine, hash, owner, order, is_good)
        })
    }

    /// Changes the limit while requests are decided, as [`Limiter::set_limit`](crate::Limiter::set_limit) does.
    ///
    /// # Errors
    /// A [`ConfigError`], and nothing is changed, in the cases told there.
    pub fn set_limit(&self, limit: Limit, carry_over: CarryOver) -> Result<(), ConfigError> {
        self.core.set_limit(limit, carry_over, None, |era| self.table.walk(&self.core.engine, era))
    }
}
