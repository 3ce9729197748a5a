//! Which receipts are void because their key began anew.

use crate::sync::{AtomicU64, Ordering};

/// How often keys were reset, by 64 parts of the keys: a reset voids the receipts of its part.
#[derive(Debug)]
pub struct Resets([AtomicU64; Self::PARTS]);

impl Resets {
    const PARTS: usize = 64;

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
}

impl Default for Resets {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}
