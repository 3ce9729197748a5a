//! The one place where keys are hashed.

use std::hash::Hash;

use ahash::RandomState;

/// Hashes keys with ahash.
#[derive(Clone, Debug)]
pub struct Hashing(RandomState);

impl Hashing {
    /// Seeds of its own, not to be guessed from outside.
    pub fn random() -> Self {
        Self(RandomState::new())
    }

    /// The same hashes for the same seed, on one kind of processor.
    pub fn seeded(seed: u64) -> Self {
        // The other three words are the first digits of π, as in ahash's own fixed seeds.
        Self(RandomState::with_seeds(
            seed,
            0x1319_8a2e_0370_7344,
            0xa409_3822_299f_31d0,
            0x082e_fa98_ec4e_6c89,
        ))
    }

    /// The hash of a key; its low 48 bits are the key's fingerprint.
    #[inline]
    pub fn of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.0.hash_one(key)
    }
}
