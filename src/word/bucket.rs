//! The token bucket as a generic cell rate algorithm: the whole state is the theoretical arrival
//! time, the moment at which the bucket will be full again.

use super::{Decided, Outcome, Part};
use crate::decision::WindowName;
use crate::error::ConfigError;
use crate::limit::Rate;
use crate::time::timebase::{
    Ask, HORIZON_LEAST_NS, Timebase, VALUE_BITS, beyond_horizon, nanoseconds, value_max,
};

/// A bucket of `burst` tokens in a timebase whose emission interval is a power of two units.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    burst: u64,
    /// Units of one token, a power of two.
    interval: u64,
    /// `burst` in units: how far ahead of now the arrival time may stand.
    depth: u64,
    /// How far beyond that a charge may put it, in units.
    debt_depth: u64,
}

impl Bucket {
    /// Checks rate and burst, and finds their timebase. A debt may be `debt_max` tokens, or what decades refill.
    pub(super) fn new(
        rate: Rate,
        burst: u64,
        debt_max: u64,
        value_bits: u32,
    ) -> Result<(Timebase, Self), ConfigError> {
        if rate.tokens() == 0 {
            return Err(ConfigError::Zero { field: "rate" });
        }
        if rate.period().is_zero() {
            return Err(ConfigError::ZeroPeriod { field: "rate period" });
        }
        if burst == 0 {
            return Err(ConfigError::Zero { field: "burst" });
        }
        let period_ns = nanoseconds(rate.period()).ok_or_else(|| {
            beyond_horizon("rate period", rate.period().as_nanos(), u128::from(HORIZON_LEAST_NS))
        })?;
        let ask =
            Ask { emissions: rate.tokens(), period_ns, ahead: burst, reserve_ns: period_ns, value_bits };
        let time = Timebase::new(ask).ok_or_else(|| Self::misfit(ask))?;
        let bucket = Self::in_timebase(burst, time.fraction_bits());
        let debt_depth = debt_max.saturating_mul(bucket.interval).min(time.value_max());
        Ok((time, Self { debt_depth, ..bucket }))
    }

    /// A bucket of `burst` tokens, each `2^fraction_bits` units, that may not go into debt.
    pub fn in_timebase(burst: u64, fraction_bits: u32) -> Self {
        debug_assert!(burst <= value_max(VALUE_BITS) >> fraction_bits);
        Self { burst, interval: 1 << fraction_bits, depth: burst << fraction_bits, debt_depth: 0 }
    }

    /// What to say of a rate and burst that find no timebase.
    fn misfit(ask: Ask) -> ConfigError {
        let (tokens, period_ns) = (u128::from(ask.emissions), u128::from(ask.period_ns));
        let latest = value_max(ask.value_bits);
        if Timebase::new(Ask { ahead: 1, ..ask }).is_some() {
            // The rate alone fits: the burst takes longer to fill than time lasts. In units of whole
            // tokens, what the horizon leaves is for the burst.
            let span_ns = u128::from(HORIZON_LEAST_NS) + 2 * period_ns;
            let spent = (span_ns / period_ns) * tokens + (span_ns % period_ns) * tokens / period_ns;
            // One less than that, for the multiplier is rounded up.
            let burst_max = u128::from(latest - 1).saturating_sub(spent);
            return ConfigError::BurstTooLarge {
                burst: ask.ahead,
                burst_max: u64::try_from(burst_max).unwrap_or(latest),
            };
        }
        // A token a nanosecond at most fits every period but one longer than the horizon.
        if tokens <= period_ns {
            return beyond_horizon("rate period", period_ns, u128::from(HORIZON_LEAST_NS));
        }
        ConfigError::RateTooHigh {
            per_second: tokens * 1_000_000_000 / period_ns,
            per_second_max: u128::from(latest) * 1_000_000_000
                / (u128::from(HORIZON_LEAST_NS) + 2 * period_ns),
        }
    }

    /// A refusal leaves the word as it is: who hammers an empty bucket only reads.
    #[inline(always)]
    pub fn decide(&self, arrival: u64, now: u64, cost: u64) -> Decided {
        // One comparison for both of the rare costs: 0 wraps to the largest.
        if cost.wrapping_sub(1) >= self.burst {
            let outcome = if cost == 0 { Outcome::Pass } else { Outcome::TooLarge };
            return Decided { outcome, next: arrival };
        }
        // No overflow: both terms are below 2^62.
        let next = arrival.max(now) + cost * self.interval;
        if next - now > self.depth {
            rarely();
            return Decided { outcome: Outcome::Exhausted, next: arrival };
        }
        Decided { outcome: Outcome::Pass, next }
    }

    pub(super) fn fits(&self, cost: u64) -> bool {
        cost <= self.burst
    }

    #[inline]
    pub(super) fn is_idle(&self, arrival: u64, now: u64) -> bool {
        arrival < now
    }

    pub(super) fn begin(&self, now: u64, debt: u32) -> u64 {
        now + super::owed(debt, self.depth)
    }

    #[inline]
    pub(super) fn idle_from(&self, arrival: u64) -> u64 {
        arrival + 1
    }

    /// A check leaves an arrival time at most the whole depth ahead. (A debt is further ahead: no time follows from it.)
    pub(super) fn left_at(&self, arrival: u64) -> u64 {
        arrival.saturating_sub(self.depth)
    }

    pub(super) fn part(&self, arrival: u64, now: u64) -> Part {
        // After the clock stepped back, more than the whole bucket may seem used.
        let used = arrival.saturating_sub(now).div_ceil(self.interval).min(self.burst);
        let next = if used == 0 { now } else { arrival - (used - 1) * self.interval };
        Part {
            name: WindowName::Bucket,
            limit: self.burst,
            used,
            used_max: self.burst,
            period: self.depth,
            next,
            reset: arrival.max(now),
        }
    }

    /// Charges what the debt allows of `cost`, where no word is above `most`. Returns the tokens, and the next arrival time.
    pub(super) fn charge(&self, arrival: u64, now: u64, cost: u64, most: u64) -> (u64, u64) {
        // No overflow: three terms below 2^62. Time never has more, so nor has a word.
        let deepest = (now + self.depth + self.debt_depth).min(most);
        let from = arrival.max(now);
        let tokens = (deepest.saturating_sub(from) / self.interval).min(cost);
        (tokens, if tokens == 0 { arrival } else { from + tokens * self.interval })
    }

    /// Charges `cost` if its turn comes at `latest`, where no word is above `most`.
    pub(super) fn reserve(&self, arrival: u64, now: u64, latest: u64, cost: u64, most: u64) -> Decided {
        let decided = self.decide(arrival, now, cost);
        if decided.outcome != Outcome::Exhausted {
            return decided;
        }
        let next = arrival.max(now) + cost * self.interval;
        if next <= most && self.turn(next) <= latest {
            Decided { outcome: Outcome::Pass, next }
        } else {
            decided
        }
    }

    /// When the request passes that moved the arrival time to `left`.
    pub(super) fn turn(&self, left: u64) -> u64 {
        left.saturating_sub(self.depth)
    }

    /// Gives back what is left of `tokens` that were charged `since` units ago: one comes back each interval from then
    /// on. Never more than `most`, or than is used. Returns the tokens, rounded up, and the next arrival time.
    pub(super) fn refund(&self, arrival: u64, now: u64, tokens: u64, most: u64, since: u64) -> (u64, u64) {
        let owed = tokens.saturating_mul(self.interval).saturating_sub(since);
        let back = owed.min(most.saturating_mul(self.interval)).min(arrival.saturating_sub(now));
        (self.tokens(back), arrival - back)
    }

    /// Units of one token.
    pub(super) fn interval(&self) -> u64 {
        self.interval
    }

    /// Units of the whole burst.
    pub(super) fn depth(&self) -> u64 {
        self.depth
    }

    /// Units in tokens, rounded up.
    pub(super) fn tokens(&self, units: u64) -> u64 {
        units.div_ceil(self.interval)
    }

    pub(super) fn put_back(&self, arrival: u64, now: u64, (seen, next): (u64, u64), most: u64) -> u64 {
        let taken = seen.saturating_sub(next.max(now));
        if taken == 0 { arrival } else { (arrival.max(now) + taken).min(most) }
    }

    pub(super) fn overdrawn(&self, arrival: u64, now: u64) -> u64 {
        self.tokens(arrival.saturating_sub(now).saturating_sub(self.depth))
    }

    /// The first moment at which `cost` fits: the arrival time stands `cost` below full.
    pub(super) fn retry_at(&self, arrival: u64, now: u64, cost: u64) -> u64 {
        let cost = cost.min(self.burst) * self.interval;
        (arrival.max(now) + cost).saturating_sub(self.depth).max(now)
    }
}

/// Tells the compiler that the branch it is called in is the rare one.
#[cold]
#[inline(always)]
fn rarely() {}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    /// The published vector: T = 10, τ = 15, so a depth of two emission intervals and a half. Times
    /// are scaled by 2^20 / 10 and rounded down, arrival times compared to the nearest whole.
    #[test]
    fn gcra_vector_with_an_interval_of_10_and_a_tolerance_of_15() {
        const BITS: u32 = 20;
        let bucket =
            Bucket { burst: 2, interval: 1 << BITS, depth: 5 << (BITS - 1), ..Bucket::in_timebase(2, BITS) };
        let scaled = |time: u64| (time << BITS) / 10;
        let mut word = 0;
        let mut seen = Vec::new();
        for arrival in [0, 12, 18, 20, 25] {
            let decided = bucket.decide(word, scaled(arrival), 1);
            word = decided.next;
            seen.push((decided.outcome == Outcome::Pass, (word * 10 + (1 << (BITS - 1))) >> BITS));
        }
        assert_eq!(seen, [(true, 10), (true, 22), (true, 32), (true, 42), (false, 42)]);
    }

    #[test]
    fn the_largest_burst_that_the_error_allows_builds_and_no_larger_one() {
        for rate in
            [Rate::per_day(1), Rate::per_second(3), Rate::new(7, std::time::Duration::from_secs(1 << 30))]
        {
            let Err(ConfigError::BurstTooLarge { burst_max, .. }) =
                Bucket::new(rate, u64::MAX, 0, VALUE_BITS)
            else {
                panic!("{rate:?}")
            };
            assert!(Bucket::new(rate, burst_max, 0, VALUE_BITS).is_ok(), "{rate:?} {burst_max}");
            assert!(Bucket::new(rate, burst_max + 2, 0, VALUE_BITS).is_err(), "{rate:?} {burst_max}");
        }
    }

    /// At periods that do not divide the horizon: rates whose time leaves little for a burst, and some others.
    #[test]
    fn the_largest_burst_of_an_odd_rate_builds_too() {
        let rate = |tokens, period_ns| Rate::new(tokens, std::time::Duration::from_nanos(period_ns));
        let period_ns = 999_999_937;
        let span_ns = u128::from(HORIZON_LEAST_NS + 2 * period_ns);
        let highest =
            u64::try_from(u128::from(value_max(VALUE_BITS)) * u128::from(period_ns) / span_ns).unwrap();
        let high = (highest - 200..highest).map(|tokens| rate(tokens, period_ns));
        let odd =
            [1_000_003, 999_999_937, 11_000_000_000].map(|period_ns| rate(period_ns / 7 * 5, period_ns));
        for rate in high.chain(odd) {
            let Err(ConfigError::BurstTooLarge { burst_max, .. }) =
                Bucket::new(rate, u64::MAX, 0, VALUE_BITS)
            else {
                panic!("{rate:?}")
            };
            assert!(Bucket::new(rate, burst_max, 0, VALUE_BITS).is_ok(), "{rate:?} {burst_max}");
            assert!(Bucket::new(rate, burst_max + 2, 0, VALUE_BITS).is_err(), "{rate:?} {burst_max}");
        }
    }

    #[test]
    fn the_highest_rate_that_the_error_allows_builds_and_no_higher_one() {
        let second = 1_000_000_000;
        for period_ns in [second, 7 * second, 86_400 * second] {
            let rate = |tokens| Rate::new(tokens, std::time::Duration::from_nanos(period_ns));
            let Err(ConfigError::RateTooHigh { per_second, per_second_max }) =
                Bucket::new(rate(u64::MAX), 1, 0, VALUE_BITS)
            else {
                panic!("{period_ns} ns")
            };
            assert_eq!(per_second, u128::from(u64::MAX / (period_ns / second)));
            let tokens = u64::try_from(per_second_max).unwrap() * (period_ns / second);
            assert!(Bucket::new(rate(tokens), 1, 0, VALUE_BITS).is_ok(), "{tokens} in {period_ns} ns");
            let more = tokens + period_ns / second;
            assert!(Bucket::new(rate(more), 1, 0, VALUE_BITS).is_err(), "{more} in {period_ns} ns");
        }
    }

    #[test]
    fn a_token_a_nanosecond_for_146_years_has_too_long_a_period_and_more_is_too_high_a_rate() {
        let (tokens, period) = (1 << 62, std::time::Duration::from_nanos(1 << 62));
        let built = |tokens| Bucket::new(Rate::new(tokens, period), 1, 0, VALUE_BITS).unwrap_err();
        let too_long = ConfigError::BeyondHorizon {
            field: "rate period",
            seconds: 4_611_686_019,
            seconds_max: 7 * 366 * 86_400,
        };
        assert_eq!(built(tokens), too_long);
        assert!(matches!(built(tokens + 1), ConfigError::RateTooHigh { per_second: 1_000_000_000, .. }));
    }

    #[test]
    fn a_refusal_writes_nothing() {
        let bucket = Bucket::in_timebase(2, 8);
        let full = bucket.decide(bucket.decide(0, 1000, 2).next, 1000, 1);
        assert_eq!(full, Decided { outcome: Outcome::Exhausted, next: 1000 + 512 });
    }

    #[test]
    fn a_cost_above_the_burst_can_never_fit_and_0_touches_nothing() {
        let bucket = Bucket::in_timebase(5, 8);
        for cost in [6, 1 << 40, u64::MAX] {
            assert_eq!(bucket.decide(7, 1000, cost), Decided { outcome: Outcome::TooLarge, next: 7 });
        }
        assert_eq!(bucket.decide(7, 1000, 0), Decided { outcome: Outcome::Pass, next: 7 });
    }
}
