//! A client that obeys what it is told is refused at most once in a window; one that does not, all the time.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use tidegate::Manual;
use tidegate::http::RateLimitLayer;
use tidegate::policy::{Policy, Request};

use super::policy;
use super::wire::serve_axum;

/// Ten in a minute, which begins with the first.
const TEN: &str =
    r#"rule = [{ name = "ten", key = "global", limit = { window = "10/60s", opens = "first-request" } }]"#;
const WINDOWS: u64 = 10;

/// The numbers of the field `RateLimit: "name";r=3;t=42`.
fn number(field: &str, name: &str) -> u64 {
    let parameter = field.split(';').find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
    parameter.unwrap().parse().unwrap()
}

#[derive(Debug, Default, PartialEq)]
struct Tally {
    served: u64,
    refused: u64,
}

struct World {
    clock: Manual,
    policy: Arc<Policy<Manual>>,
    url: String,
    client: reqwest::Client,
}

impl World {
    async fn new() -> Self {
        let clock = Manual::new();
        let policy = policy(TEN, &clock);
        let app =
            Router::new().route("/", get(|| async { "hello" })).layer(RateLimitLayer::new(policy.clone()));
        let url = format!("http://{}/", serve_axum(app).await);
        // The feature `webhook` has reqwest built without a provider of cryptography: it takes the process's.
        _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { clock, policy, url, client }
    }

    /// Asks once a second for ten minutes. Waiting is to move the clock. A neighbour takes one where `neighbour` says so,
    /// of what is left.
    async fn run(&self, obeys: bool, neighbour: impl Fn(u64) -> bool) -> Tally {
        let mut tally = Tally::default();
        let until = self.clock.elapsed() + Duration::from_secs(60 * WINDOWS);
        while self.clock.elapsed() < until {
            let response = self.client.get(&self.url).send().await.unwrap();
            let field = |name: &str| response.headers()[name].to_str().unwrap();
            let left = number(field("ratelimit"), "r");
            let wait = match response.status() {
                StatusCode::OK => {
                    tally.served += 1;
                    if left == 0 { number(field("ratelimit"), "t") } else { 0 }
                }
                StatusCode::TOO_MANY_REQUESTS => {
                    tally.refused += 1;
                    field("retry-after").parse().unwrap()
                }
                other => panic!("{other}"),
            };
            if neighbour(left) {
                assert!(self.policy.check(&Request::new("/")).is_allowed());
            }
            self.clock.advance(Duration::from_secs(if obeys { wait.max(1) } else { 1 }));
        }
        tally
    }
}

/// Alone it is never refused, and has all that there is: ten in each of ten minutes.
#[tokio::test]
async fn who_obeys_alone_is_never_refused() {
    let tally = World::new().await.run(true, |_| false).await;
    assert_eq!(tally, Tally { served: 10 * WINDOWS, refused: 0 });
}

/// Somebody takes the last one when it is told that one is left: it is refused once, and waits as told.
#[tokio::test]
async fn who_obeys_beside_a_neighbour_is_refused_once_in_a_window() {
    let tally = World::new().await.run(true, |left| left == 1).await;
    assert_eq!(tally, Tally { served: 9 * WINDOWS, refused: WINDOWS });
}

/// Sixty requests in each minute, of which ten are served.
#[tokio::test]
async fn who_does_not_obey_is_refused_fifty_times_in_a_window() {
    let tally = World::new().await.run(false, |_| false).await;
    assert_eq!(tally, Tally { served: 10 * WINDOWS, refused: 50 * WINDOWS });
}
