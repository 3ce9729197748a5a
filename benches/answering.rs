//! What it costs to tell how a caller stands: a verdict of three rules, allowed and refused, into the fields of a response.
//! A plain harness: the figures of a round are the mean of its calls, and what is printed is the median of the rounds.
//!
//! ```console
//! $ cargo bench -p tidegate --bench answering
//! ```

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a bench may stop at the first surprise")]

use std::hint::black_box;
use std::time::Instant;

use tidegate::http::{Answering, Dialect, Names};
use tidegate::policy::{Policy, Request, Rules, Verdict};

const CALLS: u32 = 20_000;
const ROUNDS: usize = 31;

const RULES: &str = r#"
[[rule]]
name = "address"
key = "client_ip"
limit = { rate = "100/s", burst = 200 }

[[rule]]
name = "user"
key = "user"
limit = { window = "600/1m" }

[[rule]]
name = "data"
key = "user"
match = { api = "data" }
limit = { window = "2/1h" }
"#;

/// Nanoseconds a call.
fn median_ns(mut call: impl FnMut()) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..CALLS).for_each(|_| call());
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn main() {
    let policy = Policy::new(Rules::from_toml(RULES, "bench.toml").unwrap()).unwrap();
    let request = Request::new("data").user("ada").client_ip("192.0.2.7".parse().unwrap());
    let allowed = policy.check(&request);
    let _ = policy.check(&request);
    let refused = policy.check(&request);
    assert!(allowed.is_allowed() && !refused.is_allowed());
    let draft = Answering::new();
    let all = Answering::new().dialects([Dialect::Draft, Dialect::XSeconds]);
    let windows = Answering::new().names(Names::Windows);
    let cases: [(&str, &Answering, &Verdict); 4] = [
        ("allowed, the draft's fields", &draft, &allowed),
        ("refused, the draft's fields", &draft, &refused),
        ("allowed, names of windows", &windows, &allowed),
        ("allowed, X-RateLimit too", &all, &allowed),
    ];
    for (name, answering, verdict) in cases {
        let ns = median_ns(|| {
            black_box(answering.fields(black_box(verdict)));
        });
        println!("{name:<32} {ns:>8.0} ns");
    }
    let windows = median_ns(|| {
        for rule in black_box(&allowed).rules() {
            rule.limits().for_each(|limit| _ = black_box(limit.windows()));
        }
    });
    println!("{:<32} {windows:>8.0} ns", "of these, computing the windows");
}
