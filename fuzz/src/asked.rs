//! A limit that an input asks for, and the bound that it promises.

use std::time::Duration;

use arbitrary::Arbitrary;
use tidegate::{Alignment, Limit, Rate, Window};

use crate::input::{Length, Number};
use crate::windows::slides;

/// A limit to be, of any size.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Shape {
    Bucket {
        tokens: Number,
        period: Length,
        burst: Number,
    },
    Window {
        limit: Number,
        period: Length,
    },
    BurstSustain {
        burst: Number,
        period: Length,
        sustain: Number,
        periods: Number,
    },
    /// Limits of the everyday kind, which nearly always build: 1 to 256 in a second.
    Everyday {
        kind: u8,
        limit: u8,
        sustain: u8,
    },
}

/// A limit, and what the model has to know of it.
pub struct Asked {
    pub limit: Limit,
    pub alignment: Alignment,
    pub count_refused: bool,
    pub unix_ns: u128,
    /// Tokens and their period in ns, for a bucket.
    pub rate: Option<(u128, u128)>,
    /// Whether its one window slides.
    pub slides: bool,
    /// Limit and period in ns of each window; the burst of a bucket.
    pub parts: Vec<(u64, u128)>,
    pub cost_max: u64,
}

impl Asked {
    pub fn new(shape: Shape, alignment: u8, count_refused: bool, unix_ns: u64) -> Self {
        let may_slide = slides(alignment);
        let one = |limit, period| {
            let fixed = windows(&[(limit, period)]);
            if may_slide {
                (Limit::sliding_window(Window::new(limit, period)), fixed.1, fixed.2)
            } else {
                fixed
            }
        };
        let alignment = match alignment % 3 {
            0 => Alignment::Clock,
            1 => Alignment::PerKey,
            _ => Alignment::FirstRequest,
        };
        let second = Duration::from_secs(1);
        let (limit, rate, parts) = match shape {
            Shape::Bucket { tokens, period, burst } => bucket(tokens.get(), period.get(), burst.get()),
            Shape::Window { limit, period } => one(limit.get(), period.get()),
            Shape::BurstSustain { burst, period, sustain, periods } => {
                let (period, burst) = (period.get(), burst.get());
                let longest = u32::try_from(periods.get()).unwrap_or(u32::MAX);
                windows(&[(burst, period), (sustain.get(), period.saturating_mul(longest))])
            }
            Shape::Everyday { kind, limit, sustain } => {
                let (limit, sustain) = (u64::from(limit) + 1, u64::from(sustain));
                match kind % 3 {
                    0 => bucket(sustain + 1, second, limit),
                    1 => one(limit, second),
                    _ => windows(&[(limit, second), (limit + sustain, second * 4)]),
                }
            }
        };
        Self {
            slides: may_slide && rate.is_none() && parts.len() == 1,
            limit: limit.align(alignment).count_refused(count_refused),
            alignment,
            count_refused: count_refused && rate.is_none(),
            unix_ns: u128::from(unix_ns >> 2),
            rate,
            cost_max: parts.iter().map(|part| part.0).min().unwrap_or(0),
            parts,
        }
    }

    /// What the steps' sixteenths are sixteenths of.
    pub fn period_ns(&self) -> u64 {
        let ns = self.rate.map_or(self.parts[0].1, |(tokens, period_ns)| (period_ns / tokens.max(1)).max(16));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// The most that one key may be given of a part by requests made from one time to another, both included.
    pub fn most(&self, part: usize, from_ns: u128, to_ns: u128, slack_ns: u128) -> u128 {
        let (limit, period_ns) = (u128::from(self.parts[part].0), self.parts[part].1);
        let length_ns = to_ns - from_ns;
        if let Some((tokens, period_ns)) = self.rate {
            return limit.saturating_add(tokens.saturating_mul(length_ns + slack_ns) / period_ns);
        }
        if self.slides {
            return limit.saturating_add(limit.saturating_mul(length_ns + slack_ns) / period_ns);
        }
        let touched = match self.alignment {
            Alignment::Clock => (self.unix_ns + to_ns) / period_ns - (self.unix_ns + from_ns) / period_ns + 1,
            _ if length_ns == 0 => 1,
            Alignment::PerKey => (length_ns + slack_ns) / period_ns + 2,
            // A window may be short by a step of the grid, a 64th of the first period at most.
            Alignment::FirstRequest => {
                let shortest_ns = period_ns.saturating_sub(self.parts[0].1 / 64 + slack_ns).max(1);
                length_ns / shortest_ns + 2
            }
        };
        limit.saturating_mul(touched)
    }
}

type Terms = (Limit, Option<(u128, u128)>, Vec<(u64, u128)>);

fn bucket(tokens: u64, period: Duration, burst: u64) -> Terms {
    let limit = Limit::bucket(Rate::new(tokens, period), burst);
    (limit, Some((tokens.into(), period.as_nanos())), vec![(burst, period.as_nanos())])
}

fn windows(of: &[(u64, Duration)]) -> Terms {
    let window = |&(limit, period): &(u64, Duration)| Window::new(limit, period);
    let limit = match of {
        [one] => Limit::window(window(one)),
        [burst, sustain, ..] => Limit::burst_sustain(window(burst), window(sustain)),
        [] => unreachable!("one window or two"),
    };
    (limit, None, of.iter().map(|&(limit, period)| (limit, period.as_nanos())).collect())
}
