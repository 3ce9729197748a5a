//! One value that many threads hold for a while, each with a count of its own.
//!
//! An `Arc` counts its holders in one place, where all threads would meet at each request. Here there are as many counts as
//! cores, each on lines of its own, and a thread takes the one that its number falls on.

use std::cell::Cell;
use std::sync::Arc;
use std::thread;

use crate::sync::{Ordering, Padded, Tally, each_thread_has};

/// More counts than this are of no use.
const COUNTS_MAX: usize = 64;

static THREADS: Tally = Tally::new(0);
each_thread_has!(NUMBER: Cell<usize> = Cell::new(0));

/// A value, held.
pub(super) type Shared<T> = Arc<Padded<Arc<T>>>;

/// A value to be held.
pub(super) struct Shares<T> {
    /// A power of two of them.
    counts: Box<[Shared<T>]>,
}

impl<T> Shares<T> {
    pub(super) fn new(value: T) -> Self {
        let value = Arc::new(value);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let counts = (2 * cores).next_power_of_two().min(COUNTS_MAX);
        Self { counts: (0..counts).map(|_| Arc::new(Padded(Arc::clone(&value)))).collect() }
    }

    /// The value itself.
    pub(super) fn value(&self) -> &T {
        &self.counts[0].0
    }

    /// Holds it, by the calling thread's count. Allocates nothing.
    #[inline]
    pub(super) fn hold(&self) -> Shared<T> {
        Arc::clone(&self.counts[thread_number() & (self.counts.len() - 1)])
    }
}

/// The calling thread's, from 1 in the order in which threads first ask.
#[inline]
pub(super) fn thread_number() -> usize {
    let number = NUMBER.get();
    if number != 0 {
        return number;
    }
    // ORDERING: Relaxed: the number says only where to count.
    let next = THREADS.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    let number = usize::try_from(next).unwrap_or(usize::MAX);
    NUMBER.set(number);
    number
}
