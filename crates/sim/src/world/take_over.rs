//! Services for which another controller has resources before ours serves them.

use sluice_cloud::Tamper;
use sluice_model::{Family, ObjectName, ServiceKey};

use super::World;
use crate::cluster::stories::OthersHave;
use crate::invariants::tags::meta_of;

impl World {
    /// Makes what another controller has for a Service. Without a registration nobody can tell that it was made for
    /// the Service, so it stays as it is.
    pub(super) fn others_have(&mut self, service: &ObjectName, parts: OthersHave) {
        self.serve_for_others(service);
        let Some(stored) = self.cluster.service(service) else { return };
        let key = ServiceKey::Inbound(stored.meta.uid);
        let (ip, carrier) = (self.scope.public_ip_id(&key, Family::V4), self.scope.carrier_id(&key));
        let unregister =
            Tamper::DeleteRegistration { gateway: self.scope.gateway_id(), name: key.identity() };
        let without = match parts {
            OthersHave::Everything => vec![],
            OthersHave::Unregistered => vec![unregister],
            OthersHave::PublicIp => vec![unregister, Tamper::DeleteLoadBalancer(carrier.clone())],
            OthersHave::Registration => {
                vec![Tamper::DeleteLoadBalancer(carrier.clone()), Tamper::DeletePublicIp(ip.clone())]
            }
        };
        for change in without {
            self.cloud.tamper(self.now, change);
        }
        if parts != OthersHave::Everything {
            let left = [ip, carrier].into_iter().filter(|id| meta_of(self.cloud.state(), id).is_some());
            self.foreign.extend(left);
        }
    }
}
