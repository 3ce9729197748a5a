//! Limits and waits that meet the storm, and the engine's limiters behind them.

use std::time::Duration;

use tidegate::{
    Alignment, ConfigError, Denied, Limit, Limiter, Manual, Rate, SingleLimiter, Window as FixedWindow,
};

use super::reader::size;
use super::scenario::{MS, S, Scenario, Told};

/// The hash seed of limiters: rows of places are by hash, and a run must repeat.
const HASH_SEED: u64 = 2026;

/// What limits requests. Each follows from one capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A fixed window for all clients together, by the clock.
    FixedWindow,
    /// A sliding window for all clients together.
    SlidingWindow,
    /// A bucket for all clients together.
    BucketForAll,
    /// A bucket for the partner, and one for each other client.
    BucketForEach,
}

/// What the refused are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Nothing.
    None,
    /// To come back when the clock's period ends, as servers with fixed windows say.
    PeriodEnd,
    /// The shortest wait that is enough for one.
    Exact,
    /// A place one behind the other.
    Staggered,
}

impl Kind {
    /// All of them, in the order of the report.
    pub const ALL: [Kind; 4] =
        [Kind::FixedWindow, Kind::SlidingWindow, Kind::BucketForAll, Kind::BucketForEach];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Kind::FixedWindow => "Fixed window for all",
            Kind::SlidingWindow => "Sliding window for all",
            Kind::BucketForAll => "One bucket for all",
            Kind::BucketForEach => "A bucket for each client",
        }
    }

    /// Whether it counts in periods.
    pub fn is_window(self) -> bool {
        matches!(self, Kind::FixedWindow | Kind::SlidingWindow)
    }
}

impl Wait {
    /// All of them, in the order of the report.
    pub const ALL: [Wait; 4] = [Wait::None, Wait::PeriodEnd, Wait::Exact, Wait::Staggered];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Wait::None => "none",
            Wait::PeriodEnd => "period end",
            Wait::Exact => "exact",
            Wait::Staggered => "staggered",
        }
    }
}

/// A bucket's rate, `tokens` in `seconds`, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    tokens: u64,
    seconds: u64,
    /// The most that it holds.
    pub burst: u64,
}

impl Bucket {
    fn new(tokens: u64, seconds: u64, scenario: &Scenario) -> Self {
        let of_time =
            u128::from(tokens) * u128::from(scenario.limits.burst_ms) / (u128::from(seconds) * 1_000);
        let of_time = u64::try_from(of_time).unwrap_or(u64::MAX);
        Bucket { tokens, seconds, burst: of_time.max(scenario.limits.burst_min) }
    }

    /// Tokens a second.
    pub fn per_s(self) -> f64 {
        self.tokens as f64 / self.seconds as f64
    }

    fn limit(self) -> Limit {
        Limit::bucket(Rate::new(self.tokens, Duration::from_secs(self.seconds)), self.burst)
    }
}

/// What limits follow from the capacity.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// What a window admits.
    pub window: u64,
    /// The bucket that all share.
    pub all: Bucket,
    /// The partner's, where each client has one.
    pub partner: Bucket,
    /// That of each other client.
    pub other: Bucket,
}

impl Shares {
    /// Those of a scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let limits = &scenario.limits;
        let capacity = limits.capacity_per_s;
        Shares {
            window: capacity * limits.period_s,
            all: Bucket::new(capacity, 1, scenario),
            partner: Bucket::new(capacity * limits.partner_percent, 100, scenario),
            other: Bucket::new(
                capacity * (100 - limits.partner_percent),
                100 * scenario.traffic.others,
                scenario,
            ),
        }
    }
}

/// A limit of the engine on a clock that the play moves.
pub(super) struct Server {
    limiter: Guard,
    clock: Manual,
    wait: Wait,
    devices: u32,
    period_ns: u64,
    told: Told,
}

enum Guard {
    Shared(SingleLimiter<Manual>),
    Each { partner: SingleLimiter<Manual>, others: Box<Limiter<Manual>> },
}

impl Server {
    /// # Errors
    /// A limit that the engine cannot keep.
    pub(super) fn new(scenario: &Scenario, kind: Kind, wait: Wait) -> Result<Self, ConfigError> {
        let period = Duration::from_secs(scenario.limits.period_s);
        // Wall time begins with a whole period.
        let clock = Manual::at_unix(period * 10_000);
        let single = |limit: Limit| {
            SingleLimiter::builder(limit)
                .seed(HASH_SEED)
                .stagger(wait == Wait::Staggered)
                .clock(clock.clone())
                .build()
        };
        let shares = Shares::new(scenario);
        let window = FixedWindow::new(shares.window, period);
        let limiter = match kind {
            Kind::FixedWindow => Guard::Shared(single(Limit::window(window).align(Alignment::Clock))?),
            Kind::SlidingWindow => {
                Guard::Shared(single(Limit::sliding_window(window).align(Alignment::Clock))?)
            }
            Kind::BucketForAll => Guard::Shared(single(shares.all.limit())?),
            Kind::BucketForEach => Guard::Each {
                partner: single(shares.partner.limit())?,
                others: Box::new(
                    Limiter::builder(shares.other.limit())
                        // Room enough that nobody is forgotten.
                        .max_keys(size(scenario.traffic.others.saturating_mul(4)))
                        .seed(HASH_SEED)
                        .stagger(wait == Wait::Staggered)
                        .clock(clock.clone())
                        .build()?,
                ),
            },
        };
        let devices = u32::try_from(scenario.traffic.devices).unwrap_or(u32::MAX);
        let (period_ns, told) = (scenario.limits.period_s * S, scenario.limits.told);
        Ok(Server { limiter, clock, wait, devices, period_ns, told })
    }

    /// Decides a request at `at_ns` of the play: passed, or refused with the wait that is told, in nanoseconds, if
    /// one is.
    pub(super) fn decide(&self, caller: u32, at_ns: u64) -> Result<(), Option<u64>> {
        self.clock.set(Duration::from_nanos(at_ns));
        match self.refusal(caller) {
            None => Ok(()),
            Some(denied) => Err(self.told(&denied, at_ns)),
        }
    }

    fn refusal(&self, caller: u32) -> Option<Denied> {
        let answer = match &self.limiter {
            Guard::Shared(limiter) => limiter.check(),
            Guard::Each { partner, .. } if caller < self.devices => partner.check(),
            Guard::Each { others, .. } => others.check(&caller),
        };
        answer.err()
    }

    fn told(&self, denied: &Denied, at_ns: u64) -> Option<u64> {
        let wait_ns = match self.wait {
            Wait::None => return None,
            Wait::PeriodEnd => self.period_ns - at_ns % self.period_ns,
            Wait::Exact => nanos(denied.retry_after()?),
            Wait::Staggered => nanos(denied.retry_after_staggered()?),
        };
        Some(match self.told {
            Told::Exact => wait_ns,
            Told::WholeSeconds => wait_ns.div_ceil(S).max(1) * S,
        })
    }
}

fn nanos(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}

/// Milliseconds as nanoseconds.
pub(super) fn ms(ms: u64) -> u64 {
    ms * MS
}
