//! The layer before real servers: axum's and hyper's, under HTTP/1.1 and HTTP/2, and before services that are watched closely.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod charge;
mod counts;
mod obeying;
mod server;
mod services;
mod small;
mod wire;

use std::sync::Arc;

use tidegate::policy::{Policy, Rules};
use tidegate::{Clock, Manual};

/// A policy on a clock that stands still.
fn policy(rules: &str, clock: &Manual) -> Arc<Policy<Manual>> {
    policy_on(rules, clock.clone())
}

fn policy_on<C: Clock + Clone + 'static>(rules: &str, clock: C) -> Arc<Policy<C>> {
    let rules = Rules::from_toml(rules, "limits.toml").unwrap();
    Arc::new(Policy::builder(rules).clock(clock).build().unwrap())
}

/// 5 a second and 5 at once, for everybody together.
const EVERYBODY: &str =
    r#"rule = [{ name = "everybody", key = "global", limit = { rate = "5/s", burst = 5 } }]"#;
