//! Where a limiter's own nanoseconds start, and how they keep up with the wall clock.
//!
//! A limiter's time is the clock's reading plus an offset, chosen when the limiter is built so that
//! its time then stands one longest period above 0: the word 0 is idle at every moment from there. For
//! most limits the offset never changes. Windows that tile the Unix epoch need one that makes whole
//! periods of the limiter whole periods of the wall clock, and a counter runs tens of parts per million
//! off it: 2 s a day. So **at the end of each window** the wall is read again, and the offset follows
//! what it has gained or lost against the counter since, less whole longest periods, which change
//! no window's edge:
//!
//! * a wall that gained takes the limiter's time forward: windows end as much earlier;
//! * a wall that lost takes it back. Words know what that means: whoever stepped into the next window
//!   stays there, and nobody is admitted more for it.
//!
//! No step is longer than the longest period, wherever the wall was set to.

use super::clock::Clock;
use super::timebase::saturating_ns;
use crate::sync::{AtomicU64, Ordering};

/// Readings end here, by the promise of [`Clock`]; a sum beyond it has overflowed, in one direction or the other.
const READINGS_END: u64 = 1 << 63;
/// Readings of counter and wall further apart than this were held up in between, and are taken again.
const PAIR_NS_MAX: u64 = 20_000;
/// How often.
const PAIRS: usize = 8;

/// Turns readings of a clock into the limiter's nanoseconds.
#[derive(Debug)]
pub struct Origin {
    /// Added to a reading; signed, in two's complement.
    offset_ns: AtomicU64,
    /// Below this, reading plus offset is the time: no overflow, and no window's end.
    plain_until_ns: AtomicU64,
    wall: Option<Wall>,
}

#[derive(Debug)]
struct Wall {
    period_ns: u64,
    longest_ns: u64,
    /// Unix time minus the counter's reading when they were last compared, wrapping.
    ahead_ns: AtomicU64,
}

impl Origin {
    /// A time that stands at `start_ns` now.
    pub fn fixed<C: Clock>(start_ns: u64, clock: &C) -> Self {
        Self {
            offset_ns: AtomicU64::new(start_ns.wrapping_sub(clock.precise())),
            plain_until_ns: AtomicU64::new(READINGS_END),
            wall: None,
        }
    }

    /// A time whose whole periods, of `period_ns` and of its multiple `longest_ns`, are whole
    /// periods of the wall clock; it stands one to two `longest_ns` above 0 now.
    pub fn on_wall<C: Clock>(period_ns: u64, longest_ns: u64, clock: &C) -> Self {
        Self::on_wall_from(period_ns, longest_ns, clock, |unix_ns| longest_ns + unix_ns % longest_ns)
    }

    /// The same, which stands now where `start_ns` puts a wall that reads so many nanoseconds: at as many more than whole
    /// `longest_ns`.
    pub fn on_wall_from<C: Clock>(
        period_ns: u64,
        longest_ns: u64,
        clock: &C,
        start_ns: impl FnOnce(u64) -> u64,
    ) -> Self {
        let (reading, unix_ns) = pair(clock);
        let now_ns = start_ns(unix_ns);
        Self {
            offset_ns: AtomicU64::new(now_ns.wrapping_sub(reading)),
            plain_until_ns: AtomicU64::new(end_of_window(now_ns, period_ns)),
            wall: Some(Wall {
                period_ns,
                longest_ns,
                ahead_ns: AtomicU64::new(unix_ns.wrapping_sub(reading)),
            }),
        }
    }

    /// The limiter's time for a reading of `clock`, in nanoseconds. One from before the limiter was built reads
    /// at worst as 0.
    #[inline]
    pub fn ns<C: Clock>(&self, reading: u64, clock: &C) -> u64 {
        // ORDERING: Relaxed, here and below. Offset, wall and window's end are words that may be seen
        // apart: an old end only leads to another comparison, an old offset is off by what the
        // comparison is about to correct.
        let ns = reading.wrapping_add(self.offset_ns.load(Ordering::Relaxed));
        if ns < self.plain_until_ns.load(Ordering::Relaxed) { ns } else { self.exact_ns(reading, clock) }
    }

    /// The limiter's time now, and wall time, both in nanoseconds.
    pub fn beside_wall<C: Clock>(&self, clock: &C) -> (u64, u64) {
        let (reading, unix_ns) = pair(clock);
        (self.ns(reading, clock), unix_ns)
    }

    /// Where time goes on that stood at `then_ns` when the wall did at `wall_then_ns`, and found it at `wall_ns` again: as much
    /// later as the wall is, and no earlier if the wall was set back.
    ///
    /// Time whose whole `longest_ns` are whole periods of the wall clock stays so. It may not have followed the wall since the
    /// end of a window: that is made good by the shorter way. A wall that was set back takes it back, as it does while a
    /// limiter runs: by less than `longest_ns`.
    pub fn resumed_ns(then_ns: u64, wall_then_ns: u64, wall_ns: u64, longest_ns: Option<u64>) -> u64 {
        let later_ns = wall_ns.saturating_sub(wall_then_ns);
        let Some(longest_ns) = longest_ns else {
            return then_ns.saturating_add(later_ns);
        };
        let longest = i128::from(longest_ns);
        let ahead = (i128::from(then_ns) - i128::from(wall_then_ns)).rem_euclid(longest);
        let ahead = if ahead > longest / 2 { ahead - longest } else { ahead };
        let back = wall_then_ns.saturating_sub(wall_ns) % longest_ns;
        let ns = i128::from(then_ns) - ahead + i128::from(later_ns) - i128::from(back);
        // Less than two periods below 0, if at all: another place of the same kind.
        let ns = if ns < 0 { ns.rem_euclid(longest) } else { ns };
        // Beyond 64 bits no time is left anyway.
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Whether it may take time back, as the wall does.
    #[inline]
    pub fn follows_wall(&self) -> bool {
        self.wall.is_some()
    }

    /// At the edges: of 64 bits, or of a window.
    #[cold]
    #[inline(never)]
    fn exact_ns<C: Clock>(&self, reading: u64, clock: &C) -> u64 {
        let ns = self.shifted(reading);
        match &self.wall {
            Some(wall) if ns >= self.plain_until_ns.load(Ordering::Relaxed) => self.compare(wall, clock),
            _ => ns,
        }
    }

    fn shifted(&self, reading: u64) -> u64 {
        reading.saturating_add_signed(self.offset_ns.load(Ordering::Relaxed).cast_signed())
    }

    /// Follows the wall at the end of a window.
    fn compare<C: Clock>(&self, wall: &Wall, clock: &C) -> u64 {
        let (reading, unix_ns) = pair(clock);
        let ahead_ns = unix_ns.wrapping_sub(reading);
        let last_ns = wall.ahead_ns.load(Ordering::Relaxed);
        // Of several threads one follows each change.
        let is_ours = wall.ahead_ns.compare_exchange(last_ns, ahead_ns, Ordering::Relaxed, Ordering::Relaxed);
        if is_ours.is_ok() {
            let gained_ns = ahead_ns.wrapping_sub(last_ns).cast_signed();
            let step_ns = gained_ns.unsigned_abs() % wall.longest_ns;
            let step_ns = if gained_ns.is_negative() { step_ns.wrapping_neg() } else { step_ns };
            self.offset_ns.fetch_add(step_ns, Ordering::Relaxed);
        }
        let now_ns = self.shifted(reading);
        self.plain_until_ns.store(end_of_window(now_ns, wall.period_ns), Ordering::Relaxed);
        now_ns
    }
}

/// The end of the window of `period_ns` that `now_ns` is in.
fn end_of_window(now_ns: u64, period_ns: u64) -> u64 {
    (now_ns / period_ns).saturating_add(1).saturating_mul(period_ns)
}

/// Counter and wall, read as nearly at once as the machine allows.
fn pair<C: Clock>(clock: &C) -> (u64, u64) {
    let mut best = (0, 0);
    let mut best_ns = u64::MAX;
    for _ in 0..PAIRS {
        let before = clock.precise();
        let unix_ns = saturating_ns(clock.unix());
        let apart_ns = clock.precise().saturating_sub(before);
        if apart_ns < best_ns {
            (best, best_ns) = ((before + apart_ns / 2, unix_ns), apart_ns);
        }
        if best_ns <= PAIR_NS_MAX {
            break;
        }
    }
    best
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
    fn time_and_wall_are_read_together() {
        let (clock, origin) = at_unix(3_000);
        clock.advance(Duration::from_secs(7));
        assert_eq!(origin.beside_wall(&clock), (307 * SECOND, 3_007 * SECOND));
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
    fn a_fast_counter_ends_a_window_when_the_wall_does() {
        let (clock, origin) = at_unix(3_000);
        clock.advance(Duration::from_millis(15_000));
        clock.set_unix(Duration::from_millis(3_014_900));
        assert_eq!(now(&clock, &origin), 314_900_000_000);
        clock.advance(Duration::from_millis(99));
        assert_eq!(now(&clock, &origin), 314_999_000_000);
        clock.advance(Duration::from_millis(1));
        assert_eq!(now(&clock, &origin), 315 * SECOND);
    }

    #[test]
    fn a_fast_counter_is_followed_after_a_long_silence_too() {
        let (clock, origin) = at_unix(3_000);
        clock.advance(Duration::from_secs(100_000));
        clock.set_unix(Duration::from_millis(102_997_400));
        assert_eq!(now(&clock, &origin) % (300 * SECOND), 97_400_000_000);
    }

    #[test]
    fn a_wall_that_is_set_right_by_decades_moves_time_by_less_than_a_period() {
        let (clock, origin) = at_unix(7);
        clock.advance(Duration::from_secs(15));
        clock.set_unix(Duration::from_secs(1_796_000_000));
        let ns = now(&clock, &origin);
        assert_eq!(ns % (300 * SECOND), 1_796_000_000 % 300 * SECOND);
        assert!(ns < 700 * SECOND);
    }

    #[test]
    fn any_clock_at_build_is_the_start() {
        for reading in [0, 5, 1_796_000_000, 9_000_000_000] {
            let clock = Manual::new();
            clock.set(Duration::from_secs(reading));
            let fixed = Origin::fixed(300 * SECOND, &clock);
            assert_eq!(now(&clock, &fixed), 300 * SECOND);
            let on_wall = Origin::on_wall(15 * SECOND, 300 * SECOND, &clock);
            assert!((300 * SECOND..600 * SECOND).contains(&now(&clock, &on_wall)));
            clock.set(Duration::MAX); // stops where readings end
            assert!(now(&clock, &fixed) >= 300 * SECOND);
        }
    }

    #[test]
    fn a_wall_set_back_takes_time_back_by_less_than_a_period() {
        let (clock, origin) = at_unix(3_000);
        for (unix, step) in [(2_915, 100), (2_330, 0)] {
            let before = now(&clock, &origin);
            clock.advance(Duration::from_secs(15));
            clock.set_unix(Duration::from_secs(unix));
            assert_eq!(now(&clock, &origin), before + 15 * SECOND - step * SECOND);
            clock.set_unix(Duration::from_secs(2_930));
        }
    }

    #[test]
    fn a_wall_set_forward_is_followed_at_the_end_of_a_window() {
        let (clock, origin) = at_unix(3_000);
        clock.set_unix(Duration::from_secs(6_610));
        assert_eq!(now(&clock, &origin), 300 * SECOND);
        clock.advance(Duration::from_secs(15));
        assert_eq!(now(&clock, &origin), 325 * SECOND, "3 610 s, less whole periods");
    }

    #[test]
    fn a_reading_from_before_the_build_is_no_end_of_a_window() {
        let clock = Manual::new();
        clock.set(Duration::from_secs(1_000));
        clock.set_unix(Duration::from_secs(3_000));
        let origin = Origin::on_wall(15 * SECOND, 300 * SECOND, &clock);
        clock.set(Duration::ZERO);
        clock.set_unix(Duration::from_secs(2_005));
        assert_eq!(now(&clock, &origin), 0);
        clock.set(Duration::from_secs(1_000));
        assert_eq!(now(&clock, &origin), 300 * SECOND, "the wall was not followed");
    }

    #[test]
    fn time_goes_on_as_much_later_as_the_wall_is() {
        // Then 350 s, at 1 000 s of the wall.
        let resumed =
            |wall: u64| Origin::resumed_ns(350 * SECOND, 1_000 * SECOND, wall * SECOND, None) / SECOND;
        assert_eq!([1_000, 1_007, 5_000].map(resumed), [350, 357, 4_350]);
        assert_eq!([0, 999].map(resumed), [350, 350], "set back: nothing has passed");
        assert_eq!(Origin::resumed_ns(u64::MAX - 5, 0, 9, None), u64::MAX);
    }

    #[test]
    fn time_on_the_wall_goes_on_in_step_with_it() {
        // 1 000 s is 100 s into a period of 300.
        let from = |then: u64, wall: u64| {
            Origin::resumed_ns(then * SECOND, 1_000 * SECOND, wall * SECOND, Some(300 * SECOND)) / SECOND
        };
        assert_eq!([1_000, 1_007, 5_000].map(|wall| from(400, wall)), [400, 407, 4_400]);
        // It was 3 s ahead of the wall, or behind it, and has not compared since.
        assert_eq!([from(403, 1_007), from(397, 1_007), from(397, 1_000)], [407, 407, 400]);
        assert_eq!(from(550, 1_000), 400, "half a period apart: it is taken back");
        // Set back: by as much, less whole periods.
        assert_eq!([999, 950, 701, 700, 699, 0].map(|wall| from(400, wall)), [399, 350, 101, 400, 399, 300]);
        assert_eq!([from(100, 999), from(100, 701), from(50, 900)], [99, 101, 0]);
        // Whatever a file says.
        let longest = Some(300 * SECOND);
        for (then, wall_then, wall) in
            [(0, 1, 0), (0, u64::MAX, 0), (u64::MAX, 0, u64::MAX), (u64::MAX, u64::MAX, 1)]
        {
            let ns = Origin::resumed_ns(then, wall_then, wall, longest);
            assert!(
                ns == u64::MAX || ns % (300 * SECOND) == wall % (300 * SECOND),
                "{then} {wall_then} {wall}: {ns}"
            );
        }
    }

    #[test]
    fn only_windows_on_the_wall_follow_it() {
        let (clock, on_wall) = at_unix(3_000);
        assert!(on_wall.follows_wall());
        assert!(!Origin::fixed(300 * SECOND, &clock).follows_wall());
    }

    /// A clock on which each reading takes a while, the first ones long.
    struct Slow {
        held_up: AtomicU64,
        ns: AtomicU64,
    }

    impl Slow {
        const AHEAD_NS: u64 = 1_000_000_000_000;

        /// The time in the middle of a reading.
        fn read(&self) -> u64 {
            self.ns.fetch_add(3_000, Ordering::Relaxed) + 1_500
        }
    }

    impl Clock for Slow {
        fn coarse(&self) -> u64 {
            self.read()
        }
        fn precise(&self) -> u64 {
            self.read()
        }
        fn unix(&self) -> Duration {
            let unix_ns = Self::AHEAD_NS + self.read();
            if self.held_up.load(Ordering::Relaxed) > 0 {
                self.held_up.fetch_sub(1, Ordering::Relaxed);
                self.ns.fetch_add(SECOND, Ordering::Relaxed);
            }
            Duration::from_nanos(unix_ns)
        }
    }

    #[test]
    fn counter_and_wall_are_compared_in_the_middle_of_an_undisturbed_reading() {
        for held_up in [0, 1, 7] {
            let clock = Slow { held_up: AtomicU64::new(held_up), ns: AtomicU64::new(0) };
            let (reading, unix_ns) = pair(&clock);
            assert_eq!(unix_ns - reading, Slow::AHEAD_NS, "{held_up} held up before");
        }
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
