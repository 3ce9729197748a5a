//! `/auth`, as each proxy asks.

use http::StatusCode;

use crate::ask;
use crate::served::{Server, THREE};

#[tokio::test]
async fn proxies_are_told_in_their_own_ways() {
    let policy = r#"
[[rule]]
name = "writes"
match = { api = "/a", attribute = { method = "POST" } }
key = "client_ip"
limit = { rate = "1/m", burst = 1 }
"#;
    let server = Server::start(policy, &[]);
    // Each from an address of its own, as a proxy on this machine says.
    let forms = [
        ("GET", "/auth", vec![("x-original-uri", "/a?b"), ("x-original-method", "POST")], "192.0.2.1"),
        ("GET", "/auth", vec![("x-forwarded-uri", "/a?b"), ("x-forwarded-method", "POST")], "192.0.2.2"),
        ("POST", "/auth/a?b", vec![], "192.0.2.3"),
    ];
    for (method, path, mut fields, address) in forms {
        fields.push(("x-forwarded-for", address));
        let allowed = server.send(ask(method, path, &fields)).await;
        assert_eq!((allowed.status, &*allowed.body), (StatusCode::OK, ""), "{path}");
        let refused = server.send(ask(method, path, &fields)).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{path} {fields:?}");
        assert_eq!(refused.field("retry-after"), "60");
        assert_eq!(allowed.field("ratelimit"), "\"bucket\";r=0;t=60");
        refused.problem();
    }
    // Other methods and paths have no rule.
    let reads = [("x-original-uri", "/a"), ("x-original-method", "GET"), ("x-forwarded-for", "192.0.2.1")];
    let allowed = server.send(ask("GET", "/auth", &reads)).await;
    assert_eq!((allowed.status, allowed.field("cache-control")), (StatusCode::OK, "no-store"));
    assert_eq!(
        server.send(ask("POST", "/auth/b", &[("x-forwarded-for", "192.0.2.1")])).await.status,
        StatusCode::OK
    );
    // Nothing says what was asked for, or two fields say two things.
    assert!(server.get("/auth").await.problem().contains("nothing says what was asked for"));
    let two = [("x-original-uri", "/a"), ("x-forwarded-uri", "/b")];
    assert!(server.send(ask("GET", "/auth", &two)).await.problem().contains("contradict"));
}

#[tokio::test]
async fn a_refusal_has_the_status_that_a_proxy_takes() {
    let server = Server::start(&THREE.replace("burst = 3", "burst = 1"), &["--map", "user=x-user-id"]);
    let fields = [("x-original-uri", "/"), ("x-user-id", "ada")];
    assert_eq!(server.send(ask("GET", "/auth?status=403", &fields)).await.status, StatusCode::OK);
    for (path, status) in
        [("/auth", 429), ("/auth?status=429", 429), ("/auth?status=403", 403), ("/auth?status=401", 401)]
    {
        let refused = server.send(ask("GET", path, &fields)).await;
        assert_eq!(refused.status.as_u16(), status, "{path}");
    }
    for query in ["status=200", "status=", "stat=403", "status=403&x"] {
        let answer = server.send(ask("GET", &format!("/auth?{query}"), &fields)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert!(answer.problem().contains("403"), "{query}");
    }
}

#[tokio::test]
async fn parts_are_read_where_the_command_line_says() {
    let policy = r#"
[[rule]]
name = "one"
key = "user+title+attribute:key"
limit = { rate = "1/m", burst = 5 }
cost = "request"
"#;
    let args =
        "--map user=bearer --map title=x-title --map attribute:key='k' --map cost=x-cost --on-missing refuse";
    let server = Server::start(policy, &args.split(' ').collect::<Vec<_>>());
    let whole = [("authorization", "Bearer s3cret"), ("x-title", "chess"), ("x-cost", "5")];
    assert_eq!(server.send(ask("GET", "/auth/x", &whole)).await.status, StatusCode::OK);
    assert_eq!(server.send(ask("GET", "/auth/x", &whole)).await.status, StatusCode::TOO_MANY_REQUESTS);
    let other = [("authorization", "Bearer other"), ("x-title", "chess"), ("x-cost", "5")];
    assert_eq!(server.send(ask("GET", "/auth/x", &other)).await.status, StatusCode::OK);
    let odd = [("authorization", "Bearer other"), ("x-title", "chess"), ("x-cost", "-5")];
    assert!(server.send(ask("GET", "/auth/x", &odd)).await.problem().contains("cost is \"-5\""));
    let lacking = server.send(ask("GET", "/auth/x", &whole[1..])).await;
    assert!(lacking.status == StatusCode::BAD_REQUEST && lacking.problem().contains("user"));
    let fields = [("x-original-uri", "/x"), ("x-title", "chess")];
    assert_eq!(server.send(ask("GET", "/auth?status=403", &fields)).await.status, StatusCode::FORBIDDEN);
    assert!(!server.log().contains("s3cret"));
}

#[tokio::test]
async fn rules_that_no_path_meets_are_told_once() {
    let policy = THREE.replace("key", "match = { api = [\"profile\", \"data-*\"] }\nkey");
    let policy = format!("{policy}{}", policy.replace("three", "four"));
    let told =
        "their apis do not begin with / (/check may ask for them, or --map api=FIELD) rules=\"three, four\"";
    let server = Server::start(&policy, &[]);
    server.wait_for_log("listening");
    assert_eq!(server.log().matches(told).count(), 1, "{}", server.log());
    for _ in 0..5 {
        assert_eq!(server.get("/auth/profile").await.status, StatusCode::OK);
    }
    server.check(r#"{"api": "profile", "user": "ada"}"#).await;
    server.check(r#"{"api": "other", "user": "ada"}"#).await;
    assert_eq!(server.metric("tidegate_unmatched_total{endpoint=\"auth\"}").await, 5.0);
    assert_eq!(server.metric("tidegate_unmatched_total{endpoint=\"check\"}").await, 1.0);
    let server = Server::start(&policy, &["--map", "api=x-api", "--map", "user=x-user-id"]);
    server.wait_for_log("listening");
    assert!(!server.log().contains("WARN"), "{}", server.log());
}

#[tokio::test]
async fn what_a_request_lacks_may_be_let_through() {
    let one = THREE.replace("burst = 3", "burst = 1");
    let server = Server::start(&one, &["--map", "user=x-user-id", "--on-missing", "allow"]);
    for _ in 0..5 {
        assert_eq!(server.get("/auth/x").await.status, StatusCode::OK);
    }
    // By itself the address stands in.
    let server = Server::start(&one, &["--map", "user=x-user-id"]);
    let from = |address| ask("GET", "/auth/x", &[("x-forwarded-for", address)]);
    assert_eq!(server.send(from("192.0.2.1")).await.status, StatusCode::OK);
    assert_eq!(server.send(from("192.0.2.1")).await.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(server.send(from("192.0.2.2")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn proxies_that_are_not_trusted_are_not_believed() {
    let policy = THREE.replace("\"user\"", "\"client_ip\"").replace("burst = 3", "burst = 1");
    let server = Server::start(&policy, &["--trust-proxy", "10.0.0.0/8"]);
    let from = |address| ask("GET", "/auth/x", &[("x-forwarded-for", address)]);
    assert_eq!(server.send(from("192.0.2.1")).await.status, StatusCode::OK);
    assert_eq!(server.send(from("192.0.2.2")).await.status, StatusCode::TOO_MANY_REQUESTS);
    let server = Server::start(&policy, &["--forwarding", "forwarded"]);
    let from = |address: &str| ask("GET", "/auth/x", &[("forwarded", &format!("for={address}"))]);
    assert_eq!(server.send(from("192.0.2.1")).await.status, StatusCode::OK);
    assert_eq!(server.send(from("192.0.2.2")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn other_families_of_fields_may_be_asked_for() {
    let server = Server::start(THREE, &["--fields", "x-seconds", "--map", "user=x-user-id"]);
    let answer = server.send(ask("GET", "/auth/x", &[("x-user-id", "ada")])).await;
    assert_eq!((answer.field("ratelimit"), answer.field("x-ratelimit-limit")), ("", "3"));
    assert_eq!((answer.field("x-ratelimit-remaining"), answer.field("x-ratelimit-reset")), ("2", "60"));
}
