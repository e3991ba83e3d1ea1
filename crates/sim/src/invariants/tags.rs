//! Judges tags at the moment of the write, by what Azure has and not by what we were told.

use std::sync::Arc;

use sluice_cloud::State as CloudState;
use sluice_model::ServiceKey;
use sluice_model::azure::{ArmId, Meta, Tags};
use sluice_model::call::{Body, Method, Request};
use sluice_model::names::{CLUSTER_TAG, key_of_public_ip, without_our_tags};

use super::Judge;
use super::ledger::Told;
use crate::names::{Invariant, Violation};

/// **S1**, by the truth: nothing without our tag is changed or deleted, and the tags of others survive our writes.
///
/// Excused: what Azure refuses because it is another version by now; what the leader believes to make, since
/// nobody told it that it is there; a request whose sender has died and that lands late; and the tags of a load
/// balancer, and of its public IP, that nobody has claimed and that is registered under the UID of a Service
/// ([`is_adoption`]).
pub(super) fn s1_as_it_is(
    judge: &Judge,
    process: usize,
    request: &Request,
    cloud: &CloudState,
) -> Result<(), Violation> {
    if !matches!(request.method, Method::Put | Method::PatchTags | Method::Delete) {
        return Ok(());
    }
    let Some(now) = meta_of(cloud, &request.target) else { return Ok(()) };
    let told = judge.books.get(&process).map(|book| book.ledger.resource_before_write(&request.target));
    let refused = request.if_match.as_ref().is_some_and(|etag| *etag != now.etag);
    if refused || request.if_match.is_none() && !matches!(told, Some(Told::Present(_))) {
        return Ok(());
    }
    let name = request.target.name();
    if !judge.scope.owns(&now.tags) && !is_adoption(judge, process, request, now, cloud) {
        let text = format!("{:?} of {name}, which has lost our tag", request.method);
        return Err(Violation::of(Invariant::S1, text));
    }
    let Some(written) = tags_in(&request.body) else { return Ok(()) };
    match without_our_tags(&now.tags).iter().find(|(tag, value)| written.get(*tag) != Some(*value)) {
        None => Ok(()),
        Some((tag, _)) => {
            let text = format!("{:?} of {name} wipes the tag {tag} of others", request.method);
            Err(Violation::of(Invariant::S1, text))
        }
    }
}

/// Whether the request puts our tags on a load balancer that nobody has claimed and that the gateway has registered
/// under the UID of a Service that carries our finalizer, or on the public IP that such a load balancer uses. That
/// others have deleted the registration counts from the moment at which the leader was told.
///
/// Under a load balancer that carries our tag, a public IP without it was released and stays so.
fn is_adoption(judge: &Judge, process: usize, request: &Request, now: &Meta, cloud: &CloudState) -> bool {
    let name = request.target.name();
    let key = key_of_public_ip(name).map(|(key, _)| key).or_else(|| ServiceKey::from_identity(name));
    let Some(key @ ServiceKey::Inbound(uid)) = key else { return false };
    let Some(book) = judge.books.get(&process) else { return false };
    let ours = book.finalizers.contains(&uid);
    let told = book.ledger.registration_before_write(&key.identity());
    let registered = cloud.registration(&judge.scope.gateway_id(), &key.identity()).is_some()
        || matches!(told, Told::Present(_));
    let carrier = judge.scope.carrier_id(&key);
    let unclaimed = |meta: &Meta| !meta.tags.contains_key(CLUSTER_TAG);
    let is_part = match cloud.public_ips.get(&request.target) {
        Some(ip) => {
            let user = ip.used_by.as_ref().and_then(|user| user.parent("loadBalancers"));
            user.as_ref() == Some(&carrier) && meta_of(cloud, &carrier).is_some_and(unclaimed)
        }
        None => request.target == carrier,
    };
    let claims = matches!(&request.body, Body::Tags(tags) if judge.scope.owns(tags));
    request.method == Method::PatchTags && claims && unclaimed(now) && ours && registered && is_part
}

/// Id, tags, ETag and state of a public IP, load balancer or NAT gateway.
pub(crate) fn meta_of<'a>(cloud: &'a CloudState, id: &ArmId) -> Option<&'a Meta> {
    let ip = cloud.public_ips.get(id).map(|it| &it.meta);
    let lb = || cloud.load_balancers.get(id).map(|it| &it.meta);
    ip.or_else(lb).or_else(|| cloud.nat_gateways.get(id).map(|it| &it.meta))
}

fn tags_in(body: &Body) -> Option<&Tags> {
    match body {
        Body::PublicIp(body) => Some(&body.tags),
        Body::LoadBalancer(body) => Some(&body.tags),
        Body::NatGateway(body) => Some(&body.tags),
        Body::Tags(tags) => Some(tags),
        _ => None,
    }
}

/// A tag that others put on a resource.
pub(crate) fn tag_of_others(number: u64) -> (Arc<str>, Arc<str>) {
    (format!("cost-centre-{}", number % 3).into(), "somebody else's".into())
}
