//! One key that all threads hit: leases admit what is due, never more, and strand nothing.
//!
//! On the real clock an upper bound always holds. A lower one may meet a machine that gives the threads no time, and
//! is tried again.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{LEASE, at_once, limits, secs};
use proptest::prelude::*;
use tidegate::{Alignment, Clock, Limit, Limiter, Manual, Rate, Window};

const KEY: u64 = 7;
const ATTEMPTS: usize = 4;

fn leasing(limit: Limit) -> (Limiter<Manual>, Manual) {
    let clock = Manual::new();
    (Limiter::builder(limit).clock(clock.clone()).build().unwrap(), clock)
}

/// What a race came to, in tokens.
struct Race {
    admitted: u128,
    due: u128,
    bound: u128,
    leases: u64,
    lapsed: u64,
}

/// Hammers one key for `span`, at many times its rate; then takes what is left.
fn race(rate: u64, threads: usize, span: Duration) -> Race {
    // A tenth of a second's worth: what a busy machine may sleep through without losing any.
    let burst = rate / 10;
    let limiter = Limiter::builder(Limit::bucket(Rate::per_second(rate), burst)).build().unwrap();
    let clock = limiter.clock();
    let before = clock.precise();
    let loads = at_once(threads, |_| {
        let end = Instant::now() + span;
        let mut admitted = u64::from(limiter.allow(&KEY));
        let opened = clock.precise();
        while Instant::now() < end {
            admitted += (0..256).filter(|_| limiter.allow(&KEY)).count() as u64;
        }
        (admitted, opened)
    });
    let opened = loads.iter().map(|load| load.1).min().unwrap();
    let emptied = clock.precise();
    let rest = (0..).take_while(|_| limiter.allow(&KEY)).count() as u128;
    let elapsed_ns = u128::from(clock.precise() - before) + (clock.lag_max() + LEASE).as_nanos();
    let in_time = |ns: u128| u128::from(rate) * ns / 1_000_000_000;
    // Leases that are still open lapse, and are counted, when their threads look again: never. What ended before is.
    let stats = limiter.stats();
    Race {
        admitted: loads.iter().map(|load| u128::from(load.0)).sum::<u128>() + rest,
        due: u128::from(burst) + in_time(u128::from(emptied - opened)),
        bound: u128::from(burst) + in_time(elapsed_ns) + threads as u128,
        leases: stats.leases,
        lapsed: stats.lapsed,
    }
}

fn admits_what_is_due(rate: u64, threads: usize, span: Duration) -> bool {
    let Race { admitted, due, bound, leases, lapsed } = race(rate, threads, span);
    println!(
        "{rate}/s, {threads} threads: {admitted} admitted, {due} due, bound {bound}; {leases} leases, {lapsed} lapsed"
    );
    assert!(admitted <= bound, "{admitted} admitted, bound {bound}");
    admitted * 1_000 >= due * 995
}

fn race_all(rates: &[u64], span: Duration) {
    for threads in [1, 2, 8, 64] {
        for &rate in rates {
            let is_due = |_| admits_what_is_due(rate, threads, span);
            assert!((0..ATTEMPTS).any(is_due), "less than 99.5 % of what was due");
        }
    }
}

#[test]
fn nothing_is_stranded_on_the_real_clock() {
    race_all(&[100_000, 5_000_000], Duration::from_millis(400));
}

#[test]
#[ignore = "two minutes"]
fn nothing_is_stranded_in_ten_seconds() {
    race_all(&[100_000, 2_000_000, 5_000_000], secs(10));
}

/// Threads come and go, each with what is left of its lease: those that come later find nobody else's.
#[test]
fn threads_that_come_and_go_admit_no_more_than_the_limit() {
    const LIMIT: u64 = 60_000_000;
    const LIVES: u64 = 10_000;
    // The most that one thread may lease at once: 1/512 of the million that `warm` has it spend.
    const LEASE: u64 = (1 << 20) / 512;
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let window = Limit::window(Window::new(LIMIT, secs(3_600))).align(alignment).count_refused(false);
        let (limiter, _clock) = leasing(window);
        let lives = AtomicU64::new(LIVES);
        let next = || lives.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |lives| lives.checked_sub(1));
        at_once(4, |_| {
            while next().is_ok() {
                thread::scope(|scope| {
                    scope.spawn(|| {
                        limiter.warm(&KEY);
                        assert!((0..LEASE + 200).all(|_| limiter.allow(&KEY)));
                    });
                });
            }
        });
        let spent = LIVES * (LEASE + 200);
        let rest = (0..).take_while(|_| limiter.allow(&KEY)).count() as u64;
        assert!(spent + rest <= LIMIT, "{} admitted", spent + rest);
        assert!(spent + rest + LIVES * LEASE >= LIMIT, "{} admitted", spent + rest);
    }
}

/// Two limiters, and two keys of one: no thread spends the lease of another's.
#[test]
fn leases_are_of_one_limiter_and_one_key() {
    let limit = Limit::bucket(Rate::per_hour(1), 1_000);
    let ((one, _c), (two, _d)) = (leasing(limit), leasing(limit));
    let mut admitted = [0_u64; 3];
    // Keys of one shard push each other out of it, over and over.
    for _ in 0..2_000 {
        for (count, (limiter, key)) in admitted.iter_mut().zip([(&one, KEY), (&two, KEY), (&one, KEY + 1)]) {
            limiter.warm(&key);
            *count += u64::from(limiter.allow(&key)) + u64::from(limiter.allow(&key));
        }
    }
    assert!(admitted.iter().all(|&admitted| admitted <= 1_000), "{admitted:?}");
    drop(two);
    // A limiter where the other was has nothing of its.
    let (three, _e) = leasing(limit);
    assert_eq!((0..2_000).filter(|_| three.allow(&KEY)).count(), 1_000);
}

#[test]
fn the_switch_turns_leases_off() {
    for leases in [true, false] {
        let limit = Limit::bucket(Rate::per_hour(1), 100_000);
        let limiter = Limiter::builder(limit).leases(leases).clock(Manual::new()).build().unwrap();
        limiter.warm(&KEY);
        let remaining: Vec<u64> = (0..100).map(|_| limiter.check(&KEY).unwrap().remaining()).collect();
        let is_exact = remaining.iter().rev().eq(&(99_900..100_000).collect::<Vec<_>>());
        assert_eq!(is_exact, !leases, "{remaining:?}");
        // What is told is never more than there is, and less by a lease at most: a 512th of the million that `warm` counts as spent.
        assert!(remaining.iter().zip(1..).all(|(&told, spent)| told <= 100_000 - spent), "{remaining:?}");
        assert!(remaining.iter().zip(1..).all(|(&told, spent)| told + 2_048 >= 100_000 - spent));
    }
}

/// What another thread takes shows when the lease is over, a millisecond later at most.
#[test]
fn what_is_told_of_a_leased_key_is_a_millisecond_old_at_most() {
    const MILLISECOND: Duration = Duration::from_millis(1);
    let (limiter, clock) = leasing(Limit::bucket(Rate::per_hour(1), 100_000));
    limiter.warm(&KEY);
    let told = || {
        let pass = limiter.check(&KEY).unwrap();
        assert_eq!(pass.windows().iter().next().unwrap().remaining, pass.remaining());
        pass.remaining()
    };
    // A first check meets the word, and a second leases; what is told is all but that lease.
    let [_, before] = [told(), told()];
    thread::scope(|scope| _ = scope.spawn(|| assert!(limiter.check_n(&KEY, 50_000).is_ok())));
    let beside = told();
    assert!(before - beside <= 2_048, "it is not in it: {before}, {beside}");
    clock.advance(MILLISECOND);
    let after = told();
    assert!(after <= before + 2_048 - 50_000, "it is: {before}, {after}");
}

/// A thread leases, and the clock moves: within the millisecond the bucket's tokens are there, then they are not. A
/// window's are gone at once.
#[test]
fn a_lease_is_spent_within_a_millisecond() {
    let bucket = Limit::bucket(Rate::per_hour(1), 16_000);
    let window = Limit::window(Window::new(16_000, secs(3_600))).align(Alignment::Clock).count_refused(false);
    for (limit, later_ns, is_live) in
        [(bucket, 999_999, true), (bucket, 1_000_000, false), (window, 1, false)]
    {
        let (limiter, clock) = leasing(limit);
        assert!(limiter.allow(&KEY));
        limiter.warm(&KEY);
        assert!(limiter.allow(&KEY));
        // Another thread takes all that is left.
        let rest = thread::scope(|scope| {
            scope.spawn(|| (0..).take_while(|_| limiter.allow(&KEY)).count() as u64).join().unwrap()
        });
        assert!((14_000..15_998).contains(&rest), "{rest}");
        clock.advance(Duration::from_nanos(later_ns));
        let admitted = (0..20_000).filter(|_| limiter.allow(&KEY)).count() as u64;
        assert_eq!(admitted, if is_live { 15_998 - rest } else { 0 }, "{limit:?}, {later_ns} ns later");
    }
}

/// What happens next to a hot key.
#[derive(Clone, Copy, Debug)]
enum Step {
    Advance { ms: u64 },
    Ask { times: u16, cost: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ask = (1..400_u16, prop_oneof![4 => Just(1), 1 => 0..30_u64])
        .prop_map(|(times, cost)| Step::Ask { times, cost });
    let advance = prop_oneof![5 => 0..5_u64, 1 => 0..2_000_u64].prop_map(|ms| Step::Advance { ms });
    prop::collection::vec(prop_oneof![1 => advance, 3 => ask], 1..40)
}

/// Where refusals do not count, so that both limiters may be asked for different things.
fn uncounted() -> impl Strategy<Value = Limit> {
    limits(20_000).prop_map(|limit| limit.count_refused(false))
}

proptest! {
    /// Whatever passes with leases passes a limiter without them that is asked for nothing else: no bound is looser.
    #[test]
    fn leases_admit_no_more(limit in uncounted(), steps in steps()) {
        let clock = Manual::new();
        let build =
            |leases| Limiter::builder(limit).leases(leases).seed(1).clock(clock.clone()).build().unwrap();
        let (hot, twin) = (build(true), build(false));
        for step in steps {
            hot.warm(&KEY);
            match step {
                Step::Advance { ms } => clock.advance(Duration::from_millis(ms)),
                Step::Ask { times, cost } => {
                    for _ in 0..times {
                        let is_admitted = hot.check_n(&KEY, cost).is_ok();
                        prop_assert!(!is_admitted || twin.check_n(&KEY, cost).is_ok(), "{cost} above the limit");
                    }
                }
            }
        }
    }

    /// Whatever passes without leases passes with them, but for what has lapsed and the one lease that may be open.
    #[test]
    fn leases_refuse_only_what_has_lapsed(limit in uncounted(), steps in steps()) {
        let clock = Manual::new();
        let build =
            |leases| Limiter::builder(limit).leases(leases).seed(1).clock(clock.clone()).build().unwrap();
        let (hot, greedy) = (build(true), build(false));
        hot.warm(&KEY);
        let (mut admitted, mut due) = (0_u64, 0_u64);
        for step in steps {
            match step {
                Step::Advance { ms } => clock.advance(Duration::from_millis(ms)),
                Step::Ask { times, .. } => {
                    let count = |limiter: &Limiter<_>| (0..times).filter(|_| limiter.allow(&KEY)).count() as u64;
                    admitted += count(&hot);
                    due += count(&greedy);
                }
            }
            // A 16th of what is available; no limit here is above 20 000.
            let open = 20_000 / 16;
            prop_assert!(admitted + hot.stats().lapsed + open >= due, "{admitted} of {due}: {:?}", hot.stats());
        }
    }
}
