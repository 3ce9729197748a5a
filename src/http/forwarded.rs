//! The texts of `X-Forwarded-For` and `Forwarded` (RFC 7239).
//!
//! A list is read from the right. What stands to the right was written by a proxy, and what stands to its left perhaps by anybody:
//! a quotation mark that a client leaves open must not swallow what the proxy has added behind it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The last comma.
pub(super) fn last_comma(list: &[u8]) -> Option<usize> {
    list.iter().rposition(|&byte| byte == b',')
}

/// The last comma outside of quoted strings, as they are read from the right.
pub(super) fn last_unquoted_comma(list: &[u8]) -> Option<usize> {
    let mut is_quoted = false;
    for at in (0..list.len()).rev() {
        match list[at] {
            // Inside, a mark behind an odd number of backslashes is one of the text.
            b'"' if !is_quoted || backslashes_before(list, at).is_multiple_of(2) => is_quoted = !is_quoted,
            b',' if !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
}

fn backslashes_before(list: &[u8], at: usize) -> usize {
    list[..at].iter().rev().take_while(|&&byte| byte == b'\\').count()
}

/// The address in an element of `X-Forwarded-For`: `192.0.2.7`, `192.0.2.7:80`, `2001:db8::7`, `[2001:db8::7]`,
/// `[2001:db8::7]:80`.
pub(super) fn plain_node(text: &str) -> Option<IpAddr> {
    text.parse::<Ipv6Addr>().map(IpAddr::V6).ok().or_else(|| node(text, is_port))
}

/// The address in an element of `Forwarded`: of its only parameter `for`, in any case.
pub(super) fn element(text: &str) -> Option<IpAddr> {
    let mut found = None;
    let mut rest = Some(text);
    while let Some(pairs) = rest {
        let end = pair_len(pairs)?;
        let (pair, behind) = pairs.split_at(end);
        rest = behind.strip_prefix(';');
        let pair = pair.trim_ascii();
        if pair.is_empty() {
            // The rule of an element allows `;;` and a `;` at its end.
            continue;
        }
        let (name, value) = pair.split_once('=')?;
        let is_whole = name.bytes().all(is_token) && !name.is_empty() && is_value(value);
        if !is_whole {
            return None;
        }
        if name.eq_ignore_ascii_case("for") && found.replace(value).is_some() {
            return None;
        }
    }
    let value = found?;
    match value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) {
        // No address has a character that is to be escaped: one that has a backslash is none.
        Some(quoted) => node(quoted, is_port_or_hidden),
        // Brackets and colons are no token's: without quotes it is an IPv4 address alone.
        None => value.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

/// Where the first pair ends: at the first `;` outside of quotes. `None` if a quotation mark is left open.
fn pair_len(pairs: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in pairs.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b';' if !is_quoted => return Some(at),
            _ => {}
        }
    }
    (!is_quoted).then_some(pairs.len())
}

/// Whether it is a token or one quoted string.
fn is_value(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('"') else {
        return !text.is_empty() && text.bytes().all(is_token);
    };
    let mut is_escaped = false;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1 == inside.len(),
            _ => {}
        }
    }
    false
}

/// A character of a token (RFC 9110 §5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// An IPv4 address, or an IPv6 one in brackets, perhaps with a port.
fn node(text: &str, is_port: fn(&str) -> bool) -> Option<IpAddr> {
    let (address, rest): (IpAddr, &str) = if let Some(inside) = text.strip_prefix('[') {
        let (address, rest) = inside.split_once(']')?;
        (address.parse::<Ipv6Addr>().ok()?.into(), rest)
    } else {
        let end = text.find(':').unwrap_or(text.len());
        let (address, rest) = text.split_at(end);
        (address.parse::<Ipv4Addr>().ok()?.into(), rest)
    };
    let is_fine = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    is_fine.then_some(address)
}

fn is_port(text: &str) -> bool {
    let is_number = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number && text.parse::<u16>().is_ok()
}

/// A port, or a name in its place (RFC 7239 §6.3).
fn is_port_or_hidden(text: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let hidden = text.strip_prefix('_');
    is_port(text) || hidden.is_some_and(|name| !name.is_empty() && name.bytes().all(is_name_byte))
}
