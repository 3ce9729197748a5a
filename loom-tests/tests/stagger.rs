//! Threads that are refused at one time: no two get one place, and no place is left out.
#![cfg(tidegate_loom)]

use std::time::Duration;

use loom::sync::Arc;
use tidegate::internals::{Refused, Stagger};
use tidegate_loom_tests::{explore_rotated, in_threads};

/// Three exchanges on one word are few to explore.
const FEW: u64 = 50;

#[test]
fn two_threads_take_three_places() {
    explore_rotated("two threads take three places", FEW, |roles: [usize; 2]| {
        let stagger = Arc::new(Stagger::new(true, Duration::from_secs(1), 1));
        let it = Arc::clone(&stagger);
        let mut places: Vec<u64> = in_threads(roles, move |role| {
            let refused = Refused { ns: 100, due_ns: 110, spacing_ns: 10 };
            // One of them is refused twice.
            (0..=role).map(|_| it.place(7, refused)).collect::<Vec<_>>()
        })
        .into_iter()
        .flatten()
        .collect();
        places.sort_unstable();
        assert_eq!(places, [110, 120, 130]);
    });
}

/// One of them has another time, and would wait for longer.
#[test]
fn two_threads_with_different_times() {
    explore_rotated("two threads with different times", FEW, |roles: [usize; 2]| {
        let stagger = Arc::new(Stagger::new(true, Duration::from_secs(1), 1));
        let it = Arc::clone(&stagger);
        let places = in_threads(roles, move |role| {
            let due_ns = [110, 125][role];
            [(); 2].map(|()| it.place(7, Refused { ns: 100, due_ns, spacing_ns: 10 }))
        });
        let mut sorted: Vec<u64> = places.iter().flatten().copied().collect();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 10), "{places:?}");
        assert!(places[1].iter().all(|&place| place >= 125), "{places:?}");
    });
}
