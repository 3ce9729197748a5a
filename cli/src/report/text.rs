//! The report as a page of text.
//!
//! It is written with colours throughout; the stream that it goes to takes them out where they are not
//! wanted. Nothing is told by colour alone.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::HumanCount;
use jiff::Timestamp;

use super::{bars, chart};
use crate::replay::summary::{RefusedBy, Span, Summary, TopClient};

pub(super) const INDENT: &str = "  ";
pub(super) const PASSED: Style = AnsiColor::Green.on_default();
pub(super) const REFUSED: Style = AnsiColor::Red.on_default();
pub(super) const DIM: Style = Style::new().dimmed();
const TITLE: Style = Style::new().bold();
const WARNING: Style = AnsiColor::Yellow.on_default();

/// What the counts of a client take of the width, seven digits each.
const COUNTS_COLUMNS: usize = 52;

/// From which width on clients are shown with the windows that refused them.
const WIDTH_FOR_WINDOWS: usize = 72;

/// The whole report, `width` columns wide at most where the words allow it.
pub fn text(summary: &Summary, width: usize) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = head(&mut out, summary);
    if summary.passed + summary.refused > 0 {
        let _ = totals(&mut out, summary, width);
        let _ = writeln!(out, "\n{TITLE}Over time{TITLE:#} {DIM}(UTC){DIM:#}");
        out.push_str(&chart::chart(&summary.timeline, width));
        let _ = top(&mut out, summary, width);
    }
    let _ = skips(&mut out, summary, width);
    out
}

fn head(out: &mut String, summary: &Summary) -> std::fmt::Result {
    writeln!(out, "{TITLE}{}{TITLE:#} on {}", summary.limit, summary.source)?;
    let requests = summary.passed + summary.refused;
    write!(out, "{INDENT}{} of {}", counted(requests, "request"), counted(summary.clients, "client"))?;
    if let Some(Span { first_unix_ns, last_unix_ns }) = summary.span {
        write!(out, ", {}", between(first_unix_ns, last_unix_ns))?;
    }
    writeln!(out)?;
    if let Some(align) = summary.align {
        let begin = match align {
            "clock" => "windows begin at whole periods of Unix time",
            "per-key" => "windows begin at a phase of each client's own",
            _ => "windows begin at a client's first request",
        };
        let counts = match summary.refusals_count {
            Some(false) => "refused requests use up nothing",
            _ => "refused requests count",
        };
        writeln!(out, "{INDENT}{DIM}{begin}; {counts}{DIM:#}")?;
    }
    if let Some(why) = &summary.incomplete {
        writeln!(out, "{INDENT}{WARNING}The log was read only in part: {why}{WARNING:#}")?;
    }
    Ok(())
}

fn totals(out: &mut String, summary: &Summary, width: usize) -> std::fmt::Result {
    let requests = summary.passed + summary.refused;
    let mut line = |name: &str, count: u64, style: Style| {
        let share = percent(count, requests);
        let counts = format!("{INDENT}{name:<16}{:>13} {share:>8}  ", HumanCount(count).to_string());
        let room = width.saturating_sub(counts.chars().count() + INDENT.len());
        let bar = bars::lying(count, requests, room);
        match bar.as_str() {
            "" => writeln!(out, "{}", counts.trim_end()),
            bar => writeln!(out, "{counts}{style}{bar}{style:#}"),
        }
    };
    line("passed", summary.passed, PASSED)?;
    line("refused", summary.refused, REFUSED)?;
    let RefusedBy { burst, sustain, both, limit: _, full } = summary.refused_by;
    if burst + sustain + both > 0 {
        line("  burst only", burst, REFUSED)?;
        line("  sustain only", sustain, REFUSED)?;
        line("  both", both, REFUSED)?;
    }
    if full > 0 {
        line("  no room", full, REFUSED)?;
        writeln!(out, "{INDENT}{WARNING}--max-keys leaves some of the clients no room{WARNING:#}")?;
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
    // A narrow page has no room for what refused them.
    let windows = width >= WIDTH_FOR_WINDOWS
        && summary
            .top
            .iter()
            .any(|client| client.refused_by.burst + client.refused_by.sustain + client.refused_by.both > 0);
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let mut header = vec!["client", "refused", "share", "passed"];
    if windows {
        header.extend(["burst", "sustain", "both"]);
    }
    table.set_header(header);
    for client in &summary.top {
        table.add_row(row(client, windows, width.saturating_sub(COUNTS_COLUMNS).clamp(20, 60)));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for (at, line) in table.lines().enumerate() {
        let line = line.trim_end();
        match at {
            0 => writeln!(out, " {DIM}{line}{DIM:#}")?,
            _ => writeln!(out, " {line}")?,
        }
    }
    Ok(())
}

fn row(client: &TopClient, windows: bool, client_chars_max: usize) -> Vec<String> {
    let mut name: String = client.client.chars().take(client_chars_max).collect();
    if name.len() < client.client.len() {
        name.pop();
        name.push('…');
    }
    let count = |count: u64| HumanCount(count).to_string();
    let mut row = vec![
        name,
        count(client.refused),
        percent(client.refused, client.passed + client.refused),
        count(client.passed),
    ];
    if windows {
        let RefusedBy { burst, sustain, both, .. } = client.refused_by;
        row.extend([count(burst), count(sustain), count(both)]);
    }
    row
}

fn skips(out: &mut String, summary: &Summary, width: usize) -> std::fmt::Result {
    if summary.skipped == 0 {
        return Ok(());
    }
    let (skipped, lines) = (counted(summary.skipped, "line"), HumanCount(summary.lines));
    writeln!(out, "\n{TITLE}Skipped: {skipped}{TITLE:#} {DIM}of {lines}{DIM:#}")?;
    let numbers: Vec<String> =
        summary.skipped_first.iter().map(|skipped| HumanCount(skipped.line).to_string()).collect();
    let digits = numbers.iter().map(String::len).max().unwrap_or(0);
    for (number, skipped) in numbers.iter().zip(&summary.skipped_first) {
        write!(out, "{INDENT}{WARNING}line {number:>digits$}{WARNING:#}  ")?;
        wrapped(out, &skipped.reason, INDENT.len() + "line ".len() + digits + 2, width)?;
    }
    let more = summary.skipped - summary.skipped_first.len() as u64;
    if more > 0 {
        writeln!(out, "{INDENT}and {} more; all of them by reason:", HumanCount(more))?;
        for skipped in &summary.skipped_by {
            let count = HumanCount(skipped.lines).to_string();
            writeln!(out, "{INDENT}{count:>10}  {}", skipped.reason)?;
        }
    }
    Ok(())
}

/// `words` and a line break; the line has `indent` columns already, and more lines begin that far in.
fn wrapped(out: &mut String, words: &str, indent: usize, width: usize) -> std::fmt::Result {
    let mut column = indent;
    for word in words.split(' ') {
        let chars = word.chars().count();
        if column > indent && column + 1 + chars > width {
            write!(out, "\n{:indent$}", "")?;
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += chars;
    }
    writeln!(out)
}

/// `1 line`, `2,000 lines`.
fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", HumanCount(count))
}

/// A share in percent, with one place; what is neither nothing nor everything does not read so.
fn percent(part: u64, whole: u64) -> String {
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
fn between(first_unix_ns: u64, last_unix_ns: u64) -> String {
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
