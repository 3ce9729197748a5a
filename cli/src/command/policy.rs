//! `tidegate replay --policy`: what a policy would have done to a log, and what another would have done.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anstream::AutoStream;
use serde::Serialize;
use tidegate::policy::Rules;

use super::drawn::Drawn;
use super::{Failure, broken, ended, note, open, source, unreadable};
use crate::args::ReplayArgs;
use crate::key::printable;
use crate::log::records::Format;
use crate::log::source::Source;
use crate::progress::Progress;
use crate::replay::policy::compare::compare;
use crate::replay::policy::mapping::{MapArg, Mapping, Part};
use crate::replay::policy::requests::{Requests, asked_by};
use crate::replay::policy::summary::{About, PolicySummary};
use crate::replay::policy::tally::{Outcome, tally};
use crate::replay::policy::trial::validate;
use crate::report;

/// What the command line calls the policy that comes with tidegate.
pub(super) const DEFAULT: &str = "default";

/// A policy that can be built, and where it came from.
pub(super) struct Named {
    pub(super) rules: Rules,
    from: String,
}

pub(super) fn replay(args: &ReplayArgs, policy: &Path) -> Result<ExitCode, Failure> {
    // Everything that is wrong with the command line is told before a long log is read.
    let policy = load_policy(policy)?;
    let other = args.compare.as_deref().map(load_policy).transpose()?;
    let policies: Vec<&Rules> =
        [Some(&policy), other.as_ref()].into_iter().flatten().map(|named| &named.rules).collect();

    let drawn = Drawn::open(args)?;
    let source = source(args);
    let (mut progress, requests, format) = load(args, &source, &policies)?;
    progress.replaying(requests.arrivals.len() * policies.len());
    let width = report::width();
    let slots_max = if args.json { report::JSON_SLOTS_MAX } else { report::slots_max(width) };
    let about = About::new(source.to_string(), args.seed, &requests, &policies);
    let first = decide(&policy, args.seed, &requests, slots_max, &mut progress, 0)?;
    let (lines, skipped, incomplete) = (about.lines, about.skipped, about.incomplete.clone());
    match &other {
        None => {
            progress.done();
            let summary = PolicySummary::new(about, first, args.top);
            drawn.write(&report::Picture::of_policy(&summary))?;
            show(args, &summary, &report::policy_text(&summary, width))?;
        }
        Some(other) => {
            let done = requests.arrivals.len();
            let second = decide(other, args.seed, &requests, slots_max, &mut progress, done)?;
            progress.done();
            let comparison = compare(about, &requests, first, second, args.top);
            show(args, &comparison, &report::comparison_text(&comparison, width))?;
        }
    }
    Ok(ended(&source.to_string(), incomplete.as_deref(), lines, skipped, format.name()))
}

pub(super) fn load_policy(path: &Path) -> Result<Named, Failure> {
    let from = printable(&path.to_string_lossy());
    let (rules, from) = if path.as_os_str() == DEFAULT {
        (Rules::default_policy(), "the default policy".to_owned())
    } else {
        let lines = |problems: tidegate::policy::Problems| {
            let lines: Vec<String> = problems.iter().map(|problem| printable(&problem.to_string())).collect();
            Failure::Policy(lines.join("\n"))
        };
        (Rules::read(path).map_err(lines)?, from)
    };
    let named = Named { rules, from };
    validate(&named.rules).map_err(|error| Failure::Policy(format!("{}: {error}", named.from)))?;
    Ok(named)
}

/// Reads the whole log, as far as it can be read.
fn load(
    args: &ReplayArgs,
    source: &Source,
    policies: &[&Rules],
) -> Result<(Progress, Requests, Format), Failure> {
    let wrong = |why: String| Failure::Usage("replay", why);
    let (mut progress, mut input) = open(source)?;
    let path = if let Source::File(path) = source { Some(path.as_path()) } else { None };
    let format = match args.format {
        Some(format) => format,
        None => Format::detect(path, &mut input).map_err(|error| unreadable(source, error))?,
    };
    let asked = asked_by(policies);
    let is_idle = |part: &&Part| matches!(part, Part::Attribute(_)) && !asked.contains(part);
    for part in args.map.iter().map(MapArg::part).filter(is_idle) {
        note(&printable(&format!("no rule asks for {part}, which --map names")));
    }
    let attribute = |part| if let Part::Attribute(name) = part { Some(name) } else { None };
    let attributes: Vec<String> = asked.iter().cloned().filter_map(attribute).collect();
    let mapping = Mapping::new(&args.map, format, &attributes).map_err(wrong)?;
    let read = Requests::read(input, format, &mapping, attributes, |lines| progress.lines(lines));
    let mut requests = read.map_err(wrong)?;
    requests.input.broken = broken(source, requests.input.lines, requests.input.broken.take())?;
    Ok((progress, requests, format))
}

fn decide(
    policy: &Named,
    seed: u64,
    requests: &Requests,
    slots_max: usize,
    progress: &mut Progress,
    before: usize,
) -> Result<Outcome, Failure> {
    let tick = |done: usize| progress.replayed(before + done);
    let outcome = tally(&policy.rules, seed, requests, slots_max, tick);
    let mut outcome = outcome.map_err(|error| Failure::Policy(format!("{}: {error}", policy.from)))?;
    outcome.totals.policy.clone_from(&policy.from);
    Ok(outcome)
}

fn show(args: &ReplayArgs, result: &impl Serialize, text: &str) -> Result<(), Failure> {
    if args.json {
        report::json(result, &mut io::stdout().lock())?;
    } else {
        let mut out = AutoStream::new(io::stdout().lock(), args.color.to_choice());
        out.write_all(text.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}
