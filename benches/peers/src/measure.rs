//! How the timing is done: who is filled, what a round is, and which rounds there are.

use std::error::Error;
use std::time::{Duration, Instant};

use tidegate_cli::bench::stats::Quartiles;

use crate::contestants::{self, REFERENCE};
use crate::memory;
use crate::report;
use crate::runner::Runner;
use crate::stream::{Part, STREAM_LEN, Stream};
use crate::workload::{Answers, Group, Order, Workload};

/// Fewer rounds than this have no spread worth the name.
const ROUNDS_MIN: usize = 3;

/// Checks in a round of one-shot keys, whose stream is not begun again.
const ONE_SHOT_CHECKS: usize = 1 << 16;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Checks of each thread in one round of one contestant. Divides [`STREAM_LEN`].
    pub(crate) checks: usize,
    pub(crate) rounds_max: usize,
    /// All workloads together begin no round after this, once each has had its least.
    pub(crate) time_max: Duration,
}

/// One contestant in one workload.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) workload: &'static str,
    pub(crate) threads: usize,
    pub(crate) contestant: &'static str,
    /// Nanoseconds a check: the median of the rounds.
    pub(crate) ns: f64,
    /// The contestant's time ÷ the reference's: the median of the rounds' own ratios.
    pub(crate) ratio: f64,
    /// The distance between the quartiles of those ratios.
    pub(crate) spread: f64,
    /// What else a reader of this line must know.
    pub(crate) note: Option<String>,
}

impl Row {
    /// Millions of checks a second, of all threads together.
    pub(crate) fn m_checks_per_s(&self) -> f64 {
        self.threads as f64 * 1e3 / self.ns
    }
}

/// What one contestant took of memory once it was filled.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) workload: &'static str,
    pub(crate) contestant: &'static str,
    pub(crate) bytes_per_key: f64,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) rows: Vec<Row>,
    pub(crate) held: Vec<Held>,
    /// What a reader must know of whom, each once.
    pub(crate) remarks: Vec<(&'static str, &'static str)>,
}

/// Times every workload of every group, and prints the rows as they come.
pub(crate) fn all(groups: &[Group], cores: usize, pace: &Pace) -> Result<Measured, Box<dyn Error>> {
    // While the others take their turns nobody asks for tidegate's time, which would fall asleep, and be late to
    // wake: a server that serves has no such pauses.
    let _awake = contestants::keep_awake()?;
    let start = Instant::now();
    let mut all = Measured::default();
    let mut to_do: usize = groups.iter().map(|group| group.workloads.len()).sum();
    report::print_heading(cores);
    for group in groups {
        let (filled, bytes) = Filled::new(group)?;
        all.held.extend(bytes);
        all.remarks.extend(filled.remarks());
        for workload in &group.workloads {
            let left = pace.time_max.saturating_sub(start.elapsed());
            let rows = filled.rows(workload, pace, left / u32::try_from(to_do)?)?;
            to_do -= 1;
            report::print_rows(&rows);
            all.rows.extend(rows);
        }
    }
    all.remarks.sort_unstable();
    all.remarks.dedup();
    Ok(all)
}

/// The limiters of a group, filled, to be asked in its workloads.
struct Filled<'a> {
    group: &'a Group,
    runners: Vec<Box<dyn Runner>>,
}

impl<'a> Filled<'a> {
    /// Builds and fills every contestant of `group`, and counts what each one allocated.
    fn new(group: &'a Group) -> Result<(Self, Vec<Held>), Box<dyn Error>> {
        let workload = group.workloads.first().ok_or("a group without a workload")?.name;
        let (mut runners, mut held) = (Vec::new(), Vec::new());
        for entry in &group.entries {
            let (runner, bytes) = memory::held_bytes(|| -> Result<_, Box<dyn Error>> {
                let runner = entry(&group.setup)?;
                runner.fill(&group.setup)?;
                Ok(runner)
            });
            let runner = runner?;
            let bytes_per_key = bytes as f64 / f64::from(group.setup.keys);
            if group.setup.keys > 1 {
                held.push(Held { workload, contestant: runner.name(), bytes_per_key });
            }
            runners.push(runner);
        }
        Ok((Self { group, runners }, held))
    }

    /// What readers of these contestants' times must know.
    fn remarks(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.runners.iter().filter_map(|runner| Some((runner.name(), runner.remark()?)))
    }

    /// Times every contestant in one workload, in rounds that all take part in, until `time_max`.
    fn rows(&self, workload: &Workload, pace: &Pace, time_max: Duration) -> Result<Vec<Row>, Box<dyn Error>> {
        let start = Instant::now();
        let streams = (0..workload.threads)
            .map(|thread| Stream::new(workload.order, self.group.setup.keys, thread as u64))
            .collect::<Result<Vec<_>, _>>()?;
        let one_shot = workload.order == Order::OneShot;
        let (checks, rounds_max) = if one_shot {
            (ONE_SHOT_CHECKS, STREAM_LEN / ONE_SHOT_CHECKS - 1)
        } else {
            self.outlasted(pace, workload.threads)
        };

        // Rounds of contestants: the first is there to warm up and is dropped.
        let mut rounds: Vec<Vec<f64>> = Vec::new();
        let mut admitted = vec![0; self.runners.len()];
        while rounds.len() <= ROUNDS_MIN || (rounds.len() <= rounds_max && start.elapsed() < time_max) {
            let number = rounds.len();
            let from = number * checks % STREAM_LEN;
            let parts: Vec<Part<'_>> = streams.iter().map(|stream| stream.part(from, checks)).collect();
            let mut round = vec![0.0; self.runners.len()];
            for turn in 0..self.runners.len() {
                // Whoever comes first finds the machine as the last round left it: take turns at that.
                let index = (number + turn) % self.runners.len();
                let done = self.checked_round(self.runners[index].as_ref(), workload, &parts)?;
                round[index] = done.0;
                admitted[index] += done.1;
            }
            rounds.push(round);
        }
        let checks = rounds.len() * checks * workload.threads;
        rounds.remove(0);

        let reference = self
            .runners
            .iter()
            .position(|runner| runner.name() == REFERENCE)
            .ok_or("the reference is missing")?;
        Ok(self
            .runners
            .iter()
            .enumerate()
            .map(|(index, runner)| {
                let ns = Quartiles::of(rounds.iter().map(|round| round[index]));
                let ratio = Quartiles::of(rounds.iter().map(|round| round[index] / round[reference]));
                Row {
                    workload: workload.name,
                    threads: workload.threads,
                    contestant: runner.name(),
                    ns: ns.median,
                    ratio: ratio.median,
                    spread: ratio.upper - ratio.lower,
                    note: self.note(admitted[index], checks),
                }
            })
            .collect())
    }

    /// Checks of each thread in a round, and the most rounds: so many that the burst of a key which is the only one,
    /// and must pass, outlasts them all.
    fn outlasted(&self, pace: &Pace, threads: usize) -> (usize, usize) {
        let Pace { mut checks, rounds_max, .. } = *pace;
        if self.group.answers != Answers::Pass || self.group.setup.keys > 1 {
            return (checks, rounds_max);
        }
        // A tenth is for what lapses of leases.
        let affordable =
            usize::try_from(self.group.setup.limit.burst / 10 * 9).unwrap_or(usize::MAX) / threads;
        while checks > 1 && affordable / checks <= ROUNDS_MIN + 1 {
            checks /= 2;
        }
        (checks, rounds_max.min(affordable / checks - 1))
    }

    /// One round's nanoseconds and admissions, provided that every check was decided as the group says.
    fn checked_round(
        &self,
        runner: &dyn Runner,
        workload: &Workload,
        parts: &[Part<'_>],
    ) -> Result<(f64, u64), Box<dyn Error>> {
        let start = Instant::now();
        let round = runner.round(parts, workload.order == Order::Batches)?;
        let checks: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let right = match self.group.answers {
            Answers::Pass => round.admitted == checks,
            // Nearly a token may have come back before the round began.
            Answers::Refuse => {
                let back = runner.comes_back(&self.group.setup.limit, start.elapsed());
                round.admitted as f64 <= if back < 0.01 { 0.0 } else { back + 1.0 }
            }
            Answers::Any => true,
        };
        if !right {
            return Err(format!(
                "{}: {} admitted {} of {checks} checks",
                workload.name,
                runner.name(),
                round.admitted,
            )
            .into());
        }
        Ok((round.ns, round.admitted))
    }

    /// How often the answer was not the one that the limit asks for, where that is let pass.
    fn note(&self, admitted: u64, checks: usize) -> Option<String> {
        match self.group.answers {
            Answers::Any => Some(format!("admits {:.1} %", admitted as f64 / checks as f64 * 100.0)),
            Answers::Refuse if admitted > 0 => Some(format!("admits {admitted}")),
            Answers::Pass | Answers::Refuse => None,
        }
    }
}
