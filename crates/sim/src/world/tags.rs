//! Somebody else changes tags of what Services have in Azure.

use sluice_cloud::Tamper;
use sluice_model::azure::Provisioning;
use sluice_model::names::without_our_tags;
use sluice_model::{Family, ObjectName, ServiceKey};

use super::World;
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
        if change == TagChange::LoseOurs {
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
        }
        self.trace.world(self.now, || format!("the tags of {} become {tags:?}", id.name()));
        self.cloud.tamper(self.now, Tamper::EditTags { id, tags });
        self.destroyed += 3;
    }
}
