//! The slot table: a slot changes hands while its key is checked.
#![cfg(tidegate_loom)]

use tidegate::OnFull;
use tidegate_loom_tests::slots::{Scene, bucket_of_four};
use tidegate_loom_tests::{EXECUTIONS_LEAST, explore_alike, explore_rotated, in_threads};

const OLD: u64 = 1;
const NEW: u64 = 2;
const OTHER: u64 = 3;

/// The first slot is a key's with this many tokens used at a time, the second a stopped claimer's.
fn one_slot(on_full: OnFull, clocks_ms: &[u64], ms: u64, tokens: u64) -> Scene {
    Scene::new(bucket_of_four(), on_full, clocks_ms).seized(1).used(OLD, ms, tokens)
}

/// A key is checked while a newcomer takes its idle slot over.
#[test]
fn check_against_takeover() {
    explore_rotated("check against takeover", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let scene = one_slot(OnFull::EvictLeast, &[10_000], 1_000, 1).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| it.ask([OLD, NEW][role], 10_000, 1));
        scene.contract(&asked);
    });
}

/// The same with two who want the newcomer's key.
#[test]
#[ignore = "minutes"]
fn check_against_takeover_by_two() {
    explore_rotated("check against takeover by two", EXECUTIONS_LEAST, |roles: [usize; 3]| {
        let scene = one_slot(OnFull::EvictLeast, &[10_000], 1_000, 1).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| match role {
            0 => it.ask(OLD, 10_000, 1),
            _ => it.settle(NEW, 10_000),
        });
        scene.contract(&asked);
    });
}

/// A key that owes two is evicted by force, and its slot's next owner reaches the same number.
#[test]
fn forced_eviction_with_equal_numbers() {
    explore_rotated("forced eviction with equal numbers", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let scene = one_slot(OnFull::EvictLeast, &[10_000], 10_000, 2).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| match role {
            0 => it.ask(OLD, 10_000, 1),
            _ => it.ask(NEW, 10_000, 2),
        });
        scene.contract(&asked);
    });
}

/// The same with a thread for each request.
#[test]
#[ignore = "minutes"]
fn forced_eviction_with_equal_numbers_by_two() {
    explore_rotated("forced eviction with equal numbers by two", EXECUTIONS_LEAST, |roles: [usize; 3]| {
        let scene = one_slot(OnFull::EvictLeast, &[10_000], 10_000, 2).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| match role {
            0 => it.ask(OLD, 10_000, 1),
            _ => it.settle(NEW, 10_000),
        });
        scene.contract(&asked);
    });
}

/// A key that owes two is copied, three times over, while it is evicted by force for one that comes to owe one: each is
/// copied with a word of its own, or not at all.
#[test]
fn copy_against_takeover() {
    explore_rotated("copy against takeover", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let scene = one_slot(OnFull::EvictLeast, &[10_000], 10_000, 2).share();
        let it = scene.clone();
        let copied = in_threads(roles, move |role| match role {
            0 => [it.copied(10_000), it.copied(10_000), it.copied(10_000)].concat(),
            _ => {
                it.ask(NEW, 10_000, 1);
                Vec::new()
            }
        });
        for (key, owed) in copied.concat() {
            assert!(matches!((key, owed), (OLD, 2) | (NEW, 1)), "key {key} with {owed}: {scene:?}");
        }
    });
}

/// Two newcomers judge one idle victim, and nobody may be evicted by force: one of them gets the slot.
#[test]
fn two_claims_of_one_victim() {
    explore_rotated("two claims of one victim", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let scene = one_slot(OnFull::Refuse, &[10_000], 1_000, 1).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| it.ask([NEW, OTHER][role], 10_000, 1));
        scene.contract(&asked);
        assert_eq!(asked[0].admitted + asked[1].admitted, 1, "{asked:?} {scene:?}");
    });
}

/// The same by force, with the victim asking too.
#[test]
#[ignore = "minutes"]
fn two_forced_claims_of_one_victim() {
    explore_rotated("two forced claims of one victim", EXECUTIONS_LEAST, |roles: [usize; 3]| {
        let scene = one_slot(OnFull::EvictLeast, &[10_000], 10_000, 2).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| match role {
            0 => it.ask(OLD, 10_000, 1),
            _ => it.settle([NEW, OTHER][role - 1], 10_000),
        });
        scene.contract(&asked);
    });
}

/// Clocks differ: the slot is idle by one of them, and its next owner may begin by the other.
#[test]
#[ignore = "minutes"]
fn takeover_between_clocks_that_differ() {
    explore_rotated("takeover between clocks that differ", EXECUTIONS_LEAST, |roles: [usize; 3]| {
        let scene = one_slot(OnFull::EvictLeast, &[14_000, 16_000], 14_000, 1).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| match role {
            0 => it.ask(OLD, 16_000, 1),
            1 => it.settle(NEW, 16_000),
            _ => it.settle(NEW, 14_000),
        });
        scene.contract(&asked);
    });
}

/// The same with a newcomer's thread that stops after publication, and one that begins for it, by another clock.
#[test]
fn takeover_finished_by_a_slower_clock() {
    explore_rotated("takeover finished by a slower clock", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let scene = one_slot(OnFull::EvictLeast, &[14_000, 16_000], 14_000, 1).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| match role {
            0 => it.ask(OLD, 16_000, 1),
            _ => {
                it.table.claim_and_stop(it.engine(16_000), NEW);
                it.settle(NEW, 14_000)
            }
        });
        scene.contract(&asked);
    });
}

/// Newcomers start with what their victims owed: nothing is forgiven, whoever wins.
#[test]
fn nothing_is_forgiven_where_debts_are_inherited() {
    explore_alike("nothing is forgiven", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let scene = Scene::new(bucket_of_four(), OnFull::Inherit, &[10_000])
            .used(OLD, 10_000, 1)
            .used(OTHER, 10_000, 2)
            .share();
        let it = scene.clone();
        let asked = in_threads(roles, move |_| it.ask(NEW, 10_000, 1));
        assert_eq!(scene.forgiven(), 0);
        // Somebody owes what was owed before, or whoever takes the free slot will.
        let owed =
            [OLD, NEW, OTHER].iter().map(|&key| scene.owes(key, 10_000)).sum::<u64>() + scene.passed_on();
        let admitted: u64 = asked.iter().map(|it| it.admitted).sum();
        assert!(owed >= 3 + admitted, "3 and {admitted} due, {owed} owed: {scene:?}");
    });
}
