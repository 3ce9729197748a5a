//! Threads that stop at any point of a check, on tables so small that keys come and go all the time, and clocks that
//! step back under them.
//!
//! A check reads the clock, and hashes, compares and clones its key: at each of these a thread may stop here, for as
//! long as others need to get past. All bounds are counted in the clock's own time, so they are exact and hold however
//! slow the machine is.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test fails by panicking")]

mod common;

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use common::{Dice, SEED, at_once};
use tidegate::{Alignment, Clock, ExactLimiter, Limit, Limiter, Manual, OnFull, Rate, Window};

const THREADS: usize = 6;
const SECOND: Duration = Duration::from_secs(1);

thread_local! {
    static DICE: RefCell<Dice> = const { RefCell::new(Dice::new(0)) };
}

/// Rolls this thread's dice.
fn roll(sides: u64) -> u64 {
    DICE.with_borrow_mut(|dice| dice.roll(sides))
}

/// Gives this thread dice of its own.
fn take_dice(number: usize, round: u64) {
    DICE.set(Dice::new(SEED ^ (round << 8) ^ number as u64));
}

/// A point at which a thread may stop.
fn maybe_stop() {
    match roll(64) {
        0 => thread::sleep(Duration::from_micros(roll(100))),
        1..16 => thread::yield_now(),
        _ => {}
    }
}

/// A key whose owner may stop while it hashes, compares or clones it.
#[derive(Debug, Eq)]
struct Key(u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        maybe_stop();
        state.write_u64(self.0);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        maybe_stop();
        self.0 == other.0
    }
}

impl Clone for Key {
    fn clone(&self) -> Self {
        maybe_stop();
        Self(self.0)
    }
}

/// A clock moved by hand, whose readers may stop before they have read it and before they use what they read.
#[derive(Clone, Debug)]
struct Stopping {
    inner: Manual,
    /// Each reading is up to this much early, as if every thread had a counter of its own.
    early: Duration,
}

impl Stopping {
    fn new() -> Self {
        Self { inner: Manual::new(), early: Duration::ZERO }
    }
}

impl Clock for Stopping {
    fn coarse(&self) -> u64 {
        maybe_stop();
        let early_ns = roll(self.early.as_nanos() as u64 + 1);
        let reading = self.inner.coarse() - early_ns;
        maybe_stop();
        reading
    }

    fn precise(&self) -> u64 {
        self.coarse()
    }

    fn lag_bound_ns(&self) -> Option<u64> {
        Some(0)
    }

    fn unix(&self) -> Duration {
        maybe_stop();
        self.inner.unix()
    }
}

/// Both limiters, as these tests see them.
trait Table: Sync {
    fn check_n(&self, key: u64, cost: u64) -> bool;
    fn remaining(&self, key: u64) -> u64;
    /// Limits that forced evictions forgave, all keys together.
    fn forgiven_limits(&self) -> f64;
    /// Keys that find room when nobody owes anything.
    fn room(&self) -> u64;
}

/// Places of the exact tables here, and slots of the slot tables: one window.
const PLACES: u64 = 4;
const SLOTS: u64 = 32;

impl Table for Limiter<Stopping> {
    fn check_n(&self, key: u64, cost: u64) -> bool {
        Self::check_n(self, &Key(key), cost).is_ok()
    }
    fn remaining(&self, key: u64) -> u64 {
        Self::check_n(self, &Key(key), 0).unwrap().remaining()
    }
    fn forgiven_limits(&self) -> f64 {
        self.stats().forgiven_limits
    }
    fn room(&self) -> u64 {
        SLOTS
    }
}

impl Table for ExactLimiter<Key, Stopping> {
    fn check_n(&self, key: u64, cost: u64) -> bool {
        Self::check_n(self, &Key(key), cost).is_ok()
    }
    fn remaining(&self, key: u64) -> u64 {
        Self::check_n(self, &Key(key), 0).unwrap().remaining()
    }
    fn forgiven_limits(&self) -> f64 {
        0.0
    }
    fn room(&self) -> u64 {
        PLACES
    }
}

fn slots(limit: Limit, on_full: OnFull, clock: &Stopping) -> Limiter<Stopping> {
    Limiter::builder(limit).max_keys(1).on_full(on_full).seed(SEED).clock(clock.clone()).build().unwrap()
}

fn exact(limit: Limit, clock: &Stopping) -> ExactLimiter<Key, Stopping> {
    let builder = ExactLimiter::builder(limit).max_keys(PLACES as usize);
    builder.seed(SEED).clock(clock.clone()).build().unwrap()
}

/// What keys were admitted, by key.
struct Admitted(Vec<AtomicU64>);

impl Admitted {
    fn of(keys: u64) -> Self {
        Self((0..keys).map(|_| AtomicU64::new(0)).collect())
    }

    fn keys(&self) -> u64 {
        self.0.len() as u64
    }

    /// A check of any key, of a cost up to `cost_max`.
    fn check(&self, table: &impl Table, cost_max: u64) {
        let (key, cost) = (roll(self.keys()), 1 + roll(cost_max));
        if table.check_n(key, cost) {
            self.0[key as usize].fetch_add(cost, Ordering::Relaxed);
        }
    }

    fn sum(&self) -> u64 {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// What keys were admitted above `most`, all together: no more than forced evictions forgave.
    fn over(&self, most: u64) -> u64 {
        self.0.iter().map(|count| count.load(Ordering::Relaxed).saturating_sub(most)).sum()
    }
}

/// No slot and no place was lost: once nobody owes anything, as many newcomers as there is room for get their burst.
fn assert_all_room_is_left(table: &impl Table, clock: &Stopping, burst: u64, context: &str) {
    clock.inner.advance(1_000 * SECOND);
    for key in 0..table.room() {
        assert!(table.check_n(key + (1 << 32), burst), "{context}: no room for newcomer {key}");
    }
}

/// Epochs that begin with every key idle. In each all threads ask at one instant, one of them moves time to where all
/// keys are idle again, and they go on: a key gets `most` at that, and nobody's stop may make it more.
fn an_epoch_admits(
    table: &impl Table,
    clock: &Stopping,
    keys: u64,
    jump: Duration,
    most: u64,
    context: &str,
) {
    const EPOCHS: u64 = 40;
    const CHECKS: u64 = 120;
    let (mut admitted_sum, mut forgiven_before) = (0, 0.0);
    for epoch in 1..=EPOCHS {
        clock.inner.set(Duration::from_secs(160 * epoch));
        let admitted = Admitted::of(keys);
        at_once(THREADS, |number| {
            take_dice(number, epoch);
            for turn in 0..CHECKS * keys / 20 {
                if number == 0 && turn == CHECKS * keys / 40 {
                    clock.inner.advance(jump);
                }
                admitted.check(table, 1);
            }
        });
        let forgiven = (table.forgiven_limits() - forgiven_before) * BURST as f64;
        let over = admitted.over(most);
        assert!(
            over as f64 <= forgiven,
            "{context}, epoch {epoch}: {over} above {most}, {forgiven} forgiven"
        );
        forgiven_before = table.forgiven_limits();
        admitted_sum += admitted.sum();
    }
    println!("{context}: {admitted_sum} admitted, {forgiven_before} limits forgiven");
    assert!(admitted_sum >= EPOCHS * table.room() * BURST / 2, "{context}: {admitted_sum}");
    assert_all_room_is_left(table, clock, BURST, context);
    assert!(!table.check_n(1 << 40, 1), "{context}: room for one more");
}

/// The limit of every key here.
const BURST: u64 = 4;

/// Limits, the time after which a key that is drained is idle, and what a key gets before and after.
fn limits_of_four() -> Vec<(Limit, Duration, u64)> {
    let window = Window::new(BURST, SECOND);
    let mut limits = vec![(
        Limit::bucket(Rate::per_second(1), BURST),
        Duration::from_secs(BURST) + Duration::from_nanos(1),
        2 * BURST,
    )];
    for align in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        limits.push((Limit::window(window).align(align), SECOND, 2 * BURST));
    }
    // One sustain window, two bursts in it.
    let nested = Limit::burst_sustain(window, Window::new(6, 8 * SECOND)).count_refused(false);
    limits.push((nested.align(Alignment::Clock), SECOND, 6));
    limits.push((nested.align(Alignment::FirstRequest), SECOND, 6));
    limits
}

/// Class: what was judged or read before a stop is believed after it, though the slot is another key's by then.
#[test]
fn threads_that_stop_anywhere_get_no_more_from_slots() {
    for (limit, jump, most) in limits_of_four() {
        let clock = Stopping::new();
        let table = slots(limit, OnFull::Refuse, &clock);
        an_epoch_admits(&table, &clock, SLOTS + 8, jump, most, &format!("{limit:?}"));
    }
}

/// Class: the same of an entry that has left the map, or of a place that is another key's.
#[test]
fn threads_that_stop_anywhere_get_no_more_from_an_exact_table() {
    for (limit, jump, most) in limits_of_four() {
        let clock = Stopping::new();
        let table = exact(limit, &clock);
        an_epoch_admits(&table, &clock, PLACES + 2, jump, most, &format!("{limit:?}"));
    }
}

/// Class: what a key owes is lost with its slot, or by a thread that stops between taking the slot over and counting
/// what that forgave. All that was admitted is owed by somebody, or was forgiven and counted, or is time's.
#[test]
fn evictions_by_threads_that_stop_anywhere_are_counted_to_the_token() {
    const BURST_LARGE: u64 = 8;
    for on_full in [OnFull::EvictLeast, OnFull::Inherit, OnFull::Refuse] {
        for round in 0..40 {
            let clock = Stopping::new();
            let table = slots(Limit::bucket(Rate::per_second(1), BURST_LARGE), on_full, &clock);
            let admitted = Admitted::of(2 * SLOTS);
            // Time stands still in every other round.
            let refilled = round % 2 * 2;
            at_once(THREADS, |number| {
                take_dice(number, round);
                for turn in 0..150 {
                    if number == 0 && turn == 75 {
                        clock.inner.advance(Duration::from_secs(refilled));
                    }
                    admitted.check(&table, 3);
                }
            });
            let owed: u64 = (0..admitted.keys()).map(|key| BURST_LARGE - table.remaining(key)).sum();
            let forgiven = table.forgiven_limits() * BURST_LARGE as f64;
            assert_eq!(forgiven > 0.0, on_full == OnFull::EvictLeast, "{on_full:?}");
            let due = owed + forgiven as u64 + SLOTS * refilled;
            let sum = admitted.sum();
            assert!(
                sum <= due,
                "{on_full:?}, round {round}: {sum} admitted, {owed} owed, {forgiven} forgiven, {refilled} s"
            );
        }
    }
}

/// How far time goes on while a clock steps back, and how far it steps at most.
const SPAN: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_secs(2);

/// A limit, and what a key gets between the earliest reading and the latest, `SPAN` and a `STEP` apart at most; `None`
/// where the limiter's time follows a wall that steps as well, and is not to be told from outside.
fn limits_of_five() -> Vec<(Limit, Option<u64>)> {
    let window = Window::new(5, SECOND);
    let seconds = (SPAN + STEP).as_secs();
    // The first window may have begun before, and one that opens at a request may be short by a 64th.
    let (tiled, lazy) = (seconds + 1, (64 * seconds).div_ceil(63) + 1);
    let nested = Limit::burst_sustain(window, Window::new(12, 4 * SECOND)).count_refused(false);
    vec![
        (Limit::bucket(Rate::per_second(2), 5), Some(5 + 2 * seconds)),
        (Limit::window(window).align(Alignment::Clock), None),
        (Limit::window(window).align(Alignment::PerKey), Some(5 * tiled)),
        (Limit::window(window).align(Alignment::FirstRequest), Some(5 * lazy)),
        (nested.align(Alignment::PerKey), Some(12 * (seconds / 4 + 1))),
        (nested.align(Alignment::Clock), None),
    ]
}

/// Threads ask while time goes on and steps back again and again: for everybody, or in each reading by itself.
fn a_clock_that_steps_back_admits<T: Table>(name: &str, keys: u64, table: impl Fn(Limit, &Stopping) -> T) {
    const TURNS: u64 = 2_000;
    for (number, (limit, most)) in limits_of_five().into_iter().enumerate() {
        let is_bucket = number == 0;
        for is_for_all in [true, false] {
            let mut clock = Stopping::new();
            clock.early = if is_for_all { Duration::ZERO } else { STEP };
            clock.inner.set(100 * SECOND);
            let table = table(limit, &clock);
            let admitted = Admitted::of(keys);
            at_once(THREADS, |number| {
                take_dice(number, 0);
                for turn in 0..TURNS {
                    if number == 0 {
                        let on = SPAN * turn as u32 / TURNS as u32;
                        let back =
                            if is_for_all { STEP * roll(1_000) as u32 / 1_000 } else { Duration::ZERO };
                        clock.inner.set(100 * SECOND + on - back);
                    }
                    admitted.check(&table, 2);
                }
            });
            let context = format!("{name}, {limit:?}, for all: {is_for_all}");
            let forgiven = table.forgiven_limits() * 5.0;
            if let Some(most) = most {
                let over = admitted.over(most);
                assert!(over as f64 <= forgiven, "{context}: {over} above {most}, {forgiven} forgiven");
            }
            // What a slot or place admits to one bucket after the other is what it would admit to one.
            if let Some(most) = most.filter(|_| is_bucket) {
                let (sum, due) = (admitted.sum(), table.room() * most);
                assert!(
                    sum as f64 <= due as f64 + forgiven,
                    "{context}: {sum}, {due} due, {forgiven} forgiven"
                );
            }
            assert_all_room_is_left(&table, &clock, 5, &context);
        }
    }
}

/// Class: a step back makes the elapsed time negative; or a key that is evicted by a late reading begins anew by an
/// early one.
#[test]
fn a_clock_that_steps_back_under_threads_mints_nothing_in_slots() {
    a_clock_that_steps_back_admits("Refuse", SLOTS + 8, |limit, clock| slots(limit, OnFull::Refuse, clock));
}

#[test]
fn a_clock_that_steps_back_under_threads_mints_nothing_where_keys_are_forced_out() {
    let table = |limit, clock: &Stopping| slots(limit, OnFull::EvictLeast, clock);
    a_clock_that_steps_back_admits("EvictLeast", SLOTS + 8, table);
}

#[test]
fn a_clock_that_steps_back_under_threads_mints_nothing_in_an_exact_table() {
    a_clock_that_steps_back_admits("exact", PLACES + 2, exact);
}
