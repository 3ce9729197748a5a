//! Runs the command as a user would.

#![allow(dead_code)] // each test file uses its own part
#![allow(clippy::unwrap_used)] // the exemption for tests does not reach their helpers

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The command, without the colours and widths that the environment may ask for.
pub(crate) fn tidegate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(name);
    }
    command
}

/// What `tidegate replay` with these arguments does with this on standard input, which is a pipe if there
/// is a `-` to read it.
pub(crate) fn replay(args: &[&str], input: &[u8]) -> Output {
    if !args.contains(&"-") {
        assert!(input.is_empty(), "input that nobody reads");
        return tidegate().arg("replay").args(args).stdin(Stdio::null()).output().unwrap();
    }
    pipe(args, input)
}

/// What `tidegate bench` with these arguments does.
pub(crate) fn bench(args: &[&str]) -> Output {
    tidegate().arg("bench").args(args).stdin(Stdio::null()).output().unwrap()
}

/// What `tidegate replay` with these arguments does at the end of a pipe.
pub(crate) fn pipe(args: &[&str], input: &[u8]) -> Output {
    let mut child = tidegate()
        .arg("replay")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that gives up early leaves its input unread; that is no failure of the test.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// The JSON that `tidegate replay --json` with these arguments makes of this; its exit status must be 0.
pub(crate) fn json(args: &[&str], input: &[u8]) -> serde_json::Value {
    let output = replay(&[args, &["--json"]].concat(), input);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A log line of this client at this second of an hour.
pub(crate) fn line(client: &str, second: u32) -> String {
    let (minute, second) = (second / 60, second % 60);
    format!("{client} - - [02/Mar/2026:09:{minute:02}:{second:02} +0000] \"GET / HTTP/1.1\" 200 17\n")
}

/// A file of the folder of real logs that may lie beside the project; `None`, and a note, if it does not.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(name);
    if path.is_file() {
        return Some(path);
    }
    eprintln!("skipped: {} is not there", path.display());
    None
}
