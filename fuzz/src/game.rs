//! The game: steps from an input, played on a real limiter, with a judge who saw the same requests.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate::{Denied, ExactLimiter, Limit, Manual, Pass, Reason};

use crate::input::{STEPS_MAX, Step};

/// Six years: inside every limiter's own time. What happens at its end has no twin, only the rule that
/// nothing passes above the bound.
const TIME_MAX_NS: u128 = 6 * 365 * 24 * 60 * 60 * 1_000_000_000;

/// Knows what the answers should be.
pub trait Judge {
    /// A request of `cost`, not 0, was admitted.
    fn passed(&mut self, key: u64, now_ns: u128, cost: u64, pass: &Pass);

    /// A request was refused for now.
    fn exhausted(&mut self, key: u64, now_ns: u128, cost: u64, denied: &Denied);

    /// The limiter showed, for a cost of 0, what is left.
    fn looked(&mut self, key: u64, now_ns: u128, pass: &Pass);

    /// The most keys that can owe something now, as far as the judge knows.
    fn keys_owing(&mut self, now_ns: u128) -> usize;

    /// The most that one key may have been given from time 0 to the latest that was ever read.
    fn admitted_max(&self, latest_ns: u128) -> u128;
}

/// The rules of one game.
pub struct Game<'a> {
    pub limit: Limit,
    /// The largest cost that can ever pass.
    pub cost_max: u64,
    /// What the steps' sixteenths are sixteenths of.
    pub period_ns: u64,
    pub max_keys: usize,
    pub unix: Duration,
    pub steps: &'a [Step],
}

/// Plays to the end, or not at all if the limit is one that no limiter can honour. True if it was played.
pub fn play(game: &Game<'_>, judge: &mut impl Judge) -> bool {
    let clock = Manual::at_unix(game.unix);
    let built =
        ExactLimiter::<u64>::builder(game.limit).max_keys(game.max_keys).seed(1).clock(clock.clone()).build();
    let limiter = match built {
        Ok(limiter) => limiter,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let mut table = Table {
        game,
        judge,
        limiter,
        clock,
        comparable: true,
        rewound: false,
        evicted: false,
        latest_ns: 0,
        admitted: BTreeMap::new(),
    };
    for &step in game.steps.iter().take(STEPS_MAX) {
        table.step(step);
    }
    true
}

struct Table<'a, J> {
    game: &'a Game<'a>,
    judge: &'a mut J,
    limiter: ExactLimiter<u64, Manual>,
    clock: Manual,
    /// The judge still knows all that the limiter knows.
    comparable: bool,
    rewound: bool,
    /// A key was forgotten.
    evicted: bool,
    /// The furthest that time ever got.
    latest_ns: u128,
    /// What each key was given, over the whole game.
    admitted: BTreeMap<u64, u128>,
}

impl<J: Judge> Table<'_, J> {
    fn step(&mut self, step: Step) {
        match step {
            Step::Check { key, cost } => {
                _ = self.check(key.get(), cost.get(self.game.cost_max));
            }
            Step::Insist { key, cost } => self.insist(key.get(), cost.get(self.game.cost_max)),
            Step::Advance(span) => self.advance(span.get(self.game.period_ns)),
            Step::StepBack(span) => {
                let back = span.get(self.game.period_ns);
                self.clock.set(self.clock.elapsed().saturating_sub(back));
                self.rewound = true;
            }
        }
    }

    fn now_ns(&self) -> u128 {
        self.clock.elapsed().as_nanos()
    }

    fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
        self.latest_ns = self.latest_ns.max(self.now_ns());
    }

    /// A refused caller who waits as told passes, and would not have one nanosecond earlier.
    fn insist(&mut self, key: u64, cost: u64) {
        let Err(denied) = self.check(key, cost) else {
            return;
        };
        let Some(wait) = denied.retry_after() else {
            return;
        };
        if denied.reason() != Reason::Exhausted || self.now_ns() + wait.as_nanos() > TIME_MAX_NS {
            return;
        }
        let nanosecond = Duration::from_nanos(1);
        assert!(wait >= nanosecond, "refused, but to come back at once: {denied:?}");
        self.advance(wait - nanosecond);
        if let Ok(look) = self.check(key, 0) {
            assert!(look.remaining() < cost, "a shorter wait than {denied:?} would do: {look:?}");
        }
        self.advance(nanosecond);
        let again = self.check(key, cost);
        assert!(again.is_ok(), "came back as told by {denied:?}: {again:?}");
    }

    fn check(&mut self, key: u64, cost: u64) -> Result<Pass, Denied> {
        let now_ns = self.now_ns();
        let keys_before = self.limiter.len();
        let answer = self.limiter.check_n(&key, cost);
        self.check_shape(cost, keys_before, &answer);

        if answer.is_ok() && cost > 0 {
            let admitted = self.admitted.entry(key).or_default();
            *admitted += u128::from(cost);
            let most = self.judge.admitted_max(self.latest_ns);
            assert!(*admitted <= most, "key {key} was given {admitted}, {most} is the most");
        }

        // A key that owed nothing was rightly forgotten. If the clock then steps back to when it owed something,
        // the limiter lets new keys begin no earlier than it forgot; the judge, who remembers, cannot follow.
        self.evicted |= self.limiter.len() < self.admitted.len();
        self.comparable &= now_ns <= TIME_MAX_NS && !(self.rewound && self.evicted);
        if self.comparable {
            match &answer {
                Ok(pass) if cost == 0 => self.judge.looked(key, now_ns, pass),
                Ok(pass) => self.judge.passed(key, now_ns, cost, pass),
                Err(denied) => match denied.reason() {
                    Reason::Exhausted => self.judge.exhausted(key, now_ns, cost, denied),
                    Reason::Full => {
                        let owing = self.judge.keys_owing(now_ns);
                        assert!(owing >= self.game.max_keys, "full with {owing} keys owing");
                    }
                    _ => {}
                },
            }
        }
        answer
    }

    /// What is true of every answer at any time, the judge aside.
    fn check_shape(&self, cost: u64, keys_before: usize, answer: &Result<Pass, Denied>) {
        assert!(self.limiter.len() <= self.game.max_keys);
        let windows = match answer {
            Ok(pass) => {
                assert!(cost <= self.game.cost_max, "{cost} passed: {pass:?}");
                assert!(pass.remaining() <= pass.limit());
                if cost == 0 {
                    assert!(self.limiter.len() <= keys_before, "a look made a key");
                }
                pass.windows()
            }
            Err(denied) => {
                assert!(cost > 0, "a look was refused: {denied:?}");
                let too_large = denied.reason() == Reason::TooLarge;
                assert_eq!(too_large, cost > self.game.cost_max, "{cost}: {denied:?}");
                assert!(!too_large || denied.retry_after().is_none());
                assert!(denied.retry_after_secs() >= 1);
                assert!(!denied.to_string().is_empty());
                if denied.reason() == Reason::Exhausted {
                    assert!(denied.remaining() < cost, "{cost} would fit: {denied:?}");
                }
                denied.windows()
            }
        };
        assert!(!windows.is_empty());
        for window in windows.iter() {
            assert!(window.remaining <= window.limit, "{window:?}");
            assert!(window.next_after <= window.reset_after, "{window:?}");
        }
    }
}
