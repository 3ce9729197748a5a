//! What a user asks for: a bucket, a window, a sliding window, or burst + sustain windows. Plain values that accept
//! anything; whether a limiter can honour them is checked when it is built.

use std::time::Duration;

use crate::error::ConfigError;

/// So many tokens in so much time, refilled evenly.
///
/// From 1 a year to 10^10 a second, each exact: no rate is rounded to whole nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    tokens: u64,
    period: Duration,
}

impl Rate {
    /// `tokens` in each `period`. Both must be above 0 when a limiter is built from it.
    pub const fn new(tokens: u64, period: Duration) -> Self {
        Self { tokens, period }
    }

    /// `tokens` a second.
    pub const fn per_second(tokens: u64) -> Self {
        Self::new(tokens, Duration::from_secs(1))
    }

    /// `tokens` a minute.
    pub const fn per_minute(tokens: u64) -> Self {
        Self::new(tokens, Duration::from_secs(60))
    }

    /// `tokens` an hour.
    pub const fn per_hour(tokens: u64) -> Self {
        Self::new(tokens, Duration::from_secs(60 * 60))
    }

    /// `tokens` a day of 86 400 s.
    pub const fn per_day(tokens: u64) -> Self {
        Self::new(tokens, Duration::from_secs(24 * 60 * 60))
    }

    /// Tokens added in each [`period`](Self::period).
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The time in which [`tokens`](Self::tokens) are added.
    pub const fn period(&self) -> Duration {
        self.period
    }
}

/// So many requests in a fixed period, after which the count starts again at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    limit: u64,
    period: Duration,
}

impl Window {
    /// At most `limit` requests (or units of cost) in each `period`. With limit 30 the 30th passes
    /// and the 31st is refused.
    pub const fn new(limit: u64, period: Duration) -> Self {
        Self { limit, period }
    }

    /// The most that one period admits.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// How long the window lasts.
    pub const fn period(&self) -> Duration {
        self.period
    }
}

/// Where a window begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alignment {
    /// Periods tile the Unix epoch: a 15 s window ends at :00, :15, :30 and :45, for every key at
    /// once.
    Clock,
    /// Periods follow each other without a gap from a start of the key's own, so that the windows of a
    /// thousand keys do not all start again in one instant.
    #[default]
    PerKey,
    /// A window opens at the key's first request after the one before has ended; bursts tile the
    /// sustain window from there. Openings are kept on a grid of at most 1/64 of the (burst) period,
    /// so that a window may end early by up to one step of it. Not for sliding windows, which never begin anew.
    FirstRequest,
}

/// The shape of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    Bucket { rate: Rate, burst: u64 },
    Window(Window),
    Sliding(Window),
    BurstSustain { burst: Window, sustain: Window },
}

/// What a limiter enforces for each key.
///
/// # Ranges
///
/// A limit is a plain value; `build` of a limiter checks it, and its
/// [`ConfigError`] names the field, the value and what is allowed.
///
/// * Every count is at least 1 and every period at least 1 ns.
/// * A rate may be at least anything from 1 a year to 10^10 a second; a burst, what fills in decades.
/// * A window lasts at most seven years. Time and counts share 62 bits: a window of a second may count to
///   more than 10^10, two windows of 15 s and 300 s to about 500 000 each (8 000 where windows open at the
///   first request, whose start needs more bits), a sliding window of a second to 131 070, of a minute to a million.
///   A limiter with room for tiers has one to eight bits fewer ([`max_tiers`](crate::Builder::max_tiers)).
///
/// ```
/// use std::time::Duration;
/// use tidegate::{Alignment, Limit, Rate, Window};
///
/// // 100 a second on average, up to 200 at once.
/// let bucket = Limit::bucket(Rate::per_second(100), 200);
///
/// // 30 in each 15 s and 100 in each 300 s, both counted at once.
/// let windows = Limit::burst_sustain(
///     Window::new(30, Duration::from_secs(15)),
///     Window::new(100, Duration::from_secs(300)),
/// )
/// .align(Alignment::Clock);
/// # assert_ne!(bucket, windows);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limit {
    shape: Shape,
    alignment: Alignment,
    count_refused: bool,
    /// None: as much as the burst.
    debt_max: Option<u64>,
}

impl Shape {
    /// What to call it in a sentence.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Bucket { .. } => "a bucket",
            Self::Window(_) => "a window",
            Self::Sliding(_) => "a sliding window",
            Self::BurstSustain { .. } => "burst + sustain windows",
        }
    }
}

impl Alignment {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Clock => "Clock",
            Self::PerKey => "PerKey",
            Self::FirstRequest => "FirstRequest",
        }
    }
}

impl Limit {
    const fn new(shape: Shape) -> Self {
        Self { shape, alignment: Alignment::PerKey, count_refused: true, debt_max: None }
    }

    /// A token bucket that holds at most `burst` tokens and refills evenly at `rate`. A refused
    /// request takes nothing.
    pub const fn bucket(rate: Rate, burst: u64) -> Self {
        Self::new(Shape::Bucket { rate, burst })
    }

    /// One fixed window. Refused requests count too, unless [`count_refused`](Self::count_refused) says
    /// otherwise. When it starts is a matter of [`align`](Self::align): in a test, choose
    /// [`Alignment::Clock`] or fix the limiter's seed, else a key's window ends at a time that nobody
    /// knows.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{Alignment, ExactLimiter, Limit, Manual, Window};
    ///
    /// let clock = Manual::new();
    /// let limit = Limit::window(Window::new(2, Duration::from_secs(10))).align(Alignment::Clock);
    /// let limiter = ExactLimiter::<u32>::builder(limit).clock(clock.clone()).build()?;
    /// assert!(limiter.allow(&7) && limiter.allow(&7));
    /// clock.advance(Duration::from_secs(9));
    /// assert_eq!(limiter.check(&7).unwrap_err().retry_after_secs(), 1);
    /// clock.advance(Duration::from_secs(1));
    /// assert!(limiter.allow(&7));
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    pub const fn window(window: Window) -> Self {
        Self::new(Shape::Window(window))
    }

    /// One window that slides: it counts in whole periods, as [`window`](Self::window) does, and weighs what the period
    /// before has counted by the share of it that a window ending now would still cover. With `elapsed` gone of this
    /// period, a request of `cost` passes if and only if, in whole numbers,
    ///
    /// ```text
    /// previous · (period − elapsed) + (current + cost) · period ≤ limit · period
    /// ```
    ///
    /// Refused requests do **not** count unless [`count_refused`](Self::count_refused) says so: they would weigh in the
    /// next period too, as far as a count holds them ([`observed_max`](crate::WindowState::observed_max)), and lock out for
    /// good who asks on and on. [`Alignment::Clock`] and [`Alignment::PerKey`] say
    /// where periods begin, as for windows; [`Alignment::FirstRequest`] is an error, for no period begins anew.
    ///
    /// # What it admits
    ///
    /// In any time Δ at most `limit + limit · Δ / period`, which is what a bucket of as many tokens that refills them in
    /// each period would: less than twice the limit in any one period, and no more than the limit at an instant (a fixed
    /// window: twice the limit at an instant, across its edge). For what is used, `current` and the weight of `previous`,
    /// is never above the limit when something passes, a pass adds its cost to it, and it falls by `previous` in a period,
    /// which is the limit at most. Twice the limit less one is reached: by a burst of the whole limit as a period ends,
    /// followed through the next one by all that comes free.
    ///
    /// Who takes all that comes free gets the limit less one in each period from then on, and where the limit is 1, one in
    /// two periods: a previous count weighs something to the very end.
    ///
    /// # How far it is from an exact log
    ///
    /// A log holds the time of each request admitted in the last period. After the same admissions, this counter counts
    ///
    /// * less than the log by `previous · elapsed / period` at most: where all of `previous` came as its period ended;
    /// * more than the log by `previous · (period − elapsed) / period` at most, rounded up: where it all came at the start;
    /// * as many or one more, where `previous` came evenly spread: then it never admits what the log refuses.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{Alignment, ExactLimiter, Limit, Manual, Window};
    ///
    /// let clock = Manual::new();
    /// let limit = Limit::sliding_window(Window::new(10, Duration::from_secs(10))).align(Alignment::Clock);
    /// let limiter = ExactLimiter::<u32>::builder(limit).clock(clock.clone()).build()?;
    /// assert!(limiter.check_n(&7, 10).is_ok());
    /// // 4 s into the next period, 10 weigh 10 · 6 / 10: four come free.
    /// clock.advance(Duration::from_secs(14));
    /// assert_eq!(limiter.peek(&7).remaining(), 4);
    /// assert!(limiter.check_n(&7, 4).is_ok());
    /// assert_eq!(limiter.check(&7).unwrap_err().retry_after_secs(), 1);
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    pub const fn sliding_window(window: Window) -> Self {
        Self::new(Shape::Sliding(window)).count_refused(false)
    }

    /// Two fixed windows counted at once. A request must fit both; the sustain period is a whole
    /// multiple of the burst period (2 or more) and the sustain limit at least the burst limit. Refused
    /// requests count too, unless [`count_refused`](Self::count_refused) says otherwise.
    pub const fn burst_sustain(burst: Window, sustain: Window) -> Self {
        Self::new(Shape::BurstSustain { burst, sustain })
    }

    /// Where windows begin and end; [`Alignment::PerKey`] unless told. Buckets have no windows and
    /// ignore it.
    #[must_use]
    pub const fn align(mut self, alignment: Alignment) -> Self {
        self.alignment = alignment;
        self
    }

    /// Whether a refused request counts in the windows too; unless told, it does in fixed ones, and not in a sliding
    /// one. A request whose cost
    /// can never fit is never counted. Buckets ignore it: a refusal takes no token.
    #[must_use]
    pub const fn count_refused(mut self, count: bool) -> Self {
        self.count_refused = count;
        self
    }

    /// How many tokens a bucket may owe beyond an empty one, when a [`charge`](crate::Limiter::charge) takes more than it
    /// holds; as many as the burst unless told. 0: a charge takes what is there and no more. A debt that would take
    /// decades to refill is cut to that. Windows ignore it: they count every charge, and forget it with the window.
    #[must_use]
    pub const fn debt_max(mut self, tokens: u64) -> Self {
        self.debt_max = Some(tokens);
        self
    }

    /// The most that a bucket of this burst may owe.
    pub(crate) const fn debt_max_of(&self, burst: u64) -> u64 {
        match self.debt_max {
            Some(tokens) => tokens,
            None => burst,
        }
    }

    /// Whether a limiter that was built with the limit `first` may go on with this one: windows must be the same but for
    /// their limits.
    pub(crate) fn follows(&self, first: &Self) -> Result<(), ConfigError> {
        let period = |field, built: Window, given: Window| {
            let (built, given) = (built.period, given.period);
            if built == given { Ok(()) } else { Err(ConfigError::PeriodChanged { field, built, given }) }
        };
        match (first.shape, self.shape) {
            (Shape::Bucket { .. }, Shape::Bucket { .. }) => return Ok(()),
            (Shape::Window(built), Shape::Window(given)) | (Shape::Sliding(built), Shape::Sliding(given)) => {
                period("window period", built, given)?;
            }
            (
                Shape::BurstSustain { burst: built, sustain: built_sustain },
                Shape::BurstSustain { burst: given, sustain: given_sustain },
            ) => {
                period("burst period", built, given)?;
                period("sustain period", built_sustain, given_sustain)?;
            }
            (built, given) => {
                return Err(ConfigError::KindChanged { built: built.name(), given: given.name() });
            }
        }
        let (built, given) = (first.alignment, self.alignment);
        if built == given {
            Ok(())
        } else {
            Err(ConfigError::AlignmentChanged { built: built.name(), given: given.name() })
        }
    }

    pub(crate) const fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) const fn alignment(&self) -> Alignment {
        self.alignment
    }

    pub(crate) const fn counts_refused(&self) -> bool {
        self.count_refused
    }
}
