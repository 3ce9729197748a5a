//! Places for the refused, one behind the other, so that those who are refused in one instant do not come back in one.
//!
//! ```text
//! word     the last place of the row, as the limiter's time in nanoseconds; 0 while nobody was refused
//! refusal  place = when the request passes at the earliest, or if the row is not over, what it costs takes to come back after the
//!                  last place, if that is later; the longest wait from now at most
//!          word  = place
//! ```
//!
//! A row that nobody joins needs no care: its word falls behind the time, and the next refused begins a new one. Places are
//! not wrapped: a row is as long as there are refused in it, so that no two are sent back at one time before it is as
//! long as the longest wait.

use std::sync::OnceLock;
use std::time::Duration;

use crate::sync::{AtomicU64, Ordering, Padded};
use crate::time::timebase::saturating_ns;

/// More rows than this are not made.
const ROWS_MAX: usize = 256;

/// How often a place is tried for that others take. Some thread gets on each time; who never does is told the longest wait.
const ATTEMPTS: usize = 256;

/// Rows of places, by hash.
#[derive(Debug)]
pub struct Stagger {
    /// Not 0 where the refused take places.
    is_on: AtomicU64,
    /// A power of two of them, made when they are first needed.
    rows: OnceLock<Box<[Padded<AtomicU64>]>>,
    rows_wanted: usize,
    wait_ns_max: u64,
}

/// Who is refused; times are the limiter's, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Refused {
    /// When.
    pub ns: u64,
    /// When the request passes at the earliest.
    pub due_ns: u64,
    /// How much later than the one before it is to come.
    pub spacing_ns: u64,
}

impl Stagger {
    /// Empty rows, for so many keys.
    pub fn new(is_on: bool, wait_max: Duration, keys: usize) -> Self {
        let stagger = Self {
            is_on: AtomicU64::new(0),
            rows: OnceLock::new(),
            rows_wanted: keys.clamp(1, ROWS_MAX).next_power_of_two(),
            wait_ns_max: saturating_ns(wait_max),
        };
        stagger.turn(is_on);
        stagger
    }

    /// Has those who are refused from now on take places, or not. Rows that stood still begin anew.
    pub fn turn(&self, is_on: bool) {
        if is_on && !self.is_on() {
            self.rows.get_or_init(|| (0..self.rows_wanted).map(|_| Padded(AtomicU64::new(0))).collect());
            self.begin_anew();
        }
        // ORDERING: Relaxed: the lock publishes the rows.
        self.is_on.store(is_on.into(), Ordering::Relaxed);
    }

    /// Whether the refused take places.
    #[inline]
    pub fn is_on(&self) -> bool {
        // ORDERING: Relaxed, as in `turn`.
        self.is_on.load(Ordering::Relaxed) != 0
    }

    /// Makes all rows empty: under another limit places are others.
    pub fn begin_anew(&self) {
        for row in self.rows.get().into_iter().flatten() {
            // ORDERING: Relaxed, as in `place`.
            row.0.store(0, Ordering::Relaxed);
        }
    }

    /// Makes the row of a key empty, which begins anew.
    pub fn forget(&self, hash: u64) {
        if let Some(row) = self.row(hash) {
            // ORDERING: Relaxed, as in `place`.
            row.store(0, Ordering::Relaxed);
        }
    }

    fn row(&self, hash: u64) -> Option<&AtomicU64> {
        let rows = self.rows.get()?;
        Some(&rows[narrow(hash) & (rows.len() - 1)].0)
    }

    /// Takes the next place in the row of a key, known by its hash: when it is to come back, in the limiter's time in
    /// nanoseconds. 0, which is long ago, where there are no rows.
    pub fn place(&self, hash: u64, refused: Refused) -> u64 {
        let Refused { ns, due_ns, spacing_ns } = refused;
        let latest_ns = ns.saturating_add(self.wait_ns_max).max(due_ns);
        let Some(row) = self.row(hash) else { return 0 };
        // ORDERING: Relaxed at all three: a place is a number, and nothing is read by it.
        let mut seen = row.load(Ordering::Relaxed);
        for _ in 0..ATTEMPTS {
            let after_ns = if seen <= ns { 0 } else { seen.saturating_add(spacing_ns) };
            let place_ns = after_ns.clamp(due_ns, latest_ns);
            match row.compare_exchange(seen, place_ns, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return place_ns,
                Err(other) => seen = other,
            }
        }
        latest_ns
    }
}

/// The low bits of a hash, which are all that a row is found by.
#[expect(clippy::cast_possible_truncation, reason = "they are")]
fn narrow(hash: u64) -> usize {
    hash as usize
}
