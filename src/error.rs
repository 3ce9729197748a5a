//! Why a limiter could not be built.

use std::fmt;
use std::time::Duration;

/// A limit, or a setting, that no limiter can honour.
///
/// Every constructor of a limit accepts anything; `build()` checks the whole and returns the first
/// thing that is wrong. The message names the field, the value given and what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A count is 0 where at least 1 is needed: a rate, a burst, a window's limit, `max_keys`.
    Zero {
        /// The field, as `rate`, `burst`, `window limit`, `burst limit`, `sustain limit`, `max_keys`.
        field: &'static str,
    },
    /// A period is 0 where at least one nanosecond is needed.
    ZeroPeriod {
        /// The field, as `rate period`, `window period`, `burst period`, `sustain period`.
        field: &'static str,
    },
    /// The sustain period is not a whole multiple (2 or more) of the burst period.
    NotAMultiple {
        /// The burst period.
        burst: Duration,
        /// The sustain period.
        sustain: Duration,
    },
    /// The sustain limit is below the burst limit, so that the burst limit could never be reached.
    SustainBelowBurst {
        /// The burst limit, in requests.
        burst: u64,
        /// The sustain limit, in requests.
        sustain: u64,
    },
    /// A burst that takes so long to fill at its rate that the limiter's own time would end in less
    /// than seven years.
    BurstTooLarge {
        /// The burst, in tokens.
        burst: u64,
        /// The most that is allowed at this rate.
        burst_max: u64,
    },
    /// A period so long that it leaves less than seven years before the limiter's own time ends.
    BeyondHorizon {
        /// The field, as `window period`, `sustain period`, `rate period`.
        field: &'static str,
        /// What was asked for, in seconds (rounded up).
        seconds: u128,
        /// The most that is allowed, in seconds.
        seconds_max: u128,
    },
    /// A rate so high that the limiter's time would end in less than seven years.
    RateTooHigh {
        /// Tokens a second (rounded down).
        per_second: u128,
        /// The most that is allowed, in tokens a second.
        per_second_max: u128,
    },
    /// The window's counts and its time do not fit one word together.
    TooWide {
        /// The limit that is too large, as `window limit`, `burst limit`, `sustain limit`.
        field: &'static str,
        /// The limit given.
        limit: u64,
        /// The largest limit that would fit in its place, beside `other`.
        limit_max: u64,
        /// The other window's limit: the one given, or a smaller one where that leaves no room at all.
        other: Option<(&'static str, u64)>,
    },
    /// The time of such windows takes so many bits that no count fits beside it.
    PeriodsTooWide {
        /// The burst (or only) period.
        burst: Duration,
        /// The sustain period; the same where there is no other.
        sustain: Duration,
    },
    /// A sliding window under `Alignment::FirstRequest`.
    SlidingFromFirstRequest,
    /// A limit that is to follow another is of another kind, so that words would not count the same.
    KindChanged {
        /// What the limiter was built with, as `a bucket`, `a window`, `a sliding window`, `burst + sustain windows`.
        built: &'static str,
        /// What was to follow.
        given: &'static str,
    },
    /// A limit that is to follow another has windows of another period.
    PeriodChanged {
        /// Which one, as `window period`, `burst period`, `sustain period`.
        field: &'static str,
        /// What the limiter was built with.
        built: Duration,
        /// What was to follow.
        given: Duration,
    },
    /// A limit that is to follow another has windows of another alignment.
    AlignmentChanged {
        /// What the limiter was built with.
        built: &'static str,
        /// What was to follow.
        given: &'static str,
    },
    /// The limiter has had so many different limits that it has no place for another.
    TooManyLimits {
        /// How many it may have.
        limits_max: usize,
    },
    /// The limiter was not built for so many tiers.
    TooManyTiers {
        /// `max_tiers` as given.
        tiers_max: usize,
    },
    /// Another limiter made the tier.
    ForeignTier,
    /// The system has no memory for a table of so many keys.
    NoMemory {
        /// `max_keys` as given.
        keys: usize,
    },
    /// `max_keys` is larger than a table can number.
    TooManyKeys {
        /// The number given.
        keys: usize,
        /// The most that is allowed.
        keys_max: usize,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Zero { field } => write!(f, "{field} is 0; it must be at least 1"),
            Self::ZeroPeriod { field } => write!(f, "{field} is 0 s; it must be at least 1 ns"),
            Self::NotAMultiple { burst, sustain } => write!(
                f,
                "sustain period is {sustain:?}; it must be a whole multiple, 2 or more, of the burst period {burst:?}"
            ),
            Self::SustainBelowBurst { burst, sustain } => {
                write!(f, "sustain limit is {sustain}; it must be at least the burst limit, {burst}")
            }
            Self::BurstTooLarge { burst, burst_max } => write!(
                f,
                "burst is {burst}; it may be at most {burst_max} at this rate, so that the limiter's time lasts 7 years"
            ),
            Self::BeyondHorizon { field, seconds, seconds_max } => write!(
                f,
                "{field} spans {seconds} s; it may span at most {seconds_max} s, so that the limiter's time lasts 7 years"
            ),
            Self::RateTooHigh { per_second, per_second_max } => write!(
                f,
                "rate is {per_second} a second; it may be at most {per_second_max} a second, so that the limiter's time lasts 7 years"
            ),
            Self::PeriodsTooWide { burst, sustain } => write!(
                f,
                "burst period is {burst:?} in a sustain period of {sustain:?}; it must be longer, or a larger share, for one word to hold a count beside the time"
            ),
            Self::SlidingFromFirstRequest => f.write_str(
                "alignment of a sliding window is FirstRequest; it must be Clock or PerKey, for it never begins anew",
            ),
            Self::KindChanged { built, given } => {
                write!(f, "limit is {given}; it must be {built}, as the one that the limiter was built with")
            }
            Self::PeriodChanged { field, built, given } => write!(
                f,
                "{field} is {given:?}; it must be {built:?}, as in the limit that the limiter was built with"
            ),
            Self::AlignmentChanged { built, given } => write!(
                f,
                "alignment is {given}; it must be {built}, as in the limit that the limiter was built with"
            ),
            Self::TooManyLimits { limits_max } => {
                write!(
                    f,
                    "limit is one more than the {limits_max} different ones that a limiter may have had"
                )
            }
            Self::TooManyTiers { tiers_max: 0 } => f.write_str(
                "the limiter was built without room for tiers; `max_tiers` makes it, for each tier and each different limit of an override",
            ),
            Self::TooManyTiers { tiers_max } => write!(
                f,
                "tier is one more than the {tiers_max} that the limiter was built for; see `max_tiers`"
            ),
            Self::ForeignTier => f.write_str("tier is another limiter's; each limiter makes its own"),
            Self::NoMemory { keys } => {
                write!(f, "max_keys is {keys}; there is no memory for a table of so many")
            }
            Self::TooWide { field, limit, limit_max, other } => {
                write!(f, "{field} is {limit}; it may be at most {limit_max} beside ")?;
                if let Some((name, other)) = other {
                    write!(f, "a {name} of {other} and ")?;
                }
                f.write_str("these periods, for one word to hold the time and the counts")
            }
            Self::TooManyKeys { keys, keys_max } => {
                write!(f, "max_keys is {keys}; it may be at most {keys_max}")
            }
        }
    }
}

impl std::error::Error for ConfigError {}
