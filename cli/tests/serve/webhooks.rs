//! `--webhooks`: a file that is wrong is told, one that is right is followed to the end.

use std::process::{Command, Output};

use super::served::{Folder, Server, THREE};

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
