//! Times as logs of many kinds write them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::line::{LineError, RANGE, found, unix_ns};

const SHAPE: &str =
    "not a time as in 2026-03-02T09:00:00Z, 2026-03-02 09:00:00, or a number of seconds or ms";

/// Up to here a whole number is seconds since 1970 (until the year 5138), up to a thousand times that it is
/// milliseconds, and so on to nanoseconds: none of them means a time before March 1973 in the next finer unit.
const SECONDS_MAX: u64 = 100_000_000_000;

/// A time in nanoseconds since the Unix epoch: RFC 3339, the same without a zone (UTC) or with a blank in its middle, as in
/// access logs, or a number of seconds (perhaps with a fraction), milliseconds, microseconds or nanoseconds.
///
/// # Errors
///
/// When it is none of these, or not between 1970 and July 2554.
pub fn parse(text: &str) -> Result<u64, LineError> {
    let text = text.trim();
    if text.contains('/') {
        return unix_ns(text.trim_start_matches('[').trim_end_matches(']'));
    }
    let bad = |why| LineError::Time(found(text, why));
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return number(text).ok_or_else(|| bad("no number of seconds or ms before July 2554"));
    }
    let zoned = || text.parse::<Timestamp>().ok();
    let local = || TimeZone::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok();
    let timestamp = zoned().or_else(local).ok_or_else(|| bad(SHAPE))?;
    u64::try_from(timestamp.as_nanosecond()).map_err(|_| bad(RANGE))
}

fn number(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().ok()?;
    // Digits below the nanosecond are dropped.
    let digits = fraction.get(..fraction.len().min(9))?;
    let fraction_ns: u64 = if digits.is_empty() { 0 } else { format!("{digits:0<9}").parse().ok()? };
    let mut unit_ns = 1_000_000_000;
    let mut max = SECONDS_MAX;
    while whole >= max && unit_ns > 1 {
        unit_ns /= 1_000;
        max = max.saturating_mul(1_000);
    }
    whole.checked_mul(unit_ns)?.checked_add(fraction_ns * unit_ns / 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-03-02 09:00:00 UTC.
    const AT: u64 = 1_772_442_000;

    #[test]
    fn one_time_in_many_spellings() {
        for text in [
            "2026-03-02T09:00:00.25Z",
            "2026-03-02T10:00:00.250+01:00",
            "2026-03-02t09:00:00.25z",
            "2026-03-02 09:00:00.2500000",
            " 2026-03-02T09:00:00.25 ",
            "02/Mar/2026:09:00:00.25 +0000",
            "[02/Mar/2026:09:00:00.25 +0000]",
            "1772442000.25",
            "1772442000250",
            "1772442000250.0",
            "1772442000250000",
            "1772442000250000000",
        ] {
            assert_eq!(parse(text), Ok(AT * 1_000_000_000 + 250_000_000), "{text}");
        }
        assert_eq!(parse("2023-11-16 18:15:46.6805900"), Ok(1_700_158_546_680_590_000));
        assert_eq!((parse("0"), parse("7")), (Ok(0), Ok(7_000_000_000)));
        assert_eq!(parse("0.1234567899"), Ok(123_456_789));
        assert_eq!(parse("1772442000250.5"), Ok(AT * 1_000_000_000 + 250_500_000));
        assert_eq!(parse("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn what_is_no_time_is_told() {
        for text in [
            "",
            ".",
            "x",
            "-5",
            "1.2.3",
            "2026-13-02T09:00:00Z",
            "2026-03-02",
            "12:00",
            "1969-12-31T23:59:59Z",
        ] {
            // A day alone is its midnight.
            assert_eq!(parse(text).is_err(), text != "2026-03-02", "{text}");
        }
        for text in ["18446744073709551616", "9999-12-31T00:00:00Z", "99999999999"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let error = parse("yesterday").unwrap_err().to_string();
        assert!(error.starts_with("bad time \"yesterday\": not a time as in 2026-"), "{error}");
    }
}
