//! Webhooks against real receivers of HTTP on this machine.
//!
//! Waits are bounded from below only: a busy machine may take as long as it likes.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod bounds;
mod policy;
mod receiver;
mod refused;
mod retries;
mod tls;

use std::sync::OnceLock;
use std::time::Duration;

use receiver::Receiver;
use tidegate::Manual;
use tidegate::notify::{Endpoint, WebhookSettings};
use tidegate::policy::{Event, EventKind, EventSettings, Policy, Request, Rules};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
/// Far longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A refusal of the key `user-KEY`: one that a policy has told, of another key.
fn refusal(key: u64) -> Event {
    static TOLD: OnceLock<Event> = OnceLock::new();
    let told = TOLD.get_or_init(|| {
        let rules = r#"rule = [{ name = "profile", key = "user", limit = { rate = "5/s", burst = 20 } }]"#;
        let rules = Rules::from_toml(rules, "limits.toml").unwrap();
        let policy =
            Policy::builder(rules).clock(Manual::new()).events(EventSettings::new()).build().unwrap();
        let request = Request::new("profile").user("ada");
        assert_eq!((0..21).filter(|_| policy.check(&request).is_allowed()).count(), 20);
        let mut told = None;
        policy
            .drain_events(|event| told = (event.kind == EventKind::Refused).then_some(event).or(told.take()));
        told.unwrap()
    });
    let mut event = told.clone();
    (event.fingerprint, event.key) = (key, Some(format!("user-{key}").into()));
    event
}

/// An endpoint that reaches that receiver, and is quick.
fn endpoint(name: &str, receiver: &Receiver) -> Endpoint {
    Endpoint::new(name, receiver.url())
        .secret(SECRET)
        .interval(Duration::from_millis(5))
        .allow_http(true)
        .allow_networks(["127.0.0.0/8".parse().unwrap()])
}

/// Attempts that follow each other quickly.
fn quick() -> WebhookSettings {
    let ms = Duration::from_millis;
    WebhookSettings::new().backoff(ms(5), ms(20)).attempts_max(5).attempt_timeout(LONG)
}

/// Until something holds; it panics after a long while.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
