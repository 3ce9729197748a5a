//! Composed keys: what a request is counted under, hashed part by part and never put together in memory.
//!
//! # Why two keys do not meet
//!
//! Each part is hashed as a head of 64 bits and then its value. The head holds the kind of part, the kind of value (an
//! absent one is a kind of its own) and the value's length, so the whole can be read back from the front: `("ab", "c")`
//! and `("a", "bc")` differ in their first heads, an absent field and an empty one in their kinds. What a function of the
//! user's writes has no length beforehand: it is hashed by itself, with seeds that nobody knows, and its 64 bits are the
//! value.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use super::request::Request;
use super::rule::{CustomKey, KeyPart};
use crate::table::Hashing;

/// Bits of an IPv6 address that an unauthenticated caller is known by: the usual network of one client, who could
/// otherwise take another address for each request.
const ENTITY_V6_BITS: u8 = 64;

/// The key of a request under one rule. Given to a limiter as it is.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    parts: &'a [KeyPart],
    request: &'a Request<'a>,
    /// What hashes custom parts.
    digests: &'a Hashing,
}

/// The value of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Value<'a> {
    /// The request lacks it. All requests that do are counted together.
    Absent,
    Text(&'a str),
    /// A network: its first address and the number of leading bits that are its own.
    V4(u32, u8),
    V6(u128, u8),
    Digest(u64),
}

impl<'a> Key<'a> {
    pub(super) fn new(parts: &'a [KeyPart], request: &'a Request<'a>, digests: &'a Hashing) -> Self {
        Self { parts, request, digests }
    }

    fn value(&self, part: &'a KeyPart) -> Value<'a> {
        let request = self.request;
        match part {
            KeyPart::Title => text(request.title),
            KeyPart::Namespace => text(request.namespace),
            KeyPart::User => text(request.caller.map(|caller| caller.id)),
            KeyPart::ClientIp { v4_bits, v6_bits } => network(request.client_ip, *v4_bits, *v6_bits),
            KeyPart::Entity => entity(request),
            KeyPart::Attribute(name) => text(request.attribute(name)),
            KeyPart::Custom(_, function) => Value::Digest(self.digests.of(&Called { function, request })),
        }
    }
}

fn text(text: Option<&str>) -> Value<'_> {
    text.map_or(Value::Absent, Value::Text)
}

/// The network of an address; one that stands for an IPv4 address in IPv6 is that IPv4 address.
fn network(address: Option<IpAddr>, v4_bits: u8, v6_bits: u8) -> Value<'static> {
    match address.map(|address| address.to_canonical()) {
        None => Value::Absent,
        Some(IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(v4_bits.into())).unwrap_or(0);
            Value::V4(address.to_bits() & mask, v4_bits)
        }
        Some(IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(v6_bits.into())).unwrap_or(0);
            Value::V6(address.to_bits() & mask, v6_bits)
        }
    }
}

/// Whom a game back end counts a call against. Who is authenticated and yet has no caller is nobody, whatever the target:
/// a target can be chosen anew for each request.
fn entity<'a>(request: &Request<'a>) -> Value<'a> {
    if !request.is_authenticated {
        return network(request.client_ip, 32, ENTITY_V6_BITS);
    }
    let Some(caller) = request.caller else { return Value::Absent };
    match request.target {
        Some(target) if !caller.kind.is_player() => Value::Text(target.id),
        _ => Value::Text(caller.id),
    }
}

impl Value<'_> {
    /// What tells values apart before the value itself: its kind, and its length.
    fn head(&self) -> u64 {
        match *self {
            Self::Absent => 0,
            Self::Text(text) => 1 | (text.len() as u64) << 8,
            Self::V4(_, bits) => 2 | u64::from(bits) << 8,
            Self::V6(_, bits) => 3 | u64::from(bits) << 8,
            Self::Digest(_) => 4,
        }
    }
}

impl Value<'_> {
    #[inline]
    fn hash_as<H: Hasher>(&self, part: &KeyPart, state: &mut H) {
        // Lengths stay below 2^48: no text is as long as an address space.
        state.write_u64(self.head() << 8 | u64::from(kind(part)));
        match *self {
            Value::Absent => {}
            Value::Text(text) => state.write(text.as_bytes()),
            Value::V4(address, _) => state.write_u32(address),
            Value::V6(address, _) => state.write_u128(address),
            Value::Digest(digest) => state.write_u64(digest),
        }
    }
}

impl Hash for Key<'_> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        for part in self.parts {
            self.value(part).hash_as(part, state);
        }
    }
}

/// A key that a policy names, rather than a request has: part by part, as text. It hashes as that of a request does.
pub(super) struct Named<'a> {
    parts: &'a [KeyPart],
    values: Vec<Value<'a>>,
}

impl<'a> Named<'a> {
    /// The key of these texts. The error is the number of the text that names none, and what would.
    pub(super) fn new(parts: &'a [KeyPart], texts: &'a [String]) -> Result<Self, (usize, String)> {
        let of = |(at, (part, text)): (usize, (&KeyPart, &'a String))| {
            named(part, text).map_err(|allowed| (at, allowed))
        };
        let values = parts.iter().zip(texts).enumerate().map(of).collect::<Result<_, _>>()?;
        Ok(Self { parts, values })
    }
}

impl<'a> Named<'a> {
    /// What tells it from other keys of the same parts.
    pub(super) fn values(self) -> Vec<impl Hash + Eq + use<'a>> {
        self.values
    }
}

impl Hash for Named<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts.iter().zip(&self.values).for_each(|(part, value)| value.hash_as(part, state));
    }
}

/// What a text stands for in the place of a part; the error tells what it may be.
fn named<'a>(part: &KeyPart, text: &'a str) -> Result<Value<'a>, String> {
    match part {
        KeyPart::ClientIp { v4_bits, v6_bits } => {
            let (address, bits) = text.split_once('/').map_or((text, None), |(at, bits)| (at, Some(bits)));
            let address = address.parse::<IpAddr>().map_err(|_| "an address or a network".to_owned())?;
            let own_bits = if address.to_canonical().is_ipv4() { v4_bits } else { v6_bits };
            if bits.is_some_and(|bits| bits.parse() != Ok(*own_bits)) {
                return Err(format!("an address, or a network of {own_bits} bits as the rule counts by"));
            }
            Ok(network(Some(address), *v4_bits, *v6_bits))
        }
        // The address of a caller who is not authenticated, or an id.
        KeyPart::Entity => {
            let (address, bits) = text.split_once('/').map_or((text, None), |(at, bits)| (at, Some(bits)));
            let Ok(address) = address.parse::<IpAddr>() else { return Ok(Value::Text(text)) };
            let own_bits = if address.to_canonical().is_ipv4() { 32 } else { ENTITY_V6_BITS };
            match bits.is_none_or(|bits| bits.parse() == Ok(own_bits)) {
                true => Ok(network(Some(address), 32, ENTITY_V6_BITS)),
                false => Err(format!("an id, an address, or a network of {own_bits} bits")),
            }
        }
        KeyPart::Custom(name, _) => {
            Err(format!("of a rule without {name}: what a function makes has no name"))
        }
        _ => Ok(Value::Text(text)),
    }
}

/// The number of a kind of part. Two rules never share a limiter, so two attributes may share theirs.
fn kind(part: &KeyPart) -> u8 {
    match part {
        KeyPart::Title => 1,
        KeyPart::Namespace => 2,
        KeyPart::User => 3,
        KeyPart::ClientIp { .. } => 4,
        KeyPart::Entity => 5,
        KeyPart::Attribute(_) => 6,
        KeyPart::Custom(..) => 7,
    }
}

/// Whether two parts make the same key of every request; of functions only that they are one.
pub(super) fn is_same(one: &KeyPart, other: &KeyPart) -> bool {
    match (one, other) {
        (KeyPart::ClientIp { v4_bits, v6_bits }, KeyPart::ClientIp { v4_bits: v4, v6_bits: v6 }) => {
            (v4_bits, v6_bits) == (v4, v6)
        }
        (KeyPart::Attribute(one), KeyPart::Attribute(other)) => one == other,
        (KeyPart::Custom(one, function), KeyPart::Custom(other, other_function)) => {
            one == other && std::sync::Arc::ptr_eq(function, other_function)
        }
        _ => kind(one) == kind(other),
    }
}

/// What a function of the user's makes of a request, as something that hashes.
struct Called<'a> {
    function: &'a CustomKey,
    request: &'a Request<'a>,
}

impl Hash for Called<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.function)(self.request, state);
    }
}

/// The key as text, for messages: its parts between slashes, `-` for one that is absent, a name for a custom one.
impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts.iter().enumerate() {
            if at > 0 {
                f.write_str("/")?;
            }
            // Its function is not called: what it makes is not shown, and a text may be made where nobody else's code may run.
            if let KeyPart::Custom(name, _) = part {
                f.write_str(name)?;
                continue;
            }
            match (part, self.value(part)) {
                (_, Value::Absent | Value::Digest(_)) => f.write_str("-")?,
                (_, Value::Text(text)) => f.write_str(text)?,
                (_, Value::V4(address, 32)) => write!(f, "{}", std::net::Ipv4Addr::from(address))?,
                (_, Value::V4(address, bits)) => write!(f, "{}/{bits}", std::net::Ipv4Addr::from(address))?,
                (_, Value::V6(address, 128)) => write!(f, "{}", std::net::Ipv6Addr::from(address))?,
                (_, Value::V6(address, bits)) => write!(f, "{}/{bits}", std::net::Ipv6Addr::from(address))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
