//! The host's side: what the trays held, summed up.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::desk::{Desk, IDS, Note, Place, Subject};
use super::event::{Event, EventKind, Offender};
use super::facts::Facts;
use super::frequent::{Counted, Frequent};
use super::names::NamedRule;
use super::settings::{EventSettings, Labels};
use super::tracker::{Happened, Tracker};
use crate::table::Hashing;

/// Refusals weigh half as much each time that this has passed.
const HALF_LIFE_NS: u64 = 60_000_000_000;
/// Events that wait to be drained.
const WAITING_MAX: usize = 8192;

/// The rules that are in force, as events see them.
pub(crate) trait InForce {
    /// The policy's name.
    fn policy(&self) -> &str;
    /// Whether a limit is there.
    fn has(&self, place: Place) -> bool;
    /// How a key stands, if its limit is there.
    fn standing(&self, subject: Subject) -> Option<crate::answer::Standing>;
    /// The time by the policy's clock, and by the wall.
    fn now(&self) -> (u64, Duration);
}

/// All that a policy notes.
pub(crate) struct Noted {
    pub(crate) desk: Desk,
    settings: EventSettings,
    /// Hashes an id into what may be told of it: from this nothing follows for how limiters hash.
    fingerprints: Hashing,
    summed: Mutex<Summed>,
}

struct Summed {
    counts: Frequent,
    /// Keys' texts, of ids that are counted.
    labels: BTreeMap<u64, Arc<str>>,
    halved_ns: Option<u64>,
    tracker: Tracker,
    waiting: Vec<Happened>,
    dropped: u64,
}

impl Noted {
    pub(crate) fn new(settings: EventSettings) -> Self {
        let summed = Summed {
            counts: Frequent::new(IDS),
            labels: BTreeMap::new(),
            halved_ns: None,
            tracker: Tracker::default(),
            waiting: Vec::new(),
            dropped: 0,
        };
        Self { desk: Desk::new(), settings, fingerprints: Hashing::random(), summed: Mutex::new(summed) }
    }

    /// Does something with what is summed up until now. Never waits for a check; hosts wait for each other.
    fn with_summed<T>(&self, rules: &impl InForce, is_last: bool, act: impl FnOnce(&mut Summed) -> T) -> T {
        // Who panicked with the lock held had no memory; sums stay sums.
        let mut summed = self.summed.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ns = rules.now().0;
        summed.collect(&self.desk, now_ns);
        summed.sweep(&self.desk, rules, (now_ns, is_last));
        summed.bound();
        act(&mut summed)
    }

    /// What has happened since the last call, in the order of time; if it `is_last`, also what a later one would tell of until now.
    pub(crate) fn drain(
        &self,
        rules: &impl InForce,
        named: impl Fn(u32) -> Arc<NamedRule>,
        is_last: bool,
    ) -> Vec<Event> {
        let mut happened = self.with_summed(rules, is_last, |summed| std::mem::take(&mut summed.waiting));
        let (now_ns, unix) = rules.now();
        happened.sort_by_key(|happened| happened.ns);
        let policy: Arc<str> = rules.policy().into();
        let event = |happened: Happened| {
            let Happened { kind, ns, subject, label, facts, refused } = happened;
            let Facts { window, limit, period, used, remaining, reason, retry_after, .. } = facts;
            let rule = named(subject.place.rule());
            let ago = Duration::from_nanos(now_ns.saturating_sub(ns));
            Event {
                kind,
                at: unix.saturating_sub(ago),
                policy: Arc::clone(&policy),
                rule: Arc::clone(&rule.name),
                is_shadow: rule.is_shadow,
                limit_number: subject.place.limit().into(),
                window,
                key: self.told(&rule.name, &label),
                fingerprint: self.fingerprint(subject.place, subject.id()),
                limit,
                period,
                used,
                remaining,
                refused,
                reason,
                retry_after,
            }
        };
        happened.into_iter().map(event).collect()
    }

    /// Who is refused most.
    pub(crate) fn offenders(
        &self,
        most: usize,
        rules: &impl InForce,
        named: impl Fn(u32) -> Arc<NamedRule>,
    ) -> Vec<Offender> {
        let heaviest = self.with_summed(rules, false, |summed| {
            let mut all: Vec<_> = summed.counts.iter().collect();
            // Of equals always in the same order.
            all.sort_unstable_by_key(|counted| (std::cmp::Reverse(counted.count), counted.id));
            all.truncate(most);
            all.into_iter().map(|counted| (counted, summed.label(counted.id))).collect::<Vec<_>>()
        });
        let offender = |(counted, label): (Counted, Option<Arc<str>>)| {
            let place = Place::of_word(counted.value);
            let rule = named(place.rule());
            Offender {
                rule: Arc::clone(&rule.name),
                is_shadow: rule.is_shadow,
                limit_number: place.limit().into(),
                key: label.and_then(|label| self.told(&rule.name, &label)),
                fingerprint: self.fingerprint(place, counted.id),
                refused_least: counted.count,
                refused_most: counted.count.saturating_add(counted.taken_off),
            }
        };
        heaviest.into_iter().map(offender).collect()
    }

    /// Events that nobody will be told of.
    pub(crate) fn dropped(&self, rules: &impl InForce) -> u64 {
        self.with_summed(rules, false, |summed| summed.dropped.saturating_add(summed.tracker.dropped))
    }

    /// So many events were drained, and told to nobody.
    pub(crate) fn drop_drained(&self, events: usize) {
        let mut summed = self.summed.lock().unwrap_or_else(PoisonError::into_inner);
        summed.dropped = summed.dropped.saturating_add(events as u64);
    }

    /// Requests decided, and refusals that no tray was free for.
    pub(crate) fn checks_and_unseen(&self) -> (u64, u64) {
        (self.desk.checks(), self.desk.unseen())
    }

    /// What is told of a key's text. A function that panics is one that tells nothing.
    fn told(&self, rule: &str, label: &Arc<str>) -> Option<Arc<str>> {
        match &self.settings.labels {
            Labels::Shown => Some(Arc::clone(label)),
            Labels::LeftOut => None,
            Labels::Redacted(redact) => {
                catch_unwind(AssertUnwindSafe(|| redact(rule, label))).ok().map(Into::into)
            }
        }
    }

    fn fingerprint(&self, place: Place, id: u64) -> u64 {
        self.fingerprints.of(&place.key_of(id)) & ((1 << 48) - 1)
    }
}

impl Summed {
    /// Empties the trays. What is noted in them is told in the order of time, whichever tray it was in.
    fn collect(&mut self, desk: &Desk, now_ns: u64) {
        self.age(now_ns);
        let (mut notes, mut noted, mut counted) = (Vec::<Note>::new(), BTreeSet::new(), Vec::new());
        desk.visit(|tray| {
            let from = notes.len();
            notes.append(&mut tray.notes());
            noted.extend(notes[from..].iter().map(Note::id));
            self.counts.merge(tray.counts(), |id, count| {
                counted.push((id, count));
                // What is noted need not be noted again.
                noted.contains(&id) || self.tracker.knows(id, now_ns)
            });
            self.dropped = self.dropped.saturating_add(tray.take_dropped());
        });
        notes.sort_by_key(|note| note.ns);
        for note in notes {
            if note.answer.is_err() {
                self.labels.entry(note.subject.id()).or_insert_with(|| note.label.as_str().into());
            }
            self.waiting.extend(self.tracker.note(&note));
            if !self.tracker.knows(note.id(), now_ns) {
                desk.forget(note.id());
            }
        }
        counted.into_iter().for_each(|(id, count)| self.tracker.count(id, count));
        let (counts, waiting) = (&self.counts, &mut self.waiting);
        self.labels.retain(|&id, _| counts.holds(id));
        self.tracker.tell_new(|happened| waiting.push(happened));
    }

    fn sweep(&mut self, desk: &Desk, rules: &impl InForce, (now_ns, is_last): (u64, bool)) {
        let waiting = &mut self.waiting;
        let from = waiting.len();
        let now = |subject| rules.standing(subject).map(Facts::standing);
        let is_there = |place| rules.has(place);
        self.tracker.sweep((now_ns, is_last), is_there, now, |happened| waiting.push(happened));
        // Trays know them as told, and would not note the next refusal.
        let recovered = waiting[from..].iter().filter(|happened| happened.kind == EventKind::Recovered);
        recovered.for_each(|happened| desk.forget(happened.subject.id()));
    }

    /// A key's text, if it is known.
    fn label(&self, id: u64) -> Option<Arc<str>> {
        self.labels.get(&id).cloned().or_else(|| self.tracker.label(id))
    }

    /// Drops what nobody drains.
    fn bound(&mut self) {
        let beyond = self.waiting.len().saturating_sub(WAITING_MAX);
        self.waiting.truncate(WAITING_MAX);
        self.dropped = self.dropped.saturating_add(beyond as u64);
    }

    /// Halves what is older than a half-life.
    fn age(&mut self, now_ns: u64) {
        let halved_ns = self.halved_ns.get_or_insert(now_ns);
        let times = now_ns.saturating_sub(*halved_ns) / HALF_LIFE_NS;
        *halved_ns = halved_ns.saturating_add(times * HALF_LIFE_NS);
        (0..times.min(64)).for_each(|_| self.counts.halve());
    }
}
