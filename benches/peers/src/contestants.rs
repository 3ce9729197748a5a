//! Who is timed. A contestant is built and asked as its own documents advise.

use std::error::Error;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tidegate::{ExactLimiter, Limit, Rate};

use crate::measure::{Runner, Timed};
use crate::workload::Workload;

/// What a limiter must be able to do to be timed. `check` is called from many threads at once; it reads
/// the time and applies the limit by itself, so both are in what is timed.
pub(crate) trait Contestant: Sized + Sync {
    const NAME: &'static str;

    fn build(workload: &Workload) -> Result<Self, Box<dyn Error>>;

    /// Takes one token of `key`; true if it was there.
    fn check(&self, key: u64) -> bool;

    /// How many keys it holds, if it can tell.
    fn keys_held(&self) -> Option<usize>;
}

/// The contestant whose time is the unit of all ratios.
pub(crate) const OURS: &str = Exact::NAME;

/// Builds and fills everybody for one workload. A newcomer adds one line here.
pub(crate) fn line_up(workload: &Workload) -> Result<Vec<Box<dyn Runner>>, Box<dyn Error>> {
    Ok(vec![
        Timed::<Exact>::boxed(workload)?,
        Timed::<Floor>::boxed(workload)?,
        Timed::<Governor>::boxed(workload)?,
    ])
}

/// tidegate's exact table, on its default clock.
pub(crate) struct Exact(ExactLimiter<u64>);

impl Contestant for Exact {
    const NAME: &'static str = "tidegate exact";

    fn build(workload: &Workload) -> Result<Self, Box<dyn Error>> {
        let limit = workload.limit;
        let rate = Rate::new(limit.tokens.into(), limit.period);
        let limiter = ExactLimiter::builder(Limit::bucket(rate, limit.burst.into()))
            .max_keys(workload.keys.try_into()?)
            .build()?;
        Ok(Self(limiter))
    }

    #[inline]
    fn check(&self, key: u64) -> bool {
        self.0.check(&key).is_ok()
    }

    fn keys_held(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// governor's keyed limiter on the store and the clock that it takes by default.
pub(crate) struct Governor(DefaultKeyedRateLimiter<u64>);

impl Contestant for Governor {
    const NAME: &'static str = "governor 0.10";

    fn build(workload: &Workload) -> Result<Self, Box<dyn Error>> {
        let limit = workload.limit;
        let burst = NonZeroU32::new(limit.burst).ok_or("a burst of 0")?;
        let quota = Quota::with_period(limit.period / limit.tokens)
            .ok_or("a rate above one a nanosecond")?
            .allow_burst(burst);
        Ok(Self(RateLimiter::keyed(quota)))
    }

    #[inline]
    fn check(&self, key: u64) -> bool {
        self.0.check_key(&key).is_ok()
    }

    fn keys_held(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// What any table of words has to pay: one hash, one cache line, one compare-and-swap, and no clock. It
/// counts to the burst and stops, and it does not care if two keys share a word: a floor, not a limiter.
pub(crate) struct Floor {
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

impl Contestant for Floor {
    const NAME: &'static str = "floor";

    fn build(workload: &Workload) -> Result<Self, Box<dyn Error>> {
        let bytes = usize::try_from(workload.keys)? * BYTES_PER_KEY;
        Ok(Self {
            hasher: ahash::RandomState::with_seeds(1, 2, 3, 4),
            lines: (0..bytes.div_ceil(size_of::<Line>())).map(|_| Line::default()).collect(),
            burst: workload.limit.burst.into(),
        })
    }

    #[inline]
    fn check(&self, key: u64) -> bool {
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
    fn keys_held(&self) -> Option<usize> {
        None
    }
}
