//! A storm as a page of text: a line for each contestant.

use std::fmt::Write;

use indicatif::HumanCount;

use super::flow::flow;
use super::text::{DIM, INDENT, TITLE, counted, indented};
use crate::storm::Report;
use crate::storm::contestant::{Bucket, Kind, Shares};
use crate::storm::figures::Figures;
use crate::storm::scenario::{Scenario, Told};

/// A column: two lines over it, and what stands in it.
struct Column {
    over: [&'static str; 2],
    wide: usize,
    of: fn(&Figures) -> String,
}

/// The columns, in the order in which a narrow page keeps them.
const COLUMNS: [Column; 9] = [
    Column { over: ["", "peak"], wide: 7, of: |figures| times(figures.peak_second) },
    Column {
        over: ["in", "period"],
        wide: 7,
        of: |figures| figures.peak_period.map_or("-".to_owned(), times),
    },
    Column { over: ["", "wave"], wide: 6, of: |figures| times(figures.second_wave) },
    Column { over: ["", "wasted"], wide: 7, of: |figures| shown(figures.refusals_per_success) },
    Column { over: ["", "served"], wide: 8, of: |figures| format!("{:.0} s", figures.all_served_s) },
    Column { over: ["others", "at once"], wide: 9, of: |figures| percent(figures.others.at_once) },
    Column { over: ["others", "in time"], wide: 9, of: |figures| percent(figures.others.in_time) },
    Column { over: ["others", "p99"], wide: 8, of: |figures| format!("{} s", tenths(figures.others.p99_s)) },
    Column { over: ["", "fair"], wide: 5, of: |figures| format!("{:.2}", figures.fairness) },
];

const NAMES_WIDE: usize = 11;

/// The whole report, `width` columns wide at most where the words allow it.
pub fn storm_text(report: &Report, width: usize) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = head(&mut out, &report.scenario, width);
    let _ = lines(&mut out, report, width);
    out
}

fn head(out: &mut String, scenario: &Scenario, width: usize) -> std::fmt::Result {
    let Scenario { seed, traffic, storm, clients, limits, measure } = scenario;
    let devices = counted(traffic.devices, "device");
    let title = format!("{TITLE}tidegate storm{TITLE:#} (seed {seed}):");
    let others = counted(traffic.others, "other client");
    flow(out, &[&title, &format!("{devices} of one partner,"), &others], 0, INDENT.len(), width)?;
    let calm = traffic.device_requests_per_s + traffic.other_requests_per_s;
    let calm = format!("calm: {} requests/s;", HumanCount(calm));
    let woken = format!("from {} s on each device has", storm.at_s);
    let syncs = format!("{} more, {} apart;", counted(storm.requests, "request"), seconds(storm.pace_ms));
    let began = format!("all begin within {}", seconds(storm.spread_ms));
    indented(out, &[&calm, &woken, &syncs, &began], width)?;
    let obey = format!("refused: {} % obey the wait,", clients.obey_percent);
    let later = format!("{} % up to {} % later,", clients.obey_later_percent, clients.later_percent);
    let (first, last) = (seconds(clients.back_off_first_ms), seconds(clients.back_off_last_ms));
    let back_off = format!("{} % back off ({first} to {last}),", clients.back_off_percent);
    let insist = format!("{} % insist ({})", clients.insist_percent, seconds(clients.insist_ms));
    indented(out, &[&obey, &later, &back_off, &insist], width)?;
    let capacity = format!("capacity: {} requests/s;", HumanCount(limits.capacity_per_s));
    let told = match limits.told {
        Told::Exact => "waits are told exactly;",
        Told::WholeSeconds => "waits are told in whole seconds;",
    };
    let habit = format!("told none, who obeys waits {}", seconds(clients.habit_ms));
    indented(out, &[&capacity, told, &habit], width)?;
    let in_time = format!("{DIM}in time: within {} s;", measure.patience_s);
    let watched = format!("others: who asked in the first {} s of the storm{DIM:#}", measure.watch_s);
    indented(out, &[&in_time, &watched], width)
}

fn lines(out: &mut String, report: &Report, width: usize) -> std::fmt::Result {
    let mut columns = &COLUMNS[..];
    while columns.len() > 1 && INDENT.len() + NAMES_WIDE + wide(columns) > width {
        columns = &columns[..columns.len() - 1];
    }
    writeln!(out)?;
    for (at, name) in ["", "wait"].into_iter().enumerate() {
        let over: String =
            columns.iter().map(|Column { over, wide, .. }| format!("{:>wide$}", over[at])).collect();
        let line = format!("{INDENT}{name:<NAMES_WIDE$}{over}");
        writeln!(out, "{DIM}{}{DIM:#}", line.trim_end())?;
    }
    let shares = Shares::new(&report.scenario);
    for kind in Kind::ALL {
        let title = format!("{TITLE}{}:{TITLE:#}", kind.title());
        let limit = limit(kind, &shares, report.scenario.limits.period_s);
        let phrases: Vec<&str> = std::iter::once(&*title).chain(limit.iter().map(|part| &**part)).collect();
        flow(out, &phrases, 0, INDENT.len(), width)?;
        for figures in report.contestants.iter().filter(|figures| figures.limit == kind) {
            let cells: String =
                columns.iter().map(|Column { wide, of, .. }| format!("{:>wide$}", of(figures))).collect();
            writeln!(out, "{INDENT}{:<NAMES_WIDE$}{cells}", figures.wait.title())?;
        }
    }
    let left_out: Vec<String> =
        COLUMNS[columns.len()..].iter().map(|column| column.over.join(" ").trim().to_owned()).collect();
    if !left_out.is_empty() {
        let names = format!("{}{DIM:#}", left_out.join(", "));
        indented(out, &[&format!("{DIM}left out at this width:"), &names], width)?;
    }
    Ok(())
}

fn wide(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.wide).sum()
}

/// What a limit admits, in phrases.
fn limit(kind: Kind, shares: &Shares, period_s: u64) -> Vec<String> {
    let bucket = |bucket: Bucket| format!("{}/s, {} at once", rate(bucket.per_s()), HumanCount(bucket.burst));
    match kind {
        Kind::FixedWindow | Kind::SlidingWindow => {
            vec![format!("{} in {period_s} s", HumanCount(shares.window))]
        }
        Kind::BucketForAll => vec![bucket(shares.all)],
        Kind::BucketForEach => {
            vec![format!("partner {};", bucket(shares.partner)), format!("others {}", bucket(shares.other))]
        }
    }
}

fn rate(per_s: f64) -> String {
    format!("{}", (per_s * 1e3).round() / 1e3)
}

/// Milliseconds as seconds: `1 s`, `0.1 s`.
fn seconds(ms: u64) -> String {
    format!("{} s", ms as f64 / 1e3)
}

fn times(ratio: f64) -> String {
    format!("{}×", shown(ratio))
}

/// A figure with the places that mean something.
fn shown(figure: f64) -> String {
    let places = match figure {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{figure:.places$}")
}

/// A share in percent; what is not everything does not read so.
fn percent(share: f64) -> String {
    match (share * 1e3).round() {
        // 100 % and 0 % are exact.
        1000.0 if share < 1.0 => ">99.9 %".to_owned(),
        0.0 if share > 0.0 => "<0.1 %".to_owned(),
        1000.0 => "100 %".to_owned(),
        tenths => format!("{:.1} %", tenths / 10.0),
    }
}

/// A figure with a tenth where that means something.
fn tenths(figure: f64) -> String {
    if figure < 100.0 { format!("{figure:.1}") } else { format!("{figure:.0}") }
}
