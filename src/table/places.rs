//! The places of the exact table: one for each key that may be live, numbered, so that idle keys can
//! be looked for a few at a time. The map itself has no cursor that could be resumed.
//!
//! # Protocol
//!
//! ```text
//! never used   number ≥ fresh                     taken by raising `fresh`
//! free         holds the number of the next free  taken by popping the stack
//! reserved     holds anything                     one thread's alone, until it occupies or puts back
//! occupied     holds the hash of its key          visited by the hand; put back by whoever removed the key,
//!                                                 or by who could not insert it
//! ```
//!
//! * **One owner at a time.** A place is given out once by `take` and comes back only through `put`,
//!   which is called by the thread that took it, or by the one whose removal from the map succeeded.
//! * **ABA.** The stack's head carries a count that every change raises. A thread would have to sleep
//!   through 2^32 changes, to the very one, for its exchange to succeed wrongly.
//! * **The hand** may visit a place that is changing: it then finds no such key in the map, and goes on.

use std::num::NonZeroU64;

use crate::sync::{AtomicU64, Ordering, Padded};

/// Places are numbered in 32 bits, and one number is kept for "none".
pub(crate) const PLACES_MAX: usize = u32::MAX as usize - 1;

/// Set in every hash that a place holds, so that it is told from the number of another place. papaya
/// takes its tag from above this bit and the bucket from below.
pub(super) const LIVE: u64 = 1 << 56;

/// The low half of the stack's head: a place's number plus one, or 0 for none.
const NUMBER: u64 = u32::MAX as u64;
const COUNT_ONE: u64 = 1 << 32;

/// A fixed number of places.
#[derive(Debug)]
pub struct Places {
    slots: Box<[AtomicU64]>,
    free: Padded<AtomicU64>,
    fresh: Padded<AtomicU64>,
    hand: Padded<AtomicU64>,
}

impl Places {
    /// `count` places, all free; at most [`PLACES_MAX`].
    pub fn new(count: usize) -> Self {
        assert!(count <= PLACES_MAX);
        Self {
            slots: (0..count).map(|_| AtomicU64::new(0)).collect(),
            free: Padded(AtomicU64::new(0)),
            fresh: Padded(AtomicU64::new(0)),
            hand: Padded(AtomicU64::new(0)),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    fn slot(&self, place: u32) -> &AtomicU64 {
        &self.slots[place as usize]
    }

    /// A free place, now the caller's alone.
    pub fn take(&self) -> Option<u32> {
        self.pop().or_else(|| self.take_fresh())
    }

    fn pop(&self) -> Option<u32> {
        // ORDERING: Acquire pairs with the Release in `put`: who sees a head sees what its place holds.
        let mut head = self.free.0.load(Ordering::Acquire);
        loop {
            let place = u32::try_from((head & NUMBER).checked_sub(1)?).ok()?;
            // Perhaps no longer the next one; then the head has changed, and the exchange fails.
            let next = self.slot(place).load(Ordering::Relaxed) & NUMBER;
            let popped = (head & !NUMBER).wrapping_add(COUNT_ONE) | next;
            match self.free.0.compare_exchange(head, popped, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(place),
                Err(now) => head = now,
            }
        }
    }

    fn take_fresh(&self) -> Option<u32> {
        // ORDERING: Relaxed: the number is handed out once by the exchange itself; nothing was
        // published in a place never used.
        let mut fresh = self.fresh.0.load(Ordering::Relaxed);
        while fresh < self.slots.len() as u64 {
            match self.fresh.0.compare_exchange(fresh, fresh + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return u32::try_from(fresh).ok(),
                Err(now) => fresh = now,
            }
        }
        None
    }

    /// A free place that comes back by itself unless it is [kept](Reserved::keep).
    pub(super) fn reserve(&self) -> Option<Reserved<'_>> {
        self.take().map(|place| Reserved { places: self, place })
    }

    /// Gives a place back. Only its owner may.
    pub fn put(&self, place: u32) {
        let mut head = self.free.0.load(Ordering::Relaxed);
        loop {
            self.slot(place).store(head & NUMBER, Ordering::Relaxed);
            let pushed = (head & !NUMBER).wrapping_add(COUNT_ONE) | (u64::from(place) + 1);
            // ORDERING: Release pairs with the Acquire in `pop`, for the store just above.
            match self.free.0.compare_exchange(head, pushed, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Notes which key stands in a place of the caller's, so that the hand can find it.
    pub fn occupy(&self, place: u32, hash: u64) {
        debug_assert!(hash & LIVE != 0);
        // ORDERING: Relaxed, as in `visit`: the hash is a hint, and the map says what stands there.
        self.slot(place).store(hash, Ordering::Relaxed);
    }

    /// HELD
    pub fn held(&self) -> impl Iterator<Item = (u32, u64)> {
        let used = u32::try_from(self.fresh.0.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        (0..used).filter_map(|place| {
            let hash = self.slot(place).load(Ordering::Relaxed);
            (hash & LIVE != 0).then_some((place, hash))
        })
    }

    /// Moves the hand on by one; the place under it and the hash of its key, if one stands there.
    pub fn visit(&self) -> Option<(u32, u64)> {
        // ORDERING: Relaxed: the hand is a hint where to look, and `fresh` only bounds it.
        let used = NonZeroU64::new(self.fresh.0.load(Ordering::Relaxed))?;
        let turn = self.hand.0.fetch_add(1, Ordering::Relaxed);
        let place = u32::try_from(turn % used).ok()?;
        let hash = self.slot(place).load(Ordering::Relaxed);
        (hash & LIVE != 0).then_some((place, hash))
    }
}

/// A place on its way to a key: it goes back if the key does not come to stand in it, be it that another
/// thread was faster or that cloning the key panicked.
#[derive(Debug)]
pub(super) struct Reserved<'a> {
    places: &'a Places,
    place: u32,
}

impl Reserved<'_> {
    /// Its number.
    pub(super) fn place(&self) -> u32 {
        self.place
    }

    /// The key stands in it.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.places.put(self.place);
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn gives_each_place_out_once_and_again_after_it_came_back() {
        let places = Places::new(3);
        let taken: HashSet<u32> = (0..3).map(|_| places.take().unwrap()).collect();
        assert_eq!(taken, HashSet::from([0, 1, 2]));
        assert_eq!(places.take(), None);
        places.put(1);
        places.put(0);
        assert_eq!([places.take(), places.take(), places.take()], [Some(0), Some(1), None]);
    }

    #[test]
    fn a_reserved_place_is_put_back_unless_it_is_kept() {
        let places = Places::new(2);
        assert_eq!(places.count(), 2);
        let first = places.reserve().unwrap();
        let second = places.reserve().unwrap();
        assert_eq!(HashSet::from([first.place(), second.place()]), HashSet::from([0, 1]));
        let kept = first.place();
        first.keep();
        assert!(places.reserve().is_none());
        drop(second);
        assert_eq!(places.reserve().map(|reserved| reserved.place()), Some(1 - kept));
        assert!(places.reserve().is_some(), "the last one was put back, too");
        places.reserve().unwrap().keep();
        assert!(places.reserve().is_none());
    }

    #[test]
    fn the_hand_goes_round_what_is_occupied() {
        let places = Places::new(8);
        assert_eq!(places.visit(), None);
        for hash in [LIVE | 5, LIVE | 6, LIVE | 7] {
            let place = places.take().unwrap();
            places.occupy(place, hash);
        }
        places.put(1);
        let seen: Vec<_> = (0..6).map(|_| places.visit()).collect();
        let (first, last) = (Some((0, LIVE | 5)), Some((2, LIVE | 7)));
        assert_eq!(seen, [first, None, last, first, None, last]);
    }

    /// ABA: with the same place on top again, a thread that has slept meanwhile still loses.
    #[test]
    fn the_head_of_the_stack_does_not_come_back() {
        let places = Places::new(2);
        let heads: HashSet<u64> = (0..100)
            .map(|_| {
                let place = places.take().unwrap();
                places.put(place);
                places.free.0.load(Ordering::Relaxed)
            })
            .collect();
        assert_eq!(heads.len(), 100);
    }

    #[test]
    fn no_place_is_held_twice_under_contention() {
        const THREADS: usize = 4;
        let places = Places::new(3);
        let holders: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..200_000 {
                        let Some(place) = places.take() else { continue };
                        assert_eq!(holders[place as usize].fetch_add(1, Ordering::Relaxed), 0);
                        holders[place as usize].fetch_sub(1, Ordering::Relaxed);
                        places.put(place);
                    }
                });
            }
        });
        let left: HashSet<u32> = std::iter::from_fn(|| places.take()).collect();
        assert_eq!(left.len(), 3);
    }
}
