//! The log: on standard error, as text or JSON lines, by a thread of its own. What clients have sent is escaped and cut short.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::policy::{Request, Verdict};
use tidegate::{Limit, Rate, SingleLimiter};
use tracing_subscriber::fmt;

use super::json::clipped;
use super::lossy::{self, Writing};
use crate::key::printable;

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// A line of text for each event.
    #[default]
    Text,
    /// A line of JSON for each event.
    Json,
}

/// Refusals that are logged a second.
pub(super) const REFUSALS_PER_S: u64 = 5;

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

/// The log of refusals: a few a second, and how many were left out.
pub(super) struct Refusals {
    /// One of ours.
    limiter: SingleLimiter,
    left_out: AtomicU64,
}

impl Refusals {
    pub(super) fn new() -> Result<Self, tidegate::ConfigError> {
        let limit = Limit::bucket(Rate::per_second(REFUSALS_PER_S), REFUSALS_PER_S);
        Ok(Self { limiter: SingleLimiter::builder(limit).build()?, left_out: AtomicU64::new(0) })
    }

    /// A request was refused.
    pub(super) fn add(&self, request: &Request<'_>, verdict: &Verdict) {
        if self.limiter.check().is_err() {
            // ORDERING: Relaxed: it is a count, and orders nothing.
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // ORDERING: Relaxed: as above; each is told once, for the swap takes what it tells.
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        let rule = verdict.binding().map_or("", |limit| limit.rule().name()).to_owned();
        tracing::info!(
            rule = shown(&rule),
            api = shown(request.api),
            client_ip = request.client_ip.map(|address| address.to_string()).unwrap_or_default(),
            retry_after_s = verdict.retry_after().map(|wait| wait.as_secs_f64()),
            left_out,
            "refused"
        );
    }

    /// Tells of those that no other refusal tells of.
    pub(super) fn end(&self) {
        // ORDERING: Relaxed: as above.
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            tracing::info!(left_out, "refusals that are not in the log");
        }
    }
}

/// What a client sent, fit for a terminal and not too long.
fn shown(text: &str) -> String {
    printable(&clipped(text))
}
