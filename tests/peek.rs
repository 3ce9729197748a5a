//! `peek` tells how a key stands, and changes nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::HashMap;
use std::time::Duration;

use common::{at_once, limits, secs};
use proptest::prelude::*;
use tidegate::{
    Alignment, ExactLimiter, Limit, Limiter, Manual, Pass, Rate, Reason, SingleLimiter, Standing, Window,
};

/// The published bucket: capacity 5, 1 a second; a look at 9.5 s finds 4 left, and full in one.
#[test]
fn a_look_at_the_published_bucket() {
    let limit = Limit::bucket(Rate::per_second(1), 5);
    let clock = Manual::new();
    let limiter = Limiter::builder(limit).clock(clock.clone()).build().unwrap();
    assert_eq!(limiter.peek("a").remaining(), 5);
    assert_eq!(limiter.peek("a").reset_after(), Duration::ZERO);
    clock.set(Duration::from_millis(9_500));
    assert!(limiter.allow("a"));
    let seen = limiter.peek("a");
    assert_eq!(
        (seen.limit(), seen.remaining(), seen.reset_after(), seen.next_after()),
        (5, 4, secs(1), secs(1))
    );
    assert!(limiter.check_n("a", 2).is_ok());
    let seen = limiter.peek("a");
    assert_eq!((seen.remaining(), seen.reset_after()), (2, secs(3)));
    assert_eq!(seen.retry_after(2), Some(Duration::ZERO));
    assert_eq!(seen.retry_after(5), Some(secs(3)));
    assert_eq!(seen.retry_after(6), None);
    assert_eq!(seen.retry_after(u64::MAX), None);
    assert_eq!(seen.retry_after(0), Some(Duration::ZERO));
}

#[test]
fn a_look_at_a_window_counts_what_was_refused() {
    let limit =
        Limit::burst_sustain(Window::new(2, secs(15)), Window::new(9, secs(300))).align(Alignment::Clock);
    let limiter = ExactLimiter::<String>::builder(limit).clock(Manual::new()).build().unwrap();
    for _ in 0..4 {
        let _ = limiter.check("a");
    }
    let seen = limiter.peek("a");
    let observed: Vec<u64> = seen.windows().iter().map(|window| window.observed).collect();
    assert_eq!((seen.remaining(), seen.retry_after(1), observed), (0, Some(secs(15)), vec![4, 4]));
    assert_eq!(seen.retry_after(3), None, "the burst window never fits three");
    assert!(seen.windows().iter().all(|window| !window.refuses), "nobody asked");
    assert_eq!(limiter.len(), 1);
    assert_eq!(limiter.peek("b").remaining(), 2);
    assert_eq!(limiter.len(), 1, "a look creates no key");
}

/// What is told of one limiter's key.
type Told = (u64, u64, Duration, Duration);

fn told_by(standing: Standing) -> Told {
    (standing.limit(), standing.remaining(), standing.next_after(), standing.reset_after())
}

fn told_after(pass: Pass) -> Told {
    (pass.limit(), pass.remaining(), pass.next_after(), pass.reset_after())
}

proptest! {
    /// A look finds what the last answer left, tells when a cost passes to the nanosecond, and nobody can tell that it
    /// was taken: a twin that is never looked at gives the same answers.
    #[test]
    fn a_look_is_true_and_leaves_no_trace(
        limit in limits(40),
        steps in prop::collection::vec((0..3_000_000_000_u64, 0..40_u16, 1..30_u64), 1..80),
    ) {
        let clock = Manual::new();
        let looked_at = Limiter::builder(limit).max_keys(1).seed(1).clock(clock.clone()).build().unwrap();
        let twin = Limiter::builder(limit).max_keys(1).seed(1).clock(clock.clone()).build().unwrap();
        let exact = ExactLimiter::<u16>::builder(limit).seed(1).clock(clock.clone()).build().unwrap();
        let single = SingleLimiter::builder(limit).seed(1).clock(clock.clone()).build().unwrap();
        for (advance_ns, key, cost) in steps {
            clock.advance(Duration::from_nanos(advance_ns));
            let before = looked_at.peek(&key);
            let (answer, expected) = (looked_at.check_n(&key, cost), twin.check_n(&key, cost));
            prop_assert_eq!(format!("{answer:?}"), format!("{expected:?}"));
            prop_assert_eq!(looked_at.stats(), twin.stats());
            if answer.as_ref().is_err_and(|denied| denied.reason() == Reason::Full) {
                continue;
            }
            prop_assert_eq!(answer.is_ok(), before.retry_after(cost) == Some(Duration::ZERO), "{:?}", before);
            let after = looked_at.peek(&key);
            if let Ok(pass) = answer {
                prop_assert_eq!(told_by(after), told_after(pass));
            }
            // The same on the other two.
            if let Ok(pass) = exact.check_n(&key, cost) {
                prop_assert_eq!(told_by(exact.peek(&key)), told_after(pass));
            }
            if let Ok(pass) = single.check_n(cost) {
                prop_assert_eq!(told_by(single.peek()), told_after(pass));
            }
            // The wait is exact on both sides.
            let Some(wait) = single.peek().retry_after(cost).filter(|wait| !wait.is_zero()) else { continue };
            clock.advance(wait - Duration::from_nanos(1));
            prop_assert!(single.peek().remaining() < cost);
            clock.advance(Duration::from_nanos(1));
            prop_assert!(single.peek().remaining() >= cost);
        }
    }
}

/// Looks race with checks, evictions and takeovers: what is told is never another key's, nor more than the limit.
#[test]
fn looks_that_race_are_of_the_key_and_of_some_time() {
    let limit = Limit::bucket(Rate::per_hour(1), 4);
    let limiter = Limiter::builder(limit).max_keys(1).clock(Manual::new()).build().unwrap();
    // Drained, so never evicted.
    for key in 1_000..1_004_u64 {
        assert!(limiter.check_n(&key, 4).is_ok());
    }
    let seen = at_once(4, |thread| {
        let mut seen = HashMap::new();
        for step in 0..50_000_u64 {
            if thread < 2 {
                let _ = limiter.check(&(step % 60));
            } else {
                for key in 1_000..1_004 {
                    *seen.entry(limiter.peek(&key).remaining()).or_insert(0) += 1;
                }
                assert!(limiter.peek(&(step % 60)).remaining() <= 4);
            }
        }
        seen
    });
    assert!(seen.iter().flat_map(HashMap::keys).all(|&remaining| remaining == 0), "{seen:?}");
    assert!(limiter.stats().claims > 100, "keys were evicted all the time");
}
