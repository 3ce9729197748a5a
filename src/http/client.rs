//! Who calls: the address of the client, through proxies that are trusted.

use std::net::IpAddr;
use std::sync::Arc;

use http::header::{FORWARDED, HeaderName};
use http::{HeaderMap, HeaderValue};
pub use ipnet::IpNet;
use ipnet::Ipv4Net;

use super::forwarded;

/// The most addresses that are read of one request. A chain that is longer is broken there.
pub(super) const HOPS_MAX: usize = 100;

/// Which field of a request tells the addresses that it came through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forwarding {
    /// `X-Forwarded-For`: addresses with commas between, IPv6 ones perhaps in brackets, each perhaps with a port.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239): the parameter `for` of each element.
    Forwarded,
}

impl Forwarding {
    fn field(self) -> HeaderName {
        match self {
            Self::XForwardedFor => HeaderName::from_static("x-forwarded-for"),
            Self::Forwarded => FORWARDED,
        }
    }
}

/// What stands for the client of whom nobody knows more than the proxy that it came through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnBroken {
    /// The address of the last hop that is known: all such clients of one proxy have one count.
    #[default]
    Hop,
    /// Nothing: the address is a part that the request lacks, and [`OnMissing`](super::OnMissing) says what becomes of it.
    Missing,
}

/// How the address of a client is found.
///
/// By itself it is the address of the connection's other end, and no field of the request is believed. Behind proxies, name
/// them all, and the field that they write:
///
/// ```
/// use std::net::IpAddr;
/// use tidegate::http::{Client, ClientAddress, Forwarding};
///
/// let addresses = ClientAddress::behind(["10.0.0.0/8".parse()?], Forwarding::XForwardedFor);
/// let mut headers = http::HeaderMap::new();
/// // The client wrote 8.8.8.8 itself; the outer proxy added whom it talked to.
/// headers.insert("x-forwarded-for", "8.8.8.8, 198.51.100.7, 10.0.0.2".parse()?);
/// let of = |peer: &str| addresses.of(peer.parse().unwrap(), &headers);
/// assert_eq!(of("10.0.0.1"), Client::Known("198.51.100.7".parse()?));
/// // Who is no proxy is believed nothing.
/// assert_eq!(of("192.0.2.9"), Client::Known("192.0.2.9".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # How the chain is walked
///
/// From the connection's other end to the left through the field, of which several are one list in order. Each address says
/// whom the hop to its right was talked to by, so it is worth what that hop is worth: the walk goes on from trusted proxies only,
/// and ends at the first address that is none, which is the client's. If all are trusted, it is the leftmost; if a proxy has written
/// nothing, the proxy. Taking the leftmost in any case would let a client name itself as it likes.
///
/// An element that is no address breaks the chain: `unknown`, `_hidden`, an empty one, one with a zone (`fe80::1%eth0`) or a port
/// above 65535, anything else that is not as the field's rules say, and what is beyond 100 elements. The client is then
/// [behind](Client::Behind) the last hop that is known.
///
/// IPv4 addresses written as IPv6 (`::ffff:192.0.2.7`) are the IPv4 ones, here and in the networks of proxies, of which one that is
/// shorter than `/96` has IPv6 addresses alone. An IPv6 address is told whole: the keys of a policy group them by their
/// network (`client_ip` by the /64, `client_ip/32/48` by the /48).
///
/// Not supported: ranges of proxies that are not networks, the PROXY protocol (put what it tells into
/// [`PeerAddress`](super::PeerAddress)), and fields such as `X-Real-IP` and `CF-Connecting-IP` (write an [`Extract`](super::Extract)).
#[derive(Clone, Debug, Default)]
pub struct ClientAddress {
    proxies: Option<Arc<[IpNet]>>,
    forwarding: Forwarding,
    on_broken: OnBroken,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Client {
    /// The address of the client.
    Known(IpAddr),
    /// The chain broke behind this hop: the last one that is known, a trusted proxy.
    Behind(IpAddr),
}

impl ClientAddress {
    /// Believes these proxies, and no others.
    pub fn behind(proxies: impl IntoIterator<Item = IpNet>, forwarding: Forwarding) -> Self {
        let proxies = proxies.into_iter().map(unmapped).collect();
        Self { proxies: Some(proxies), forwarding, on_broken: OnBroken::default() }
    }

    /// What stands for a client whose chain is broken; the last hop that is known, unless told.
    #[must_use]
    pub fn on_broken(mut self, on_broken: OnBroken) -> Self {
        self.on_broken = on_broken;
        self
    }

    /// The address of whom a request is from that came over a connection from `peer`. Does not allocate.
    pub fn of(&self, peer: IpAddr, headers: &HeaderMap) -> Client {
        let mut hop = peer.to_canonical();
        let Some(proxies) = &self.proxies else { return Client::Known(hop) };
        let is_trusted = |hop: IpAddr| proxies.iter().any(|network| network.contains(&hop));
        if !is_trusted(hop) {
            return Client::Known(hop);
        }
        let fields = headers.get_all(self.forwarding.field());
        let elements = fields.iter().rev().flat_map(|field| self.elements(field));
        for (number, element) in elements.enumerate() {
            let address = if number < HOPS_MAX { element } else { None };
            match address {
                None => return Client::Behind(hop),
                Some(address) => hop = address.to_canonical(),
            }
            if !is_trusted(hop) {
                break;
            }
        }
        Client::Known(hop)
    }

    /// The same as an address, with what stands for a client that is behind a proxy; `None` if nothing does.
    pub fn address(&self, peer: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        match (self.of(peer, headers), self.on_broken) {
            (Client::Known(address), _) | (Client::Behind(address), OnBroken::Hop) => Some(address),
            (Client::Behind(_), OnBroken::Missing) => None,
        }
    }

    /// The addresses of one field from the right, `None` for what is none.
    fn elements<'h>(&self, field: &'h HeaderValue) -> impl Iterator<Item = Option<IpAddr>> + use<'h> {
        let (split, read): (Split, Read) = match self.forwarding {
            Forwarding::XForwardedFor => (forwarded::last_comma, forwarded::plain_node),
            Forwarding::Forwarded => (forwarded::last_unquoted_comma, forwarded::element),
        };
        let mut rest = Some(field.as_bytes());
        std::iter::from_fn(move || {
            let list = rest?;
            let last = match split(list) {
                Some(comma) => {
                    rest = Some(&list[..comma]);
                    &list[comma + 1..]
                }
                None => rest.take()?,
            };
            Some(std::str::from_utf8(last.trim_ascii()).ok().and_then(read))
        })
    }
}

type Split = fn(&[u8]) -> Option<usize>;
type Read = fn(&str) -> Option<IpAddr>;

/// A network of IPv4 addresses written as IPv6 as the IPv4 network.
fn unmapped(network: IpNet) -> IpNet {
    const MAPPED_BITS: u8 = 96;
    let IpNet::V6(v6) = network else { return network };
    let (v4, bits) = (v6.network().to_ipv4_mapped(), v6.prefix_len().checked_sub(MAPPED_BITS));
    let v4 = v4.zip(bits).and_then(|(address, bits)| Ipv4Net::new(address, bits).ok());
    v4.map_or(network, IpNet::V4)
}
