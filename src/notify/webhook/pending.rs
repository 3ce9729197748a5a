//! What an endpoint has not been told yet.

use std::sync::Arc;
use std::time::Duration;

use crate::policy::Event;

/// The most entries that wait. Of more, it is counted how many there were.
pub(super) const ENTRIES_MAX: usize = 100;

/// Events of one kind, of one key under one window of a limit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// The latest of them, with the refusals of all.
    pub(super) event: Event,
    /// How many there were.
    pub(super) times: u64,
    /// When the first was.
    pub(super) first_at: Duration,
}

impl Entry {
    fn new(event: &Event) -> Self {
        Self { event: event.clone(), times: 1, first_at: event.at }
    }

    /// Whether it is of the same thing. The fingerprint first: it tells most apart.
    fn is_of(&self, event: &Event) -> bool {
        let own = &self.event;
        own.fingerprint == event.fingerprint
            && own.kind == event.kind
            && (own.limit_number, own.window) == (event.limit_number, event.window)
            && own.rule == event.rule
            && own.policy == event.policy
    }

    fn add(&mut self, event: &Event) {
        let refused = self.event.refused.saturating_add(event.refused);
        self.event = Event { refused, ..event.clone() };
        self.times += 1;
    }
}

/// Entries in the order of their first events, and how many events found no room.
#[derive(Debug, Default)]
pub(super) struct Pending {
    entries: Vec<Entry>,
    left_out: u64,
}

impl Pending {
    /// Whether there was room.
    pub(super) fn add(&mut self, event: &Event) -> bool {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.is_of(event)) {
            entry.add(event);
        } else if self.entries.len() < ENTRIES_MAX {
            self.entries.push(Entry::new(event));
        } else {
            self.left_out += 1;
            return false;
        }
        true
    }

    /// No entry means that there is nothing to tell: how many were left out the next message tells, whenever it is made.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The policy that the next message is about.
    pub(super) fn policy(&self) -> Option<&Arc<str>> {
        self.entries.first().map(|entry| &entry.event.policy)
    }

    /// How many events have found no room, as far as no message tells it.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Takes the entries of that policy for as long as they fit, the first first, and forgets how many were left out. Returns how many events
    /// they were.
    pub(super) fn take(&mut self, policy: &str, mut fits: impl FnMut(&Entry) -> bool) -> u64 {
        let of_policy = self.entries.iter().take_while(|entry| &*entry.event.policy == policy);
        let taken = of_policy.take_while(|&entry| fits(entry)).count();
        self.left_out = 0;
        self.entries.drain(..taken).map(|entry| entry.times).sum()
    }

    /// A message that told of so many left out was accepted by nobody: the next one tells it too.
    pub(super) fn tell_again(&mut self, left_out: u64) {
        self.left_out += left_out;
    }

    /// Forgets everything. Returns how many events that were, those left out not among them.
    pub(super) fn clear(&mut self) -> u64 {
        std::mem::take(self).entries.iter().map(|entry| entry.times).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::made_up::event;
    use super::*;
    use crate::policy::EventKind;

    #[test]
    fn events_of_one_kind_and_key_are_one_entry() {
        let mut pending = Pending::default();
        let at = |kind, key, refused, at| {
            let mut event = event(kind, key);
            (event.refused, event.at) = (refused, Duration::from_secs(at));
            event
        };
        for event in [
            at(EventKind::StillRefusing, 1, 7, 10),
            at(EventKind::StillRefusing, 2, 1, 11),
            at(EventKind::StillRefusing, 1, 5, 20),
            at(EventKind::Recovered, 1, 12, 30),
        ] {
            assert!(pending.add(&event));
        }
        let told: Vec<_> = pending
            .entries
            .iter()
            .map(|entry| {
                (entry.event.refused, entry.times, entry.first_at.as_secs(), entry.event.at.as_secs())
            })
            .collect();
        assert_eq!(told, [(12, 2, 10, 20), (1, 1, 11, 11), (12, 1, 30, 30)]);
        let mut full = at(EventKind::Recovered, 1, u64::MAX, 40);
        assert!(pending.add(&full));
        assert_eq!(pending.entries[2].event.refused, u64::MAX);
        full.window = crate::decision::WindowName::Sustain;
        assert!(pending.add(&full));
        assert_eq!(pending.entries.len(), 4);
    }

    #[test]
    fn what_does_not_fit_stays_and_what_found_no_room_is_counted() {
        let mut pending = Pending::default();
        let added = (0..250).filter(|&key| pending.add(&event(EventKind::Refused, key))).count();
        assert_eq!((added, pending.left_out()), (100, 150));
        assert!(pending.add(&event(EventKind::Refused, 0)));
        let mut room = 40;
        let taken = pending.take("shop", |_| {
            room -= 1;
            room >= 0
        });
        assert_eq!((taken, pending.left_out(), pending.entries.len()), (41, 0, 60));
        assert_eq!(pending.entries[0].event.fingerprint, 40);
        assert_eq!(pending.take("another", |_| true), 0);
        assert_eq!((pending.clear(), pending.is_empty()), (60, true));
    }

    proptest! {
        /// Against a map without an end: nothing is lost that is not counted.
        #[test]
        fn every_event_is_told_or_counted(keys in prop::collection::vec((0..130_u64, 0..3_u64), 0..600)) {
            let (mut pending, mut naive, mut left_out) = (Pending::default(), HashMap::<u64, (u64, u64)>::new(), 0);
            for (key, refused) in keys {
                let mut event = event(EventKind::Refused, key);
                event.refused = refused;
                let is_known = naive.contains_key(&key);
                if is_known || naive.len() < ENTRIES_MAX {
                    let (times, sum) = naive.entry(key).or_default();
                    (*times, *sum) = (*times + 1, *sum + refused);
                } else {
                    left_out += 1;
                }
                prop_assert_eq!(pending.add(&event), naive.contains_key(&key));
            }
            prop_assert_eq!(pending.left_out(), left_out);
            let told: HashMap<u64, (u64, u64)> =
                pending.entries.iter().map(|entry| (entry.event.fingerprint, (entry.times, entry.event.refused))).collect();
            prop_assert_eq!(told, naive);
        }
    }
}
