//! What a policy did to a log, counted by rule and by key.

use std::collections::HashMap;

use serde::Serialize;
use tidegate::policy::{Cost, PolicyError, Request, Rule, RuleState, Rules};

use super::requests::Requests;
use super::trial::{Decided, decide_all};
use crate::replay::strips::{Part, Strips};
use crate::replay::timeline::{Timeline, span_without_strays};

/// Requests, and what they cost by their own account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Where the policy came from.
    pub policy: String,
    /// What it calls itself.
    pub name: String,
    /// Requests that may go on.
    pub allowed: u64,
    /// Requests that must not.
    pub refused: u64,
    /// Those of the allowed that no rule is about.
    pub unmatched: u64,
    /// What the allowed cost.
    pub cost_allowed: u64,
    /// What the refused would have cost.
    pub cost_refused: u64,
}

/// One rule: `matched` is `exempt`, `passed`, `refused` and `shadow_refused` together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuleCount {
    /// Its name.
    pub rule: String,
    /// Whether it only watches.
    pub shadow: bool,
    /// Requests that it is about.
    pub matched: u64,
    /// Those that it leaves alone.
    pub exempt: u64,
    /// Those that it has room for, whatever other rules say.
    pub passed: u64,
    /// Those that it refuses.
    pub refused: u64,
    /// Those of the refused that no other rule refuses.
    pub refused_alone: u64,
    /// Those that it would refuse if it did not only watch.
    pub shadow_refused: u64,
    /// Those of the passed that use a limit up to the share that is worth a warning.
    pub warned: u64,
    /// What the passed cost, as the rule counts.
    pub cost_passed: u64,
    /// What the refused would have cost, those of a shadow rule too.
    pub cost_refused: u64,
    /// Distinct keys, by the text that messages show.
    pub keys: u64,
    /// Keys of which a request was refused, or would have been.
    pub keys_refused: u64,
    /// The highest share of a limit that a key ever used, in whole percent; `None` if nothing was counted.
    pub peak_percent: Option<u64>,
    /// The first key that used so much.
    pub peak_key: Option<String>,
}

/// One key of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KeyCount {
    /// The rule.
    pub rule: String,
    /// The key, as messages show it.
    pub key: String,
    /// Whether the rule only watches.
    pub shadow: bool,
    /// Requests that the rule has room for.
    pub passed: u64,
    /// Requests that it refuses, or would.
    pub refused: u64,
    /// What the passed cost, as the rule counts.
    pub cost_passed: u64,
    /// What the refused would have cost.
    pub cost_refused: u64,
    /// The highest share of a limit that it used, in whole percent.
    #[serde(skip)]
    pub peak_percent: u32,
}

/// What one policy did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Over all rules.
    pub totals: Totals,
    /// By rule, in the policy's order.
    pub rules: Vec<RuleCount>,
    /// By rule and key, in the order of the first requests.
    pub keys: Vec<KeyCount>,
    /// Whether each request may go on, in the order of their times.
    pub allowed: Vec<bool>,
    /// By time.
    pub timeline: Timeline,
    /// By time and rule, as it is drawn.
    pub strips: Strips,
    /// Whether any rule counts anything but requests.
    pub has_costs: bool,
}

/// Puts every request to the policy, and counts; where it came from is left to the caller.
///
/// # Errors
///
/// What the policy finds wrong with the rules.
pub fn tally(
    rules: &Rules,
    seed: u64,
    requests: &Requests,
    slots_max: usize,
    tick: impl FnMut(usize),
) -> Result<Outcome, PolicyError> {
    let mut tally = Tally::new(rules, requests, slots_max);
    decide_all(rules, seed, requests, |decided| tally.add(decided), tick)?;
    Ok(tally.outcome(rules))
}

/// Counts of one rule while requests are decided.
struct RuleTally<'a> {
    rule: &'a Rule,
    count: RuleCount,
    keys: Vec<KeyCount>,
    numbers: HashMap<String, usize>,
    /// For each shape the number of its key, once it is known.
    key_of_shape: Vec<Option<usize>>,
}

struct Tally<'a> {
    totals: Totals,
    rules: Vec<RuleTally<'a>>,
    by_name: HashMap<&'a str, usize>,
    allowed: Vec<bool>,
    timeline: Timeline,
    strips: Strips,
}

impl<'a> Tally<'a> {
    fn new(rules: &'a Rules, requests: &Requests, slots_max: usize) -> Self {
        let span = span_without_strays(&requests.arrivals, |arrival| arrival.at_unix_ns);
        let timeline =
            span.map_or_else(Timeline::default, |(first, last)| Timeline::spanning(first, last, slots_max));
        let titles = rules.rules.iter().map(|rule| rule_title(&rule.name, rule.shadow));
        let shapes = requests.shapes.len();
        Self {
            totals: Totals { name: rules.name.clone(), ..Totals::default() },
            rules: rules.rules.iter().map(|rule| RuleTally::new(rule, shapes)).collect(),
            by_name: rules.rules.iter().zip(0..).map(|(rule, at)| (rule.name.as_str(), at)).collect(),
            allowed: Vec::with_capacity(requests.arrivals.len()),
            timeline,
            strips: Strips::spanning(span, titles),
        }
    }

    fn add(&mut self, decided: &Decided<'_>) {
        let verdict = &decided.verdict;
        let (is_allowed, cost) = (verdict.is_allowed(), decided.request.cost.max(1));
        let totals = &mut self.totals;
        totals.unmatched += u64::from(!verdict.is_matched());
        match is_allowed {
            true => add_one(&mut totals.allowed, &mut totals.cost_allowed, cost),
            false => add_one(&mut totals.refused, &mut totals.cost_refused, cost),
        }
        self.allowed.push(is_allowed);
        match self.timeline.slot_mut(decided.arrival.at_unix_ns) {
            Some(slot) if is_allowed => slot.passed += 1,
            Some(slot) => slot.refused += 1,
            None => self.timeline.outside += 1,
        }
        let is_alone = verdict.refusing().count() == 1;
        for state in verdict.rules() {
            if let Some(&at) = self.by_name.get(state.name()) {
                self.rules[at].add(state, is_alone, decided);
                let part = match (state.refuses(), state.is_shadow()) {
                    (false, _) => Part::Passed,
                    (true, false) => Part::Refused,
                    (true, true) => Part::Watched,
                };
                if !state.is_exempt() {
                    self.strips.add(at, decided.arrival.at_unix_ns, part);
                }
            }
        }
    }

    fn outcome(self, rules: &Rules) -> Outcome {
        let mut outcome = Outcome {
            totals: self.totals,
            allowed: self.allowed,
            timeline: self.timeline,
            strips: self.strips,
            has_costs: rules.rules.iter().any(|rule| rule.cost != Cost::Fixed(1)),
            ..Outcome::default()
        };
        for mut rule in self.rules {
            rule.count.keys = rule.keys.len() as u64;
            rule.count.keys_refused = rule.keys.iter().filter(|key| key.refused > 0).count() as u64;
            outcome.rules.push(rule.count);
            outcome.keys.append(&mut rule.keys);
        }
        outcome
    }
}

impl<'a> RuleTally<'a> {
    fn new(rule: &'a Rule, shapes: usize) -> Self {
        let count = RuleCount { rule: rule.name.clone(), shadow: rule.shadow, ..RuleCount::default() };
        Self { rule, count, keys: Vec::new(), numbers: HashMap::new(), key_of_shape: vec![None; shapes] }
    }

    fn add(&mut self, state: RuleState<'_>, is_alone: bool, decided: &Decided<'_>) {
        self.count.matched += 1;
        if state.is_exempt() {
            self.count.exempt += 1;
            return;
        }
        let cost = cost(self.rule, &decided.request);
        let at = self.key(decided);
        let (count, key) = (&mut self.count, &mut self.keys[at]);
        if state.refuses() {
            let refused = if state.is_shadow() { &mut count.shadow_refused } else { &mut count.refused };
            add_one(refused, &mut count.cost_refused, cost);
            add_one(&mut key.refused, &mut key.cost_refused, cost);
            count.refused_alone += u64::from(is_alone && !state.is_shadow());
        } else {
            add_one(&mut count.passed, &mut count.cost_passed, cost);
            add_one(&mut key.passed, &mut key.cost_passed, cost);
            count.warned += u64::from(state.warns());
        }
        let used_percent = state.limits().map(|limit| limit.used_percent()).max();
        if used_percent > count.peak_percent {
            count.peak_percent = used_percent;
            count.peak_key = Some(key.key.clone());
        }
        let used_percent = u32::try_from(used_percent.unwrap_or(0)).unwrap_or(u32::MAX);
        key.peak_percent = key.peak_percent.max(used_percent);
    }

    /// The number of the request's key, a new one if it was not seen before.
    fn key(&mut self, decided: &Decided<'_>) -> usize {
        let shape = decided.arrival.shape as usize;
        if let Some(at) = self.key_of_shape[shape] {
            return at;
        }
        let key = decided.policy.key_of(&self.rule.name, &decided.request).unwrap_or_default();
        let key = crate::key::printable(if self.rule.key.is_empty() { "all together" } else { &key });
        let next = self.keys.len();
        let at = *self.numbers.entry(key.clone()).or_insert(next);
        if at == next {
            let (rule, shadow) = (self.rule.name.clone(), self.rule.shadow);
            self.keys.push(KeyCount { rule, key, shadow, ..KeyCount::default() });
        }
        self.key_of_shape[shape] = Some(at);
        at
    }
}

/// The name of a rule as it is shown, and that it only watches.
pub fn rule_title(name: &str, is_shadow: bool) -> String {
    let name = crate::key::printable(name);
    if is_shadow { format!("{name} (shadow)") } else { name }
}

fn add_one(count: &mut u64, sum: &mut u64, cost: u64) {
    *count += 1;
    *sum = sum.saturating_add(cost);
}

/// What a request costs by a rule, as the policy counts it: never less than 1.
fn cost(rule: &Rule, request: &Request<'_>) -> u64 {
    let cost = match &rule.cost {
        Cost::Fixed(cost) => *cost,
        Cost::OfRequest => request.cost,
        Cost::Attribute(name) => request.attribute(name).map_or(1, number),
    };
    cost.max(1)
}

/// The number that a text of digits stands for, the largest there is if it is above that; 1 for any other text.
fn number(text: &str) -> u64 {
    if text.is_empty() || !text.bytes().all(|digit| digit.is_ascii_digit()) {
        return 1;
    }
    text.parse().unwrap_or(u64::MAX)
}
