//! A limit that cannot be kept does not build, and the error says which field, which value and what is allowed.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::time::Duration;

use common::secs;
use proptest::prelude::*;
use tidegate::{Alignment, ConfigError, ExactLimiter, Limit, Limiter, Manual, Rate, Window};

fn window(limit: u64, seconds: u64) -> Window {
    Window::new(limit, secs(seconds))
}

/// The message with which `limit` fails to build; in lower case, so that only words count.
fn message(limit: Limit) -> String {
    let builder = ExactLimiter::<u64>::builder(limit).clock(Manual::new());
    let error = builder.build().err().unwrap_or_else(|| panic!("{limit:?} must not build"));
    error.to_string().to_lowercase()
}

/// Every list has one word at least in the message.
#[track_caller]
fn assert_says(message: &str, field: &[&str], value: &[&str], allowed: &[&str]) {
    for (what, words) in [("field", field), ("value", value), ("allowed range", allowed)] {
        let said = words.iter().any(|word| message.contains(word));
        assert!(said, "{message:?} names no {what} (one of {words:?})");
    }
}

/// How a message may tell the smallest allowed value.
const AT_LEAST_ONE: [&str; 7] = ["at least 1", "1 to", "1..", "1 or more", "1 and", "≥ 1", ">= 1"];
/// How a message may tell a largest allowed value.
const AT_MOST: [&str; 6] = ["at most", "up to", "between", " to ", "..", "<="];

#[test]
fn a_rate_of_nothing() {
    let message = message(Limit::bucket(Rate::per_second(0), 10));
    assert_says(&message, &["rate"], &["0"], &AT_LEAST_ONE);
}

#[test]
fn a_rate_per_no_time() {
    let message = message(Limit::bucket(Rate::new(10, Duration::ZERO), 10));
    assert_says(&message, &["period"], &["0"], &["at least 1", "1 ns", "1ns", "above 0"]);
}

#[test]
fn a_burst_of_nothing() {
    let message = message(Limit::bucket(Rate::per_second(10), 0));
    assert_says(&message, &["burst"], &["0"], &AT_LEAST_ONE);
}

#[test]
fn a_window_of_nothing() {
    let nothing = message(Limit::window(window(0, 10)));
    assert_says(&nothing, &["limit"], &["0"], &AT_LEAST_ONE);
    let sliding = message(Limit::sliding_window(window(0, 10)));
    assert_says(&sliding, &["limit"], &["0"], &AT_LEAST_ONE);
    let burst = message(Limit::burst_sustain(window(0, 10), window(10, 100)));
    assert_says(&burst, &["burst"], &["0"], &AT_LEAST_ONE);
    let sustain = message(Limit::burst_sustain(window(10, 10), window(0, 100)));
    assert_says(&sustain, &["sustain"], &["0"], &["at least", "1 to", "..", "burst"]);
}

#[test]
fn a_window_of_no_time() {
    let allowed = ["at least 1", "1 ns", "1ns", "above 0", "multiple"];
    let one = message(Limit::window(window(10, 0)));
    assert_says(&one, &["period"], &["0"], &allowed);
    let sliding = message(Limit::sliding_window(window(10, 0)));
    assert_says(&sliding, &["period"], &["0"], &allowed);
    let burst = message(Limit::burst_sustain(window(10, 0), window(100, 100)));
    assert_says(&burst, &["burst"], &["0"], &allowed);
    let sustain = message(Limit::burst_sustain(window(10, 10), window(100, 0)));
    assert_says(&sustain, &["sustain"], &["0"], &allowed);
}

#[test]
fn a_sustain_period_that_is_no_multiple_of_the_burst_period() {
    for seconds in [301, 14, 1, 16, 299] {
        let message = message(Limit::burst_sustain(window(30, 15), window(100, seconds)));
        assert_says(&message, &["sustain"], &[&seconds.to_string()], &["multiple"]);
        assert_says(&message, &["period"], &["15"], &["burst"]);
    }
}

#[test]
fn a_sustain_limit_below_the_burst_limit() {
    let message = message(Limit::burst_sustain(window(30, 15), window(29, 300)));
    assert_says(&message, &["sustain"], &["29"], &["at least", "30", "below"]);
    assert_says(&message, &["limit"], &["30"], &["burst"]);
}

#[test]
fn a_capacity_of_nothing() {
    let limit = Limit::bucket(Rate::per_second(1), 1);
    let built = ExactLimiter::<u64>::builder(limit).max_keys(0).clock(Manual::new()).build();
    let message = built.err().unwrap().to_string().to_lowercase();
    assert_says(&message, &["max_keys", "max keys"], &["0"], &AT_LEAST_ONE);
}

#[test]
fn a_capacity_beyond_any_memory() {
    let limit = Limit::bucket(Rate::per_second(1), 1);
    let built = ExactLimiter::<u64>::builder(limit).max_keys(usize::MAX).clock(Manual::new()).build();
    let message = built.err().unwrap().to_string().to_lowercase();
    assert_says(&message, &["max_keys", "max keys"], &[&usize::MAX.to_string()], &AT_MOST);
    assert!(message.contains("4294967294"), "{message}: places have numbers of 32 bits, and one is none");
}

/// Runs the test below in a process that may have 4 GB.
#[cfg(target_os = "linux")]
#[test]
fn more_keys_than_there_is_memory_for() {
    let script = "ulimit -v 4000000 && exec \"$0\" --exact without_memory_it_does_not_build --ignored";
    let test = std::env::current_exe().unwrap();
    let output = std::process::Command::new("sh").arg("-c").arg(script).arg(test).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "runs in a process of its own"]
fn without_memory_it_does_not_build() {
    let limit = Limit::bucket(Rate::per_second(1), 1);
    for keys in [1_000_000_000, 4_294_967_294] {
        let exact = ExactLimiter::<u64>::builder(limit).max_keys(keys).clock(Manual::new()).build().err();
        let slots = Limiter::builder(limit).max_keys(keys).clock(Manual::new()).build().err();
        for error in [exact, slots] {
            let error = error.expect("24 GB are more than 4");
            assert!(matches!(error, ConfigError::NoMemory { keys: told } if told == keys), "{error}");
            assert!(error.to_string().contains(&keys.to_string()), "{error}");
        }
    }
}

#[test]
fn beyond_the_horizon() {
    // A bucket that never fills; a window of a thousand years; a rate whose time is up within the hour.
    let slow = message(Limit::bucket(Rate::per_day(1), 1 << 62));
    assert_says(&slow, &["burst", "rate"], &["4611686018427387904"], &AT_MOST);
    let long = message(Limit::window(window(10, 1_000 * 31_557_600)));
    assert_says(&long, &["period"], &["31557600000"], &AT_MOST);
    let sliding = message(Limit::sliding_window(window(10, 1_000 * 31_557_600)));
    assert_says(&sliding, &["period"], &["31557600000"], &AT_MOST);
    let sustain = Limit::burst_sustain(window(10, 31_557_600), window(100, 1_000 * 31_557_600));
    assert_says(&message(sustain), &["sustain", "period"], &["31557600000"], &AT_MOST);
    let fast = message(Limit::bucket(Rate::new(u64::MAX, Duration::from_nanos(1)), 10));
    assert_says(&fast, &["rate"], &["18446744073709551615"], &AT_MOST);
}

#[test]
fn counts_that_leave_no_bits_for_time() {
    let large = 1 << 40;
    for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        let limit = Limit::burst_sustain(window(large, 15), window(large, 300));
        let both = message(limit.align(alignment));
        assert_says(&both, &["limit"], &[&large.to_string()], &AT_MOST);
        let limit = Limit::window(window(1 << 62, 15)).align(alignment);
        let one = message(limit);
        assert_says(&one, &["limit"], &[&(1_u64 << 62).to_string()], &AT_MOST);
        // Which of the two is too large is said: here the sustain limit alone.
        let limit = Limit::burst_sustain(window(1, 15), window(1 << 60, 300)).align(alignment);
        assert_says(&message(limit), &["sustain"], &[&(1_u64 << 60).to_string()], &AT_MOST);
    }
}

#[test]
fn a_sliding_window_whose_counts_leave_no_bits_for_time() {
    let message = message(Limit::sliding_window(window(1 << 21, 60)));
    assert_says(&message, &["window limit"], &["2097152"], &AT_MOST);
    assert!(message.contains("1048574"), "{message}: two counts of 20 bits beside seven years of minutes");
}

#[test]
fn a_sliding_window_from_the_first_request() {
    let limit = Limit::sliding_window(window(10, 60)).align(Alignment::FirstRequest);
    assert_says(&message(limit), &["alignment"], &["firstrequest"], &["clock or perkey"]);
    for alignment in [Alignment::Clock, Alignment::PerKey] {
        assert!(Limiter::builder(limit.align(alignment)).clock(Manual::new()).build().is_ok());
    }
}

/// Any number, with the small and the extreme ones often.
fn any_count() -> impl Strategy<Value = u64> {
    prop_oneof![0..200_u64, any::<u64>(), (0..64_u32).prop_map(|bit| 1 << bit), Just(u64::MAX)]
}

/// Any duration, from nothing to more than any clock can hold.
fn any_period() -> impl Strategy<Value = Duration> {
    prop_oneof![
        any_count().prop_map(Duration::from_nanos),
        any_count().prop_map(Duration::from_secs),
        (0..100_000_u64).prop_map(Duration::from_secs),
        Just(Duration::MAX),
    ]
}

fn any_limit() -> impl Strategy<Value = Limit> {
    let alignment =
        prop_oneof![Just(Alignment::Clock), Just(Alignment::PerKey), Just(Alignment::FirstRequest)];
    let windows = (any_count(), any_period(), any_count(), any_period(), 1..100_u32);
    (0..5_u8, windows, alignment).prop_map(|(kind, windows, alignment)| {
        let (limit, period, larger, longer, multiple) = windows;
        let burst = Window::new(limit, period);
        let limit = match kind {
            0 => Limit::bucket(Rate::new(limit, period), larger),
            1 => Limit::window(burst),
            4 => Limit::sliding_window(burst),
            2 => Limit::burst_sustain(burst, Window::new(larger, longer)),
            _ => {
                let longer = period.checked_mul(multiple).unwrap_or(longer);
                Limit::burst_sustain(burst, Window::new(larger, longer))
            }
        };
        limit.align(alignment)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever the numbers: a limit builds or is an error, never a panic; and if it builds, it is kept.
    #[test]
    fn a_limit_builds_and_holds_or_is_an_error(limit in any_limit(), seconds in 0..40_000_000_u64) {
        let clock = Manual::new();
        match ExactLimiter::<u64>::builder(limit).max_keys(4).clock(clock.clone()).build() {
            Ok(limiter) => {
                for now in [Duration::ZERO, secs(seconds), Duration::from_nanos(u64::MAX)] {
                    clock.set(now);
                    let left = limiter.check_n(&1, 0).map_or(0, |pass| pass.remaining());
                    if now.is_zero() {
                        prop_assert!(left > 0);
                    }
                    if left > 0 {
                        prop_assert!(limiter.check_n(&1, left).is_ok(), "remaining passes");
                    }
                    prop_assert!(limiter.check(&1).is_err(), "{left} was all");
                }
            }
            Err(error) => prop_assert!(error.to_string().len() > 10, "{error}"),
        }
    }
}
