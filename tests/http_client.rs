//! The address of a client: through proxies that are trusted, and through none that is not.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use proptest::prelude::*;
use tidegate::http::{Client, ClientAddress, Forwarding, OnBroken};

const PROXIES: [&str; 4] = ["10.0.0.0/8", "2001:db8:aaaa::/48", "192.0.2.1/32", "::ffff:172.16.0.0/108"];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn behind(forwarding: Forwarding) -> ClientAddress {
    let proxies = PROXIES.iter().map(|network| network.parse::<IpNet>().unwrap());
    ClientAddress::behind(proxies, forwarding)
}

fn name(forwarding: Forwarding) -> HeaderName {
    match forwarding {
        Forwarding::Forwarded => HeaderName::from_static("forwarded"),
        _ => HeaderName::from_static("x-forwarded-for"),
    }
}

fn fields(forwarding: Forwarding, values: &[impl AsRef<[u8]>]) -> HeaderMap {
    let value = |value: &_| HeaderValue::from_bytes(AsRef::<[u8]>::as_ref(value)).unwrap();
    values.iter().map(|it| (name(forwarding), value(it))).collect()
}

fn assert_found(forwarding: Forwarding, cases: &[(&str, &[&str], Client)]) {
    for (peer, values, expected) in cases {
        let found = behind(forwarding).of(ip(peer), &fields(forwarding, values));
        assert_eq!(found, *expected, "{peer} {values:?}");
    }
}

fn known(text: &str) -> Client {
    Client::Known(ip(text))
}

fn broken(text: &str) -> Client {
    Client::Behind(ip(text))
}

#[test]
fn x_forwarded_for_is_walked_from_the_right() {
    assert_found(
        Forwarding::XForwardedFor,
        &[
            // From whom: an untrusted peer is believed nothing, a trusted one that writes nothing is the client.
            ("198.51.100.7", &["203.0.113.9"], known("198.51.100.7")),
            ("10.0.0.1", &[], known("10.0.0.1")),
            ("10.0.0.1", &["203.0.113.9"], known("203.0.113.9")),
            ("::ffff:10.0.0.1", &["203.0.113.9"], known("203.0.113.9")),
            ("172.16.0.9", &["203.0.113.9"], known("203.0.113.9")),
            // One bit outside of the network that is given as IPv6.
            ("172.32.0.9", &["203.0.113.9"], known("172.32.0.9")),
            ("::ffff:198.51.100.7", &["203.0.113.9"], known("198.51.100.7")),
            // The leftmost is whatever the client wants it to be.
            ("10.0.0.1", &["8.8.8.8, 203.0.113.9"], known("203.0.113.9")),
            ("10.0.0.1", &["10.9.9.9, 203.0.113.9"], known("203.0.113.9")),
            ("10.0.0.1", &["garbage, 203.0.113.9"], known("203.0.113.9")),
            // Past trusted hops, over several fields, whatever space there is.
            ("10.0.0.1", &["8.8.8.8, 203.0.113.9, 10.0.0.2,192.0.2.1"], known("203.0.113.9")),
            ("10.0.0.1", &["8.8.8.8", "203.0.113.9", "10.0.0.2"], known("203.0.113.9")),
            ("10.0.0.1", &["8.8.8.8, 203.0.113.9", " 10.0.0.2 ,\t192.0.2.1 "], known("203.0.113.9")),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], known("10.0.0.3")),
            // IPv6, mapped IPv4, brackets, ports.
            ("2001:db8:aaaa::1", &["2001:db8:1::7"], known("2001:db8:1::7")),
            ("10.0.0.1", &["[2001:db8:1::7]"], known("2001:db8:1::7")),
            ("10.0.0.1", &["[2001:db8:1::7]:8080"], known("2001:db8:1::7")),
            ("10.0.0.1", &["203.0.113.9:65535"], known("203.0.113.9")),
            ("10.0.0.1", &["::ffff:203.0.113.9"], known("203.0.113.9")),
            ("10.0.0.1", &["203.0.113.9, ::ffff:10.0.0.2"], known("203.0.113.9")),
            ("10.0.0.1", &["203.0.113.9, [2001:DB8:AAAA::2]:1"], known("203.0.113.9")),
        ],
    );
}

#[test]
fn what_does_not_parse_breaks_the_chain_there() {
    let odd = [
        "",
        " ",
        "unknown",
        "_hidden",
        "203.0.113",
        "203.0.113.256",
        "203.0.113.09",
        "0xCB.0.113.9",
        "203.0.113.9:",
        "203.0.113.9:65536",
        "203.0.113.9:+80",
        "203.0.113.9:80:80",
        "203.0.113.9 80",
        "203.0.113.0/24",
        "[203.0.113.9]",
        "[2001:db8::7",
        "2001:db8::7]",
        "[2001:db8::7]80",
        "[2001:db8::7]:",
        "[]",
        "fe80::1%eth0",
        "[fe80::1%25eth0]",
        "\"203.0.113.9\"",
        "for=203.0.113.9",
        "example.com",
    ];
    let addresses = behind(Forwarding::XForwardedFor);
    for element in odd {
        for (value, hop) in [
            (element.to_owned(), "10.0.0.1"),
            (format!("203.0.113.9, {element}"), "10.0.0.1"),
            (format!("203.0.113.9, {element}, 10.0.0.2"), "10.0.0.2"),
        ] {
            let headers = fields(Forwarding::XForwardedFor, &[&value]);
            assert_eq!(addresses.of(ip("10.0.0.1"), &headers), broken(hop), "{value:?}");
        }
    }
    let bytes = fields(Forwarding::XForwardedFor, &[b"203.0.113.9, \xff"]);
    assert_eq!(addresses.of(ip("10.0.0.1"), &bytes), broken("10.0.0.1"));
}

#[test]
fn forwarded_is_read_as_rfc_7239_has_it() {
    assert_found(
        Forwarding::Forwarded,
        &[
            ("198.51.100.7", &["for=203.0.113.9"], known("198.51.100.7")),
            ("10.0.0.1", &["for=203.0.113.9"], known("203.0.113.9")),
            ("10.0.0.1", &["For=203.0.113.9;PROTO=https;by=10.0.0.1"], known("203.0.113.9")),
            ("10.0.0.1", &["by=10.0.0.1;fOR=203.0.113.9;;"], known("203.0.113.9")),
            ("10.0.0.1", &["for=203.0.113.9; proto=https"], known("203.0.113.9")),
            ("10.0.0.1", &["for=\"203.0.113.9:4711\""], known("203.0.113.9")),
            ("10.0.0.1", &["for=\"203.0.113.9:_hidden\""], known("203.0.113.9")),
            ("10.0.0.1", &["For=\"[2001:db8:1::7]:4711\""], known("2001:db8:1::7")),
            ("10.0.0.1", &["for=\"[::ffff:203.0.113.9]\""], known("203.0.113.9")),
            ("10.0.0.1", &["for=8.8.8.8, for=203.0.113.9, for=10.0.0.2"], known("203.0.113.9")),
            ("10.0.0.1", &["for=8.8.8.8", "for=203.0.113.9", "for=10.0.0.2"], known("203.0.113.9")),
            // Commas, semicolons and marks inside of quotes divide nothing.
            (
                "10.0.0.1",
                &["for=203.0.113.9;ext=\"a,b;for=1.2.3.4\\\",\", for=10.0.0.2"],
                known("203.0.113.9"),
            ),
            ("10.0.0.1", &["for=203.0.113.9;ext=\"a\\\\\", for=10.0.0.2"], known("203.0.113.9")),
            // A mark that a client leaves open swallows nothing that stands to its right.
            ("10.0.0.1", &["for=\"8.8.8.8, for=203.0.113.9"], known("203.0.113.9")),
            ("10.0.0.1", &["for=8.8.8.8\", for=\"203.0.113.9:1\""], known("203.0.113.9")),
            ("10.0.0.1", &["for=\\, for=\"[2001:db8:1::7]\""], known("2001:db8:1::7")),
            // Nobody known: the chain is broken.
            ("10.0.0.1", &["for=unknown"], broken("10.0.0.1")),
            ("10.0.0.1", &["for=203.0.113.9, for=_SEVKISEK, for=10.0.0.2"], broken("10.0.0.2")),
            ("10.0.0.1", &["for=203.0.113.9, proto=https"], broken("10.0.0.1")),
            ("10.0.0.1", &["for=203.0.113.9;for=198.51.100.7"], broken("10.0.0.1")),
            ("10.0.0.1", &["for=10.0.0.2;For=10.0.0.2"], broken("10.0.0.1")),
            ("10.0.0.1", &["for=203.0.113.9,"], broken("10.0.0.1")),
            ("10.0.0.1", &[""], broken("10.0.0.1")),
            ("10.0.0.1", &["203.0.113.9"], broken("10.0.0.1")),
            ("10.0.0.1", &["for=203.0.113.9:80"], broken("10.0.0.1")),
            ("10.0.0.1", &["for=[2001:db8:1::7]"], broken("10.0.0.1")),
            ("10.0.0.1", &["for=\"2001:db8:1::7\""], broken("10.0.0.1")),
            ("10.0.0.1", &["for=\"[fe80::1%eth0]\""], broken("10.0.0.1")),
            ("10.0.0.1", &["for=\"203.0.113.9"], broken("10.0.0.1")),
            ("10.0.0.1", &["for=\"203.0.113.9\"x"], broken("10.0.0.1")),
            ("10.0.0.1", &["for=\"203.0.113.\\9\""], broken("10.0.0.1")),
            ("10.0.0.1", &["for =203.0.113.9"], broken("10.0.0.1")),
            ("10.0.0.1", &["for= 203.0.113.9"], broken("10.0.0.1")),
            ("10.0.0.1", &["for"], broken("10.0.0.1")),
            ("10.0.0.1", &["=203.0.113.9"], broken("10.0.0.1")),
            ("10.0.0.1", &["for=203.0.113.9;ext"], broken("10.0.0.1")),
            ("10.0.0.1", &["for=203.0.113.9;ext=\"open"], broken("10.0.0.1")),
        ],
    );
}

#[test]
fn the_other_field_is_not_read() {
    let xff = fields(Forwarding::XForwardedFor, &["203.0.113.9"]);
    assert_eq!(behind(Forwarding::Forwarded).of(ip("10.0.0.1"), &xff), known("10.0.0.1"));
    let forwarded = fields(Forwarding::Forwarded, &["for=203.0.113.9"]);
    assert_eq!(behind(Forwarding::XForwardedFor).of(ip("10.0.0.1"), &forwarded), known("10.0.0.1"));
}

#[test]
fn by_itself_it_is_the_connections_other_end() {
    let addresses = ClientAddress::default();
    let headers = fields(Forwarding::XForwardedFor, &["203.0.113.9"]);
    assert_eq!(addresses.of(ip("10.0.0.1"), &headers), known("10.0.0.1"));
    assert_eq!(addresses.of(ip("::ffff:10.0.0.1"), &headers), known("10.0.0.1"));
    let nobody = ClientAddress::behind([], Forwarding::XForwardedFor);
    assert_eq!(nobody.of(ip("10.0.0.1"), &headers), known("10.0.0.1"));
}

#[test]
fn a_hundred_hops_are_walked_and_no_more() {
    for forwarding in [Forwarding::XForwardedFor, Forwarding::Forwarded] {
        let prefix = if forwarding == Forwarding::Forwarded { "for=" } else { "" };
        let hops = |count| format!("{prefix}203.0.113.9{}", format!(",{prefix}10.0.0.2").repeat(count));
        let found = |count| behind(forwarding).of(ip("10.0.0.1"), &fields(forwarding, &[&hops(count)]));
        assert_eq!(found(99), known("203.0.113.9"));
        assert_eq!(found(100), broken("10.0.0.2"));
        assert_eq!(found(10_000), broken("10.0.0.2"));
    }
}

#[test]
fn who_is_behind_a_proxy_is_its_address_or_nobody() {
    let headers = fields(Forwarding::XForwardedFor, &["unknown"]);
    let addresses = behind(Forwarding::XForwardedFor);
    assert_eq!(addresses.address(ip("10.0.0.1"), &headers), Some(ip("10.0.0.1")));
    let addresses = addresses.on_broken(OnBroken::Missing);
    assert_eq!(addresses.address(ip("10.0.0.1"), &headers), None);
    assert_eq!(addresses.address(ip("198.51.100.7"), &headers), Some(ip("198.51.100.7")));
}

/// A network shorter than /96 has IPv6 addresses alone: nobody trusts all of IPv4 by `::/0` without knowing.
#[test]
fn a_short_ipv6_network_trusts_no_ipv4_proxy() {
    let all = ClientAddress::behind(["::/0".parse().unwrap()], Forwarding::XForwardedFor);
    let headers = fields(Forwarding::XForwardedFor, &["203.0.113.9"]);
    assert_eq!(all.of(ip("10.0.0.1"), &headers), known("10.0.0.1"));
    assert_eq!(all.of(ip("2001:db8::1"), &headers), known("203.0.113.9"));
    let mapped = ClientAddress::behind(["::ffff:0:0/96".parse().unwrap()], Forwarding::XForwardedFor);
    assert_eq!(mapped.of(ip("10.0.0.1"), &headers), known("203.0.113.9"));
}

/// A hop as the generator makes it: an address, or nothing that is one.
#[derive(Clone, Debug)]
struct Hop {
    address: Option<IpAddr>,
    text: String,
    begins_field: bool,
}

/// The twin: no text at all, the hops as they were made, from the right.
fn naive(peer: IpAddr, hops: &[Hop]) -> Client {
    let networks: Vec<IpNet> = ["10.0.0.0/8", "2001:db8:aaaa::/48", "192.0.2.1/32", "172.16.0.0/12"]
        .map(|it| it.parse().unwrap())
        .into();
    let is_trusted = |address: IpAddr| networks.iter().any(|network| network.contains(&address));
    let mut known = vec![peer];
    for hop in hops.iter().rev() {
        if !is_trusted(*known.last().unwrap()) {
            break;
        }
        match hop.address {
            Some(address) => known.push(address),
            None => return Client::Behind(*known.last().unwrap()),
        }
    }
    Client::Known(*known.last().unwrap())
}

fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        4 => prop::sample::select(vec!["10.0.0.1", "10.255.0.2", "192.0.2.1", "172.31.0.1", "2001:db8:aaaa::5"]),
        2 => prop::sample::select(vec!["203.0.113.9", "192.0.2.2", "172.32.0.1", "2001:db8:aaab::5", "11.0.0.1"]),
    ]
    .prop_map(ip)
}

fn any_hop(forwarding: Forwarding) -> impl Strategy<Value = Hop> {
    let spelling = (0..5_u8, any::<bool>(), 0..3_u8, any::<bool>());
    (prop::option::weighted(0.93, any_address()), spelling, 0..4_u8).prop_map(
        move |(address, (style, port, space, upper), field)| {
            let mut text = match address {
                None => ["unknown", "_x", "", "1.2.3", "fe80::1%1"][usize::from(style)].to_owned(),
                Some(address) => spelt(address, style, port, forwarding),
            };
            if forwarding == Forwarding::Forwarded {
                let name = if upper { "For" } else { "for" };
                text = match space {
                    0 => format!("{name}={text}"),
                    1 => format!("by=\"_a,\\\"b;for=1.1.1.1\";{name}={text}"),
                    _ => format!("{name}={text};proto=http;host=\"x,y\""),
                };
            }
            Hop { address, text: format!("{}{text} ", " ".repeat(space.into())), begins_field: field == 0 }
        },
    )
}

fn spelt(address: IpAddr, style: u8, port: bool, forwarding: Forwarding) -> String {
    let port = if port { ":8080" } else { "" };
    let mapped = |v4: std::net::Ipv4Addr| format!("[{}]", v4.to_ipv6_mapped());
    let plain = match address {
        IpAddr::V4(v4) if style == 0 => format!("{}{port}", mapped(v4)),
        IpAddr::V4(v4) => format!("{v4}{port}"),
        IpAddr::V6(v6) if style == 1 && forwarding == Forwarding::XForwardedFor => v6.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]{port}"),
    };
    let must_quote = plain.contains([':', '[']);
    let is_quoted = forwarding == Forwarding::Forwarded && (must_quote || style == 2);
    if is_quoted { format!("\"{plain}\"") } else { plain }
}

fn as_fields(forwarding: Forwarding, hops: &[Hop]) -> HeaderMap {
    let mut values: Vec<String> = Vec::new();
    for hop in hops {
        match values.last_mut() {
            Some(value) if !hop.begins_field => *value = format!("{value},{}", hop.text),
            _ => values.push(hop.text.clone()),
        }
    }
    fields(forwarding, &values)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn x_forwarded_for_is_the_twins(
        peer in any_address(), hops in prop::collection::vec(any_hop(Forwarding::XForwardedFor), 0..8),
    ) {
        let headers = as_fields(Forwarding::XForwardedFor, &hops);
        prop_assert_eq!(behind(Forwarding::XForwardedFor).of(peer, &headers), naive(peer, &hops));
    }

    #[test]
    fn forwarded_is_the_twins(
        peer in any_address(), hops in prop::collection::vec(any_hop(Forwarding::Forwarded), 0..8),
    ) {
        let headers = as_fields(Forwarding::Forwarded, &hops);
        prop_assert_eq!(behind(Forwarding::Forwarded).of(peer, &headers), naive(peer, &hops));
    }

    /// Whatever a client writes, what the proxies have added to its right decides.
    #[test]
    fn what_a_client_writes_changes_nothing(
        junk in prop::collection::vec(prop::sample::select(b"\",;=\\for1.0[]: %_".to_vec()), 0..40),
        quoted in any::<bool>(),
    ) {
        for forwarding in [Forwarding::XForwardedFor, Forwarding::Forwarded] {
            let own = match forwarding {
                Forwarding::Forwarded if quoted => ", for=\"203.0.113.9:80\", for=\"[2001:db8:aaaa::2]\"",
                Forwarding::Forwarded => ", for=203.0.113.9;by=\"_a,b\" ,for=10.0.0.2",
                _ => ", 203.0.113.9, 10.0.0.2",
            };
            let value = [&junk, own.as_bytes()].concat();
            let found = behind(forwarding).of(ip("10.0.0.1"), &fields(forwarding, &[value]));
            prop_assert_eq!(found, known("203.0.113.9"));
        }
    }

    #[test]
    fn random_bytes_never_panic(
        values in prop::collection::vec(prop::collection::vec(prop_oneof![32..127_u8, 128..=255_u8, Just(b'\t')], 0..60), 0..4),
        peer in any_address(),
    ) {
        for forwarding in [Forwarding::XForwardedFor, Forwarding::Forwarded] {
            let found = behind(forwarding).of(peer, &fields(forwarding, &values));
            let (Client::Known(address) | Client::Behind(address)) = found else { unreachable!() };
            prop_assert_eq!(address, address.to_canonical());
        }
    }
}
