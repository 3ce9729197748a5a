//! Hot keys: what a thread has paid for in advance, so that it need not meet all others at one word.
//!
//! # Protocol
//!
//! * **Paths.** *Notice*: a check whose exchange failed, or that only a precise reading could refuse, counts a loss on
//!   its key; some losses within a millisecond heat the limiter for a while. *Lease*: a check of a hot limiter whose key
//!   the thread has a shard for charges the key's word with more than its own cost, in the one exchange it
//!   makes anyway, and keeps the rest in the shard. *Spend*: the thread's next checks of the key take from
//!   the shard, and touch nothing that is shared. *Refuse again*: the shard keeps the word of a key that was found
//!   dry; until that word lets a cost of 1 pass, nobody can have changed it but to give something back, which
//!   is counted.
//! * **Charged first.** The word is exchanged before a token of the lease is spent, by the same decision as any
//!   other charge; what is spent is never more than what was charged. A slot that changes hands meanwhile
//!   takes nothing from a lease: that was paid for. An exchange that fell on a stranger's word makes no
//!   lease.
//! * **A lease is short.** A bucket's is spent within a millisecond of the limiter's time: any bound on what a bucket
//!   admits in Δ is one of Δ + 1 ms. A window's is spent at the very reading of the clock that it was charged at: no
//!   window sees a token of the one before it.
//! * **Nothing is given back.** What is left at the end lapses. So a lease is at most 1/512 of what the
//!   thread spent on the key in this span or in its last, whichever was more: what lapses in all is less
//!   than 0.4 % of what was spent (0.6 % of a window's limit, if the window before was used up too). It is at most
//!   1/16 of what is available, so that the last tokens go singly to whoever asks.
//! * **No ids.** A shard is the thread's own memory and is named by limiter and key; limiters are numbered and
//!   no number comes back. So no thread finds another's shard, however many come and go, and no limiter
//!   another's. A thread that ends lets its leases lapse.
//! * **Orderings.** Nothing is shared but the heat, which is a hint.

use std::cell::Cell;

use super::{Charged, Engine, Missed};
use crate::sync::{AtomicU64, Ordering, Padded, Tally, each_thread_has};
use crate::time::Clock;
use crate::word::{Decided, Outcome, Rule};

/// How long a limiter stays hot after it was last found so.
const HOT_NS: u64 = 64_000_000;
/// Keys that a thread keeps shards for.
const SHARDS: usize = 4;
/// Losses of one thread on one key are counted for so long.
const LOSSES_NS: u64 = 1_000_000;
/// So many of them make a limiter hot.
#[cfg(not(tidegate_loom))]
const LOSSES: u64 = 8;
#[cfg(tidegate_loom)]
const LOSSES: u64 = 1;
/// A shard with something left goes to another key that has lost so often since the last lease.
const KNOCKS: u64 = 64;
/// A lease is at most this part of what the thread has spent.
#[cfg(not(tidegate_loom))]
const SPENT_PER_LEASED: u64 = 512;
#[cfg(tidegate_loom)]
const SPENT_PER_LEASED: u64 = 1;
/// A lease is at most this part of what is available.
#[cfg(not(tidegate_loom))]
const AVAILABLE_PER_LEASED: u64 = 16;
#[cfg(tidegate_loom)]
const AVAILABLE_PER_LEASED: u64 = 1;

/// One thread's share of one key.
#[derive(Debug)]
#[repr(align(64))]
struct Shard {
    /// The number of the limiter; 0: nobody's.
    limiter: Cell<u64>,
    key: Cell<u64>,
    /// The limiter's time at which the span began that the lease, and what is counted, is of.
    ns: Cell<u64>,
    /// The key's word as this thread has last left or seen it: with all of its lease charged.
    word: Cell<u64>,
    /// Charged, and not spent.
    left: Cell<u64>,
    spent: Cell<u64>,
    /// What was spent in the span before.
    spent_before: Cell<u64>,
    leases: Cell<u64>,
    /// Losses since `lost_ns`, within [`LOSSES_NS`].
    losses: Cell<u64>,
    lost_ns: Cell<u64>,
    /// How often another key wanted the shard since its last lease.
    knocks: Cell<u64>,
    /// By that word the key is dry before this moment of its own; 0: not that is known.
    dry_until: Cell<u64>,
    /// How often a dry key of the limiter had been given something back before that word was read.
    wettings: Cell<u64>,
}

/// Leases whose time is over.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// How many.
    pub leases: u64,
    /// Tokens of them that nobody spent.
    pub lapsed: u64,
}

/// A charge of more than the check's own cost.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    /// The charge as a whole.
    pub charged: Charged,
    /// How many tokens of it are for later.
    pub tokens: u64,
}

impl Shard {
    const fn new() -> Self {
        Self {
            limiter: Cell::new(0),
            key: Cell::new(0),
            ns: Cell::new(0),
            word: Cell::new(0),
            left: Cell::new(0),
            spent: Cell::new(0),
            spent_before: Cell::new(0),
            leases: Cell::new(0),
            losses: Cell::new(0),
            lost_ns: Cell::new(0),
            knocks: Cell::new(0),
            dry_until: Cell::new(0),
            wettings: Cell::new(0),
        }
    }

    /// Makes it the shard of another key.
    fn give_to(&self, limiter: u64, key: u64, ns: u64) {
        for count in [&self.left, &self.spent, &self.spent_before, &self.leases, &self.losses, &self.knocks] {
            count.set(0);
        }
        self.dry_until.set(0);
        self.limiter.set(limiter);
        self.key.set(key);
        self.ns.set(ns);
    }

    /// Whether what was leased may be spent at `ns`. A clock that has stepped back is as good as one far ahead.
    #[inline(always)]
    fn is_live(&self, life_ns: u64, ns: u64) -> bool {
        ns.wrapping_sub(self.ns.get()) < life_ns
    }

    /// Moves on to `ns`, if what was leased is over then, and lapses. Returns what came of it, if there was any.
    fn roll(&self, life_ns: u64, ns: u64) -> Option<Ended> {
        if self.is_live(life_ns, ns) {
            return None;
        }
        self.ns.set(ns);
        self.spent_before.set(self.spent.replace(0));
        let ended = Ended { leases: self.leases.replace(0), lapsed: self.left.replace(0) };
        (ended.leases > 0).then_some(ended)
    }

    /// The most tokens that may be leased now.
    fn lease_max(&self) -> u64 {
        self.spent.get().max(self.spent_before.get()) / SPENT_PER_LEASED
    }

    /// What a check of `cost`, for which the lease is not enough, has to charge beside that.
    fn rest_of(&self, rule: &Rule, life_ns: u64, ns: u64, cost: u64) -> u64 {
        let is_of_use = self.is_live(life_ns, ns) && rule.fits(cost);
        if is_of_use { cost.saturating_sub(self.left.get()).max(1) } else { cost }
    }

    /// Takes `cost` from the lease, if that is live at `ns` and enough.
    #[inline(always)]
    fn spend(&self, life_ns: u64, ns: u64, cost: u64) -> Option<Charged> {
        // A cost of 0 wraps to the largest: it looks at the word itself.
        let is_enough = cost.wrapping_sub(1) < self.left.get();
        (self.is_live(life_ns, ns) & is_enough).then(|| {
            self.left.set(self.left.get() - cost);
            self.spent.set(self.spent.get() + cost);
            Charged { decided: Decided { outcome: Outcome::Pass, next: self.word.get() }, ns }
        })
    }

    /// Whether the key is known to be dry at a moment.
    #[inline]
    fn is_dry(&self, moment: u64) -> bool {
        moment < self.dry_until.get()
    }
}

each_thread_has!(MINE: [Shard; SHARDS] = [const { Shard::new() }; SHARDS]);

/// Whether a limiter is hot, and its number.
#[derive(Debug)]
pub struct Hot {
    limiter: u64,
    /// Hot before this time, in the limiter's nanoseconds.
    until_ns: Padded<AtomicU64>,
    /// How long a lease may be spent; 0: there are none.
    life_ns: u64,
    /// How often a dry key was given something back.
    wettings: AtomicU64,
    leases: Tally,
    lapsed: Tally,
}

impl Hot {
    /// A cold limiter's, whose leases will last `life_ns` each; cold for good, if that is 0.
    pub fn new(life_ns: u64) -> Self {
        Self {
            limiter: next_limiter(),
            until_ns: Padded::default(),
            life_ns,
            wettings: AtomicU64::new(0),
            leases: Tally::default(),
            lapsed: Tally::default(),
        }
    }

    /// Whether the limiter is hot.
    #[inline(always)]
    pub fn is_hot(&self, ns: u64) -> bool {
        // ORDERING: Relaxed, here and in `heat`: a hint.
        ns < self.until_ns.0.load(Ordering::Relaxed)
    }

    fn heat(&self, ns: u64) {
        // Most of the time half of it is left, and nothing is written.
        if self.life_ns > 0 && !self.is_hot(ns.saturating_add(HOT_NS / 2)) {
            self.until_ns.0.store(ns.saturating_add(HOT_NS), Ordering::Relaxed);
        }
    }

    /// The calling thread's shard where this key's would be.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "below SHARDS")]
    fn at<T>(key: u64, use_it: impl FnOnce(&Shard) -> T) -> T {
        MINE.with(|shards| use_it(&shards[(key % SHARDS as u64) as usize]))
    }

    #[inline(always)]
    fn owns(&self, shard: &Shard, key: u64) -> bool {
        (shard.limiter.get() == self.limiter) & (shard.key.get() == key)
    }

    /// The calling thread's shard of this key, if it has one.
    #[inline(always)]
    fn shard<T>(&self, key: u64, use_it: impl FnOnce(&Shard) -> Option<T>) -> Option<T> {
        Self::at(key, |shard| if self.owns(shard, key) { use_it(shard) } else { None })
    }

    /// A check of the key has lost an exchange at `ns`, or was refused there by a precise reading.
    pub fn lost(&self, key: u64, ns: u64) {
        if self.life_ns == 0 {
            return;
        }
        Self::at(key, |shard| {
            if !self.owns(shard, key) {
                // Another key's, that may have a lease. It has to have been idle for some time: whose time that is
                // told in is not known here.
                shard.knocks.set(shard.knocks.get() + 1);
                if shard.left.get() > 0 && shard.knocks.get() < KNOCKS {
                    return;
                }
                shard.give_to(self.limiter, key, ns);
            }
            if ns.wrapping_sub(shard.lost_ns.get()) >= LOSSES_NS {
                shard.lost_ns.set(ns);
                shard.losses.set(0);
            }
            shard.losses.set(shard.losses.get() + 1);
            if shard.losses.get() >= LOSSES {
                self.heat(ns);
            }
        });
    }

    /// A key that was dry has been given something back: what threads know of dry keys does not hold any more.
    pub fn wet(&self) {
        // ORDERING: Release pairs with the Acquire of `check`: who reads this count and then the word, reads the word
        // that the key was left with.
        self.wettings.fetch_add(1, Ordering::Release);
    }

    /// Heats the limiter, and gives the calling thread a shard of the key with so much `spent`, as losses would: for
    /// models and tests, which cannot wait for those.
    pub fn warm(&self, key: u64, ns: u64, spent: u64) {
        Self::at(key, |shard| {
            shard.give_to(self.limiter, key, ns);
            shard.spent.set(spent);
        });
        self.heat(ns);
    }

    /// Takes `cost` from the thread's lease of the key, if it has enough of one.
    #[inline(always)]
    pub fn spend(&self, key: u64, ns: u64, cost: u64) -> Option<Charged> {
        self.shard(key, |shard| shard.spend(self.life_ns, ns, cost))
    }

    /// The check of a hot key that has no lease which is enough: refused again, or one attempt on the word that is
    /// `found` with a way to tell whether it is still the key's. `None` if the thread has no shard for the key, or the
    /// attempt does not settle it.
    pub fn check<'w, C: Clock, F: Fn() -> bool + Copy>(
        &self,
        engine: &Engine<C>,
        key: u64,
        ns: u64,
        cost: u64,
        found: impl FnOnce() -> Option<(&'w AtomicU64, F)>,
    ) -> Option<Charged> {
        self.shard(key, |shard| {
            self.roll(shard, ns);
            // Leases know one limit only: the one that the limiter was built with.
            if cost == 0 || engine.eras.is_changed() {
                return None;
            }
            let mut precise_ns = None;
            // ORDERING: Acquire, before the word is read: see `wet`.
            let wettings = self.wettings.load(Ordering::Acquire);
            if shard.wettings.replace(wettings) != wettings {
                shard.dry_until.set(0);
            }
            if shard.is_dry(engine.rule.moment(ns, key)) {
                let ns = match engine.clock.lag_bound_ns() {
                    Some(lag_ns) if shard.is_dry(engine.rule.moment(ns.saturating_add(lag_ns), key)) => ns,
                    _ => engine.precise_ns(),
                };
                let moment = engine.rule.moment(ns, key);
                if shard.is_dry(moment) {
                    let decided = engine.rule.decide(shard.word.get(), moment, cost);
                    return Some(Charged { decided, ns });
                }
                precise_ns = Some(ns);
            }
            let (word, is_ours) = found()?;
            let lost = |ns| self.lost(key, ns);
            let precisely = |ns| {
                let cost = shard.rest_of(&engine.rule, self.life_ns, ns, cost);
                let charged = engine.charge_at_first(word, ns, key, cost, is_ours, lost)?;
                Some(Lease { charged, tokens: 0 })
            };
            let lease = match precise_ns {
                Some(ns) => precisely(ns)?,
                None => {
                    let rest = shard.rest_of(&engine.rule, self.life_ns, ns, cost);
                    match engine.lease_once(word, ns, key, rest, shard.lease_max(), is_ours) {
                        Ok(lease) => lease,
                        Err(Missed::Doubtful) => precisely(engine.precise_ns())?,
                        Err(missed) => {
                            if missed == Missed::Lost {
                                lost(ns);
                            }
                            return None;
                        }
                    }
                }
            };
            // A clock of somebody's own may have asked a limiter, and the shard be another key's by now. And the limit may
            // have been changed.
            if self.owns(shard, key) && !engine.eras.is_changed() {
                self.note(&engine.rule, shard, cost, lease);
            }
            Some(lease.charged)
        })
    }

    /// Goes on where one attempt on the key's `word` has missed: until it is charged, or refused by a precise reading.
    /// `None` as for [`charge`](Engine::charge).
    pub fn charge_on<C: Clock>(
        &self,
        engine: &Engine<C>,
        word: &AtomicU64,
        key: u64,
        cost: u64,
        missed: Missed,
        is_ours: impl Fn() -> bool,
    ) -> Option<Charged> {
        let lost = |ns| self.lost(key, ns);
        match missed {
            Missed::Lost => lost(engine.coarse_ns()),
            Missed::NotOurs => {}
            Missed::Doubtful => {
                let ns = engine.precise_ns();
                let charged = engine.charge_precisely(word, ns, key, cost, is_ours, lost)?;
                if charged.decided.outcome == Outcome::Exhausted {
                    lost(charged.ns); // whoever is refused over and over need not ask the word each time
                }
                return Some(charged);
            }
        }
        engine.charge(word, key, cost, is_ours, lost)
    }

    /// Lets the key's shard move on to `ns`, where its lease may be over.
    fn roll(&self, shard: &Shard, ns: u64) {
        if let Some(ended) = shard.roll(self.life_ns, ns) {
            // ORDERING: Relaxed: a statistic. It is written once a millisecond at most by each thread.
            self.leases.fetch_add(ended.leases, Ordering::Relaxed);
            self.lapsed.fetch_add(ended.lapsed, Ordering::Relaxed);
        }
    }

    /// Leases that are over, and tokens of them that nobody spent.
    pub fn ended(&self) -> Ended {
        let read = |tally: &Tally| tally.load(Ordering::Relaxed);
        Ended { leases: read(&self.leases), lapsed: read(&self.lapsed) }
    }

    /// Notes in the key's shard what a check of `cost` came to, and keeps its lease.
    fn note(&self, rule: &Rule, shard: &Shard, cost: u64, lease: Lease) {
        let Lease { charged: Charged { decided, ns }, tokens } = lease;
        let moment = rule.moment(ns, shard.key.get());
        shard.word.set(decided.next);
        shard.dry_until.set(rule.dry_until(decided.next, moment).unwrap_or(0));
        match decided.outcome {
            Outcome::Pass => {
                shard.spent.set(shard.spent.get() + cost);
                if shard.is_live(self.life_ns, ns) {
                    shard.left.set(tokens); // what was left is part of the cost
                }
            }
            Outcome::Exhausted => self.heat(ns),
            Outcome::TooLarge => {}
        }
        if tokens > 0 {
            shard.leases.set(shard.leases.get() + 1);
            shard.knocks.set(0);
            self.heat(ns);
        }
    }
}

/// A number that no other limiter of the process has, and not 0.
pub(crate) fn next_limiter() -> u64 {
    static LIMITERS: Tally = Tally::new(1);
    // ORDERING: Relaxed: numbers only have to differ.
    LIMITERS.fetch_add(1, Ordering::Relaxed)
}

/// How many of what is `available` may be leased, if it may be at most `tokens_max`.
pub(super) fn lease_of(available: u64, tokens_max: u64) -> u64 {
    tokens_max.min(available / AVAILABLE_PER_LEASED)
}
