//! `tidegate storm` as a user meets it: pages, drawings, and scenario files with what is wrong with them.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::LazyLock;

use common::{stderr, stdout, tidegate};
use tidegate_cli::storm::contestant::Kind;
use tidegate_cli::storm::scenario::{DEFAULT_TOML, Scenario};
use tidegate_cli::storm::{Report, run};

/// A tenth of the default storm.
const SMALL: &str = include_str!("small_storm.toml");

/// The default storm, played once for all tests.
static DEFAULT: LazyLock<Report> = LazyLock::new(|| run(&Scenario::bundled()).unwrap());

#[test]
fn mistakes_of_a_scenario_are_told_with_their_place() {
    let told = |text: &str| match Scenario::from_toml(text, "a.toml") {
        Ok(scenario) => panic!("{scenario:?}"),
        Err(wrong) => wrong.join("\n"),
    };
    for (text, expected) in [
        (
            "[storm]\nrequest = 3\n",
            "a.toml:2:1: unknown field \"request\" in [storm]; did you mean \"requests\"? Known: at_s, spread_ms, requests, pace_ms",
        ),
        (
            "[limit]\n",
            "a.toml:1:2: unknown table or field \"limit\"; did you mean \"limits\"? Known: seed, traffic, storm, clients, limits, measure",
        ),
        (
            "xyz = 1\n",
            "a.toml:1:1: unknown table or field \"xyz\"; Known: seed, traffic, storm, clients, limits, measure",
        ),
        ("seed = -1", "a.toml:1:8: seed is -1; it must be a whole number from 0 to 9223372036854775807"),
        ("traffic = 3", "a.toml:1:1: traffic is no table; it begins with [traffic]"),
        ("[traffic]\ndevices = 0", "a.toml:2:11: devices is 0; it must be a whole number from 1 to 100000"),
        (
            "[traffic]\ndevices = \"many\"",
            "a.toml:2:11: devices is \"many\"; it must be a whole number from 1 to 100000",
        ),
        ("[storm]\nat_s = 1.5", "a.toml:2:8: at_s is 1.5; it must be a whole number from 0 to 3600"),
        (
            "[limits]\ntold = \"seconds\"",
            "a.toml:2:8: told is \"seconds\"; it must be \"exact\" or \"whole-seconds\"",
        ),
        (
            "[limits]\ntold = \"whole-second\"",
            "a.toml:2:8: told is \"whole-second\"; it must be \"exact\" or \"whole-seconds\"; did you mean \"whole-seconds\"?",
        ),
        (
            "[clients]\nobey_percent = 71",
            "a.toml: obey_percent, obey_later_percent, back_off_percent and insist_percent sum to 101; it must be 100",
        ),
        (
            "[clients]\nround_trip_ms_min = 81",
            "a.toml: round_trip_ms_min is 81; it must be at most round_trip_ms_max, which is 80",
        ),
        ("[storm]\nat_s = 601", "a.toml: at_s is 601; it must be at most length_s, which is 600"),
    ] {
        assert_eq!(told(text), expected);
    }
    let all = told("[storm]\nat_s = -1\npaces = 1\n[clients]\nhabit_ms = 0\n");
    assert_eq!(all.lines().count(), 3, "everything at once: {all}");
    assert!(told("[storm\n").starts_with("a.toml:1:7: "), "{}", told("[storm\n"));
    assert!(!told("\"a\\u001b[2J\" = 1").contains('\u{1b}'));
}

fn storm(args: &[&str]) -> Output {
    tidegate().arg("storm").args(args).stdin(Stdio::null()).output().unwrap()
}

/// A scratch file that goes with the test.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tidegate-storm-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// `TIDEGATE_WRITE_GOLDEN=1 cargo test -p tidegate-cli --test storm_command` writes the page anew, and the change is to be read
/// like any other.
#[test]
fn the_default_page_is_kept() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/told/storm.txt");
    let page = anstream::adapter::strip_str(&tidegate_cli::report::storm_text(&DEFAULT, 80)).to_string();
    if std::env::var_os("TIDEGATE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == page, "{} is to be:\n{page}", path.display());
    for width in [40, 60, 80, 132] {
        let page =
            anstream::adapter::strip_str(&tidegate_cli::report::storm_text(&DEFAULT, width)).to_string();
        for line in page.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

/// `ci/plots.sh` draws it again.
#[test]
fn the_picture_of_the_docs_is_that_of_the_default() {
    let drawing = tidegate_cli::report::storm_svg(&DEFAULT).unwrap();
    assert!(drawing.len() < 200_000, "{}", drawing.len());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/storm.svg");
    if !path.parent().unwrap().is_dir() {
        println!("skipped: no docs beside the command's sources");
        return;
    }
    if std::env::var_os("TIDEGATE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &drawing).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == drawing,
        "docs/storm.svg is of another code; run ci/plots.sh"
    );
}

#[cfg(feature = "png")]
#[test]
fn pixels_have_the_size_of_the_drawing_twice_and_text() {
    let file = tidegate_cli::report::storm_png(&DEFAULT).unwrap();
    assert_eq!(file[16..24], [0, 0, 6, 64, 0, 0, 5, 200], "1600 by 1480");
    assert!((20_000..400_000).contains(&file.len()), "{}", file.len());
    assert_eq!(file, tidegate_cli::report::storm_png(&DEFAULT).unwrap());
}

#[test]
fn a_scenario_of_ones_own_is_played_told_and_drawn() {
    let (scenario, svg) = (Scratch::new("small.toml", SMALL), Scratch::new("small.svg", ""));
    let output = storm(&["--scenario", scenario.path(), "--json", "--svg", svg.path()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["scenario"]["seed"], 5);
    assert_eq!(json["contestants"].as_array().unwrap().len(), 16);
    assert_eq!(json["contestants"][15]["limit"], "bucket-for-each");
    assert_eq!(json["contestants"][15]["wait"], "staggered");
    let drawing = std::fs::read_to_string(&svg.0).unwrap();
    let drawing = roxmltree::Document::parse(&drawing).unwrap();
    assert_eq!(drawing.root_element().tag_name().name(), "svg");
    let texts: Vec<&str> = drawing
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .collect();
    let times = |text: &str| texts.iter().filter(|other| other.trim() == text).count();
    for kind in Kind::ALL {
        assert_eq!(times(kind.title()), 1, "{texts:?}");
    }
    assert_eq!((times("seconds since the storm began"), times("told staggered waits")), (1, 1));
    let filled = drawing.descendants().filter(|node| node.has_tag_name("polygon")).count();
    assert_eq!(filled, 16 + 1, "an area in each panel, and one in the legend");

    let page = stdout(&storm(&["--scenario", scenario.path(), "--seed", "6"]));
    assert!(
        page.starts_with("tidegate storm (seed 6): 160 devices of one partner, 20 other clients\n"),
        "{page}"
    );
    assert!(!page.contains('\u{1b}'));
}

#[test]
fn a_file_that_is_wrong_or_missing_is_told() {
    let scenario = Scratch::new("wrong.toml", "[storm]\nat = 3\npace = 1\n");
    let output = storm(&["--scenario", scenario.path()]);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(2), ""));
    let told = stderr(&output);
    assert_eq!(told.lines().filter(|line| line.contains("did you mean")).count(), 2, "{told}");
    assert_eq!(storm(&["--scenario", "no/such.toml"]).status.code(), Some(2));
    let output = storm(&["--svg", "no/such/folder/a.svg"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).starts_with("tidegate: cannot write no/such/folder/a.svg: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_limit_that_the_engine_cannot_keep_is_told() {
    let scenario = Scratch::new("vast.toml", "[limits]\ncapacity_per_s = 10000\nperiod_s = 3600\n");
    let output = storm(&["--scenario", scenario.path()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the scenario's limits cannot be kept: "), "{}", stderr(&output));
}

#[test]
fn the_printed_scenario_is_the_one_described() {
    assert_eq!(stdout(&storm(&["--print-scenario"])), DEFAULT_TOML);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/storm.md");
    let Ok(page) = std::fs::read_to_string(page) else {
        println!("skipped: no docs beside the command's sources");
        return;
    };
    assert!(page.contains(&format!("```toml\n{DEFAULT_TOML}```")), "docs/storm.md shows another file");
}
