//! What becomes of a word when its limit is changed.

use super::{Bucket, Counts, Kind, Rule, Sliding, SlidingCounts, VALUE_MAX, Windowed, Windows};

/// What a key that has used something has used after its limit was changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CarryOver {
    /// As many tokens or requests as before. Under a lower limit it may be more than the whole: a bucket then owes the
    /// rest, a window is used up until it ends.
    #[default]
    KeepUsed,
    /// The same share of the limit, rounded up at each change: who had used half of the old one has used half of the new one.
    Proportional,
    /// Nothing: **every key gets its whole limit at once**.
    Reset,
}

impl CarryOver {
    /// What becomes of a count under the limit `from` when that is `to`. One that has reached its end, `count_max`, is at
    /// least that, and stays at the end.
    fn count(self, count: u64, count_max: u64, from: u64, to: u64) -> u64 {
        match self {
            _ if count >= count_max => VALUE_MAX,
            Self::Proportional => share_of(count, from, to),
            _ => count,
        }
    }
}

impl Rule {
    /// A value of the rule `from`, of the same kind and periods, in the terms of this one, at `ns` of the limiter's time.
    pub fn adopt(&self, from: &Rule, carry_over: CarryOver, value: u64, ns: u64) -> u64 {
        if value == 0 || carry_over == CarryOver::Reset {
            return 0;
        }
        match (&self.kind, &from.kind) {
            (Kind::Bucket(to), Kind::Bucket(bucket)) => {
                let (now, then) = (self.time.units(ns), from.time.units(ns));
                let arrival = |used| to.adopt(bucket, carry_over, used, now).min(self.time.value_max());
                match value.checked_sub(then) {
                    // Cut at the end of time when it was adopted before: at least all of it is used.
                    Some(used) if value == from.time.value_max() => arrival(used).max(now + to.depth()),
                    Some(used) => arrival(used),
                    // Full for some time, and since when is told by the time itself.
                    None => self.time.units(from.time.span_ns(value)).min(now.saturating_sub(1)),
                }
            }
            (Kind::Windows(Windows::Fixed(to)), Kind::Windows(Windows::Fixed(from))) => {
                to.adopt(from, carry_over, value)
            }
            (Kind::Windows(Windows::Sliding(to)), Kind::Windows(Windows::Sliding(from))) => {
                to.adopt(from, carry_over, value)
            }
            // No change of a limit changes its kind.
            _ => value,
        }
    }
}

/// `used` of `from`, in parts of `to`, rounded up.
fn share_of(used: u64, from: u64, to: u64) -> u64 {
    let share = (u128::from(used) * u128::from(to)).div_ceil(u128::from(from.max(1)));
    u64::try_from(share).unwrap_or(u64::MAX)
}

impl Bucket {
    /// As many tokens as so many units of the bucket `from` are, in units of this one, rounded up.
    pub(super) fn units_of(&self, from: &Self, units: u64) -> u64 {
        share_of(units, from.interval(), self.interval())
    }

    /// The arrival time at `now` of who had `used` so many units of the bucket `from`.
    fn adopt(&self, from: &Self, carry_over: CarryOver, used: u64, now: u64) -> u64 {
        let used = match carry_over {
            CarryOver::Proportional => share_of(used, from.depth(), self.depth()),
            _ => self.units_of(from, used),
        };
        now.saturating_add(used)
    }
}

impl Windowed {
    fn adopt(&self, from: &Self, carry_over: CarryOver, value: u64) -> u64 {
        let counts = from.layout().unpack(value);
        let (was, is) = (from.limits(), self.limits());
        let (finer, coarser) = (self.layout().grid_bits(), from.layout().grid_bits());
        let time = if finer >= coarser {
            counts.time << (finer - coarser)
        } else {
            counts.time >> (coarser - finer)
        };
        self.layout().pack(Counts {
            time,
            burst: carry_over.count(counts.burst, from.layout().burst_max(), was[0], is[0]),
            sustain: if from.is_single() {
                0
            } else {
                carry_over.count(counts.sustain, from.layout().sustain_max(), was[1], is[1])
            },
            ..counts
        })
    }
}

impl Sliding {
    fn adopt(&self, from: &Self, carry_over: CarryOver, value: u64) -> u64 {
        let SlidingCounts { window, previous, current } = from.layout().unpack(value);
        let carried = |count| carry_over.count(count, from.layout().count_max(), from.limit(), self.limit());
        self.layout().pack(SlidingCounts { window, previous: carried(previous), current: carried(current) })
    }
}
