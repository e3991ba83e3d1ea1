//! Deleting: what stands in the way, and what goes along.

use alloc::vec::Vec;

use sluice_model::azure::{ArmId, Gateway, LoadBalancer, NatGateway, Provisioning, PublicIp, Subnet};
use sluice_model::call::{Answer, Payload};

use crate::cloud::Cloud;
use crate::contents::Contents;
use crate::fault::Twist;
use crate::operation::{Lane, Work};
use crate::place::{Place, lies_in};
use crate::refusal::Refusal;

impl Cloud {
    pub(crate) fn delete(&mut self, id: &ArmId, place: &Place, twist: &Twist) -> Result<Answer, Refusal> {
        let work = if *place == Place::Group {
            self.group_deletable(id)?;
            Work::DeleteGroup
        } else {
            self.deletable(id)?;
            Work::Delete
        };
        if !twist.pretends {
            self.state.set_provisioning(id, Provisioning::Deleting);
        }
        let operation = self.begin(id, Lane::Resource, work, self.config.latency.delete, false, twist);
        Ok(Answer { operation: Some(operation), ..Answer::new(202, Payload::None) })
    }

    /// Whether nothing stands in the way of deleting a resource.
    pub(crate) fn deletable(&self, id: &ArmId) -> Result<(), Refusal> {
        let state = &self.state;
        if let Some(public_ip) = state.public_ips.get(id) {
            return match &public_ip.used_by {
                Some(owner) => Err(Refusal::public_ip_used(id, owner)),
                None => Ok(()),
            };
        }
        if state.load_balancers.contains_key(id) && state.is_registered(id) {
            return Err(Refusal::in_use("LoadBalancer", id, "a registered service"));
        }
        if state.nat_gateways.contains_key(id) && state.is_registered(id) {
            return Err(Refusal::in_use("NatGateway", id, "a registered service"));
        }
        if state.gateways.contains_key(id) {
            if let Some(user) = state.users_of(id).find(|&by| by != id) {
                return Err(Refusal::in_use("ServiceGateway", id, user.as_str()));
            }
            if !state.contents.get(id).is_none_or(Contents::is_empty) {
                return Err(Refusal::in_use("ServiceGateway", id, "its registered services"));
            }
        }
        if let Some(subnet) = state.subnets.get(id) {
            // Beside its own gateway, those that have their route target address in it.
            if let Some(gateway) = subnet.gateway.as_ref().or_else(|| state.users_of(id).next()) {
                return Err(Refusal::subnet_used(id, gateway));
            }
        }
        // A network is in use because one of its subnets is, and that is what Azure says.
        let mut gateways = state.users_of(id).filter_map(|user| state.gateways.get(user));
        if state.virtual_networks.contains_key(id)
            && let Some(gateway) = gateways.next()
        {
            return Err(Refusal::subnet_used(&gateway.route_target_subnet, &gateway.meta.id));
        }
        Ok(())
    }

    /// Whether nobody outside a group needs what is in it.
    pub(crate) fn group_deletable(&self, group: &ArmId) -> Result<(), Refusal> {
        let state = &self.state;
        for id in state.inside(group) {
            if let Some(by) = state.users_of(&id).find(|by| !lies_in(by, group)) {
                return Err(Refusal::group_used(group, by));
            }
        }
        Ok(())
    }

    /// Takes a resource away, and its own references with it.
    pub(crate) fn remove(&mut self, id: &ArmId) {
        let state = &mut self.state;
        if let Some(public_ip) = state.write::<PublicIp>(id, None)
            && let Some(address) = public_ip.address
        {
            self.addresses.take_back(address);
        }
        if let Some(load_balancer) = state.write::<LoadBalancer>(id, None)
            && let Some(public_ip) = &load_balancer.public_ip
        {
            state.set_user(public_ip, None);
        }
        if let Some(nat_gateway) = state.write::<NatGateway>(id, None) {
            for public_ip in nat_gateway.public_ips.iter().chain(&nat_gateway.public_ips_v6) {
                state.set_user(public_ip, None);
            }
        }
        if state.write::<Gateway>(id, None).is_some() {
            state.forget_contents(id);
        }
        state.write::<Subnet>(id, None);
        if state.write_network(id, None).is_some() {
            let subnets: Vec<ArmId> = state.subnets_of(id).cloned().collect();
            for subnet in &subnets {
                state.write::<Subnet>(subnet, None);
            }
        }
    }

    pub(crate) fn remove_group(&mut self, group: &ArmId) {
        for id in &self.state.inside(group) {
            self.operations.cancel(self.now, id);
            self.remove(id);
        }
        self.state.groups.remove(group);
    }
}
