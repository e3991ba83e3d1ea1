//! What our resources are called and how one sees that they are ours.
//!
//! Ids follow from names, so no step ever waits to learn one.

use alloc::format;
use alloc::sync::Arc;

use crate::address::Family;
use crate::azure::{ArmId, Tags};
use crate::key::{ObjectName, ServiceKey};

/// The tag that says which cluster a resource belongs to.
pub const CLUSTER_TAG: &str = "sluice-cluster";
/// The tag with the identity that a resource was made for.
pub const IDENTITY_TAG: &str = "sluice-identity";
/// The tag with the Service or egress that a resource was made for, for people.
pub const OWNER_TAG: &str = "sluice-owner";
/// The tag with which a cloud controller manager names the Services of a public IP: `namespace/name`, several
/// of them separated by commas.
pub const SERVICE_TAG: &str = "k8s-azure-service";
/// The tag of a gateway that was created and not only claimed: `sluice cleanup` may delete it.
pub const CREATED_TAG: &str = "sluice-created";

/// Where our resources live, and for which cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scope {
    /// The subscription.
    pub subscription: Arc<str>,
    /// The resource group of load balancers, NAT gateways, public IPs and the gateway.
    pub resource_group: Arc<str>,
    /// The resource group of the virtual network.
    pub network_resource_group: Arc<str>,
    /// The virtual network.
    pub virtual_network: Arc<str>,
    /// The subnet that is attached to the gateway.
    pub subnet: Arc<str>,
    /// The service gateway.
    pub gateway: Arc<str>,
    /// The value of our cluster tag.
    pub cluster_id: Arc<str>,
}

impl Scope {
    fn network(&self, group: &str) -> alloc::string::String {
        format!("/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network", self.subscription, group)
    }

    /// The collection of all resources of a kind: `collection("loadBalancers")`.
    pub fn collection(&self, kind: &str) -> ArmId {
        ArmId::new(format!("{}/{kind}", self.network(&self.resource_group)))
    }

    /// A resource of the resource group.
    pub fn resource(&self, kind: &str, name: &str) -> ArmId {
        ArmId::new(format!("{}/{kind}/{name}", self.network(&self.resource_group)))
    }

    /// The service gateway.
    pub fn gateway_id(&self) -> ArmId {
        self.resource("serviceGateways", &self.gateway)
    }

    /// The virtual network.
    pub fn virtual_network_id(&self) -> ArmId {
        let network = self.network(&self.network_resource_group);
        ArmId::new(format!("{network}/virtualNetworks/{}", self.virtual_network))
    }

    /// The attached subnet.
    pub fn subnet_id(&self) -> ArmId {
        self.virtual_network_id().child("subnets", &self.subnet)
    }

    /// The load balancer of a Service, or the NAT gateway of an egress.
    pub fn carrier_id(&self, key: &ServiceKey) -> ArmId {
        let kind = if key.is_inbound() { "loadBalancers" } else { "natGateways" };
        self.resource(kind, &key.identity())
    }

    /// The one backend pool of a Service's load balancer.
    pub fn pool_id(&self, key: &ServiceKey) -> ArmId {
        self.carrier_id(key).child("backendAddressPools", &key.identity())
    }

    /// The public IP of a service.
    pub fn public_ip_id(&self, key: &ServiceKey, family: Family) -> ArmId {
        self.resource("publicIPAddresses", &public_ip_name(key, family))
    }

    /// The tags of everything made for a service; `object` is the Service behind an inbound one.
    pub fn tags(&self, key: &ServiceKey, object: Option<&ObjectName>) -> Tags {
        let owner = match (key, object) {
            (ServiceKey::Inbound(_), Some(name)) => format!("service/{name}"),
            (ServiceKey::Inbound(uid), None) => format!("service/{uid}"),
            (ServiceKey::Outbound(egress), _) => format!("egress/{egress}"),
        };
        Tags::from([
            (CLUSTER_TAG.into(), Arc::clone(&self.cluster_id)),
            (IDENTITY_TAG.into(), key.identity()),
            (OWNER_TAG.into(), owner.into()),
        ])
    }

    /// The tags of the gateway.
    pub fn gateway_tags(&self) -> Tags {
        Tags::from([(CLUSTER_TAG.into(), Arc::clone(&self.cluster_id))])
    }

    /// The tags of a gateway that we create.
    pub fn created_gateway_tags(&self) -> Tags {
        let mut tags = self.gateway_tags();
        tags.insert(CREATED_TAG.into(), "true".into());
        tags
    }

    /// Whether the tags say that a resource is this cluster's.
    pub fn owns(&self, tags: &Tags) -> bool {
        tags.get(CLUSTER_TAG).is_some_and(|cluster| **cluster == *self.cluster_id)
    }
}

/// The Services that a public IP is tagged for by a cloud controller manager.
pub fn tagged_services(tags: &Tags) -> impl Iterator<Item = ObjectName> {
    let listed = tags.get(SERVICE_TAG).map_or("", |listed| listed);
    listed.split(',').filter_map(|service| {
        let (namespace, name) = service.trim().split_once('/')?;
        Some(ObjectName::new(namespace, name))
    })
}

/// The tags that a resource keeps when it is ours no longer.
pub fn without_our_tags(tags: &Tags) -> Tags {
    let ours = [CLUSTER_TAG, IDENTITY_TAG, OWNER_TAG, CREATED_TAG];
    let kept = tags.iter().filter(|(name, _)| !ours.contains(&&***name));
    kept.map(|(name, value)| (Arc::clone(name), Arc::clone(value))).collect()
}

/// `{identity}-pip`, or `{identity}-pip-v6` for the IPv6 address of an egress.
///
/// A Service has one public IP of whatever family it is, so it never has a suffix.
pub fn public_ip_name(key: &ServiceKey, family: Family) -> Arc<str> {
    let identity = key.identity();
    match (key, family) {
        (ServiceKey::Outbound(_), Family::V6) => format!("{identity}-pip-v6").into(),
        _ => format!("{identity}-pip").into(),
    }
}

/// The service whose public IP is called so, if the name has our form.
///
/// A name can mean two things (an egress called `a-pip` and the IPv6 address of `a`), so the
/// identity tag decides where there is one; this is only the form.
pub fn key_of_public_ip(name: &str) -> Option<(ServiceKey, Family)> {
    let lower = name.to_ascii_lowercase();
    if let Some(identity) = lower.strip_suffix("-pip-v6") {
        return ServiceKey::from_identity(identity)
            .filter(|key| !key.is_inbound())
            .map(|key| (key, Family::V6));
    }
    let identity = lower.strip_suffix("-pip")?;
    ServiceKey::from_identity(identity).map(|key| (key, Family::V4))
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    use super::*;
    use crate::key::{EgressName, Uid};

    #[test]
    fn what_is_ours_no_longer_keeps_the_tags_of_others() {
        let scope = Scope {
            subscription: "s".into(),
            resource_group: "rg".into(),
            network_resource_group: "rg".into(),
            virtual_network: "vnet".into(),
            subnet: "pods".into(),
            gateway: "gw".into(),
            cluster_id: "c1".into(),
        };
        let mut tags = scope.tags(&ServiceKey::Inbound(Uid::from_number(1)), None);
        tags.extend(scope.created_gateway_tags());
        assert_eq!(tags.len(), 4);
        tags.insert("team".into(), "network".into());
        assert_eq!(without_our_tags(&tags), Tags::from([("team".into(), "network".into())]));
    }

    #[test]
    fn public_ip_names_lead_back_to_their_service() {
        let web = ServiceKey::Inbound(Uid::from_number(1));
        let blue = ServiceKey::Outbound(EgressName::parse("blue").unwrap());
        for (key, family) in [(&web, Family::V4), (&blue, Family::V4), (&blue, Family::V6)] {
            let name = public_ip_name(key, family);
            assert_eq!(key_of_public_ip(&name), Some((key.clone(), family)), "{name}");
        }
        assert_eq!(key_of_public_ip("production-address"), None);
    }

    #[test]
    fn the_tag_of_a_public_ip_names_one_service_or_several() {
        let named = |text: &str| -> Vec<String> {
            let tags = Tags::from([(SERVICE_TAG.into(), text.into())]);
            tagged_services(&tags).map(|service| service.to_string()).collect()
        };
        assert_eq!(named("shop/web"), ["shop/web"]);
        assert_eq!(named("shop/web, blog/web,"), ["shop/web", "blog/web"]);
        assert!(named("web").is_empty());
        assert_eq!(tagged_services(&Tags::new()).count(), 0);
    }
}
