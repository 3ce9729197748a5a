//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::sample::BUNDLED_SEED;

mod replay;
#[cfg(feature = "serve")]
mod serve;
mod storm;

pub use storm::StormArgs;
use storm::{STORM_AFTER, STORM_AFTER_LONG, STORM_LONG};

pub use replay::{Align, ReplayArgs};
use replay::{REPLAY_AFTER, REPLAY_AFTER_LONG, REPLAY_LONG};
#[cfg(feature = "serve")]
pub use serve::{
    FieldsArg, ForwardingArg, LogArg, OnMissingArg, OriginalArg, PartArg, PartSource, ServeArgs,
};
#[cfg(feature = "serve")]
use serve::{SERVE_AFTER, SERVE_AFTER_LONG, SERVE_LONG};

/// Rate limits that hold, tried on your own traffic
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what a limit would have done to the requests in an access log
    #[command(long_about = REPLAY_LONG, after_help = REPLAY_AFTER, after_long_help = REPLAY_AFTER_LONG)]
    Replay(ReplayArgs),
    /// Measure how many checks a second this machine can do
    #[command(long_about = BENCH_LONG, after_help = BENCH_AFTER, after_long_help = BENCH_AFTER_LONG)]
    Bench(BenchArgs),
    /// Play a retry storm against limits, and show how each bears it
    #[command(long_about = STORM_LONG, after_help = STORM_AFTER, after_long_help = STORM_AFTER_LONG)]
    Storm(StormArgs),
    /// Check policy files, and tell what their rules mean
    #[command(long_about = CHECK_LONG, after_help = CHECK_AFTER, after_long_help = CHECK_AFTER_LONG)]
    Check(CheckArgs),
    /// Decide requests over HTTP: for programs, and for nginx, Traefik and Envoy
    #[cfg(feature = "serve")]
    #[command(long_about = SERVE_LONG, after_help = SERVE_AFTER, after_long_help = SERVE_AFTER_LONG)]
    Serve(ServeArgs),
    /// Write the access log that the bundled sample was made with
    #[command(hide = true)]
    SampleLog(SampleLogArgs),
}

const BENCH_LONG: &str = "\
Measure how many checks a second this machine can do.

Threads that start together check one hot key, many keys (one by one and in batches) and a key that is dry, on \
limiters as a server has them: the clock runs, limits count, the table is in memory, and every answer is asserted. \
Workloads and numbers of threads take turns in many short rounds; the figures are medians over the rounds. \
What else runs on the machine shows in them.";

const BENCH_AFTER: &str = "\
Examples:
  tidegate bench
  tidegate bench --seconds 60 --svg scaling.svg

--help tells what the JSON holds.";

const BENCH_AFTER_LONG: &str = "\
Examples:
  tidegate bench
    all cores, ten seconds
  tidegate bench --keys 10000000 --threads 4
    more keys, fewer threads
  tidegate bench --json bench.json --svg bench.svg
    the figures, and a drawing of them

Report:
  A check takes so many ns on each thread; two \
threads at 50 ns do 40 million a second. How many \
times that of one thread this is, is the median \
of the rounds' own ratios: 2 for two threads is \
perfect scaling. A hot key may do better: threads \
that meet at a key lease tokens of it, and spend \
them without meeting again.

JSON:
  One object.
  tidegate, os, arch, cores
    what was measured, and where
  keys, batch, rounds, slice_ms, elapsed_s
    how
  workloads
    a list of name, title, what, answer (passed or \
refused, as every check was), checks (how many \
were timed) and scaling
  scaling
    a list of threads, checks_per_s (the median), \
checks_per_s_lower and checks_per_s_upper (the \
quartiles), ns_per_check (threads / checks_per_s) \
and times_one_thread

Exit status:
  0  measured
  1  a file could not be written, there is too \
little memory, or a check was answered wrongly
  2  the command line is wrong";

const CHECK_LONG: &str = "\
Check policy files, and tell what their rules mean.

Everything that is wrong with a file is told at once, a line each: where it stands, which rule, what was found, what \
may stand there, and the spelling that comes nearest. Of a file that is right, each rule is told in a sentence, with \
what is most likely not meant: a limit that can never refuse, a rule that nothing reaches, a table too small for its keys.";

const CHECK_AFTER: &str = "\
Examples:
  tidegate check limits.toml
  tidegate check --strict --quiet policies/*.toml

--help tells the exit statuses.";

const CHECK_AFTER_LONG: &str = "\
Examples:
  tidegate check limits.toml
    what is wrong with it, or what it means
  tidegate check --strict --quiet policies/*.toml
    nothing but what is wrong or odd, for CI

Files:
  TOML (.toml) or JSON (.json). docs/policy.md \
describes the format, policies/policy.schema.json \
is its schema, and policies/ has four to begin from.

Exit status:
  0  every file can be used
  1  with --strict: something is odd
  2  a file is wrong or cannot be read, or the \
command line is wrong";

/// What `check` is asked to do.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The policy files, TOML or JSON; default is the policy that comes with tidegate
    #[arg(required = true, value_name = "POLICY")]
    pub policies: Vec<PathBuf>,

    /// End with status 1 if there is a warning
    #[arg(long)]
    pub strict: bool,

    /// Tell mistakes and warnings alone, not what rules mean
    #[arg(short, long)]
    pub quiet: bool,

    /// When to colour the report; auto heeds NO_COLOR and where the report goes
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
}

/// What `bench` is asked to do.
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// How long all of it may take, in seconds
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub seconds: u64,

    /// The most threads, of 1, 2, 4 and so on; as many as there are cores if left out, and 8 for each at most
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Distinct keys where there are many; each takes 24 bytes
    #[arg(short, long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub keys: u32,

    /// Write the figures to this file too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Draw checks a second over threads in this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    /// When to colour the report; auto heeds NO_COLOR and where the report goes
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
}

/// What `sample-log` is asked to do.
#[derive(Args, Debug)]
pub struct SampleLogArgs {
    /// The seed; the same seed gives the same bytes
    #[arg(long, value_name = "N", default_value_t = BUNDLED_SEED)]
    pub seed: u64,

    /// How many times two hours, about 5,000 lines each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub episodes: u32,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// In any case
    Always,
    /// In no case
    Never,
}

impl Color {
    /// The choice as the output stream takes it.
    pub fn to_choice(self) -> anstream::ColorChoice {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_to_be_typed_fits_narrow_terminals() {
        let mut texts = vec![
            REPLAY_AFTER,
            REPLAY_AFTER_LONG,
            BENCH_AFTER,
            BENCH_AFTER_LONG,
            CHECK_AFTER,
            CHECK_AFTER_LONG,
            STORM_AFTER,
            STORM_AFTER_LONG,
        ];
        #[cfg(feature = "serve")]
        texts.extend([SERVE_AFTER, SERVE_AFTER_LONG]);
        let lines = texts.into_iter().flat_map(str::lines);
        let typed = lines.filter(|line| line.contains("  tidegate ") || line.contains(" | "));
        let widths: Vec<usize> = typed.map(str::len).collect();
        assert!(widths.len() > 10 && widths.iter().all(|width| *width <= 50), "{widths:?}");
    }

    #[test]
    fn names_of_alignments_are_those_accepted() {
        for align in Align::value_variants() {
            assert_eq!(Align::from_str(align.name(), false).as_ref(), Ok(align));
        }
    }
}
