//! Tables of words, and the one loop that changes a word.

mod exact;
mod hash;
mod places;
mod slots;

pub use exact::{Entry, ExactTable, Map, PapayaMap, SEALED, Stored};
pub use hash::Hashing;
pub(crate) use places::PLACES_MAX;
pub use places::Places;
pub use slots::{Lines, OnFull, SlotTable, Stats};

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

/// The answer to a check.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// Decided on the key's word.
    Decided(Charged),
    /// No room for a new key.
    Full {
        /// The limiter's time in nanoseconds.
        ns: u64,
        /// When one of the keys looked at becomes idle.
        room_at_ns: u64,
    },
}

/// How often a charge is tried again because another thread has changed the word. Some thread gets on
/// each time; the bound is for the one that does not.
const CHARGES: usize = 256;

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
    /// `None` if nothing counts: the word is no value but a mark of the table's, it is not `is_ours` any
    /// more after the decision took effect (a stranger may then have paid), or other threads were faster
    /// each time.
    #[inline]
    pub fn charge(
        &self,
        word: &AtomicU64,
        phase: u64,
        cost: u64,
        is_ours: impl Fn() -> bool,
    ) -> Option<Charged> {
        let mut ns = self.coarse_ns();
        let mut is_precise = false;
        // ORDERING: Acquire, and AcqRel at the exchange: `is_ours` reads what the word's owner stored
        // before this value, and not before the exchange. For the count itself the word's own
        // modification order is enough.
        let mut seen = word.load(Ordering::Acquire);
        for _ in 0..CHARGES {
            if seen & TABLE_BIT != 0 {
                return None;
            }
            let decided = self.rule.decide(seen, self.rule.time().units(ns) + phase, cost);
            if !is_precise && matches!(decided.outcome, Outcome::Exhausted(_)) {
                ns = self.precise_ns();
                is_precise = true;
                seen = word.load(Ordering::Acquire);
                continue;
            }
            if decided.next == seen {
                return is_ours().then_some(Charged { decided, ns });
            }
            match word.compare_exchange(seen, decided.next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return is_ours().then_some(Charged { decided, ns }),
                Err(now) => seen = now,
            }
        }
        None
    }
}
