//! What README.md shows under a command is what the command prints.

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

#[test]
fn the_readme_shows_what_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let Ok(readme) = std::fs::read_to_string(&path) else {
        println!("skipped: no README.md beside the command's sources");
        return;
    };
    let shown = shown(&readme);
    assert!(!shown.is_empty(), "README.md shows no command of this binary");
    for (arguments, output) in shown {
        let measures = arguments.first() == Some(&"bench");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(&arguments);
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
