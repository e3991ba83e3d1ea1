//! The resources of Azure, as far as we read and write them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::Family;
use crate::kube::Protocol;

/// An Azure resource id. Case does not matter when two are compared, but is kept as it came.
#[derive(Clone)]
pub struct ArmId(Arc<str>);

impl ArmId {
    /// Takes an id as it is.
    pub fn new(text: impl Into<Arc<str>>) -> ArmId {
        ArmId(text.into())
    }

    /// The id as it came.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part: the resource's own name.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or("")
    }

    /// The part after `/{word}/`, whatever the case of the word: `segment("loadBalancers")`.
    pub fn segment(&self, word: &str) -> Option<&str> {
        let mut parts = self.0.split('/');
        while let Some(part) = parts.next() {
            if part.eq_ignore_ascii_case(word) {
                return parts.next();
            }
        }
        None
    }

    /// The id cut off after `/{word}/{name}`: the load balancer of a backend pool's id.
    pub fn parent(&self, word: &str) -> Option<ArmId> {
        let mut end = 0;
        let mut parts = self.0.split('/').peekable();
        while let Some(part) = parts.next() {
            end += part.len() + 1;
            if part.eq_ignore_ascii_case(word) {
                let name = parts.peek()?;
                return Some(ArmId(self.0[..end + name.len()].into()));
            }
        }
        None
    }

    /// This id with more behind it.
    pub fn child(&self, word: &str, name: &str) -> ArmId {
        let mut text = String::with_capacity(self.0.len() + word.len() + name.len() + 2);
        text.push_str(&self.0);
        text.push('/');
        text.push_str(word);
        text.push('/');
        text.push_str(name);
        ArmId(text.into())
    }

    fn folded(&self) -> impl Iterator<Item = u8> + '_ {
        self.folded_from(0)
    }

    fn folded_from(&self, at: usize) -> impl Iterator<Item = u8> + '_ {
        self.0.bytes().skip(at).map(|b| b.to_ascii_lowercase())
    }
}

impl PartialEq for ArmId {
    fn eq(&self, other: &ArmId) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for ArmId {}

impl PartialOrd for ArmId {
    fn partial_cmp(&self, other: &ArmId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ArmId {
    fn cmp(&self, other: &ArmId) -> Ordering {
        // Ids share a long beginning, mostly in the same case; what is equal as it is need not be folded.
        let pieces = self.0.as_bytes().chunks_exact(16).zip(other.0.as_bytes().chunks_exact(16));
        let same = 16 * pieces.take_while(|(one, two)| one == two).count();
        self.folded_from(same).cmp(other.folded_from(same))
    }
}

impl Hash for ArmId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for byte in self.folded() {
            state.write_u8(byte);
        }
    }
}

impl fmt::Display for ArmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ArmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A resource's tags.
pub type Tags = BTreeMap<Arc<str>, Arc<str>>;

/// Changes with every write of a resource.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ETag(pub Arc<str>);

/// Whether the last write of a resource has come through.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Provisioning {
    /// It has.
    #[default]
    Succeeded,
    /// It is on its way.
    Updating,
    /// The resource is being deleted.
    Deleting,
    /// It has not; the resource must be written again.
    Failed,
    /// A word that we do not know; treated like `Updating`.
    Unknown,
}

/// What every resource answers with beside its own fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meta {
    /// Its id.
    pub id: ArmId,
    /// Its tags.
    pub tags: Tags,
    /// Its ETag.
    pub etag: ETag,
    /// Whether its last write came through.
    pub provisioning: Provisioning,
}

/// What a public IP should be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PublicIpBody {
    /// The family; cannot change once made.
    pub family: Family,
    /// The tags.
    pub tags: Tags,
}

/// A public IP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicIp {
    /// Id, tags, ETag, state.
    pub meta: Meta,
    /// The family.
    pub family: Family,
    /// The address, once there is one.
    pub address: Option<IpAddr>,
    /// The frontend or NAT gateway that uses it.
    pub used_by: Option<ArmId>,
}

/// What a load balancer should be: one frontend, one empty pool of its own name, and rules.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LoadBalancerBody {
    /// The public IP of its frontend.
    pub public_ip: ArmId,
    /// The rules; order does not matter, the engine sends them sorted.
    pub rules: Vec<Rule>,
    /// The tags.
    pub tags: Tags,
}

/// A load balancer as others may write it: with or without a frontend, and pools of any name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ForeignLoadBalancerBody {
    /// The frontend's name and its public IP, if there is a frontend.
    pub frontend: Option<(Arc<str>, ArmId)>,
    /// The names of its backend pools.
    pub pools: Vec<Arc<str>>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// The tags.
    pub tags: Tags,
}

/// One load-balancing rule; its name is `rule-{protocol}-{frontend port}`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rule {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// The port that clients connect to, 1-65534.
    pub frontend_port: u16,
    /// The pods' port, 1-65535.
    pub backend_port: u16,
    /// 4-30.
    pub idle_timeout_minutes: u8,
}

/// A load balancer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadBalancer {
    /// Id, tags, ETag, state.
    pub meta: Meta,
    /// The public IP of its frontend, if it has one.
    pub public_ip: Option<ArmId>,
    /// The names of its backend pools.
    pub pools: Vec<Arc<str>>,
    /// Its rules.
    pub rules: Vec<Rule>,
    /// Somebody has changed what a [`LoadBalancerBody`] means without saying: another frontend,
    /// floating IP, no TCP reset, or a rule that leads elsewhere.
    pub edited: bool,
}

/// What a NAT gateway should be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NatGatewayBody {
    /// The service gateway; `None` sends a literal `null`, which takes it off.
    pub gateway: Option<ArmId>,
    /// Its IPv4 public IPs.
    pub public_ips: Vec<ArmId>,
    /// Its IPv6 public IPs.
    pub public_ips_v6: Vec<ArmId>,
    /// The tags.
    pub tags: Tags,
}

/// A NAT gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NatGateway {
    /// Id, tags, ETag, state.
    pub meta: Meta,
    /// The service gateway that it works for.
    pub gateway: Option<ArmId>,
    /// Its IPv4 public IPs.
    pub public_ips: Vec<ArmId>,
    /// Its IPv6 public IPs.
    pub public_ips_v6: Vec<ArmId>,
}

/// What a service gateway should be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GatewayBody {
    /// The virtual network that it serves.
    pub virtual_network: ArmId,
    /// The subnet of its route target addresses.
    pub route_target_subnet: ArmId,
    /// The IPv4 route target address. Without one of either family Azure chooses an IPv4 address.
    pub route_target_address: Option<Ipv4Addr>,
    /// The IPv6 route target address, if it has one.
    pub route_target_address_v6: Option<Ipv6Addr>,
    /// The tags.
    pub tags: Tags,
}

/// A service gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gateway {
    /// Id, tags, ETag, state.
    pub meta: Meta,
    /// The virtual network that it serves.
    pub virtual_network: ArmId,
    /// The subnet of its route target addresses.
    pub route_target_subnet: ArmId,
    /// The IPv4 route target address.
    pub route_target_address: Option<Ipv4Addr>,
    /// The IPv6 route target address.
    pub route_target_address_v6: Option<Ipv6Addr>,
    /// The whole of it as it was read, opaque: a gateway is written back as this and nothing else,
    /// so that what we do not know (zones, fields of tomorrow) is not lost.
    pub document: Arc<str>,
}

impl Gateway {
    /// The part of it that we know, as it would be written.
    pub fn body(&self) -> GatewayBody {
        GatewayBody {
            virtual_network: self.virtual_network.clone(),
            route_target_subnet: self.route_target_subnet.clone(),
            route_target_address: self.route_target_address,
            route_target_address_v6: self.route_target_address_v6,
            tags: self.meta.tags.clone(),
        }
    }
}

/// A subnet: we change one reference in it and send the rest back as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subnet {
    /// Its id.
    pub id: ArmId,
    /// Its ETag.
    pub etag: ETag,
    /// The service gateway that it is attached to.
    pub gateway: Option<ArmId>,
    /// Everything else, opaque.
    pub rest: Arc<str>,
}

/// What a subnet should be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SubnetBody {
    /// The service gateway to attach to.
    pub gateway: Option<ArmId>,
    /// Everything else, exactly as read.
    pub rest: Arc<str>,
}

/// Which way a registered service carries traffic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Through a load balancer.
    Inbound,
    /// Through a NAT gateway.
    Outbound,
    /// Both; we never make one, but there may be foreign ones.
    InboundOutbound,
}

/// A service as the gateway has registered it, or as we want it registered.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Registration {
    /// The identity.
    pub name: Arc<str>,
    /// Which way.
    pub direction: Direction,
    /// The service for all addresses that name none.
    pub is_default: bool,
    /// The backend pools of an inbound service; empty means cleared.
    pub pools: Vec<ArmId>,
    /// The NAT gateway of an outbound service; `None` means cleared.
    pub nat_gateway: Option<ArmId>,
}

impl Registration {
    /// It leads to no load balancer and no NAT gateway, as after the first step of a teardown.
    pub fn is_cleared(&self) -> bool {
        self.pools.is_empty() && self.nat_gateway.is_none()
    }

    /// Equal in all that is sent: names and ids without case, lists without order.
    pub fn same(&self, other: &Registration) -> bool {
        self.name.eq_ignore_ascii_case(&other.name)
            && self.direction == other.direction
            && self.is_default == other.is_default
            && self.nat_gateway == other.nat_gateway
            && same_ids(&self.pools, &other.pools)
    }
}

/// Whether two lists have the same ids, in whatever order and case.
pub fn same_ids(a: &[ArmId], b: &[ArmId]) -> bool {
    a.len() == b.len() && a.iter().all(|id| b.contains(id)) && b.iter().all(|id| a.contains(id))
}

/// One entry of `updateServices`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceRequest {
    /// Unregister it instead of writing it.
    pub is_delete: bool,
    /// What to write; of a deletion only the name matters.
    pub service: Registration,
}

/// One location of `updateAddressLocations`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocationUpdate {
    /// The node's address.
    pub location: IpAddr,
    /// `FullUpdate`: replaces all addresses of the location. `PartialUpdate` otherwise;
    /// then a location without addresses is removed.
    pub full: bool,
    /// The addresses with all their services; an empty list unbinds the address.
    pub addresses: Vec<AddressUpdate>,
}

/// One address of a [`LocationUpdate`] or [`Location`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AddressUpdate {
    /// The pod's address.
    pub address: IpAddr,
    /// The identities that it belongs to; replaces the former list.
    pub services: Vec<Arc<str>>,
}

/// One location as the gateway has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The node's address.
    pub location: IpAddr,
    /// Its addresses with their services.
    pub addresses: Vec<AddressUpdate>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_the_order_of_their_letters_whatever_their_case_and_however_long_they_begin_alike() {
        let ids = |case: fn(&str) -> String| {
            let long = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/";
            let names = ["", "a", "a-1", "a/b", "aa", "b"].map(|name| case(long) + &case(name));
            names.map(ArmId::new)
        };
        let (plain, shouted) = (ids(str::to_ascii_lowercase), ids(str::to_ascii_uppercase));
        for (at, one) in plain.iter().enumerate() {
            for (of, two) in shouted.iter().enumerate() {
                assert_eq!(
                    (one.cmp(two), plain[at].cmp(&plain[of])),
                    (at.cmp(&of), at.cmp(&of)),
                    "{one} {two}"
                );
            }
        }
    }

    #[test]
    fn ids_differ_by_everything_but_case() {
        let pool = ArmId::new(
            "/subscriptions/S/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/web/backendAddressPools/Web",
        );
        assert_eq!(pool, ArmId::new(pool.as_str().to_ascii_uppercase()));
        assert_ne!(pool, ArmId::new("/subscriptions/S"));
        assert_eq!(pool.name(), "Web");
        assert_eq!(pool.segment("resourcegroups"), Some("rg"));
        assert_eq!(pool.segment("natGateways"), None);
        assert_eq!(
            pool.parent("loadbalancers").as_ref().map(ArmId::as_str),
            Some("/subscriptions/S/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/web")
        );
        assert_eq!(pool.parent("loadbalancers").unwrap().child("backendAddressPools", "web"), pool);
    }
}
