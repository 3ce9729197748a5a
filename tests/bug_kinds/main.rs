//! The bugs that rate limiters have shipped, one test a kind, so that each stays a bug of others.
//!
//! A test is named after its kind; the line above it states the class.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may stop at the first surprise, and its own numbers are small"
)]

#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "tokio")]
#[path = "../common/paused.rs"]
mod paused;

mod arithmetic;
mod clock;
mod edges;
mod memory;
mod places;
mod races;
mod reload;
mod several_limits;
#[cfg(feature = "tokio")]
mod waiting;

use std::time::Duration;

use tidegate::{Alignment, ExactLimiter, Limit, Manual, Rate, Window};

use common::{nanos, secs};

const ALIGNMENTS: [Alignment; 3] = [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest];

const KEY: u64 = 7;

/// One limit of every kind, each of ten requests; windows in every alignment.
fn limits_of_ten() -> Vec<Limit> {
    let mut limits = limits_of_ten_in_any_alignment();
    for alignment in [Alignment::Clock, Alignment::PerKey] {
        limits.push(Limit::sliding_window(Window::new(10, secs(10))).align(alignment));
    }
    limits
}

/// Those of them that a request may open.
fn limits_of_ten_in_any_alignment() -> Vec<Limit> {
    let window = Window::new(10, secs(10));
    let mut limits = vec![Limit::bucket(Rate::per_second(1), 10)];
    for alignment in ALIGNMENTS {
        limits.push(Limit::window(window).align(alignment));
        let sustain = Window::new(50, secs(100));
        limits.push(Limit::burst_sustain(window, sustain).align(alignment));
    }
    limits
}

/// How many of `tries` requests of cost 1 pass.
fn passed(limiter: &ExactLimiter<u64, Manual>, tries: usize) -> u64 {
    (0..tries).filter(|_| limiter.allow(&KEY)).count() as u64
}

/// Takes everything that is left, by one request, and says how much it was.
fn drain(limiter: &ExactLimiter<u64, Manual>) -> u64 {
    let left = limiter.check_n(&KEY, 0).unwrap().remaining();
    assert!(limiter.check_n(&KEY, left).is_ok(), "remaining passes");
    let denied = limiter.check(&KEY).unwrap_err();
    assert_eq!(denied.remaining(), 0);
    left
}

/// One nanosecond.
const NANOSECOND: Duration = Duration::from_nanos(1);
