//! What rules cost beside what they count with: three matching rules ÷ one check of one of their limiters by the same
//! key, and a request among 1 000 rules beside the same among 10. A plain harness: what is compared is timed in one
//! round, turn and turn about, and the figure is the median of the rounds' ratios.
//!
//! ```console
//! $ cargo bench -p tidegate --bench policy
//! ```

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a bench may stop at the first surprise")]

use std::hint::black_box;
use std::time::Instant;

use tidegate::policy::{KeyPart, Matcher, Pattern, Policy, Request, Rule, Rules};
use tidegate::{Limit, Limiter, Rate, Ticking};

/// Requests of a round.
const REQUESTS: usize = 400_000;

fn rule(name: String, pattern: Pattern, max_keys: usize) -> Rule {
    let matcher = Matcher { apis: vec![pattern], ..Matcher::default() };
    Rule { matcher, max_keys, ..Rule::new(name, vec![KeyPart::User, KeyPart::Title], vec![limit()]) }
}

/// Nobody is refused, and nobody is idle.
fn limit() -> Limit {
    Limit::bucket(Rate::per_hour(1), 1_000_000_000)
}

/// Three rules about the request, one of each kind of pattern, among so many.
fn rules(count: usize, max_keys: usize) -> Rules {
    let mut rules: Vec<Rule> = (3..count)
        .map(|number| {
            let pattern = match number % 3 {
                0 => Pattern::Exact(format!("service-{number}/read")),
                1 => Pattern::Prefix(format!("service-{number}/")),
                _ => Pattern::Glob(format!("service-{number}/*ad")),
            };
            rule(format!("rule-{number}"), pattern, 100)
        })
        .collect();
    let three = [
        Pattern::Exact("profile/batch-read".to_owned()),
        Pattern::Prefix("profile/".to_owned()),
        Pattern::Glob("profile/*-read".to_owned()),
    ];
    for (number, pattern) in three.into_iter().enumerate() {
        rules.insert(number * rules.len() / 2, rule(format!("matches-{number}"), pattern, max_keys));
    }
    Rules { name: "bench".to_owned(), rules, ..Rules::default() }
}

/// A stream of users, each as likely as any other.
fn users(keys: usize) -> Vec<String> {
    let mut state = 7_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:016}", (state >> 33) as usize % keys)
    };
    (0..REQUESTS).map(next).collect()
}

fn request(user: &str) -> Request<'_> {
    Request::new("profile/batch-read").user(user).title("1717113201")
}

/// Nanoseconds a request.
fn timed(users: &[String], mut allow: impl FnMut(&str) -> bool) -> f64 {
    let start = Instant::now();
    let allowed = users.iter().filter(|user| allow(user)).count();
    let ns = start.elapsed().as_nanos() as f64 / users.len() as f64;
    assert_eq!(black_box(allowed), users.len());
    ns
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Runs `rounds` of two things, each first in every other one; the medians of both, of their ratios and differences.
fn compare(rounds: usize, mut one: impl FnMut() -> f64, mut other: impl FnMut() -> f64) -> [f64; 4] {
    let mut columns: [Vec<f64>; 4] = Default::default();
    for round in 0..rounds {
        let (one, other) = if round % 2 == 0 {
            let one = one();
            (one, other())
        } else {
            let other = other();
            (one(), other)
        };
        for (column, figure) in columns.iter_mut().zip([one, other, one / other, one - other]) {
            column.push(figure);
        }
    }
    columns.map(median)
}

fn three_rules_beside_one_check(keys: usize, rounds: usize) {
    let users = users(keys);
    let policy = Policy::new(rules(3, keys)).unwrap();
    let limiter = Limiter::builder(limit()).max_keys(keys).build().unwrap();
    let by_check = || timed(&users, |user| policy.check(&request(user)).is_allowed());
    let by_allow = || timed(&users, |user| policy.allow(&request(user)));
    let by_limiter = || timed(&users, |user| limiter.check(&(user, "1717113201")).is_ok());
    // The first time round makes the keys.
    by_check();
    by_limiter();
    for (name, by_policy) in [("check", &by_check as &dyn Fn() -> f64), ("allow", &by_allow)] {
        let [policy, check, ratio, _] = compare(rounds, by_policy, by_limiter);
        println!(
            "three rules, {keys:>7} keys   {name} {policy:7.1} ns, one check {check:6.1} ns: ratio {ratio:.2}"
        );
    }
}

fn many_rules_beside_few(rounds: usize) {
    let users = users(1_000);
    let policies: [Policy<Ticking>; 2] = [1_000, 10].map(|count| Policy::new(rules(count, 1_000)).unwrap());
    let by = |policy: &Policy| {
        timed(&users, |user| {
            let verdict = policy.check(&request(user));
            verdict.is_allowed() && verdict.rules().len() == 3
        })
    };
    by(&policies[0]);
    by(&policies[1]);
    let [many, few, _, difference] = compare(rounds, || by(&policies[0]), || by(&policies[1]));
    println!(
        "three of 1 000 rules         {many:7.1} ns, of 10    {few:6.1} ns: difference {difference:.1} ns"
    );
}

fn main() {
    // Asked by `cargo test --benches`: it compiles, and that is all that was wanted.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    // One of the three alone, for a profiler to watch: `-- 1k`.
    let is_wanted = |name: &str| {
        let mut wanted = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
        wanted.peek().is_none() || wanted.any(|wanted| wanted == name)
    };
    let rounds = 41;
    if is_wanted("1m") {
        three_rules_beside_one_check(1_000_000, rounds);
    }
    if is_wanted("1k") {
        three_rules_beside_one_check(1_000, rounds);
    }
    if is_wanted("matching") {
        many_rules_beside_few(rounds);
    }
}
