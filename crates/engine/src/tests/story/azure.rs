//! The small Azure behind a story: remembers what was written, and what happens to it from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec;
use std::vec::Vec;

use sluice_model::azure::{
    AddressUpdate, ArmId, Direction, ETag, Gateway, LoadBalancer, Location, LocationUpdate, Meta, NatGateway,
    Provisioning, PublicIp, Registration, Rule, Subnet, Tags,
};
use sluice_model::effect::{Listable, Listing};
use sluice_model::kube::Protocol;
use sluice_model::names::{CLUSTER_TAG, SERVICE_TAG, Scope};
use sluice_model::plan::{StepResult, Subject};
use sluice_model::{Failure, FailureClass, Family, ObjectName, ServiceKey, Step};

/// Where the stories take place.
pub(crate) fn scope() -> Scope {
    Scope {
        subscription: "sub".into(),
        resource_group: "rg".into(),
        network_resource_group: "rg".into(),
        virtual_network: "vnet".into(),
        subnet: "subnet".into(),
        gateway: "servicegateway".into(),
        cluster_id: "cluster-1".into(),
    }
}

/// What has been written, by name.
pub(crate) struct Azure {
    scope: Scope,
    pub(crate) public_ips: BTreeMap<String, PublicIp>,
    pub(crate) load_balancers: BTreeMap<String, LoadBalancer>,
    pub(crate) nat_gateways: BTreeMap<String, NatGateway>,
    pub(crate) registrations: BTreeMap<String, Registration>,
    pub(crate) locations: BTreeMap<IpAddr, BTreeMap<IpAddr, Vec<Arc<str>>>>,
    gateway: Option<Tags>,
    gateway_failed: bool,
    subnet_gateway: Option<ArmId>,
    subnet_missing: bool,
    lists_that_fail: BTreeSet<Listable>,
    issued: u8,
}

/// The parts of a service that can be named.
const PARTS: [&str; 5] = ["public-ip", "public-ip-v6", "load-balancer", "nat-gateway", "registration"];

impl Azure {
    pub(crate) fn new(scope: Scope) -> Azure {
        Azure {
            gateway: Some(scope.gateway_tags()),
            gateway_failed: false,
            subnet_gateway: Some(scope.gateway_id()),
            scope,
            public_ips: BTreeMap::new(),
            load_balancers: BTreeMap::new(),
            nat_gateways: BTreeMap::new(),
            registrations: BTreeMap::new(),
            locations: BTreeMap::new(),
            subnet_missing: false,
            lists_that_fail: BTreeSet::new(),
            issued: 0,
        }
    }

    /// Something that is none of our doing. A service is named as in the story, by `uid=9`, or by `egress=blue`.
    ///
    /// ```text
    /// azure has web [public-ip] [load-balancer] [nat-gateway] [registration] [foreign] [backend=8080] [elsewhere] [cleared] [shouting]
    ///               [tagged=CLUSTER] [public-ip-v6]
    /// azure loses load-balancer web | … nat-gateway | … registration | … public-ip
    /// azure changes load-balancer web | azure edits load-balancer web | azure tags load-balancer web
    /// azure fails load-balancer web | azure untags load-balancer web | … public-ip | … public-ip-v6
    /// azure uses public-ip web                                    for something of its own
    /// azure has ip NAME for shop/web,shop/api | azure loses ip NAME    of a cloud controller manager, by its tag
    /// azure has address 10.0.0.4 at 192.168.0.1 for web [NAME…] | azure loses address 10.0.0.4
    /// azure registers NAME [default] [inbound]                    of somebody else
    /// azure loses gateway | azure fails gateway | azure detaches subnet | azure attaches subnet elsewhere | azure gateway of CLUSTER|nobody
    /// azure loses subnet | azure gains subnet | azure adopts blue    as `sluice adopt` does
    /// azure fails to list KIND | azure lists KIND again
    /// ```
    pub(super) fn happens(&mut self, words: &[&str], key: Option<&ServiceKey>) {
        let identity = key.map(|key| key.identity().to_string());
        match words {
            ["has", "address", address, "at", location, "for", name, more @ ..] => {
                let identity = identity.unwrap_or_else(|| name.to_string());
                let more = more.iter().map(|name| (*name).into());
                let location = self.locations.entry(location.parse().expect("an address")).or_default();
                let services = [identity.into()].into_iter().chain(more).collect();
                location.insert(address.parse().expect("an address"), services);
            }
            ["has", "ip", name, "for", services] => {
                let id = self.scope.resource("publicIPAddresses", name);
                self.put_ip(&id, Family::V4, Tags::from([(SERVICE_TAG.into(), (*services).into())]));
            }
            ["loses", "ip", name] => {
                assert!(self.public_ips.remove(*name).is_some(), "azure does not have {name}");
            }
            ["has", _, parts @ ..] => self.gains(key.expect("a service of the story"), parts),
            ["loses", "address", address] => {
                let address: IpAddr = address.parse().expect("an address");
                let gone = self.locations.values_mut().any(|location| location.remove(&address).is_some());
                self.locations.retain(|_, addresses| !addresses.is_empty());
                assert!(gone, "azure does not have {address}");
            }
            ["loses", "gateway"] => {
                self.gateway = None;
                self.registrations.clear();
                self.locations.clear();
            }
            ["loses", "subnet"] => self.subnet_missing = true,
            ["gains", "subnet"] => self.subnet_missing = false,
            ["adopts", _] => self.adopts(key.expect("a service of the story")),
            ["loses", kind, name] => self.loses(kind, &identity.unwrap_or_else(|| name.to_string())),
            ["changes", "load-balancer", _] => {
                self.load_balancer(&identity).rules.clear();
            }
            ["edits", "load-balancer", _] => {
                self.load_balancer(&identity).edited = true;
            }
            ["untags", "load-balancer", _] => {
                let lb = self.load_balancer(&identity);
                lb.meta.tags = sluice_model::names::without_our_tags(&lb.meta.tags);
            }
            ["untags", part @ ("public-ip" | "public-ip-v6"), _] => {
                let suffix = part.replace("public-ip", "pip");
                let name = std::format!("{}-{suffix}", identity.expect("a service of the story"));
                let ip = self.public_ips.get_mut(&name).expect("a public IP");
                ip.meta.tags = sluice_model::names::without_our_tags(&ip.meta.tags);
            }
            ["tags", "load-balancer", _] => {
                self.load_balancer(&identity).meta.tags.insert("cost-centre".into(), "42".into());
            }
            ["fails", "load-balancer", _] => {
                self.load_balancer(&identity).meta.provisioning = Provisioning::Failed;
            }
            ["uses", "public-ip", _] => {
                let name = std::format!("{}-pip", identity.expect("a service of the story"));
                let user = self.scope.resource("networkInterfaces", "somebody-elses");
                self.public_ips.get_mut(&name).expect("a public IP").used_by = Some(user);
            }
            ["registers", name, rest @ ..] => {
                let inbound = rest.contains(&"inbound");
                let pool =
                    self.scope.resource("loadBalancers", "somebody-elses").child("backendAddressPools", "p");
                let nat_gateway = self.scope.resource("natGateways", "somebody-elses");
                let registration = Registration {
                    name: (*name).into(),
                    direction: if inbound { Direction::Inbound } else { Direction::Outbound },
                    is_default: rest.contains(&"default"),
                    pools: inbound.then_some(pool).into_iter().collect(),
                    nat_gateway: (!inbound).then_some(nat_gateway),
                };
                self.registrations.insert(name.to_string(), registration);
            }
            ["fails", "gateway"] => self.gateway_failed = true,
            ["gateway", "of", "nobody"] => self.gateway = Some(Tags::new()),
            ["gateway", "of", cluster] => {
                self.gateway = Some(Tags::from([(CLUSTER_TAG.into(), (*cluster).into())]));
            }
            ["detaches", "subnet"] => self.subnet_gateway = None,
            ["attaches", "subnet", "elsewhere"] => {
                self.subnet_gateway = Some(self.scope.resource("serviceGateways", "another"));
            }
            ["fails", "to", "list", kind] => {
                self.lists_that_fail.insert(listable(kind));
            }
            ["lists", kind, "again"] => {
                self.lists_that_fail.remove(&listable(kind));
            }
            _ => panic!("azure does not do this: {words:?}"),
        }
    }

    /// Puts our tags on what a service has.
    fn adopts(&mut self, key: &ServiceKey) {
        let ours = self.scope.tags(key, None);
        let identity = key.identity().to_string();
        for name in [std::format!("{identity}-pip"), std::format!("{identity}-pip-v6")] {
            if let Some(ip) = self.public_ips.get_mut(&name) {
                ip.meta.tags.extend(ours.clone());
            }
        }
        if let Some(nat) = self.nat_gateways.get_mut(&identity) {
            nat.meta.tags.extend(ours.clone());
        }
        if let Some(lb) = self.load_balancers.get_mut(&identity) {
            lb.meta.tags.extend(ours);
        }
    }

    fn load_balancer(&mut self, identity: &Option<String>) -> &mut LoadBalancer {
        let identity = identity.as_ref().expect("a service of the story");
        self.load_balancers.get_mut(identity).expect("a load balancer")
    }

    fn loses(&mut self, kind: &str, identity: &str) {
        let gone = match kind {
            "load-balancer" => self.load_balancers.remove(identity).is_some(),
            "nat-gateway" => self.nat_gateways.remove(identity).is_some(),
            "registration" => self.registrations.remove(identity).is_some(),
            "public-ip" => self.public_ips.remove(&std::format!("{identity}-pip")).is_some(),
            _ => panic!("azure has no {kind}"),
        };
        assert!(gone, "azure has no {kind} of {identity}");
    }

    /// Makes the named parts of a service, all of them if none is named, as an earlier leader would have.
    fn gains(&mut self, key: &ServiceKey, parts: &[&str]) {
        let everything = !parts.iter().any(|it| PARTS.contains(it));
        let has = |part: &str| everything || parts.contains(&part);
        let owner = ObjectName::new("shop", "ghost");
        let mut tags = match parts.contains(&"foreign") {
            true => Tags::new(),
            false => self.scope.tags(key, Some(&owner)),
        };
        if let Some(cluster) = parts.iter().find_map(|it| it.strip_prefix("tagged=")) {
            tags.insert(CLUSTER_TAG.into(), cluster.into());
        }
        let identity = key.identity();
        let carrier = self.scope.carrier_id(key);
        let ip = self.scope.public_ip_id(key, Family::V4);
        if has("public-ip") {
            self.put_ip(&ip, Family::V4, tags.clone());
        }
        if parts.contains(&"public-ip-v6") {
            self.put_ip(&self.scope.public_ip_id(key, Family::V6), Family::V6, tags.clone());
        }
        if has("load-balancer") && key.is_inbound() {
            let backend = parts.iter().find_map(|it| it.strip_prefix("backend="));
            let rule = Rule {
                protocol: Protocol::Tcp,
                frontend_port: 80,
                backend_port: backend.map_or(8080, |port| port.parse().expect("a port")),
                idle_timeout_minutes: 4,
            };
            let lb = LoadBalancer {
                meta: self.meta(&carrier, tags.clone()),
                public_ip: Some(ip.clone()),
                pools: vec![Arc::clone(&identity)],
                rules: vec![rule],
                edited: false,
            };
            self.load_balancers.insert(identity.to_string(), lb);
            self.use_ip(&ip, &carrier.child("frontendIPConfigurations", "frontend"));
        }
        if has("nat-gateway") && !key.is_inbound() {
            let nat = NatGateway {
                meta: self.meta(&carrier, tags),
                gateway: Some(self.scope.gateway_id()),
                public_ips: vec![ip.clone()],
                public_ips_v6: vec![],
            };
            self.nat_gateways.insert(identity.to_string(), nat);
            self.use_ip(&ip, &carrier);
        }
        if has("registration") {
            let elsewhere = parts.contains(&"elsewhere");
            let cleared = parts.contains(&"cleared");
            let pool = match elsewhere {
                true => self.scope.resource("loadBalancers", "another").child("backendAddressPools", "x"),
                false => self.scope.pool_id(key),
            };
            let registration = Registration {
                name: Arc::clone(&identity),
                direction: if key.is_inbound() { Direction::Inbound } else { Direction::Outbound },
                is_default: matches!(key, ServiceKey::Outbound(egress) if egress.is_default()),
                pools: if key.is_inbound() && !cleared { vec![pool] } else { vec![] },
                nat_gateway: (!key.is_inbound() && !cleared).then_some(carrier),
            };
            self.registrations.insert(identity.to_string(), registration);
        }
        if parts.contains(&"shouting") {
            self.shout(&identity);
        }
    }

    /// Azure answers with ids in another case than they were sent.
    fn shout(&mut self, identity: &str) {
        let louder = |id: &ArmId| ArmId::new(id.as_str().to_ascii_uppercase());
        if let Some(lb) = self.load_balancers.get_mut(identity) {
            lb.meta.id = louder(&lb.meta.id);
            lb.public_ip = lb.public_ip.as_ref().map(louder);
        }
        if let Some(registration) = self.registrations.get_mut(identity) {
            registration.pools = registration.pools.iter().map(louder).collect();
            registration.nat_gateway = registration.nat_gateway.as_ref().map(louder);
        }
    }

    fn use_ip(&mut self, ip: &ArmId, user: &ArmId) {
        if let Some(ip) = self.public_ips.get_mut(ip.name()) {
            ip.used_by = Some(user.clone());
        }
    }

    fn meta(&self, id: &ArmId, tags: Tags) -> Meta {
        Meta { id: id.clone(), tags, etag: ETag("1".into()), provisioning: Provisioning::Succeeded }
    }

    fn put_ip(&mut self, id: &ArmId, family: Family, tags: Tags) -> PublicIp {
        let name = id.name().to_string();
        let known = self.public_ips.get(&name);
        let used_by = known.and_then(|ip| ip.used_by.clone());
        let address = known.and_then(|ip| ip.address).unwrap_or_else(|| {
            self.issued += 1;
            match family {
                Family::V4 => [20, 1, 2, self.issued].into(),
                Family::V6 => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, self.issued.into()).into(),
            }
        });
        let ip = PublicIp { meta: self.meta(id, tags), family, address: Some(address), used_by };
        self.public_ips.insert(name, ip.clone());
        ip
    }

    pub(crate) fn apply(&mut self, subject: &Subject, step: &Step) -> StepResult {
        let identity = match subject {
            Subject::Service(key) => key.identity(),
            Subject::Foundation => "".into(),
        };
        match step {
            Step::PutPublicIp { id, body, .. } => {
                let tags =
                    with_those_of_others(self.public_ips.get(id.name()).map(|it| &it.meta), &body.tags);
                return StepResult::PublicIp(self.put_ip(id, body.family, tags));
            }
            Step::PutLoadBalancer { id, body, .. } => {
                let there = self.load_balancers.get(id.name()).map(|it| &it.meta);
                let lb = LoadBalancer {
                    meta: self.meta(id, with_those_of_others(there, &body.tags)),
                    public_ip: Some(body.public_ip.clone()),
                    pools: vec![identity],
                    rules: body.rules.clone(),
                    edited: false,
                };
                self.use_ip(&body.public_ip, &id.child("frontendIPConfigurations", "frontend"));
                self.load_balancers.insert(id.name().into(), lb);
            }
            Step::PutNatGateway { id, body, .. } => {
                let there = self.nat_gateways.get(id.name()).map(|it| &it.meta);
                let nat = NatGateway {
                    meta: self.meta(id, with_those_of_others(there, &body.tags)),
                    gateway: body.gateway.clone(),
                    public_ips: body.public_ips.clone(),
                    public_ips_v6: body.public_ips_v6.clone(),
                };
                for ip in body.public_ips.iter().chain(&body.public_ips_v6) {
                    self.use_ip(ip, id);
                }
                self.nat_gateways.insert(id.name().into(), nat);
            }
            Step::Register(registration) | Step::Clear(registration) => {
                self.registrations.insert(registration.name.to_string(), registration.clone());
            }
            Step::Unregister(name) => {
                self.registrations.remove(&**name);
            }
            Step::DeleteLoadBalancer(id) => {
                self.load_balancers.remove(id.name());
            }
            Step::DeleteNatGateway(id) => {
                self.nat_gateways.remove(id.name());
            }
            Step::DeletePublicIp(id) => {
                self.public_ips.remove(id.name());
            }
            Step::ReleasePublicIp(id) => {
                if let Some(ip) = self.public_ips.get_mut(id.name()) {
                    ip.meta.tags = sluice_model::names::without_our_tags(&ip.meta.tags);
                    return StepResult::PublicIp(ip.clone());
                }
            }
            Step::Adopt { id, tags } => {
                let ip = self.public_ips.get_mut(id.name()).map(|it| &mut it.meta);
                let meta = ip.or_else(|| self.load_balancers.get_mut(id.name()).map(|it| &mut it.meta));
                meta.expect("it exists").tags.extend(tags.clone());
            }
            Step::ReadPublicIp(id) => {
                let ip = self.public_ips.get(id.name()).cloned();
                return ip.map_or(StepResult::Absent, StepResult::PublicIp);
            }
            Step::ReadLoadBalancer(id) => {
                let lb = self.load_balancers.get(id.name()).cloned();
                return lb.map_or(StepResult::Absent, StepResult::LoadBalancer);
            }
            Step::ReadNatGateway(id) => {
                let nat = self.nat_gateways.get(id.name()).cloned();
                return nat.map_or(StepResult::Absent, StepResult::NatGateway);
            }
            Step::ReadRegistration(name) => {
                let registration = self.registrations.get(&**name).cloned();
                return registration.map_or(StepResult::Absent, StepResult::Registration);
            }
            Step::PutGateway { body, .. } => self.gateway = Some(body.tags.clone()),
            Step::ClaimGateway { tags, .. } => {
                self.gateway.get_or_insert_default().extend(tags.clone());
            }
            Step::RepairGateway(_) => self.gateway_failed = false,
            Step::AttachSubnet { gateway, .. } => self.subnet_gateway = Some(gateway.clone()),
        }
        StepResult::Done
    }

    pub(crate) fn apply_locations(&mut self, batch: &[LocationUpdate]) {
        for update in batch {
            let location = self.locations.entry(update.location).or_default();
            if update.full || update.addresses.is_empty() {
                location.clear();
            }
            for address in &update.addresses {
                if address.services.is_empty() {
                    location.remove(&address.address);
                } else {
                    location.insert(address.address, address.services.clone());
                }
            }
            if location.is_empty() {
                self.locations.remove(&update.location);
            }
        }
    }

    /// Why a listing of this kind fails now, if it does.
    pub(super) fn list_failure(&self, kind: Listable) -> Option<Failure> {
        let of_gateway = matches!(kind, Listable::Registrations | Listable::Locations);
        if of_gateway && self.gateway.is_none() {
            return Some(super::failure(FailureClass::NotFound, "ResourceNotFound", 404));
        }
        let fails = self.lists_that_fail.contains(&kind);
        fails.then(|| super::failure(FailureClass::Transient, "ServerBusy", 503))
    }

    pub(crate) fn listing(&self, kind: Listable) -> Listing {
        let scope = &self.scope;
        match kind {
            Listable::Foundation => Listing::Foundation {
                gateway: self.gateway.clone().map(|tags| Gateway {
                    meta: Meta {
                        provisioning: match self.gateway_failed {
                            true => Provisioning::Failed,
                            false => Provisioning::Succeeded,
                        },
                        ..self.meta(&scope.gateway_id(), tags)
                    },
                    virtual_network: scope.virtual_network_id(),
                    route_target_subnet: scope.subnet_id(),
                    route_target_address: None,
                    route_target_address_v6: None,
                    document: "".into(),
                }),
                subnet: (!self.subnet_missing).then(|| Subnet {
                    id: scope.subnet_id(),
                    etag: ETag("1".into()),
                    gateway: self.subnet_gateway.clone(),
                    rest: "".into(),
                }),
            },
            Listable::Registrations => Listing::Registrations(self.registrations.values().cloned().collect()),
            Listable::Locations => Listing::Locations(
                self.locations
                    .iter()
                    .map(|(location, addresses)| Location {
                        location: *location,
                        addresses: addresses
                            .iter()
                            .map(|(address, services)| AddressUpdate {
                                address: *address,
                                services: services.clone(),
                            })
                            .collect(),
                    })
                    .collect(),
            ),
            Listable::LoadBalancers => {
                Listing::LoadBalancers(self.load_balancers.values().cloned().collect())
            }
            Listable::NatGateways => Listing::NatGateways(self.nat_gateways.values().cloned().collect()),
            Listable::PublicIps => Listing::PublicIps(self.public_ips.values().cloned().collect()),
        }
    }
}

/// What a write leaves on a resource.
fn with_those_of_others(there: Option<&Meta>, ours: &Tags) -> Tags {
    let mut tags = there.map(|meta| meta.tags.clone()).unwrap_or_default();
    tags.extend(ours.clone());
    tags
}

fn listable(word: &str) -> Listable {
    *Listable::ALL.iter().find(|kind| kind.word() == word).expect("something that can be listed")
}
