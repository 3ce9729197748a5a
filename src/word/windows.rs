//! The kinds of word that count in windows: fixed ones, and the one that slides.
//!
//! They stand behind one door, so that a bucket's check asks once whether it is a bucket's. Both keep what phases lie below
//! in a field of their own for the same reason: reading it is one load for either.

use super::{Decided, Part, Refusing, Sliding, Windowed};
use crate::decision::WindowName;

/// Fixed windows, one or two, or a sliding one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Windows {
    Fixed(Windowed),
    Sliding(Sliding),
}

impl Windows {
    #[inline(always)]
    pub(super) fn phases(&self) -> u64 {
        match self {
            Self::Fixed(windowed) => windowed.phases(),
            Self::Sliding(sliding) => sliding.phases(),
        }
    }

    #[inline(never)]
    pub(super) fn decide(&self, word: u64, moment: u64, cost: u64) -> Decided {
        match self {
            Self::Fixed(windowed) => windowed.decide(word, moment, cost),
            Self::Sliding(sliding) => sliding.decide(word, moment, cost),
        }
    }

    pub(super) fn refusing(&self, left: u64, moment: u64, cost: u64, is_counted: bool) -> Refusing {
        match self {
            Self::Fixed(windowed) => windowed.refusing(left, moment, cost, is_counted),
            Self::Sliding(sliding) => sliding.refusing(left, moment, cost, is_counted),
        }
    }

    #[inline(always)]
    pub(super) fn fits(&self, cost: u64) -> bool {
        match self {
            Self::Fixed(windowed) => windowed.fits(cost),
            Self::Sliding(sliding) => sliding.fits(cost),
        }
    }

    #[inline(always)]
    pub(super) fn counts_refused(&self) -> bool {
        match self {
            Self::Fixed(windowed) => windowed.counts_refused(),
            Self::Sliding(sliding) => sliding.counts_refused(),
        }
    }

    /// Counts `cost` though it may not fit. Returns what was counted, and the next word.
    pub(super) fn charge(&self, word: u64, moment: u64, cost: u64) -> (u64, u64) {
        match self {
            Self::Fixed(windowed) => windowed.charge(word, moment, cost),
            Self::Sliding(sliding) => sliding.charge(word, moment, cost),
        }
    }

    /// Gives back `tokens` that were counted when the word was left as `left`, where they still count. Returns the tokens,
    /// and the next word.
    pub(super) fn refund(&self, word: u64, moment: u64, tokens: u64, left: u64) -> (u64, u64) {
        match self {
            Self::Fixed(windowed) => windowed.refund(word, moment, tokens, left),
            Self::Sliding(sliding) => sliding.refund(word, moment, tokens, left),
        }
    }

    pub(super) fn put_back(&self, word: u64, moment: u64, seen: u64, next: u64) -> u64 {
        match self {
            Self::Fixed(windowed) => windowed.put_back(word, moment, seen, next),
            Self::Sliding(sliding) => sliding.put_back(word, moment, seen, next),
        }
    }

    pub(super) fn is_idle(&self, word: u64, moment: u64) -> bool {
        self.idle_from(word) <= moment
    }

    pub(super) fn begin(&self, moment: u64, debt: u32) -> u64 {
        match self {
            Self::Fixed(windowed) => windowed.begin(moment, debt),
            Self::Sliding(sliding) => sliding.begin(moment, debt),
        }
    }

    #[inline(always)]
    pub(super) fn idle_from(&self, word: u64) -> u64 {
        match self {
            Self::Fixed(windowed) => windowed.idle_from(word),
            Self::Sliding(sliding) => sliding.idle_from(word),
        }
    }

    pub(super) fn left_at(&self, word: u64) -> u64 {
        match self {
            Self::Fixed(windowed) => windowed.left_at(word),
            Self::Sliding(sliding) => sliding.left_at(word),
        }
    }

    pub(super) fn with_lost(&self, word: u64, seen: u64, next: u64) -> u64 {
        match self {
            Self::Fixed(windowed) => windowed.with_lost(word, seen, next),
            Self::Sliding(sliding) => sliding.with_lost(word, seen, next),
        }
    }

    /// The longest period in units.
    pub(super) fn longest(&self) -> u64 {
        match self {
            Self::Fixed(windowed) => windowed.longest(),
            Self::Sliding(sliding) => sliding.period(),
        }
    }

    /// Whether such a word can have been left at `moment` or before.
    pub(super) fn can_leave(&self, word: u64, moment: u64) -> bool {
        match self {
            Self::Fixed(windowed) => windowed.can_leave(word, moment),
            Self::Sliding(sliding) => sliding.can_leave(word, moment),
        }
    }

    /// The word whose windows are so many units earlier, whole longest periods.
    pub(super) fn earlier(&self, word: u64, units: u64) -> Option<u64> {
        match self {
            Self::Fixed(windowed) => windowed.earlier(word, units),
            Self::Sliding(sliding) => sliding.earlier(word, units),
        }
    }

    pub(super) fn parts(&self, word: u64, moment: u64) -> [Part; 2] {
        match self {
            Self::Fixed(windowed) => windowed.parts(word, moment),
            Self::Sliding(sliding) => [sliding.part(word, moment); 2],
        }
    }

    /// The share of a part's period that `cost` is of its limit, in units, rounded up.
    pub(super) fn spacing(&self, part: WindowName, cost: u64) -> u64 {
        let (period, limit) = match self {
            Self::Fixed(windowed) => windowed.period_and_limit(part),
            Self::Sliding(sliding) => (sliding.period(), sliding.limit()),
        };
        let share = (u128::from(period) * u128::from(cost)).div_ceil(u128::from(limit.max(1)));
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    pub(super) fn retry_at(&self, word: u64, moment: u64, cost: u64) -> (WindowName, u64) {
        match self {
            Self::Fixed(windowed) => windowed.retry_at(word, moment, cost),
            Self::Sliding(sliding) => (WindowName::Sliding, sliding.retry_at(word, moment, cost)),
        }
    }
}
