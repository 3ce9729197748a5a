//! The layer before services that are watched: readiness, errors, panics, what a refusal leaves untouched.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use tidegate::Manual;
use tidegate::http::{Charge, Cost, Extractor, RateLimit, RateLimitLayer};
use tidegate::policy::Policy;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::{EVERYBODY, policy};

type Answer = Response<Full<Bytes>>;

fn layer(policy: &Arc<Policy<Manual>>) -> RateLimitLayer<Manual> {
    RateLimitLayer::new(policy.clone()).extract(Extractor::new().without_address())
}

fn left(policy: &Policy<Manual>) -> u64 {
    policy.peek(&tidegate::policy::Request::new("/")).nearest().unwrap().remaining()
}

/// A service that panics unless the very one is called that has said that it is ready.
#[derive(Default)]
struct Strict {
    is_ready: bool,
    called: Arc<AtomicUsize>,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self { is_ready: false, called: self.called.clone() }
    }
}

impl Service<Request<()>> for Strict {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready), "called without being ready");
        self.called.fetch_add(1, Ordering::Relaxed);
        ready(Ok(Response::new(Full::from("hello"))))
    }
}

#[tokio::test]
async fn the_service_that_was_ready_is_called() {
    let (clock, strict) = (Manual::new(), Strict::default());
    let called = strict.called.clone();
    let mut limited = layer(&policy(EVERYBODY, &clock)).layer(strict);
    for round in 1..=3 {
        for number in 0..8 {
            let response = limited.ready().await.unwrap().call(Request::new(())).await.unwrap();
            assert_eq!(response.status() == StatusCode::OK, number < 5);
        }
        assert_eq!(called.load(Ordering::Relaxed), 5 * round);
        clock.advance(Duration::from_secs(1));
    }
    assert!(limited.clone().oneshot(Request::new(())).await.is_ok());
}

/// A place that was reserved for a request that is refused serves the next.
#[tokio::test]
async fn a_refusal_keeps_a_reserved_place_for_the_next() {
    let clock = Manual::new();
    let handler = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Answer::default()) });
    let one_at_a_time = ConcurrencyLimit::new(handler, 1);
    let mut limited = layer(&policy(EVERYBODY, &clock)).layer(one_at_a_time);
    let mut statuses = Vec::new();
    for _ in 0..7 {
        statuses.push(limited.ready().await.unwrap().call(Request::new(())).await.unwrap().status());
    }
    assert_eq!(statuses[4..], [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS, StatusCode::TOO_MANY_REQUESTS]);
    clock.advance(Duration::from_secs(1));
    assert_eq!(limited.ready().await.unwrap().call(Request::new(())).await.unwrap().status(), StatusCode::OK);
    // Dropped, it gives back what it has reserved.
    let mut other = limited.clone();
    limited.ready().await.unwrap();
    drop(limited);
    assert!(other.ready().await.is_ok());
}

#[tokio::test]
async fn a_service_that_is_not_ready_or_fails_to_be_is_told_on() {
    #[derive(Clone)]
    struct Never;
    impl Service<Request<()>> for Never {
        type Response = Answer;
        type Error = &'static str;
        type Future = Ready<Result<Answer, &'static str>>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
            Poll::Ready(Err("never"))
        }
        fn call(&mut self, _: Request<()>) -> Self::Future {
            ready(Err("never"))
        }
    }
    let policy = policy(EVERYBODY, &Manual::new());
    let mut limited: RateLimit<_, _> = layer(&policy).layer(Never);
    assert_eq!(limited.ready().await.err(), Some("never"));
    assert_eq!(left(&policy), 5);
}

#[tokio::test]
async fn an_error_or_a_panic_behind_leaves_the_count() {
    let policy = policy(EVERYBODY, &Manual::new());
    let layer = layer(&policy).charge(Charge::Extension);
    let fails = layer.layer(service_fn(|_: Request<()>| async { Err::<Answer, _>("broken") }));
    assert_eq!(fails.oneshot(Request::new(())).await.err(), Some("broken"));
    assert_eq!(left(&policy), 4);

    let panics =
        layer.layer(service_fn(|_: Request<()>| async { panic!("on purpose") as Result<Answer, ()> }));
    let mut response = Box::pin(panics.oneshot(Request::new(())));
    let poll = AssertUnwindSafe(|| response.as_mut().poll(&mut Context::from_waker(Waker::noop())));
    assert!(std::panic::catch_unwind(poll).is_err());
    drop(response);
    assert_eq!(left(&policy), 3);

    // One whose client is gone before it is answered has been counted once, and is charged nothing more.
    let waits = layer.layer(service_fn(|_: Request<()>| async {
        std::future::pending::<()>().await;
        Ok::<Answer, Infallible>(Response::default())
    }));
    let mut response = Box::pin(waits.oneshot(Request::new(())));
    assert!(response.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(response);
    assert_eq!(left(&policy), 2);

    // And what is counted goes on counting: 1, and a cost of 1 besides.
    let costs = layer.layer(service_fn(|_: Request<()>| async {
        let mut response = Answer::default();
        response.extensions_mut().insert(Cost(1));
        Ok::<_, Infallible>(response)
    }));
    assert_eq!(costs.clone().oneshot(Request::new(())).await.unwrap().status(), StatusCode::OK);
    assert_eq!(left(&policy), 0);
    assert_eq!(costs.oneshot(Request::new(())).await.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
}

/// What a body says of its length is what it has: of a refusal's and of the service's own.
#[tokio::test]
async fn a_body_is_as_long_as_it_says() {
    let policy = policy(EVERYBODY, &Manual::new());
    let limited = layer(&policy).layer(Strict::default());
    for number in 0..6 {
        let body = limited.clone().oneshot(Request::new(())).await.unwrap().into_body();
        let told = body.size_hint().exact().unwrap();
        assert!(!body.is_end_stream());
        let read = body.collect().await.unwrap().to_bytes();
        assert_eq!(read.len() as u64, told);
        assert_eq!(read == "hello", number < 5);
    }
}
