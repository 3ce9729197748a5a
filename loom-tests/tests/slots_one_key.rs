//! The slot table: several threads on one key that is new, or that a stopped thread has left behind.
#![cfg(tidegate_loom)]

use tidegate::OnFull;
use tidegate_loom_tests::slots::{Scene, bucket_of_four};
use tidegate_loom_tests::{EXECUTIONS_LEAST, explore_alike, explore_rotated, in_threads};

const KEY: u64 = 1;
const STRANGER: u64 = 2;
const NOW: u64 = 10_000;

fn empty() -> Scene {
    Scene::new(bucket_of_four(), OnFull::EvictLeast, &[NOW])
}

/// Two threads on one key that is nowhere: each is admitted, on one word, unless it loses every race (models
/// have four attempts).
#[test]
fn two_threads_on_one_new_key_of_the_slots() {
    explore_alike("two threads on one new key", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let scene = empty().share();
        let it = scene.clone();
        let asked = in_threads(roles, move |_| it.ask(KEY, NOW, 1));
        scene.contract(&asked);
        let admitted: u64 = asked.iter().map(|it| it.admitted).sum();
        assert_eq!(admitted + scene.exhausted(), 2, "{asked:?} {scene:?}");
        assert!(admitted > 0 && scene.owes(KEY, NOW) == admitted, "{asked:?} {scene:?}");
    });
}

/// Three. While two of them hold both slots, the third finds no room.
#[test]
#[ignore = "minutes"]
fn three_threads_on_one_new_key_of_the_slots() {
    explore_alike("three threads on one new key", EXECUTIONS_LEAST, |roles: [usize; 3]| {
        let scene = empty().share();
        let it = scene.clone();
        let asked = in_threads(roles, move |_| it.settle(KEY, NOW));
        scene.contract(&asked);
        let admitted: u64 = asked.iter().map(|it| it.admitted).sum();
        assert!(admitted >= 2, "two slots, {admitted} admitted: {scene:?}");
    });
}

/// A claimer stops before publication, goes on, and stops after it. The two threads that want the key wait
/// for nobody, and may meet the mark when one of them has its word already.
#[test]
#[ignore = "minutes"]
fn a_stopped_claimer_publishes_while_others_settle() {
    explore_rotated("a stopped claimer publishes", EXECUTIONS_LEAST, |roles: [usize; 3]| {
        let scene = empty().seized(0).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| {
            if role == 0 {
                it.table.publish_seized(0, KEY);
                return it.ask(KEY, NOW, 0);
            }
            it.settle(KEY, NOW)
        });
        scene.contract(&asked);
    });
}

/// The same claimer goes on as far as its answer, while another wants the key.
#[test]
fn a_stopped_claimer_goes_on() {
    explore_rotated("a stopped claimer goes on", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let scene = empty().seized(0).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| {
            if role == 0 {
                it.table.publish_seized(0, KEY);
            }
            it.ask(KEY, NOW, 1)
        });
        scene.contract(&asked);
    });
}

/// The same on a slot that was freed once before, and a stranger claims what is freed: a mark must not come
/// back.
#[test]
#[ignore = "minutes"]
fn a_freed_slot_goes_to_a_stranger() {
    explore_rotated("a freed slot goes to a stranger", EXECUTIONS_LEAST, |roles: [usize; 3]| {
        let scene = empty().seized(0).freed(1).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| {
            if role == 2 {
                it.table.claim_and_stop(it.engine(NOW), STRANGER);
                return it.ask(STRANGER, NOW, 0);
            }
            if role == 0 {
                it.table.publish_seized(0, KEY);
            }
            it.settle(KEY, NOW)
        });
        scene.contract(&asked);
    });
}

/// A claimer stops after publication: whoever wants the key finishes for it.
#[test]
fn others_finish_for_a_stopped_claimer() {
    explore_alike("others finish for a stopped claimer", EXECUTIONS_LEAST, |roles: [usize; 3]| {
        let scene = empty().share();
        assert!(scene.table.claim_and_stop(scene.engine(NOW), KEY));
        let it = scene.clone();
        let asked = in_threads(roles, move |_| it.ask(KEY, NOW, 1));
        scene.contract(&asked);
        assert_eq!(scene.owes(KEY, NOW), 3, "each is admitted: {scene:?}");
    });
}

/// A claimer stops before publication for good: it costs one slot, and nobody waits.
#[test]
fn nobody_waits_for_a_stopped_claimer() {
    explore_alike("nobody waits for a stopped claimer", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let scene = empty().seized(0).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |_| it.ask(KEY, NOW, 2));
        scene.contract(&asked);
        // Where one slot is all there is, who comes while it is claimed finds no room, and does not wait.
        let admitted: u64 = asked.iter().map(|it| it.admitted).sum();
        assert!(admitted >= 2, "{admitted} admitted: {scene:?}");
        assert_eq!((scene.owes(KEY, NOW), scene.forgiven()), (admitted, 0), "{scene:?}");
    });
}

/// Three threads ask twice for what is left of a bucket: two pass.
#[test]
fn bucket_near_empty_in_the_slots() {
    explore_alike("bucket near empty", 500, |roles: [usize; 3]| {
        let scene = empty().used(KEY, NOW, 2).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |_| it.ask(KEY, NOW, 2));
        scene.contract(&asked);
        assert_eq!(asked.iter().map(|it| it.admitted).sum::<u64>(), 2);
    });
}
