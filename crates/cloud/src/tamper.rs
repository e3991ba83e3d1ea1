//! Somebody else at work in the same subscription.
//!
//! Nobody counts their calls and their work is done at once. A deletion by them is what is left after they
//! have taken everything apart in the right order: references to what they delete are gone as well.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use sluice_model::Time;
use sluice_model::azure::{
    AddressUpdate, ArmId, LocationUpdate, Provisioning, Registration, Rule, ServiceRequest, Subnet, Tags,
};
use sluice_model::call::{Answer, Body, Method, Payload, Request};

use crate::cloud::{Cloud, not_found};
use crate::fault::Twist;
use crate::place::{Kind, Place, place};
use crate::put::check_rules;
use crate::refusal::Refusal;

/// What a lock forbids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockLevel {
    /// Deleting.
    CanNotDelete,
    /// Writing and deleting.
    ReadOnly,
}

/// What a caller who has lost a role may not do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forbidden {
    /// Anything, reading and polling included.
    Everything,
    /// Writing, posting and deleting.
    Writes,
}

/// What somebody else does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tamper {
    /// Writes any resource, by Azure's rules; for foreign resources and to set a scene.
    Put {
        /// Which.
        id: ArmId,
        /// How it should be.
        body: Body,
    },
    /// Deletes a public IP; whoever used it has none.
    DeletePublicIp(ArmId),
    /// Deletes a load balancer; registrations that named its pool are cleared.
    DeleteLoadBalancer(ArmId),
    /// Changes the rules of a load balancer, by Azure's rules for them.
    EditLoadBalancer {
        /// Which.
        id: ArmId,
        /// The rules it has then.
        rules: Vec<Rule>,
    },
    /// Changes a load balancer where no rule shows it: floating IP, TCP reset, another frontend.
    EditPastRules(ArmId),
    /// Changes the tags of a resource.
    EditTags {
        /// Which.
        id: ArmId,
        /// The tags it has then.
        tags: Tags,
    },
    /// Writes a resource and fails, which leaves it as it was but for its state.
    FailWrite(ArmId),
    /// Deletes a NAT gateway; registrations that named it are cleared.
    DeleteNatGateway(ArmId),
    /// Deletes a service gateway with all that it knows; NAT gateways and subnets are detached.
    DeleteGateway(ArmId),
    /// Takes the gateway off a subnet.
    DetachSubnet(ArmId),
    /// Deletes a subnet, by Azure's rules.
    DeleteSubnet(ArmId),
    /// Registers a service, by Azure's rules.
    PutRegistration {
        /// With which gateway.
        gateway: ArmId,
        /// What.
        registration: Registration,
    },
    /// Unregisters a service; addresses lose it.
    DeleteRegistration {
        /// From which gateway.
        gateway: ArmId,
        /// Its name.
        name: Arc<str>,
    },
    /// Binds an address, by Azure's rules.
    AddAddress {
        /// At which gateway.
        gateway: ArmId,
        /// On which node.
        location: IpAddr,
        /// Which.
        address: IpAddr,
        /// To what.
        services: Vec<Arc<str>>,
    },
    /// Unbinds an address.
    DeleteAddress {
        /// At which gateway.
        gateway: ArmId,
        /// On which node.
        location: IpAddr,
        /// Which.
        address: IpAddr,
    },
    /// Locks a resource, a group or a subscription.
    Lock {
        /// What.
        scope: ArmId,
        /// Against what.
        level: LockLevel,
    },
    /// Takes a lock away.
    Unlock(ArmId),
    /// Forbids by policy to write anything at or below a scope.
    PolicyDeny(ArmId),
    /// Takes a policy away.
    PolicyAllow(ArmId),
    /// Takes a role away from our caller: what they try at or below a scope answers 403.
    Forbid {
        /// Where.
        scope: ArmId,
        /// What.
        what: Forbidden,
    },
    /// Gives the role back.
    Permit(ArmId),
}

impl Cloud {
    /// Somebody else does something now. The answer is the one that they get.
    pub fn tamper(&mut self, now: Time, change: Tamper) -> Answer {
        self.advance(now);
        self.meddle(change).unwrap_or_else(|refusal| refusal.answer(None))
    }

    fn meddle(&mut self, change: Tamper) -> Result<Answer, Refusal> {
        match change {
            Tamper::Put { id, body } => {
                let answer = self.dispatch(&Request::with(Method::Put, id, body), &Twist::default())?;
                if let Some(operation) = &answer.operation {
                    self.operations.end_now(self.now, operation);
                    self.advance(self.now);
                }
                return Ok(answer);
            }
            Tamper::EditTags { id, tags } => {
                let meta = self.state.meta_mut(&id).ok_or_else(|| Refusal::no_child(&id))?;
                (meta.tags, meta.etag) = (tags, self.counter.etag());
            }
            Tamper::FailWrite(id) => {
                let meta = self.state.meta_mut(&id).ok_or_else(|| Refusal::no_child(&id))?;
                (meta.provisioning, meta.etag) = (Provisioning::Failed, self.counter.etag());
            }
            Tamper::EditLoadBalancer { id, rules } => {
                let load_balancer = self.state.load_balancers.get_mut(&id);
                let load_balancer = load_balancer.ok_or_else(|| Refusal::no_child(&id))?;
                check_rules(&id, &rules, &load_balancer.pools)?;
                (load_balancer.rules, load_balancer.meta.etag) = (rules, self.counter.etag());
            }
            Tamper::EditPastRules(id) => {
                let load_balancer = self.state.load_balancers.get_mut(&id);
                let load_balancer = load_balancer.ok_or_else(|| Refusal::no_child(&id))?;
                (load_balancer.edited, load_balancer.meta.etag) = (true, self.counter.etag());
            }
            Tamper::DetachSubnet(id) => {
                let found = self.state.subnets.get(&id).cloned();
                let subnet = found.ok_or_else(|| Refusal::no_child(&id))?;
                let etag = self.counter.etag();
                self.state.write(&id, Some(Subnet { gateway: None, etag, ..subnet }));
            }
            Tamper::DeleteSubnet(id) => {
                if !self.state.subnets.contains_key(&id) {
                    return Err(Refusal::no_child(&id));
                }
                self.deletable(&id)?;
                self.operations.cancel(self.now, &id);
                self.remove(&id);
            }
            Tamper::DeletePublicIp(id) => self.take_away(&id, Kind::PublicIp)?,
            Tamper::DeleteLoadBalancer(id) => self.take_away(&id, Kind::LoadBalancer)?,
            Tamper::DeleteNatGateway(id) => self.take_away(&id, Kind::NatGateway)?,
            Tamper::DeleteGateway(id) => self.take_away(&id, Kind::Gateway)?,
            Tamper::PutRegistration { gateway, registration } => {
                self.require(&gateway, &Place::Resource(Kind::Gateway))?;
                let requests = [ServiceRequest { is_delete: false, service: registration }];
                self.check_services(&gateway, &requests)?;
                self.apply_services(&gateway, &requests);
            }
            Tamper::DeleteRegistration { gateway, name } => {
                let contents = self.state.contents.get_mut(&gateway);
                let contents =
                    contents.ok_or_else(|| not_found(&gateway, &Place::Resource(Kind::Gateway)))?;
                contents.unmap(&name);
                self.state.register(&gateway, &name, None);
            }
            Tamper::AddAddress { gateway, location, address, services } => {
                self.rebind(&gateway, location, address, services)?;
            }
            Tamper::DeleteAddress { gateway, location, address } => {
                self.rebind(&gateway, location, address, Vec::new())?;
            }
            Tamper::Lock { scope, level } => drop(self.locks.insert(scope, level)),
            Tamper::Unlock(scope) => drop(self.locks.remove(&scope)),
            Tamper::PolicyDeny(scope) => drop(self.denied.insert(scope)),
            Tamper::PolicyAllow(scope) => drop(self.denied.remove(&scope)),
            Tamper::Forbid { scope, what } => drop(self.forbidden.insert(scope, what)),
            Tamper::Permit(scope) => drop(self.forbidden.remove(&scope)),
        }
        Ok(Answer::new(200, Payload::None))
    }

    fn rebind(
        &mut self,
        gateway: &ArmId,
        location: IpAddr,
        address: IpAddr,
        services: Vec<Arc<str>>,
    ) -> Result<(), Refusal> {
        self.require(gateway, &Place::Resource(Kind::Gateway))?;
        let entry = AddressUpdate { address, services };
        let updates = [LocationUpdate { location, full: false, addresses: vec![entry] }];
        self.check_locations(gateway, &updates)?;
        self.apply_locations(gateway, &updates);
        Ok(())
    }

    /// Deletes a resource whoever refers to it, and the references too.
    fn take_away(&mut self, id: &ArmId, kind: Kind) -> Result<(), Refusal> {
        if place(id) != Some(Place::Resource(kind)) {
            return Err(Refusal::no_place(id));
        }
        self.require(id, &Place::Resource(kind))?;
        let users: Vec<ArmId> = self.state.users_of(id).cloned().collect();
        match kind {
            Kind::PublicIp => users.iter().for_each(|user| self.take_public_ip(user, id)),
            Kind::LoadBalancer | Kind::NatGateway => self.state.forget_carrier(id),
            Kind::Gateway => users.iter().for_each(|user| self.detach(user)),
            Kind::VirtualNetwork => {}
        }
        self.operations.cancel(self.now, id);
        self.remove(id);
        Ok(())
    }

    /// Takes a public IP off the load balancer or NAT gateway that uses it.
    fn take_public_ip(&mut self, user: &ArmId, public_ip: &ArmId) {
        let state = &mut self.state;
        if let Some(mut it) = state.load_balancers.get(user).cloned() {
            it.public_ip.take_if(|id| id == public_ip);
            it.meta.etag = self.counter.etag();
            state.write(user, Some(it));
        }
        if let Some(mut it) = state.nat_gateways.get(user).cloned() {
            it.public_ips.retain(|id| id != public_ip);
            it.public_ips_v6.retain(|id| id != public_ip);
            it.meta.etag = self.counter.etag();
            state.write(user, Some(it));
        }
    }

    /// Takes the service gateway off a NAT gateway or subnet.
    fn detach(&mut self, user: &ArmId) {
        let state = &mut self.state;
        if let Some(mut it) = state.nat_gateways.get(user).cloned() {
            (it.gateway, it.meta.etag) = (None, self.counter.etag());
            state.write(user, Some(it));
        }
        if let Some(it) = state.subnets.get(user).cloned() {
            let etag = self.counter.etag();
            state.write(user, Some(Subnet { gateway: None, etag, ..it }));
        }
    }
}
