//! What tests of waiting share: a limiter's clock that is tokio's, which a test may pause.

#![allow(dead_code, unreachable_pub, reason = "each test that includes this file uses a part of it")]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate::{Clock, Denied, Limit, Limiter};
use tokio::time::Instant;

use super::common::SEED;

/// Tokio's time. Paused, it jumps to the next timer when every task sleeps.
#[derive(Clone, Copy, Debug)]
pub struct TokioTime {
    start: Instant,
}

impl TokioTime {
    /// Starts now. To be made within a runtime.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }

    /// Milliseconds since it was made.
    pub fn ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).expect("milliseconds of a test")
    }
}

impl Clock for TokioTime {
    fn coarse(&self) -> u64 {
        self.precise()
    }

    fn precise(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).expect("nanoseconds of a test")
    }

    fn lag_bound_ns(&self) -> Option<u64> {
        Some(0)
    }

    fn unix(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A limiter on tokio's time.
pub fn limiter(limit: Limit) -> Limiter<TokioTime> {
    Limiter::builder(limit).seed(SEED).clock(TokioTime::new()).build().expect("the test's own limit")
}

/// A future that was polled once, and waits.
pub fn waiting<F: Future<Output = Result<(), Denied>>>(future: F) -> Pin<Box<F>> {
    let mut future = Box::pin(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => future,
        Poll::Ready(answer) => panic!("it does not wait: {answer:?}"),
    }
}

/// Whole milliseconds.
pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
