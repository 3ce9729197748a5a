//! What is checked: how many keys in which order, by how many threads, under which limit.

use std::time::Duration;

use crate::contestants::{self as line_up, Entry};

/// The one limit that all contestants of a workload are built with, as a token bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenLimit {
    /// Tokens that come back in each `period`.
    pub(crate) tokens: u32,
    pub(crate) period: Duration,
    /// Tokens that a full bucket holds.
    pub(crate) burst: u32,
}

impl TokenLimit {
    /// How long an empty bucket takes to be full: the window of a contestant that counts in windows.
    pub(crate) fn window(&self) -> Duration {
        let ns = self.period.as_nanos() * u128::from(self.burst) / u128::from(self.tokens);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    pub(crate) fn tokens_per_second(&self) -> f64 {
        f64::from(self.tokens) / self.period.as_secs_f64()
    }
}

/// A burst of 100 million, which no run uses up, so every check passes. A token takes 10 s to come back:
/// no key is idle before the limiter is filled, or one that evicts idle keys would never be full.
const ALL_PASS: TokenLimit = TokenLimit { tokens: 6, period: Duration::from_secs(60), burst: 100_000_000 };

/// One a day: the check that fills the limiter beforehand takes it, and every other is refused.
const ALL_REFUSED: TokenLimit = TokenLimit { tokens: 1, period: Duration::from_secs(24 * 60 * 60), burst: 1 };

/// What comes back is a fraction of what is asked for: a fifth or less, for whoever is asked on two cores.
const OVERLOADED: TokenLimit = TokenLimit { tokens: 3_000_000, period: Duration::from_secs(1), burst: 3_000 };

/// A key of the flood owes a hundredth of its limit, and owes it as long as the flood lasts: there is always
/// somebody who could be evicted at little cost, and never anybody who is idle.
const OWES_A_LITTLE: TokenLimit = TokenLimit { tokens: 1, period: Duration::from_secs(60 * 60), burst: 100 };

/// What a contestant is built for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Keys that it will be filled with.
    pub(crate) keys: u32,
    pub(crate) limit: TokenLimit,
    /// More keys will come than it has room for.
    pub(crate) flooded: bool,
    /// How keys are hashed, where a run is to be repeated to the instruction; else each limiter chooses at random.
    pub(crate) seed: Option<u64>,
}

/// What the timed checks must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    Pass,
    Refuse,
    /// Either: for keys that there is no room for, limiters differ in what they promise.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Every key as likely as any other.
    Uniform,
    /// Key of rank r with odds in proportion to 1/r: a few are asked for again and again.
    Zipf,
    /// As uniform, with [`BATCH`] keys at hand each time.
    Batches,
    /// New keys only, each of them once.
    OneShot,
}

/// Keys in a batch.
pub(crate) const BATCH: usize = 16;

#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) threads: usize,
    pub(crate) order: Order,
}

/// Workloads that the same limiters, filled once, are asked in one after the other.
pub(crate) struct Group {
    pub(crate) setup: Setup,
    pub(crate) answers: Answers,
    pub(crate) entries: Vec<Entry>,
    pub(crate) workloads: Vec<Workload>,
}

impl Group {
    fn new(keys: u32, entries: Vec<Entry>) -> Self {
        let setup = Setup { keys, limit: ALL_PASS, flooded: false, seed: None };
        Self { setup, answers: Answers::Pass, entries, workloads: Vec::new() }
    }

    fn workload(mut self, name: &'static str, threads: usize, order: Order) -> Self {
        self.workloads.push(Workload { name, threads, order });
        self
    }

    fn refused(mut self) -> Self {
        self.setup.limit = ALL_REFUSED;
        self.answers = Answers::Refuse;
        self
    }

    fn overloaded(mut self) -> Self {
        self.setup.limit = OVERLOADED;
        self.answers = Answers::Any;
        self
    }

    fn flooded(mut self) -> Self {
        (self.setup.limit, self.setup.flooded) = (OWES_A_LITTLE, true);
        self.answers = Answers::Any;
        self
    }
}

/// Every workload, those that take longest to fill first: what is left of the time goes to the others.
/// With `quick` the slow contestants sit some out.
pub(crate) fn all(cores: usize, quick: bool) -> Vec<Group> {
    let (ids, texts) = (line_up::for_ids(false), line_up::for_texts(quick));
    vec![
        Group::new(10_000_000, line_up::for_many()).workload("uniform_10m", 1, Order::Uniform).workload(
            "batch_10m",
            1,
            Order::Batches,
        ),
        Group::new(1_000_000, line_up::for_ids(quick))
            .workload("uniform_1m", 1, Order::Uniform)
            .workload("zipf_1m", 1, Order::Zipf)
            .workload("uniform_1m", cores, Order::Uniform)
            .workload("zipf_1m", cores, Order::Zipf),
        Group::new(1_000_000, texts).workload("string_1m", 1, Order::Uniform),
        Group::new(1_000_000, line_up::for_flood()).flooded().workload("flood", 1, Order::OneShot),
        Group::new(1_000, ids.clone()).workload("uniform_1k", 1, Order::Uniform),
        Group::new(1, ids.clone()).workload("hot", cores, Order::Uniform),
        Group::new(1, line_up::for_overload()).overloaded().workload("overload_hot", cores, Order::Uniform),
        Group::new(1, ids).refused().workload("refused_hot", cores, Order::Uniform),
    ]
}

/// The same two workloads on each of so many `threads`: a million keys, and one. That one is another limiter's each
/// time, so that its burst is not used up.
pub(crate) fn scaling(threads: &[usize]) -> Vec<Group> {
    let ids = line_up::for_ids(false);
    let many = threads.iter().fold(Group::new(1_000_000, ids.clone()), |group, &threads| {
        group.workload("uniform_1m", threads, Order::Uniform)
    });
    let one = |&threads| Group::new(1, ids.clone()).workload("hot", threads, Order::Uniform);
    std::iter::once(many).chain(threads.iter().map(one)).collect()
}

/// The workloads' names, each once, as a list to read.
pub(crate) fn names() -> String {
    let groups = all(1, false);
    let mut names: Vec<_> =
        groups.iter().flat_map(|group| &group.workloads).map(|workload| workload.name).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
