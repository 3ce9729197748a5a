//! What each subcommand does, step by step, and with what exit status it ends.

mod bench;
mod check;
mod drawn;
mod kept;
mod policy;
#[cfg(feature = "serve")]
mod serve;
mod storm;
mod suggest;

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use anstream::AutoStream;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command, ReplayArgs, SampleLogArgs};
use crate::log::read::{Log, read};
use crate::log::source::{Source, decompress};
use crate::progress::Progress;
use crate::replay::engine::Engine;
use crate::replay::summary::{Detail, Summary, summarize};
use crate::{report, sample};

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Replay(args) => replay(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Storm(args) => storm::storm(&args),
        Command::Check(args) => check::check(&args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::serve(args),
        Command::SampleLog(args) => sample_log(&args),
    };
    match result {
        Ok(code) => code,
        Err(Failure::Usage(command, why)) => usage_error(command, why),
        Err(Failure::Policy(why)) => {
            why.lines().for_each(note);
            ExitCode::from(2)
        }
        Err(Failure::Stopped(why)) => complain(why),
        // Who reads us has seen enough, `head` for one: nothing is wrong.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Failure::Output(error)) => complain(format_args!("cannot write the result: {error}")),
    }
}

/// Why there is no result, or nobody to give it to.
enum Failure {
    /// The command line of this subcommand is wrong.
    Usage(&'static str, String),
    /// A policy cannot be used: each line says why.
    Policy(String),
    Stopped(String),
    Output(io::Error),
}

impl From<io::Error> for Failure {
    /// Only writing the result is left to `?`; what else goes wrong is put in words on the spot.
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// Complains as the reader of the command line does, with the usage of the subcommand.
fn usage_error(command: &str, why: String) -> ExitCode {
    let mut cli = Cli::command();
    cli.build();
    let error =
        cli.find_subcommand_mut(command).map(|command| command.error(ErrorKind::ValueValidation, &why));
    error.unwrap_or_else(|| clap::Error::raw(ErrorKind::ValueValidation, why)).exit()
}

/// Says on standard error what went wrong; the status is 1.
fn complain(why: impl Display) -> ExitCode {
    // When not even standard error can be written, the exit status has to be enough.
    let _ = writeln!(io::stderr(), "tidegate: {why}");
    ExitCode::from(1)
}

/// Says on standard error what the user may not have meant; it changes no result.
fn note(what: &str) {
    let _ = writeln!(io::stderr(), "tidegate: {what}");
}

/// Whether somebody put a pipe or a file on standard input, as in `cat access.log | tidegate replay`.
#[cfg(unix)]
fn stdin_was_given() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;

    let Ok(stdin) = io::stdin().as_fd().try_clone_to_owned() else {
        return false; // it is closed
    };
    std::fs::File::from(stdin).metadata().is_ok_and(|about| about.is_file() || about.file_type().is_fifo())
}

/// Elsewhere a pipe is not told from an input that nobody gave.
#[cfg(not(unix))]
fn stdin_was_given() -> bool {
    false
}

fn replay(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.policy {
        return policy::replay(args, path);
    }
    if let Some(share) = args.suggest {
        return suggest::replay(args, share);
    }
    let engine = Engine {
        limit: args.limit.to_limit().align(args.align.to_alignment()).count_refused(counts_refused(args)),
        memory: args.limit.memory(),
        seed: args.seed,
        max_keys: args.max_keys,
        exact: args.exact,
    };
    let unbuildable = |error| {
        Failure::Usage("replay", format!("invalid value '{}' for '--limit <LIMIT>': {error}", args.limit))
    };
    engine.validate().map_err(unbuildable)?;

    let drawn = drawn::Drawn::open(args)?;
    let source = source(args);
    if args.free_refusals && !args.limit.may_count_refused() {
        let kind = if args.limit.has_windows() { "sliding window" } else { "bucket" };
        note(&format!("--free-refusals changes nothing for a {kind}"));
    }
    let (mut progress, log) = load(&source)?;
    let width = report::width();
    let slots_max = if args.json { report::JSON_SLOTS_MAX } else { report::slots_max(width) };
    let detail = Detail { parts: args.limit.parts(), top: args.top, slots_max };
    progress.replaying(log.events.len());
    let summary = summarize(&log, &engine, detail, |done| progress.replayed(done));
    progress.done();
    let summary = describe(summary.map_err(unbuildable)?, args, &source, &log);
    drawn.write(&report::Picture::of_limit(&summary))?;

    if args.json {
        report::json(&summary, &mut io::stdout().lock())?;
    } else {
        let mut out = AutoStream::new(io::stdout().lock(), args.color.to_choice());
        out.write_all(report::text(&summary, width).as_bytes())?;
        if source == Source::Sample {
            write!(out, "\n{}", report::sample_hint(width))?;
        }
        out.flush()?;
    }
    Ok(status(&summary))
}

/// The log that is meant.
fn source(args: &ReplayArgs) -> Source {
    let source = Source::from_argument(args.log.clone());
    if source == Source::Sample && stdin_was_given() {
        note("LOG is missing, so this is the bundled sample\n  (tidegate replay - reads standard input)");
    }
    source
}

/// Reads the whole log, as far as it can be read.
fn load(source: &Source) -> Result<(Progress, Log), Failure> {
    let (mut progress, input) = open(source)?;
    let mut log = read(input, |lines| progress.lines(lines));
    log.broken = broken(source, log.lines, log.broken)?;
    Ok((progress, log))
}

/// The text of a log, with the bar that follows it.
fn open(source: &Source) -> Result<(Progress, Box<dyn BufRead>), Failure> {
    if *source == Source::Stdin && io::stdin().is_terminal() {
        // Reading from the keyboard looks like hanging to whoever expected the sample.
        note("reading a log from the terminal, until Ctrl-D");
    }
    let (raw, length) = source.open().map_err(|error| unreadable(source, error))?;
    let progress = Progress::reading(length);
    let input = decompress(progress.follow(raw)).map_err(|error| unreadable(source, error))?;
    Ok((progress, input))
}

fn unreadable(source: &Source, error: io::Error) -> Failure {
    Failure::Stopped(format!("cannot read {source}: {}", in_words(error)))
}

/// Where reading stopped, in words; that not even a line could be read is a failure.
fn broken(
    source: &Source,
    lines: u64,
    broken: Option<(u64, io::Error)>,
) -> Result<Option<(u64, io::Error)>, Failure> {
    match broken {
        Some((_, error)) if lines == 0 => Err(unreadable(source, error)),
        broken => Ok(broken.map(|(line, error)| (line, in_words(error)))),
    }
}

/// The decompressor's own words mean little to who only sees a file.
fn in_words(error: io::Error) -> io::Error {
    let words = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the gzip data ends early; is the file cut short?".to_owned(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            format!("the gzip data is damaged ({error})")
        }
        _ => return error,
    };
    io::Error::new(error.kind(), words)
}

fn counts_refused(args: &ReplayArgs) -> bool {
    args.limit.may_count_refused() && !args.free_refusals
}

/// Adds to a summary what describes the run.
fn describe(mut summary: Summary, args: &ReplayArgs, source: &Source, log: &Log) -> Summary {
    let has_windows = args.limit.has_windows();
    summary.source = source.to_string();
    summary.limit = args.limit.to_string();
    summary.align = has_windows.then(|| args.align.name());
    summary.refusals_count = has_windows.then_some(counts_refused(args));
    summary.seed = args.seed;
    summary.incomplete =
        log.broken.as_ref().map(|(line, error)| format!("reading stopped in line {line}: {error}"));
    summary
}

fn status(summary: &Summary) -> ExitCode {
    let Summary { source, incomplete, lines, skipped, .. } = summary;
    ended(source, incomplete.as_deref(), *lines, *skipped, "an access log")
}

/// The status of a replay, with a complaint if there is something to complain of.
fn ended(source: &str, incomplete: Option<&str>, lines: u64, skipped: u64, format: &str) -> ExitCode {
    if let Some(why) = incomplete {
        complain(format_args!("{source}: {why}"))
    } else if lines == 0 {
        complain(format_args!("{source}: the log is empty"))
    } else if skipped == lines {
        complain(format_args!("{source}: no line is a request of {format}"))
    } else {
        ExitCode::SUCCESS
    }
}

fn sample_log(args: &SampleLogArgs) -> Result<ExitCode, Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    sample::write(&mut out, args.seed, args.episodes)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
