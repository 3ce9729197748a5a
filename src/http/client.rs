//! Who calls: the address of the client, through proxies that are trusted.

use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;

/// Which field of a request tells the addresses that it came through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forwarding {
    /// `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// How the address of a client is found.
#[derive(Clone, Debug, Default)]
pub struct ClientAddress {}

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
        _ = (proxies.into_iter().count(), forwarding);
        Self {}
    }

    /// The address of whom a request is from that came over a connection from `peer`.
    pub fn of(&self, peer: IpAddr, headers: &HeaderMap) -> Client {
        _ = headers;
        Client::Known(peer)
    }
}
