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
        let run = Command::new(env!("CARGO_BIN_EXE_tidegate")).args(&arguments).output().unwrap();
        assert!(run.status.success(), "{arguments:?}");
        assert_eq!(String::from_utf8(run.stdout).unwrap(), output, "{arguments:?}");
    }
}
