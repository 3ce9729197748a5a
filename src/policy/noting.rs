//! What checks leave for the host: see [`events`](super::events).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::book::{Book, Ruling};
use super::events::{
    Counts, Desk, Event, InForce, Label, LimitCounts, NamedRule, Names, Note, Noted, Offender, Place,
    RuleCounts, Subject,
};
use super::key::Key;
use super::request::Request;
use super::rule::Rule;
use super::verdict::{Answer, Verdict};
use crate::answer::{Pass, Standing};
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
    pub(super) fn new<C>(names: &Names, rule: &Rule, limiters: &[Arc<Limiter<C>>]) -> Self {
        let threshold = |limiter: &Arc<Limiter<C>>| limiter.core.engine.rule.threshold(rule.warn_percent);
        Self {
            named: names.of(&rule.name, rule.shadow),
            thresholds: limiters.iter().map(threshold).collect(),
        }
    }
}

impl<C: Clock> Ruling<C> {
    /// The limiters, each with what of its words is worth a warning.
    #[inline]
    pub(super) fn counted(&self) -> impl Iterator<Item = (&Limiter<C>, &Threshold)> {
        self.limiters.iter().map(|limiter| &**limiter).zip(&self.noting.thresholds)
    }

    /// Whether what a limit answered is worth a word: it refused, or the charge left the key above the threshold, which may be
    /// known already.
    #[inline(always)]
    pub(super) fn is_notable(
        &self,
        (limiter, threshold): (&Limiter<C>, &Threshold),
        answer: &Answer,
        is_above: Option<bool>,
    ) -> bool {
        match (answer, is_above) {
            (Err(_), _) => true,
            (Ok(_), Some(is_above)) => is_above,
            (Ok(pass), None) if limiter.core.engine.eras.is_changed() => self.is_above(pass),
            (Ok(pass), None) => pass.snapshot.reaches(threshold),
        }
    }

    /// Whether a charge left the key above the threshold of the limit that decided, whichever that was.
    #[cold]
    fn is_above(&self, pass: &Pass) -> bool {
        pass.snapshot.reaches(&pass.snapshot.rule.threshold(self.rule.warn_percent))
    }
}

impl<C: Clock> Book<C> {
    /// Leaves what a limit of a rule answered.
    #[inline(never)]
    pub(super) fn note(
        &self,
        desk: &Desk,
        request: &Request<'_>,
        (ruling, limit, hash): (&Ruling<C>, usize, u64),
        answer: &Answer,
    ) {
        let limit = u8::try_from(limit).unwrap_or(u8::MAX);
        let Noting { named, .. } = &ruling.noting;
        let subject = Subject { place: Place::new(named.number, limit), hash };
        // Made where there is room for it alone: it is large.
        let note = || Note {
            subject,
            ns: ruling.limiters.first().map_or(0, |limiter| limiter.clock().coarse()),
            answer: *answer,
            label: Label::of(&Key::new(&ruling.rule.key, request, &self.digests)),
        };
        match answer {
            Ok(_) => desk.warned(subject, note),
            Err(denied) => {
                named.refusals.add(limit, denied);
                desk.refused(subject, note);
            }
        }
    }

    /// Leaves what a verdict says that was made without: where an answer may be of a key that was not charged.
    pub(super) fn note_verdict(&self, desk: &Desk, request: &Request<'_>, verdict: &Verdict) {
        for (rule, number) in verdict.rules().zip(verdict.rule_numbers()) {
            let ruling = &self.rules[number as usize];
            let key = Key::new(&ruling.rule.key, request, &self.digests);
            for limit in rule.limits() {
                let warn_percent = u64::from(ruling.rule.warn_percent);
                let Some(limiter) = ruling.limiters.get(limit.number()) else { continue };
                let hash = limiter.hash_of(&key);
                let answer = limit.answer();
                if answer.is_err() || limit.used_percent() >= warn_percent {
                    self.note(desk, request, (ruling, limit.number(), hash), &answer);
                }
            }
        }
    }

    fn numbered(&self) -> BTreeMap<u32, &Ruling<C>> {
        self.rules.iter().map(|ruling| (ruling.noting.named.number, ruling)).collect()
    }

    /// See [`Policy::drain_events`](super::Policy::drain_events) and, for `is_last`,
    /// [`drain_last_events`](super::Policy::drain_last_events).
    pub(super) fn drain_events(&self, noted: &Noted, names: &Names, clock: &C, is_last: bool) -> Vec<Event> {
        let rules = Numbered { book: self, rules: self.numbered(), clock };
        noted.drain(&rules, |number| names.named(number), is_last)
    }

    /// See [`Policy::offenders`](super::Policy::offenders).
    pub(super) fn offenders(&self, noted: &Noted, names: &Names, clock: &C, count: usize) -> Vec<Offender> {
        let rules = Numbered { book: self, rules: self.numbered(), clock };
        noted.offenders(count, &rules, |number| names.named(number))
    }

    /// See [`Policy::counts`](super::Policy::counts).
    pub(super) fn counts(&self, noted: &Noted, clock: &C) -> Counts {
        let (checks, refusals_unseen) = noted.checks_and_unseen();
        let rule = |ruling: &Ruling<C>| RuleCounts {
            name: Arc::clone(&ruling.noting.named.name),
            is_shadow: ruling.noting.named.is_shadow,
            limits: (ruling.limiters.iter().enumerate())
                .map(|(number, limiter)| LimitCounts {
                    refusals: ruling.noting.named.refusals.of(number, &limiter.fresh().windows()),
                    stats: limiter.stats(),
                })
                .collect(),
        };
        let in_force = Numbered { book: self, rules: self.numbered(), clock };
        Counts {
            checks,
            rules: self.rules.iter().map(rule).collect(),
            events_dropped: noted.dropped(&in_force),
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

impl<C> Numbered<'_, C> {
    fn limiter(&self, place: Place) -> Option<&Limiter<C>> {
        let limiters = &self.rules.get(&place.rule())?.limiters;
        limiters.get(usize::from(place.limit())).map(|limiter| &**limiter)
    }
}

impl<C: Clock> InForce for Numbered<'_, C> {
    fn policy(&self) -> &str {
        self.book.policy_name()
    }

    fn has(&self, place: Place) -> bool {
        self.limiter(place).is_some()
    }

    fn standing(&self, subject: Subject) -> Option<Standing> {
        Some(self.limiter(subject.place)?.peek_hashed(subject.hash))
    }

    fn now(&self) -> (u64, Duration) {
        (self.clock.precise(), self.clock.unix())
    }
}
