//! A thing that one thread at a time has: who has it sees all that was done before.
#![cfg(tidegate_loom)]

use loom::sync::Arc;
use tidegate::internals::{AtomicU64, Hold, Ordering};
use tidegate_loom_tests::{explore_rotated, in_threads};

/// A load and a store each time.
const FEW: u64 = 50;

#[test]
fn what_is_done_while_it_is_had_is_not_lost() {
    explore_rotated("what is done while it is had", FEW, |roles: [usize; 3]| {
        let (hold, count) = (Arc::new(Hold::new()), Arc::new(AtomicU64::new(0)));
        let (it, counted) = (Arc::clone(&hold), Arc::clone(&count));
        let had: u64 = in_threads(roles, move |_| match it.attempt() {
            Some(_held) => {
                counted.store(counted.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                1
            }
            None => 0,
        })
        .into_iter()
        .sum();
        assert!(had >= 1 && hold.attempt().is_some());
        assert_eq!(count.load(Ordering::Relaxed), had);
    });
}
