//! Suggested limits as a page of text.

use std::fmt::Write;

use indicatif::HumanCount;

use super::flow::flow;
use super::table::{Row, table};
use super::text::{DIM, INDENT, Skips, TITLE, WARNING, between, counted, indented, percent, skips, terms};
use crate::replay::suggest::{Heavy, Proposal, Suggestions};

/// The whole report, `width` columns wide at most where the words allow it.
pub fn suggestions_text(found: &Suggestions, width: usize) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = head(&mut out, found, width);
    for (name, proposal) in NAMES.into_iter().zip(&found.proposals) {
        let _ = proposed(&mut out, name, proposal, found, width);
    }
    let _ = heaviest(&mut out, found, width);
    let (first, by) = (&*found.skipped_first, &*found.skipped_by);
    let _ = skips(&mut out, &Skips { skipped: found.skipped, lines: found.lines, first, by }, width);
    out
}

/// Of the proposals, in their order.
const NAMES: [&str; 2] = ["Windows", "Bucket"];

fn head(out: &mut String, found: &Suggestions, width: usize) -> std::fmt::Result {
    let title = format!("{TITLE}Limits for{TITLE:#}");
    flow(out, &[&title, &found.source], 0, INDENT.len(), width)?;
    let requests = format!("{} of {}", counted(found.requests, "request"), counted(found.clients, "client"));
    match found.span {
        Some(span) => indented(out, &[&format!("{requests},"), &between(span)], width)?,
        None => indented(out, &[&requests], width)?,
    }
    terms(out, found.align, found.refusals_count, width)?;
    let share = format!("at most {} % of the clients may be refused:", found.share_percent);
    indented(out, &[&share, &counted(found.clients_allowed, "client")], width)?;
    for doubt in &found.doubts {
        indented(out, &[&format!("{WARNING}{doubt}{WARNING:#}")], width)?;
    }
    if let Some(why) = &found.incomplete {
        let read = format!("{WARNING}The log was read only in part:");
        indented(out, &[&read, &format!("{why}{WARNING:#}")], width)?;
    }
    Ok(())
}

fn proposed(
    out: &mut String,
    name: &str,
    proposal: &Proposal,
    found: &Suggestions,
    width: usize,
) -> std::fmt::Result {
    writeln!(out, "\n{TITLE}{name}{TITLE:#} {DIM}(replayed {} times){DIM:#}", proposal.replays + 1)?;
    writeln!(out, "{INDENT}{}", proposal.arguments)?;
    let clients = format!(
        "refuses {} ({})",
        counted(proposal.clients_refused, "client"),
        percent(proposal.clients_refused, found.clients)
    );
    let requests = format!(
        "and {} ({})",
        counted(proposal.refused, "request"),
        percent(proposal.refused, found.requests)
    );
    indented(out, &[&clients, &requests], width)
}

fn heaviest(out: &mut String, found: &Suggestions, width: usize) -> std::fmt::Result {
    if found.heaviest.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{TITLE}What they refuse of the heaviest clients{TITLE:#}")?;
    let row = |heavy: &Heavy| {
        let mut counts = vec![HumanCount(heavy.requests).to_string()];
        for refused in &heavy.refused {
            counts.extend([HumanCount(*refused).to_string(), percent(*refused, heavy.requests)]);
        }
        Row::new(vec![heavy.client.clone()], counts)
    };
    let rows: Vec<Row> = found.heaviest.iter().map(row).collect();
    // A count without its share would only fill the page.
    let fewer = |columns: usize| if columns > 3 { 3 } else { columns - 1 };
    table(out, &["client"], &["requests", "windows", "share", "bucket", "share"], &rows, width, fewer)
}
