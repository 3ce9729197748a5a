//! Ten thousand requests of a real web server, replayed by address: the counts of an independent reference come
//! out exactly, on the limiter and on the naive twin.
//!
//! The log is read where it lies, in `shared/data` beside or above the package; without it these tests say so
//! and pass.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use common::twin::{Bucket, Start, Windows};
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
