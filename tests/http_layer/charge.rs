//! What a response says that its request has cost.

use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router};
use http::{HeaderName, StatusCode};
use tidegate::Manual;
use tidegate::http::{Charge, Cost, Extractor, OnMissing, RateLimitLayer, Source};
use tidegate::policy::{Policy, Request};

use super::policy;
use super::wire::{Connection, Version, serve_axum};

/// Ten at once and 1/s; what is charged may overdraw it.
const TOKENS: &str = r#"rule = [{ name = "tokens", key = "global", limit = { rate = "1/s", burst = 10 } }]"#;

const COST: HeaderName = HeaderName::from_static("x-cost");

fn left(policy: &Policy<Manual>) -> u64 {
    policy.peek(&Request::new("/")).nearest().unwrap().remaining()
}

async fn answers<R: IntoResponse + Send + Sync + Clone + 'static>(
    charge: Option<Charge>,
    answer: R,
) -> (std::sync::Arc<Policy<Manual>>, Connection) {
    let policy = policy(TOKENS, &Manual::new());
    let mut layer = RateLimitLayer::new(policy.clone());
    if let Some(charge) = charge {
        layer = layer.charge(charge);
    }
    let app = Router::new().route("/", get(move || async move { answer })).layer(layer);
    (policy, Connection::open(serve_axum(app).await, Version::Http1).await)
}

/// 10 − 1 − 3 = 6; 6 − 1 − 3 = 2; 2 − 1 − 3 = −2: refused, and 3 s to the next whole token.
#[tokio::test]
async fn an_extension_is_charged_on_top_of_the_check() {
    let (policy, mut connection) = answers(Some(Charge::Extension), (Extension(Cost(3)), "hello")).await;
    let mut stand = Vec::new();
    for _ in 0..3 {
        assert_eq!(connection.get("/").await.status(), StatusCode::OK);
        stand.push(left(&policy));
    }
    assert_eq!(stand, [6, 2, 0]);
    let refused = connection.get("/").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "3");
}

#[tokio::test]
async fn a_field_is_charged_and_taken_out() {
    let (policy, mut connection) = answers(Some(Charge::Field(COST)), ([(COST, "3")], "hello")).await;
    let response = connection.get("/").await;
    assert_eq!((left(&policy), response.headers().get(COST)), (6, None));

    let (policy, mut connection) = answers(Some(Charge::FieldKept(COST)), ([(COST, "3")], "hello")).await;
    let response = connection.get("/").await;
    assert_eq!((left(&policy), response.headers()[COST].to_str().unwrap()), (6, "3"));
}

/// The fields are those after the charge: 6 left, not 9.
#[tokio::test]
async fn the_fields_tell_how_things_stand_after_the_charge() {
    let (_, mut connection) = answers(Some(Charge::Field(COST)), ([(COST, "3")], "hello")).await;
    assert_eq!(connection.get("/").await.headers()["ratelimit"], r#""bucket";r=6;t=1"#);
    let (_, mut connection) = answers(Some(Charge::Field(COST)), "hello").await;
    assert_eq!(connection.get("/").await.headers()["ratelimit"], r#""bucket";r=9;t=1"#);
}

#[tokio::test]
async fn what_is_no_cost_is_charged_nothing_more() {
    for odd in ["", "0", "-3", "+", "three", "1.5", "18446744073709551616"] {
        let (policy, mut connection) = answers(Some(Charge::Field(COST)), ([(COST, odd)], "hello")).await;
        assert_eq!(connection.get("/").await.status(), StatusCode::OK);
        assert_eq!(left(&policy), 9, "{odd:?}");
    }
    // Nor is anything, unless the layer was told to.
    let (policy, mut connection) = answers(None, (Extension(Cost(3)), [(COST, "3")], "hello")).await;
    assert_eq!(connection.get("/").await.headers()[COST], "3");
    assert_eq!(left(&policy), 9);
}

/// The most there is takes a bucket as far down as it may be overdrawn, and no further: nothing wraps.
#[tokio::test]
async fn the_largest_cost_overdraws_and_wraps_nowhere() {
    let (policy, mut connection) =
        answers(Some(Charge::Extension), (Extension(Cost(u64::MAX)), "hello")).await;
    assert_eq!(connection.get("/").await.status(), StatusCode::OK);
    assert_eq!(left(&policy), 0);
    assert_eq!(connection.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
}

/// Of a request that is refused nothing is charged: the service behind has not seen it.
#[tokio::test]
async fn a_user_is_charged_for_what_the_user_asked() {
    let rules = r#"rule = [{ name = "user", key = "user", limit = { rate = "1/s", burst = 10 } }]"#;
    let policy = policy(rules, &Manual::new());
    let user = || tidegate::http::Source::Header(HeaderName::from_static("x-user"));
    let layer = RateLimitLayer::new(policy.clone())
        .extract(tidegate::http::Extractor::new().user(user()))
        .charge(Charge::Extension);
    let app = Router::new().route("/", get(|| async { (Extension(Cost(8)), "hello") })).layer(layer);
    let mut connection = Connection::open(serve_axum(app).await, Version::Http1).await;
    let mut statuses = Vec::new();
    for user in ["ada", "ada", "ada", "bob"] {
        let request = http::Request::get("/").header("x-user", user);
        statuses.push(connection.send(request).await.status().as_u16());
    }
    // Ada: 10 − 9 = 1, 1 − 9 = −8.
    assert_eq!(statuses, [200, 200, 429, 200]);
    let of = |user| policy.peek(&Request::new("/").user(user)).nearest().unwrap().remaining();
    assert_eq!((of("ada"), of("bob"), of("eve")), (0, 1, 10));
}

/// A request that goes on uncounted is not told its cost either.
#[tokio::test]
async fn of_an_uncounted_request_the_field_is_taken_out_too() {
    let policy = policy(TOKENS, &Manual::new());
    let extractor = Extractor::new().user(Source::Header(HeaderName::from_static("x-user")));
    let layer = RateLimitLayer::new(policy.clone()).extract(extractor.on_missing(OnMissing::Allow));
    let app = Router::new().route("/", get(|| async { ([(COST, "3")], "hello") }));
    let app = app.layer(layer.charge(Charge::Field(COST)));
    let mut connection = Connection::open(serve_axum(app).await, Version::Http1).await;
    let response = connection.get("/").await;
    assert_eq!((response.status(), response.headers().get(COST), left(&policy)), (StatusCode::OK, None, 10));
}
