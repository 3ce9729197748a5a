//! `tidegate storm`.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anstream::AutoStream;

use super::kept::Kept;
use super::{Failure, note};
use crate::args::StormArgs;
use crate::report;
use crate::storm::scenario::{DEFAULT_TOML, Scenario};
use crate::storm::{self, Failure as Unplayed};

pub(super) fn storm(args: &StormArgs) -> Result<ExitCode, Failure> {
    if args.print_scenario {
        io::stdout().lock().write_all(DEFAULT_TOML.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    #[cfg(feature = "png")]
    if args.png.is_some() && args.png == args.svg {
        return Err(Failure::Usage("storm", "--svg and --png name the same file".to_owned()));
    }
    let mut scenario = match &args.scenario {
        Some(path) => read(path)?,
        None => Scenario::bundled(),
    };
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    // Opened before anything is played: nobody likes to wait for a result that cannot be kept.
    let svg = args.svg.as_deref().map(Kept::create).transpose()?;
    #[cfg(feature = "png")]
    let png = args.png.as_deref().map(Kept::create).transpose()?;
    if cfg!(debug_assertions) {
        note("this build is not optimised, and takes its time\n  (build with --release)");
    }

    let report = storm::run(&scenario).map_err(|failure| match &failure {
        Unplayed::Limit(_) => Failure::Policy(failure.to_string()),
        Unplayed::Endless { .. } => Failure::Stopped(failure.to_string()),
    })?;

    if let Some(mut kept) = svg {
        let written = report::storm_svg(&report).and_then(|drawing| kept.file.write_all(drawing.as_bytes()));
        kept.written(written)?;
    }
    #[cfg(feature = "png")]
    if let Some(mut kept) = png {
        let written = report::storm_png(&report).and_then(|pixels| kept.file.write_all(&pixels));
        kept.written(written)?;
    }
    if args.json {
        report::json(&report, &mut io::stdout().lock())?;
    } else {
        let mut out = AutoStream::new(io::stdout().lock(), args.color.to_choice());
        out.write_all(report::storm_text(&report, report::width()).as_bytes())?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The scenario of a file.
fn read(path: &Path) -> Result<Scenario, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Policy(format!("cannot read {name}: {error}")))?;
    Scenario::from_toml(&text, &name).map_err(|wrong| Failure::Policy(wrong.join("\n")))
}
