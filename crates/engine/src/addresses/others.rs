//! What belongs to others: which pods of ours do not get their address because of it, and how much there is.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::net::IpAddr;

use sluice_model::Uid;

use super::place::Spot;
use super::services::ServiceIndex;
use super::{Addresses, side};

/// A pod whose address an unmanaged egress has.
pub(super) struct Held {
    pod: Uid,
    by: Arc<str>,
    /// People have been warned.
    told: bool,
}

impl Addresses {
    /// Says whether traffic leaves by a service: its registration knows better than its name.
    pub fn set_outbound(&mut self, service: ServiceIndex, outbound: bool) {
        let Some(record) = self.services.get(service).filter(|record| record.outbound != outbound) else {
            return;
        };
        let kept: BTreeSet<Spot> = record.kept.clone();
        self.services[service].outbound = outbound;
        for spot in kept {
            if self.places.is_there(spot.place) {
                self.check(spot);
            }
        }
    }

    /// Whether a service belongs to others, as far as is known.
    pub fn is_unmanaged(&self, service: ServiceIndex) -> bool {
        self.services.get(service).is_some_and(super::services::Service::is_unmanaged)
    }

    /// How many (location, address) pairs are kept because they name unmanaged services.
    pub fn kept_for_others(&self) -> usize {
        let unmanaged = self.services.iter().filter(|(_, service)| service.is_unmanaged());
        unmanaged.flat_map(|(_, service)| &service.kept).collect::<BTreeSet<_>>().len()
    }

    /// Whether the batch in flight is one of ordinary changes and names unmanaged services.
    pub fn sends_names_of_others(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| {
            flight.group.is_none()
                && flight.sent.iter().any(|sent| self.names_others(self.sets.members(sent.set)))
        })
    }

    /// Whether there are pods to be warned about.
    pub fn has_untold_pods(&self) -> bool {
        self.held.values().any(|held| !held.told)
    }

    /// The address of a pod that an unmanaged egress has, and that egress; each is given once.
    pub fn take_held(&mut self, pod: Uid) -> Option<(IpAddr, Arc<str>)> {
        let (spot, held) = self.held.iter_mut().find(|(_, held)| held.pod == pod && !held.told)?;
        held.told = true;
        Some((self.addrs.ip(self.places[spot.place].family, spot.addr), Arc::clone(&held.by)))
    }

    /// Notes whether an unmanaged egress keeps an address from the pod that has it.
    pub(super) fn note_held(&mut self, spot: Spot, kept: &[ServiceIndex]) {
        let keeper = kept.iter().find(|&&it| self.services[it].outbound && self.services[it].is_unmanaged());
        let side = side(self.places[spot.place].family);
        let pod = self.pods.owner[side].get(spot.addr).map(|pod| self.pods.slab[pod]);
        let pod = pod.filter(|pod| {
            self.nodes[pod.node].place[side] == Some(spot.place) && !self.services[pod.service].is_unmanaged()
        });
        let (Some(&keeper), Some(pod)) = (keeper, pod) else {
            self.held.remove(&spot);
            return;
        };
        let by = Arc::clone(self.services.identity(keeper));
        if self.held.get(&spot).is_none_or(|held| held.pod != pod.uid || held.by != by) {
            self.held.insert(spot, Held { pod: pod.uid, by, told: false });
        }
    }
}
