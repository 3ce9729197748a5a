//! Which body a client prefers, by the `Accept` fields of its request (RFC 9110 §12.5.1).
//!
//! The reader is our own: the one of `headers-accept` gives up a whole field for one range that is malformed, and has no way
//! to say that a browser that asks for HTML is better served with text than with JSON.

use http::HeaderMap;
use http::header::ACCEPT;

use super::body::Body;

/// How much a range is wanted, in thousandths.
type Quality = u16;

/// How closely a range tells a type: `*/*`, `text/*`, `text/plain`, the same with a parameter.
type Closeness = u8;
const EXACT: Closeness = 2;

/// Something that could be sent, or that stands for it.
struct Offer {
    kind: &'static [u8],
    subtype: &'static [u8],
    /// The parameter of its type, if any: what names it is as close as it gets.
    parameter: Option<(&'static [u8], &'static [u8])>,
}

const UTF_8: Option<(&[u8], &[u8])> = Some((b"charset", b"utf-8"));
const PROBLEM: Offer = Offer { kind: b"application", subtype: b"problem+json", parameter: None };
const JSON: Offer = Offer { kind: b"application", subtype: b"json", parameter: None };
const PLAIN: Offer = Offer { kind: b"text", subtype: b"plain", parameter: UTF_8 };
const HTML: Offer = Offer { kind: b"text", subtype: b"html", parameter: UTF_8 };

/// Text where text (or HTML, which it stands for) is wanted more than JSON; else problem details, also where nothing is said or
/// neither is wanted. What is malformed says nothing.
pub(super) fn preferred(request: &HeaderMap) -> Body {
    let mut wanted = [PROBLEM, JSON, PLAIN, HTML].map(|offer| Wanted { offer, best: None });
    for value in request.get_all(ACCEPT) {
        for range in split(value.as_bytes(), b',') {
            wanted.iter_mut().for_each(|wanted| wanted.meet(range));
        }
    }
    let [problem, json, plain, html] = wanted;
    if plain.or(&html) > problem.or(&json) { Body::Text } else { Body::Problem }
}

/// An offer, and the closest of the ranges that it meets.
struct Wanted {
    offer: Offer,
    best: Option<(Closeness, Quality)>,
}

impl Wanted {
    fn meet(&mut self, range: &[u8]) {
        let found = self.offer.met_by(range);
        // Of ranges that are equally close the one that wants it more counts.
        if found.is_some() && found > self.best {
            self.best = found;
        }
    }

    /// How much this is wanted; or another that it stands for, unless it is named itself.
    fn or(&self, other: &Self) -> Quality {
        let quality = |wanted: &Self| wanted.best.map_or(0, |(_, quality)| quality);
        match self.best {
            Some((EXACT.., quality)) => quality,
            _ => quality(self).max(quality(other)),
        }
    }
}

impl Offer {
    /// How closely the range tells it, and how much it is wanted then; `None` if it does not, or is malformed.
    fn met_by(&self, range: &[u8]) -> Option<(Closeness, Quality)> {
        let mut parts = split(range, b';');
        let name = parts.next()?;
        let at = name.iter().position(|&byte| byte == b'/')?;
        let (kind, subtype) = (&name[..at], &name[at + 1..]);
        let is = |one: &[u8], other: &[u8]| one.eq_ignore_ascii_case(other);
        let mut closeness = match (kind, subtype) {
            (b"*", b"*") => 0,
            (kind, b"*") if is(kind, self.kind) => 1,
            (kind, subtype) if is(kind, self.kind) && is(subtype, self.subtype) => EXACT,
            _ => return None,
        };
        let mut quality = 1_000;
        for part in parts.filter(|part| !part.is_empty()) {
            let at = part.iter().position(|&byte| byte == b'=')?;
            let (name, value) = (trim(&part[..at]), trim(&part[at + 1..]));
            if is(name, b"q") {
                quality = thousandths(value)?;
                // What follows is no part of the type.
                break;
            }
            let (own, own_value) = self.parameter?;
            if !is(name, own) || !is(unquoted(value), own_value) {
                return None;
            }
            if closeness == EXACT {
                closeness = EXACT + 1;
            }
        }
        Some((closeness, quality))
    }
}

/// `0`, `0.25`, `1.000`: at most three digits behind the point, and nothing above 1.
fn thousandths(text: &[u8]) -> Option<Quality> {
    let (whole, rest) = match text {
        [whole @ (b'0' | b'1')] => (whole, &[][..]),
        [whole @ (b'0' | b'1'), b'.', rest @ ..] if rest.len() <= 3 => (whole, rest),
        _ => return None,
    };
    let mut quality = Quality::from(whole - b'0');
    for place in 0..3 {
        let digit = rest.get(place).copied().unwrap_or(b'0');
        quality = quality * 10 + Quality::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    (quality <= 1_000).then_some(quality)
}

/// The pieces between separators that stand in no quotes, without the space around them.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let pieces = text.split(move |&byte| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match byte {
            _ if was_escaped => {}
            b'"' => is_quoted = !is_quoted,
            b'\\' if is_quoted => is_escaped = true,
            _ => return byte == separator && !is_quoted,
        }
        false
    });
    pieces.map(trim)
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inner @ .., b'"'] => inner,
        _ => text,
    }
}
