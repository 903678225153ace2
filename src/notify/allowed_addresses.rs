//! Limits the addresses that a webhook can reach. Private addresses must be listed in the config. The check applies to the resolved
//! address of the connection, so a DNS name cannot point to an internal service, not even by changing after the check.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A range of addresses: `10.0.0.0/8`, `fd00::/8`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl std::str::FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let single = text.parse::<IpAddr>().map(IpNet::from).ok();
        single
            .or_else(|| text.parse().ok())
            .map(Self)
            .ok_or_else(|| format!("{text:?} is not a valid network; example: \"10.0.0.0/8\", \"fd00::/8\", or \"192.168.1.7\""))
    }
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&plain(address))
    }
}

/// All addresses except public, routable addresses of one host.
const PRIVATE: [IpNet; 23] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    // Shared address space of carriers.
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    // Link-local.
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    // Protocol assignments.
    v4([192, 0, 0, 0], 24),
    // Documentation.
    v4([192, 0, 2, 0], 24),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([192, 168, 0, 0], 16),
    // Benchmarks.
    v4([198, 18, 0, 0], 15),
    // Multicast, reserved, broadcast.
    v4([224, 0, 0, 0], 3),
    // Unspecified and loopback.
    v6([0, 0, 0, 0, 0, 0, 0, 0], 127),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
    // Link-local, and site-local, which is deprecated.
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),
    // Documentation.
    v6([0x2001, 0x0db8, 0, 0, 0, 0, 0, 0], 32),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
    // Teredo and 6to4, which tunnel to an IPv4 address.
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    // NAT64 with a local prefix, which can lead to private addresses.
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
];

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix))
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], prefix: u8) -> IpNet {
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix))
}

/// Returns the IPv4 address that is embedded in an IPv6 address, else the address itself.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => embedded_v4(v6).map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Returns the IPv4 address within a mapped, compatible, translated (SIIT, NAT64), or ISATAP address. Other embeddings are in
/// [`PRIVATE`].
fn embedded_v4(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let tail = || Ipv4Addr::from((u32::from(g) << 16) | u32::from(h));
    match [a, b, c, d, e, f] {
        // Mapped, IPv4-translated (SIIT, RFC 2765), NAT64.
        [0, 0, 0, 0, 0, 0xffff] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0] => Some(tail()),
        // ISATAP, under any prefix (RFC 5214).
        [_, _, _, _, 0 | 0x200, 0x5efe] => Some(tail()),
        // `::` and `::1` do not embed an IPv4 address.
        [0, 0, 0, 0, 0, 0] if g != 0 => Some(tail()),
        _ => None,
    }
}

/// Returns whether the address is not a public, routable address of one host.
pub fn is_private(address: IpAddr) -> bool {
    let address = plain(address);
    PRIVATE.iter().any(|network| network.contains(&address))
}

/// Returns whether the host of a URL is this machine's loopback address.
pub fn is_loopback_host(host: &url::Host<&str>) -> bool {
    match host {
        url::Host::Domain(name) => is_loopback_name(name),
        url::Host::Ipv4(v4) => v4.is_loopback(),
        url::Host::Ipv6(v6) => plain(IpAddr::V6(*v6)).is_loopback(),
    }
}

fn is_loopback_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// A blocked connection. The text contains the address, which the operator needs for `allow_networks`, but no part of the URL, which
/// may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the receiver's host resolves to the private address {address}: if this is intended, add its network to `allow_networks` of the \
     receiver"
)]
pub struct Forbidden {
    pub address: IpAddr,
}

/// The addresses that one receiver can reach.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    allowed: Arc<[Network]>,
}

impl Guard {
    /// Allows public addresses and the networks in `allowed`.
    pub fn new(allowed: Vec<Network>) -> Self {
        Self { allowed: allowed.into() }
    }

    /// Checks an address. Set `is_loopback_meant` for an address literal and for `localhost`: an operator who writes `127.0.0.1`
    /// intends it, but no other name may resolve to it.
    ///
    /// # Errors
    ///
    /// Fails if the address is private and not allowed.
    pub fn admit(&self, address: IpAddr, is_loopback_meant: bool) -> Result<(), Forbidden> {
        let is_listed = || self.allowed.iter().any(|network| network.contains(address));
        let is_meant = is_loopback_meant && plain(address).is_loopback();
        if !is_private(address) || is_meant || is_listed() { Ok(()) } else { Err(Forbidden { address }) }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let is_loopback_meant = is_loopback_name(name.as_str());
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let mut refused = None;
            let admitted: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| {
                    guard.admit(address.ip(), is_loopback_meant).inspect_err(|error| refused = Some(error.clone())).is_ok()
                })
                .collect();
            match refused {
                Some(forbidden) if admitted.is_empty() => Err(forbidden.into()),
                _ => Ok(Box::new(admitted.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests;
