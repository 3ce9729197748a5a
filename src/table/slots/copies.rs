//! Keys read out of a table while others check, and put into one that nobody has yet.
//!
//! A value never moves from one slot to another. A key that is read has stood so at one instant; one that is not read was
//! nobody's, idle or evicted at some instant of the reading, and stood as a fresh one then. A key that is evicted here and
//! comes back there may be met twice: it is read where it is met first.

use super::line::{SLOTS_PER_LINE, SLOTS_PER_WINDOW, Slot, is_value, next_owner, owner};
use super::{ATTEMPTS, LINES_PER_WINDOW, SlotTable, is_still};
use crate::sync::Ordering;
use crate::table::Engine;
use crate::time::Clock;

/// A key as it stands in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The slot's number in the table.
    pub number: usize,
    /// The key's, 48 bits and not 0.
    pub fingerprint: u64,
    /// The key's value.
    pub word: u64,
}

/// The keys that were met last: no two slots of one key's window are further apart.
struct Recent([(usize, u64); SLOTS_PER_WINDOW]);

impl Recent {
    fn new() -> Self {
        Self([(0, 0); SLOTS_PER_WINDOW])
    }

    /// Whether a key of this fingerprint stands in a slot before this one that both may stand in. Numbers only grow.
    fn has_met(&mut self, number: usize, fingerprint: u64) -> bool {
        let line = |number: usize| number / SLOTS_PER_LINE;
        let is_near = |&(other, named): &(usize, u64)| {
            named == fingerprint && line(number) - line(other) < LINES_PER_WINDOW
        };
        let has_met = self.0.iter().any(is_near);
        self.0[number % SLOTS_PER_WINDOW] = (number, fingerprint);
        has_met
    }
}

impl SlotTable {
    /// Gives `each` every key that is not idle at `ns`, by number of the slot and with its value by the rule in force, until
    /// it fails. Other threads may check meanwhile, but none change the limit.
    pub fn copy<C: Clock, E>(
        &self,
        engine: &Engine<C>,
        ns: u64,
        mut each: impl FnMut(Copied) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut recent = Recent::new();
        for number in 0..self.lines().slots() {
            let Some((fingerprint, word)) = named_value(self.lines().slot(number)) else { continue };
            let era = engine.era();
            let (word, moment) = (era.value(word, ns), era.rule.moment(ns, fingerprint));
            if word != 0 && !era.rule.is_idle(word, moment) && !recent.has_met(number, fingerprint) {
                each(Copied { number, fingerprint, word })?;
            }
        }
        Ok(())
    }

    /// The time in the limiter's nanoseconds before which no new key begins.
    pub fn evicted_ns(&self) -> u64 {
        // ORDERING: Acquire, after the slots were read: who took one over, and is read there, stored this before.
        self.evicted_ns.0.load(Ordering::Acquire)
    }

    /// Has no new key begin before `ns`, in a table that nobody else has.
    pub fn set_evicted_ns(&mut self, ns: u64) {
        // ORDERING: Relaxed: nobody else has the table.
        self.evicted_ns.0.store(ns, Ordering::Relaxed);
    }

    /// Puts a key into its slot, in a table that nobody else has. False if it could stand in none: there is no such slot,
    /// fingerprint or value.
    pub fn put(&mut self, key: Copied) -> bool {
        let Copied { number, fingerprint, word } = key;
        let is_one = number < self.lines.slots() && owner(next_owner(0, fingerprint)) == fingerprint;
        if !is_one || fingerprint == 0 || word == 0 || !is_value(word) {
            return false;
        }
        let slot = self.lines.slot(number);
        // ORDERING: Relaxed, both: nobody else has the table.
        slot.fingerprint.store(next_owner(0, fingerprint), Ordering::Relaxed);
        slot.word.store(word, Ordering::Relaxed);
        true
    }

    /// Judges every key that was put into a table that nobody else has: it may have been left at `latest_ns` or before,
    /// and stands in one slot only. Then moves it earlier by so many units (see `Rule::begin_anew`); who is idle by that
    /// leaves. The error is the number of a slot that could not be.
    pub fn judge<C: Clock>(&mut self, engine: &Engine<C>, latest_ns: u64, units: u64) -> Result<(), usize> {
        let rule = &engine.rule;
        let mut recent = Recent::new();
        for number in 0..self.lines.slots() {
            let slot = self.lines.slot(number);
            let Some((fingerprint, word)) = named_value(slot) else { continue };
            let latest = rule.moment(latest_ns, fingerprint);
            if !rule.can_leave(word, latest) || recent.has_met(number, fingerprint) {
                return Err(number);
            }
            // ORDERING: Relaxed, both: nobody else has the table.
            match rule.earlier(word, units) {
                Some(word) => slot.word.store(word, Ordering::Relaxed),
                None => {
                    slot.word.store(0, Ordering::Relaxed);
                    slot.fingerprint.store(0, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }
}

/// A value and whose it is; `None` for a slot without one, or that changes hands again and again.
fn named_value(slot: Slot<'_>) -> Option<(u64, u64)> {
    for _ in 0..ATTEMPTS {
        // ORDERING: Acquire, both, as in `value`: if the word is a later owner's, so is the fingerprint word that is read
        // next.
        let before = slot.fingerprint.load(Ordering::Acquire);
        let word = slot.word.load(Ordering::Acquire);
        if is_still(slot, before) {
            return (owner(before) != 0 && is_value(word)).then(|| (owner(before), word));
        }
    }
    None
}
