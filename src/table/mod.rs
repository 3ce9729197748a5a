//! Tables of words, and the one loop that changes a word.

mod exact;
mod hash;
mod places;

pub use exact::{Answer, Entry, ExactTable, Map, PapayaMap, SEALED, Stored};
pub use hash::Hashing;
pub(crate) use places::PLACES_MAX;
pub use places::Places;

use crate::sync::{AtomicU64, Ordering};
use crate::time::{Clock, Origin};
use crate::word::{Decided, Outcome, Rule, TABLE_BIT};

/// What every table decides with: the rule, the clock, and where the limiter's time starts.
#[derive(Debug)]
pub struct Engine<C> {
    /// The limit, ready to decide.
    pub rule: Rule,
    /// Where time is read.
    pub clock: C,
    /// Turns readings into the limiter's time.
    pub origin: Origin,
}

/// A decision that has taken effect.
#[derive(Clone, Copy, Debug)]
pub struct Charged {
    /// The outcome, and the word as it was left.
    pub decided: Decided,
    /// The limiter's time in nanoseconds that it was made at.
    pub ns: u64,
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

    /// Decides on a shared word and leaves the next one: coarse to admit, precise to refuse.
    ///
    /// `None` if the word is no value: it is the table's, and nothing was charged. The loop runs again
    /// only when another thread has changed the word meanwhile, so some thread always gets on.
    #[inline]
    pub fn charge(&self, word: &AtomicU64, phase: u64, cost: u64) -> Option<Charged> {
        let mut ns = self.coarse_ns();
        let mut is_precise = false;
        // ORDERING: Relaxed, here and at the exchange: a word is all there is to a key, no other
        // memory is read on the strength of it, and its modification order alone decides who was
        // first.
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            if seen & TABLE_BIT != 0 {
                return None;
            }
            let decided = self.rule.decide(seen, self.rule.time().units(ns) + phase, cost);
            if !is_precise && matches!(decided.outcome, Outcome::Exhausted(_)) {
                ns = self.precise_ns();
                is_precise = true;
                seen = word.load(Ordering::Relaxed);
                continue;
            }
            if decided.next == seen {
                return Some(Charged { decided, ns });
            }
            match word.compare_exchange(seen, decided.next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(Charged { decided, ns }),
                Err(now) => seen = now,
            }
        }
    }
}
