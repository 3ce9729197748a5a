//! The host's side: what the trays held, summed up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::desk::{Desk, IDS, Place, Subject};
use super::event::{Event, Offender};
use super::facts::Facts;
use super::frequent::{Counted, Frequent};
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
    /// Whether the rule of this number is there, and only watches.
    fn is_shadow(&self, rule: u32) -> Option<bool>;
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

    /// Does something with what is summed up. Never waits for a check; hosts wait for each other.
    fn with_summed<T>(&self, now_ns: u64, act: impl FnOnce(&mut Summed) -> T) -> T {
        // Who panicked with the lock held was the host's own function, or had no memory; sums stay sums.
        let mut summed = self.summed.lock().unwrap_or_else(PoisonError::into_inner);
        summed.collect(&self.desk, now_ns);
        act(&mut summed)
    }

    /// What has happened since the last call, in the order of time; if it `is_last`, also what a later one would tell of until now.
    pub(crate) fn drain(
        &self,
        rules: &impl InForce,
        name: impl Fn(u32) -> Arc<str>,
        is_last: bool,
    ) -> Vec<Event> {
        let (now_ns, unix) = rules.now();
        let mut happened = self.with_summed(now_ns, |summed| {
            summed.sweep(now_ns, rules, is_last);
            std::mem::take(&mut summed.waiting)
        });
        happened.sort_by_key(|happened| happened.ns);
        let policy: Arc<str> = rules.policy().into();
        let event = |happened: Happened| {
            let Happened { kind, ns, subject, label, facts, refused } = happened;
            let Facts { window, limit, period, used, remaining, reason, retry_after, .. } = facts;
            let (rule, id) = (name(subject.place.rule()), subject.id());
            let ago = Duration::from_nanos(now_ns.saturating_sub(ns));
            Event {
                kind,
                at: unix.saturating_sub(ago),
                policy: Arc::clone(&policy),
                is_shadow: rules.is_shadow(subject.place.rule()).unwrap_or(false),
                limit_number: subject.place.limit().into(),
                window,
                key: self.told(&rule, &label),
                rule,
                fingerprint: self.fingerprint(id),
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
        name: impl Fn(u32) -> Arc<str>,
    ) -> Vec<Offender> {
        let heaviest = self.with_summed(rules.now().0, |summed| {
            let mut all: Vec<_> = summed.counts.iter().collect();
            // Of equals always in the same order.
            all.sort_unstable_by_key(|counted| (std::cmp::Reverse(counted.count), counted.id));
            all.truncate(most);
            let labelled = |counted: Counted| (counted, summed.labels.get(&counted.id).cloned());
            all.into_iter().map(labelled).collect::<Vec<_>>()
        });
        let offender = |(counted, label): (Counted, Option<Arc<str>>)| {
            let place = Place::of_word(counted.value);
            let rule = name(place.rule());
            Offender {
                is_shadow: rules.is_shadow(place.rule()).unwrap_or(false),
                limit_number: place.limit().into(),
                key: label.and_then(|label| self.told(&rule, &label)),
                rule,
                fingerprint: self.fingerprint(counted.id),
                refused_least: counted.count,
                refused_most: counted.count.saturating_add(counted.taken_off),
            }
        };
        heaviest.into_iter().map(offender).collect()
    }

    /// Events that nobody will be told of.
    pub(crate) fn dropped(&self, now_ns: u64) -> u64 {
        self.with_summed(now_ns, |summed| summed.dropped.saturating_add(summed.tracker.dropped))
    }

    /// Requests decided, and refusals that no tray was free for.
    pub(crate) fn checks_and_unseen(&self) -> (u64, u64) {
        (self.desk.checks(), self.desk.unseen())
    }

    fn told(&self, rule: &str, label: &Arc<str>) -> Option<Arc<str>> {
        match &self.settings.labels {
            Labels::Shown => Some(Arc::clone(label)),
            Labels::LeftOut => None,
            Labels::Redacted(redact) => Some(redact(rule, label).into()),
        }
    }

    fn fingerprint(&self, id: u64) -> u64 {
        self.fingerprints.of(&id) & ((1 << 48) - 1)
    }
}

impl Summed {
    /// Empties the trays.
    fn collect(&mut self, desk: &Desk, now_ns: u64) {
        self.age(now_ns);
        desk.visit(|tray| {
            for note in tray.notes().drain(..) {
                if note.answer.is_err() {
                    self.labels.entry(note.subject.id()).or_insert_with(|| note.label.as_str().into());
                }
                self.waiting.extend(self.tracker.note(&note));
            }
            self.counts.merge(tray.counts(), |id, count| self.tracker.count(id, count));
            self.dropped = self.dropped.saturating_add(tray.take_dropped());
        });
        let (counts, waiting) = (&self.counts, &mut self.waiting);
        self.labels.retain(|&id, _| counts.holds(id));
        self.tracker.tell_new(|happened| waiting.push(happened));
        self.bound();
    }

    fn sweep(&mut self, now_ns: u64, rules: &impl InForce, is_last: bool) {
        let waiting = &mut self.waiting;
        let now = |subject| rules.standing(subject).map(Facts::standing);
        self.tracker.sweep(now_ns, is_last, now, |happened| waiting.push(happened));
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
