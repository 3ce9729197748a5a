//! What the models share: a runner that counts executions, a clock, and a map of fixed slots.
#![cfg(tidegate_loom)]

pub mod map;
pub mod slots;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate::internals::{Engine, Origin, Outcome, Rule};
use tidegate::{Limit, Manual};

/// Executions below which a model has probably not explored anything.
pub const EXECUTIONS_LEAST: u64 = 1_000;

/// Runs `model` under every interleaving up to the bound on preemptions (`LOOM_MAX_PREEMPTIONS`, and
/// `more` of them), and prints how many there were. Fewer than `executions_least` is a failure: state the reason where it
/// is less than [`EXECUTIONS_LEAST`].
fn explore(name: &str, more: usize, executions_least: u64, model: impl Fn() + Send + Sync + 'static) {
    let executions = Arc::new(AtomicU64::new(0));
    let counter = executions.clone();
    let start = std::time::Instant::now();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.map(|bound| bound + more);
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let executions = executions.load(Ordering::Relaxed);
    println!("{name}: {executions} executions in {:.1?}", start.elapsed());
    assert!(executions >= executions_least, "{name}: {executions} executions explore nothing");
}

/// Runs `model` once: its threads all do the same, so that no rotation would differ.
pub fn explore_alike<const N: usize>(
    name: &str,
    executions_least: u64,
    model: impl Fn([usize; N]) + Send + Sync + 'static,
) {
    let roles = std::array::from_fn(|thread| thread);
    explore(name, usize::from(N == 2), executions_least, move || model(roles));
}

/// Runs `model` once for every rotation of the roles of its threads, since loom prefers the one that
/// it started first. Two threads are few enough for one preemption more than three.
pub fn explore_rotated<const N: usize>(
    name: &str,
    executions_least: u64,
    model: impl Fn([usize; N]) + Send + Sync + Clone + 'static,
) {
    for turn in 0..N {
        let model = model.clone();
        let roles = std::array::from_fn(|thread| (thread + turn) % N);
        explore(&format!("{name}, rotation {turn}"), usize::from(N == 2), executions_least, move || {
            model(roles)
        });
    }
}

/// Runs each of `roles` in a thread of its own, started in that order, and returns the answers by
/// role. The model's first thread only waits: loom explores little of what that one does itself.
pub fn in_threads<const N: usize, T: Send + 'static>(
    roles: [usize; N],
    role: impl Fn(usize) -> T + Send + Sync + 'static,
) -> [T; N] {
    let role = Arc::new(role);
    let threads: Vec<_> = roles
        .iter()
        .map(|&number| {
            let role = role.clone();
            (number, loom::thread::spawn(move || role(number)))
        })
        .collect();
    let mut answers: Vec<(usize, T)> = threads
        .into_iter()
        .map(|(number, thread)| (number, thread.join().expect("a thread of the model")))
        .collect();
    answers.sort_by_key(|&(number, _)| number);
    let answers: Vec<T> = answers.into_iter().map(|(_, answer)| answer).collect();
    answers.try_into().unwrap_or_else(|_| unreachable!("one answer for each role"))
}

/// An engine for `limit` on a manual clock, whose readings are points where loom may switch threads.
pub fn engine(limit: Limit) -> (Engine<Manual>, Manual) {
    let clock = Manual::new();
    let rule = Rule::new(&limit).expect("a limit that builds");
    let origin = Origin::fixed(Rule::longest_period_ns(&limit), &clock);
    (Engine::new(rule, clock.clone(), origin), clock)
}

/// Whether an outcome let the request through.
pub fn passed(outcome: Outcome) -> bool {
    outcome == Outcome::Pass
}

/// `count` seconds.
pub fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
