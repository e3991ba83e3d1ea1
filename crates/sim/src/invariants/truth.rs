//! Judges the truth itself: S1 of the gateway, S5 and S6.

use std::collections::BTreeMap;
use std::sync::Arc;

use sluice_cloud::State as CloudState;
use sluice_model::azure::{Gateway, GatewayBody, Tags};
use sluice_model::call::Request;
use sluice_model::names::{CREATED_TAG, IDENTITY_TAG, Scope, key_of_public_ip};
use sluice_model::{Family, ServiceKey};

use super::Judge;
use crate::cluster::oracle::refusal;
use crate::cluster::{Cluster, KubeWrite};
use crate::names::{Invariant, Violation};

/// **S1**, of the gateway: one that we did not create never changes but for its tags, and keeps those of others.
///
/// Compared with the gateway as it was first seen without our mark of creation. One that is deleted is
/// forgotten: only others delete gateways here.
pub(super) fn s1_gateway_of_others(judge: &mut Judge, cloud: &CloudState) -> Result<(), Violation> {
    let Some(now) = cloud.gateways.get(&judge.scope.gateway_id()) else {
        judge.gateway_of_others = None;
        return Ok(());
    };
    let Some(first) = &judge.gateway_of_others else {
        judge.gateway_of_others = (!now.meta.tags.contains_key(CREATED_TAG)).then(|| now.clone());
        return Ok(());
    };
    let fields = |it: &Gateway| (GatewayBody { tags: Tags::new(), ..it.body() }, Arc::clone(&it.document));
    let (was, is) = (fields(first), fields(now));
    if was != is {
        let text = format!("the gateway is not ours, was {was:?} and is {is:?}");
        return Err(Violation::of(Invariant::S1, text));
    }
    match first.meta.tags.iter().find(|(name, value)| now.meta.tags.get(*name) != Some(*value)) {
        None => Ok(()),
        Some((name, _)) => {
            let text = format!("the gateway is not ours and has lost its tag {name}");
            Err(Violation::of(Invariant::S1, text))
        }
    }
}

/// **S5**: at most one load balancer, NAT gateway and public IP of each family per identity.
///
/// Counted in Azure's own state, by our cluster tag and the identity tag, whatever the names are.
pub(super) fn s5_one_each(scope: &Scope, cloud: &CloudState) -> Result<(), Violation> {
    let mut counts: BTreeMap<(&str, Option<Family>, Arc<str>), u32> = BTreeMap::new();
    let mut count = |kind, family, tags: &Tags| -> Result<(), Violation> {
        let Some(identity) = tags.get(IDENTITY_TAG).filter(|_| scope.owns(tags)) else { return Ok(()) };
        let found = counts.entry((kind, family, Arc::clone(identity))).or_default();
        *found += 1;
        if *found > 1 {
            let text = format!("{found} {kind}s carry the identity {identity}");
            return Err(Violation::of(Invariant::S5, text));
        }
        Ok(())
    };
    for lb in cloud.load_balancers.values() {
        count("load balancer", None, &lb.meta.tags)?;
    }
    for nat in cloud.nat_gateways.values() {
        count("NAT gateway", None, &nat.meta.tags)?;
    }
    for ip in cloud.public_ips.values() {
        count("public IP", Some(ip.family), &ip.meta.tags)?;
    }
    Ok(())
}

/// Forgets the published IPs of Services that are not wanted any more: they may change. So may the IP of one
/// that is rejected and whose status somebody has wiped, since it is not published again before it is corrected.
pub(super) fn forget_unwanted(judge: &mut Judge, cluster: &Cluster) {
    judge.published.retain(|uid, ip| {
        cluster.services().any(|service| {
            service.meta.uid == *uid
                && service.body.is_ours()
                && service.meta.deletion_seconds.is_none()
                && (service.body.ingress.contains(ip) || refusal(&service.body.spec).is_none())
        })
    });
}

/// **S6**: a published IP never changes while its Service lives and its public IP exists.
///
/// Judged when a status has been written, by what that write took off: the IP that was published for a Service that has been
/// wanted ever since may be replaced only if the public IP with that address is gone.
pub(super) fn s6_published(
    judge: &mut Judge,
    write: &KubeWrite,
    before: &Cluster,
    after: &Cluster,
    cloud: &CloudState,
) -> Result<(), Violation> {
    let KubeWrite::WriteStatus { object, ingress, .. } = write else { return Ok(()) };
    let Some(service) = after.service(&object.name).filter(|service| service.meta.uid == object.uid) else {
        return Ok(());
    };
    let wanted = service.body.is_ours() && service.meta.deletion_seconds.is_none();
    if let Some(old) = judge.published.get(&object.uid).copied()
        && wanted
        && before.service(&object.name).is_some_and(|service| service.body.ingress.contains(&old))
        && !service.body.ingress.contains(&old)
    {
        let id = judge.scope.public_ip_id(&ServiceKey::Inbound(object.uid), Family::V4);
        if cloud.public_ips.get(&id).is_some_and(|ip| ip.address == Some(old)) {
            let text = format!("{old} of {} is taken off although its public IP exists", object.name);
            return Err(Violation::of(Invariant::S6, text));
        }
    }
    match ingress {
        Some(ip) if wanted && service.body.ingress.contains(ip) => {
            judge.published.insert(object.uid, *ip);
            judge.served.insert(object.uid);
        }
        _ => {}
    }
    Ok(())
}

/// **S6**, on the wire: the public IP of a Service that has been wanted since its IP was published
/// is not deleted by us. Excused: a request whose sender has died and that lands late.
pub(super) fn s6_public_ip_stays(
    judge: &Judge,
    request: &Request,
    late: bool,
    cloud: &CloudState,
) -> Result<(), Violation> {
    let Some((ServiceKey::Inbound(uid), _)) = key_of_public_ip(request.target.name()) else { return Ok(()) };
    let published = judge.published.get(&uid);
    let there = cloud.public_ips.get(&request.target).and_then(|ip| ip.address);
    if !late && published.is_some() && published.copied() == there {
        let text = format!("the public IP {} is deleted while its Service lives", request.target.name());
        return Err(Violation::of(Invariant::S6, text));
    }
    Ok(())
}
