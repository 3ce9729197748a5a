//! What the limiter does on the machine at hand: [`workload`]s, timed in [`rounds`], summed up as
//! [`figures`].

pub mod figures;
pub mod rounds;
pub mod stats;
pub mod workload;

use std::fmt;
use std::time::{Duration, Instant};

use tidegate::ConfigError;

use figures::Figures;
use rounds::Cell;
use workload::{Limiters, WrongAnswer};

/// What is measured, and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long all of it takes, the filling of the table included; at least three rounds are done.
    pub budget: Duration,
    /// The numbers of threads, the first of them 1.
    pub threads: Vec<usize>,
    /// Distinct keys in the workloads of many keys, at least 1.
    pub keys: u32,
}

/// Why there are no figures.
#[derive(Debug)]
pub enum Failure {
    /// The limiters could not be built.
    Config(ConfigError),
    /// A check was not decided as its limit asks for: its time would say nothing.
    Wrong(WrongAnswer),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Config(error) => error.fmt(f),
            Failure::Wrong(wrong) => wrong.fmt(f),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::Config(error)
    }
}

impl From<WrongAnswer> for Failure {
    fn from(wrong: WrongAnswer) -> Self {
        Failure::Wrong(wrong)
    }
}

/// Cores that this process may use; 1 where the system does not tell.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// 1, 2, 4 and so on below `most`, and `most` itself, which is at least 1.
pub fn doubling(most: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1_usize), |count| count.checked_mul(2));
    powers.take_while(|count| *count < most).chain([most]).collect()
}

/// Measures; `tick` is told how much time has gone by and what comes next.
///
/// # Errors
///
/// See [`Failure`].
pub fn run(plan: &Plan, mut tick: impl FnMut(Duration, &str)) -> Result<Figures, Failure> {
    let began = Instant::now();
    tick(Duration::ZERO, "filling the table");
    let limiters = Limiters::new(plan.keys, plan.threads.last().copied().unwrap_or(1))?;
    let workloads = limiters.workloads();
    let cells: Vec<Cell<'_>> = workloads
        .iter()
        .flat_map(|workload| plan.threads.iter().map(move |&threads| Cell { workload, threads }))
        .collect();
    let left = plan.budget.saturating_sub(began.elapsed());
    let rounds = rounds::rounds(&cells, left, |cell| {
        let threads =
            if cell.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", cell.threads) };
        tick(began.elapsed(), &format!("{}, {threads}", cell.workload.about.title.to_lowercase()));
    })?;
    Ok(Figures::new(plan, &cells, &rounds, began.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_double_up_to_the_most() {
        assert_eq!(doubling(1), [1]);
        assert_eq!(doubling(2), [1, 2]);
        assert_eq!(doubling(6), [1, 2, 4, 6]);
        assert_eq!(doubling(64), [1, 2, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn without_time_there_are_three_rounds_and_figures_that_agree() {
        let plan = Plan { budget: Duration::ZERO, threads: vec![1, 3], keys: 5_000 };
        let mut told = Vec::new();
        let figures = run(&plan, |_, next| told.push(next.to_owned())).unwrap();
        assert_eq!((figures.rounds, figures.keys, figures.workloads.len()), (3, 5_000, 4));
        // Four rounds, the one that warms up among them, of eight slices.
        assert_eq!(told.len(), 1 + 4 * 8);
        assert_eq!(told[..3], ["filling the table", "one hot key, 1 thread", "one hot key, 3 threads"]);
        assert_eq!(told[9], "one hot key, 3 threads", "another one begins the next round");
        for measured in &figures.workloads {
            let threads: Vec<usize> = measured.scaling.iter().map(|point| point.threads).collect();
            assert_eq!(threads, plan.threads, "{}", measured.name);
            assert!(measured.checks > 0);
            for point in &measured.scaling {
                let rate = point.checks_per_s;
                assert!(point.checks_per_s_lower <= rate && rate <= point.checks_per_s_upper);
            }
        }
    }
}
