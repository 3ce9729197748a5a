//! What README.md, docs/policy.md and docs/replay.md show under a command is what the command prints.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::path::Path;
use std::process::Command;

/// Commands of this binary in console blocks, each with the output shown under it.
fn shown(readme: &str) -> Vec<(Vec<&str>, String)> {
    const PROMPT: &str = "$ cargo run --release -- ";
    let mut shown = Vec::new();
    for block in readme.split("```console\n").skip(1) {
        let Some((block, _)) = block.split_once("```") else { continue };
        let Some((command, output)) = block.split_once('\n') else { continue };
        if let Some(arguments) = command.strip_prefix(PROMPT) {
            shown.push((arguments.split_whitespace().collect(), output.to_owned()));
        }
    }
    shown
}

/// A page without its figures and bars, and without the line that names the machine: what two runs of a bench have
/// in common.
fn without_figures(page: &str) -> Vec<String> {
    let lines = page.lines().skip(1).map(|line| {
        let words = line.split(|c: char| c.is_whitespace() || c.is_ascii_digit() || "█▉▊▋▌▍▎▏.,".contains(c));
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    });
    lines.collect()
}

/// Runs every command that a page of the repository shows, from where a reader runs it.
fn assert_shown(page: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let Ok(text) = std::fs::read_to_string(root.join(page)) else {
        println!("skipped: no {page} beside the command's sources");
        return;
    };
    let shown = shown(&text);
    assert!(!shown.is_empty(), "{page} shows no command of this binary");
    for (arguments, output) in shown {
        let measures = arguments.first() == Some(&"bench");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(&arguments).current_dir(&root);
        if measures {
            // This machine may have more cores than the one that the README tells of, and no time.
            command.args(["--threads", "2", "--seconds", "2"]);
        }
        let run = command.output().unwrap();
        assert!(run.status.success(), "{arguments:?}");
        let printed = String::from_utf8(run.stdout).unwrap();
        if measures {
            assert_eq!(without_figures(&printed), without_figures(&output), "{arguments:?}");
        } else {
            assert_eq!(printed, output, "{arguments:?}");
        }
    }
}

#[test]
fn the_readme_shows_what_is_printed() {
    assert_shown("README.md");
}

#[test]
fn the_page_on_replays_shows_what_is_printed() {
    assert_shown("docs/replay.md");
}

#[test]
fn the_page_on_policies_shows_what_is_printed() {
    assert_shown("docs/policy.md");
}
