//! Waiters that come, want, give up and leave as they like, beside a twin.
#![cfg(feature = "tokio")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/paused.rs"]
mod paused;

use std::sync::Arc;

use paused::{TokioTime, limiter, ms};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tidegate::{Limit, Rate};
use tokio::time::{sleep, timeout};

/// One waiter; times in ms.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    /// When it comes.
    comes: u64,
    cost: u64,
    /// How long it is willing to wait.
    timeout: Option<u64>,
    /// After how long its future is dropped.
    patience: Option<u64>,
}

/// How a waiter ended, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Went(u64),
    Denied(u64),
    Left(u64),
}

/// The bucket of a waiter's world: a token each `interval` ms.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    interval: u64,
    burst: u64,
}

/// What the twin knows of a waiter.
#[derive(Clone, Copy, Debug)]
struct Told {
    cost: u64,
    /// When it stopped queueing: it became the head, or left.
    queued_until: u64,
    /// When the next one may be the head.
    over: u64,
    /// If it reserved: when, and where the bucket's arrival time stood before and after. If it left, it gave that back.
    reserved: Option<(u64, u64, u64)>,
    end: End,
}

/// A queue as anybody would write it. Waiters are told of in the order of coming: those who come later change nothing for
/// those before.
#[derive(Debug)]
struct Twin {
    bucket: Bucket,
    told: Vec<Told>,
}

impl Twin {
    /// When the bucket is full again, as it stands at a time: as the last one who had reserved by then left it.
    fn full_at(&self, time: u64) -> u64 {
        for told in self.told.iter().rev() {
            match (told.reserved, told.end) {
                (Some((at, before, _)), End::Left(left)) if at <= time && left <= time => return before,
                (Some((at, _, after)), _) if at <= time => return after,
                _ => {}
            }
        }
        0
    }

    /// When `cost` tokens are there that are reserved at a time.
    fn turn(&self, time: u64, cost: u64) -> u64 {
        let Bucket { interval, burst } = self.bucket;
        (self.full_at(time).max(time) + cost * interval).saturating_sub(burst * interval).max(time)
    }

    /// Tells of the next waiter. `None`: two things happen in one millisecond, and which comes first is nobody's promise.
    fn tell(&self, waiter: &Waiter) -> Option<Told> {
        let Waiter { comes, cost, timeout, patience } = *waiter;
        let (deadline, leaves) =
            (timeout.map(|timeout| comes + timeout), patience.map(|patience| comes + patience));
        if self.told.iter().any(|told| told.over == comes || told.queued_until == comes) {
            return None;
        }
        let denied =
            |time| Told { cost, queued_until: time, over: time, reserved: None, end: End::Denied(time) };
        let before: u64 =
            self.told.iter().filter(|told| told.queued_until > comes).map(|told| told.cost).sum();
        if deadline.is_some_and(|end| self.turn(comes, before + cost) > end) {
            return Some(denied(comes));
        }
        // It queues until it is the head, its deadline passes or it leaves.
        let head_at = self.told.iter().map(|told| told.over).max().unwrap_or(0).max(comes);
        let given_up = [deadline, leaves].into_iter().flatten().min().unwrap_or(u64::MAX);
        if head_at > comes && (given_up == head_at || given_up < head_at && deadline == leaves) {
            return None;
        }
        if given_up < head_at {
            let end = if leaves == Some(given_up) { End::Left(given_up) } else { End::Denied(given_up) };
            return Some(Told { end, ..denied(given_up) });
        }
        let goes = self.turn(head_at, cost);
        if deadline.is_some_and(|end| goes > end) {
            return Some(denied(head_at));
        }
        if leaves == Some(goes) {
            return None;
        }
        let full_at = self.full_at(head_at);
        let reserved = Some((head_at, full_at, full_at.max(head_at) + cost * self.bucket.interval));
        let left = leaves.filter(|leaves| *leaves < goes);
        let end = left.map_or(End::Went(goes), End::Left);
        Some(Told { cost, queued_until: head_at, over: left.unwrap_or(goes), reserved, end })
    }
}

fn twin(bucket: Bucket, waiters: &[Waiter]) -> Option<Vec<End>> {
    let mut twin = Twin { bucket, told: Vec::new() };
    for waiter in waiters {
        twin.told.push(twin.tell(waiter)?);
    }
    Some(twin.told.iter().map(|told| told.end).collect())
}

async fn act(waiter: Waiter, limiter: Arc<tidegate::Limiter<TokioTime>>) -> End {
    sleep(ms(waiter.comes)).await;
    let wait = async {
        match waiter.timeout {
            Some(timeout) => limiter.acquire_timeout("a", waiter.cost, ms(timeout)).await,
            None => limiter.acquire_n("a", waiter.cost).await,
        }
    };
    let answer = match waiter.patience {
        Some(patience) => timeout(ms(patience), wait).await,
        None => Ok(wait.await),
    };
    let now = limiter.clock().ms();
    match answer {
        Ok(Ok(())) => End::Went(now),
        Ok(Err(_)) => End::Denied(now),
        Err(_) => End::Left(now),
    }
}

/// How all of them end, and what is left of the bucket in the end.
fn acted(bucket: Bucket, waiters: &[Waiter]) -> (Vec<End>, u64) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let rate = Rate::new(1, ms(bucket.interval));
        let limiter = Arc::new(limiter(Limit::bucket(rate, bucket.burst)));
        let tasks: Vec<_> =
            waiters.iter().map(|waiter| tokio::spawn(act(*waiter, Arc::clone(&limiter)))).collect();
        let mut ends = Vec::new();
        for task in tasks {
            ends.push(task.await.unwrap());
        }
        sleep(ms(bucket.interval * bucket.burst)).await;
        (ends, limiter.peek("a").remaining())
    })
}

fn waiters() -> impl Strategy<Value = (Bucket, Vec<Waiter>)> {
    (5..40_u64, 1..6_u64).prop_flat_map(|(interval, burst)| {
        // At the shortest, a burst lasts for 5 ms: nobody is handed on early.
        let waiter = (
            1..60_u64,
            1..=burst,
            prop::option::weighted(0.4, 0..300_u64),
            prop::option::weighted(0.4, 1..300_u64),
        );
        (Just(Bucket { interval, burst }), prop::collection::vec(waiter, 1..14)).prop_map(
            |(bucket, parts)| {
                let mut comes = 0;
                let waiters = parts.into_iter().map(|(gap, cost, timeout, patience)| {
                    comes += gap;
                    Waiter { comes, cost, timeout, patience }
                });
                (bucket, waiters.collect())
            },
        )
    })
}

/// By hand: a token each 10 ms, two at once. The first empties the bucket, which is full again at 21 ms; the second puts
/// that off to 31 ms, so its turn is a burst (20 ms) before. The third leaves the queue. With it and the fourth the bucket
/// would be full at 61 ms: the fourth's turn, at 41 ms, is after its time. The fifth stands right behind the second.
#[test]
fn the_twin_queues_as_it_should() {
    let waiter = |comes, cost, timeout, patience| Waiter { comes, cost, timeout, patience };
    let waiters = [
        waiter(1, 2, None, None),
        waiter(3, 1, Some(8), Some(9)),
        waiter(4, 2, None, Some(5)),
        waiter(6, 1, Some(14), None),
        waiter(10, 1, Some(60), None),
    ];
    let ends = vec![End::Went(1), End::Went(11), End::Left(9), End::Denied(6), End::Went(21)];
    let bucket = Bucket { interval: 10, burst: 2 };
    assert_eq!(twin(bucket, &waiters), Some(ends.clone()));
    assert_eq!(acted(bucket, &waiters), (ends, 2));
}

/// The histories below are worth something: every end happens, and few have a tie. Who is not denied at once never is:
/// those before it can only leave.
#[test]
fn histories_have_all_ends() {
    let mut runner = TestRunner::deterministic();
    let (mut waited, mut denied, mut denied_later, mut left, mut ties) = (0, 0, 0, 0, 0);
    for _ in 0..200 {
        let (bucket, waiters) = waiters().new_tree(&mut runner).unwrap().current();
        let Some(ends) = twin(bucket, &waiters) else {
            ties += 1;
            continue;
        };
        for (waiter, end) in waiters.iter().zip(ends) {
            match end {
                End::Went(at) => waited += usize::from(at > waiter.comes),
                End::Denied(at) if at == waiter.comes => denied += 1,
                End::Denied(_) => denied_later += 1,
                End::Left(_) => left += 1,
            }
        }
    }
    assert!(waited > 300 && denied > 50 && left > 40, "{waited} waited, {denied} were denied, {left} left");
    assert_eq!(denied_later, 0);
    assert!(ties < 30, "{ties} ties");
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::default() })]

    /// Each goes on, is denied and leaves in the very millisecond in which the twin's does, and what is left in the end is the
    /// whole burst.
    #[test]
    fn waiters_end_as_the_twins((bucket, waiters) in waiters()) {
        let expected = twin(bucket, &waiters);
        prop_assume!(expected.is_some());
        let (ends, left) = acted(bucket, &waiters);
        prop_assert_eq!(ends, expected.unwrap());
        prop_assert_eq!(left, bucket.burst);
    }
}
