//! `tidegate bench`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anstream::AutoStream;

use super::kept::Kept;
use super::{Failure, note};
use crate::args::BenchArgs;
use crate::bench::{self, Plan};
use crate::progress::Progress;
use crate::report;

/// What a machine that has nothing else to do stays below.
const SPREAD_MAX: f64 = 0.5;

/// Where more threads than this share a core, they wait for each other at the start for longer than they check.
const THREADS_A_CORE_MAX: usize = 8;

pub(super) fn bench(args: &BenchArgs) -> Result<ExitCode, Failure> {
    if args.json.is_some() && args.json == args.svg {
        return Err(Failure::Usage("bench", "--json and --svg name the same file".to_owned()));
    }
    let cores = bench::cores();
    let threads = args.threads.map_or(cores, usize::from);
    let most = cores.saturating_mul(THREADS_A_CORE_MAX);
    if threads > most {
        let why = format!("invalid value '{threads}' for '--threads <N>': {threads} is not in 1..={most}");
        return Err(Failure::Usage("bench", format!("{why} ({THREADS_A_CORE_MAX} for each core)")));
    }
    // Opened before anything is measured: nobody likes to wait for a result that cannot be kept.
    let json = args.json.as_deref().map(Kept::create).transpose()?;
    let svg = args.svg.as_deref().map(Kept::create).transpose()?;
    if cfg!(debug_assertions) {
        note("this build is not optimised, so the figures tell nothing\n  (build with --release)");
    }
    if threads > cores {
        note(&format!("--threads is more than this machine has cores ({cores}), so threads take turns"));
    }

    let budget = Duration::from_secs(args.seconds);
    let plan = Plan { budget, threads: bench::doubling(threads), keys: args.keys };
    let mut progress = Progress::measuring(budget);
    let figures = bench::run(&plan, |elapsed, next| progress.measured(elapsed, next));
    progress.done();
    let figures = figures.map_err(|failure| Failure::Stopped(failure.to_string()))?;

    // First what is kept: whoever reads the page may have seen enough before its end.
    if let Some(mut kept) = json {
        let written = report::json(&figures, &mut kept.file);
        kept.written(written)?;
    }
    if let Some(mut kept) = svg {
        let written = report::svg(&figures).and_then(|drawing| kept.file.write_all(drawing.as_bytes()));
        kept.written(written)?;
    }
    let mut out = AutoStream::new(io::stdout().lock(), args.color.to_choice());
    out.write_all(report::scaling(&figures, report::width()).as_bytes())?;
    out.flush()?;
    if figures.spread() > SPREAD_MAX {
        let spread = figures.spread() * 100.0;
        note(&format!("rounds differ by {spread:.0} %, as on a machine that is busy with something else"));
    }
    Ok(ExitCode::SUCCESS)
}
