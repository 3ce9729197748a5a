//! One limit for everybody: the same answers as a table that is asked for one key.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{LEASE, at_once, limits, secs};
use proptest::prelude::*;
use tidegate::{Clock, ConfigError, Limit, Limiter, Manual, Rate, Reason, SingleLimiter, Ticking};

proptest! {
    /// Every answer, word for word: the phase of `PerKey` is that of the key `()`. With leases, no more passes than without.
    #[test]
    fn every_answer_is_that_of_one_key(
        limit in limits(2_000),
        is_hot in any::<bool>(),
        steps in prop::collection::vec((0..1_500_u64, 1..50_u16, prop_oneof![3 => Just(1), 1 => 0..700_u64]), 1..60),
    ) {
        let clock = Manual::new();
        let single = SingleLimiter::builder(limit).seed(1).clock(clock.clone()).build().unwrap();
        let keyed = Limiter::builder(limit).seed(1).clock(clock.clone()).build().unwrap();
        // There is a key to lease of from its first request on.
        prop_assert_eq!(single.check().is_ok(), keyed.check(&()).is_ok());
        for (ms, times, cost) in steps {
            clock.advance(Duration::from_millis(ms));
            if is_hot {
                single.warm();
            }
            for _ in 0..times {
                let answer = single.check_n(cost);
                if is_hot {
                    // One thread has one shard for both: only one of the two can lease.
                    prop_assert!(answer.is_err() || keyed.check_n(&(), cost).is_ok());
                } else {
                    prop_assert_eq!(format!("{answer:?}"), format!("{:?}", keyed.check_n(&(), cost)));
                }
            }
        }
    }
}

#[test]
fn it_gives_back_what_it_was_built_of() {
    let limit = Limit::bucket(Rate::per_second(1), 2);
    let clock = Manual::new();
    let limiter = SingleLimiter::builder(limit).clock(clock.clone()).leases(false).build().unwrap();
    assert_eq!(limiter.limit(), limit);
    assert_eq!(limiter.clock().elapsed(), clock.elapsed());
    let keyed = Limiter::builder(limit).clock(clock).build().unwrap();
    assert_eq!((limiter.horizon(), limiter.resolution()), (keyed.horizon(), keyed.resolution()));
    assert!(format!("{limiter:?}").starts_with("SingleLimiter"));
    assert!(limiter.allow() && limiter.allow() && !limiter.allow());
    assert_eq!(limiter.check_n(3).unwrap_err().reason(), Reason::TooLarge);
    assert_eq!(limiter.check().unwrap_err().retry_after(), Some(secs(1)));
    let nothing = SingleLimiter::builder(Limit::bucket(Rate::per_second(1), 0)).build();
    assert!(matches!(nothing, Err(ConfigError::Zero { field: "burst" })));
}

#[test]
fn threads_share_one_count() {
    const BURST: u64 = 1_000_000;
    for leases in [true, false] {
        let limit = Limit::bucket(Rate::per_hour(1), BURST);
        let limiter = SingleLimiter::builder(limit).leases(leases).build().unwrap();
        let admitted = at_once(4, |_| {
            limiter.warm();
            (0..BURST / 2).filter(|_| limiter.allow()).count() as u64
        });
        let rest = (0..).take_while(|_| limiter.allow()).count() as u64;
        let admitted = admitted.iter().sum::<u64>() + rest;
        assert!(admitted <= BURST + 1, "{admitted}"); // an hour is longer than any test
        // Four threads asked for twice as much, and what lapses is at most what each may hold at the end of a span.
        assert!(leases || admitted >= BURST, "{admitted}");
        assert!(admitted >= BURST / 2, "{admitted}");
    }
}

#[test]
fn what_is_due_comes_and_no_more() {
    let limit = Limit::bucket(Rate::per_second(1_000_000), 100_000);
    let is_due = |_| {
        let limiter = SingleLimiter::builder(limit).build().unwrap();
        let clock: &Ticking = limiter.clock();
        let before = clock.precise();
        let loads = at_once(4, |_| {
            let mut admitted = u64::from(limiter.allow());
            let opened = clock.precise();
            while clock.precise() - opened < 300_000_000 {
                admitted += (0..64).filter(|_| limiter.allow()).count() as u64;
            }
            (admitted, opened)
        });
        let opened = loads.iter().map(|load| load.1).min().unwrap();
        let emptied = clock.precise();
        let rest = (0..).take_while(|_| limiter.allow()).count() as u64;
        let admitted = loads.iter().map(|load| load.0).sum::<u64>() + rest;
        let lag = clock.lag_max() + LEASE;
        let in_time = clock.precise() - before + u64::try_from(lag.as_nanos()).unwrap();
        let bound = 100_000 + in_time / 1_000 + 4;
        let due = 100_000 + (emptied - opened) / 1_000;
        println!("{admitted} admitted, {due} due, bound {bound}");
        assert!(admitted <= bound, "{admitted} admitted, bound {bound}");
        admitted * 1_000 >= due * 995
    };
    assert!((0..4).any(is_due), "less than 99.5 % of what was due");
}
