//! How a window's start and counts share one word. Every width, shift and mask is derived here, once,
//! from the limits themselves.
//!
//! ```text
//! 61 …                                            … 0
//! [ time | burst index | sustain count | burst count ]
//! ```
//!
//! * **time**: aligned windows keep the number of the burst period; windows that open at the first
//!   request keep the opening of the sustain window, in grid steps.
//! * **burst index**: only for the latter, which burst of the sustain window the burst count is of.
//! * **counts**: each at least wide enough for its limit + 1, so that a saturated count always
//!   refuses. A single window has no sustain count.
//!
//! A sliding window has a layout of its own:
//!
//! ```text
//! 61 …                                     … 0
//! [ window number | previous count | current count ]
//! ```
//!
//! Both counts are of one limit and equally wide, so that the current one becomes the previous one as it is.

use crate::time::timebase::{VALUE_BITS, VALUE_MAX};

/// The grid of openings is never coarser than the burst period over 2^6.
const GRID_BITS_LEAST: u32 = 6;
/// Bits that a count gets above its limit, when there are some to spare: 16 times the limit is
/// counted exactly before anything else grows.
const HEADROOM_BITS: u32 = 4;

/// What a layout is made from.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// The largest number of a burst period that time reaches.
    pub tick_max: u64,
    /// Binary places that the timebase has below a burst period.
    pub fraction_bits: u32,
    /// Whether windows open at the first request.
    pub first_request: bool,
    /// Burst periods in a sustain period; 1 for a single window.
    pub ratio: u64,
    /// The burst (or only) limit.
    pub burst: u64,
    /// The sustain limit, if there is one.
    pub sustain: Option<u64>,
    /// Bits of the whole.
    pub value_bits: u32,
}

/// Which count is too wide, and the largest limit that would fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The only limit.
    Window {
        /// The largest that would fit.
        limit_max: u64,
    },
    /// The burst limit, beside the sustain limit as it is.
    Burst {
        /// The largest that would fit.
        limit_max: u64,
    },
    /// The sustain limit, beside this burst limit: the one asked for, or 1 where no sustain limit that is
    /// at least as large would fit.
    Sustain {
        /// The largest that would fit.
        limit_max: u64,
        /// The burst limit beside it.
        burst: u64,
    },
}

/// Bit widths of the fields below the time, and of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    burst_bits: u8,
    sustain_bits: u8,
    index_bits: u8,
    grid_bits: u8,
}

/// A word, unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Burst period number, or opening in grid steps.
    pub time: u64,
    /// Which burst of the sustain window; 0 in aligned windows.
    pub index: u64,
    /// Counted in the sustain window; 0 where there is none.
    pub sustain: u64,
    /// Counted in the burst (or only) window.
    pub burst: u64,
}

/// Bits that `value` takes.
fn bits(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// A number of bits in a word.
#[expect(clippy::cast_possible_truncation, reason = "a word has 64 bits")]
pub(super) fn narrow(bits: u32) -> u8 {
    debug_assert!(bits <= u64::BITS);
    bits as u8
}

/// Bits of a count that must tell `limit` from more.
fn count_bits(limit: u64) -> u32 {
    bits(limit.saturating_add(1))
}

impl Layout {
    /// Divides the word.
    ///
    /// # Errors
    /// [`Misfit`] when time and counts take more bits than there are.
    pub fn new(needs: &Needs) -> Result<Self, Misfit> {
        let mut grid_bits = if needs.first_request { GRID_BITS_LEAST.min(needs.fraction_bits) } else { 0 };
        let index_bits = if needs.first_request { bits(needs.ratio - 1) } else { 0 };
        let mut burst_bits = count_bits(needs.burst);
        let mut sustain_bits = needs.sustain.map_or(0, count_bits);

        let for_counts = needs.value_bits.saturating_sub(bits(needs.tick_max) + grid_bits + index_bits);
        let Some(mut spare) = for_counts.checked_sub(burst_bits + sustain_bits) else {
            return Err(Self::misfit(for_counts, needs));
        };
        let mut give = |most: u32| {
            let given = most.min(spare);
            spare -= given;
            given
        };
        burst_bits += give(HEADROOM_BITS);
        sustain_bits += if needs.sustain.is_some() { give(HEADROOM_BITS) } else { 0 };
        // Where the word is of several tiers, the others may count to more.
        let for_grid = if needs.value_bits < VALUE_BITS { spare / 2 } else { spare };
        let mut give = |most: u32| {
            let given = most.min(spare);
            spare -= given;
            given
        };
        grid_bits +=
            if needs.first_request { give(for_grid.min(needs.fraction_bits - grid_bits)) } else { 0 };
        let half = if needs.sustain.is_some() { spare / 2 } else { 0 };
        sustain_bits += half;
        burst_bits += spare - half;

        let layout = Self {
            burst_bits: narrow(burst_bits),
            sustain_bits: narrow(sustain_bits),
            index_bits: narrow(index_bits),
            grid_bits: narrow(grid_bits),
        };
        assert!(
            bits(needs.tick_max) + grid_bits + index_bits + sustain_bits + burst_bits <= needs.value_bits
        );
        assert!(
            layout.burst_max() > needs.burst
                && needs.sustain.is_none_or(|limit| layout.sustain_max() > limit)
        );
        Ok(layout)
    }

    /// What to lower so that the counts fit `free` bits. The sustain limit is at least the burst limit.
    fn misfit(free: u32, needs: &Needs) -> Misfit {
        let limit_max = |bits: u32| ((1_u64 << bits) - 1).saturating_sub(1);
        let beside = |limit| limit_max(free.saturating_sub(count_bits(limit)));
        match needs.sustain {
            None => Misfit::Window { limit_max: limit_max(free) },
            Some(_) if beside(needs.burst) >= needs.burst => {
                Misfit::Sustain { limit_max: beside(needs.burst), burst: needs.burst }
            }
            Some(sustain) if beside(sustain) >= 1 => Misfit::Burst { limit_max: beside(sustain) },
            Some(_) => Misfit::Sustain { limit_max: beside(1), burst: 1 },
        }
    }

    /// The burst (or only) count at which it saturates.
    #[inline]
    pub fn burst_max(&self) -> u64 {
        (1 << self.burst_bits) - 1
    }

    /// The sustain count at which it saturates; 0 where there is none.
    #[inline]
    pub fn sustain_max(&self) -> u64 {
        (1 << self.sustain_bits) - 1
    }

    /// Where the burst (or only) count and the sustain count stand in a word: of each all bits that it may have.
    #[cfg(any(feature = "policy", test))]
    pub(super) fn places(&self) -> [u64; 2] {
        [self.burst_max(), self.sustain_max() << self.burst_bits]
    }

    /// The grid has `2^grid_bits` steps to a burst period.
    #[inline]
    pub fn grid_bits(&self) -> u32 {
        u32::from(self.grid_bits)
    }

    /// Unpacks a value.
    #[inline]
    pub fn unpack(&self, word: u64) -> Counts {
        let value = word & VALUE_MAX;
        Counts {
            burst: value & self.burst_max(),
            sustain: (value >> self.burst_bits) & self.sustain_max(),
            index: (value >> (self.burst_bits + self.sustain_bits)) & ((1 << self.index_bits) - 1),
            time: value >> (self.burst_bits + self.sustain_bits + self.index_bits),
        }
    }

    /// Packs; counts above their capacity saturate and never reach a neighbour.
    #[inline]
    pub fn pack(&self, counts: Counts) -> u64 {
        let high = (counts.time << self.index_bits) | counts.index;
        let high = (high << self.sustain_bits) | counts.sustain.min(self.sustain_max());
        let word = (high << self.burst_bits) | counts.burst.min(self.burst_max());
        debug_assert!(word <= VALUE_MAX);
        word
    }
}

/// Bit width of the two counts of a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLayout {
    count_bits: u8,
}

/// The word of a sliding window, unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingCounts {
    /// Number of the window that `current` is counted in.
    pub window: u64,
    /// Counted in the window before it.
    pub previous: u64,
    /// Counted in the window itself.
    pub current: u64,
}

impl SlidingLayout {
    /// Gives each count half of what windows numbered up to `window_max` leave of so many bits.
    ///
    /// # Errors
    /// The largest limit that would fit, where this one does not. 2 beside seven years of nanoseconds, more beside any longer window.
    pub fn new(value_bits: u32, window_max: u64, limit: u64) -> Result<Self, u64> {
        let count_bits = value_bits.saturating_sub(bits(window_max)) / 2;
        let layout = Self { count_bits: narrow(count_bits) };
        if layout.count_max() <= limit {
            return Err(layout.count_max().saturating_sub(1));
        }
        assert!(bits(window_max) + 2 * count_bits <= value_bits);
        Ok(layout)
    }

    /// The count at which either saturates; above the limit.
    #[inline]
    pub fn count_max(&self) -> u64 {
        (1 << self.count_bits) - 1
    }

    /// Unpacks a value.
    #[inline]
    pub fn unpack(&self, word: u64) -> SlidingCounts {
        let value = word & VALUE_MAX;
        SlidingCounts {
            current: value & self.count_max(),
            previous: (value >> self.count_bits) & self.count_max(),
            window: value >> (2 * self.count_bits),
        }
    }

    /// Packs; counts above their capacity saturate and never reach a neighbour.
    #[inline]
    pub fn pack(&self, counts: SlidingCounts) -> u64 {
        let high = (counts.window << self.count_bits) | counts.previous.min(self.count_max());
        let word = (high << self.count_bits) | counts.current.min(self.count_max());
        debug_assert!(word <= VALUE_MAX);
        word
    }
}
