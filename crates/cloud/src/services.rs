//! `updateServices`: which services a gateway knows.
//!
//! A request is carried out as a whole or not at all.

use alloc::collections::BTreeSet;

use sluice_model::azure::{ArmId, Direction, Registration, ServiceRequest};
use sluice_model::call::{Answer, Body, Method, Payload, Request};

use crate::cloud::Cloud;
use crate::contents::{Contents, lower};
use crate::fault::Twist;
use crate::locations;
use crate::operation::{Lane, Work};
use crate::put::usable;
use crate::refusal::Refusal;

impl Cloud {
    /// Either of the two POSTs.
    pub(crate) fn post(&mut self, request: &Request, twist: &Twist) -> Result<Answer, Refusal> {
        let gateway = &request.target;
        let (lane, work, bytes) = match (request.method, &request.body) {
            (Method::UpdateServices, Body::Services(requests)) => {
                (Lane::Services, Work::Services(requests.clone()), body_bytes(requests))
            }
            (Method::UpdateLocations, Body::Locations(updates)) => {
                (Lane::Locations, Work::Locations(updates.clone()), locations::body_bytes(updates))
            }
            _ => return Err(Refusal::bad_request("The body does not fit the action.")),
        };
        if bytes > self.config.body_bytes_max {
            return Err(Refusal::too_large(bytes, self.config.body_bytes_max));
        }
        match &work {
            Work::Services(requests) => self.check_services(gateway, requests)?,
            Work::Locations(updates) => self.check_locations(gateway, updates)?,
            _ => {}
        }
        if !(self.config.synchronous_posts || twist.at_once) {
            let span = self.config.latency.gateway;
            let operation = self.begin(gateway, lane, work, span, false, twist);
            return Ok(Answer { operation: Some(operation), ..Answer::new(202, Payload::None) });
        }
        if !twist.pretends {
            self.lag_now(gateway, lane, twist);
            match &work {
                Work::Services(requests) => self.apply_services(gateway, requests),
                Work::Locations(updates) => self.apply_locations(gateway, updates),
                _ => {}
            }
        }
        let operation = twist
            .at_once
            .then(|| self.begin(gateway, lane, Work::Nothing, self.config.latency.gateway, true, twist));
        Ok(Answer { operation, ..Answer::new(200, Payload::None) })
    }

    /// Whether all of a request can be carried out.
    pub(crate) fn check_services(&self, gateway: &ArmId, requests: &[ServiceRequest]) -> Result<(), Refusal> {
        let mut named = BTreeSet::new();
        for request in requests {
            let service = &request.service;
            if service.name.is_empty() {
                return Err(Refusal::bad_request("A service has no name."));
            }
            if !named.insert(lower(&service.name)) {
                return Err(Refusal::service_twice(&service.name));
            }
            if request.is_delete {
                let mapped = self.state.mapped(gateway, &service.name);
                if mapped > 0 {
                    return Err(Refusal::still_mapped(&service.name, mapped));
                }
            } else {
                self.check_registration(gateway, service)?;
            }
        }
        // A default that the request replaces or deletes is none by then.
        let known = self.state.contents.get(gateway);
        let stays = known.into_iter().flat_map(Contents::defaults).filter(|name| !named.contains(*name));
        let comes = requests.iter().filter(|request| !request.is_delete).map(|request| &request.service);
        let comes = comes.filter(|service| service.is_default).map(|service| &service.name);
        let mut defaults = stays.chain(comes);
        match (defaults.next(), defaults.next()) {
            (Some(one), Some(other)) => Err(Refusal::two_defaults(one, other)),
            _ => Ok(()),
        }
    }

    fn check_registration(&self, gateway: &ArmId, service: &Registration) -> Result<(), Refusal> {
        if service.direction == Direction::Inbound && service.nat_gateway.is_some() {
            return Err(Refusal::wrong_direction(&service.name, "is inbound and has a NAT gateway"));
        }
        if service.direction == Direction::Outbound && !service.pools.is_empty() {
            return Err(Refusal::wrong_direction(&service.name, "is outbound and has backend pools"));
        }
        for pool in &service.pools {
            let found = pool.parent("loadBalancers").and_then(|id| self.state.load_balancers.get(&id));
            let load_balancer = found.ok_or_else(|| Refusal::missing_reference(pool, gateway))?;
            let has_it = load_balancer
                .pools
                .iter()
                .any(|name| load_balancer.meta.id.child("backendAddressPools", name) == *pool);
            if !has_it {
                return Err(Refusal::missing_reference(pool, gateway));
            }
            usable(&load_balancer.meta.id, gateway, load_balancer.meta.provisioning)?;
        }
        if let Some(id) = &service.nat_gateway {
            let found = self.state.nat_gateways.get(id);
            let nat_gateway = found.ok_or_else(|| Refusal::missing_reference(id, gateway))?;
            if nat_gateway.gateway.as_ref() != Some(gateway) {
                return Err(Refusal::nat_gateway_elsewhere(id, gateway));
            }
            usable(id, gateway, nat_gateway.meta.provisioning)?;
        }
        Ok(())
    }

    /// Carries out what has been checked.
    pub(crate) fn apply_services(&mut self, gateway: &ArmId, requests: &[ServiceRequest]) {
        for ServiceRequest { is_delete, service } in requests {
            self.state.register(gateway, &service.name, (!is_delete).then(|| service.clone()));
        }
    }
}

/// About how long the JSON of a request is.
fn body_bytes(requests: &[ServiceRequest]) -> usize {
    let one = |request: &ServiceRequest| {
        let service = &request.service;
        let pools: usize = service.pools.iter().map(|pool| pool.as_str().len() + 60).sum();
        let nat_gateway = service.nat_gateway.as_ref().map_or(4, |id| id.as_str().len());
        180 + service.name.len() + pools + nat_gateway
    };
    60 + requests.iter().map(one).sum::<usize>()
}
