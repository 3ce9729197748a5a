//! Kinds of bugs in changing a limit.

use super::*;
use crate::common::manual;
use tidegate::CarryOver;

/// Class: whoever changes a limit resets every key.
#[test]
fn everyone_gets_a_fresh_burst() {
    let limit = |rate, burst| Limit::bucket(Rate::per_second(rate), burst);
    let (limiter, clock) = manual::<u64>(limit(10, 100));
    assert!(limiter.check_n(&KEY, 100).is_ok());
    for round in 0..100 {
        // There and back again, with one token's time in between.
        limiter.set_limit(limit(5, 20 + round % 80), CarryOver::KeepUsed).unwrap();
        assert!(!limiter.allow(&KEY));
        limiter.set_limit(limit(10, 100), CarryOver::KeepUsed).unwrap();
        assert!(!limiter.allow(&KEY));
        clock.advance(Duration::from_millis(100));
        assert!(limiter.allow(&KEY) && !limiter.allow(&KEY));
    }
}

/// Class: keys that are known go on with the limit that they began with.
#[test]
fn old_keys_keep_the_old_limit() {
    let (limiter, _) = manual::<u64>(Limit::bucket(Rate::per_hour(1), 100));
    assert!((0..10).all(|key| limiter.check_n(&key, 3).is_ok()));
    limiter.set_limit(Limit::bucket(Rate::per_hour(1), 5), CarryOver::KeepUsed).unwrap();
    assert!((0..20).all(|key| limiter.check_n(&key, if key < 10 { 2 } else { 5 }).is_ok()));
    assert!(!(0..20).any(|key| limiter.allow(&key)));
}

/// Class: a limit below what is used makes what remains wrap to a huge number.
#[test]
fn remaining_underflows_after_a_limit_shrinks() {
    let window = |limit| Limit::window(Window::new(limit, secs(60))).align(Alignment::Clock);
    for [from, to] in [
        [window(100), window(1)],
        [Limit::bucket(Rate::per_hour(1), 100), Limit::bucket(Rate::per_hour(1), 1)],
    ] {
        let (limiter, _) = manual::<u64>(from);
        assert!(limiter.check_n(&KEY, 99).is_ok());
        limiter.set_limit(to, CarryOver::KeepUsed).unwrap();
        assert_eq!((limiter.peek(&KEY).remaining(), limiter.peek(&KEY).debt()), (0, 98));
        assert!(!limiter.allow(&KEY));
    }
}
