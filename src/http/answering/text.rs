//! The text of fields: names and numbers as RFC 9651 has them, written into a buffer, without `format!`.

use std::time::Duration;

use http::HeaderValue;
use smallvec::SmallVec;

/// Where a field is written before it is copied, in one piece, to where it stays.
pub(super) type Buffer = SmallVec<[u8; 512]>;

/// The largest integer of RFC 9651, of 15 digits.
pub(super) const INTEGER_MAX: u64 = 999_999_999_999_999;

/// What stands for a character of a name that is not printable ASCII.
const REPLACEMENT: u8 = b'?';

/// The number; what has more than 15 digits is told as the most that 15 digits say.
pub(super) fn integer(number: u64, to: &mut Buffer) {
    let mut digits = [0_u8; 15];
    let mut left = number.min(INTEGER_MAX);
    let mut from = digits.len();
    loop {
        from -= 1;
        let digit = (left % 10) as u8;
        digits[from] = b'0' + digit;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    to.extend_from_slice(&digits[from..]);
}

/// The name as far as a quoted string can hold it: each character that is not printable ASCII is a `?`, and what is beyond
/// `bytes_max` is left out.
pub(super) fn printable(name: &str, bytes_max: usize, to: &mut Buffer) {
    let is_printable = |&byte: &u8| (b' '..=b'~').contains(&byte);
    if name.len() <= bytes_max && name.as_bytes().iter().all(is_printable) {
        to.extend_from_slice(name.as_bytes());
        return;
    }
    let character = |c: char| u8::try_from(c).ok().filter(is_printable).unwrap_or(REPLACEMENT);
    to.extend(name.chars().take(bytes_max).map(character));
}

/// A quoted string of RFC 9651. The name is printable ASCII.
pub(super) fn quoted(name: &[u8], to: &mut Buffer) {
    to.push(b'"');
    if name.iter().any(|byte| matches!(byte, b'"' | b'\\')) {
        for &byte in name {
            if matches!(byte, b'"' | b'\\') {
                to.push(b'\\');
            }
            to.push(byte);
        }
    } else {
        to.extend_from_slice(name);
    }
    to.push(b'"');
}

/// `, ` before all but the first of a list.
pub(super) fn comma(to: &mut Buffer) {
    if !to.is_empty() {
        to.extend_from_slice(b", ");
    }
}

/// What was written, as the value of a field; `None` if it is nothing, which no field holds.
pub(super) fn value(written: &[u8]) -> Option<HeaderValue> {
    if written.is_empty() {
        return None;
    }
    // Only printable ASCII is written here, so it is a value.
    HeaderValue::from_bytes(written).ok()
}

/// A number as the whole of a field.
pub(super) fn number(number: u64) -> Option<HeaderValue> {
    let mut to = Buffer::new();
    integer(number, &mut to);
    value(&to)
}

/// A period where it is a whole number of seconds and not none.
pub(super) fn whole_period(period: Duration) -> Option<u64> {
    (period.subsec_nanos() == 0 && period.as_secs() > 0).then_some(period.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Buffer)) -> String {
        let mut to = Buffer::new();
        write(&mut to);
        String::from_utf8(to.to_vec()).unwrap()
    }

    #[test]
    fn integers_have_one_to_15_digits() {
        for (number, expected) in [
            (0, "0"),
            (9, "9"),
            (10, "10"),
            (1_000_000, "1000000"),
            (INTEGER_MAX - 1, "999999999999998"),
            (INTEGER_MAX, "999999999999999"),
            (INTEGER_MAX + 1, "999999999999999"),
            (10_u64.pow(19), "999999999999999"),
            (u64::MAX, "999999999999999"),
        ] {
            assert_eq!(written(|to| integer(number, to)), expected);
        }
    }

    #[test]
    fn periods_are_whole_seconds_or_not_told() {
        let told = |nanos| whole_period(Duration::from_nanos(nanos));
        assert_eq!([0, 1, 999_999_999, 1_000_000_000].map(told), [None, None, None, Some(1)]);
        assert_eq!([1_000_000_001, 1_500_000_000, 2_000_000_000].map(told), [None, None, Some(2)]);
        assert_eq!(whole_period(Duration::from_secs(u64::MAX)), Some(u64::MAX));
    }

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(written(|to| printable("aé\u{7f}~ \0", 9, to)), "a??~ ?");
        assert_eq!(written(|to| printable("ééé", 2, to)), "??");
        assert_eq!(written(|to| printable("abc", 2, to)), "ab");
        assert_eq!(written(|to| quoted(b"a\"\\", to)), r#""a\"\\""#);
    }
}
