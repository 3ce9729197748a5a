//! `tidegate serve` as programs and proxies meet it.

#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod auth;
mod offenders;
#[path = "../served/mod.rs"]
mod served;
mod stops;
#[cfg(feature = "webhook")]
mod webhooks;

use http::{Request, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use serde_json::json;
use served::{Answer, PATIENCE, Server, THREE};

fn ask(method: &str, path: &str, fields: &[(&str, &str)]) -> Request<String> {
    let request = Request::builder().method(method).uri(path);
    let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(String::new()).unwrap()
}

#[tokio::test]
async fn check_tells_the_verdict() {
    let server = Server::start(THREE, &[]);
    let first = server.check(r#"{"api": "x", "user": "ada"}"#).await;
    assert_eq!((first.status, first.field("content-type")), (StatusCode::OK, "application/json"));
    assert_eq!(first.field("cache-control"), "no-store");
    let json = first.json();
    assert_eq!((&json["allowed"], &json["retry_after_s"]), (&json!(true), &json!(0)));
    let rule = &json["rules"][0];
    assert_eq!(rule["name"], "three");
    for flag in ["shadow", "exempt", "refuses", "warns"] {
        assert_eq!(rule[flag], false, "{flag}");
    }
    let window = &rule["limits"][0]["windows"][0];
    // Three tokens at one a minute: an empty bucket fills in 180 s.
    assert_eq!(
        (&window["name"], &window["limit"], &window["period_s"]),
        (&json!("bucket"), &json!(3), &json!(180))
    );
    assert_eq!((&window["remaining"], &window["observed"]), (&json!(2), &json!(1)));
    assert_eq!((&window["next_after_s"], &window["reset_after_s"]), (&json!(60), &json!(60)));

    for _ in 0..2 {
        assert_eq!(server.check(r#"{"api": "x", "user": "ada"}"#).await.json()["allowed"], true);
    }
    assert_eq!(first.field("ratelimit-policy"), "\"bucket\";q=3;w=180");
    assert_eq!(first.field("ratelimit"), "\"bucket\";r=2;t=60");
    let refused = server.check(r#"{"api": "x", "user": "ada"}"#).await;
    assert_eq!(refused.status, StatusCode::OK, "the question was answered");
    assert_eq!(refused.field("retry-after"), "60");
    let json = refused.json();
    assert_eq!((&json["allowed"], &json["rules"][0]["refuses"]), (&json!(false), &json!(true)));
    let wait = json["retry_after_s"].as_f64().unwrap();
    assert_eq!(json["retry_after_s"], json["retry_after_staggered_s"], "a rule by user staggers nobody");
    assert!(wait > 0.0 && wait <= 60.0, "{wait}");
    // Another user has limits of its own, and a cost that fits none is never allowed.
    let other =
        server.check(r#"{"api": "x", "caller": {"type": "Title", "id": "7"}, "cost": 2}"#).await.json();
    assert_eq!(other["allowed"], true);
}

#[tokio::test]
async fn every_part_of_a_check_reaches_the_policy() {
    let policy = r#"
[[rule]]
name = "all"
match = { api = "play", attribute = { mode = "ranked" } }
key = "title+namespace+client_ip/32/64+attribute:mode+entity"
limit = { window = "5/1h" }
cost = "request"
"#;
    let server = Server::start(policy, &[]);
    let whole = r#"{"api": "play", "title": "t", "namespace": "n", "caller": {"type": "GameServer", "id": "g"},
        "target": {"type": "Character", "id": "c"}, "client_ip": "2001:db8::1", "authenticated": true, "cost": 2,
        "attributes": {"mode": "ranked", "other": null}}"#;
    let remaining = async |body: &str| {
        let json = server.check(body).await.json();
        json["rules"][0]["limits"][0]["windows"][0]["remaining"].as_u64()
    };
    assert_eq!(remaining(whole).await, Some(3));
    assert_eq!(remaining(whole).await, Some(1));
    let others = [
        ("\"t\"", "\"u\""),
        ("\"n\"", "\"m\""),
        ("\"c\"", "\"d\""),
        ("2001:db8::1", "2001:db8:0:1::1"),
        ("\"authenticated\": true", "\"authenticated\": false"),
    ];
    for (one, other) in others {
        assert_eq!(remaining(&whole.replace(one, other)).await, Some(3), "{other}");
    }
    assert_eq!(remaining(&whole.replace("ranked", "fun")).await, None);
    assert_eq!(remaining(&whole.replace("play", "pause")).await, None);
}

#[tokio::test]
async fn bad_input_is_told_and_counts_nothing() {
    let server = Server::start(THREE, &[]);
    let table = [
        ("", "the body is no JSON: EOF"),
        ("[", "the body is no JSON"),
        ("[]", "body is a list; it must be an object"),
        ("{}", "api is missing"),
        (r#"{"api": 1, "user": "ada"}"#, "api is 1; it must be a text"),
        (
            r#"{"api": "x", "usr": "ada"}"#,
            "unknown field \"usr\"; did you mean \"user\"? Known: api, title, ",
        ),
        (r#"{"api": "x", "user": "ada", "zzz": 1}"#, "unknown field \"zzz\". Known: api"),
        (r#"{"api": "x", "user": "ada", "user": "bob"}"#, "user is there twice"),
        (r#"{"api": "x", "user": "ada", "caller": {"type": "Title", "id": "1"}}"#, "give one of them"),
        (
            r#"{"api": "x", "user": "ada", "client_ip": "1.2.3"}"#,
            "client_ip is \"1.2.3\"; it must be an IPv4",
        ),
        (
            r#"{"api": "x", "user": "ada", "cost": -1}"#,
            "cost is -1; it must be a whole number from 0 to 18446744",
        ),
        (r#"{"api": "x", "user": "ada", "cost": 1.5}"#, "cost is 1.5; it must be"),
        (
            r#"{"api": "x", "user": "ada", "cost": 18446744073709551616}"#,
            "cost is 18446744073709552000; it must be",
        ),
        (r#"{"api": "x", "user": "ada", "cost": "1"}"#, "cost is \"1\"; it must be"),
        (
            r#"{"api": "x", "user": "ada", "authenticated": 1}"#,
            "authenticated is 1; it must be true or false",
        ),
        (
            r#"{"api": "x", "user": "ada", "target": "bob"}"#,
            "target is \"bob\"; it must be an object of type and id",
        ),
        (r#"{"api": "x", "user": "ada", "target": {"id": "1"}}"#, "target.type is missing"),
        (r#"{"api": "x", "user": "ada", "target": {"type": "Titel", "id": "1"}}"#, "did you mean \"Title\"?"),
        (
            r#"{"api": "x", "user": "ada", "target": {"type": "Title", "idd": "1"}}"#,
            "unknown field \"target.idd\"; did you mean \"id\"?",
        ),
        (
            r#"{"api": "x", "user": "ada", "attributes": []}"#,
            "attributes is a list; it must be an object of texts",
        ),
        (r#"{"api": "x", "user": "ada", "attributes": {"a": 1}}"#, "attributes.a is 1; it must be a text"),
        (r#"{"api": "x", "user": "ada", "attributes": {"a": "1", "a": "2"}}"#, "attributes.a is there twice"),
        // What stands in for a part that is not there is nobody's name.
        (
            r#"{"api": "x", "user": "⟨127.0.0.1⟩"}"#,
            "user is \"⟨127.0.0.1⟩\"; it must be a text that does not",
        ),
        (r#"{"api": "x", "user": "ada", "attributes": {"a": "⟨"}}"#, "attributes.a is \"⟨\"; it must be"),
        (r#"{"api": "x", "target": {"type": "Title", "id": "⟨"}}"#, "target.id is \"⟨\"; it must be"),
    ];
    for (body, says) in table {
        let answer = server.check(body).await;
        let detail = answer.problem();
        assert!(answer.status == StatusCode::BAD_REQUEST && detail.contains(says), "{body}: {detail}");
        assert_eq!(answer.json()["errors"].as_array().map(Vec::len), Some(detail.lines().count()));
    }
    // Of many mistakes ten are told, so that no answer is much longer than what asked for it.
    let many = format!("{{{}}}", vec![r#""":1"#; 3000].join(","));
    let answer = server.check(&many).await;
    assert_eq!(answer.json()["errors"].as_array().map(Vec::len), Some(11));
    // All 3000, and that there is no api.
    assert!(answer.problem().ends_with("\n2991 more mistakes"), "{}", answer.problem());
    assert!(answer.body.len() < 8192, "{}", answer.body.len());
    let attributes: Vec<String> = (0..65).map(|at| format!("\"a{at}\": \"\"")).collect();
    let many = format!(r#"{{"api": "x", "user": "ada", "attributes": {{{}}}}}"#, attributes.join(","));
    assert!(server.check(&many).await.problem().contains("65 attributes; there may be 64"));
    let deep = format!(r#"{{"api": {}1{}}}"#, "[".repeat(500), "]".repeat(500));
    assert!(server.check(&deep).await.problem().contains("no JSON"));

    let form = ask("POST", "/check", &[("content-type", "text/plain")]).map(|_| r#"{"api": "x"}"#.to_owned());
    assert_eq!(server.send(form).await.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);

    let json = server.check(r#"{"api": "x", "user": "ada"}"#).await.json();
    assert_eq!(json["rules"][0]["limits"][0]["windows"][0]["remaining"], 2, "nothing was counted before");
}

#[tokio::test]
async fn errors_have_one_shape() {
    let server = Server::start(&THREE.replace("burst = 3", "burst = 300"), &[]);
    assert_eq!(server.get("/nothing").await.status, StatusCode::NOT_FOUND);
    assert!(server.get("/authx").await.problem().contains("/check"));
    for (method, path, allow) in
        [("GET", "/check", "POST"), ("POST", "/health", "GET,HEAD"), ("PUT", "/metrics", "GET,HEAD")]
    {
        let answer = server.send(ask(method, path, &[])).await;
        assert_eq!((answer.status, answer.field("allow")), (StatusCode::METHOD_NOT_ALLOWED, allow), "{path}");
        answer.problem();
    }
    for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"] {
        assert_eq!(server.send(ask(method, "/auth/x", &[])).await.status, StatusCode::OK, "{method}");
    }
    assert_eq!(server.get("/health").await.json(), json!({"status": "ready"}));
}

#[tokio::test]
async fn prometheus_is_told_in_its_own_words() {
    let server = Server::start(THREE, &["--map", "user=x-user-id"]);
    for _ in 0..5 {
        server.send(ask("GET", "/auth/x", &[("x-user-id", "ada")])).await;
    }
    server.check(r#"{"api": "x", "user": "bob"}"#).await;
    server.check("{}").await;
    server.get("/nothing").await;
    // A connection that is closing is open a moment longer.
    let (start, mut asked) = (std::time::Instant::now(), 1.0);
    while server.metric("tidegate_connections").await > 1.0 {
        asked += 1.0;
        assert!(start.elapsed() < PATIENCE);
    }
    let answer = server.get("/metrics").await;
    assert_eq!(answer.field("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let mut families = Vec::new();
    let mut samples = std::collections::HashMap::new();
    for line in answer.body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            families.push(rest.split(' ').next().unwrap().to_owned());
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let family = name.split('{').next().unwrap();
            assert_eq!(families.last().map(String::as_str), Some(family), "{line}");
            assert!(name.starts_with("tidegate_"), "{line}");
            assert!(samples.insert(name.to_owned(), value.parse::<f64>().unwrap()).is_none(), "{line}");
        }
    }
    assert!(families.is_sorted(), "{families:?}");
    for (name, value) in [
        ("tidegate_checks_total{endpoint=\"auth\",outcome=\"allowed\"}", 3.0),
        ("tidegate_checks_total{endpoint=\"auth\",outcome=\"refused\"}", 2.0),
        ("tidegate_checks_total{endpoint=\"check\",outcome=\"allowed\"}", 1.0),
        ("tidegate_unmatched_total{endpoint=\"auth\"}", 0.0),
        ("tidegate_unmatched_total{endpoint=\"check\"}", 0.0),
        ("tidegate_refusals_total{rule=\"three\",limit=\"0\",window=\"bucket\"}", 2.0),
        ("tidegate_policy_checks_total", 6.0),
        ("tidegate_keys_claimed_total{rule=\"three\",limit=\"0\"}", 2.0),
        ("tidegate_forced_evictions_total{rule=\"three\",limit=\"0\"}", 0.0),
        ("tidegate_keys_refused_total{rule=\"three\",limit=\"0\"}", 0.0),
        ("tidegate_leases_total{rule=\"three\",limit=\"0\"}", 0.0),
        ("tidegate_lapsed_tokens_total{rule=\"three\",limit=\"0\"}", 0.0),
        ("tidegate_events_dropped_total", 0.0),
        ("tidegate_refusals_unseen_total", 0.0),
        ("tidegate_http_requests_total{endpoint=\"auth\",status=\"200\"}", 3.0),
        ("tidegate_http_requests_total{endpoint=\"auth\",status=\"429\"}", 2.0),
        ("tidegate_http_requests_total{endpoint=\"check\",status=\"400\"}", 1.0),
        ("tidegate_http_requests_total{endpoint=\"other\",status=\"404\"}", 1.0),
        ("tidegate_connections_accepted_total", 9.0 + asked),
        (concat!("tidegate_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1.0),
    ] {
        assert_eq!(samples.get(name), Some(&value), "{name}\n{}", answer.body);
    }
    assert!(samples["tidegate_uptime_seconds"] < PATIENCE.as_secs_f64());
    assert!(samples.contains_key("tidegate_clock_stalls_total"));
    // An estimate, by a sample of the table.
    assert!(samples.contains_key("tidegate_live_keys{rule=\"three\",limit=\"0\"}"));
    // A rule that is gone is not told any more.
    server.rename_policy(&THREE.replace("three", "other"));
    server.wait_for_log("policy in force");
    let text = server.get("/metrics").await.body;
    assert!(text.contains("rule=\"other\"") && !text.contains("rule=\"three\""), "{text}");
}

#[tokio::test]
async fn http2_is_spoken_by_prior_knowledge() {
    let server = Server::start(THREE, &["--map", "user=x-user-id"]);
    let mut sender = server.http2().await;
    let asked = (0..20).map(|_| {
        let request = Request::get(format!("http://{}/auth/x", server.address)).header("x-user-id", "ada");
        sender.send_request(request.body(Full::new(Bytes::new())).unwrap())
    });
    let asked: Vec<_> = asked.map(tokio::spawn).collect();
    let mut allowed = 0;
    for answer in asked {
        let answer = Answer::of(answer.await.unwrap().unwrap()).await;
        allowed += usize::from(answer.status == StatusCode::OK);
    }
    assert_eq!(allowed, 3);
    assert_eq!(server.metric("tidegate_connections_accepted_total").await, 2.0);
}

const HOSTILE: &str = r#"{"api": "x", "user": "a\u001b[31m\nb"}"#;

#[tokio::test]
async fn the_log_tells_what_happens_to_keys_and_not_their_names() {
    let server = Server::start(THREE, &[]);
    for _ in 0..40 {
        server.check(HOSTILE).await;
    }
    server.wait_for_log(" refused ");
    let log = server.log();
    let told = |what: &str| log.lines().filter(|line| line.contains(what)).count();
    assert_eq!((told(" refused "), told("still_refusing")), (1, 0), "not each refusal is an event: {log}");
    assert!(
        log.contains("rule=\"three\" limit_number=0 window=\"bucket\" shadow=false fingerprint="),
        "{log}"
    );
    assert!(!log.contains("31m") && !log.contains("key="), "{log}");

    let server = Server::start(THREE, &["--log-keys"]);
    for _ in 0..4 {
        server.check(HOSTILE).await;
    }
    server.wait_for_log(" refused ");
    let log = server.log();
    assert!(!log.contains("\u{1b}[31m") && log.contains("31m\\\\nb"), "{log}");
}

#[tokio::test]
async fn a_few_events_a_second_are_logged_and_the_rest_are_counted() {
    let mut server = Server::start(&THREE.replace("burst = 3", "burst = 1"), &["--log", "json"]);
    for user in 0..60 {
        let body = format!(r#"{{"api": "x", "user": "{user}"}}"#);
        assert_eq!(server.check(&body).await.json()["allowed"], true);
        assert_eq!(server.check(&body).await.json()["allowed"], false);
    }
    server.signal("-TERM");
    assert_eq!(server.ended(), Some(0));
    served::wait_until("the last line", || server.log().contains("\"stopped\""));
    served::wait_until("all lines", || server.log().ends_with("}\n"));
    let lines: Vec<serde_json::Value> =
        server.log().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = lines.iter().filter(|line| line["fingerprint"].is_string()).count();
    let left_out: u64 = lines.iter().filter_map(|line| line["left_out"].as_u64()).sum();
    // Each user's first refusal is an event, and maybe that it was near its limit.
    let all = u64::try_from(told).unwrap() + left_out;
    assert!(told >= 20 && left_out > 0 && (60..=120).contains(&all), "{told} told, {left_out} left out");
}

#[test]
fn what_cannot_be_served_is_told_at_once() {
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"));
        let output = command.arg("serve").args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (args, status, says) in [
        (&["--policy", "no-such-file.toml"][..], 2, "no-such-file.toml"),
        (&["--listen", "192.0.2.1:1"], 1, "cannot listen at 192.0.2.1:1"),
        (&["--map", "usr=x-user"], 2, "\"usr\" is no part of a request; did you mean \"user\"?"),
        (&["--map", "client_ip=x-real-ip"], 2, "--trust-proxy and --forwarding"),
        (&["--port", "8080"], 2, "'--listen'"),
        (&["limits.toml"], 2, "'--policy'"),
        (&["--map", "user=a", "--map", "user=b"], 2, "user is mapped twice"),
        (&["--trust-proxy", "10.0.0.0/99"], 2, "it must be a network"),
        (&["--max-connections", "0"], 2, "1..=1000000"),
        (&["--idle-timeout", "0"], 2, "from 0.001 to 86400"),
        (&["--admin-token-file", "/dev/null"], 2, "the token of /dev/null: it is empty"),
        (&["--admin-token-file", "no-such-token"], 2, "no-such-token cannot be read"),
    ] {
        let (code, told) = run(args);
        assert!(code == Some(status) && told.contains(says), "{args:?}: {code:?} {told}");
    }
}
