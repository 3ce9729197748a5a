//! Keys of an `ExactLimiter` are forgotten, judged and told: `remove`, `retain`, `iter`, on one thread.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use common::{SEED, limits, manual, secs};
use proptest::prelude::*;
use tidegate::{Alignment, ExactLimiter, Limit, Manual, Rate, Reason, Standing, Window};

/// The published bucket: capacity 5, 1 a second; full at 9.5 s, 2 left after 3 there.
#[test]
fn a_removed_key_begins_anew() {
    let (limiter, clock) = manual::<String>(Limit::bucket(Rate::per_second(1), 5));
    assert!(limiter.remove("a").is_none(), "never seen");
    clock.set(Duration::from_millis(9_500));
    assert!(limiter.check_n("a", 3).is_ok());
    assert!(limiter.allow("b"));
    let stood = limiter.remove("a").unwrap();
    assert_eq!((stood.limit(), stood.remaining(), stood.reset_after()), (5, 2, secs(3)));
    assert!(limiter.remove("a").is_none(), "removed already");
    assert_eq!(limiter.len(), 1);
    assert_eq!(limiter.check("a").unwrap().remaining(), 4);
    assert_eq!(limiter.peek("b").remaining(), 4, "another key is as it was");
    // A key that owes nothing any more is still there.
    clock.advance(secs(60));
    assert_eq!(limiter.remove("a").map(|stood| stood.remaining()), Some(5));
}

/// Also in the window that it had used up, with what was refused in it.
#[test]
fn a_removed_window_begins_anew() {
    for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        let (limiter, _clock) = manual::<u64>(Limit::window(Window::new(2, secs(60))).align(alignment));
        assert_eq!([0; 4].map(|_| limiter.allow(&7)), [true, true, false, false]);
        let stood = limiter.remove(&7).unwrap();
        assert_eq!((stood.remaining(), stood.windows()[0].observed), (0, 4));
        assert_eq!([0; 3].map(|_| limiter.allow(&7)), [true, true, false]);
    }
}

/// Class: what was forgotten holds the key back. A clock that steps back makes a known key wait; a removal ends that.
#[test]
fn a_removal_is_a_fresh_start_after_a_step_back() {
    let (limiter, clock) = manual::<u64>(Limit::bucket(Rate::per_second(1), 2));
    clock.set(secs(10));
    assert!(limiter.check_n(&7, 2).is_ok());
    clock.set(secs(5));
    assert_eq!(limiter.check(&7).unwrap_err().retry_after(), Some(secs(6)));
    assert_eq!(limiter.remove(&7).map(|stood| stood.retry_after(1)), Some(Some(secs(6))));
    assert_eq!([0; 3].map(|_| limiter.allow(&7)), [true, true, false]);
    assert_eq!(limiter.check(&7).unwrap_err().retry_after(), Some(secs(1)));
    // Removed first, and the clock steps back afterwards: the same.
    assert!(limiter.remove(&7).is_some());
    clock.set(secs(1));
    assert_eq!([0; 3].map(|_| limiter.allow(&7)), [true, true, false]);
}

/// On frozen time nobody is idle, so only a removal makes room.
#[test]
fn a_removed_key_makes_room() {
    let limit = Limit::bucket(Rate::per_second(1), 2);
    let limiter = ExactLimiter::<u64>::builder(limit).max_keys(2).clock(Manual::new()).build().unwrap();
    for round in 0..1_000 {
        assert!(limiter.allow(&(2 * round)) && limiter.allow(&(2 * round + 1)));
        assert_eq!(limiter.check(&u64::MAX).unwrap_err().reason(), Reason::Full);
        assert!(limiter.remove(&(2 * round)).is_some());
        assert!(limiter.allow(&u64::MAX));
        assert_eq!(limiter.check(&(2 * round)).unwrap_err().reason(), Reason::Full);
        assert_eq!(limiter.retain(|_, _| false), 2);
        assert!(limiter.is_empty());
    }
}

#[test]
fn who_is_turned_down_goes_and_nobody_else() {
    let (limiter, _clock) = manual::<u64>(Limit::bucket(Rate::per_second(1), 10));
    assert_eq!(limiter.retain(|_, _| panic!("nobody is there")), 0);
    for key in 1..=9 {
        assert!(limiter.check_n(&key, key).is_ok());
    }
    // 1 to 4 are left of keys 9 to 6.
    assert_eq!(limiter.retain(|_, stands| stands.remaining() > 4), 4);
    assert_eq!(told(&limiter), (1..=5).map(|key| (key, 10 - key)).collect());
    let by_reference: usize = (&limiter).into_iter().count();
    assert_eq!((limiter.len(), by_reference), (5, 5));
    assert_eq!(limiter.retain(|key, _| *key != 2), 1);
    assert_eq!(limiter.remove(&2).map(|stood| stood.remaining()), None);
    assert_eq!(limiter.iter().size_hint(), (0, Some(9)), "places that were used once");
}

/// Each key that `iter` tells, once, and what it has left.
fn told<K: Hash + Eq + Ord + Clone + std::fmt::Debug>(limiter: &ExactLimiter<K, Manual>) -> BTreeMap<K, u64> {
    let mut told = BTreeMap::new();
    for (key, stands) in limiter {
        assert_eq!(told.insert(key.clone(), stands.remaining()), None, "{key:?} is told twice");
    }
    told
}

#[test]
fn a_key_is_judged_again_after_each_charge_256_times_at_most() {
    let (limiter, _clock) = manual::<u64>(Limit::bucket(Rate::per_second(1), 1_000));
    let judged = |charges: usize| {
        assert!(limiter.allow(&7));
        let mut seen = Vec::new();
        let removed = limiter.retain(|key, stands| {
            seen.push(stands.remaining());
            assert!(seen.len() > charges || limiter.allow(key));
            false
        });
        (removed, seen)
    };
    assert_eq!(judged(0), (1, vec![999]));
    assert_eq!(judged(2), (1, vec![999, 998, 997]));
    assert_eq!(judged(usize::MAX), (0, (744..=999).rev().collect()));
    assert_eq!(limiter.peek(&7).remaining(), 743, "it was kept with all its charges");
}

/// Nothing of the limiter is held while a caller's own code runs.
#[test]
fn a_judge_may_use_the_limiter_and_may_panic() {
    let (limiter, _clock) = manual::<u64>(Limit::bucket(Rate::per_second(1), 10));
    (0..4).for_each(|key| assert!(limiter.allow(&key)));
    // Another was faster: it counts as its removal.
    let removed = limiter.retain(|key, _| limiter.remove(key).is_none());
    assert_eq!((removed, limiter.len()), (0, 0));
    (0..4).for_each(|key| assert!(limiter.allow(&key)));
    for (key, _) in &limiter {
        assert!(limiter.remove(&key).is_some() && limiter.allow(&(key + 100)));
    }
    let mut left = 2;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        limiter.retain(|_, _| {
            left -= 1;
            assert!(left > 0, "on purpose");
            false
        })
    }));
    assert!(panicked.is_err());
    assert_eq!((limiter.len(), limiter.retain(|_, _| false)), (3, 3));
}

/// Its hash is that of all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Alike(u64);

impl Hash for Alike {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(7);
    }
}

#[test]
fn keys_of_equal_hash_are_told_and_removed_apart() {
    let (limiter, _clock) = manual::<Alike>(Limit::bucket(Rate::per_second(1), 10));
    for key in 1..=9 {
        assert!(limiter.check_n(&Alike(key), key).is_ok());
    }
    assert_eq!(limiter.remove(&Alike(3)).map(|stood| stood.remaining()), Some(7));
    assert_eq!(limiter.retain(|Alike(key), _| *key != 5), 1);
    let left = [1, 2, 4, 6, 7, 8, 9].map(|key| (Alike(key), 10 - key));
    assert_eq!(told(&limiter), BTreeMap::from(left));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Check {
        key: u16,
        cost: u64,
    },
    Remove {
        key: u16,
    },
    /// Turns down the keys that leave this rest.
    Retain {
        rest: u64,
    },
    Advance {
        ns: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..6_u16, 1..30_u64).prop_map(|(key, cost)| Step::Check { key, cost }),
        2 => (0..6_u16).prop_map(|key| Step::Remove { key }),
        1 => (0..3_u64).prop_map(|rest| Step::Retain { rest }),
        2 => (0..3_000_000_000_u64).prop_map(|ns| Step::Advance { ns }),
    ];
    prop::collection::vec(step, 1..60)
}

/// Keys that are never forgotten, in a limiter of their own for each life of theirs.
struct Lives {
    limiters: Vec<ExactLimiter<u16, Manual>>,
    /// Which life a key lives, and whether it is there.
    keys: HashMap<u16, (usize, bool)>,
}

impl Lives {
    fn limiter(&mut self, key: u16) -> (&ExactLimiter<u16, Manual>, &mut bool) {
        let (life, is_there) = self.keys.entry(key).or_default();
        (&self.limiters[*life], is_there)
    }

    /// How a key stood that has been forgotten by now.
    fn end(&mut self, key: u16) -> Option<String> {
        let (life, is_there) = self.keys.entry(key).or_default();
        let stood = is_there.then(|| format!("{:?}", self.limiters[*life].peek(&key)));
        *life += usize::from(*is_there);
        *is_there = false;
        stood
    }

    fn there(&self) -> BTreeMap<u16, Standing> {
        let there = self.keys.iter().filter(|(_, (_, is_there))| *is_there);
        there.map(|(&key, &(life, _))| (key, self.limiters[life].peek(&key))).collect()
    }
}

proptest! {
    /// Every answer is that of a limiter which the key has never met before its present life, and who is there is
    /// told as it is.
    #[test]
    fn every_life_is_that_of_a_new_key(limit in limits(40), steps in steps()) {
        let clock = Manual::new();
        let build = || {
            let builder = ExactLimiter::<u16>::builder(limit).seed(SEED).max_keys(8).clock(clock.clone());
            builder.build().unwrap()
        };
        let limiter = build();
        let mut lives = Lives { limiters: steps.iter().map(|_| build()).collect(), keys: HashMap::new() };
        for step in steps {
            match step {
                Step::Check { key, cost } => {
                    let (twin, is_there) = lives.limiter(key);
                    let (answer, expected) = (limiter.check_n(&key, cost), twin.check_n(&key, cost));
                    prop_assert_eq!(format!("{answer:?}"), format!("{expected:?}"));
                    *is_there |= !answer.is_err_and(|denied| denied.reason() == Reason::TooLarge);
                }
                Step::Remove { key } => {
                    let stood = limiter.remove(&key).map(|stood| format!("{stood:?}"));
                    prop_assert_eq!(stood, lives.end(key));
                }
                Step::Retain { rest } => {
                    let mut judged = BTreeMap::new();
                    let turns_down = |stands: &Standing| stands.remaining() % 3 == rest;
                    let removed = limiter.retain(|&key, stands| {
                        assert!(judged.insert(key, format!("{stands:?}")).is_none(), "{key} is judged twice");
                        !turns_down(&stands)
                    });
                    let there = lives.there();
                    let expected = there.iter().map(|(&key, stands)| (key, format!("{stands:?}")));
                    prop_assert_eq!(judged, expected.collect());
                    let down = there.iter().filter(|(_, stands)| turns_down(stands)).map(|(&key, _)| key);
                    let down: Vec<u16> = down.collect();
                    prop_assert_eq!(removed, down.len());
                    down.into_iter().for_each(|key| _ = lives.end(key));
                }
                Step::Advance { ns } => clock.advance(Duration::from_nanos(ns)),
            }
            let expected = lives.there().into_iter().map(|(key, stands)| (key, stands.remaining()));
            prop_assert_eq!(told(&limiter), expected.collect());
            prop_assert_eq!(limiter.len(), lives.there().len());
        }
    }
}

/// A key that was forgotten comes back in the same place: what was paid for it before is nothing to it now.
#[test]
fn a_receipt_of_a_forgotten_key_is_void() {
    let limiter = ExactLimiter::<String>::builder(Limit::bucket(Rate::per_hour(1), 9)).clock(Manual::new());
    let limiter = limiter.build().unwrap();
    let forget: [fn(&ExactLimiter<String, Manual>); 2] = [
        |limiter| assert!(limiter.remove("a").is_some()),
        |limiter| assert_eq!(limiter.retain(|_, _| false), 1),
    ];
    for forget in forget {
        let receipt = limiter.take("a", 4).unwrap();
        forget(&limiter);
        assert!(limiter.check_n("a", 5).is_ok());
        assert_eq!((limiter.refund(receipt), limiter.peek("a").remaining()), (0, 4));
        assert!(limiter.reset("a"));
    }
}
