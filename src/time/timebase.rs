//! The limiter's own time, counted in fractions of an emission interval.
//!
//! For `n` tokens in a period of `P` ns, one **unit** is `P / (n · 2^f)`: the emission interval is
//! exactly `2^f` units and a burst of `b` exactly `b · 2^f`, so that charging `c` tokens is a shift,
//! and no rate is rounded to whole nanoseconds. Reading the time in units is one multiplication and
//! one shift:
//!
//! ```text
//! units(ns) = ⌊ ns · multiplier / 2^shift ⌋      multiplier = ⌈ n · 2^f · 2^shift / P ⌉,  2^63 ≤ multiplier < 2^64
//! ```
//!
//! The multiplier is rounded **up** and the product **down**. The multiplier is too large by less
//! than 1, so the product is too large by less than `ns / 2^shift`; with a 64-bit multiplier and at
//! most 2^62 units in the horizon that is less than half a unit. A time whose exact value is a whole
//! number of units (above all the start of a window) therefore lands on it, never one below.

use crate::error::ConfigError;

/// Bits that a time in units may have: the word's other two bits are taken.
pub const VALUE_BITS: u32 = 62;
/// The largest time in units that a word holds.
pub const VALUE_MAX: u64 = value_max(VALUE_BITS);

/// The largest value of so many bits.
pub const fn value_max(value_bits: u32) -> u64 {
    (1 << value_bits) - 1
}

/// A horizon that is tried for first: 2^60 ns, 36 years and a half.
pub const HORIZON_WANTED_NS: u64 = 1 << 60;
/// The horizon that is tried for first where a time may have so many bits: where there are fewer than usual nine years, so
/// that a unit stays short, below half a nanosecond for ordinary rates down to 60 bits.
pub const fn horizon_wanted_ns(value_bits: u32) -> u64 {
    if value_bits < VALUE_BITS { HORIZON_WANTED_NS >> 2 } else { HORIZON_WANTED_NS }
}

/// The least horizon that is accepted: seven years of 366 days.
pub const HORIZON_LEAST_NS: u64 = 7 * 366 * 24 * 60 * 60 * 1_000_000_000;

/// Converts nanoseconds to units and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timebase {
    multiplier: u64,
    /// The last nanosecond that is converted; later ones read as this one.
    end_ns: u64,
    shift: u8,
    /// `shift` taken apart so that the product's upper half is all that is needed: places up in front of
    /// the multiplication, or down after it. One of them is 0.
    up: u8,
    down: u8,
    fraction_bits: u8,
    value_bits: u8,
}

/// A rate as a fraction, with what a word must hold beside the time.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Emissions in each period, at least 1.
    pub emissions: u64,
    /// The period in nanoseconds, 1 to 2^62.
    pub period_ns: u64,
    /// Emissions that a word may stand ahead of now: the burst of a bucket.
    pub ahead: u64,
    /// Nanoseconds by which time may be shifted forward: the start above 0, a phase.
    pub reserve_ns: u64,
    /// Bits that a time in units may have, [`VALUE_BITS`] at most.
    pub value_bits: u32,
}

impl Timebase {
    /// The finest timebase whose horizon is the wanted one, or failing that the least.
    ///
    /// # Errors
    /// None: returns `None` when even whole emission intervals leave less than the least horizon.
    pub fn new(ask: Ask) -> Option<Self> {
        Self::with_horizon(ask, horizon_wanted_ns(ask.value_bits))
            .or_else(|| Self::with_horizon(ask, HORIZON_LEAST_NS))
    }

    /// The finest timebase in which `ask` fits with `horizon_ns` to spare.
    pub fn with_horizon(ask: Ask, horizon_ns: u64) -> Option<Self> {
        debug_assert!(ask.emissions >= 1 && (1..=1 << 62).contains(&ask.period_ns));
        let (multiplier, exponent) = normalise(ask.emissions, ask.period_ns);
        let end_ns = horizon_ns.checked_add(ask.reserve_ns)?;
        // Units at the end of time, with the last shift in front of it and the deepest debt on top.
        let fits = |fraction_bits: u32| {
            let shift = exponent - fraction_bits;
            let span_ns = u128::from(end_ns) + u128::from(ask.reserve_ns);
            let time = (span_ns * u128::from(multiplier)) >> shift;
            let ahead = u128::from(ask.ahead) << fraction_bits;
            time + ahead <= u128::from(value_max(ask.value_bits))
        };
        // `fits` only gets harder with more bits; there are at most 63 to try.
        let fraction_bits = (0..ask.value_bits.min(exponent)).rev().find(|&bits| fits(bits))?;
        let shift = exponent - fraction_bits;
        // At most 2^62 units at the end and a multiplier of at least 2^63: no bit of `end_ns` is shifted out.
        let up = 64_u32.saturating_sub(shift);
        debug_assert!(up <= end_ns.leading_zeros());
        Some(Self {
            multiplier,
            end_ns,
            shift: places(shift),
            up: places(up),
            down: places(shift.saturating_sub(64)),
            fraction_bits: places(fraction_bits),
            value_bits: places(ask.value_bits),
        })
    }

    /// `ns` nanoseconds in units, rounded down. From the horizon on time stands still, so that a
    /// limiter that reaches it refuses rather than starts again.
    #[inline]
    pub fn units(&self, ns: u64) -> u64 {
        let product = u128::from(ns.min(self.end_ns) << self.up) * u128::from(self.multiplier);
        (product >> 64) as u64 >> self.down
    }

    /// The first nanosecond at which the time is at least `units`; `None` if that is beyond the
    /// horizon.
    pub fn first_ns_at(&self, units: u64) -> Option<u64> {
        Some(self.span_ns(units)).filter(|&ns| ns <= self.end_ns)
    }

    /// How long `units` last, in nanoseconds rounded up; at most 2^64 − 1.
    pub fn span_ns(&self, units: u64) -> u64 {
        let divisor = u128::from(self.multiplier);
        let shift = u32::from(self.shift);
        // ⌈units · 2^shift / multiplier⌉, in two steps where the numerator has more than 128 bits.
        let ns = if shift <= 64 {
            (u128::from(units) << shift).div_ceil(divisor)
        } else {
            let (high, rest) = (u128::from(units) << 64, shift - 64);
            let (quotient, remainder) = (high / divisor, high % divisor);
            // No bit is lost: the quotient has 65 bits at most, and 2^125 is the largest scale.
            (quotient << rest) + (remainder << rest).div_ceil(divisor)
        };
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Binary places of an emission interval: it has `2^fraction_bits` units.
    #[inline]
    pub fn fraction_bits(&self) -> u32 {
        u32::from(self.fraction_bits)
    }

    /// Bits that a time in units may have.
    pub fn value_bits(&self) -> u32 {
        self.value_bits.into()
    }

    /// The largest time in units that a word holds.
    pub fn value_max(&self) -> u64 {
        value_max(self.value_bits.into())
    }

    /// The last nanosecond of the limiter's time.
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }
}

/// A number of binary places.
#[expect(clippy::cast_possible_truncation, reason = "exponents are at most 125")]
fn places(places: u32) -> u8 {
    debug_assert!(places < 128);
    places as u8
}

/// `multiplier` in `2^63..2^64` and the exponent `e` for which `multiplier = ⌈n · 2^e / period⌉`.
fn normalise(n: u64, period_ns: u64) -> (u64, u32) {
    let (n, period) = (u128::from(n), u128::from(period_ns));
    // The first exponent with n · 2^e ≥ period · 2^63. As n ≥ 1 and period ≤ 2^62, e ≤ 125, and the
    // numerator stays below period · 2^64 ≤ 2^126.
    let lowest = period << 63;
    let mut exponent = n.leading_zeros().saturating_sub(lowest.leading_zeros());
    while n << exponent < lowest {
        exponent += 1;
    }
    let multiplier = (n << exponent).div_ceil(period);
    match u64::try_from(multiplier) {
        Ok(multiplier) => (multiplier, exponent),
        // Rounding up reached 2^64: the same value one place down.
        Err(_) => (1 << 63, exponent - 1),
    }
}

/// A duration in nanoseconds, or `None` from 2^62 (146 years) on.
pub fn nanoseconds(duration: std::time::Duration) -> Option<u64> {
    u64::try_from(duration.as_nanos()).ok().filter(|&ns| ns <= 1 << VALUE_BITS)
}

/// A duration in nanoseconds, at most 2^64 − 1.
pub fn saturating_ns(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The error for something that spans more than the limiter's time allows.
pub fn beyond_horizon(field: &'static str, span_ns: u128, span_ns_max: u128) -> ConfigError {
    const SECOND: u128 = 1_000_000_000;
    ConfigError::BeyondHorizon { field, seconds: span_ns.div_ceil(SECOND), seconds_max: span_ns_max / SECOND }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests;
