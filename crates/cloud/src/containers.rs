//! Writing what the rest stands on: groups, networks, subnets and service gateways.

use alloc::collections::BTreeSet;
use core::net::{IpAddr, Ipv4Addr};

use sluice_model::azure::{ArmId, Gateway, GatewayBody, Provisioning, Subnet, SubnetBody};
use sluice_model::call::{Answer, Payload};

use crate::cloud::Cloud;
use crate::fault::Twist;
use crate::place::{Kind, lies_in};
use crate::put::usable;
use crate::refusal::Refusal;

impl Cloud {
    pub(crate) fn put_group(&mut self, id: &ArmId, twist: &Twist) -> Answer {
        let is_new = !self.state.groups.contains(id);
        if is_new && !twist.pretends {
            self.state.groups.insert(id.clone());
        }
        Answer::new(if is_new { 201 } else { 200 }, Payload::Container(id.clone()))
    }

    pub(crate) fn put_network(&mut self, id: &ArmId, twist: &Twist) -> Answer {
        let etag = self.counter.etag();
        let is_new = !self.state.virtual_networks.contains_key(id);
        if !twist.pretends {
            self.state.write_network(id, Some(etag));
        }
        let payload = Payload::Container(id.clone());
        self.put_answer(id, payload, is_new, !is_new, self.config.latency.network, twist)
    }

    pub(crate) fn put_subnet(
        &mut self,
        id: &ArmId,
        network: &ArmId,
        body: &SubnetBody,
        twist: &Twist,
    ) -> Result<Answer, Refusal> {
        if !self.state.virtual_networks.contains_key(network) {
            return Err(Refusal::no_parent(network));
        }
        if let Some(gateway) = &body.gateway {
            let found = self.check_gateway(gateway, id)?;
            if found.virtual_network != *network {
                return Err(Refusal::missing_reference(gateway, id));
            }
        }
        let old = self.state.subnets.get(id).cloned();
        let settled = old.as_ref().is_some_and(|old| old.gateway == body.gateway && old.rest == body.rest);
        let new = Subnet {
            id: old.as_ref().map_or(id, |old| &old.id).clone(),
            etag: self.counter.etag(),
            gateway: body.gateway.clone(),
            rest: body.rest.clone(),
        };
        let payload = Payload::Subnet(new.clone());
        self.store(id, new, twist);
        Ok(self.put_answer(id, payload, old.is_none(), settled, self.config.latency.network, twist))
    }

    pub(crate) fn put_gateway(
        &mut self,
        id: &ArmId,
        body: &GatewayBody,
        twist: &Twist,
    ) -> Result<Answer, Refusal> {
        let old = self.state.gateways.get(id).cloned();
        if old.is_none() && self.is_full(Kind::Gateway, id, self.config.quota.gateways) {
            return Err(Refusal::over_quota("service gateways", self.config.quota.gateways));
        }
        if !self.state.virtual_networks.contains_key(&body.virtual_network) {
            return Err(Refusal::missing_reference(&body.virtual_network, id));
        }
        let subnet = &body.route_target_subnet;
        if !self.state.subnets.contains_key(subnet) || !lies_in(subnet, &body.virtual_network) {
            return Err(Refusal::missing_reference(subnet, id));
        }
        if old.as_ref().is_some_and(|old| old.virtual_network != body.virtual_network) {
            return Err(Refusal::fixed("The virtual network", id));
        }
        let address = body.route_target_address.or(old.as_ref().and_then(|old| old.route_target_address));
        let settled = old.as_ref().is_some_and(|old| {
            old.meta.provisioning == Provisioning::Succeeded
                && old.meta.tags == body.tags
                && old.route_target_subnet == *subnet
                && old.route_target_address == address
        });
        let new = Gateway {
            meta: self.meta(id, old.as_ref().map(|old| &old.meta), &body.tags, settled),
            virtual_network: body.virtual_network.clone(),
            route_target_subnet: subnet.clone(),
            route_target_address: Some(
                address.unwrap_or_else(|| self.free_route_target(&body.virtual_network)),
            ),
        };
        let payload = Payload::Gateway(new.clone());
        if self.store(id, new, twist) {
            self.state.contents.entry(id.clone()).or_default();
        }
        Ok(self.put_answer(id, payload, old.is_none(), settled, self.config.latency.gateway, twist))
    }

    /// An address that no gateway of the network has; subnets are opaque to us, so it is the same row for
    /// all of them.
    fn free_route_target(&self, network: &ArmId) -> IpAddr {
        let gateways = self.state.users_of(network).filter_map(|id| self.state.gateways.get(id));
        let taken: BTreeSet<IpAddr> = gateways.filter_map(|it| it.route_target_address).collect();
        let row = (4..=u8::MAX).map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
        row.into_iter().find(|it| !taken.contains(it)).unwrap_or(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 4)))
    }

    /// A gateway that `by` wants to refer to.
    pub(crate) fn check_gateway(&self, gateway: &ArmId, by: &ArmId) -> Result<&Gateway, Refusal> {
        let found = self.state.gateways.get(gateway);
        let found = found.ok_or_else(|| Refusal::missing_reference(gateway, by))?;
        usable(gateway, by, found.meta.provisioning)?;
        Ok(found)
    }
}
