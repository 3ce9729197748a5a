//! A slot table of one window of two slots, threads with clocks of their own, and the contract that every
//! model of it ends with.

use std::sync::Arc;
use std::time::Duration;

use tidegate::internals::{
    Answer, Change, Charged, Copied, Engine, Eras, Hot, Missed, Origin, Outcome, Rule, SlotTable, TABLE_BIT,
    WHOLE_DEBT,
};
use tidegate::{CarryOver, Clock, Limit, OnFull, Rate};

/// A clock that stands still. Every thread has one of its own, so readings may differ.
#[derive(Debug)]
pub struct Standing {
    ns: u64,
}

impl Clock for Standing {
    fn coarse(&self) -> u64 {
        self.ns
    }

    fn precise(&self) -> u64 {
        self.ns
    }

    fn unix(&self) -> Duration {
        Duration::from_nanos(self.ns)
    }
}

/// An engine whose clock stands at `ms`.
pub fn engine_at(limit: Limit, ms: u64) -> Engine<Standing> {
    let rule = Rule::new(&limit).expect("a limit that builds");
    let origin = Origin::fixed(Rule::longest_period_ns(&limit), &Standing { ns: 0 });
    Engine::new(rule, Standing { ns: ms * 1_000_000 }, origin)
}

/// The same for a limit that may be given a tier, and is: another one.
pub fn engine_with_tier(limit: Limit, tier: Limit, ms: u64) -> Engine<Standing> {
    let eras = Eras::with_tiers(1);
    let rule = Rule::narrow(&limit, eras.value_bits()).expect("a limit that builds");
    let origin = Origin::fixed(Rule::longest_period_ns(&limit), &Standing { ns: 0 });
    let engine = Engine::with_eras(rule, eras, Standing { ns: ms * 1_000_000 }, origin);
    let made = engine.eras.change((limit, &engine.rule), Change::Tier(tier), CarryOver::KeepUsed, 0, |_| {});
    assert_eq!(made, Ok(1));
    engine
}

/// One token a second, up to four at once.
pub fn bucket_of_four() -> Limit {
    Limit::bucket(Rate::per_second(1), 4)
}

/// What a thread asked for, and how often it was let through.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Whose check it was.
    pub key: u64,
    /// The thread's clock, in milliseconds.
    pub ms: u64,
    /// Tokens it was given.
    pub admitted: u64,
}

/// A table and the engines of all clocks that a model uses.
pub struct Scene {
    /// The table.
    pub table: SlotTable,
    engines: Vec<(u64, Engine<Standing>)>,
    limit: Limit,
    owed: Vec<(u64, u64)>,
}

impl Scene {
    /// An empty table for threads whose clocks stand at `clocks_ms`.
    pub fn new(limit: Limit, on_full: OnFull, clocks_ms: &[u64]) -> Self {
        let engines = clocks_ms.iter().map(|&ms| (ms, engine_at(limit, ms))).collect();
        let table = SlotTable::new(1, on_full, Hot::new(0)).expect("memory for two slots");
        Self { table, engines, limit, owed: Vec::new() }
    }

    /// The same with one clock, and with a tier beside the limit.
    pub fn with_tier(limit: Limit, tier: Limit, ms: u64) -> Self {
        let engines = vec![(ms, engine_with_tier(limit, tier, ms))];
        Self { engines, ..Self::new(limit, OnFull::EvictLeast, &[]) }
    }

    /// One check by the tier.
    pub fn answer_in_tier(&self, key: u64, ms: u64) -> Answer {
        self.table.check_in(self.engine(ms), key, 1, 1)
    }

    /// The same, with leases.
    #[must_use]
    pub fn leasing(self) -> Self {
        let table = SlotTable::new(1, OnFull::EvictLeast, Hot::new(1)).expect("memory for two slots");
        Self { table, ..self }
    }

    /// `count` checks of a thread to which the key is hot, and how many passed.
    pub fn ask_hot(&self, key: u64, ms: u64, count: u64) -> Asked {
        let engine = self.engine(ms);
        self.table.hot().warm(key, engine.coarse_ns(), 1);
        let admitted = (0..count).filter(|_| passed(&self.table.check(engine, key, 1))).count() as u64;
        Asked { key, ms, admitted }
    }

    /// Whether one more check passes of a thread that has [asked](Self::ask_hot).
    pub fn ask_again(&self, key: u64, ms: u64) -> bool {
        passed(&self.table.check(self.engine(ms), key, 1))
    }

    /// Uses `tokens` of a key at a time, before the model's threads start. The first key takes the first slot.
    #[must_use]
    pub fn used(self, key: u64, ms: u64, tokens: u64) -> Self {
        let other = engine_at(self.limit, ms);
        let engine = self.engines.iter().find(|&&(at, _)| at == ms).map_or(&other, |(_, engine)| engine);
        for _ in 0..tokens {
            assert!(
                passed(&self.table.check_on(engine, key, 1, Missed::NotOurs)),
                "the scene is not set: {self:?}"
            );
        }
        let owed = self.owes(key, self.latest_ms());
        Self { owed: [self.owed, vec![(key, owed)]].concat(), ..self }
    }

    /// A thread has claimed the slot, and stopped before publication.
    #[must_use]
    pub fn seized(self, slot: usize) -> Self {
        self.table.seize(slot);
        self
    }

    /// The slot has been freed, and is nobody's.
    #[must_use]
    pub fn freed(self, slot: usize) -> Self {
        self.table.free_again(slot);
        self
    }

    /// To be shared by the model's threads.
    pub fn share(self) -> Arc<Self> {
        Arc::new(self)
    }

    /// The engine of the thread whose clock stands at `ms`.
    pub fn engine(&self, ms: u64) -> &Engine<Standing> {
        &self.engines.iter().find(|&&(at, _)| at == ms).expect("a clock of the model's").1
    }

    /// One check, as a thread whose clock stands at `ms`.
    pub fn answer(&self, key: u64, ms: u64) -> Answer {
        self.table.check_on(self.engine(ms), key, 1, Missed::NotOurs)
    }

    /// The same, and the decision if there is one.
    pub fn check(&self, key: u64, ms: u64) -> Option<Charged> {
        match self.answer(key, ms) {
            Answer::Decided(charged) => Some(charged),
            Answer::Full(_) => None,
        }
    }

    /// `count` checks, and how many passed.
    pub fn ask(&self, key: u64, ms: u64, count: u64) -> Asked {
        let admitted = (0..count).filter(|_| passed(&self.answer(key, ms))).count() as u64;
        Asked { key, ms, admitted }
    }

    /// One check that goes the slow road at once.
    pub fn settle(&self, key: u64, ms: u64) -> Asked {
        let admitted = u64::from(passed(&self.table.settle(self.engine(ms), key)));
        Asked { key, ms, admitted }
    }

    /// What a snapshot by a thread whose clock stands at `ms` would hold: keys, and the tokens that they owe.
    pub fn copied(&self, ms: u64) -> Vec<(u64, u64)> {
        let engine = self.engine(ms);
        let mut keys = Vec::new();
        let each = |Copied { fingerprint, word, .. }| {
            let moment = engine.rule.moment(engine.precise_ns(), fingerprint);
            keys.push((fingerprint, engine.rule.parts(word, moment)[0].used));
            Ok::<(), ()>(())
        };
        self.table.copy(engine, engine.precise_ns(), each).expect("nothing fails");
        keys
    }

    /// What the key's own word owes, in tokens. **One value word a key**: two are a failure.
    pub fn owes(&self, key: u64, ms: u64) -> u64 {
        let words = self.table.values(key);
        assert!(words.len() <= 1, "key {key} has two words: {self:?}");
        let (era, ns) = (self.engine(ms).era(), self.engine(ms).precise_ns());
        words.first().map_or(0, |&word| era.rule.parts(era.value(word, ns), era.rule.moment(ns, key))[0].used)
    }

    /// Tokens that forced evictions forgave.
    #[expect(clippy::cast_possible_truncation, reason = "a handful of tokens")]
    pub fn forgiven(&self) -> u64 {
        let stats = self.table.stats(self.engine(self.latest_ms()));
        let tokens = stats.forgiven_limits * self.burst() as f64;
        assert!(
            stats.forgiven_limits * 2.0 <= stats.forced_evictions as f64,
            "more than half forgiven: {stats:?}"
        );
        tokens.round() as u64
    }

    /// Tokens that whoever claims a free slot will owe.
    pub fn passed_on(&self) -> u64 {
        u64::from(self.table.passed_on(0)) * self.burst() / u64::from(WHOLE_DEBT)
    }

    /// Checks that lost every race.
    pub fn exhausted(&self) -> u64 {
        self.table.stats(self.engine(self.latest_ms())).exhausted
    }

    fn burst(&self) -> u64 {
        let rule = Rule::new(&self.limit).expect("a limit that builds");
        rule.parts(0, 0)[0].limit
    }

    fn latest_ms(&self) -> u64 {
        self.engines.iter().map(|&(ms, _)| ms).max().expect("a clock")
    }

    /// The contract, when all threads are done:
    /// * a key has at most one value;
    /// * what was admitted at the latest clock, and what was owed before, stands on the key's own word,
    ///   or was forgiven and counted: a lost race costs and never hands out;
    /// * no more was admitted than the burst, what refilled between the first clock and the last, and
    ///   what was forgiven.
    pub fn contract(&self, asked: &[Asked]) {
        let latest_ms = self.latest_ms();
        let forgiven = self.forgiven();
        let earliest_ms = self.engines.iter().map(|&(ms, _)| ms).min().expect("a clock");
        let refilled = (latest_ms - earliest_ms).div_ceil(1_000);
        let mut keys: Vec<u64> =
            asked.iter().map(|it| it.key).chain(self.owed.iter().map(|it| it.0)).collect();
        keys.sort_unstable();
        keys.dedup();
        let (mut paid_in_all, mut due_in_all) = (0, 0);
        for key in keys {
            let of_key = || asked.iter().filter(|it| it.key == key);
            let owed: u64 = self.owed.iter().filter(|it| it.0 == key).map(|it| it.1).sum();
            let admitted: u64 = of_key().map(|it| it.admitted).sum();
            let at_latest: u64 = of_key().filter(|it| it.ms == latest_ms).map(|it| it.admitted).sum();
            let paid = self.owes(key, latest_ms);
            assert!(
                paid + forgiven >= owed + at_latest,
                "key {key}: owed {owed}, admitted {at_latest}, pays {paid}, forgiven {forgiven}: {asked:?} {self:?}"
            );
            assert!(
                owed + admitted <= self.burst() + refilled + forgiven,
                "key {key}: owed {owed}, admitted {admitted}, refilled {refilled}, forgiven {forgiven}: {self:?}"
            );
            paid_in_all += paid;
            due_in_all += owed + at_latest;
        }
        assert!(
            paid_in_all + forgiven >= due_in_all,
            "{due_in_all} due, {forgiven} forgiven: {asked:?} {self:?}"
        );
    }
}

impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for number in 0..2 {
            let slot = self.table.lines().slot(number);
            let named = slot.fingerprint.load(tidegate::internals::Ordering::Acquire);
            let word = slot.word.load(tidegate::internals::Ordering::Acquire);
            let kind = if word & TABLE_BIT == 0 { "value" } else { "mark" };
            write!(f, "[key {} generation {} {kind} {word:#x}] ", named >> 16, named & 0xffff)?;
        }
        Ok(())
    }
}

/// Whether an answer let the request through.
pub fn passed(answer: &Answer) -> bool {
    matches!(answer, Answer::Decided(charged) if charged.decided.outcome == Outcome::Pass)
}
