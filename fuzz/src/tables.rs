//! Tables with little room and many keys, beside a model that is too simple to be wrong: a log of what each key
//! was given, and what the last answer to each key promised. Where in the table a key stands it does not know.

mod forgetting;

use std::collections::BTreeMap;
use std::time::Duration;

use arbitrary::Arbitrary;
use tidegate::{
    Alignment, Denied, ExactLimiter, Limiter, Manual, OnFull, Pass, Reason, Standing, Stats, WindowState,
};

use crate::asked::{Asked, Shape};
use crate::input::{Cost, Span};

/// A few steps fill a table, since one step may be many keys.
const STEPS_MAX: usize = 64;
/// With those that are played again.
const MOVES_MAX: usize = 256;
/// After so many checks no other move begins: a flood is many, and each looks at the whole log.
const CHECKS_MAX: u32 = 2_000;
/// How long a bucket's leased tokens may be kept.
const LEASE_NS: u128 = 1_000_000;
/// As in the other games: six years are inside every limiter's own time.
const TIME_MAX_NS: u128 = 6 * 365 * 24 * 60 * 60 * 1_000_000_000;
/// Slots in which a key of the slot table may stand.
const WINDOW_SLOTS: usize = 32;
/// More than the slots of the smallest table, and a few times what the largest exact table holds.
const KEYS: [u64; 2] = [120, 24];

#[derive(Arbitrary, Debug)]
pub struct Input {
    shape: Shape,
    alignment: u8,
    count_refused: bool,
    unix_ns: u64,
    max_keys: u8,
    on_full: u8,
    steps: Vec<Move>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Move {
    Check {
        key: u8,
        cost: Cost,
    },
    /// A cost of 0.
    Look {
        key: u8,
    },
    /// A look that is no check.
    Peek {
        key: u8,
    },
    /// One request each of neighbouring keys.
    Flood {
        first: u8,
        count: u8,
        cost: Cost,
    },
    /// Check and, if refused, come back exactly when told.
    Insist {
        key: u8,
        cost: Cost,
    },
    /// From here on the key's tokens are leased.
    Warm {
        key: u8,
    },
    Advance(Span),
    StepBack(Span),
    /// Sets the clock to this long after the start.
    SetClock(Span),
    /// The last few moves, several times over.
    Again {
        moves: u8,
        times: u8,
    },
    /// The exact table forgets a key.
    Remove {
        key: u8,
    },
    /// The exact table forgets the keys whose bit is set here, and those with less left than this.
    Retain {
        down: u32,
        remaining_least: u8,
    },
    /// The exact table tells its keys.
    Iter,
}

/// Plays the slot table.
pub fn run_slots(input: &Input) {
    let asked = Asked::new(input.shape, input.alignment, input.count_refused, input.unix_ns);
    let clock = Manual::at_unix(Duration::from_nanos(input.unix_ns >> 2));
    let on_full = match input.on_full % 4 {
        0 => OnFull::EvictLeast,
        1 => OnFull::Refuse,
        2 => OnFull::Inherit,
        _ => OnFull::Admit,
    };
    let max_keys = usize::from(input.max_keys % 4) + 1;
    let builder = Limiter::builder(asked.limit).max_keys(max_keys).on_full(on_full).seed(1);
    match builder.clock(clock.clone()).build() {
        Ok(limiter) => {
            let slack_ns = slack_ns(limiter.resolution());
            Game::new(asked, clock, slack_ns, Subject::Slots(Box::new(limiter), on_full)).play(&input.steps);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Plays the exact table.
pub fn run_exact(input: &Input) {
    let asked = Asked::new(input.shape, input.alignment, input.count_refused, input.unix_ns);
    let clock = Manual::at_unix(Duration::from_nanos(input.unix_ns >> 2));
    let max_keys = usize::from(input.max_keys % 8) + 1;
    let builder = ExactLimiter::<u64>::builder(asked.limit).max_keys(max_keys).seed(1);
    match builder.clock(clock.clone()).build() {
        Ok(limiter) => {
            let slack_ns = slack_ns(limiter.resolution());
            Game::new(asked, clock, slack_ns, Subject::Exact(Box::new(limiter))).play(&input.steps);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Two readings are each rounded down to a unit of the limiter's time.
fn slack_ns(resolution: Duration) -> u128 {
    2 * resolution.as_nanos() + 2
}

enum Subject {
    Slots(Box<Limiter<Manual>>, OnFull),
    Exact(Box<ExactLimiter<u64, Manual>>),
}

impl Subject {
    fn check_n(&self, key: u64, cost: u64) -> Result<Pass, Denied> {
        match self {
            Self::Slots(limiter, _) => limiter.check_n(&key, cost),
            Self::Exact(limiter) => limiter.check_n(&key, cost),
        }
    }

    /// Of the exact table nothing but zeroes: it forces nobody out and lets nobody pass uncounted.
    fn stats(&self) -> Stats {
        match self {
            Self::Slots(limiter, _) => limiter.stats(),
            Self::Exact(_) => Stats::default(),
        }
    }

    fn on_full(&self) -> OnFull {
        match self {
            Self::Slots(_, on_full) => *on_full,
            Self::Exact(_) => OnFull::Refuse,
        }
    }

    fn peek(&self, key: u64) -> Standing {
        match self {
            Self::Slots(limiter, _) => limiter.peek(&key),
            Self::Exact(limiter) => limiter.peek(&key),
        }
    }

    /// Live keys below which nobody is turned away.
    fn room(&self) -> usize {
        match self {
            Self::Slots(..) => WINDOW_SLOTS,
            Self::Exact(limiter) => limiter.max_keys(),
        }
    }

    fn keys(&self) -> u64 {
        match self {
            Self::Slots(..) => KEYS[0],
            Self::Exact(_) => KEYS[1],
        }
    }

    /// Slots of the table, 16 bytes each.
    fn slots(&self) -> u128 {
        match self {
            Self::Slots(limiter, _) => limiter.bytes() as u128 / 16,
            Self::Exact(limiter) => limiter.max_keys() as u128,
        }
    }
}

/// What an answer said of one part, until more is left again.
#[derive(Clone, Copy, Debug)]
struct Promise {
    limit: u64,
    used: u64,
    remaining: u64,
    until_ns: u128,
}

impl Promise {
    fn owes_more_than_half(&self) -> bool {
        u128::from(self.used) * 2 > u128::from(self.limit)
    }
}

#[derive(Debug, Default)]
struct Key {
    /// When, and what had been given before: one entry for each time.
    given: Log,
    /// By part; those that have expired are gone.
    promised: Vec<Option<Promise>>,
    /// The clock stood at its furthest then, and has not stepped back since.
    is_steady: bool,
    /// The latest time at which it can be live.
    live_until_ns: Option<u128>,
}

impl Key {
    /// Whether no eviction may touch it.
    fn is_firm(&self) -> bool {
        self.promised.iter().flatten().any(Promise::owes_more_than_half)
    }

    fn owes(&self) -> bool {
        self.promised.iter().flatten().any(|promise| promise.used > 0)
    }

    fn is_live(&self, now_ns: u128, slack_ns: u128) -> bool {
        self.live_until_ns.is_some_and(|until_ns| until_ns.saturating_add(slack_ns) >= now_ns)
    }
}

/// What was admitted, and when.
#[derive(Debug, Default)]
struct Log {
    before: Vec<(u128, u128)>,
    total: u128,
}

impl Log {
    fn add(&mut self, now_ns: u128, cost: u64) {
        if self.before.last().is_none_or(|&(last_ns, _)| last_ns != now_ns) {
            self.before.push((now_ns, self.total));
        }
        self.total += u128::from(cost);
    }
}

struct Game {
    asked: Asked,
    clock: Manual,
    slack_ns: u128,
    subject: Subject,
    keys: BTreeMap<u64, Key>,
    /// All keys together.
    all: Log,
    rewound: bool,
    /// Tokens are leased: what is told to be left may be less than there is, and what lapses is refused.
    leases: bool,
    /// The furthest that time ever got.
    latest_ns: u128,
    full: u64,
    checks: u32,
    stats: Stats,
}

impl Game {
    fn new(asked: Asked, clock: Manual, slack_ns: u128, subject: Subject) -> Self {
        let stats = subject.stats();
        Self {
            asked,
            clock,
            slack_ns,
            subject,
            keys: BTreeMap::new(),
            all: Log::default(),
            rewound: false,
            leases: false,
            latest_ns: 0,
            full: 0,
            checks: 0,
            stats,
        }
    }

    fn play(&mut self, steps: &[Move]) {
        let mut left = MOVES_MAX;
        for (number, &step) in steps.iter().take(STEPS_MAX).enumerate() {
            let (moves, times) = match step {
                Move::Again { moves, times } => (usize::from(moves % 8) + 1, times % 8 + 1),
                _ => (0, 1),
            };
            let played = if moves == 0 { number..number + 1 } else { number.saturating_sub(moves)..number };
            for _ in 0..times {
                for &step in steps[played.clone()].iter().take(left) {
                    if self.checks >= CHECKS_MAX {
                        return;
                    }
                    self.step(step);
                    left -= 1;
                }
            }
        }
    }

    fn step(&mut self, step: Move) {
        let (cost_max, period_ns) = (self.asked.cost_max, self.asked.period_ns());
        match step {
            Move::Check { key, cost } => _ = self.check(key.into(), cost.get(cost_max)),
            Move::Look { key } => _ = self.check(key.into(), 0),
            Move::Flood { first, count, cost } => {
                for key in 0..u64::from(count) % self.subject.keys() {
                    _ = self.check(u64::from(first) + key, cost.get(cost_max));
                }
            }
            Move::Peek { key } => self.peek(key.into()),
            Move::Warm { key } => self.warm(key.into()),
            Move::Insist { key, cost } => self.insist(key.into(), cost.get(cost_max)),
            Move::Advance(span) => self.advance(span.get(period_ns)),
            Move::StepBack(span) => self.set(self.clock.elapsed().saturating_sub(span.get(period_ns))),
            Move::SetClock(span) => self.set(span.get(period_ns)),
            // Its moves are played by who reads it; one inside another is not.
            Move::Again { .. } => {}
            Move::Remove { key } => self.remove(key.into()),
            Move::Retain { down, remaining_least } => self.retain(down, remaining_least.into()),
            Move::Iter => self.iter(),
        }
    }

    /// A look sees what a check of nothing is told, and leaves no trace.
    fn peek(&self, key: u64) {
        let key = key % self.subject.keys();
        let before = self.subject.stats();
        let seen = self.subject.peek(key);
        assert_eq!(self.subject.stats(), before);
        // A check of nothing leaves no trace either, but for a lease that it finds to be over.
        let Ok(pass) = self.subject.check_n(key, 0) else { panic!("a look was refused") };
        assert_eq!(format!("{:?}", seen.windows()), format!("{:?}", pass.windows()));
        assert_eq!((seen.remaining(), seen.reset_after()), (pass.remaining(), pass.reset_after()));
        let after = self.subject.stats();
        let claimed = |stats: &Stats| (stats.claims, stats.full, stats.untracked, stats.forced_evictions);
        assert_eq!((claimed(&after), after.live_estimate), (claimed(&before), before.live_estimate));
    }

    fn warm(&mut self, key: u64) {
        if let Subject::Slots(limiter, _) = &self.subject {
            limiter.warm(&(key % self.subject.keys()));
            self.leases = true;
        }
    }

    fn set(&mut self, to: Duration) {
        if let Some(by) = to.checked_sub(self.clock.elapsed()) {
            self.advance(by);
            return;
        }
        self.clock.set(to);
        self.rewound = true;
        self.keys.values_mut().for_each(|key| key.is_steady = false);
    }

    fn now_ns(&self) -> u128 {
        self.clock.elapsed().as_nanos()
    }

    fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
        let now_ns = self.now_ns();
        self.latest_ns = self.latest_ns.max(now_ns);
        for promise in self.keys.values_mut().flat_map(|key| &mut key.promised) {
            promise.take_if(|promise| promise.until_ns <= now_ns || now_ns > TIME_MAX_NS);
        }
    }

    /// A refused caller who waits as told passes, and would not have one nanosecond earlier.
    fn insist(&mut self, key: u64, cost: u64) {
        let Err(denied) = self.check(key, cost) else { return };
        let Some(wait) = denied.retry_after() else { return };
        let is_told = denied.reason() == Reason::Exhausted && !self.rewound && !self.leases;
        if !is_told || self.now_ns() + wait.as_nanos() > TIME_MAX_NS {
            return;
        }
        let nanosecond = Duration::from_nanos(1);
        assert!(wait >= nanosecond, "refused, but to come back at once: {denied:?}");
        self.advance(wait - nanosecond);
        // Where a refusal counts, it would be another request that comes back.
        let early = self.check(key, if self.asked.count_refused { 0 } else { cost });
        let fits = early.is_ok_and(|pass| !self.asked.count_refused || pass.remaining() >= cost);
        assert!(!fits, "a shorter wait than {denied:?} would do");
        self.advance(nanosecond);
        let again = self.check(key, cost);
        assert!(again.is_ok(), "came back as told by {denied:?}: {again:?}");
    }

    fn check(&mut self, key: u64, cost: u64) -> Result<Pass, Denied> {
        self.checks += 1;
        let key = key % self.subject.keys();
        let answer = self.subject.check_n(key, cost);
        let (before, after) = (self.stats, self.subject.stats());
        self.stats = after;
        let is_full = answer.as_ref().is_err_and(|denied| denied.reason() == Reason::Full);
        self.full += u64::from(is_full);
        let is_untracked = after.untracked > before.untracked;
        self.check_stats();
        self.check_shape(cost, &answer);
        if after.forced_evictions > before.forced_evictions {
            // Any key that owes at most half may have gone.
            for key in self.keys.values_mut().filter(|key| !key.is_firm()) {
                key.promised.clear();
            }
        }
        if is_full || is_untracked {
            self.check_no_room(key);
            return answer;
        }
        match &answer {
            Ok(pass) => self.decided(key, cost, true, pass.reset_after(), &pass.windows()),
            Err(denied) if denied.reason() == Reason::Exhausted => {
                self.decided(key, cost, false, denied.reset_after(), &denied.windows());
            }
            Err(_) => {}
        }
        self.check_live();
        answer
    }

    /// No room for a key: one that owes nothing, where there are many that do.
    fn check_no_room(&self, key: u64) {
        if self.latest_ns > TIME_MAX_NS {
            return;
        }
        let owes = self.keys.get(&key).is_some_and(Key::owes);
        assert!(!owes, "key {key} was forgotten: {:?}", self.keys[&key]);
        let live = self.live();
        let room = self.subject.room();
        assert!(live >= room, "no room beside {live} live keys, where {room} fit");
    }

    fn live(&self) -> usize {
        let now_ns = self.now_ns();
        self.keys.values().filter(|key| key.is_live(now_ns, self.slack_ns)).count()
    }

    /// What the table says of live keys lies between what the model is sure of and what it thinks possible.
    fn check_live(&self) {
        if self.latest_ns > TIME_MAX_NS {
            return;
        }
        let firm = self.keys.values().filter(|key| key.is_firm()).count();
        let live = self.live();
        match &self.subject {
            Subject::Slots(..) => {
                let found = usize::try_from(self.stats.live_estimate).unwrap_or(usize::MAX);
                assert!((firm..=live).contains(&found), "{found} live, not {firm} to {live}");
            }
            Subject::Exact(limiter) => {
                assert!(firm <= limiter.len(), "{} known, {firm} owe much", limiter.len());
            }
        }
    }

    /// A decision on the key's own count.
    fn decided(&mut self, name: u64, cost: u64, passed: bool, reset: Duration, states: &[WindowState]) {
        let now_ns = self.now_ns();
        // A key that began at the time of an eviction, with the clock behind it, is answered for that time.
        let base_ns = if self.rewound { self.latest_ns } else { now_ns };
        let inherits = self.subject.on_full() == OnFull::Inherit && self.stats.forced_evictions > 0;
        let slack_ns = self.slack_ns;
        let counts = cost > 0 && (passed || self.asked.count_refused);
        let comparable = self.latest_ns <= TIME_MAX_NS;
        let key = self.keys.entry(name).or_default();
        if comparable && !passed && !inherits {
            assert!(key.is_live(now_ns, slack_ns), "a key that owes nothing was refused {cost}: {states:?}");
        }
        let is_held_to = key.is_steady && key.promised.len() == states.len() && !self.leases;
        if self.leases {
            key.promised.clear();
        }
        for (state, promise) in states.iter().zip(&key.promised) {
            let Some(promise) = promise else { continue };
            let left = promise.remaining.saturating_sub(if counts { cost } else { 0 });
            assert!(state.remaining <= left, "key {name}, {cost}: {promise:?}, then {state:?}");
            assert!(
                !is_held_to || state.remaining == left,
                "key {name}, {cost}: {promise:?}, then {state:?}"
            );
            assert!(!passed || cost <= promise.remaining, "{cost} passed: {promise:?}");
        }
        if is_held_to && !passed && key.promised.iter().all(Option::is_some) {
            let fits = key.promised.iter().flatten().all(|promise| cost <= promise.remaining);
            assert!(!fits, "{cost} was refused: {:?}", key.promised);
        }
        if cost > 0 || key.is_live(now_ns, slack_ns) {
            let reset_ns = base_ns.saturating_add(reset.as_nanos());
            key.live_until_ns = key.live_until_ns.max(Some(reset_ns));
            key.is_steady = now_ns >= self.latest_ns;
            key.promised = states.iter().map(|state| promise(state, now_ns)).collect();
            if !comparable {
                key.promised.clear();
            }
        }
        if passed && cost > 0 {
            key.given.add(now_ns, cost);
            self.all.add(now_ns, cost);
            self.check_bounds(name);
        }
    }

    /// Nobody is given more than the limit and what was forgiven.
    fn check_bounds(&self, name: u64) {
        let Stats { forced_evictions, forgiven_limits, .. } = self.stats;
        let inherits = self.subject.on_full() == OnFull::Inherit;
        // Debts that are inherited stay in the table, but leave their key.
        let forgiven = if inherits { forced_evictions as f64 / 2.0 } else { forgiven_limits };
        let key = &self.keys[&name];
        for (part, &(limit, _)) in self.asked.parts.iter().enumerate() {
            // Forgiven are parts of 2^16, exact in this type.
            let allowed = (forgiven * 65_536.0) as u128 * u128::from(limit) / 65_536;
            for &(from_ns, before) in &key.given.before {
                let most = self.most(part, from_ns, 1).saturating_add(allowed);
                let given = key.given.total - before;
                assert!(given <= most, "key {name} was given {given} since {from_ns}, {most} is the most");
            }
            // Windows that lie elsewhere for each key end elsewhere for each heir.
            if inherits && self.asked.alignment != Alignment::PerKey {
                for &(from_ns, before) in &self.all.before {
                    let most = self.most(part, from_ns, self.subject.slots());
                    let given = self.all.total - before;
                    assert!(given <= most, "all were given {given} since {from_ns}, {most} is the most");
                }
            }
        }
    }

    fn most(&self, part: usize, from_ns: u128, times: u128) -> u128 {
        let held_ns = if self.leases && self.asked.rate.is_some() { LEASE_NS } else { 0 };
        self.asked.most(part, from_ns, self.latest_ns, self.slack_ns + held_ns).saturating_mul(times)
    }

    /// Who is turned away, let pass or forced out is counted, as the choice of [`OnFull`] has it.
    fn check_stats(&self) {
        let stats = &self.stats;
        assert_eq!(stats.exhausted, 0, "nobody to lose a race to");
        match &self.subject {
            Subject::Slots(_, on_full) => {
                assert_eq!(stats.full, self.full);
                let evicts = matches!(on_full, OnFull::EvictLeast | OnFull::Inherit);
                assert!(evicts || stats.forced_evictions == 0, "{stats:?}");
                assert!(*on_full == OnFull::EvictLeast || stats.forgiven_limits == 0.0, "{stats:?}");
                assert!(stats.forgiven_limits <= stats.forced_evictions as f64 / 2.0, "{stats:?}");
                assert!(*on_full == OnFull::Admit || stats.untracked == 0, "{stats:?}");
                assert!(*on_full != OnFull::Admit || stats.full == 0, "{stats:?}");
                assert!(stats.claims >= stats.forced_evictions, "{stats:?}");
            }
            Subject::Exact(limiter) => assert!(limiter.len() <= limiter.max_keys()),
        }
    }

    /// What is true of every answer at any time.
    fn check_shape(&self, cost: u64, answer: &Result<Pass, Denied>) {
        let windows = match answer {
            Ok(pass) => {
                assert!(cost <= self.asked.cost_max, "{cost} passed: {pass:?}");
                assert!(pass.remaining() <= pass.limit());
                pass.windows()
            }
            Err(denied) => {
                assert!(cost > 0, "a look was refused: {denied:?}");
                let too_large = denied.reason() == Reason::TooLarge;
                assert_eq!(too_large, cost > self.asked.cost_max, "{cost}: {denied:?}");
                assert!(!too_large || denied.retry_after().is_none());
                assert!(denied.retry_after_secs() >= 1);
                assert!(!denied.to_string().is_empty());
                assert!(denied.reason() != Reason::Exhausted || denied.remaining() < cost, "{denied:?}");
                denied.windows()
            }
        };
        assert_eq!(windows.len(), self.asked.parts.len());
        for (window, &(limit, _)) in windows.iter().zip(&self.asked.parts) {
            assert_eq!(window.limit, limit);
            assert!(window.remaining <= window.limit, "{window:?}");
            assert!(window.next_after <= window.reset_after, "{window:?}");
        }
    }
}

/// Until it expires the key has no more left than now; none where nothing is used.
fn promise(state: &WindowState, now_ns: u128) -> Option<Promise> {
    let until_ns = now_ns.saturating_add(state.next_after.as_nanos());
    (state.observed > 0 && until_ns > now_ns).then_some(Promise {
        limit: state.limit,
        used: state.observed,
        remaining: state.remaining,
        until_ns,
    })
}
