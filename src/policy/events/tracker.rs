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
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use super::desk::{Note, Place, Subject, WARNED};
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
///
/// A rule may track as many more as there would be room for beside them: so the first takes half of the room at most, the second
/// half of what is left, and no rule with many keys, or long periods, leaves none for the others.
#[derive(Default)]
pub(super) struct Tracker {
    tracked: BTreeMap<u64, Tracked>,
    /// How many are of each rule.
    by_rule: BTreeMap<u32, usize>,
    /// Notes that there was no room for.
    pub(super) dropped: u64,
}

impl Tracker {
    /// Takes a note in; what it tells at once.
    pub(super) fn note(&mut self, note: &Note) -> Option<Happened> {
        let Note { subject, ns, answer, label } = note;
        let id = subject.id();
        let facts = Facts::of(answer);
        let free = TRACKED_MAX.saturating_sub(self.tracked.len());
        let tracked = match self.tracked.entry(id) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let own = self.by_rule.entry(subject.place.rule()).or_default();
                if *own >= free {
                    self.dropped = self.dropped.saturating_add(1);
                    return None;
                }
                *own += 1;
                let label = label.as_str().into();
                entry.insert(Tracked { subject: *subject, label, facts, warned_until_ns: 0, refusing: None })
            }
        };
        // Of one who is refused the first refusal is told, whatever came after it.
        if tracked.refusing.as_ref().is_none_or(|refusing| refusing.is_told && answer.is_err()) {
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

    /// Whether a key need not be noted: that it is refused or, by an id with [`WARNED`], that it is above its threshold.
    pub(super) fn knows(&self, id: u64, now_ns: u64) -> bool {
        self.tracked.get(&(id & !WARNED)).is_some_and(|tracked| {
            tracked.refusing.is_some() || (id & WARNED != 0 && now_ns < tracked.warned_until_ns)
        })
    }

    /// The text of a key that is tracked.
    pub(super) fn label(&self, id: u64) -> Option<Arc<str>> {
        self.tracked.get(&id).map(|tracked| Arc::clone(&tracked.label))
    }

    /// Tells of those who were refused for the first time, when all their refusals have been counted.
    pub(super) fn tell_new(&mut self, mut tell: impl FnMut(Happened)) {
        for tracked in self.tracked.values_mut() {
            let Some(refusing) = tracked.refusing.as_mut().filter(|refusing| !refusing.is_told) else {
                continue;
            };
            refusing.is_told = true;
            // A flood may have taken its count off: it was refused once at least.
            if refusing.refused == 0 {
                (refusing.refused, refusing.refused_ever) = (1, 1);
            }
            let (ns, refused) = (refusing.since_ns, std::mem::take(&mut refusing.refused));
            tell(tracked.happened(EventKind::Refused, ns, refused));
        }
    }

    /// Tells of periods that are over; if it `is_last`, also of refusals in one that is not. Whether a limit `is_there`, and how a
    /// key stands `now` that it is, the rules in force say.
    pub(super) fn sweep(
        &mut self,
        (now_ns, is_last): (u64, bool),
        is_there: impl Fn(Place) -> bool,
        now: impl Fn(Subject) -> Option<Facts>,
        mut tell: impl FnMut(Happened),
    ) {
        let by_rule = &mut self.by_rule;
        self.tracked.retain(|_, tracked| {
            let place = tracked.subject.place;
            // Where the limit has gone with a reload nobody is refused by it any more.
            let is_there = is_there(place);
            let refusing = tracked.refusing.as_ref();
            let is_over = refusing.is_some_and(|refusing| now_ns >= refusing.ends_ns);
            let is_asked = refusing.is_some_and(|refusing| is_last && refusing.refused > 0);
            if is_over || is_asked || (!is_there && refusing.is_some()) {
                let facts = if is_there { now(tracked.subject) } else { None };
                tell(tracked.tell_period((now_ns, is_over), facts));
            }
            let stays = tracked.refusing.is_some() || (is_there && now_ns < tracked.warned_until_ns);
            if !stays && let Some(own) = by_rule.get_mut(&place.rule()) {
                *own = own.saturating_sub(1);
            }
            stays
        });
        by_rule.retain(|_, own| *own > 0);
    }
}

impl Tracked {
    /// What there is to tell of the period; goes on with the next one if it is over. Without facts the limit has gone.
    fn tell_period(&mut self, (now_ns, is_over): (u64, bool), facts: Option<Facts>) -> Happened {
        self.facts = facts.unwrap_or_else(|| self.facts.unused());
        let Some(refusing) = &mut self.refusing else {
            return self.happened(EventKind::Recovered, now_ns, 0);
        };
        let refused = std::mem::take(&mut refusing.refused);
        if facts.is_some() && refused > 0 {
            if is_over {
                refusing.next_period(now_ns, self.facts.period);
            }
            return self.happened(EventKind::StillRefusing, now_ns, refused);
        }
        let refused_ever = refusing.refused_ever;
        self.refusing = None;
        self.happened(EventKind::Recovered, now_ns, refused_ever)
    }

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
