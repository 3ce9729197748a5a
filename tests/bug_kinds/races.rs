//! Races: several threads on one key. The clock is moved by hand between rounds, so every count is exact.

use super::*;
use crate::common::manual;
use std::sync::Barrier;
use std::thread;
use tidegate::Pass;

const THREADS: usize = 4;

/// Checks of each thread in a round: enough that the threads meet although they do not start in one instant.
const TRIES: u64 = 20_000;
const ALL_TRIES: u64 = TRIES * THREADS as u64;

/// Runs `rounds` rounds in which every thread makes its checks of [`KEY`] at once. Before each round the
/// clock moves by `step`; after it `look` gets the round's number, how many passed, and the key's state.
fn rounds(limit: Limit, rounds: u64, step: Duration, mut look: impl FnMut(u64, u64, Pass)) {
    let (limiter, clock) = manual::<u64>(limit);
    for round in 0..rounds {
        clock.advance(step);
        let start = Barrier::new(THREADS);
        let admitted = thread::scope(|scope| {
            let check = || {
                start.wait();
                passed(&limiter, TRIES as usize)
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
        let limit = Limit::window(Window::new(ALL_TRIES / 2, secs(1))).align(alignment);
        rounds(limit, 30, secs(1), |round, admitted, state| {
            assert_eq!(admitted, ALL_TRIES / 2, "{alignment:?}, round {round}");
            let observed = state.windows()[0].observed;
            assert_eq!(observed, ALL_TRIES, "{alignment:?}, round {round}");
        });
    }
}

/// Class: two counters of one request live in two words, and a reader or a crash comes between.
#[test]
fn two_windows_are_counted_in_one_step() {
    let (burst, sustain) = (Window::new(70_000, secs(60)), Window::new(140_000, secs(180)));
    let limit = Limit::burst_sustain(burst, sustain).align(Alignment::Clock);
    let mut admitted_in_sustain = 0;
    // The clock moves before each round, so round 2 is the first of the second sustain window. All hits of a round
    // fit the bits of a limit of 70 000, and those of three rounds the bits of 140 000.
    rounds(limit, 39, secs(60), |round, admitted, state| {
        let nth = (round + 1) % 3;
        if nth == 0 {
            admitted_in_sustain = 0;
        }
        admitted_in_sustain += admitted;
        let expected = if round < 2 { round + 1 } else { nth + 1 };
        let observed: Vec<u64> = state.windows().iter().map(|window| window.observed).collect();
        assert_eq!(observed, [ALL_TRIES, ALL_TRIES * expected], "round {round}");
        assert!(admitted <= 70_000 && admitted_in_sustain <= 140_000, "round {round}");
    });
}

/// Class: a thread checks, another checks, both set: the limit is passed by as many as there are threads.
#[test]
fn a_check_and_its_charge_are_one_step() {
    for burst in [ALL_TRIES / 2, 33_333] {
        let limit = Limit::bucket(Rate::per_second(burst), burst);
        rounds(limit, 40, secs(1), |round, admitted, state| {
            assert_eq!(admitted, burst, "round {round}");
            assert_eq!(state.remaining(), 0, "round {round}");
        });
    }
}

/// Class: each thread (or shard, or sample) keeps a count of its own, and the limit holds for each of them.
#[test]
fn a_limit_is_not_multiplied_by_the_threads() {
    for limit in limits_of_ten() {
        rounds(limit, 5, secs(1_000), |round, admitted, _| {
            assert_eq!(admitted, 10, "{limit:?}, round {round}");
        });
    }
}
