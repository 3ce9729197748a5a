//! Keys, and the keys of overrides.

use std::net::IpAddr;

use super::fields::{KEY_PART, KEY_PARTS, PREFIXES};
use super::node::{Node, Value, quoted};
use super::problem::Problem;
use super::reader::{Fields, Reader};
use crate::policy::KeyPart;

/// All of an IPv4 address, and the usual network of one client of IPv6.
const CLIENT: KeyPart = KeyPart::ClientIp { v4_bits: 32, v6_bits: 64 };

/// What a key without parts is called.
const GLOBAL: &str = "global";
const ATTRIBUTE: &str = "attribute:";

impl Reader<'_> {
    pub(super) fn key(&mut self, rule: &Fields<'_>) -> Vec<KeyPart> {
        let Some(given) = rule.get("key") else { return Vec::new() };
        let path = rule.path("key");
        let parts = match &given.node.value {
            Value::Text(text) if text == GLOBAL => return Vec::new(),
            Value::Text(text) => self.parts(given.node, text, &path),
            Value::Table(_) => self.part_table(given.node, &path).into_iter().collect(),
            Value::List(items) if !items.is_empty() => {
                let numbered = items.iter().enumerate();
                numbered.flat_map(|(at, item)| self.parts_of(item, &format!("{path}[{}]", at + 1))).collect()
            }
            _ => {
                self.wrong(given.node, &path, given.shape());
                Vec::new()
            }
        };
        for (at, part) in parts.iter().enumerate() {
            let name = format!("{part:?}");
            if parts[..at].iter().any(|before| format!("{before:?}") == name) {
                self.report(
                    given.node.at,
                    Problem::new(&path, format!("{path} has {name} twice")).with_found(name),
                );
            }
        }
        parts
    }

    fn parts_of(&mut self, node: &Node, path: &str) -> Vec<KeyPart> {
        match &node.value {
            Value::Text(text) => self.parts(node, text, path),
            _ => self.part_table(node, path).into_iter().collect(),
        }
    }

    /// Parts with `+` between them.
    fn parts(&mut self, node: &Node, text: &str, path: &str) -> Vec<KeyPart> {
        text.split('+').filter_map(|text| self.part(node, text.trim(), path)).collect()
    }

    fn part(&mut self, node: &Node, text: &str, path: &str) -> Option<KeyPart> {
        let made = match text {
            "user" => Some(KeyPart::User),
            "title" => Some(KeyPart::Title),
            "namespace" => Some(KeyPart::Namespace),
            "entity" => Some(KeyPart::Entity),
            "client_ip" => Some(CLIENT),
            text => match (text.strip_prefix(ATTRIBUTE), text.strip_prefix("client_ip/")) {
                (Some(name), _) if !name.is_empty() => Some(KeyPart::Attribute(name.to_owned())),
                (_, Some(bits)) => client_ip(bits),
                _ => None,
            },
        };
        if made.is_none() {
            self.report(node.at, no_part(text, path));
        }
        made
    }

    fn part_table(&mut self, node: &Node, path: &str) -> Option<KeyPart> {
        let fields = self.fields(node, path, &KEY_PART)?;
        match (fields.get("client_ip"), fields.get("attribute")) {
            (Some(given), None) => {
                let prefixes = self.fields(given.node, &fields.path("client_ip"), &PREFIXES)?;
                let mut bits = |name, whole| {
                    if prefixes.get(name).is_none() { Some(whole) } else { self.count(&prefixes, name) }
                };
                let (v4_bits, v6_bits) = (bits("v4_bits", 32)?, bits("v6_bits", 64)?);
                let (v4_bits, v6_bits) = (u8::try_from(v4_bits).ok()?, u8::try_from(v6_bits).ok()?);
                Some(KeyPart::ClientIp { v4_bits, v6_bits })
            }
            (None, Some(given)) => {
                let name = self.text(&fields, "attribute")?;
                if name.is_empty() {
                    self.not_allowed(given.node, &fields.path("attribute"), "the name of an attribute", None);
                }
                Some(KeyPart::Attribute(name))
            }
            (None, None) => {
                self.missing(fields.at, path, "a table of either client_ip or attribute");
                None
            }
            (Some(_), Some(second)) => {
                let problem = Problem::new(path, format!("{path} has both client_ip and attribute"))
                    .with_allowed("several parts are a list of such tables");
                self.report(second.at, problem);
                None
            }
        }
    }

    /// The key of an override of a rule with these parts; the second form is the same for two spellings of one key.
    pub(super) fn override_key(&mut self, fields: &Fields<'_>, parts: &[KeyPart]) -> (Vec<String>, String) {
        let Some(given) = fields.get("key") else { return (Vec::new(), String::new()) };
        let path = fields.path("key");
        let texts = self.texts_in(given.node, &path, given.shape());
        let wanted: Vec<String> = parts.iter().map(|part| format!("{part:?}")).collect();
        if texts.len() != parts.len() {
            let allowed = if parts.is_empty() {
                "a rule whose key is \"global\" has no keys to override".to_owned()
            } else {
                format!("it must be a list of {}: {}", parts.len(), wanted.join(", "))
            };
            let says = format!("{path} has {} part{}", texts.len(), if texts.len() == 1 { "" } else { "s" });
            self.report(
                given.node.at,
                Problem::new(&path, says).with_found(given.node.found()).with_allowed(allowed),
            );
            return (Vec::new(), String::new());
        }
        let mut plain = Vec::new();
        for ((node, text), part) in texts.iter().zip(parts) {
            let same = match *part {
                KeyPart::ClientIp { v4_bits, v6_bits } => network(text, v4_bits, v6_bits),
                _ => Some(text.clone()),
            };
            if same.is_none() {
                self.not_allowed(node, &path, &network_wanted(part), None);
            }
            plain.push(same.unwrap_or_default());
        }
        (texts.into_iter().map(|(_, text)| text).collect(), format!("{plain:?}"))
    }
}

fn no_part(text: &str, path: &str) -> Problem {
    let problem = Problem::new(path, format!("{path} has {}", quoted(text))).with_found(quoted(text));
    if text == GLOBAL {
        return problem.with_allowed("\"global\" stands alone: it is the key that has no parts");
    }
    if text.starts_with("client_ip") {
        return problem.with_allowed(
            "it must be \"client_ip\", or \"client_ip/24/48\" with the leading bits of IPv4 (0 to 32) and IPv6 (0 to 128)",
        );
    }
    let nearest = super::reader::nearest(text, &KEY_PARTS);
    problem.with_nearest(nearest).with_allowed(
        "it must be user, title, namespace, client_ip, client_ip/24/48, entity or attribute:NAME, \
         several with \"+\" between them, or \"global\"",
    )
}

/// What stands after `client_ip/`.
fn client_ip(bits: &str) -> Option<KeyPart> {
    let (v4, v6) = bits.split_once('/')?;
    let number =
        |text: &str, most: u8| text.parse().ok().filter(|&bits: &u8| bits <= most && !text.starts_with('+'));
    Some(KeyPart::ClientIp { v4_bits: number(v4, 32)?, v6_bits: number(v6, 128)? })
}

fn network_wanted(part: &KeyPart) -> String {
    match part {
        KeyPart::ClientIp { v4_bits, v6_bits } => {
            format!("an address, as \"192.0.2.7\", or its network of /{v4_bits} (IPv6: /{v6_bits})")
        }
        _ => String::new(),
    }
}

/// The network of so many bits that a text names by an address in it, with its bits or without.
fn network(text: &str, v4_bits: u8, v6_bits: u8) -> Option<String> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address = address.parse::<IpAddr>().ok()?.to_canonical();
    let (wanted, low) = match address {
        IpAddr::V4(address) => {
            let kept = u32::MAX.checked_shl(32 - u32::from(v4_bits.min(32))).unwrap_or(0);
            (v4_bits, IpAddr::V4((u32::from(address) & kept).into()))
        }
        IpAddr::V6(address) => {
            let kept = u128::MAX.checked_shl(128 - u32::from(v6_bits.min(128))).unwrap_or(0);
            (v6_bits, IpAddr::V6((u128::from(address) & kept).into()))
        }
    };
    (bits.is_none_or(|bits| bits == wanted)).then(|| low.to_string())
}

/// The key as a file says it; none if only code can.
pub(super) fn key_node(parts: &[KeyPart]) -> Option<Node> {
    if parts.is_empty() {
        return Some(Node::text(GLOBAL));
    }
    let is_plain = |part: &KeyPart| match part {
        KeyPart::Attribute(name) => !name.contains('+') && name.trim() == name,
        _ => true,
    };
    let text = |part: &KeyPart| match part {
        KeyPart::Custom(..) => None,
        KeyPart::ClientIp { v4_bits: 32, v6_bits: 64 } => Some("client_ip".to_owned()),
        part => Some(format!("{part:?}")),
    };
    let texts: Vec<String> = parts.iter().map(text).collect::<Option<_>>()?;
    if parts.iter().all(is_plain) {
        return Some(Node::text(texts.join("+")));
    }
    let node = |(part, text): (&KeyPart, String)| match part {
        KeyPart::Attribute(name) => super::write::table([("attribute", Some(Node::text(name.clone())))]),
        _ => Node::text(text),
    };
    Some(Node::new(Value::List(parts.iter().zip(texts).map(node).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_named_by_any_address_in_it() {
        for text in ["192.0.2.0/24", "192.0.2.77", "192.0.2.77/24", "::ffff:192.0.2.1"] {
            assert_eq!(network(text, 24, 64).as_deref(), Some("192.0.2.0"), "{text}");
        }
        assert_eq!(network("2001:db8:1:2::7", 32, 48).as_deref(), Some("2001:db8:1::"));
        assert_eq!(network("192.0.2.7", 0, 0).as_deref(), Some("0.0.0.0"));
        assert_eq!(network("192.0.2.7", 32, 128).as_deref(), Some("192.0.2.7"));
        for text in ["192.0.2.0/25", "192.0.2", "", "/24", "192.0.2.0/", "2001:db8::/24", "host"] {
            assert_eq!(network(text, 24, 64), None, "{text}");
        }
    }
}
