//! Orders: charges of what is known afterwards, refunds by receipt and by key, resets, places in line, and the checks
//! beside them. Played on the three limiters side by side, or on one with little room; in both games a ledger of each
//! key knows what it was given and gave back.

mod ledger;
mod moves;
mod subject;

pub use moves::Input;

use std::time::Duration;

use tidegate::{
    Alignment, Denied, ExactLimiter, Limiter, Manual, OnFull, Pass, Reason, SingleLimiter, Standing,
};

use crate::asked::Asked;
use crate::input::Number;
use ledger::{Kind, Ledger};
use moves::Move;
use subject::{Alike, Paid, Place, Subject};

/// How long a bucket's leased tokens may be kept.
const LEASE_NS: u128 = 1_000_000;
/// As in the other games: six years are inside every limiter's own time.
const TIME_MAX_NS: u128 = 6 * 365 * 24 * 60 * 60 * 1_000_000_000;
const NANOSECOND: Duration = Duration::from_nanos(1);

/// Plays one game, or none if the limit is one that no limiter can honour.
pub fn run(input: &Input) {
    let mut asked = Asked::new(input.shape, input.alignment, input.count_refused, input.unix_ns);
    if let Some(debt_max) = input.debt_max {
        asked.limit = asked.limit.debt_max(debt_max.get());
    }
    let debt_max = input.debt_max.map_or(asked.cost_max, Number::get);
    let clock = Manual::at_unix(unix(&asked));
    let Some(subject) = subject(&asked, input.little_room, &clock) else { return };
    let slack_ns = 2 * subject.slots().resolution().as_nanos() + 2;
    let keys = (0..subject.keys()).map(|_| Ledger::default()).collect();
    let mut game = Game {
        asked,
        debt_max,
        clock,
        slack_ns,
        subject,
        keys,
        receipts: Vec::new(),
        places: Vec::new(),
        rewound: false,
        leases: false,
        latest_ns: 0,
        made: 0,
        total: Total::default(),
    };
    for &step in &input.steps.0 {
        let rare_kind = match step {
            Move::StepBack(_) => 1,
            Move::Warm { .. } => 2,
            Move::RefundKey { .. } => 3,
            _ => 0,
        };
        if rare_kind == 0 || input.has % 8 == rare_kind {
            game.step(step);
        }
    }
    game.check_all();
}

fn unix(asked: &Asked) -> Duration {
    Duration::from_nanos(u64::try_from(asked.unix_ns).unwrap_or(u64::MAX))
}

fn subject(asked: &Asked, little_room: Option<(u8, u8)>, clock: &Manual) -> Option<Subject> {
    let builder = Limiter::builder(asked.limit).seed(1).clock(clock.clone());
    let Some((keys, on_full)) = little_room else {
        let slots = builder.max_keys(64).build().ok()?;
        let exact = ExactLimiter::builder(asked.limit).max_keys(64).seed(1).clock(clock.clone()).build();
        let single = SingleLimiter::builder(asked.limit).seed(1).clock(clock.clone()).build();
        // The phase of the single one is its own.
        let is_single_same = asked.rate.is_some() || asked.alignment != Alignment::PerKey;
        return Some(Subject::Alike(Box::new(Alike {
            slots,
            exact: exact.expect("builds where a Limiter does"),
            single: single.expect("builds where a Limiter does"),
            are_same: true,
            is_single_same,
        })));
    };
    let on_full =
        [OnFull::EvictLeast, OnFull::Refuse, OnFull::Inherit, OnFull::Admit][usize::from(on_full % 4)];
    let limiter = builder.max_keys(usize::from(keys % 3) + 1).on_full(on_full).build().ok()?;
    Some(Subject::Full(Box::new(limiter), on_full))
}

/// A receipt or a place, and whose it is.
struct Kept<T> {
    key: usize,
    id: usize,
    /// How often the key had been reset.
    resets: u32,
    it: T,
}

/// Of all keys together.
#[derive(Default)]
struct Total {
    admitted: u128,
    back: u128,
    resets: u128,
}

struct Game {
    asked: Asked,
    debt_max: u64,
    clock: Manual,
    slack_ns: u128,
    subject: Subject,
    keys: Vec<Ledger>,
    receipts: Vec<Kept<Paid>>,
    places: Vec<Kept<Place>>,
    rewound: bool,
    leases: bool,
    latest_ns: u128,
    /// How many charges were made.
    made: usize,
    total: Total,
}

impl Game {
    fn step(&mut self, step: Move) {
        let (most, period_ns) = (self.asked.cost_max, self.asked.period_ns());
        match step {
            Move::Check { key, cost } => _ = self.check(key.into(), cost.get(most)),
            Move::Take { key, cost } => self.take(key.into(), cost.get(most)),
            Move::Charge { key, cost } => self.charge(key.into(), cost.get(most)),
            Move::Refund { which } => self.refund(which.into()),
            Move::RefundKey { key, tokens } => self.refund_key(key.into(), tokens.get(most)),
            Move::Reset { key } => self.reset(key.into()),
            Move::Reserve { key, cost, wait_max } => {
                self.reserve(key.into(), cost.get(most), wait_max.get(period_ns.saturating_mul(16)));
            }
            Move::Cancel { which } => self.cancel(which.into()),
            Move::Peek { key } => _ = self.peek(key.into()),
            Move::Insist { key, cost } => self.insist(key.into(), cost.get(most)),
            Move::Flood { first, count, cost } => {
                for key in 0..u64::from(count) % self.subject.keys() {
                    _ = self.check(u64::from(first) + key, cost.get(most));
                }
            }
            Move::Advance(span) => self.advance(span.get(period_ns)),
            Move::StepBack(span) => {
                self.clock.set(self.clock.elapsed().saturating_sub(span.get(period_ns)));
                self.rewound = true;
                self.keys.iter_mut().for_each(|key| key.is_loose = true);
            }
            Move::Warm { key } => {
                let key = u64::from(key) % self.subject.keys();
                self.subject.warm(key);
                self.leases = true;
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

    /// The number of a key among those of the game.
    #[expect(clippy::cast_possible_truncation, reason = "there are 120 keys at most")]
    fn key(&self, key: u64) -> (u64, usize) {
        let key = key % self.subject.keys();
        (key, key as usize)
    }

    fn is_full(&self) -> bool {
        matches!(self.subject, Subject::Full(..))
    }

    /// Whether the key's standing tells what it will be answered: a newcomer's may not, who begins at the time of an
    /// eviction or with another's debt.
    fn is_telling(&self) -> bool {
        let inherits = matches!(self.subject, Subject::Full(_, OnFull::Inherit));
        !(self.leases || inherits || self.rewound && self.is_full())
    }

    fn check(&mut self, key: u64, cost: u64) -> Result<Pass, Denied> {
        let (key, index) = self.key(key);
        let before = self.subject.peek(key);
        let untracked = self.subject.stats().untracked;
        let answer = self.subject.check(key, cost);
        let is_counted = self.subject.stats().untracked == untracked;
        self.check_answer(&before, cost, is_counted, answer.as_ref().err());
        if answer.is_ok() && is_counted {
            self.admitted(index, cost);
        }
        answer
    }

    fn check_answer(&self, before: &Standing, cost: u64, is_counted: bool, denied: Option<&Denied>) {
        let is_refused = denied.is_some_and(|denied| denied.reason() != Reason::Full);
        let wait = before.retry_after(cost);
        if self.is_telling() && is_counted && denied.is_none_or(|_| is_refused) {
            assert_eq!(wait == Some(Duration::ZERO), denied.is_none(), "{cost}: {before:?} {denied:?}");
        }
        // Who leases is told no less than what there is.
        if self.leases && !self.is_full() {
            assert!(wait != Some(Duration::ZERO) || denied.is_none(), "{cost}: {before:?} {denied:?}");
        }
        if let Some(denied) = denied {
            assert!(!denied.to_string().is_empty() && denied.retry_after_secs() >= 1);
        }
    }

    fn take(&mut self, key: u64, cost: u64) {
        let (key, index) = self.key(key);
        let before = self.subject.peek(key);
        let untracked = self.subject.stats().untracked;
        let answer = self.subject.take(key, cost);
        let is_counted = self.subject.stats().untracked == untracked;
        self.check_answer(&before, cost, is_counted, answer.as_ref().err());
        if let Ok(paid) = answer {
            assert_eq!(paid.0.charged(), if is_counted { cost } else { 0 });
            self.admitted(index, paid.0.charged());
            self.keep(index, paid);
        }
    }

    fn charge(&mut self, key: u64, cost: u64) {
        let (key, index) = self.key(key);
        let Ok(paid) = self.subject.charge(key, cost) else {
            assert!(self.is_full(), "a charge was refused");
            return;
        };
        let receipt = &paid.0;
        assert_eq!(receipt.charged() + receipt.uncharged(), cost);
        if self.asked.rate.is_some() && receipt.charged() > 0 && !self.rewound {
            assert!(receipt.debt() <= self.debt_max, "{receipt:?} owes more than {}", self.debt_max);
        }
        let charged = receipt.charged();
        self.log(index, Kind::Charged, Duration::ZERO, charged);
        self.keep(index, paid);
    }

    fn keep(&mut self, key: usize, paid: Paid) {
        self.receipts.push(Kept { key, id: self.made, resets: self.keys[key].resets, it: paid });
    }

    fn admitted(&mut self, key: usize, cost: u64) {
        let now_ns = self.now_ns();
        let ledger = &self.keys[key];
        if cost > 0 && ledger.is_in_order() && !self.leases {
            assert!(ledger.waiting(now_ns).next().is_none(), "a check overtook the line: {ledger:?}");
        }
        self.total.admitted += u128::from(cost);
        self.log(key, Kind::Admitted, Duration::ZERO, cost);
    }

    fn log(&mut self, key: usize, kind: Kind, wait: Duration, tokens: u64) {
        self.made += 1;
        let now_ns = self.now_ns();
        self.keys[key].add(self.made, kind, now_ns, now_ns + wait.as_nanos(), tokens);
        self.check_bounds(key);
    }

    fn refund(&mut self, which: usize) {
        if self.receipts.is_empty() {
            return;
        }
        let Kept { key, id, resets, it } = self.receipts.swap_remove(which % self.receipts.len());
        let charged = it.0.charged();
        let others = self.others(key);
        let back = self.subject.refund(it);
        self.keys[key].last = None;
        assert!(back <= charged, "{back} of {charged}");
        assert!(self.others(key) == others, "another key was given something");
        if back == 0 {
            return;
        }
        assert_eq!(self.keys[key].resets, resets, "a receipt outlived a reset");
        let is_aside = self.keys[key].waiting(self.now_ns()).next().is_some();
        self.gave_back(key, id, back, is_aside);
    }

    fn gave_back(&mut self, key: usize, id: usize, back: u64, is_aside: bool) {
        self.keys[key].give_back(id, back, is_aside);
        self.total.back += u128::from(back);
        self.check_bounds(key);
        self.check_rebuilt(key);
    }

    /// How all keys but one stand, where they get in each other's way.
    fn others(&self, key: usize) -> Vec<(u64, u64)> {
        if !self.is_full() {
            return Vec::new();
        }
        let others = (0..self.subject.keys()).filter(|&other| other != key as u64);
        others.map(|other| self.subject.peek(other)).map(|seen| (seen.remaining(), seen.debt())).collect()
    }

    fn refund_key(&mut self, key: u64, tokens: u64) {
        let (key, index) = self.key(key);
        let back = self.subject.refund_key(key, tokens);
        self.keys[index].last = None;
        assert!(back <= tokens);
        if back > 0 {
            self.keys[index].mint(back);
            self.total.back += u128::from(back);
        }
    }

    fn reset(&mut self, key: u64) {
        let (key, index) = self.key(key);
        self.subject.reset(key);
        assert_eq!(self.subject.peek(key).remaining(), self.asked.cost_max);
        self.keys[index].reset();
        self.keys[index].is_loose = self.rewound;
        if self.leases {
            // What was leased of it may still be spent.
            self.keys[index].credited = self.asked.cost_max.into();
        }
        self.total.resets += 1;
    }

    fn reserve(&mut self, key: u64, cost: u64, wait_max: Duration) {
        let (key, index) = self.key(key);
        let place = match self.subject.reserve(key, cost, wait_max) {
            Ok(place) => place,
            Err(denied) => {
                let is_bucket = self.asked.rate.is_some();
                assert_eq!(denied.reason() == Reason::Unsupported, !is_bucket);
                if denied.reason() == Reason::Exhausted {
                    assert!(
                        denied.retry_after().is_none_or(|wait| wait > wait_max),
                        "{denied:?} {wait_max:?}"
                    );
                }
                return;
            }
        };
        let (wait, charged) = (place.0.wait(), place.0.charged());
        assert!(wait <= wait_max && charged <= cost && cost <= self.asked.cost_max);
        let (turn_ns, ledger) = (self.now_ns() + wait.as_nanos(), &self.keys[index]);
        if ledger.is_in_order() && charged > 0 && !self.leases {
            assert!(ledger.waiting(turn_ns).next().is_none(), "out of turn, {turn_ns}: {ledger:?}");
        }
        self.log(index, Kind::Reserved, wait, charged);
        self.places.push(Kept { key: index, id: self.made, resets: self.keys[index].resets, it: place });
    }

    fn cancel(&mut self, which: usize) {
        if self.places.is_empty() {
            return;
        }
        let Kept { key, id, resets, it } = self.places.swap_remove(which % self.places.len());
        let charged = it.0.charged();
        let others = self.others(key);
        let was = self.subject.cancel(it);
        assert!(self.others(key) == others, "another key was given something");
        let ledger = &self.keys[key];
        let is_last = ledger.last == Some(id);
        assert!(was || !is_last || self.is_full() || self.leases, "the last in line was not given back");
        if was {
            assert_eq!(ledger.resets, resets, "a place outlived a reset");
            let is_aside = ledger.waiting(self.now_ns()).any(|entry| entry.id > id);
            self.gave_back(key, id, charged, is_aside);
        }
    }

    fn peek(&mut self, key: u64) -> Standing {
        let (key, index) = self.key(key);
        let seen = self.subject.peek(key);
        if seen.debt() > 0 {
            assert_eq!(seen.remaining(), 0, "{seen:?}");
            assert_ne!(seen.retry_after(1), Some(Duration::ZERO), "{seen:?}");
        }
        self.check_rebuilt(index);
        seen
    }

    /// Waits as told: the cost passes then, and not a nanosecond earlier.
    fn insist(&mut self, key: u64, cost: u64) {
        let Some(wait) = self.peek(key).retry_after(cost) else { return };
        if wait.is_zero() || self.leases || self.now_ns() + wait.as_nanos() > TIME_MAX_NS {
            return;
        }
        self.advance(wait - NANOSECOND);
        let early = self.peek(key);
        assert_eq!(early.retry_after(cost), Some(NANOSECOND), "{cost}, told {wait:?}: {early:?}");
        self.advance(NANOSECOND);
        let due = self.peek(key);
        assert_eq!(due.retry_after(cost), Some(Duration::ZERO), "{cost}, told {wait:?}: {due:?}");
        let answer = self.check(key, cost);
        assert!(answer.is_ok(), "{cost} after {wait:?}: {answer:?}");
    }

    /// Limits that forced evictions forgave one key.
    fn forgiven(&self, limit: u64, is_of_all: bool) -> u128 {
        let stats = self.subject.stats();
        // Debts that are inherited stay in the table, but leave their key.
        let parts = match self.subject {
            Subject::Full(_, OnFull::Inherit) if !is_of_all => stats.forced_evictions as f64 / 2.0,
            _ => stats.forgiven_limits,
        };
        // Parts of 2^16, exact in this type.
        (parts * 65_536.0) as u128 * u128::from(limit) / 65_536
    }

    fn check_bounds(&self, key: usize) {
        let held_ns = if self.leases && self.asked.rate.is_some() { LEASE_NS } else { 0 };
        let allowed: Vec<u128> = self.asked.parts.iter().map(|part| self.forgiven(part.0, false)).collect();
        let latest_ns = self.rewound.then_some(self.latest_ns);
        self.keys[key].check(&self.asked, self.slack_ns + held_ns, latest_ns, &allowed, self.debt_max);
    }

    /// All keys together were given what the slots admit, what was forgiven and what was given back.
    fn check_all(&self) {
        let Subject::Full(limiter, on_full) = &self.subject else { return };
        let is_phased = self.asked.rate.is_none() && self.asked.alignment == Alignment::PerKey;
        if *on_full == OnFull::Admit || is_phased {
            return;
        }
        let slots = limiter.bytes() as u128 / 16;
        for (part, &(limit, _)) in self.asked.parts.iter().enumerate() {
            let slack_ns = self.slack_ns + LEASE_NS;
            let slots_most = self.asked.most(part, 0, self.latest_ns, slack_ns).saturating_mul(slots);
            let renewed = u128::from(limit) * 3 * self.total.resets;
            let most = slots_most.saturating_add(self.forgiven(limit, true) + renewed + self.total.back);
            assert!(self.total.admitted <= most, "{} of {most}", self.total.admitted);
        }
    }

    /// A limiter that never saw what was given back has no less left.
    fn check_rebuilt(&self, key: usize) {
        let ledger = &self.keys[key];
        let opens_late = self.asked.rate.is_none() && self.asked.alignment == Alignment::FirstRequest;
        if self.is_full() || self.rewound || self.leases || ledger.is_minted || opens_late {
            return;
        }
        let clock = Manual::at_unix(unix(&self.asked));
        let builder = Limiter::builder(self.asked.limit.debt_max(u64::MAX)).max_keys(1).seed(1);
        let without = builder.clock(clock.clone()).build().expect("built before");
        let key = key as u64;
        for entry in ledger.entries.iter().filter(|entry| !entry.is_gone) {
            clock.set(Duration::from_nanos(u64::try_from(entry.at_ns).unwrap_or(u64::MAX)));
            let _ = without.charge(&key, entry.charged).expect("there is room");
        }
        clock.set(self.clock.elapsed());
        let (with, without) = (self.subject.slots().peek(&key), without.peek(&key));
        assert!(with.remaining() <= without.remaining(), "{with:?}, without: {without:?}");
        for (with, without) in with.windows().iter().zip(&without.windows()) {
            assert!(with.observed >= without.observed, "{with:?}, without: {without:?}");
        }
        let is_plain = ledger.entries.iter().all(|entry| !entry.is_gone);
        if is_plain && self.asked.rate.is_some() && self.latest_ns <= TIME_MAX_NS {
            assert_eq!((with.remaining(), with.debt()), (without.remaining(), without.debt()));
        }
    }
}
