//! What is checked: which keys in which order, by how many threads, under which limit.

use std::time::Duration;

use rand::distr::{Distribution, Uniform};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::Zipf;

/// Keys in one thread's stream. 16 MiB of indexes: longer than any cache keeps, so that a round never
/// finds its own keys still warm from the round before, yet read in order, so that the next index is
/// always there.
pub(crate) const STREAM_LEN: usize = 1 << 22;

/// The one limit that all contestants of a workload are built with, as a token bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenLimit {
    /// Tokens that come back in each `period`.
    pub(crate) tokens: u32,
    pub(crate) period: Duration,
    /// Tokens that a full bucket holds.
    pub(crate) burst: u32,
}

/// A burst of 100 million, which no run uses up, so every check passes. A token takes 10 s to come back:
/// no key is idle before the limiter is filled, or one that evicts idle keys would never be full.
const ALL_PASS: TokenLimit = TokenLimit { tokens: 6, period: Duration::from_secs(60), burst: 100_000_000 };

/// One a day: the check that fills the limiter beforehand takes it, and every other is refused.
const ALL_REFUSED: TokenLimit = TokenLimit { tokens: 1, period: Duration::from_secs(24 * 60 * 60), burst: 1 };

#[derive(Clone, Copy, Debug)]
enum Order {
    /// Every key as likely as any other.
    Uniform,
    /// Key of rank r with odds in proportion to 1/r: a few are asked for again and again.
    Zipf,
}

#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) threads: usize,
    pub(crate) keys: u32,
    pub(crate) limit: TokenLimit,
    /// What every timed check must answer.
    pub(crate) admits: bool,
    order: Order,
}

impl Workload {
    fn new(name: &'static str, threads: usize, keys: u32, order: Order) -> Self {
        Self { name, threads, keys, limit: ALL_PASS, admits: true, order }
    }

    fn refused(self) -> Self {
        Self { limit: ALL_REFUSED, admits: false, ..self }
    }

    /// The keys of each thread, the same in every run and for every contestant.
    pub(crate) fn streams(&self) -> Result<Vec<Vec<u32>>, Box<dyn std::error::Error>> {
        (0..self.threads as u64)
            .map(|thread| {
                let rng = StdRng::seed_from_u64(0x7469_6465 + thread);
                Ok(match self.order {
                    Order::Uniform => indexes(Uniform::new(0, self.keys)?, rng, |key| key),
                    // Ranks count from 1. The cast is exact: ranks are whole and fit in 32 bits.
                    #[allow(clippy::cast_possible_truncation)]
                    Order::Zipf => {
                        indexes(Zipf::new(f64::from(self.keys), 1.0)?, rng, |rank| rank as u32 - 1)
                    }
                })
            })
            .collect()
    }
}

fn indexes<T>(distribution: impl Distribution<T>, mut rng: impl Rng, index: impl Fn(T) -> u32) -> Vec<u32> {
    (0..STREAM_LEN).map(|_| index(distribution.sample(&mut rng))).collect()
}

/// Every workload, with those for all cores last.
pub(crate) fn all(cores: usize) -> Vec<Workload> {
    vec![
        Workload::new("uniform_1k", 1, 1_000, Order::Uniform),
        Workload::new("uniform_1m", 1, 1_000_000, Order::Uniform),
        Workload::new("zipf_1m", 1, 1_000_000, Order::Zipf),
        Workload::new("hot", cores, 1, Order::Uniform),
        Workload::new("refused_hot", cores, 1, Order::Uniform).refused(),
        Workload::new("uniform_1m", cores, 1_000_000, Order::Uniform),
        Workload::new("zipf_1m", cores, 1_000_000, Order::Zipf),
    ]
}

pub(crate) fn names(cores: usize) -> String {
    let mut names: Vec<_> = all(cores).iter().map(|workload| workload.name).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
