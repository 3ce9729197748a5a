//! Limits as they are written on the command line.
//!
//! ```text
//! bucket:RATE,BURST                bucket:1/s,5        bucket:1/10s,10
//! burst-sustain:WINDOW,WINDOW      burst-sustain:30/15s,100/300s
//! window:WINDOW                    window:100/60s
//! sliding:WINDOW                   sliding:100/60s
//!
//! RATE, WINDOW = COUNT "/" PERIOD
//! PERIOD       = [COUNT] ("ms" | "s" | "m" | "h" | "d")      a missing count is 1
//! ```
//!
//! This file checks the spelling and nothing else: which counts and periods fit together is for the
//! engine to say, so that the rule stands in one place.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tidegate::{Limit, Rate, Window};
use winnow::Parser;
use winnow::combinator::alt;
use winnow::error::EmptyError;
use winnow::token::take_while;

/// A limit as the user wrote it; it prints back in the shortest spelling that parses to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSpec {
    /// A token bucket: tokens come back at `rate`, and at most `burst` are kept.
    Bucket {
        /// How fast tokens come back.
        rate: Quota,
        /// The most tokens that are kept, at least 1.
        burst: u64,
    },
    /// Two nested fixed windows counted at once.
    BurstSustain {
        /// The short window.
        burst: Quota,
        /// The long window.
        sustain: Quota,
    },
    /// One fixed window.
    Window(Quota),
    /// One window that slides, the one before it weighed.
    Sliding(Quota),
}

/// So many in a period: `30/15s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// How many, at least 1.
    pub count: u64,
    /// In how long.
    pub period: Period,
}

/// A length of time that remembers the unit it was written in: `300s` stays `300s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    count: u64,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Unit::Millisecond => "ms",
            Unit::Second => "s",
            Unit::Minute => "m",
            Unit::Hour => "h",
            Unit::Day => "d",
        }
    }

    const fn length_ms(self) -> u64 {
        match self {
            Unit::Millisecond => 1,
            Unit::Second => 1_000,
            Unit::Minute => 60_000,
            Unit::Hour => 3_600_000,
            Unit::Day => 86_400_000,
        }
    }
}

impl Period {
    /// The longest period that can be written: 100 years of 365 days. The engine may allow less.
    pub const MAX: Duration = Duration::from_secs(36_500 * 86_400);

    /// The period as a duration, from 1 ms to [`Period::MAX`].
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.count.saturating_mul(self.unit.length_ms()))
    }
}

impl LimitSpec {
    /// Two windows: so many in so many seconds each.
    pub fn windows(burst: u64, burst_s: u64, sustain: u64, sustain_s: u64) -> Self {
        let quota = |count, seconds| Quota { count, period: Period { count: seconds, unit: Unit::Second } };
        LimitSpec::BurstSustain { burst: quota(burst, burst_s), sustain: quota(sustain, sustain_s) }
    }

    /// A bucket that so many tokens come back to in a minute.
    pub fn tokens_a_minute(tokens: u64, burst: u64) -> Self {
        let period = Period { count: 1, unit: Unit::Minute };
        LimitSpec::Bucket { rate: Quota { count: tokens, period }, burst }
    }

    /// What the parts of it are called that a client uses up: one, or the burst and the sustain limit.
    pub fn parts(self) -> &'static [&'static str] {
        match self {
            LimitSpec::Bucket { .. } => &["bucket"],
            LimitSpec::Window(_) | LimitSpec::Sliding(_) => &["limit"],
            LimitSpec::BurstSustain { .. } => &["burst limit", "sustain limit"],
        }
    }

    /// Whether it counts in windows; a bucket has none.
    pub fn has_windows(self) -> bool {
        !matches!(self, LimitSpec::Bucket { .. })
    }

    /// Whether refused requests count, if they may: in fixed windows alone.
    pub fn may_count_refused(self) -> bool {
        matches!(self, LimitSpec::Window(_) | LimitSpec::BurstSustain { .. })
    }

    /// How long the limit remembers: a client that was silent for this long has its whole quota again.
    pub fn memory(self) -> Duration {
        let (period, times) = match self {
            LimitSpec::Bucket { rate, burst } => (rate.period, burst.div_ceil(rate.count)),
            LimitSpec::BurstSustain { sustain: window, .. } | LimitSpec::Window(window) => (window.period, 1),
            // What is counted as a period begins weighs until the next one ends.
            LimitSpec::Sliding(window) => (window.period, 2),
        };
        period.duration().saturating_mul(u32::try_from(times).unwrap_or(u32::MAX))
    }

    /// The engine's limit, not yet validated: that happens when a limiter is built.
    pub fn to_limit(self) -> Limit {
        match self {
            LimitSpec::Bucket { rate, burst } => {
                Limit::bucket(Rate::new(rate.count, rate.period.duration()), burst)
            }
            LimitSpec::BurstSustain { burst, sustain } => {
                Limit::burst_sustain(burst.to_window(), sustain.to_window())
            }
            LimitSpec::Window(window) => Limit::window(window.to_window()),
            LimitSpec::Sliding(window) => Limit::sliding_window(window.to_window()),
        }
    }
}

impl Quota {
    fn to_window(self) -> Window {
        Window::new(self.count, self.period.duration())
    }
}

impl fmt::Display for LimitSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitSpec::Bucket { rate, burst } => write!(f, "bucket:{rate},{burst}"),
            LimitSpec::BurstSustain { burst, sustain } => {
                write!(f, "burst-sustain:{burst},{sustain}")
            }
            LimitSpec::Window(window) => write!(f, "window:{window}"),
            LimitSpec::Sliding(window) => write!(f, "sliding:{window}"),
        }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.period)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => f.write_str(self.unit.name()),
            count => write!(f, "{count}{}", self.unit.name()),
        }
    }
}

/// Where a limit stopped making sense, and what could have stood there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    spec: String,
    at: usize,
    expected: &'static str,
}

impl SpecError {
    /// The byte of the input at which reading stopped.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// What would have been accepted there.
    pub fn expected(&self) -> &'static str {
        self.expected
    }
}

impl fmt::Display for SpecError {
    /// Several lines: what was expected, then the input with a caret under the place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Control characters would move the caret or the terminal: each is shown as one mark.
        let shown: String = self.spec.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        let indent = self.spec[..self.at].chars().count();
        writeln!(f, "expected {}", self.expected)?;
        writeln!(f)?;
        writeln!(f, "  {shown}")?;
        write!(f, "  {:indent$}^ here", "")
    }
}

impl std::error::Error for SpecError {}

impl FromStr for LimitSpec {
    type Err = SpecError;

    fn from_str(spec: &str) -> Result<Self, SpecError> {
        let mut scanner = Scanner { spec, rest: spec };
        let limit = scanner.limit()?;
        if scanner.rest.is_empty() { Ok(limit) } else { Err(scanner.error("the end of the limit")) }
    }
}

const KINDS: &str =
    "bucket:RATE,BURST, window:COUNT/PERIOD, sliding:COUNT/PERIOD or burst-sustain:COUNT/PERIOD,COUNT/PERIOD";
const COUNT: &str = "a whole number from 1 to 18446744073709551615";
const UNIT: &str = "a unit: ms, s, m, h or d";

struct Scanner<'a> {
    spec: &'a str,
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn limit(&mut self) -> Result<LimitSpec, SpecError> {
        let kind = alt(("bucket:", "burst-sustain:", "window:", "sliding:"));
        match self.take(kind, KINDS)? {
            "bucket:" => {
                let rate = self.quota()?;
                self.take(",", "a comma and the burst, as in bucket:1/s,5")?;
                let burst = self.count()?;
                Ok(LimitSpec::Bucket { rate, burst })
            }
            "window:" => Ok(LimitSpec::Window(self.quota()?)),
            "sliding:" => Ok(LimitSpec::Sliding(self.quota()?)),
            _ => {
                let burst = self.quota()?;
                self.take(",", "a comma and the sustain window, as in burst-sustain:30/15s,100/300s")?;
                let sustain = self.quota()?;
                Ok(LimitSpec::BurstSustain { burst, sustain })
            }
        }
    }

    fn quota(&mut self) -> Result<Quota, SpecError> {
        let count = self.count()?;
        self.take("/", "'/' and a period, as in 30/15s")?;
        let period = self.period()?;
        Ok(Quota { count, period })
    }

    fn period(&mut self) -> Result<Period, SpecError> {
        let start = self.rest;
        let count = match start.as_bytes().first() {
            Some(digit) if digit.is_ascii_digit() => self.count()?,
            _ => 1,
        };
        let unit = alt((
            "ms".value(Unit::Millisecond),
            "s".value(Unit::Second),
            "m".value(Unit::Minute),
            "h".value(Unit::Hour),
            "d".value(Unit::Day),
        ));
        let unit = self.take(unit, UNIT)?;
        let longest = u64::try_from(Period::MAX.as_millis()).unwrap_or(u64::MAX);
        match count.checked_mul(unit.length_ms()) {
            Some(length_ms) if length_ms <= longest => Ok(Period { count, unit }),
            _ => {
                self.rest = start;
                Err(self.error("a period of at most 36500d"))
            }
        }
    }

    fn count(&mut self) -> Result<u64, SpecError> {
        let start = self.rest;
        let digits = self.take(take_while(1.., |c: char| c.is_ascii_digit()), COUNT)?;
        match digits.parse() {
            Ok(count) if count >= 1 => Ok(count),
            _ => {
                self.rest = start;
                Err(self.error(COUNT))
            }
        }
    }

    fn take<T>(
        &mut self,
        mut parser: impl Parser<&'a str, T, EmptyError>,
        expected: &'static str,
    ) -> Result<T, SpecError> {
        let start = self.rest;
        parser.parse_next(&mut self.rest).map_err(|EmptyError| {
            self.rest = start;
            self.error(expected)
        })
    }

    fn error(&self, expected: &'static str) -> SpecError {
        SpecError { spec: self.spec.to_owned(), at: self.spec.len() - self.rest.len(), expected }
    }
}

#[cfg(test)]
mod tests;
