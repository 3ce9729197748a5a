//! The slot table: leases of a hot key's tokens.
#![cfg(tidegate_loom)]

use std::sync::Arc;

use tidegate::internals::{Answer, Hot, Missed, SlotTable};
use tidegate::{Alignment, Limit, OnFull, Rate, Window};
use tidegate_loom_tests::slots::{Scene, passed};
use tidegate_loom_tests::{EXECUTIONS_LEAST, engine, explore_alike, explore_rotated, in_threads, seconds};

const KEY: u64 = 1;
const NEW: u64 = 2;

fn one_a_second(burst: u64) -> Limit {
    Limit::bucket(Rate::per_second(1), burst)
}

/// Two threads lease, spend and are refused: no more passes than the burst, and all that passes stands on the
/// word.
#[test]
fn two_threads_lease_from_one_word() {
    explore_alike("two threads lease", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let scene = Scene::new(one_a_second(4), OnFull::EvictLeast, &[0]).leasing().used(KEY, 0, 1).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |_| it.ask_hot(KEY, 0, 3));
        scene.contract(&asked);
        // What was leased and not spent may be missing: one token a thread at most.
        let admitted: u64 = asked.iter().map(|it| it.admitted).sum();
        assert!(admitted >= 2, "{admitted} of three admitted");
    });
}

/// A thread holds a lease when the clock moves on by as much as fills the bucket, or to the next window: at the new
/// time no more passes than the burst or the limit, whatever was leased before.
#[test]
fn a_lease_ends_with_its_time() {
    let window = |alignment| Limit::window(Window::new(3, seconds(3))).align(alignment).count_refused(false);
    for limit in [one_a_second(3), window(Alignment::Clock), window(Alignment::FirstRequest)] {
        explore_rotated("a lease ends with its time", EXECUTIONS_LEAST, move |roles: [usize; 2]| {
            let (engine, clock) = engine(limit);
            let hot = Hot::new(engine.rule.lease_ns());
            let table = SlotTable::new(1, OnFull::EvictLeast, hot).expect("memory for two slots");
            assert!(passed(&table.check_on(&engine, KEY, 1, Missed::NotOurs)));
            let shared = Arc::new((table, engine));
            let it = shared.clone();
            let answers = in_threads(roles, move |role| {
                let (table, engine) = &*it;
                if role == 0 {
                    table.hot().warm(KEY, engine.coarse_ns(), 1);
                    return (0..6).map(|_| (1, table.check(engine, KEY, 1))).collect();
                }
                clock.advance(seconds(3));
                [3, 1].map(|cost| (cost, table.check_on(engine, KEY, cost, Missed::NotOurs))).to_vec()
            });
            let at_last = shared.1.coarse_ns();
            let late = |answer: &Answer| matches!(answer, Answer::Decided(it) if it.ns == at_last);
            let answers = answers.iter().flatten().filter(|(_, answer)| late(answer) && passed(answer));
            let admitted: u64 = answers.map(|(cost, _)| cost).sum();
            assert!(admitted <= 3, "{admitted} admitted at the new time");
        });
    }
}

/// The key is evicted by force while its thread leases, and the slot's next owner begins with the same number: who pays for the lease is the key, or nobody has one.
#[test]
fn a_lease_is_charged_to_no_stranger() {
    explore_rotated("a lease is charged to no stranger", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let scene = Scene::new(one_a_second(4), OnFull::EvictLeast, &[10_000]).leasing();
        let scene = scene.seized(1).used(KEY, 10_000, 1).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| match role {
            0 => it.ask_hot(KEY, 10_000, 2),
            _ => it.settle(NEW, 10_000),
        });
        scene.contract(&asked);
    });
}

/// A key that its thread knows to be dry stays so only until its token is back: who moved the clock is let through,
/// unless the other was.
#[test]
fn a_dry_key_is_dry_until_its_token_is_back() {
    explore_rotated("a dry key", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let (engine, clock) = engine(one_a_second(1));
        let table = SlotTable::new(1, OnFull::EvictLeast, Hot::new(1)).expect("memory for two slots");
        assert!(passed(&table.check_on(&engine, KEY, 1, Missed::NotOurs)));
        let shared = Arc::new((table, engine));
        let admitted = in_threads(roles, move |role| {
            let (table, engine) = &*shared;
            let allows = || u64::from(passed(&table.check(engine, KEY, 1)));
            table.hot().warm(KEY, engine.coarse_ns(), 1);
            let before = allows() + allows();
            if role == 0 {
                clock.advance(seconds(1));
            }
            before + allows()
        });
        assert_eq!(admitted.iter().sum::<u64>(), 1, "one token came back");
    });
}
