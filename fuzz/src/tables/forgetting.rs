//! What only the exact table can do: forget a key, judge all keys, tell them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Game, Key, Subject, TIME_MAX_NS};

impl Game {
    /// A key is forgotten as it stood, and known no more.
    pub(super) fn remove(&mut self, key: u64) {
        let Subject::Exact(limiter) = &self.subject else { return };
        let (key, known) = (key % self.subject.keys(), limiter.len());
        let stands = format!("{:?}", limiter.peek(&key));
        let stood = limiter.remove(&key);
        assert_eq!(limiter.len(), known - usize::from(stood.is_some()));
        assert!(stood.is_some() || !self.is_surely_there(key), "key {key} was gone: {:?}", self.keys[&key]);
        assert!(
            stood.as_ref().is_none_or(|stood| format!("{stood:?}") == stands),
            "{stood:?} instead of {stands}"
        );
        assert_eq!(limiter.remove(&key).map(|stood| stood.remaining()), None);
        let fresh = limiter.peek(&key);
        assert_eq!((fresh.remaining(), fresh.reset_after()), (self.asked.cost_max, Duration::ZERO));
        self.keys.remove(&key);
    }

    /// Everybody is judged as told by `peek`; who is turned down is forgotten, and nobody else.
    pub(super) fn retain(&mut self, down: u32, remaining_least: u64) {
        let Subject::Exact(limiter) = &self.subject else { return };
        let known = limiter.len();
        let mut judged = BTreeMap::new();
        let removed = limiter.retain(|&key, stands| {
            assert_eq!(format!("{stands:?}"), format!("{:?}", limiter.peek(&key)));
            let keeps = down >> (key % 32) & 1 == 0 && stands.remaining() >= remaining_least;
            assert_eq!(judged.insert(key, keeps), None, "key {key} is judged twice");
            keeps
        });
        let turned_down = judged.values().filter(|&&keeps| !keeps).count();
        assert_eq!((judged.len(), removed, limiter.len()), (known, turned_down, known - turned_down));
        let is_missed = |&&key: &&u64| self.is_surely_there(key) && !judged.contains_key(&key);
        assert_eq!(self.keys.keys().find(is_missed), None, "not judged");
        self.keys.retain(|key, _| judged.get(key) != Some(&false));
        self.iter();
    }

    /// Each key that is there is told once, as it stands.
    pub(super) fn iter(&self) {
        let Subject::Exact(limiter) = &self.subject else { return };
        let mut told = BTreeSet::new();
        for (key, stands) in limiter.iter() {
            assert_eq!(format!("{stands:?}"), format!("{:?}", limiter.peek(&key)));
            assert!(told.insert(key), "key {key} is told twice");
        }
        assert_eq!(told.len(), limiter.len());
        let is_missed = |&&key: &&u64| self.is_surely_there(key) && !told.contains(&key);
        assert_eq!(self.keys.keys().find(is_missed), None, "not told");
    }

    /// Whether a key owes something by what it was told last.
    fn is_surely_there(&self, key: u64) -> bool {
        self.latest_ns <= TIME_MAX_NS && self.keys.get(&key).is_some_and(Key::owes)
    }
}
