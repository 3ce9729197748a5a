//! The slot table: orders that give back, while the slot changes hands or threads know the key to be dry.
#![cfg(tidegate_loom)]

use tidegate::OnFull;
use tidegate::internals::{Order, Ordered, Paid};
use tidegate_loom_tests::slots::{Scene, bucket_of_four};
use tidegate_loom_tests::{EXECUTIONS_LEAST, explore_rotated, in_threads};

const OLD: u64 = 1;
const NEW: u64 = 2;
const MS: u64 = 10_000;
/// One thread makes one exchange on one slot: there is not more to explore.
const FEW: u64 = 200;

/// Two tokens of `OLD`'s are charged in the only slot that is left, and can be given back.
fn paid() -> (Scene, Ordered) {
    let scene = Scene::new(bucket_of_four(), OnFull::EvictLeast, &[MS]).seized(1).used(OLD, MS, 0);
    let ordered = scene.table.order(scene.engine(MS), OLD, Order::Take(2)).expect("a free slot");
    assert_eq!(ordered.done.tokens, 2);
    (scene, ordered)
}

/// The word of a key whose slot is taken over is lowered by a refund. The next owner's word has reached the same number: at
/// the end it owes what the next owner was given.
#[test]
fn refund_against_takeover() {
    explore_rotated("refund against takeover", FEW, |roles: [usize; 2]| {
        let (scene, ordered) = paid();
        let scene = scene.share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| {
            if role == 0 {
                let paid = Paid { tokens: 2, word: ordered.done.next, ns: ordered.ns, refilled: 0 };
                let order = Order::Refund(paid, 2);
                it.table.order_on(it.engine(MS), OLD, ordered.owner, order, &|| true);
                return 0;
            }
            it.ask(NEW, MS, 2).admitted
        });
        assert_eq!(scene.owes(NEW, MS), asked[1], "{scene:?}");
    });
}

/// The same with a reset, which takes all.
#[test]
fn reset_against_takeover() {
    explore_rotated("reset against takeover", FEW, |roles: [usize; 2]| {
        let scene = paid().0.share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| {
            if role == 0 {
                _ = it.table.order(it.engine(MS), OLD, Order::Reset);
                return 0;
            }
            it.ask(NEW, MS, 2).admitted
        });
        assert_eq!(scene.owes(NEW, MS), asked[1], "{scene:?}");
        assert_eq!(scene.owes(OLD, MS), 0, "{scene:?}");
    });
}

/// A charge and its refund beside a check of the same key: what was kept is owed.
#[test]
fn charge_and_refund_beside_a_check() {
    explore_rotated("charge and refund beside a check", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let scene = Scene::new(bucket_of_four(), OnFull::EvictLeast, &[MS]).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| {
            if role == 1 {
                return it.ask(OLD, MS, 1).admitted;
            }
            let Ok(ordered) = it.table.order(it.engine(MS), OLD, Order::Charge(3)) else {
                return 0; // lost every race for the new key's slot
            };
            let paid = Paid { tokens: 2, word: ordered.done.next, ns: ordered.ns, refilled: 0 };
            let order = Order::Refund(paid, 2);
            let back = it.table.order_on(it.engine(MS), OLD, ordered.owner, order, &|| true);
            ordered.done.tokens - back.map_or(0, |back| back.done.tokens)
        });
        assert_eq!(scene.owes(OLD, MS), asked[0] + asked[1], "{asked:?} {scene:?}");
    });
}

/// A thread learns that the key is dry while another gives it back: once that one is done, the first is let through.
#[test]
fn who_was_refused_learns_of_a_reset() {
    explore_rotated("who was refused learns of a reset", FEW, |roles: [usize; 2]| {
        let scene =
            Scene::new(bucket_of_four(), OnFull::EvictLeast, &[MS]).leasing().used(OLD, MS, 4).share();
        let it = scene.clone();
        let is_done = loom::sync::Arc::new(loom::sync::atomic::AtomicBool::new(false));
        let done = in_threads(roles, move |role| {
            use loom::sync::atomic::Ordering::{Acquire, Release};
            if role == 1 {
                it.table.order(it.engine(MS), OLD, Order::Reset).expect("a slot");
                it.table.hot().wet();
                is_done.store(true, Release);
                return true;
            }
            let early = it.ask_hot(OLD, MS, 2).admitted;
            let was_done = is_done.load(Acquire);
            let late = it.ask_again(OLD, MS);
            assert!(!was_done || late, "{early} before, refused after the reset");
            late
        });
        assert!(done[1]);
    });
}
