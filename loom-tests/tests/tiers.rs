//! Words that go from one tier to another while several threads have them: nothing that was used is lost, and a stranger's
//! word is never read by a rule that did not leave it.
#![cfg(tidegate_loom)]

use tidegate::internals::{Change, OWN};
use tidegate::{CarryOver, Limit, Rate};
use tidegate_loom_tests::slots::{Scene, passed};
use tidegate_loom_tests::{explore_rotated, in_threads};

const OLD: u64 = 1;
const NEW: u64 = 2;
const MS: u64 = 10_000;
/// One thread makes one exchange on one word: there is not more to explore.
const FEW: u64 = 50;

/// One token a second, up to `burst`.
fn own(burst: u64) -> Limit {
    Limit::bucket(Rate::per_second(1), burst)
}

/// Its units are others than those of [`own`].
fn tier() -> Limit {
    Limit::bucket(Rate::per_second(7), 6)
}

fn scene() -> Scene {
    Scene::with_tier(own(8), tier(), MS)
}

/// One key is checked by its own limit and by a tier at once: what passes is counted once, by whichever.
#[test]
fn two_checks_by_two_tiers() {
    explore_rotated("two checks by two tiers", FEW, |roles: [usize; 2]| {
        let scene = scene().used(OLD, MS, 2).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| {
            let ask = |_: &u64| match role {
                0 => passed(&it.answer(OLD, MS)),
                _ => passed(&it.answer_in_tier(OLD, MS)),
            };
            (0..2).filter(ask).count() as u64
        });
        assert_eq!((asked, scene.owes(OLD, MS)), ([2, 2], 6), "{scene:?}");
    });
}

/// A new key is asked for by two tiers at once: it has one slot, and one count.
#[test]
fn a_new_key_by_two_tiers() {
    explore_rotated("a new key by two tiers", FEW, |roles: [usize; 2]| {
        let scene = scene().seized(1).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| match role {
            0 => u64::from(passed(&it.answer(OLD, MS))),
            _ => u64::from(passed(&it.answer_in_tier(OLD, MS))),
        });
        assert_eq!(scene.owes(OLD, MS), asked[0] + asked[1], "{asked:?} {scene:?}");
    });
}

/// A key is checked by its tier while its slot goes to a stranger of the other: the stranger owes what it was given, and
/// one more at most.
#[test]
fn a_check_by_a_tier_against_takeover() {
    explore_rotated("a check by a tier against takeover", FEW, |roles: [usize; 2]| {
        let scene = scene().seized(1).used(OLD, MS, 1).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| match role {
            0 => u64::from(passed(&it.answer_in_tier(OLD, MS))),
            _ => it.ask(NEW, MS, 1).admitted,
        });
        // Who was evicted in its turn, and owed half at most, begins anew.
        let owes = scene.owes(NEW, MS);
        let is_there = !scene.table.values(NEW).is_empty();
        assert!(!is_there || (asked[1]..=asked[1] + 1).contains(&owes), "{owes}: {asked:?} {scene:?}");
    });
}

/// A tier checks a key while the limiter's own limit changes: the walk adopts the word by the tier that it names.
#[test]
fn a_check_by_a_tier_beside_a_change() {
    explore_rotated("a check by a tier beside a change", FEW, |roles: [usize; 2]| {
        let scene = scene().used(OLD, MS, 2).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| {
            if role == 1 {
                return (0..2).filter(|_| passed(&it.answer_in_tier(OLD, MS))).count() as u64;
            }
            let engine = it.engine(MS);
            let change = Change::Of(OWN, own(5));
            let walk = |era: tidegate::internals::Era<'_>| it.table.walk(engine, era);
            let of = engine.eras.change((own(8), &engine.rule), change, CarryOver::KeepUsed, 0, walk);
            assert_eq!(of, Ok(OWN));
            0
        });
        assert_eq!(asked[1], 2);
        assert_eq!(scene.owes(OLD, MS), 4, "{scene:?}");
    });
}
