//! The report as a page of text.
//!
//! It is written with colours throughout; the stream that it goes to takes them out where they are not
//! wanted. Nothing is told by colour alone.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use indicatif::HumanCount;
use jiff::Timestamp;

use super::flow::flow;
use super::table::{Row, table};
use super::{bars, chart};
use crate::replay::headroom::Headroom;
use crate::replay::summary::{RefusedBy, SkippedBy, SkippedLine, Span, Summary, TopClient};

pub(super) const INDENT: &str = "  ";
pub(super) const PASSED: Style = AnsiColor::Green.on_default();
pub(super) const REFUSED: Style = AnsiColor::Red.on_default();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const TITLE: Style = Style::new().bold();
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default();

/// From which width on the totals have air between their columns.
const WIDTH_FOR_AIR: usize = 60;

/// How many counts a client has before those by window.
const WITHOUT_WINDOWS: usize = 3;

/// The whole report, `width` columns wide at most where the words allow it.
pub fn text(summary: &Summary, width: usize) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = head(&mut out, summary, width);
    if summary.passed + summary.refused > 0 {
        let _ = totals(&mut out, summary, width);
        let _ = writeln!(out, "\n{TITLE}Over time{TITLE:#} {DIM}(UTC){DIM:#}");
        out.push_str(&chart::chart(&summary.timeline, width));
        let _ = strays(&mut out, summary.timeline.outside, width);
        let _ = headroom(&mut out, &summary.headroom, width);
        let _ = top(&mut out, summary, width);
    }
    let (first, by) = (&*summary.skipped_first, &*summary.skipped_by);
    let _ = skips(&mut out, &Skips { skipped: summary.skipped, lines: summary.lines, first, by }, width);
    out
}

/// What stands under the report of the bundled sample.
pub fn sample_hint(width: usize) -> String {
    let mut out = String::new();
    let phrases = ["This log is made up.", "For one of yours:", "tidegate replay access.log"];
    let _ = flow(&mut out, &phrases, 0, 0, width);
    out
}

/// Phrases in lines that all begin at the indent.
pub(super) fn indented(out: &mut String, phrases: &[&str], width: usize) -> std::fmt::Result {
    out.push_str(INDENT);
    flow(out, phrases, INDENT.len(), INDENT.len(), width)
}

fn head(out: &mut String, summary: &Summary, width: usize) -> std::fmt::Result {
    let limit = format!("{TITLE}{}{TITLE:#}", summary.limit);
    flow(out, &[&limit, &format!("on {}", summary.source)], 0, INDENT.len(), width)?;
    let requests = counted(summary.passed + summary.refused, "request");
    let clients = counted(summary.clients, "client");
    match summary.span {
        Some(span) => indented(out, &[&format!("{requests} of {clients},"), &between(span)], width)?,
        None => indented(out, &[&format!("{requests} of {clients}")], width)?,
    }
    if let Some(align) = summary.align {
        terms(out, align, summary.refusals_count != Some(false), width)?;
    }
    if let Some(why) = &summary.incomplete {
        let read = format!("{WARNING}The log was read only in part:");
        indented(out, &[&read, &format!("{why}{WARNING:#}")], width)?;
    }
    Ok(())
}

/// Where windows begin, and whether refused requests count.
pub(super) fn terms(out: &mut String, align: &str, refusals_count: bool, width: usize) -> std::fmt::Result {
    let begin = match align {
        "clock" => "windows begin at whole periods of Unix time",
        "per-key" => "windows begin at a phase of each client's own",
        _ => "windows begin at a client's first request",
    };
    let counts = if refusals_count { "refused requests count" } else { "refused requests use up nothing" };
    indented(out, &[&format!("{DIM}{begin};"), &format!("{counts}{DIM:#}")], width)
}

fn totals(out: &mut String, summary: &Summary, width: usize) -> std::fmt::Result {
    let requests = summary.passed + summary.refused;
    let most = summary.passed.max(summary.refused);
    let line = |out: &mut String, name, count, style| total(out, name, count, requests, most, style, width);
    line(out, "passed", summary.passed, PASSED)?;
    line(out, "refused", summary.refused, REFUSED)?;
    let RefusedBy { burst, sustain, both, limit: _, full } = summary.refused_by;
    if burst + sustain + both > 0 {
        line(out, "  burst only", burst, REFUSED)?;
        line(out, "  sustain only", sustain, REFUSED)?;
        line(out, "  both", both, REFUSED)?;
    }
    if full > 0 {
        line(out, "  no room", full, REFUSED)?;
        let warning = format!("{WARNING}--max-keys leaves some of the clients no room{WARNING:#}");
        indented(out, &[&warning], width)?;
    }
    Ok(())
}

/// A name, its count, its share of the whole, and a bar; `most` is the greatest count that stands above or below it.
pub(super) fn total(
    out: &mut String,
    name: &str,
    count: u64,
    whole: u64,
    most: u64,
    style: Style,
    width: usize,
) -> std::fmt::Result {
    let digits = HumanCount(most).to_string().len();
    let (names, digits) = if width < WIDTH_FOR_AIR { (15, digits) } else { (16, digits.max(13)) };
    let (count_shown, share) = (HumanCount(count).to_string(), percent(count, whole));
    let counts = format!("{INDENT}{name:<names$}{count_shown:>digits$} {share:>8}  ");
    let room = width.saturating_sub(counts.chars().count() + INDENT.len());
    match bars::lying(count, whole, room).as_str() {
        "" => writeln!(out, "{}", counts.trim_end()),
        bar => writeln!(out, "{counts}{style}{bar}{style:#}"),
    }
}

pub(super) fn strays(out: &mut String, outside: u64, width: usize) -> std::fmt::Result {
    if outside == 0 {
        return Ok(());
    }
    let times = if outside == 1 { "a time" } else { "times" };
    let what = format!("{WARNING}not shown: {}", counted(outside, "request"));
    indented(out, &[&what, &format!("at {times} far from all others{WARNING:#}")], width)
}

/// How near the keys came to their limits, a sentence for each.
pub(super) fn headroom(out: &mut String, headroom: &[Headroom], width: usize) -> std::fmt::Result {
    if headroom.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{TITLE}Headroom{TITLE:#} {DIM}(at each one's peak){DIM:#}")?;
    for part in headroom {
        out.push_str(INDENT);
        flow(out, &[&part.sentence], INDENT.len(), 2 * INDENT.len(), width)?;
    }
    Ok(())
}

fn top(out: &mut String, summary: &Summary, width: usize) -> std::fmt::Result {
    if summary.top.is_empty() {
        return Ok(());
    }
    let title = match summary.top.len() as u64 {
        shown if shown == summary.clients_refused => {
            format!("Refused: {}", counted(shown, "client"))
        }
        shown => format!("Refused most: {shown} of {}", counted(summary.clients_refused, "client")),
    };
    writeln!(out, "\n{TITLE}{title}{TITLE:#}")?;
    let by_window = |by: &RefusedBy| by.burst + by.sustain + by.both > 0;
    let windows = summary.top.iter().any(|client| by_window(&client.refused_by));
    let names: &[&str] = match windows {
        true => &["refused", "share", "passed", "burst", "sustain", "both"],
        false => &["refused", "share", "passed"],
    };
    let rows: Vec<Row> =
        summary.top.iter().map(|client| Row::new(vec![client.client.clone()], counts(client))).collect();
    // One window without the others would not add up: they go together.
    table(out, &["client"], names, &rows, width, |columns| (columns - 1).min(WITHOUT_WINDOWS))
}

/// The counts of a client, in the order of the columns.
fn counts(client: &TopClient) -> Vec<String> {
    let count = |count: u64| HumanCount(count).to_string();
    let share = percent(client.refused, client.passed + client.refused);
    let RefusedBy { burst, sustain, both, .. } = client.refused_by;
    vec![count(client.refused), share, count(client.passed), count(burst), count(sustain), count(both)]
}

/// Lines that are no requests.
pub(super) struct Skips<'a> {
    pub(super) skipped: u64,
    pub(super) lines: u64,
    pub(super) first: &'a [SkippedLine],
    pub(super) by: &'a [SkippedBy],
}

pub(super) fn skips(out: &mut String, skips: &Skips<'_>, width: usize) -> std::fmt::Result {
    if skips.skipped == 0 {
        return Ok(());
    }
    let (skipped, lines) = (counted(skips.skipped, "line"), HumanCount(skips.lines));
    writeln!(out, "\n{TITLE}Skipped: {skipped}{TITLE:#} {DIM}of {lines}{DIM:#}")?;
    let numbers: Vec<String> =
        skips.first.iter().map(|skipped| HumanCount(skipped.line).to_string()).collect();
    let digits = numbers.iter().map(String::len).max().unwrap_or(0);
    for (number, skipped) in numbers.iter().zip(skips.first) {
        write!(out, "{INDENT}{WARNING}line {number:>digits$}{WARNING:#}  ")?;
        let indent = INDENT.len() + "line ".len() + digits + 2;
        flow(out, &phrases(&skipped.reason), indent, indent, width)?;
    }
    let more = skips.skipped - skips.first.len() as u64;
    if more > 0 {
        writeln!(out, "{INDENT}and {} more; all of them by reason:", HumanCount(more))?;
        for skipped in skips.by {
            let count = HumanCount(skipped.lines).to_string();
            write!(out, "{INDENT}{count:>10}  ")?;
            let indent = INDENT.len() + 10 + 2;
            flow(out, &phrases(skipped.reason), indent, indent, width)?;
        }
    }
    Ok(())
}

/// A reason in parts that are better not broken: what was found, what is wrong with it, what helps.
fn phrases(reason: &str) -> Vec<&str> {
    let parts = reason.split_inclusive("\": ").flat_map(|part| part.split_inclusive("; "));
    parts.map(|part| part.strip_suffix(' ').unwrap_or(part)).collect()
}

/// `1 line`, `2,000 lines`.
pub(super) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", HumanCount(count))
}

/// A share in percent, with one place; what is neither nothing nor everything does not read so.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if part == 0 || part == whole {
        return format!("{} %", if part == 0 { "0" } else { "100" });
    }
    let tenths = (u128::from(part) * 1_000 + u128::from(whole) / 2) / u128::from(whole.max(1));
    match tenths {
        0 => "< 0.1 %".to_owned(),
        1_000.. => "> 99.9 %".to_owned(),
        _ => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

/// From one time to another, the day said once if it is one day.
pub(super) fn between(Span { first_unix_ns, last_unix_ns }: Span) -> String {
    let at = |unix_ns: u64, format: &str| {
        let second = i64::try_from(unix_ns / 1_000_000_000).unwrap_or(i64::MAX);
        Timestamp::from_second(second).map_or_else(|_| "?".to_owned(), |at| at.strftime(format).to_string())
    };
    const DATE: &str = "%d %b %Y";
    let first_day = at(first_unix_ns, DATE);
    let last_day = at(last_unix_ns, DATE);
    let (first, last) = (at(first_unix_ns, "%H:%M:%S"), at(last_unix_ns, "%H:%M:%S"));
    if first_day == last_day {
        format!("{first_day} {first} to {last} UTC")
    } else {
        format!("{first_day} {first} to {last_day} {last} UTC")
    }
}

#[cfg(test)]
mod tests;
