//! What a refusal says.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde_json::json;
use tidegate::http::{Answer, Answering, Body};
use tidegate::policy::Request;
use tidegate::{Limit, Limiter, Manual, OnFull, Window};

use super::{accepts, ask, field, json, policy, secs, text};

const TWO: &str = r#"
[[rule]]
name = "items"
key = "user"
limits = [
    { window = "2/10s", opens = "first-request" },
    { burst = "1/15s", sustain = "2/300s", opens = "first-request" },
]

[[rule]]
name = "all"
key = "global"
limit = { window = "100/10s", opens = "first-request" }
"#;

#[test]
fn a_game_back_end_s_body() {
    let (policy, _) = policy(
        "body = 'game-backend'\n[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { rate = '1/30s', burst = 2 }\n",
    );
    let request = Request::new("x").user("ada");
    let refusal = Answering::new().refusal(&ask(&policy, &request, 3), &accepts("text/plain"));
    assert_eq!(field(refusal.headers(), "content-type"), Some("application/json"));
    let body = json!({
        "code": 429,
        "status": "TooManyRequests",
        "retryAfterSeconds": 30,
        "error": "APIClientRequestRateLimitExceeded",
        "errorCode": 1199,
        "errorMessage": "The limit \"bucket\" of 2 at once is used up: 2 used. Try again in 30 s.",
    });
    assert_eq!(json(&refusal), body);
}

#[test]
fn problem_details_name_the_limits_that_refuse_as_the_fields_do() {
    let (policy, _) = policy(TWO);
    let verdict = ask(&policy, &Request::new("x").user("ada"), 3);
    let refusal = Answering::new().refusal(&verdict, &HeaderMap::new());
    assert_eq!(field(refusal.headers(), "content-type"), Some("application/problem+json"));
    let body = json!({
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Request cannot be satisfied as assigned quota has been exceeded",
        "status": 429,
        "detail": "The limit \"items.2.sustain\" of 2 in 300 s is used up: 3 used. Try again in 300 s.",
        "violated-policies": ["items.1", "items.2.burst", "items.2.sustain"],
    });
    assert_eq!(json(&refusal), body);
    for name in ["\"items.1\";r=0", "\"items.2.burst\";r=0", "\"items.2.sustain\";r=0", "\"all\";r=97"] {
        assert!(field(refusal.headers(), "ratelimit").unwrap().contains(name), "{name}");
    }
}

#[test]
fn text_is_one_line() {
    let (policy, _) = policy("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { sliding = '2/500ms' }\n");
    let verdict = ask(&policy, &Request::new("x").user("ada"), 3);
    let refusal = Answering::new().body(Body::Text).refusal(&verdict, &HeaderMap::new());
    assert_eq!(field(refusal.headers(), "content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(
        text(&refusal),
        "The limit \"sliding\" of 2 in any 0.5 s is used up: 2 used. Try again in 1 s.\n"
    );
}

#[test]
fn a_body_of_one_s_own() {
    let (policy, _) = policy(TWO);
    let own = Body::own(|answer| {
        let Answer::Verdict(verdict) = answer else { panic!("{answer:?}") };
        let name = verdict.binding().unwrap().rule().name().to_owned();
        (HeaderValue::from_static("text/x-own"), Bytes::from(name))
    });
    let verdict = ask(&policy, &Request::new("x").user("ada"), 3);
    let refusal = Answering::new().body(own).refusal(&verdict, &accepts("application/json"));
    assert_eq!((field(refusal.headers(), "content-type"), text(&refusal)), (Some("text/x-own"), "items"));
}

/// The server's choice in code, then the policy's, then the client's.
#[test]
fn who_chooses_the_body() {
    let rule = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { window = '1/1m' }\n";
    let types = |head: &str, answering: &Answering| {
        let (policy, _) = policy(&format!("{head}{rule}"));
        let verdict = ask(&policy, &Request::new("x").user("ada"), 2);
        let refusal = answering.refusal(&verdict, &accepts("text/plain"));
        field(refusal.headers(), "content-type").unwrap().to_owned()
    };
    let (plain, set) = (Answering::new(), Answering::new().body(Body::Problem));
    assert_eq!(types("", &plain), "text/plain; charset=utf-8");
    assert_eq!(types("body = 'fgrl'\n", &plain), "application/json");
    assert_eq!(types("body = 'text'\n", &plain), "text/plain; charset=utf-8");
    assert_eq!(types("body = 'problem'\n", &plain), "application/problem+json");
    assert_eq!(types("body = 'fgrl'\n", &set), "application/problem+json");
    assert_eq!(types("", &set), "application/problem+json");
}

#[test]
fn a_policy_that_is_replaced_has_another_body() {
    let text = |body: &str| {
        format!("body = '{body}'\n[[rule]]\nname = 'a'\nkey = 'user'\nlimit = {{ window = '1/1m' }}\n")
    };
    let (policy, _) = policy(&text("fgrl"));
    let request = Request::new("x").user("ada");
    let kind = |verdict| json(&Answering::new().refusal(&verdict, &HeaderMap::new()));
    assert_eq!(kind(ask(&policy, &request, 2))["type"], "burst", "a window alone is told as the short one");
    let rules = tidegate::policy::Rules::from_toml(&text("fgrl-limit-type"), "t.toml").unwrap();
    policy.replace(rules).unwrap();
    assert_eq!(kind(policy.check(&request))["limitType"], "Rate");
}

/// Every refusal is a 429 that no cache keeps; where no wait is enough it says so by saying nothing.
#[test]
fn every_reason_is_a_429_that_nobody_stores() {
    let all_bodies = [Body::Fgrl, Body::FgrlLimitType, Body::GameBackend, Body::Problem, Body::Text];
    let limit = Limit::window(Window::new(5, secs(60)));
    let limiter = Limiter::builder(limit).max_keys(1).on_full(OnFull::Refuse).clock(Manual::new());
    let limiter = limiter.build().unwrap();
    // The slots of one key fill with as many keys as there are.
    let full = (0..10_000_u32).find_map(|key| limiter.check_n(&key, 5).err()).unwrap();
    let too_large = limiter.check_n(&0, 6).unwrap_err();
    let exhausted = limiter.check_n(&0, 1).unwrap_err();
    for (denied, waits, says) in [
        (full, true, "There is no room to count one more client under the limit \"window\"."),
        (too_large, false, "A cost of 6 can never fit the limit \"window\" of 5 in 60 s."),
        (exhausted, true, "The limit \"window\" of 5 in 60 s is used up"),
    ] {
        for body in &all_bodies {
            let refusal = Answering::new().body(body.clone()).refusal(&denied, &HeaderMap::new());
            assert_eq!(
                (refusal.status().as_u16(), field(refusal.headers(), "cache-control")),
                (429, Some("no-store"))
            );
            assert_eq!(field(refusal.headers(), "retry-after").is_some(), waits, "{denied}: {body:?}");
            match body {
                Body::GameBackend => {
                    assert_eq!(json(&refusal).get("retryAfterSeconds").is_some(), waits);
                    assert!(json(&refusal)["errorMessage"].as_str().unwrap().starts_with(says));
                }
                Body::Problem => {
                    assert_eq!(json(&refusal)["violated-policies"], json!(["window"]), "{denied}");
                    assert!(json(&refusal)["detail"].as_str().unwrap().starts_with(says));
                }
                Body::Text => {
                    assert!(
                        text(&refusal).starts_with(says) && text(&refusal).contains("Try again") == waits
                    );
                }
                _ => assert_eq!(json(&refusal)["maxRequests"], 5),
            }
        }
    }
    // A fresh key has all of its limit, but there is no room for it.
    let told = Answering::new().fields(&full);
    let told: Vec<_> = told.iter().map(|(_, value)| value.to_str().unwrap()).collect();
    assert_eq!(told, [r#""window";q=5;w=60"#, &format!(r#""window";r=0;t={}"#, told[2]), told[2]]);
}

/// Only what was refused has something to wait for; asked all the same, an answer is still whole.
#[test]
fn a_refusal_of_what_was_allowed_is_still_an_answer() {
    let (policy, _) = policy(TWO);
    let verdict = policy.check(&Request::new("x").user("ada"));
    for body in [Body::Fgrl, Body::GameBackend, Body::Problem, Body::Text] {
        let refusal = Answering::new().body(body).refusal(&verdict, &HeaderMap::new());
        assert_eq!((refusal.status().as_u16(), field(refusal.headers(), "retry-after")), (429, None));
        assert!(!refusal.body().is_empty());
    }
}
