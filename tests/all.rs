//! Several limits at once, all or nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{at_once, limits, secs};
use proptest::prelude::*;
use tidegate::{
    Alignment, ExactLimiter, Limit, Limiter, Manual, OnFull, Rate, Reason, SingleLimiter, Window, all,
};

/// A limiter of each kind on one clock: for everybody, for tenants and for users.
struct Three {
    server: SingleLimiter<Manual>,
    tenants: Limiter<Manual>,
    users: ExactLimiter<String, Manual>,
    clock: Manual,
}

impl Three {
    fn new(limits: [Limit; 3]) -> Self {
        let clock = Manual::new();
        Self {
            server: SingleLimiter::builder(limits[0]).seed(1).clock(clock.clone()).build().unwrap(),
            tenants: Limiter::builder(limits[1]).seed(1).clock(clock.clone()).build().unwrap(),
            users: ExactLimiter::builder(limits[2]).seed(1).clock(clock.clone()).build().unwrap(),
            clock,
        }
    }

    fn remaining(&self) -> [u64; 3] {
        let (tenant, user) = (self.tenants.peek("acme"), self.users.peek("ada"));
        [self.server.peek(), tenant, user].map(|seen| seen.remaining())
    }
}

fn window(limit: u64, period: u64) -> Limit {
    Limit::window(Window::new(limit, secs(period))).align(Alignment::Clock)
}

#[test]
fn a_refusal_charges_none_of_them() {
    let three = Three::new([window(10, 1), window(5, 60), window(3, 300)]);
    let decide = |cost| {
        all([&three.users.against_n("ada", cost), &three.server.against(), &three.tenants.against("acme")])
    };
    assert_eq!(decide(2).unwrap().remaining(), 1);
    assert_eq!(three.remaining(), [9, 4, 1]);
    let denied = decide(2).unwrap_err();
    assert_eq!(
        (denied.refused_by(), denied.denied().reason(), denied.remaining()),
        (0, Reason::Exhausted, 1)
    );
    assert_eq!(denied.retry_after(), Some(secs(300)));
    assert_eq!(three.remaining(), [9, 4, 1], "nor is the refusal counted");
    assert!(decide(1).is_ok());
    let denied = decide(4).unwrap_err();
    assert_eq!(
        (denied.refused_by(), denied.denied().reason(), denied.retry_after()),
        (0, Reason::TooLarge, None)
    );
    assert!(denied.to_string().contains("count 0"), "{denied}");
    assert_eq!(three.remaining(), [8, 3, 0]);
}

#[test]
fn the_wait_is_the_longest_of_all() {
    let three = Three::new([window(1, 10), window(1, 60), window(9, 300)]);
    let decide =
        || all([&three.server.against(), &three.tenants.against("acme"), &three.users.against("ada")]);
    assert!(decide().is_ok());
    let denied = decide().unwrap_err();
    assert_eq!((denied.retry_after(), denied.retry_after_secs()), (Some(secs(60)), 60));
    assert!(denied.to_string().ends_with("retry after 10s; all of them fit after 60s"), "{denied}");
    three.clock.set(secs(10));
    assert_eq!(
        (decide().unwrap_err().refused_by(), decide().unwrap_err().retry_after()),
        (1, Some(secs(50)))
    );
    three.clock.set(secs(60));
    assert!(decide().is_ok());
}

#[test]
fn a_key_that_stands_twice_is_charged_the_sum() {
    let three = Three::new([window(10, 1), window(3, 60), window(5, 300)]);
    let (acme, ada) =
        (|cost| three.tenants.against_n("acme", cost), |cost| three.users.against_n("ada", cost));
    let pass = all([&acme(1), &ada(2), &acme(1), &ada(3), &three.server.against_n(0)]).unwrap();
    assert_eq!(three.remaining(), [10, 1, 0]);
    let charged = pass.into_receipts().map(|receipt| receipt.map(|receipt| receipt.charged()));
    assert_eq!(charged, [Some(2), Some(5), None, None, Some(0)]);
    let denied = all([&acme(1), &acme(1)]).unwrap_err();
    assert_eq!((denied.refused_by(), denied.remaining(), denied.retry_after()), (0, 1, Some(secs(60))));
    assert_eq!(all([&acme(2), &acme(2)]).unwrap_err().denied().reason(), Reason::TooLarge);
    let denied = all([&acme(u64::MAX), &acme(2)]).unwrap_err();
    assert!(denied.to_string().contains(&format!("a cost of {} can never fit", u64::MAX)), "{denied}");
    assert_eq!(three.remaining(), [10, 1, 0]);
    assert_eq!(all([]).unwrap().remaining(), u64::MAX);
}

#[test]
fn a_table_without_room_refuses_for_all() {
    let limit = Limit::bucket(Rate::per_hour(1), 2);
    let clock = Manual::new();
    let server =
        SingleLimiter::builder(Limit::bucket(Rate::per_hour(1), 1_000)).clock(clock.clone()).build().unwrap();
    let full = Limiter::builder(limit).max_keys(1).on_full(OnFull::Refuse).clock(clock).build().unwrap();
    let passed = (0..500).filter(|key| all([&server.against(), &full.against_n(key, 2)]).is_ok()).count();
    assert!(passed < 500);
    assert_eq!(server.peek().remaining(), 1_000 - passed as u64);
    let denied = all([&server.against(), &full.against_n(&1_000, 2)]).unwrap_err();
    assert_eq!((denied.refused_by(), denied.denied().reason()), (1, Reason::Full));
    assert!(denied.retry_after().is_some_and(|wait| wait > secs(3_600)));
}

#[test]
fn receipts_of_a_pass_are_good() {
    let three = Three::new([window(10, 1), window(3, 60), window(5, 300)]);
    let [user, server] = all([&three.users.against("ada"), &three.server.against()]).unwrap().into_receipts();
    assert_eq!((three.users.refund(user.unwrap()), three.server.refund(server.unwrap())), (1, 1));
    assert_eq!(three.remaining(), [10, 3, 5]);
}

proptest! {
    /// The naive twin looks at each limit, and only then charges each. (Of windows that open at a first request, one that
    /// was given back stays open.)
    #[test]
    fn all_is_a_look_at_each_and_then_a_charge_of_each(
        limits in [limits(12), limits(12), limits(12)],
        aligned in any::<bool>(),
        steps in prop::collection::vec((0..700_000_000_u64, [0..5_u64, 0..5, 0..5], any::<[bool; 3]>()), 1..60),
    ) {
        let alignment = if aligned { Alignment::Clock } else { Alignment::PerKey };
        let limits = limits.map(|limit| limit.align(alignment));
        let (three, twin) = (Three::new(limits), Three::new(limits));
        for (wait_ns, costs, twice) in steps {
            three.clock.advance(Duration::from_nanos(wait_ns));
            twin.clock.advance(Duration::from_nanos(wait_ns));
            // A part that stands twice: the second time for nothing or for one.
            let more = [0, 1, 2].map(|part| u64::from(twice[part]));
            let sums = [0, 1, 2].map(|part| costs[part] + more[part]);
            let answer = all([
                &three.users.against_n("ada", more[2]), &three.server.against_n(costs[0]),
                &three.tenants.against_n("acme", costs[1]), &three.users.against_n("ada", costs[2]),
                &three.server.against_n(more[0]), &three.tenants.against_n("acme", more[1]),
            ]);
            let looks = [twin.server.peek(), twin.tenants.peek("acme"), twin.users.peek("ada")];
            let waits = [0, 1, 2].map(|part| looks[part].retry_after(sums[part]));
            let passes = waits.iter().all(|wait| *wait == Some(Duration::ZERO));
            prop_assert_eq!(answer.is_ok(), passes, "{:?} {:?}", answer, looks);
            match answer {
                Ok(_) => {
                    let _ = twin.server.take(sums[0]).unwrap();
                    let _ = twin.tenants.take("acme", sums[1]).unwrap();
                    let _ = twin.users.take("ada", sums[2]).unwrap();
                }
                Err(denied) => {
                    let longest = waits.iter().try_fold(Duration::ZERO, |longest, wait| Some(longest.max((*wait)?)));
                    prop_assert_eq!(denied.retry_after(), longest);
                }
            }
            prop_assert_eq!(three.remaining(), twin.remaining());
        }
    }
}

/// 64 threads on three limits at once: at the end each has counted the successes, and nothing else.
#[test]
fn at_the_end_every_limit_has_counted_the_successes() {
    const THREADS: usize = 64;
    let three = Three::new([window(20_000, 86_400), window(9_000, 86_400), window(7_000, 86_400)]);
    let (passed, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    at_once(THREADS, |thread| {
        for round in 0..200 {
            let counts: [&dyn tidegate::Counted; 3] =
                [&three.server.against(), &three.tenants.against("acme"), &three.users.against("ada")];
            let [a, b, c] = counts;
            // Whoever gives them in another order charges in the same.
            let answer = if (thread + round).is_multiple_of(2) { all([a, b, c]) } else { all([c, a, b]) };
            let count = if answer.is_ok() { &passed } else { &refused };
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let passed = passed.into_inner();
    assert!(passed <= 7_000 && refused.into_inner() > 0);
    assert_eq!(three.remaining(), [20_000 - passed, 9_000 - passed, 7_000 - passed]);
    // Who was refused while another's charge was about to be given back may come again: what is left is there.
    let left = 7_000 - passed;
    for _ in 0..left {
        assert!(all([&three.server.against(), &three.users.against("ada")]).is_ok());
    }
    assert!(all([&three.server.against(), &three.users.against("ada")]).is_err());
}
