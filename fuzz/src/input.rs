//! Inputs from bytes. Everything a caller could say can be said, and what lies near an edge is said
//! often: powers of two, a limit and its neighbours, the end of a period.

use std::time::Duration;

use arbitrary::Arbitrary;

/// More than this many steps find nothing that fewer do not.
pub const STEPS_MAX: usize = 256;

/// A number of any size.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Number {
    Small(u8),
    Any(u64),
    NearPowerOfTwo { power: u8, plus: i8 },
}

impl Number {
    pub fn get(self) -> u64 {
        match self {
            Self::Small(number) => number.into(),
            Self::Any(number) => number,
            Self::NearPowerOfTwo { power, plus } => (1_u64 << (power % 64)).wrapping_add_signed(plus.into()),
        }
    }
}

/// A length of time as a user configures it.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Length {
    Nanos(Number),
    /// Nanoseconds that halve many times over, as a grid's steps do.
    Binary {
        count: u16,
        power: u8,
    },
    Millis(u16),
    Seconds(u32),
    Any {
        seconds: u64,
        nanos: u32,
    },
}

impl Length {
    pub fn get(self) -> Duration {
        match self {
            Self::Nanos(nanos) => Duration::from_nanos(nanos.get()),
            Self::Binary { count, power } => Duration::from_nanos(u64::from(count) << (power % 48)),
            Self::Millis(millis) => Duration::from_millis(millis.into()),
            Self::Seconds(seconds) => Duration::from_secs(seconds.into()),
            Self::Any { seconds, nanos } => Duration::new(seconds, nanos % 1_000_000_000),
        }
    }
}

/// A move of the clock.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Span {
    Nanos(Number),
    /// Sixteenths of the limit's period, and a few nanoseconds more or less.
    Sixteenths {
        count: u8,
        plus_ns: i8,
    },
}

impl Span {
    pub fn get(self, period_ns: u64) -> Duration {
        let ns = match self {
            Self::Nanos(ns) => ns.get(),
            Self::Sixteenths { count, plus_ns } => {
                let ns = u128::from(period_ns) * u128::from(count) / 16;
                u64::try_from(ns).unwrap_or(u64::MAX).saturating_add_signed(plus_ns.into())
            }
        };
        Duration::from_nanos(ns)
    }
}

/// How much a request asks for.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Cost {
    One,
    Any(Number),
    /// The limit, and a few more or less.
    NearLimit(i8),
    /// This many 256ths of the limit.
    Share(u8),
}

impl Cost {
    pub fn get(self, limit: u64) -> u64 {
        match self {
            Self::One => 1,
            Self::Any(number) => number.get(),
            Self::NearLimit(plus) => limit.saturating_add_signed(plus.into()),
            Self::Share(share) => u64::try_from(u128::from(limit) * u128::from(share) / 256).unwrap_or(limit),
        }
    }
}

/// One of a few keys, so that they meet.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Key(u8);

impl Key {
    pub fn get(self) -> u64 {
        (self.0 % 6).into()
    }
}

/// What happens next.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Step {
    Check {
        key: Key,
        cost: Cost,
    },
    /// Check and, if refused, come back exactly when told.
    Insist {
        key: Key,
        cost: Cost,
    },
    Advance(Span),
    StepBack(Span),
}
