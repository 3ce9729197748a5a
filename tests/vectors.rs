//! The published examples of the field, row by row, on the limiter and on the naive twin alike.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;
#[path = "common/services.rs"]
mod services;

use std::time::Duration;

use common::twin::{Start, Windows};
use common::{assert_same, manual, manual_at_unix, secs};
use services::SERVICES;
use tidegate::{Alignment, Denied, ExactLimiter, Limit, Manual, Pass, Rate, Reason, Window, WindowName};

const SECOND_NS: u128 = 1_000_000_000;

const ALIGNMENTS: [Alignment; 3] = [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest];

/// Burst 30 in 15 s, sustain 100 in 300 s: the worked example's limits.
fn example_limit() -> Limit {
    Limit::burst_sustain(Window::new(30, secs(15)), Window::new(100, secs(300)))
}

fn example_twin(start: Start, count_refused: bool) -> Windows {
    let windows = [(30, 15 * SECOND_NS), (100, 300 * SECOND_NS)];
    Windows::new(&windows, start, count_refused)
}

/// How many of a row's requests passed, and which windows refused the others.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    passed: u32,
    burst_only: u32,
    sustain_only: u32,
    both: u32,
}

impl Row {
    const fn new(passed: u32, burst_only: u32, sustain_only: u32, both: u32) -> Self {
        Self { passed, burst_only, sustain_only, both }
    }

    fn count(&mut self, refuses: &[bool]) {
        match refuses {
            [false, false] => self.passed += 1,
            [true, false] => self.burst_only += 1,
            [false, true] => self.sustain_only += 1,
            [true, true] => self.both += 1,
            _ => panic!("two windows each refuse or do not: {refuses:?}"),
        }
    }
}

fn refuses(answer: &Result<Pass, Denied>) -> Vec<bool> {
    let windows = match answer {
        Ok(pass) => pass.windows(),
        Err(denied) => denied.windows(),
    };
    windows.iter().map(|window| window.refuses).collect()
}

/// The worked example's requests: when each row starts, in seconds, and how many come in its 15 s.
const EXAMPLE: [(u64, u64); 6] = [(0, 35), (15, 28), (30, 21), (45, 36), (60, 24), (285, 4)];

/// Runs the worked example, its requests spread evenly over each row, on the limiter and on the twin.
fn run_example(limiter: &ExactLimiter<u64, Manual>, clock: &Manual, mut twin: Windows) -> Vec<Row> {
    let mut rows = Vec::new();
    for (start_s, requests) in EXAMPLE {
        let mut row = Row::default();
        for index in 0..requests {
            let at = secs(start_s) + secs(15) * u32::try_from(index).unwrap() / 36;
            clock.set(at);
            let answer = limiter.check(&7);
            assert_same(&answer, &twin.check(7, at.as_nanos(), 1), &(start_s, index));
            row.count(&refuses(&answer));
        }
        rows.push(row);
    }
    rows
}

#[test]
fn the_worked_example_comes_out_row_by_row() {
    let expected = [
        Row::new(30, 5, 0, 0),
        Row::new(28, 0, 0, 0),
        Row::new(21, 0, 0, 0),
        Row::new(16, 0, 14, 6),
        Row::new(0, 0, 24, 0),
        Row::new(0, 0, 4, 0),
    ];
    // A row is its 15 s wherever the wall clock's 300 s begin; a time of today costs no precision.
    for unix in [Duration::ZERO, secs(300 * 5_000_000)] {
        let (limiter, clock) = manual_at_unix(example_limit().align(Alignment::Clock), unix);
        let shift_ns = unix.as_nanos();
        let twin = example_twin(Start::Tiled { shift_ns }, true);
        assert_eq!(run_example(&limiter, &clock, twin), expected, "at {unix:?}");
    }
    let (limiter, clock) = manual(example_limit().align(Alignment::FirstRequest));
    let twin = example_twin(Start::FirstRequest { grid: None }, true);
    let rows = run_example(&limiter, &clock, twin);
    assert_eq!(rows, expected, "first request");
    assert_eq!(rows.iter().map(|row| row.passed).sum::<u32>(), 95);
}

#[test]
fn without_counting_the_refused_the_example_accepts_all_of_sustain() {
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let limit = example_limit().align(alignment).count_refused(false);
        let (limiter, clock) = manual(limit);
        let start = match alignment {
            Alignment::Clock => Start::Tiled { shift_ns: 0 },
            _ => Start::FirstRequest { grid: None },
        };
        let rows = run_example(&limiter, &clock, example_twin(start, false));
        let accepted: Vec<u32> = rows.iter().map(|row| row.passed).collect();
        assert_eq!(accepted, [30, 28, 21, 21, 0, 0], "{alignment:?}");
    }
}

#[test]
fn a_refusal_at_50_s_is_told_to_wait_250_s() {
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let (limiter, clock) = manual::<u64>(example_limit().align(alignment));
        for (start_s, requests) in [(0, 35), (15, 28), (30, 21), (45, 16)] {
            clock.set(secs(start_s));
            for _ in 0..requests {
                let _ = limiter.allow(&7);
            }
        }
        clock.set(secs(50));
        let denied = limiter.check(&7).unwrap_err();
        assert_eq!(denied.reason(), Reason::Exhausted);
        assert_eq!(denied.binding(), WindowName::Sustain);
        assert_eq!(denied.retry_after(), Some(secs(250)));
        assert_eq!(denied.retry_after_secs(), 250);
        assert_eq!((denied.limit(), denied.observed()), (100, 101));
    }
}

#[test]
fn the_429_body_has_its_numbers() {
    let limit = Limit::burst_sustain(Window::new(10, secs(15)), Window::new(30, secs(300)));
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let (limiter, _clock) = manual::<String>(limit.align(alignment));
        for _ in 0..12 {
            let _ = limiter.allow("user 7, title 9");
        }
        let denied = limiter.check("user 7, title 9").unwrap_err();
        assert_eq!(denied.observed(), 13, "currentRequests");
        assert_eq!(denied.limit(), 10, "maxRequests");
        assert_eq!(denied.binding(), WindowName::Burst);
        assert_eq!(denied.binding().to_string(), "burst");
        let windows = denied.windows();
        let binding = windows.iter().find(|window| window.name == denied.binding()).unwrap();
        assert_eq!(binding.period, secs(15), "periodInSeconds");
        assert_eq!(denied.retry_after_secs(), 15);
    }
}

#[test]
fn the_thirtieth_passes_and_the_thirty_first_fails() {
    let limits = [
        Limit::window(Window::new(30, secs(15))),
        example_limit(),
        Limit::bucket(Rate::new(30, secs(15)), 30),
    ];
    for limit in limits {
        for alignment in ALIGNMENTS {
            let (limiter, _clock) = manual::<u64>(limit.align(alignment));
            for nth in 1..=30 {
                let pass = limiter.check(&1).unwrap();
                assert_eq!(pass.remaining(), 30 - nth, "{limit:?} {alignment:?}");
            }
            assert!(limiter.check(&1).is_err(), "{limit:?} {alignment:?}");
        }
    }
}

#[test]
fn every_service_of_the_table_builds_whole_and_at_85_percent() {
    for (service, burst, sustain) in SERVICES {
        for percent in [85, 100] {
            let burst = (burst * percent / 100).max(1);
            let sustain = (sustain * percent / 100).max(1);
            let limit = Limit::burst_sustain(Window::new(burst, secs(15)), Window::new(sustain, secs(300)));
            for alignment in ALIGNMENTS {
                let (limiter, clock) = manual::<u64>(limit.align(alignment));
                let passed = (0..=burst).filter(|_| limiter.allow(&1)).count();
                assert_eq!(passed as u64, burst, "{service}, {percent} %");
                clock.advance(secs(300));
                assert!(limiter.allow(&1), "{service}, {percent} %, 300 s later");
            }
        }
    }
}

/// Checks one step of a bucket's story: `remaining` and the time until it is full, after a pass.
#[track_caller]
fn passes(limiter: &ExactLimiter<u64, Manual>, cost: u64, remaining: u64, reset: Duration) {
    let pass = limiter.check_n(&1, cost).unwrap();
    assert_eq!((pass.remaining(), pass.reset_after()), (remaining, reset));
    let bucket = &pass.windows()[0];
    assert_eq!(bucket.name, WindowName::Bucket);
    assert_eq!((bucket.remaining, bucket.reset_after), (remaining, reset));
}

/// The same after a refusal: `remaining` and the shortest wait.
#[track_caller]
fn refused(limiter: &ExactLimiter<u64, Manual>, cost: u64, remaining: u64, retry: Duration) {
    let denied = limiter.check_n(&1, cost).unwrap_err();
    assert_eq!(denied.reason(), Reason::Exhausted);
    assert_eq!((denied.remaining(), denied.retry_after()), (remaining, Some(retry)));
}

#[test]
fn a_bucket_of_five_at_one_a_second() {
    let (limiter, clock) = manual::<u64>(Limit::bucket(Rate::per_second(1), 5));
    let at = |millis: u64| clock.set(Duration::from_millis(millis));
    let denied = limiter.check_n(&1, 6).unwrap_err();
    assert_eq!((denied.reason(), denied.retry_after()), (Reason::TooLarge, None));
    for (remaining, reset_s) in [(4, 1), (3, 2), (2, 3), (1, 4), (0, 5)] {
        passes(&limiter, 1, remaining, secs(reset_s));
    }
    refused(&limiter, 1, 0, secs(1));
    let steps =
        [(3_000, 2, 3_000), (3_100, 1, 3_900), (4_000, 1, 4_000), (8_000, 4, 1_000), (9_500, 4, 1_000)];
    for (now_ms, remaining, reset_ms) in steps {
        at(now_ms);
        passes(&limiter, 1, remaining, Duration::from_millis(reset_ms));
    }
    passes(&limiter, 0, 4, secs(1));
    passes(&limiter, 2, 2, secs(3));
    refused(&limiter, 5, 2, secs(3));
}

#[test]
fn a_bucket_of_ten_at_one_a_second() {
    let limit = Limit::bucket(Rate::per_second(1), 10);
    let (limiter, _clock) = manual::<u64>(limit);
    passes(&limiter, 1, 9, secs(1));
    passes(&limiter, 9, 0, secs(10));
    refused(&limiter, 10, 0, secs(10));
    let (limiter, _clock) = manual::<u64>(limit);
    passes(&limiter, 5, 5, secs(5));
    refused(&limiter, 7, 5, secs(2));
}

/// Limits of a game back end: calls, seconds.
const BACK_END: [(u64, u64); 6] = [(100, 60), (10_000, 10), (10, 30), (1_000, 10), (60, 90), (30, 300)];

#[test]
fn a_lazy_window_opens_at_the_first_call_and_again_at_the_first_after_its_end() {
    for (calls, period_s) in BACK_END {
        let limit = Limit::window(Window::new(calls, secs(period_s)));
        let (limiter, clock) = manual::<u64>(limit.align(Alignment::FirstRequest));
        // Openings on the coarsest grid that is allowed, so that no window is short.
        let step = secs(period_s) / 64;
        for opening in [step * 5, step * (5 + 64), step * 1_000] {
            clock.set(opening);
            assert_eq!((0..calls).filter(|_| limiter.allow(&1)).count() as u64, calls);
            clock.set(opening + secs(period_s) - Duration::from_nanos(1));
            let denied = limiter.check(&1).unwrap_err();
            assert_eq!(denied.retry_after(), Some(Duration::from_nanos(1)));
            assert_eq!(denied.retry_after_secs(), 1);
            assert_eq!(denied.observed(), calls + 1, "refused calls count too");
        }
    }
}

#[test]
fn three_tiers_at_once_each_open_by_themselves() {
    let tiers = [(10, 15), (150, 300), (3_600, 3_600)].map(|(calls, period_s)| {
        let limit = Limit::window(Window::new(calls, secs(period_s)));
        manual::<u64>(limit.align(Alignment::FirstRequest))
    });
    let call = |at: Duration| {
        let pass = |(limiter, clock): &(ExactLimiter<u64, Manual>, Manual)| {
            clock.set(at);
            limiter.allow(&1)
        };
        tiers.iter().map(pass).collect::<Vec<_>>()
    };
    // 10 in each of the first fifteen bursts use up the middle tier; the widest has 3450 left.
    for burst in 0..15 {
        for _ in 0..10 {
            assert_eq!(call(secs(15 * burst)), [true; 3]);
        }
    }
    assert_eq!(call(secs(225)), [true, false, true]);
    assert_eq!(call(secs(299)), [true, false, true]);
    assert_eq!(call(secs(300)), [true, true, true]);
}
