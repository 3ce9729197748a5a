//! What the table counts: only what is rare, and never on the road of a known key.

use crate::sync::{Ordering, Padded, Tally};

/// Shards of each counter; keys spread over them by hash.
const SHARDS: usize = 8;
/// Kinds of events.
const COUNTERS: usize = 6;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counter {
    /// A slot was claimed for a new key, and nobody was forced out of it.
    Claims,
    /// A key that owed something was evicted.
    Forced,
    /// What forced evictions forgave, in parts of `WHOLE_DEBT`.
    Forgiven,
    /// A new key was refused for want of room.
    Full,
    /// A new key passed uncounted.
    Untracked,
    /// A check gave up after losing every race.
    Exhausted,
}

/// Counts by event and shard.
#[derive(Debug, Default)]
pub(super) struct Counters {
    shards: [Padded<[Tally; COUNTERS]>; SHARDS],
}

impl Counters {
    /// Adds to the shard of a hash.
    #[expect(clippy::cast_possible_truncation, reason = "below SHARDS")]
    pub(super) fn add(&self, hash: u64, counter: Counter, count: u64) {
        // ORDERING: Relaxed, here and in `sum`: a statistic, nothing hangs on it.
        self.shards[(hash % SHARDS as u64) as usize].0[counter as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// The sum over all shards.
    pub(super) fn sum(&self, counter: Counter) -> u64 {
        self.shards.iter().map(|shard| shard.0[counter as usize].load(Ordering::Relaxed)).sum()
    }
}

/// What a limiter reports of itself, counted since it was built. Reading it costs checks nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Keys that owe something now: counted in a sample of up to 4 096 slots, and scaled up.
    pub live_estimate: u64,
    /// Slots claimed for new keys.
    pub claims: u64,
    /// Evictions of keys that owed something.
    pub forced_evictions: u64,
    /// What those forgave: 1.0 is the whole limit of one key; each forgives at most 0.5
    /// (under `Alignment::PerKey` up to 1.0 in a rare race of two claims, which is counted as it was).
    pub forgiven_limits: f64,
    /// New keys refused with `Reason::Full`.
    pub full: u64,
    /// New keys that passed uncounted (`OnFull::Admit`).
    pub untracked: u64,
    /// Checks that lost every race and were answered as if there were no room.
    pub exhausted: u64,
    /// Leases of hot keys that threads took.
    pub leases: u64,
    /// Tokens of those that lapsed: charged, and spent by nobody.
    pub lapsed: u64,
    /// How often the clock's refresher was found stopped, and done without; on a `Ticking` clock in the whole
    /// process.
    pub clock_stalls: u64,
}
