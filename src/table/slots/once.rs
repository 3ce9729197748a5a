//! The road of nearly every check: one attempt, or none.

use super::line::fingerprint;
use super::{SlotTable, bits, is_still, name_of};
use crate::table::{Answer, Charged, Engine, Missed};
use crate::time::Clock;

impl SlotTable {
    /// Decides a request of `cost` for the key of this hash, and charges it.
    #[inline(always)]
    pub fn check<C: Clock>(&self, engine: &Engine<C>, hash: u64, cost: u64) -> Answer {
        match self.check_once(engine, hash, cost) {
            Ok(charged) => Answer::Decided(charged),
            Err(missed) => self.check_on(engine, hash, cost, missed),
        }
    }

    /// Decides a request of `cost` for the key of this hash, and charges it, if that is a matter of a lease, or of
    /// one attempt on a slot of the key's first line.
    #[inline(always)]
    pub fn check_once<C: Clock>(&self, engine: &Engine<C>, hash: u64, cost: u64) -> Result<Charged, Missed> {
        let fingerprint = fingerprint(hash);
        let ns = engine.coarse_ns();
        if self.hot.is_hot(ns) {
            let spent = self.hot.spend(fingerprint, ns, cost);
            if let Some(charged) = spent.or_else(|| self.check_hot(engine, hash, ns, cost)) {
                return Ok(charged);
            }
        }
        let slot = self.lines.window(hash).guess(0, fingerprint);
        let before = name_of(slot, fingerprint).ok_or(Missed::NotOurs)?;
        engine.charge_once(slot.word, ns, fingerprint, cost, || is_still(slot, before))
    }

    /// The check of a hot key without a lease that is enough.
    #[cold]
    #[inline(never)]
    fn check_hot<C: Clock>(&self, engine: &Engine<C>, hash: u64, ns: u64, cost: u64) -> Option<Charged> {
        let key = fingerprint(hash);
        self.hot.check(engine, key, ns, cost, || {
            let window = self.lines.window(hash);
            let first = window.guess(0, key);
            let (slot, before) = match name_of(first, key) {
                Some(before) => (first, before),
                None => {
                    let other = window.slot(bits(window.naming(key)).next()?);
                    (other, name_of(other, key)?)
                }
            };
            Some((slot.word, move || is_still(slot, before)))
        })
    }
}
