//! The 64-bit state of one key under one limit, and the pure functions that decide on it.
//!
//! `decide(word, moment, cost) -> (outcome, next word)`: no atomics, no clock, no allocation. Who
//! holds a word (a table) applies the next one in a compare-and-swap; tests, fuzzers and models call
//! the same functions directly.
//!
//! ```text
//! bit 63  the table's: with it set a word is no value
//! bit 62  which of two limits wrote the value (0 while limits do not change); masked out for what is in this module
//! 61..    which tier's limit, in as many bits as the limiter needs for its tiers: mostly none; masked out too
//!   ..0   the value: a bucket's arrival time, or a window's start (its number) and counts
//! ```
//!
//! The word 0 stands for a key that was never seen: time starts above 0, so it is idle at every
//! moment.

mod adopt;
mod bucket;
mod layout;
mod order;
mod sliding;
#[cfg(any(feature = "policy", test))]
mod threshold;
mod window;
mod windows;

pub use adopt::CarryOver;
pub use bucket::Bucket;
pub use layout::{Counts, Layout, Needs, SlidingCounts, SlidingLayout};
pub use order::{Done, Order, Paid};
pub use sliding::Sliding;
#[cfg(any(feature = "policy", test))]
pub(crate) use threshold::Threshold;
pub use window::Windowed;
use windows::Windows;

use crate::decision::WindowName;
use crate::error::ConfigError;
use crate::limit::{Alignment, Limit, Shape, Window};
use crate::time::TICK_NS;
use crate::time::timebase::{Timebase, nanoseconds};
pub(crate) use crate::time::timebase::{VALUE_BITS, VALUE_MAX};

/// Bit 63: the word is the table's, not a value.
pub const TABLE_BIT: u64 = 1 << 63;

/// The debt of a key that owes its whole limit; `debt` counts in parts of this.
pub const WHOLE_DEBT: u32 = 1 << 16;

/// Bits of its hash that a key is known by, and that its phase is taken from.
pub(crate) const FINGERPRINT_BITS: u32 = 48;

/// What one decision came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Admitted, and charged in `next`.
    Pass,
    /// Refused for now.
    Exhausted,
    /// The cost is above the limit; nothing is counted.
    TooLarge,
}

/// Which windows refuse. A bucket, a single window or a sliding one stands in the first place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusing {
    /// The bucket, the only window (sliding or not), or the burst window.
    pub first: bool,
    /// The sustain window.
    pub sustain: bool,
}

/// A decision: what to answer, and the word to leave behind (the same one when nothing changes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// What to answer.
    pub outcome: Outcome,
    /// The word to leave behind.
    pub next: u64,
}

/// One window (or the bucket) at a moment; times in units, shifted as the moment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which one.
    pub name: WindowName,
    /// Its limit.
    pub limit: u64,
    /// Used so far; above `limit` when refused requests count.
    pub used: u64,
    /// What `used` can count to.
    pub used_max: u64,
    /// How long it lasts, in units.
    pub period: u64,
    /// When less will be used.
    pub next: u64,
    /// When nothing will be.
    pub reset: u64,
}

impl Part {
    /// What of it would still pass.
    pub fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// A limit made ready to decide: the timebase and one of the kinds of word.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    time: Timebase,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Bucket(Bucket),
    Windows(Windows),
}

impl Rule {
    /// Checks `limit` and derives everything from it.
    ///
    /// # Errors
    /// Every [`ConfigError`] that concerns the limit.
    pub fn new(limit: &Limit) -> Result<Self, ConfigError> {
        Self::narrow(limit, VALUE_BITS)
    }

    /// The same for values of fewer than 62 bits, where the rest says whose they are.
    ///
    /// # Errors
    /// Every [`ConfigError`] that concerns the limit.
    pub fn narrow(limit: &Limit, value_bits: u32) -> Result<Self, ConfigError> {
        match limit.shape() {
            Shape::Bucket { rate, burst } => {
                let (time, bucket) = Bucket::new(rate, burst, limit.debt_max_of(burst), value_bits)?;
                Ok(Self { time, kind: Kind::Bucket(bucket) })
            }
            Shape::Window(window) => Self::windowed(limit, window, None, value_bits),
            Shape::Sliding(window) => {
                let (time, sliding) =
                    Sliding::new(window, limit.alignment(), limit.counts_refused(), value_bits)?;
                Ok(Self { time, kind: Kind::Windows(Windows::Sliding(sliding)) })
            }
            Shape::BurstSustain { burst, sustain } => Self::windowed(limit, burst, Some(sustain), value_bits),
        }
    }

    fn windowed(
        limit: &Limit,
        burst: Window,
        sustain: Option<Window>,
        value_bits: u32,
    ) -> Result<Self, ConfigError> {
        let (time, windowed) =
            Windowed::new(burst, sustain, limit.alignment(), limit.counts_refused(), value_bits)?;
        Ok(Self { time, kind: Kind::Windows(Windows::Fixed(windowed)) })
    }

    /// A limit of the same kind, periods and alignment for words that this rule may have left: its windows count in the same
    /// bits, so that a word goes from one to the other as it is.
    ///
    /// # Errors
    /// Every [`ConfigError`] that concerns the limit; one that is larger than these bits can count to is too wide.
    pub fn beside(&self, limit: &Limit) -> Result<Self, ConfigError> {
        let alike = match (&self.kind, limit.shape()) {
            (Kind::Windows(Windows::Fixed(own)), Shape::Window(window)) => {
                Windows::Fixed(own.beside(window, None, limit.counts_refused())?)
            }
            (Kind::Windows(Windows::Fixed(own)), Shape::BurstSustain { burst, sustain }) => {
                Windows::Fixed(own.beside(burst, Some(sustain), limit.counts_refused())?)
            }
            (Kind::Windows(Windows::Sliding(own)), Shape::Sliding(window)) => {
                Windows::Sliding(own.beside(window, limit.counts_refused())?)
            }
            _ => return Self::narrow(limit, self.time.value_bits()),
        };
        Ok(Self { time: self.time, kind: Kind::Windows(alike) })
    }

    /// What a bucket of the rule `other` refills between two times of the limiter's, in units of this one; 0 of windows.
    pub fn refilled_by(&self, other: &Self, from_ns: u64, to_ns: u64) -> u64 {
        let (Kind::Bucket(own), Kind::Bucket(bucket)) = (&self.kind, &other.kind) else { return 0 };
        own.units_of(bucket, other.time.units(to_ns).saturating_sub(other.time.units(from_ns)))
    }

    /// The timebase.
    #[inline]
    pub fn time(&self) -> &Timebase {
        &self.time
    }

    /// The longest period in nanoseconds: where time starts, so that the word 0 is idle.
    pub fn longest_period_ns(limit: &Limit) -> u64 {
        let period = match limit.shape() {
            Shape::Bucket { rate, .. } => rate.period(),
            Shape::Window(window) | Shape::Sliding(window) => window.period(),
            Shape::BurstSustain { sustain, .. } => sustain.period(),
        };
        nanoseconds(period).unwrap_or(u64::MAX)
    }

    /// The period to which wall time is tied, if it is: that of the burst (or only) window under
    /// [`Alignment::Clock`], and the longest one.
    pub fn wall_periods_ns(limit: &Limit) -> Option<(u64, u64)> {
        let burst = match (limit.alignment(), limit.shape()) {
            (
                Alignment::Clock,
                Shape::Window(window) | Shape::Sliding(window) | Shape::BurstSustain { burst: window, .. },
            ) => window,
            _ => return None,
        };
        Some((nanoseconds(burst.period())?, Self::longest_period_ns(limit)))
    }

    /// By how much a key's time is shifted, in units: under [`Alignment::PerKey`] a share of the
    /// longest period taken from the key's fingerprint (its low 48 bits), else nothing.
    #[inline]
    pub fn phase(&self, fingerprint: u64) -> u64 {
        let phases = match &self.kind {
            Kind::Bucket(_) => return 0,
            Kind::Windows(windows) => windows.phases(),
        };
        let share = fingerprint << (u64::BITS - FINGERPRINT_BITS);
        ((u128::from(share) * u128::from(phases)) >> 64) as u64
    }

    /// The limiter's time in nanoseconds as a moment of this key: in units, plus its phase.
    #[inline(always)]
    pub fn moment(&self, ns: u64, fingerprint: u64) -> u64 {
        match &self.kind {
            Kind::Bucket(_) => self.time.units(ns),
            Kind::Windows(_) => self.time.units(ns) + self.phase(fingerprint),
        }
    }

    /// Decides a request of `cost` at `moment`.
    #[inline(always)]
    pub fn decide(&self, word: u64, moment: u64, cost: u64) -> Decided {
        match &self.kind {
            Kind::Bucket(bucket) => bucket.decide(word, moment, cost),
            Kind::Windows(windows) => windows.decide(word, moment, cost),
        }
    }

    /// Which parts refused a request of `cost` at `moment`, from the word that the refusal left behind, in which it is counted or
    /// not: what is only tried never is, whatever the rule says of refusals.
    pub fn refusing(&self, left: u64, moment: u64, cost: u64, is_counted: bool) -> Refusing {
        match &self.kind {
            Kind::Bucket(_) => Refusing { first: true, sustain: false },
            Kind::Windows(windows) => windows.refusing(left, moment, cost, is_counted),
        }
    }

    /// Whether the word equals that of a key never seen, strictly before `moment`.
    #[inline]
    pub fn is_idle(&self, word: u64, moment: u64) -> bool {
        match &self.kind {
            Kind::Bucket(bucket) => bucket.is_idle(word, moment),
            Kind::Windows(windows) => windows.is_idle(word, moment),
        }
    }

    /// The share of its limit that the word owes, in parts of [`WHOLE_DEBT`], rounded up; the larger
    /// of the two windows'.
    pub fn debt(&self, word: u64, moment: u64) -> u32 {
        self.parts(word, moment).iter().map(|part| share(part.used, part.limit)).max().unwrap_or(0)
    }

    /// Whether [`rank`](Self::rank) is the same at every time.
    pub(crate) fn ranks_for_good(&self) -> bool {
        matches!(self.kind, Kind::Bucket(_))
    }

    /// Orders words by [`debt`](Self::debt) at one and the same time, and costs less.
    #[inline]
    pub(crate) fn rank(&self, word: u64, moment: u64) -> u64 {
        match &self.kind {
            // Who is full again first owes least.
            Kind::Bucket(_) => word,
            Kind::Windows(_) => u64::from(self.debt(word, moment)),
        }
    }

    /// The word of a key that begins at `moment` owing `debt` (in parts of [`WHOLE_DEBT`], rounded up); it
    /// is not idle at that moment, even if it owes nothing.
    pub fn begin(&self, moment: u64, debt: u32) -> u64 {
        match &self.kind {
            Kind::Bucket(bucket) => bucket.begin(moment, debt),
            Kind::Windows(windows) => windows.begin(moment, debt),
        }
    }

    /// The first moment at which the word is idle.
    #[inline]
    pub fn idle_from(&self, word: u64) -> u64 {
        match &self.kind {
            Kind::Bucket(bucket) => bucket.idle_from(word),
            Kind::Windows(windows) => windows.idle_from(word),
        }
    }

    /// The earliest moment at which the word can have been left, if time never steps back.
    pub fn left_at(&self, word: u64) -> u64 {
        match &self.kind {
            Kind::Bucket(bucket) => bucket.left_at(word),
            Kind::Windows(windows) => windows.left_at(word),
        }
    }

    /// Whether the rule can have left this word at `moment` or before: for words that come from outside. The word 0
    /// is nobody's, and no.
    pub fn can_leave(&self, word: u64, moment: u64) -> bool {
        word != 0
            && match &self.kind {
                // A debt may reach beyond the end of time, and no moment is later than that.
                Kind::Bucket(bucket) => {
                    let end = self.time.units(self.time.end_ns());
                    word <= self.time.value_max() && (bucket.left_at(word) <= moment || moment >= end)
                }
                Kind::Windows(windows) => windows.can_leave(word, moment),
            }
    }

    /// Where a limiter's time may begin anew instead of going on at `ns`: about one `longest_ns` above 0, and as many
    /// units earlier. Every word moved [earlier](Self::earlier) by those owes then what it owes at `ns`, and never
    /// ends sooner.
    pub fn begin_anew(&self, ns: u64, longest_ns: u64) -> (u64, u64) {
        match &self.kind {
            // What `ns` is above a whole unit is lost, to the bucket's favour.
            Kind::Bucket(_) => (longest_ns, self.time.units(ns).saturating_sub(self.time.units(longest_ns))),
            Kind::Windows(windows) => {
                let periods = (ns / longest_ns).saturating_sub(1);
                (ns - periods * longest_ns, windows.longest().saturating_mul(periods))
            }
        }
    }

    /// The word as it would be if everything had been so many units earlier, whole longest periods if it is a window's;
    /// `None` for one that is idle then, since no time is as early.
    pub fn earlier(&self, word: u64, units: u64) -> Option<u64> {
        match &self.kind {
            Kind::Bucket(_) => word.checked_sub(units).filter(|&arrival| arrival != 0),
            Kind::Windows(windows) => windows.earlier(word, units),
        }
    }

    /// The one or two parts of the limit at `moment`. A single part stands twice, so that callers
    /// need no case for it.
    pub fn parts(&self, word: u64, moment: u64) -> [Part; 2] {
        match &self.kind {
            Kind::Bucket(bucket) => [bucket.part(word, moment); 2],
            Kind::Windows(windows) => windows.parts(word, moment),
        }
    }

    /// What is left of the limit at `moment`: of the tighter window.
    pub fn remaining(&self, word: u64, moment: u64) -> u64 {
        self.parts(word, moment).iter().map(Part::remaining).min().unwrap_or(0)
    }

    /// The word with what was lost when one that was `seen` became `next` by a roll to a later window.
    pub fn with_lost(&self, word: u64, seen: u64, next: u64) -> u64 {
        match &self.kind {
            Kind::Bucket(_) => word,
            Kind::Windows(windows) => windows.with_lost(word, seen, next),
        }
    }

    /// How long tokens that were charged may be kept before they are spent, in nanoseconds. A window's must not
    /// reach the next window, so they keep for one reading of the clock.
    pub fn lease_ns(&self) -> u64 {
        match &self.kind {
            Kind::Bucket(_) => TICK_NS,
            Kind::Windows(_) => 1,
        }
    }

    /// Whether a request of `cost` passes at any time at all.
    pub fn fits(&self, cost: u64) -> bool {
        match &self.kind {
            Kind::Bucket(bucket) => bucket.fits(cost),
            Kind::Windows(windows) => windows.fits(cost),
        }
    }

    /// If nothing at all can be charged to the word at `moment`, and no refusal counts either: the first moment at which
    /// something can.
    #[inline]
    pub fn dry_until(&self, word: u64, moment: u64) -> Option<u64> {
        let counts_refused = matches!(&self.kind, Kind::Windows(windows) if windows.counts_refused());
        let is_dry = !counts_refused && self.decide(word, moment, 1).outcome == Outcome::Exhausted;
        is_dry.then(|| self.retry_at(word, moment, 1).1)
    }

    /// How far apart those come back who wait for a part: as long as it takes to give `cost` back, in units, at least 1.
    pub(crate) fn spacing(&self, part: WindowName, cost: u64) -> u64 {
        match &self.kind {
            Kind::Bucket(bucket) => bucket.interval().saturating_mul(cost.max(1)),
            Kind::Windows(windows) => windows.spacing(part, cost.max(1)),
        }
    }

    /// Which part a request of `cost` waits for, and the first moment at which it passes.
    pub fn retry_at(&self, word: u64, moment: u64, cost: u64) -> (WindowName, u64) {
        match &self.kind {
            Kind::Bucket(bucket) => (WindowName::Bucket, bucket.retry_at(word, moment, cost)),
            Kind::Windows(windows) => windows.retry_at(word, moment, cost),
        }
    }
}

/// What `debt` is of `limit`, rounded up; at most the whole.
fn owed(debt: u32, limit: u64) -> u64 {
    let owed = (u128::from(debt) * u128::from(limit)).div_ceil(u128::from(WHOLE_DEBT));
    u64::try_from(owed).unwrap_or(limit).min(limit)
}

/// `used / limit` in parts of [`WHOLE_DEBT`], rounded up, at most the whole.
fn share(used: u64, limit: u64) -> u32 {
    let parts = (u128::from(used) * u128::from(WHOLE_DEBT)).div_ceil(u128::from(limit.max(1)));
    u32::try_from(parts).unwrap_or(WHOLE_DEBT).min(WHOLE_DEBT)
}

#[cfg(test)]
mod tests;
