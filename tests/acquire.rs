//! `acquire`, `acquire_n` and `acquire_timeout`, on time that stands still until every task sleeps.
#![cfg(feature = "tokio")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/paused.rs"]
mod paused;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{SEED, secs};
use paused::{TokioTime, limiter, ms, waiting};
use tidegate::{
    Alignment, ExactLimiter, Limit, Limiter, Manual, OnFull, Rate, Reason, SingleLimiter, Window,
};
use tokio::task::JoinSet;
use tokio::time::sleep;

fn ten_a_second(burst: u64) -> Limit {
    Limit::bucket(Rate::per_second(10), burst)
}

/// Spawns a waiter for each key and cost, in their order; who went on when, in ms, in the order in which they did.
async fn went(limiter: Limiter<TokioTime>, waiters: &[(&'static str, u64)]) -> Vec<(usize, u64)> {
    let (limiter, went) = (Arc::new(limiter), Arc::new(Mutex::new(Vec::new())));
    let mut tasks = JoinSet::new();
    for (number, &(key, cost)) in waiters.iter().enumerate() {
        let (limiter, went) = (Arc::clone(&limiter), Arc::clone(&went));
        tasks.spawn(async move {
            limiter.acquire_n(key, cost).await.unwrap();
            went.lock().unwrap().push((number, limiter.clock().ms()));
        });
    }
    while let Some(joined) = tasks.join_next().await {
        joined.unwrap();
    }
    Arc::into_inner(went).unwrap().into_inner().unwrap()
}

/// A token each 100 ms, two at once: the two that are there, then each when its cost has come.
#[tokio::test(start_paused = true)]
async fn first_come_first_served() {
    let waiters = [1, 1, 2, 1, 2, 1].map(|cost| ("a", cost));
    let went = went(limiter(ten_a_second(2)), &waiters).await;
    assert_eq!(went, [(0, 0), (1, 0), (2, 200), (3, 300), (4, 500), (5, 600)]);
}

#[tokio::test(start_paused = true)]
async fn keys_do_not_wait_for_each_other() {
    let waiters = [("a", 2), ("a", 2), ("b", 1), ("a", 1), ("b", 2)];
    let went = went(limiter(ten_a_second(2)), &waiters).await;
    assert_eq!(went, [(0, 0), (2, 0), (4, 100), (1, 200), (3, 300)]);
}

/// 1 000 tasks, each tenth wants the whole burst: in order per key, and not a millisecond later than their tokens.
#[tokio::test(start_paused = true)]
async fn a_thousand_of_1_and_of_burst_size_go_in_order_and_on_time() {
    const KEYS: [&str; 4] = ["a", "b", "c", "d"];
    const BURST: u64 = 10;
    // A burst that carries a late task by itself, one that does so in part, and one of which the next is handed on early.
    for per_second in [100, 2_500, 5_000] {
        let waiters: Vec<(&str, u64)> = (0..1_000)
            .map(|number| (KEYS[number * number % 7 % 4], if number % 10 == 3 { BURST } else { 1 }))
            .collect();
        let went = went(limiter(Limit::bucket(Rate::per_second(per_second), BURST)), &waiters).await;
        assert_eq!(went.len(), 1_000);
        for key in KEYS {
            let mut charged = 0;
            let mut last = None;
            for &(number, at_ms) in went.iter().filter(|(number, _)| waiters[*number].0 == key) {
                assert!(last < Some(number), "{number} after {last:?}");
                last = Some(number);
                charged += waiters[number].1;
                // Timers fire at whole milliseconds.
                let due_ms = (charged.saturating_sub(BURST) * 1_000).div_ceil(per_second);
                assert_eq!(at_ms, due_ms, "{number} of {key} at {per_second} a second");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_can_never_pass_does_not_wait_and_nothing_passes_at_once() {
    let bucket = limiter(ten_a_second(5));
    for queue in [false, true] {
        let _waits = queue.then(|| {
            assert!(bucket.check_n("a", 5).is_ok());
            waiting(bucket.acquire_n("a", 5))
        });
        for cost in [6, u64::MAX] {
            let denied = bucket.acquire_n("a", cost).await.unwrap_err();
            assert_eq!((denied.reason(), denied.retry_after()), (Reason::TooLarge, None));
            assert_eq!(
                bucket.acquire_timeout("a", cost, secs(1)).await.unwrap_err().reason(),
                Reason::TooLarge
            );
        }
        assert!(bucket.acquire_n("a", 0).await.is_ok());
    }
    let windows = limiter(Limit::window(Window::new(5, secs(1))).align(Alignment::Clock));
    assert_eq!(windows.acquire("a").await.unwrap_err().reason(), Reason::Unsupported);
    assert_eq!(windows.acquire_timeout("a", 1, secs(9)).await.unwrap_err().reason(), Reason::Unsupported);
    assert_eq!((windows.peek("a").remaining(), bucket.clock().ms()), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_without_room_is_told_at_once() {
    let builder = Limiter::builder(ten_a_second(1)).max_keys(1).on_full(OnFull::Refuse);
    let limiter = builder.clock(TokioTime::new()).build().unwrap();
    let full = (0..1_000).filter(|key| !limiter.allow(key)).last().unwrap();
    assert_eq!(limiter.acquire(&full).await.unwrap_err().reason(), Reason::Full);
    assert_eq!(limiter.clock().ms(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_nothing_or_of_ages_is_what_it_says() {
    let limiter = limiter(ten_a_second(1));
    assert!(limiter.acquire_timeout("a", 1, Duration::ZERO).await.is_ok());
    assert_eq!(
        limiter.acquire_timeout("a", 1, Duration::ZERO).await.unwrap_err().reason(),
        Reason::Exhausted
    );
    assert!(limiter.acquire_timeout("a", 1, Duration::MAX).await.is_ok());
    assert_eq!(limiter.clock().ms(), 100);
}

/// A token each year, and tokio's timers reach two years ahead.
#[tokio::test(start_paused = true)]
async fn a_wait_longer_than_a_timer_is_waited_for() {
    let year = secs(365 * 86_400);
    let limiter = limiter(Limit::bucket(Rate::new(1, year), 4));
    assert!(limiter.check_n("a", 4).is_ok());
    limiter.acquire_n("a", 4).await.unwrap();
    assert_eq!(limiter.clock().ms(), 4 * 365 * 86_400_000);
}

/// The line is as long as the limiter's time, for those who would wait for ever too.
#[tokio::test(start_paused = true)]
async fn a_line_ends_where_time_does() {
    let limiter = limiter(Limit::bucket(Rate::new(1, secs(86_400 * 365)), 20));
    assert!(limiter.check_n("a", 20).is_ok());
    let _first = waiting(limiter.acquire_n("a", 20));
    // Forty years: the queue is too long by the first look at it.
    let denied = limiter.acquire_timeout("a", 20, secs(86_400 * 365 * 39)).await.unwrap_err();
    assert_eq!((denied.reason(), limiter.clock().ms()), (Reason::Exhausted, 0));
    let years = limiter.reserve("a", 20, Duration::MAX).map(|place| place.wait()).unwrap_err();
    assert_eq!(years.reason(), Reason::Exhausted);
}

/// Readings that went back by a second: the turn comes a second later, no more.
#[tokio::test(start_paused = true)]
async fn a_clock_that_steps_back_adds_its_step() {
    let clock = Manual::new();
    clock.set(secs(10));
    let limiter = Limiter::builder(ten_a_second(1)).clock(clock.clone()).build().unwrap();
    let time = TokioTime::new();
    assert!(limiter.allow("a"));
    clock.set(secs(9));
    assert!(limiter.acquire_timeout("a", 1, ms(1_099)).await.is_err());
    limiter.acquire_timeout("a", 1, ms(1_100)).await.unwrap();
    assert_eq!(time.ms(), 1_100);
}

#[tokio::test(start_paused = true)]
async fn the_three_limiters_wait_alike() {
    let (limit, clock) = (ten_a_second(2), TokioTime::new());
    let slots = Limiter::builder(limit).clock(clock).build().unwrap();
    let exact = ExactLimiter::<String>::builder(limit).clock(clock).build().unwrap();
    let single = SingleLimiter::builder(limit).clock(clock).build().unwrap();
    for round in 1..=5 {
        let start_ms = clock.ms();
        let (one, another, third) = tokio::join!(slots.acquire("a"), exact.acquire("a"), single.acquire());
        assert!(one.is_ok() && another.is_ok() && third.is_ok());
        assert_eq!(clock.ms() - start_ms, if round <= 2 { 0 } else { 100 });
        let (one, another, third) = tokio::join!(
            slots.acquire_timeout("a", 2, ms(99)),
            exact.acquire_timeout("a", 2, ms(99)),
            single.acquire_timeout(2, ms(99)),
        );
        assert!(one.is_err() && another.is_err() && third.is_err());
        assert_eq!(slots.peek("a").remaining(), exact.peek("a").remaining());
        assert_eq!(slots.peek("a").remaining(), single.peek().remaining());
    }
    let (one, another, third) =
        tokio::join!(slots.acquire_n("a", 2), exact.acquire_n("a", 2), single.acquire_n(2));
    assert!(one.is_ok() && another.is_ok() && third.is_ok());
    assert_eq!(clock.ms(), 500);
}

/// While the head waits, checks are refused, and reservations stand behind it.
#[tokio::test(start_paused = true)]
async fn checks_and_reservations_do_not_overtake() {
    let limiter = Arc::new(limiter(ten_a_second(3)));
    assert!(limiter.check_n("a", 3).is_ok());
    let waiter = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move {
            limiter.acquire_n("a", 3).await.unwrap();
            limiter.clock().ms()
        }
    });
    while limiter.clock().ms() < 299 {
        sleep(ms(1)).await;
        assert!(!limiter.allow("a"));
    }
    assert_eq!(limiter.reserve("a", 1, secs(1)).unwrap().wait(), ms(101));
    assert_eq!(waiter.await.unwrap(), 300);
}

/// Somebody reserved beside the queue: who becomes its head is told at once that its turn would come too late.
#[tokio::test(start_paused = true)]
async fn a_head_whose_turn_comes_too_late_does_not_wait_for_it() {
    let limiter = limiter(ten_a_second(1));
    assert!(limiter.allow("a"));
    let (first, second, ()) =
        tokio::join!(limiter.acquire("a"), limiter.acquire_timeout("a", 1, ms(250)), async {
            sleep(ms(50)).await;
            assert_eq!(limiter.reserve("a", 1, secs(1)).unwrap().wait(), ms(150));
        });
    assert!(first.is_ok());
    assert_eq!((second.unwrap_err().retry_after(), limiter.clock().ms()), (Some(ms(200)), 100));
    assert_eq!(limiter.peek("a").debt(), 1);
}

/// A head that is not polled any more keeps the others for as long as they are willing to wait, and no longer.
#[tokio::test(start_paused = true)]
async fn one_that_is_never_polled_holds_up_nobody_beyond_a_deadline() {
    // The second limit hands on early: there the one behind has reserved, and goes on at its deadline.
    for (limit, goes) in [(ten_a_second(1), false), (Limit::bucket(Rate::per_second(1_000), 1), true)] {
        let limiter = limiter(limit);
        assert!(limiter.allow("a"));
        let stuck = waiting(limiter.acquire("a"));
        let answer = limiter.acquire_timeout("a", 1, ms(300)).await;
        assert_eq!((answer.is_ok(), limiter.clock().ms()), (goes, 300));
        // A token is there by now, but not for those who come later.
        assert!(limiter.acquire_timeout("a", 1, Duration::ZERO).await.is_err() || goes);
        drop(stuck);
        assert!(limiter.acquire_timeout("a", 1, ms(300)).await.is_ok());
    }
}

#[test]
fn what_waits_may_be_sent_to_another_thread() {
    fn is_sent<T: Send>(future: T) -> T {
        future
    }
    let limiter = Limiter::builder(ten_a_second(1)).seed(SEED).build().unwrap();
    let exact = ExactLimiter::<String>::builder(ten_a_second(1)).build().unwrap();
    let single = SingleLimiter::builder(ten_a_second(1)).build().unwrap();
    drop(is_sent(limiter.acquire_timeout("a", 1, ms(1))));
    drop(is_sent(exact.acquire_timeout("a", 1, ms(1))));
    drop(is_sent(single.acquire_timeout(1, ms(1))));
    // Dropped before they were polled, they were nowhere in line.
    assert!(limiter.allow("a") && exact.allow("a") && single.allow());
}
