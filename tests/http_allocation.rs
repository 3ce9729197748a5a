//! What the layer allocates on the road of an admitted request: the fields, and nothing of its own.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod counting;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use counting::allocations;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use http_body_util::Full;
use tidegate::http::{Answering, Charge, Extract, Extractor, Head, PeerAddress, RateLimitLayer, Source};
use tidegate::policy::{Policy, Rules};
use tower::{Layer, Service};

/// Three rules, three keys.
const RULES: &str = r#"
rule = [
    { name = "address", key = "client_ip", limit = { rate = "1000000/s", burst = 1000000 } },
    { name = "user", key = "user", limit = { burst = "1000/15s", sustain = "20000/5m" } },
    { name = "all", match = { api = "/basket*", attribute = { method = "GET" } }, key = "global", limit = { window = "1000000/1s" } },
]
"#;

#[derive(Clone)]
struct Nothing;

impl Service<Request<()>> for Nothing {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::default()))
    }
}

fn request() -> Request<()> {
    let request = Request::get("/basket/7?page=2").header("x-user", "ada");
    request.extension(PeerAddress("192.0.2.7".parse().unwrap())).body(()).unwrap()
}

fn extractor() -> Extractor {
    Extractor::new().user(Source::Header(HeaderName::from_static("x-user")))
}

fn poll<T>(future: impl Future<Output = T>) -> T {
    let Poll::Ready(output) = std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) else {
        unreachable!("nothing here waits")
    };
    output
}

#[test]
fn an_admitted_request_allocates_its_fields_and_nothing_else() {
    let policy = Arc::new(Policy::new(Rules::from_toml(RULES, "limits.toml").unwrap()).unwrap());
    let mut limited = RateLimitLayer::new(policy.clone()).extract(extractor()).layer(Nothing);
    // Keys are known, and the thread to the collector of what is replaced.
    assert_eq!(poll(limited.call(request())).unwrap().status(), StatusCode::OK);

    let (extractor, first) = (extractor(), request());
    let of_fields = allocations(|| {
        let facts = extractor.extract(Head::of(&first)).unwrap();
        let verdict = facts.with_request(|request| policy.check(request));
        let mut headers = HeaderMap::new();
        Answering::default().fields(&verdict).apply(&mut headers);
        black_box(headers);
    });
    let second = request();
    let of_the_layer = allocations(|| _ = black_box(poll(limited.call(second))));
    assert_eq!(of_the_layer, of_fields);

    let third = request();
    let of_the_extractor = allocations(|| _ = black_box(extractor.extract(Head::of(&third))));
    assert_eq!(of_the_extractor, 0);

    // A charge to come takes what is known along: this test can fail.
    let mut charged = RateLimitLayer::new(policy).extract(extractor).charge(Charge::Extension).layer(Nothing);
    let fourth = request();
    assert!(allocations(|| _ = black_box(poll(charged.call(fourth)))) > of_fields);
}
