//! What several tests share: limiters on a clock moved by hand, and the comparison of an answer with the twin's.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test that includes this file uses a part of it, and none exports it"
)]

mod same;
pub mod steps;
#[path = "../twin/mod.rs"]
pub mod twin;

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
pub use same::{assert_same, assert_same_within};
use tidegate::{Alignment, ExactLimiter, Limit, Manual, Rate, Window};

/// Every hash seed in these tests: a failure is the same failure next time.
pub const SEED: u64 = 0x7469_6465;

/// A limiter for `K` on a clock moved by hand, and the clock.
pub fn manual<K>(limit: Limit) -> (ExactLimiter<K, Manual>, Manual)
where
    K: std::hash::Hash + Eq + Send + Sync,
{
    manual_at_unix(limit, Duration::ZERO)
}

/// The same, with the clock's origin at `unix` since the epoch.
pub fn manual_at_unix<K>(limit: Limit, unix: Duration) -> (ExactLimiter<K, Manual>, Manual)
where
    K: std::hash::Hash + Eq + Send + Sync,
{
    let clock = Manual::at_unix(unix);
    let limiter = ExactLimiter::<K>::builder(limit)
        .seed(SEED)
        .clock(clock.clone())
        .build()
        .unwrap_or_else(|error| panic!("{limit:?} must build: {error}"));
    (limiter, clock)
}

/// Runs `work` on `threads` threads at once, numbered from 0, and returns what they return.
pub fn at_once<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        let (work, start) = (&work, &start);
        let spawn = |number| {
            scope.spawn(move || {
                start.wait();
                work(number)
            })
        };
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        handles.into_iter().map(|handle| handle.join().expect("a thread of the test")).collect()
    })
}

/// Numbers that look random and are the same for the same seed (SplitMix64).
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice that roll the numbers of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to `sides` - 1.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

/// How long a bucket's leased tokens may be kept: a `Limiter`'s bucket admits in Δ what it may in Δ and this.
pub const LEASE: Duration = Duration::from_millis(1);

/// Limits of every kind and alignment, of less than `most` requests at once: rates by the minute, windows of a second and
/// of four; sliding ones of a second, which open at no request.
pub fn limits(most: u64) -> impl Strategy<Value = Limit> {
    let alignments =
        prop_oneof![Just(Alignment::Clock), Just(Alignment::PerKey), Just(Alignment::FirstRequest)];
    let bucket = (1..most, 1..most).prop_map(|(rate, burst)| Limit::bucket(Rate::per_minute(rate), burst));
    let window = (1..most).prop_map(|limit| Limit::window(Window::new(limit, secs(1))));
    // Two counts share one word, with their time.
    let half = (most / 2).clamp(2, 4_000);
    let both = (1..half, 0..half).prop_map(|(limit, more)| {
        Limit::burst_sustain(Window::new(limit, secs(1)), Window::new(limit + more, secs(4)))
    });
    let others = (prop_oneof![bucket, window, both], alignments);
    let sliding = (1..most, prop_oneof![Just(Alignment::Clock), Just(Alignment::PerKey)])
        .prop_map(|(limit, alignment)| (Limit::sliding_window(Window::new(limit, secs(1))), alignment));
    (prop_oneof![3 => others, 1 => sliding], any::<bool>())
        .prop_map(|((limit, alignment), count)| limit.align(alignment).count_refused(count))
}

/// Whole seconds.
pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Whole nanoseconds, clamped to what a clock moved by hand can hold.
pub fn nanos(ns: u128) -> Duration {
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}
