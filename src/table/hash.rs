//! The one place where keys are hashed.

use std::hash::{BuildHasher, Hash};

use ahash::{AHasher, RandomState};

/// Hashes keys with ahash.
#[derive(Clone, Debug)]
pub struct Hashing {
    state: RandomState,
    /// What `state` was made of, which it does not tell.
    seeds: [u64; 4],
}

impl Hashing {
    /// Seeds of its own, not to be guessed from outside, nor from those of another.
    pub fn random() -> Self {
        // The standard library's hasher is keyed by the system's random numbers, another key each time, and its hashes
        // tell nothing of the key.
        let random = std::collections::hash_map::RandomState::new();
        Self::from_seeds([0_u64, 1, 2, 3].map(|number| random.hash_one(number)))
    }

    /// The same hashes for the same seed, on one kind of processor.
    pub fn seeded(seed: u64) -> Self {
        // The other three words are the first digits of π, as in ahash's own fixed seeds.
        Self::from_seeds([seed, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89])
    }

    /// The same hashes for the same four seeds, on one kind of processor.
    pub fn from_seeds(seeds: [u64; 4]) -> Self {
        let [first, second, third, fourth] = seeds;
        Self { state: RandomState::with_seeds(first, second, third, fourth), seeds }
    }

    /// The seeds: who knows them can choose keys that meet.
    pub fn seeds(&self) -> [u64; 4] {
        self.seeds
    }

    /// The hashes of a few values that never change, by which to tell whether another processor or another version of
    /// ahash hashes alike: a number, a short text, a long one that ends in the middle of a block, and a pair.
    pub fn self_test(&self) -> [u64; 4] {
        let long = [0x5a_u8; 203];
        [self.of(&0x0123_4567_89ab_cdef_u64), self.of("tidegate"), self.of(&long[..]), self.of(&("a", 7_u32))]
    }

    /// The hash of a key; its low 48 bits are the key's fingerprint.
    #[inline]
    pub fn of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.state.hash_one(key)
    }
}

/// For maps whose keys come from outside.
impl BuildHasher for Hashing {
    type Hasher = AHasher;

    #[inline]
    fn build_hasher(&self) -> AHasher {
        self.state.build_hasher()
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn seeds_make_the_same_hashes_again() {
        for hashing in [Hashing::random(), Hashing::seeded(7)] {
            let again = Hashing::from_seeds(hashing.seeds());
            assert_eq!((again.of("ada"), again.self_test()), (hashing.of("ada"), hashing.self_test()));
        }
    }

    #[test]
    fn random_seeds_are_others_each_time() {
        let all: std::collections::BTreeSet<u64> = (0..100).flat_map(|_| Hashing::random().seeds()).collect();
        assert_eq!(all.len(), 400);
    }

    #[test]
    fn each_value_of_the_self_test_depends_on_the_seeds() {
        let (one, other) = (Hashing::seeded(1).self_test(), Hashing::seeded(2).self_test());
        assert!(one.iter().zip(&other).all(|(one, other)| one != other));
    }
}
