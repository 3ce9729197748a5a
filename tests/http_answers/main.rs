//! What HTTP clients are told: fields and bodies.

#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "small numbers of a test, which fails by panicking"
)]

mod accept;
mod bodies;
mod dialects;
mod example;
mod fields;
mod slips;
mod structured;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};
use tidegate::Manual;
use tidegate::http::Fields;
use tidegate::policy::{Policy, Request, Rules, Verdict};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The rules of a text in force on a clock moved by hand.
fn policy(text: &str) -> (Policy<Manual>, Manual) {
    policy_of(Rules::from_toml(text, "test.toml").unwrap_or_else(|problems| panic!("{problems}")))
}

fn policy_of(rules: Rules) -> (Policy<Manual>, Manual) {
    let clock = Manual::new();
    let policy = Policy::builder(rules).seed(7).clock(clock.clone()).build();
    (policy.unwrap_or_else(|error| panic!("{error}")), clock)
}

/// Asks so many times; the last answer.
fn ask(policy: &Policy<Manual>, request: &Request<'_>, times: usize) -> Verdict {
    (0..times).map(|_| policy.check(request)).last().unwrap()
}

/// The fields as lines, in the order in which they are told.
fn lines(fields: &Fields) -> Vec<String> {
    fields.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
}

fn field<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

/// The body, as JSON.
fn json(response: &Response<Bytes>) -> serde_json::Value {
    serde_json::from_slice(response.body()).unwrap()
}

fn text(response: &Response<Bytes>) -> &str {
    std::str::from_utf8(response.body()).unwrap()
}

/// The headers of a request that accepts this.
fn accepts(accept: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("accept", accept.parse().unwrap());
    headers
}
