//! Judges what an engine asks for, at the moment it asks: S4, S7, S8, S13, S14.

use core::time::Duration;

use sluice_engine::ServiceView;
use sluice_model::effect::Action;
use sluice_model::names::Scope;
use sluice_model::plan::{Intent, Subject};
use sluice_model::{Effect, EgressName, ServiceKey, Time};

use super::deeds::Deed;
use super::ledger::Told;
use super::{Book, Tally};
use crate::cluster::Cluster;
use crate::cluster::oracle::refusal;
use crate::names::{Invariant, Violation};

/// The brake looks back about a quarter of an hour, by a clock that may be off.
const BRAKE_WINDOW: Duration = Duration::from_secs(600);

pub(super) fn judge(
    scope: &Scope,
    book: &mut Book,
    effect: &Effect,
    cluster: &Cluster,
    tally: &mut Tally<'_>,
) -> Result<(), Violation> {
    match &effect.action {
        Action::RunPlan(plan) => {
            let Subject::Service(key) = &plan.subject else { return Ok(()) };
            match plan.intent {
                Intent::Deprovision => {
                    if !book.teardown.contains_key(key) {
                        tally.judged(Invariant::S7);
                        s7_unwanted(book, key, cluster)?;
                        s7_brake(scope, book, key, tally.now)?;
                        tally.judged(Invariant::S7);
                        s7_two_sightings(book, key)?;
                    }
                    let seq = book.ledger.seq();
                    book.teardown.insert(key.clone(), seq);
                }
                Intent::Provision | Intent::Update => {
                    if plan.intent == Intent::Provision {
                        book.creations.insert(effect.id, key.clone());
                    }
                    book.teardown.remove(key);
                    tally.judged(Invariant::S4);
                    s4_finalizer_first(book, key)?;
                    tally.judged(Invariant::S14);
                    s14_refused_is_not_served(book, key)?;
                }
                Intent::Inspect | Intent::Adopt => {}
            }
        }
        Action::SyncLocations(updates) => {
            for update in updates {
                for entry in &update.addresses {
                    tally.judged(Invariant::S14);
                    s14_rejected_has_no_address(book, &entry.services)?;
                    tally.judged(Invariant::S8);
                    s8_owner_keeps_its_address(book, (update.location, entry.address), &entry.services)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// **S7**: a failed, partial or stale list deletes nothing.
///
/// Judged when a teardown is first asked for. A Service must be unwanted in the cluster's own
/// truth, or must have said so itself to this process (deleting, not selected, or rejected without an IP that is
/// published, as the watch or the truth shows). An egress must
/// have no unfinished pod among those this process was told of, or none in the truth. Excused: a
/// teardown that has begun goes on whatever happens.
fn s7_unwanted(book: &Book, key: &ServiceKey, cluster: &Cluster) -> Result<(), Violation> {
    match key {
        ServiceKey::Inbound(uid) => {
            let wanted = cluster.services().any(|service| {
                service.meta.uid == *uid && service.body.is_ours() && service.meta.deletion_seconds.is_none()
            });
            let shows =
                |ip| cluster.services().any(|it| it.meta.uid == *uid && it.body.ingress.contains(&ip));
            let said_so = book.seen.service_of(*uid).is_some_and(|service| {
                let rejected = refusal(&service.spec).is_some() && !service.published.is_some_and(shows);
                service.deleting || !service.selected || rejected
            });
            if wanted && !said_so {
                let text = format!("the teardown of {key} is begun, which exists and is wanted");
                return Err(Violation::of(Invariant::S7, text));
            }
        }
        ServiceKey::Outbound(egress) => {
            if !egress.is_default() && book.seen.pods_of(egress, book.egress_namespaces.as_deref()) > 0 {
                let text = format!("the teardown of {key} is begun, which has pods");
                return Err(Violation::of(Invariant::S13, text));
            }
        }
    }
    Ok(())
}

/// **S7**, all at once: the teardown of many services that were found unwanted by comparison is held.
///
/// Counted are services that are registered and in use, as far as this process has been told (a detached NAT gateway is
/// not in use, even if a list that lags still shows its registration), and of which it has no evidence that their deletion is meant ([`super::seen::Seen::is_evident`]): it found them in Azure, or they were
/// missing from a newer list. More than five of them, and more than a tenth of all that Azure has told it of, may go
/// within [`BRAKE_WINDOW`] only with the operator's consent. Excused: Services that are there and rejected.
fn s7_brake(scope: &Scope, book: &mut Book, key: &ServiceKey, now: Time) -> Result<(), Violation> {
    let registered =
        matches!(book.ledger.registration(&key.identity()), Told::Present(face) if !face.cleared);
    let detached =
        matches!(book.ledger.resource(&scope.carrier_id(key)), Told::Present(face) if face.detached);
    let in_use = registered && !detached;
    let rejected = matches!(key, ServiceKey::Inbound(uid)
        if book.seen.service_of(*uid).is_some_and(|service| refusal(&service.spec).is_some()));
    if !in_use || rejected || book.allowed.contains(key) || book.seen.is_evident(key) {
        return Ok(());
    }
    book.found_unwanted.retain(|_, at| now.since(*at) < BRAKE_WINDOW);
    book.found_unwanted.insert(key.clone(), now);
    let limit = 5.max(book.ledger.registrations_told() / 10);
    if book.found_unwanted.len() > limit {
        let text = format!("{} services go at once that nobody deleted", book.found_unwanted.len());
        return Err(Violation::of(Invariant::S7, text));
    }
    Ok(())
}

/// **S7**, from the other side: what people did delete is not held, whoever leads now.
///
/// Excused: by all that Azure had told this process nothing was left, so the deletion was complete and the engine has
/// forgotten the service, and the evidence with it. What turns up under its name later was made by others, or by a
/// late request of a leader that is gone, and is an orphan like any other.
pub(super) fn s7_held_without_evidence(book: &Book, view: &ServiceView) -> Result<(), Violation> {
    let had_something = match &view.key {
        ServiceKey::Inbound(uid) => book.seen.had_our_finalizer(*uid),
        ServiceKey::Outbound(_) => true,
    };
    if had_something && book.seen.is_evident(&view.key) && !book.completed.contains(&view.key) {
        let text = format!("the deletion of {} is held although it was asked for or watched", view.key);
        return Err(Violation::of(Invariant::S7, text));
    }
    Ok(())
}

/// **S7**, for orphans: what nobody ever asked this process for goes only after two complete sightings.
fn s7_two_sightings(book: &Book, key: &ServiceKey) -> Result<(), Violation> {
    let seen = book.ledger.sightings(&key.identity());
    if book.seen.was_ever_named(key) || seen >= 2 {
        return Ok(());
    }
    let text = format!("the teardown of {key} is begun after {seen} sightings, and nobody deleted it");
    Err(Violation::of(Invariant::S7, text))
}

/// **S4**, from the other end: nothing is made for a Service that has not carried our finalizer.
///
/// By its own word, or by the answer to our patch. Excused: somebody took it off since.
fn s4_finalizer_first(book: &Book, key: &ServiceKey) -> Result<(), Violation> {
    match key {
        ServiceKey::Inbound(uid) if !book.finalizers.contains(uid) => {
            let text = format!("{key} is made without ever having carried our finalizer");
            Err(Violation::of(Invariant::S4, text))
        }
        _ => Ok(()),
    }
}

/// **S7**, on the wire: nothing is taken away that no plan of this process wanted to take away.
pub(super) fn s7_planned(book: &Book, deed: &Deed) -> Result<(), Violation> {
    match &deed.key {
        Some(key) if book.teardown.contains_key(key) => Ok(()),
        Some(key) => {
            Err(Violation::of(Invariant::S7, format!("{:?} of {key} belongs to no teardown", deed.kind)))
        }
        None => {
            let text = format!("{:?} of {}, which has no name of ours", deed.kind, deed.target.name());
            Err(Violation::of(Invariant::S7, text))
        }
    }
}

/// **S14**: what is refused is not served.
///
/// Judged when a plan that makes or changes something is asked for: the Service, as this process was told of
/// it, asks for nothing that cannot be had. A load balancer made in spite of its source ranges would be
/// open to the Internet.
fn s14_refused_is_not_served(book: &Book, key: &ServiceKey) -> Result<(), Violation> {
    let ServiceKey::Inbound(uid) = key else { return Ok(()) };
    let refused = book.seen.service_of(*uid).and_then(|service| refusal(&service.spec));
    match refused {
        Some(why) => {
            Err(Violation::of(Invariant::S14, format!("{key} is served although it is refused: {why}")))
        }
        None => Ok(()),
    }
}

/// **S14**: what was rejected during its creation is not served: no address is bound to it.
///
/// Judged on what is about to be sent, for Services whose creation this process has completed although it had been
/// told that they are rejected, for as long as they are. Excused: an IP of theirs was published before.
fn s14_rejected_has_no_address(book: &Book, services: &[std::sync::Arc<str>]) -> Result<(), Violation> {
    let is_rejected = |name: &std::sync::Arc<str>| match ServiceKey::from_identity(name) {
        Some(ServiceKey::Inbound(uid)) => book.rejected.contains(&uid),
        _ => false,
    };
    match services.iter().find(|name| is_rejected(name)) {
        Some(name) => {
            let text = format!("an address is bound to {name}, which was rejected during its creation");
            Err(Violation::of(Invariant::S14, text))
        }
        None => Ok(()),
    }
}

/// **S8**: every event of a pod is fenced by its UID, so an address follows its newest living owner.
///
/// Judged on what is about to be sent: the egress named with an address must be the one whose pod
/// owns it by the obvious reading of all pods seen, and no other egress may be named. A missing
/// name is not judged here (the egress may not be ready); that is L1. Excused: an egress that has the address
/// already, as far as Azure has told this process or the last listing shows, while no pod owns the address or no pod
/// names the egress (an orphan that is not decided about, or an egress of others).
fn s8_owner_keeps_its_address(
    book: &Book,
    (location, address): (core::net::IpAddr, core::net::IpAddr),
    services: &[std::sync::Arc<str>],
) -> Result<(), Violation> {
    let named: Vec<EgressName> = services
        .iter()
        .filter_map(|name| match ServiceKey::from_identity(name) {
            Some(ServiceKey::Outbound(egress)) => Some(egress),
            _ => None,
        })
        .collect();
    if named.is_empty() {
        return Ok(());
    }
    let owner = book.seen.egress_of_address(address, book.egress_namespaces.as_deref());
    let place = (location, address);
    let told = |egress: &EgressName| {
        let name = egress.as_str();
        book.ledger.is_shown(name, place) || book.ledger.mapped_to(name).any(|at| at == place)
    };
    let unused = |egress: &EgressName| book.seen.pods_of(egress, book.egress_namespaces.as_deref()) == 0;
    let stays = named.iter().all(|egress| told(egress) && (owner.is_none() || unused(egress)));
    if !stays && (named.len() > 1 || named.first() != owner.as_ref()) {
        let owner = owner.map_or_else(|| "nobody".to_owned(), |egress| egress.to_string());
        let text = format!("{address} is sent for {named:?} and belongs to {owner}");
        return Err(Violation::of(Invariant::S8, text));
    }
    Ok(())
}

/// **S13**: the set of an egress's pods is exact.
///
/// Judged after every step against the pods that this process was told of, kept as a plain map by
/// UID: the engine wants an egress exactly while an unfinished pod names it. Not judged while
/// egresses linger or when there are more names than allowed.
pub(super) fn s13_exact(book: &Book, egress: &EgressName, view: &ServiceView) -> Result<(), Violation> {
    let pods = book.seen.pods_of(egress, book.egress_namespaces.as_deref());
    let asked = book.seen.is_asked_for(egress);
    if view.wanted != (pods > 0 || asked) || view.pods != pods {
        let text = format!(
            "egress {egress} has {pods} pods and is {}; the engine counts {} and {} it",
            if asked { "asked for" } else { "not asked for" },
            view.pods,
            if view.wanted { "wants" } else { "does not want" }
        );
        return Err(Violation::of(Invariant::S13, text));
    }
    Ok(())
}
