//! Rules that `/auth` does not serve as their file seems to ask: what the log says of them at the start and after each reload.

use std::collections::BTreeSet;

use tidegate::policy::{Pattern, Rule};

use crate::key::printable;
use crate::replay::policy::mapping::Part;
use crate::replay::policy::requests::asked_by_key;

/// What `/auth` knows of a request.
#[derive(Clone, Debug)]
pub struct Given {
    /// Parts that `--map` names.
    mapped: BTreeSet<Part>,
}

/// What the log has to say; names as they stand in the policy.
#[derive(Debug, Default, PartialEq, Eq)]
struct Advice {
    /// Rules whose apis no path is.
    unmet: Vec<String>,
    /// Rules, and the parts of their conditions or else of their keys that no request has.
    lacking: Vec<Lacking>,
}

#[derive(Debug, PartialEq, Eq)]
struct Lacking {
    rule: String,
    parts: Vec<Part>,
    so: So,
}

/// What comes of it.
#[derive(Debug, PartialEq, Eq)]
enum So {
    /// The rule is about no request.
    Unmet,
    /// It counts by nothing else: all requests have one count.
    AllAreOne,
    /// It counts by something else too.
    SomeAreOne,
}

impl Given {
    /// What `--map` names, and what every request has: the path, which is its api unless that is mapped, the method and the
    /// address.
    pub fn new(mapped: impl IntoIterator<Item = Part>) -> Self {
        Self { mapped: mapped.into_iter().collect() }
    }

    fn has(&self, part: &Part) -> bool {
        match part {
            Part::ClientIp => true,
            Part::Attribute(name) if name == "method" => true,
            part => self.mapped.contains(part),
        }
    }

    fn may_meet(&self, rule: &Rule) -> bool {
        let apis = &rule.matcher.apis;
        apis.is_empty() || self.mapped.contains(&Part::Api) || apis.iter().any(may_be_path)
    }

    fn advice(&self, rules: &[Rule]) -> Advice {
        let mut advice = Advice::default();
        for rule in rules {
            if !self.may_meet(rule) {
                advice.unmet.push(rule.name.clone());
                continue;
            }
            let conditions = rule.matcher.attributes.iter().map(|(name, _)| Part::Attribute(name.clone()));
            let parts: Vec<Part> = conditions.filter(|part| !self.has(part)).collect();
            if !parts.is_empty() {
                advice.lacking.push(Lacking { rule: rule.name.clone(), parts, so: So::Unmet });
                continue;
            }
            let is_lacking =
                |asked: &Vec<Part>| !asked.is_empty() && !asked.iter().any(|part| self.has(part));
            let lacking: Vec<Vec<Part>> = rule.key.iter().map(asked_by_key).filter(is_lacking).collect();
            if !lacking.is_empty() {
                let so = if lacking.len() == rule.key.len() { So::AllAreOne } else { So::SomeAreOne };
                let parts = lacking.into_iter().flatten().collect();
                advice.lacking.push(Lacking { rule: rule.name.clone(), parts, so });
            }
        }
        advice
    }

    /// Says in the log which rules `/auth` does not serve as they seem to ask.
    pub(super) fn tell(&self, rules: &[Rule]) {
        let advice = self.advice(rules);
        if !advice.unmet.is_empty() {
            tracing::warn!(
                rules = printable(&advice.unmet.join(", ")),
                "no path of /auth is an api that these rules are about: their apis do not begin with / \
                 (/check may ask for them, or --map api=FIELD)"
            );
        }
        for Lacking { rule, parts, so } in advice.lacking {
            let names: Vec<String> = parts.iter().map(ToString::to_string).collect();
            let (rule, parts) = (printable(&rule), printable(&names.join(", ")));
            match so {
                So::Unmet => tracing::warn!(
                    rule,
                    parts,
                    "the rule asks for parts that no --map gives: it is about no request to /auth"
                ),
                So::AllAreOne => tracing::warn!(
                    rule,
                    parts,
                    "the key has parts that no --map gives: all requests to /auth count as one there"
                ),
                So::SomeAreOne => tracing::warn!(
                    rule,
                    parts,
                    "the key has parts that no --map gives: requests to /auth that differ in nothing else count as one there"
                ),
            }
        }
    }
}

/// Whether a path may meet it; so may `*`, which a server is asked with for all of it.
fn may_be_path(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Exact(text) => text.starts_with('/') || text == "*",
        Pattern::Prefix(text) => text.is_empty() || text.starts_with('/') || text == "*",
        Pattern::Glob(text) => text.starts_with(['/', '*', '?']),
    }
}

#[cfg(test)]
mod tests {
    use tidegate::policy::Rules;

    use super::*;

    const POLICY: &str = r#"
        [[rule]]
        name = "name"
        match = { api = ["profile", "data-*"] }
        key = "title"
        limit = { window = "1/1s" }
        [[rule]]
        name = "paths"
        match = { api = ["profile", "/a*"] }
        key = "user+client_ip"
        limit = { window = "1/1s" }
        [[rule]]
        name = "glob"
        match = { api = "*x" }
        key = "entity"
        limit = { window = "1/1s" }
        [[rule]]
        name = "any"
        key = "title+attribute:plan"
        limit = { window = "1/1s" }
        [[rule]]
        name = "plans"
        match = { attribute = { plan = "*", method = "GET" } }
        key = "attribute:plan"
        limit = { window = "1/1s" }
        [[rule]]
        name = "method"
        key = "attribute:method"
        limit = { window = "1/1s" }
        [[rule]]
        name = "everybody"
        key = "global"
        limit = { window = "1/1s" }
    "#;

    fn advice(mapped: &[&str]) -> Advice {
        let rules = Rules::from_toml(POLICY, "p.toml").unwrap();
        Given::new(mapped.iter().map(|part| part.parse().unwrap())).advice(&rules.rules)
    }

    fn lacking(rule: &str, parts: &[&str], so: So) -> Lacking {
        let parts = parts.iter().map(|part| part.parse().unwrap()).collect();
        Lacking { rule: rule.to_owned(), parts, so }
    }

    #[test]
    fn rules_that_no_path_meets_are_told_with_keys_that_nobody_gives() {
        let found = advice(&[]);
        assert_eq!(found.unmet, ["name"]);
        let all = [
            lacking("paths", &["user"], So::SomeAreOne),
            lacking("any", &["title", "attribute:plan"], So::AllAreOne),
            lacking("plans", &["attribute:plan"], So::Unmet),
        ];
        assert_eq!(found.lacking, all);
    }

    #[test]
    fn what_is_mapped_is_not_told() {
        let found = advice(&["api", "user", "attribute:plan"]);
        assert!(found.unmet.is_empty());
        let both = [lacking("name", &["title"], So::AllAreOne), lacking("any", &["title"], So::SomeAreOne)];
        assert_eq!(found.lacking, both);
        assert_eq!(advice(&["api", "user", "title", "attribute:plan"]), Advice::default());
    }

    #[test]
    fn a_pattern_may_be_met_by_a_path() {
        let exact = |text: &str| may_be_path(&Pattern::Exact(text.to_owned()));
        let prefix = |text: &str| may_be_path(&Pattern::Prefix(text.to_owned()));
        let glob = |text: &str| may_be_path(&Pattern::Glob(text.to_owned()));
        assert!(exact("/") && exact("*") && !exact("a/b") && !exact(""));
        assert!(prefix("") && prefix("/a") && !prefix("a"));
        assert!(glob("?a") && glob("*/b") && glob("/x*y") && !glob("a*") && !glob(""));
    }
}
