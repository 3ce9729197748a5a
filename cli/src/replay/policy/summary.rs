//! Everything that a report of one policy says, as plain data: what `--json` prints is this, field by field.

use std::cmp::Reverse;

use serde::Serialize;
use tidegate::policy::Rules;

use super::requests::{Requests, asked_by};
use super::tally::{KeyCount, Outcome, RuleCount, Totals, rule_title};
use crate::replay::headroom::Headroom;
use crate::replay::strips::Strips;
use crate::replay::summary::{SkippedBy, SkippedLine, Span, skips_of};
use crate::replay::timeline::Timeline;

/// What a log is, and how it was read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct About {
    /// Where it came from.
    pub source: String,
    /// What keys were hashed with.
    pub seed: u64,
    /// All lines; of CSV, all entries.
    pub lines: u64,
    /// Those that are no requests.
    pub skipped: u64,
    /// Those that are.
    pub requests: u64,
    /// The first and the last request; `None` without requests.
    pub span: Option<Span>,
    /// What rules ask for and no request has.
    pub missing: Vec<String>,
    /// Requests whose client is no address; 0 where no rule asks for one.
    pub without_address: u64,
    /// How many lines were skipped for each reason, the commonest first.
    pub skipped_by: Vec<SkippedBy>,
    /// The first few of the skipped lines.
    pub skipped_first: Vec<SkippedLine>,
    /// Why the log could not be read to its end, if so.
    pub incomplete: Option<String>,
}

impl About {
    /// What was read, for these policies.
    pub fn new(source: String, seed: u64, requests: &Requests, policies: &[&Rules]) -> Self {
        let asked = asked_by(policies);
        let asks_address = asked.contains(&super::mapping::Part::ClientIp);
        let missing = asked.iter().filter(|part| !requests.have(part)).map(ToString::to_string);
        let (skipped_by, skipped_first) = skips_of(&requests.skips);
        let arrivals = &requests.arrivals;
        let span = arrivals.first().zip(arrivals.last());
        let broken = requests.input.broken.as_ref();
        Self {
            source,
            seed,
            lines: requests.input.lines,
            skipped: requests.skips.total,
            requests: arrivals.len() as u64,
            span: span
                .map(|(first, last)| Span { first_unix_ns: first.at_unix_ns, last_unix_ns: last.at_unix_ns }),
            missing: if arrivals.is_empty() { Vec::new() } else { missing.collect() },
            without_address: if asks_address { requests.without_address } else { 0 },
            skipped_by,
            skipped_first,
            incomplete: broken.map(|(line, error)| format!("reading stopped in line {line}: {error}")),
        }
    }
}

/// The result of one policy.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PolicySummary {
    /// The log.
    #[serde(flatten)]
    pub about: About,
    /// Over all rules.
    #[serde(flatten)]
    pub totals: Totals,
    /// By rule, in the policy's order.
    pub rules: Vec<RuleCount>,
    /// Keys of which a request was refused, or would have been, of all rules.
    pub keys_refused: u64,
    /// The keys refused most, at most as many as asked for.
    pub top: Vec<KeyCount>,
    /// What keys used of the limits of each rule that counted any, at their peaks.
    pub headroom: Vec<Headroom>,
    /// The requests by time.
    pub timeline: Timeline,
    /// The same by rule, as it is drawn.
    #[serde(skip)]
    pub strips: Strips,
    /// Whether any rule counts anything but requests.
    pub counts_cost: bool,
}

impl PolicySummary {
    /// Of what a policy did, with so many keys.
    pub fn new(about: About, outcome: Outcome, top: usize) -> Self {
        let peaks = |rule: &RuleCount| -> Vec<u32> {
            outcome.keys.iter().filter(|key| key.rule == rule.rule).map(|key| key.peak_percent).collect()
        };
        let counted = outcome.rules.iter().filter(|rule| rule.peak_percent.is_some());
        let headroom =
            counted.map(|rule| Headroom::of_rule(&rule_title(&rule.rule, rule.shadow), peaks(rule)));
        let headroom = headroom.collect();
        let mut keys: Vec<KeyCount> = outcome.keys.into_iter().filter(|key| key.refused > 0).collect();
        let keys_refused = keys.len() as u64;
        keys.sort_by_key(|key| Reverse(key.refused));
        keys.truncate(top);
        Self {
            about,
            totals: outcome.totals,
            rules: outcome.rules,
            keys_refused,
            top: keys,
            headroom,
            timeline: outcome.timeline,
            strips: outcome.strips,
            counts_cost: outcome.has_costs,
        }
    }
}
