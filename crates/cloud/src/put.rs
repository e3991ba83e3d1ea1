//! Writing public IPs, load balancers and NAT gateways.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use sluice_model::address::Family;
use sluice_model::azure::{
    ArmId, ForeignLoadBalancerBody, LoadBalancer, LoadBalancerBody, NatGateway, NatGatewayBody, Provisioning,
    PublicIp, PublicIpBody, Rule,
};
use sluice_model::call::{Answer, Body, Payload, Request};
use sluice_model::kube::Protocol;

use crate::cloud::Cloud;
use crate::config::Span;
use crate::containers::SUBSCRIPTION;
use crate::contents::lower;
use crate::fault::Twist;
use crate::operation::{Lane, Work};
use crate::place::{Kind, Place, is_name, lies_in, place};
use crate::refusal::Refusal;
use crate::state::Stored;

impl Cloud {
    /// Writes whatever the body says, if it fits the target.
    pub(crate) fn put(&mut self, request: &Request, place: &Place, twist: &Twist) -> Result<Answer, Refusal> {
        let id = &request.target;
        match (place, &request.body) {
            (Place::Group, Body::Container) => Ok(self.put_group(id, twist)),
            (Place::Resource(Kind::VirtualNetwork), Body::Container) => {
                self.put_network_and_subnets(id, twist)
            }
            (Place::Subnet { network }, Body::Subnet(body)) => self.put_subnet(id, network, body, twist),
            (Place::Resource(Kind::Gateway), Body::Gateway(body)) => self.put_gateway(id, body, "", twist),
            (Place::Resource(Kind::Gateway), Body::GatewayAsRead(it)) => {
                self.put_gateway(id, &it.body(), &it.document, twist)
            }
            (Place::Resource(Kind::PublicIp), Body::PublicIp(body)) => self.put_public_ip(id, body, twist),
            (Place::Resource(Kind::LoadBalancer), Body::LoadBalancer(body)) => {
                self.put_load_balancer(id, &as_foreign(id, body), twist)
            }
            (Place::Resource(Kind::LoadBalancer), Body::ForeignLoadBalancer(body)) => {
                self.put_load_balancer(id, body, twist)
            }
            (Place::Resource(Kind::NatGateway), Body::NatGateway(body)) => {
                self.put_nat_gateway(id, body, twist)
            }
            _ => Err(Refusal::bad_request("The body does not fit the resource type.")),
        }
    }

    /// Writes a resource as the twist allows; says whether it did.
    pub(crate) fn store<T: Stored>(&mut self, id: &ArmId, new: T, twist: &Twist) -> bool {
        if twist.pretends {
            return false;
        }
        self.lag_now(id, Lane::Resource, twist);
        self.state.write(id, Some(new));
        true
    }

    /// The answer to a PUT, with the operation that it began.
    pub(crate) fn put_answer(
        &mut self,
        id: &ArmId,
        payload: Payload,
        is_new: bool,
        settled: bool,
        span: Span,
        twist: &Twist,
    ) -> Answer {
        let operation = self.begin(id, Lane::Resource, Work::Provision, span, settled, twist);
        let status = if is_new { 201 } else { 200 };
        Answer { operation: Some(operation), ..Answer::new(status, payload) }
    }

    /// Whether no more of a kind are allowed in the subscription of an id.
    pub(crate) fn is_full(&self, kind: Kind, id: &ArmId, most: usize) -> bool {
        self.state.count(kind, id.segment("subscriptions").unwrap_or("")) >= most
    }

    fn put_public_ip(&mut self, id: &ArmId, body: &PublicIpBody, twist: &Twist) -> Result<Answer, Refusal> {
        let old = self.state.public_ips.get(id).cloned();
        match &old {
            Some(old) if old.family != body.family => return Err(Refusal::family_fixed(id)),
            None if self.is_full(Kind::PublicIp, id, self.config.quota.public_ips) => {
                return Err(Refusal::too_many_public_ips(self.config.quota.public_ips));
            }
            _ => {}
        }
        let settled = old.as_ref().is_some_and(|old| {
            old.meta.provisioning == Provisioning::Succeeded && old.meta.tags == body.tags
        });
        let new = PublicIp {
            meta: self.meta(id, old.as_ref().map(|old| &old.meta), &body.tags, settled),
            family: body.family,
            address: old.as_ref().and_then(|old| old.address),
            used_by: old.as_ref().and_then(|old| old.used_by.clone()),
        };
        let payload = Payload::PublicIp(new.clone());
        self.store(id, new, twist);
        Ok(self.put_answer(id, payload, old.is_none(), settled, self.config.latency.public_ip, twist))
    }

    fn put_load_balancer(
        &mut self,
        id: &ArmId,
        body: &ForeignLoadBalancerBody,
        twist: &Twist,
    ) -> Result<Answer, Refusal> {
        let old = self.state.load_balancers.get(id).cloned();
        let quota = self.config.quota;
        if old.is_none() && self.is_full(Kind::LoadBalancer, id, quota.load_balancers) {
            return Err(Refusal::over_quota("load balancers", quota.load_balancers, SUBSCRIPTION));
        }
        if body.rules.len() > quota.rules_per_load_balancer {
            return Err(Refusal::over_quota("rules", quota.rules_per_load_balancer, id.as_str()));
        }
        check_rules(id, &body.rules, &body.pools)?;
        self.check_pools(id, old.as_ref(), &body.pools)?;
        let frontend = body.frontend.as_ref();
        let frontend = frontend.map(|(name, ip)| (id.child("frontendIPConfigurations", name), ip));
        if let Some((user, public_ip)) = &frontend {
            self.check_public_ip(public_ip, id, user, None)?;
        }
        let former = old.as_ref().and_then(|old| old.public_ip.clone());
        let former_user = former.as_ref().and_then(|ip| self.state.public_ips.get(ip)?.used_by.as_ref());
        let settled = old.as_ref().is_some_and(|old| {
            old.meta.provisioning == Provisioning::Succeeded
                && old.meta.tags == body.tags
                && old.public_ip.as_ref() == frontend.as_ref().map(|(_, public_ip)| *public_ip)
                && former_user == frontend.as_ref().map(|(user, _)| user)
                && old.pools == body.pools
                && sorted(&old.rules) == sorted(&body.rules)
        });
        let new = LoadBalancer {
            meta: self.meta(id, old.as_ref().map(|old| &old.meta), &body.tags, settled),
            public_ip: frontend.as_ref().map(|(_, public_ip)| (*public_ip).clone()),
            pools: body.pools.clone(),
            rules: body.rules.clone(),
            edited: false,
        };
        let payload = Payload::LoadBalancer(new.clone());
        if self.store(id, new, twist) {
            if let Some(former) = &former {
                self.state.set_user(former, None);
            }
            if let Some((user, public_ip)) = frontend {
                self.state.set_user(public_ip, Some(user));
            }
        }
        Ok(self.put_answer(id, payload, old.is_none(), settled, self.config.latency.load_balancer, twist))
    }

    /// What pools a load balancer may have: each once, and none that is registered may be left out.
    fn check_pools(&self, id: &ArmId, old: Option<&LoadBalancer>, pools: &[Arc<str>]) -> Result<(), Refusal> {
        let mut names = BTreeSet::new();
        for pool in pools {
            if !is_name(pool) {
                return Err(Refusal::bad_name(pool));
            }
            if !names.insert(lower(pool)) {
                return Err(Refusal::twin_names(id, pool));
            }
        }
        let gone = old.iter().flat_map(|old| &old.pools).filter(|pool| !names.contains(&lower(pool)));
        for pool in gone {
            let pool = id.child("backendAddressPools", pool);
            if self.state.is_registered(&pool) {
                return Err(Refusal::in_use("BackendAddressPool", &pool, "a registered service"));
            }
        }
        Ok(())
    }

    fn put_nat_gateway(
        &mut self,
        id: &ArmId,
        body: &NatGatewayBody,
        twist: &Twist,
    ) -> Result<Answer, Refusal> {
        let old = self.state.nat_gateways.get(id).cloned();
        let quota = self.config.quota;
        if old.is_none() && self.is_full(Kind::NatGateway, id, quota.nat_gateways) {
            return Err(Refusal::over_quota("NAT gateways", quota.nat_gateways, SUBSCRIPTION));
        }
        if let Some(gateway) = &body.gateway {
            self.check_gateway(gateway, id)?;
        }
        let moves = old.as_ref().is_some_and(|old| old.gateway != body.gateway);
        if moves && self.state.is_registered(id) {
            return Err(Refusal::nat_gateway_registered(id));
        }
        let lists = [(&body.public_ips, Family::V4), (&body.public_ips_v6, Family::V6)];
        for (list, family) in lists {
            if list.len() > quota.public_ips_per_nat_gateway {
                return Err(Refusal::too_many_on_nat_gateway(id, quota.public_ips_per_nat_gateway));
            }
            for (at, public_ip) in list.iter().enumerate() {
                if list.iter().take(at).any(|earlier| earlier == public_ip) {
                    return Err(Refusal::twin_names(id, public_ip.name()));
                }
                self.check_public_ip(public_ip, id, id, Some(family))?;
            }
        }
        let settled = old.as_ref().is_some_and(|old| {
            old.meta.provisioning == Provisioning::Succeeded
                && old.meta.tags == body.tags
                && old.gateway == body.gateway
                && sorted(&old.public_ips) == sorted(&body.public_ips)
                && sorted(&old.public_ips_v6) == sorted(&body.public_ips_v6)
        });
        let new = NatGateway {
            meta: self.meta(id, old.as_ref().map(|old| &old.meta), &body.tags, settled),
            gateway: body.gateway.clone(),
            public_ips: body.public_ips.clone(),
            public_ips_v6: body.public_ips_v6.clone(),
        };
        let payload = Payload::NatGateway(new.clone());
        if self.store(id, new, twist) {
            for former in old.iter().flat_map(|old| old.public_ips.iter().chain(&old.public_ips_v6)) {
                self.state.set_user(former, None);
            }
            for public_ip in body.public_ips.iter().chain(&body.public_ips_v6) {
                self.state.set_user(public_ip, Some(id.clone()));
            }
        }
        Ok(self.put_answer(id, payload, old.is_none(), settled, self.config.latency.nat_gateway, twist))
    }

    /// A public IP that `by` wants as `user`: it is there, usable, free, and of the right family.
    fn check_public_ip(
        &self,
        public_ip: &ArmId,
        by: &ArmId,
        user: &ArmId,
        family: Option<Family>,
    ) -> Result<(), Refusal> {
        if place(public_ip) != Some(Place::Resource(Kind::PublicIp)) {
            return Err(Refusal::bad_request("A public IP address is referenced by an id of another kind."));
        }
        let Some(found) = self.state.public_ips.get(public_ip) else {
            return Err(Refusal::missing_reference(public_ip, by));
        };
        if let Some(expected) = family.filter(|expected| *expected != found.family) {
            return Err(Refusal::wrong_family(public_ip, by, expected));
        }
        match &found.used_by {
            // A frontend of the same load balancer may hand it on to another.
            Some(owner) if owner != user && !lies_in(owner, by) => {
                return Err(Refusal::public_ip_taken(public_ip, by, owner));
            }
            _ => {}
        }
        usable(public_ip, by, found.meta.provisioning)
    }
}

/// Only what is `Succeeded` can be referred to.
pub(crate) fn usable(target: &ArmId, by: &ArmId, state: Provisioning) -> Result<(), Refusal> {
    if state == Provisioning::Succeeded {
        return Ok(());
    }
    Err(Refusal::unprovisioned_reference(target, by, state))
}

/// Ours: one frontend of a fixed name, one pool of the load balancer's own.
fn as_foreign(id: &ArmId, body: &LoadBalancerBody) -> ForeignLoadBalancerBody {
    ForeignLoadBalancerBody {
        frontend: Some(("frontend".into(), body.public_ip.clone())),
        pools: vec![id.name().into()],
        rules: body.rules.clone(),
        tags: body.tags.clone(),
    }
}

/// What rules a load balancer with these pools may have.
pub(crate) fn check_rules(id: &ArmId, rules: &[Rule], pools: &[Arc<str>]) -> Result<(), Refusal> {
    let mut frontends = BTreeMap::new();
    let mut backends = BTreeMap::new();
    for rule in rules {
        let bad = |what: &str, value: u16, allowed: &str| {
            Err(Refusal::bad_value(what, &value.to_string(), allowed))
        };
        if rule.protocol == Protocol::Sctp {
            return Err(Refusal::bad_value("protocol", "Sctp", "Tcp or Udp"));
        }
        if !(1..=65_534).contains(&rule.frontend_port) {
            return bad("frontendPort", rule.frontend_port, "1 to 65534");
        }
        if rule.backend_port == 0 {
            return bad("backendPort", rule.backend_port, "1 to 65535");
        }
        if !(4..=30).contains(&rule.idle_timeout_minutes) {
            return bad("idleTimeoutInMinutes", rule.idle_timeout_minutes.into(), "4 to 30");
        }
        if frontends.insert((rule.protocol, rule.frontend_port), rule).is_some() {
            return Err(Refusal::twin_names(id, &name(rule)));
        }
        let other = backends.insert((rule.protocol, rule.backend_port), rule);
        // Which of several pools a rule leads to is not known here.
        if let (Some(other), [] | [_]) = (other, pools) {
            let [one, two] = [other, rule].map(|rule| id.child("loadBalancingRules", &name(rule)));
            let pool = pools.first().map_or(id.name(), |pool| pool);
            let pool = id.child("backendAddressPools", pool);
            let protocol = if rule.protocol == Protocol::Tcp { "Tcp" } else { "Udp" };
            return Err(Refusal::same_backend([&one, &two], protocol, rule.backend_port, &pool));
        }
    }
    Ok(())
}

fn name(rule: &Rule) -> String {
    format!("rule-{}-{}", rule.protocol.word(), rule.frontend_port)
}

fn sorted<T: Ord>(list: &[T]) -> Vec<&T> {
    let mut sorted: Vec<&T> = list.iter().collect();
    sorted.sort();
    sorted
}
