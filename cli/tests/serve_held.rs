//! `tidegate serve` among HTTP/2 clients that hold what they have begun.

#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod served;

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use http::{Request, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use served::{PATIENCE, PREFACE, Server, THREE, frame, to_end};

/// The head of a request for a path, by a method of the static table, with more fields.
fn head(method: u8, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap();
    let mut head = vec![method, 0x86, 0x01, 1, b't', 0x04, length(path)];
    head.extend_from_slice(path.as_bytes());
    for (name, value) in fields {
        for (before, text) in [(&[0, length(name)][..], name), (&[length(value)], value)] {
            head.extend_from_slice(before);
            head.extend_from_slice(text.as_bytes());
        }
    }
    head
}

const GET: u8 = 0x82;
const POST: u8 = 0x83;

#[tokio::test]
async fn slow_bodies_starve_nobody_else() {
    let server = Server::start(THREE, &["--request-timeout", "60"]);
    let json = [("content-type", "application/json")];
    let slow: Vec<TcpStream> = (0..42)
        .map(|_| {
            let mut stream = server.connect();
            let mut bytes = [PREFACE, &frame(4, 0, 0, &[])].concat();
            for at in 0..100 {
                bytes.extend(frame(1, 4, 2 * at + 1, &head(POST, "/check", &json)));
                bytes.extend(frame(0, 0, 2 * at + 1, b"{"));
            }
            stream.write_all(&bytes).unwrap();
            stream
        })
        .collect();
    // 4200 bodies are begun. Of 2048 places a connection has what it wants of one half, and eight at most of the other.
    let start = Instant::now();
    let turned_away = "tidegate_http_requests_total{endpoint=\"check\",status=\"503\"}";
    while server.metric(turned_away).await < 2000.0 {
        assert!(start.elapsed() < PATIENCE, "nobody was turned away");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.get("/health").await.status, StatusCode::OK);
    assert_eq!(server.get("/auth/x").await.status, StatusCode::OK);
    assert_eq!(server.check(r#"{"api": "x", "user": "ada"}"#).await.status, StatusCode::OK);
    drop(slow);
}

#[tokio::test]
async fn answers_that_nobody_takes_end_their_connection() {
    let server = Server::start(THREE, &["--header-timeout", "1", "--request-timeout", "1"]);
    let mut stream = server.connect();
    // A stream may be sent nothing before its client says so.
    let no_window = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let mut bytes = [PREFACE, &no_window].concat();
    for at in 0..50 {
        bytes.extend(frame(1, 5, 2 * at + 1, &head(GET, "/nothing", &[])));
    }
    stream.write_all(&bytes).unwrap();
    // Meanwhile it asks for other things, and gives them up.
    let start = Instant::now();
    for at in 50.. {
        let asked = frame(1, 5, 2 * at + 1, &head(GET, "/health", &[]));
        let given_up = frame(3, 0, 2 * at + 1, &[0, 0, 0, 8]);
        if stream.write_all(&[asked, given_up].concat()).is_err() {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "it holds its answers still");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let took = start.elapsed();
    assert!(took > Duration::from_millis(900), "{took:?}");
    println!("ended after {took:?}");
    assert!(server.metric("tidegate_connections_broken_total").await >= 1.0);
    // Who takes its answers goes on for longer than that.
    let mut sender = server.http2().await;
    for _ in 0..15 {
        let request = Request::get("http://t/health").body(Full::new(Bytes::new())).unwrap();
        assert_eq!(sender.send_request(request).await.unwrap().status(), StatusCode::OK);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_stream_takes_no_more_than_its_part_of_an_answer_beforehand() {
    // An answer of more than half a megabyte.
    let rule = |at| {
        format!(
            "[[rule]]\nname = \"{at}\"\nkey = \"global\"\nlimit = {{ window = \"5/1h\" }}\nshadow = true\n"
        )
    };
    let policy: String = (0..2000).map(rule).collect();
    let times = ["--header-timeout", "1", "--request-timeout", "2", "--idle-timeout", "60"];
    let server = Server::start(&policy, &times);
    let body = br#"{"api": "x"}"#;
    let whole = server.check(r#"{"api": "x"}"#).await;
    assert_eq!(whole.json()["rules"].as_array().map(Vec::len), Some(2000));
    assert_eq!(whole.field("content-length"), whole.body.len().to_string());
    let mut stream = server.connect();
    // It may be sent all there is, and it reads nothing.
    let all = frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    let mut bytes = [PREFACE, &all, &frame(8, 0, 0, &[0x7f, 0, 0, 0])].concat();
    for at in 0..60 {
        bytes.extend(frame(1, 4, 2 * at + 1, &head(POST, "/check", &[("content-type", "application/json")])));
        bytes.extend(frame(0, 1, 2 * at + 1, body));
    }
    stream.write_all(&bytes).unwrap();
    let start = Instant::now();
    // If the answers were all with the connection, the requests would have ended, and it would have 60 s.
    while server.metric("tidegate_connections_broken_total").await < 1.0 {
        assert!(start.elapsed() < PATIENCE, "it holds its answers still");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("ended after {:?}", start.elapsed());
}

#[tokio::test]
async fn a_head_of_http2_has_the_same_bytes() {
    let server = Server::start(THREE, &[]);
    let mut sender = server.http2().await;
    // An entry counts its name, its value and 32: 135 bytes each, and 16 384 are what there may be.
    for (entries, is_well) in [(110, true), (130, false)] {
        let request = Request::get("http://t/health");
        let request =
            (0..entries).fold(request, |request, at| request.header(format!("x{at:02}"), "a".repeat(100)));
        let answer = sender.send_request(request.body(Full::new(Bytes::new())).unwrap()).await;
        let status = answer.map(|answer| answer.status());
        assert_eq!(matches!(status, Ok(StatusCode::OK)), is_well, "{entries}: {status:?}");
    }
    assert_eq!(server.get("/health").await.status, StatusCode::OK);
}

#[test]
fn streams_with_mistakes_end_their_connection() {
    let server = Server::start(THREE, &["--header-timeout", "30"]);
    let mut stream = server.connect();
    let mut bytes = [PREFACE, &frame(4, 0, 0, &[])].concat();
    for at in 0..200 {
        // A scheme, and no method nor path.
        bytes.extend(frame(1, 5, 2 * at + 1, b"\x86"));
    }
    let start = Instant::now();
    _ = stream.write_all(&bytes);
    to_end(&mut stream);
    // Long before any time is up.
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}
