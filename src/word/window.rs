//! Fixed windows: one, or a burst and a sustain window counted at once, with all three alignments.

mod pair;

use pair::Pair;

use super::layout::{Counts, Layout, Misfit, narrow};
use super::{Decided, Outcome, Part, Refusing};
use crate::decision::WindowName;
use crate::error::ConfigError;
use crate::limit::{Alignment, Window};
use crate::time::timebase::{HORIZON_LEAST_NS, Timebase, VALUE_MAX, horizon_wanted_ns};

/// One or two windows and the layout of their word. A single window is a burst window whose sustain
/// window has no limit and no bits.
#[derive(Clone, Copy, Debug)]
pub struct Windowed {
    /// Phases lie below this: one longest period in units under [`Alignment::PerKey`], else 0.
    phases: u64,
    burst: u64,
    /// `u64::MAX` where there is no sustain window.
    sustain: u64,
    /// Burst periods in a sustain period.
    ratio: u64,
    layout: Layout,
    fraction_bits: u8,
    alignment: Alignment,
    count_refused: bool,
}

impl Windowed {
    /// Checks the windows and finds their timebase and layout.
    pub(super) fn new(
        burst: Window,
        sustain: Option<Window>,
        alignment: Alignment,
        count_refused: bool,
        value_bits: u32,
    ) -> Result<(Timebase, Self), ConfigError> {
        let pair = Pair::new(burst, sustain, alignment, value_bits)?;
        // Counts that do not fit beside 36 years of time may fit beside seven.
        let (time, layout) =
            pair.fit(horizon_wanted_ns(value_bits)).or_else(|_| pair.fit(HORIZON_LEAST_NS))?;
        let phases = if alignment == Alignment::PerKey { pair.ratio << time.fraction_bits() } else { 0 };
        let windowed = Self {
            phases,
            burst: burst.limit(),
            sustain: sustain.map_or(u64::MAX, |window| window.limit()),
            ratio: pair.ratio,
            layout,
            fraction_bits: narrow(time.fraction_bits()),
            alignment,
            count_refused,
        };
        Ok((time, windowed))
    }

    /// Other limits for the same word, of windows with the same periods.
    pub(super) fn beside(
        &self,
        burst: Window,
        sustain: Option<Window>,
        count_refused: bool,
    ) -> Result<Self, ConfigError> {
        let pair = Pair::new(burst, sustain, self.alignment, 0)?;
        let (burst_max, sustain_max) = (self.layout.burst_max() - 1, self.layout.sustain_max().max(1) - 1);
        if burst.limit() > burst_max {
            let limit_max = burst_max;
            return Err(pair.too_wide(match sustain {
                None => Misfit::Window { limit_max },
                Some(_) => Misfit::Burst { limit_max },
            }));
        }
        if sustain.is_some_and(|sustain| sustain.limit() > sustain_max) {
            return Err(pair.too_wide(Misfit::Sustain { limit_max: sustain_max, burst: burst.limit() }));
        }
        let sustain = sustain.map_or(u64::MAX, |window| window.limit());
        Ok(Self { burst: burst.limit(), sustain, count_refused, ..*self })
    }

    /// The layout of the word.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The burst (or only) limit, and the sustain limit if there is one.
    pub(super) fn limits(&self) -> [u64; 2] {
        [self.burst, self.sustain]
    }

    /// What phases lie below.
    pub(super) fn phases(&self) -> u64 {
        self.phases
    }

    /// The longest period in units.
    pub(super) fn longest(&self) -> u64 {
        self.ratio << self.fraction_bits
    }

    /// Steps of the grid in a burst period, as a power of two.
    #[inline]
    fn steps(&self) -> u32 {
        match self.alignment {
            Alignment::FirstRequest => self.layout.grid_bits(),
            Alignment::Clock | Alignment::PerKey => 0,
        }
    }

    /// A moment on the grid: the number of the burst period where windows are aligned.
    #[inline]
    fn on_grid(&self, moment: u64) -> u64 {
        moment >> (u32::from(self.fraction_bits) - self.steps())
    }

    /// What the word counts at `moment`: counts whose window is over read 0. A word from the future
    /// (the clock stepped back) stays in its own window.
    #[inline]
    fn counts_at(&self, word: u64, moment: u64) -> Counts {
        let counts = self.layout.unpack(word);
        let now = self.on_grid(moment);
        match self.alignment {
            Alignment::FirstRequest => {
                let elapsed = now.saturating_sub(counts.time);
                let index = elapsed >> self.steps();
                if index >= self.ratio {
                    Counts { time: now, index: 0, sustain: 0, burst: 0 }
                } else if index > counts.index {
                    Counts { index, burst: 0, ..counts }
                } else {
                    counts
                }
            }
            Alignment::Clock | Alignment::PerKey => {
                if now <= counts.time {
                    counts
                } else if now / self.ratio == counts.time / self.ratio {
                    Counts { time: now, burst: 0, ..counts }
                } else {
                    Counts { time: now, index: 0, sustain: 0, burst: 0 }
                }
            }
        }
    }

    /// Counts in both windows at once; a refused request too, unless told otherwise.
    #[inline]
    pub fn decide(&self, word: u64, moment: u64, cost: u64) -> Decided {
        if cost == 0 {
            return Decided { outcome: Outcome::Pass, next: word };
        }
        if !self.fits(cost) {
            return Decided { outcome: Outcome::TooLarge, next: word };
        }
        let counts = self.counts_at(word, moment);
        // No overflow: each term is below 2^62. What saturates is above its limit already.
        let (burst, sustain) = (counts.burst + cost, counts.sustain + cost);
        let passes = (burst <= self.burst) & (sustain <= self.sustain);
        let next = if passes || self.count_refused {
            self.layout.pack(Counts { burst, sustain, ..counts })
        } else {
            word
        };
        Decided { outcome: if passes { Outcome::Pass } else { Outcome::Exhausted }, next }
    }

    /// Counts `cost` in both windows though it may not fit. Returns what was counted, and the next word.
    pub(super) fn charge(&self, word: u64, moment: u64, cost: u64) -> (u64, u64) {
        let counts = self.counts_at(word, moment);
        let room = self.layout.burst_max() - counts.burst;
        let sustain_room = if self.is_single() { room } else { self.layout.sustain_max() - counts.sustain };
        let counted = cost.min(room.max(sustain_room));
        let (burst, sustain) = (counts.burst + counted, counts.sustain + counted);
        (counted, if cost == 0 { word } else { self.layout.pack(Counts { burst, sustain, ..counts }) })
    }

    /// Gives back `tokens` in each of the two windows that is the one in which they were counted, by the word that they
    /// left. A count that has reached its end is no longer known, and stays. Returns the tokens, and the next word.
    pub(super) fn refund(&self, word: u64, moment: u64, tokens: u64, left: u64) -> (u64, u64) {
        let counts = self.counts_at(word, moment);
        let then = self.layout.unpack(left);
        let (same_burst, same_sustain) = match self.alignment {
            Alignment::FirstRequest => {
                let same = counts.time == then.time;
                (same && counts.index == then.index, same)
            }
            Alignment::Clock | Alignment::PerKey => {
                (counts.time == then.time, counts.time / self.ratio == then.time / self.ratio)
            }
        };
        let back = |same: bool, count: u64, max: u64| if same && count < max { tokens.min(count) } else { 0 };
        let burst = back(same_burst, counts.burst, self.layout.burst_max());
        let sustain = back(same_sustain, counts.sustain, self.layout.sustain_max());
        let given = burst.max(sustain);
        let next = Counts { burst: counts.burst - burst, sustain: counts.sustain - sustain, ..counts };
        (given, if given == 0 { word } else { self.layout.pack(next) })
    }

    pub(super) fn put_back(&self, word: u64, moment: u64, seen: u64, next: u64) -> u64 {
        let (seen, next) = (self.counts_at(seen, moment), self.counts_at(next, moment));
        let burst = seen.burst.saturating_sub(next.burst);
        let sustain = seen.sustain.saturating_sub(next.sustain);
        let counts = self.counts_at(word, moment);
        // No overflow: both terms are below 2^62.
        self.layout.pack(Counts { burst: counts.burst + burst, sustain: counts.sustain + sustain, ..counts })
    }

    /// The word with the counts of `seen` added, unless `next` still counts in its windows.
    pub(super) fn with_lost(&self, word: u64, seen: u64, next: u64) -> u64 {
        let (counts, seen, next) =
            (self.layout.unpack(word), self.layout.unpack(seen), self.layout.unpack(next));
        if (seen.time, seen.index) == (next.time, next.index) {
            return word;
        }
        // No overflow: both terms are below 2^62.
        self.layout.pack(Counts {
            burst: counts.burst + seen.burst,
            sustain: counts.sustain + seen.sustain,
            ..counts
        })
    }

    pub(super) fn refusing(&self, left: u64, moment: u64, cost: u64, is_counted: bool) -> Refusing {
        // The sustain limit is no lower.
        if cost > self.burst {
            return Refusing { first: true, sustain: cost > self.sustain };
        }
        let counts = self.counts_at(left, moment);
        let cost = if self.count_refused && is_counted { 0 } else { cost }; // else it is among them already
        Refusing { first: counts.burst + cost > self.burst, sustain: counts.sustain + cost > self.sustain }
    }

    pub(super) fn fits(&self, cost: u64) -> bool {
        cost <= self.burst && cost <= self.sustain
    }

    pub(super) fn counts_refused(&self) -> bool {
        self.count_refused
    }

    pub(super) fn begin(&self, moment: u64, debt: u32) -> u64 {
        let sustain = if self.is_single() { 0 } else { super::owed(debt, self.sustain) };
        self.layout.pack(Counts {
            time: self.on_grid(moment),
            index: 0,
            sustain,
            burst: super::owed(debt, self.burst),
        })
    }

    /// The end of the sustain window that the word's counts stand in.
    pub(super) fn idle_from(&self, word: u64) -> u64 {
        self.ends(&self.layout.unpack(word)).1
    }

    /// The start of the burst window that the word counts in.
    pub(super) fn left_at(&self, word: u64) -> u64 {
        let burst_end = self.ends(&self.layout.unpack(word)).0;
        burst_end - (1 << self.fraction_bits)
    }

    /// Whether such windows can have been left at `moment` or before. (Any counts can: by refusals, charges, refunds, and under
    /// another limit.)
    pub(super) fn can_leave(&self, word: u64, moment: u64) -> bool {
        let counts = self.layout.unpack(word);
        let began = counts.time + (counts.index << self.steps());
        word <= VALUE_MAX && counts.index < self.ratio && began <= self.on_grid(moment)
    }

    /// The word whose windows are so many units earlier, whole longest periods.
    pub(super) fn earlier(&self, word: u64, units: u64) -> Option<u64> {
        debug_assert!(units.is_multiple_of(self.longest()) || units == u64::MAX);
        let counts = self.layout.unpack(word);
        let time = counts.time.checked_sub(self.on_grid(units))?;
        Some(self.layout.pack(Counts { time, ..counts }))
    }

    /// When the burst window and the sustain window of these counts end, in units.
    fn ends(&self, counts: &Counts) -> (u64, u64) {
        let bits = u32::from(self.fraction_bits);
        match self.alignment {
            Alignment::FirstRequest => {
                let opened = counts.time << (bits - self.steps());
                (opened + ((counts.index + 1) << bits), opened + (self.ratio << bits))
            }
            Alignment::Clock | Alignment::PerKey => {
                ((counts.time + 1) << bits, (counts.time / self.ratio + 1) * (self.ratio << bits))
            }
        }
    }

    pub(super) fn parts(&self, word: u64, moment: u64) -> [Part; 2] {
        let counts = self.counts_at(word, moment);
        let (burst_end, sustain_end) = self.ends(&counts);
        let period = 1 << self.fraction_bits;
        let burst = Part {
            name: if self.is_single() { WindowName::Window } else { WindowName::Burst },
            limit: self.burst,
            used: counts.burst,
            used_max: self.layout.burst_max(),
            period,
            next: burst_end,
            reset: burst_end,
        };
        let sustain = Part {
            name: WindowName::Sustain,
            limit: self.sustain,
            used: counts.sustain,
            used_max: self.layout.sustain_max(),
            period: self.ratio * period,
            next: sustain_end,
            reset: sustain_end,
        };
        let at_rest = |part: Part| Part { next: moment, reset: moment, ..part };
        let seen = |part: Part| if part.used == 0 { at_rest(part) } else { part };
        if self.is_single() { [seen(burst); 2] } else { [seen(burst), seen(sustain)] }
    }

    /// How long one of its windows lasts, in units, and its limit.
    pub(super) fn period_and_limit(&self, part: WindowName) -> (u64, u64) {
        match part {
            WindowName::Sustain => (self.longest(), self.sustain),
            _ => (1 << self.fraction_bits, self.burst),
        }
    }

    /// Whether there is no sustain window.
    pub(super) fn is_single(&self) -> bool {
        self.sustain == u64::MAX
    }

    /// The sustain window's end if that is what `cost` does not fit; else the burst window's.
    pub(super) fn retry_at(&self, word: u64, moment: u64, cost: u64) -> (WindowName, u64) {
        let counts = self.counts_at(word, moment);
        let (burst_end, sustain_end) = self.ends(&counts);
        if !self.is_single() && cost > self.sustain.saturating_sub(counts.sustain) {
            return (WindowName::Sustain, sustain_end);
        }
        let name = if self.is_single() { WindowName::Window } else { WindowName::Burst };
        let fits = cost <= self.burst.saturating_sub(counts.burst);
        (name, if fits { moment } else { burst_end })
    }
}
