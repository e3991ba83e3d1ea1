//! Judges one request at the moment it is begun: S1, S2, S3, S9, S10.
//!
//! Everything is judged against the ledger, that is, against what Azure has answered to this very
//! leader. What is excused is said at each function.

use std::collections::BTreeSet;

use sluice_model::call::{Body, Method, Request};
use sluice_model::effect::Listable;
use sluice_model::names::{CLUSTER_TAG, Scope};
use sluice_model::{Family, ServiceKey, Time};

use super::Book;
use super::deeds::{Deed, DeedKind, families_of};
use super::ledger::{Ledger, Told};
use crate::names::{Invariant, Violation};

/// A location request carries at most so many addresses.
const ADDRESSES_MAX: usize = 1_000;
/// And at most so many bytes, by a cautious estimate of its JSON.
const BODY_BYTES_MAX: usize = 1 << 20;
/// A registration request carries at most so many services.
const SERVICES_MAX: usize = 100;

/// **S1**: no load balancer, NAT gateway, public IP or gateway without our tag is modified or deleted.
///
/// Violated when the leader has been told that the resource is there without our cluster tag and
/// writes or deletes it all the same. Excused: the tags of what no cluster has claimed, which are judged by
/// the truth ([`super::tags::s1_as_it_is`]); the tags of a gateway that no cluster has claimed;
/// the subnet; and a resource that the leader has last been told to be absent or ours, because nobody
/// told it otherwise.
pub(super) fn s1_only_ours(scope: &Scope, ledger: &Ledger, deed: &Deed) -> Result<(), Violation> {
    let is_registration = matches!(deed.kind, DeedKind::Register | DeedKind::Clear | DeedKind::Unregister);
    if is_registration || deed.target.segment("subnets").is_some() {
        return Ok(());
    }
    let Told::Present(face) = ledger.resource_before_write(&deed.target) else { return Ok(()) };
    if scope.owns(&face.tags) {
        return Ok(());
    }
    // Whether it may be tagged is judged by the truth.
    if deed.kind == DeedKind::PatchTags && !face.tags.contains_key(CLUSTER_TAG) {
        return Ok(());
    }
    if deed.kind == DeedKind::TagGateway && !face.tags.contains_key(CLUSTER_TAG) {
        return Ok(());
    }
    let text = format!("{:?} of {}, which does not carry our tag", deed.kind, deed.target.name());
    Err(Violation::of(Invariant::S1, text))
}

/// **S2**: no load balancer, NAT gateway or registration is deleted while an address refers to it.
///
/// Violated when, for all that the leader has been told, an address may still be mapped to the
/// service: sent and unanswered counts, and so does an old set that was not seen replaced. The
/// clear step counts as a deletion, because with it traffic ends. Excused: what the leader was
/// never told (late landings, somebody else's edits), and addresses that others have added since the
/// teardown began: a plan runs to its end, and Azure refuses to unregister a service with addresses.
pub(super) fn s2_nothing_mapped(book: &Book, deed: &Deed) -> Result<(), Violation> {
    let Some(key) = &deed.key else { return Ok(()) };
    if !matches!(deed.kind, DeedKind::Clear | DeedKind::Unregister | DeedKind::DeleteCarrier) {
        return Ok(());
    }
    let identity = key.identity();
    let begun = book.teardown.get(key).copied().unwrap_or(u64::MAX);
    match book.ledger.mapped_before(&identity, begun).next() {
        None => Ok(()),
        Some((location, address)) => {
            let text = format!("{:?} of {key} while {address}@{location} may be mapped to it", deed.kind);
            Err(Violation::of(Invariant::S2, text))
        }
    }
}

/// **S3**: drain → clear → inbound: load balancer, then unregister; outbound: unregister, then NAT
/// gateway → public IPs.
///
/// Violated when a step is begun before Azure has told this leader that the one before it is done:
/// confirmed, found absent, or found that way in a listing. The drain is judged by S2, the
/// finalizer by S4. Excused: a registration that was known to be cleared when the plan began and was
/// shown otherwise since: a plan runs to its end, and Azure refuses to delete what a registration refers to.
pub(super) fn s3_in_order(scope: &Scope, book: &Book, deed: &Deed) -> Result<(), Violation> {
    let Some(key) = &deed.key else { return Ok(()) };
    let ledger = &book.ledger;
    let begun = book.teardown.get(key).copied().unwrap_or(u64::MAX);
    let registration = ledger.registration_before_write(&key.identity());
    let cleared = is_cleared(registration) || ledger.is_referred_again_since(&key.identity(), begun);
    let carrier = ledger.resource_before_write(&scope.carrier_id(key));
    let broken = match (deed.kind, key) {
        (DeedKind::DeleteCarrier, ServiceKey::Inbound(_)) => {
            (!cleared).then_some("its registration is not known to be cleared")
        }
        (DeedKind::Unregister, ServiceKey::Inbound(_)) => {
            // No write of ours takes our tag off a load balancer, so a read that shows none is not behind.
            let shown = ledger.tags_shown(&scope.carrier_id(key));
            let released = shown.is_some_and(|tags| !scope.owns(tags));
            (!released && !is_gone(scope, carrier)).then_some("its load balancer is not known to be gone")
        }
        (DeedKind::Unregister, ServiceKey::Outbound(_)) => {
            (!cleared).then_some("its registration is not known to be cleared")
        }
        (DeedKind::DeleteCarrier, ServiceKey::Outbound(_)) => {
            (*registration != Told::Absent).then_some("it is not known to be unregistered")
        }
        (DeedKind::DeletePublicIp, _) if *registration != Told::Absent => {
            Some("it is not known to be unregistered")
        }
        (DeedKind::DeletePublicIp, _) => {
            (!is_gone(scope, carrier)).then_some("its load balancer or NAT gateway is not known to be gone")
        }
        _ => None,
    };
    match broken {
        None => Ok(()),
        Some(why) => Err(Violation::of(Invariant::S3, format!("{:?} of {key} although {why}", deed.kind))),
    }
}

/// **S9**: no request is begun later than the renewal deadline after the last successful renewal of the lease, on the
/// process's own clock; and no write before this leader has listed Azure.
///
/// The gateway itself may be made as soon as it has been looked for: without it there is nothing to list.
pub(super) fn s9_lease_and_listing(
    ledger: &Ledger,
    request: &Request,
    deeds: &[Deed],
    now: Time,
    fence: Option<Time>,
) -> Result<(), Violation> {
    match fence {
        None => {
            return Err(Violation::of(Invariant::S9, "a request is begun without ever having had the lease"));
        }
        Some(fence) if now > fence => {
            let late = now.since(fence);
            let text = format!("a request is begun {} ms after the renewal deadline", late.as_millis());
            return Err(Violation::of(Invariant::S9, text));
        }
        Some(_) => {}
    }
    if matches!(request.method, Method::Get | Method::List | Method::Poll) {
        return Ok(());
    }
    let foundation =
        deeds.iter().any(|deed| matches!(deed.kind, DeedKind::Foundation | DeedKind::TagGateway));
    let needed: &[Listable] = if foundation { &[Listable::Foundation] } else { &Listable::ALL };
    match needed.iter().find(|what| !ledger.has_listed(**what)) {
        None => Ok(()),
        Some(what) => {
            let text = format!("a write is begun before the {} have been listed", what.word());
            Err(Violation::of(Invariant::S9, text))
        }
    }
}

/// **S10**: no duplicates and no mixed families in a request; the size bounds hold.
pub(super) fn s10_well_formed(request: &Request) -> Result<(), Violation> {
    let bad = |text: String| Err(Violation::of(Invariant::S10, text));
    match &request.body {
        Body::Services(entries) => {
            let names: BTreeSet<String> =
                entries.iter().map(|entry| entry.service.name.to_ascii_lowercase()).collect();
            if names.len() != entries.len() {
                return bad(format!("{} entries for {} services", entries.len(), names.len()));
            }
            if entries.len() > SERVICES_MAX || entries.is_empty() {
                return bad(format!("{} services in one request", entries.len()));
            }
        }
        Body::Locations(updates) => {
            let mut locations = BTreeSet::new();
            let mut addresses = 0;
            let mut bytes = 64;
            for update in updates {
                let family = Family::of(update.location);
                if !locations.insert(update.location) {
                    return bad(format!("location {} twice", update.location));
                }
                bytes += 128;
                let mut own = BTreeSet::new();
                for entry in &update.addresses {
                    addresses += 1;
                    bytes += 64;
                    if !own.insert(entry.address) {
                        return bad(format!("address {} twice at {}", entry.address, update.location));
                    }
                    if Family::of(entry.address) != family || entry.address != entry.address.to_canonical() {
                        return bad(format!("address {} at {}", entry.address, update.location));
                    }
                    let services: BTreeSet<_> = entry.services.iter().collect();
                    if services.len() != entry.services.len() {
                        return bad(format!("address {} names a service twice", entry.address));
                    }
                    bytes += entry.services.iter().map(|name| name.len() + 3).sum::<usize>();
                }
            }
            // One address may be too large by itself; it cannot be split.
            if addresses > ADDRESSES_MAX || (bytes > BODY_BYTES_MAX && addresses > 1) || updates.is_empty() {
                return bad(format!("{addresses} addresses, about {bytes} bytes in one request"));
            }
        }
        Body::LoadBalancer(body) => {
            let fronts: BTreeSet<_> =
                body.rules.iter().map(|rule| (rule.protocol, rule.frontend_port)).collect();
            let backs: BTreeSet<_> =
                body.rules.iter().map(|rule| (rule.protocol, rule.backend_port)).collect();
            if fronts.len() != body.rules.len() || backs.len() != body.rules.len() {
                return bad("two rules share a protocol and port".into());
            }
        }
        _ => {}
    }
    Ok(())
}

/// Whether nothing of a service that is ours is left, as far as this leader has been told.
pub(super) fn all_gone(scope: &Scope, ledger: &Ledger, key: &ServiceKey) -> Result<(), String> {
    if *ledger.registration(&key.identity()) != Told::Absent {
        return Err("it may be registered".into());
    }
    if !is_gone(scope, ledger.resource(&scope.carrier_id(key))) {
        return Err("its load balancer or NAT gateway may be there".into());
    }
    for family in families_of(key) {
        // No write of ours takes our tag off what is in use, so a read that shows none is not behind.
        let id = scope.public_ip_id(key, *family);
        let released = ledger.tags_shown(&id).is_some_and(|tags| !scope.owns(tags));
        if !released && !is_gone(scope, ledger.resource(&id)) {
            return Err(format!("its {family} public IP may be there"));
        }
    }
    Ok(())
}

fn is_cleared(registration: &Told) -> bool {
    match registration {
        Told::Absent => true,
        Told::Present(face) => face.cleared,
        Told::Nothing | Told::Unsure => false,
    }
}

/// Absent, or somebody else's.
fn is_gone(scope: &Scope, told: &Told) -> bool {
    match told {
        Told::Absent => true,
        Told::Present(face) => !scope.owns(&face.tags),
        Told::Nothing | Told::Unsure => false,
    }
}
