//! What clients of a real server meet: addresses, routes, missing parts, fields.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use http::{HeaderName, Request, StatusCode};
use tidegate::Manual;
use tidegate::http::{
    ClientAddress, Extractor, Facts, Forwarding, Head, Missing, OnMissing, RateLimitLayer, Source,
};

use super::wire::{Connection, Version, serve_axum};
use super::{EVERYBODY, policy};

const ADDRESS: &str = r#"rule = [{ name = "address", key = "client_ip", limit = { window = "2/60s", opens = "first-request" } }]"#;

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

/// The statuses of requests that each have these fields.
async fn statuses(server: SocketAddr, requests: &[&[(&str, &str)]]) -> Vec<u16> {
    let mut connection = Connection::open(server, Version::Http1).await;
    let mut statuses = Vec::new();
    for fields in requests {
        let request = fields.iter().fold(Request::get("/"), |it, (name, value)| it.header(*name, *value));
        statuses.push(connection.send(request).await.status().as_u16());
    }
    statuses
}

#[tokio::test]
async fn clients_of_a_trusted_proxy_are_counted_one_by_one() {
    let addresses = ClientAddress::behind(["127.0.0.0/8".parse().unwrap()], Forwarding::XForwardedFor);
    let layer =
        RateLimitLayer::new(policy(ADDRESS, &Manual::new())).extract(Extractor::new().addresses(addresses));
    let server = serve_axum(hello().layer(layer)).await;
    let (a, spoofing) = (("x-forwarded-for", "192.0.2.7"), ("x-forwarded-for", "8.8.8.8, 192.0.2.7"));
    let b = ("x-forwarded-for", "192.0.2.8");
    assert_eq!(
        statuses(server, &[&[a], &[spoofing], &[a], &[spoofing], &[b]]).await,
        [200, 200, 429, 429, 200]
    );
}

#[tokio::test]
async fn a_client_that_is_no_proxy_names_itself_in_vain() {
    let layer = RateLimitLayer::new(policy(ADDRESS, &Manual::new()));
    let server = serve_axum(hello().layer(layer)).await;
    let named = |address| [("x-forwarded-for", address), ("forwarded", "for=8.8.8.8")];
    let requests = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(named);
    assert_eq!(statuses(server, &requests.each_ref().map(|it| &it[..])).await, [200, 200, 429]);
}

/// Whatever stands in the place of `{id}`, and however a path that is routed nowhere is spelt.
#[tokio::test]
async fn a_route_is_one_api() {
    let rules = r#"rule = [
        { name = "users", match = { api = "/users/{id}" }, key = "global", limit = { window = "2/1h" } },
        { name = "nowhere", match = { api = "/nowhere" }, key = "global", limit = { window = "1/1h" } },
    ]"#;
    let app = Router::new().route("/users/{id}", get(|| async { "user" }));
    let app = app.fallback(|| async { StatusCode::NOT_FOUND });
    let server = serve_axum(app.layer(RateLimitLayer::new(policy(rules, &Manual::new())))).await;
    let mut connection = Connection::open(server, Version::Http2).await;
    let mut statuses = Vec::new();
    for path in ["/users/1", "/users/2", "/users/3", "/nowhere", "//nowhere/", "/now%68ere", "/else"] {
        statuses.push(connection.get(path).await.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429, 404, 429, 429, 404]);
}

#[tokio::test]
async fn who_lacks_a_part_is_counted_refused_or_allowed_as_told() {
    let rules = r#"rule = [{ name = "key", key = "attribute:api_key", limit = { window = "1/1h" } }]"#;
    let api_key = || Source::Header(HeaderName::from_static("x-api-key"));
    for (on_missing, expected) in [
        // Those without a key have one count at their address.
        (OnMissing::Address, [200, 200, 429, 429]),
        (OnMissing::Refuse, [200, 400, 400, 429]),
        (OnMissing::Allow, [200, 200, 200, 429]),
    ] {
        let extractor = Extractor::new().attribute("api_key", api_key()).on_missing(on_missing);
        let layer = RateLimitLayer::new(policy(rules, &Manual::new())).extract(extractor);
        let server = serve_axum(hello().layer(layer)).await;
        let keyed: &[(&str, &str)] = &[("x-api-key", "k-1")];
        assert_eq!(statuses(server, &[keyed, &[], &[], keyed]).await, expected, "{on_missing:?}");
    }
}

/// Nobody passes uncounted where a server forgot to tell who is at the other end.
#[tokio::test]
async fn a_server_that_forgot_connect_info_serves_nobody() {
    let app = hello().layer(RateLimitLayer::new(policy(ADDRESS, &Manual::new())));
    let response = tower::ServiceExt::oneshot(app, Request::new(axum::body::Body::empty())).await.unwrap();
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn a_function_extracts() {
    fn by_user<'r>(head: Head<'r>) -> Result<Facts<'r>, Missing> {
        let user = head.headers.get("x-user").and_then(|user| user.to_str().ok());
        Ok(Facts::new("any").user(user.ok_or(Missing::refused("user"))?))
    }
    let rules = r#"rule = [{ name = "user", key = "user", limit = { window = "1/1h" } }]"#;
    let layer = RateLimitLayer::new(policy(rules, &Manual::new())).extract(by_user);
    let server = serve_axum(hello().layer(layer)).await;
    let (ada, bob): (&[_], &[_]) = (&[("x-user", "ada")], &[("x-user", "bob")]);
    assert_eq!(statuses(server, &[ada, ada, bob, &[]]).await, [200, 429, 200, 400]);
}

/// Five at once, 5/s: after three of them 2 are left, and another one in 0.2 s.
#[tokio::test]
async fn allowed_answers_tell_how_the_client_stands() {
    for version in [Version::Http1, Version::Http2] {
        let app = hello().layer(RateLimitLayer::new(policy(EVERYBODY, &Manual::new())));
        let mut connection = Connection::open(serve_axum(app).await, version).await;
        let mut told = Vec::new();
        for _ in 0..6 {
            let response = connection.get("/").await;
            let field = response.headers()["ratelimit"].to_str().unwrap().to_owned();
            let retry = response.headers().get("retry-after").map(|it| it.to_str().unwrap().to_owned());
            told.push((response.status().as_u16(), field, retry));
            assert!(response.headers().contains_key("ratelimit-policy"));
            assert_eq!(response.body() == "hello", response.status() == StatusCode::OK);
        }
        let [_, _, third, _, fifth, sixth] = &told[..] else { unreachable!() };
        assert_eq!(*third, (200, r#""bucket";r=2;t=1"#.to_owned(), None));
        assert_eq!(*fifth, (200, r#""bucket";r=0;t=1"#.to_owned(), None));
        assert_eq!(*sixth, (429, r#""bucket";r=0;t=1"#.to_owned(), Some("1".to_owned())));
    }
}
