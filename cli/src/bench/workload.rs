//! Which checks are timed, on which limiters, and how they must be answered.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tidegate::{Limit, Limiter, Rate};

use super::Failure;
use crate::sample::Dice;

/// Keys that are decided together where keys come in batches.
pub const BATCH: usize = 16;

/// Checks between two looks at the time.
pub(super) const CHUNK: usize = 2_048;

/// Keys of many in the order in which they are checked: 16 MiB of them, so that no cache keeps those of one
/// slice for the next. Threads begin far from each other.
const STREAM_LEN: usize = 1 << 22;

/// Tokens of all keys together: at 10^11 checks a second they last 100 s, and a bench of five minutes checks
/// one kind of key for 75.
const TOKENS: u64 = 10_000_000_000_000;

const YEAR: Duration = Duration::from_secs(365 * 86_400);
const DAY: Duration = Duration::from_secs(86_400);

/// The seed of the keys' order.
const SEED: u64 = 2026;

/// How a workload is presented.
#[derive(Debug)]
pub struct About {
    /// Its name for programs.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What its threads do.
    pub what: &'static str,
    /// What each of its checks must be answered.
    pub answer: Answer,
}

/// What every check of a workload must be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It passes.
    Passed,
    /// It is refused.
    Refused,
}

impl Answer {
    /// As figures name it.
    pub fn name(self) -> &'static str {
        match self {
            Answer::Passed => "passed",
            Answer::Refused => "refused",
        }
    }
}

/// The workloads, in the order in which they are shown.
const HOT: About = About {
    name: "hot_key",
    title: "One hot key",
    what: "all threads check the same key",
    answer: Answer::Passed,
};
const MANY: About = About {
    name: "many_keys",
    title: "Many keys",
    what: "each as likely as any other",
    answer: Answer::Passed,
};
const BATCHES: About = About {
    name: "many_keys_batched",
    title: "Many keys, batched",
    what: "the same, 16 to a check_many",
    answer: Answer::Passed,
};
const DRY: About =
    About { name: "dry_key", title: "One dry key", what: "every check is refused", answer: Answer::Refused };

/// Checks that were not all answered as their limit asks for.
#[derive(Clone, Copy, Debug)]
pub struct WrongAnswer {
    title: &'static str,
    due: Answer,
    checks: u64,
    passed: u64,
}

impl fmt::Display for WrongAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongAnswer { title, due, checks, passed } = self;
        let due = due.name();
        write!(
            f,
            "{title}: {passed} of {checks} checks passed, but all must be {due}; this is a bug of tidegate"
        )
    }
}

/// What is checked, with limits and clocks as a server has them.
pub(super) struct Limiters {
    hot: Limiter,
    many: Limiter,
    dry: Limiter,
    one_key: Vec<u32>,
    many_keys: Vec<u32>,
}

impl Limiters {
    /// Builds the limiters, and checks every key once: no check that is timed meets an unknown key, and the dry
    /// key is dry.
    pub(super) fn new(keys: u32, threads: usize) -> Result<Self, Failure> {
        let hot = Limiter::builder(never_dry(1)).max_keys(1).build()?;
        let room = usize::try_from(keys).unwrap_or(usize::MAX);
        let many = Limiter::builder(never_dry(keys)).max_keys(room).prefault(true).build()?;
        let dry = Limiter::builder(Limit::bucket(Rate::new(1, DAY), 1)).max_keys(1).build()?;
        fill(&HOT, &hot, 1, 1)?;
        fill(&MANY, &many, keys, threads)?;
        fill(&DRY, &dry, 1, 1)?;
        let mut dice = Dice::new(SEED);
        let drawn = (0..STREAM_LEN).map(|_| u32::try_from(dice.below(keys)).unwrap_or(0));
        Ok(Limiters { hot, many, dry, one_key: vec![0; CHUNK], many_keys: drawn.collect() })
    }

    /// The workloads, in the order in which they are shown.
    pub(super) fn workloads(&self) -> [Workload<'_>; 4] {
        let one = |about, limiter| Workload { about, limiter, keys: &self.one_key, passed: one_by_one };
        let many = |about, passed| Workload { about, limiter: &self.many, keys: &self.many_keys, passed };
        [one(&HOT, &self.hot), many(&MANY, one_by_one), many(&BATCHES, in_batches), one(&DRY, &self.dry)]
    }
}

/// A bucket that no bench empties, and that comes back so slowly that a key owes something as long as it is
/// timed: a key that owes nothing could be forgotten, and the table timed would be an empty one.
fn never_dry(keys: u32) -> Limit {
    let burst = TOKENS / u64::from(keys.max(1));
    Limit::bucket(Rate::new(burst, YEAR), burst)
}

/// Checks each of the keys once, all of which must pass.
fn fill(about: &'static About, limiter: &Limiter, keys: u32, threads: usize) -> Result<(), WrongAnswer> {
    let step = keys.div_ceil(u32::try_from(threads).unwrap_or(u32::MAX)).max(1);
    let passed = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..keys)
            .step_by(usize::try_from(step).unwrap_or(usize::MAX))
            .map(|from| from..keys.min(from.saturating_add(step)))
            .map(|part| scope.spawn(move || part.map(|key| u64::from(limiter.allow(&key))).sum::<u64>()))
            .collect();
        parts.into_iter().map(|part| part.join().unwrap_or(0)).sum()
    });
    Answer::Passed.asserted(about, keys.into(), passed)
}

impl Answer {
    /// Complains unless every check was answered so.
    fn asserted(self, about: &'static About, checks: u64, passed: u64) -> Result<(), WrongAnswer> {
        let due = if self == Answer::Passed { checks } else { 0 };
        if passed == due {
            Ok(())
        } else {
            Err(WrongAnswer { title: about.title, due: self, checks, passed })
        }
    }
}

/// One kind of check.
pub struct Workload<'a> {
    /// How it is presented.
    pub about: &'static About,
    limiter: &'a Limiter,
    keys: &'a [u32],
    /// Checks a chunk of keys and says how many passed.
    passed: fn(&Limiter, &[u32]) -> u64,
}

impl Workload<'_> {
    /// Checks chunk after chunk of the keys, from a place that differs from slice to slice and from thread to
    /// thread, until the slice is over by this thread's own reading of the clock.
    ///
    /// The slice begins for all threads when the first of them does. A thread that the system puts off loses that
    /// time: counted from its own start, it would seem to run beside others that are done already.
    pub(super) fn timed(&self, begun: &OnceLock<Instant>, slice: Duration, place: usize) -> Timed {
        let chunks = self.keys.len() / CHUNK;
        let mut at = place % chunks;
        let mut timed = Timed { checks: 0, passed: 0, elapsed: Duration::ZERO };
        let mut first = false;
        let start = *begun.get_or_init(|| {
            first = true;
            Instant::now()
        });
        loop {
            timed.elapsed = start.elapsed();
            // Whoever is first checks something, however late it is: no slice is empty.
            if timed.elapsed >= slice && !(first && timed.checks == 0) {
                return timed;
            }
            timed.passed += (self.passed)(self.limiter, &self.keys[at * CHUNK..][..CHUNK]);
            timed.checks += CHUNK as u64;
            at = (at + 1) % chunks;
        }
    }

    /// Complains unless every check was answered as its limit asks for.
    pub(super) fn asserted(&self, checks: u64, passed: u64) -> Result<(), WrongAnswer> {
        self.about.answer.asserted(self.about, checks, passed)
    }
}

/// What one thread did in a slice of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    pub(super) checks: u64,
    pub(super) passed: u64,
    pub(super) elapsed: Duration,
}

// Functions of their own, so that each loop can be found in a profile.

#[inline(never)]
fn one_by_one(limiter: &Limiter, keys: &[u32]) -> u64 {
    keys.iter().map(|key| u64::from(limiter.check(key).is_ok())).sum()
}

#[inline(never)]
fn in_batches(limiter: &Limiter, keys: &[u32]) -> u64 {
    let mut passed = 0;
    for batch in keys.chunks_exact(BATCH) {
        limiter.check_many(batch, |answer| passed += u64::from(answer.is_ok()));
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_is_named() {
        let wrong = Answer::Refused.asserted(&DRY, 2_048, 1).unwrap_err().to_string();
        let expected =
            "One dry key: 1 of 2048 checks passed, but all must be refused; this is a bug of tidegate";
        assert_eq!(wrong, expected);
        assert!(Answer::Passed.asserted(&HOT, 10, 9).is_err());
        assert!(
            Answer::Passed.asserted(&HOT, 10, 10).is_ok() && Answer::Refused.asserted(&DRY, 10, 0).is_ok()
        );
    }

    #[test]
    fn a_slice_checks_whole_chunks_and_all_are_answered_as_due() {
        let limiters = Limiters::new(1_000, 3).unwrap();
        assert_eq!(limiters.many.stats().full, 0);
        for workload in limiters.workloads() {
            for place in [0, 1, STREAM_LEN / CHUNK - 1, usize::MAX] {
                let timed = workload.timed(&OnceLock::new(), Duration::from_micros(50), place);
                assert!(timed.checks > 0 && timed.checks.is_multiple_of(CHUNK as u64));
                assert!(timed.elapsed >= Duration::from_micros(50));
                workload.asserted(timed.checks, timed.passed).unwrap();
            }
        }
    }

    #[test]
    fn a_thread_that_comes_late_has_less_time_and_the_first_checks_something() {
        let limiters = Limiters::new(1, 1).unwrap();
        let workload = &limiters.workloads()[0];
        let long_ago = Instant::now().checked_sub(Duration::from_secs(2)).unwrap_or_else(Instant::now);
        let late = workload.timed(&long_ago.into(), Duration::from_secs(1), 0);
        assert_eq!(late.checks, 0);
        let first = workload.timed(&OnceLock::new(), Duration::ZERO, 0);
        assert_eq!(first.checks, CHUNK as u64);
        assert!(!first.elapsed.is_zero());
    }

    #[test]
    fn the_keys_are_those_that_were_filled_in_and_all_come() {
        let limiters = Limiters::new(1_000, 2).unwrap();
        let mut seen = vec![false; 1_000];
        limiters.many_keys.iter().for_each(|key| seen[*key as usize] = true);
        assert!(seen.iter().all(|seen| *seen));
    }
}
