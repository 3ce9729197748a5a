//! `tidegate bench` as a user meets it. No figure is asserted, only how figures hang together: the machine that
//! runs this test may be slow and busy.

#![allow(clippy::unwrap_used)] // the exemption for tests does not reach their helpers

mod common;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{bench, stderr, stdout};

/// A file that is gone with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Scratch(std::env::temp_dir().join(format!("tidegate-{}-{name}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A run that takes no longer than it must.
const SMALL: [&str; 6] = ["--seconds", "1", "--keys", "10000", "--threads", "3"];

#[test]
fn a_run_ends_in_time_with_a_page_figures_and_a_drawing_that_agree() {
    let (json_file, svg_file) = (Scratch::new("bench.json"), Scratch::new("bench.svg"));
    let began = Instant::now();
    let output = bench(&[&SMALL[..], &["--json", json_file.path(), "--svg", svg_file.path()]].concat());
    let elapsed = began.elapsed();
    assert!(output.status.success(), "{}", stderr(&output));
    // The least that is measured takes half a second; the rest is for a machine that is busy.
    assert!(elapsed < Duration::from_secs(15), "{elapsed:?}");

    let json: serde_json::Value = serde_json::from_str(&json_file.text()).unwrap();
    assert_eq!((&json["keys"], &json["batch"]), (&10_000.into(), &16.into()));
    assert_eq!(json["tidegate"], env!("CARGO_PKG_VERSION"));
    assert!(json["rounds"].as_u64().unwrap() >= 3, "{json}");
    assert!(json["elapsed_s"].as_f64().unwrap() <= elapsed.as_secs_f64());
    let workloads = json["workloads"].as_array().unwrap();
    let names: Vec<_> = workloads.iter().map(|workload| workload["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hot_key", "many_keys", "many_keys_batched", "dry_key"]);

    let page = stdout(&output);
    let svg = svg_file.text();
    let svg = roxmltree::Document::parse(&svg).unwrap();
    assert_eq!(svg.root_element().tag_name().name(), "svg");
    for workload in workloads {
        let title = workload["title"].as_str().unwrap();
        assert!(page.contains(&format!("\n{title}: ")), "{page}");
        assert!(
            svg.descendants().any(|node| node.text().is_some_and(|text| text.trim() == title)),
            "{title}"
        );
        let refused = workload["name"] == "dry_key";
        assert_eq!(workload["answer"], if refused { "refused" } else { "passed" });
        assert!(workload["checks"].as_u64().unwrap() > 0);
        let scaling = workload["scaling"].as_array().unwrap();
        let threads: Vec<_> = scaling.iter().map(|point| point["threads"].as_u64().unwrap()).collect();
        assert_eq!(threads, [1, 2, 3]);
        assert_eq!(scaling[0]["times_one_thread"], 1.0);
        for (point, threads) in scaling.iter().zip(threads) {
            let figure = |name: &str| point[name].as_f64().unwrap();
            let rate = figure("checks_per_s");
            assert!(figure("checks_per_s_lower") <= rate && rate <= figure("checks_per_s_upper"), "{point}");
            let ns = threads as f64 * 1e9 / rate;
            assert!((figure("ns_per_check") / ns - 1.0).abs() < 1e-9, "{point}");
            assert!(figure("times_one_thread") > 0.0);
        }
    }
    assert_eq!(page.lines().filter(|line| line.contains('█')).count(), 12, "{page}");
    assert!(!page.contains('\u{1b}'), "colours go to terminals only");
}

#[test]
fn options_out_of_range_are_named_with_their_range() {
    for (option, value, said) in [
        ("--seconds", "0", "0 is not in 1..=300"),
        ("--seconds", "301", "301 is not in 1..=300"),
        ("--threads", "0", "0 is not in 1..=1024"),
        ("--threads", "1025", "1025 is not in 1..=1024"),
        ("--keys", "0", "0 is not in 1..=10000000"),
        ("--keys", "10000001", "10000001 is not in 1..=10000000"),
        ("--keys", "many", "invalid digit"),
    ] {
        let output = bench(&[option, value]);
        assert_eq!(output.status.code(), Some(2), "{option} {value}");
        let expected = format!("invalid value '{value}' for '{option} <N>': {said}");
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named_before_anything_is_measured() {
    for option in ["--json", "--svg"] {
        let began = Instant::now();
        let output = bench(&["--seconds", "300", option, "no/such/folder/file"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stderr(&output).starts_with("tidegate: cannot write no/such/folder/file: "),
            "{}",
            stderr(&output)
        );
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn one_file_for_two_results_is_refused() {
    let file = Scratch::new("both");
    let output = bench(&["--json", file.path(), "--svg", file.path()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--json and --svg name the same file"), "{}", stderr(&output));
    assert!(stderr(&output).contains("Usage: tidegate bench"), "{}", stderr(&output));
}

#[test]
fn threads_that_could_not_start_together_are_refused() {
    let most = 8 * std::thread::available_parallelism().unwrap().get();
    let output = bench(&["--threads", &(most + 1).to_string()]);
    assert_eq!(output.status.code(), Some(2));
    let expected = format!("for '--threads <N>': {} is not in 1..={}", most + 1, most.min(1024));
    assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
}

#[test]
fn more_threads_than_cores_are_noted() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let threads = (cores + 1).to_string();
    let output = bench(&["--seconds", "1", "--keys", "1", "--threads", &threads]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("--threads is more than this machine has cores"), "{}", stderr(&output));
}
