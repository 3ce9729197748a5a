//! A server as its users start it, and clients of it.

#![allow(dead_code)] // each test file uses its own part
#![allow(clippy::unwrap_used)] // the exemption for tests does not reach their helpers

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;

/// Nothing here takes longer on a machine that has other things to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A rule of three a minute for each user.
pub(crate) const THREE: &str = r#"
[[rule]]
name = "three"
key = "user"
limit = { rate = "1/m", burst = 3 }
"#;

/// A server of its own; it ends with this.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<String>>,
    folder: Folder,
}

/// A folder of its own; it ends with this.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let name =
            format!("tidegate-serve-{}-{:?}-{}", std::process::id(), thread::current().id(), now.as_nanos());
        let folder = std::env::temp_dir().join(name.replace(['(', ')'], ""));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Server {
    /// Starts one with this policy, at a free port.
    pub(crate) fn start(policy: &str, args: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", policy, args)
    }

    /// The same, at this address.
    pub(crate) fn start_at(address: &str, policy: &str, args: &[&str]) -> Self {
        let (server, stderr) = Self::start_unread_at(address, policy, args);
        let kept = Arc::clone(&server.log);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = kept.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        server
    }

    /// The same, and its standard error, which nobody reads.
    pub(crate) fn start_unread_at(address: &str, policy: &str, args: &[&str]) -> (Self, ChildStderr) {
        let folder = Folder::new();
        let file = folder.0.join("policy.toml");
        std::fs::write(&file, policy).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["serve", "--listen", address, "--policy"])
            .arg(&file)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let mut stderr = child.stderr.take().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").map(|address| address.parse().unwrap());
        let address = address.unwrap_or_else(|| {
            let mut told = String::new();
            _ = stderr.read_to_string(&mut told);
            panic!("no address in {line:?}: {told}")
        });
        (Self { child, address, log, folder }, stderr)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn policy(&self) -> PathBuf {
        self.folder.0.join("policy.toml")
    }

    /// Puts another policy in the file's place, in one step.
    pub(crate) fn rename_policy(&self, text: &str) {
        let new = self.folder.0.join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.policy()).unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a line of the log that has this.
    pub(crate) fn wait_for_log(&self, text: &str) {
        wait_until(text, || self.log().contains(text));
    }

    /// The status that the process ends with.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(start.elapsed() < PATIENCE, "it does not end: {}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// A line of `/proc/PID/status` that is in kB, in bytes; `None` where there is no such file.
    pub(crate) fn memory(&self, name: &str) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Everything that comes back for these bytes, to the end of the connection.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // It may have heard enough before the end.
        _ = stream.write_all(bytes);
        to_end(&mut stream)
    }

    /// The answer to a request on a connection of its own, by HTTP/1.1.
    pub(crate) async fn send(&self, request: Request<String>) -> Answer {
        let stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let driver = tokio::spawn(connection);
        let request = request.map(|body| Full::new(Bytes::from(body)));
        let answer = Answer::of(sender.send_request(with_host(request)).await.unwrap()).await;
        driver.abort();
        answer
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(String::new()).unwrap()).await
    }

    pub(crate) async fn check(&self, json: &str) -> Answer {
        let request = Request::post("/check").header("content-type", "application/json");
        self.send(request.body(json.to_owned()).unwrap()).await
    }

    /// A client that speaks HTTP/2 at once.
    pub(crate) async fn http2(&self) -> http2::SendRequest<Full<Bytes>> {
        let stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// A counter or gauge by its name and labels, as they stand in the text.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").await.body;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the log of the server:\n{}", self.log());
        }
    }
}

fn with_host(mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    request.headers_mut().insert("host", "tidegate.test".parse().unwrap());
    request
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) async fn of(response: Response<hyper::body::Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        Self { status: head.status, headers: head.headers, body }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The `detail` of problem details, which it must be.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.field("content-type"), "application/problem+json", "{}", self.body);
        let json = self.json();
        assert_eq!(json["status"], self.status.as_u16());
        json["detail"].as_str().unwrap().to_owned()
    }
}

/// Everything to the end of a connection, however it ends.
pub(crate) fn to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it takes too long: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A file of the repository.
pub(crate) fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap()
}

/// What an HTTP/2 client says first.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame of HTTP/2.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}
