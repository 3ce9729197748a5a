//! The vocabulary of an answer: plain values, computed by nobody here.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The limit is used up for now.
    Exhausted,
    /// The cost is above the limit itself: it can never fit, however long the caller waits.
    TooLarge,
    /// The key is new, and none of the places that were looked at had room for it; or a check lost race after race to
    /// other threads, which is all that it means in a [`SingleLimiter`](crate::SingleLimiter).
    Full,
    /// The limit has windows, which have no turns to wait for: only a bucket can be reserved from.
    Unsupported,
}

/// Which part of a limit an answer speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WindowName {
    /// The token bucket of `Limit::bucket`.
    Bucket,
    /// The only window of `Limit::window`.
    Window,
    /// The short window of `Limit::burst_sustain`.
    Burst,
    /// The long window of `Limit::burst_sustain`.
    Sustain,
    /// The only window of `Limit::sliding_window`.
    Sliding,
}

impl WindowName {
    /// `"bucket"`, `"window"`, `"burst"`, `"sustain"` or `"sliding"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bucket => "bucket",
            Self::Window => "window",
            Self::Burst => "burst",
            Self::Sustain => "sustain",
            Self::Sliding => "sliding",
        }
    }
}

impl fmt::Display for WindowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One window (or the bucket) as it stood right after a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowState {
    /// Which one.
    pub name: WindowName,
    /// The most it admits: requests, or units of cost; a bucket's burst.
    pub limit: u64,
    /// How long the window lasts; for a bucket, the time in which an empty one fills.
    pub period: Duration,
    /// What would still pass right now.
    pub remaining: u64,
    /// What has been used in this period, refused requests included if they count. Exact up to
    /// `observed_max`, where it stays. For a bucket, `limit - remaining`. For a sliding window, what this period counts
    /// and what the one before still weighs, rounded up.
    pub observed: u64,
    /// The most that `observed` can count to; always above `limit` for a window.
    pub observed_max: u64,
    /// The wait until `remaining` grows; zero when nothing is used.
    pub next_after: Duration,
    /// The wait until `remaining` is `limit` again; zero when nothing is used.
    pub reset_after: Duration,
    /// Whether this window refused the request. It is judged before the request itself is counted.
    pub refuses: bool,
}

/// The windows of an answer, one or two; use it as a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    states: [WindowState; 2],
    len: usize,
}

impl Windows {
    pub(crate) fn one(state: WindowState) -> Self {
        Self { states: [state; 2], len: 1 }
    }

    pub(crate) fn two(burst: WindowState, sustain: WindowState) -> Self {
        Self { states: [burst, sustain], len: 2 }
    }
}

impl Deref for Windows {
    type Target = [WindowState];

    fn deref(&self) -> &[WindowState] {
        &self.states[..self.len]
    }
}

impl<'a> IntoIterator for &'a Windows {
    type Item = &'a WindowState;
    type IntoIter = std::slice::Iter<'a, WindowState>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
