//! Which fields a response has, and how limits are called in them.

use http::{HeaderMap, HeaderValue};
use tidegate::http::{Answering, Dialect, Names};
use tidegate::policy::Request;
use tidegate::{Limit, Manual, Rate, SingleLimiter, Window};

use super::{ask, field, lines, policy, secs};

/// Three rules: one limit, two limits of which one has two windows, and one bucket.
const THREE: &str = r#"
[[rule]]
name = "all"
key = "user"
limit = { window = "10/1m", opens = "first-request" }

[[rule]]
name = "data"
key = "user"
limits = [
    { window = "20/2m", opens = "first-request" },
    { burst = "7/15s", sustain = "30/5m", opens = "first-request" },
]

[[rule]]
name = "bucket"
key = "user"
limit = { rate = "2/s", burst = 5 }
"#;

#[test]
fn names_are_of_the_windows_where_one_limit_is_all_there_is_and_of_the_rules_elsewhere() {
    let one = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { rate = '2/s', burst = 4 }\n";
    let (single, _) = policy(one);
    let request = Request::new("x").user("ada");
    let policy_field = |policy: &tidegate::policy::Policy<Manual>, names| {
        let fields = Answering::new().names(names).fields(&policy.check(&request));
        lines(&fields)[0].strip_prefix("ratelimit-policy: ").unwrap().to_owned()
    };
    assert_eq!(policy_field(&single, Names::Auto), r#""bucket";q=4;w=2"#);
    assert_eq!(policy_field(&single, Names::Windows), r#""bucket";q=4;w=2"#);
    assert_eq!(policy_field(&single, Names::Full), r#""a";q=4;w=2"#);
    let (three, _) = policy(THREE);
    // A bucket of 5 at 2 a second fills in 2.5 s, which no w can say.
    let full = r#""all";q=10;w=60, "data.1";q=20;w=120, "data.2.burst";q=7;w=15, "data.2.sustain";q=30;w=300, "bucket";q=5"#;
    assert_eq!(policy_field(&three, Names::Auto), full);
    assert_eq!(policy_field(&three, Names::Full), full);
    let windows =
        r#""window";q=10;w=60, "window.2";q=20;w=120, "burst";q=7;w=15, "sustain";q=30;w=300, "bucket";q=5"#;
    assert_eq!(policy_field(&three, Names::Windows), windows);
}

#[test]
fn all_limits_that_count_are_told_and_no_others() {
    let more = r#"
[[rule]]
name = "watched"
key = "user"
limit = { window = "1/1m" }
shadow = true

[[rule]]
name = "spared"
key = "user"
limit = { window = "1/1m" }
exempt = { title = "old" }
"#;
    let (policy, clock) = policy(&format!("{THREE}{more}"));
    let request = Request::new("x").user("ada").title("old");
    let _ = ask(&policy, &request, 4);
    clock.advance(secs(1));
    let verdict = policy.check(&request);
    assert!(verdict.is_allowed());
    assert_eq!(
        lines(&Answering::new().fields(&verdict)),
        [
            r#"ratelimit-policy: "all";q=10;w=60, "data.1";q=20;w=120, "data.2.burst";q=7;w=15, "data.2.sustain";q=30;w=300, "bucket";q=5"#,
            // Of 5 tokens 4 were taken, 2 came back, and 1 was taken.
            r#"ratelimit: "all";r=5;t=59, "data.1";r=15;t=119, "data.2.burst";r=2;t=14, "data.2.sustain";r=25;t=299, "bucket";r=2;t=1"#,
        ]
    );
}

#[test]
fn no_limit_is_no_field() {
    let text = "[[rule]]\nname = 'a'\nkey = 'user'\nmatch = { api = 'x' }\nlimit = { window = '1/1m' }\nshadow = true\n";
    let (policy, _) = policy(text);
    let all =
        Answering::new().dialects([Dialect::Draft, Dialect::XSeconds, Dialect::XEpoch, Dialect::XEnvoy]);
    // Nothing matches; and only a shadow rule does, the second time refusing.
    assert_eq!(all.fields(&policy.check(&Request::new("y").user("a"))).iter().count(), 0);
    let verdict = ask(&policy, &Request::new("x").user("a"), 2);
    assert!(verdict.rules().all(|rule| rule.refuses()));
    assert_eq!(all.fields(&verdict).iter().count(), 0);
    let mut headers = HeaderMap::new();
    all.fields(&verdict).apply(&mut headers);
    assert!(headers.is_empty());
}

#[test]
fn fields_take_the_place_of_those_that_are_there() {
    let limiter = SingleLimiter::builder(Limit::window(Window::new(1, secs(9)))).clock(Manual::new());
    let limiter = limiter.build().unwrap();
    let mut headers = HeaderMap::new();
    headers.append("ratelimit", HeaderValue::from_static("x"));
    headers.append("ratelimit", HeaderValue::from_static("y"));
    headers.append("server", HeaderValue::from_static("z"));
    let _ = limiter.check();
    Answering::new().fields(&limiter.check()).apply(&mut headers);
    let all: Vec<_> = headers.get_all("ratelimit").iter().collect();
    assert_eq!(all.len(), 1);
    assert_eq!(field(&headers, "server"), Some("z"));
    assert!(field(&headers, "retry-after").is_some());
}

#[test]
fn answers_of_a_limiter_by_itself_are_told_too() {
    let clock = Manual::new();
    let bucket = SingleLimiter::builder(Limit::bucket(Rate::per_second(1), 3)).clock(clock.clone());
    let bucket = bucket.build().unwrap();
    let answering = Answering::new().names(Names::Full);
    let pass = bucket.check().unwrap();
    let told = [r#"ratelimit-policy: "bucket";q=3;w=3"#, r#"ratelimit: "bucket";r=2;t=1"#];
    assert_eq!(lines(&answering.fields(&pass)), told);
    assert_eq!(lines(&answering.fields(&Ok(pass))), told);
    // 2 left, 3 wanted: one more token, which is there in a second.
    let denied = bucket.check_n(3).unwrap_err();
    let told = [r#"ratelimit-policy: "bucket";q=3;w=3"#, r#"ratelimit: "bucket";r=2;t=1"#, "retry-after: 1"];
    assert_eq!(lines(&answering.fields(&denied)), told);
    assert_eq!(lines(&answering.fields(&Err(denied))), told);
    let refusal = answering.refusal(&denied, &HeaderMap::new());
    assert_eq!((refusal.status().as_u16(), field(refusal.headers(), "retry-after")), (429, Some("1")));
    // Nothing used is nothing to wait for.
    clock.advance(secs(60));
    let standing = bucket.check_n(0).unwrap();
    assert_eq!(lines(&answering.fields(&standing))[1], r#"ratelimit: "bucket";r=3"#);
}

/// What `Retry-After` says is never earlier than the wait that is enough, nor than `t` of a window that refuses.
#[test]
fn retry_after_is_rounded_up_and_works() {
    let text =
        "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { rate = '3/10s', burst = 4 }\ncost = 'request'\n";
    let (policy, clock) = policy(text);
    let request = Request::new("x").user("ada");
    let _ = ask(&policy, &request.cost(4), 1);
    // 3 tokens take 10 s, one 3.33 s.
    for (cost, wait, t) in [(1, "4", "4"), (2, "7", "4"), (3, "10", "4"), (4, "14", "4")] {
        let verdict = policy.check(&request.cost(cost));
        let told = lines(&Answering::new().fields(&verdict));
        assert_eq!(told[1..], [format!(r#"ratelimit: "bucket";r=0;t={t}"#), format!("retry-after: {wait}")]);
    }
    clock.advance(secs(7));
    assert!(policy.check(&request.cost(2)).is_allowed());
}
