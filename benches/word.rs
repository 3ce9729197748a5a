//! The decision alone: arithmetic on one word, without a table or a clock.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use tidegate::internals::{Outcome, Rule};
use tidegate::{Limit, Rate, Window};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

const LIMITS: [(&str, Limit); 3] = [
    ("bucket", Limit::bucket(Rate::per_second(100), 200)),
    ("window", Limit::window(Window::new(100, MINUTE))),
    ("burst + sustain", Limit::burst_sustain(Window::new(100, MINUTE), Window::new(3_000, HOUR))),
];

/// A day after the origin: time starts above 0.
const NOW_NS: u64 = 24 * 60 * 60 * 1_000_000_000;

fn word(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("word");
    for (name, limit) in LIMITS {
        let rule = Rule::new(&limit).expect("a sound limit");
        let now = rule.time().units(NOW_NS);
        let fresh = rule.decide(0, now, 1);
        assert_eq!(fresh.outcome, Outcome::Pass);
        // Used up: what is decided next is a refusal, at the same moment.
        let spent = rule.decide(0, now, rule.parts(0, now)[0].limit);
        assert_eq!(spent.outcome, Outcome::Pass);
        assert!(matches!(rule.decide(spent.next, now, 1).outcome, Outcome::Exhausted));

        // From nanoseconds, as a check does it.
        group.bench_function(format!("{name}, passes"), |bencher| {
            bencher.iter(|| rule.decide(black_box(fresh.next), rule.time().units(black_box(NOW_NS)), 1));
        });
        group.bench_function(format!("{name}, refused"), |bencher| {
            bencher.iter(|| rule.decide(black_box(spent.next), rule.time().units(black_box(NOW_NS)), 1));
        });
        group.bench_function(format!("{name}, idle?"), |bencher| {
            bencher.iter(|| rule.is_idle(black_box(spent.next), black_box(now)));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(2)).sample_size(50);
    targets = word
}
criterion_main!(benches);
