//! `examples/nginx` with a real nginx, as clients meet it. Skipped, with a note, where there is no nginx.

#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod served;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use http::{Request, StatusCode, Version};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use served::{Answer, Folder, Server, page, wait_until};

/// nginx before a server; it ends with this.
struct Nginx {
    child: Child,
    folder: Folder,
    http1: SocketAddr,
    http2: SocketAddr,
}

impl Nginx {
    /// Starts one with the very configuration of the example, at free ports; `None`, and a note, where there is none.
    fn start(server: &Server) -> Option<Self> {
        Self::start_as(server.address, |configuration| configuration)
    }

    /// The same before whatever listens at this address, with the configuration changed.
    fn start_as(server: SocketAddr, change: impl Fn(String) -> String) -> Option<Self> {
        // Debian keeps it where only root looks by itself.
        let known = |name: &&str| Command::new(name).arg("-v").stderr(Stdio::null()).status().is_ok();
        let Some(program) = ["nginx", "/usr/sbin/nginx"].into_iter().find(known) else {
            println!("skipped: there is no nginx here");
            return None;
        };
        // Held together, so that they differ.
        let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [http1, http2, application] = held.map(|listener| listener.local_addr().unwrap());
        let mut configuration = change(page("examples/nginx/nginx.conf"));
        for (port, address) in [("8080", http1), ("8081", http2), ("8082", application), ("8181", server)] {
            let from = format!("127.0.0.1:{port}");
            assert!(configuration.contains(&from), "{from}");
            configuration = configuration.replace(&from, &address.to_string());
        }
        let folder = Folder::new();
        let file = folder.0.join("nginx.conf");
        std::fs::write(&file, configuration).unwrap();
        let child = Command::new(program)
            .args(["-e", "stderr", "-g", "daemon off;", "-p"])
            .arg(&folder.0)
            .arg("-c")
            .arg(&file)
            .spawn()
            .unwrap();
        let nginx = Self { child, folder, http1, http2 };
        wait_until("nginx listens", || TcpStream::connect(http2).is_ok());
        Some(nginx)
    }

    /// The answer to a request on a connection of its own.
    async fn send(&self, version: Version, request: Request<&'static str>) -> Answer {
        let mut request = request.map(|body| Full::new(Bytes::from(body)));
        if version == Version::HTTP_2 {
            let uri = format!("http://{}{}", self.http2, request.uri());
            *request.uri_mut() = uri.parse().unwrap();
            return Answer::of(self.http2().await.send_request(request).await.unwrap()).await;
        }
        request.headers_mut().insert("host", "tidegate.test".parse().unwrap());
        let stream = tokio::net::TcpStream::connect(self.http1).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let driver = tokio::spawn(connection);
        let answer = Answer::of(sender.send_request(request).await.unwrap()).await;
        driver.abort();
        answer
    }

    /// A client that speaks HTTP/2 at once.
    async fn http2(&self) -> http2::SendRequest<Full<Bytes>> {
        let stream = tokio::net::TcpStream::connect(self.http2).await.unwrap();
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(Version::HTTP_11, Request::get(path).body("").unwrap()).await
    }

    /// Everything that comes back for these bytes.
    fn raw(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(self.http1).unwrap();
        stream.set_read_timeout(Some(served::PATIENCE)).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        served::to_end(&mut stream)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers end with it only if it may tell them.
        let told = Command::new("kill").arg(self.child.id().to_string()).status();
        if !told.is_ok_and(|status| status.success()) {
            _ = self.child.kill();
        }
        _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(self.folder.0.join("error.log")).unwrap_or_default());
        }
    }
}

/// The server of the example.
fn server() -> Server {
    Server::start(&page("examples/nginx/limits.toml"), &["--original", "x-original-uri"])
}

/// The page on the server shows parts of the example, and no line that is not in it.
#[test]
fn the_page_shows_lines_of_the_example() {
    let (page, example) = (page("docs/serve.md"), page("examples/nginx/nginx.conf"));
    let shown = page.split_once("```nginx\n").unwrap().1.split_once("```").unwrap().0;
    let known: Vec<&str> = example.lines().map(str::trim).collect();
    for line in shown.lines() {
        assert!(known.contains(&line.trim()), "examples/nginx/nginx.conf has no line {line:?}");
    }
}

const BOTH: [Version; 2] = [Version::HTTP_11, Version::HTTP_2];

#[tokio::test]
async fn three_pass_and_the_fourth_is_told_when_to_come_back() {
    for version in BOTH {
        let server = server();
        let Some(nginx) = Nginx::start(&server) else { return };
        let get = || Request::get("/a?b=c").body("").unwrap();
        for left in [2, 1, 0] {
            let answer = nginx.send(version, get()).await;
            assert_eq!((answer.status, &*answer.body), (StatusCode::OK, "hello\n"), "{version:?}");
            assert!(
                answer.field("ratelimit").starts_with(&format!("\"burst\";r={left};t=")),
                "{:?}",
                answer.headers
            );
            assert_eq!(answer.field("ratelimit-policy"), "\"burst\";q=3;w=15, \"sustain\";q=30;w=300");
            assert_eq!((answer.field("retry-after"), answer.field("cache-control")), ("", ""));
        }
        let refused = nginx.send(version, get()).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{version:?}");
        assert!(refused.field("ratelimit").starts_with("\"burst\";r=0;t="), "{:?}", refused.headers);
        assert_eq!(refused.field("ratelimit-policy"), "\"burst\";q=3;w=15, \"sustain\";q=30;w=300");
        assert_eq!(refused.field("cache-control"), "no-store");
        let wait: u32 = refused.field("retry-after").parse().unwrap();
        assert!((1..=15).contains(&wait), "{wait}");
        assert_eq!(refused.problem(), format!("too many requests; try again in {wait} s"));
        for name in ["retry-after", "ratelimit", "ratelimit-policy", "cache-control"] {
            assert_eq!(refused.headers.get_all(name).iter().count(), 1, "{name}");
        }
        // By any method, and with a body that nobody reads.
        let head = nginx.send(version, Request::head("/").body("").unwrap()).await;
        assert_eq!((head.status, &*head.body), (StatusCode::TOO_MANY_REQUESTS, ""));
        let post = nginx.send(version, Request::post("/").body("some body").unwrap()).await;
        assert_eq!(post.status, StatusCode::TOO_MANY_REQUESTS);
    }
}

#[tokio::test]
async fn both_versions_share_a_count() {
    let server = server();
    let Some(nginx) = Nginx::start(&server) else { return };
    let get = || Request::get("/").body("").unwrap();
    let mut statuses = Vec::new();
    for version in [BOTH, BOTH].concat() {
        statuses.push(nginx.send(version, get()).await.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 429]);
}

#[tokio::test]
async fn requests_on_one_connection_are_counted_one_by_one() {
    let server = server();
    let Some(nginx) = Nginx::start(&server) else { return };
    let mut sender = nginx.http2().await;
    let at_once: Vec<_> = (0..10)
        .map(|at| {
            let uri = format!("http://{}/{at}", nginx.http2);
            sender.send_request(Request::get(uri).body(Full::default()).unwrap())
        })
        .collect();
    let mut passed = 0;
    for answer in at_once {
        match answer.await.unwrap().status() {
            StatusCode::OK => passed += 1,
            status => assert_eq!(status, StatusCode::TOO_MANY_REQUESTS),
        }
    }
    assert_eq!(passed, 3);
}

#[tokio::test]
async fn the_applications_403_and_nginxs_own_stay_what_they_are() {
    for version in BOTH {
        let server = server();
        let Some(nginx) = Nginx::start(&server) else { return };
        let forbidden = || Request::get("/forbidden").body("").unwrap();
        let answer = nginx.send(version, forbidden()).await;
        assert_eq!((answer.status, &*answer.body), (StatusCode::FORBIDDEN, "the application forbids it\n"));
        assert!(answer.field("ratelimit").starts_with("\"burst\";r=2;t="), "{:?}", answer.headers);
        // It counts as any other, and is refused as any other.
        for status in [403, 403, 429] {
            assert_eq!(nginx.send(version, forbidden()).await.status.as_u16(), status);
        }
    }
    let server = server();
    let deny = |text: String| text.replace("auth_request /", "deny all; auth_request /");
    let Some(nginx) = Nginx::start_as(server.address, deny) else { return };
    for _ in 0..5 {
        let denied = nginx.get("/").await;
        assert_eq!((denied.status, denied.field("retry-after")), (StatusCode::FORBIDDEN, ""));
    }
}

#[tokio::test]
async fn what_a_client_writes_changes_nothing() {
    let limits = page("examples/nginx/limits.toml");
    let server = Server::start(&limits, &["--original", "x-original-uri", "--log-keys"]);
    let Some(nginx) = Nginx::start(&server) else { return };
    let ask = |at: usize, fields: &[&str]| {
        let request = Request::get("/").header("user-agent", "test");
        let value = |name: &str| match name {
            "forwarded" => format!("for=198.51.100.{at}"),
            "x-forwarded-for" | "x-real-ip" => format!("198.51.100.{at}"),
            "x-original-method" | "x-forwarded-method" => "BREW".to_owned(),
            _ => "/other".to_owned(),
        };
        fields.iter().fold(request, |request, name| request.header(*name, value(name))).body("").unwrap()
    };
    let hostile: [&[&str]; 3] = [
        &["x-forwarded-for", "x-real-ip", "forwarded"],
        &["x-forwarded-for", "x-forwarded-for"],
        &["x-original-uri", "x-original-method", "x-forwarded-uri", "x-forwarded-method", "connection"],
    ];
    let mut statuses = Vec::new();
    for (at, fields) in hostile.iter().chain(&hostile[..2]).enumerate() {
        statuses.push(nginx.send(Version::HTTP_11, ask(at, fields)).await.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429], "each in the name of another address");
    server.wait_for_log(" refused policy=\"nginx example\" rule=\"address\"");
    server.wait_for_log("key=\"127.0.0.1\"");
    assert!(!server.log().contains("198.51.100"), "{}", server.log());
}

#[tokio::test]
async fn what_a_client_may_send_to_nginx_is_no_trouble() {
    let limits = page("examples/nginx/limits.toml").replace("3/15s", "100/15s").replace("30/5m", "2000/5m");
    let server = Server::start(&limits, &["--original", "x-original-uri"]);
    let Some(nginx) = Nginx::start(&server) else { return };
    // More fields and bytes than the server reads of a head, and few enough for nginx.
    let cookies = "cookie: 0123456789\r\n".repeat(200) + &format!("x: {}\r\n", "y".repeat(7000)).repeat(3);
    let answer = nginx.raw(&format!("GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n{cookies}\r\n"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // What nginx takes for a path, and is none.
    let answer = nginx.raw("GET /<é HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let post = nginx.send(Version::HTTP_11, Request::post("/").body("some body").unwrap()).await;
    assert_eq!(post.status, StatusCode::OK);
    // The location that asks is nobody's to ask.
    assert_eq!(nginx.get("/tidegate").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn connections_to_the_server_are_kept() {
    let server = server();
    let Some(nginx) = Nginx::start(&server) else { return };
    let before = server.metric("tidegate_connections_accepted_total").await;
    for at in 0..20 {
        let status = nginx.get("/").await.status.as_u16();
        assert_eq!(status, if at < 3 { 200 } else { 429 });
    }
    // One for each of two workers, and that which is asked on.
    let opened = server.metric("tidegate_connections_accepted_total").await - before;
    assert!(opened <= 3.0, "{opened} connections for 20 requests");
}

#[tokio::test]
async fn without_the_server_nobody_passes_and_with_another_all_is_well() {
    let mut first = server();
    let Some(nginx) = Nginx::start(&first) else { return };
    assert_eq!(nginx.get("/").await.status, StatusCode::OK);
    first.signal("-TERM");
    assert_eq!(first.ended(), Some(0));
    for version in BOTH {
        let answer = nginx.send(version, Request::get("/").body("").unwrap()).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{version:?}");
        assert_eq!(
            (answer.problem().as_str(), answer.field("cache-control")),
            ("no limit could be asked", "no-store")
        );
    }
    let second = Server::start_at(
        &first.address.to_string(),
        &page("examples/nginx/limits.toml"),
        &["--original", "x-original-uri"],
    );
    for status in [200, 200, 200, 429] {
        assert_eq!(nginx.get("/").await.status.as_u16(), status);
    }
    drop(second);
    let never = page("examples/nginx/limits.toml").replace("limit =", "cost = 31\nlimit =");
    let _third = Server::start_at(&first.address.to_string(), &never, &[]);
    let refused = nginx.get("/").await;
    assert_eq!((refused.status, refused.field("retry-after")), (StatusCode::TOO_MANY_REQUESTS, ""));
    assert_eq!(refused.problem(), "this is more than the limit ever allows");
}

/// A connection that was kept may be closed at the very moment at which nginx asks on it; it asks on another then, and tells
/// both statuses.
#[tokio::test]
async fn a_refusal_at_the_second_try_is_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let one = |text: String| text.replace("worker_processes 2", "worker_processes 1");
    let Some(nginx) = Nginx::start_as(address, one) else { return };
    let asked = std::thread::spawn(move || {
        let (mut kept, _) = listener.accept().unwrap();
        assert!(head(&mut kept).starts_with("HEAD /auth?status=403 HTTP/1.1\r\n"));
        kept.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        let again = head(&mut kept);
        drop(kept);
        let (mut other, _) = listener.accept().unwrap();
        assert_eq!(head(&mut other), again);
        other.write_all(b"HTTP/1.1 403 Forbidden\r\nretry-after: 7\r\ncontent-length: 9\r\n\r\n").unwrap();
    });
    assert_eq!(nginx.get("/").await.status, StatusCode::OK);
    let refused = nginx.get("/").await;
    assert_eq!((refused.status, refused.field("retry-after")), (StatusCode::TOO_MANY_REQUESTS, "7"));
    asked.join().unwrap();
}

/// The head of the next request on a connection.
fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    String::from_utf8(bytes).unwrap()
}
