//! Judges writes to Kubernetes and what is shown to people: S4, S8, S9, S14.

use std::collections::BTreeMap;
use std::net::IpAddr;

use sluice_engine::{ServiceView, State};
use sluice_model::kube::{Condition, ConditionKind, ObjectRef};
use sluice_model::names::Scope;
use sluice_model::reason::Reason;
use sluice_model::{Family, ServiceKey, Time, Uid};

use super::ledger::{Face, Told};
use super::requests::all_gone;
use super::{Book, Tally};
use crate::cluster::objects::is_tagged_for;
use crate::cluster::oracle::refusal;
use crate::cluster::{Cluster, KubeWrite};
use crate::names::{Invariant, Violation};

pub(super) fn judge(
    scope: &Scope,
    book: &Book,
    now: Time,
    published: &BTreeMap<Uid, IpAddr>,
    write: &KubeWrite,
    tally: &mut Tally<'_>,
) -> Result<(), Violation> {
    tally.judged(Invariant::S9);
    if book.fence.is_none_or(|fence| now > fence) {
        return Err(Violation::of(Invariant::S9, "Kubernetes is written without the lease"));
    }
    let key = ServiceKey::Inbound(write.object().uid);
    match write {
        KubeWrite::RemoveFinalizer(object) => {
            tally.judged(Invariant::S4);
            s4_proven_gone(scope, book, &key)?;
            s4_nothing_of_others(scope, book, object)
        }
        KubeWrite::WriteStatus { ingress: Some(ip), .. } => {
            tally.judged(Invariant::S14);
            s14_registered(scope, book, now, &key, *ip)?;
            tally.judged(Invariant::S14);
            s14_rejected_is_not_published(book, write.object().uid, *ip, published)
        }
        KubeWrite::WriteStatus { ingress: None, conditions, .. } => {
            tally.judged(Invariant::S14);
            s14_serving_has_an_ip(write.object(), conditions)
        }
        _ => Ok(()),
    }
}

/// **S14**: a Service without a published IP is not shown as served.
fn s14_serving_has_an_ip(object: &ObjectRef, conditions: &[Condition]) -> Result<(), Violation> {
    if conditions.iter().any(|it| it.kind == ConditionKind::Serving && it.holds) {
        let text = format!("{} is shown as served without an IP", object.name);
        return Err(Violation::of(Invariant::S14, text));
    }
    Ok(())
}

/// **S4**: our finalizer goes only after Azure's side is proven gone.
///
/// Violated when, by what Azure has told this leader, the registration, the load balancer or the
/// public IP may still be there and be ours. That it never goes from an object with another UID is
/// judged when the write lands (S8).
fn s4_proven_gone(scope: &Scope, book: &Book, key: &ServiceKey) -> Result<(), Violation> {
    all_gone(scope, &book.ledger, key)
        .map_err(|why| Violation::of(Invariant::S4, format!("the finalizer of {key} goes although {why}")))
}

/// **S4**, for inherited finalizers: without ours beside them they go only when no resource of others has the
/// UID of the Service or is tagged for it.
///
/// Judged by what Azure has told this leader. Excused: a Service that has carried our finalizer as well.
fn s4_nothing_of_others(scope: &Scope, book: &Book, object: &ObjectRef) -> Result<(), Violation> {
    let inherited = book.seen.service_of(object.uid).is_some_and(|service| service.inherited);
    if !inherited || book.finalizers.contains(&object.uid) {
        return Ok(());
    }
    let key = ServiceKey::Inbound(object.uid);
    let own = [scope.carrier_id(&key), scope.public_ip_id(&key, Family::V4)];
    let own = own.into_iter().find(|id| matches!(book.ledger.resource(id), Told::Present(_)));
    let is_theirs = |ip: &Face| !scope.owns(&ip.tags) && is_tagged_for(&ip.tags, &object.name);
    let tagged = book.ledger.public_ips().find(|(_, ip)| is_theirs(ip));
    match own.or(tagged.map(|(id, _)| id.clone())) {
        Some(id) => {
            let text = format!("the inherited finalizer of {} goes although {id} is there", object.name);
            Err(Violation::of(Invariant::S4, text))
        }
        None => Ok(()),
    }
}

/// **S14**: status is honest: an IP is published only when its service is registered.
///
/// Violated when an IP is added although this leader has not been told that the service is
/// registered with its pool, or that its public IP has this address. An IP that the Service already
/// shows stays while somebody else's damage is repaired (S6), so writing it again is no publication.
fn s14_registered(
    scope: &Scope,
    book: &Book,
    now: Time,
    key: &ServiceKey,
    ip: core::net::IpAddr,
) -> Result<(), Violation> {
    let ServiceKey::Inbound(uid) = key else { return Ok(()) };
    if book.seen.service_of(*uid).is_some_and(|service| service.ingress.contains(&ip)) {
        return Ok(());
    }
    let registered = book.ledger.is_registered(now, &key.identity());
    let addresses = book.ledger.addresses_of(&scope.public_ip_id(key, Family::V4));
    if !registered || !addresses.contains(&ip) {
        let text = format!("{ip} is published for {key}: registered {registered}, its address {addresses:?}");
        return Err(Violation::of(Invariant::S14, text));
    }
    Ok(())
}

/// **S14**: a spec that is refused is never published.
///
/// Violated when an IP is added to a Service that, as this process was told of it, asks for what cannot be had.
/// Excused: an IP that has been published before stays while the live load balancer does.
fn s14_rejected_is_not_published(
    book: &Book,
    uid: Uid,
    ip: IpAddr,
    published: &BTreeMap<Uid, IpAddr>,
) -> Result<(), Violation> {
    let Some(service) = book.seen.service_of(uid) else { return Ok(()) };
    match refusal(&service.spec) {
        Some(why) if !service.ingress.contains(&ip) && published.get(&uid) != Some(&ip) => {
            let text = format!("{ip} is published for {} although it is refused: {why}", service.name);
            Err(Violation::of(Invariant::S14, text))
        }
        _ => Ok(()),
    }
}

/// **S14**: a spec that is refused is never shown as `UpdateInProgress`, unless an update that began before is
/// still running.
pub(super) fn s14_rejected_is_no_update(view: &ServiceView) -> Result<(), Violation> {
    let rejected = view.invalid.as_ref().is_some_and(|(reason, _)| *reason == Reason::InvalidSpec);
    if rejected && view.state == State::UpdateInProgress && view.operation.is_none() {
        let text = format!("{} is refused and shown as {}", view.key, view.state);
        return Err(Violation::of(Invariant::S14, text));
    }
    Ok(())
}

/// **S14**: parked means a visible reason.
pub(super) fn s14_parked_says_why(view: &ServiceView) -> Result<(), Violation> {
    let silent = view.hold.as_ref().is_some_and(|hold| hold.parked && hold.text.trim().is_empty())
        || view.invalid.as_ref().is_some_and(|(_, text)| text.trim().is_empty());
    if silent {
        return Err(Violation::of(Invariant::S14, format!("{} is held and does not say why", view.key)));
    }
    Ok(())
}

/// **S8**: a write that lands changes only the incarnation that it names.
pub(super) fn s8_fenced(write: &KubeWrite, before: &Cluster, after: &Cluster) -> Result<(), Violation> {
    let object = write.object();
    let (was, is) = (before.service(&object.name), after.service(&object.name));
    let other = was.is_some_and(|service| service.meta.uid != object.uid);
    if other && was != is {
        let text = format!("a write for {} changed another object of that name", object.name);
        return Err(Violation::of(Invariant::S8, text));
    }
    Ok(())
}
