//! Keys by the table of the domain, and what tells two of them apart.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::*;
use crate::policy::entity::ALL;
use crate::policy::{Entity, EntityType};

fn label(parts: &[KeyPart], request: &Request<'_>) -> String {
    Key::new(parts, request, &Hashing::seeded(1)).to_string()
}

fn hash(parts: &[KeyPart], request: &Request<'_>) -> u64 {
    let hashing = Hashing::seeded(1);
    hashing.of(&Key::new(parts, request, &hashing))
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn the_four_cases_come_out_exactly() {
    let target = Entity::new(EntityType::TitlePlayerAccount, "25254A5AC4AEBA55");
    let master = |id| Entity::new(EntityType::MasterPlayerAccount, id);
    let known = Request::new("x").authenticated(true).client_ip(address("10.0.0.1"));
    for (request, key) in [
        (Request::new("login").client_ip(address("23.192.228.80")), "23.192.228.80"),
        (known.caller(master("408C36ADC841C0CD")), "408C36ADC841C0CD"),
        (known.caller(master("D5491A06D715E817")).target(target), "D5491A06D715E817"),
        (known.caller(Entity::new(EntityType::Title, "123")).target(target), "25254A5AC4AEBA55"),
    ] {
        assert_eq!(label(&[KeyPart::Entity], &request), key);
    }
}

/// Every type of caller, with and without a target, authenticated or not.
#[test]
fn whom_a_call_is_counted_against() {
    for kind in ALL {
        for target in [None, Some(Entity::new(EntityType::Character, "target"))] {
            for is_authenticated in [false, true] {
                let request = Request { target, ..Request::new("x") };
                let request = request.caller(Entity::new(kind, "caller")).authenticated(is_authenticated);
                let request = request.client_ip(address("192.0.2.1"));
                let is_player = matches!(
                    kind,
                    EntityType::MasterPlayerAccount | EntityType::TitlePlayerAccount | EntityType::Character
                );
                let expected = match (is_authenticated, target.is_some(), is_player) {
                    (false, _, _) => "192.0.2.1",
                    (true, false, _) | (true, true, true) => "caller",
                    (true, true, false) => "target",
                };
                assert_eq!(label(&[KeyPart::Entity], &request), expected, "{request:?}");
            }
        }
    }
    let nobody = Request::new("x").target(Entity::new(EntityType::Character, "target"));
    assert_eq!(label(&[KeyPart::Entity], &nobody), "-");
    assert_eq!(label(&[KeyPart::Entity], &nobody.authenticated(true)), "-");
}

/// Two requests have one key exactly if their values are the same, part by part.
#[test]
fn keys_meet_only_if_all_parts_are_equal() {
    let parts = [KeyPart::Title, KeyPart::User, KeyPart::Namespace];
    let values = [None, Some(""), Some("a"), Some("ab"), Some("b"), Some("bc"), Some("c"), Some("abc")];
    let mut hashes = HashSet::new();
    for title in values {
        for user in values {
            for namespace in values {
                let caller = user.map(|id| Entity::new(EntityType::Title, id));
                let request = Request { title, namespace, caller, ..Request::new("x") };
                hashes.insert(hash(&parts, &request));
                assert_eq!(hash(&parts, &request), hash(&parts, &Request { api: "y", cost: 9, ..request }));
            }
        }
    }
    assert_eq!(hashes.len(), 8 * 8 * 8);
}

/// The same value in another kind of part is another key, and so is the text of an address beside the address.
#[test]
fn kinds_of_parts_do_not_meet() {
    let attributes = [("a", "7.7.7.7")];
    let request = Request::new("x").title("7.7.7.7").namespace("7.7.7.7").user("7.7.7.7");
    let request = request.attributes(&attributes).client_ip(address("7.7.7.7"));
    let custom: CustomKey = Arc::new(|request, state| state.write(request.title.unwrap_or("").as_bytes()));
    let parts = || {
        [
            KeyPart::Title,
            KeyPart::Namespace,
            KeyPart::User,
            KeyPart::Entity,
            KeyPart::Attribute("a".to_owned()),
            KeyPart::ClientIp { v4_bits: 32, v6_bits: 128 },
            KeyPart::Custom("custom", Arc::clone(&custom)),
        ]
    };
    let none = Request::new("x");
    let mut hashes: HashSet<u64> = parts().into_iter().map(|part| hash(&[part], &request)).collect();
    hashes.extend(parts().into_iter().map(|part| hash(&[part], &none)));
    hashes.insert(hash(&[KeyPart::Entity], &request.authenticated(false)));
    assert_eq!(hashes.len(), 2 * parts().len() + 1);
}

#[test]
fn what_a_function_writes_stays_in_its_part() {
    // It writes the title as it is: without a length it could run into the next part.
    let custom: CustomKey = Arc::new(|request, state| state.write(request.title.unwrap_or("").as_bytes()));
    let parts = [KeyPart::Custom("raw", Arc::clone(&custom)), KeyPart::Custom("raw", custom)];
    let other = [("ab", "c"), ("a", "bc")].map(|(title, user)| {
        let second: CustomKey =
            Arc::new(|request, state| state.write(request.caller.map_or("", |c| c.id).as_bytes()));
        let parts = [parts[0].clone(), KeyPart::Custom("second", second)];
        hash(&parts, &Request::new("x").title(title).user(user))
    });
    assert_ne!(other[0], other[1]);
    assert_eq!(label(&parts, &Request::new("x").title("secret")), "raw/raw");
}

#[test]
fn addresses_are_networks() {
    let part = |v4_bits, v6_bits| [KeyPart::ClientIp { v4_bits, v6_bits }];
    let from = |text: &str| Request::new("x").client_ip(address(text));
    for (bits, text, key) in [
        ((32, 64), "192.0.2.77", "192.0.2.77"),
        ((24, 64), "192.0.2.77", "192.0.2.0/24"),
        ((1, 64), "192.0.2.77", "128.0.0.0/1"),
        ((24, 64), "::ffff:192.0.2.77", "192.0.2.0/24"),
        ((32, 64), "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ((32, 128), "2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6"),
        ((32, 33), "2001:db8:ffff::", "2001:db8:8000::/33"),
    ] {
        assert_eq!(label(&part(bits.0, bits.1), &from(text)), key);
    }
    assert_eq!(label(&part(32, 64), &Request::new("x")), "-");
    assert_eq!(label(&[KeyPart::Entity], &from("2001:db8:1:2:3:4:5:6")), "2001:db8:1:2::/64");
    let same = |bits: (u8, u8), one: &str, other: &str| {
        hash(&part(bits.0, bits.1), &from(one)) == hash(&part(bits.0, bits.1), &from(other))
    };
    assert!(same((24, 64), "192.0.2.1", "192.0.2.255") && !same((24, 64), "192.0.2.1", "192.0.3.1"));
    assert!(same((32, 64), "192.0.2.1", "::ffff:192.0.2.1"));
    assert!(same((32, 64), "2001:db8::1", "2001:db8::2") && !same((32, 128), "2001:db8::1", "2001:db8::2"));
    // An IPv4 address and the IPv6 one of the same bits.
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::from(5)), IpAddr::V6(Ipv6Addr::from(5 << 96)));
    let of = |address| hash(&part(32, 32), &Request::new("x").client_ip(address));
    assert_ne!(of(v4), of(v6));
}

#[test]
fn no_parts_are_one_key() {
    assert_eq!(hash(&[], &Request::new("x").user("a")), hash(&[], &Request::new("y")));
    assert_eq!(label(&[], &Request::new("x")), "");
}

#[test]
fn the_same_part_is_known_again() {
    let custom: CustomKey = Arc::new(|_, _| {});
    let other: CustomKey = Arc::new(|_, _| {});
    let parts = [
        KeyPart::Title,
        KeyPart::Entity,
        KeyPart::ClientIp { v4_bits: 32, v6_bits: 64 },
        KeyPart::ClientIp { v4_bits: 32, v6_bits: 56 },
        KeyPart::ClientIp { v4_bits: 24, v6_bits: 64 },
        KeyPart::Attribute("a".to_owned()),
        KeyPart::Attribute("b".to_owned()),
        KeyPart::Custom("a", Arc::clone(&custom)),
        KeyPart::Custom("b", custom),
        KeyPart::Custom("a", other),
    ];
    for (at, one) in parts.iter().enumerate() {
        for (number, other) in parts.iter().enumerate() {
            assert_eq!(is_same(one, other), at == number, "{one:?}, {other:?}");
        }
    }
}
