//! What a policy tells its host: plain values.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::decision::{Reason, WindowName};

/// What has happened to a key under a limit of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// As much of the limit is used as is [worth a warning](crate::policy::Rule::warn_percent). Once a period of the limit.
    Warned,
    /// A request was refused, the first since the key was last [recovered](Self::Recovered).
    Refused,
    /// A period is over in which requests were refused; how many, [`Event::refused`] tells. Not for the first of them before its period
    /// is over. [`Policy::drain_last_events`](crate::policy::Policy::drain_last_events) tells of one that is not over too.
    StillRefusing,
    /// A period is over, and no request was refused since the last event: of a window it has ended, of a bucket the time has passed in
    /// which it fills, in either case a second at least.
    Recovered,
}

impl EventKind {
    /// `"warned"`, `"refused"`, `"still_refusing"` or `"recovered"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warned => "warned",
            Self::Refused => "refused",
            Self::StillRefusing => "still_refusing",
            Self::Recovered => "recovered",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Something that a host may want to know, or to tell whom it concerns: see [`Policy::drain_events`](crate::policy::Policy::drain_events).
///
/// What the limit stood at is as it was at the first such request since events were last drained; of [`EventKind::Recovered`] and
/// [`EventKind::StillRefusing`] as it is when they are made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// What has happened.
    pub kind: EventKind,
    /// When, by the wall clock, since 1970.
    pub at: Duration,
    /// The policy's name.
    pub policy: Arc<str>,
    /// The rule's name.
    pub rule: Arc<str>,
    /// Whether the rule only watches: then nobody was refused.
    pub is_shadow: bool,
    /// The limit's number among the rule's, from 0.
    pub limit_number: usize,
    /// The window that refuses, or the one of which the largest share is used.
    pub window: WindowName,
    /// The key as text, as [`Policy::key_of`](crate::policy::Policy::key_of) has it, cut short at 96 bytes; `None` where the
    /// [settings](crate::policy::EventSettings) leave it out.
    pub key: Option<Arc<str>>,
    /// What tells keys of this process apart where they are not to be told: the same for each event of a key, in all rules that count
    /// by the same parts. 48 bits; they say nothing of the key.
    pub fingerprint: u64,
    /// The most that the window admits: requests, or units of cost; a bucket's burst.
    pub limit: u64,
    /// How long the window lasts; of a bucket, the time in which an empty one fills.
    pub period: Duration,
    /// What is used, refused requests included where they count.
    pub used: u64,
    /// What would still pass.
    pub remaining: u64,
    /// Requests refused, at least (see [`Policy::drain_events`](crate::policy::Policy::drain_events)): of [`EventKind::StillRefusing`] in the period that is over, of [`EventKind::Recovered`] since the key was first refused, of
    /// [`EventKind::Refused`] so far, of [`EventKind::Warned`] 0.
    pub refused: u64,
    /// Why, of [`EventKind::Refused`] alone.
    pub reason: Option<Reason>,
    /// The wait until the same request passes; of events that are no refusal until a request of cost 1 does. `None` if no wait is enough.
    pub retry_after: Option<Duration>,
}

impl Event {
    /// What comes back in a second, in units of cost: a bucket's rate; what a window admits, spread over its period.
    pub fn refill_per_s(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "it is told, and nothing is decided by it")]
        let limit = self.limit as f64;
        limit / self.period.as_secs_f64()
    }
}

/// A line of text for people.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.kind, self.rule)?;
        match &self.key {
            Some(key) => write!(f, ": {key}")?,
            None => write!(f, ": #{:012x}", self.fingerprint)?,
        }
        write!(f, ", {} of {} used in {:?}", self.used, self.limit, self.period)?;
        if self.refused > 0 {
            write!(f, ", {} refused", self.refused)?;
        }
        match self.retry_after {
            Some(wait) if !wait.is_zero() => write!(f, ", retry after {wait:?}"),
            _ => Ok(()),
        }
    }
}

/// A key that is refused more than others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offender {
    /// The rule's name.
    pub rule: Arc<str>,
    /// Whether the rule only watches.
    pub is_shadow: bool,
    /// The limit's number among the rule's, from 0.
    pub limit_number: usize,
    /// The key as text, as in [`Event::key`]; `None` also where so many were refused at once that there was no room for its text.
    pub key: Option<Arc<str>>,
    /// As in [`Event::fingerprint`].
    pub fingerprint: u64,
    /// It was refused so often of late, at least: refusals of the last minute count whole, those before half, those of a minute earlier a
    /// quarter, and so on.
    pub refused_least: u64,
    /// And so often at most, counted the same way. How far the two are apart [`Policy::offenders`](crate::policy::Policy::offenders) tells.
    pub refused_most: u64,
}

/// What a policy has counted since it was built: see [`Policy::counts`](crate::policy::Policy::counts).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Counts {
    /// Requests decided.
    pub checks: u64,
    /// Of the rules in force, in their order.
    pub rules: Vec<RuleCounts>,
    /// Events that nobody will be told of, for want of room.
    pub events_dropped: u64,
    /// Refusals that events and offenders know nothing of, because each place to note one was in use at that instant.
    pub refusals_unseen: u64,
}

/// What one rule has counted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RuleCounts {
    /// The rule's name.
    pub name: Arc<str>,
    /// Whether it only watches.
    pub is_shadow: bool,
    /// Of each limit, in their order.
    pub limits: Vec<LimitCounts>,
}

/// What one limit of a rule has counted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LimitCounts {
    /// Requests that it refused, by the window that they have to wait for; the windows that the limit has.
    pub refusals: Vec<(WindowName, u64)>,
    /// Of its limiter.
    pub stats: crate::table::Stats,
}
