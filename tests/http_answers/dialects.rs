//! The fields that no standard describes, by the dialects that servers speak.

use std::time::{Duration, SystemTime};

use tidegate::http::{Answering, Dialect};
use tidegate::policy::Request;

use super::{ask, lines, policy, secs};

/// A bucket that is nearer to its end than the window, as long as both count alike.
const TWO: &str = r#"
[[rule]]
name = "hour"
key = "user"
limit = { window = "1000/1h", opens = "first-request" }

[[rule]]
name = "second"
key = "user"
limit = { rate = "10/s", burst = 10 }
"#;

fn told(dialects: &[Dialect], times: usize) -> Vec<String> {
    let (policy, _) = policy(TWO);
    // 2033-05-18 03:33:20, and a quarter of a second.
    let now = SystemTime::UNIX_EPOCH + secs(2_000_000_000) + Duration::from_millis(250);
    let answering = Answering::new().dialects(dialects.iter().copied()).wall_clock(move || now);
    lines(&answering.fields(&ask(&policy, &Request::new("x").user("ada"), times)))
}

#[test]
fn the_nearest_limit_is_told_in_seconds() {
    let told = told(&[Dialect::XSeconds], 4);
    assert_eq!(told, ["x-ratelimit-limit: 10", "x-ratelimit-remaining: 6", "x-ratelimit-reset: 1"]);
}

#[test]
fn or_in_unix_time_rounded_up() {
    // The next token is there 0.1 s after 0.25 s.
    let told = told(&[Dialect::XEpoch], 4);
    assert_eq!(told, ["x-ratelimit-limit: 10", "x-ratelimit-remaining: 6", "x-ratelimit-reset: 2000000001"]);
}

#[test]
fn or_with_all_limits_behind_it() {
    let told = told(&[Dialect::XEnvoy], 4);
    let expected =
        ["x-ratelimit-limit: 10, 1000;w=3600, 10;w=1", "x-ratelimit-remaining: 6", "x-ratelimit-reset: 1"];
    assert_eq!(told, expected);
}

#[test]
fn dialects_are_combined() {
    let told = told(&[Dialect::Draft, Dialect::XEnvoy, Dialect::XEpoch], 11);
    let expected = [
        r#"ratelimit-policy: "hour";q=1000;w=3600, "second";q=10;w=1"#,
        r#"ratelimit: "hour";r=989;t=3600, "second";r=0;t=1"#,
        "x-ratelimit-limit: 10, 1000;w=3600, 10;w=1",
        "x-ratelimit-remaining: 0",
        "x-ratelimit-reset: 2000000001",
        "retry-after: 1",
    ];
    assert_eq!(told, expected);
    assert_eq!(self::told(&[], 11), ["retry-after: 1"]);
}

/// Of a refusal the limit to wait for is told, though another is nearer to its end; and the wait is that of the request.
#[test]
fn of_a_refusal_the_limit_to_wait_for_is_told() {
    let text = r#"
[[rule]]
name = "short"
key = "user"
limit = { window = "2/10s", opens = "first-request" }

[[rule]]
name = "long"
key = "user"
limit = { rate = "1/1m", burst = 5 }
cost = "request"
"#;
    let (policy, _) = policy(text);
    let request = Request::new("x").user("ada");
    let _ = ask(&policy, &request, 2);
    let verdict = policy.check(&request.cost(4));
    assert_eq!(verdict.nearest().unwrap().rule().name(), "short");
    let told = lines(&Answering::new().dialects([Dialect::XSeconds]).fields(&verdict));
    // Three tokens are left; the fourth takes a minute.
    let expected =
        ["x-ratelimit-limit: 5", "x-ratelimit-remaining: 3", "x-ratelimit-reset: 60", "retry-after: 60"];
    assert_eq!(told, expected);
}

/// Of two windows the one with the smaller share left.
#[test]
fn of_two_windows_the_one_nearer_to_its_end_is_told() {
    let text = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { burst = '30/15s', sustain = '40/5m', opens = 'first-request' }\n";
    let (policy, clock) = policy(text);
    let request = Request::new("x").user("ada");
    let answering = Answering::new().dialects([Dialect::XSeconds]);
    let verdict = ask(&policy, &request, 20);
    assert_eq!(
        lines(&answering.fields(&verdict)),
        ["x-ratelimit-limit: 30", "x-ratelimit-remaining: 10", "x-ratelimit-reset: 15"]
    );
    clock.advance(secs(15));
    let verdict = policy.check(&request);
    assert_eq!(
        lines(&answering.fields(&verdict)),
        ["x-ratelimit-limit: 40", "x-ratelimit-remaining: 19", "x-ratelimit-reset: 285"]
    );
}

#[test]
fn a_clock_before_1970_is_no_panic() {
    let (policy, _) = policy(TWO);
    let before = SystemTime::UNIX_EPOCH - secs(5);
    let answering = Answering::new().dialects([Dialect::XEpoch]).wall_clock(move || before);
    let told = lines(&answering.fields(&policy.check(&Request::new("x").user("ada"))));
    assert_eq!(told[2], "x-ratelimit-reset: 1");
}
