//! Lengths of time and quotas as people write them: `15s`, `1h30m`, `100/15s`.

use std::time::Duration;

/// The units of a length of time, the longest first, in nanoseconds.
const UNITS: [(&str, u128); 8] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// The longest that can be written, a hundred years of 365 days; limits allow less.
const NS_MAX: u128 = 36_500 * 86_400_000_000_000;

/// A whole number; an underscore may stand between digits.
pub(super) fn count(text: &str) -> Option<u64> {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !text.split('_').all(is_digits) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

/// A length of time: numbers and units by turns, `1h30m`; a number may be left out where only a unit stands: `s`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    if text.ends_with(' ') {
        return None;
    }
    let mut rest = text;
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '_')?;
        let (number, after) = rest.split_at(unit_at);
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, unit_ns) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        let number = if number.is_empty() && rest.len() == text.len() && after.is_empty() {
            1
        } else {
            count(number)?
        };
        total = u128::from(number).checked_mul(unit_ns)?.checked_add(total)?;
        rest = after.trim_start_matches(' ');
    }
    if text.is_empty() || total > NS_MAX {
        return None;
    }
    let seconds = u64::try_from(total / 1_000_000_000).ok()?;
    let below = u32::try_from(total % 1_000_000_000).ok()?;
    Some(Duration::new(seconds, below))
}

/// So many in such a time: `100/15s`, with spaces around the stroke or none.
pub(super) fn quota(text: &str) -> Option<(u64, Duration)> {
    let (number, period) = text.split_once('/')?;
    Some((count(number.trim_end_matches(' '))?, duration(period.trim_start_matches(' '))?))
}

/// A length of time as [`duration`] reads it, in the fewest units.
pub(super) fn written(length: Duration) -> String {
    let made = parts(length).map(|(number, unit)| format!("{number}{unit}")).collect::<String>();
    if made.is_empty() { "0s".to_owned() } else { made }
}

/// A length of time as a sentence tells it: `1 h 30 min`.
pub(super) fn told(length: Duration) -> String {
    let made: Vec<String> = parts(length)
        .map(|(number, unit)| match (number, unit) {
            (1, "d") => "1 day".to_owned(),
            (_, "d") => format!("{number} days"),
            (_, "m") => format!("{number} min"),
            _ => format!("{number} {unit}"),
        })
        .collect();
    if made.is_empty() { "0 s".to_owned() } else { made.join(" ") }
}

/// How many of each unit, but for those of which there are none.
fn parts(length: Duration) -> impl Iterator<Item = (u128, &'static str)> {
    let mut rest = length.as_nanos();
    UNITS.into_iter().filter(|(unit, _)| *unit != "min").filter_map(move |(unit, unit_ns)| {
        let number = rest / unit_ns;
        rest %= unit_ns;
        (number > 0).then_some((number, unit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_what_people_write() {
        let cases = [
            ("15s", 15_000),
            ("5m", 300_000),
            ("5min", 300_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("1d", 86_400_000),
            ("s", 1_000),
            ("250ms", 250),
            ("1_000ms", 1_000),
            ("0s", 0),
        ];
        for (text, ms) in cases {
            assert_eq!(duration(text), Some(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(duration("1us1ns"), Some(Duration::from_nanos(1_001)));
        assert_eq!(duration("36500d"), Some(Duration::from_secs(36_500 * 86_400)));
    }

    #[test]
    fn other_texts_are_no_length() {
        let texts = [
            "",
            "15",
            "s15",
            "-1s",
            "1.5s",
            "1 s",
            "15 seconds",
            "36501d",
            "1h30",
            "sm",
            "1__0s",
            "_1s",
            "€",
            "999999999999999999999d",
            "18446744073709551615d",
            "h30m",
            " 1s",
            "1S",
        ];
        for text in texts {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn quotas_are_a_count_and_a_length() {
        let minute = Duration::from_secs(60);
        for text in ["100/60s", "100 / 1m", "1_00/m"] {
            assert_eq!(quota(text), Some((100, minute)), "{text}");
        }
        for text in ["100", "/60s", "100/", "100/60", "1 00/60s", "100//60s", "18446744073709551616/s"] {
            assert_eq!(quota(text), None, "{text}");
        }
    }

    #[test]
    fn lengths_are_told_in_units() {
        let told = |text: &str| told(duration(text).unwrap());
        assert_eq!(told("90m"), "1 h 30 min");
        assert_eq!(told("300s"), "5 min");
        assert_eq!(told("86400s"), "1 day");
        assert_eq!(told("49h"), "2 days 1 h");
        assert_eq!(told("0s"), "0 s");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(seconds in 0..=36_499_u64 * 86_400, below in 0..1_000_000_000_u32) {
            let length = Duration::new(seconds, below);
            prop_assert_eq!(duration(&written(length)), Some(length));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}|[0-9_dhmsun /]{0,24}") {
            let _ = (duration(&text), quota(&text));
        }
    }
}
