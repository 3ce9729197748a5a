//! Looking for a key: a request on its way through a window of slots, and what a slot is to it.

use super::line::{Slot, Window, is_pending_for, is_value, names, owner, tenure};
use super::{ATTEMPTS, free};
use crate::sync::Ordering;
use crate::table::{Ask, Engine, Hot};
use crate::time::Clock;

/// Pending slots of one key that are looked at together.
#[cfg(not(tidegate_loom_one_mark))]
const MARKS: usize = 4;
#[cfg(tidegate_loom_one_mark)]
const MARKS: usize = 1;

/// What a window has of one key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Sighting {
    /// Slots with a value of the key's, a bit each.
    pub(super) values: u32,
    /// Slots that are pending for the key.
    pub(super) pending: u32,
    /// Their marks, from the lowest slot; 0 where there are fewer.
    pub(super) marks: [u64; MARKS],
}

/// A request on its way through the slow road.
pub(super) struct Request<'a, C, A> {
    pub(super) engine: &'a Engine<C>,
    pub(super) hot: &'a Hot,
    pub(super) window: Window<'a>,
    pub(super) hash: u64,
    pub(super) fingerprint: u64,
    pub(super) ask: A,
}

impl<C, A: Copy> Clone for Request<'_, C, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, A: Copy> Copy for Request<'_, C, A> {}

impl<C: Clock, A: Ask> Request<'_, C, A> {
    /// Carries it out on the slot if that holds a value of the key's, before and after.
    pub(super) fn carry_out(&self, number: usize) -> Option<A::Answer> {
        let slot = self.window.slot(number);
        let before = name_of(slot, self.fingerprint)?;
        let is_ours = || is_still(slot, before);
        let lost = |ns| self.hot.lost(self.fingerprint, ns);
        let tenure = tenure(number, before);
        let word = (slot.word, self.fingerprint);
        self.ask.carry_out(self.engine, self.ask.tier(), word, tenure, is_ours, lost)
    }

    /// Looks at every slot of the window; `None` if the key's could not be read in peace.
    pub(super) fn look(&self) -> Option<Sighting> {
        let mut seen = Sighting { values: 0, pending: 0, marks: [0; MARKS] };
        let mut marks = seen.marks.iter_mut();
        let mut is_all = true;
        for number in bits(self.window.naming(self.fingerprint)) {
            let slot = self.window.slot(number);
            match see(slot, self.fingerprint)? {
                Seen::Other => {}
                Seen::Value => seen.values |= 1 << number,
                Seen::Pending(mark) => match marks.next() {
                    Some(place) => {
                        *place = mark;
                        seen.pending |= 1 << number;
                    }
                    // More threads than there are marks claim for the key at once. This one cannot be settled
                    // with the others, so it goes: by an exchange, which fails if somebody has promoted it.
                    None => {
                        free(slot, mark);
                        is_all = false;
                    }
                },
            }
        }
        is_all.then_some(seen)
    }
}

/// The fingerprint word of a slot that is this owner's.
#[inline(always)]
pub(super) fn name_of(slot: Slot<'_>, named: u64) -> Option<u64> {
    // ORDERING: Acquire pairs with the Release of the owner's store: what the word shows next is this
    // owner's or a later one's.
    let before = slot.fingerprint.load(Ordering::Acquire);
    names(before, named).then_some(before)
}

/// Whether the slot has not changed hands since.
#[inline(always)]
pub(super) fn is_still(slot: Slot<'_>, before: u64) -> bool {
    // ORDERING: Acquire, after the exchange: if the word was a stranger's, its fingerprint word was
    // stored before, and is seen here.
    slot.fingerprint.load(Ordering::Acquire) == before
}

/// The numbers of the bits that are set, from the lowest.
pub(super) fn bits(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (lowest < u32::BITS).then_some(lowest as usize)
    })
}

/// A slot as seen by who looks for a key.
enum Seen {
    Other,
    Value,
    Pending(u64),
}

/// What a slot is to the owner `named`; `None` if it changed hands again and again while being read.
fn see(slot: Slot<'_>, named: u64) -> Option<Seen> {
    for _ in 0..ATTEMPTS {
        // ORDERING: Acquire, all three: pairs with the Release stores of `publish`, so that a word is
        // read together with the fingerprint word that it belongs to.
        let before = slot.fingerprint.load(Ordering::Acquire);
        if owner(before) != named {
            return Some(Seen::Other);
        }
        let word = slot.word.load(Ordering::Acquire);
        if slot.fingerprint.load(Ordering::Acquire) != before {
            continue;
        }
        return Some(match word {
            _ if is_value(word) => Seen::Value,
            _ if is_pending_for(word, before) => Seen::Pending(word),
            _ => Seen::Other,
        });
    }
    None
}

/// The value of a slot that is this owner's.
pub(super) fn value(slot: Slot<'_>, named: u64) -> Option<u64> {
    let before = name_of(slot, named)?;
    // ORDERING: Acquire: if it is a later owner's, so is the fingerprint word that is read next.
    let word = slot.word.load(Ordering::Acquire);
    (is_value(word) && is_still(slot, before)).then_some(word)
}
