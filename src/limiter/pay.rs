//! What is done with a key of a [`Limiter`] beside checking it, and with the limit itself.

use std::hash::Hash;
use std::time::Duration;

use super::Limiter;
use crate::answer::Denied;
use crate::error::ConfigError;
use crate::limit::Limit;
use crate::receipt::{Receipt, Reservation};
use crate::time::Clock;
use crate::word::CarryOver;

impl<C: Clock> Limiter<C> {
    /// Charges `key` with a cost that is known only now, when it has been incurred: tokens of a model's answer, bytes that
    /// were sent. It is charged whether or not it fits, so the key may owe more than its limit:
    /// a bucket up to [`Limit::debt_max`], windows as much as they can count to. What is beyond is not charged, and
    /// [`Receipt::uncharged`] tells. Until a debt is refilled, checks are refused.
    ///
    /// What a bucket admits by checks is bounded as ever; charges may take it below zero by the debt.
    ///
    /// ```
    /// # use tidegate::{Limit, Limiter, Rate};
    /// let limiter = Limiter::builder(Limit::bucket(Rate::per_hour(60), 100)).build()?;
    /// let receipt = limiter.charge("ada", 130)?;
    /// assert_eq!((receipt.charged(), receipt.debt()), (130, 30));
    /// assert!(!limiter.allow("ada"));
    /// assert_eq!(limiter.refund(receipt), 130); // within the minute; nothing has come back yet
    /// assert!(limiter.allow("ada"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Denied`] with [`Reason::Full`](crate::Reason::Full), and nothing is charged, if the key is new and there is no
    /// room for it. (Under [`OnFull::Admit`](crate::OnFull::Admit) nothing is charged either, and that is all.)
    pub fn charge<K: Hash + ?Sized>(&self, key: &K, cost: u64) -> Result<Receipt, Denied> {
        let key = self.named(key);
        self.core.charge(key, cost, |order| self.table.order(&self.core.engine, key.hash, order))
    }

    /// Decides a request as [`check_n`](Self::check_n) does, and answers with a receipt; no refusal is counted.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on.
    pub fn take<K: Hash + ?Sized>(&self, key: &K, cost: u64) -> Result<Receipt, Denied> {
        let key = self.named(key);
        self.core.take(key, cost, |order| self.table.order(&self.core.engine, key.hash, order))
    }

    /// Gives back what a receipt is still good for; how much, in units of cost (a part of a token counts as one). 0: all of
    /// it has been refilled, its windows have ended, its key was reset or evicted, the limit was changed, or another limiter
    /// issued it.
    ///
    /// A refund leaves no more than there would be had the charge never been made. Two things are not undone: the window
    /// that it opened under [`Alignment::FirstRequest`](crate::Alignment::FirstRequest) stays open, and a clock of your
    /// own that steps back makes a receipt good again for what had come back in the time that is repeated.
    /// Of those who wait in line the turns stay as told: until the last of them as much more as was given back may go on.
    pub fn refund(&self, receipt: Receipt) -> u64 {
        self.refund_part(receipt, u64::MAX)
    }

    /// Gives back `tokens` of what was charged, as [`refund`](Self::refund) does: what an estimate was too high by. No more
    /// than the receipt is still good for, and once: the rest of it stays charged for good.
    ///
    /// ```
    /// # use tidegate::{Limit, Limiter, Rate};
    /// let limiter = Limiter::builder(Limit::bucket(Rate::per_hour(1_000), 1_000)).build()?;
    /// let estimate = limiter.take("ada", 500)?;
    /// // ... it took 400.
    /// assert_eq!(limiter.refund_part(estimate, 100), 100);
    /// assert_eq!(limiter.peek("ada").remaining(), 600);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refund_part(&self, receipt: Receipt, tokens: u64) -> u64 {
        self.core.refund(&receipt, tokens, Some(self.table.hot()), |order, is_good| {
            self.table.order_on(&self.core.engine, receipt.hash, receipt.owner, order, is_good)
        })
    }

    /// Gives `key` back up to `tokens` of what it has used, whoever paid it and however long ago; how much. **This adds
    /// `tokens` to what the key may be admitted** in any time that the call falls into: prefer receipts.
    pub fn refund_key<K: Hash + ?Sized>(&self, key: &K, tokens: u64) -> u64 {
        let key = self.named(key);
        self.core.credit(tokens, key, Some(self.table.hot()), |order| {
            self.table.order(&self.core.engine, key.hash, order)
        })
    }

    /// Makes `key` one that was never seen: its whole limit is there again, and receipts of its are void (receipts of one
    /// in 64 other keys are void too). What threads have leased of it may still be spent within a millisecond.
    ///
    /// False, and nothing was reset, if other threads changed the key thousands of times meanwhile: try again.
    pub fn reset<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let key = self.named(key);
        self.core
            .reset(key, Some(self.table.hot()), |order| self.table.order(&self.core.engine, key.hash, order))
    }

    /// Takes a place in the key's line: charges `cost` now, though it may fit only later, and tells how long to wait. Who
    /// comes after waits longer: turns come in the order of reservations, and checks are refused until the last has
    /// come. For a bucket whose callers can wait, as a client of a service with a limit does.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tidegate::{Limit, Limiter, Manual, Rate};
    /// let limiter = Limiter::builder(Limit::bucket(Rate::per_second(10), 1)).clock(Manual::new()).build()?;
    /// let waits = |_| limiter.reserve("api", 1, Duration::from_millis(250)).ok().map(|place| place.wait());
    /// let ms = |ms| Some(Duration::from_millis(ms));
    /// assert_eq!([0, 1, 2, 3].map(waits), [ms(0), ms(100), ms(200), None]);
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// [`Denied`], and nothing is charged: the wait would be longer than `wait_max` ([`Reason::Exhausted`]); `cost` is above
    /// the burst; the key is new and has no room; or the limit has windows ([`Reason::Unsupported`]).
    ///
    /// [`Reason::Exhausted`]: crate::Reason::Exhausted
    /// [`Reason::Unsupported`]: crate::Reason::Unsupported
    pub fn reserve<K: Hash + ?Sized>(
        &self,
        key: &K,
        cost: u64,
        wait_max: Duration,
    ) -> Result<Reservation, Denied> {
        let key = self.named(key);
        self.core.reserve(key, cost, wait_max, |order| self.table.order(&self.core.engine, key.hash, order))
    }

    /// Gives a reservation back, all of it, if it is the last in line: of what was charged to its key since all was cancelled,
    /// and no refund or reset was asked for since, of this key or of one in 64 others. Whether it was; if not, it stays
    /// charged, for who comes after has been told to wait for it.
    pub fn cancel(&self, reservation: Reservation) -> bool {
        let Receipt { hash, owner, .. } = reservation.receipt;
        self.core.cancel(&reservation, Some(self.table.hot()), |order, is_good| {
            self.table.order_on(&self.core.engine, hash, owner, order, is_good)
        })
    }

    /// Changes the limit while requests are decided, and carries over what keys have used as `carry_over` says. The new limit
    /// holds from the next check on, and nobody waits; the call itself returns when every key has been carried over.
    /// Receipts that were issued before are void. Calls take turns, with each other and with `save`.
    ///
    /// Leave a millisecond between changes: a check that is held up while three of them pass may leave its key's count wrong.
    ///
    /// A bucket may get any other rate and burst, windows any other limits; their periods and alignment stay. Each
    /// different limit takes some 150 bytes (with [tiers](Self::tier), for each of them) for as long as the limiter lives. From the first change on, until the limiter
    /// is built anew (a snapshot keeps what was used), threads lease no more and a check takes a slower road, several times
    /// as long for a key that is at hand. A limit that is in force already changes nothing.
    ///
    /// Places in line (see [`reserve`](Self::reserve)) that were given before keep the wait that they were told, and may go
    /// on after it; they cannot be cancelled any more. Who waits in `acquire` sleeps as long as it was told before.
    ///
    /// ```
    /// # use tidegate::{CarryOver, Limit, Limiter, Rate};
    /// let limiter = Limiter::builder(Limit::bucket(Rate::per_hour(100), 100)).build()?;
    /// assert!(limiter.check_n("ada", 30).is_ok());
    /// limiter.set_limit(Limit::bucket(Rate::per_hour(50), 50), CarryOver::KeepUsed)?;
    /// assert_eq!(limiter.peek("ada").remaining(), 20);
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// A [`ConfigError`], and nothing is changed, if the limit cannot be honoured, has another kind, period or alignment than
    /// the one that the limiter was built with, or is one too many (65 535 different ones; with tiers, sets of them).
    pub fn set_limit(&self, limit: Limit, carry_over: CarryOver) -> Result<(), ConfigError> {
        self.core.set_limit(limit, carry_over, Some(self.table.hot()), |era| {
            self.table.walk(&self.core.engine, era)
        })
    }
}
