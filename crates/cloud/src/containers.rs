//! Writing what the rest stands on: groups, networks, subnets and service gateways.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use sluice_model::azure::{ArmId, ETag, Gateway, GatewayBody, Provisioning, Subnet, SubnetBody};
use sluice_model::call::{Answer, Payload};

use crate::cloud::{Cloud, InlineSubnet};
use crate::fault::Twist;
use crate::operation::Lane;
use crate::place::{Kind, is_name, lies_in};
use crate::put::usable;
use crate::refusal::Refusal;

/// Where most quotas are counted.
pub(crate) const SUBSCRIPTION: &str = "this subscription in this region";

/// A subnet as it is about to be written, still without its version.
struct Written {
    subnet: Subnet,
    /// It is so already.
    settled: bool,
}

impl Cloud {
    pub(crate) fn put_group(&mut self, id: &ArmId, twist: &Twist) -> Answer {
        let is_new = !self.state.groups.contains(id);
        if is_new && !twist.pretends {
            self.state.groups.insert(id.clone());
        }
        Answer::new(if is_new { 201 } else { 200 }, Payload::Container(id.clone()))
    }

    pub(crate) fn put_network_and_subnets(&mut self, id: &ArmId, twist: &Twist) -> Result<Answer, Refusal> {
        let is_new = !self.state.virtual_networks.contains_key(id);
        let quota = self.config.quota;
        if is_new && self.is_full(Kind::VirtualNetwork, id, quota.virtual_networks) {
            return Err(Refusal::over_quota("virtual networks", quota.virtual_networks, SUBSCRIPTION));
        }
        let (written, gone) = self.check_inline(id, twist.subnets.as_deref())?;
        let was_settled = self.state.provisioning_of(id) == Some(Provisioning::Succeeded);
        let unchanged = gone.is_empty() && written.iter().all(|it| it.settled);
        let settled = was_settled && unchanged && !self.unseen_change;
        let etag = self.counter.etag();
        if !twist.pretends {
            self.state.write_network(id, Some(etag.clone()));
            if !settled {
                self.state.set_provisioning(id, Provisioning::Updating);
            }
            for subnet in &gone {
                self.lag_now(subnet, Lane::Resource, twist);
                self.state.write::<Subnet>(subnet, None);
            }
            for Written { mut subnet, settled } in written {
                subnet.etag = etag.clone();
                self.store_subnet(subnet, settled, twist);
            }
        }
        let payload = Payload::Container(id.clone());
        let span = self.config.latency.network;
        // Azure answers 201 to every PUT of a network, also of one that was there.
        Ok(self.put_answer(id, payload, true, settled, span, twist))
    }

    /// Whether a network may have these subnets: how they will be, and which of the old ones go.
    fn check_inline(
        &self,
        network: &ArmId,
        subnets: Option<&[InlineSubnet]>,
    ) -> Result<(Vec<Written>, Vec<ArmId>), Refusal> {
        let Some(subnets) = subnets else { return Ok((Vec::new(), Vec::new())) };
        let most = self.config.quota.subnets_per_network;
        if subnets.len() > most {
            return Err(Refusal::over_quota("subnets", most, network.as_str()));
        }
        let mut written = BTreeMap::new();
        for InlineSubnet { name, body } in subnets {
            if !is_name(name) {
                return Err(Refusal::bad_name(name));
            }
            let id = network.child("subnets", name);
            let subnet = self.check_subnet(&id, network, body)?;
            if written.insert(id, subnet).is_some() {
                return Err(Refusal::twin_names(network, name));
            }
        }
        let old = self.state.subnets_of(network);
        let gone: Vec<ArmId> = old.filter(|id| !written.contains_key(*id)).cloned().collect();
        gone.iter().try_for_each(|id| self.deletable(id))?;
        Ok((written.into_values().collect(), gone))
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
        let is_new = !self.state.subnets.contains_key(id);
        let most = self.config.quota.subnets_per_network;
        if is_new && self.state.subnets_of(network).count() >= most {
            return Err(Refusal::over_quota("subnets", most, network.as_str()));
        }
        let Written { mut subnet, settled } = self.check_subnet(id, network, body)?;
        subnet.etag = self.counter.etag();
        let payload = Payload::Subnet(subnet.clone());
        if !twist.pretends {
            self.store_subnet(subnet, settled, twist);
        }
        Ok(self.put_answer(id, payload, is_new, settled, self.config.latency.network, twist))
    }

    /// How a subnet will be, if it may be so.
    fn check_subnet(&self, id: &ArmId, network: &ArmId, body: &SubnetBody) -> Result<Written, Refusal> {
        if let Some(gateway) = &body.gateway {
            let found = self.check_gateway(gateway, id)?;
            if found.virtual_network != *network {
                return Err(Refusal::missing_reference(gateway, id));
            }
        }
        let old = self.state.subnets.get(id);
        let same = old.is_some_and(|old| old.gateway == body.gateway && old.rest == body.rest);
        let was_settled = self.state.provisioning_of(id) == Some(Provisioning::Succeeded);
        let settled = same && was_settled && !self.unseen_change;
        let subnet = Subnet {
            id: old.map_or(id, |old| &old.id).clone(),
            etag: ETag("".into()),
            gateway: body.gateway.clone(),
            rest: body.rest.clone(),
        };
        Ok(Written { subnet, settled })
    }

    fn store_subnet(&mut self, subnet: Subnet, settled: bool, twist: &Twist) {
        let id = subnet.id.clone();
        self.store(&id, subnet, twist);
        if !settled {
            self.state.set_provisioning(&id, Provisioning::Updating);
        }
    }

    /// Writes a gateway as a whole: what the body and the document leave out is gone.
    pub(crate) fn put_gateway(
        &mut self,
        id: &ArmId,
        body: &GatewayBody,
        document: &str,
        twist: &Twist,
    ) -> Result<Answer, Refusal> {
        let old = self.state.gateways.get(id).cloned();
        if old.is_none() && self.is_full(Kind::Gateway, id, self.config.quota.gateways) {
            return Err(Refusal::over_quota("service gateways", self.config.quota.gateways, SUBSCRIPTION));
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
        let v4 = body.route_target_address.map(IpAddr::V4);
        let v6 = body.route_target_address_v6.map(IpAddr::V6);
        for address in v4.into_iter().chain(v6) {
            let others = self.state.users_of(subnet).filter(|user| *user != id);
            let mut others = others.filter_map(|user| self.state.gateways.get(user));
            if let Some(owner) = others.find(|it| route_targets(it).any(|it| it == address)) {
                return Err(Refusal::private_ip_taken(id, address, &owner.meta.id));
            }
        }
        let address = match body.route_target_address {
            // One that Azure has chosen stays.
            None if v6.is_none() => {
                let former = old.as_ref().and_then(|old| old.route_target_address);
                Some(former.unwrap_or_else(|| self.free_route_target(&body.virtual_network)))
            }
            given => given,
        };
        let settled = old.as_ref().is_some_and(|old| {
            old.meta.provisioning == Provisioning::Succeeded
                && old.meta.tags == body.tags
                && old.route_target_subnet == *subnet
                && old.route_target_address == address
                && old.route_target_address_v6 == body.route_target_address_v6
                && *old.document == *document
        });
        let new = Gateway {
            meta: self.meta(id, old.as_ref().map(|old| &old.meta), &body.tags, settled),
            virtual_network: body.virtual_network.clone(),
            route_target_subnet: subnet.clone(),
            route_target_address: address,
            route_target_address_v6: body.route_target_address_v6,
            document: document.into(),
        };
        let payload = Payload::Gateway(new.clone());
        if self.store(id, new, twist) {
            self.state.contents.entry(id.clone()).or_default();
        }
        Ok(self.put_answer(id, payload, old.is_none(), settled, self.config.latency.gateway, twist))
    }

    /// An address that no gateway of the network has; subnets are opaque to us, so it is the same row for
    /// all of them.
    fn free_route_target(&self, network: &ArmId) -> Ipv4Addr {
        let gateways = self.state.users_of(network).filter_map(|id| self.state.gateways.get(id));
        let taken: BTreeSet<Ipv4Addr> = gateways.filter_map(|it| it.route_target_address).collect();
        let mut row = (4..=u8::MAX).map(|last| Ipv4Addr::new(10, 0, 0, last));
        row.find(|it| !taken.contains(it)).unwrap_or(Ipv4Addr::new(10, 0, 0, 4))
    }

    /// A gateway that `by` wants to refer to.
    pub(crate) fn check_gateway(&self, gateway: &ArmId, by: &ArmId) -> Result<&Gateway, Refusal> {
        let found = self.state.gateways.get(gateway);
        let found = found.ok_or_else(|| Refusal::missing_reference(gateway, by))?;
        usable(gateway, by, found.meta.provisioning)?;
        Ok(found)
    }
}

/// The addresses that routes to a gateway lead to.
fn route_targets(gateway: &Gateway) -> impl Iterator<Item = IpAddr> {
    let v4 = gateway.route_target_address.map(IpAddr::V4);
    v4.into_iter().chain(gateway.route_target_address_v6.map(IpAddr::V6))
}
