//! `--webhooks`: a file that is wrong is told, one that is right is followed to the end.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::sync::mpsc::channel;

use super::served::{Folder, PATIENCE, Server, THREE};

const FINE: &str = r#"
[[endpoint]]
name = "ada"
url = "https://hooks.example.com/limits"
secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
"#;

/// What becomes of a server whose file says this.
fn refused(text: &str) -> (Folder, Output) {
    let folder = Folder::new();
    std::fs::write(folder.0.join("webhooks.toml"), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["serve", "--listen", "127.0.0.1:0", "--webhooks", "webhooks.toml"])
        .current_dir(&folder.0)
        .output();
    (folder, output.unwrap())
}

#[test]
fn a_file_that_is_wrong_is_told_and_nothing_is_served() {
    let text = FINE.replace("https", "http") + "interval_s = 0\nrule = [\"three\"]\n";
    let (_folder, output) = refused(&text);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    let expected = [
        "tidegate: webhooks.toml:6:14: interval_s is 0; it must be a number of seconds from 0.001 to 86400",
        "tidegate: webhooks.toml:7:1: unknown field \"rule\" in [[endpoint]]; did you mean \"rules\"? Known: name, url, secrets, \
         secrets_file, secrets_env, rules, keys, interval_s, allow_http, allow_networks",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
    assert!(output.stdout.is_empty());
    let (_folder, output) = refused(&FINE.replace("https", "http"));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        told.trim_end(),
        "tidegate: webhooks.toml:4:7: url: is plain http; allowed: https, or http with allow_http"
    );
}

#[test]
fn a_server_with_webhooks_stops_as_others_do() {
    let folder = Folder::new();
    let file = folder.0.join("webhooks.toml");
    std::fs::write(&file, FINE).unwrap();
    let mut server = Server::start(THREE, &["--webhooks", file.to_str().unwrap()]);
    server.signal("-TERM");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    server.wait_for_log("webhooks stopped");
}

/// A receiver that accepts one message, and what it got: all of the request.
fn accepts_one(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut got, mut buffer) = (Vec::new(), [0; 4096]);
    while !got.ends_with(b"]}}") {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "it ends early: {}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&buffer[..read]);
    }
    stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
    String::from_utf8(got).unwrap()
}

#[tokio::test]
async fn a_partner_is_told_of_a_refusal_and_of_the_last_ones_at_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::new();
    let file = folder.0.join("webhooks.toml");
    let text = FINE
        .replace("https://hooks.example.com", &format!("http://{}", listener.local_addr().unwrap()))
        + "allow_http = true\nallow_networks = [\"127.0.0.0/8\"]\nkeys = [\"ada\", \"eve\"]\ninterval_s = 3600\n";
    std::fs::write(&file, text).unwrap();
    let mut server = Server::start(THREE, &["--webhooks", file.to_str().unwrap()]);
    let (tell, told) = channel();
    std::thread::spawn(move || (0..2).for_each(|_| tell.send(accepts_one(&listener)).unwrap()));
    let ask = async |user: &str| {
        for _ in 0..5 {
            let body = format!(r#"{{"api": "x", "user": "{user}"}}"#);
            assert_eq!(server.check(&body).await.status, 200);
        }
    };
    ask("bob").await;
    ask("ada").await;
    let first = told.recv_timeout(PATIENCE).unwrap();
    // What follows would wait for an hour if the server did not stop.
    ask("eve").await;
    server.signal("-TERM");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    let last = told.recv_timeout(PATIENCE).unwrap();
    assert!(
        first.starts_with("POST /limits HTTP/1.1\r\n") && first.contains("webhook-signature: v1,"),
        "{first}"
    );
    assert!(first.contains("\"key\":\"ada\"") && !first.contains("bob"), "{first}");
    assert!(last.contains("\"key\":\"eve\"") && last.contains("\"event\":\"refused\""), "{last}");
    server.wait_for_log("webhooks stopped");
}
