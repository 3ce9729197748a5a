//! Tiers, overrides and changes of their limits, at whole seconds and with whole tokens a second, so that a naive limiter
//! counts exactly what a key owes; a word that goes from tier to tier is rounded up by far less than a token.

use std::collections::HashMap;
use std::time::Duration;

use arbitrary::Arbitrary;
use tidegate::{
    Alignment, CarryOver, ConfigError, Denied, ExactLimiter, Limit, Limiter, Manual, Pass, Rate, Tier, Window,
};

const TIERS: usize = 3;
/// Places for overrides.
const OVERRIDES: usize = 2;
const PERIOD_S: u64 = 15;

#[derive(Arbitrary, Debug)]
pub struct Input {
    windows: bool,
    count_refused: bool,
    limits: [Size; TIERS],
    steps: Vec<Step>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Size {
    rate: u8,
    burst: u16,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Check { key: u8, tier: u8, cost: u16 },
    Wait(u8),
    SetOverride { key: u8, size: Size },
    ClearOverride { key: u8 },
    SetTier { tier: u8, size: Size },
    Reset { key: u8 },
}

/// What a key owes, or has counted in the window of `at_s`.
#[derive(Clone, Copy)]
struct Naive {
    used: u64,
    at_s: u64,
    by: By,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Tier(usize),
    Override(Size),
}

impl PartialEq for Size {
    fn eq(&self, other: &Self) -> bool {
        (self.rate(), self.burst()) == (other.rate(), other.burst())
    }
}
impl Eq for Size {}

impl Size {
    fn rate(self) -> u64 {
        u64::from(self.rate) + 1
    }

    fn burst(self) -> u64 {
        u64::from(self.burst) + 1
    }
}

struct World {
    windows: bool,
    count_refused: bool,
    slots: Limiter<Manual>,
    exact: ExactLimiter<u8, Manual>,
    tiers: Vec<(Tier, Tier)>,
    sizes: [Size; TIERS],
    overrides: HashMap<u8, Size>,
    /// What overrides have a place for; some may be nobody's any more.
    places: Vec<Size>,
    keys: HashMap<u8, Naive>,
    at_s: u64,
}

pub fn run(input: &Input) {
    let mut world = World::new(input);
    for step in &input.steps {
        world.step(step);
    }
}

impl World {
    fn new(input: &Input) -> Self {
        let limit = |size| limit(input.windows, input.count_refused, size);
        let clock = Manual::new();
        let tiers = u8::try_from(TIERS - 1 + OVERRIDES).expect("a handful");
        let first = limit(input.limits[0]);
        let slots = Limiter::builder(first).max_keys(100).max_tiers(tiers).clock(clock.clone());
        let exact = ExactLimiter::builder(first).max_tiers(tiers).clock(clock);
        let (slots, exact) = (slots.build().expect("a limit"), exact.build().expect("a limit"));
        let make =
            |&size: &Size| (slots.tier(limit(size)).expect("room"), exact.tier(limit(size)).expect("room"));
        let tiers = input.limits[1..].iter().map(make).collect();
        Self {
            windows: input.windows,
            count_refused: input.count_refused,
            slots,
            exact,
            tiers,
            sizes: input.limits,
            overrides: HashMap::new(),
            places: Vec::new(),
            keys: HashMap::new(),
            at_s: 0,
        }
    }

    fn limit(&self, size: Size) -> Limit {
        limit(self.windows, self.count_refused, size)
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Wait(s) => {
                self.at_s += u64::from(s);
                self.slots.clock().advance(Duration::from_secs(s.into()));
            }
            Step::Check { key, tier, cost } => self.check(key % 4, usize::from(tier) % TIERS, cost.into()),
            Step::SetOverride { key, size } => self.set_override(key % 4, size),
            Step::ClearOverride { key } => {
                let had = self.overrides.remove(&(key % 4)).map(|size| self.limit(size));
                assert_eq!(self.slots.clear_override(&(key % 4)), had);
                assert_eq!(self.exact.clear_override(&(key % 4)), had);
            }
            Step::SetTier { tier, size } => {
                self.settle_all();
                let (tier, limit) = (usize::from(tier) % TIERS, self.limit(size));
                match tier.checked_sub(1) {
                    None => {
                        self.slots.set_limit(limit, CarryOver::KeepUsed).expect("it follows");
                        self.exact.set_limit(limit, CarryOver::KeepUsed).expect("it follows");
                    }
                    Some(place) => {
                        let (in_slots, in_exact) = self.tiers[place];
                        self.slots.set_tier_limit(in_slots, limit).expect("it follows");
                        self.exact.set_tier_limit(in_exact, limit).expect("it follows");
                    }
                }
                self.sizes[tier] = size;
            }
            Step::Reset { key } => {
                assert!(self.slots.reset(&(key % 4)) && self.exact.reset(&(key % 4)));
                self.keys.remove(&(key % 4));
            }
        }
    }

    fn set_override(&mut self, key: u8, size: Size) {
        // A window has no rate: where only that is another, the limit is the same.
        let size = Size { rate: if self.windows { 0 } else { size.rate }, ..size };
        let limit = self.limit(size);
        let set = self.slots.set_override(&key, limit);
        assert_eq!(set, self.exact.set_override(&key, limit));
        let is_others = |size| self.overrides.iter().any(|(&other, &its)| other != key && its == size);
        // Its own before all others.
        let own = self.overrides.get(&key).copied();
        let is_unused = |size: &Size| !is_others(*size);
        let unused = own.into_iter().chain(self.places.iter().copied()).find(is_unused);
        match set {
            Ok(()) if self.places.contains(&size) => {}
            Ok(()) if self.places.len() < OVERRIDES => self.places.push(size),
            Ok(()) => {
                let was = unused.expect("a place that no other key has");
                self.settle_all();
                let place = self.places.iter_mut().find(|place| **place == was).expect("it has a place");
                *place = size;
                // The key's own limit changes in its place; what was used in a place that is given to a key is the
                // limiter's own again.
                let by = if own == Some(was) { By::Override(size) } else { By::Tier(0) };
                for of in self.keys.values_mut().filter(|of| of.by == By::Override(was)) {
                    of.by = by;
                }
            }
            Err(ConfigError::TooManyTiers { .. }) => {
                assert!(
                    self.places.len() == OVERRIDES && unused.is_none(),
                    "there was room: {:?}",
                    self.overrides
                );
                return;
            }
            Err(error) => panic!("{error}"),
        }
        self.overrides.insert(key, size);
    }

    fn size_of(&self, by: By) -> Size {
        match by {
            By::Tier(tier) => self.sizes[tier],
            By::Override(size) => size,
        }
    }

    /// What the key has used as it stands now.
    fn used(&self, key: u8) -> u64 {
        let Some(of) = self.keys.get(&key) else { return 0 };
        match self.windows {
            true if of.at_s / PERIOD_S == self.at_s / PERIOD_S => of.used,
            true => 0,
            false => of.used.saturating_sub(self.size_of(of.by).rate() * (self.at_s - of.at_s)),
        }
    }

    /// What came back so far came back at the rates before.
    fn settle_all(&mut self) {
        let keys: Vec<u8> = self.keys.keys().copied().collect();
        for key in keys {
            let used = self.used(key);
            let of = self.keys[&key];
            self.keys.insert(key, Naive { used, at_s: self.at_s, ..of });
        }
    }

    fn check(&mut self, key: u8, tier: usize, cost: u64) {
        let by = self.overrides.get(&key).map_or(By::Tier(tier), |&size| By::Override(size));
        let (used, burst) = (self.used(key), self.size_of(by).burst());
        let fits = cost == 0 || used.saturating_add(cost) <= burst;
        let answers: [Result<Pass, Denied>; 2] = match tier.checked_sub(1) {
            None => [self.slots.check_n(&key, cost), self.exact.check_n(&key, cost)],
            Some(place) => {
                let (in_slots, in_exact) = self.tiers[place];
                [self.slots.check_in(in_slots, &key, cost), self.exact.check_in(in_exact, &key, cost)]
            }
        };
        for answer in answers {
            assert_eq!(answer.is_ok(), fits, "{used} of {burst} used, {cost} asked: {answer:?}");
        }
        let counts = fits || (self.windows && self.count_refused && cost <= burst);
        if counts && cost > 0 {
            self.keys.insert(key, Naive { used: used + cost, at_s: self.at_s, by });
        } else if cost > 0 && cost <= burst && !self.windows {
            // It was asked, so what comes back does by this limit.
            self.keys.insert(key, Naive { used, at_s: self.at_s, by });
        }
    }
}

fn limit(windows: bool, count_refused: bool, size: Size) -> Limit {
    if windows {
        let window = Window::new(size.burst(), Duration::from_secs(PERIOD_S));
        Limit::window(window).align(Alignment::Clock).count_refused(count_refused)
    } else {
        Limit::bucket(Rate::per_second(size.rate()), size.burst())
    }
}
