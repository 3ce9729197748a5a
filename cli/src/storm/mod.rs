//! A retry storm, played against limits of the engine: which of them let it through, who pays, and how the refused come
//! back. `docs/storm.md` tells what is played, and what each figure means.
//!
//! ```text
//! scenario     what is played           reader     scenario files
//! cast         who asks, and how         contestant  limits and waits, on the engine
//! play         the events, in order      figures     what is told of them
//! ```
//!
//! Nothing here decides a request: [`tidegate`]'s limiters do, on a clock that the play moves. A seed repeats a play to the
//! nanosecond: all draws are whole numbers. (Only where other clients are refused by buckets of their own and told staggered
//! waits does the engine's hash matter, which is that of a kind of processor.)

pub mod cast;
pub mod contestant;
pub mod figures;
pub mod play;
mod reader;
pub mod scenario;

use std::fmt;

use serde::Serialize;
use tidegate::ConfigError;

use cast::Cast;
use contestant::{Kind, Wait};
use figures::{Figures, Tally};
use scenario::Scenario;

/// What all contestants did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What was played.
    pub scenario: Scenario,
    /// Each limit with each way of telling waits, in the order of [`Kind::ALL`] and [`Wait::ALL`].
    pub contestants: Vec<Figures>,
}

/// Why a play has no end, or no beginning.
#[derive(Debug)]
pub enum Failure {
    /// The engine cannot keep a limit that follows from the scenario.
    Limit(ConfigError),
    /// Too much is asked before all are served.
    Endless {
        /// By which limit.
        kind: Kind,
        /// With which waits.
        wait: Wait,
        /// How often was asked.
        attempts: u64,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Limit(error) => write!(f, "the scenario's limits cannot be kept: {error}"),
            Failure::Endless { kind, wait, attempts } => {
                let (kind, wait) = (kind.title(), wait.title());
                write!(f, "{kind}, waits: {wait}: not all are served after {attempts} requests")
            }
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::Limit(error)
    }
}

/// Plays a scenario against all contestants.
///
/// # Errors
/// See [`Failure`].
pub fn run(scenario: &Scenario) -> Result<Report, Failure> {
    let cast = Cast::new(scenario);
    let mut contestants = Vec::new();
    for kind in Kind::ALL {
        for wait in Wait::ALL {
            let mut tally = Tally::new(scenario, &cast);
            play::play(scenario, &cast, (kind, wait), |attempt| tally.add(attempt))?;
            contestants.push(tally.figures(kind, wait));
        }
    }
    Ok(Report { scenario: scenario.clone(), contestants })
}
