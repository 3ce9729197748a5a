//! `tidegate replay --suggest` as a user meets it: pages, figures that a replay of the proposal gives, and extremes.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::path::Path;

use common::{json, line, replay, shared, stderr, stdout, tidegate};
use serde_json::Value;

/// Compares a page with the one kept. `TIDEGATE_WRITE_GOLDEN=1 cargo test -p tidegate-cli --test suggest` writes them anew,
/// and the change is to be read like any other.
fn assert_told(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/told").join(name);
    if std::env::var_os("TIDEGATE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == page, "{} is to be:\n{page}", path.display());
}

/// What is proposed must do what it is said to, and one less of a window must refuse too many.
fn assert_measured(args: &[&str], input: &[u8]) {
    let found = json(args, input);
    let log: Vec<&str> = args.iter().copied().filter(|arg| !arg.starts_with("--suggest")).collect();
    let tried = |limit: &str| json(&[&log[..], &["--limit", limit]].concat(), input);
    for proposal in found["proposals"].as_array().unwrap() {
        let limit = proposal["limit"].as_str().unwrap();
        assert_eq!(proposal["arguments"].as_str().unwrap(), format!("--limit {limit}"));
        let told = tried(limit);
        for field in ["clients_refused", "refused", "refused_by"] {
            assert_eq!(told[field], proposal[field], "{limit}: {field}");
        }
        for heavy in found["heaviest"].as_array().unwrap() {
            let at = usize::from(limit.starts_with("bucket"));
            let is_it = |client: &&Value| client["client"] == heavy["client"];
            let top = told["top"].as_array().unwrap();
            let refused = top.iter().find(is_it).map_or(0, |client| client["refused"].as_u64().unwrap());
            assert!(refused == heavy["refused"][at].as_u64().unwrap() || refused == 0, "{heavy}");
        }
    }
    let allowed = found["clients_allowed"].as_u64().unwrap();
    let limits: Vec<&str> =
        found["proposals"].as_array().unwrap().iter().map(|limit| limit["limit"].as_str().unwrap()).collect();
    let numbers = |limit: &str| -> Vec<u64> {
        limit.split([':', '/', ',']).filter_map(|part| part.parse().ok()).collect()
    };
    let [burst, sustain] = numbers(limits[0])[..] else { panic!("{limits:?}") };
    let [rate, tokens] = numbers(limits[1])[..] else { panic!("{limits:?}") };
    for smaller in [
        format!("burst-sustain:{}/15s,{sustain}/300s", burst - 1),
        format!("burst-sustain:{}/15s,{}/300s", burst.min(sustain - 1), sustain - 1),
        format!("bucket:{}/m,{tokens}", rate - 1),
        format!("bucket:{rate}/m,{}", tokens - 1),
    ] {
        assert!(tried(&smaller)["clients_refused"].as_u64().unwrap() > allowed, "{smaller}");
    }
}

#[test]
fn limits_for_the_bundled_sample() {
    assert_measured(&["--suggest=1%"], b"");
    assert_measured(&["--suggest"], b"");
    let page = stdout(&replay(&["--suggest=1%"], b""));
    assert_told("suggest-sample.txt", &page);
    for columns in [40, 60, 80, 132] {
        let mut command = tidegate();
        command.args(["replay", "--suggest=1%"]).env("COLUMNS", columns.to_string());
        let page = stdout(&command.output().unwrap());
        // What is to be pasted is never broken.
        let lines = page.lines().filter(|line| !line.contains("--limit"));
        lines.for_each(|line| assert!(line.chars().count() <= columns, "{columns}: {line}"));
    }
}

#[test]
fn limits_for_a_real_log() {
    let Some(path) = shared("apache_combined.log") else { return };
    let path = path.to_str().unwrap();
    assert_measured(&[path, "--suggest"], b"");
    // Where it lies is no part of the page.
    let log = std::fs::read(path).unwrap();
    assert_told("suggest-apache.txt", &stdout(&replay(&["-", "--suggest"], &log)));
}

#[test]
fn one_client_and_one_second_are_told_to_be_little() {
    let log = line("a", 1).repeat(5);
    let args = ["-", "--suggest"];
    assert_told("suggest-one-client.txt", &stdout(&replay(&args, log.as_bytes())));
    let found = json(&args, log.as_bytes());
    assert_eq!(found["proposals"][0]["limit"], "burst-sustain:5/15s,5/300s");
    assert_eq!(found["proposals"][1]["limit"], "bucket:1/m,5");
    assert_eq!(found["doubts"].as_array().unwrap().len(), 2);
    let all = json(&["-", "--suggest=100%"], log.as_bytes());
    assert_eq!(all["proposals"][0]["limit"], "burst-sustain:1/15s,1/300s");
    assert_eq!((&all["heaviest"][0]["requests"], &all["heaviest"][0]["refused"][1]), (&5.into(), &4.into()));
}

#[test]
fn a_log_without_requests_has_no_limits() {
    let output = replay(&["-", "--suggest", "--json"], b"");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "tidegate: standard input: the log is empty\n");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["proposals"], &found["span"]), (&Value::Array(Vec::new()), &Value::Null));
}

#[test]
fn what_does_not_go_together_is_refused() {
    for args in [
        &["--suggest=101%"][..],
        &["--suggest=some"],
        &["--suggest", "--limit", "bucket:1/s,5"],
        &["--suggest", "--policy", "default"],
        &["--suggest", "--svg", "a.svg"],
    ] {
        let output = replay(args, b"");
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(2), ""), "{args:?}");
    }
    let told = stderr(&replay(&["--suggest=101%"], b""));
    assert!(told.contains("it must be a share of the clients in percent"), "{told}");
}

#[test]
fn the_help_tells_every_field_of_the_json() {
    let help = stdout(&tidegate().args(["replay", "--help"]).output().unwrap());
    let (_, help) = help.split_once("JSON:").unwrap();
    let words: Vec<&str> = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let found = json(&["--suggest=1%"], b"");
    let of = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let fields = [of(&found), of(&found["proposals"][0]), of(&found["heaviest"][0])].concat();
    assert!(fields.len() > 20);
    for field in fields {
        assert!(words.contains(&field.as_str()), "{field}");
    }
}
