//! Who stands how: from what the trays held to events, each once for a key, kind and period.
//!
//! ```text
//!            refusal                       period over, refused meanwhile
//! calm  ───────────────►  refused  ───────────────────────────────────────►  still refused
//!   ▲      Refused           │                 StillRefusing                     │    ▲ │ the same
//!   └────────────────────────┴───────────────────────────────────────────────────┘    └─┘
//!                  period over, nobody refused meanwhile: Recovered
//! ```
//!
//! A calm key is forgotten when its last warning's period is over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::desk::{Note, Subject};
use super::event::EventKind;
use super::facts::Facts;
use crate::time::timebase::saturating_ns;

/// Keys that are tracked.
pub(super) const TRACKED_MAX: usize = 4096;
/// No period is told of that is shorter: a summary every few milliseconds would be of use to nobody.
const PERIOD_MIN: Duration = Duration::from_secs(1);

/// What has happened to a key.
pub(super) struct Happened {
    pub(super) kind: EventKind,
    /// When, by the policy's clock.
    pub(super) ns: u64,
    pub(super) subject: Subject,
    pub(super) label: Arc<str>,
    pub(super) facts: Facts,
    pub(super) refused: u64,
}

struct Tracked {
    subject: Subject,
    label: Arc<str>,
    /// As they were last noted.
    facts: Facts,
    /// No warning is told before.
    warned_until_ns: u64,
    refusing: Option<Refusing>,
}

struct Refusing {
    since_ns: u64,
    is_told: bool,
    /// When the period is over.
    ends_ns: u64,
    /// Since the last event.
    refused: u64,
    /// In all.
    refused_ever: u64,
}

/// Keys that were refused, or are near it.
#[derive(Default)]
pub(super) struct Tracker {
    tracked: BTreeMap<u64, Tracked>,
    /// Notes that there was no room for.
    pub(super) dropped: u64,
}

impl Tracker {
    /// Takes a note in; what it tells at once.
    pub(super) fn note(&mut self, note: &Note) -> Option<Happened> {
        let Note { subject, ns, answer, label } = note;
        let id = subject.id();
        if !self.tracked.contains_key(&id) && self.tracked.len() >= TRACKED_MAX {
            self.dropped = self.dropped.saturating_add(1);
            return None;
        }
        let facts = Facts::of(answer);
        let tracked = self.tracked.entry(id).or_insert_with(|| Tracked {
            subject: *subject,
            label: label.as_str().into(),
            facts,
            warned_until_ns: 0,
            refusing: None,
        });
        // Of one who is refused the refusal is told, whatever passed meanwhile.
        if answer.is_err() || tracked.refusing.is_none() {
            tracked.facts = facts;
        }
        let ends_ns = ns.saturating_add(saturating_ns(facts.ends_after.max(PERIOD_MIN)));
        match (answer, &tracked.refusing) {
            (Err(_), None) => {
                let refusing =
                    Refusing { since_ns: *ns, is_told: false, ends_ns, refused: 0, refused_ever: 0 };
                tracked.refusing = Some(refusing);
                None
            }
            (Ok(_), None) if tracked.warned_until_ns <= *ns => {
                tracked.warned_until_ns = ends_ns;
                Some(tracked.happened(EventKind::Warned, *ns, 0))
            }
            _ => None,
        }
    }

    /// So many requests of a key were refused.
    pub(super) fn count(&mut self, id: u64, refused: u64) {
        if let Some(refusing) = self.tracked.get_mut(&id).and_then(|tracked| tracked.refusing.as_mut()) {
            refusing.refused = refusing.refused.saturating_add(refused);
            refusing.refused_ever = refusing.refused_ever.saturating_add(refused);
        }
    }

    /// Tells of those who were refused for the first time, when all their refusals have been counted.
    pub(super) fn tell_new(&mut self, mut tell: impl FnMut(Happened)) {
        for tracked in self.tracked.values_mut() {
            let Some(refusing) = tracked.refusing.as_mut().filter(|refusing| !refusing.is_told) else {
                continue;
            };
            refusing.is_told = true;
            let (ns, refused) = (refusing.since_ns, std::mem::take(&mut refusing.refused));
            tell(tracked.happened(EventKind::Refused, ns, refused));
        }
    }

    /// Tells of periods that are over; if it `is_last`, also of refusals in one that is not. `now` says how a key stands, if its limit is
    /// still there.
    pub(super) fn sweep(
        &mut self,
        now_ns: u64,
        is_last: bool,
        now: impl Fn(Subject) -> Option<Facts>,
        mut tell: impl FnMut(Happened),
    ) {
        self.tracked.retain(|_, tracked| {
            let facts = now(tracked.subject);
            let Some(refusing) = tracked.refusing.as_mut() else {
                return now_ns < tracked.warned_until_ns && facts.is_some();
            };
            // Where the limit has gone with a reload nobody is refused by it any more.
            let is_over = now_ns >= refusing.ends_ns;
            if facts.is_some() && !is_over && !(is_last && refusing.refused > 0) {
                return true;
            }
            let refused = std::mem::take(&mut refusing.refused);
            let (kind, refused) = match facts {
                Some(_) if refused > 0 => (EventKind::StillRefusing, refused),
                _ => (EventKind::Recovered, refusing.refused_ever),
            };
            if kind == EventKind::Recovered {
                tracked.refusing = None;
            } else if is_over {
                refusing.next_period(now_ns, facts.map_or(tracked.facts.period, |facts| facts.period));
            }
            tracked.facts = facts.unwrap_or_else(|| tracked.facts.unused());
            tell(tracked.happened(kind, now_ns, refused));
            tracked.refusing.is_some() || now_ns < tracked.warned_until_ns
        });
    }
}

impl Tracked {
    fn happened(&self, kind: EventKind, ns: u64, refused: u64) -> Happened {
        let (subject, label, facts) = (self.subject, Arc::clone(&self.label), self.facts);
        Happened { kind, ns, subject, label, facts, refused }
    }
}

impl Refusing {
    /// Goes on with the period that is under way.
    fn next_period(&mut self, now_ns: u64, period: Duration) {
        let period_ns = saturating_ns(period.max(PERIOD_MIN));
        let over = now_ns.saturating_sub(self.ends_ns) / period_ns;
        self.ends_ns = self.ends_ns.saturating_add(period_ns.saturating_mul(over.saturating_add(1)));
    }
}
