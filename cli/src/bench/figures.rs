//! Everything that a bench found, as plain data: what `--json` writes is this, field by field.

use std::time::Duration;

use serde::Serialize;

use super::Plan;
use super::rounds::{Cell, Rounds};
use super::stats::Quartiles;
use super::workload::{About, BATCH};

/// The result of a bench.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// The version of tidegate.
    pub tidegate: &'static str,
    /// The operating system.
    pub os: &'static str,
    /// The kind of processor.
    pub arch: &'static str,
    /// Cores that the process may use.
    pub cores: usize,
    /// Distinct keys in the workloads of many keys.
    pub keys: u32,
    /// Keys that are decided together where keys come in batches.
    pub batch: usize,
    /// Rounds of which the figures are medians.
    pub rounds: usize,
    /// How long a thread checked in each round, in milliseconds.
    pub slice_ms: f64,
    /// How long all of it took, in seconds.
    pub elapsed_s: f64,
    /// The workloads.
    pub workloads: Vec<Measured>,
}

/// One workload.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Its name for programs.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What its threads do.
    pub what: &'static str,
    /// What every check was answered: `passed` or `refused`.
    pub answer: &'static str,
    /// Checks that were timed.
    pub checks: u64,
    /// The figures for each number of threads, the first of them 1.
    pub scaling: Vec<Point>,
}

/// One workload with so many threads.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    /// Threads that checked at once.
    pub threads: usize,
    /// Checks a second of all threads together: the median of the rounds.
    pub checks_per_s: f64,
    /// A quarter of the rounds were slower than this.
    pub checks_per_s_lower: f64,
    /// A quarter of the rounds were faster than this.
    pub checks_per_s_upper: f64,
    /// Nanoseconds a check takes on each thread: threads ÷ checks a second.
    pub ns_per_check: f64,
    /// Checks a second ÷ those of one thread: the median of the rounds' own ratios.
    pub times_one_thread: f64,
}

impl Figures {
    /// Sums up rounds, of which there is at least one. The cells of a workload stand together, that of one
    /// thread first.
    pub(super) fn new(plan: &Plan, cells: &[Cell<'_>], rounds: &Rounds, elapsed: Duration) -> Self {
        let mut workloads = Vec::new();
        let mut first = 0;
        for group in cells.chunk_by(|one, other| one.workload.about.name == other.workload.about.name) {
            let About { name, title, what, answer } = *group[0].workload.about;
            let points =
                group.iter().enumerate().map(|(nth, cell)| point(cell.threads, first + nth, first, rounds));
            workloads.push(Measured {
                name,
                title,
                what,
                answer: answer.name(),
                checks: rounds.checks[first..first + group.len()].iter().sum(),
                scaling: points.collect(),
            });
            first += group.len();
        }
        Figures {
            tidegate: env!("CARGO_PKG_VERSION"),
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            cores: super::cores(),
            keys: plan.keys,
            batch: BATCH,
            rounds: rounds.checks_per_s.len(),
            slice_ms: rounds.slice.as_secs_f64() * 1e3,
            elapsed_s: elapsed.as_secs_f64(),
            workloads,
        }
    }
}

impl Figures {
    /// How far the middle half of the rounds is spread, at worst: as a share of the median.
    pub fn spread(&self) -> f64 {
        let points = self.workloads.iter().flat_map(|measured| &measured.scaling);
        let spread =
            |point: &Point| (point.checks_per_s_upper - point.checks_per_s_lower) / point.checks_per_s;
        points.map(spread).fold(0.0, f64::max)
    }
}

fn point(threads: usize, at: usize, one_thread: usize, rounds: &Rounds) -> Point {
    let rates = Quartiles::of(rounds.checks_per_s.iter().map(|round| round[at]));
    let ratios = Quartiles::of(rounds.checks_per_s.iter().map(|round| round[at] / round[one_thread]));
    Point {
        threads,
        checks_per_s: rates.median,
        checks_per_s_lower: rates.lower,
        checks_per_s_upper: rates.upper,
        ns_per_check: threads as f64 * 1e9 / rates.median,
        times_one_thread: ratios.median,
    }
}

/// Figures that nobody measured, for so many threads: the first workload does not scale, the second does.
#[cfg(test)]
pub(crate) fn made_up(threads: &[usize]) -> Figures {
    use super::workload::Answer;

    let measured = |name, title, answer: Answer, alone: f64, each: f64| {
        let scaling = threads.iter().map(|&threads| {
            let times_one_thread = 1.0 + each * (threads - 1) as f64;
            let checks_per_s = alone * times_one_thread;
            Point {
                threads,
                checks_per_s,
                checks_per_s_lower: checks_per_s * 0.9,
                checks_per_s_upper: checks_per_s * 1.2,
                ns_per_check: threads as f64 * 1e9 / checks_per_s,
                times_one_thread,
            }
        });
        Measured {
            name,
            title,
            what: "for a test",
            answer: answer.name(),
            checks: 2_048,
            scaling: scaling.collect(),
        }
    };
    Figures {
        tidegate: "0.0.0",
        os: "linux",
        arch: "x86_64",
        cores: threads.last().copied().unwrap_or(1),
        keys: 1_000_000,
        batch: BATCH,
        rounds: 12,
        slice_ms: 50.0,
        elapsed_s: 10.0,
        workloads: vec![
            measured("hot_key", "One hot key", Answer::Passed, 50e6, -0.01),
            measured("many_keys", "Many keys", Answer::Passed, 10e6, 0.8),
            measured("many_keys_batched", "Many keys, batched", Answer::Passed, 12e6, 0.8),
            measured("dry_key", "One dry key", Answer::Refused, 100e6, 1.0),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_the_middle_half() {
        let mut figures = made_up(&[1, 2]);
        assert!((figures.spread() - 0.3).abs() < 1e-9);
        let point = &mut figures.workloads[1].scaling[1];
        point.checks_per_s_lower = 0.0;
        assert!((figures.spread() - 1.2).abs() < 1e-9);
    }
}
