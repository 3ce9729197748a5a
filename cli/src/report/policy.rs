//! The report of a policy as a page of text.

use std::fmt::Write;

use indicatif::HumanCount;

use super::chart;
use super::flow::flow;
use super::table::{Row, table};
use super::text::{
    DIM, INDENT, PASSED, REFUSED, Skips, TITLE, WARNING, between, counted, headroom, indented, percent,
    skips, strays, total,
};
use crate::replay::policy::summary::{About, PolicySummary};
use crate::replay::policy::tally::{KeyCount, RuleCount, Totals, rule_title};

/// The whole report, `width` columns wide at most where the words allow it.
pub fn policy_text(summary: &PolicySummary, width: usize) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, here and below.
    let title = format!("{TITLE}{}{TITLE:#}", named(&summary.totals));
    let _ = flow(&mut out, &[&title, &format!("on {}", summary.about.source)], 0, INDENT.len(), width);
    let _ = about(&mut out, &summary.about, width);
    if summary.about.requests > 0 {
        let _ = totals(&mut out, summary, width);
        let _ = by_rule(&mut out, summary, width);
        let _ = writeln!(out, "\n{TITLE}Over time{TITLE:#} {DIM}(UTC){DIM:#}");
        out.push_str(&chart::chart(&summary.timeline, width));
        let _ = strays(&mut out, summary.timeline.outside, width);
        let _ = headroom(&mut out, &summary.headroom, width);
        let _ = top(&mut out, summary, width);
    }
    let _ = skipped(&mut out, &summary.about, width);
    out
}

/// A policy by its own name, and where it came from.
pub(super) fn named(totals: &Totals) -> String {
    match crate::key::printable(&totals.name) {
        name if name.is_empty() => totals.policy.clone(),
        name => format!("{name} ({})", totals.policy),
    }
}

/// What stands below the title: how many requests, when, and what is odd about them.
pub(super) fn about(out: &mut String, about: &About, width: usize) -> std::fmt::Result {
    let requests = counted(about.requests, "request");
    match about.span {
        Some(span) => indented(out, &[&format!("{requests},"), &between(span)], width)?,
        None => indented(out, &[&requests], width)?,
    }
    if !about.missing.is_empty() {
        let names: Vec<String> = about.missing.iter().map(|name| crate::key::printable(name)).collect();
        let what = format!("{WARNING}rules ask for {};", names.join(", "));
        indented(out, &[&what, &format!("no request has it (see --map){WARNING:#}")], width)?;
    }
    if about.without_address > 0 {
        let what = format!("{WARNING}{}", counted(about.without_address, "request"));
        let phrases = [&what, "without an address,", &format!("counted as one client{WARNING:#}")];
        indented(out, &phrases, width)?;
    }
    if let Some(why) = &about.incomplete {
        let read = format!("{WARNING}The log was read only in part:");
        indented(out, &[&read, &format!("{why}{WARNING:#}")], width)?;
    }
    Ok(())
}

pub(super) fn skipped(out: &mut String, about: &About, width: usize) -> std::fmt::Result {
    let (first, by) = (&*about.skipped_first, &*about.skipped_by);
    skips(out, &Skips { skipped: about.skipped, lines: about.lines, first, by }, width)
}

fn totals(out: &mut String, summary: &PolicySummary, width: usize) -> std::fmt::Result {
    let Totals { allowed, refused, unmatched, cost_allowed, cost_refused, .. } = &summary.totals;
    let (requests, cost) = (allowed + refused, cost_allowed.saturating_add(*cost_refused));
    let most = if summary.counts_cost { cost.max(requests) } else { requests };
    let mut line =
        |name: &str, count: u64, whole: u64, style| total(out, name, count, whole, most, style, width);
    line("allowed", *allowed, requests, PASSED)?;
    if *unmatched > 0 {
        line("  by no rule", *unmatched, requests, PASSED)?;
    }
    line("refused", *refused, requests, REFUSED)?;
    if summary.counts_cost {
        line("cost allowed", *cost_allowed, cost, PASSED)?;
        line("cost refused", *cost_refused, cost, REFUSED)?;
    }
    Ok(())
}

fn count(count: u64) -> String {
    HumanCount(count).to_string()
}

/// A column of counts by rule: its title, its cell, and whether it is worth showing if all are 0.
type Column = (&'static str, fn(&RuleCount) -> String, bool);

fn by_rule(out: &mut String, summary: &PolicySummary, width: usize) -> std::fmt::Result {
    // Rules that nothing was about would only make a long policy longer.
    let (met, idle): (Vec<&RuleCount>, Vec<&RuleCount>) =
        summary.rules.iter().partition(|rule| rule.matched > 0);
    writeln!(out, "\n{TITLE}By rule{TITLE:#}")?;
    if !met.is_empty() {
        let any = |of: fn(&RuleCount) -> u64| met.iter().any(|rule| of(rule) > 0);
        let refused: fn(&RuleCount) -> u64 = |rule| rule.refused + rule.shadow_refused;
        // The most telling stand first: a narrow page drops the last.
        let columns: [Column; 11] = [
            ("refused", |rule| count(rule.refused + rule.shadow_refused), true),
            (
                "share",
                |rule| {
                    let refused = rule.refused + rule.shadow_refused;
                    percent(refused, rule.passed + refused)
                },
                true,
            ),
            ("passed", |rule| count(rule.passed), true),
            (
                "peak",
                |rule| rule.peak_percent.map_or("-".to_owned(), |peak| format!("{} %", HumanCount(peak))),
                true,
            ),
            ("keys", |rule| count(rule.keys), true),
            ("keys refused", |rule| count(rule.keys_refused), any(refused)),
            ("alone", |rule| count(rule.refused_alone), any(|rule| rule.refused) && met.len() > 1),
            ("warned", |rule| count(rule.warned), any(|rule| rule.warned)),
            ("exempt", |rule| count(rule.exempt), any(|rule| rule.exempt)),
            ("cost passed", |rule| count(rule.cost_passed), summary.counts_cost),
            ("cost refused", |rule| count(rule.cost_refused), summary.counts_cost),
        ];
        let shown: Vec<&Column> = columns.iter().filter(|(_, _, is_shown)| *is_shown).collect();
        let titles: Vec<&str> = shown.iter().map(|(title, ..)| *title).collect();
        let row = |rule: &&RuleCount| {
            Row::new(
                vec![rule_name(&rule.rule, rule.shadow)],
                shown.iter().map(|(_, cell, _)| cell(rule)).collect(),
            )
        };
        let rows: Vec<Row> = met.iter().map(row).collect();
        table(out, &["rule"], &titles, &rows, width, |columns| columns - 1)?;
    }
    if !idle.is_empty() {
        let names: Vec<String> = idle.iter().map(|rule| crate::key::printable(&rule.rule)).collect();
        let names = format!("{}{DIM:#}", names.join(", "));
        indented(out, &[&format!("{DIM}rules that no request matched:"), &names], width)?;
    }
    Ok(())
}

/// The name of a rule, and that it only watches.
pub(super) fn rule_name(name: &str, is_shadow: bool) -> String {
    rule_title(name, is_shadow)
}

fn top(out: &mut String, summary: &PolicySummary, width: usize) -> std::fmt::Result {
    if summary.top.is_empty() {
        return Ok(());
    }
    let title = match summary.top.len() as u64 {
        shown if shown == summary.keys_refused => format!("Refused: {}", counted(shown, "key")),
        shown => format!("Refused most: {shown} of {}", counted(summary.keys_refused, "key")),
    };
    writeln!(out, "\n{TITLE}{title}{TITLE:#}")?;
    let mut titles = vec!["refused", "share", "passed"];
    if summary.counts_cost {
        titles.extend(["cost refused", "cost passed"]);
    }
    let row = |key: &KeyCount| {
        let share = percent(key.refused, key.passed + key.refused);
        let mut counts = vec![count(key.refused), share, count(key.passed)];
        if summary.counts_cost {
            counts.extend([count(key.cost_refused), count(key.cost_passed)]);
        }
        Row::new(vec![key.key.clone(), rule_name(&key.rule, key.shadow)], counts)
    };
    let rows: Vec<Row> = summary.top.iter().map(row).collect();
    table(out, &["key", "rule"], &titles, &rows, width, |columns| columns - 1)
}
