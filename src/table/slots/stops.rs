//! Threads that stop between two steps of a claim, for the models: each step is the real one.

use super::claim::publish;
use super::line::{CLAIMED, SLOTS_PER_WINDOW, carried_debt, fingerprint, is_free, is_value, owner};
use super::{Request, SlotTable, free};
use crate::sync::Ordering;
use crate::table::{Answer, Engine};
use crate::time::Clock;

impl SlotTable {
    /// A check that goes the slow road at once, as one whose look at the lines has found nothing: it reads less,
    /// and leaves loom fewer executions.
    pub fn settle<C: Clock>(&self, engine: &Engine<C>, hash: u64) -> Answer {
        let (window, fingerprint) = (self.lines.window(hash), fingerprint(hash));
        self.look_everywhere(Request { engine, hot: &self.hot, window, hash, fingerprint, ask: 1 }).into()
    }

    /// A new key's thread that stops after publication. False if there was no room.
    pub fn claim_and_stop<C: Clock>(&self, engine: &Engine<C>, hash: u64) -> bool {
        let (window, fingerprint) = (self.lines.window(hash), fingerprint(hash));
        self.claim(Request { engine, hot: &self.hot, window, hash, fingerprint, ask: 1_u64 }).is_ok()
    }

    /// A thread that has claimed a slot, and stops before publication.
    pub fn seize(&self, number: usize) {
        let word = self.lines.slot(number).word;
        let seen = word.load(Ordering::Acquire);
        word.compare_exchange(seen, CLAIMED, Ordering::AcqRel, Ordering::Acquire)
            .expect("nobody else is here");
    }

    /// A slot that was claimed and freed again.
    pub fn free_again(&self, number: usize) {
        self.seize(number);
        self.publish_seized(number, 0);
        let slot = self.lines.slot(number);
        assert!(free(slot, slot.word.load(Ordering::Acquire)), "nobody else is here");
    }

    /// The thread that has seized the slot goes on as far as publication.
    pub fn publish_seized(&self, number: usize, hash: u64) {
        let slot = self.lines.slot(number);
        let last = slot.fingerprint.load(Ordering::Acquire);
        publish(slot, last, fingerprint(hash), 0);
    }

    /// The values that stand in the slots of this hash under its name.
    pub fn values(&self, hash: u64) -> Vec<u64> {
        let window = self.lines.window(hash);
        let slots = (0..SLOTS_PER_WINDOW).map(|number| window.slot(number));
        let own = slots.filter(|slot| owner(slot.fingerprint.load(Ordering::Acquire)) == fingerprint(hash));
        own.map(|slot| slot.word.load(Ordering::Acquire)).filter(|&word| is_value(word)).collect()
    }

    /// The debts that free slots pass on, in parts of `WHOLE_DEBT`.
    pub fn passed_on(&self, hash: u64) -> u32 {
        let window = self.lines.window(hash);
        let words = (0..SLOTS_PER_WINDOW).map(|number| window.slot(number).word.load(Ordering::Acquire));
        words.filter(|&word| is_free(word)).map(carried_debt).sum()
    }
}
