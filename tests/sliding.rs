//! The sliding window: every answer is the twin's, its bound holds and is reached, and its error against an exact log is
//! what the docs say.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may stop at the first surprise, and its numbers are small"
)]

mod common;

use std::collections::VecDeque;
use std::time::Duration;

use common::steps::{KEYS, any_start_ns, any_steps, config, play};
use common::twin::{Bucket, Sliding};
use common::{Dice, assert_same, at_once, manual, manual_at_unix, nanos, secs};
use proptest::prelude::*;
use tidegate::{
    Alignment, Clock, Denied, ExactLimiter, Limit, Limiter, Manual, Pass, Precise, Ticking, Window,
};

const SECOND_NS: u64 = 1_000_000_000;

const PERIOD_NS: u64 = 10 * SECOND_NS;

fn sliding(limit: u64, period_ns: u64) -> Limit {
    Limit::sliding_window(Window::new(limit, Duration::from_nanos(period_ns))).align(Alignment::Clock)
}

/// From 10 µs to over an hour.
fn any_period_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        10_000..20_000_u64,
        10_000..SECOND_NS,
        1..100 * SECOND_NS,
        (1..4_000_u64).prop_map(|seconds| seconds * SECOND_NS)
    ]
    .prop_map(|ns| ns.max(10_000))
}

/// Takes all that is left.
fn take_all(limiter: &ExactLimiter<u64, Manual>) -> u64 {
    let left = limiter.peek(&0).remaining();
    assert!(left == 0 || limiter.check_n(&0, left).is_ok(), "what is told to be left passes");
    left
}

/// What an exact log holds: the costs admitted later than one period before now.
fn held(log: &VecDeque<(u64, u64)>, now_ns: u64, period_ns: u64) -> u64 {
    log.iter().filter(|&&(at_ns, _)| at_ns + period_ns > now_ns).map(|&(_, cost)| cost).sum()
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn a_sliding_window_on_the_clock_is_the_twin(
        limit in 1..30_u64,
        period_ns in any_period_ns(),
        count_refused in any::<bool>(),
        unix_ns in prop_oneof![Just(0), 1..1_800_000_000 * SECOND_NS],
        start_ns in any_start_ns(),
        steps in any_steps(35),
    ) {
        let limiter_limit = sliding(limit, period_ns).count_refused(count_refused);
        let (limiter, clock) = manual_at_unix::<u64>(limiter_limit, Duration::from_nanos(unix_ns));
        let mut twin = Sliding::new(limit.into(), period_ns.into(), unix_ns.into(), count_refused);
        twin.saturate_at(limiter.peek(&0).windows()[0].observed_max.into());
        play(&clock, &steps, start_ns, period_ns, |now_ns, key, cost| {
            let expected = twin.check(key, now_ns, u128::from(cost));
            assert_same(&limiter.check_n(&key, cost), &expected, &(now_ns, key, cost));
            true
        });
    }

    /// Where each key's periods are shifted, by an amount that is no whole number of nanoseconds. The shadow counts what the
    /// limiter counts, so that each answer is compared by itself.
    #[test]
    fn a_sliding_window_shifted_by_key_is_the_twin_within_two_nanoseconds(
        limit in 1..30_u64,
        period_ns in any_period_ns(),
        count_refused in any::<bool>(),
        start_ns in any_start_ns(),
        steps in any_steps(35),
    ) {
        let asked = sliding(limit, period_ns).align(Alignment::PerKey).count_refused(count_refused);
        let (limiter, clock) = manual::<u64>(asked);
        let mut shadow = Sliding::new(limit.into(), period_ns.into(), 0, count_refused);
        shadow.saturate_at(limiter.peek(&0).windows()[0].observed_max.into());
        let wide_ns = u128::from(period_ns);
        let shift_ns = |key: u64| {
            // What a key counts in its first window is forgotten at the end of the next.
            2 * wide_ns - manual::<u64>(asked).0.check(&key).unwrap().reset_after().as_nanos()
        };
        let shifts_ns: Vec<u128> = (0..KEYS).map(shift_ns).collect();
        (0..KEYS).for_each(|key| shadow.shift_key(key, shifts_ns[key as usize]));
        play(&clock, &steps, start_ns, period_ns, |now_ns, key, cost| {
            // The last nanoseconds of a window may count as the next one's.
            if (now_ns + shifts_ns[key as usize]) % wide_ns + 2 >= wide_ns {
                return false;
            }
            is_within_two_ns(&limiter.check_n(&key, cost), &mut shadow, (now_ns, key, cost.into()), count_refused);
            true
        });
    }
}

/// Compares an answer with the shadow's at up to two nanoseconds before and after, and has the shadow count the request
/// if the limiter has.
fn is_within_two_ns(
    answer: &Result<Pass, Denied>,
    shadow: &mut Sliding,
    (now_ns, key, cost): (u128, u64, u128),
    count_refused: bool,
) {
    let (before_ns, after_ns) = (now_ns.saturating_sub(2), now_ns + 2);
    let context = (now_ns, key, cost);
    let limit = match answer {
        Ok(pass) => pass.limit(),
        Err(denied) => denied.limit(),
    };
    if cost > u128::from(limit) {
        assert!(answer.as_ref().is_err_and(|denied| denied.retry_after().is_none()));
        return;
    }
    match answer {
        Ok(_) => assert!(shadow.fits(key, after_ns, cost), "early: {context:?}"),
        Err(_) => assert!(now_ns < 2 || !shadow.fits(key, before_ns, cost), "late: {context:?}"),
    }
    if cost > 0 && (answer.is_ok() || count_refused) {
        shadow.charge(key, now_ns, cost);
    }
    let windows = match answer {
        Ok(pass) => pass.windows(),
        Err(denied) => denied.windows(),
    };
    let window = windows[0];
    let used = shadow.used(key, after_ns)..=shadow.used(key, before_ns);
    assert!(used.contains(&u128::from(window.observed)), "{window:?}, {used:?}, {context:?}");
    assert_eq!(window.remaining, window.limit.saturating_sub(window.observed), "{context:?}");
    assert_eq!(window.refuses, answer.is_err(), "{context:?}");
    // When so much is used, and when nothing: at the first of times that is no earlier than now.
    let is_first = |wait: Duration, target: u64, what: &str| {
        let at_ns = now_ns + wait.as_nanos();
        let target = u128::from(target);
        assert!(shadow.used(key, at_ns + 2) <= target, "{what} too early: {context:?}");
        let is_too_late = wait.as_nanos() > 2 && shadow.used(key, at_ns - 2) <= target;
        assert!(!is_too_late, "{what} too late: {context:?}");
    };
    if window.observed > 0 {
        is_first(window.next_after, window.observed - 1, "next");
        is_first(window.reset_after, 0, "reset");
    }
    if let Err(denied) = answer {
        is_first(denied.retry_after().unwrap(), window.limit - cost as u64, "retry");
    }
}

/// Ten in 10 s, by hand.
#[test]
fn what_was_used_comes_back_as_its_window_is_left_behind() {
    let limit = Limit::sliding_window(Window::new(10, secs(10))).align(Alignment::Clock);
    let (limiter, clock) = manual::<u64>(limit);
    clock.set(secs(8));
    assert!(limiter.check_n(&0, 10).is_ok());
    let denied = limiter.check(&0).unwrap_err();
    // All 10 weigh until 10 s, and 9 from 11 s on.
    assert_eq!((denied.retry_after(), denied.observed()), (Some(secs(3)), 10));
    assert_eq!(
        denied.to_string(),
        "the sliding limit of 10 has no room for a cost of 1 (10 used); retry after 3s"
    );
    clock.set(secs(11));
    let pass = limiter.check(&0).unwrap();
    assert_eq!((pass.remaining(), pass.next_after(), pass.reset_after()), (0, secs(1), secs(19)));
    clock.set(secs(15));
    assert_eq!(limiter.peek(&0).remaining(), 4, "10 · 5/10 and 1 of 10");
    let denied = limiter.check_n(&0, 5).unwrap_err();
    assert_eq!((denied.retry_after(), denied.remaining()), (Some(secs(1)), 4));
    assert_eq!(limiter.peek(&0).retry_after(10), Some(secs(15)), "when the one is forgotten, at 30 s");
    assert_eq!(limiter.peek(&0).retry_after(9), Some(secs(5)));
    assert_eq!(limiter.peek(&0).retry_after(11), None);
}

/// Who asks on and on is refused, and admitted again as soon as anybody; unless refused requests count.
#[test]
fn who_hammers_is_locked_out_only_if_refused_requests_count() {
    let limit = Limit::sliding_window(Window::new(2, secs(10))).align(Alignment::Clock);
    assert_eq!(limit, limit.count_refused(false));
    let admitted_at = |limit: Limit| -> Vec<u64> {
        let (limiter, clock) = manual::<u64>(limit);
        let admits = |second: &u64| {
            clock.set(secs(*second));
            limiter.allow(&0)
        };
        (0..60).filter(admits).collect()
    };
    // At 15 s the two of before weigh 1. From 20 s on the one of 15 s weighs 1, rounded up, all through the next window.
    assert_eq!(admitted_at(limit), [0, 1, 15, 20, 30, 40, 50]);
    assert_eq!(admitted_at(limit.count_refused(true)), [0, 1]);
}

/// The counts of a sliding window of 35 ns have four bits. Refused requests that no longer fit weigh nothing later: a key
/// is then admitted earlier than if they had been counted, and no earlier than its bound allows.
#[test]
fn a_saturated_count_weighs_what_it_holds() {
    let (limiter, clock) = manual::<u64>(sliding(11, 35).count_refused(true));
    let mut twin = Sliding::new(11, 35, 0, true);
    twin.saturate_at(15);
    for at_ns in [0; 21].into_iter().chain(30..150) {
        clock.set(Duration::from_nanos(at_ns));
        // Eleven pass and ten do not, in the first nanosecond; a look at every one of the next.
        let cost = u64::from(at_ns == 0);
        let answer = limiter.check_n(&0, cost);
        assert_same(&answer, &twin.check(0, at_ns.into(), cost.into()), &at_ns);
    }
    clock.set(Duration::ZERO);
    assert_eq!(limiter.peek(&0).windows()[0].observed, 15, "and not 21");
    // 15 · 23/35 are 10 rounded up, 12 ns into the next window; 15 · 24/35 are 11.
    assert_eq!(limiter.peek(&0).retry_after(1), Some(Duration::from_nanos(35 + 12)));
}

/// Whoever takes all that comes free gets the limit less one in each period, and of a limit of 1 one in two.
#[test]
fn a_greedy_key_gets_the_limit_less_one_in_a_period() {
    for (limit, in_hundred) in [(1, 50), (2, 100), (3, 200), (10, 900), (100, 9_900)] {
        let (limiter, clock) = manual::<u64>(sliding(limit, PERIOD_NS));
        let mut admitted = 0;
        while clock.elapsed() < nanos(u128::from(PERIOD_NS) * 110) {
            let left = take_all(&limiter);
            admitted += if clock.elapsed() < nanos(u128::from(PERIOD_NS) * 10) { 0 } else { left };
            clock.advance(limiter.peek(&0).next_after());
        }
        assert_eq!(admitted, in_hundred, "limit {limit}");
    }
}

/// The limit at the last nanosecond of a period, and all that comes free through the next: twice the limit less one is
/// had in a period, as the docs say, and the next token comes one nanosecond later than a period.
#[test]
fn twice_the_limit_less_one_is_reached_in_a_period_and_no_more() {
    for limit in [1, 2, 3, 10, 100] {
        let (limiter, clock) = manual::<u64>(sliding(limit, PERIOD_NS));
        let start_ns = PERIOD_NS - 1;
        clock.set(Duration::from_nanos(start_ns));
        let mut log = VecDeque::from([(start_ns, take_all(&limiter))]);
        while log.len() < 3 * limit as usize {
            clock.advance(limiter.peek(&0).next_after());
            log.push_back((clock.elapsed().as_nanos() as u64, take_all(&limiter)));
        }
        let within = |last_ns: u64| -> u64 {
            log.iter().filter(|&&(at_ns, _)| at_ns <= last_ns).map(|&(_, cost)| cost).sum()
        };
        assert_eq!(within(start_ns), limit);
        assert_eq!(within(start_ns + PERIOD_NS), 2 * limit - 1, "limit {limit}: {log:?}");
        assert_eq!(within(start_ns + PERIOD_NS + 1), 2 * limit, "limit {limit}: {log:?}");
    }
}

/// A move of somebody who wants more than is due.
#[derive(Clone, Copy, Debug)]
enum Grab {
    /// To so many nanoseconds from the end of this period, before or after.
    Edge(i8),
    /// So many 64ths of a period on.
    Wait(u8),
    /// Until something is due.
    Due,
    /// A step back of so many 64ths.
    Back(u8),
    Ask(u64),
    All,
}

fn grabs() -> impl Strategy<Value = Vec<Grab>> {
    let grab = prop_oneof![
        2 => (-2..=1_i8).prop_map(Grab::Edge),
        2 => (0..100_u8).prop_map(Grab::Wait),
        3 => Just(Grab::Due),
        1 => (0..130_u8).prop_map(Grab::Back),
        2 => (1..60_u64).prop_map(Grab::Ask),
        4 => Just(Grab::All),
    ];
    prop::collection::vec(grab, 1..200)
}

/// Plays on one key; returns when how much was admitted.
fn grab(limit: u64, count_refused: bool, moves: &[Grab], may_step_back: bool) -> VecDeque<(u64, u64)> {
    let (limiter, clock) = manual::<u64>(sliding(limit, PERIOD_NS).count_refused(count_refused));
    let mut log = VecDeque::new();
    for &step in moves {
        let now_ns = clock.elapsed().as_nanos() as u64;
        let cost = match step {
            Grab::Edge(off) => {
                let edge_ns = (now_ns / PERIOD_NS + 1) * PERIOD_NS;
                clock.set(Duration::from_nanos(edge_ns.saturating_add_signed(off.into()).max(now_ns)));
                0
            }
            Grab::Wait(parts) => {
                clock.advance(Duration::from_nanos(PERIOD_NS / 64 * u64::from(parts)));
                0
            }
            Grab::Due => {
                clock.advance(limiter.peek(&0).next_after());
                0
            }
            Grab::Back(parts) if may_step_back => {
                clock.set(Duration::from_nanos(now_ns.saturating_sub(PERIOD_NS / 64 * u64::from(parts))));
                0
            }
            Grab::Back(_) => 0,
            Grab::Ask(cost) => cost,
            Grab::All => limiter.peek(&0).remaining(),
        };
        if cost > 0 && limiter.check_n(&0, cost).is_ok() {
            log.push_back((clock.elapsed().as_nanos() as u64, cost));
        }
    }
    log
}

proptest! {
    #![proptest_config(config(2_000))]

    /// The bound of the docs over every interval, from its earliest time to its latest if the clock steps back.
    #[test]
    fn in_any_interval_it_admits_no_more_than_its_bound(
        limit in 1..60_u64, count_refused in any::<bool>(), moves in grabs(), may_step_back in any::<bool>(),
    ) {
        let log = grab(limit, count_refused, &moves, may_step_back);
        for from in 0..log.len() {
            let (mut admitted, mut earliest_ns, mut latest_ns) = (0, u64::MAX, 0);
            for &(at_ns, cost) in log.range(from..) {
                admitted += cost;
                (earliest_ns, latest_ns) = (earliest_ns.min(at_ns), latest_ns.max(at_ns));
                let length_ns = latest_ns - earliest_ns;
                let most = limit + (u128::from(limit) * u128::from(length_ns) / u128::from(PERIOD_NS)) as u64;
                prop_assert!(admitted <= most, "{admitted} in {length_ns} ns: {log:?}");
                prop_assert!(length_ns > PERIOD_NS || admitted < 2 * limit, "{admitted} in a period: {log:?}");
            }
        }
    }

    /// A bucket of the limit that refills it in each period, charged with the same, would have admitted all of it.
    #[test]
    fn what_it_admits_a_bucket_would(limit in 1..60_u64, count_refused in any::<bool>(), moves in grabs()) {
        let log = grab(limit, count_refused, &moves, false);
        let mut bucket = Bucket::new(limit.into(), PERIOD_NS.into(), limit.into());
        for &(at_ns, cost) in &log {
            prop_assert!(bucket.fits(0, at_ns.into(), cost.into()), "{cost} at {at_ns}: {log:?}");
            bucket.charge(0, at_ns.into(), cost.into());
        }
    }

    /// After the same admissions: what the counter counts is off from what a log holds by the shares of `previous` that
    /// the docs name, at any moment.
    #[test]
    fn the_error_against_a_log_is_within_its_two_bounds(limit in 1..60_u64, moves in grabs(), later in 0..200_u64) {
        let log = grab(limit, false, &moves, false);
        let mut counter = Sliding::new(limit.into(), PERIOD_NS.into(), 0, false);
        let mut known = VecDeque::new();
        for &(at_ns, cost) in &log {
            error_is_within(&counter, &known, at_ns);
            counter.charge(0, at_ns.into(), cost.into());
            known.push_back((at_ns, cost));
            error_is_within(&counter, &known, at_ns);
            error_is_within(&counter, &known, at_ns + PERIOD_NS / 64 * later);
        }
    }

    /// Where the last period's requests came evenly, whatever their phase, the counter counts as many as the log or one more.
    #[test]
    fn after_evenly_spread_requests_it_is_exact_or_one_stricter(
        count in 1..100_u64, gap_ns in 1_000..100_000_000_u64, more in 0..20_u64, phase in any::<u64>(), elapsed in any::<u64>(),
        current in 0..5_u64,
    ) {
        let period_ns = count * gap_ns;
        let elapsed_ns = elapsed % period_ns;
        let (limiter, clock) = manual::<u64>(sliding(count + more, period_ns));
        let mut log = VecDeque::new();
        for number in 0..count {
            let at_ns = period_ns + phase % gap_ns + number * gap_ns;
            clock.set(Duration::from_nanos(at_ns));
            prop_assert!(limiter.allow(&0));
            log.push_back((at_ns, 1));
        }
        let now_ns = 2 * period_ns + elapsed_ns;
        clock.set(Duration::from_nanos(now_ns));
        for _ in 0..=current {
            let (used, held) = (limiter.peek(&0).windows()[0].observed, held(&log, now_ns, period_ns));
            prop_assert!(used == held || used == held + 1, "{used} used, {held} in the log");
            if limiter.allow(&0) {
                log.push_back((now_ns, 1));
            }
        }
    }
}

/// `previous · elapsed` below what the log holds at most, and `previous · left` above it, in parts of a period.
fn error_is_within(counter: &Sliding, log: &VecDeque<(u64, u64)>, now_ns: u64) {
    let period_ns = u128::from(PERIOD_NS);
    let (used, held) = (counter.used(0, now_ns.into()), u128::from(held(log, now_ns, PERIOD_NS)));
    let (previous, elapsed_ns) = counter.previous_and_elapsed_ns(0, now_ns.into());
    assert!(held <= used + previous * elapsed_ns / period_ns, "{used} used, {held} held: {log:?}");
    let above = (previous * (period_ns - elapsed_ns)).div_ceil(period_ns);
    assert!(used <= held + above, "{used} used, {held} held: {log:?}");
}

/// Threads on one key of a table, on the real clock: never above the bound, and a part of what is due at least.
#[test]
fn threads_on_the_real_clock_stay_within_the_bound() {
    fn load<C: Clock>(clock: C, limit: u64, period: Duration, leases: bool) {
        const THREADS: usize = 4;
        let window = Limit::sliding_window(Window::new(limit, period));
        let limiter = Limiter::builder(window).clock(clock).leases(leases).max_keys(100).build().unwrap();
        let clock = limiter.clock();
        let before = clock.precise();
        let admitted: u64 = at_once(THREADS, |_| {
            let end = std::time::Instant::now() + Duration::from_millis(200);
            let mut admitted = 0;
            while std::time::Instant::now() < end {
                admitted += (0..64).filter(|_| limiter.allow(&7)).count() as u64;
            }
            admitted
        })
        .into_iter()
        .sum();
        let elapsed_ns = u128::from(clock.precise() - before) + clock.lag_max().as_nanos();
        let due = u128::from(limit) * elapsed_ns / period.as_nanos();
        let most = u128::from(limit) + due + THREADS as u128;
        assert!(u128::from(admitted) <= most, "{admitted} admitted, {most} is the most");
        assert!(u128::from(admitted) >= u128::from(limit), "{admitted} admitted, {limit} are free at once");
    }
    for (limit, millis) in [(1, 5), (50, 20), (1_000, 50), (500, 10_000)] {
        for leases in [false, true] {
            load(Precise::new(), limit, Duration::from_millis(millis), leases);
            load(Ticking::new(), limit, Duration::from_millis(millis), leases);
        }
    }
}

/// While time stands still no thread gets a token more, and a cost above what is left takes nothing.
#[test]
fn threads_share_one_weighed_count() {
    let mut dice = Dice::new(common::SEED);
    for round in 0..100 {
        let limit = 1 + dice.roll(300);
        let clock = Manual::new();
        let builder = Limiter::builder(sliding(limit, PERIOD_NS)).seed(round).max_keys(10);
        let limiter = builder.clock(clock.clone()).build().unwrap();
        let spent = dice.roll(limit + 1);
        assert!(limiter.check_n(&0, spent).is_ok());
        clock.set(nanos(u128::from(PERIOD_NS + dice.roll(PERIOD_NS))));
        let left = limiter.peek(&0).remaining();
        let admitted = at_once(4, |_| (0..limit).filter(|_| limiter.allow(&0)).count() as u64);
        assert_eq!(admitted.iter().sum::<u64>(), left, "limit {limit}, {spent} spent");
    }
}
