//! The layers of the crate: arrows point down only.
//!
//! Every path that starts at `crate::` (or at `super::`, resolved) in `src/` is an arrow from its file's layer to
//! the layer of the module it names. A file uses what stands below it. Two modules of one row may know each
//! other in one direction only. `sync.rs` alone names atomics and loom, `time/clock.rs` alone quanta,
//! `table/papaya_map.rs` alone papaya, `snapshot/frame.rs` alone crc32fast,
//! `policy/config/toml_text.rs` alone toml and its parser, `policy/config/reader.rs` alone strsim,
//! `policy/reload.rs` alone crossbeam-epoch, `policy/watch.rs` alone the crate notify, `notify/metrics.rs` alone the crate
//! metrics, `notify/log.rs` alone tracing, `notify/webhook/` alone what a webhook is sent with, `http/` alone the crates http, bytes and those
//! of its servers, each in one file. The modules of `http/` stand in rows of their own.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The rows from the top down; `lib.rs` stands above them.
const ROWS: [&[&str]; 12] = [
    &["http", "notify"],
    &["policy"],
    &["acquire", "all"],
    &["limiter", "exact", "single"],
    &["account", "tier"],
    &["snapshot"],
    &["settings"],
    &["table"],
    &["answer", "receipt"],
    &["stagger", "word"],
    &["limit", "time"],
    &["error", "decision", "hold", "sync", "queue"],
];

/// What only one module and those below it may name, and the module's path; of two that may, with a space between.
const HOMES: [(&str, &str); 27] = [
    ("sync::atomic", "sync"),
    ("loom", "sync"),
    ("zerocopy", "sync"),
    ("quanta", "time/clock"),
    ("papaya", "table/papaya_map"),
    ("crc32fast", "snapshot/frame"),
    ("toml", "policy/config/toml_text"),
    ("toml_parser", "policy/config/toml_text"),
    ("strsim", "policy/config/reader"),
    ("crossbeam_epoch", "policy/reload"),
    // The crates of these names as `use` names them: a module is called so, and many a variable.
    ("use notify", "policy/watch"),
    ("use metrics", "notify/metrics"),
    ("tracing", "notify/log"),
    ("use http", "http"),
    ("use bytes", "http"),
    ("ipnet", "http/client notify/webhook/addresses"),
    ("sha2", "http/source"),
    ("axum", "http/head"),
    ("http_body", "http/layer"),
    ("tower_layer", "http/layer"),
    ("tower_service", "http/layer"),
    ("reqwest", "notify/webhook"),
    ("rustls", "notify/webhook/post"),
    ("rustls_platform_verifier", "notify/webhook/post"),
    ("standardwebhooks", "notify/webhook/post"),
    ("httpdate", "notify/webhook/retry"),
    ("OffsetDateTime", "notify/webhook/payload"),
];

/// The modules of `http` from the top down; `http/mod.rs` stands above them.
const ROWS_OF_HTTP: [&[&str]; 5] = [
    &["layer"],
    &["extract"],
    &["source"],
    &["answering", "client", "facts", "head", "path"],
    &["forwarded"],
];

/// A source file: its path below `src/`, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: without_comments_and_strings(text) }
    }

    /// The module's path: `table/exact.rs` is `["table", "exact"]`, `word/mod.rs` is `["word"]`.
    fn module(&self) -> Vec<&str> {
        let stem = self.path.trim_end_matches(".rs");
        let mut parts: Vec<&str> = stem.split('/').collect();
        if matches!(parts.last(), Some(&"mod" | &"lib")) {
            parts.pop();
        }
        parts
    }

    /// Whether it is the module `home`, given as `table/exact`, or stands below it.
    fn is_in(&self, home: &str) -> bool {
        let home: Vec<&str> = home.split('/').collect();
        self.module().starts_with(&home)
    }

    /// The first module below the root, or nothing for `lib.rs`.
    fn top(&self) -> Option<&str> {
        self.module().first().copied()
    }
}

/// The text with comments and the insides of string and character literals blanked.
fn without_comments_and_strings(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment_len(rest)
        } else if first == '"' {
            string_len(rest)
        } else if rest.starts_with("'\"'") {
            3
        } else {
            0
        };
        if skipped == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            out.push(' ');
            rest = &rest[skipped..];
        }
    }
    out
}

/// The length of the (possibly nested) block comment at the start of `text`.
fn block_comment_len(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of the string literal at the start of `text`, quotes included.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return at + 1,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Every top-level module that `source` names through `crate::` or `super::`.
fn named_modules(source: &Source) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (at, _) in source.text.match_indices("crate::") {
        let before = source.text[..at].chars().next_back();
        // `$crate` in a macro is as good as `crate`; `some_crate::` is another word.
        if before.is_some_and(|character| character.is_alphanumeric() || character == '_') {
            continue;
        }
        named.extend(first_names(&source.text[at + "crate::".len()..]));
    }
    // Only a file right below the root reaches its neighbours by one `super::`; deeper ones need one more each.
    let depth = source.module().len();
    if depth > 0 {
        let climb = "super::".repeat(depth);
        for (at, _) in source.text.match_indices(&climb) {
            let is_climb = !source.text[..at].ends_with("super::");
            let names = first_names(&source.text[at + climb.len()..]);
            // `use super::*` in an inline test module is the file itself.
            let known = |name: &String| ROWS.iter().any(|row| row.contains(&name.as_str()));
            named.extend(names.into_iter().filter(|name| is_climb && known(name)));
        }
    }
    named
}

/// The first name of the path at the start of `text`, or of each path in the braces there.
fn first_names(text: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        let is_word = |character: &char| character.is_alphanumeric() || *character == '_';
        text.trim_start().chars().take_while(is_word).collect()
    };
    let Some(group) = text.strip_prefix('{') else {
        return vec![name(text)];
    };
    let (mut depth, mut names, mut start) = (1, Vec::new(), 0);
    for (at, character) in group.char_indices() {
        depth += match character {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 0 || (depth == 1 && character == ',') {
            names.push(name(&group[start..at]));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn row_of(module: &str) -> Option<usize> {
    row_in(&ROWS, module)
}

fn row_in(rows: &[&[&str]], module: &str) -> Option<usize> {
    rows.iter().position(|row| row.contains(&module))
}

/// Everything in files of `http` that breaks the order of its modules: each names others by `super::`, and only those in rows below.
fn violations_in_http(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.is_in("http") && source.path != "http/mod.rs") {
        let path = &source.path;
        let module = source.module();
        let Some(row) = row_in(&ROWS_OF_HTTP, module[1]) else {
            // The tests of a module stand beside it.
            if !path.ends_with("_tests.rs") {
                found.push(format!("{path} stands in no row of http"));
            }
            continue;
        };
        let climb = "super::".repeat(module.len() - 1);
        for (at, _) in source.text.match_indices(&climb) {
            if source.text[..at].ends_with("super::") {
                continue;
            }
            for name in first_names(&source.text[at + climb.len()..]) {
                let is_own = name == module[1];
                let is_up = row_in(&ROWS_OF_HTTP, &name).is_some_and(|other| other <= row);
                if is_up && !is_own {
                    found.push(format!("{path} points at {name}, which does not stand below it"));
                }
            }
        }
        if names(&source.text, "crate::http") {
            found.push(format!("{path} names a neighbour through the root"));
        }
    }
    found
}

/// Everything in `sources` that breaks the order, one sentence each.
fn violations(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    let mut sideways = BTreeSet::new();
    for source in sources {
        let path = &source.path;
        for (name, home) in HOMES {
            if names(&source.text, name) && !home.split(' ').any(|home| source.is_in(home)) {
                found.push(format!("{path} names {name}, which is {home}'s alone"));
            }
        }
        let Some(from) = source.top() else { continue };
        let Some(row) = row_of(from) else {
            found.push(format!("{path} stands in no layer"));
            continue;
        };
        for to in named_modules(source) {
            match row_of(&to) {
                _ if to == from => {}
                None => found.push(format!("{path} reaches {to} through the root")),
                Some(other) if other < row => found.push(format!("{path} points up to {to}")),
                Some(other) if other == row => {
                    sideways.insert((from.to_owned(), to));
                }
                Some(_) => {}
            }
        }
    }
    for (from, to) in &sideways {
        if from < to && sideways.contains(&(to.clone(), from.clone())) {
            found.push(format!("{from} and {to} point at each other"));
        }
    }
    found
}

/// Whether `name` occurs in `text` as a path, not as a part of a longer word.
fn names(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let after = text[at + name.len()..].chars().next();
        !text[..at].ends_with(is_word) && !after.is_some_and(is_word)
    })
}

fn sources_below(folder: &Path, prefix: &str, sources: &mut Vec<Source>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        let name = entry.file_name().unwrap().to_str().unwrap();
        if entry.is_dir() {
            sources_below(&entry, &format!("{prefix}{name}/"), sources);
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&entry).unwrap();
            sources.push(Source::new(&format!("{prefix}{name}"), &text));
        }
    }
}

#[test]
fn arrows_point_down_only() {
    let mut sources = Vec::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    sources_below(&src, "", &mut sources);
    assert!(sources.iter().any(|source| source.path == "lib.rs"));
    let found = violations(&sources);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn modules_of_http_point_down_only() {
    let mut sources = Vec::new();
    sources_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut sources);
    assert!(sources.iter().any(|source| source.path == "http/layer.rs"));
    let found = violations_in_http(&sources);
    assert!(found.is_empty(), "{}", found.join("\n"));

    for (path, text, expected) in [
        ("http/facts.rs", "use super::extract::Extract;", "points at extract"),
        ("http/head.rs", "use super::{path, answering::Fields};", "points at path"),
        ("http/answering/fields.rs", "use super::super::layer::Cost;", "points at layer"),
        ("http/extract.rs", "use crate::http::layer::Cost;", "through the root"),
        ("http/cookies.rs", "", "stands in no row"),
    ] {
        let found = violations_in_http(&[Source::new(path, text)]);
        assert!(found.first().is_some_and(|found| found.contains(expected)), "{path}: {text}: {found:?}");
    }
    let fine =
        Source::new("http/layer.rs", "use super::{extract::Extract, facts::Facts}; use super::head::Head;");
    assert!(violations_in_http(&[fine]).is_empty());
}

/// The swap of a policy under its readers is the one thing that the compiler cannot check.
#[test]
fn only_the_reload_of_a_policy_is_unsafe() {
    let mut sources = Vec::new();
    sources_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut sources);
    let is_unsafe = |source: &&Source| names(&source.text, "unsafe");
    let found: Vec<&str> = sources.iter().filter(is_unsafe).map(|source| source.path.as_str()).collect();
    assert_eq!(found, ["policy/reload.rs"]);
}

#[test]
fn a_violation_is_caught() {
    let fixtures = [
        ("word/mod.rs", "use crate::table::Slots;", "points up to table"),
        (
            "word/bucket.rs",
            "use crate::{\n    limit::{Limit, Rate},\n    exact::Exact,\n};",
            "points up to exact",
        ),
        ("time/clock.rs", "fn f() { crate::word::decide() }", "points up to word"),
        ("limit.rs", "use super::table::Slots;", "points up to table"),
        ("table/exact.rs", "use super::super::exact::Exact;", "points up to exact"),
        ("exact.rs", "use crate::Limit;", "reaches Limit through the root"),
        ("helpers.rs", "", "stands in no layer"),
        ("table/exact.rs", "use std::sync::atomic::AtomicU64;", "names sync::atomic"),
        ("word/mod.rs", "use core::sync::atomic::Ordering;", "names sync::atomic"),
        ("exact.rs", "use loom::sync::Arc;", "names loom"),
        ("exact.rs", "fn now() -> quanta::Instant { todo() }", "names quanta"),
        ("time/origin.rs", "fn now() -> quanta::Instant { todo() }", "names quanta"),
        ("word/mod.rs", "use papaya::HashMap;", "names papaya"),
        ("table/exact.rs", "use papaya::HashMap;", "names papaya"),
        ("snapshot/mod.rs", "use crc32fast::Hasher;", "names crc32fast"),
        ("policy/config/rules.rs", "use toml::Spanned;", "names toml"),
        ("policy/config/write.rs", "use strsim::jaro;", "names strsim"),
        ("policy/engine.rs", "use crossbeam_epoch::pin;", "names crossbeam_epoch"),
        ("policy/file.rs", "use notify::Error;", "names use notify"),
        ("notify/log.rs", "use metrics::counter;", "names use metrics"),
        ("policy/engine.rs", "fn f() { tracing::info!(0) }", "names tracing"),
        ("snapshot/mod.rs", "use crate::limiter::Builder;", "points up to limiter"),
        ("policy/key.rs", "use http::HeaderMap;", "names use http"),
        ("answer.rs", "use bytes::Bytes;", "names use bytes"),
        ("http/facts.rs", "use ipnet::IpNet;", "names ipnet"),
        ("http/layer.rs", "fn f(path: axum::extract::MatchedPath) {}", "names axum"),
        ("policy/events/event.rs", "use crate::notify::Webhooks;", "points up to notify"),
        ("notify/webhook/post.rs", "use ipnet::IpNet;", "names ipnet"),
        ("notify/webhook/worker.rs", "use standardwebhooks::Webhook;", "names standardwebhooks"),
        ("policy/watch.rs", "use reqwest::Client;", "names reqwest"),
    ];
    for (path, text, expected) in fixtures {
        let found = violations(&[Source::new(path, text)]);
        assert_eq!(found.len(), 1, "{path}: {text}: {found:?}");
        assert!(found[0].contains(expected), "{found:?}");
    }
    let circle = [
        Source::new("limit.rs", "use crate::time::Timebase;"),
        Source::new("time/mod.rs", "use crate::limit::Limit;"),
    ];
    assert_eq!(violations(&circle), ["limit and time point at each other"]);
}

#[test]
fn what_is_allowed_is_not_caught() {
    let fixtures = [
        ("lib.rs", "mod table; pub use crate::exact::ExactLimiter;"),
        ("exact.rs", "use crate::{decision::{Denied, Pass}, table::exact::Map, word, sync::AtomicU64};"),
        (
            "table/exact.rs",
            "use super::slots::Slots; use crate::word::Word; use super::papaya_map::PapayaMap;",
        ),
        ("table/papaya_map.rs", "use super::exact::Stored; use papaya::HashMap;"),
        ("table/papaya_map/guard.rs", "use papaya::LocalGuard;"),
        (
            "time/clock.rs",
            "// crate::table and loom in words\nuse crate::sync::AtomicU64; use quanta::Clock;",
        ),
        ("sync.rs", "pub use std::sync::atomic::AtomicU64; pub use loom::sync::atomic::AtomicU32;"),
        ("error.rs", "const S: &str = \"crate::table \\\" papaya\"; /* use crate::exact; */"),
        ("limit.rs", "use crate::time::Timebase; mod tests { use super::*; }"),
        ("exact.rs", "use other_crate::thing; fn bloom() {}"),
        ("lib.rs", "pub mod http; #[cfg(any())] mod bytes; pub mod notify;"),
        ("notify/mod.rs", "mod metrics; pub use self::metrics::Metrics;"),
        ("notify/metrics/tests.rs", "use metrics::Recorder;"),
        (
            "notify/webhook/addresses.rs",
            "use ipnet::IpNet; use reqwest::dns::Resolve; use crate::policy::Event;",
        ),
        ("http/layer.rs", "use http::{Request, Response}; use bytes::Bytes; use http_body::Body;"),
    ];
    for (path, text) in fixtures {
        let found = violations(&[Source::new(path, text)]);
        assert!(found.is_empty(), "{path}: {text}: {found:?}");
    }
}
