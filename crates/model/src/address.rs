//! IP addresses in one spelling.

use alloc::string::{String, ToString};
use core::fmt;
use core::net::IpAddr;

/// IPv4 or IPv6; addresses, locations and public IPs never mix the two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both families, in the order in which they are tried.
    pub const ALL: [Family; 2] = [Family::V4, Family::V6];

    /// The family of an address.
    pub const fn of(ip: IpAddr) -> Family {
        match ip {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}

/// Text that is not an IP address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotAnAddress(pub String);

impl fmt::Display for NotAnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not an IP address", self.0)
    }
}

/// Reads an address in any spelling and gives it its canonical form: an IPv4 address
/// written as IPv6 (`::ffff:10.0.0.4`) is the IPv4 address.
pub fn parse_ip(text: &str) -> Result<IpAddr, NotAnAddress> {
    text.trim().parse::<IpAddr>().map(|ip| ip.to_canonical()).map_err(|_| NotAnAddress(text.to_string()))
}

/// Whether a pod or node can have this address: not unspecified, loopback, multicast or link-local IPv4.
pub fn is_routable(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => {
            !(v4.is_unspecified()
                || v4.is_loopback()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_link_local())
        }
        IpAddr::V6(v6) => {
            !(v6.is_unspecified() || v6.is_loopback() || v6.is_multicast() || v6.is_unicast_link_local())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_address_becomes_one() {
        for (text, canonical) in [
            ("10.0.0.4", "10.0.0.4"),
            (" 10.0.0.4 ", "10.0.0.4"),
            ("::ffff:10.0.0.4", "10.0.0.4"),
            ("2001:DB8:0:0::1", "2001:db8::1"),
            ("2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"),
        ] {
            assert_eq!(parse_ip(text).map(|ip| ip.to_string()), Ok(canonical.to_string()));
        }
    }

    #[test]
    fn what_is_no_address_is_said_to_be_none() {
        for text in ["", "web.example", "10.0.0", "010.0.0.4", "10.0.0.4/32", "fe80::1%eth0"] {
            assert_eq!(parse_ip(text), Err(NotAnAddress(text.to_string())));
        }
    }
}
