//! A limit that is changed while its words are: after the walk no word is of a limit before, and nothing was lost.
#![cfg(tidegate_loom)]

use std::sync::Arc;

use tidegate::internals::{Change, Engine, ExactTable, Missed, OWN, Order, Ordering, SlotTable, TABLE_BIT};
use tidegate::{CarryOver, Limit, OnFull, Rate};
use tidegate_loom_tests::map::SlotMap;
use tidegate_loom_tests::slots::{Scene, Standing, engine_at, passed};
use tidegate_loom_tests::{explore_rotated, in_threads};

const KEY: u64 = 1;
const MS: u64 = 10_000;
/// One thread makes one exchange on one word: there is not more to explore.
const FEW: u64 = 100;

fn of(burst: u64) -> Limit {
    Limit::bucket(Rate::per_second(1), burst)
}

/// Changes the limit of four to one of `burst`.
fn change(engine: &Engine<Standing>, burst: u64, walk: impl Fn(tidegate::internals::Era<'_>)) {
    engine
        .eras
        .change(
            (of(4), &engine.rule),
            Change::Of(OWN, of(burst)),
            CarryOver::KeepUsed,
            engine.precise_ns(),
            walk,
        )
        .expect("a limit that follows");
}

/// What each value of the table has used. None may be of a limit before.
fn used(table: &SlotTable, engine: &Engine<Standing>) -> Vec<u64> {
    let values = (0..2).map(|number| table.lines().slot(number).word.load(Ordering::Acquire));
    let era = engine.era();
    values
        .filter(|word| word & TABLE_BIT == 0 && *word != 0) // 0 is nobody's yet
        .map(|word| {
            assert!(!era.is_past(word), "{word:#x} was left behind by change {}", era.number());
            let moment = era.rule.moment(engine.precise_ns(), KEY);
            era.rule.parts(era.value(word, engine.precise_ns()), moment)[0].used
        })
        .collect()
}

/// A known key is checked while the limit grows: what passes is counted, under whichever limit.
#[test]
fn a_check_beside_a_change() {
    explore_rotated("a check beside a change", FEW, |roles: [usize; 2]| {
        let scene = Scene::new(of(4), OnFull::EvictLeast, &[MS]).used(KEY, MS, 2).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| {
            let engine = it.engine(MS);
            if role == 0 {
                change(engine, 8, |era| it.table.walk(engine, era));
                return 0;
            }
            // Both roads: the one that knows the first limit only, and the other.
            (0..2).filter(|_| passed(&it.table.check(engine, KEY, 1))).count() as u64
        });
        assert!((1..=2).contains(&asked[1]), "{asked:?}");
        assert_eq!(used(&scene.table, scene.engine(MS)), [2 + asked[1]], "{asked:?} {scene:?}");
    });
}

/// A key is new while the limit changes: whoever promotes it knows the limit, or the walk has freed its slot.
#[test]
fn a_new_key_beside_a_change() {
    explore_rotated("a new key beside a change", FEW, |roles: [usize; 2]| {
        let scene = Scene::new(of(4), OnFull::EvictLeast, &[MS]).seized(1).share();
        let it = scene.clone();
        let asked = in_threads(roles, move |role| {
            let engine = it.engine(MS);
            if role == 0 {
                change(engine, 8, |era| it.table.walk(engine, era));
                return 0;
            }
            u64::from(passed(&it.table.check_on(engine, KEY, 1, Missed::NotOurs)))
        });
        let used = used(&scene.table, scene.engine(MS));
        assert_eq!(used.iter().sum::<u64>(), asked[1], "{asked:?} {scene:?}");
    });
}

/// A charge that is given back while the limit changes twice.
#[test]
fn an_order_beside_two_changes() {
    explore_rotated("an order beside two changes", FEW, |roles: [usize; 2]| {
        let scene = Scene::new(of(4), OnFull::EvictLeast, &[MS]).used(KEY, MS, 1).share();
        let it = scene.clone();
        let charged = in_threads(roles, move |role| {
            let engine = it.engine(MS);
            if role == 0 {
                change(engine, 8, |era| it.table.walk(engine, era));
                change(engine, 4, |era| it.table.walk(engine, era));
                return 0;
            }
            let ordered = it.table.order(engine, KEY, Order::Charge(2)).expect("a known key");
            ordered.done.tokens
        });
        assert_eq!(used(&scene.table, scene.engine(MS)), [1 + charged[1]], "{scene:?}");
    });
}

/// The same of the exact table: its new key is pending for others to see.
#[test]
fn a_new_exact_key_beside_a_change() {
    explore_rotated("a new exact key beside a change", FEW, |roles: [usize; 2]| {
        let shared = Arc::new((ExactTable::new(SlotMap::new(2), 1), engine_at(of(4), MS)));
        let it = shared.clone();
        let asked = in_threads(roles, move |role| {
            let (table, engine) = &*it;
            if role == 0 {
                change(engine, 8, |era| table.walk(engine, era));
                return 0;
            }
            u64::from(passed(&table.check(engine, SlotMap::hash(KEY), &KEY, 1)))
        });
        let (table, engine) = &*shared;
        assert_eq!(asked[1], 1, "there is room");
        let word = table.map().word(KEY).expect("its key");
        let era = engine.era();
        assert!(word & TABLE_BIT == 0 && !era.is_past(word), "{word:#x} was left behind");
        let ns = engine.precise_ns();
        assert_eq!(era.rule.parts(era.value(word, ns), era.rule.moment(ns, 0))[0].used, 1);
    });
}
