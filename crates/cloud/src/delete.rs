//! Deleting: what stands in the way, and what goes along.

use alloc::vec::Vec;

use sluice_model::azure::{ArmId, Provisioning};
use sluice_model::call::{Answer, Payload};

use crate::cloud::Cloud;
use crate::fault::Twist;
use crate::operation::{Lane, Work};
use crate::place::{Place, lies_in};
use crate::refusal::Refusal;
use crate::state::Contents;

impl Cloud {
    pub(crate) fn delete(&mut self, id: &ArmId, place: &Place, twist: &Twist) -> Result<Answer, Refusal> {
        let work = if *place == Place::Group {
            self.group_deletable(id)?;
            Work::DeleteGroup
        } else {
            self.deletable(id)?;
            Work::Delete
        };
        self.state.set_provisioning(id, Provisioning::Deleting);
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
            if let Some((user, _)) = state.references().find(|&(by, target)| target == id && by != id) {
                return Err(Refusal::in_use("ServiceGateway", id, user.as_str()));
            }
            if !state.contents.get(id).is_none_or(Contents::is_empty) {
                return Err(Refusal::in_use("ServiceGateway", id, "its registered services"));
            }
        }
        if let Some(subnet) = state.subnets.get(id) {
            let route = state.gateways.values().find(|gateway| gateway.route_target_subnet == *id);
            if let Some(gateway) = subnet.gateway.as_ref().or(route.map(|gateway| &gateway.meta.id)) {
                return Err(Refusal::in_use("Subnet", id, gateway.as_str()));
            }
        }
        if state.virtual_networks.contains_key(id)
            && let Some(gateway) = state.gateways.values().find(|gateway| gateway.virtual_network == *id)
        {
            return Err(Refusal::in_use("VirtualNetwork", id, gateway.meta.id.as_str()));
        }
        Ok(())
    }

    /// Whether nobody outside a group needs what is in it.
    pub(crate) fn group_deletable(&self, group: &ArmId) -> Result<(), Refusal> {
        let mut references = self.state.references();
        match references.find(|(by, target)| lies_in(target, group) && !lies_in(by, group)) {
            Some((by, _)) => Err(Refusal::group_used(group, by)),
            None => Ok(()),
        }
    }

    /// Takes a resource away, and its own references with it.
    pub(crate) fn remove(&mut self, id: &ArmId) {
        let state = &mut self.state;
        if let Some(public_ip) = state.public_ips.remove(id)
            && let Some(address) = public_ip.address
        {
            self.addresses.take_back(address);
        }
        if let Some(load_balancer) = state.load_balancers.remove(id)
            && let Some(public_ip) = &load_balancer.public_ip
        {
            state.set_user(public_ip, None);
        }
        if let Some(nat_gateway) = state.nat_gateways.remove(id) {
            for public_ip in nat_gateway.public_ips.iter().chain(&nat_gateway.public_ips_v6) {
                state.set_user(public_ip, None);
            }
        }
        state.gateways.remove(id);
        state.contents.remove(id);
        state.subnets.remove(id);
        if state.virtual_networks.remove(id).is_some() {
            state.subnets.retain(|subnet, _| !lies_in(subnet, id));
        }
    }

    pub(crate) fn remove_group(&mut self, group: &ArmId) {
        let state = &self.state;
        let all = (state.gateways.keys())
            .chain(state.load_balancers.keys())
            .chain(state.nat_gateways.keys())
            .chain(state.public_ips.keys())
            .chain(state.subnets.keys())
            .chain(state.virtual_networks.keys());
        let inside: Vec<ArmId> = all.filter(|id| lies_in(id, group)).cloned().collect();
        for id in &inside {
            self.operations.cancel(self.now, id);
            self.remove(id);
        }
        self.state.groups.remove(group);
    }
}
