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

    /// Instead: one key, and a million, on 1, 2, 4 … threads up to the number of cores; ends within 8 minutes
    #[arg(long, conflicts_with = "only")]
    pub(crate) scaling: bool,

    /// Draw that, as an SVG document, to FILE
    #[arg(long, value_name = "FILE", requires = "scaling")]
    pub(crate) svg: Option<PathBuf>,

    /// Time nothing: have CONTESTANT check the keys of the one workload that --only names, on one thread, for a
    /// profiler to watch; `ci/instructions.sh` counts so
    #[arg(long, value_name = "CONTESTANT", requires = "only", conflicts_with_all = ["quick", "json"])]
    pub(crate) count: Option<String>,

    /// How many checks --count makes
    #[arg(long, value_name = "N", default_value_t = 400_000, requires = "count")]
    pub(crate) checks: usize,

    /// Write the rows to FILE as well
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    pub(crate) fn pace(&self) -> Pace {
        if self.scaling {
            let seconds = if self.quick { 40 } else { 300 };
            Pace { checks: 1 << 19, rounds_max: 15, time_max: Duration::from_secs(seconds) }
        } else if self.quick {
            // What the last group takes to fill, and the decisions, come on top of the time.
            Pace { checks: 1 << 17, rounds_max: 31, time_max: Duration::from_secs(22) }
        } else {
            Pace { checks: 1 << 20, rounds_max: 41, time_max: Duration::from_secs(600) }
        }
    }
}
