//! [`Limiter`]: the default, on the slot table.

#[cfg(feature = "policy")]
mod hashed;
mod pay;
mod stagger;
mod tiers;

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use crate::account::Named;
use crate::answer::{Denied, Pass, Standing};
use crate::error::ConfigError;
use crate::limit::Limit;
use crate::settings::{Core, Settings, passes};
use crate::table::{Answer, Hot, Missed, OWN, OnFull, Overrides, SlotTable, Stats, TierNumber};
use crate::time::{Clock, Ticking};
use crate::word::Outcome;

/// Keys beyond which memory sizes no longer fit 64 bits.
const KEYS_MAX: usize = 1 << 48;

/// The fast limiter: a fixed table of 24 bytes a key, a check in one hash, one cache line and one
/// compare-and-swap.
///
/// A key is anything that hashes, borrowed and never stored: the table keeps 48 bits of its hash, and two
/// live keys share a count with odds of about `n · 32 / 2^49 + n² / 2^65` for `n` keys (3e-6 at ten
/// million). Use one type of key per limiter. Where no such odds are acceptable, or keys are to be told
/// or removed one by one, take [`ExactLimiter`](crate::ExactLimiter): its page
/// [compares the two](crate::ExactLimiter#which-limiter).
///
/// Nothing is allocated after `build`, no check waits for another, and memory does not grow. A key may
/// stand in 32 slots; when all are taken by keys that owe something, [`OnFull`] says what happens to a
/// newcomer. A key that owes more than half its limit is never evicted.
///
/// Share it by reference or in an [`Arc`](std::sync::Arc): every method takes `&self`.
///
/// ```
/// use tidegate::{Limit, Limiter, Rate};
///
/// let limiter = Limiter::builder(Limit::bucket(Rate::per_second(100), 200)) // rate, burst
///     .max_keys(1_000_000)
///     .build()?;
///
/// match limiter.check("client-7") {
///     Ok(pass) => assert_eq!(pass.remaining(), 199),
///     Err(denied) => println!("Retry-After: {}", denied.retry_after_secs()),
/// }
/// assert!(limiter.allow(&("user", 7)));
/// # Ok::<(), tidegate::ConfigError>(())
/// ```
pub struct Limiter<C = Ticking> {
    table: SlotTable,
    pub(crate) core: Core<C>,
    max_keys: usize,
    /// By hash.
    overrides: Overrides<u64>,
}

/// Settings of a [`Limiter`] to be.
#[derive(Clone, Debug)]
#[must_use = "nothing is limited before `build`"]
pub struct Builder<C = Ticking> {
    settings: Settings<C>,
    on_full: OnFull,
    prefault: bool,
    leases: bool,
}

impl Limiter {
    /// Begins a limiter that enforces `limit` for each key.
    pub fn builder(limit: Limit) -> Builder {
        Builder { settings: Settings::new(limit), on_full: OnFull::default(), prefault: false, leases: true }
    }
}

impl<C: Clock> Builder<C> {
    /// Keys that the table is made for, at least 1; 100 000 unless told. It takes 24 bytes for each, which
    /// the system commits as they are used: one slot and a half. With exactly as many keys, all drained, about
    /// 0.06 % of them are answered `Full`; up to half as many again may fit.
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

    /// What happens to a new key that finds no room; [`OnFull::EvictLeast`] unless told.
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// Has `build` touch every page of the table, so that no check waits for the system to commit one.
    pub fn prefault(mut self, prefault: bool) -> Self {
        self.prefault = prefault;
        self
    }

    /// Whether threads that meet at one key, or are refused over and over, may each lease some of its tokens in
    /// advance; they may unless told. What a bucket admits in any time is then bounded by what it would in a millisecond more; windows
    /// stay as they are. Without leases [`Pass::remaining`] is what the key's word has left.
    pub fn leases(mut self, leases: bool) -> Self {
        self.leases = leases;
        self
    }

    /// Tiers, and different limits of overrides, that the limiter may be given, 0 to 255; none unless told. Where there may be some, time
    /// and counts have one to eight bits fewer: limits may be so much lower at most (see [`Limit`]), the limiter's time lasts nine
    /// years, in the first two of which limits may be changed, and with more than three tiers its [step](Limiter::resolution) may be above a nanosecond. As long as none is
    /// made a check costs nothing more.
    pub fn max_tiers(mut self, tiers: u8) -> Self {
        self.settings.max_tiers = tiers;
        self
    }

    /// The clock; a [`Ticking`] one unless told.
    pub fn clock<D: Clock>(self, clock: D) -> Builder<D> {
        let Self { settings, on_full, prefault, leases } = self;
        Builder { settings: settings.with_clock(clock), on_full, prefault, leases }
    }

    /// Checks everything and builds the limiter.
    ///
    /// May block for up to 200 ms when it makes the first [`Ticking`] clock of the process.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the first setting that cannot be honoured.
    pub fn build(self) -> Result<Limiter<C>, ConfigError> {
        let max_keys = self.settings.max_keys;
        let make = self.making();
        let core = self.settings.build(KEYS_MAX)?;
        let table = make(&core).ok_or(ConfigError::NoMemory { keys: max_keys })?;
        Ok(Limiter { table, core, max_keys, overrides: Overrides::default() })
    }

    /// What makes the table; nothing if there is no memory.
    fn making(&self) -> impl FnOnce(&Core<C>) -> Option<SlotTable> + use<C> {
        let Self { on_full, prefault, leases, .. } = *self;
        let max_keys = self.settings.max_keys;
        move |core| {
            let hot = Hot::new(if leases { core.engine.rule.lease_ns() } else { 0 });
            let table = SlotTable::new(max_keys, on_full, hot)?;
            if prefault {
                table.lines().prefault();
            }
            Some(table)
        }
    }

    /// Builds a limiter that goes on where a [saved](Limiter::save) one stood, instead of [`build`](Self::build). Needs
    /// the feature `snapshot`.
    ///
    /// The builder must have been given the limit that was in force when the limiter was saved (a [`set_limit`](Limiter::set_limit)
    /// afterwards makes it another), the same `max_keys`, and its seed or none. Clock, `on_full`, `leases` and `prefault` are the
    /// builder's.
    ///
    /// The limiter's time goes on: it has been as long since it was saved as the wall clock of the builder's clock says. If
    /// that was set back it has been no time at all. Windows under [`Alignment::Clock`](crate::Alignment::Clock) are
    /// those of the wall clock as it is now; if it was set back they end as much later as they do when that happens to a
    /// limiter at work. Time does not run out however often a limiter is restored: seven years are left at least, see
    /// [`horizon`](Limiter::horizon).
    ///
    /// All of the snapshot is read, to the end of `reader`. Memory is taken for `max_keys`, whatever the snapshot says.
    ///
    /// # Errors
    /// A [`RestoreError`](crate::RestoreError): nothing is restored unless all of it is. Each byte is covered by a checksum,
    /// which tells damage. It does not tell a snapshot that somebody has made up; no such one makes anything panic, but it may
    /// say that keys have used less, or more, than they have.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{Limit, Limiter, Manual, Rate};
    ///
    /// let builder = || Limiter::builder(Limit::bucket(Rate::per_minute(1), 3)).max_keys(1_000);
    /// let limiter = builder().clock(Manual::at_unix(Duration::from_secs(5_000))).build()?;
    /// assert!(limiter.check_n("ada", 3).is_ok());
    /// let mut snapshot = Vec::new();
    /// assert_eq!(limiter.save(&mut snapshot)?, 1);
    ///
    /// // 60 s later, in another process.
    /// let clock = Manual::at_unix(Duration::from_secs(5_060));
    /// let restored = builder().clock(clock).restore(&snapshot[..])?;
    /// assert!(restored.allow("ada"));
    /// assert!(!restored.allow("ada"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "snapshot")]
    pub fn restore(self, reader: impl std::io::Read) -> Result<Limiter<C>, crate::snapshot::RestoreError> {
        let max_keys = self.settings.max_keys;
        let make = self.making();
        let (table, core) = crate::snapshot::restore(self.settings, KEYS_MAX, make, reader)?;
        Ok(Limiter { table, core, max_keys, overrides: Overrides::default() })
    }
}

impl<C: Clock> Limiter<C> {
    /// Decides one request of `key`, and counts it.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on.
    #[inline(always)]
    pub fn check<K: Hash + ?Sized>(&self, key: &K) -> Result<Pass, Denied> {
        self.check_n(key, 1)
    }

    /// Decides a request that costs `cost`: all of it is charged, or nothing passes.
    ///
    /// A cost of 0 looks without touching: it always passes, changes nothing and creates no key.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on; [`Reason::TooLarge`](crate::Reason::TooLarge) when it
    /// never can.
    #[inline(always)]
    pub fn check_n<K: Hash + ?Sized>(&self, key: &K, cost: u64) -> Result<Pass, Denied> {
        self.check_hashed(self.core.hashing.of(key), cost)
    }

    /// Decides a request of the key of this hash.
    #[inline(always)]
    pub(crate) fn check_hashed(&self, hash: u64, cost: u64) -> Result<Pass, Denied> {
        self.check_seen(hash, cost, |_, _| ())
    }

    /// The same; `see` is shown what the limit left that the limiter was built with, and at which moment of the key's, where that
    /// has decided at once.
    #[inline(always)]
    pub(crate) fn check_seen(
        &self,
        hash: u64,
        cost: u64,
        see: impl FnOnce(u64, u64),
    ) -> Result<Pass, Denied> {
        let fingerprint = SlotTable::fingerprint(hash);
        let (answer, place_ns) = if self.core.stagger.is_on() {
            self.check_in_row(hash, cost)
        } else {
            match self.table.check_once(&self.core.engine, hash, cost) {
                Ok(charged) => {
                    let rule = &self.core.engine.rule;
                    see(charged.decided.next, rule.time().units(charged.ns) + rule.phase(fingerprint));
                    return self.core.respond_at_once(charged, fingerprint, cost);
                }
                Err(missed) => (self.check_on(hash, cost, missed), 0),
            }
        };
        self.core.respond_placed(answer, place_ns, fingerprint, cost)
    }

    /// The same where the refused take places, and the place. A road of its own, which joins the other where that is left by few:
    /// on it a check is asked once whether the refused are staggered, and nothing more.
    #[cold]
    #[inline(never)]
    fn check_in_row(&self, hash: u64, cost: u64) -> (Answer, u64) {
        let answer = match self.table.check_once(&self.core.engine, hash, cost) {
            Ok(charged) => Answer::Decided(charged),
            Err(missed) => self.check_on(hash, cost, missed),
        };
        (answer, self.core.place(&answer, SlotTable::fingerprint(hash), cost))
    }

    /// Decides a request that one attempt by the limiter's own limit has not settled.
    #[inline(always)]
    fn check_on(&self, hash: u64, cost: u64, missed: Missed) -> Answer {
        match self.overrides.tier_of(&hash, OWN) {
            OWN => self.table.check_on(&self.core.engine, hash, cost, missed),
            tier => self.table.check_in(&self.core.engine, hash, cost, tier),
        }
    }

    /// Decides one request of each key and gives `out` the answers in the keys' order: the same ones as of
    /// [`check`](Self::check), key after key. Where many keys are at hand and the table is larger than the cache it
    /// costs less, for their slots are fetched 16 at a time: so many keys are taken from `keys` before the first of
    /// them is answered.
    ///
    /// ```
    /// # use tidegate::{Limit, Limiter, Rate};
    /// # let limiter = Limiter::builder(Limit::bucket(Rate::per_second(1), 2)).build()?;
    /// let mut answers = Vec::new();
    /// limiter.check_many(&["ada", "bob", "ada", "ada"], |answer| answers.push(answer.is_ok()));
    /// assert_eq!(answers, [true, true, true, false]);
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    pub fn check_many<'k, K: Hash + ?Sized + 'k>(
        &self,
        keys: impl IntoIterator<Item = &'k K>,
        mut out: impl FnMut(Result<Pass, Denied>),
    ) {
        const BATCH: usize = 16;
        let mut keys = keys.into_iter();
        loop {
            let (mut hashes, mut count) = ([0; BATCH], 0);
            for key in keys.by_ref().take(BATCH) {
                hashes[count] = self.core.hashing.of(key);
                count += 1;
            }
            let hashes = &hashes[..count];
            self.table.lines().fetch(hashes);
            for &hash in hashes {
                out(self.check_hashed(hash, 1));
            }
            if count < BATCH {
                return;
            }
        }
    }

    /// How `key` stands, by the precise clock. Changes nothing, and creates no key: one never seen stands as a fresh one
    /// does.
    ///
    /// ```
    /// # use tidegate::{Limit, Limiter, Rate};
    /// let limiter = Limiter::builder(Limit::bucket(Rate::per_hour(1), 5)).build()?;
    /// assert!(limiter.allow("ada"));
    /// assert_eq!(limiter.peek("ada").remaining(), 4);
    /// assert_eq!(limiter.peek("bob").remaining(), 5);
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    pub fn peek<K: Hash + ?Sized>(&self, key: &K) -> Standing {
        self.standing_of(self.named(key))
    }

    fn standing_of(&self, key: Named) -> Standing {
        let seen = self.table.peek(&self.core.engine, key.hash);
        self.core.standing_in(self.core.engine.era_in(key.tier), seen, key.fingerprint)
    }

    /// Where a key stands among those of all limiters.
    pub(crate) fn place<K: Hash + ?Sized>(&self, key: &K) -> (u64, u64) {
        (self.core.number, self.core.hashing.of(key))
    }

    fn named<K: Hash + ?Sized>(&self, key: &K) -> Named {
        self.named_in(key, OWN)
    }

    /// A key that is asked for by a tier, unless it has one of its own.
    fn named_in<K: Hash + ?Sized>(&self, key: &K, asked: TierNumber) -> Named {
        let hash = self.core.hashing.of(key);
        let tier = self.overrides.tier_of(&hash, asked);
        Named { hash, fingerprint: SlotTable::fingerprint(hash), tier }
    }

    /// Whether one request of `key` may go on; counts it as [`check`](Self::check) does.
    #[inline(always)]
    #[must_use = "a request that is not allowed must not go on"]
    pub fn allow<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.allow_hashed(self.core.hashing.of(key), 1)
    }

    /// Whether a request of the key of this hash may go on.
    #[inline(always)]
    pub(crate) fn allow_hashed(&self, hash: u64, cost: u64) -> bool {
        match self.table.check_once(&self.core.engine, hash, cost) {
            Ok(charged) => charged.decided.outcome == Outcome::Pass,
            Err(missed) => passes(&self.check_on(hash, cost, missed)),
        }
    }

    /// Has the calling thread lease this key's tokens as if other threads had got in its way: for tests, which
    /// cannot wait for those.
    #[doc(hidden)]
    pub fn warm<K: Hash + ?Sized>(&self, key: &K) {
        let fingerprint = SlotTable::fingerprint(self.core.hashing.of(key));
        self.table.hot().warm(fingerprint, self.core.engine.coarse_ns(), 1 << 20);
    }

    /// Writes what every key has used to `writer`, for [`Builder::restore`] in a process to come, and says how many keys that
    /// were. Keys that a fresh one could not be told from are left out; a key takes 24 bytes. Needs the feature
    /// `snapshot`.
    ///
    /// Others may check meanwhile, and are not held up. Each key is written as it stood at one instant during the call: a
    /// check that ended before `save` was called is in it, one that begins after it has returned is not, and what is
    /// charged after a key's instant is forgiven by a restart. So is what forced evictions forgive during the call. Leased
    /// tokens count as spent. What [`stats`](Self::stats) has counted is not saved.
    ///
    /// Writes are buffered. On a disk, write to a new file, [`sync_all`](std::fs::File::sync_all) it, and rename it over the
    /// last one, so that there is always a whole one.
    ///
    /// **A snapshot is a secret of sorts**: it holds the seeds of the hash, and who reads them can choose keys that share a
    /// count, or that crowd a part of the table. It does not hold keys, but 48 bits of each one's hash, by which a key that is
    /// guessed is recognised.
    ///
    /// # Errors
    /// What `writer` fails with; what it has been given is then no snapshot. [`Unsupported`](std::io::ErrorKind::Unsupported) if the
    /// limiter has a [tier](Self::tier) or had an override: a snapshot holds one limit, and what is owed by others would
    /// come back at the wrong rate.
    #[cfg(feature = "snapshot")]
    pub fn save(&self, writer: impl std::io::Write) -> std::io::Result<u64> {
        crate::snapshot::save(&self.table, &self.core, self.max_keys, writer)
    }

    /// What it has counted since it was built; an estimate while other threads check.
    pub fn stats(&self) -> Stats {
        self.table.stats(&self.core.engine)
    }

    /// Keys that the table has room for.
    pub fn max_keys(&self) -> usize {
        self.max_keys
    }

    /// Bytes of the table, committed or not.
    pub fn bytes(&self) -> usize {
        self.table.lines().bytes()
    }

    /// The limit that is in force.
    pub fn limit(&self) -> Limit {
        self.core.limit()
    }

    /// The clock it runs on.
    pub fn clock(&self) -> &C {
        &self.core.engine.clock
    }

    /// How long after it was built, or restored, the limiter's time lasts at least: 36 years for ordinary limits,
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

impl<C> fmt::Debug for Limiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("limit", &self.core.limit())
            .field("max_keys", &self.max_keys)
            .finish_non_exhaustive()
    }
}
