//! Says in the log how far a start has come: each phase once, with counts.
//!
//! It only looks on. What was listed of Kubernetes, that we lead, what was listed of Azure, and that
//! the first difference has been worked off; a leader begins anew with Azure.

use std::collections::BTreeSet;

use sluice_engine::{Engine, ServiceView};
use sluice_model::effect::{Listable, Listing};
use sluice_model::event::Relist;
use sluice_model::kube::Kind;
use sluice_model::{Event, Outcome, Time};

/// What has been said already.
#[derive(Debug, Default)]
pub(crate) struct StartUp {
    kinds: BTreeSet<Kind>,
    azure: BTreeSet<Listable>,
    leads_since: Option<Time>,
    is_synced: bool,
}

impl StartUp {
    /// An event is about to be handled.
    pub(crate) fn saw(&mut self, now: Time, event: &Event) {
        match event {
            Event::Relisted { objects, version } => {
                let (kind, word, count) = counted(objects);
                if self.kinds.insert(kind) {
                    tracing::info!(count, version, "Kubernetes: {word} listed");
                }
            }
            Event::LeadershipGained => {
                tracing::info!("leading: everything is listed before anything is written");
                self.azure.clear();
                self.leads_since = Some(now);
                self.is_synced = false;
            }
            Event::EffectFinished { outcome: Outcome::Listed { result: Ok(listing), .. }, .. } => {
                let (listable, words) = described(listing);
                if self.azure.insert(listable) {
                    tracing::info!("Azure: {words}");
                }
            }
            _ => {}
        }
    }

    /// A turn is over. Says once that the first difference has been worked off.
    pub(crate) fn look(&mut self, now: Time, engine: &Engine) {
        let Some(since) = self.leads_since.filter(|_| !self.is_synced && engine.initial_sync_done()) else {
            return;
        };
        self.is_synced = true;
        let all = engine.services();
        let count = |holds: fn(&ServiceView) -> bool| all.iter().filter(|it| holds(it)).count();
        tracing::info!(
            took_ms = u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX),
            services = count(|it| it.key.is_inbound()),
            egresses = count(|it| !it.key.is_inbound()),
            live = count(|it| it.live),
            parked = count(|it| it.hold.as_ref().is_some_and(|hold| hold.parked)),
            "initial sync done"
        );
    }
}

fn counted(objects: &Relist) -> (Kind, &'static str, usize) {
    match objects {
        Relist::Services(all) => (Kind::Service, "services", all.len()),
        Relist::Slices(all) => (Kind::Slice, "endpoint slices", all.len()),
        Relist::Nodes(all) => (Kind::Node, "nodes", all.len()),
        Relist::Pods(all) => (Kind::Pod, "pods with an egress label", all.len()),
    }
}

fn described(listing: &Listing) -> (Listable, String) {
    let (listable, count) = match listing {
        Listing::Foundation { gateway, subnet } => {
            let word = |is_there| if is_there { "is there" } else { "is missing" };
            let attached = match subnet {
                Some(subnet) if subnet.gateway.is_some() => ", attached to a gateway",
                Some(_) => ", attached to no gateway",
                None => "",
            };
            let words = format!(
                "the gateway {}, the subnet {}{attached}",
                word(gateway.is_some()),
                word(subnet.is_some())
            );
            return (Listable::Foundation, words);
        }
        Listing::Registrations(all) => (Listable::Registrations, all.len()),
        Listing::Locations(all) => (Listable::Locations, all.len()),
        Listing::LoadBalancers(all) => (Listable::LoadBalancers, all.len()),
        Listing::NatGateways(all) => (Listable::NatGateways, all.len()),
        Listing::PublicIps(all) => (Listable::PublicIps, all.len()),
    };
    (listable, format!("{count} {} listed", listable.word()))
}
