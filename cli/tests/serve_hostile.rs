//! `tidegate serve` among clients that mean it no good: whatever they do, others are served, and memory stays bounded.

#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod served;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use http::StatusCode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use served::{PATIENCE, PREFACE, Server, THREE, frame, to_end};

/// Times short enough to be waited for, and long enough for a machine that has other things to do.
const SHORT: [&str; 6] = ["--header-timeout", "1", "--request-timeout", "1", "--idle-timeout", "2"];

/// Asserts that the server is well.
fn is_well(server: &Server) {
    let answer = server.raw(b"GET /health HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("ready"), "{answer}");
}

/// How long the other end leaves the connection open, with a byte sent every 50 ms.
fn dribbled(stream: &mut TcpStream, byte: u8) -> (Duration, String) {
    let start = Instant::now();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let (mut heard, mut buffer) = (Vec::new(), [0; 1024]);
    while start.elapsed() < PATIENCE {
        let is_open = stream.write_all(&[byte]).is_ok();
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => heard.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && is_open => {}
            Err(_) => break,
        }
    }
    (start.elapsed(), String::from_utf8_lossy(&heard).into_owned())
}

#[test]
fn a_slow_head_ends_its_connection() {
    // An idle connection has so long that no other time is taken for it.
    let server =
        Server::start(THREE, &["--header-timeout", "1", "--request-timeout", "1", "--idle-timeout", "60"]);
    let slow = |begin: &[u8]| {
        let mut stream = server.connect();
        stream.write_all(begin).unwrap();
        if begin.ends_with(b"\r\n\r\n") {
            // It is answered, and then says nothing whole any more.
            let mut answer = [0; 1024];
            assert!(stream.read(&mut answer).unwrap() > 0);
        }
        dribbled(&mut stream, b'x').0
    };
    for begin in [
        &b""[..],
        b"GET /health HTTP/1.1\r\nx: ",
        b"GET /health HTTP/1.1\r\nhost: t\r\n\r\n",
        b"PRI * HTTP/2.0\r\n",
    ] {
        let took = slow(begin);
        println!("{:?}: {took:?}", String::from_utf8_lossy(begin));
        // One header timeout, or two behind a request that was answered; and the machine's time.
        assert!(took < Duration::from_secs(6), "{took:?} after {:?}", String::from_utf8_lossy(begin));
        if !begin.is_empty() && !begin.starts_with(b"PRI") {
            assert!(took > Duration::from_millis(700), "{took:?} after {:?}", String::from_utf8_lossy(begin));
        }
    }
    is_well(&server);
}

#[test]
fn a_client_that_says_nothing_is_let_go() {
    let server = Server::start(THREE, &SHORT);
    let start = Instant::now();
    assert_eq!(to_end(&mut server.connect()), "");
    let silent = start.elapsed();
    assert!(silent > Duration::from_millis(800) && silent < Duration::from_secs(6), "{silent:?}");
    // After a request there is more time.
    let start = Instant::now();
    let answer = server.raw(b"GET /health HTTP/1.1\r\nhost: t\r\n\r\n");
    let idle = start.elapsed();
    assert!(answer.contains("ready"));
    assert!(idle > Duration::from_millis(1800) && idle < Duration::from_secs(8), "{idle:?}");
}

#[test]
fn a_slow_body_is_told_so() {
    let server = Server::start(THREE, &SHORT);
    let head = "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n";
    for framing in ["content-length: 10000\r\n\r\n{", "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n2000\r\n"]
    {
        let mut stream = server.connect();
        stream.write_all(format!("{head}{framing}").as_bytes()).unwrap();
        let (took, heard) = dribbled(&mut stream, b' ');
        assert!(heard.starts_with("HTTP/1.1 408"), "{heard}");
        assert!(heard.contains("the body did not come in time"), "{heard}");
        assert!(heard.to_lowercase().contains("\r\nconnection: close\r\n"), "{heard}");
        assert!(took < Duration::from_secs(6), "{took:?}");
    }
    is_well(&server);
}

#[tokio::test]
async fn bodies_and_heads_are_bounded() {
    let server = Server::start(
        THREE,
        &["--max-body-bytes", "1000", "--max-headers", "10", "--max-header-bytes", "8192"],
    );
    let padded = |length: usize| {
        let body = r#"{"api": "x", "user": "ada"}"#;
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    assert_eq!(server.check(&padded(1000)).await.status, StatusCode::OK);
    let answer = server.check(&padded(1001)).await;
    assert_eq!(
        (answer.status, &*answer.problem()),
        (StatusCode::PAYLOAD_TOO_LARGE, "the body may have 1000 bytes")
    );
    // A length that nobody could keep, and one that nobody tells.
    let head = "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let told = server.raw(format!("{head}content-length: 1000000000000\r\n\r\n{{").as_bytes());
    assert!(told.starts_with("HTTP/1.1 413"), "{told}");
    let chunks = "400\r\n".to_owned() + &" ".repeat(0x400) + "\r\n";
    let told = server.raw(format!("{head}transfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n").as_bytes());
    assert!(told.starts_with("HTTP/1.1 413"), "{told}");

    let fields = |count: usize| (0..count).map(|at| format!("x-{at}: 1\r\n")).collect::<String>();
    let with = |fields: String| {
        server.raw(format!("GET /health HTTP/1.1\r\nconnection: close\r\n{fields}\r\n").as_bytes())
    };
    assert!(with(fields(9)).starts_with("HTTP/1.1 200"));
    assert!(with(fields(10)).starts_with("HTTP/1.1 431"));
    assert!(with(format!("x: {}\r\n", "a".repeat(20_000))).starts_with("HTTP/1.1 431"));
    let long = server.raw(format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(20_000)).as_bytes());
    assert!(long.starts_with("HTTP/1.1 4"), "{long}");
    is_well(&server);
}

#[test]
fn garbage_is_no_request() {
    let server = Server::start(THREE, &SHORT);
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let mut noise = Vec::new();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..8000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(&state.to_le_bytes());
    }
    let json = "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n";
    let no_chunk = format!("{json}transfer-encoding: chunked\r\n\r\nzz\r\n");
    let not_ascii =
        b"GET /auth/x HTTP/1.1\r\nhost: t\r\nx-forwarded-for: \xff\xfe\r\nconnection: close\r\n\r\n";
    let requests: [(&[u8], &str); 9] = [
        (hello, "400"),
        (b"\0\0\0\0\0\0\0\0\r\n\r\n", "400"),
        (b"GET / HTTP/9.9\r\n\r\n", "400"),
        (b"GET /a b HTTP/1.1\r\n\r\n", "400"),
        (b"GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", "400"),
        (b"POST /check HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}", "400"),
        (b"GET / HTTP/1.1\r\nx\0y: 1\r\n\r\n", "400"),
        // Nobody is named by it, so the address of the connection is the client's.
        (not_ascii, "200"),
        (no_chunk.as_bytes(), "400"),
    ];
    for (bytes, status) in requests {
        let told = server.raw(bytes);
        let of = String::from_utf8_lossy(bytes);
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{of:?}: {told}");
        assert_eq!(told.matches("HTTP/1.1 ").count(), 1, "{of:?}: {told}");
    }
    // What nobody reads may reset the connection before the answer is read.
    let told = server.raw(&noise);
    assert!(told.is_empty() || told.starts_with("HTTP/1.1 400 "), "{told}");
    is_well(&server);
}

/// `GET http://t/health`, of the static table.
const GET_HEALTH: &[u8] = b"\x82\x86\x41\x01t\x04\x07/health";

#[test]
fn broken_frames_end_their_connection_alone() {
    let server = Server::start(THREE, &SHORT);
    let settings = frame(4, 0, 0, &[]);
    let headers = frame(1, 5, 1, GET_HEALTH);
    let cut = |bytes: &[u8], length: usize| bytes[..length].to_vec();
    let continued: Vec<u8> = (0..10_000).flat_map(|_| frame(9, 0, 1, &[0x40, 1, b'a', 1, b'b'])).collect();
    let pings: Vec<u8> = (0..10_000).flat_map(|_| frame(6, 0, 0, &[0; 8])).collect();
    let all_settings: Vec<u8> = (0..10_000).flat_map(|_| frame(4, 0, 0, &[])).collect();
    for (what, bytes) in [
        ("the preface alone", vec![]),
        ("half a frame's head", cut(&settings, 5)),
        ("half a frame", [settings.clone(), cut(&headers, 15)].concat()),
        ("a head that does not end", [settings.clone(), frame(1, 1, 1, GET_HEALTH)].concat()),
        ("a head that goes on and on", [settings.clone(), frame(1, 1, 1, GET_HEALTH), continued].concat()),
        ("a frame that is too long", [settings.clone(), vec![0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat()),
        (
            "a header table that cannot be",
            [settings.clone(), frame(1, 5, 1, &[0xff, 0xff, 0xff, 0xff, 0xff])].concat(),
        ),
        ("a window that overflows", [settings.clone(), frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff])].concat()),
        ("pings without end", [settings.clone(), pings].concat()),
        ("settings without end", all_settings),
    ] {
        let start = Instant::now();
        server.raw(&[PREFACE, &bytes].concat());
        let took = start.elapsed();
        println!("{what}: {took:?}");
        assert!(took < Duration::from_secs(8), "{what}: {took:?}");
    }
    is_well(&server);
}

#[test]
fn streams_that_are_reset_at_once_end_the_connection() {
    let server = Server::start(THREE, &[]);
    let start = Instant::now();
    let mut stream = server.connect();
    let mut bytes = [PREFACE, &frame(4, 0, 0, &[])].concat();
    for at in 0..20_000 {
        bytes.extend(frame(1, 5, 2 * at + 1, GET_HEALTH));
        bytes.extend(frame(3, 0, 2 * at + 1, &[0, 0, 0, 8]));
    }
    let sent = stream.write_all(&bytes);
    to_end(&mut stream);
    println!(
        "20 000 streams opened and reset: sent {sent:?}, {:?}, VmHWM {:?}",
        start.elapsed(),
        server.memory("VmHWM")
    );
    // Long before any time is up.
    assert!(start.elapsed() < Duration::from_secs(5));
    is_well(&server);
}

#[test]
fn a_client_that_never_reads_is_let_go() {
    let server = Server::start(THREE, &SHORT);
    let mut stream = server.connect();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let many = b"GET /metrics HTTP/1.1\r\nhost: t\r\n\r\n".repeat(1000);
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        match stream.write_all(&many) {
            Ok(()) => {}
            // Full: it takes no more until somebody reads, and nobody does.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    println!("let go after {:?}, VmHWM {:?}", start.elapsed(), server.memory("VmHWM"));
    assert!(start.elapsed() < PATIENCE);
    is_well(&server);
}

#[test]
fn more_connections_than_places_wait_their_turn() {
    let server = Server::start(THREE, &[&SHORT[..], &["--max-connections", "8"]].concat());
    let silent: Vec<TcpStream> = (0..20).map(|_| server.connect()).collect();
    let start = Instant::now();
    is_well(&server);
    let took = start.elapsed();
    println!("served after {took:?}, with 20 silent connections before it and 8 places");
    assert!(took > Duration::from_millis(800), "{took:?}: nobody had to wait");
    drop(silent);
    is_well(&server);
}

/// The most memory that the server may have with so many connections: what it has by itself, and 24 KiB for each.
const CONNECTION_BYTES_MAX: u64 = 24 * 1024;

/// Opens as many connections as the system lets, 10 000 at most, each with half a head; how many it was.
fn crowd(server: &Server) -> Vec<TcpStream> {
    let limit = getrlimit(Resource::Nofile);
    _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(200);
    let wanted = usize::try_from(files).unwrap().min(10_000);
    let mut crowd = Vec::with_capacity(wanted);
    let start = Instant::now();
    while crowd.len() < wanted && start.elapsed() < 2 * PATIENCE {
        let Ok(mut stream) = TcpStream::connect_timeout(&server.address, PATIENCE) else { break };
        if stream.write_all(b"POST /check HTTP/1.1\r\nhost: t\r\nx-").is_err() {
            break;
        }
        crowd.push(stream);
    }
    crowd
}

#[test]
fn ten_thousand_connections_keep_nobody_from_being_served() {
    let server = Server::start(
        THREE,
        &["--max-connections", "12000", "--header-timeout", "60", "--idle-timeout", "60"],
    );
    let before = server.memory("VmRSS");
    let (waits, crowd) = thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let server = &server;
        let other = scope.spawn(move || {
            let mut waits = Vec::new();
            loop {
                let start = Instant::now();
                is_well(server);
                waits.push(start.elapsed());
                if stopped.recv_timeout(Duration::from_millis(5)).is_ok() {
                    return waits;
                }
            }
        });
        let crowd = crowd(server);
        // A while with all of them there.
        thread::sleep(Duration::from_secs(1));
        stop.send(()).unwrap();
        (other.join().unwrap(), crowd)
    });
    let count = crowd.len() as u64;
    let mut sorted = waits;
    sorted.sort();
    println!(
        "{count} connections; another client was served {} times meanwhile, median {:?}, longest {:?}",
        sorted.len(),
        sorted[sorted.len() / 2],
        sorted[sorted.len() - 1]
    );
    println!(
        "VmRSS before {before:?}, with all {:?}, VmHWM {:?}",
        server.memory("VmRSS"),
        server.memory("VmHWM")
    );
    assert!(sorted.len() > 10 && sorted[sorted.len() - 1] < Duration::from_secs(5));
    if let (Some(before), Some(most)) = (before, server.memory("VmHWM")) {
        let each = most.saturating_sub(before) / count.max(1);
        println!("{each} bytes a connection");
        assert!(most <= before + count * CONNECTION_BYTES_MAX, "{each} bytes a connection");
    }
    drop(crowd);
    is_well(&server);
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_without_files_left_goes_on() {
    // 100 files: 64 are kept, so there are places for 36, and no warning says that fewer were asked for.
    let server = Server::start(THREE, &[&SHORT[..], &["--max-connections", "36"]].concat());
    let pid = rustix::process::Pid::from_raw(i32::try_from(server.pid()).unwrap());
    let files = Rlimit { current: Some(20), maximum: Some(20) };
    rustix::process::prlimit(pid, Resource::Nofile, files).unwrap();
    let crowd: Vec<TcpStream> = (0..40).map(|_| server.connect()).collect();
    server.wait_for_log("no connection accepted");
    // Those that are silent go in time, and then there are files again.
    is_well(&server);
    drop(crowd);
    is_well(&server);
}
