//! Plays what goes wrong in a story.

use std::sync::Arc;

use sluice_cloud::Tamper;
use sluice_model::{EgressName, Family, ServiceKey};

use super::World;
use crate::cluster::stories::{Part, Trouble, service_named};
use crate::faults::only_kube_faults;
use crate::names::{FaultKind, Violation};

impl World {
    /// A story says that something goes wrong now.
    pub(super) fn trouble_begins(&mut self, trouble: &Trouble) -> Result<(), Violation> {
        let gateway = self.scope.gateway_id();
        match trouble {
            Trouble::Begins(kind) => return self.fault_begins(*kind),
            Trouble::Strikes { .. } | Trouble::Insists(..) => self.plan.tell(trouble),
            Trouble::Storm(kinds) => self.kube_faults.become_like(&only_kube_faults(kinds)),
            Trouble::ListsLater { kind, by } => self.late_lists.push((*kind, *by)),
            Trouble::Freezes(span) => {
                if self.freeze(*span) {
                    self.coverage.injected(self.now, FaultKind::P4);
                }
            }
            Trouble::DetachesSubnet => self.others_change(Tamper::DetachSubnet(self.scope.subnet_id())),
            Trouble::Deletes { what, of } => {
                let Some(key) = self.key_of(of) else { return Ok(()) };
                let carrier = self.scope.carrier_id(&key);
                self.others_change(match (what, &key) {
                    (Part::PublicIp, _) => Tamper::DeletePublicIp(self.scope.public_ip_id(&key, Family::V4)),
                    (Part::Carrier, ServiceKey::Inbound(_)) => Tamper::DeleteLoadBalancer(carrier),
                    (Part::Carrier, ServiceKey::Outbound(_)) => Tamper::DeleteNatGateway(carrier),
                    (Part::Registration, _) => Tamper::DeleteRegistration { gateway, name: key.identity() },
                });
            }
            Trouble::Binds { address, location, to } => {
                let Some(key) = self.key_of(to) else { return Ok(()) };
                let services = vec![key.identity()];
                let (address, location) = (*address, *location);
                self.others_change(Tamper::AddAddress { gateway, location, address, services });
            }
        }
        Ok(())
    }

    fn others_change(&mut self, change: Tamper) {
        self.cloud.tamper(self.now, change);
        self.destroyed += 3;
        self.coverage.injected(self.now, FaultKind::Z18);
    }

    fn key_of(&self, name: &Arc<str>) -> Option<ServiceKey> {
        match service_named(name) {
            Some(service) => {
                self.cluster.service(&service).map(|stored| ServiceKey::Inbound(stored.meta.uid))
            }
            None => EgressName::parse(name).ok().map(ServiceKey::Outbound),
        }
    }
}
