//! What all services stand on: the gateway and its subnet.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::azure::{Gateway, GatewayBody, Provisioning, Subnet};
use sluice_model::effect::{About, Cause, Listable};
use sluice_model::names::CLUSTER_TAG;
use sluice_model::plan::{Intent, PlanReport, Subject};
use sluice_model::reason::Reason;
use sluice_model::seeded::{Bug, Seeded};
use sluice_model::{Action, EffectId, Plan, Step, Time};

use crate::addresses::{ServiceIndex, Trust};
use crate::conditions::same_words;
use crate::config::{Config, GatewayMode};
use crate::engine::{Engine, Errand};
use crate::failure_row::clause;
use crate::hold::{Attempts, Hold};

/// The longest wait before the gateway is tried again, whatever went wrong.
const PARK_MAX: Duration = Duration::from_secs(60);

/// How the gateway stands.
#[derive(Debug, Default)]
pub(crate) struct Foundation {
    standing: Standing,
    in_flight: Option<EffectId>,
    hold: Option<Hold>,
    attempts: Attempts,
    /// A listing showed less than we knew; the next one decides.
    suspected: bool,
    /// Somebody took away what was ready, and it is not ready again.
    drifted: bool,
    told: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
enum Standing {
    /// Nobody has looked.
    #[default]
    Unlisted,
    /// All is there.
    Ready,
    /// This is to be done first.
    Incomplete(Vec<Step>),
    /// We must not, or cannot, use it; why, and what to do.
    Unusable(String),
}

impl Foundation {
    pub(crate) fn was_listed(&self) -> bool {
        self.standing != Standing::Unlisted || self.hold.is_some()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.standing == Standing::Ready
    }

    /// Another cluster's gateway, or none that we may make: nothing in it is ours to compare with.
    pub(crate) fn is_unusable(&self) -> bool {
        matches!(self.standing, Standing::Unusable(_) | Standing::Unlisted)
    }

    /// It cannot be used, or cannot be made for a while: people are told, and services show it.
    pub(crate) fn is_out_of_order(&self) -> bool {
        matches!(self.standing, Standing::Unusable(_)) || self.hold.as_ref().is_some_and(|hold| hold.parked)
    }

    /// Why it cannot be used or made, while that is so.
    pub(crate) fn trouble(&self) -> Option<String> {
        match &self.standing {
            Standing::Unusable(why) => Some(why.clone()),
            _ => self.hold.as_ref().map(|hold| hold.text.clone()),
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.hold.as_ref().filter(|_| self.in_flight.is_none()).map(|hold| hold.until)
    }
}

impl Engine {
    /// Takes in a listing of the gateway and its subnet.
    pub(crate) fn foundation_listed(&mut self, gateway: Option<&Gateway>, subnet: Option<&Subnet>) {
        let standing = standing(&self.config, gateway, subnet, self.seeded);
        let was_ready = self.foundation.is_ready();
        if was_ready && standing != Standing::Ready && !self.foundation.suspected {
            self.foundation.suspected = true;
            self.survey.second_look(Listable::Foundation, self.now, self.config.second_look);
            return;
        }
        self.foundation.suspected = false;
        if self.foundation.in_flight.is_some() {
            return;
        }
        if was_ready && standing != Standing::Ready {
            self.foundation.drifted = true;
            self.counters.drift_found = self.counters.drift_found.saturating_add(1);
        }
        let was_usable = !self.foundation.is_unusable();
        self.foundation.standing = standing;
        self.note_gateway_trouble(was_usable);
        if was_ready && gateway.is_none() {
            self.gateway_is_gone();
        }
        match &self.foundation.standing {
            Standing::Unusable(why) if self.foundation.told.as_ref() != Some(why) => {
                let why = why.clone();
                self.foundation.told = Some(why.clone());
                self.notify(About::Cluster, true, Reason::GatewayUnavailable, why);
                self.touch_all();
            }
            Standing::Ready => self.foundation_became_ready(was_ready),
            _ => {}
        }
    }

    /// What cannot be used is looked at more often than one service among many, and every service shows it.
    fn note_gateway_trouble(&mut self, was_usable: bool) {
        let unusable = matches!(self.foundation.standing, Standing::Unusable(_));
        if unusable {
            self.survey.look_soon(Listable::Foundation, self.now + PARK_MAX);
        } else if !was_usable && self.survey.waits_for_gateway {
            // What was listed meanwhile is old, or was never ours to look at.
            self.survey.begin_again(self.now);
        }
        if unusable != self.survey.waits_for_gateway {
            self.survey.waits_for_gateway = unusable;
            self.touch_all();
        }
    }

    /// With the gateway went everything that was in it.
    fn gateway_is_gone(&mut self) {
        let (now, settle) = (self.now, self.config.settle);
        let all: Vec<ServiceIndex> = self.services.iter().flatten().map(|record| record.index).collect();
        for service in all {
            if let Some(record) = self.record_mut(service)
                && !record.actual.registration.is_fresh(now, settle)
            {
                record.actual.registration.believe(None);
            }
            self.recompare(service);
        }
        self.addresses.listed(now, now, &[], Trust::Reread);
    }

    fn foundation_became_ready(&mut self, was_ready: bool) {
        self.foundation.told = None;
        let repaired = u64::from(core::mem::take(&mut self.foundation.drifted));
        self.counters.drift_repaired = self.counters.drift_repaired.saturating_add(repaired);
        if !was_ready {
            self.touch_all();
            self.end_initial_sync();
        }
    }

    pub(crate) fn work_on_foundation(&mut self) {
        if self.foundation.in_flight.is_some() {
            return;
        }
        if let Some(hold) = &self.foundation.hold {
            if hold.until > self.now {
                return;
            }
            self.foundation.hold = None;
        }
        let Standing::Incomplete(steps) = &self.foundation.standing else { return };
        let plan = Plan { subject: Subject::Foundation, intent: Intent::Provision, steps: steps.clone() };
        let id = self.send(Action::RunPlan(plan), Cause::StartUp, Errand::Foundation);
        self.foundation.in_flight = Some(id);
    }

    pub(crate) fn foundation_finished(&mut self, report: PlanReport) {
        self.foundation.in_flight = None;
        match report.failure {
            None => {
                self.foundation.attempts = Attempts::default();
                self.foundation.standing = Standing::Ready;
                // A new gateway has nothing in it, and an old one may have anything.
                self.survey.trust_next_of_gateway(self.now);
                self.foundation_became_ready(false);
            }
            Some(failure) => {
                let mut jitter = self.jitter.clone();
                let retry = &self.config.retry;
                let mut hold =
                    self.foundation.attempts.hold(self.now, retry, &mut jitter, &failure, self.seeded);
                self.jitter = jitter;
                // Nothing works without it, so it is looked at more often than one service among many.
                hold.until = hold.until.min(self.now + PARK_MAX);
                let until = hold.until;
                let is_new = self.foundation.told.as_ref().is_none_or(|told| !same_words(told, &hold.text));
                if hold.parked && is_new {
                    let (reason, text) = (hold.reason, hold.text.clone());
                    self.foundation.told = Some(text.clone());
                    self.notify(
                        About::Cluster,
                        true,
                        reason,
                        format!(
                            "Cannot set up the gateway: {}. Sluice retries; run `sluice doctor`",
                            clause(&text)
                        ),
                    );
                    self.touch_all();
                }
                self.foundation.hold = Some(hold);
                if self.foundation.is_out_of_order() {
                    self.end_initial_sync();
                }
                self.foundation.standing = Standing::Unlisted;
                // What failed halfway is looked at before it is tried again.
                self.survey.look_soon(Listable::Foundation, until);
            }
        }
    }
}

fn standing(config: &Config, gateway: Option<&Gateway>, subnet: Option<&Subnet>, seeded: Seeded) -> Standing {
    let scope = &config.scope;
    let id = scope.gateway_id();
    let ensure = config.gateway_mode == GatewayMode::Ensure;
    let Some(subnet) = subnet else {
        return Standing::Unusable(format!(
            "Subnet {} does not exist. Create it, or correct vnetName, vnetResourceGroup and subnetName (or sluice.gateway.subnet)",
            scope.subnet_id()
        ));
    };
    if let Some(other) = subnet.gateway.as_ref().filter(|other| **other != id) {
        return Standing::Unusable(format!(
            "Subnet {} is attached to {other}. Detach the subnet, or set sluice.gateway.name to the gateway that it is attached to",
            subnet.id
        ));
    }
    let mut steps = Vec::new();
    match gateway {
        None if !ensure => {
            return Standing::Unusable(format!(
                "Gateway {id} does not exist. Create it, or set sluice.gateway.mode to ensure"
            ));
        }
        None => steps.push(Step::PutGateway { id: id.clone(), body: new_gateway(config) }),
        Some(gateway) => match gateway.meta.tags.get(CLUSTER_TAG) {
            Some(cluster) if **cluster != *scope.cluster_id => {
                return Standing::Unusable(format!(
                    "Gateway {id} belongs to cluster {cluster}. Set another sluice.gateway.name, or correct sluice.clusterId"
                ));
            }
            None if !ensure => {
                return Standing::Unusable(format!(
                    "Gateway {id} is not managed by this cluster. Run `sluice adopt gateway`"
                ));
            }
            claim => {
                // The gateway may be unmanaged: a write sends back only fields that were read.
                if claim.is_none() {
                    steps.push(match seeded.has(Bug::ClaimByPut) {
                        true => Step::PutGateway { id: id.clone(), body: new_gateway(config) },
                        false => Step::ClaimGateway { id: id.clone(), tags: scope.gateway_tags() },
                    });
                }
                if gateway.meta.provisioning == Provisioning::Failed {
                    steps.push(match seeded.has(Bug::RepairByPut) {
                        true => Step::PutGateway { id: id.clone(), body: gateway.body() },
                        false => Step::RepairGateway(id.clone()),
                    });
                }
            }
        },
    }
    if subnet.gateway.is_none() {
        if !ensure {
            return Standing::Unusable(format!(
                "Subnet {} is not attached to the gateway. Attach it, or set sluice.gateway.mode to ensure",
                subnet.id
            ));
        }
        steps.push(Step::AttachSubnet { subnet: subnet.id.clone(), gateway: id });
    }
    if steps.is_empty() { Standing::Ready } else { Standing::Incomplete(steps) }
}

fn new_gateway(config: &Config) -> GatewayBody {
    GatewayBody {
        virtual_network: config.scope.virtual_network_id(),
        route_target_subnet: config.scope.subnet_id(),
        route_target_address: config.route_target_address,
        route_target_address_v6: config.route_target_address_v6,
        tags: config.scope.created_gateway_tags(),
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;
    use sluice_model::azure::{ETag, Meta, Tags};
    use sluice_model::names::Scope;

    fn config() -> Config {
        Config::new(Scope {
            subscription: "s".into(),
            resource_group: "rg".into(),
            network_resource_group: "rg".into(),
            virtual_network: "vnet".into(),
            subnet: "pods".into(),
            gateway: "gw".into(),
            cluster_id: "c1".into(),
        })
    }

    fn subnet(config: &Config) -> Subnet {
        let gateway = Some(config.scope.gateway_id());
        Subnet { id: config.scope.subnet_id(), etag: ETag("1".into()), gateway, rest: "".into() }
    }

    #[test]
    fn a_new_gateway_says_who_created_it_and_has_an_address_of_each_family() {
        let mut config = config();
        config.route_target_address = "10.0.0.4".parse().ok();
        config.route_target_address_v6 = "fd00::4".parse().ok();
        let Standing::Incomplete(steps) = standing(&config, None, Some(&subnet(&config)), Seeded::NONE)
        else {
            panic!("the gateway is missing");
        };
        let [Step::PutGateway { body, .. }] = steps.as_slice() else { panic!("{steps:?}") };
        let tags = [("sluice-cluster", "c1"), ("sluice-created", "true")];
        let tags: Tags = tags.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        assert_eq!(body.tags, tags);
        assert_eq!(body.route_target_address, config.route_target_address);
        assert_eq!(body.route_target_address_v6, config.route_target_address_v6);
    }

    #[test]
    fn a_gateway_of_others_gets_our_cluster_tag_and_nothing_else() {
        let config = config();
        let body = new_gateway(&config);
        let theirs = Gateway {
            meta: Meta {
                id: config.scope.gateway_id(),
                tags: Tags::from([("team".into(), "network".into())]),
                etag: ETag("1".into()),
                provisioning: Provisioning::Succeeded,
            },
            virtual_network: body.virtual_network,
            route_target_subnet: body.route_target_subnet,
            route_target_address: None,
            route_target_address_v6: "fd00::4".parse().ok(),
            document: "{}".into(),
        };
        let id = config.scope.gateway_id();
        let tags = Tags::from([("sluice-cluster".into(), "c1".into())]);
        assert_eq!(
            standing(&config, Some(&theirs), Some(&subnet(&config)), Seeded::NONE),
            Standing::Incomplete(vec![Step::ClaimGateway { id, tags }])
        );
    }
}
