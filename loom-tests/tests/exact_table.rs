//! The exact table's protocol on a map of two slots: check against evict, and both against who forgets a key.
#![cfg(tidegate_loom)]

use std::sync::Arc;

use tidegate::internals::{Answer, Charged, Engine, ExactTable, SEALED, TABLE_BIT};
use tidegate::{Alignment, Limit, Manual, Rate, Window};
use tidegate_loom_tests::map::SlotMap;
use tidegate_loom_tests::{
    EXECUTIONS_LEAST, engine, explore_alike, explore_rotated, in_threads, passed, seconds,
};

struct Shared {
    engine: Engine<Manual>,
    clock: Manual,
    table: ExactTable<SlotMap>,
}

fn shared(limit: Limit, max_keys: usize) -> Arc<Shared> {
    let (engine, clock) = engine(limit);
    Arc::new(Shared { engine, clock, table: ExactTable::new(SlotMap::new(3), max_keys) })
}

impl Shared {
    fn check(&self, key: u64) -> Option<Charged> {
        match self.table.check(&self.engine, SlotMap::hash(key), &key, 1) {
            Answer::Decided(charged) => Some(charged),
            Answer::Full { .. } => None,
        }
    }

    fn admits(&self, key: u64) -> bool {
        self.check(key).is_some_and(|charged| passed(charged.decided.outcome))
    }

    /// Tokens that a key's word owes now, of a limit of two.
    fn owes(&self, key: u64) -> u64 {
        self.table.map().word(key).map_or(0, |word| self.owed(word))
    }

    /// Tokens that a word owes now: none while it is pending. No sealed one is left when all are done.
    fn owed(&self, word: u64) -> u64 {
        assert_ne!(word, SEALED, "an entry that should have left the map");
        if word & TABLE_BIT != 0 {
            return 0;
        }
        let now = self.engine.rule.time().units(self.engine.precise_ns());
        self.engine.rule.parts(word, now)[0].used
    }

    /// Forgets a key: what it owed.
    fn forget(&self, key: u64) -> Option<u64> {
        self.table.forget(SlotMap::hash(key), &key).map(|word| self.owed(word))
    }

    /// Forgets those that owe this much: how many there were.
    fn forget_who_owes(&self, tokens: u64) -> usize {
        self.table.retain(&self.engine, |_: &u64, seen| self.owed(seen.word) != tokens)
    }

    /// Live keys and free places make up all places: none was lost, none given out twice.
    fn assert_places(&self) {
        let live = self.table.keys::<u64>();
        let mut free = 0;
        while self.table.places().take().is_some() {
            free += 1;
        }
        assert_eq!(live + free, self.table.max_keys(), "{live} live, {free} free");
    }
}

fn bucket() -> Limit {
    Limit::bucket(Rate::per_second(1), 2)
}

/// Threads on one new key: it gets one entry, and every admission stands on its word.
fn one_new_key<const THREADS: usize>(name: &str, executions_least: u64) {
    explore_rotated(name, executions_least, |roles: [usize; THREADS]| {
        let shared = shared(bucket(), 2);
        let it = shared.clone();
        let admitted = in_threads(roles, move |_| it.admits(0));
        let admitted = admitted.iter().filter(|&&passed| passed).count();
        assert_eq!(admitted, THREADS.min(2));
        assert_eq!(shared.owes(0), admitted as u64);
        shared.assert_places();
    });
}

#[test]
fn two_threads_on_one_new_key() {
    // Fewer than elsewhere: two threads meet in a handful of steps, and 221 is all there is.
    one_new_key::<2>("two threads on one new key", 200);
}

#[test]
#[ignore = "minutes"]
fn three_threads_on_one_new_key() {
    one_new_key::<3>("three threads on one new key", EXECUTIONS_LEAST);
}

/// A table of one place. Key 0 is idle; the first thread brings key 1, which must evict it or go
/// without, while the others check key 0. What it was admitted stands on the word that others find.
fn check_against_evict<const THREADS: usize>(name: &str) {
    explore_rotated(name, EXECUTIONS_LEAST, |roles: [usize; THREADS]| {
        let shared = shared(bucket(), 1);
        assert!(shared.admits(0));
        shared.clock.advance(seconds(10));
        let it = shared.clone();
        let admitted = in_threads(roles, move |role| it.admits(u64::from(role == 0)));
        let zero = admitted[1..].iter().filter(|&&passed| passed).count() as u64;
        assert_eq!(shared.owes(0), zero, "of {zero} admitted");
        assert_eq!(shared.owes(1), u64::from(admitted[0]));
        assert!(zero == 0 || !admitted[0], "one place for two keys that owe");
        assert!(zero > 0 || admitted[0], "a place for nobody");
        shared.assert_places();
    });
}

#[test]
fn one_check_against_evict() {
    check_against_evict::<2>("one check against evict");
}

#[test]
#[ignore = "minutes"]
fn two_checks_against_evict() {
    check_against_evict::<3>("two checks against evict");
}

/// Two new keys meet in one place that an idle key holds: one gets it.
#[test]
fn two_evictions_of_one_idle_key() {
    explore_rotated("two evictions of one idle key", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let shared = shared(bucket(), 1);
        assert!(shared.admits(0));
        shared.clock.advance(seconds(10));
        let it = shared.clone();
        let admitted = in_threads(roles, move |role| it.admits(role as u64 + 1));
        assert_eq!([shared.owes(1), shared.owes(2)], admitted.map(u64::from));
        assert!(admitted[0] != admitted[1], "one place, one of two: {admitted:?}");
        shared.assert_places();
    });
}

/// That no check was admitted in the window of a second that the first one has used up.
fn assert_none_in_the_window_of(first: Charged, checks: impl IntoIterator<Item = Option<Charged>>) {
    const SECOND: u64 = 1_000_000_000;
    for again in checks.into_iter().flatten().filter(|it| passed(it.decided.outcome)) {
        assert!(again.ns / SECOND > first.ns / SECOND, "admitted twice in one window");
    }
}

/// Key 0 has used up a window. While the clock moves on and another key evicts it, a thread that may
/// have read the old time checks it: the old window must not begin anew.
#[test]
fn an_evicted_window_does_not_begin_anew() {
    explore_rotated("an evicted window does not begin anew", EXECUTIONS_LEAST, |roles: [usize; 3]| {
        let limit = Limit::window(Window::new(1, seconds(1))).align(Alignment::Clock).count_refused(false);
        let shared = shared(limit, 1);
        let first = shared.check(0).expect("room");
        let it = shared.clone();
        let checks = in_threads(roles, move |role| match role {
            0 => {
                it.clock.advance(seconds(1));
                None
            }
            1 => {
                it.check(1);
                None
            }
            _ => it.check(0),
        });
        assert_none_in_the_window_of(first, checks);
        shared.assert_places();
    });
}

/// The same where the clock steps back meanwhile: who was evicted at a later time does not begin before it.
#[test]
fn an_evicted_window_does_not_begin_anew_when_time_steps_back() {
    explore_rotated("an evicted window, time steps back", EXECUTIONS_LEAST, |roles: [usize; 2]| {
        let limit = Limit::window(Window::new(1, seconds(1))).align(Alignment::Clock).count_refused(false);
        let shared = shared(limit, 1);
        let first = shared.check(0).expect("room");
        shared.clock.advance(seconds(1));
        let it = shared.clone();
        let checks = in_threads(roles, move |role| match role {
            0 => {
                it.check(1);
                it.clock.set(seconds(0));
                None
            }
            _ => it.check(0),
        });
        assert_none_in_the_window_of(first, checks);
        shared.assert_places();
    });
}

/// Two threads, one of which has two steps to make: 338 executions is all there is.
const HANDFUL: u64 = 300;

/// Key 0 owes one token. The first thread forgets it, the others check it: what they were admitted is in what the first
/// one was given back, or on the word that others find.
fn check_against_forget<const THREADS: usize>(name: &str, executions_least: u64) {
    explore_rotated(name, executions_least, |roles: [usize; THREADS]| {
        let shared = shared(bucket(), 2);
        assert!(shared.admits(0));
        let it = shared.clone();
        let done = in_threads(roles, move |role| match role {
            0 => it.forget(0),
            _ => Some(u64::from(it.admits(0))),
        });
        let (forgotten, admitted) = (done[0].expect("it was there"), done[1..].iter().flatten().sum::<u64>());
        assert_eq!(forgotten + shared.owes(0), 1 + admitted, "{forgotten} forgotten, {admitted} admitted");
        shared.assert_places();
    });
}

#[test]
fn one_check_against_forget() {
    check_against_forget::<2>("one check against forget", HANDFUL);
}

#[test]
#[ignore = "minutes"]
fn two_checks_against_forget() {
    check_against_forget::<3>("two checks against forget", EXECUTIONS_LEAST);
}

/// A key is forgotten while it begins: its entry may be pending.
#[test]
fn a_new_key_against_forget() {
    // 196: an entry is seldom there to be forgotten.
    explore_rotated("a new key against forget", 150, |roles: [usize; 2]| {
        let shared = shared(bucket(), 2);
        let it = shared.clone();
        let [admitted, forgotten] = in_threads(roles, move |role| match role {
            0 => Some(u64::from(it.admits(0))),
            _ => it.forget(0),
        });
        assert_eq!(admitted, Some(1), "there is room, and a limit of two");
        assert_eq!(forgotten.unwrap_or(0) + shared.owes(0), 1, "{forgotten:?} forgotten");
        shared.assert_places();
    });
}

/// Two forget one key: one of them is told what it owed.
#[test]
fn two_forget_one_key() {
    // 172: an exchange each, and a removal.
    explore_alike("two forget one key", 100, |roles: [usize; 2]| {
        let shared = shared(bucket(), 1);
        assert!(shared.admits(0));
        let it = shared.clone();
        let mut told = in_threads(roles, move |_| it.forget(0));
        told.sort();
        assert_eq!(told, [None, Some(1)]);
        assert!(shared.table.map().word(0).is_none(), "an entry is left");
        shared.assert_places();
    });
}

/// A table of one place, whose key 0 is idle. It is forgotten while key 1 would evict it: either takes it out, and
/// its place goes to key 1 or is free.
#[test]
fn forget_against_evict() {
    explore_rotated("forget against evict", HANDFUL, |roles: [usize; 2]| {
        let shared = shared(bucket(), 1);
        assert!(shared.admits(0));
        shared.clock.advance(seconds(10));
        let it = shared.clone();
        let [forgotten, admitted] = in_threads(roles, move |role| match role {
            0 => it.forget(0),
            _ => it.admits(1).then_some(1),
        });
        assert!(shared.table.map().word(0).is_none(), "an entry is left");
        assert_eq!(shared.owes(1), admitted.unwrap_or(0));
        // Key 1 goes without a place only while the one who forgets has it in hand.
        assert!(matches!(forgotten, None | Some(0)), "{forgotten:?} was owed");
        shared.assert_places();
    });
}

/// Key 0 owes one token, and who owes one is forgotten while it is checked: it goes as it was judged, or stays with all
/// that it was charged.
fn check_against_retain<const THREADS: usize>(name: &str, executions_least: u64) {
    explore_rotated(name, executions_least, |roles: [usize; THREADS]| {
        let shared = shared(bucket(), 2);
        assert!(shared.admits(0));
        let it = shared.clone();
        let done = in_threads(roles, move |role| match role {
            0 => it.forget_who_owes(1) as u64,
            _ => u64::from(it.admits(0)),
        });
        let (forgotten, admitted) = (done[0], done[1..].iter().sum::<u64>());
        assert_eq!(forgotten + shared.owes(0), 1 + admitted, "{forgotten} forgotten, {admitted} admitted");
        shared.assert_places();
    });
}

#[test]
fn one_check_against_retain() {
    check_against_retain::<2>("one check against retain", HANDFUL);
}

#[test]
#[ignore = "minutes"]
fn two_checks_against_retain() {
    check_against_retain::<3>("two checks against retain", EXECUTIONS_LEAST);
}
