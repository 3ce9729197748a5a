//! The slips that others have shipped: a test for each kind.

use std::time::Duration;

use http::HeaderMap;
use tidegate::http::{Answering, Body, Dialect, Names};
use tidegate::policy::{KeyPart, Policy, Request, Rule, Rules};
use tidegate::{Limit, Manual, Rate, SingleLimiter, Window};

use super::{ask, field, json, lines, policy, policy_of, secs, text};

/// Class: `Retry-After: 0`, for a wait that is rounded down, and clients that come back at once.
#[test]
fn a_wait_of_a_nanosecond_is_a_second() {
    let (policy, clock) =
        policy("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { window = '1/10s', opens = 'clock' }\n");
    let request = Request::new("x").user("ada");
    let answering = Answering::new().dialects([Dialect::Draft, Dialect::XSeconds]);
    let _ = policy.check(&request);
    for (at, told) in [
        (Duration::ZERO, "10"),
        (Duration::from_nanos(1), "10"),
        (secs(1), "9"),
        (secs(1) + Duration::from_nanos(1), "9"),
        (secs(9) + Duration::from_nanos(999_999_999), "1"),
    ] {
        clock.advance(at - clock.elapsed());
        let verdict = policy.peek(&request);
        let told = [
            r#"ratelimit-policy: "window";q=1;w=10"#.to_owned(),
            format!(r#"ratelimit: "window";r=0;t={told}"#),
            "x-ratelimit-limit: 1".to_owned(),
            "x-ratelimit-remaining: 0".to_owned(),
            format!("x-ratelimit-reset: {told}"),
            format!("retry-after: {told}"),
        ];
        assert_eq!(lines(&answering.fields(&verdict)), told, "{at:?}");
    }
    clock.advance(Duration::from_nanos(1));
    assert!(policy.check(&request).is_allowed());
}

/// Class: what never passes has `Retry-After: 18446744073709551615`.
#[test]
fn what_can_never_pass_is_told_no_wait() {
    let limiter = SingleLimiter::builder(Limit::bucket(Rate::per_second(1), 5)).clock(Manual::new()).build();
    let denied = limiter.unwrap().check_n(6).unwrap_err();
    assert_eq!(denied.retry_after_secs(), u64::MAX);
    let answering = Answering::new().dialects([Dialect::Draft, Dialect::XSeconds]);
    let told = [
        r#"ratelimit-policy: "bucket";q=5;w=5"#,
        r#"ratelimit: "bucket";r=5"#,
        "x-ratelimit-limit: 5",
        "x-ratelimit-remaining: 5",
        "x-ratelimit-reset: 0",
    ];
    assert_eq!(lines(&answering.fields(&denied)), told);
}

/// The same where one limit waits and another can never be met.
#[test]
fn one_limit_that_waits_and_one_that_never_passes_is_told_no_wait() {
    let rules = "[[rule]]\nname = 'a'\nkey = 'user'\ncost = 'request'\nlimit = { window = '9/10s' }\n\
                 [[rule]]\nname = 'b'\nkey = 'user'\ncost = 'request'\nlimit = { window = '7/20s' }\n";
    let (policy, _) = policy(rules);
    let request = Request::new("x").user("ada");
    let _ = ask(&policy, &request.cost(7), 1);
    let refusal =
        Answering::new().body(Body::Problem).refusal(&policy.check(&request.cost(8)), &HeaderMap::new());
    assert_eq!(field(refusal.headers(), "retry-after"), None);
    assert!(
        text(&refusal).contains(r#"A cost of 8 can never fit the limit \"b\" of 7 in 20 s."#),
        "{refusal:?}"
    );
    assert!(text(&refusal).contains(r#"["a","b"]"#));
}

/// Class: a wait that lies beyond the end of the limiter's time.
#[test]
fn at_the_end_of_time_nothing_is_told_to_wait_for() {
    let clock = Manual::new();
    let limiter = SingleLimiter::builder(Limit::bucket(Rate::per_second(1), 1)).clock(clock.clone());
    let limiter = limiter.build().unwrap();
    clock.advance(limiter.horizon() + secs(1));
    let _ = limiter.check();
    let denied = limiter.check().unwrap_err();
    assert_eq!(denied.retry_after(), None);
    let told = [r#"ratelimit-policy: "bucket";q=1;w=1"#, r#"ratelimit: "bucket";r=0"#];
    assert_eq!(lines(&Answering::new().fields(&denied)), told);
}

/// Class: an integer of more than 15 digits, which no reader of structured fields takes.
#[test]
fn numbers_have_15_digits_at_most() {
    // 10^19 is more than any limiter counts, and so an error; 10^16 is not.
    let build = |rate, burst| SingleLimiter::builder(Limit::bucket(rate, burst)).clock(Manual::new()).build();
    assert!(build(Rate::new(10_u64.pow(19), secs(10)), 10_u64.pow(19)).is_err());
    let limiter = build(Rate::per_second(10_u64.pow(9)), 10_u64.pow(16)).unwrap();
    let told = [
        r#"ratelimit-policy: "bucket";q=999999999999999;w=10000000"#,
        r#"ratelimit: "bucket";r=999999999999999;t=1"#,
        "x-ratelimit-limit: 999999999999999, 999999999999999;w=10000000",
        "x-ratelimit-remaining: 999999999999999",
    ];
    let dialects = [Dialect::Draft, Dialect::XSeconds, Dialect::XEnvoy];
    assert_eq!(lines(&Answering::new().dialects(dialects).fields(&limiter.check()))[..4], told);
}

/// Class: `w=0` for a window shorter than a second, or a `w` that is no whole number.
#[test]
fn a_period_that_is_no_whole_number_of_seconds_has_no_w() {
    for (period, w) in [(500, None), (999, None), (1_000, Some(";w=1")), (1_500, None), (2_000, Some(";w=2"))]
    {
        let limit = Limit::window(Window::new(3, Duration::from_millis(period)));
        let limiter = SingleLimiter::builder(limit).clock(Manual::new()).build().unwrap();
        let told =
            lines(&Answering::new().dialects([Dialect::Draft, Dialect::XEnvoy]).fields(&limiter.check()));
        let w = w.unwrap_or_default();
        assert_eq!(told[0], format!(r#"ratelimit-policy: "window";q=3{w}"#));
        assert_eq!(told[2], format!("x-ratelimit-limit: 3, 3{w}"));
        // What is left of a window that is shorter than that is a second at least.
        assert!(told[1].contains(";t=1") || told[1].contains(";t=2"), "{told:?}");
    }
}

fn named(names: &[&str]) -> Policy<Manual> {
    let limit = Limit::window(Window::new(1, secs(10)));
    let rule = |name: &&str| Rule { max_keys: 10, ..Rule::new(*name, vec![KeyPart::User], vec![limit]) };
    policy_of(Rules { rules: names.iter().map(rule).collect(), ..Rules::default() }).0
}

/// Class: a name that ends its string, begins another field, or is a second name.
#[test]
fn hostile_names_stay_in_their_quotes() {
    let policy = named(&["a\"b\\c", "x\r\nset-cookie: y=1", "é", "ü", "é.3", "a\tb"]);
    let verdict = ask(&policy, &Request::new("x").user("ada"), 2);
    let told = lines(&Answering::new().fields(&verdict));
    let expected = r#"ratelimit-policy: "a\"b\\c";q=1;w=10, "x??set-cookie: y=1";q=1;w=10, "?";q=1;w=10, "?.4";q=1;w=10, "?.3";q=1;w=10, "a?b";q=1;w=10"#;
    assert_eq!(told[0], expected);
    for body in [Body::Problem, Body::Text, Body::GameBackend] {
        let refusal = Answering::new().body(body).refusal(&verdict, &HeaderMap::new());
        assert!(!text(&refusal).trim_end().contains(['\r', '\n']), "{}", text(&refusal));
    }
}

/// Class: a field as long as somebody's name, which proxies refuse.
#[test]
fn a_name_of_a_megabyte_is_cut() {
    let (long, other) = ("x".repeat(1 << 20), format!("{}y", "x".repeat(1 << 20)));
    let policy = named(&[&long, &other]);
    let fields = Answering::new().fields(&policy.check(&Request::new("x").user("ada")));
    let x = "x".repeat(128);
    assert_eq!(lines(&fields)[0], format!(r#"ratelimit-policy: "{x}";q=1;w=10, "{x}.2";q=1;w=10"#));
}

/// Class: two limits of one name in a response, of which readers keep one.
#[test]
fn no_name_stands_twice() {
    let text = r#"
[[rule]]
name = "a.1"
key = "user"
limit = { window = "5/10s" }

[[rule]]
name = "a"
key = "user"
limits = [{ window = "5/10s" }, { window = "6/20s" }]

[[rule]]
name = "a.2.4"
key = "user"
limit = { window = "7/10s" }

[[rule]]
name = "a.1.2"
key = "user"
limit = { burst = "7/10s", sustain = "9/30s" }
"#;
    let (policy, _) = policy(text);
    let told = |names| {
        let fields = Answering::new().names(names).fields(&policy.check(&Request::new("x").user("ada")));
        let field = lines(&fields)[0].strip_prefix("ratelimit-policy: ").unwrap().to_owned();
        field.split(", ").map(|entry| entry.split('"').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(told(Names::Full), ["a.1", "a.1.2", "a.2", "a.2.4", "a.1.2.burst", "a.1.2.sustain"]);
    assert_eq!(told(Names::Windows), ["window", "window.2", "window.3", "window.4", "burst", "sustain"]);
}

/// Class: a clock that steps back makes waits negative, or ages long.
#[test]
fn a_step_back_is_a_wait_and_no_more() {
    let (policy, clock) = policy("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { rate = '1/s', burst = 1 }\n");
    let request = Request::new("x").user("ada");
    clock.advance(secs(100));
    let _ = policy.check(&request);
    clock.set(secs(40));
    let told = lines(&Answering::new().fields(&policy.check(&request)));
    assert_eq!(told[1..], [r#"ratelimit: "bucket";r=0;t=61"#, "retry-after: 61"]);
}

/// A refusal that was not counted left the window at its limit and not above it, and so named no policy that it violated.
#[test]
fn what_refuses_is_named_where_refusals_do_not_count() {
    for (limit, name) in [("{ window = '2/1m' }", "window"), ("{ sliding = '2/1m' }", "sliding")] {
        let (policy, _) = policy(&format!(
            "counting = 'all-or-nothing'\n[[rule]]\nname = 'x'\nkey = 'global'\non_refusal = 'count'\nlimit = {limit}\n"
        ));
        for verdict in [ask(&policy, &Request::new("x"), 3), policy.peek(&Request::new("x"))] {
            let refusal = Answering::new().body(Body::Problem).refusal(&verdict, &HeaderMap::new());
            assert_eq!(json(&refusal)["violated-policies"], serde_json::json!([name]));
        }
    }
}

/// Heads of responses that no client takes, for a policy of many rules.
#[test]
fn of_many_limits_those_that_refuse_are_told_and_a_few_others() {
    let limit = |number: usize| if number % 10 == 9 { 1 } else { 9 };
    let rule = |number: usize| {
        format!(
            "[[rule]]\nname = 'rule-{number}'\nkey = 'global'\nlimit = {{ window = '{}/1h' }}\n",
            limit(number)
        )
    };
    let (policy, _) = policy(&(0..60).map(rule).collect::<String>());
    let told = lines(&Answering::new().fields(&ask(&policy, &Request::new("x"), 2)));
    let names: Vec<usize> =
        (0..60).filter(|number| told[1].contains(&format!("\"rule-{number}\";"))).collect();
    assert_eq!(names, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 19, 29, 39, 49, 59]);
    assert_eq!(told[0].matches(";q=").count(), 16);
}
