//! What the controller would write after a step, decided from the model's truth and the same for both sides.

use std::net::IpAddr;

use sluice_model::kube::{Concern, Condition, ConditionKind, ObjectRef};
use sluice_model::reason::Reason;
use sluice_sim::cluster::objects::OUR_FINALIZER;
use sluice_sim::cluster::{Cluster, KubeWrite};

/// The next write, if one is needed.
pub(crate) fn next_write(cluster: &Cluster) -> Option<KubeWrite> {
    cluster.services().find_map(|stored| {
        let object = ObjectRef { uid: stored.meta.uid, name: stored.meta.name.clone() };
        let body = &stored.body;
        let wanted = body.is_ours() && stored.meta.deletion_seconds.is_none();
        let finalizer = stored.meta.finalizers.contains(OUR_FINALIZER);
        if wanted && !finalizer {
            return Some(KubeWrite::AddFinalizer(object));
        }
        let ip = IpAddr::from([203, 0, 113, 1]);
        let (ingress, conditions) = match wanted {
            true => (Some(ip), conditions()),
            false => (None, Vec::new()),
        };
        let is_written = body.published == ingress
            && body.conditions == conditions
            && (!wanted || body.ingress.contains(&ip));
        if (wanted || finalizer) && !is_written {
            let retract = body.published.filter(|it| Some(*it) != ingress);
            return Some(KubeWrite::WriteStatus { object, ingress, retract, conditions, based_on: None });
        }
        let carries = finalizer || stored.carries_inherited();
        (!wanted && carries).then_some(KubeWrite::RemoveFinalizer(object))
    })
}

fn conditions() -> Vec<Condition> {
    let mut conditions = vec![
        Condition::new(ConditionKind::Provisioning, false, Reason::Provisioned, Concern::Resources),
        Condition::new(ConditionKind::Serving, true, Reason::Provisioned, Concern::Resources),
    ];
    conditions.sort();
    conditions
}
