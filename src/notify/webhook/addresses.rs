//! Which addresses may be reached. The only file below `notify` that names ipnet.
//!
//! A name is resolved here and the connection goes to what was found here, so there is no second look-up that could tell another
//! address. An address that stands in the URL is asked of no resolver: [`Addresses::literal`] finds it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

pub(super) use ipnet::IpNet;
use ipnet::{Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(a: u16, b: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), bits)
}

/// The IANA IPv4 Special-Purpose Address Registry, multicast, and one address of a cloud.
const V4_SPECIAL: [Ipv4Net; 16] = [
    v4(0, 0, 0, 0, 8),        // this network
    v4(10, 0, 0, 0, 8),       // private
    v4(100, 64, 0, 0, 10),    // behind a carrier's NAT
    v4(127, 0, 0, 0, 8),      // loopback
    v4(168, 63, 129, 16, 32), // a host's own services, at Azure
    v4(169, 254, 0, 0, 16),   // link-local; metadata of most clouds
    v4(172, 16, 0, 0, 12),    // private
    v4(192, 0, 0, 0, 24),     // protocol assignments
    v4(192, 0, 2, 0, 24),     // documentation
    v4(192, 88, 99, 0, 24),   // relays of 6to4
    v4(192, 168, 0, 0, 16),   // private
    v4(198, 18, 0, 0, 15),    // benchmarks
    v4(198, 51, 100, 0, 24),  // documentation
    v4(203, 0, 113, 0, 24),   // documentation
    v4(224, 0, 0, 0, 4),      // multicast
    v4(240, 0, 0, 0, 4),      // reserved; broadcast
];

/// What is handed out to the public, of IPv6. Loopback, unique local, link-local, multicast, NAT64 and what holds an IPv4 address in its last
/// bits stand outside.
const V6_PUBLIC: Ipv6Net = v6(0x2000, 0, 3);

/// The IANA IPv6 Special-Purpose Address Registry, as far as it is inside [`V6_PUBLIC`].
const V6_SPECIAL: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),     // protocol assignments: Teredo, benchmarks, ORCHID
    v6(0x2001, 0xdb8, 32), // documentation
    v6(0x2002, 0, 16),     // 6to4, which holds an IPv4 address
    v6(0x3fff, 0, 20),     // documentation
];

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !V4_SPECIAL.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            V6_PUBLIC.contains(&address) && !V6_SPECIAL.iter().any(|network| network.contains(&address))
        }
    }
}

/// An address that is not to be reached, or a name that leads to no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not public; allowed: public addresses, and those in allow_networks", self.0)
    }
}

impl std::error::Error for Refused {}

/// The addresses that one endpoint may reach.
#[derive(Clone)]
pub(super) struct Addresses {
    allowed: Arc<[IpNet]>,
}

impl Addresses {
    pub(super) fn new(allowed: Vec<IpNet>) -> Self {
        Self { allowed: allowed.into() }
    }

    /// The address that stands in the URL instead of a name. The parser of URLs has read every spelling of one.
    pub(super) fn literal(&self, url: &reqwest::Url) -> Option<IpAddr> {
        let host = url.host_str()?;
        host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }

    /// Whether it may be reached. An IPv4 address in the guise of an IPv6 one is what the system would connect to.
    pub(super) fn check(&self, address: IpAddr) -> Result<(), Refused> {
        let plain = address.to_canonical();
        if is_public(plain) || self.allowed.iter().any(|network| network.contains(&plain)) {
            return Ok(());
        }
        Err(Refused(address.to_string()))
    }

    /// Those of a name's addresses that may be reached.
    fn of_name(
        &self,
        name: &str,
        found: impl Iterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, Refused> {
        let (mut reachable, mut refused) = (Vec::new(), None);
        for address in found {
            match self.check(address.ip()) {
                Ok(()) => reachable.push(address),
                Err(_) => refused = Some(address.ip()),
            }
        }
        match refused {
            Some(address) if reachable.is_empty() => Err(Refused(format!("{name}, at {address},"))),
            _ => Ok(reachable),
        }
    }
}

impl Resolve for Addresses {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let reachable = addresses.of_name(name.as_str(), found)?;
            Ok(Box::new(reachable.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_and_the_last_of_each_network() {
        for (first, last, before, after) in [
            ("10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"),
            ("100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"),
            ("127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"),
            ("169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"),
            ("172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"),
            ("192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"),
            ("198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db7:ffff::", "2001:db9::"),
            ("2002::", "2002:ffff::ffff", "2001:ffff::", "2003::"),
        ] {
            assert!(!is_public(ip(first)) && !is_public(ip(last)), "{first} to {last}");
            assert!(is_public(ip(before)) && is_public(ip(after)), "{before} and {after}");
        }
        let refused = [
            "0.0.0.0",
            "0.255.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:2::1",
            "2001:20::1",
            "3fff::1",
            "5f00::1",
        ];
        assert!(refused.iter().all(|address| !is_public(ip(address))));
        let open =
            ["1.1.1.1", "8.8.8.8", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "3fff:1000::1"];
        assert!(open.iter().all(|address| is_public(ip(address))));
    }

    /// A name that leads somewhere else tomorrow is asked for again, and each answer is looked at: what is refused is left out.
    #[test]
    fn a_name_leads_to_what_may_be_reached() {
        let addresses = Addresses::new(vec!["10.1.0.0/16".parse().unwrap()]);
        let of = |found: &[&str]| {
            addresses.of_name("hooks.example.com", found.iter().map(|text| SocketAddr::new(ip(text), 0)))
        };
        assert_eq!(of(&["8.8.8.8", "10.0.0.1"]).unwrap(), [SocketAddr::new(ip("8.8.8.8"), 0)]);
        assert_eq!(of(&["10.1.0.1"]).unwrap().len(), 1);
        let told = of(&["10.0.0.1"]).unwrap_err().to_string();
        assert!(told.starts_with("hooks.example.com, at 10.0.0.1, is not public"), "{told}");
        assert!(of(&["::ffff:10.0.0.1"]).is_err() && of(&["::ffff:10.1.0.1"]).is_ok());
        assert!(of(&[]).unwrap().is_empty());
    }

    proptest! {
        /// The standard library knows some of the special ones; what it refuses is refused here, in both families.
        #[test]
        fn what_is_plainly_not_public_is_refused(bits in any::<u32>(), shape in 0..4_u8) {
            let special = match shape {
                0 => Ipv4Addr::from_bits(0x7f00_0000 | bits >> 8),
                1 => Ipv4Addr::from_bits(0xa9fe_0000 | bits >> 16),
                2 => Ipv4Addr::from_bits(0xc0a8_0000 | bits >> 16),
                _ => Ipv4Addr::from_bits(bits),
            };
            let is_special = special.is_private() || special.is_loopback() || special.is_link_local() || special.is_multicast()
                || special.is_broadcast() || special.is_documentation() || special.is_unspecified();
            let nowhere = Addresses::new(Vec::new());
            let (plain, mapped) = (IpAddr::V4(special), IpAddr::V6(special.to_ipv6_mapped()));
            prop_assert!(!is_special || nowhere.check(plain).is_err());
            prop_assert_eq!(nowhere.check(plain).is_ok(), nowhere.check(mapped).is_ok());
        }
    }
}
