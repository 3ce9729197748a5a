//! The log: on standard error, as text or JSON lines, by a thread of its own. What clients have sent is escaped and cut short.

use std::io;

use tracing_subscriber::fmt;

use super::lossy::{self, Writing};

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// A line of text for each event.
    #[default]
    Text,
    /// A line of JSON for each event.
    Json,
}

/// Begins the log of this process, which ends with what this returns; a second call changes nothing.
///
/// # Errors
/// There is no thread for it.
pub(super) fn begin(format: LogFormat, is_coloured: bool) -> io::Result<Writing> {
    let (lossy, writing) = lossy::to(io::stderr(), format)?;
    let writer = move || lossy.clone();
    let builder = fmt::fmt().with_writer(writer).with_target(false).log_internal_errors(false);
    // Only a process that has a log already fails here.
    match format {
        LogFormat::Text => _ = builder.with_ansi(is_coloured).try_init(),
        LogFormat::Json => _ = builder.json().flatten_event(true).with_ansi(false).try_init(),
    }
    Ok(writing)
}
