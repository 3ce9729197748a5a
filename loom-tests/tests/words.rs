//! One word, several threads: the loop that changes it.
#![cfg(tidegate_loom)]

use std::collections::HashSet;
use std::sync::Arc;

use tidegate::internals::{AtomicU64, Engine, Ordering};
use tidegate::{Alignment, Limit, Manual, Rate, Window};
use tidegate_loom_tests::{EXECUTIONS_LEAST, engine, explore_rotated, in_threads, passed, seconds};

/// A word, its engine and its clock, shared by a model's threads.
struct Shared {
    engine: Engine<Manual>,
    clock: Manual,
    word: AtomicU64,
}

fn shared(limit: Limit) -> Arc<Shared> {
    let (engine, clock) = engine(limit);
    Arc::new(Shared { engine, clock, word: AtomicU64::new(0) })
}

fn window(limit: u64, alignment: Alignment) -> Limit {
    Limit::window(Window::new(limit, seconds(1))).align(alignment)
}

/// Two threads charge across the end of a window while a third moves the clock over it. Every hit
/// leaves a word of its own, so none was lost in the roll, and each window admits its limit.
#[test]
fn window_roll() {
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        explore_rotated("window roll", EXECUTIONS_LEAST, move |roles: [usize; 3]| {
            let shared = shared(window(1, alignment));
            shared.engine.charge(&shared.word, 0, 1, || true, |_| {});
            let it = shared.clone();
            let charged = in_threads(roles, move |role| {
                if role == 0 {
                    it.clock.advance(seconds(1));
                    return Vec::new();
                }
                (0..2).filter_map(|_| it.engine.charge(&it.word, 0, 1, || true, |_| {})).collect()
            });
            let charged: Vec<_> = charged.into_iter().flatten().collect();
            let words: HashSet<u64> = charged.iter().map(|it| it.decided.next).collect();
            assert_eq!(words.len(), 4, "every hit is counted once");
            let admitted = charged.iter().filter(|it| passed(it.decided.outcome)).count();
            assert!(admitted <= 1, "{admitted} admitted in the second window");
        });
    }
}

/// A bucket with two tokens, three threads that ask twice, a clock that stands still: two pass.
#[test]
fn bucket_near_empty() {
    // Fewer than elsewhere: one word is all that is shared, and 778 is all there is at two preemptions.
    explore_rotated("bucket near empty", 700, |roles: [usize; 3]| {
        let shared = shared(Limit::bucket(Rate::per_second(1), 2));
        let it = shared.clone();
        let charged = in_threads(roles, move |_| {
            [1, 1].map(|cost| it.engine.charge(&it.word, 0, cost, || true, |_| {}))
        });
        let passes = charged.iter().flatten().flatten().filter(|it| passed(it.decided.outcome));
        assert_eq!(passes.count(), 2);
    });
}

/// The same while the clock moves on by one emission interval: two pass, or three.
#[test]
fn bucket_near_empty_while_time_moves() {
    // Fewer than elsewhere: one word and one clock are shared, and 852 is all there is.
    explore_rotated("bucket near empty while time moves", 800, |roles: [usize; 3]| {
        let shared = shared(Limit::bucket(Rate::per_second(1), 1));
        let it = shared.clone();
        let admitted = in_threads(roles, move |role| {
            if role == 0 {
                it.clock.advance(seconds(1));
                return 0;
            }
            let charged = (0..2).filter_map(|_| it.engine.charge(&it.word, 0, 1, || true, |_| {}));
            charged.filter(|it| passed(it.decided.outcome)).count()
        });
        let admitted: usize = admitted.iter().sum();
        assert!((1..=2).contains(&admitted), "{admitted} admitted");
        // What was admitted stands on the word: its arrival time is not ahead by more than the burst.
        let word = shared.word.load(Ordering::Relaxed);
        let now = shared.engine.rule.time().units(shared.engine.precise_ns());
        assert!(shared.engine.rule.debt(word, now) <= tidegate::internals::WHOLE_DEBT);
    });
}
