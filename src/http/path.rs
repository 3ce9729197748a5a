//! One spelling for each path.

use std::borrow::Cow;

/// The path with what spells it differently taken away: octets written as `%61` are the characters that they stand for, `/`
/// too, but `%` itself, controls and what is no UTF-8, which stay, in capitals (a `%` without digits is `%25`); several `/` are one, `.` and `..` are gone (RFC 3986
/// §5.2.4), and so is a `/` at the end. Borrowed where that changes nothing. Letters keep their case.
pub(super) fn normal(path: &str) -> Cow<'_, str> {
    if is_normal(path) {
        return Cow::Borrowed(path);
    }
    let decoded = decoded(path);
    if !decoded.starts_with('/') {
        // `*`, as in `OPTIONS *`; and the empty one of a `CONNECT`.
        return if decoded.is_empty() { Cow::Borrowed("/") } else { decoded };
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split('/') {
        match segment {
            "" | "." => {}
            ".." => _ = segments.pop(),
            _ => segments.push(segment),
        }
    }
    Cow::Owned(format!("/{}", segments.join("/")))
}

/// Whether nothing of it is to change; `false` for some of which nothing is, too.
fn is_normal(path: &str) -> bool {
    let Some(inside) = path.strip_prefix('/') else { return false };
    let has_plain_segments = || inside.split('/').all(|segment| !matches!(segment, "" | "." | ".."));
    inside.is_empty() || (!inside.contains('%') && has_plain_segments())
}

/// With the octets decoded that stand for printable text.
fn decoded(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut text = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let octets: Vec<u8> = (0..).step_by(3).map_while(|at| octet(rest, at)).collect();
        if octets.is_empty() {
            // A `%` without its digits stands for itself, or what follows might make an octet of it.
            encode(b"%", &mut text);
            rest = &rest[1..];
        }
        rest = &rest[3 * octets.len()..];
        for chunk in octets.utf8_chunks() {
            for character in chunk.valid().chars() {
                if character == '%' || character.is_control() {
                    encode(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut text);
                } else {
                    text.push(character);
                }
            }
            encode(chunk.invalid(), &mut text);
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The octet that is written at `at`.
fn octet(text: &str, at: usize) -> Option<u8> {
    let digits = text.as_bytes().get(at..at + 3)?.strip_prefix(b"%")?;
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(digits[0])? << 4 | digit(digits[1])?)
}

fn encode(octets: &[u8], text: &mut String) {
    const DIGITS: [u8; 16] = *b"0123456789ABCDEF";
    for octet in octets {
        text.push('%');
        text.push(DIGITS[usize::from(octet >> 4)].into());
        text.push(DIGITS[usize::from(octet & 15)].into());
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
