//! [`Log`]: events as lines of a log. The only file that names tracing.

use std::fmt;

use tracing::Level;

use crate::decision::Reason;
use crate::error::ConfigError;
use crate::limit::{Limit, Rate};
use crate::policy::{Event, EventKind};
use crate::single::SingleLimiter;
use crate::sync::{AtomicU64, Ordering};
use crate::time::{Clock, Ticking};

/// The target of all lines, to filter by.
const TARGET: &str = "tidegate";

/// Tells [events](Event) to the subscriber of the crate tracing, a line each: a few a second, and how many were left out.
///
/// A rule that refuses is a warning; a key that nears its limit or has recovered, and all that a shadow rule would do, is
/// information. The target is `tidegate`, the message the [kind](EventKind::as_str), and the fields are those of the event:
/// `policy`, `rule`, `limit_number`, `window`, `shadow`, `key`, `fingerprint` (12 or more digits of base 16), `limit`, `period_s`,
/// `used`, `remaining`, `refused`, `reason`, `retry_after_s`, as far as there are such, and `left_out`, the events since the
/// last line that have none. Texts are escaped: no key begins a line of its own or speaks to a terminal, whatever the
/// subscriber does.
///
/// ```
/// use tidegate::notify::Log;
/// use tidegate::policy::{EventSettings, Policy, Rules};
///
/// let text = r#"
/// [[rule]]
/// name = "address"
/// key = "client_ip"
/// limit = { rate = "2/s", burst = 5 }
/// "#;
/// let rules = Rules::from_toml(text, "limits.toml")?;
/// let policy = Policy::builder(rules).events(EventSettings::new()).build()?;
/// let log = Log::new()?;
/// // A few times a second, on any thread:
/// policy.drain_events(|event| log.tell(&event));
/// // In the end:
/// log.end();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Log<C = Ticking> {
    limiter: SingleLimiter<C>,
    left_out: AtomicU64,
    tells_keys: bool,
}

impl Log {
    /// What is told unless it is said otherwise: 5 lines a second, 20 at once.
    pub const LIMIT: Limit = Limit::bucket(Rate::per_second(5), 20);

    /// One that tells as much as [`LIMIT`](Self::LIMIT) lets it. May block for up to 200 ms, as
    /// [`SingleBuilder::build`](crate::SingleBuilder::build) does.
    ///
    /// # Errors
    /// The clock cannot be started.
    pub fn new() -> Result<Self, ConfigError> {
        Ok(Self::limited_by(SingleLimiter::builder(Self::LIMIT).build()?))
    }
}

impl<C: Clock> Log<C> {
    /// One that tells what this limiter admits, at a cost of 1 a line.
    pub fn limited_by(limiter: SingleLimiter<C>) -> Self {
        Self { limiter, left_out: AtomicU64::new(0), tells_keys: true }
    }

    /// Leaves keys out: their fingerprints tell them apart. A log is often kept longer, and read by more people, than the names
    /// of users should be.
    #[must_use]
    pub fn without_keys(mut self) -> Self {
        self.tells_keys = false;
        self
    }

    /// Tells an event, or counts it among those that were left out. What the subscriber wants nothing of is neither.
    pub fn tell(&self, event: &Event) {
        let is_warning =
            matches!(event.kind, EventKind::Refused | EventKind::StillRefusing) && !event.is_shadow;
        let is_wanted = if is_warning {
            tracing::enabled!(target: TARGET, Level::WARN)
        } else {
            tracing::enabled!(target: TARGET, Level::INFO)
        };
        if !is_wanted {
            return;
        }
        if self.limiter.check().is_err() {
            // ORDERING: Relaxed: it is a count, and orders nothing.
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // ORDERING: Relaxed: as above; each is told once, for the swap takes what it tells.
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        let key = event.key.as_deref().filter(|_| self.tells_keys).map(escaped);
        let policy = Some(&*event.policy).filter(|name| !name.is_empty()).map(escaped);
        macro_rules! line {
            ($level:expr) => {
                tracing::event!(
                    target: TARGET,
                    $level,
                    policy,
                    rule = escaped(&event.rule),
                    limit_number = event.limit_number,
                    window = event.window.as_str(),
                    shadow = event.is_shadow,
                    key,
                    fingerprint = format!("{:012x}", event.fingerprint),
                    limit = event.limit,
                    period_s = event.period.as_secs_f64(),
                    used = event.used,
                    remaining = event.remaining,
                    refused = event.refused,
                    reason = event.reason.map(named),
                    retry_after_s = event.retry_after.map(|wait| wait.as_secs_f64()),
                    left_out,
                    "{}",
                    event.kind
                )
            };
        }
        if is_warning {
            line!(Level::WARN);
        } else {
            line!(Level::INFO);
        }
    }

    /// Tells how many were left out since the last line; nothing if none was.
    pub fn end(&self) {
        // ORDERING: Relaxed: as above.
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            tracing::event!(target: TARGET, Level::WARN, left_out, "events that are not in the log");
        }
    }
}

impl<C> fmt::Debug for Log<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("tells_keys", &self.tells_keys).finish_non_exhaustive()
    }
}

const fn named(reason: Reason) -> &'static str {
    match reason {
        Reason::Exhausted => "exhausted",
        Reason::TooLarge => "too_large",
        Reason::Full => "full",
        Reason::Unsupported => "unsupported",
    }
}

/// A text with everything escaped that ends a line, steers a terminal or turns the direction of writing; backslashes too, so
/// that no text looks like the escaped form of another.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        // The last two end a line for some who read it.
        if c.is_control() || turns || matches!(c, '\\' | '\u{2028}' | '\u{2029}') {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests;
