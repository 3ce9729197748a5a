//! What a policy tells of its refusals, beside the verdicts that its callers had.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate::Manual;
use tidegate::policy::{Event, EventKind, Policy, Verdict};

/// A rule's name, whether it only watches (what it saw then is told apart), and the number of one of its limits.
type Limit = (Arc<str>, bool, usize);

/// What each key's events have told so far.
#[derive(Default)]
struct Key {
    is_refusing: bool,
    /// Refusals that were told since the key was last well.
    told: u64,
}

/// The refusals of one history.
#[derive(Default)]
pub struct Told {
    /// By limit and the window that was waited for.
    refused: BTreeMap<(Limit, &'static str), u64>,
    /// By limit and the key's fingerprint.
    keys: BTreeMap<(Limit, u64), Key>,
    /// The refusals of which recovered keys have told.
    recovered: BTreeMap<Limit, u64>,
}

impl Told {
    pub fn count(&mut self, verdict: &Verdict) {
        for rule in verdict.rules() {
            for (number, limit) in rule.limits().enumerate() {
                let Some(denied) = limit.denied() else { continue };
                let limit = (rule.name().into(), rule.is_shadow(), number);
                *self.refused.entry((limit, denied.binding().as_str())).or_default() += 1;
            }
        }
    }

    /// Hears what there is to tell.
    pub fn drain(&mut self, policy: &Policy<Manual>, was_replaced: bool) {
        policy.drain_events(|event| self.hear(&event, was_replaced));
    }

    /// A key is warned while it is well, refused once, told of for as long as it is refused, and then well again. Where its
    /// rule is gone the end comes at once, and tells of the last refusals too.
    fn hear(&mut self, event: &Event, was_replaced: bool) {
        let limit = (Arc::clone(&event.rule), event.is_shadow, event.limit_number);
        let key = self.keys.entry((limit.clone(), event.fingerprint)).or_default();
        match event.kind {
            EventKind::Warned => assert!(!key.is_refusing && event.refused == 0, "{event:?}"),
            EventKind::Refused => {
                assert!(!key.is_refusing && event.refused > 0, "{event:?}");
                *key = Key { is_refusing: true, told: event.refused };
            }
            EventKind::StillRefusing => {
                assert!(key.is_refusing && event.refused > 0, "{event:?}");
                key.told += event.refused;
            }
            EventKind::Recovered => {
                let untold = event.refused.checked_sub(key.told);
                assert!(key.is_refusing && untold.is_some(), "{event:?}, told {}", key.told);
                assert!(untold == Some(0) || was_replaced, "{event:?}, told {}", key.told);
                *self.recovered.entry(limit).or_default() += event.refused;
                *key = Key::default();
            }
            other => unreachable!("{other} is no kind of today"),
        }
    }

    /// At the end, when all keys have had the time to recover.
    pub fn assert_whole(&self, policy: &Policy<Manual>) {
        let counts = policy.counts().expect("events are on");
        for rule in &counts.rules {
            for (number, limit) in rule.limits.iter().enumerate() {
                for &(window, counted) in &limit.refusals {
                    let limit = (Arc::clone(&rule.name), rule.is_shadow, number);
                    let refused = self.refused.get(&(limit, window.as_str())).copied().unwrap_or(0);
                    assert_eq!(counted, refused, "{} {number} {window}", rule.name);
                }
            }
        }
        assert!(self.keys.values().all(|key| !key.is_refusing), "a key has not recovered");
        assert_eq!(counts.refusals_unseen, 0, "one thread always finds a place for its notes");
        let mut refused = BTreeMap::<&Limit, u64>::new();
        for ((limit, _), count) in &self.refused {
            *refused.entry(limit).or_default() += count;
        }
        for (limit, refused) in refused {
            let told = self.recovered.get(limit).copied().unwrap_or(0);
            let is_whole = told == refused || (told < refused && counts.events_dropped > 0);
            assert!(is_whole, "{limit:?}: told {told} of {refused}, {} dropped", counts.events_dropped);
        }
    }
}
