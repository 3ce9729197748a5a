//! The command line of `tidegate storm`.

use std::path::PathBuf;

use clap::Args;

use super::Color;

pub(super) const STORM_LONG: &str = "\
Play a retry storm against limits, and show how each bears it.

A partner's firmware update wakes all of its devices at once; who is refused asks again, each in its own manner, until it \
got through. Windows and buckets meet the same storm, with four ways of telling the refused when to come back. The engine \
decides every request; time is simulated, and a seed repeats everything.";

pub(super) const STORM_AFTER: &str = "\
Examples:
  tidegate storm
  tidegate storm --svg storm.svg

--help tells what each figure means.";

pub(super) const STORM_AFTER_LONG: &str = "\
Examples:
  tidegate storm
    40 requests/s become 1,600/s
  tidegate storm --print-scenario > my.toml
  tidegate storm --scenario my.toml
    a storm of your own
  tidegate storm --svg storm.svg --json
    a drawing, and the figures for programs

Columns:
  peak    the most admitted in any second, over
what the capacity is in one
  in period
          the most admitted in any span of a \
window's period, over its limit
  wave    the most devices that obey and came \
back in any second, over what refills in one
  wasted  refusals for each success of those who \
obey
  served  from the beginning of the storm until \
all of its requests got through
  others  what other clients met in the first \
minutes: how many got through at once, how many \
in time, and the wait of 99 in 100
  fair    Jain's index over clients, of the share \
of their requests that got through in time

Waits that the refused are told:
  none        those who obey wait as they like
  period end  until the clock's period is over
  exact       the shortest that is enough for one
  staggered   one behind the other

docs/storm.md describes the scenario, its file \
and the figures.

JSON:
  One object: scenario, with the fields of the \
file, and contestants, a list of the figures \
above; times in s, shares from 0 to 1.

Exit status:
  0  played
  1  a file could not be written, or the storm \
does not end
  2  the scenario or the command line is wrong";

/// What `storm` is asked to do.
#[derive(Args, Debug)]
pub struct StormArgs {
    /// Play the scenario of this TOML file
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,

    /// The seed, in place of the scenario's; the same seed plays the same storm
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,

    /// Print the scenario that is played unless told otherwise, as a file to begin from, and play nothing
    #[arg(long, conflicts_with_all = ["scenario", "seed", "json", "svg"])]
    pub print_scenario: bool,

    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,

    /// Draw requests over time in this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    /// The same drawing as pixels
    #[cfg(feature = "png")]
    #[arg(long, value_name = "FILE", conflicts_with = "print_scenario")]
    pub png: Option<PathBuf>,

    /// When to colour the report; auto heeds NO_COLOR and where the report goes
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
}
