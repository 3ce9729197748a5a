//! Tables of words, and the one loop that changes a word.

mod adopting;
mod ask;
mod eras;
mod exact;
mod hash;
mod hot;
mod papaya_map;
mod places;
mod resets;
mod single;
mod slots;

pub use ask::{Ask, InTier, Ordered};
pub use eras::{Change, Era, Eras, OWN, TierNumber};
pub use exact::{Entry, ExactTable, Map, SEALED, Seen, Stored};
pub use hash::Hashing;
pub(crate) use hot::next_limiter;
pub use hot::{Hot, Lease};
pub use papaya_map::{Overrides, PapayaMap, Turn};
pub(crate) use places::PLACES_MAX;
pub use places::Places;
pub use resets::Resets;
pub use single::Single;
#[cfg(feature = "snapshot")]
pub use slots::Copied;
pub use slots::{Lines, OnFull, SlotTable, Stats};

use crate::sync::{AtomicU64, Ordering};
use crate::time::{Clock, Origin};
use crate::word::{Decided, Outcome, Rule, TABLE_BIT};

/// What every table decides with: the rule, the clock, and where the limiter's time starts.
#[derive(Debug)]
pub struct Engine<C> {
    /// The limit that it was built with, ready to decide.
    pub rule: Rule,
    /// The limits that came after it.
    pub eras: Eras,
    /// Where time is read.
    pub clock: C,
    /// Turns readings into the limiter's time.
    pub origin: Origin,
    /// Not 0 once a word may be further ahead than a check leaves it.
    debts: AtomicU64,
}

/// A decision that has taken effect.
#[derive(Clone, Copy, Debug)]
pub struct Charged {
    /// The outcome, and the word as it was left.
    pub decided: Decided,
    /// The limiter's time in nanoseconds that it was made at.
    pub ns: u64,
}

/// The answer to a check.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// Decided on the key's word.
    Decided(Charged),
    /// No room for a new key.
    Full(Full),
}

/// No room for a new key.
#[derive(Clone, Copy, Debug)]
pub struct Full {
    /// The limiter's time in nanoseconds.
    pub ns: u64,
    /// When one of the keys looked at becomes idle.
    pub room_at_ns: u64,
    /// By whose limit it was to be decided.
    pub tier: TierNumber,
}

impl From<Result<Charged, Full>> for Answer {
    fn from(result: Result<Charged, Full>) -> Self {
        match result {
            Ok(charged) => Self::Decided(charged),
            Err(full) => Self::Full(full),
        }
    }
}

/// How often a charge is tried again because another thread has changed the word. Some thread gets on
/// each time; the bound is for the one that does not.
const CHARGES: usize = 256;

impl<C> Engine<C> {
    /// An engine without a debt.
    pub fn new(rule: Rule, clock: C, origin: Origin) -> Self {
        Self::with_eras(rule, Eras::default(), clock, origin)
    }

    /// The same, with room for tiers.
    pub fn with_eras(rule: Rule, eras: Eras, clock: C, origin: Origin) -> Self {
        Self { rule, eras, clock, origin, debts: AtomicU64::new(0) }
    }

    /// The era now, by the limiter's own rule; to be read after the word that it is to explain.
    #[inline]
    pub fn era(&self) -> Era<'_> {
        self.era_in(OWN)
    }

    /// The era now, by a tier's rule; to be read after the word that it is to explain.
    #[inline]
    pub fn era_in(&self, tier: TierNumber) -> Era<'_> {
        self.eras.now(&self.rule, tier)
    }

    /// Whether any key may have been charged more than it had.
    pub fn has_debts(&self) -> bool {
        // ORDERING: Relaxed: whoever has found such a word (by Acquire) finds what was stored before it.
        self.debts.load(Ordering::Relaxed) != 0
    }

    /// A key is about to be charged more than it may have.
    pub fn note_debts(&self) {
        if !self.has_debts() {
            // ORDERING: Relaxed, published by the exchange of the word.
            self.debts.store(1, Ordering::Relaxed);
        }
    }
}

impl<C: Clock> Engine<C> {
    /// The limiter's time by the coarse clock.
    #[inline]
    pub fn coarse_ns(&self) -> u64 {
        self.origin.ns(self.clock.coarse(), &self.clock)
    }

    /// The limiter's time by the precise clock.
    #[inline]
    pub fn precise_ns(&self) -> u64 {
        self.origin.ns(self.clock.precise(), &self.clock)
    }

    /// Decides on a shared word of `key` (its fingerprint) and leaves the next one: coarse to admit, precise to
    /// refuse.
    ///
    /// `None` if nothing counts: the word is no value but a mark of the table's, it is not `is_ours` any
    /// more after the decision took effect (a stranger may then have paid), or other threads were faster
    /// each time: `lost` is told the time of each.
    pub fn charge(
        &self,
        word: &AtomicU64,
        key: u64,
        cost: u64,
        is_ours: impl Fn() -> bool,
        lost: impl FnMut(u64),
    ) -> Option<Charged> {
        self.charge_in(OWN, word, key, cost, is_ours, lost)
    }

    /// [`charge`](Self::charge) by a tier's rule.
    pub fn charge_in(
        &self,
        tier: TierNumber,
        word: &AtomicU64,
        key: u64,
        cost: u64,
        is_ours: impl Fn() -> bool,
        lost: impl FnMut(u64),
    ) -> Option<Charged> {
        self.charge_from(tier, (self.coarse_ns(), false), word, (key, cost), is_ours, lost)
    }

    /// [`charge`](Self::charge) from a precise `ns` on, after a coarse reading has not been enough to refuse.
    pub fn charge_precisely(
        &self,
        word: &AtomicU64,
        ns: u64,
        key: u64,
        cost: u64,
        is_ours: impl Fn() -> bool,
        lost: impl FnMut(u64),
    ) -> Option<Charged> {
        self.charge_from(OWN, (ns, true), word, (key, cost), is_ours, lost)
    }

    /// The same by the limit that the limiter was built with, and none that came later.
    pub fn charge_at_first(
        &self,
        word: &AtomicU64,
        ns: u64,
        key: u64,
        cost: u64,
        is_ours: impl Fn() -> bool,
        mut lost: impl FnMut(u64),
    ) -> Option<Charged> {
        for _ in 0..CHARGES {
            let attempt = self.attempt(word, (ns, key, cost), |own| own, |_| true);
            match self.settle(word, attempt, ns, &is_ours) {
                Err(Missed::Lost) => lost(ns),
                settled => return settled.ok(),
            }
        }
        None
    }

    /// Starts with a reading, and whether it is precise.
    fn charge_from(
        &self,
        tier: TierNumber,
        (mut ns, mut is_precise): (u64, bool),
        word: &AtomicU64,
        (key, cost): (u64, u64),
        is_ours: impl Fn() -> bool,
        mut lost: impl FnMut(u64),
    ) -> Option<Charged> {
        for _ in 0..CHARGES {
            let attempt = self.attempt_in_era(tier, word, (ns, key, cost), is_precise);
            match self.settle(word, attempt, ns, &is_ours) {
                Ok(charged) => return Some(charged),
                Err(Missed::NotOurs) => return None,
                Err(Missed::Lost) => lost(ns),
                Err(Missed::Doubtful) => {
                    ns = self.precise_ns();
                    is_precise = true;
                }
            }
        }
        None
    }

    /// [`charge`](Self::charge) at a coarse `ns`, if one attempt is enough, as it nearly always is: the
    /// road of a check that passes has no loop and calls nobody. It refuses what any later time within the
    /// clock's [lag bound](Clock::lag_bound_ns) would refuse as well. Only once in a check: a clock that has no
    /// bound to give wants to be read, and must not be asked until it has.
    #[inline(always)]
    pub fn charge_once(
        &self,
        word: &AtomicU64,
        ns: u64,
        key: u64,
        cost: u64,
        is_ours: impl Fn() -> bool,
    ) -> Result<Charged, Missed> {
        let may_refuse = |seen| self.stays_refused(seen, ns, key, cost);
        self.settle(word, self.attempt(word, (ns, key, cost), |own| own, may_refuse), ns, is_ours)
    }

    /// [`charge_once`](Self::charge_once), with up to `tokens_max` tokens of what is then still available.
    pub fn lease_once(
        &self,
        word: &AtomicU64,
        ns: u64,
        key: u64,
        cost: u64,
        tokens_max: u64,
        is_ours: impl Fn() -> bool,
    ) -> Result<Lease, Missed> {
        let mut tokens = 0;
        let with_lease = |own: Decided| {
            if own.outcome != Outcome::Pass {
                return own;
            }
            let available = self.rule.remaining(own.next, self.rule.moment(ns, key));
            tokens = hot::lease_of(available, tokens_max);
            self.decide(own.next, ns, key, tokens)
        };
        let may_refuse = |seen| self.stays_refused(seen, ns, key, cost);
        let attempt = self.attempt(word, (ns, key, cost), with_lease, may_refuse);
        self.settle(word, attempt, ns, is_ours).map(|charged| Lease { charged, tokens })
    }

    /// What one attempt is worth.
    #[inline(always)]
    fn settle(
        &self,
        word: &AtomicU64,
        attempt: (Attempt, u64),
        ns: u64,
        is_ours: impl Fn() -> bool,
    ) -> Result<Charged, Missed> {
        match attempt {
            (Attempt::Done { outcome, seen }, next) => {
                if is_ours() {
                    return Ok(Charged { decided: Decided { outcome, next }, ns });
                }
                self.fell_on_stranger(word, seen, next);
                Err(Missed::NotOurs)
            }
            (Attempt::Lost, _) => Err(Missed::Lost),
            (Attempt::Doubtful, _) => Err(Missed::Doubtful),
            (Attempt::Mark, _) => Err(Missed::NotOurs),
        }
    }

    /// A charge made a stranger's `seen` into `next`. It has paid for it, and that is all, but where windows have phases: by
    /// the charger's the stranger's window may have been over, and what it had used be gone. Then that is added again.
    #[cold]
    #[inline(never)]
    fn fell_on_stranger(&self, word: &AtomicU64, seen: u64, next: u64) {
        let era = self.era();
        let rule = era.writer(next);
        if seen == next || rule.ranks_for_good() {
            return;
        }
        let bare = |word| self.eras.bare(word);
        let said = |word| word & !bare(u64::MAX);
        // By the charger's tier, as the charge has taken it. (Of windows no time is asked for that.)
        let seen = if said(seen) == said(next) { bare(seen) } else { era.of(next).value(seen, 0) };
        // ORDERING: AcqRel, as every exchange of a word. A mark means that the stranger is gone.
        let with_lost = |word: u64| {
            let value = rule.with_lost(bare(word), seen, bare(next));
            (word & TABLE_BIT == 0 && said(word) == said(next)).then_some(said(word) | value)
        };
        _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, with_lost);
    }

    /// The road of nearly every charge, where the limit was never changed: for a request of `cost` at `ns`, and for what
    /// `more` adds to the decision. With what came of it goes the word that was left. (Given a closure that decides, the compiler
    /// made a call of it, which cost every check 20 instructions.)
    #[inline(always)]
    fn attempt(
        &self,
        word: &AtomicU64,
        (ns, key, cost): (u64, u64, u64),
        more: impl FnOnce(Decided) -> Decided,
        may_refuse: impl Fn(u64) -> bool,
    ) -> (Attempt, u64) {
        // ORDERING: Acquire, and AcqRel at the exchange: `is_ours` reads what the word's owner stored
        // before this value, and not before the exchange. For the count itself the word's own
        // modification order is enough.
        let seen = word.load(Ordering::Acquire);
        // A mark, or the limit was changed: both have this bit. (So a word of a later limit, whose bit 62 is set, is none of
        // what follows: the state is read after it.)
        if (seen | self.eras.state()) & TABLE_BIT != 0 {
            return (Attempt::Mark, seen);
        }
        let Decided { outcome, next } = more(self.decide(seen, ns, key, cost));
        if outcome == Outcome::Exhausted && !may_refuse(seen) {
            return (Attempt::Doubtful, seen);
        }
        if next == seen || word.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return (Attempt::Done { outcome, seen }, next);
        }
        (Attempt::Lost, seen)
    }

    /// Decides by the limiter's time alone.
    #[inline(always)]
    fn decide(&self, seen: u64, ns: u64, key: u64, cost: u64) -> Decided {
        self.rule.decide(seen, self.rule.moment(ns, key), cost)
    }

    /// Whether what is refused at a coarse `ns` is refused at the precise time too, without reading that.
    #[inline]
    fn stays_refused(&self, seen: u64, ns: u64, key: u64, cost: u64) -> bool {
        self.clock.lag_bound_ns().is_some_and(|lag_ns| {
            let at_latest = self.decide(seen, ns.saturating_add(lag_ns), key, cost);
            at_latest.outcome == Outcome::Exhausted
        })
    }
}

/// Why one attempt was not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Another thread changed the word first.
    Lost,
    /// A refusal wants a precise reading.
    Doubtful,
    /// The word was not the key's.
    NotOurs,
}

/// What came of one attempt to charge.
#[derive(Clone, Copy)]
enum Attempt {
    /// Decided, and in effect on a word that was `seen` before.
    Done { outcome: Outcome, seen: u64 },
    /// The word is the table's.
    Mark,
    /// Another thread changed the word first.
    Lost,
    /// A refusal that a precise reading may not bear out.
    Doubtful,
}
