//! The bits of a slot, and the lines that slots stand in. A slot is two words: who owns it, and the
//! owner's state.
//!
//! ```text
//! fingerprint word   63 … 16 fingerprint (0: nobody yet)          15 … 0 generation
//! word               63 = 0: a value, see `word/`
//!                    63 = 1, 62..61 = 00: FREE       60 … 16 debt
//!                    63 = 1, 62..61 = 10: CLAIMED
//!                    63 = 1, 62..61 = 01: pending    60 … 16 debt    15 … 0 generation
//! ```

use std::hint::{black_box, select_unpredictable};

use crate::sync::{AtomicU64, Ordering, zeroed_words};
use crate::word::{FINGERPRINT_BITS, TABLE_BIT};

/// Slots in a line: a line is 64 bytes, a slot 16.
#[cfg(not(tidegate_loom))]
pub(super) const SLOTS_PER_LINE: usize = 4;
#[cfg(tidegate_loom)]
pub(super) const SLOTS_PER_LINE: usize = 2;
/// Neighbouring lines that a key may stand in.
#[cfg(not(tidegate_loom))]
pub(super) const LINES_PER_WINDOW: usize = 8;
#[cfg(tidegate_loom)]
pub(super) const LINES_PER_WINDOW: usize = 1;
/// Slots that a key may stand in.
pub(super) const SLOTS_PER_WINDOW: usize = SLOTS_PER_LINE * LINES_PER_WINDOW;
/// Words in a line.
const WORDS_PER_LINE: usize = 2 * SLOTS_PER_LINE;
/// Bytes that a key is given: a slot is 16, so that two slots of three are taken when the table is full.
const BYTES_PER_KEY: u64 = 24;

/// Nobody's. Set by who frees a pending slot; anybody may claim it.
pub(super) const FREE: u64 = TABLE_BIT;
/// One thread's alone, who writes the fingerprint word. A live stranger's to all others.
pub(super) const CLAIMED: u64 = TABLE_BIT | 1 << 62;
const PENDING: u64 = TABLE_BIT | 1 << 61;
const DEBT_SHIFT: u32 = GENERATION_BITS;

const GENERATION_BITS: u32 = 16;
const GENERATION: u64 = (1 << GENERATION_BITS) - 1;
/// The fingerprint of a hash; 0 stands for nobody, and is read as 1.
#[inline]
pub(super) fn fingerprint(hash: u64) -> u64 {
    (hash & ((1 << FINGERPRINT_BITS) - 1)).max(1)
}

/// Who a fingerprint word names.
#[inline]
pub(super) fn owner(fingerprint_word: u64) -> u64 {
    fingerprint_word >> GENERATION_BITS
}

/// Whether a fingerprint word names this owner.
#[inline(always)]
pub(super) fn names(fingerprint_word: u64, fingerprint: u64) -> bool {
    owner(fingerprint_word) == fingerprint
}

/// The fingerprint word of the next owner of a slot.
pub(super) fn next_owner(fingerprint_word: u64, fingerprint: u64) -> u64 {
    (fingerprint << GENERATION_BITS) | (fingerprint_word.wrapping_add(1) & GENERATION)
}

/// Which slot of its window a key has, and in which generation of that: what its receipts know. (By the fingerprint word
/// alone, another slot that the key has, had or is about to have in the same generation would do as well.)
pub(super) fn tenure(number: usize, fingerprint_word: u64) -> u64 {
    (number as u64) << GENERATION_BITS | (fingerprint_word & GENERATION)
}

/// The number of a tenure's slot, and the fingerprint word that it has while the tenure lasts.
pub(super) fn tenant(tenure: u64, fingerprint: u64) -> (usize, u64) {
    let number = usize::try_from(tenure >> GENERATION_BITS).unwrap_or(usize::MAX);
    (number, (fingerprint << GENERATION_BITS) | (tenure & GENERATION))
}

/// Pending for the key that this fingerprint word names, with a debt to begin with.
pub(super) fn pending(fingerprint_word: u64, debt: u32) -> u64 {
    PENDING | (u64::from(debt) << DEBT_SHIFT) | (fingerprint_word & GENERATION)
}

/// Whether `word` is pending for some key.
pub(super) fn is_pending(word: u64) -> bool {
    word & (TABLE_BIT | 1 << 62 | 1 << 61) == PENDING
}

/// Whether `word` is pending for the key that `fingerprint_word` names.
pub(super) fn is_pending_for(word: u64, fingerprint_word: u64) -> bool {
    is_pending(word) && (word ^ fingerprint_word) & GENERATION == 0
}

/// Whether `word` is FREE, whatever debt it carries.
pub(super) fn is_free(word: u64) -> bool {
    word & (TABLE_BIT | 1 << 62 | 1 << 61) == FREE
}

/// FREE, with the debt of a pending word: who claims the slot next inherits it.
pub(super) fn freed(mark: u64) -> u64 {
    FREE | (u64::from(carried_debt(mark)) << DEBT_SHIFT)
}

/// The debt that a pending or free word carries.
#[expect(clippy::cast_possible_truncation, reason = "a debt is at most WHOLE_DEBT, of 17 bits")]
pub(super) fn carried_debt(word: u64) -> u32 {
    ((word & !PENDING) >> DEBT_SHIFT) as u32
}

/// Whether `word` is a value.
#[inline]
pub(super) fn is_value(word: u64) -> bool {
    word & TABLE_BIT == 0
}

/// One slot.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    /// Who owns it.
    pub fingerprint: &'a AtomicU64,
    /// The owner's state, or a mark of the table's.
    pub word: &'a AtomicU64,
}

/// All lines, on zeroed memory: a slot of zeros is nobody's, and idle.
#[derive(Debug)]
pub struct Lines {
    words: Box<[AtomicU64]>,
    /// Words in front of the first line, which starts on a boundary of 64 bytes.
    skipped: usize,
    /// Lines that a window may begin at.
    starts: u64,
}

impl Lines {
    /// Room for `max_keys`, 24 bytes each; `None` if there is not as much memory.
    pub fn new(max_keys: usize) -> Option<Self> {
        const BYTES_PER_LINE: u64 = WORDS_PER_LINE as u64 * 8;
        let starts = (max_keys as u64).checked_mul(BYTES_PER_KEY)?.div_ceil(BYTES_PER_LINE);
        // The last windows reach over the end.
        let lines = usize::try_from(starts).ok()?.checked_add(LINES_PER_WINDOW - 1)?;
        let words = zeroed_words(lines.checked_mul(WORDS_PER_LINE)?.checked_add(WORDS_PER_LINE)?)?;
        let skipped = if cfg!(tidegate_loom) { 0 } else { (words.as_ptr() as usize).wrapping_neg() % 64 / 8 };
        Some(Self { words, skipped, starts })
    }

    /// Writes to every page, so that no check has to wait for one later.
    pub fn prefault(&self) {
        const WORDS_PER_PAGE: usize = 4096 / 8;
        // A 0 that the compiler can see is worth no write to it, and none would be made.
        let nothing = black_box(0);
        // ORDERING: Relaxed: it adds nothing, and nobody else has the table yet.
        self.words.iter().step_by(WORDS_PER_PAGE).for_each(|word| {
            word.fetch_or(nothing, Ordering::Relaxed);
        });
    }

    /// Bytes set aside.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// Slots in all.
    pub fn slots(&self) -> usize {
        (self.words.len() - self.skipped) / 2 / SLOTS_PER_LINE * SLOTS_PER_LINE
    }

    /// The window of a hash, taken from its high bits; its first line is where a key stands if it can.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "below `starts`, which came from a usize")]
    pub fn window(&self, hash: u64) -> Window<'_> {
        let start = ((u128::from(hash) * u128::from(self.starts)) >> 64) as usize;
        let from = self.skipped + start * WORDS_PER_LINE;
        let words = self.words[from..].first_chunk().expect("the last window ends with the last line");
        Window { words }
    }

    /// Has the first lines of these hashes' windows brought into the cache, all at the same time.
    #[inline]
    pub fn fetch(&self, hashes: &[u64]) {
        // ORDERING: Relaxed: nothing is made of what is read.
        let read = |&hash: &u64| self.window(hash).slot(0).fingerprint.load(Ordering::Relaxed);
        black_box(hashes.iter().map(read).fold(0, |all, word| all ^ word));
    }

    /// The slot with this number, anywhere in the table.
    pub fn slot(&self, number: usize) -> Slot<'_> {
        let at = self.skipped + 2 * number;
        Slot { fingerprint: &self.words[at], word: &self.words[at + 1] }
    }
}

/// The slots that one key may stand in.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    words: &'a [AtomicU64; WORDS_PER_LINE * LINES_PER_WINDOW],
}

impl<'a> Window<'a> {
    /// The slot with this number in the window.
    #[inline]
    pub fn slot(&self, number: usize) -> Slot<'a> {
        Slot { fingerprint: &self.words[2 * number], word: &self.words[2 * number + 1] }
    }

    /// The slots that name `fingerprint`, a bit each.
    pub fn naming(&self, fingerprint: u64) -> u32 {
        (0..SLOTS_PER_WINDOW).fold(0, |bits, number| {
            // ORDERING: Acquire: a later look at the same slot sees this or what came after.
            let word = self.slot(number).fingerprint.load(Ordering::Acquire);
            bits | u32::from(names(word, fingerprint)) << number
        })
    }

    /// The slot of this line that names `fingerprint`, if one does, else any. Selected without a branch: one
    /// that waits on a cache miss and is mispredicted would keep the next check's miss from starting.
    #[inline(always)]
    pub fn guess(&self, line: usize, fingerprint: u64) -> Slot<'a> {
        let first = line * SLOTS_PER_LINE;
        let mut at = first;
        for number in first + 1..first + SLOTS_PER_LINE {
            // ORDERING: Relaxed: a hint where to look; the check reads it again.
            let word = self.slot(number).fingerprint.load(Ordering::Relaxed);
            at = select_unpredictable(names(word, fingerprint), number, at);
        }
        self.slot(at)
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests;
