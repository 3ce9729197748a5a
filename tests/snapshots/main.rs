//! Snapshots of a `Limiter`: what was saved and restored goes on as if nothing had been, what was damaged is an error, and
//! what others charge meanwhile is all that can be missing.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may stop at the first surprise, and its numbers are small"
)]

#[path = "../common/mod.rs"]
mod common;

mod damage;
mod made_up;
mod meanwhile;
mod round_trip;
mod time;

use std::time::Duration;

use tidegate::{Builder, Limit, Limiter, Manual, Rate, RestoreError, Window};

pub(crate) use common::secs;

/// Room for some keys, all in a few windows of slots.
pub(crate) const MAX_KEYS: usize = 64;

/// A builder of a small limiter.
pub(crate) fn builder(limit: Limit) -> Builder {
    Limiter::builder(limit).max_keys(MAX_KEYS)
}

pub(crate) fn saved(limiter: &Limiter<Manual>) -> Vec<u8> {
    let mut snapshot = Vec::new();
    limiter.save(&mut snapshot).unwrap();
    snapshot
}

/// A clock of another process, that has read `origin` when the wall is `unix`.
pub(crate) fn clock_at(origin: Duration, unix: Duration) -> Manual {
    let clock = Manual::new();
    clock.set(origin);
    clock.set_unix(unix);
    clock
}

pub(crate) fn restored(
    limit: Limit,
    unix: Duration,
    snapshot: &[u8],
) -> Result<Limiter<Manual>, RestoreError> {
    builder(limit).clock(Manual::at_unix(unix)).restore(snapshot)
}

/// One limit of each kind.
pub(crate) fn each_kind() -> [Limit; 3] {
    [
        Limit::bucket(Rate::per_minute(6), 5),
        Limit::window(Window::new(5, secs(60))),
        Limit::burst_sustain(Window::new(3, secs(15)), Window::new(7, secs(300))),
    ]
}
