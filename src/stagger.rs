//! Places for the refused, one behind the other, so that those who are refused in one instant do not come back in one.
//!
//! ```text
//! word     the limiter's time, in nanoseconds, at which the next place of the row begins; 0 while nobody was refused
//! refusal  place = max(word, when the request passes at the earliest), the longest wait from now at most
//!          word  = place + what the refused cost takes to come back
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

/// How often a place is tried for that others take. Some thread gets on each time; who never does gets the place that it
/// saw last, which is another's too.
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
    /// How much later the next one like it is to come.
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

    /// Has those who are refused from now on take places, or not.
    pub fn turn(&self, is_on: bool) {
        if is_on {
            self.rows.get_or_init(|| (0..self.rows_wanted).map(|_| Padded(AtomicU64::new(0))).collect());
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

    /// Takes the next place in the row of a key, known by its hash: when it is to come back, in the limiter's time in
    /// nanoseconds. 0, which is long ago, where there are no rows.
    pub fn place(&self, hash: u64, refused: Refused) -> u64 {
        let Refused { ns, due_ns, spacing_ns } = refused;
        let latest_ns = ns.saturating_add(self.wait_ns_max).max(due_ns);
        let Some(rows) = self.rows.get() else { return 0 };
        let row = &rows[narrow(hash) & (rows.len() - 1)].0;
        // ORDERING: Relaxed at all three: a place is a number, and nothing is read by it.
        let mut seen = row.load(Ordering::Relaxed);
        for _ in 0..ATTEMPTS {
            let place_ns = seen.clamp(due_ns, latest_ns);
            let next = place_ns.saturating_add(spacing_ns).min(latest_ns);
            match row.compare_exchange(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return place_ns,
                Err(other) => seen = other,
            }
        }
        seen.clamp(due_ns, latest_ns)
    }
}

/// The low bits of a hash, which are all that a row is found by.
#[expect(clippy::cast_possible_truncation, reason = "they are")]
fn narrow(hash: u64) -> usize {
    hash as usize
}
