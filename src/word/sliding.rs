//! The sliding window counter: it keeps the counts of two aligned windows, and of the one before it takes the share that
//! a window of full length which ends now would still cover.
//!
//! With `left` the units of this window that are to come (all of them at its start), a request of `cost` passes if
//!
//! ```text
//! previous · left + (current + cost) · period ≤ limit · period
//! ```
//!
//! All are whole, and dividing by the period while rounding up gives the same rule: ⌈previous · left / period⌉ is what the
//! previous window **weighs**, that and `current` is what is **used**, and what is used may be the limit at most. As time
//! goes on less and less is used, over a window's end too: there `current` turns into a `previous` that weighs all of it.
//!
//! Weights change between the ends of windows, at times that are fractions of the period. So a unit of time is a nanosecond
//! here, or half of one, and none of those times is ever rounded to a unit: a wait is exact as it stands.

use super::layout::{SlidingCounts, SlidingLayout};
use super::{Decided, Outcome, Part, Refusing};
use crate::decision::WindowName;
use crate::error::ConfigError;
use crate::limit::{Alignment, Window};
use crate::time::timebase::{
    Ask, HORIZON_LEAST_NS, Timebase, VALUE_MAX, beyond_horizon, horizon_wanted_ns, nanoseconds,
};

/// A sliding window and the layout of its word.
#[derive(Clone, Copy, Debug)]
pub struct Sliding {
    /// Phases lie below this: one period in units under [`Alignment::PerKey`], else 0.
    phases: u64,
    limit: u64,
    /// Units of a window.
    period: u64,
    layout: SlidingLayout,
    count_refused: bool,
}

/// A word at a moment: the counts as they stand then, and how much of their window is left.
#[derive(Clone, Copy)]
struct View {
    counts: SlidingCounts,
    /// In units, 1 to the whole window.
    left: u64,
}

impl Sliding {
    /// Checks the window and finds its timebase and layout.
    pub(super) fn new(
        window: Window,
        alignment: Alignment,
        count_refused: bool,
        value_bits: u32,
    ) -> Result<(Timebase, Self), ConfigError> {
        if window.limit() == 0 {
            return Err(ConfigError::Zero { field: "window limit" });
        }
        if window.period().is_zero() {
            return Err(ConfigError::ZeroPeriod { field: "window period" });
        }
        if alignment == Alignment::FirstRequest {
            return Err(ConfigError::SlidingFromFirstRequest);
        }
        let fit = |horizon_ns| Self::fit(window, horizon_ns, value_bits);
        // Counts that do not fit beside 36 years of time may fit beside seven.
        let (time, period, layout) = fit(horizon_wanted_ns(value_bits)).or_else(|_| fit(HORIZON_LEAST_NS))?;
        let sliding = Self {
            phases: if alignment == Alignment::PerKey { period } else { 0 },
            limit: window.limit(),
            period,
            layout,
            count_refused,
        };
        Ok((time, sliding))
    }

    /// A timebase of this horizon, the units of a period in it, and the layout beside it.
    fn fit(
        window: Window,
        horizon_ns: u64,
        value_bits: u32,
    ) -> Result<(Timebase, u64, SlidingLayout), ConfigError> {
        let too_long =
            || beyond_horizon("window period", window.period().as_nanos(), u128::from(HORIZON_LEAST_NS));
        let period_ns =
            nanoseconds(window.period()).filter(|&ns| ns <= HORIZON_LEAST_NS).ok_or_else(too_long)?;
        // Time starts up to two periods above 0 (one to be idle, one to line up with the wall clock), a phase shifts
        // it by one more, which the timebase counts itself, and a count is forgotten two windows ahead.
        let ask =
            Ask { emissions: 1, period_ns: 1, ahead: 2 * period_ns, reserve_ns: 2 * period_ns, value_bits };
        let time = Timebase::with_horizon(ask, horizon_ns).ok_or_else(too_long)?;
        let period = period_ns << time.fraction_bits();
        let window_max = time.units(time.end_ns()) / period + 1;
        let layout = SlidingLayout::new(value_bits, window_max, window.limit())
            .map_err(|limit_max| Self::too_wide(window, limit_max))?;
        Ok((time, period, layout))
    }

    /// Another limit for the same word.
    pub(super) fn beside(&self, window: Window, count_refused: bool) -> Result<Self, ConfigError> {
        if window.limit() == 0 {
            return Err(ConfigError::Zero { field: "window limit" });
        }
        match self.layout.count_max() {
            most if window.limit() < most => Ok(Self { limit: window.limit(), count_refused, ..*self }),
            most => Err(Self::too_wide(window, most.saturating_sub(1))),
        }
    }

    fn too_wide(window: Window, limit_max: u64) -> ConfigError {
        ConfigError::TooWide { field: "window limit", limit: window.limit(), limit_max, other: None }
    }

    /// The layout of the word.
    pub fn layout(&self) -> &SlidingLayout {
        &self.layout
    }

    /// What phases lie below.
    pub(super) fn phases(&self) -> u64 {
        self.phases
    }

    /// The word at `moment`. One from the future (the clock stepped back) stays in its own window, of which then no time
    /// has passed.
    #[inline]
    fn at(&self, word: u64, moment: u64) -> View {
        let counts = self.layout.unpack(word);
        let window = moment / self.period;
        if window < counts.window {
            return View { counts, left: self.period };
        }
        let counts = match window - counts.window {
            0 => counts,
            1 => SlidingCounts { window, previous: counts.current, current: 0 },
            _ => SlidingCounts { window, previous: 0, current: 0 },
        };
        View { counts, left: self.period - moment % self.period }
    }

    /// What is used: the current count, and what the previous one weighs, rounded up.
    #[inline]
    fn used(&self, view: &View) -> u64 {
        let SlidingCounts { previous, current, .. } = view.counts;
        let weight = wide(previous, view.left).div_ceil(u128::from(self.period));
        // No more is left than the whole period, so it weighs no more than it is.
        current + u64::try_from(weight).unwrap_or(previous)
    }

    /// Whether `cost` fits beside what is used: the rule as it is written, which needs no division.
    #[inline]
    fn has_room(&self, view: &View, cost: u64) -> bool {
        let SlidingCounts { previous, current, .. } = view.counts;
        // No overflow: 31 bits of a count and 62 of time.
        wide(previous, view.left) + wide(current + cost, self.period) <= wide(self.limit, self.period)
    }

    /// Counts what passes; a refused request too, if told so.
    #[inline]
    pub fn decide(&self, word: u64, moment: u64, cost: u64) -> Decided {
        if cost == 0 {
            return Decided { outcome: Outcome::Pass, next: word };
        }
        if !self.fits(cost) {
            return Decided { outcome: Outcome::TooLarge, next: word };
        }
        let view = self.at(word, moment);
        // A current count that is saturated is above the limit.
        let passes = self.has_room(&view, cost);
        let next = if passes || self.count_refused {
            self.layout.pack(SlidingCounts { current: view.counts.current + cost, ..view.counts })
        } else {
            word
        };
        Decided { outcome: if passes { Outcome::Pass } else { Outcome::Exhausted }, next }
    }

    /// Counts `cost` though it may not fit. Returns what was counted, and the next word.
    pub(super) fn charge(&self, word: u64, moment: u64, cost: u64) -> (u64, u64) {
        let counts = self.at(word, moment).counts;
        let counted = cost.min(self.layout.count_max() - counts.current);
        let charged = SlidingCounts { current: counts.current + counted, ..counts };
        (counted, if cost == 0 { word } else { self.layout.pack(charged) })
    }

    /// Gives back `tokens` of the window in which they were counted, by the word that they left, while that is the current
    /// one or the one before. A count that has reached its end is no longer known, and stays. Returns the tokens, and
    /// the next word.
    pub(super) fn refund(&self, word: u64, moment: u64, tokens: u64, left: u64) -> (u64, u64) {
        let counts = self.at(word, moment).counts;
        let back = |count: u64| if count < self.layout.count_max() { tokens.min(count) } else { 0 };
        let (given, next) = match counts.window.checked_sub(self.layout.unpack(left).window) {
            Some(0) => {
                let given = back(counts.current);
                (given, SlidingCounts { current: counts.current - given, ..counts })
            }
            Some(1) => {
                let given = back(counts.previous);
                (given, SlidingCounts { previous: counts.previous - given, ..counts })
            }
            _ => (0, counts),
        };
        (given, if given == 0 { word } else { self.layout.pack(next) })
    }

    pub(super) fn put_back(&self, word: u64, moment: u64, seen: u64, next: u64) -> u64 {
        let (seen, next) = (self.at(seen, moment).counts, self.at(next, moment).counts);
        let counts = self.at(word, moment).counts;
        // No overflow: counts have 31 bits. They saturate when they are packed.
        self.layout.pack(SlidingCounts {
            previous: counts.previous + seen.previous.saturating_sub(next.previous),
            current: counts.current + seen.current.saturating_sub(next.current),
            ..counts
        })
    }

    /// The word with the counts of `seen` added, unless `next` still counts in its window.
    pub(super) fn with_lost(&self, word: u64, seen: u64, next: u64) -> u64 {
        let (counts, seen, next) =
            (self.layout.unpack(word), self.layout.unpack(seen), self.layout.unpack(next));
        if seen.window == next.window {
            return word;
        }
        let current = counts.current + seen.current + seen.previous;
        self.layout.pack(SlidingCounts { current, ..counts })
    }

    pub(super) fn refusing(&self, left: u64, moment: u64, cost: u64, is_counted: bool) -> Refusing {
        let cost = if self.count_refused && is_counted && self.fits(cost) { 0 } else { cost }; // else it is in the count already
        let used = self.used(&self.at(left, moment));
        Refusing { first: used.saturating_add(cost) > self.limit, sustain: false }
    }

    pub(super) fn fits(&self, cost: u64) -> bool {
        cost <= self.limit
    }

    pub(super) fn counts_refused(&self) -> bool {
        self.count_refused
    }

    /// What is owed stands in the current window, so that all of it counts until that ends.
    pub(super) fn begin(&self, moment: u64, debt: u32) -> u64 {
        self.layout.pack(SlidingCounts {
            window: moment / self.period,
            previous: 0,
            current: super::owed(debt, self.limit),
        })
    }

    /// The end of the window in which the current count weighs; with none, of its own.
    pub(super) fn idle_from(&self, word: u64) -> u64 {
        let counts = self.layout.unpack(word);
        (counts.window + 1 + u64::from(counts.current > 0)) * self.period
    }

    /// The start of the window that the word counts in.
    pub(super) fn left_at(&self, word: u64) -> u64 {
        self.layout.unpack(word).window * self.period
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Units of a window.
    pub(super) fn period(&self) -> u64 {
        self.period
    }

    /// Whether such a word can have been left at `moment` or before.
    pub(super) fn can_leave(&self, word: u64, moment: u64) -> bool {
        word <= VALUE_MAX && self.left_at(word) <= moment
    }

    /// The word whose windows are so many units earlier, whole periods.
    pub(super) fn earlier(&self, word: u64, units: u64) -> Option<u64> {
        let counts = self.layout.unpack(word);
        let window = counts.window.checked_sub(units / self.period)?;
        Some(self.layout.pack(SlidingCounts { window, ..counts }))
    }

    pub(super) fn part(&self, word: u64, moment: u64) -> Part {
        let view = self.at(word, moment);
        let used_max = self.layout.count_max();
        let used = self.used(&view).min(used_max);
        let (next, reset) = if used == 0 {
            (moment, moment)
        } else {
            (self.first_within(&view.counts, used - 1), self.first_within(&view.counts, 0))
        };
        Part {
            name: WindowName::Sliding,
            limit: self.limit,
            used,
            used_max,
            period: self.period,
            next,
            reset,
        }
    }

    pub(super) fn retry_at(&self, word: u64, moment: u64, cost: u64) -> u64 {
        let view = self.at(word, moment);
        let target = self.limit.saturating_sub(cost);
        if self.used(&view) <= target { moment } else { self.first_within(&view.counts, target) }
    }

    /// The first moment at which `target` or less is used, where more is now and nothing is added.
    fn first_within(&self, counts: &SlidingCounts, target: u64) -> u64 {
        let end = (counts.window + 1) * self.period;
        match target.checked_sub(counts.current) {
            // What is current may stay, and is used as it is to the window's end.
            Some(room) => end - self.left_within(counts.previous, room),
            // In the next window, where what is current weighs less and less.
            None => end + self.period - self.left_within(counts.current, target),
        }
    }

    /// The most that may be left of a window in which a `previous` count weighs `room` at most.
    fn left_within(&self, previous: u64, room: u64) -> u64 {
        if room >= previous {
            return self.period;
        }
        let left = wide(room, self.period) / u128::from(previous);
        u64::try_from(left).unwrap_or(self.period)
    }
}

/// A product of two numbers in full.
fn wide(one: u64, other: u64) -> u128 {
    u128::from(one) * u128::from(other)
}
