//! `tidegate replay --policy` on the trace of a language model that may lie beside the project: every figure as a naive twin
//! works it out.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::path::Path;

use common::{json, shared};
use serde_json::json;

/// A bucket in plain arithmetic: what it holds in parts of a token, so that a nanosecond gives a whole number of them.
struct Bucket {
    tokens_a_minute: u128,
    burst: u128,
    held: u128,
    at_ns: u128,
}

const MINUTE_NS: u128 = 60_000_000_000;

impl Bucket {
    fn full(tokens_a_minute: u128, burst: u128) -> Self {
        Self { tokens_a_minute, burst, held: burst * MINUTE_NS, at_ns: 0 }
    }

    fn has(&mut self, at_ns: u128, cost: u128) -> bool {
        let grown = self.held + (at_ns - self.at_ns) * self.tokens_a_minute;
        (self.held, self.at_ns) = (grown.min(self.burst * MINUTE_NS), at_ns);
        self.held >= cost * MINUTE_NS
    }
}

/// Nanoseconds of the day in `2023-11-16 18:17:03.9799600`: the trace is of one.
fn ns_of_day(time: &str) -> u128 {
    let (_, time) = time.split_once(' ').unwrap();
    let parts: Vec<&str> = time.split([':', '.']).collect();
    let number = |at: usize| parts[at].parse::<u128>().unwrap();
    (number(0) * 3_600 + number(1) * 60 + number(2)) * 1_000_000_000 + number(3) * 100
}

#[test]
fn a_trace_of_a_language_model_is_decided_as_a_naive_twin_decides_it() {
    let Some(trace) = shared("azure_llm_code.csv") else { return };
    let gateway = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies/llm-gateway.toml");
    if !gateway.is_file() {
        println!("skipped: no policies beside the command's sources");
        return;
    }
    // The trace names no keys: all of it is one.
    let maps = [
        "--map",
        "api='chat'",
        "--map",
        "attribute:api_key='all'",
        "--map",
        "cost=ContextTokens+GeneratedTokens",
    ];
    let args = [&[trace.to_str().unwrap(), "--policy", gateway.to_str().unwrap()], &maps[..]].concat();
    let told = json(&args, b"");

    let (mut requests, mut tokens) = (Bucket::full(600, 60), Bucket::full(200_000, 200_000));
    let (mut all, mut allowed, mut by_requests, mut by_tokens) = (0_u64, 0_u64, 0_u64, 0_u64);
    let (mut cost_allowed, mut cost_all) = (0_u128, 0_u128);
    let text = std::fs::read_to_string(&trace).unwrap();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let at_ns = ns_of_day(fields[0]);
        let cost = fields[1].parse::<u128>().unwrap() + fields[2].parse::<u128>().unwrap();
        let (has_requests, has_tokens) = (requests.has(at_ns, 1), tokens.has(at_ns, cost));
        all += 1;
        cost_all += cost;
        by_requests += u64::from(!has_requests);
        by_tokens += u64::from(!has_tokens);
        // All or nothing.
        if has_requests && has_tokens {
            allowed += 1;
            cost_allowed += cost;
            requests.held -= MINUTE_NS;
            tokens.held -= cost * MINUTE_NS;
        }
    }
    assert!(allowed > 1_000 && all - allowed > 1_000, "a trace that decides nothing: {allowed} of {all}");
    assert_eq!(
        (&told["requests"], &told["allowed"], &told["refused"]),
        (&json!(all), &json!(allowed), &json!(all - allowed))
    );
    let cost_refused = u64::try_from(cost_all - cost_allowed).unwrap();
    let cost_allowed = u64::try_from(cost_allowed).unwrap();
    assert_eq!((&told["cost_allowed"], &told["cost_refused"]), (&json!(cost_allowed), &json!(cost_refused)));
    let rule = |at: usize, field: &str| told["rules"][at][field].clone();
    assert_eq!((rule(0, "rule"), rule(0, "refused")), (json!("requests"), json!(by_requests)));
    assert_eq!((rule(1, "rule"), rule(1, "refused")), (json!("tokens"), json!(by_tokens)));
    assert_eq!(rule(0, "passed"), json!(all - by_requests));
}
