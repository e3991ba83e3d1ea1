//! Every address as 32 bits: an IPv4 address is itself, an IPv6 address gets a number.
//!
//! The family always follows from where an [`Addr`] stands (a place has one family, a node keeps two
//! maps), so it is not kept with it. Numbers are counted where addresses are rooted (slices, pods,
//! entries, recent writes) and used again when nobody has them any more.

use core::hash::BuildHasher;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use sluice_model::Family;

use super::slab::{Slab, key};

key!(
    /// An address within its family.
    pub(super) Addr
);

struct Wide {
    ip: [u8; 16],
    holders: u32,
}

/// The numbers of the IPv6 addresses.
pub(super) struct Addrs {
    wide: Slab<Addr, Wide>,
    index: HashTable<Addr>,
    hasher: FixedState,
}

impl Addrs {
    pub(super) fn new() -> Addrs {
        Addrs { wide: Slab::new(), index: HashTable::new(), hasher: FixedState::default() }
    }

    /// The short form of an address, held once more.
    pub(super) fn hold(&mut self, ip: IpAddr) -> Addr {
        let octets = match ip {
            IpAddr::V4(v4) => return Addr(v4.to_bits()),
            IpAddr::V6(v6) => v6.octets(),
        };
        let hash = self.hasher.hash_one(octets);
        if let Some(&addr) = self.index.find(hash, |&addr| self.wide[addr].ip == octets) {
            self.wide[addr].holders += 1;
            return addr;
        }
        let addr = self.wide.insert(Wide { ip: octets, holders: 1 });
        let (wide, hasher) = (&self.wide, &self.hasher);
        self.index.insert_unique(hash, addr, |&addr| hasher.hash_one(wide[addr].ip));
        addr
    }

    /// The short form of an address, if anybody holds it.
    pub(super) fn find(&self, ip: IpAddr) -> Option<Addr> {
        match ip {
            IpAddr::V4(v4) => Some(Addr(v4.to_bits())),
            IpAddr::V6(v6) => {
                let octets = v6.octets();
                let hash = self.hasher.hash_one(octets);
                self.index.find(hash, |&addr| self.wide[addr].ip == octets).copied()
            }
        }
    }

    /// One more holder of an address that somebody holds.
    pub(super) fn share(&mut self, family: Family, addr: Addr) {
        if family == Family::V6 {
            self.wide[addr].holders += 1;
        }
    }

    /// One holder less.
    pub(super) fn drop(&mut self, family: Family, addr: Addr) {
        if family == Family::V4 {
            return;
        }
        let wide = &mut self.wide[addr];
        wide.holders -= 1;
        if wide.holders > 0 {
            return;
        }
        let hash = self.hasher.hash_one(wide.ip);
        if let Ok(found) = self.index.find_entry(hash, |&other| other == addr) {
            found.remove();
        }
        self.wide.remove(addr);
    }

    /// The address itself.
    pub(super) fn ip(&self, family: Family, addr: Addr) -> IpAddr {
        match family {
            Family::V4 => IpAddr::V4(Ipv4Addr::from_bits(addr.0)),
            Family::V6 => IpAddr::V6(Ipv6Addr::from(self.wide[addr].ip)),
        }
    }

    /// How many hold each IPv6 address; for the recount.
    pub(super) fn holders(&self) -> impl Iterator<Item = (Addr, u32)> {
        self.wide.iter().map(|(addr, wide)| (addr, wide.holders))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_model::address::parse_ip;

    #[test]
    fn an_ipv6_address_keeps_its_number_while_somebody_holds_it() {
        let mut addrs = Addrs::new();
        let ip = parse_ip("2001:db8::1").unwrap();
        let first = addrs.hold(ip);
        assert_eq!(addrs.hold(parse_ip("2001:DB8:0::1").unwrap()), first);
        addrs.drop(Family::V6, first);
        assert_eq!((addrs.find(ip), addrs.ip(Family::V6, first)), (Some(first), ip));
        addrs.drop(Family::V6, first);
        assert_eq!(addrs.find(ip), None);
        assert_eq!(addrs.hold(parse_ip("2001:db8::2").unwrap()), first);
    }
}
