//! Kinds of bugs with places in line, kept and given up.

use super::*;
use crate::common::manual;
use tidegate::Reason;

/// Class: a waiter that gives up has its tokens kept, so that who comes next waits for nobody.
#[test]
fn a_cancelled_waiter_keeps_its_tokens() {
    let (limiter, clock) = manual::<u64>(Limit::bucket(Rate::per_second(1), 10));
    assert!(limiter.check_n(&KEY, 10).is_ok());
    for _ in 0..1_000 {
        let place = limiter.reserve(&KEY, 10, secs(10)).unwrap();
        assert_eq!(place.wait(), secs(10));
        assert!(limiter.cancel(place));
    }
    assert_eq!(limiter.peek(&KEY).debt(), 0);
    clock.advance(secs(1));
    assert!(limiter.allow(&KEY));
}

/// Class: a waiter's tokens are given back though others were told to come after it: two go where there is room for one.
#[test]
fn a_cancelled_waiter_lets_nobody_overtake() {
    let (limiter, clock) = manual::<u64>(Limit::bucket(Rate::per_second(1), 1));
    let [first, second, third] = [1; 3].map(|cost| limiter.reserve(&KEY, cost, secs(9)).unwrap());
    assert_eq!([first.wait(), second.wait(), third.wait()], [0, 1, 2].map(secs));
    assert!(!limiter.cancel(second));
    clock.advance(secs(2));
    assert!(!limiter.allow(&KEY), "it is the third's turn");
    clock.advance(secs(1));
    assert!(limiter.allow(&KEY));
}

/// Class: a waiter waits past its deadline, and has paid when it gives up.
#[test]
fn a_waiter_that_would_be_late_is_told_at_once_and_pays_nothing() {
    let (limiter, _clock) = manual::<u64>(Limit::bucket(Rate::per_second(1), 10));
    assert!(limiter.check_n(&KEY, 10).is_ok());
    for _ in 0..100 {
        let denied = limiter.reserve(&KEY, 5, secs(5) - NANOSECOND).unwrap_err();
        assert_eq!((denied.reason(), denied.retry_after()), (Reason::Exhausted, Some(secs(5))));
    }
    assert_eq!(limiter.reserve(&KEY, 5, secs(5)).unwrap().wait(), secs(5));
}

/// Class: big requests starve, because small ones always come first.
#[test]
fn a_big_request_in_line_is_not_overtaken() {
    let (limiter, clock) = manual::<u64>(Limit::bucket(Rate::per_second(1), 10));
    assert!(limiter.check_n(&KEY, 10).is_ok());
    let big = limiter.reserve(&KEY, 10, secs(60)).unwrap();
    for second in 1..=10 {
        clock.advance(secs(1));
        assert!(!limiter.allow(&KEY), "after {second} s");
    }
    assert_eq!(big.wait(), secs(10));
    clock.advance(secs(1));
    assert!(limiter.allow(&KEY), "the first after the big one");
}
