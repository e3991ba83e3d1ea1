//! What can be claimed: registered with our gateway for somebody who lives, named as ours are, and nobody's.

use std::collections::BTreeMap;

use sluice_model::ServiceKey;
use sluice_model::azure::{ArmId, Meta, Registration, Tags};
use sluice_model::effect::Listing;
use sluice_model::event::Relist;
use sluice_model::kube::Phase;
use sluice_model::names::{CLUSTER_TAG, Scope};
use sluice_model::{EgressName, Event, Family, ObjectName};

use crate::plan::foresight::Worlds;

/// One resource to tag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    /// What it is.
    pub(super) what: &'static str,
    /// Which.
    pub(super) id: ArmId,
    /// For whom: `service/shop/web`, `egress/blue`, or `gateway` for everybody.
    pub(super) of: String,
    /// The tags that it gets beside its own.
    pub(super) tags: Tags,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) claimable: Vec<Candidate>,
    /// Names, and why they are left alone.
    pub(super) left_alone: Vec<(String, String)>,
}

/// Looks through everything that is registered.
pub(super) fn candidates(scope: &Scope, worlds: &Worlds) -> Found {
    let live = live(worlds);
    let resources = resources(worlds);
    let mut found = Found::default();
    found.claimable.extend(unclaimed_gateway(scope, worlds));
    for registration in registrations(worlds) {
        let Some(key) = ServiceKey::from_identity(&registration.name) else { continue };
        let Some(object) = live.get(&key) else { continue };
        let carrier = scope.carrier_id(&key);
        let of = match object {
            Some(name) => format!("service/{name}"),
            None => format!("egress/{}", key.identity()),
        };
        let named = registration.pools.iter().all(|pool| *pool == scope.pool_id(&key))
            && registration.nat_gateway.iter().all(|nat| *nat == carrier);
        if !named {
            let why = "its registered resources do not have the names that Sluice uses".to_owned();
            found.left_alone.push((of, why));
            continue;
        }
        let what = if key.is_inbound() { "load balancer" } else { "NAT gateway" };
        let ips = Family::ALL.map(|family| ("public IP", scope.public_ip_id(&key, family)));
        let mut ids = vec![(what, carrier)];
        ids.extend(ips);
        ids.dedup_by(|a, b| a.1 == b.1);
        for (what, id) in ids {
            let Some(meta) = resources.get(&id) else { continue };
            match meta.tags.get(CLUSTER_TAG) {
                Some(owner) if **owner == *scope.cluster_id => {}
                Some(owner) => {
                    let why = format!("managed by cluster {owner}");
                    found.left_alone.push((format!("{what} {}", id.name()), why));
                }
                None => {
                    let tags = scope.tags(&key, object.as_ref());
                    found.claimable.push(Candidate { what, id, of: of.clone(), tags });
                }
            }
        }
    }
    found
}

/// The gateway itself, which a controller that only verifies will not claim.
fn unclaimed_gateway(scope: &Scope, worlds: &Worlds) -> Option<Candidate> {
    let gateway = worlds.azure.iter().find_map(|listing| match listing {
        Listing::Foundation { gateway, .. } => gateway.as_ref(),
        _ => None,
    })?;
    (!gateway.meta.tags.contains_key(CLUSTER_TAG)).then(|| Candidate {
        what: "service gateway",
        id: scope.gateway_id(),
        of: "gateway".to_owned(),
        tags: scope.gateway_tags(),
    })
}

/// Services of ours and egresses that somebody wants, with the objects behind them; and Services that are kept by
/// finalizers of another controller until what it left behind is claimed or deleted.
fn live(worlds: &Worlds) -> BTreeMap<ServiceKey, Option<ObjectName>> {
    let mut live = BTreeMap::new();
    for event in &worlds.kubernetes {
        let Event::Relisted { objects, .. } = event else { continue };
        match objects {
            Relist::Services(services) => live.extend(
                (services.iter().filter(|it| it.selected && !it.deleting || it.inherited))
                    .map(|it| (ServiceKey::Inbound(it.uid), Some(it.name.clone()))),
            ),
            Relist::Pods(pods) => live.extend(
                (pods.iter().filter(|it| it.phase != Phase::Finished && !it.host_network))
                    .filter_map(|it| EgressName::parse(it.egress.as_deref()?).ok())
                    .map(|name| (ServiceKey::Outbound(name), None)),
            ),
            Relist::Slices(_) | Relist::Nodes(_) => {}
        }
    }
    live
}

fn registrations(worlds: &Worlds) -> impl Iterator<Item = &Registration> {
    worlds.azure.iter().flat_map(|listing| match listing {
        Listing::Registrations(all) => all.as_slice(),
        _ => &[],
    })
}

fn resources(worlds: &Worlds) -> BTreeMap<ArmId, &Meta> {
    let mut all: BTreeMap<ArmId, &Meta> = BTreeMap::new();
    for listing in &worlds.azure {
        match listing {
            Listing::LoadBalancers(list) => all.extend(list.iter().map(|it| (it.meta.id.clone(), &it.meta))),
            Listing::NatGateways(list) => all.extend(list.iter().map(|it| (it.meta.id.clone(), &it.meta))),
            Listing::PublicIps(list) => all.extend(list.iter().map(|it| (it.meta.id.clone(), &it.meta))),
            Listing::Foundation { .. } | Listing::Registrations(_) | Listing::Locations(_) => {}
        }
    }
    all
}
