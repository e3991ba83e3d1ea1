//! What is still to do for one service: the difference between wanted and known, as ordered steps.
//!
//! A step stands in a plan only if Azure is not known to be right already, so a retried
//! operation resumes where it stopped, adoption costs no write, and a dry run is this function.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use sluice_model::azure::{
    ArmId, Direction, LoadBalancerBody, Meta, NatGatewayBody, PublicIp, PublicIpBody, Registration, Rule,
    Tags,
};
use sluice_model::names::{CLUSTER_TAG, Scope};
use sluice_model::seeded::{Bug, Seeded};
use sluice_model::{Family, ObjectName, ServiceKey, Step};

use crate::resources::{
    Actual, Carrier, Knowledge, load_balancer_matches, nat_gateway_matches, public_ip_matches,
};

/// What a service should look like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// A load balancer with these rules behind a public IP of this family.
    LoadBalancer { family: Family, rules: Vec<Rule> },
    /// A NAT gateway, with an IPv6 address too if the cluster has such nodes.
    NatGateway { ipv6: bool },
}

/// Why there is no plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NoPlan {
    /// Something must be looked at first.
    Unclear,
    /// A resource that is not ours stands in the way.
    Conflict(String),
}

/// The planner for one service.
pub(crate) struct Planner<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) key: &'a ServiceKey,
    pub(crate) object: Option<&'a ObjectName>,
    /// Whether that Service carries our finalizer.
    pub(crate) finalizer: bool,
    pub(crate) actual: &'a Actual,
    pub(crate) seeded: Seeded,
}

impl Planner<'_> {
    /// The steps that make the service as wanted; none when it is.
    pub(crate) fn up(&self, target: &Target) -> Result<Vec<Step>, NoPlan> {
        if self.actual.is_unclear() {
            return Err(NoPlan::Unclear);
        }
        let families: &[Family] = match target {
            Target::LoadBalancer { family: Family::V4, .. } | Target::NatGateway { ipv6: false } => {
                &[Family::V4]
            }
            Target::LoadBalancer { family: Family::V6, .. } => &[Family::V6],
            Target::NatGateway { ipv6: true } => &Family::ALL,
        };
        self.refuse_what_is_not_ours(families)?;
        let mut steps = Vec::new();
        for &family in families {
            let slot = &self.actual.public_ips[Actual::public_ip_slot(self.key, family)];
            let body = PublicIpBody { family, tags: self.tags() };
            if let Some(ip) = slot.present()
                && ip.family != family
            {
                let id = &ip.meta.id;
                return Err(NoPlan::Conflict(format!(
                    "Public IP {id} is {}, but {family} is required. Delete it",
                    ip.family
                )));
            }
            if !slot.present().is_some_and(|ip| public_ip_matches(ip, &body) || self.is_released(ip)) {
                let exists = !slot.is_absent();
                steps.push(Step::PutPublicIp { id: self.scope.public_ip_id(self.key, family), body, exists });
            }
        }
        // A new address must be attached again, and a new address or carrier of a load balancer registered again:
        // whoever deleted the old one may have deleted the registration too.
        let address_is_new = !steps.is_empty();
        let ip_is_new = self.actual.ip_is_new || address_is_new && self.key.is_inbound();
        let carrier = self.carrier_step(target);
        let carrier_is_right = match (&carrier, self.actual.carrier.present()) {
            (Step::PutLoadBalancer { body, .. }, Some(Carrier::LoadBalancer(lb))) => {
                load_balancer_matches(lb, self.key, body)
            }
            (Step::PutNatGateway { body, .. }, Some(Carrier::NatGateway(nat))) => {
                nat_gateway_matches(nat, body)
            }
            _ => false,
        };
        let carrier_is_new = self.actual.carrier.present().is_none();
        if address_is_new || !carrier_is_right {
            steps.push(carrier);
        }
        let registration = self.registration();
        let registered = self.actual.registration.present().is_some_and(|it| it.same(&registration));
        if carrier_is_new || ip_is_new || !registered {
            steps.push(Step::Register(registration));
        }
        if !steps.is_empty() {
            steps.splice(0..0, self.adoption());
        }
        Ok(steps)
    }

    /// The tags for what the gateway has registered under the UID of this Service and nobody has claimed: first its
    /// public IP, then the load balancer, so that a public IP without our tag under a load balancer with it is
    /// always one that somebody has released.
    pub(crate) fn adoption(&self) -> Vec<Step> {
        let Some(Carrier::LoadBalancer(lb)) = self.actual.carrier.present() else { return Vec::new() };
        if !self.finalizer || !self.is_registered_here() || is_claimed(&lb.meta) {
            return Vec::new();
        }
        if self.seeded.has(Bug::LeaveAdoptedBehind) {
            return Vec::new();
        }
        let ip = self.actual.public_ips[0].present();
        let ip = ip.filter(|_| !self.actual.released[0] || self.seeded.has(Bug::TagReleasedIp));
        // What is known of our tags may be old: if it still has them, the step finds that and writes nothing.
        let is_ours = |ip: &PublicIp| self.scope.owns(&ip.meta.tags) && !self.is_used_elsewhere(ip);
        let is_untagged = |ip: &PublicIp| !is_claimed(&ip.meta) && self.is_used_here(ip);
        let ip = ip.filter(|ip| is_ours(ip) || is_untagged(ip)).map(|ip| &ip.meta);
        let untagged = ip.into_iter().chain([&lb.meta]);
        untagged.map(|meta| Step::Adopt { id: meta.id.clone(), tags: self.tags() }).collect()
    }

    /// The steps that take down whatever may be there, in the one safe order.
    pub(crate) fn down(&self) -> Result<Vec<Step>, NoPlan> {
        if self.actual.is_unclear() {
            return Err(NoPlan::Unclear);
        }
        self.refuse_what_another_cluster_claims()?;
        let mut steps = self.adoption();
        let adopted: Vec<ArmId> = steps.iter().filter_map(Step::read_first).cloned().collect();
        let may_delete = |meta: &Meta| self.may_delete(&meta.tags) || adopted.contains(&meta.id);
        let identity = self.key.identity();
        // A registration that leads to somebody else's carrier is theirs, whatever it is called. One that was cleared
        // leads to nothing: the carrier may have lost our tag in the middle of the teardown.
        let registration = &self.actual.registration;
        let theirs = self.actual.is_live()
            && self.actual.carrier.present().is_some_and(|it| !may_delete(it.meta()))
            || self.is_registered_elsewhere().is_some();
        let registered = !registration.is_absent() && !theirs;
        if registered && (self.actual.is_live() || registration.present().is_none()) {
            steps.push(Step::Clear(Registration { pools: vec![], nat_gateway: None, ..self.registration() }));
        }
        let carrier_goes = match &self.actual.carrier.knowledge {
            Knowledge::Absent => false,
            Knowledge::Present(carrier) => may_delete(carrier.meta()),
            Knowledge::Unknown | Knowledge::Doubted => true,
        };
        let stays = self.actual.carrier.present().is_some() && !carrier_goes;
        let carrier = self.scope.carrier_id(self.key);
        let unregister = registered.then_some(Step::Unregister(identity));
        match self.key {
            ServiceKey::Inbound(_) if self.seeded.has(Bug::UnregisterFirst) => {
                steps.extend(unregister);
                steps.extend(carrier_goes.then_some(Step::DeleteLoadBalancer(carrier)));
            }
            ServiceKey::Inbound(_) => {
                steps.extend(carrier_goes.then_some(Step::DeleteLoadBalancer(carrier)));
                steps.extend(unregister);
            }
            ServiceKey::Outbound(_) => {
                if carrier_goes
                    && let Some(Carrier::NatGateway(nat)) = self.actual.carrier.present()
                    && nat.gateway.is_some()
                {
                    let body = NatGatewayBody {
                        gateway: None,
                        public_ips: nat.public_ips.clone(),
                        public_ips_v6: nat.public_ips_v6.clone(),
                        tags: self.tags(),
                    };
                    steps.push(Step::PutNatGateway { id: carrier.clone(), body, exists: true });
                }
                steps.extend(unregister);
                steps.extend(carrier_goes.then_some(Step::DeleteNatGateway(carrier)));
            }
        }
        if !self.seeded.has(Bug::LeavePublicIp) {
            for (at, slot) in self.actual.public_ips.iter().enumerate() {
                let family = if at == 0 { Family::V4 } else { Family::V6 };
                let id = self.scope.public_ip_id(self.key, family);
                match &slot.knowledge {
                    Knowledge::Absent => {}
                    Knowledge::Present(ip) if !may_delete(&ip.meta) => {}
                    // Its own record may be older than the load balancer that uses it.
                    Knowledge::Present(ip)
                        if self.is_used_elsewhere(ip)
                            || stays && (self.is_used_here(ip) || self.is_named_by_carrier(ip)) =>
                    {
                        steps.push(Step::ReleasePublicIp(id));
                    }
                    // What could not be read may be in use by the load balancer of others that stays.
                    Knowledge::Doubted | Knowledge::Unknown if stays => {
                        steps.push(Step::ReleasePublicIp(id));
                    }
                    _ => steps.push(Step::DeletePublicIp(id)),
                }
            }
        }
        Ok(steps)
    }

    /// The reads that clear up what is unclear.
    pub(crate) fn look(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (at, slot) in self.actual.public_ips.iter().enumerate() {
            if slot.is_unknown() && (at == 0 || !self.key.is_inbound()) {
                let family = if at == 0 { Family::V4 } else { Family::V6 };
                steps.push(Step::ReadPublicIp(self.scope.public_ip_id(self.key, family)));
            }
        }
        if self.actual.carrier.is_unknown() {
            let id = self.scope.carrier_id(self.key);
            steps.push(match self.key {
                ServiceKey::Inbound(_) => Step::ReadLoadBalancer(id),
                ServiceKey::Outbound(_) => Step::ReadNatGateway(id),
            });
        }
        if self.actual.registration.is_unknown() {
            steps.push(Step::ReadRegistration(self.key.identity()));
        }
        steps
    }

    /// Something of ours is left that a teardown has to remove.
    pub(crate) fn has_something_to_take_down(&self) -> bool {
        self.down().map_or(true, |steps| !steps.is_empty())
    }

    fn carrier_step(&self, target: &Target) -> Step {
        let id = self.scope.carrier_id(self.key);
        let (tags, exists) = (self.tags(), !self.actual.carrier.is_absent());
        match target {
            Target::LoadBalancer { family, rules } => {
                let public_ip = self.scope.public_ip_id(self.key, *family);
                let body = LoadBalancerBody { public_ip, rules: rules.clone(), tags };
                Step::PutLoadBalancer { id, body, exists }
            }
            Target::NatGateway { ipv6 } => {
                let v6 = ipv6.then(|| self.scope.public_ip_id(self.key, Family::V6));
                let body = NatGatewayBody {
                    gateway: Some(self.scope.gateway_id()),
                    public_ips: vec![self.scope.public_ip_id(self.key, Family::V4)],
                    public_ips_v6: v6.into_iter().collect(),
                    tags,
                };
                Step::PutNatGateway { id, body, exists }
            }
        }
    }

    fn registration(&self) -> Registration {
        let name: Arc<str> = self.key.identity();
        match self.key {
            ServiceKey::Inbound(_) => Registration {
                name,
                direction: Direction::Inbound,
                is_default: false,
                pools: vec![self.scope.pool_id(self.key)],
                nat_gateway: None,
            },
            ServiceKey::Outbound(egress) => Registration {
                name,
                direction: Direction::Outbound,
                is_default: egress.is_default(),
                pools: vec![],
                nat_gateway: Some(self.scope.carrier_id(self.key)),
            },
        }
    }

    /// Our tags; those of others are kept by whoever writes.
    fn tags(&self) -> Tags {
        self.scope.tags(self.key, self.object)
    }

    fn may_delete(&self, tags: &Tags) -> bool {
        self.scope.owns(tags) || self.seeded.has(Bug::DeleteWithoutTagCheck)
    }

    /// The gateway has it registered, and for nothing but its own carrier.
    fn is_registered_here(&self) -> bool {
        self.actual.registration.present().is_some() && self.is_registered_elsewhere().is_none()
    }

    /// Which public IPs somebody has released, now or before.
    pub(crate) fn released(&self) -> [bool; 2] {
        [0, 1].map(|at| {
            let slot = &self.actual.public_ips[at];
            match slot.present() {
                Some(ip) if self.scope.owns(&ip.meta.tags) => false,
                Some(ip) => self.actual.released[at] || self.is_released(ip),
                None => self.actual.released[at] && !slot.is_absent(),
            }
        })
    }

    /// Somebody has taken our tag off a public IP that our carrier uses: it stays in use, and is theirs.
    fn is_released(&self, ip: &PublicIp) -> bool {
        let carrier = self.actual.carrier.present();
        !self.scope.owns(&ip.meta.tags)
            && self.is_used_here(ip)
            && carrier.is_some_and(|it| self.scope.owns(&it.meta().tags))
    }

    fn is_used_here(&self, ip: &PublicIp) -> bool {
        ip.used_by.is_some() && !self.is_used_elsewhere(ip)
    }

    /// The load balancer or NAT gateway names this public IP.
    fn is_named_by_carrier(&self, ip: &PublicIp) -> bool {
        match self.actual.carrier.present() {
            Some(Carrier::LoadBalancer(lb)) => lb.public_ip.as_ref() == Some(&ip.meta.id),
            Some(Carrier::NatGateway(nat)) => {
                nat.public_ips.iter().chain(&nat.public_ips_v6).any(|id| *id == ip.meta.id)
            }
            None => false,
        }
    }

    fn is_used_elsewhere(&self, ip: &PublicIp) -> bool {
        let carrier = self.scope.carrier_id(self.key);
        let word = if self.key.is_inbound() { "loadBalancers" } else { "natGateways" };
        ip.used_by.as_ref().is_some_and(|user| user.parent(word).as_ref() != Some(&carrier))
    }

    /// The unmanaged resource that uses a public IP, if one does: another one, or an unmanaged one of our name.
    pub(crate) fn unmanaged_user<'a>(&self, ip: &'a PublicIp) -> Option<&'a ArmId> {
        let foreign = self.actual.carrier.present().is_some_and(|it| !self.scope.owns(&it.meta().tags));
        ip.used_by.as_ref().filter(|_| foreign || self.is_used_elsewhere(ip))
    }

    /// A registration under our name that points at somebody else's carrier, or is a default outbound of others.
    pub(crate) fn is_registered_elsewhere(&self) -> Option<ArmId> {
        let registration = self.actual.registration.present()?;
        if is_default_of_others(self.key, registration) {
            return registration.nat_gateway.clone().or_else(|| Some(self.scope.carrier_id(self.key)));
        }
        let pool = self.scope.pool_id(self.key);
        let carrier = self.scope.carrier_id(self.key);
        let foreign_pool = registration.pools.iter().find(|id| **id != pool);
        let foreign_nat = registration.nat_gateway.iter().find(|id| self.key.is_inbound() || **id != carrier);
        foreign_pool.or(foreign_nat).cloned()
    }

    /// What the gateway sends its traffic to is not ours, whatever it is called.
    pub(crate) fn leads_elsewhere(&self) -> bool {
        // A load balancer without the cluster tag is adopted only for a Service that exists. A registration in doubt
        // is one that we wrote, so it does not point to an unmanaged resource.
        let adopted = self.object.is_some();
        let foreign = self.actual.carrier.present().is_some_and(|it| !self.scope.owns(&it.meta().tags));
        foreign && self.actual.is_live() && !adopted || self.is_registered_elsewhere().is_some()
    }

    /// What a Service with our finalizer is registered for goes with it. If another cluster claims that, people
    /// decide.
    fn refuse_what_another_cluster_claims(&self) -> Result<(), NoPlan> {
        let kept = self.finalizer && self.is_registered_here();
        let Some(meta) = self.actual.carrier.present().filter(|_| kept).map(Carrier::meta) else {
            return Ok(());
        };
        if self.scope.owns(&meta.tags) || !is_claimed(meta) {
            return Ok(());
        }
        Err(NoPlan::Conflict(format!(
            "{} is registered for this Service and carries the tag of another cluster. Delete the resource, or run `az tag update --resource-id {} --operation Merge --tags {CLUSTER_TAG}={}`",
            meta.id, meta.id, self.scope.cluster_id
        )))
    }

    /// What we would write must be ours, or not be there. A public IP of a family that we do not want is
    /// nobody's business.
    fn refuse_what_is_not_ours(&self, families: &[Family]) -> Result<(), NoPlan> {
        let conflict = |id: &ArmId| {
            Err(NoPlan::Conflict(format!(
                "{id} exists and is not managed by this cluster. Delete it, or claim it as `sluice explain SGW0011` describes"
            )))
        };
        if let Some(id) = self.is_registered_elsewhere() {
            return Err(NoPlan::Conflict(format!(
                "The registration of this name in the gateway points to {id}, which is not managed by this cluster. Remove the registration"
            )));
        }
        let live_inbound = self.key.is_inbound() && self.actual.is_live();
        if let Some(carrier) = self.actual.carrier.present()
            && !self.scope.owns(&carrier.meta().tags)
            && (!live_inbound || is_claimed(carrier.meta()))
        {
            return conflict(&carrier.meta().id);
        }
        let slots = families.iter().map(|family| Actual::public_ip_slot(self.key, *family));
        for ip in slots.filter_map(|slot| self.actual.public_ips[slot].present()) {
            let adopted = live_inbound && self.is_used_here(ip);
            if !self.scope.owns(&ip.meta.tags) && !adopted && !self.is_released(ip) {
                return conflict(&ip.meta.id);
            }
        }
        Ok(())
    }
}

/// Whether a registration is a default outbound service that another controller or a person has made.
pub(crate) fn is_default_of_others(key: &ServiceKey, registration: &Registration) -> bool {
    registration.is_default && !matches!(key, ServiceKey::Outbound(name) if name.is_default())
}

/// Whether any cluster has claimed it.
fn is_claimed(meta: &Meta) -> bool {
    meta.tags.contains_key(CLUSTER_TAG)
}
