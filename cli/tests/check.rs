//! `tidegate check` as a user meets it: broken policies beside what is told of them, and exit statuses.
//!
//! What is told stands in the `.txt` beside each policy; `TIDEGATE_WRITE_GOLDEN=1 cargo test -p tidegate-cli --test check`
//! writes it anew, and the change is to be read like any other.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{stderr, stdout, tidegate};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The command in the folder of a policy, so that messages hold no more than its name.
fn check_in(folder: &Path, args: &[&str]) -> Output {
    let mut command: Command = tidegate();
    command.arg("check").args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// Compares with what is kept in a file, or keeps it there.
fn assert_kept(path: &Path, told: &str) {
    if std::env::var_os("TIDEGATE_WRITE_GOLDEN").is_some() {
        std::fs::write(path, told).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept == told, "{} is to be:\n{told}", path.display());
}

#[test]
fn the_default_policy_is_told_by_its_name() {
    let output = check_in(&folder(), &["default"]);
    let told = stdout(&output);
    assert!(output.status.success() && told.starts_with("default: 20 rules, no mistakes"), "{told}");
}

#[test]
fn broken_policies_are_told_line_by_line() {
    let folder = folder().join("broken");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 10);
    for name in names {
        let output = check_in(&folder, &[&name]);
        assert_eq!((output.status.code(), &*stderr(&output)), (Some(2), ""), "{name}");
        assert_kept(&folder.join(&name).with_extension("txt"), &stdout(&output));
    }
}

#[test]
fn odd_policies_are_told_with_warnings() {
    let output = check_in(&folder(), &["odd.toml"]);
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    assert_kept(&folder().join("odd.txt"), &stdout(&output));
    assert_eq!(check_in(&folder(), &["odd.toml", "--strict"]).status.code(), Some(1));
    let quiet = check_in(&folder(), &["odd.toml", "--quiet"]);
    assert_eq!(quiet.status.code(), Some(0));
    let lines = stdout(&quiet);
    assert!(lines.lines().count() >= 5, "{lines}");
    assert!(lines.lines().all(|line| line.starts_with("odd.toml: warning: rule \"")), "{lines}");
}

#[test]
fn shipped_policies_are_told_in_sentences() {
    let policies = folder().join("../../policies");
    if !policies.is_dir() {
        println!("skipped: no policies beside the command's sources");
        return;
    }
    for name in ["fgrl", "game-backend", "http-api", "llm-gateway"] {
        let output = check_in(&policies, &["--strict", &format!("{name}.toml")]);
        assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""), "{}", stdout(&output));
        assert_kept(&folder().join(format!("told/{name}.txt")), &stdout(&output));
        assert_eq!(stdout(&check_in(&policies, &["--quiet", &format!("{name}.toml")])), "");
    }
}

#[test]
fn the_worst_file_decides_the_status() {
    let status = |args: &[&str]| check_in(&folder(), args).status.code();
    assert_eq!(status(&["odd.toml", "broken/names.toml", "--strict"]), Some(2));
    assert_eq!(status(&["broken/names.toml", "odd.toml"]), Some(2));
    assert_eq!(status(&["none.toml"]), Some(2));
    assert_eq!(status(&["odd.txt"]), Some(2));
    assert_eq!(status(&[]), Some(2));
}

#[test]
fn colours_are_for_terminals_and_for_who_asks() {
    let plain = stdout(&check_in(&folder(), &["odd.toml"]));
    let coloured = stdout(&check_in(&folder(), &["odd.toml", "--color", "always"]));
    assert!(!plain.contains('\u{1b}') && coloured.contains('\u{1b}'));
}

#[test]
fn a_file_cannot_move_the_cursor() {
    let folder = std::env::temp_dir().join(format!("tidegate-check-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = "name = \"\\u001b[2J\"\n[[rule]]\nname = \"a\\u001b[2J\\nb\"\nkey = \"user\"\nlimit = { window = \"5/s\" }\n";
    std::fs::write(folder.join("a.toml"), text).unwrap();
    let told = stdout(&check_in(&folder, &["a.toml"]));
    assert!(!told.contains('\u{1b}') && told.contains("  a\u{fffd}[2J\u{fffd}b: each user"), "{told}");
    std::fs::remove_dir_all(&folder).unwrap();
}
