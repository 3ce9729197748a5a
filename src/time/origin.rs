//! Where a limiter's own nanoseconds start, and how they keep up with the wall clock.
//!
//! A limiter's time is the clock's reading plus an offset of at least the longest period, so that
//! the word 0 is idle at every moment. For most limits the offset never changes. Windows that tile
//! the Unix epoch need one that makes whole periods of the limiter whole periods of the wall clock,
//! and a counter runs tens of parts per million off it: 2 s a day. So **at the end of each window**
//! the offset is compared with the wall:
//!
//! * the wall is ahead: the offset moves forward;
//! * the wall is behind by no more than 1/64 of the window: the window goes on until the wall has
//!   reached its end too, and the offset moves back by what the counter was fast. No time that any
//!   check has seen is undone, because the time stood still at the window's end meanwhile;
//! * the wall is further behind (somebody set it back): it is not followed. Time only goes forward.

use super::clock::Clock;
use super::timebase::saturating_ns;
use crate::sync::{AtomicU64, Ordering};

/// A wall that is behind by more than this share of a window was set back, and is not followed.
const FOLLOWED_SHARE: u64 = 64;

/// Turns readings of a clock into the limiter's nanoseconds.
#[derive(Debug)]
pub struct Origin {
    offset_ns: AtomicU64,
    wall: Option<Wall>,
}

#[derive(Debug)]
struct Wall {
    /// Unix time at which the limiter's time is 0.
    zero_unix_ns: u64,
    period_ns: u64,
    /// End of the window in which wall and limiter were last compared, in the limiter's time.
    window_end_ns: AtomicU64,
}

impl Origin {
    /// A time that starts `start_ns` above the clock's origin.
    pub fn fixed(start_ns: u64) -> Self {
        Self { offset_ns: AtomicU64::new(start_ns), wall: None }
    }

    /// A time whose whole periods, of `period_ns` and of its multiple `longest_ns`, are whole
    /// periods of the wall clock, at least `longest_ns` above 0.
    pub fn on_wall<C: Clock>(period_ns: u64, longest_ns: u64, clock: &C) -> Self {
        let (reading, unix_ns) = (clock.precise(), saturating_ns(clock.unix()));
        // 0 is a whole longest period of the wall, and the origin lies one to two of them later.
        let origin_unix_ns = unix_ns.saturating_sub(reading);
        let into_period_ns = origin_unix_ns % longest_ns;
        let now_ns = longest_ns + into_period_ns + reading;
        Self {
            offset_ns: AtomicU64::new(longest_ns + into_period_ns),
            wall: Some(Wall {
                zero_unix_ns: unix_ns.wrapping_sub(now_ns),
                period_ns,
                window_end_ns: AtomicU64::new(
                    (now_ns / period_ns).saturating_add(1).saturating_mul(period_ns),
                ),
            }),
        }
    }

    /// The limiter's time for a reading of `clock`, in nanoseconds.
    #[inline]
    pub fn ns<C: Clock>(&self, reading: u64, clock: &C) -> u64 {
        // ORDERING: Relaxed, here and below. The offset and the window's end are two words that may
        // be seen apart: an old end only leads to another comparison, an old offset is off by what
        // the wall was ahead or behind, which the comparison would have found.
        let ns = reading.saturating_add(self.offset_ns.load(Ordering::Relaxed));
        match &self.wall {
            Some(wall) if ns >= wall.window_end_ns.load(Ordering::Relaxed) => self.compare(wall, clock),
            _ => ns,
        }
    }

    /// Follows the wall at the end of a window.
    #[cold]
    #[inline(never)]
    fn compare<C: Clock>(&self, wall: &Wall, clock: &C) -> u64 {
        let end_ns = wall.window_end_ns.load(Ordering::Relaxed);
        let offset_ns = self.offset_ns.load(Ordering::Relaxed);
        let reading = clock.precise();
        let by_counter_ns = reading.saturating_add(offset_ns);
        // Wrapping: a wall before the limiter's 0 reads as far in the future, see below.
        let by_wall_ns = saturating_ns(clock.unix()).wrapping_sub(wall.zero_unix_ns);
        let behind_ns = by_counter_ns.wrapping_sub(by_wall_ns) as i64;
        let now_ns = match behind_ns {
            ..=0 => by_wall_ns,
            _ if behind_ns as u64 > wall.period_ns / FOLLOWED_SHARE => by_counter_ns,
            _ if by_wall_ns < end_ns => return end_ns - 1,
            _ => by_wall_ns,
        };
        let next_offset_ns = now_ns.wrapping_sub(reading);
        // If somebody else has moved the offset since, theirs stands: it is as fresh as ours.
        let _ =
            self.offset_ns.compare_exchange(offset_ns, next_offset_ns, Ordering::Relaxed, Ordering::Relaxed);
        let next_end_ns = (now_ns / wall.period_ns).saturating_add(1).saturating_mul(wall.period_ns);
        wall.window_end_ns.fetch_max(next_end_ns, Ordering::Relaxed);
        now_ns
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::time::Manual;

    const SECOND: u64 = 1_000_000_000;

    /// A limiter's time on 15 s windows nested in 300 s ones, and the clock under it.
    fn at_unix(seconds: u64) -> (Manual, Origin) {
        let clock = Manual::at_unix(Duration::from_secs(seconds));
        let origin = Origin::on_wall(15 * SECOND, 300 * SECOND, &clock);
        (clock, origin)
    }

    fn now(clock: &Manual, origin: &Origin) -> u64 {
        origin.ns(clock.coarse(), clock)
    }

    #[test]
    fn starts_one_longest_period_above_zero_in_step_with_the_wall() {
        for unix in [0, 1, 299, 300, 1_431_857_103] {
            let (clock, origin) = at_unix(unix);
            let ns = now(&clock, &origin);
            assert!((300 * SECOND..600 * SECOND).contains(&ns));
            assert_eq!(ns / SECOND % 300, unix % 300);
        }
    }

    #[test]
    fn a_slow_counter_is_corrected_at_the_end_of_a_window() {
        let (clock, origin) = at_unix(3_000);
        clock.advance(Duration::from_secs(10));
        clock.set_unix(Duration::from_secs(3_012));
        assert_eq!(now(&clock, &origin), 310 * SECOND, "not within a window");
        clock.advance(Duration::from_secs(5));
        assert_eq!(now(&clock, &origin), 317 * SECOND);
    }

    #[test]
    fn a_fast_counter_waits_for_the_wall_at_the_end_of_a_window() {
        let (clock, origin) = at_unix(3_000);
        clock.advance(Duration::from_millis(15_000));
        clock.set_unix(Duration::from_millis(3_014_900));
        assert_eq!(now(&clock, &origin), 315 * SECOND - 1);
        clock.advance(Duration::from_millis(99));
        assert_eq!(now(&clock, &origin), 315 * SECOND - 1);
        clock.advance(Duration::from_millis(1));
        assert_eq!(now(&clock, &origin), 315 * SECOND);
        clock.advance(Duration::from_millis(1));
        assert_eq!(now(&clock, &origin), 315 * SECOND + 1_000_000);
    }

    #[test]
    fn a_wall_set_back_is_not_followed() {
        let (clock, origin) = at_unix(3_000);
        clock.advance(Duration::from_secs(16));
        for unix in [0, 1_000, 3_000] {
            clock.set_unix(Duration::from_secs(unix));
            clock.advance(Duration::from_secs(15));
            assert_eq!(now(&clock, &origin), 300 * SECOND + clock.coarse());
        }
    }

    #[test]
    fn a_wall_set_forward_is_followed_at_the_end_of_a_window() {
        let (clock, origin) = at_unix(3_000);
        clock.set_unix(Duration::from_secs(6_600));
        assert_eq!(now(&clock, &origin), 300 * SECOND);
        clock.advance(Duration::from_secs(15));
        assert_eq!(now(&clock, &origin), 300 * SECOND + 3_615 * SECOND);
    }

    #[test]
    fn a_counter_that_steps_back_takes_the_time_with_it_and_nothing_breaks() {
        let (clock, origin) = at_unix(3_000);
        clock.advance(Duration::from_secs(100));
        assert_eq!(now(&clock, &origin), 400 * SECOND);
        clock.set(Duration::from_secs(3));
        assert_eq!(now(&clock, &origin), 303 * SECOND);
    }
}
