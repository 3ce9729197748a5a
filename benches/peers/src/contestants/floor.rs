//! What no table of words can be under.

use std::error::Error;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Contestant;
use crate::workload::Setup;

/// What any table of words has to pay: one hash, one cache line, one compare-and-swap, and no clock. It
/// counts to the burst and stops, and it does not care if two keys share a word: a floor, not a limiter.
pub(super) struct Floor {
    hasher: ahash::RandomState,
    lines: Box<[Line]>,
    burst: u64,
}

/// One cache line: four slots of a key's fingerprint and its word, of which only the word is used here.
#[derive(Default)]
#[repr(align(64))]
struct Line([[AtomicU64; 2]; 4]);

/// Room for a key, spare slots included, in a table of 16-byte slots that is two thirds full.
const BYTES_PER_KEY: usize = 24;

impl<K: Hash + ?Sized> Contestant<K> for Floor {
    const NAME: &'static str = "floor";
    const REMARK: Option<&'static str> = Some("no limiter: no clock, keys that meet in a slot share it");

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        let bytes = usize::try_from(setup.keys)? * BYTES_PER_KEY;
        Ok(Self {
            hasher: ahash::RandomState::with_seeds(1, 2, 3, 4),
            lines: (0..bytes.div_ceil(size_of::<Line>())).map(|_| Line::default()).collect(),
            burst: setup.limit.burst.into(),
        })
    }

    #[inline]
    fn check(&self, key: &K) -> bool {
        let hash = self.hasher.hash_one(key);
        // The high bits choose the line, evenly: the product's upper half is below the number of lines.
        let line = (u128::from(hash) * self.lines.len() as u128) >> 64;
        #[allow(clippy::cast_possible_truncation)] // below `lines.len()`
        let word = &self.lines[line as usize].0[(hash & 3) as usize][1];
        // ORDERING: Relaxed throughout. The counter publishes nothing but itself.
        let mut count = word.load(Ordering::Relaxed);
        loop {
            if count >= self.burst {
                return false;
            }
            let swap = word.compare_exchange_weak(count, count + 1, Ordering::Relaxed, Ordering::Relaxed);
            match swap {
                Ok(_) => return true,
                Err(current) => count = current,
            }
        }
    }
}
