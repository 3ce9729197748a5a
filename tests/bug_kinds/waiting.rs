//! Kinds of bugs in waiting for tokens.

use std::sync::Arc;

use tidegate::{Limit, Rate, Reason};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::common::secs;
use super::paused::{limiter, ms, waiting};

/// Whoever asks for a token gets it as it comes, and who needs many at once never sees them together.
#[tokio::test(start_paused = true)]
async fn big_requests_starve() {
    let limiter = Arc::new(limiter(Limit::bucket(Rate::per_second(10), 5)));
    assert!(limiter.check_n("a", 5).is_ok());
    let mut small = JoinSet::new();
    let big = {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move {
            limiter.acquire_n("a", 5).await.unwrap();
            limiter.clock().ms()
        })
    };
    // Twice as much as comes back, from before the big one's turn until long after it; and checks.
    for number in 0..40 {
        sleep(ms(50)).await;
        let limiter = Arc::clone(&limiter);
        assert!(!limiter.allow("a"));
        small.spawn(async move {
            limiter.acquire("a").await.unwrap();
            (limiter.clock().ms(), number)
        });
    }
    assert_eq!(big.await.unwrap(), 500);
    let mut went = small.join_all().await;
    went.sort_unstable();
    let due = (0..40).map(|number| (600 + number * 100, number)).collect::<Vec<_>>();
    assert_eq!(went, due);
}

/// A waiter that gives up has been charged already, and what it waited for lapses.
#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_keeps_its_tokens() {
    let limiter = limiter(Limit::bucket(Rate::per_second(10), 5));
    assert!(limiter.check_n("a", 5).is_ok());
    let head = waiting(limiter.acquire_n("a", 5));
    let queued = waiting(limiter.acquire_n("a", 4));
    let timed_out = async { assert!(timeout(ms(150), limiter.acquire_n("a", 3)).await.is_err()) };
    let last = async {
        limiter.acquire("a").await.unwrap();
        assert_eq!(limiter.clock().ms(), 250);
    };
    let leave = async {
        sleep(ms(250)).await;
        drop((queued, head));
    };
    tokio::join!(timed_out, last, leave);
    // Two and a half had come, one is taken.
    assert_eq!((limiter.peek("a").remaining(), limiter.peek("a").next_after()), (1, ms(50)));
    // A waiter that is dropped after its turn, before it noticed, is no different.
    let late = waiting(limiter.acquire_n("a", 2));
    sleep(ms(350)).await;
    drop(late);
    assert_eq!(limiter.peek("a").remaining(), 5);
}

/// A waiter learns that it waited for nothing when its time is over, or later still, though its queue was too long from
/// the start.
#[tokio::test(start_paused = true)]
async fn a_waiter_waits_past_its_deadline() {
    let limiter = limiter(Limit::bucket(Rate::per_second(10), 5));
    assert!(limiter.check_n("a", 5).is_ok());
    let now = || limiter.clock().ms();
    // Its turn is at 500 ms, the next one's 200 ms later.
    let head = waiting(limiter.acquire_n("a", 5));
    let next = waiting(limiter.acquire_n("a", 2));
    // At 800 ms, and at once known to be so.
    let denied = limiter.acquire_timeout("a", 1, ms(799)).await.unwrap_err();
    assert_eq!((denied.reason(), now()), (Reason::Exhausted, 0));
    let in_time = async {
        limiter.acquire_timeout("a", 1, ms(800)).await.unwrap();
        assert_eq!(now(), 800);
    };
    let others = async { tokio::join!(head, next) };
    let (_, (first, second)) = tokio::join!(in_time, others);
    assert!(first.is_ok() && second.is_ok());

    // A head that never goes on: the deadline passes in the queue, and nothing is charged.
    let stuck = waiting(limiter.acquire_n("a", 5));
    let start = now();
    assert!(limiter.acquire_timeout("a", 1, secs(1)).await.is_err());
    assert_eq!(now() - start, 1_000);
    drop(stuck);
    assert_eq!(limiter.peek("a").remaining(), 5);
}
