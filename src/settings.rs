//! What both limiters are built from and answer with.

use std::time::Duration;

use crate::answer::{Denied, Pass, Snapshot, Standing};
use crate::decision::Reason;
use crate::error::ConfigError;
use crate::limit::Limit;
use crate::table::{Answer, Charged, Engine, Hashing};
#[cfg(feature = "snapshot")]
use crate::time::timebase::saturating_ns;
use crate::time::{Clock, Origin, Ticking};
use crate::word::{Outcome, Rule};

/// Keys a limiter holds unless told otherwise.
pub(crate) const MAX_KEYS_DEFAULT: usize = 100_000;

/// Settings that every limiter has.
#[derive(Clone, Debug)]
pub(crate) struct Settings<C> {
    pub(crate) limit: Limit,
    pub(crate) max_keys: usize,
    pub(crate) seed: Option<u64>,
    clock: ClockChoice<C>,
}

#[derive(Clone, Debug)]
enum ClockChoice<C> {
    Given(C),
    /// Made when the limiter is built: it may block and start a thread.
    Later(fn() -> C),
}

impl Settings<Ticking> {
    pub(crate) fn new(limit: Limit) -> Self {
        Self { limit, max_keys: MAX_KEYS_DEFAULT, seed: None, clock: ClockChoice::Later(Ticking::new) }
    }
}

impl<C: Clock> Settings<C> {
    pub(crate) fn with_clock<D: Clock>(self, clock: D) -> Settings<D> {
        let Self { limit, max_keys, seed, .. } = self;
        Settings { limit, max_keys, seed, clock: ClockChoice::Given(clock) }
    }

    /// Checks everything, and makes what decides.
    pub(crate) fn build(self, keys_max: usize) -> Result<Core<C>, ConfigError> {
        let rule = self.rule(keys_max)?;
        let hashing = self.hashing().unwrap_or_else(Hashing::random);
        Ok(self.core(rule, hashing))
    }

    /// Checks everything.
    pub(crate) fn rule(&self, keys_max: usize) -> Result<Rule, ConfigError> {
        let rule = Rule::new(&self.limit)?;
        if self.max_keys == 0 {
            return Err(ConfigError::Zero { field: "max_keys" });
        }
        if self.max_keys > keys_max {
            return Err(ConfigError::TooManyKeys { keys: self.max_keys, keys_max });
        }
        Ok(rule)
    }

    /// How keys are to be hashed, if that was told.
    pub(crate) fn hashing(&self) -> Option<Hashing> {
        self.seed.map(Hashing::seeded)
    }

    /// What decides by this rule, from now on.
    pub(crate) fn core(self, rule: Rule, hashing: Hashing) -> Core<C> {
        let clock = match self.clock {
            ClockChoice::Given(clock) => clock,
            ClockChoice::Later(make) => make(),
        };
        let longest_ns = Rule::longest_period_ns(&self.limit);
        // It starts one longest period above 0; on the wall's periods up to one later still.
        let (origin, start_ns) = match Rule::wall_periods_ns(&self.limit) {
            Some((period_ns, longest_ns)) => {
                (Origin::on_wall(period_ns, longest_ns, &clock), longest_ns.saturating_mul(2))
            }
            None => (Origin::fixed(longest_ns, &clock), longest_ns),
        };
        Core { engine: Engine { rule, clock, origin }, hashing, limit: self.limit, start_ns }
    }
}

/// What decides, hashes and answers.
#[derive(Debug)]
pub(crate) struct Core<C> {
    pub(crate) engine: Engine<C>,
    pub(crate) hashing: Hashing,
    pub(crate) limit: Limit,
    /// Where its time started, at the latest.
    start_ns: u64,
}

impl<C: Clock> Core<C> {
    /// Turns what a table answered for a key into what a caller is told.
    #[inline(always)]
    pub(crate) fn respond(&self, answer: Answer, fingerprint: u64, cost: u64) -> Result<Pass, Denied> {
        let snapshot = |word, ns| self.snapshot(word, ns, fingerprint);
        let (snapshot, reason, room_at_ns) = match answer {
            Answer::Decided(Charged { decided, ns }) => {
                let snapshot = snapshot(decided.next, ns);
                match decided.outcome {
                    Outcome::Pass => return Ok(Pass { snapshot }),
                    Outcome::Exhausted => (snapshot, Reason::Exhausted, 0),
                    Outcome::TooLarge => (snapshot, Reason::TooLarge, 0),
                }
            }
            Answer::Full { ns, room_at_ns } => (snapshot(0, ns), Reason::Full, room_at_ns),
        };
        Err(Denied { snapshot, cost, reason, room_at_ns })
    }

    /// What `peek` tells of a word.
    pub(crate) fn standing(&self, (word, ns): (u64, u64), fingerprint: u64) -> Standing {
        Standing { snapshot: self.snapshot(word, ns, fingerprint) }
    }

    #[inline(always)]
    fn snapshot(&self, word: u64, ns: u64, fingerprint: u64) -> Snapshot {
        let rule = self.engine.rule;
        let is_steady = self.engine.clock.never_steps_back() && !self.engine.origin.follows_wall();
        Snapshot { rule, word, ns, phase: rule.phase(fingerprint), is_steady }
    }

    pub(crate) fn horizon(&self) -> Duration {
        Duration::from_nanos(self.engine.rule.time().end_ns().saturating_sub(self.start_ns))
    }

    /// Has time go on from another limiter's: `resumed_ns` tells where it stood when the wall is so many nanoseconds after
    /// the epoch, and here it is `earlier_ns` less.
    #[cfg(feature = "snapshot")]
    pub(crate) fn resume(&mut self, resumed_ns: impl Fn(u64) -> u64, earlier_ns: u64) {
        let clock = &self.engine.clock;
        let start_ns = |unix_ns| resumed_ns(unix_ns).saturating_sub(earlier_ns);
        self.engine.origin = match Rule::wall_periods_ns(&self.limit) {
            Some((period_ns, longest_ns)) => Origin::on_wall_from(period_ns, longest_ns, clock, start_ns),
            None => Origin::fixed(start_ns(saturating_ns(clock.unix())), clock),
        };
        self.start_ns = self.engine.precise_ns();
    }

    pub(crate) fn resolution(&self) -> Duration {
        Duration::from_nanos(self.engine.rule.time().span_ns(1))
    }
}

/// Whether an answer lets the request go on.
#[inline]
pub(crate) fn passes(answer: &Answer) -> bool {
    matches!(answer, Answer::Decided(charged) if charged.decided.outcome == Outcome::Pass)
}
