//! Places in a bucket's line: `reserve` and `cancel`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{SEED, at_once, secs};
use proptest::prelude::*;
use tidegate::{
    Alignment, ExactLimiter, Limit, Limiter, Manual, Rate, Reason, Reservation, SingleLimiter, Window,
};

fn limiter(limit: Limit) -> (Limiter<Manual>, Manual) {
    let clock = Manual::new();
    (Limiter::builder(limit).seed(SEED).clock(clock.clone()).build().unwrap(), clock)
}

const MINUTE: Duration = secs(60);

#[test]
fn turns_come_in_the_order_of_reservations() {
    let (limiter, clock) = limiter(Limit::bucket(Rate::per_second(2), 2));
    let waits = [1, 1, 1, 2].map(|cost| limiter.reserve("a", cost, MINUTE).unwrap().wait());
    assert_eq!(
        waits,
        [Duration::ZERO, Duration::ZERO, Duration::from_millis(500), Duration::from_millis(1_500)]
    );
    assert_eq!(limiter.peek("a").debt(), 3);
    assert!(!limiter.allow("a"));
    // Five are charged, so the sixth passes when four are back.
    clock.set(secs(2) - Duration::from_nanos(1));
    assert!(!limiter.allow("a"));
    clock.set(secs(2));
    assert!(limiter.allow("a") && !limiter.allow("a"));
}

#[test]
fn a_wait_longer_than_is_allowed_charges_nothing() {
    let (limiter, clock) = limiter(Limit::bucket(Rate::per_second(1), 1));
    let second = secs(1);
    assert!(limiter.reserve("a", 1, Duration::ZERO).is_ok_and(|place| place.wait().is_zero()));
    let denied = limiter.reserve("a", 1, second - Duration::from_nanos(1)).unwrap_err();
    assert_eq!((denied.reason(), denied.retry_after()), (Reason::Exhausted, Some(second)));
    assert_eq!(limiter.reserve("a", 1, second).unwrap().wait(), second);
    assert_eq!(limiter.reserve("a", 1, second).unwrap_err().retry_after(), Some(secs(2)));
    clock.set(second);
    assert_eq!(limiter.reserve("a", 1, second).unwrap().wait(), second);
}

#[test]
fn what_can_never_pass_is_not_reserved() {
    let (bucket, _) = limiter(Limit::bucket(Rate::per_second(1), 5));
    let denied = bucket.reserve("a", 6, Duration::MAX).unwrap_err();
    assert_eq!((denied.reason(), denied.retry_after()), (Reason::TooLarge, None));
    assert!(bucket.reserve("a", 0, Duration::ZERO).is_ok_and(|place| place.charged() == 0));
    let (windows, _) = limiter(Limit::window(Window::new(5, secs(1))).align(Alignment::Clock));
    let denied = windows.reserve("a", 1, Duration::MAX).unwrap_err();
    assert_eq!(
        (denied.reason(), denied.retry_after(), denied.retry_after_secs()),
        (Reason::Unsupported, None, u64::MAX)
    );
    assert!(!denied.to_string().is_empty() && denied.windows().iter().all(|window| !window.refuses));
    assert_eq!(windows.peek("a").remaining(), 5);
}

/// The line is as long as the limiter's time, and no longer.
#[test]
fn a_line_ends_where_time_does() {
    let (limiter, _) = limiter(Limit::bucket(Rate::new(1, secs(86_400 * 365)), 1));
    let places =
        (0..200).map_while(|_| limiter.reserve("a", 1, Duration::MAX).ok()).collect::<Vec<Reservation>>();
    assert!((30..150).contains(&places.len()), "{} years", places.len());
    assert_eq!(limiter.reserve("a", 1, Duration::MAX).unwrap_err().reason(), Reason::Exhausted);
}

#[test]
fn the_last_in_line_can_be_given_back_and_no_other() {
    let (limiter, clock) = limiter(Limit::bucket(Rate::per_second(1), 1));
    let [_first, second, third] = [1; 3].map(|cost| limiter.reserve("a", cost, MINUTE).unwrap());
    let fourth = limiter.reserve("a", 1, MINUTE).unwrap();
    assert!(!limiter.cancel(third), "the fourth was told to wait for it");
    assert!(limiter.cancel(fourth));
    assert!(!limiter.cancel(second), "the third is still there");
    assert_eq!(limiter.peek("a").debt(), 2);
    clock.advance(secs(1));
    let last = limiter.reserve("a", 1, MINUTE).unwrap();
    clock.advance(secs(5));
    assert!(limiter.allow("a"), "its turn has come");
    assert!(!limiter.cancel(last), "and more was charged since");
}

/// Turns that were told stay; what a refund leaves goes to others beside them.
#[test]
fn what_is_given_back_beside_a_line_goes_on_beside_it() {
    let (limiter, clock) = limiter(Limit::bucket(Rate::per_second(1), 1));
    let receipt = limiter.take("a", 1).unwrap();
    let place = limiter.reserve("a", 1, MINUTE).unwrap();
    assert_eq!(place.wait(), secs(1));
    assert_eq!(limiter.refund(receipt), 1);
    assert!(!limiter.allow("a"), "the place is charged");
    clock.set(secs(1));
    // Whoever waited goes on now, and one more: two where the burst is one, for one was given back.
    assert!(limiter.allow("a") && !limiter.allow("a"));
    assert!(!limiter.cancel(place), "and a check has followed");
}

/// The word has the number again that the reservation left, but it is another's: who cancels gives nothing back.
#[test]
fn a_place_is_not_the_last_because_the_number_is_the_same() {
    let limit = Limit::bucket(Rate::per_second(1), 1);
    let gifts: [fn(&SingleLimiter<Manual>, tidegate::Receipt) -> u64; 2] =
        [|limiter, receipt| limiter.refund(receipt), |limiter, _| limiter.refund_tokens(1)];
    for give in gifts {
        let clock = Manual::new();
        let limiter = SingleLimiter::builder(limit).clock(clock.clone()).build().unwrap();
        let receipt = limiter.take(1).unwrap();
        let place = limiter.reserve(1, MINUTE).unwrap();
        assert_eq!(give(&limiter, receipt), 1);
        clock.set(secs(1));
        assert!(limiter.allow());
        assert!(!limiter.cancel(place));
        assert!(!limiter.allow());
        let place = limiter.reserve(1, MINUTE).unwrap();
        assert!(limiter.cancel(place), "a new one is");
    }
}

#[test]
fn the_three_limiters_reserve_alike() {
    let limit = Limit::bucket(Rate::per_second(10), 2);
    let (slots, clock) = limiter(limit);
    let exact = ExactLimiter::<String>::builder(limit).clock(clock.clone()).build().unwrap();
    let single = SingleLimiter::builder(limit).clock(clock).build().unwrap();
    let wait_max = Duration::from_millis(250);
    for _ in 0..6 {
        let places =
            [slots.reserve("a", 1, wait_max), exact.reserve("a", 1, wait_max), single.reserve(1, wait_max)];
        let waits = places.map(|place| place.map(|place| place.wait()).ok());
        assert!(waits[0] == waits[1] && waits[0] == waits[2], "{waits:?}");
    }
    assert_eq!(exact.reserve("a", 1, wait_max).unwrap_err().reason(), Reason::Exhausted);
    let last = (exact.reserve("b", 2, MINUTE).unwrap(), single.reserve(1, MINUTE).unwrap());
    assert!(exact.cancel(last.0) && single.cancel(last.1));
    assert_eq!(exact.peek("b").remaining(), 2);
}

proptest! {
    /// Whoever goes on when its turn comes, or at once when a check passes: no interval sees more than the bucket's bound,
    /// and turns come in order. What is cancelled leaves no trace.
    #[test]
    fn turns_keep_the_bound(
        rate in prop::sample::select(vec![1_u64, 2, 5, 10, 1_000]),
        burst in 1..8_u64,
        steps in prop::collection::vec((0..900_000_000_u64, 0..4_u8, 1..9_u64, 0..4_000_u64), 1..60),
    ) {
        let limit = Limit::bucket(Rate::per_second(rate), burst);
        let (limiter, clock) = limiter(limit);
        let mut went = Vec::new();
        let mut latest = Duration::ZERO;
        for (wait_ns, what, cost, wait_max_ms) in steps {
            clock.advance(Duration::from_nanos(wait_ns / rate.min(50)));
            let now = clock.elapsed();
            if what == 0 {
                if limiter.check_n("a", cost).is_ok() {
                    went.push((now, cost));
                    prop_assert!(now >= latest, "a check overtook the line");
                    latest = now;
                }
                continue;
            }
            let before = limiter.peek("a");
            let wait_max = Duration::from_millis(wait_max_ms);
            match limiter.reserve("a", cost, wait_max) {
                Ok(place) if what == 1 => {
                    prop_assert!(limiter.cancel(place));
                    let after = limiter.peek("a");
                    prop_assert_eq!((before.remaining(), before.debt()), (after.remaining(), after.debt()));
                    prop_assert_eq!(before.retry_after(1), after.retry_after(1));
                }
                Ok(place) => {
                    prop_assert!(place.wait() <= wait_max && cost <= burst);
                    prop_assert!(now + place.wait() >= latest, "out of turn");
                    latest = now + place.wait();
                    went.push((latest, cost));
                }
                Err(denied) => {
                    let after = limiter.peek("a");
                    prop_assert_eq!((before.remaining(), before.debt()), (after.remaining(), after.debt()));
                    if denied.reason() == Reason::Exhausted {
                        prop_assert!(denied.retry_after().unwrap() > wait_max);
                    }
                }
            }
        }
        let ns = |at: Duration| at.as_nanos();
        for (from, &(begin, _)) in went.iter().enumerate() {
            let mut sum = 0;
            for &(end, cost) in &went[from..] {
                sum += u128::from(cost);
                let bound = u128::from(burst) + (ns(end) - ns(begin)) * u128::from(rate) / 1_000_000_000;
                // Times are told in whole nanoseconds, rounded up: the later one may be early by one.
                prop_assert!(sum <= bound + 1 && (rate > 1 || sum <= bound), "{sum} > {bound} from {begin:?} to {end:?}");
            }
        }
    }
}

/// Threads that reserve and wait on the real clock, and some that give their place back: nobody goes before its turn.
#[test]
fn threads_in_line_keep_the_bound_on_the_real_clock() {
    const PER_SECOND: u64 = 2_000;
    let limiter = SingleLimiter::builder(Limit::bucket(Rate::per_second(PER_SECOND), 4)).build().unwrap();
    let start = Instant::now();
    let went = at_once(4, |thread| {
        let mut went = Vec::new();
        for round in 0..150 {
            let place = limiter.reserve(1 + round % 3, MINUTE).unwrap();
            if (round + thread as u64).is_multiple_of(5) {
                limiter.cancel(place);
                continue;
            }
            std::thread::sleep(place.wait());
            went.push((start.elapsed(), place.charged()));
        }
        went
    });
    let mut went = went.concat();
    went.sort_unstable();
    let mut sum = 0;
    for (end, cost) in went {
        sum += cost;
        // A millisecond for what the clock's start and the test's lie apart.
        let bound = 4.0 + (end.as_secs_f64() + 0.001) * PER_SECOND as f64;
        assert!(sum as f64 <= bound, "{sum} > {bound} after {end:?}");
    }
}
