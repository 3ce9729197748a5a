//! What a table may be asked about a key: a check, or an order.

use super::eras::{OWN, TierNumber};
use super::{Charged, Engine, Era};
use crate::sync::AtomicU64;
use crate::time::Clock;
use crate::word::{Decided, Done, Order, Outcome};

/// A check of some cost, or an [`Order`].
pub trait Ask: Copy {
    /// What it is answered with, once it has taken effect.
    type Answer;

    /// Whose rule answers it: the limiter's own, unless told.
    #[inline]
    fn tier(self) -> TierNumber {
        OWN
    }

    /// The word that it would leave instead of one of this value, which nobody shares, and the answer then. `owner` tells
    /// who has the word: a table's own matter, kept with the answer.
    fn decide(self, era: Era<'_>, value: u64, ns: u64, key: u64, owner: u64) -> (u64, Self::Answer);

    /// Carries it out on a key's shared word (with the key's fingerprint) by a tier's rule. `None` as for [`Engine::charge`].
    fn carry_out<C: Clock>(
        self,
        engine: &Engine<C>,
        tier: TierNumber,
        word: (&AtomicU64, u64),
        owner: u64,
        is_ours: impl Fn() -> bool,
        lost: impl FnMut(u64),
    ) -> Option<Self::Answer>;

    /// The answer of a table that lets newcomers pass uncounted; `word` is one that nothing has been charged to.
    fn uncounted(ns: u64, word: u64) -> Self::Answer;
}

/// An order that has taken effect.
#[derive(Clone, Copy, Debug)]
pub struct Ordered {
    /// What came of it.
    pub done: Done,
    /// The limiter's time in nanoseconds that it was carried out at.
    pub ns: u64,
    /// Nothing at all could have been charged before.
    pub was_dry: bool,
    /// Whose word it was: the slot and its generation, the entry's place.
    pub owner: u64,
}

/// A check of this cost.
impl Ask for u64 {
    type Answer = Charged;

    fn decide(self, era: Era<'_>, value: u64, ns: u64, key: u64, _owner: u64) -> (u64, Charged) {
        let Decided { outcome, next } = era.rule.decide(value, era.rule.moment(ns, key), self);
        let next = era.word(next);
        (next, Charged { decided: Decided { outcome, next }, ns })
    }

    fn carry_out<C: Clock>(
        self,
        engine: &Engine<C>,
        tier: TierNumber,
        (word, key): (&AtomicU64, u64),
        _owner: u64,
        is_ours: impl Fn() -> bool,
        lost: impl FnMut(u64),
    ) -> Option<Charged> {
        engine.charge_in(tier, word, key, self, is_ours, lost)
    }

    fn uncounted(ns: u64, word: u64) -> Charged {
        Charged { decided: Decided { outcome: Outcome::Pass, next: word }, ns }
    }
}

impl Ask for Order {
    type Answer = Ordered;

    fn decide(self, era: Era<'_>, value: u64, ns: u64, key: u64, owner: u64) -> (u64, Ordered) {
        let done = era.rule.carry_out(self, value, ns, key);
        let next = era.word(done.next);
        (next, Ordered { done: Done { next, ..done }, ns, was_dry: false, owner })
    }

    fn carry_out<C: Clock>(
        self,
        engine: &Engine<C>,
        tier: TierNumber,
        (word, key): (&AtomicU64, u64),
        owner: u64,
        is_ours: impl Fn() -> bool,
        _lost: impl FnMut(u64),
    ) -> Option<Ordered> {
        engine.order(word, key, InTier { ask: self, tier }, owner, is_ours)
    }

    fn uncounted(ns: u64, word: u64) -> Ordered {
        Ordered { done: Done { outcome: Outcome::Pass, next: word, tokens: 0 }, ns, was_dry: false, owner: 0 }
    }
}

/// What is asked by a tier's rule.
#[derive(Clone, Copy, Debug)]
pub struct InTier<A> {
    /// What is asked.
    pub ask: A,
    /// Whose rule answers.
    pub tier: TierNumber,
}

/// By the limiter's own rule.
impl<A> From<A> for InTier<A> {
    fn from(ask: A) -> Self {
        Self { ask, tier: OWN }
    }
}

impl<A: Ask> Ask for InTier<A> {
    type Answer = A::Answer;

    #[inline]
    fn tier(self) -> TierNumber {
        self.tier
    }

    fn decide(self, era: Era<'_>, value: u64, ns: u64, key: u64, owner: u64) -> (u64, A::Answer) {
        self.ask.decide(era, value, ns, key, owner)
    }

    fn carry_out<C: Clock>(
        self,
        engine: &Engine<C>,
        tier: TierNumber,
        word: (&AtomicU64, u64),
        owner: u64,
        is_ours: impl Fn() -> bool,
        lost: impl FnMut(u64),
    ) -> Option<A::Answer> {
        self.ask.carry_out(engine, tier, word, owner, is_ours, lost)
    }

    fn uncounted(ns: u64, word: u64) -> A::Answer {
        A::uncounted(ns, word)
    }
}
