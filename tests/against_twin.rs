//! Random limits under random sequences of requests: every field of every answer is the naive twin's.
//!
//! Where the limiter's own time is exact (windows, and buckets whose token takes a whole number of nanoseconds)
//! equality is exact. For any other rate a token may come one nanosecond early or late, which never adds up: a
//! year at any polling pattern loses or gains less than one part in 10^9.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may stop at the first surprise, and its keys are small"
)]

mod common;

use std::time::Duration;

use common::steps::{KEYS, any_start_ns, any_steps, config, play};
use common::twin::{Bucket, Start, Windows};
use common::{SEED, assert_same, assert_same_within, manual, manual_at_unix, nanos};
use proptest::prelude::*;
use tidegate::{Alignment, ExactLimiter, Limit, Manual, Rate, Window};

const SECOND_NS: u64 = 1_000_000_000;

/// Intervals from a nanosecond to some hours.
fn any_interval_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        1..100_u64,
        1..100_000_000_u64,
        1..10_000 * SECOND_NS,
        prop::sample::select(vec![1_000, 1_000_000, SECOND_NS, 60 * SECOND_NS, 3_600 * SECOND_NS]),
    ]
}

/// Burst limit, sustain limit (0 for one window alone), burst period, and sustain's multiple of it.
#[derive(Clone, Copy, Debug)]
struct Shape {
    burst: u64,
    sustain: u64,
    period_ns: u64,
    multiple: u64,
}

impl Shape {
    fn limit(self) -> Limit {
        let burst = Window::new(self.burst, Duration::from_nanos(self.period_ns));
        if self.sustain == 0 {
            return Limit::window(burst);
        }
        let period = Duration::from_nanos(self.longest_ns());
        Limit::burst_sustain(burst, Window::new(self.sustain, period))
    }

    fn twin(self, start: Start, count_refused: bool) -> Windows {
        let burst = (u128::from(self.burst), u128::from(self.period_ns));
        if self.sustain == 0 {
            return Windows::new(&[burst], start, count_refused);
        }
        let sustain = (u128::from(self.sustain), u128::from(self.longest_ns()));
        Windows::new(&[burst, sustain], start, count_refused)
    }

    fn longest_ns(self) -> u64 {
        if self.sustain == 0 { self.period_ns } else { self.period_ns * self.multiple }
    }
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let period_ns = prop_oneof![
        prop::sample::select(vec![15, 1, 10, 60, 3_600]).prop_map(|seconds| seconds * SECOND_NS),
        1_000_000..100 * SECOND_NS,
    ];
    let more = prop_oneof![Just(None), (0..40_u64).prop_map(Some)];
    (1..20_u64, more, period_ns, 2..21_u64).prop_map(|(burst, more, period_ns, multiple)| Shape {
        burst,
        sustain: more.map_or(0, |more| burst + more),
        period_ns,
        multiple,
    })
}

/// What `key` is shifted by, as a fresh limiter with the same seed shows: where its first long window ends.
fn shift_ns(shape: Shape, key: u64) -> u128 {
    let (limiter, _clock) = manual::<u64>(shape.limit().align(Alignment::PerKey));
    let pass = limiter.check(&key).unwrap();
    let end_ns = pass.windows().last().unwrap().reset_after.as_nanos();
    let longest_ns = u128::from(shape.longest_ns());
    assert!(end_ns > 0 && end_ns <= longest_ns, "{shape:?}: a window ends in {end_ns} ns");
    longest_ns - end_ns
}

/// The grid on which windows that open at a request open, as a limiter shows: a window opened a nanosecond before
/// a whole period is short by one step, less that nanosecond.
fn grid(shape: Shape) -> Option<u32> {
    let (limiter, clock) = manual::<u64>(shape.limit().align(Alignment::FirstRequest));
    clock.set(Duration::from_nanos(shape.period_ns - 1));
    let pass = limiter.check(&0).unwrap();
    let left_ns = pass.windows().last().unwrap().reset_after.as_nanos();
    let step_ns = u128::from(shape.longest_ns()) + 1 - left_ns;
    if step_ns == 0 {
        return None;
    }
    let grid = (0..64).find(|&grid| u128::from(shape.period_ns >> grid) == step_ns);
    let grid = grid.unwrap_or_else(|| panic!("{shape:?}: {step_ns} ns is no grid of the period"));
    assert!(grid >= 6, "{shape:?}: a step of {step_ns} ns is coarser than a 64th of the burst period");
    Some(grid)
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn a_bucket_of_whole_nanoseconds_is_the_twin(
        interval_ns in any_interval_ns(),
        tokens in 1..1_000_u64,
        burst in prop_oneof![1..20_u64, 1..1_000_u64],
        start_ns in any_start_ns(),
        steps in any_steps(25),
    ) {
        let period_ns = interval_ns * tokens;
        let rate = Rate::new(tokens, Duration::from_nanos(period_ns));
        let (limiter, clock) = manual::<u64>(Limit::bucket(rate, burst));
        let mut twin = Bucket::new(u128::from(tokens), u128::from(period_ns), u128::from(burst));
        play(&clock, &steps, start_ns, interval_ns, |now_ns, key, cost| {
            let expected = twin.check(key, now_ns, u128::from(cost));
            assert_same(&limiter.check_n(&key, cost), &expected, &(now_ns, key, cost));
            true
        });
    }

    /// The shadow is charged with what the limiter admits: so a decision is compared by itself, and one that
    /// falls on the other side of a nanosecond does not part the two for good.
    #[test]
    fn a_bucket_of_any_rate_is_within_a_nanosecond(
        tokens in prop_oneof![1..1_000_u64, 1..10_000_000_000_u64],
        period_ns in any_interval_ns(),
        burst in prop_oneof![1..20_u64, 1..1_000_u64],
        start_ns in any_start_ns(),
        steps in any_steps(25),
    ) {
        let tokens = tokens.min(10 * period_ns);
        let rate = Rate::new(tokens, Duration::from_nanos(period_ns));
        let (limiter, clock) = manual::<u64>(Limit::bucket(rate, burst));
        let mut shadow = Bucket::new(u128::from(tokens), u128::from(period_ns), u128::from(burst));
        let interval_ns = (period_ns / tokens).max(1);
        play(&clock, &steps, start_ns, interval_ns, |now_ns, key, cost| {
            if cost > burst {
                assert!(limiter.check_n(&key, cost).is_err());
                return true;
            }
            let cost_wide = u128::from(cost);
            match limiter.check_n(&key, cost) {
                Ok(_) => {
                    assert!(shadow.fits(key, now_ns + 1, cost_wide), "early: {cost} at {now_ns}");
                    shadow.charge(key, now_ns, cost_wide);
                }
                Err(denied) => {
                    let fits = now_ns > 0 && shadow.fits(key, now_ns - 1, cost_wide);
                    assert!(!fits, "late: {cost} at {now_ns}: {denied:?}");
                    let wait_ns = denied.retry_after().unwrap().as_nanos();
                    let expected = shadow.clone().check(key, now_ns, cost_wide).retry_ns;
                    assert!(wait_ns.abs_diff(expected.unwrap_or(0)) <= 1, "{wait_ns}, {expected:?}");
                }
            }
            true
        });
    }

    #[test]
    fn windows_on_the_clock_are_the_twin(
        shape in any_shape(),
        count_refused in any::<bool>(),
        unix_ns in prop_oneof![Just(0), 1..1_800_000_000 * SECOND_NS],
        start_ns in any_start_ns(),
        steps in any_steps(25),
    ) {
        let limit = shape.limit().align(Alignment::Clock).count_refused(count_refused);
        let (limiter, clock) = manual_at_unix::<u64>(limit, Duration::from_nanos(unix_ns));
        let mut twin = shape.twin(Start::Tiled { shift_ns: u128::from(unix_ns) }, count_refused);
        play(&clock, &steps, start_ns, shape.period_ns, |now_ns, key, cost| {
            let expected = twin.check(key, now_ns, u128::from(cost));
            assert_same(&limiter.check_n(&key, cost), &expected, &(now_ns, key, cost));
            true
        });
    }

    #[test]
    fn windows_shifted_by_key_are_the_twin(
        shape in any_shape(),
        count_refused in any::<bool>(),
        start_ns in any_start_ns(),
        steps in any_steps(25),
    ) {
        let limit = shape.limit().align(Alignment::PerKey).count_refused(count_refused);
        let (limiter, clock) = manual::<u64>(limit);
        let mut twin = shape.twin(Start::Tiled { shift_ns: 0 }, count_refused);
        let shifts_ns: Vec<u128> = (0..KEYS).map(|key| shift_ns(shape, key)).collect();
        (0..KEYS).for_each(|key| twin.shift_key(key, shifts_ns[key as usize]));
        play(&clock, &steps, start_ns, shape.period_ns, |now_ns, key, cost| {
            // A key's windows end between two nanoseconds; the one before the end may count as the end.
            let into_ns = (now_ns + shifts_ns[key as usize]) % u128::from(shape.period_ns);
            if into_ns + 1 == u128::from(shape.period_ns) {
                return false;
            }
            let expected = twin.check(key, now_ns, u128::from(cost));
            assert_same_within(1, &limiter.check_n(&key, cost), &expected, &(now_ns, key, cost));
            true
        });
    }

    #[test]
    fn windows_that_open_at_a_request_are_the_twin(
        shape in any_shape(),
        count_refused in any::<bool>(),
        start_ns in any_start_ns(),
        steps in any_steps(25),
    ) {
        let limit = shape.limit().align(Alignment::FirstRequest).count_refused(count_refused);
        let (limiter, clock) = manual::<u64>(limit);
        let grid = grid(shape);
        let mut twin = shape.twin(Start::FirstRequest { grid }, count_refused);
        play(&clock, &steps, start_ns, shape.period_ns, |now_ns, key, cost| {
            // Less than a quarter of a nanosecond before a line of the grid counts as on it.
            let steps = 1_u128 << grid.unwrap_or(0);
            let period_ns = u128::from(shape.period_ns);
            if (period_ns - now_ns * steps % period_ns) * 4 < steps {
                return false;
            }
            let expected = twin.check(key, now_ns, u128::from(cost));
            assert_same_within(1, &limiter.check_n(&key, cost), &expected, &(now_ns, key, cost));
            true
        });
    }
}

/// On a 64th of the burst period no window is short, however fine the grid: the twin without a grid is met exactly.
#[test]
fn on_the_coarsest_grid_a_lazy_window_is_whole() {
    let mut runner = proptest::test_runner::TestRunner::new(config(500));
    let steps = prop::collection::vec((0..200_u64, 0..KEYS, 1..5_u64), 1..100);
    let outcome = runner.run(&(1..30_u64, 0..30_u64, steps), |(burst, more, steps)| {
        let period_ns = 15 * SECOND_NS;
        let shape = Shape { burst: burst + 5, sustain: burst + 5 + more, period_ns, multiple: 20 };
        let (limiter, clock) = manual::<u64>(shape.limit().align(Alignment::FirstRequest));
        let mut twin = shape.twin(Start::FirstRequest { grid: None }, true);
        let mut now_ns = 0;
        for (grid_steps, key, cost) in steps {
            now_ns += grid_steps * period_ns / 64;
            clock.set(Duration::from_nanos(now_ns));
            let expected = twin.check(key, u128::from(now_ns), u128::from(cost));
            assert_same(&limiter.check_n(&key, cost), &expected, &(now_ns, key, cost));
        }
        Ok(())
    });
    outcome.unwrap();
}

/// Phases come from the key and the seed: the same again, and hardly ever two alike.
#[test]
fn a_thousand_keys_do_not_reset_in_one_instant() {
    let shape = Shape { burst: 3, sustain: 0, period_ns: 60 * SECOND_NS, multiple: 1 };
    let shifts = |seed: u64| -> Vec<Duration> {
        let builder = ExactLimiter::<u64>::builder(shape.limit()).seed(seed).clock(Manual::new());
        let limiter = builder.build().unwrap();
        (0..1_000).map(|key| limiter.check(&key).unwrap().reset_after()).collect()
    };
    let (once, again, other) = (shifts(SEED), shifts(SEED), shifts(SEED + 1));
    assert_eq!(once, again);
    assert_ne!(once, other);
    let mut in_each_minute_tenth = [0; 10];
    for shift in once {
        let tenth = (shift.as_nanos() - 1) * 10 / u128::from(shape.period_ns);
        in_each_minute_tenth[usize::try_from(tenth).unwrap()] += 1;
    }
    assert!(in_each_minute_tenth.iter().all(|&keys| (50..170).contains(&keys)), "{in_each_minute_tenth:?}");
}

/// Takes all there is, now.
fn take_all(limiter: &ExactLimiter<u64, Manual>) -> u128 {
    let left = limiter.check_n(&0, 0).unwrap().remaining();
    if left > 0 {
        assert!(limiter.check_n(&0, left).is_ok());
    }
    u128::from(left)
}

/// A year at `tokens` per `period_ns`, emptied at `polls` unevenly spaced moments, the last one the year's end.
/// Around each tenth moment it is also emptied at every nanosecond for a while.
fn year(tokens: u64, period_ns: u64, polls: u64) {
    const YEAR_NS: u64 = 31_557_600 * SECOND_NS;
    let due = |ns: u64| u128::from(tokens) * u128::from(ns) / u128::from(period_ns);
    let between_ns = YEAR_NS / polls;
    let burst = u64::try_from(due(2 * between_ns) + 2).unwrap();
    let rate = Rate::new(tokens, Duration::from_nanos(period_ns));
    let (limiter, clock) = manual::<u64>(Limit::bucket(rate, burst));
    let mut admitted = take_all(&limiter);
    let mut noise = SEED;
    for poll in 1..=polls {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let early_ns = if poll == polls { 0 } else { (noise >> 32) % (between_ns / 2) };
        clock.set(nanos(u128::from(between_ns * poll - early_ns)));
        admitted += take_all(&limiter);
        for _ in 0..if poll % 10 == 1 && poll < polls { 50 } else { 0 } {
            clock.advance(Duration::from_nanos(1));
            admitted += take_all(&limiter);
        }
    }
    let elapsed_ns = u64::try_from(clock.elapsed().as_nanos()).unwrap();
    let expected = u128::from(burst) + due(elapsed_ns);
    let slack = 1 + due(elapsed_ns) / 1_000_000_000;
    let context = format!("{tokens} per {period_ns} ns, {polls} polls: {admitted}, due {expected}");
    assert!(admitted <= expected + due(1) + 1, "too many: {context}");
    assert!(admitted.abs_diff(expected) <= slack + due(1), "{context}");
}

#[test]
fn a_rate_is_held_to_a_billionth_over_a_year() {
    let year_ns = 31_557_600 * SECOND_NS;
    for (tokens, period_ns) in [
        (1, year_ns),
        (7, year_ns),
        (1, 86_400 * SECOND_NS),
        (3, 3_600 * SECOND_NS),
        (7, SECOND_NS),
        (999_983, SECOND_NS),
        (600_000_000, SECOND_NS),
        (1_000_000_007, SECOND_NS),
        (10_000_000_000, SECOND_NS),
    ] {
        for polls in [1, 12, 1_000, 30_000] {
            year(tokens, period_ns, polls);
        }
    }
}
