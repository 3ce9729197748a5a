//! Who waits for which key: a queue for each key that somebody waits for, and none for the others.
//!
//! The map's lock is held for a few instructions, by those who arrive, reserve or leave; no check ever takes it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as FairMutex, oneshot};

/// Who holds it is the queue's head. Inside: what closes when the head before has gone on, or has been dropped.
pub(crate) type Head = FairMutex<Option<oneshot::Receiver<()>>>;

/// The queues of a limiter, by the hash of their keys: keys of one hash share a queue.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    by_hash: Mutex<BTreeMap<u64, Queue>>,
}

/// It is there while somebody sits in it.
#[derive(Debug, Default)]
struct Queue {
    head: Arc<Head>,
    seats: usize,
    /// Tokens that those who sit here want and have not reserved.
    wanted: u128,
}

impl Queues {
    /// Whether nobody waits for a key of this hash.
    pub(crate) fn are_empty_for(&self, hash: u64) -> bool {
        !self.lock().contains_key(&hash)
    }

    /// A seat in the queue of a key for who wants `cost` tokens, and how many are wanted before those.
    pub(crate) fn sit(&self, hash: u64, cost: u64) -> (Seat<'_>, u128) {
        let mut by_hash = self.lock();
        let queue = by_hash.entry(hash).or_default();
        let before = queue.wanted;
        queue.seats += 1;
        queue.wanted += u128::from(cost);
        (Seat { queues: self, hash, cost, head: Arc::clone(&queue.head) }, before)
    }

    /// A panic elsewhere is no reason to panic here: nothing is ever half done under the lock.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Queue>> {
        self.by_hash.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a queue, given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat<'q> {
    queues: &'q Queues,
    hash: u64,
    cost: u64,
    head: Arc<Head>,
}

impl Seat<'_> {
    /// What the head of its queue holds: first come, first served.
    pub(crate) fn head(&self) -> Arc<Head> {
        Arc::clone(&self.head)
    }

    /// Its tokens are about to be reserved, and stand in the key's account from then on.
    pub(crate) fn want_no_more(&mut self) {
        let cost = std::mem::take(&mut self.cost);
        if let Some(queue) = self.queues.lock().get_mut(&self.hash) {
            queue.wanted -= u128::from(cost);
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.want_no_more();
        let mut by_hash = self.queues.lock();
        if let Some(queue) = by_hash.get_mut(&self.hash) {
            queue.seats -= 1;
            if queue.seats == 0 {
                by_hash.remove(&self.hash);
            }
        }
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_there_while_somebody_sits_in_it() {
        let queues = Queues::default();
        let (first, before) = queues.sit(7, 3);
        assert_eq!((before, queues.are_empty_for(7), queues.are_empty_for(8)), (0, false, true));
        let (mut second, before) = queues.sit(7, 5);
        assert_eq!((before, Arc::ptr_eq(&first.head, &second.head)), (3, true));
        second.want_no_more();
        second.want_no_more();
        assert_eq!(queues.sit(7, u64::MAX).1, 3);
        drop(first);
        assert_eq!(queues.sit(7, 1).1, 0);
        drop(second);
        assert!(queues.lock().is_empty());
    }

    #[test]
    fn a_poisoned_lock_still_serves() {
        let queues = Queues::default();
        let poison = std::panic::AssertUnwindSafe(|| {
            let _guard = queues.lock();
            panic!("while the lock is held");
        });
        assert!(std::panic::catch_unwind(poison).is_err() && queues.by_hash.is_poisoned());
        assert_eq!(queues.sit(7, 1).1, 0);
        assert!(queues.are_empty_for(7));
    }
}
