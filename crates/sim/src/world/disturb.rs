//! Faults that begin at a moment: somebody else's hands, locks, slowness, signals, frost.

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use sluice_cloud::{Cloud, LockLevel, Tamper};
use sluice_model::azure::{
    ArmId, ETag, Gateway, LoadBalancerBody, Meta, NatGatewayBody, Provisioning, PublicIpBody, Rule, Tags,
};
use sluice_model::call::Body;
use sluice_model::kube::Protocol;
use sluice_model::names::{CLUSTER_TAG, SERVICE_TAG, Scope};
use sluice_model::{Family, Time, Uid};

use super::{Happening, World, foreign_tags, letter};
use crate::cluster::stories::{FirstGateway, UserAction};
use crate::names::{FaultKind, Violation};

/// Others have made a gateway before anybody else came, with much in it that we know nothing of.
pub(super) fn make_gateway(cloud: &mut Cloud, scope: &Scope, gateway: FirstGateway) {
    if gateway == FirstGateway::Missing {
        return;
    }
    let id = scope.gateway_id();
    let theirs = Gateway {
        meta: Meta {
            id: id.clone(),
            tags: foreign_tags(),
            etag: ETag("".into()),
            provisioning: Provisioning::Succeeded,
        },
        virtual_network: scope.virtual_network_id(),
        route_target_subnet: scope.subnet_id(),
        route_target_address: Some(Ipv4Addr::new(10, 0, 0, 9)),
        route_target_address_v6: Some(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9)),
        document: "zones 1, 2, 3".into(),
    };
    cloud.tamper(Time::ZERO, Tamper::Put { id: id.clone(), body: Body::GatewayAsRead(theirs) });
    if gateway == FirstGateway::OfOthersFailed {
        cloud.tamper(Time::ZERO, Tamper::FailWrite(id));
    }
}

impl World {
    /// A fault begins.
    pub(super) fn fault_begins(&mut self, kind: FaultKind) -> Result<(), Violation> {
        let injected = match kind {
            FaultKind::Z13 => {
                let span = self.lasting(5_000, 120_000);
                self.plan.deny_until(self.now + span);
                true
            }
            FaultKind::Z14 => self.lock(),
            FaultKind::Z15 => {
                let group = self.group();
                self.cloud.tamper(self.now, Tamper::PolicyDeny(group));
                self.ends_after(kind, 5_000, 90_000);
                true
            }
            FaultKind::Z16 => self.poison(),
            FaultKind::Z18 => self.tamper(),
            FaultKind::Z19 => self.foreigner(),
            FaultKind::Z20 => self.delete_gateway(),
            FaultKind::Z21 => {
                self.cloud.slow_by(50);
                self.slowness = 50;
                self.ends_after(kind, 5_000, 60_000);
                true
            }
            FaultKind::P2 => self.leading_slot().map(|slot| self.stop(slot)).is_some(),
            FaultKind::P4 => {
                let span = self.freezing_time();
                self.freeze(span)
            }
            FaultKind::P6 => self.upgrade(),
            FaultKind::K20 => {
                self.server_goes_away();
                // The fake cluster has counted it.
                false
            }
            _ => false,
        };
        if injected {
            self.coverage.injected(self.now, kind);
            self.trace.world(self.now, || format!("{kind} begins: {}", kind.words()));
        }
        Ok(())
    }

    /// A fault that lasts is over.
    pub(super) fn fault_ends(&mut self, kind: FaultKind) {
        self.trace.world(self.now, || format!("{kind} ends"));
        match kind {
            FaultKind::Z14 => {
                for scope in std::mem::take(&mut self.locked) {
                    self.cloud.tamper(self.now, Tamper::Unlock(scope));
                }
            }
            FaultKind::Z15 => {
                let group = self.group();
                self.cloud.tamper(self.now, Tamper::PolicyAllow(group));
            }
            FaultKind::Z21 => {
                self.cloud.slow_by(1);
                self.slowness = 1;
            }
            _ => {}
        }
    }

    fn lasting(&mut self, least_ms: u64, most_ms: u64) -> Duration {
        Duration::from_millis(self.chance.between(least_ms, most_ms))
    }

    fn ends_after(&mut self, kind: FaultKind, least_ms: u64, most_ms: u64) {
        let at = self.now + self.lasting(least_ms, most_ms);
        self.plan_at(at, Happening::FaultEnds(kind));
    }

    fn group(&self) -> ArmId {
        let scope = &self.scope;
        ArmId::new(format!("/subscriptions/{}/resourceGroups/{}", scope.subscription, scope.resource_group))
    }

    pub(super) fn leading_slot(&self) -> Option<usize> {
        self.processes.iter().position(|process| process.as_ref().is_some_and(|process| process.leads()))
    }

    /// Z14: a lock on one resource of ours, or on the whole group.
    fn lock(&mut self) -> bool {
        let ours: Vec<ArmId> = self.cloud.state().load_balancers.keys().cloned().collect();
        let scope = match self.chance.pick(&ours).cloned() {
            Some(id) if self.chance.chance(600) => id,
            _ => self.group(),
        };
        let level = if self.chance.chance(500) { LockLevel::ReadOnly } else { LockLevel::CanNotDelete };
        self.cloud.tamper(self.now, Tamper::Lock { scope: scope.clone(), level });
        self.locked.push(scope);
        self.ends_after(FaultKind::Z14, 5_000, 90_000);
        true
    }

    /// Z16: from now on the gateway refuses one address.
    fn poison(&mut self) -> bool {
        let mut addresses: Vec<IpAddr> = self
            .cluster
            .slices()
            .flat_map(|slice| slice.body.endpoints.iter().map(|endpoint| Arc::clone(&endpoint.address)))
            .chain(self.cluster.pods().flat_map(|pod| pod.body.ips.clone()))
            .filter_map(|text| sluice_model::address::parse_ip(&text).ok())
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        let Some(address) = self.chance.pick(&addresses).copied() else { return false };
        self.trace.world(self.now, || format!("{address} is poison"));
        self.cloud.poison(address);
        true
    }

    /// Z18: somebody deletes or edits something of ours.
    fn tamper(&mut self) -> bool {
        let state = self.cloud.state();
        let gateway = self.scope.gateway_id();
        let owns = |tags: &Tags| self.scope.owns(tags);
        let mut choices: Vec<Tamper> = Vec::new();
        for lb in state.load_balancers.values().filter(|lb| owns(&lb.meta.tags)) {
            let id = lb.meta.id.clone();
            choices.push(Tamper::DeleteLoadBalancer(id.clone()));
            let mut rules = lb.rules.clone();
            rules.pop();
            rules.push(Rule {
                protocol: Protocol::Tcp,
                frontend_port: 9_999,
                backend_port: 9_999,
                idle_timeout_minutes: 4,
            });
            choices.push(Tamper::EditLoadBalancer { id: id.clone(), rules });
            choices.push(Tamper::EditPastRules(id.clone()));
            let mut tags = lb.meta.tags.clone();
            tags.insert("touched".into(), "by somebody".into());
            choices.push(Tamper::EditTags { id, tags });
        }
        for nat in state.nat_gateways.values().filter(|nat| owns(&nat.meta.tags)) {
            choices.push(Tamper::DeleteNatGateway(nat.meta.id.clone()));
            let mut tags = nat.meta.tags.clone();
            tags.insert("touched".into(), "by somebody".into());
            choices.push(Tamper::EditTags { id: nat.meta.id.clone(), tags });
        }
        for ip in state.public_ips.values().filter(|ip| owns(&ip.meta.tags)) {
            choices.push(Tamper::DeletePublicIp(ip.meta.id.clone()));
        }
        for registration in state.registrations(&gateway) {
            let name = Arc::clone(&registration.name);
            // A load balancer without our tag is known by its registration alone.
            if !self.is_of_others(&name) {
                let name = Arc::clone(&name);
                choices.push(Tamper::DeleteRegistration { gateway: gateway.clone(), name });
            }
            choices.push(Tamper::AddAddress {
                gateway: gateway.clone(),
                location: IpAddr::from([10, 0, 0, 77]),
                address: IpAddr::from([10, 244, 9, 9]),
                services: vec![name],
            });
        }
        for location in state.locations(&gateway) {
            for entry in location.addresses {
                choices.push(Tamper::DeleteAddress {
                    gateway: gateway.clone(),
                    location: location.location,
                    address: entry.address,
                });
            }
        }
        if state.subnets.values().any(|subnet| subnet.gateway.is_some()) {
            choices.push(Tamper::DetachSubnet(self.scope.subnet_id()));
        }
        if state.gateways.contains_key(&gateway) {
            choices.push(Tamper::FailWrite(gateway));
        }
        let Some(change) = self.chance.pick(&choices).cloned() else { return false };
        self.trace.world(self.now, || format!("somebody: {change:?}"));
        self.cloud.tamper(self.now, change);
        self.destroyed += 3;
        true
    }

    /// Z19: resources that look like ours and are not: our names, but no tag, or another cluster's.
    fn foreigner(&mut self) -> bool {
        if self.chance.chance(400) && self.bind_again_for_others() {
            return true;
        }
        self.foreigners += 1;
        let number = self.foreigners;
        let mut tags = foreign_tags();
        if self.chance.chance(500) {
            tags.insert(CLUSTER_TAG.into(), "another cluster".into());
        }
        let uid = Uid::from_number(0xf000_0000_0000_0000 + u128::from(number));
        let egress = format!("purple-{number}");
        let (ip_name, body_of) = match self.chance.chance(500) {
            true => (format!("{uid}-pip"), true),
            false => (format!("{egress}-pip"), false),
        };
        let ip = self.scope.resource("publicIPAddresses", &ip_name);
        let body = Body::PublicIp(PublicIpBody { family: Family::V4, tags: tags.clone() });
        if !self.is_made(ip.clone(), body) {
            // A lock or a policy stands in their way too.
            return false;
        }
        if self.chance.chance(300) {
            return true;
        }
        let (id, body) = if body_of {
            let rules = vec![Rule {
                protocol: Protocol::Tcp,
                frontend_port: 443,
                backend_port: 8_443,
                idle_timeout_minutes: 4,
            }];
            let body = LoadBalancerBody { public_ip: ip, rules, tags };
            (self.scope.resource("loadBalancers", &uid.to_string()), Body::LoadBalancer(body))
        } else {
            let id = self.scope.gateway_id();
            let gateway = self.cloud.state().gateways.contains_key(&id).then_some(id);
            let body = NatGatewayBody { gateway, public_ips: vec![ip], public_ips_v6: Vec::new(), tags };
            (self.scope.resource("natGateways", &egress), Body::NatGateway(body))
        };
        self.is_made(id.clone(), body);
        // Now and then it is even registered with our gateway: listed as unclaimed, never touched.
        if self.chance.chance(500) {
            let name: Arc<str> = if body_of { uid.to_string().into() } else { egress.into() };
            if self.register_for_others(&name, &id, body_of) {
                self.bind_for_others(&name);
            }
        }
        true
    }

    /// What users and other controllers do in Azure beside the faults.
    pub(super) fn acts_in_azure(&mut self, action: &UserAction) {
        match action {
            UserAction::TagPublicIp { name, services } => {
                let tags = Tags::from([(SERVICE_TAG.into(), Arc::clone(services))]);
                let id = self.scope.resource("publicIPAddresses", name);
                self.is_made(id, Body::PublicIp(PublicIpBody { family: Family::V4, tags }));
            }
            UserAction::DeleteTaggedIp { name } => {
                let id = self.scope.resource("publicIPAddresses", name);
                self.foreign.retain(|other| *other != id);
                self.cloud.tamper(self.now, Tamper::DeletePublicIp(id));
            }
            UserAction::OthersBind { service, location, address } => {
                self.others_bind(service, *location, *address);
            }
            UserAction::Retag { service, part, change } => self.retag(service, *part, *change),
            UserAction::CreateServedByOthers { service, parts, .. } => self.others_have(service, *parts),
            _ => {}
        }
    }

    pub(super) fn is_made(&mut self, id: ArmId, body: Body) -> bool {
        let answer = self.cloud.tamper(self.now, Tamper::Put { id: id.clone(), body });
        let made = (200..300).contains(&answer.status);
        if made {
            self.foreign.push(id);
        }
        made
    }

    /// Z20: the gateway is deleted with all that it knows.
    fn delete_gateway(&mut self) -> bool {
        let gateway = self.scope.gateway_id();
        let state = self.cloud.state();
        let untagged = state.registrations(&gateway).any(|it| self.is_of_others(&it.name));
        if !state.gateways.contains_key(&gateway) || untagged {
            return false;
        }
        // Everything that it knew must be written again.
        let lost = state.registrations(&gateway).count()
            + state.locations(&gateway).map(|location| location.addresses.len()).sum::<usize>();
        self.destroyed += 4 + 2 * lost as u64;
        self.cloud.tamper(self.now, Tamper::DeleteGateway(gateway));
        true
    }

    /// P4: the leader stops in its tracks; mostly for longer than the lease.
    pub(super) fn freeze(&mut self, span: Duration) -> bool {
        let Some(slot) = self.leading_slot() else { return false };
        let until = self.now + span;
        let Some(process) = &mut self.processes[slot] else { return false };
        if process.frozen_until.is_some() {
            return false;
        }
        process.frozen_until = Some(until);
        let life = process.life;
        self.trace.world(self.now, || format!("{} freezes until {until}", letter(slot)));
        self.plan_at(until, Happening::Thaw { slot, life });
        true
    }

    /// P6: the process is replaced by another version, with other numbers and all state present.
    fn upgrade(&mut self) -> bool {
        let Some(slot) = self.leading_slot() else { return false };
        let chance = &mut self.chance;
        let settings = &mut self.settings[slot];
        settings.engine.slots_max = usize::try_from(chance.between(1, 12)).unwrap_or(4);
        settings.engine.locations.addresses_max = usize::try_from(chance.between(2, 1_000)).unwrap_or(100);
        settings.updater.commit_size_max = usize::try_from(chance.between(1, 100)).unwrap_or(50);
        self.stop(slot);
        true
    }
}
