//! Which receipts are void because their key began anew, and which places in line because it was given something back.

use crate::sync::{AtomicU64, Ordering};

/// How often keys were reset (the low half of a count) and given something back (the high half), by 64 parts of the keys:
/// a reset voids the receipts of its part, and either one the places in line.
#[derive(Debug)]
pub struct Resets([AtomicU64; Self::PARTS]);

impl Resets {
    const PARTS: usize = 64;
    const GAVE: u64 = 1 << 32;

    #[expect(clippy::cast_possible_truncation, reason = "below PARTS")]
    fn part(&self, hash: u64) -> &AtomicU64 {
        &self.0[(hash % Self::PARTS as u64) as usize]
    }

    /// The count of the key's part, to be read before a charge, and after a refund.
    pub fn count(&self, hash: u64) -> u64 {
        // ORDERING: Acquire: a refund that found the word of a key that was reset finds the count that went before the
        // reset.
        self.part(hash).load(Ordering::Acquire)
    }

    /// Makes a key begin anew by `reset`, and voids its receipts: before, so that no earlier one is good for the new word;
    /// and after, so that none is that was issued in between, for the old one.
    pub fn around<T>(&self, hash: u64, reset: impl FnOnce() -> T) -> T {
        self.add(hash);
        let done = reset();
        self.add(hash);
        done
    }

    /// Voids what receipts there are.
    pub fn add(&self, hash: u64) {
        // ORDERING: AcqRel: the count and the reset of the word stay in this order.
        self.part(hash).fetch_add(1, Ordering::AcqRel);
    }

    /// Whether no key of the part was reset between two counts.
    pub fn is_same_life(then: u64, now: u64) -> bool {
        then % Self::GAVE == now % Self::GAVE
    }

    /// Before a key is given something back and after it, for the reasons of [`add`](Self::add): its word may then come to a
    /// number again at which a reservation had left it.
    pub fn gave(&self, hash: u64) {
        // ORDERING: AcqRel, as in `add`.
        self.part(hash).fetch_add(Self::GAVE, Ordering::AcqRel);
    }
}

impl Default for Resets {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}
