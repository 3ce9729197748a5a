//! `tidegate replay --suggest`.

use std::io::{self, Write};
use std::process::ExitCode;

use anstream::AutoStream;

use super::{Failure, ended, load, source};
use crate::args::ReplayArgs;
use crate::replay::suggest::{Share, Terms, suggest};
use crate::report;

pub(super) fn replay(args: &ReplayArgs, share: Share) -> Result<ExitCode, Failure> {
    let source = source(args);
    let (mut progress, log) = load(&source)?;
    let terms = Terms {
        share,
        align: args.align,
        count_refused: !args.free_refusals,
        seed: args.seed,
        exact: args.exact,
        top: args.top,
    };
    progress.replaying(log.events.len());
    let found = suggest(&log, &terms, |done| progress.replayed(done));
    progress.done();
    let mut found = found.map_err(|error| {
        Failure::Stopped(format!("{source}: no limit that the log needs can be built: {error}"))
    })?;
    found.source = source.to_string();
    if args.json {
        report::json(&found, &mut io::stdout().lock())?;
    } else {
        let mut out = AutoStream::new(io::stdout().lock(), args.color.to_choice());
        out.write_all(report::suggestions_text(&found, report::width()).as_bytes())?;
        out.flush()?;
    }
    Ok(ended(&found.source, found.incomplete.as_deref(), found.lines, found.skipped, "an access log"))
}
