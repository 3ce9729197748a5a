//! What both limiters are built from and answer with.

use std::time::Duration;

use crate::answer::{Denied, Pass, Snapshot, Standing};
use crate::decision::Reason;
use crate::error::ConfigError;
use crate::limit::Limit;
#[cfg(feature = "tokio")]
use crate::queue::Queues;
use crate::stagger::Stagger;
use crate::table::{
    Answer, Change, Charged, Engine, Era, Eras, Full, Hashing, Hot, OWN, Resets, TierNumber, next_limiter,
};
#[cfg(feature = "snapshot")]
use crate::time::timebase::saturating_ns;
use crate::time::{Clock, Origin, Ticking};
use crate::word::{CarryOver, Decided, Outcome, Rule, VALUE_MAX};

/// Keys a limiter holds unless told otherwise.
pub(crate) const MAX_KEYS_DEFAULT: usize = 100_000;

/// The longest staggered wait unless told otherwise.
const STAGGER_WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// Settings that every limiter has.
#[derive(Clone, Debug)]
pub(crate) struct Settings<C> {
    pub(crate) limit: Limit,
    pub(crate) max_keys: usize,
    pub(crate) seed: Option<u64>,
    pub(crate) max_tiers: TierNumber,
    /// Whether the refused are told to come back one after the other, and the longest that any of them is told to wait.
    pub(crate) stagger: bool,
    pub(crate) stagger_wait_max: Duration,
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
        Self {
            limit,
            max_keys: MAX_KEYS_DEFAULT,
            seed: None,
            max_tiers: 0,
            stagger: false,
            stagger_wait_max: STAGGER_WAIT_MAX,
            clock: ClockChoice::Later(Ticking::new),
        }
    }
}

impl<C: Clock> Settings<C> {
    pub(crate) fn with_clock<D: Clock>(self, clock: D) -> Settings<D> {
        let Self { limit, max_keys, seed, max_tiers, stagger, stagger_wait_max, .. } = self;
        Settings {
            limit,
            max_keys,
            seed,
            max_tiers,
            stagger,
            stagger_wait_max,
            clock: ClockChoice::Given(clock),
        }
    }

    /// Checks everything, and makes what decides.
    pub(crate) fn build(self, keys_max: usize) -> Result<Core<C>, ConfigError> {
        let rule = self.rule(keys_max)?;
        let hashing = self.hashing().unwrap_or_else(Hashing::random);
        Ok(self.core(rule, hashing))
    }

    /// Checks everything.
    pub(crate) fn rule(&self, keys_max: usize) -> Result<Rule, ConfigError> {
        let rule = Rule::narrow(&self.limit, Eras::with_tiers(self.max_tiers).value_bits())?;
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
        let engine = Engine::with_eras(rule, Eras::with_tiers(self.max_tiers), clock, origin);
        Core {
            engine,
            hashing,
            limit: self.limit,
            start_ns,
            number: next_limiter(),
            resets: Resets::default(),
            stagger: Stagger::new(self.stagger, self.stagger_wait_max, self.max_keys),
            #[cfg(feature = "tokio")]
            queues: Queues::default(),
        }
    }
}

/// What decides, hashes and answers.
#[derive(Debug)]
pub(crate) struct Core<C> {
    pub(crate) engine: Engine<C>,
    pub(crate) hashing: Hashing,
    /// The limit that it was built with.
    pub(crate) limit: Limit,
    /// No other limiter of the process has it.
    pub(crate) number: u64,
    pub(crate) resets: Resets,
    /// Who is refused takes a place here, if the refused are staggered.
    pub(crate) stagger: Stagger,
    /// Where its time started, at the latest.
    start_ns: u64,
    /// No check looks at them.
    #[cfg(feature = "tokio")]
    pub(crate) queues: Queues,
}

impl<C> Core<C> {
    /// The limit in force.
    pub(crate) fn limit(&self) -> Limit {
        self.engine.eras.limit(OWN).unwrap_or(self.limit)
    }
}

impl<C: Clock> Core<C> {
    /// Turns what a table answered for a key into what a caller is told, a refusal with its place where the refused are
    /// staggered.
    #[inline(always)]
    pub(crate) fn respond(&self, answer: Answer, fingerprint: u64, cost: u64) -> Result<Pass, Denied> {
        let place_ns = self.place(&answer, fingerprint, cost);
        self.respond_placed(answer, place_ns, fingerprint, cost)
    }

    /// The same of an answer whose place is known, or 0 for none.
    #[inline(always)]
    pub(crate) fn respond_placed(
        &self,
        answer: Answer,
        place_ns: u64,
        fingerprint: u64,
        cost: u64,
    ) -> Result<Pass, Denied> {
        match answer {
            Answer::Decided(Charged { decided: Decided { outcome, next }, ns }) => {
                self.tell(self.snapshot(next, ns, fingerprint), outcome, place_ns, cost)
            }
            Answer::Full(full) => Err(self.no_room(full, fingerprint, cost)),
        }
    }

    /// The same, without a place, for what the limit has decided that the limiter was built with.
    #[inline(always)]
    pub(crate) fn respond_at_once(
        &self,
        charged: Charged,
        fingerprint: u64,
        cost: u64,
    ) -> Result<Pass, Denied> {
        let Charged { decided: Decided { outcome, next }, ns } = charged;
        self.tell(self.snapshot_by(&self.engine.rule, next, ns, fingerprint), outcome, 0, cost)
    }

    #[inline(always)]
    fn tell(&self, snapshot: Snapshot, outcome: Outcome, back_at_ns: u64, cost: u64) -> Result<Pass, Denied> {
        if outcome == Outcome::Pass {
            return Ok(Pass { snapshot: if cost == 0 { self.in_doubt(snapshot) } else { snapshot } });
        }
        let reason = if outcome == Outcome::TooLarge { Reason::TooLarge } else { Reason::Exhausted };
        Err(Denied { snapshot: self.in_doubt(snapshot), cost, reason, back_at_ns, is_counted: true })
    }

    /// Takes the place of a refusal that a wait may help, where the refused are staggered: when it is to come back. Else 0.
    #[inline]
    pub(crate) fn place(&self, answer: &Answer, fingerprint: u64, cost: u64) -> u64 {
        match answer {
            Answer::Decided(charged)
                if charged.decided.outcome == Outcome::Exhausted && self.stagger.is_on() =>
            {
                let snapshot = self.snapshot(charged.decided.next, charged.ns, fingerprint);
                self.stagger.place(fingerprint, snapshot.refused(cost))
            }
            _ => 0,
        }
    }

    /// What a new key is told for which there is no room: it stands as a fresh one.
    pub(crate) fn no_room(&self, full: Full, fingerprint: u64, cost: u64) -> Denied {
        let Standing { snapshot } =
            self.standing_in(self.engine.era_in(full.tier), (0, full.ns), fingerprint);
        Denied { snapshot, cost, reason: Reason::Full, back_at_ns: full.room_at_ns, is_counted: false }
    }

    /// What `peek` tells of a word, by a tier's rule.
    pub(crate) fn standing_in(&self, era: Era<'_>, (word, ns): (u64, u64), fingerprint: u64) -> Standing {
        let snapshot = self.snapshot_by(era.rule, era.value(word, ns), ns, fingerprint);
        Standing { snapshot: self.in_doubt(snapshot) }
    }

    /// A snapshot of a word that a debt may have put further ahead than its time proves.
    #[inline(always)]
    fn in_doubt(&self, snapshot: Snapshot) -> Snapshot {
        Snapshot { is_steady: snapshot.is_steady && !self.engine.has_debts(), ..snapshot }
    }

    /// A word that was just decided on, by whatever limit was in force, explained.
    #[inline(always)]
    pub(crate) fn snapshot(&self, word: u64, ns: u64, fingerprint: u64) -> Snapshot {
        if word <= VALUE_MAX && !self.engine.eras.is_changed() {
            return self.snapshot_by(&self.engine.rule, word, ns, fingerprint);
        }
        self.snapshot_by(self.engine.era().writer(word), self.engine.eras.bare(word), ns, fingerprint)
    }

    #[inline(always)]
    fn snapshot_by(&self, rule: &Rule, word: u64, ns: u64, fingerprint: u64) -> Snapshot {
        let is_steady = self.engine.clock.never_steps_back() && !self.engine.origin.follows_wall();
        Snapshot { rule: *rule, word, ns, phase: rule.phase(fingerprint), is_steady }
    }

    /// Changes the limit; `walk` has every word adopted by the era that it is given.
    pub(crate) fn set_limit(
        &self,
        limit: Limit,
        carry_over: CarryOver,
        hot: Option<&Hot>,
        walk: impl Fn(Era<'_>),
    ) -> Result<(), ConfigError> {
        self.change(Change::Of(OWN, limit), carry_over, hot, walk).map(drop)
    }

    /// Changes a limit, or makes a tier; whose.
    pub(crate) fn change(
        &self,
        change: Change,
        carry_over: CarryOver,
        hot: Option<&Hot>,
        walk: impl Fn(Era<'_>),
    ) -> Result<TierNumber, ConfigError> {
        // Under a lower limit a key may owe more than it.
        self.engine.note_debts();
        let now_ns = self.engine.precise_ns();
        self.engine.eras.change((self.limit, &self.engine.rule), change, carry_over, now_ns, |era| {
            if let Some(hot) = hot {
                hot.wet();
            }
            self.stagger.begin_anew();
            walk(era);
        })
    }

    pub(crate) fn horizon(&self) -> Duration {
        Duration::from_nanos(self.engine.era().rule.time().end_ns().saturating_sub(self.start_ns))
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
        Duration::from_nanos(self.engine.era().rule.time().span_ns(1))
    }
}

/// Whether an answer lets the request go on.
#[inline]
pub(crate) fn passes(answer: &Answer) -> bool {
    matches!(answer, Answer::Decided(charged) if charged.decided.outcome == Outcome::Pass)
}
