//! The worked example of fine-grained rate limiting: burst 30 in 15 s, sustain 100 in 300 s.

use http::HeaderMap;
use serde_json::json;
use tidegate::http::{Answering, Body};
use tidegate::policy::Request;

use super::{ask, field, json, lines, policy, secs};

const EXAMPLE: &str = r#"
body = "fgrl"

[[rule]]
name = "stats"
key = "user"
limit = { burst = "30/15s", sustain = "100/300s", opens = "first-request" }
"#;

#[test]
fn the_thirty_fifth_request_is_told_exactly_this() {
    let (policy, clock) = policy(EXAMPLE);
    let request = Request::new("stats").user("ada");
    let _ = ask(&policy, &request, 34);
    clock.advance(secs(6));
    let refusal = Answering::new().refusal(&policy.check(&request), &HeaderMap::new());
    assert_eq!(refusal.status(), 429);
    let headers = refusal.headers();
    let told: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    let mut expected = vec![
        ("content-type", "application/json"),
        ("cache-control", "no-store"),
        ("ratelimit-policy", r#""burst";q=30;w=15, "sustain";q=100;w=300"#),
        ("ratelimit", r#""burst";r=0;t=9, "sustain";r=65;t=294"#),
        ("retry-after", "9"),
    ];
    let mut told = told;
    (told.sort_unstable(), expected.sort_unstable());
    assert_eq!(told, expected);
    let body = json!({
        "version": 1, "currentRequests": 35, "maxRequests": 30, "periodInSeconds": 15, "type": "burst",
    });
    assert_eq!(json(&refusal), body);
    let newer = Answering::new().body(Body::FgrlLimitType).refusal(&policy.peek(&request), &HeaderMap::new());
    let body = json!({
        "version": 1, "currentRequests": 35, "maxRequests": 30, "periodInSeconds": 15, "limitType": "Rate",
    });
    assert_eq!(json(&newer), body, "a look tells the same and counts nothing");
}

/// The published table by rows: requests in each 15 s, and how many of them are accepted.
#[test]
fn the_table_of_the_example_is_told_row_by_row() {
    let (policy, clock) = policy(EXAMPLE);
    let request = Request::new("stats").user("ada");
    let answering = Answering::new();
    // Begins at, requests, accepted, and of the last one: Retry-After, who is to wait for, counted there.
    let rows = [
        (0, 35, 30, Some(("15", "burst", 35))),
        (15, 28, 28, None),
        (30, 21, 21, None),
        // 36 requests at once; at t = 50 s one more is asked below.
        (50, 36, 16, Some(("250", "sustain", 120))),
        (60, 24, 0, Some(("240", "sustain", 144))),
        (285, 4, 0, Some(("15", "sustain", 148))),
    ];
    for (begins, requests, accepted, refused) in rows {
        clock.advance(secs(begins) - clock.elapsed());
        let mut last = None;
        let passed = (0..requests).filter(|_| last.insert(policy.check(&request)).is_allowed()).count();
        assert_eq!(passed, accepted, "at {begins} s");
        let verdict = last.unwrap();
        let headers = answering.refusal(&verdict, &HeaderMap::new());
        let retry_after = field(headers.headers(), "retry-after");
        assert_eq!(
            retry_after,
            refused.map(|(wait, _, _)| wait),
            "at {begins} s: {:?}",
            answering.fields(&verdict)
        );
        if let Some((_, kind, counted)) = refused {
            let body = json(&headers);
            assert_eq!(
                (body["type"].as_str(), body["currentRequests"].as_u64()),
                (Some(kind), Some(counted))
            );
        }
    }
    // The periods are over: everything is as at the beginning.
    clock.advance(secs(15));
    let fields = answering.fields(&policy.check(&request));
    assert_eq!(
        lines(&fields),
        [
            r#"ratelimit-policy: "burst";q=30;w=15, "sustain";q=100;w=300"#,
            r#"ratelimit: "burst";r=29;t=15, "sustain";r=99;t=300"#,
        ]
    );
}
