//! Whom a request is counted against.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The client of one log line, as the limiter sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClientKey {
    /// An IPv4 address; an IPv4 address mapped into IPv6 is the same client and lands here too.
    V4(Ipv4Addr),
    /// The first 64 bits of an IPv6 address. A /64 is what one customer is given, so its addresses are
    /// one client: counted singly, one customer would have 2^64 quotas.
    V6Prefix(u64),
    /// Anything that is no address, as it stands.
    Host(Box<str>),
}

impl ClientKey {
    /// Reads the client field of a log line. Every text is some key: what is no address is a host name.
    pub fn from_client(client: &str) -> Self {
        match client.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => ClientKey::V4(address),
            Ok(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
                Some(address) => ClientKey::V4(address),
                None => ClientKey::V6Prefix((address.to_bits() >> 64) as u64),
            },
            Err(_) => ClientKey::Host(client.into()),
        }
    }
}

impl fmt::Display for ClientKey {
    /// Safe to send to a terminal: a log is written by strangers, and control characters are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientKey::V4(address) => address.fmt(f),
            ClientKey::V6Prefix(prefix) => {
                let address = Ipv6Addr::from_bits(u128::from(*prefix) << 64);
                write!(f, "{address}/64")
            }
            ClientKey::Host(name) => f.write_str(&printable(name)),
        }
    }
}

/// `text` with everything that could steer a terminal escaped.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // The characters that turn the direction of writing are no control characters, but hide text.
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || turns {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Gives every distinct key a small number, in the order of first appearance, so that an event is small.
#[derive(Debug, Default)]
pub struct Interner {
    ids: HashMap<ClientKey, u32>,
    keys: Vec<ClientKey>,
}

impl Interner {
    /// The number of `key`, a new one if it was not seen before. `None` when 2^32 keys are known.
    pub fn id(&mut self, key: ClientKey) -> Option<u32> {
        if let Some(id) = self.ids.get(&key) {
            return Some(*id);
        }
        let id = u32::try_from(self.keys.len()).ok()?;
        self.keys.push(key.clone());
        self.ids.insert(key, id);
        Some(id)
    }

    /// All keys; a key's number is its index.
    pub fn into_keys(self) -> Vec<ClientKey> {
        self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_addresses() {
        let cases = [
            ("192.0.2.7", "192.0.2.7"),
            ("2001:db8:0:1::5", "2001:db8:0:1::/64"),
            ("2001:DB8:0:1:ffff::", "2001:db8:0:1::/64"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("::1", "::/64"),
            ("reader.example.net", "reader.example.net"),
            ("Reader.example.net", "Reader.example.net"),
            ("192.0.2.256", "192.0.2.256"),
            ("192.0.2.07", "192.0.2.07"),
            ("-", "-"),
        ];
        for (client, shown) in cases {
            assert_eq!(ClientKey::from_client(client).to_string(), shown, "{client}");
        }
    }

    #[test]
    fn neighbours_in_one_prefix_are_one_client() {
        let first = ClientKey::from_client("2001:db8:0:1::1");
        assert_eq!(first, ClientKey::from_client("2001:db8:0:1:8000::"));
        assert_ne!(first, ClientKey::from_client("2001:db8:0:2::1"));
    }

    #[test]
    fn a_host_name_cannot_steer_the_terminal() {
        let key = ClientKey::from_client("evil\u{1b}[2J\u{202e}");
        assert_eq!(key.to_string(), "evil\\u{1b}[2J\\u{202e}");
    }

    #[test]
    fn numbers_follow_first_appearance() {
        let mut interner = Interner::default();
        let ids: Vec<_> =
            ["b", "a", "b", "c"].map(|name| interner.id(ClientKey::from_client(name)).unwrap()).into();
        assert_eq!(ids, [0, 1, 0, 2]);
        let names: Vec<_> = interner.into_keys().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["b", "a", "c"]);
    }
}
