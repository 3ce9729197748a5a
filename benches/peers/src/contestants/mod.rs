//! Who is timed, and in what company. A contestant is built and asked as its own documents advise.

mod floor;
mod ours;
mod rivals;

use std::error::Error;
use std::time::Duration;

use crate::runner::{Runner, Timed};
use crate::workload::{Setup, TokenLimit};

use floor::Floor;
pub(crate) use ours::keep_awake;
use ours::{Exact, Slots, Still};
use rivals::{Governor, Pingora, QuotaRs, RateNet, TokioRateLimit, Trypema};

/// The contestant whose time is the unit of all ratios. It takes part everywhere.
pub(crate) const REFERENCE: &str = ours::SLOTS;

/// Those whose decisions are asserted, and not only printed.
pub(crate) const OURS: &[&str] = &[ours::SLOTS, ours::EXACT];

/// What a limiter must be able to do to be timed: for keys of type `K`, `u64` or `str`. `check` is called
/// from many threads at once; it reads the time and applies the limit by itself, so both are in what is
/// timed.
pub(crate) trait Contestant<K: ?Sized>: Sized + Sync {
    const NAME: &'static str;

    /// What a reader of its times must know, if anything.
    const REMARK: Option<&'static str> = None;

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>>;

    /// Takes one token of `key`; true if it was there.
    fn check(&self, key: &K) -> bool;

    /// Takes one token of each key, which are all at hand; how many were there.
    #[inline]
    fn check_batch(&self, keys: &[&K]) -> u64 {
        keys.iter().map(|key| u64::from(self.check(key))).sum()
    }

    /// How many keys it holds, if it can tell exactly.
    fn keys_held(&self) -> Option<usize> {
        None
    }

    /// What was forgiven where keys had to make room for others, so far: 1.0 is the whole limit of one key.
    fn forgiven_limits(&self) -> f64 {
        0.0
    }

    /// Tokens that may come back to one key in this time: more than the limit says where a limiter cannot
    /// be told this limit.
    fn comes_back(limit: &TokenLimit, elapsed: Duration) -> f64 {
        limit.tokens_per_second() * elapsed.as_secs_f64()
    }
}

/// Builds a contestant for a workload.
pub(crate) type Entry = fn(&Setup) -> Result<Box<dyn Runner>, Box<dyn Error>>;

/// Where keys are numbers. Two contestants take nothing but text; they get the same keys written out.
pub(crate) fn for_ids(quick: bool) -> Vec<Entry> {
    let mut entries: Vec<Entry> = vec![
        Timed::<u64, Slots>::boxed,
        Timed::<u64, Exact<u64>>::boxed,
        Timed::<u64, Floor>::boxed,
        Timed::<u64, Governor<u64>>::boxed,
        Timed::<u64, QuotaRs<u64>>::boxed,
        Timed::<u64, RateNet>::boxed,
        Timed::<u64, Pingora>::boxed,
    ];
    if !quick {
        entries.extend(SLOW);
    }
    entries
}

/// Where keys are text.
pub(crate) fn for_texts(quick: bool) -> Vec<Entry> {
    let mut entries: Vec<Entry> = vec![
        Timed::<str, Slots>::boxed,
        Timed::<str, Exact<String>>::boxed,
        Timed::<str, Floor>::boxed,
        Timed::<str, Governor<String>>::boxed,
        Timed::<str, QuotaRs<String>>::boxed,
        Timed::<str, RateNet>::boxed,
        Timed::<str, Pingora>::boxed,
    ];
    if !quick {
        entries.extend(SLOW);
    }
    entries
}

/// Where a million keys take some of them so long that a quick run leaves them out.
const SLOW: [Entry; 2] = [Timed::<str, TokioRateLimit>::boxed, Timed::<str, Trypema>::boxed];

/// Whose instructions can be counted.
pub(crate) fn for_count() -> [Entry; 4] {
    [
        Timed::<u64, Slots>::boxed,
        Timed::<u64, Still<false>>::boxed,
        Timed::<u64, Still<true>>::boxed,
        Timed::<u64, Floor>::boxed,
    ]
}

/// Where there are so many keys that a contestant must be worth the wait.
pub(crate) fn for_many() -> Vec<Entry> {
    vec![
        Timed::<u64, Slots>::boxed,
        Timed::<u64, Exact<u64>>::boxed,
        Timed::<u64, Floor>::boxed,
        Timed::<u64, Governor<u64>>::boxed,
    ]
}

/// Where a second's worth of tokens is more than the burst, and intervals end while threads ask: one of the others
/// cannot be told such a limit, and one panics there at times.
pub(crate) fn for_overload() -> Vec<Entry> {
    vec![
        Timed::<u64, Slots>::boxed,
        Timed::<u64, Exact<u64>>::boxed,
        Timed::<u64, Governor<u64>>::boxed,
        Timed::<u64, QuotaRs<u64>>::boxed,
        Timed::<u64, RateNet>::boxed,
    ]
}

/// Where more keys come than there is room for: those that promise to stay within a size.
pub(crate) fn for_flood() -> Vec<Entry> {
    vec![Timed::<u64, Slots>::boxed, Timed::<u64, Exact<u64>>::boxed, Timed::<u64, RateNet>::boxed]
}
