//! Races: several threads on one key. The clock is moved by hand between rounds, so every count is exact.

use super::*;
use crate::common::manual;
use std::sync::Barrier;
use std::thread;
use tidegate::Pass;

const THREADS: usize = 4;

/// Runs `rounds` rounds in which every thread makes `tries` checks of [`KEY`] at once. Before each round the
/// clock moves by `step`; after it `look` gets the round's number, how many passed, and the key's state.
fn rounds(limit: Limit, rounds: u64, tries: usize, step: Duration, mut look: impl FnMut(u64, u64, Pass)) {
    let (limiter, clock) = manual::<u64>(limit);
    for round in 0..rounds {
        clock.advance(step);
        let start = Barrier::new(THREADS);
        let admitted = thread::scope(|scope| {
            let check = || {
                start.wait();
                passed(&limiter, tries)
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(check)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        look(round, admitted, limiter.check_n(&KEY, 0).unwrap());
    }
}

/// Class: the threads that lose the race to open the next window lose their hits, or hand them in uncounted.
#[test]
fn the_loser_of_a_window_roll_keeps_its_hits() {
    for alignment in ALIGNMENTS {
        let limit = Limit::window(Window::new(1_000, secs(1))).align(alignment);
        rounds(limit, 100, 500, secs(1), |round, admitted, state| {
            assert_eq!(admitted, 1_000, "{alignment:?}, round {round}");
            let observed = state.windows()[0].observed;
            assert_eq!(observed, 2_000, "{alignment:?}, round {round}");
        });
    }
}

/// Class: two counters of one request live in two words, and a reader or a crash comes between.
#[test]
fn two_windows_are_counted_in_one_step() {
    let (burst, sustain) = (Window::new(700, secs(1)), Window::new(5_000, secs(10)));
    let limit = Limit::burst_sustain(burst, sustain).align(Alignment::Clock);
    let mut admitted_in_sustain = 0;
    // The clock moves before each round, so round 9 is the first of the second sustain window.
    rounds(limit, 109, 250, secs(1), |round, admitted, state| {
        let nth = (round + 1) % 10;
        if nth == 0 {
            admitted_in_sustain = 0;
        }
        admitted_in_sustain += admitted;
        let expected = if round < 9 { round + 1 } else { nth + 1 };
        let observed: Vec<u64> = state.windows().iter().map(|window| window.observed).collect();
        assert_eq!(observed, [1_000, 1_000 * expected], "round {round}");
        assert!(admitted <= 700 && admitted_in_sustain <= 5_000, "round {round}");
    });
}

/// Class: a thread checks, another checks, both set: the limit is passed by as many as there are threads.
#[test]
fn a_check_and_its_charge_are_one_step() {
    for burst in [1_000, 333] {
        let limit = Limit::bucket(Rate::per_second(burst), burst);
        rounds(limit, 100, 1_000, secs(1), |round, admitted, state| {
            assert_eq!(admitted, burst, "round {round}");
            assert_eq!(state.remaining(), 0, "round {round}");
        });
    }
}

/// Class: each thread (or shard, or sample) keeps a count of its own, and the limit holds for each of them.
#[test]
fn a_limit_is_not_multiplied_by_the_threads() {
    for limit in limits_of_ten() {
        rounds(limit, 20, 2_000, secs(1_000), |round, admitted, _| {
            assert_eq!(admitted, 10, "{limit:?}, round {round}");
        });
    }
}
