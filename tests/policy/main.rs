//! Policies: rules that decide together.

#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "small numbers of a test, which fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;
mod errors;
mod evaluator;
mod events;
mod events_attacked;
mod examples;
mod naive;
mod overrides;
mod reloads;
mod retry;
mod slips;
mod together;
mod verdicts;

use common::twin;
use tidegate::policy::{KeyPart, Matcher, Pattern, Policy, Request, Rule, Rules, Verdict};
use tidegate::{Limit, Manual};

/// A rule for every request, that counts each one of a key under these limits.
fn rule(name: &str, key: Vec<KeyPart>, limits: &[Limit]) -> Rule {
    Rule { max_keys: 1_000, ..Rule::new(name, key, limits.to_vec()) }
}

/// The same for one API.
fn rule_for(api: &str, key: Vec<KeyPart>, limits: &[Limit]) -> Rule {
    let matcher = Matcher { apis: vec![Pattern::Exact(api.to_owned())], ..Matcher::default() };
    Rule { matcher, ..rule(api, key, limits) }
}

fn rules(rules: Vec<Rule>) -> Rules {
    Rules { name: "test".to_owned(), rules, ..Rules::default() }
}

/// Rules in force on a clock moved by hand.
fn policy(rules: Rules) -> (Policy<Manual>, Manual) {
    let clock = Manual::new();
    let policy = Policy::builder(rules).seed(common::SEED).clock(clock.clone()).build();
    (policy.unwrap_or_else(|error| panic!("{error}")), clock)
}

/// The names of the rules that refuse.
fn refusing(verdict: &Verdict) -> Vec<&str> {
    verdict.refusing().map(|rule| rule.name()).collect()
}

/// How many of so many requests are allowed.
fn allowed(policy: &Policy<Manual>, request: &Request<'_>, requests: usize) -> usize {
    (0..requests).filter(|_| policy.check(request).is_allowed()).count()
}
