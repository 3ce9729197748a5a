//! A policy's events, from a refusal to the message that tells of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tidegate::Manual;
use tidegate::notify::Webhooks;
use tidegate::policy::{EventSettings, Pattern, Policy, Request, Rules};

use super::receiver::{Got, Receiver, Say};
use super::{LONG, SECRET, endpoint, eventually, quick, refusal};

/// Five at once, one a second: an empty bucket fills in 5 s.
const RULES: &str = r#"
name = "game"
rule = [{ name = "profile", key = "user", limit = { rate = "1/s", burst = 5 } }]
"#;

fn policy(settings: EventSettings) -> (Arc<Policy<Manual>>, Manual) {
    let clock = Manual::at_unix(Duration::from_secs(1_767_225_600));
    let rules = Rules::from_toml(RULES, "limits.toml").unwrap();
    let policy = Policy::builder(rules).clock(clock.clone()).events(settings).build().unwrap();
    (Arc::new(policy), clock)
}

fn ask(policy: &Policy<Manual>, user: &str, times: usize) {
    (0..times).for_each(|_| _ = policy.check(&Request::new("profile").user(user)).is_allowed());
}

#[tokio::test]
async fn a_partner_learns_which_limit_by_how_much_and_when_it_is_over() {
    let receiver = Receiver::new(vec![Say::status(200)]).await;
    let (policy, clock) = policy(EventSettings::new());
    let worst = Arc::clone(&policy);
    let settings = quick().offenders(move || worst.offenders(100));
    let of_ada = endpoint("ada", &receiver).keys([Pattern::Exact("ada".to_owned())]);
    let webhooks = Webhooks::start([of_ada], settings).unwrap();
    ask(&policy, "ada", 8);
    ask(&policy, "bob", 100);
    policy.drain_events(|event| webhooks.send(&event));
    eventually("the refusal is told", || webhooks.counts().events_delivered == 2).await;
    ask(&policy, "ada", 2);
    clock.advance(Duration::from_secs(5));
    policy.drain_events(|event| webhooks.send(&event));
    clock.advance(Duration::from_secs(5));
    policy.drain_events(|event| webhooks.send(&event));
    let counts = webhooks.stop(LONG).await;

    let got = receiver.got();
    assert!(got.iter().all(|message| message.is_signed_with(SECRET)));
    assert_eq!(got[0].data()["policy"], "game");
    let events: Vec<serde_json::Value> =
        got.iter().flat_map(|message| message.data()["events"].as_array().unwrap().clone()).collect();
    assert_eq!(counts.events_delivered, events.len() as u64);
    let told: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(told, ["warned", "refused", "still_refusing", "recovered"]);
    for (event, field, value) in [
        (1, "rule", json!("profile")),
        (1, "key", json!("ada")),
        (1, "limit", json!(5)),
        (1, "period_s", json!(5)),
        (1, "refill_per_s", json!(1)),
        (1, "used", json!(5)),
        (1, "remaining", json!(0)),
        (1, "refused", json!(3)),
        (1, "reason", json!("exhausted")),
        (1, "retry_after_s", json!(1)),
        (1, "at", json!("2026-01-01T00:00:00Z")),
        (3, "used", json!(0)),
        (3, "remaining", json!(5)),
        (2, "refused", json!(2)),
        (3, "refused", json!(5)),
        (3, "at", json!("2026-01-01T00:00:10Z")),
    ] {
        assert_eq!(events[event][field], value, "{field} of {}", events[event]);
    }
    // Bob was refused far more often, and that is nothing to Ada.
    let offenders = got[0].data()["offenders"].clone();
    assert_eq!(
        (&offenders[0]["key"], offenders.as_array().unwrap().len()),
        (&json!("ada"), 1),
        "{offenders}"
    );
    assert!(got.iter().all(|message| !String::from_utf8_lossy(&message.body).contains("bob")));
}

#[tokio::test]
async fn a_policy_that_leaves_keys_out_tells_no_partner_of_them() {
    let (partner, operator) =
        (Receiver::new(vec![Say::status(200)]).await, Receiver::new(vec![Say::status(200)]).await);
    let (policy, _clock) = policy(EventSettings::new().without_keys());
    let of_ada = endpoint("ada", &partner).keys([Pattern::Glob("*".to_owned())]);
    let webhooks = Webhooks::start([of_ada, endpoint("pager", &operator)], quick()).unwrap();
    ask(&policy, "ada", 6);
    policy.drain_events(|event| webhooks.send(&event));
    webhooks.stop(LONG).await;
    assert_eq!((partner.count(), operator.count()), (0, 1));
    let data = operator.got()[0].data();
    assert!(data["events"][0]["key"].is_null());
    assert_eq!(data["events"][0]["fingerprint"].as_str().map(str::len), Some(12));
}

/// A function of the host's, and its panic is the host's too: the endpoint goes on.
#[tokio::test]
async fn a_panic_of_the_offenders_ends_no_endpoint() {
    let receiver = Receiver::new(vec![Say::status(200)]).await;
    let (policy, _clock) = policy(EventSettings::new());
    ask(&policy, "ada", 8);
    let calls = AtomicU64::new(0);
    let worst = Arc::clone(&policy);
    let settings = quick().offenders(move || {
        assert!(calls.fetch_add(1, Ordering::Relaxed) > 0, "the first call panics, as the test wants it");
        worst.offenders(100)
    });
    let webhooks = Webhooks::start([endpoint("ada", &receiver)], settings).unwrap();
    for number in 1..=2 {
        webhooks.send(&refusal(number));
        eventually("it is delivered", || webhooks.counts().delivered == number).await;
    }
    let told = |got: &Got| got.data()["offenders"].as_array().unwrap().len();
    assert_eq!(receiver.got().iter().map(told).collect::<Vec<_>>(), [0, 1]);
}
