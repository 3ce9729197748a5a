//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::measure::Pace;

/// Times one check of tidegate, of its peers, and of the floor that none of them can be under.
#[derive(Debug, Parser)]
#[command(name = "tidegate-peers")]
pub(crate) struct Options {
    /// End within 55 seconds: fewer and shorter rounds, slow peers in fewer workloads
    #[arg(long)]
    pub(crate) quick: bool,

    /// This workload alone, on every thread count that it has; or `decisions`, which times nothing
    #[arg(long, value_name = "WORKLOAD")]
    pub(crate) only: Option<String>,

    /// Time nothing: have CONTESTANT check the keys of the one workload that --only names, on one thread, for a
    /// profiler to watch; `ci/instructions.sh` counts so
    #[arg(long, value_name = "CONTESTANT", requires = "only", conflicts_with_all = ["quick", "json"])]
    pub(crate) count: Option<String>,

    /// Write the rows to FILE as well
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    pub(crate) fn pace(&self) -> Pace {
        if self.quick {
            // What the last group takes to fill, and the decisions, come on top of the time.
            Pace { checks: 1 << 17, rounds_max: 31, time_max: Duration::from_secs(22) }
        } else {
            Pace { checks: 1 << 20, rounds_max: 41, time_max: Duration::from_secs(600) }
        }
    }
}
