//! `docs/contract.md` names tests; each of them must be there.
//!
//! A line of a table names a test as `` `file.rs::function` ``, or says that it is argued only.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::path::Path;

/// The rows of the page's tables, with their line numbers; heads and rules left out.
fn rows(page: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = page.lines().collect();
    let is_rule = |line: &str| line.starts_with("|---");
    let is_row = |number: usize| {
        let is_head = lines.get(number + 1).is_some_and(|next| is_rule(next));
        lines[number].starts_with('|') && !is_rule(lines[number]) && !is_head
    };
    (0..lines.len()).filter(|&number| is_row(number)).map(|number| (number + 1, lines[number])).collect()
}

/// What stands between backquotes and looks like `file.rs::function`.
fn named(row: &str) -> Vec<(&str, &str)> {
    row.split('`').skip(1).step_by(2).filter_map(|code| code.split_once(".rs::")).collect()
}

/// What is wrong with `function` as a test of `source`, if anything. The attributes of a test stand right above it,
/// in a `proptest!` block too.
fn fault(source: &str, function: &str, may_be_ignored: bool) -> Option<&'static str> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let start = format!("fn {function}(");
    let Some(at) = lines.iter().position(|line| line.trim_start_matches("async ").starts_with(&start)) else {
        return Some("has no such function");
    };
    let above =
        || lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    if !above().any(|line| *line == "#[test]" || line.starts_with("#[tokio::test")) {
        return Some("has that function, but not as a test");
    }
    if !may_be_ignored && above().any(|line| line.starts_with("#[ignore")) {
        return Some("has that test, but ignores it");
    }
    None
}

/// Everything that is wrong with the page, a sentence each. `read` gives a file's text, if there is the file.
fn faults(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (number, row) in rows(page) {
        let named = named(row);
        if named.is_empty() && !row.contains("argued only: ") {
            found.push(format!("line {number} names no test: {row}"));
        }
        for (file, function) in named {
            let path = format!("{file}.rs");
            let Some(source) = read(&path) else {
                found.push(format!("line {number}: there is no {path}"));
                continue;
            };
            // The models that take minutes are left out of a plain run, and named in `ci/`.
            if let Some(fault) = fault(&source, function, path.starts_with("loom-tests/")) {
                found.push(format!("line {number}: {path} {fault}: {function}"));
            }
        }
    }
    found
}

#[test]
fn every_line_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/contract.md")).unwrap();
    assert!(rows(&page).len() > 40, "{} lines found", rows(&page).len());
    // A published package comes without the models.
    let has_models = root.join("loom-tests").is_dir();
    let found = faults(&page, |path| match std::fs::read_to_string(root.join(path)) {
        Err(_) if path.starts_with("loom-tests/") && !has_models => None,
        text => text.ok(),
    });
    let is_due = |fault: &&String| has_models || !fault.contains("there is no loom-tests/");
    let found: Vec<&String> = found.iter().filter(is_due).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_name_that_leads_nowhere_is_caught() {
    let source = "#[test]\nfn good() {}\nfn helper() {}\n\n#[test]\n#[ignore = \"slow\"]\nfn slow() {}\n\
                  #[tokio::test(start_paused = true)]\nasync fn waits() {}\nasync fn idles() {}\n\
                  proptest! {\n    /// Words.\n    #[test]\n    fn any(n in 0..3) {}\n}\n// fn comment() {}\n";
    let read = |path: &str| (path == "tests/a.rs").then(|| source.to_owned());
    for (cell, expected) in [
        ("`tests/a.rs::good`, `tests/a.rs::any`, `tests/a.rs::waits`", None),
        ("argued only: so it is", None),
        ("", Some("names no test")),
        ("`good`", Some("names no test")),
        ("`tests/a.rs::goo`", Some("no such function")),
        ("`tests/a.rs::comment`", Some("no such function")),
        ("`tests/a.rs::good`, `tests/a.rs::helper`", Some("not as a test")),
        ("`tests/a.rs::waits`, `tests/a.rs::idles`", Some("not as a test")),
        ("`tests/a.rs::slow`", Some("ignores it")),
        ("`tests/b.rs::good`", Some("there is no")),
    ] {
        let found = faults(&format!("| a | b |\n|---|---|\n| a line | {cell} |\n"), read);
        assert_eq!(found.len(), usize::from(expected.is_some()), "{cell}: {found:?}");
        assert!(expected.is_none_or(|expected| found[0].contains(expected)), "{cell}: {found:?}");
    }
}
