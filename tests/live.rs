//! Limits that are changed while requests are decided: `set_limit`.
#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "small numbers of a test, which fails by panicking"
)]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{SEED, at_once, secs};
use proptest::prelude::*;
use tidegate::{
    Alignment, CarryOver, Clock, ConfigError, ExactLimiter, Limit, Limiter, Manual, Rate, Reason,
    SingleLimiter, Window,
};

fn limiter(limit: Limit) -> (Limiter<Manual>, Manual) {
    let clock = Manual::new();
    (Limiter::builder(limit).max_keys(1_000).seed(SEED).clock(clock.clone()).build().unwrap(), clock)
}

fn per_second(rate: u64, burst: u64) -> Limit {
    Limit::bucket(Rate::per_second(rate), burst)
}

fn window(limit: u64) -> Limit {
    Limit::window(Window::new(limit, secs(60))).align(Alignment::Clock)
}

#[test]
fn what_was_used_stays_used() {
    let (limiter, clock) = limiter(per_second(10, 100));
    assert!(limiter.check_n("a", 60).is_ok());
    limiter.set_limit(per_second(1, 50), CarryOver::KeepUsed).unwrap();
    assert_eq!(limiter.limit(), per_second(1, 50));
    // 60 are used, 10 more than there are now.
    assert_eq!((limiter.peek("a").remaining(), limiter.peek("a").debt()), (0, 10));
    assert_eq!(limiter.check("a").unwrap_err().retry_after(), Some(secs(11)));
    assert_eq!(limiter.peek("b").remaining(), 50, "a new key has the new limit");
    clock.advance(secs(11));
    assert!(limiter.allow("a") && !limiter.allow("a"));
    limiter.set_limit(per_second(10, 100), CarryOver::KeepUsed).unwrap();
    assert_eq!(limiter.peek("a").remaining(), 50);
    assert!(limiter.check_n("a", 50).is_ok() && !limiter.allow("a"));
}

#[test]
fn a_share_stays_a_share_and_a_reset_forgives_all() {
    for (carry_over, remaining) in [(CarryOver::Proportional, 12), (CarryOver::Reset, 30)] {
        let (limiter, _) = limiter(per_second(10, 100));
        assert!(limiter.check_n("a", 60).is_ok());
        limiter.set_limit(per_second(7, 30), carry_over).unwrap();
        assert_eq!(limiter.peek("a").remaining(), remaining, "{carry_over:?}");
        assert!(limiter.check_n("a", remaining).is_ok() && !limiter.allow("a"));
    }
    for (carry_over, observed) in
        [(CarryOver::KeepUsed, 8), (CarryOver::Proportional, 4), (CarryOver::Reset, 0)]
    {
        let (limiter, clock) = limiter(window(10));
        assert!(limiter.check_n("a", 8).is_ok());
        limiter.set_limit(window(5), carry_over).unwrap();
        assert_eq!(limiter.peek("a").windows()[0].observed, observed, "{carry_over:?}");
        assert_eq!(limiter.peek("a").remaining(), 5_u64.saturating_sub(observed));
        clock.set(secs(60));
        assert_eq!(limiter.peek("a").remaining(), 5, "the window ended as ever");
    }
}

#[test]
fn a_sliding_window_keeps_both_of_its_counts() {
    let limit = |limit| Limit::sliding_window(Window::new(limit, secs(10))).align(Alignment::Clock);
    for (carry_over, remaining) in
        [(CarryOver::KeepUsed, 13), (CarryOver::Proportional, 6), (CarryOver::Reset, 20)]
    {
        let (limiter, clock) = limiter(limit(10));
        assert!(limiter.check_n("a", 6).is_ok());
        clock.set(secs(15));
        assert!(limiter.check_n("a", 4).is_ok());
        limiter.set_limit(limit(20), carry_over).unwrap();
        // Of the six before half weighs.
        assert_eq!(limiter.peek("a").remaining(), remaining, "{carry_over:?}");
    }
}

#[test]
fn the_three_limiters_change_alike() {
    let (slots, clock) = limiter(per_second(10, 100));
    let exact = ExactLimiter::<String>::builder(per_second(10, 100)).clock(clock.clone()).build().unwrap();
    let single = SingleLimiter::builder(per_second(10, 100)).clock(clock.clone()).build().unwrap();
    let remaining = || [slots.peek("a"), exact.peek("a"), single.peek()].map(|seen| seen.remaining());
    for (cost, limit, left) in
        [(60, per_second(3, 70), 10), (5, per_second(1, 500), 435), (435, per_second(9, 9), 0)]
    {
        assert!(
            slots.check_n("a", cost).is_ok()
                && exact.check_n("a", cost).is_ok()
                && single.check_n(cost).is_ok()
        );
        slots.set_limit(limit, CarryOver::KeepUsed).unwrap();
        exact.set_limit(limit, CarryOver::KeepUsed).unwrap();
        single.set_limit(limit, CarryOver::KeepUsed).unwrap();
        assert_eq!(remaining(), [left; 3]);
        assert_eq!((exact.limit(), single.limit()), (limit, limit));
    }
    assert_eq!(exact.check("a").unwrap_err().retry_after(), slots.check("a").unwrap_err().retry_after());
}

#[test]
fn what_does_not_follow_is_refused_and_changes_nothing() {
    let (limiter, _) = limiter(window(10));
    assert!(limiter.check_n("a", 4).is_ok());
    let refused = |limit: Limit| limiter.set_limit(limit, CarryOver::Reset).unwrap_err();
    let is_told =
        |limit, told: &str| assert!(refused(limit).to_string().starts_with(told), "{}", refused(limit));
    is_told(per_second(1, 1), "limit is a bucket; it must be a window, as");
    is_told(
        Limit::window(Window::new(10, secs(30))).align(Alignment::Clock),
        "window period is 30s; it must be 60s, as",
    );
    is_told(window(10).align(Alignment::PerKey), "alignment is PerKey; it must be Clock, as");
    assert_eq!(refused(window(0)), ConfigError::Zero { field: "window limit" });
    assert!(matches!(refused(window(u64::MAX)), ConfigError::TooWide { .. }));
    let both =
        |burst, sustain| Limit::burst_sustain(Window::new(2, secs(burst)), Window::new(9, secs(sustain)));
    is_told(both(1, 10), "limit is burst + sustain windows; it must be a window, as");
    assert_eq!((limiter.limit(), limiter.peek("a").remaining()), (window(10), 6));
    let limiter = Limiter::builder(both(1, 10)).clock(Manual::new()).build().unwrap();
    let refused = |limit: Limit| limiter.set_limit(limit, CarryOver::KeepUsed).unwrap_err();
    assert!(matches!(refused(both(2, 10)), ConfigError::PeriodChanged { field: "burst period", .. }));
    assert!(matches!(refused(both(1, 20)), ConfigError::PeriodChanged { field: "sustain period", .. }));
}

#[test]
fn receipts_of_another_limit_are_void() {
    let (limiter, _) = limiter(per_second(1, 10));
    let receipt = limiter.take("a", 5).unwrap();
    limiter.set_limit(per_second(1, 20), CarryOver::KeepUsed).unwrap();
    assert_eq!((limiter.refund(receipt), limiter.peek("a").remaining()), (0, 15));
    let receipt = limiter.take("a", 5).unwrap();
    assert_eq!((limiter.refund(receipt), limiter.peek("a").remaining()), (5, 15));
    let place = limiter.reserve("a", 18, secs(60)).unwrap();
    assert_eq!(place.wait(), secs(3));
    assert!(limiter.cancel(place));
    assert!(limiter.reset("a") && limiter.peek("a").remaining() == 20);
}

/// The limit that is in force already: nothing happens, receipts stay good. But a reset is a reset.
#[test]
fn the_same_limit_changes_nothing() {
    let (limiter, _) = limiter(per_second(1, 10));
    let receipt = limiter.take("a", 5).unwrap();
    for carry_over in [CarryOver::KeepUsed, CarryOver::Proportional] {
        limiter.set_limit(per_second(1, 10), carry_over).unwrap();
    }
    assert_eq!((limiter.peek("a").remaining(), limiter.refund(receipt)), (5, 5));
    assert!(limiter.check_n("a", 5).is_ok());
    limiter.set_limit(per_second(1, 10), CarryOver::Reset).unwrap();
    assert_eq!(limiter.peek("a").remaining(), 10);
}

/// A key that is dry by the old limit is not by the new one, and who leased before does not after.
#[test]
fn threads_that_lease_learn_of_the_change() {
    let (limiter, clock) = limiter(per_second(1, 10));
    assert!(limiter.check_n("a", 10).is_ok());
    limiter.warm("a");
    assert!(!limiter.allow("a") && !limiter.allow("a"));
    limiter.set_limit(per_second(1, 20), CarryOver::KeepUsed).unwrap();
    limiter.warm("a");
    assert_eq!((0..20).filter(|_| limiter.allow("a")).count(), 10);
    limiter.set_limit(per_second(1, 5), CarryOver::Reset).unwrap();
    limiter.warm("a");
    assert_eq!((0..20).filter(|_| limiter.allow("a")).count(), 5);
    clock.advance(secs(2));
    assert_eq!((0..20).filter(|_| limiter.allow("a")).count(), 2);
}

/// Newcomers, evictions and statistics after changes, odd and even.
#[test]
fn a_full_table_goes_on_after_each_change() {
    let clock = Manual::new();
    let limiter =
        Limiter::builder(per_second(1, 100)).max_keys(1).seed(SEED).clock(clock.clone()).build().unwrap();
    for round in 0..6 {
        let burst = 100 + round;
        for key in 0..200 {
            _ = limiter.check_n(&key, 30);
        }
        let drained = 1_000 + round;
        assert!(limiter.check_n(&drained, burst).is_ok());
        for key in 0..200 {
            _ = limiter.check_n(&key, 30);
        }
        assert_eq!(limiter.peek(&drained).remaining(), 0, "a drained key is not evicted");
        assert!(limiter.stats().live_estimate > 30);
        limiter.set_limit(per_second(1, burst + 1), CarryOver::KeepUsed).unwrap();
        assert_eq!(limiter.peek(&drained).remaining(), 1);
        clock.advance(secs(300));
        assert_eq!(limiter.stats().live_estimate, 0);
    }
}

/// A limit that comes and goes takes no more room each time.
#[test]
fn limits_that_come_back_are_known() {
    let (limiter, _) = limiter(per_second(1, 10));
    for round in 0..70_000 {
        limiter.set_limit(per_second(1, 10 + round % 3), CarryOver::KeepUsed).unwrap();
    }
    assert!(limiter.check_n("a", 10).is_ok());
}

proptest! {
    /// The twin counts what is used in whole tokens and their parts, and keeps it through every change.
    #[test]
    fn used_is_kept_through_any_changes(
        steps in prop::collection::vec((0..900_000_000_u64, 0..3_u8, 1..60_u64, 1..80_u64), 1..50),
    ) {
        const TOKEN: u128 = 1_000_000_000;
        let rates = [1_u64, 2, 5, 10, 50];
        let (limiter, clock) = limiter(per_second(10, 30));
        let exact = ExactLimiter::<String>::builder(per_second(10, 30)).clock(clock.clone()).build().unwrap();
        let (mut rate, mut burst, mut used) = (10_u64, 30_u64, 0_u128);
        for (wait_ns, what, cost, next) in steps {
            clock.advance(Duration::from_nanos(wait_ns));
            used = used.saturating_sub(u128::from(rate) * u128::from(wait_ns));
            if what == 0 {
                (rate, burst) = (rates[(next % 5) as usize], next);
                limiter.set_limit(per_second(rate, burst), CarryOver::KeepUsed).unwrap();
                exact.set_limit(per_second(rate, burst), CarryOver::KeepUsed).unwrap();
            } else {
                let fits = used + u128::from(cost) * TOKEN <= u128::from(burst) * TOKEN;
                prop_assert_eq!((limiter.check_n("a", cost).is_ok(), exact.check_n("a", cost).is_ok()), (fits, fits));
                used += if fits { u128::from(cost) * TOKEN } else { 0 };
            }
            let remaining = u128::from(burst).saturating_sub(used.div_ceil(TOKEN));
            prop_assert_eq!(u128::from(limiter.peek("a").remaining()), remaining);
            prop_assert_eq!(u128::from(exact.peek("a").remaining()), remaining);
        }
    }

    /// The same of windows, whatever their alignment: counts stay, and windows end as ever.
    #[test]
    fn counts_are_kept_through_any_changes(
        alignment in prop::sample::select(vec![Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest]),
        steps in prop::collection::vec((0..900_000_000_u64, any::<bool>(), 1..9_u64, 1..30_u64), 1..50),
    ) {
        let limit = |burst: u64, more: u64| {
            Limit::burst_sustain(Window::new(burst, secs(1)), Window::new(burst + more, secs(4)))
                .align(alignment).count_refused(false)
        };
        let (limiter, clock) = limiter(limit(9, 9));
        // Never refuses, and is never changed: it tells which windows there are, and what was counted in them.
        let (log, its_clock) = self::limiter(limit(4_000, 4_000));
        let mut limits = [9, 18];
        for (wait_ns, change, cost, more) in steps {
            // On the coarsest grid of openings, so that all grids agree.
            clock.advance(Duration::from_nanos(wait_ns / 15_625_000 * 15_625_000));
            its_clock.set(clock.elapsed());
            if change {
                limits = [cost, cost + more];
                limiter.set_limit(limit(cost, more), CarryOver::KeepUsed).unwrap();
            } else {
                let seen = log.peek("a");
                let fits = (0..2).all(|at| seen.windows()[at].observed + cost <= limits[at]);
                prop_assert_eq!(limiter.check_n("a", cost).is_ok(), fits, "{:?} {:?}", seen, limits);
                if fits {
                    prop_assert!(log.check_n("a", cost).is_ok());
                }
            }
            for (seen, log) in limiter.peek("a").windows().iter().zip(&log.peek("a").windows()) {
                prop_assert_eq!(seen.observed, log.observed);
                prop_assert!(seen.reset_after.abs_diff(log.reset_after) <= Duration::from_nanos(2));
            }
        }
    }
}

/// On the real clock, from 1000 a second to 10 and back, under load: in no interval more than the rates of the time and
/// one burst, and no burst anew by a change.
#[test]
fn a_change_under_load_keeps_the_bound_in_every_interval() {
    const FAST: u64 = 1_000;
    const SLOW: u64 = 10;
    // A burst that a change could give anew is many times what comes back while changes are made.
    let limiter = Limiter::builder(per_second(FAST, 500)).max_keys(1_000).build().unwrap();
    let is_over = AtomicBool::new(false);
    let start = Instant::now();
    let changes = AtomicU64::new(0);
    let mut went = at_once(3, |thread| {
        let mut went = Vec::new();
        if thread == 0 {
            for round in 0..60 {
                std::thread::sleep(Duration::from_millis(10));
                let rate = if round % 2 == 0 { SLOW } else { FAST };
                limiter
                    .set_limit(per_second(rate, if rate == SLOW { 5 } else { 500 }), CarryOver::KeepUsed)
                    .unwrap();
                changes.fetch_add(1, Ordering::Relaxed);
            }
            is_over.store(true, Ordering::Relaxed);
        }
        while !is_over.load(Ordering::Relaxed) {
            if limiter.allow("hot") {
                went.push(start.elapsed());
            }
        }
        went
    })
    .concat();
    went.sort_unstable();
    assert!(went.len() > 650, "{} are too few to tell", went.len());
    assert_eq!(changes.into_inner(), 60);
    // Half of the time fast. Whatever the time of each check, it passed at most at the fast rate.
    let all = went.len() as f64;
    let bound = 500.0 + start.elapsed().as_secs_f64() * FAST as f64;
    assert!(all <= bound + 2.0, "{all} > {bound}");
    // How far the shared time ever fell behind, on a busy machine.
    let lag = Clock::lag_max(limiter.clock()).as_secs_f64();
    for (from, begin) in went.iter().enumerate() {
        let end = went.partition_point(|at| *at <= *begin + Duration::from_millis(25));
        // After the first burst is used: what comes back in 25 ms, and 2 ms for where the clocks stand apart.
        if from > 600 {
            let bound = (0.027 + lag) * FAST as f64 + 2.0;
            assert!((end - from) as f64 <= bound, "{} > {bound} from {begin:?}", end - from);
        }
    }
}

/// Threads check while the limit is changed over and over: at the end, on a clock that stands, what was admitted is used.
#[test]
fn nothing_is_lost_and_nothing_counts_twice_while_limits_change() {
    let clock = Manual::new();
    let limit = |burst| Limit::bucket(Rate::per_day(1), burst);
    // What threads lease and do not spend would count as used.
    let slots =
        Limiter::builder(limit(1 << 30)).max_keys(64).leases(false).clock(clock.clone()).build().unwrap();
    let exact =
        ExactLimiter::<u64>::builder(limit(1 << 30)).max_keys(64).clock(clock.clone()).build().unwrap();
    let single = SingleLimiter::builder(limit(1 << 30)).leases(false).clock(clock).build().unwrap();
    let is_over = AtomicBool::new(false);
    let admitted = at_once(3, |thread| {
        let mut admitted = [0_u64; 9];
        if thread == 0 {
            for round in 0..2_000 {
                let limit = limit((1 << 30) + round % 5);
                slots.set_limit(limit, CarryOver::KeepUsed).unwrap();
                exact.set_limit(limit, CarryOver::KeepUsed).unwrap();
                single.set_limit(limit, CarryOver::KeepUsed).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        }
        for key in (0..8).cycle() {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            assert!(slots.allow(&key) && exact.allow(&key) && single.allow());
            admitted[key as usize] += 1;
            admitted[8] += 1;
        }
        admitted
    });
    let sum = |key: usize| admitted.iter().map(|of| of[key]).sum::<u64>();
    let burst = slots.limit();
    let used = |remaining: u64| (1 << 30) + 1_999 % 5 - remaining;
    assert_eq!(burst, limit((1 << 30) + 1_999 % 5));
    for key in 0..8_u64 {
        assert_eq!(used(slots.peek(&key).remaining()), sum(key as usize), "key {key}");
        assert_eq!(used(exact.peek(&key).remaining()), sum(key as usize), "key {key}");
    }
    assert_eq!(used(single.peek().remaining()), sum(8));
    assert_eq!(slots.check_n(&0, u64::MAX).unwrap_err().reason(), Reason::TooLarge);
}
