//! Somebody else changes tags of what Services have in Azure.

use sluice_cloud::Tamper;
use sluice_model::azure::{
    ArmId, Direction, LoadBalancerBody, Provisioning, PublicIpBody, Registration, Rule,
};
use sluice_model::call::Body;
use sluice_model::kube::Protocol;
use sluice_model::names::{key_of_public_ip, without_our_tags};
use sluice_model::{Family, ObjectName, ServiceKey};

use super::{World, foreign_tags};
use crate::cluster::stories::{TagChange, Tagged};
use crate::invariants::tags::{meta_of, tag_of_others};

impl World {
    /// Changes the tags of what a Service has. A public IP that loses ours is released: from then on it is
    /// somebody else's, whatever becomes of the Service.
    pub(super) fn retag(&mut self, service: &ObjectName, part: Tagged, change: TagChange) {
        let Some(uid) = self.cluster.service(service).map(|stored| stored.meta.uid) else { return };
        let key = ServiceKey::Inbound(uid);
        let carrier = self.scope.carrier_id(&key);
        let id = match part {
            Tagged::PublicIp => self.scope.public_ip_id(&key, Family::V4),
            Tagged::LoadBalancer => carrier.clone(),
        };
        let state = self.cloud.state();
        let Some(meta) = meta_of(state, &id).filter(|it| it.provisioning == Provisioning::Succeeded) else {
            return;
        };
        let tags = match change {
            TagChange::LoseOurs => without_our_tags(&meta.tags),
            TagChange::GainTheirs => {
                let mut tags = meta.tags.clone();
                tags.extend([tag_of_others(self.destroyed)]);
                tags
            }
        };
        if tags == meta.tags {
            return;
        }
        if change == TagChange::LoseOurs && part == Tagged::LoadBalancer {
            // Without a registration nobody could know whose it is, and more than once is not restored.
            let registration = state.registration(&self.scope.gateway_id(), &key.identity());
            let registered = registration.is_some_and(|it| !it.pools.is_empty());
            let ip = self.scope.public_ip_id(&key, Family::V4);
            if !registered || !self.knows_release(&ip) || !self.untagged.insert(uid) {
                return;
            }
        } else if change == TagChange::LoseOurs {
            // Only what is in use can be released: a public IP on its way in or out is nobody's choice.
            let user = state.public_ips.get(&id).and_then(|ip| ip.used_by.as_ref());
            let used = user.and_then(|user| user.parent("loadBalancers")).as_ref() == Some(&carrier);
            let lb = state.load_balancers.get(&carrier);
            let managed = lb.is_some_and(|lb| {
                self.scope.owns(&lb.meta.tags) && lb.meta.provisioning == Provisioning::Succeeded
            });
            if !(used && managed) {
                return;
            }
            self.foreign.push(id.clone());
            self.released.insert(id.clone());
        }
        self.trace.world(self.now, || format!("the tags of {} become {tags:?}", id.name()));
        self.cloud.tamper(self.now, Tamper::EditTags { id, tags });
        self.destroyed += 3;
    }

    /// Whether every leader has seen that a public IP was released, if it was. Without a tag on either, a load balancer
    /// and its public IP look as if another controller had made them.
    fn knows_release(&self, ip: &ArmId) -> bool {
        let mut leaders = self.processes.iter().flatten().filter(|process| process.leads()).peekable();
        !self.foreign.contains(ip)
            || leaders.peek().is_some() && leaders.all(|it| it.engine.released().contains(ip))
    }

    /// A process that begins to lead cannot know that a public IP was released if its load balancer has lost our tags
    /// since: it may tag both.
    pub(super) fn forget_indistinct_releases(&mut self) {
        let (state, scope) = (self.cloud.state(), &self.scope);
        let is_indistinct = |ip: &ArmId| {
            let key = key_of_public_ip(ip.name()).map(|(key, _)| key);
            let lb = key.and_then(|key| state.load_balancers.get(&scope.carrier_id(&key)));
            self.released.contains(ip) && lb.is_some_and(|lb| !scope.owns(&lb.meta.tags))
        };
        self.foreign.retain(|id| !is_indistinct(id));
    }

    /// Makes what another controller would have for a Service: a public IP and a load balancer without our tag,
    /// registered under its UID. Whoever is stopped halfway takes back what is made.
    pub(super) fn serve_for_others(&mut self, service: &ObjectName) {
        let gateway = self.scope.gateway_id();
        let Some(stored) = self.cluster.service(service) else { return };
        let key = ServiceKey::Inbound(stored.meta.uid);
        let (ip, carrier) = (self.scope.public_ip_id(&key, Family::V4), self.scope.carrier_id(&key));
        let state = self.cloud.state();
        let there = meta_of(state, &ip).is_some() || meta_of(state, &carrier).is_some();
        let family = stored.body.spec.families.first().copied().unwrap_or(Family::V4);
        if there || !state.gateways.contains_key(&gateway) {
            return;
        }
        let rule =
            Rule { protocol: Protocol::Tcp, frontend_port: 80, backend_port: 8_080, idle_timeout_minutes: 4 };
        let tags = foreign_tags();
        let registration = Registration {
            name: key.identity(),
            direction: Direction::Inbound,
            is_default: false,
            pools: vec![self.scope.pool_id(&key)],
            nat_gateway: None,
        };
        let lb = LoadBalancerBody { public_ip: ip.clone(), rules: vec![rule], tags: tags.clone() };
        let deeds = [
            Tamper::Put { id: ip.clone(), body: Body::PublicIp(PublicIpBody { family, tags }) },
            Tamper::Put { id: carrier.clone(), body: Body::LoadBalancer(lb) },
            Tamper::PutRegistration { gateway, registration },
        ];
        let made =
            deeds.into_iter().all(|deed| (200..300).contains(&self.cloud.tamper(self.now, deed).status));
        self.trace.world(self.now, || format!("others serve {service}: {made}"));
        if !made {
            self.cloud.tamper(self.now, Tamper::DeleteLoadBalancer(carrier));
            self.cloud.tamper(self.now, Tamper::DeletePublicIp(ip));
        }
        self.destroyed += 4;
    }
}
