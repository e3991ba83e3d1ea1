//! Ranges of addresses: `10.0.0.0/16`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::refused::{Refused, printable};

/// A range of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prefix {
    is_v4: bool,
    /// The first address, as the highest bits.
    bits: u128,
    length: u8,
}

impl Prefix {
    /// Reads a prefix that belongs to a resource.
    pub(crate) fn read(text: &str, resource: &str) -> Result<Prefix, Refused> {
        let malformed = || {
            let message = format!(
                "Address prefix {} of resource {resource} is not formatted correctly. It should follow CIDR \
                 notation, for example 10.0.0.0/24.",
                printable(text)
            );
            Refused::provider(400, "InvalidAddressPrefixFormat", message)
        };
        let (address, length) = text.split_once('/').ok_or_else(malformed)?;
        let address: IpAddr = address.parse().map_err(|_| malformed())?;
        let is_short = length.len() <= 3 && length.bytes().all(|b| b.is_ascii_digit());
        let length: u8 = is_short.then(|| length.parse().ok()).flatten().ok_or_else(malformed)?;
        let is_v4 = address.is_ipv4();
        if length > width(is_v4) {
            return Err(malformed());
        }
        let prefix = Prefix { is_v4, bits: bits(address) & mask(length), length };
        if prefix.bits != bits(address) {
            let message = format!(
                "The address prefix {text} in resource {resource} has an invalid CIDR notation. For the given \
                 prefix length, the address prefix should be {prefix}."
            );
            return Err(Refused::provider(400, "InvalidCIDRNotation", message));
        }
        Ok(prefix)
    }

    /// Reads a prefix that may be none.
    pub(crate) fn parse(text: &str) -> Option<Prefix> {
        Prefix::read(text, "").ok()
    }

    pub(crate) fn contains(&self, other: &Prefix) -> bool {
        self.is_v4 == other.is_v4
            && self.length <= other.length
            && other.bits & mask(self.length) == self.bits
    }

    pub(crate) fn overlaps(&self, other: &Prefix) -> bool {
        self.contains(other) || other.contains(self)
    }

    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.is_v4 == address.is_ipv4() && bits(address) & mask(self.length) == self.bits
    }

    pub(crate) fn has_family_of(&self, address: IpAddr) -> bool {
        self.is_v4 == address.is_ipv4()
    }

    /// Whether Azure keeps this one for itself: the first four, and the last.
    pub(crate) fn is_reserved(&self, address: IpAddr) -> bool {
        let host = bits(address) & !mask(self.length);
        let host = if self.is_v4 { host >> 96 } else { host };
        host < 4 || host.saturating_add(1) == self.count()
    }

    fn count(&self) -> u128 {
        1u128.checked_shl(u32::from(width(self.is_v4) - self.length)).unwrap_or(u128::MAX)
    }

    /// Its addresses without the four that Azure keeps for itself, and without the last.
    pub(crate) fn usable(&self) -> impl Iterator<Item = IpAddr> + '_ {
        (4..self.count().saturating_sub(1)).map(|number| self.address(number))
    }

    fn address(&self, number: u128) -> IpAddr {
        if self.is_v4 {
            // The shifted bits of an IPv4 prefix are its highest 32.
            IpAddr::V4(Ipv4Addr::from((self.bits >> 96) as u32 | number as u32))
        } else {
            IpAddr::V6(Ipv6Addr::from(self.bits | number))
        }
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address(0), self.length)
    }
}

const fn width(is_v4: bool) -> u8 {
    if is_v4 { 32 } else { 128 }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)) << 96,
        IpAddr::V6(v6) => u128::from(v6),
    }
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        Prefix::read(text, "vnet").unwrap()
    }

    #[test]
    fn what_is_no_prefix_is_refused() {
        for text in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/8", "fd00::/129", "10.0.0.0/0x8"] {
            assert_eq!(Prefix::read(text, "vnet").unwrap_err().code, "InvalidAddressPrefixFormat", "{text}");
        }
        let refused = Prefix::read("10.0.0.5/24", "vnet").unwrap_err();
        assert_eq!(refused.code, "InvalidCIDRNotation");
        assert!(refused.message.ends_with("should be 10.0.0.0/24."));
    }

    #[test]
    fn ranges_contain_and_overlap() {
        let wide = prefix("10.0.0.0/16");
        assert!(wide.contains(&prefix("10.0.255.0/24")));
        assert!(!wide.contains(&prefix("10.1.0.0/24")));
        assert!(prefix("10.0.3.0/24").overlaps(&wide));
        assert!(!prefix("10.0.3.0/24").overlaps(&prefix("10.0.4.0/24")));
        assert!(!prefix("0.0.0.0/0").contains(&prefix("fd00::/64")));
        assert!(prefix("::/0").has("2001:db8::1".parse().unwrap()));
        assert!(!wide.has("10.1.0.1".parse().unwrap()));
    }

    #[test]
    fn the_first_four_addresses_and_the_last_are_azures() {
        let usable = |text: &str| prefix(text).usable().map(|it| it.to_string()).collect::<Vec<_>>();
        assert_eq!(usable("10.0.0.0/29"), ["10.0.0.4", "10.0.0.5", "10.0.0.6"]);
        assert_eq!(usable("10.0.0.0/30"), [""; 0]);
        let range = prefix("10.0.1.0/24");
        for (last, reserved) in [(0, true), (3, true), (4, false), (254, false), (255, true)] {
            assert_eq!(range.is_reserved(IpAddr::from([10, 0, 1, last])), reserved, "{last}");
        }
        assert_eq!(prefix("fd00::/64").usable().next(), Some("fd00::4".parse().unwrap()));
        assert_eq!(prefix("::/0").usable().next(), Some("::4".parse().unwrap()));
    }
}
