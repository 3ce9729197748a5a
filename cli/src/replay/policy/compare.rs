//! Two policies on one log: what a change would have done.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use super::requests::Requests;
use super::summary::About;
use super::tally::{KeyCount, Outcome, RuleCount, Totals};

/// What became of the same requests under two policies.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// The log.
    #[serde(flatten)]
    pub about: About,
    /// The policy as it is.
    pub before: Totals,
    /// The other one.
    pub after: Totals,
    /// Requests that both allow.
    pub both_allowed: u64,
    /// Requests that both refuse.
    pub both_refused: u64,
    /// Requests that only the other policy allows.
    pub gained: u64,
    /// Requests that only the other policy refuses.
    pub lost: u64,
    /// What the gained cost, by their own account.
    pub cost_gained: u64,
    /// What the lost cost.
    pub cost_lost: u64,
    /// Rules of one name, in the order of the first policy; those of the other alone come last.
    pub rules: Vec<RulePair>,
    /// Keys that are refused more often, at most as many as asked for.
    pub losers: Vec<KeyPair>,
    /// How many there are.
    pub losers_total: u64,
    /// Keys that are refused less often.
    pub gainers: Vec<KeyPair>,
    /// How many there are.
    pub gainers_total: u64,
    /// Whether any rule counts anything but requests.
    pub counts_cost: bool,
}

/// Rules of one name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RulePair {
    /// The name.
    pub rule: String,
    /// The one of the first policy, if it has one.
    pub before: Option<RuleCount>,
    /// The one of the other.
    pub after: Option<RuleCount>,
}

/// One key of rules of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KeyPair {
    /// The rule.
    pub rule: String,
    /// The key, as messages show it.
    pub key: String,
    /// Requests that the rule refuses in the first policy. Shadow rules refuse none.
    pub refused_before: u64,
    /// In the other.
    pub refused_after: u64,
}

/// Compares what two policies did to the same requests, with so many keys on each side.
pub fn compare(about: About, requests: &Requests, before: Outcome, after: Outcome, top: usize) -> Comparison {
    let mut result = Comparison {
        about,
        counts_cost: before.has_costs || after.has_costs,
        rules: pair_rules(&before.rules, &after.rules),
        ..Comparison::default()
    };
    for (arrival, decisions) in requests.arrivals.iter().zip(before.allowed.iter().zip(&after.allowed)) {
        let cost = arrival.cost.max(1);
        match decisions {
            (true, true) => result.both_allowed += 1,
            (false, false) => result.both_refused += 1,
            (false, true) => {
                result.gained += 1;
                result.cost_gained = result.cost_gained.saturating_add(cost);
            }
            (true, false) => {
                result.lost += 1;
                result.cost_lost = result.cost_lost.saturating_add(cost);
            }
        }
    }
    let keys = pair_keys(&before.keys, &after.keys);
    let apart = |pair: &KeyPair| pair.refused_before.abs_diff(pair.refused_after);
    let (mut losers, mut gainers): (Vec<_>, Vec<_>) = keys
        .into_iter()
        .filter(|pair| apart(pair) > 0)
        .partition(|pair| pair.refused_after > pair.refused_before);
    (result.losers_total, result.gainers_total) = (losers.len() as u64, gainers.len() as u64);
    for list in [&mut losers, &mut gainers] {
        list.sort_by_key(|pair| Reverse(apart(pair)));
        list.truncate(top);
    }
    (result.losers, result.gainers) = (losers, gainers);
    (result.before, result.after) = (before.totals, after.totals);
    result
}

fn pair_rules(before: &[RuleCount], after: &[RuleCount]) -> Vec<RulePair> {
    let find = |rules: &[RuleCount], name: &str| rules.iter().find(|rule| rule.rule == name).cloned();
    let names = before.iter().chain(after.iter().filter(|rule| find(before, &rule.rule).is_none()));
    names
        .map(|rule| RulePair {
            rule: rule.rule.clone(),
            before: find(before, &rule.rule),
            after: find(after, &rule.rule),
        })
        .collect()
}

/// By rule and key, in the order of the first policy's; what a shadow rule would refuse is no refusal.
fn pair_keys(before: &[KeyCount], after: &[KeyCount]) -> Vec<KeyPair> {
    let mut pairs = Vec::<KeyPair>::new();
    let mut numbers = HashMap::<(&str, &str), usize>::new();
    for (counts, is_after) in [(before, false), (after, true)] {
        for count in counts {
            let next = pairs.len();
            let at = *numbers.entry((&count.rule, &count.key)).or_insert(next);
            if at == next {
                let (rule, key) = (count.rule.clone(), count.key.clone());
                pairs.push(KeyPair { rule, key, ..KeyPair::default() });
            }
            let refused = if count.shadow { 0 } else { count.refused };
            let side = if is_after { &mut pairs[at].refused_after } else { &mut pairs[at].refused_before };
            *side += refused;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(rule: &str, key: &str, refused: u64, shadow: bool) -> KeyCount {
        KeyCount { rule: rule.to_owned(), key: key.to_owned(), refused, shadow, ..KeyCount::default() }
    }

    #[test]
    fn keys_that_one_policy_lacks_count_as_never_refused() {
        let before = [key("a", "x", 3, false), key("a", "y", 2, true), key("b", "x", 4, false)];
        let after = [key("a", "y", 5, false), key("a", "x", 3, false), key("c", "x", 1, false)];
        let pairs = pair_keys(&before, &after);
        let told: Vec<_> = pairs
            .iter()
            .map(|pair| (&*pair.rule, &*pair.key, pair.refused_before, pair.refused_after))
            .collect();
        assert_eq!(told, [("a", "x", 3, 3), ("a", "y", 0, 5), ("b", "x", 4, 0), ("c", "x", 0, 1)]);
    }

    #[test]
    fn rules_are_paired_by_name() {
        let rules = |names: &[&str]| -> Vec<RuleCount> {
            names.iter().map(|name| RuleCount { rule: (*name).to_owned(), ..RuleCount::default() }).collect()
        };
        let pairs = pair_rules(&rules(&["a", "b"]), &rules(&["c", "b"]));
        let told: Vec<_> =
            pairs.iter().map(|pair| (&*pair.rule, pair.before.is_some(), pair.after.is_some())).collect();
        assert_eq!(told, [("a", true, false), ("b", true, true), ("c", false, true)]);
    }
}
