//! One word for everybody, and no table.

use super::{Answer, Charged, Engine, Era, Full, Hot, InTier, Missed, OWN, Ordered};
use crate::sync::{AtomicU64, Ordering, Padded};
use crate::time::Clock;
use crate::word::Order;

/// How often a check that has lost its [`charge`](Engine::charge) starts another before it gives up with `Full`.
const ATTEMPTS: usize = 16;

/// A word that is nobody's but the limiter's.
#[derive(Debug)]
pub struct Single {
    word: Padded<AtomicU64>,
    /// What its phase is taken from.
    key: u64,
    hot: Hot,
}

impl Single {
    /// A word that nothing has been charged to.
    pub fn new(key: u64, hot: Hot) -> Self {
        Self { word: Padded::default(), key, hot }
    }

    /// What its phase is taken from.
    #[inline]
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Decides a request of `cost`, and charges it, if that is a matter of a lease or of one attempt.
    #[inline(always)]
    pub fn check_once<C: Clock>(&self, engine: &Engine<C>, cost: u64) -> Result<Charged, Missed> {
        let ns = engine.coarse_ns();
        if self.hot.is_hot(ns) {
            let spent = self.hot.spend(self.key, ns, cost);
            if let Some(charged) = spent.or_else(|| self.check_hot(engine, ns, cost)) {
                return Ok(charged);
            }
        }
        engine.charge_once(&self.word.0, ns, self.key, cost, || true)
    }

    #[cold]
    #[inline(never)]
    fn check_hot<C: Clock>(&self, engine: &Engine<C>, ns: u64, cost: u64) -> Option<Charged> {
        self.hot.check(engine, self.key, ns, cost, || Some((&self.word.0, || true)))
    }

    /// Decides a request of `cost`, and charges it, after [`check_once`](Self::check_once) has `missed`.
    #[cold]
    #[inline(never)]
    pub fn check_on<C: Clock>(&self, engine: &Engine<C>, cost: u64, missed: Missed) -> Answer {
        for _ in 0..ATTEMPTS {
            if let Some(charged) = self.hot.charge_on(engine, &self.word.0, self.key, cost, missed, || true) {
                return Answer::Decided(charged);
            }
        }
        Answer::Full(Self::lost(engine))
    }

    /// Carries out an order.
    ///
    /// # Errors
    /// [`Full`] after so many lost races that others had thousands of turns.
    #[cold]
    pub fn order<C: Clock>(&self, engine: &Engine<C>, order: InTier<Order>) -> Result<Ordered, Full> {
        let attempt = |_| engine.order(&self.word.0, self.key, order, 0, || true);
        (0..ATTEMPTS).find_map(attempt).ok_or_else(|| Self::lost(engine))
    }

    /// Carries out an order, if `is_good` after it too.
    pub fn order_on<C: Clock>(
        &self,
        engine: &Engine<C>,
        order: InTier<Order>,
        is_good: &dyn Fn() -> bool,
    ) -> Option<Ordered> {
        engine.order(&self.word.0, self.key, order, 0, is_good)
    }

    /// Every race was lost.
    fn lost<C: Clock>(engine: &Engine<C>) -> Full {
        let ns = engine.precise_ns();
        Full { ns, room_at_ns: ns, tier: OWN }
    }

    /// The word as it stands, and the precise time just after it was read. Changes nothing.
    pub fn peek<C: Clock>(&self, engine: &Engine<C>) -> (u64, u64) {
        // ORDERING: Relaxed: one word, and nothing is read by it.
        (self.word.0.load(Ordering::Relaxed), engine.precise_ns())
    }

    /// Has the word adopted by a new era.
    pub fn walk<C: Clock>(&self, engine: &Engine<C>, era: Era<'_>) {
        engine.adopt(&self.word.0, era);
    }

    /// Its heat.
    pub fn hot(&self) -> &Hot {
        &self.hot
    }
}
