//! What checks leave for the host: see [`events`](super::events).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::book::{Book, Ruling};
use super::events::{
    Counts, Desk, Event, InForce, Label, LimitCounts, NamedRule, Names, Noted, Offender, Place, RuleCounts,
    Seen, Subject,
};
use super::key::Key;
use super::request::Request;
use super::verdict::{Answer, Verdict};
use crate::answer::{Denied, Pass, Standing};
use crate::limiter::Limiter;
use crate::time::Clock;
use crate::word::Threshold;

/// What noting needs of a rule.
pub(super) struct Noting {
    pub(super) named: Arc<NamedRule>,
    /// Of each limit, what of its word is worth a warning.
    thresholds: Box<[Threshold]>,
}

impl Noting {
    pub(super) fn new<C>(names: &Names, name: &str, warn_percent: u8, limiters: &[Arc<Limiter<C>>]) -> Self {
        let threshold = |limiter: &Arc<Limiter<C>>| limiter.core.engine.rule.threshold(warn_percent);
        Self { named: names.of(name), thresholds: limiters.iter().map(threshold).collect() }
    }
}

impl<C: Clock> Ruling<C> {
    /// Leaves what a limit answered to a request that it decided, if it is worth a word.
    #[inline(always)]
    pub(super) fn note(
        &self,
        desk: &Desk,
        (number, hash): (usize, u64),
        answer: &Answer,
        label: impl FnOnce() -> Label,
    ) {
        match answer {
            Ok(pass) => {
                if self.is_above(number, pass) {
                    self.note_pass(desk, (number, hash), pass, label);
                }
            }
            Err(denied) => self.note_denied(desk, (number, hash), denied, label),
        }
    }

    /// Whether the charge left the key above its threshold.
    #[inline(always)]
    fn is_above(&self, number: usize, pass: &Pass) -> bool {
        let (Some(limiter), Some(threshold)) =
            (self.limiters.get(number), self.noting.thresholds.get(number))
        else {
            return false;
        };
        if limiter.core.engine.eras.is_changed() {
            // It was decided by a limit other than the limiter was built with.
            return pass.snapshot.reaches(&pass.snapshot.rule.threshold(self.rule.warn_percent));
        }
        pass.snapshot.reaches(threshold)
    }

    fn subject(&self, number: usize, hash: u64) -> Subject {
        let limit = u8::try_from(number).unwrap_or(u8::MAX);
        Subject { place: Place { rule: self.noting.named.number, limit }, hash }
    }

    fn ns(&self, number: usize) -> u64 {
        self.limiters.get(number).map_or(0, |limiter| limiter.clock().coarse())
    }

    #[cold]
    #[inline(never)]
    fn note_pass(
        &self,
        desk: &Desk,
        (number, hash): (usize, u64),
        pass: &Pass,
        label: impl FnOnce() -> Label,
    ) {
        let seen = Seen { subject: self.subject(number, hash), ns: self.ns(number), answer: pass };
        desk.warned(seen, label);
    }

    #[inline(never)]
    fn note_denied(
        &self,
        desk: &Desk,
        (number, hash): (usize, u64),
        denied: &Denied,
        label: impl FnOnce() -> Label,
    ) {
        let subject = self.subject(number, hash);
        self.noting.named.refusals.add(subject.place.limit, denied);
        desk.refused(Seen { subject, ns: self.ns(number), answer: denied }, label);
    }
}

impl<C: Clock> Book<C> {
    /// Leaves what a verdict says that was made without: where an answer may be of a key that was not charged.
    pub(super) fn note_verdict(&self, desk: &Desk, request: &Request<'_>, verdict: &Verdict) {
        for (rule, number) in verdict.rules().zip(verdict.rule_numbers()) {
            let ruling = &self.rules[number as usize];
            let key = || Key::new(&ruling.rule.key, request, &self.digests);
            for limit in rule.limits() {
                let warn_percent = u64::from(ruling.rule.warn_percent);
                let Some(limiter) = ruling.limiters.get(limit.number()) else { continue };
                let place = (limit.number(), limiter.hash_of(&key()));
                match limit.answer() {
                    Err(denied) => ruling.note_denied(desk, place, &denied, || Label::of(&key())),
                    Ok(pass) if limit.used_percent() >= warn_percent => {
                        ruling.note_pass(desk, place, &pass, || Label::of(&key()));
                    }
                    Ok(_) => {}
                }
            }
        }
    }

    fn numbered(&self) -> BTreeMap<u32, &Ruling<C>> {
        self.rules.iter().map(|ruling| (ruling.noting.named.number, ruling)).collect()
    }

    /// See [`Policy::drain_events`](super::Policy::drain_events).
    pub(super) fn drain_events(&self, noted: &Noted, names: &Names, clock: &C) -> Vec<Event> {
        noted.drain(&Numbered { book: self, rules: self.numbered(), clock }, |number| names.name(number))
    }

    /// See [`Policy::offenders`](super::Policy::offenders).
    pub(super) fn offenders(&self, noted: &Noted, names: &Names, clock: &C, count: usize) -> Vec<Offender> {
        let rules = Numbered { book: self, rules: self.numbered(), clock };
        noted.offenders(count, &rules, |number| names.name(number))
    }

    /// See [`Policy::counts`](super::Policy::counts).
    pub(super) fn counts(&self, noted: &Noted, clock: &C) -> Counts {
        let (checks, refusals_unseen) = noted.checks_and_unseen();
        let rule = |ruling: &Ruling<C>| RuleCounts {
            name: Arc::clone(&ruling.noting.named.name),
            is_shadow: ruling.rule.shadow,
            limits: (ruling.limiters.iter().enumerate())
                .map(|(number, limiter)| LimitCounts {
                    refusals: ruling.noting.named.refusals.of(number, &limiter.fresh().windows()),
                    stats: limiter.stats(),
                })
                .collect(),
        };
        Counts {
            checks,
            rules: self.rules.iter().map(rule).collect(),
            events_dropped: noted.dropped(clock.precise()),
            refusals_unseen,
        }
    }
}

/// The rules in force by the numbers of their names.
struct Numbered<'b, C> {
    book: &'b Book<C>,
    rules: BTreeMap<u32, &'b Ruling<C>>,
    clock: &'b C,
}

impl<C: Clock> InForce for Numbered<'_, C> {
    fn policy(&self) -> &str {
        self.book.policy_name()
    }

    fn is_shadow(&self, rule: u32) -> Option<bool> {
        self.rules.get(&rule).map(|ruling| ruling.rule.shadow)
    }

    fn standing(&self, subject: Subject) -> Option<Standing> {
        let ruling = self.rules.get(&subject.place.rule)?;
        Some(ruling.limiters.get(usize::from(subject.place.limit))?.peek_hashed(subject.hash))
    }

    fn now(&self) -> (u64, Duration) {
        (self.clock.precise(), self.clock.unix())
    }
}
