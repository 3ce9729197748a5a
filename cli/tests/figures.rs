//! The engine behind the command against figures from elsewhere: those known for a real log, where it is
//! at hand, and those of a twin that counts in the plainest way.

#![allow(clippy::unwrap_used)] // the exemption for tests does not reach their helpers

mod common;

use std::collections::HashMap;
use std::io::Read;

use common::{json, shared};
use tidegate_cli::log::read::{Event, Log, read};
use tidegate_cli::log::source::decompress;
use tidegate_cli::sample::BUNDLED_GZ;

/// Passed, refused by burst only, by sustain only, by both, by a limit of one part.
type Figures = [u64; 5];

fn figures(args: &[&str]) -> Figures {
    figures_of(args, b"")
}

fn figures_of(args: &[&str], input: &[u8]) -> Figures {
    let json = json(args, input);
    let count = |pointer: &str| json.pointer(pointer).unwrap().as_u64().unwrap();
    assert_eq!(count("/lines"), count("/skipped") + count("/passed") + count("/refused"));
    assert_eq!(count("/refused_by/full"), 0);
    let by = ["burst", "sustain", "both", "limit"].map(|by| count(&format!("/refused_by/{by}")));
    assert_eq!(count("/refused"), by.iter().sum::<u64>());
    [count("/passed"), by[0], by[1], by[2], by[3]]
}

#[test]
fn the_real_log_gives_the_known_figures() {
    let Some(path) = shared("apache_combined.log") else {
        return;
    };
    let path = path.to_str().unwrap();
    for (limit, align, expected) in [
        ("burst-sustain:30/15s,100/300s", "clock", [9990, 2, 8, 0, 0]),
        ("burst-sustain:30/15s,100/300s", "first-request", [9990, 2, 8, 0, 0]),
        ("burst-sustain:10/15s,30/300s", "clock", [9417, 127, 294, 162, 0]),
        ("burst-sustain:10/15s,30/300s", "first-request", [9404, 140, 301, 155, 0]),
        ("sliding:20/60s", "clock", [9069, 0, 0, 0, 931]),
        ("sliding:10/15s", "clock", [9579, 0, 0, 0, 421]),
        ("bucket:1/s,5", "clock", [9909, 0, 0, 0, 91]),
        ("bucket:1/10s,10", "clock", [8725, 0, 0, 0, 1275]),
    ] {
        let args = [path, "--limit", limit, "--align", align];
        assert_eq!(figures(&args), expected, "{limit} {align}");
        assert_eq!(figures(&[&args[..], &["--exact"]].concat()), expected, "{limit} {align} on whole keys");
    }
}

/// A window counted in a map: when it opened, and how many since.
#[derive(Clone, Copy, Default)]
struct Counter {
    opened_s: u64,
    count: u64,
}

impl Counter {
    /// Counts one request in the window that opened then; true if it is above the limit.
    fn refuses(&mut self, opened_s: u64, limit: u64) -> bool {
        if self.opened_s != opened_s {
            *self = Counter { opened_s, count: 0 };
        }
        self.count += 1;
        self.count > limit
    }
}

fn at_s(event: &Event) -> u64 {
    event.at_unix_ns / 1_000_000_000
}

/// Burst and sustain windows as (limit, seconds).
fn windows_twin(log: &Log, burst: (u64, u64), sustain: (u64, u64), first_request: bool) -> Figures {
    let mut keys: HashMap<u32, (u64, Counter, Counter)> = HashMap::new();
    let mut figures = [0; 5];
    for event in &log.events {
        let now_s = at_s(event);
        let (origin_s, short, long) =
            keys.entry(event.key).or_insert((now_s, Counter::default(), Counter::default()));
        if !first_request {
            *origin_s = 0;
        } else if now_s >= *origin_s + sustain.1 {
            *origin_s = now_s;
        }
        let since_s = now_s - *origin_s;
        let by_burst = short.refuses(*origin_s + since_s / burst.1 * burst.1, burst.0);
        let by_sustain = long.refuses(*origin_s + since_s / sustain.1 * sustain.1, sustain.0);
        let outcome = match (by_burst, by_sustain) {
            (false, false) => 0,
            (true, false) => 1,
            (false, true) => 2,
            (true, true) => 3,
        };
        figures[outcome] += 1;
    }
    figures
}

/// One token in `every_s` seconds, at most `burst` kept: counted in tokens times `every_s`, so whole.
fn bucket_twin(log: &Log, every_s: u64, burst: u64) -> Figures {
    let mut keys: HashMap<u32, (u64, u64)> = HashMap::new();
    let mut figures = [0; 5];
    for event in &log.events {
        let now_s = at_s(event);
        let (kept, last_s) = keys.entry(event.key).or_insert((burst * every_s, now_s));
        *kept = (*kept + now_s - *last_s).min(burst * every_s);
        *last_s = now_s;
        let passes = *kept >= every_s;
        if passes {
            *kept -= every_s;
        }
        figures[if passes { 0 } else { 4 }] += 1;
    }
    figures
}

#[test]
fn the_bundled_log_gives_what_a_plain_twin_counts() {
    let log = read(decompress(BUNDLED_GZ).unwrap(), |_| ());
    for (short, long) in
        [((10, 15), (30, 300)), ((30, 15), (100, 300)), ((2, 1), (3, 7)), ((4, 60), (9, 120))]
    {
        let limit = format!("burst-sustain:{}/{}s,{}/{}s", short.0, short.1, long.0, long.1);
        for (align, first_request) in [("clock", false), ("first-request", true)] {
            let expected = windows_twin(&log, short, long, first_request);
            assert_eq!(figures(&["--limit", &limit, "--align", align]), expected, "{limit} {align}");
        }
    }
    for (every_s, burst) in [(1, 5), (10, 10), (60, 3), (7, 1)] {
        let limit = format!("bucket:1/{every_s}s,{burst}");
        assert_eq!(figures(&["--limit", &limit]), bucket_twin(&log, every_s, burst), "{limit}");
    }
}

#[test]
fn a_clock_that_was_never_set_harms_nobody_else() {
    let mut text = common::line("first", 0).replace("02/Mar/2026", "01/Jan/1970").into_bytes();
    decompress(BUNDLED_GZ).unwrap().read_to_end(&mut text).unwrap();
    text.extend(common::line("last", 0).replace("02/Mar/2026", "01/Jan/2553").bytes());
    for limit in [
        "burst-sustain:10/15s,30/300s",
        "bucket:1/s,5",
        "bucket:1000000000/s,5",
        "window:20/m",
        "sliding:20/m",
    ] {
        for align in ["clock", "per-key", "first-request"] {
            if limit.starts_with("sliding") && align == "first-request" {
                continue; // no limit
            }
            let args = ["--limit", limit, "--align", align];
            let [passed, refused @ ..] = figures(&args);
            let with_strays = figures_of(&[&["-"], &args[..]].concat(), &text);
            assert_eq!(with_strays, [[passed + 2].as_slice(), &refused].concat()[..], "{limit} {align}");
        }
    }
}

#[test]
fn a_clock_that_was_never_set_does_not_flatten_the_timeline() {
    let mut text = common::line("stray", 0).replace("02/Mar/2026", "01/Jan/1970").into_bytes();
    decompress(BUNDLED_GZ).unwrap().read_to_end(&mut text).unwrap();
    let mut without = json(&[], b"")["timeline"].clone();
    assert_eq!(without["outside"], 0);
    without["outside"] = 1.into();
    assert_eq!(json(&["-"], &text)["timeline"], without);
}

#[test]
fn the_default_report_has_something_of_everything() {
    let [passed, burst, sustain, both, limit] = figures(&[]);
    assert!(passed > 0 && burst > 0 && sustain > 0 && both > 0);
    assert_eq!(limit, 0);
}
