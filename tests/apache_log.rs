//! Ten thousand requests of a real web server, replayed by address: the counts of an independent reference come
//! out exactly, on the limiter and on the naive twin.
//!
//! The log is read where it lies, in `shared/data` beside or above the package; without it these tests say so
//! and pass.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use common::twin::{Bucket, Sliding, Start, Windows};
use common::{assert_same, manual_at_unix, secs};
use tidegate::{Alignment, Denied, Limit, Pass, Rate, Window};

const SECOND_NS: u128 = 1_000_000_000;

/// One line of the log: who, and when in seconds since the Unix epoch.
struct Request {
    address: String,
    unix_s: u64,
}

/// The log's requests in order of time, or `None` (and a note) when the log is not there.
fn requests() -> Option<Vec<Request>> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let log = package
        .ancestors()
        .map(|folder| folder.join("shared/data/apache_combined.log"))
        .find(|path| path.is_file());
    let Some(log) = log else {
        println!("skipped: no shared/data/apache_combined.log beside or above the package");
        return None;
    };
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned();
    let mut requests: Vec<Request> = text.lines().map(parse).collect();
    requests.sort_by_key(|request| request.unix_s);
    assert_eq!(requests.len(), 10_000);
    Some(requests)
}

/// The address and the time of a line in the combined format: `address - - [17/May/2015:10:05:03 +0000] …`.
fn parse(line: &str) -> Request {
    let (address, rest) = line.split_once(' ').unwrap();
    let stamp = rest.split_once('[').unwrap().1.split_once(']').unwrap().0;
    let (stamp, zone) = stamp.split_once(' ').unwrap();
    assert_eq!(zone, "+0000", "the log is in UTC");
    let fields: Vec<&str> = stamp.split(['/', ':']).collect();
    let [day, month, year, hour, minute, second] = fields[..] else {
        panic!("not a stamp: {stamp}");
    };
    let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = months.find(month).unwrap() as u64 / 3 + 1;
    let number = |text: &str| text.parse::<u64>().unwrap();
    let days = days_since_epoch(number(year), month, number(day));
    Request {
        address: address.to_owned(),
        unix_s: ((days * 24 + number(hour)) * 60 + number(minute)) * 60 + number(second),
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar after it, counted year by year.
fn days_since_epoch(year: u64, month: u64, day: u64) -> u64 {
    let is_leap = |year: u64| year.is_multiple_of(if year.is_multiple_of(100) { 400 } else { 4 });
    let february = if is_leap(year) { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let years: u64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    let months: u64 = lengths.iter().take(usize::try_from(month).unwrap() - 1).sum();
    years + months + day - 1
}

#[test]
fn stamps_are_read_as_unix_time() {
    assert_eq!(days_since_epoch(1970, 1, 1), 0);
    assert_eq!(days_since_epoch(2000, 3, 1), 11_017);
    let line = r#"83.149.9.216 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1"#;
    let request = parse(line);
    assert_eq!((request.address.as_str(), request.unix_s), ("83.149.9.216", 1_431_857_103));
}

fn refuses(answer: &Result<Pass, Denied>) -> Vec<bool> {
    let windows = match answer {
        Ok(pass) => pass.windows(),
        Err(denied) => denied.windows(),
    };
    windows.iter().map(|window| window.refuses).collect()
}

/// Gives each address a number, for the twin.
#[derive(Default)]
struct Numbers<'a>(HashMap<&'a str, u64>);

impl<'a> Numbers<'a> {
    fn of(&mut self, address: &'a str) -> u64 {
        let next = self.0.len() as u64;
        *self.0.entry(address).or_insert(next)
    }
}

/// Passed, refused by burst only, by sustain only, by both.
fn tally(answers: impl Iterator<Item = (bool, bool)>) -> [u32; 4] {
    answers.fold([0; 4], |mut tally, (burst, sustain)| {
        tally[usize::from(burst) + 2 * usize::from(sustain)] += 1;
        tally
    })
}

/// Replays the log on burst + sustain windows.
fn replay_nested(requests: &[Request], burst: u64, sustain: u64, alignment: Alignment) -> [u32; 4] {
    let limit = Limit::burst_sustain(Window::new(burst, secs(15)), Window::new(sustain, secs(300)));
    // The clock's origin is the first request's second, on no edge of any window.
    let origin = secs(requests[0].unix_s);
    let (limiter, clock) = manual_at_unix::<String>(limit.align(alignment), origin);
    let start = match alignment {
        Alignment::Clock => Start::Tiled { shift_ns: origin.as_nanos() },
        _ => Start::FirstRequest { grid: None },
    };
    let windows = [(u128::from(burst), 15 * SECOND_NS), (u128::from(sustain), 300 * SECOND_NS)];
    let mut twin = Windows::new(&windows, start, true);
    let mut numbers = Numbers::default();
    tally(requests.iter().map(|request| {
        let now = secs(request.unix_s) - origin;
        clock.set(now);
        let answer = limiter.check(request.address.as_str());
        let expected = twin.check(numbers.of(&request.address), now.as_nanos(), 1);
        let refuses = refuses(&answer);
        if alignment == Alignment::Clock {
            assert_same(&answer, &expected, &request.address);
        } else {
            // Whole seconds stand on no grid of a fifteenth second, so waits may differ by a grid step.
            let expected: Vec<bool> = expected.shares.iter().map(|share| share.refuses).collect();
            assert_eq!(refuses, expected, "{}", request.address);
        }
        (refuses[0], refuses[1])
    }))
}

#[test]
fn burst_and_sustain_refuse_as_the_reference_does() {
    let Some(requests) = requests() else { return };
    let rows = [
        (30, 100, Alignment::Clock, [9_990, 2, 8, 0]),
        (30, 100, Alignment::FirstRequest, [9_990, 2, 8, 0]),
        (10, 30, Alignment::Clock, [9_417, 127, 294, 162]),
        (10, 30, Alignment::FirstRequest, [9_404, 140, 301, 155]),
    ];
    for (burst, sustain, alignment, expected) in rows {
        let found = replay_nested(&requests, burst, sustain, alignment);
        assert_eq!(found, expected, "{burst} and {sustain}, {alignment:?}");
    }
}

#[test]
fn two_windows_that_open_each_by_itself_refuse_as_the_reference_does() {
    let Some(requests) = requests() else { return };
    let origin = secs(requests[0].unix_s);
    let window = |calls: u64, period: Duration| {
        let limit = Limit::window(Window::new(calls, period)).align(Alignment::FirstRequest);
        let windows = [(u128::from(calls), period.as_nanos())];
        let twin = Windows::new(&windows, Start::FirstRequest { grid: None }, true);
        (manual_at_unix::<String>(limit, origin), twin)
    };
    let mut windows = [window(10, secs(15)), window(30, secs(300))];
    let mut numbers = Numbers::default();
    let found = tally(requests.iter().map(|request| {
        let now = secs(request.unix_s) - origin;
        let number = numbers.of(&request.address);
        let [burst, sustain] = windows.each_mut().map(|((limiter, clock), twin)| {
            clock.set(now);
            let passed = limiter.allow(request.address.as_str());
            assert_eq!(passed, twin.check(number, now.as_nanos(), 1).passed);
            !passed
        });
        (burst, sustain)
    }));
    assert_eq!(found, [9_380, 164, 307, 149]);
}

#[test]
fn buckets_refuse_as_the_reference_does() {
    let Some(requests) = requests() else { return };
    let origin = secs(requests[0].unix_s);
    for (period_s, burst, passed) in [(1, 5, 9_909), (10, 10, 8_725)] {
        let limit = Limit::bucket(Rate::new(1, secs(period_s)), burst);
        let (limiter, clock) = manual_at_unix::<String>(limit, origin);
        let mut twin = Bucket::new(1, secs(period_s).as_nanos(), u128::from(burst));
        let mut numbers = Numbers::default();
        let count = requests.iter().filter(|request| {
            let now = secs(request.unix_s) - origin;
            clock.set(now);
            let answer = limiter.check(request.address.as_str());
            let expected = twin.check(numbers.of(&request.address), now.as_nanos(), 1);
            assert_same(&answer, &expected, &request.address);
            answer.is_ok()
        });
        assert_eq!(count.count(), passed, "1 in {period_s} s, burst {burst}");
    }
}

/// What a sliding window and an exact log of arrivals made of the same requests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Compared {
    counter_passed: u32,
    log_passed: u32,
    /// The counter passed what the log, with a history of its own, refused; and the other way round.
    counter_alone: u32,
    log_alone: u32,
    /// The most that the counter passed of one address in one period, both ends included.
    in_a_period: u64,
}

/// Times of what was admitted of one address.
#[derive(Default)]
struct Log(VecDeque<u64>);

impl Log {
    /// How many there are later than one period before now.
    fn held(&self, now_s: u64, period_s: u64) -> u64 {
        self.0.iter().rev().take_while(|&&at_s| at_s + period_s > now_s).count() as u64
    }
}

/// Replays the log on a sliding window, whose every answer is the twin's and whose count is within the two bounds of the
/// docs of what a log holds that has admitted the same; and on a log that decides by itself. All times are `later_s`
/// later than logged.
fn compare_with_a_log(requests: &[Request], limit: u64, period_s: u64, later_s: u64) -> Compared {
    let (start, period_ns) = (secs(requests[0].unix_s), u128::from(period_s) * SECOND_NS);
    let origin = start + secs(later_s);
    let asked = Limit::sliding_window(Window::new(limit, secs(period_s))).align(Alignment::Clock);
    let (limiter, clock) = manual_at_unix::<String>(asked, origin);
    let mut twin = Sliding::new(limit.into(), period_ns, origin.as_nanos(), false);
    let (mut numbers, mut compared) = (Numbers::default(), Compared::default());
    let (mut admitted, mut logs) = (HashMap::<u64, Log>::new(), HashMap::<u64, Log>::new());
    for request in requests {
        let (key, now) = (numbers.of(&request.address), secs(request.unix_s) - start);
        clock.set(now);
        let (previous, elapsed_ns) = twin.previous_and_elapsed_ns(key, now.as_nanos());
        let used = twin.used(key, now.as_nanos());
        let own = admitted.entry(key).or_default();
        let held = u128::from(own.held(request.unix_s, period_s));
        assert!(held <= used + previous * elapsed_ns / period_ns, "{held} in the log, {used} counted");
        let above = (previous * (period_ns - elapsed_ns)).div_ceil(period_ns);
        assert!(used <= held + above, "{held} in the log, {used} counted");

        let answer = limiter.check(request.address.as_str());
        assert_same(&answer, &twin.check(key, now.as_nanos(), 1), &request.address);
        if answer.is_ok() {
            own.0.push_back(request.unix_s);
            compared.in_a_period = compared.in_a_period.max(own.held(request.unix_s, period_s + 1));
        }
        let log = logs.entry(key).or_default();
        let log_passes = log.held(request.unix_s, period_s) < limit;
        if log_passes {
            log.0.push_back(request.unix_s);
        }
        compared.counter_passed += u32::from(answer.is_ok());
        compared.log_passed += u32::from(log_passes);
        compared.counter_alone += u32::from(answer.is_ok() && !log_passes);
        compared.log_alone += u32::from(answer.is_err() && log_passes);
    }
    assert!(compared.in_a_period < 2 * limit, "{compared:?}");
    compared
}

/// Every request of this log was made in minute 5 of an hour, so windows that begin at whole minutes see no edge
/// in between; those that begin half a minute off part each hour's requests in two. The middle two columns are the verdicts
/// that differ.
#[test]
fn a_sliding_window_differs_from_an_exact_log_by_no_more_than_the_docs_say() {
    let Some(requests) = requests() else { return };
    let rows = [
        (20, 60, 0, [9_069, 0, 0, 9_069], 20),
        (20, 60, 30, [9_442, 373, 0, 9_069], 29),
        (100, 300, 0, [9_992, 0, 0, 9_992], 100),
        (100, 300, 145, [9_992, 0, 0, 9_992], 100),
        (10, 15, 0, [9_579, 104, 154, 9_629], 13),
        (10, 15, 10, [9_608, 147, 168, 9_629], 14),
        (5, 60, 30, [7_430, 513, 0, 6_917], 7),
    ];
    println!("      limit  later  counter passed  it alone  log alone  log passed  most in a period");
    for (limit, period_s, later_s, [counter_passed, counter_alone, log_alone, log_passed], in_a_period) in
        rows
    {
        let found = compare_with_a_log(&requests, limit, period_s, later_s);
        println!(
            "{limit:>4} in {period_s:>3}s {later_s:>5}s {:>15} {:>9} {:>10} {:>11} {:>17}",
            found.counter_passed, found.counter_alone, found.log_alone, found.log_passed, found.in_a_period
        );
        let expected = Compared { counter_passed, log_passed, counter_alone, log_alone, in_a_period };
        assert_eq!(found, expected, "{limit} in {period_s} s, {later_s} s later");
    }
}
