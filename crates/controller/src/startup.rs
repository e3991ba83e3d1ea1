//! Says in the log how far a start has come: each phase once, with counts.
//!
//! It only looks on: that we lead, what was listed of Azure, what the first look at both sides found, and
//! that this has been worked off. What was listed of Kubernetes is said by the watches.

use std::collections::BTreeSet;

use sluice_engine::{Engine, FirstDifference, ServiceView};
use sluice_model::effect::{Listable, Listing};
use sluice_model::{Event, Outcome, Time};

/// What has been said already.
#[derive(Debug, Default)]
pub(crate) struct StartUp {
    azure: BTreeSet<Listable>,
    leads_since: Option<Time>,
    is_compared: bool,
    is_synced: bool,
}

impl StartUp {
    /// An event is about to be handled.
    pub(crate) fn saw(&mut self, now: Time, event: &Event) {
        match event {
            Event::LeadershipGained => {
                tracing::info!("became leader; listing Kubernetes and Azure");
                self.azure.clear();
                self.leads_since = Some(now);
                (self.is_compared, self.is_synced) = (false, false);
            }
            Event::EffectFinished { outcome: Outcome::Listed { result: Ok(listing), .. }, .. }
                if self.azure.insert(kind_of(listing)) =>
            {
                log_listing(listing);
            }
            _ => {}
        }
    }

    /// A turn is over. Says once what the first difference is, and once that it has been worked off.
    pub(crate) fn look(&mut self, now: Time, engine: &Engine) {
        let Some(since) = self.leads_since.filter(|_| !self.is_synced) else { return };
        if !self.is_compared
            && let Some(found) = engine.start_up().found
        {
            self.is_compared = true;
            let FirstDifference {
                right,
                create,
                update,
                delete,
                invalid,
                unclear,
                addresses,
                orphans,
                stuck_finalizers,
            } = found;
            tracing::info!(
                in_sync = right,
                create,
                update,
                delete,
                invalid,
                unclear,
                addresses,
                orphans,
                stuck_finalizers,
                "initial comparison done"
            );
        }
        if !engine.initial_sync_done() {
            return;
        }
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

const fn kind_of(listing: &Listing) -> Listable {
    match listing {
        Listing::Foundation { .. } => Listable::Foundation,
        Listing::Registrations(_) => Listable::Registrations,
        Listing::Locations(_) => Listable::Locations,
        Listing::LoadBalancers(_) => Listable::LoadBalancers,
        Listing::NatGateways(_) => Listable::NatGateways,
        Listing::PublicIps(_) => Listable::PublicIps,
    }
}

fn log_listing(listing: &Listing) {
    let count = match listing {
        Listing::Foundation { gateway, subnet } => {
            let subnet_attached = subnet.as_ref().is_some_and(|subnet| subnet.gateway.is_some());
            let (gateway, subnet) = (gateway.is_some(), subnet.is_some());
            tracing::info!(gateway, subnet, subnet_attached, "read gateway and subnet from Azure");
            return;
        }
        Listing::Registrations(all) => all.len(),
        Listing::Locations(all) => all.len(),
        Listing::LoadBalancers(all) => all.len(),
        Listing::NatGateways(all) => all.len(),
        Listing::PublicIps(all) => all.len(),
    };
    tracing::info!(kind = kind_of(listing).word(), count, "listed Azure resources");
}
