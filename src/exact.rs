//! [`ExactLimiter`]: whole keys in a concurrent map.

mod pay;
mod tiers;

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::iter::FusedIterator;
use std::ops::Range;
use std::time::Duration;

use crate::account::Named;
use crate::answer::{Denied, Pass, Standing};
use crate::error::ConfigError;
use crate::limit::Limit;
use crate::settings::{Core, Settings, passes};
use crate::table::{
    Answer, ExactTable, Full, InTier, OWN, Ordered, Overrides, PLACES_MAX, PapayaMap, Seen, TierNumber,
};
use crate::time::{Clock, Ticking};
use crate::word::Order;

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
/// a number, an enum or a tuple by reference to itself.
///
/// # Which limiter
///
/// Take [`Limiter`](crate::Limiter) unless you need one of the things that only whole keys give:
///
/// | | `Limiter` | `ExactLimiter` |
/// |---|---|---|
/// | two keys on one count | about 3 in a million that it happens at all, with ten million live keys | never |
/// | who is there, who goes | no key is kept, so none can be told | [`iter`](Self::iter), [`remove`](Self::remove), [`retain`](Self::retain) |
/// | room | 32 slots a key; when they are full, the one that owes least goes, if it owes half its limit at most | 64 keys looked at; one that owes anything never goes |
/// | bytes a key | 24 | 52 to 64, and what the key owns (16 bytes of text in a `String`: 32 more) |
/// | a check, many keys | 1 | 1.5 to 2.1 times as long; text keys, three times |
/// | the same, keys at hand in batches | [`check_many`](crate::Limiter::check_many): 1 | 3.5 times as long |
/// | a check, one hot key and many threads | leased: 1 | an exchange for each: ten times as long |
/// | a newcomer to a full table | four checks' time | up to 64 keys looked at: microseconds |
/// | after `build` | allocates nothing, takes no lock | a newcomer is cloned, and the map makes a new index now and then |
///
/// Bytes are those of `cargo test --test bytes_a_key -- --nocapture`, times those of
/// `cargo run --release -p tidegate-peers -- --quick`, printed in `benches/README.md`.
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
    pub(crate) core: Core<C>,
    overrides: Overrides<K>,
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

    /// Tiers, and different limits of overrides, that the limiter may be given; see
    /// [`Builder::max_tiers`](crate::Builder::max_tiers).
    pub fn max_tiers(mut self, tiers: u8) -> Self {
        self.settings.max_tiers = tiers;
        self
    }

    /// Whether the refused are told to come back one after the other; see [`Builder::stagger`](crate::Builder::stagger).
    pub fn stagger(mut self, stagger: bool) -> Self {
        self.settings.stagger = stagger;
        self
    }

    /// The longest staggered wait; see [`Builder::stagger_wait_max`](crate::Builder::stagger_wait_max).
    pub fn stagger_wait_max(mut self, wait_max: Duration) -> Self {
        self.settings.stagger_wait_max = wait_max;
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
        Ok(ExactLimiter {
            table: ExactTable::new(PapayaMap::new(max_keys), max_keys),
            core,
            overrides: Overrides::default(),
        })
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
        self.core.respond(self.check_hashed(hash, key, cost), hash, cost)
    }

    #[inline]
    fn check_hashed<Q>(&self, hash: u64, key: &Q, cost: u64) -> Answer
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        match self.overrides.tier_of(key, OWN) {
            OWN => self.table.check(&self.core.engine, hash, key, cost),
            tier => self.table.check_in(&self.core.engine, hash, key, cost, tier),
        }
    }

    /// How `key` stands, by the precise clock. Changes nothing, and creates no key: one never seen stands as a fresh one
    /// does.
    pub fn peek<Q>(&self, key: &Q) -> Standing
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.standing_of(self.named(key), key)
    }

    fn standing_of<Q>(&self, named: Named, key: &Q) -> Standing
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let seen = self.table.peek(&self.core.engine, named.hash, key);
        self.core.standing_in(self.core.engine.era_in(named.tier), seen, named.fingerprint)
    }

    fn order<Q>(&self, named: Named, key: &Q, order: InTier<Order>) -> Result<Ordered, Full>
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

    fn named<Q>(&self, key: &Q) -> Named
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.named_in(key, OWN)
    }

    /// A key that is asked for by a tier, unless it has one of its own.
    fn named_in<Q>(&self, key: &Q, asked: TierNumber) -> Named
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.core.hashing.of(key);
        Named { hash, fingerprint: hash, tier: self.overrides.tier_of(key, asked) }
    }

    /// Whether one request of `key` may go on; counts it as [`check`](Self::check) does.
    #[inline]
    #[must_use = "a request that is not allowed must not go on"]
    pub fn allow<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        passes(&self.check_hashed(self.core.hashing.of(key), key, 1))
    }

    /// Forgets `key`, as if it had never been seen, and tells how it stood, by the precise clock; `None` if it was
    /// not there. (A key that owes nothing may have been evicted meanwhile, so `None` does not say that it was never
    /// seen.)
    ///
    /// A check that races with it is charged either before, and then counts in the standing that is returned, or
    /// after, on a fresh count. So a key is admitted what its limit allows once more for each removal that returned
    /// a standing, and no more. This holds whatever the clock does: a window that a removed key had used up begins
    /// anew, though the clock stand where it stood or step back.
    ///
    /// ```
    /// # use tidegate::{ExactLimiter, Limit, Rate};
    /// let limiter = ExactLimiter::<String>::builder(Limit::bucket(Rate::per_hour(1), 2)).build()?;
    /// assert!(limiter.check_n("ada", 2).is_ok() && !limiter.allow("ada"));
    /// assert_eq!(limiter.remove("ada").map(|stood| stood.remaining()), Some(0));
    /// assert!(limiter.remove("ada").is_none());
    /// assert!(limiter.allow("ada"));
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    pub fn remove<Q>(&self, key: &Q) -> Option<Standing>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.core.hashing.of(key);
        let word = self.core.resets.around(hash, || self.table.forget(hash, key))?;
        self.core.stagger.forget(hash);
        Some(self.standing(key, Seen { hash, word, ns: self.core.engine.precise_ns() }))
    }

    /// Forgets each key for which `keep` says no, as [`remove`](Self::remove) does, and returns how many those were.
    ///
    /// Each voids the receipts of its key, and of one in 64 other keys: where many go, expect refunds to give nothing.
    ///
    /// A key is only forgotten as it was judged: one that is charged between the judgement and the removal is
    /// judged again, and kept if it was charged in between 256 times in a row. As in [`iter`](Self::iter), a key that
    /// is there from beginning to end is judged, others may be. `keep` runs without a lock: nobody waits for
    /// it, and it may use the limiter itself.
    ///
    /// ```
    /// # use tidegate::{ExactLimiter, Limit, Rate};
    /// let limiter = ExactLimiter::<(u32, String)>::builder(Limit::bucket(Rate::per_hour(1), 5)).build()?;
    /// for key in [(1, "ada"), (2, "bob"), (1, "eve")] {
    ///     assert!(limiter.allow(&(key.0, key.1.to_owned())));
    /// }
    /// // Tenant 1 has left.
    /// assert_eq!(limiter.retain(|(tenant, _), _| *tenant != 1), 2);
    /// assert_eq!(limiter.len(), 1);
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&K, Standing) -> bool) -> usize {
        self.table.retain(&self.core.engine, |key, seen| {
            let is_kept = keep(key, self.standing(key, seen));
            if !is_kept {
                // Before the key goes, and only if it goes as it was seen: no receipt is issued in between.
                self.core.resets.add(seen.hash);
            }
            is_kept
        })
    }

    /// The keys that are there and how each stands, in no order, by the precise clock at the time when the iterator
    /// comes to it. Keys that owe nothing are among them, until another key needs their room.
    ///
    /// Others may check, and keys come and go, meanwhile. A key that is there from the call of this method to the
    /// iterator's end is told once; one that comes or goes may be told or not; one that goes and comes back may be
    /// told twice.
    ///
    /// Each key is cloned, and in return the iterator holds nothing: it may be kept, sent to another thread or
    /// dropped half way, and nobody waits for it. A key costs a look-up, that is, about a check.
    /// [`retain`](Self::retain) looks at keys without cloning them.
    ///
    /// ```
    /// # use tidegate::{ExactLimiter, Limit, Rate};
    /// let limiter = ExactLimiter::<String>::builder(Limit::bucket(Rate::per_hour(1), 5)).build()?;
    /// assert!(limiter.check_n("ada", 1).is_ok() && limiter.check_n("bob", 4).is_ok());
    /// let mut keys: Vec<_> = limiter.iter().map(|(key, stands)| (stands.remaining(), key)).collect();
    /// keys.sort();
    /// assert_eq!(keys, [(1, "bob".to_owned()), (4, "ada".to_owned())]);
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    pub fn iter(&self) -> ExactIter<'_, K, C>
    where
        K: Clone,
    {
        ExactIter { limiter: self, places: self.table.places().used() }
    }

    /// How a key stands that was met: by its own override, or the limit that its word names.
    fn standing<Q>(&self, key: &Q, Seen { hash, word, ns }: Seen) -> Standing
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let era = match self.overrides.get(key) {
            Some(tier) => self.core.engine.era_in(tier),
            None => self.core.engine.era().of(word),
        };
        self.core.standing_in(era, (word, ns), hash)
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

impl<K, C> fmt::Debug for ExactLimiter<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExactLimiter")
            .field("limit", &self.core.limit())
            .field("max_keys", &self.table.max_keys())
            .finish_non_exhaustive()
    }
}

/// The keys of an [`ExactLimiter`] and how each stands; see [`iter`](ExactLimiter::iter).
#[must_use = "an iterator does nothing unless it is asked for its items"]
pub struct ExactIter<'a, K, C = Ticking> {
    limiter: &'a ExactLimiter<K, C>,
    /// Those not visited yet.
    places: Range<u32>,
}

impl<K: Hash + Eq + Clone, C: Clock> Iterator for ExactIter<'_, K, C> {
    type Item = (K, Standing);

    fn next(&mut self) -> Option<(K, Standing)> {
        let ExactLimiter { table, core, .. } = self.limiter;
        let (key, seen) = table.next(&core.engine, &mut self.places)?;
        let stands = self.limiter.standing(&key, seen);
        Some((key, stands))
    }

    /// At most as many as there were at once since the limiter was built, less those visited.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.places.len()))
    }
}

impl<K: Hash + Eq + Clone, C: Clock> FusedIterator for ExactIter<'_, K, C> {}

impl<'a, K: Hash + Eq + Clone, C: Clock> IntoIterator for &'a ExactLimiter<K, C> {
    type Item = (K, Standing);
    type IntoIter = ExactIter<'a, K, C>;

    fn into_iter(self) -> ExactIter<'a, K, C> {
        self.iter()
    }
}

impl<K, C> fmt::Debug for ExactIter<'_, K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExactIter").field("limiter", self.limiter).finish_non_exhaustive()
    }
}
