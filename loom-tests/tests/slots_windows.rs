//! The slot table: fixed windows that end while their keys are checked and evicted.
#![cfg(tidegate_loom)]

use std::collections::HashSet;
use std::sync::Arc;

use tidegate::internals::{Answer, Hot, Missed, SlotTable};
use tidegate::{Alignment, Limit, OnFull, Window};
use tidegate_loom_tests::slots::{Scene, passed};
use tidegate_loom_tests::{EXECUTIONS_LEAST, engine, explore_rotated, in_threads, seconds};

const KEY: u64 = 1;
const NEW: u64 = 2;

fn a_second(count: u64, alignment: Alignment) -> Limit {
    Limit::window(Window::new(count, seconds(1))).align(alignment)
}

/// Two threads check a key across the end of its window while a third moves the clock over it: every hit is
/// counted once, and the new window admits its limit.
#[test]
fn window_roll_in_the_slots() {
    for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        explore_rotated("window roll", EXECUTIONS_LEAST, move |roles: [usize; 3]| {
            let (engine, clock) = engine(a_second(1, alignment));
            let table = SlotTable::new(1, OnFull::EvictLeast, Hot::new(0)).expect("memory for two slots");
            assert!(passed(&table.check_on(&engine, KEY, 1, Missed::NotOurs)));
            let shared = Arc::new((table, engine));
            let it = shared.clone();
            let answers = in_threads(roles, move |role| {
                if role == 0 {
                    clock.advance(seconds(1));
                    return Vec::new();
                }
                (0..2).map(|_| it.0.check_on(&it.1, KEY, 1, Missed::NotOurs)).collect()
            });
            let answers: Vec<Answer> = answers.into_iter().flatten().collect();
            let word = |answer: &Answer| match answer {
                Answer::Decided(charged) => charged.decided.next,
                Answer::Full { .. } => panic!("there is room"),
            };
            let words: HashSet<u64> = answers.iter().map(word).collect();
            assert_eq!(words.len(), 4, "every hit is counted once");
            let admitted = answers.iter().filter(|answer| passed(answer)).count();
            assert!(admitted <= 1, "{admitted} admitted in the second window");
        });
    }
}

/// A key has used its window up. By one clock the window has ended, and a newcomer takes the slot; by the
/// other it has not, and the key, which may evict the newcomer in its turn, must not begin it anew.
#[test]
fn an_evicted_window_does_not_begin_anew_in_the_slots() {
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        explore_rotated(
            "an evicted window does not begin anew",
            EXECUTIONS_LEAST,
            move |roles: [usize; 2]| {
                let scene = Scene::new(
                    a_second(2, alignment).count_refused(false),
                    OnFull::EvictLeast,
                    &[500, 1_500],
                )
                .used(KEY, 0, 2)
                .seized(1)
                .share();
                let it = scene.clone();
                let charged = in_threads(roles, move |role| match role {
                    0 => it.check(NEW, 1_500),
                    _ => it.check(KEY, 500),
                });
                assert!(scene.table.values(KEY).len() <= 1);
                if let Some(charged) = charged[1]
                    && passed(&Answer::Decided(charged))
                {
                    assert!(charged.ns >= 2_500_000_000, "admitted twice in one window, at {}", charged.ns);
                }
            },
        );
    }
}

/// A check of a key whose window is over falls on its slot's next owner, whose window by its own phase is not: the next owner
/// owes what it was admitted all the same.
#[test]
fn check_of_another_phase_against_takeover() {
    const OLD: u64 = 0xC000_0000_0000;
    const NEW: u64 = 0x1000_0000_0000;
    explore_rotated("check of another phase against takeover", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let limit = Limit::window(Window::new(4, seconds(1))).align(Alignment::PerKey);
        let scene = Scene::new(limit, OnFull::Refuse, &[500]).seized(1).used(OLD, 0, 2).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| match role {
            0 => it.ask(OLD, 500, 1),
            _ => it.ask(NEW, 500, 2),
        });
        let (admitted, paid) = (asked[1].admitted, scene.owes(NEW, 500));
        assert!(paid >= admitted, "admitted {admitted}, paid {paid}: {asked:?} {scene:?}");
    });
}
