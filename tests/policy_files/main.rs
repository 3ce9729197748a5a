//! Policy files: what they say, that all their mistakes are told at once, and that what is written is read.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod problems;
mod reading;
mod round_trip;
mod schema;
#[path = "../common/services.rs"]
mod services;
mod shipped;
mod warnings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate::policy::{Problems, Rules};

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn shipped() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root().join("policies")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    files.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

fn toml(text: &str) -> Rules {
    Rules::from_toml(text, "test.toml").unwrap_or_else(|problems| panic!("{problems}"))
}

fn problems(text: &str) -> Problems {
    Rules::from_toml(text, "test.toml").unwrap_err()
}

fn same(one: &Rules, other: &Rules) {
    assert_eq!(format!("{one:#?}"), format!("{other:#?}"));
}
