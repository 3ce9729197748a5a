//! Threads that check, remove, retain and iterate at once, on the real map.
//!
//! Time is moved by hand, so every bound is exact and holds however slow the machine is.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;

use common::{Dice, SEED, at_once, secs};
use tidegate::{ExactLimiter, Limit, Manual, Rate, Reason, Standing};

const THREADS: usize = 4;
const BURST: u64 = 3;
/// Keys that come and go.
const KEYS: usize = 6;

thread_local! {
    static TURN: Cell<u32> = const { Cell::new(0) };
}

/// A point at which another thread gets its turn now and then.
fn maybe_yield() {
    let turn = TURN.get().wrapping_add(1);
    TURN.set(turn);
    if turn.is_multiple_of(13) {
        thread::yield_now();
    }
}

/// Keys alive, in and out of limiters. One test has keys of this kind.
static ALIVE: AtomicI64 = AtomicI64::new(0);

/// A key that counts itself, and whose owner may stop while it hashes, compares or clones it. Each clone has a serial
/// number of its own, which tells the entries of one key apart.
#[derive(Debug)]
struct Counted(usize, u64);

impl Counted {
    fn new(number: usize) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Self(number, MADE.fetch_add(1, Ordering::Relaxed))
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        maybe_yield();
        Self::new(self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        maybe_yield();
        state.write_usize(self.0);
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        maybe_yield();
        self.0 == other.0
    }
}

impl Eq for Counted {}

/// What happened to a key: requests admitted, removals, and what the removed owed.
#[derive(Default)]
struct Tally {
    admitted: AtomicU64,
    removals: AtomicU64,
    forgotten: AtomicU64,
}

fn add(count: &AtomicU64, number: u64) {
    count.fetch_add(number, Ordering::Relaxed);
}

fn used(stands: &Standing) -> u64 {
    stands.limit() - stands.remaining()
}

impl Tally {
    fn removed(&self, used: u64) {
        add(&self.removals, 1);
        add(&self.forgotten, used);
    }
}

/// Removes one entry of a key by judging all; the residents are judged once each.
fn retain_all_but(limiter: &ExactLimiter<Counted, Manual>, number: usize, tally: &Tally) {
    let (mut turned_down, mut judged, mut residents) = (None, 0, 0);
    let removed = limiter.retain(|key, stands| {
        residents += usize::from(key.0 >= KEYS);
        // A key that is removed and comes back meanwhile may be met twice; the second time it stays.
        let keeps = key.0 != number || *turned_down.get_or_insert(key.1) != key.1;
        judged = if keeps { judged } else { used(&stands) };
        keeps
    });
    assert_eq!(residents, 2);
    assert!(removed <= 1, "{removed} keys went");
    if removed == 1 {
        tally.removed(judged);
    }
}

/// On frozen time nothing comes back, so each token is accounted for: a key was admitted what those who removed it were
/// told, and what it owes now. Two residents are in each walk. All places, and the memory of all keys, come back.
#[test]
fn every_token_is_told_to_who_removes_its_key() {
    const PLACES: usize = KEYS + 2;
    let builder = ExactLimiter::<Counted>::builder(Limit::bucket(Rate::per_hour(1), BURST)).seed(SEED);
    let limiter = builder.max_keys(PLACES).clock(Manual::new()).build().unwrap();
    let tallies: [Tally; KEYS] = std::array::from_fn(|_| Tally::default());
    for resident in KEYS..PLACES {
        assert!(limiter.allow(&Counted::new(resident)));
    }
    at_once(THREADS, |number| {
        let keys: Vec<Counted> = (0..KEYS).map(Counted::new).collect();
        let mut dice = Dice::new(SEED ^ number as u64);
        for _ in 0..60_000 {
            let at = usize::try_from(dice.roll(KEYS as u64)).unwrap();
            let (key, tally) = (&keys[at], &tallies[at]);
            match dice.roll(16) {
                0 | 1 => {
                    if let Some(stood) = limiter.remove(key) {
                        tally.removed(used(&stood));
                    }
                }
                2 => retain_all_but(&limiter, at, tally),
                3 => {
                    let told: Vec<usize> = limiter.iter().map(|(key, _)| key.0).collect();
                    let residents = told.iter().filter(|&&number| number >= KEYS).count();
                    assert_eq!(residents, 2, "{told:?}");
                }
                _ => add(&tally.admitted, u64::from(limiter.allow(key))),
            }
        }
    });
    for (number, Tally { admitted, removals, forgotten }) in tallies.into_iter().enumerate() {
        let (admitted, removals) = (admitted.into_inner(), removals.into_inner());
        let owes = used(&limiter.peek(&Counted::new(number)));
        assert_eq!(admitted, forgotten.into_inner() + owes, "key {number}, removed {removals} times");
        assert!(admitted <= BURST * (removals + 1), "key {number}: {admitted}, removed {removals} times");
        assert!(removals > 1_000, "key {number} was removed {removals} times");
    }
    assert_places_are_back(&limiter, PLACES);
    drop(limiter);
    assert_eq!(ALIVE.load(Ordering::Relaxed), 0, "keys are left");
}

/// One key that is charged all the time and removed all the time, so that a charge falls between any two steps of a
/// removal: none is lost, and none counts twice.
#[test]
fn no_charge_is_lost_between_two_steps_of_a_removal() {
    const REMOVALS: u64 = 40_000;
    let builder = ExactLimiter::<u64>::builder(Limit::bucket(Rate::per_hour(1), 1 << 32)).seed(SEED);
    let limiter = builder.max_keys(1).clock(Manual::new()).build().unwrap();
    let tally = Tally::default();
    let is_done = || tally.removals.load(Ordering::Relaxed) >= REMOVALS;
    at_once(THREADS, |number| {
        while number > 0 && !is_done() {
            add(&tally.admitted, (0..64).filter(|_| limiter.allow(&7)).count() as u64);
            thread::yield_now();
        }
        while number == 0 && !is_done() {
            match limiter.remove(&7) {
                Some(stood) => tally.removed(used(&stood)),
                // It comes back when another thread has its turn.
                None => thread::yield_now(),
            }
            let mut judged = 0;
            let removed = limiter.retain(|_, stands| {
                judged = used(&stands);
                false
            });
            if removed == 1 {
                tally.removed(judged);
            }
        }
    });
    let Tally { admitted, removals, forgotten } = tally;
    let (admitted, removals) = (admitted.into_inner(), removals.into_inner());
    assert_eq!(admitted, forgotten.into_inner() + used(&limiter.peek(&7)), "removed {removals} times");
}

/// An emptied limiter has room for as many as it was built for, and for no more.
fn assert_places_are_back(limiter: &ExactLimiter<Counted, Manual>, places: usize) {
    limiter.retain(|_, _| false);
    assert!(limiter.is_empty());
    let fresh = |number: usize| limiter.check(&Counted::new(1_000 + number));
    for number in 0..places {
        assert!(fresh(number).is_ok(), "{number} of {places} places");
    }
    assert_eq!(fresh(places).unwrap_err().reason(), Reason::Full);
    assert_eq!(limiter.iter().count(), places);
}

/// More keys than places, and time moves: keys are evicted and removed by turns. A removal is worth a burst, an
/// eviction nothing.
#[test]
fn removals_beside_evictions_are_worth_a_burst_each() {
    const PLACES: usize = 3;
    let clock = Manual::new();
    let limiter = ExactLimiter::<usize>::builder(Limit::bucket(Rate::per_second(1), BURST))
        .max_keys(PLACES)
        .seed(SEED)
        .clock(clock.clone())
        .build()
        .unwrap();
    let tallies: [Tally; KEYS] = std::array::from_fn(|_| Tally::default());
    at_once(THREADS, |number| {
        let mut dice = Dice::new(SEED ^ (number as u64) << 8);
        for turn in 0..100_000 {
            if number == 0 && turn % 200 == 199 {
                clock.advance(secs(1));
            }
            let key = usize::try_from(dice.roll(KEYS as u64)).unwrap();
            let tally = &tallies[key];
            match dice.roll(64) {
                0 => {
                    if limiter.remove(&key).is_some() {
                        tally.removed(0);
                    }
                }
                1 if limiter.retain(|found, _| *found != key) > 0 => tally.removed(0),
                2 => assert!(limiter.iter().all(|(key, stands)| key < KEYS && stands.remaining() <= BURST)),
                _ => add(&tally.admitted, u64::from(limiter.allow(&key))),
            }
            assert!(limiter.len() <= PLACES, "more than max_keys keys are held");
        }
    });
    for (key, Tally { admitted, removals, .. }) in tallies.into_iter().enumerate() {
        let (admitted, lives) = (admitted.into_inner(), removals.into_inner() + 1);
        let bound = clock.elapsed().as_secs() + lives * (BURST + THREADS as u64 - 1);
        assert!(admitted <= bound, "key {key}: {admitted} admitted, {bound} is the bound for {lives} lives");
        assert!(
            lives > 100 && admitted > clock.elapsed().as_secs() / 2,
            "key {key}: {admitted}, {lives} lives"
        );
    }
    limiter.retain(|_, _| false);
    assert_eq!((0..PLACES + 1).filter(|key| limiter.allow(&(100 + key))).count(), PLACES);
}
