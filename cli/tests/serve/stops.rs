//! Other rules while it runs, and its end.

use std::io::Write;
use std::time::Duration;

use http::StatusCode;
use serde_json::json;

use crate::served::{PATIENCE, Server, THREE, to_end, wait_until};

#[tokio::test]
async fn a_changed_file_is_put_in_force() {
    let server = Server::start(THREE, &[]);
    let limit = async || {
        let json = server.check(r#"{"api": "x", "user": "ada", "cost": 1}"#).await.json();
        json["rules"][0]["limits"][0]["windows"][0]["limit"].as_u64()
    };
    assert_eq!(limit().await, Some(3));
    server.rename_policy(&THREE.replace("burst = 3", "burst = 30"));
    server.wait_for_log("policy in force");
    assert_eq!(limit().await, Some(30));
    // Broken twice over: each mistake is told, and the rules stay.
    server.rename_policy(&THREE.replace("rate", "rat").replace("key", "kez"));
    server.wait_for_log("did you mean \\\"rate\\\"?");
    server.wait_for_log("did you mean \\\"key\\\"?");
    assert_eq!(limit().await, Some(30));
    assert_eq!(server.metric("tidegate_policy_reloads_total").await, 1.0);
    assert_eq!(server.metric("tidegate_policy_reload_failures_total").await, 1.0);
}

#[tokio::test]
async fn the_log_tells_of_a_file_that_is_gone_and_of_keys_that_nobody_gives() {
    let server = Server::start(THREE, &["--map", "title=x-title"]);
    let said = |text: &str| server.log().matches(text).count();
    let policy = server.policy();
    let begin = format!("policy={:?} rules=1", policy.to_str().unwrap());
    server.wait_for_log(&begin);
    let lacking = "all requests to /auth count as one there rule=\"three\" parts=\"user\"";
    assert_eq!(said(lacking), 1, "{}", server.log());
    std::fs::remove_file(&policy).unwrap();
    server.wait_for_log("policy cannot be read; the rules before it stay in force");
    assert_eq!(said("is wrong"), 0, "{}", server.log());
    server.rename_policy(&THREE.replace("\"user\"", "\"title+attribute:plan\""));
    server.wait_for_log(
        "that differ in nothing else count as one there rule=\"three\" parts=\"attribute:plan\"",
    );
    server.rename_policy(&THREE.replace("key =", "match = { api = \"x\" }\nkey ="));
    server.wait_for_log("their apis do not begin with /");
    assert_eq!(said(lacking), 1, "a rule that no path meets needs no key");
}

#[tokio::test]
async fn a_pipe_in_the_file_s_place_keeps_nobody() {
    let mut server = Server::start(THREE, &[]);
    let new = server.policy().with_file_name("new");
    assert!(std::process::Command::new("mkfifo").arg(&new).status().unwrap().success());
    std::fs::rename(&new, server.policy()).unwrap();
    server.wait_for_log("is no regular file");
    // A good file is read again, by the watch and when it is asked for.
    server.rename_policy(&THREE.replace("burst = 3", "burst = 30"));
    server.wait_for_log("policy in force");
    assert!(std::process::Command::new("mkfifo").arg(&new).status().unwrap().success());
    std::fs::rename(&new, server.policy()).unwrap();
    wait_until("the pipe is told again", || server.log().matches("is no regular file").count() == 2);
    server.signal("-TERM");
    assert_eq!(server.ended(), Some(0));
}

#[tokio::test]
async fn sighup_reads_the_policy_again() {
    let server = Server::start(THREE, &["--no-watch", "--log", "json"]);
    server.rename_policy(&THREE.replace("burst = 3", "burst = 30"));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!server.log().contains("in force"), "nobody watches");
    server.signal("-HUP");
    server.wait_for_log("policy in force");
    server.rename_policy("nonsense");
    server.signal("-HUP");
    server.wait_for_log("the rules before it stay in force");
    let json = server.check(r#"{"api": "x", "user": "ada"}"#).await.json();
    assert_eq!(json["rules"][0]["limits"][0]["windows"][0]["limit"], 30);
    for line in server.log().lines() {
        assert!(
            serde_json::from_str::<serde_json::Value>(line).is_ok_and(|line| line["level"].is_string()),
            "{line}"
        );
    }
}

/// Waits until there are so many connections, and then until what they have sent has been read: that nobody tells.
async fn are_open(server: &Server, connections: u32) {
    let start = std::time::Instant::now();
    // Another asks.
    while server.metric("tidegate_connections").await < f64::from(connections + 1) {
        assert!(start.elapsed() < PATIENCE);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[tokio::test]
async fn what_runs_is_finished_before_the_end() {
    let mut server = Server::start(THREE, &[]);
    let body = r#"{"api": "x", "user": "ada"}"#;
    let mut under_way = server.connect();
    let head = format!(
        "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{{",
        body.len()
    );
    under_way.write_all(head.as_bytes()).unwrap();
    // A connection whose request has begun, and one that nobody uses.
    let mut begun = server.connect();
    begun.write_all(b"GET /health HTTP/1.1\r\nhost: t\r\n").unwrap();
    let mut idle = server.connect();
    idle.write_all(b"GET /health HTTP/1.1\r\nhost: t\r\n\r\n").unwrap();
    are_open(&server, 3).await;
    server.signal("-TERM");
    server.wait_for_log("stopping");
    assert!(to_end(&mut idle).contains("ready"));
    wait_until("no more connections", || std::net::TcpStream::connect(server.address).is_err());
    under_way.write_all(&body.as_bytes()[1..]).unwrap();
    let answer = to_end(&mut under_way);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"allowed\":true"), "{answer}");
    begun.write_all(b"\r\n").unwrap();
    let answer = to_end(&mut begun);
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("stopping"), "{answer}");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
}

#[tokio::test]
async fn two_signals_at_once_are_one() {
    let mut server = Server::start(THREE, &["--stop-timeout", "60", "--request-timeout", "60"]);
    let mut under_way = server.connect();
    let head =
        "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: 12\r\n\r\n";
    under_way.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let both = format!("kill -TERM {0}; kill -INT {0}", server.pid());
    assert!(std::process::Command::new("sh").args(["-c", &both]).status().unwrap().success());
    server.wait_for_log("stopping");
    std::thread::sleep(Duration::from_millis(300));
    under_way.write_all(br#"{"api": "x"}"#).unwrap();
    assert!(to_end(&mut under_way).contains("\"allowed\":true"));
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    assert!(!server.log().contains("ended at once"));
}

#[tokio::test]
async fn health_says_so_before_the_end() {
    let mut server = Server::start(THREE, &["--stop-delay", "2"]);
    server.signal("-INT");
    server.wait_for_log("stopping");
    let health = server.get("/health").await;
    assert_eq!(
        (health.status, health.json()),
        (StatusCode::SERVICE_UNAVAILABLE, json!({"status": "stopping"}))
    );
    assert_eq!(server.check(r#"{"api": "x"}"#).await.status, StatusCode::OK);
    assert_eq!(server.ended(), Some(0));
}

#[tokio::test]
async fn what_does_not_end_is_cut_off() {
    let head =
        b"POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    let mut server = Server::start(THREE, &["--stop-timeout", "0.3"]);
    let mut stuck = server.connect();
    stuck.write_all(head).unwrap();
    are_open(&server, 1).await;
    server.signal("-TERM");
    assert_eq!(server.ended(), Some(0));
    assert!(server.log().contains("cut off"), "{}", server.log());

    // Nobody waits after a second signal.
    let mut server = Server::start(THREE, &["--stop-timeout", "60", "--request-timeout", "60"]);
    let mut stuck = server.connect();
    stuck.write_all(head).unwrap();
    are_open(&server, 1).await;
    server.signal("-TERM");
    server.wait_for_log("stopping");
    std::thread::sleep(Duration::from_millis(300));
    server.signal("-INT");
    assert_eq!(server.ended(), Some(130));
}

#[tokio::test]
async fn a_log_that_nobody_reads_keeps_nobody() {
    let (mut server, stderr) = Server::start_unread_at("127.0.0.1:0", THREE, &[]);
    // Far more lines than the pipe and the queue before it hold.
    let mistakes: String = (0..5000).map(|at| format!("unknown-{at} = 1\n")).collect();
    server.rename_policy(&(mistakes + THREE));
    let asked = async {
        while server.metric("tidegate_policy_reload_failures_total").await < 1.0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for _ in 0..10 {
            assert_eq!(server.check(r#"{"api": "x", "user": "ada"}"#).await.status, StatusCode::OK);
        }
        assert_eq!(server.get("/health").await.status, StatusCode::OK);
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap();
    server.signal("-TERM");
    assert_eq!(server.ended(), Some(0));
    drop(stderr);
}
