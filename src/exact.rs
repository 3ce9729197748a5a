//! [`ExactLimiter`]: whole keys in a concurrent map.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use crate::account::Named;
use crate::answer::{Denied, Pass, Standing};
use crate::error::ConfigError;
use crate::limit::Limit;
use crate::receipt::{Receipt, Reservation};
use crate::settings::{Core, Settings, passes};
use crate::table::{ExactTable, Full, Ordered, PLACES_MAX, PapayaMap};
use crate::time::{Clock, Ticking};
use crate::word::{CarryOver, Order};

/// A limiter that keeps each key whole: two keys never share a count, however their hashes fall.
///
/// The check of a key that is known takes no lock and allocates nothing (but for a thread's first one). A
/// newcomer is cloned into the map, and while keys come and go the map now and then makes itself a new
/// index, under a lock, on the road of a newcomer: memory may stand at two and a half times what was set
/// aside. Where that matters, take [`Limiter`](crate::Limiter). At most `max_keys` keys are
/// live at once. When there is no room for another, a few are looked at, and one that is idle (that a
/// fresh key could not be told from) is evicted; a key that owes anything never is. A new key that finds
/// no room is refused with [`Reason::Full`](crate::Reason::Full), which costs a look at 64 keys: many times a
/// known key's check.
///
/// # Keys
///
/// A key is `Hash + Eq + Clone`, looked up by what it borrows as: `String` by `&str`, `Vec<u8>` by `&[u8]`,
/// a number, an enum or a tuple by reference to itself. It takes about 60 bytes and what it owns.
///
/// Share it by reference or in an [`Arc`](std::sync::Arc): every method takes `&self`.
///
/// ```
/// use tidegate::{ExactLimiter, Limit, Rate};
///
/// let limiter = ExactLimiter::<String>::builder(Limit::bucket(Rate::per_second(100), 2)).build()?;
///
/// assert_eq!(limiter.check("client-7").map(|pass| pass.remaining()).ok(), Some(1));
/// assert!(limiter.allow("client-7"));
/// let denied = limiter.check("client-7").unwrap_err();
/// assert_eq!(denied.retry_after_secs(), 1);
/// # Ok::<(), tidegate::ConfigError>(())
/// ```
pub struct ExactLimiter<K, C = Ticking> {
    table: ExactTable<PapayaMap<K>>,
    core: Core<C>,
}

/// Settings of an [`ExactLimiter`] to be.
#[derive(Clone, Debug)]
#[must_use = "nothing is limited before `build`"]
pub struct ExactBuilder<K, C = Ticking> {
    settings: Settings<C>,
    key: std::marker::PhantomData<fn() -> K>,
}

impl<K: Hash + Eq> ExactLimiter<K> {
    /// Begins a limiter that enforces `limit` for each key.
    pub fn builder(limit: Limit) -> ExactBuilder<K> {
        ExactBuilder { settings: Settings::new(limit), key: std::marker::PhantomData }
    }
}

impl<K: Hash + Eq, C: Clock> ExactBuilder<K, C> {
    /// The most keys that are live at once, 1 to 2^32 − 2; 100 000 unless told. Room for as many is
    /// set aside when the limiter is built.
    pub fn max_keys(mut self, keys: usize) -> Self {
        self.settings.max_keys = keys;
        self
    }

    /// Fixes how keys are hashed, for runs that repeat on one kind of processor (phases of
    /// [`Alignment::PerKey`](crate::Alignment::PerKey) follow from it). Unless told, seeds are random:
    /// keep it so where callers choose their keys.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = Some(seed);
        self
    }

    /// The clock; a [`Ticking`] one unless told.
    pub fn clock<D: Clock>(self, clock: D) -> ExactBuilder<K, D> {
        ExactBuilder { settings: self.settings.with_clock(clock), key: self.key }
    }

    /// Checks everything and builds the limiter.
    ///
    /// May block for up to 200 ms when it makes the first [`Ticking`] clock of the process.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the first setting that cannot be honoured.
    pub fn build(self) -> Result<ExactLimiter<K, C>, ConfigError> {
        let max_keys = self.settings.max_keys;
        let core = self.settings.build(PLACES_MAX)?;
        if !PapayaMap::<K>::has_memory(max_keys) {
            return Err(ConfigError::NoMemory { keys: max_keys });
        }
        Ok(ExactLimiter { table: ExactTable::new(PapayaMap::new(max_keys), max_keys), core })
    }
}

impl<K: Hash + Eq, C: Clock> ExactLimiter<K, C> {
    /// Decides one request of `key`, and counts it.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on.
    #[inline]
    pub fn check<Q>(&self, key: &Q) -> Result<Pass, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.check_n(key, 1)
    }

    /// Decides a request that costs `cost`: all of it is charged, or nothing passes.
    ///
    /// A cost of 0 looks without touching: it always passes, changes nothing and creates no key.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on; [`Reason::TooLarge`](crate::Reason::TooLarge) when it never can.
    #[inline]
    pub fn check_n<Q>(&self, key: &Q, cost: u64) -> Result<Pass, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hash = self.core.hashing.of(key);
        let answer = self.table.check(&self.core.engine, hash, key, cost);
        self.core.respond(answer, hash, cost)
    }

    /// How `key` stands, by the precise clock. Changes nothing, and creates no key: one never seen stands as a fresh one
    /// does.
    pub fn peek<Q>(&self, key: &Q) -> Standing
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.core.hashing.of(key);
        self.core.standing(self.table.peek(&self.core.engine, hash, key), hash)
    }

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
        self.core.refund(&receipt, None, |order, is_good| {
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
        self.core.credit(tokens, None, |order| self.order(named, key, order))
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

    fn order<Q>(&self, named: Named, key: &Q, order: Order) -> Result<Ordered, Full>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.table.order(&self.core.engine, named.hash, key, order)
    }

    /// Where a key stands among those of all limiters.
    pub(crate) fn place<Q: Hash + ?Sized>(&self, key: &Q) -> (u64, u64) {
        (self.core.number, self.core.hashing.of(key))
    }

    fn named<Q: Hash + ?Sized>(&self, key: &Q) -> Named {
        let hash = self.core.hashing.of(key);
        Named { hash, fingerprint: hash }
    }

    /// Whether one request of `key` may go on; counts it as [`check`](Self::check) does.
    #[inline]
    #[must_use = "a request that is not allowed must not go on"]
    pub fn allow<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        passes(&self.table.check(&self.core.engine, self.core.hashing.of(key), key, 1))
    }

    /// Keys that are live now; an estimate while other threads check.
    pub fn len(&self) -> usize {
        self.table.keys()
    }

    /// Whether no key is live.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most keys that are live at once.
    pub fn max_keys(&self) -> usize {
        self.table.max_keys()
    }

    /// Changes the limit while requests are decided, as [`Limiter::set_limit`](crate::Limiter::set_limit) does.
    ///
    /// # Errors
    /// A [`ConfigError`], and nothing is changed, in the cases told there.
    pub fn set_limit(&self, limit: Limit, carry_over: CarryOver) -> Result<(), ConfigError> {
        self.core.set_limit(limit, carry_over, None, |era| self.table.walk(&self.core.engine, era))
    }

    /// The limit that is in force.
    pub fn limit(&self) -> Limit {
        self.core.limit()
    }

    /// The clock it runs on.
    pub fn clock(&self) -> &C {
        &self.core.engine.clock
    }

    /// How long after it was built the limiter's time lasts at least: 36 years for ordinary limits,
    /// seven always. From then on time stands still: nothing refills and no window ends.
    pub fn horizon(&self) -> Duration {
        self.core.horizon()
    }

    /// The step of the limiter's time, rounded up to a nanosecond: below one for ordinary limits,
    /// longer for a period of decades, or a burst that takes as long to fill. Every bound holds in this time.
    pub fn resolution(&self) -> Duration {
        self.core.resolution()
    }
}

impl<K, C: Clock> fmt::Debug for ExactLimiter<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExactLimiter")
            .field("limit", &self.core.limit())
            .field("max_keys", &self.table.max_keys())
            .finish_non_exhaustive()
    }
}
