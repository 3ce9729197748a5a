//! Several limits: one request that is counted in each of them or in none.

use super::*;
use crate::common::manual;
use tidegate::{Denied, SingleLimiter, all};

/// Class: the limits are charged one after another, and who is refused by the second has paid the first.
#[test]
fn the_first_is_charged_when_the_second_refuses() {
    for limit in limits_of_ten() {
        let (users, clock) = manual::<u64>(limit);
        let one = Limit::bucket(Rate::per_hour(1), 1);
        let server = SingleLimiter::builder(one).clock(clock).build().unwrap();
        let decide = || all([&users.against(&KEY), &server.against()]);
        assert!(decide().is_ok(), "{limit:?}");
        for _ in 0..100 {
            let denied = decide().unwrap_err();
            assert_eq!(denied.refused_by(), 1, "{limit:?}");
        }
        let observed: Vec<u64> = users.peek(&KEY).windows().iter().map(|window| window.observed).collect();
        assert!(observed.iter().all(|used| *used == 1), "{limit:?}: {observed:?}");
    }
}

/// Class: the other way round: what a refusal charged is given back twice, or to a window that it is not in.
#[test]
fn what_is_given_back_is_what_was_charged() {
    for limit in limits_of_ten() {
        let (users, clock) = manual::<u64>(limit);
        let full = SingleLimiter::builder(Limit::bucket(Rate::per_day(1), 1)).clock(clock.clone());
        let full = full.build().unwrap();
        assert!(full.allow() && users.check_n(&KEY, 7).is_ok());
        for _ in 0..200 {
            assert!(all([&users.against_n(&KEY, 3), &full.against()]).is_err());
            clock.advance(Duration::from_millis(4));
        }
        // Less than a second has passed: no token has come back, and no window ended.
        assert_eq!(users.peek(&KEY).remaining(), 3, "{limit:?}");
    }
}

/// Class: a key that stands twice in one call is looked at twice and charged twice: both looks see room for one.
#[test]
fn one_key_twice_in_one_call() {
    for limit in limits_of_ten() {
        let (users, _clock) = manual::<u64>(limit);
        assert!(users.check_n(&KEY, 9).is_ok());
        let denied = all([&users.against(&KEY), &users.against(&KEY)]).unwrap_err();
        assert_eq!(denied.refused_by(), 0, "{limit:?}");
        assert_eq!(users.peek(&KEY).remaining(), 1, "{limit:?}");
        assert!(all([&users.against(&KEY), &users.against_n(&KEY, 0)]).is_ok(), "{limit:?}");
        assert_eq!(users.peek(&KEY).remaining(), 0, "{limit:?}");
        let waits = |denied: &Denied| denied.retry_after();
        let denied = all([&users.against(&KEY), &users.against(&KEY)]).unwrap_err();
        assert_eq!(denied.retry_after(), waits(denied.denied()), "the sum is waited for: {limit:?}");
        let twice_six = all([&users.against_n(&KEY, 6), &users.against_n(&KEY, 6)]).unwrap_err();
        assert_eq!(twice_six.retry_after(), None, "twelve can never fit ten: {limit:?}");
    }
}
