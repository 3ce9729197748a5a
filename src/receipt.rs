//! `Receipt` and `Reservation`: what a charge can be undone with.

use std::fmt;
use std::time::Duration;

use crate::answer::{Snapshot, Standing};

/// What was charged to a key, and the right to have it given back once: to the limiter that issued it, by `refund`.
///
/// It is good for what it paid for **less what has come back to the key since**: of a bucket one token for every interval
/// that has passed, of windows all in each window that has not ended, and nothing afterwards. So a refund never
/// leaves more than if the charge had never been made. A reset of the key, its eviction, and a change of the limiter's limit make it
/// worthless.
#[must_use = "without its receipt a charge is not given back; bind it to `_` if it never will be"]
pub struct Receipt {
    pub(crate) snapshot: Snapshot,
    /// The limiter's number.
    pub(crate) limiter: u64,
    pub(crate) hash: u64,
    /// Whose limit it was charged by.
    pub(crate) tier: u8,
    /// Whose word it was.
    pub(crate) owner: u64,
    /// How often keys of its part had been reset, and given something back.
    pub(crate) resets: u64,
    /// How often the limit had been changed.
    pub(crate) changes: u64,
    pub(crate) asked: u64,
    pub(crate) charged: u64,
}

impl Receipt {
    /// What was charged, in units of cost.
    pub fn charged(&self) -> u64 {
        self.charged
    }

    /// What could not be charged, because the key owes as much as it may (see
    /// [`Limit::debt_max`](crate::Limit::debt_max)) or its count has reached its end.
    pub fn uncharged(&self) -> u64 {
        self.asked - self.charged
    }

    /// What the key owed right after the charge beyond a limit that is used up; see [`Standing::debt`].
    pub fn debt(&self) -> u64 {
        self.standing().debt()
    }

    /// How the key stood right after the charge.
    pub fn standing(&self) -> Standing {
        Standing { snapshot: self.snapshot }
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receipt")
            .field("charged", &self.charged)
            .field("uncharged", &self.uncharged())
            .field("standing", &self.standing())
            .finish_non_exhaustive()
    }
}

/// A place in a bucket's line, charged already: the request may go on after [`wait`](Self::wait), without another check.
#[must_use = "who has reserved has been charged: wait, or cancel"]
pub struct Reservation {
    pub(crate) receipt: Receipt,
    pub(crate) wait: Duration,
}

impl Reservation {
    /// How long to wait from the moment of the reservation; zero if the request may go on at once.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// What was charged, in tokens.
    pub fn charged(&self) -> u64 {
        self.receipt.charged
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("wait", &self.wait)
            .field("charged", &self.receipt.charged)
            .finish_non_exhaustive()
    }
}
