//! Results put before the reader: as a page of text ([`text()`] of a replay, [`policy_text`] and
//! [`comparison_text`] of one with policies, [`suggestions_text`] of limits for a log, [`scaling()`] of a bench, [`storm_text`] of a storm), as JSON
//! ([`json`]) or drawn ([`svg()`] of a bench, [`storm_svg`] of a storm, [`picture_svg`] of a replay).

mod bars;
mod chart;
mod comparison;
mod drawing;
mod flow;
#[cfg(feature = "png")]
mod pixels;
mod policy;
mod replay_drawing;
mod scaling;
mod storm;
mod storm_drawing;
mod suggestions;
mod svg;
mod table;
mod text;

use std::io::{self, Write};

use serde::Serialize;
use terminal_size::{Width, terminal_size};

pub use comparison::comparison_text;
pub use policy::policy_text;
#[cfg(feature = "png")]
pub use replay_drawing::png as picture_png;
pub use replay_drawing::{Picture, svg as picture_svg};
pub use scaling::scaling;
pub use storm::storm_text;
#[cfg(feature = "png")]
pub use storm_drawing::storm_png;
pub use storm_drawing::storm_svg;
pub use suggestions::suggestions_text;
pub use svg::{Line, Panel, panels_svg, svg};
pub use text::{sample_hint, text};

/// How finely the timeline is cut for programs, which have no width.
pub const JSON_SLOTS_MAX: usize = 60;

/// Below this, counts and times have no room side by side.
const WIDTH_MIN: usize = 40;
const WIDTH_DEFAULT: usize = 80;
/// Beyond this, lines are longer than eyes like to follow.
const WIDTH_MAX: usize = 132;

/// How many columns a report may take: those of the terminal, or of `COLUMNS` where there is none.
pub fn width() -> usize {
    let terminal = terminal_size().map(|(Width(columns), _)| usize::from(columns));
    let variable = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    terminal.or_else(variable).unwrap_or(WIDTH_DEFAULT).clamp(WIDTH_MIN, WIDTH_MAX)
}

/// How many slots of time a page of this width has room for.
pub fn slots_max(width: usize) -> usize {
    width - 2 * text::INDENT.len()
}

/// Writes a result as one JSON object.
///
/// # Errors
///
/// What `out` reports.
pub fn json(result: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, result)?;
    out.write_all(b"\n")?;
    out.flush()
}
