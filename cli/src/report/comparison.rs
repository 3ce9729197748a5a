//! The report of two policies as a page of text.

use std::fmt::Write;

use indicatif::HumanCount;

use super::flow::flow;
use super::policy::{about, named, rule_name, skipped};
use super::table::{Row, table};
use super::text::{INDENT, PASSED, REFUSED, TITLE, counted, total};
use crate::replay::policy::compare::{Comparison, KeyPair, RulePair};
use crate::replay::policy::tally::RuleCount;

/// The whole report, `width` columns wide at most where the words allow it.
pub fn comparison_text(comparison: &Comparison, width: usize) -> String {
    let mut out = String::new();
    let (before, after) = (named(&comparison.before), named(&comparison.after));
    let before = format!("before: {TITLE}{before}{TITLE:#}");
    let after = format!("after:  {TITLE}{after}{TITLE:#}");
    // Writing to a string cannot fail, here and below.
    let _ = flow(&mut out, &[&before], 0, INDENT.len(), width);
    let _ = flow(&mut out, &[&after], 0, INDENT.len(), width);
    let _ = flow(&mut out, &["on", &comparison.about.source], 0, INDENT.len(), width);
    let _ = about(&mut out, &comparison.about, width);
    if comparison.about.requests > 0 {
        let _ = totals(&mut out, comparison, width);
        let _ = by_rule(&mut out, comparison, width);
        let _ = keys(&mut out, "Refused more often", &comparison.losers, comparison.losers_total, width);
        let _ = keys(&mut out, "Refused less often", &comparison.gainers, comparison.gainers_total, width);
    }
    let _ = skipped(&mut out, &comparison.about, width);
    out
}

fn totals(out: &mut String, comparison: &Comparison, width: usize) -> std::fmt::Result {
    let whole = comparison.about.requests;
    let mut line = |name: &str, count: u64, style| total(out, name, count, whole, whole, style, width);
    line("allowed by both", comparison.both_allowed, PASSED)?;
    line("refused by both", comparison.both_refused, REFUSED)?;
    line("newly allowed", comparison.gained, PASSED)?;
    line("newly refused", comparison.lost, REFUSED)?;
    let (before, after) = (&comparison.before, &comparison.after);
    let mut rows = vec![
        row(&["allowed"], Some(before.allowed), Some(after.allowed)),
        row(&["refused"], Some(before.refused), Some(after.refused)),
    ];
    if before.unmatched + after.unmatched > 0 {
        rows.push(row(&["by no rule"], Some(before.unmatched), Some(after.unmatched)));
    }
    if comparison.counts_cost {
        rows.push(row(&["cost allowed"], Some(before.cost_allowed), Some(after.cost_allowed)));
        rows.push(row(&["cost refused"], Some(before.cost_refused), Some(after.cost_refused)));
    }
    writeln!(out)?;
    table(out, &["requests"], &CHANGE, &rows, width, |columns| columns - 1)
}

/// The columns of a change.
const CHANGE: [&str; 3] = ["change", "before", "after"];

/// One line of a change; `-` where a policy has nothing to count.
fn row(names: &[&str], before: Option<u64>, after: Option<u64>) -> Row {
    let count = |count: Option<u64>| count.map_or("-".to_owned(), |count| HumanCount(count).to_string());
    let (was, is) = (before.unwrap_or(0), after.unwrap_or(0));
    let sign = match was.cmp(&is) {
        std::cmp::Ordering::Less => "+",
        std::cmp::Ordering::Equal => "",
        std::cmp::Ordering::Greater => "−",
    };
    let change = format!("{sign}{}", HumanCount(was.abs_diff(is)));
    Row::new(names.iter().map(|name| (*name).to_owned()).collect(), vec![change, count(before), count(after)])
}

fn by_rule(out: &mut String, comparison: &Comparison, width: usize) -> std::fmt::Result {
    // Only what refuses in one of them is worth a line; a rule that only watches refuses nobody.
    let refused = |rule: &Option<RuleCount>| rule.as_ref().map(|rule| rule.refused);
    let is_shadow = |pair: &RulePair| {
        let sides = [&pair.before, &pair.after];
        sides.iter().all(|side| side.as_ref().is_none_or(|rule| rule.shadow))
    };
    let met = comparison.rules.iter().filter(|pair| {
        [&pair.before, &pair.after].iter().any(|side| side.as_ref().is_some_and(|rule| rule.matched > 0))
    });
    let rows: Vec<Row> = met
        .map(|pair| {
            row(&[&rule_name(&pair.rule, is_shadow(pair))], refused(&pair.before), refused(&pair.after))
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{TITLE}Refused by rule{TITLE:#}")?;
    table(out, &["rule"], &CHANGE, &rows, width, |columns| columns - 1)
}

fn keys(out: &mut String, title: &str, pairs: &[KeyPair], all: u64, width: usize) -> std::fmt::Result {
    if pairs.is_empty() {
        return Ok(());
    }
    let (shown, noun) = (pairs.len() as u64, counted(all, "key"));
    match shown == all {
        true => writeln!(out, "\n{TITLE}{title}: {noun}{TITLE:#}")?,
        false => writeln!(out, "\n{TITLE}{title}: {shown} of {noun}{TITLE:#}")?,
    }
    let line = |pair: &KeyPair| {
        let names = [pair.key.as_str(), &crate::key::printable(&pair.rule)];
        row(&names, Some(pair.refused_before), Some(pair.refused_after))
    };
    let rows: Vec<Row> = pairs.iter().map(line).collect();
    table(out, &["key", "rule"], &CHANGE, &rows, width, |columns| columns - 1)
}
