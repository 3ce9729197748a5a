//! The decoder: values with their places into rules, or everything that is wrong with them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::fields::{BODIES, COUNTINGS, MATCHINGS, ON_FULLS, ON_REFUSALS, OVERRIDE, POLICY, RULE};
use super::limits::Read;
use super::node::{Node, Value, quoted};
use super::problem::{Lines, Problem, Problems};
use super::reader::{Fields, Reader};
use super::toml_text::{Fault, Parsed};
use crate::policy::rule::WARN_PERCENT_DEFAULT;
use crate::policy::{Cost, KeyPart, OnRefusal, Override, Rule, Rules};
use crate::settings::MAX_KEYS_DEFAULT;

/// The rules that a text says, of which this was read.
pub(super) fn decode(text: &str, file: &str, parsed: Parsed) -> Result<Rules, Problems> {
    let mut reader = Reader::new(Lines::new(text));
    let rules = parsed.node.as_ref().map(|node| reader.policy(node)).unwrap_or_default();
    if let Some(lost_from) = parsed.lost_from {
        reader.met.retain(|met| met.at < lost_from);
    }
    let problems = told(reader, file, parsed.faults);
    if problems.is_empty() { Ok(rules) } else { Err(Problems::new(problems)) }
}

/// The problems in the order of the text. Where something could not be read, what is missing may stand there, and
/// what else is wrong in that line is most likely no more than its echo.
fn told(reader: Reader<'_>, file: &str, faults: Vec<Fault>) -> Vec<Problem> {
    let Reader { lines, mut met, .. } = reader;
    let file: Arc<str> = Arc::from(file);
    if !faults.is_empty() {
        let broken: HashSet<usize> = faults.iter().map(|&(at, _)| lines.place(at).0).collect();
        met.retain(|met| !met.is_missing && !broken.contains(&lines.place(met.at).0));
    }
    let mut all: Vec<(usize, Problem)> = met.into_iter().map(|met| (met.at, met.problem)).collect();
    all.extend(faults.into_iter().map(|(at, says)| (at, Problem::new("", format!("syntax: {says}")))));
    all.sort_by_key(|&(at, _)| at);
    all.into_iter().map(|(at, problem)| problem.stands(&file, Some(lines.place(at)))).collect()
}

impl Reader<'_> {
    fn policy(&mut self, node: &Node) -> Rules {
        let Some(fields) = self.fields(node, "", &POLICY) else { return Rules::default() };
        let _ = self.text(&fields, "$schema");
        let rules = Rules {
            name: self.text(&fields, "name").unwrap_or_default(),
            counting: self.choice(&fields, "counting", &COUNTINGS).unwrap_or_default(),
            matching: self.choice(&fields, "matching", &MATCHINGS).unwrap_or_default(),
            body: self.choice(&fields, "body", &BODIES),
            rules: Vec::new(),
        };
        let mut names = HashMap::new();
        let mut read = Vec::new();
        for (number, (_, node)) in (1..).zip(self.list(&fields, "rule")) {
            self.rule = Some(label(node, number));
            let met = self.met.len();
            let rule = self.rule(node, number, &mut names);
            // What only a policy that is built would find.
            if let Some(rule) = rule.as_ref().filter(|_| self.met.len() == met)
                && let Err(error) = crate::policy::check_rule(rule)
            {
                self.report(node.at, Problem::new(error.field(), error.says()));
            }
            read.extend(rule);
        }
        self.rule = None;
        Rules { rules: read, ..rules }
    }

    fn rule(
        &mut self,
        node: &Node,
        number: usize,
        names: &mut HashMap<String, (usize, usize)>,
    ) -> Option<Rule> {
        let fields = self.fields(node, "", &RULE)?;
        let name = self.name(&fields, number, names);
        let matcher = self.matcher(&fields);
        let key = self.key(&fields);
        let limits = self.limits(&fields, None);
        let on_refusal = self.choice(&fields, "on_refusal", &ON_REFUSALS).unwrap_or_else(|| {
            // Refused requests that count in a sliding window lock out for good who asks on and on.
            let slides = limits.iter().flatten().any(Read::is_sliding);
            if slides { OnRefusal::Ignore } else { OnRefusal::Count }
        });
        let limits = limits.map(|mut limits| {
            limits.iter_mut().for_each(|read| {
                self.settle(read, on_refusal);
            });
            limits
        });
        let exempt = self.exempt(&fields);
        let overrides = self.overrides(&fields, &key, limits.as_deref(), on_refusal);
        let shadow = self.bool(&fields, "shadow").unwrap_or_default();
        let cost = self.cost(&fields);
        let warn_percent = self.count(&fields, "warn_percent").and_then(|percent| u8::try_from(percent).ok());
        let max_keys = self.count(&fields, "max_keys").map(usize::try_from);
        let on_full = self.choice(&fields, "on_full", &ON_FULLS).unwrap_or_default();
        Some(Rule {
            name,
            matcher,
            key,
            limits: limits?.into_iter().map(|read| read.limit).collect(),
            exempt,
            overrides,
            shadow,
            cost,
            on_refusal,
            warn_percent: warn_percent.unwrap_or(WARN_PERCENT_DEFAULT),
            max_keys: max_keys.map_or(MAX_KEYS_DEFAULT, |keys| keys.unwrap_or(usize::MAX)),
            on_full,
        })
    }

    /// A name that no rule before has.
    fn name(
        &mut self,
        rule: &Fields<'_>,
        number: usize,
        names: &mut HashMap<String, (usize, usize)>,
    ) -> String {
        let Some(name) = self.text(rule, "name") else { return String::new() };
        let at = rule.get("name").map_or(rule.at, |given| given.node.at);
        if name.trim().is_empty() {
            let problem =
                Problem::new("name", format!("name is {}", quoted(&name))).with_found(quoted(&name));
            self.report(at, problem.with_allowed("it must be a text that tells the rule from the others"));
        } else if let Some((first, first_at)) = names.get(&name) {
            let problem =
                Problem::new("name", format!("name is {}", quoted(&name))).with_found(quoted(&name));
            let line = self.lines.place(*first_at).0;
            let allowed = format!("it must be unique, and rule {first} in line {line} has it");
            self.report(at, problem.with_allowed(allowed));
        } else {
            names.insert(name.clone(), (number, at));
        }
        name
    }

    fn cost(&mut self, rule: &Fields<'_>) -> Cost {
        let Some(given) = rule.get("cost") else { return Cost::Fixed(1) };
        let path = rule.path("cost");
        match &given.node.value {
            Value::Text(text) if text == "request" => return Cost::OfRequest,
            Value::Text(text) => match text.strip_prefix("attribute:") {
                Some(name) if !name.is_empty() => return Cost::Attribute(name.to_owned()),
                _ => {
                    let meant = super::reader::nearest(text, &["request"]);
                    self.not_allowed(given.node, &path, &given.shape().allowed(), meant);
                }
            },
            _ => return Cost::Fixed(self.count_in(given.node, &path, given.shape()).unwrap_or(1)),
        }
        Cost::Fixed(1)
    }

    fn overrides(
        &mut self,
        rule: &Fields<'_>,
        key: &[KeyPart],
        base: Option<&[Read<'_>]>,
        on_refusal: OnRefusal,
    ) -> Vec<Override> {
        let mut seen = HashSet::new();
        let mut made = Vec::new();
        for (path, node) in self.list(rule, "override") {
            let Some(fields) = self.fields(node, &path, &OVERRIDE) else { continue };
            // A key that is wrong itself says nothing about how many parts there should be.
            let parts = if rule.get("key").is_some() { self.override_key(&fields, key) } else { continue };
            if !parts.0.is_empty() && !seen.insert(parts.1) {
                let problem =
                    Problem::new(&fields.path("key"), format!("{} has a key that stands before", path));
                let at = fields.get("key").map_or(fields.at, |given| given.node.at);
                self.report(at, problem.with_allowed("a key has one override"));
            }
            let Some(limits) = self.limits(&fields, base) else { continue };
            let mut settled = Vec::new();
            for (at, mut read) in limits.into_iter().enumerate() {
                settled.push(self.settle(&mut read, on_refusal));
                if let Some(base) = base.and_then(|base| base.get(at)) {
                    self.follows(&read, base);
                }
            }
            made.push(Override { key: parts.0, limits: settled });
        }
        made
    }
}

/// What messages call a rule.
fn label(node: &Node, number: usize) -> String {
    let name = match &node.value {
        Value::Table(entries) => entries.iter().find(|entry| entry.name == "name"),
        _ => None,
    };
    match name.map(|entry| &entry.node.value) {
        Some(Value::Text(name)) if !name.trim().is_empty() => format!("rule {}", quoted(name)),
        _ => format!("rule {number}"),
    }
}
