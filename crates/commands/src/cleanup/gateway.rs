//! The service gateway comes last. One that Sluice created is deleted when nobody else uses it; any other one
//! stays attached and loses nothing but the tags of this cluster.

use anyhow::{Context as _, bail};
use sluice_cloud::Cloud;
use sluice_model::azure::{ArmId, Gateway, NatGateway, SubnetBody};
use sluice_model::call::{Body, Method, Payload, Request};
use sluice_model::effect::Listing;
use sluice_model::names::{CREATED_TAG, Scope};

use super::calls::{done, send, untag};
use crate::reach::Reached;

/// What becomes of the gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// Nothing: there is none, this cluster has not claimed it, or it was to be left alone.
    Untouched,
    /// It is deleted, and its subnet detached first.
    Deleted,
    /// It stays, without our tags, for this reason.
    Kept(String),
}

/// Who refers to the gateway when everything of this cluster is gone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Users {
    registrations: Vec<String>,
    locations: usize,
    nat_gateways: Vec<String>,
    subnets: Vec<String>,
}

impl Users {
    /// Those that a forecast leaves.
    pub(super) fn after(cloud: &Cloud, scope: &Scope) -> Users {
        let (state, id) = (cloud.state(), scope.gateway_id());
        Users {
            registrations: state.registrations(&id).map(|it| it.name.to_string()).collect(),
            locations: state.locations(&id).count(),
            nat_gateways: names_at(&id, state.nat_gateways.values()),
            subnets: Vec::new(),
        }
    }

    /// Those that complete listings show.
    fn listed(listings: &[Listing], scope: &Scope) -> Users {
        let mut users = Users::default();
        for listing in listings {
            match listing {
                Listing::Registrations(all) => {
                    users.registrations.extend(all.iter().map(|it| it.name.to_string()));
                }
                Listing::Locations(all) => users.locations += all.len(),
                Listing::NatGateways(all) => users.nat_gateways.extend(names_at(&scope.gateway_id(), all)),
                _ => {}
            }
        }
        users
    }

    /// In words; none if there is nobody.
    fn words(&self) -> Option<String> {
        let Users { registrations, locations, nat_gateways, subnets } = self;
        let named = |what: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
        };
        let words: Vec<String> = [
            named("registrations", registrations),
            (*locations > 0).then(|| format!("{locations} address locations")),
            named("NAT gateways", nat_gateways),
            named("subnets", subnets),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// The NAT gateways that work for a gateway.
fn names_at<'a>(gateway: &ArmId, all: impl IntoIterator<Item = &'a NatGateway>) -> Vec<String> {
    let attached = all.into_iter().filter(|it| it.gateway.as_ref() == Some(gateway));
    attached.map(|it| it.meta.id.name().to_owned()).collect()
}

/// What becomes of the gateway, as Azure shows it now.
pub(super) async fn fate(reached: &Reached, users: Users) -> anyhow::Result<Fate> {
    let scope = reached.config.scope(&reached.cluster_id);
    let read = send(reached, Request::bare(Method::Get, scope.gateway_id())).await?;
    let Payload::Gateway(gateway) = read.payload else { return Ok(Fate::Untouched) };
    let users = match may_be_deleted(&scope, &gateway) {
        true => Users { subnets: other_subnets(reached, &scope).await?, ..users },
        false => users,
    };
    Ok(judged(&scope, &gateway, &users))
}

fn judged(scope: &Scope, gateway: &Gateway, users: &Users) -> Fate {
    if !scope.owns(&gateway.meta.tags) {
        return Fate::Untouched;
    }
    match users.words() {
        _ if !may_be_deleted(scope, gateway) => {
            Fate::Kept(format!("it has no tag {CREATED_TAG}, so Sluice may not have created it"))
        }
        Some(words) => Fate::Kept(format!("in use by {words}")),
        None => Fate::Deleted,
    }
}

/// Whether it is ours, and was created by Sluice.
fn may_be_deleted(scope: &Scope, gateway: &Gateway) -> bool {
    let tags = &gateway.meta.tags;
    scope.owns(tags) && tags.get(CREATED_TAG).is_some_and(|value| &**value == "true")
}

/// The subnets of the network that are attached to the gateway, beside the one of this cluster.
async fn other_subnets(reached: &Reached, scope: &Scope) -> anyhow::Result<Vec<String>> {
    let (gateway, own) = (scope.gateway_id(), scope.subnet_id());
    let all = ArmId::new(format!("{}/subnets", scope.virtual_network_id()));
    let mut names = Vec::new();
    let mut page = None;
    loop {
        let request = Request { page, ..Request::bare(Method::List, all.clone()) };
        let Payload::Subnets(found) = send(reached, request).await?.payload else {
            bail!("cannot list the subnets of virtual network {}", scope.virtual_network);
        };
        let others = found.items.iter().filter(|it| it.gateway.as_ref() == Some(&gateway) && it.id != own);
        names.extend(others.map(|it| it.id.name().to_owned()));
        page = found.next;
        if page.is_none() {
            return Ok(names);
        }
    }
}

/// Deletes the gateway or takes our tags off it, as it stands now; says what became of it.
pub(super) async fn let_go(
    reached: &Reached,
    may_begin: &(impl Fn() -> bool + Send + Sync),
) -> anyhow::Result<Fate> {
    let scope = reached.config.scope(&reached.cluster_id);
    // Somebody may have come since the plan was made.
    let listings = reached.read().await.map_err(|failure| failure.error)?.azure;
    let fate = fate(reached, Users::listed(&listings, &scope)).await?;
    match &fate {
        Fate::Untouched => {}
        Fate::Kept(_) => untag(reached, "service gateway", &scope.gateway_id(), may_begin).await?,
        Fate::Deleted => delete(reached, &scope, may_begin).await?,
    }
    Ok(fate)
}

/// Detaches the subnet and deletes the gateway. If it cannot be deleted, the subnet is attached again.
async fn delete(
    reached: &Reached,
    scope: &Scope,
    may_begin: &(impl Fn() -> bool + Send + Sync),
) -> anyhow::Result<()> {
    let gateway = scope.gateway_id();
    let is_detached = attach(reached, scope, false, may_begin).await.context("cannot detach the subnet")?;
    println!("Deleting the service gateway {} …", gateway.name());
    let deleted = async {
        let read = send(reached, Request::bare(Method::Get, gateway)).await?;
        match deletion(scope, &read.payload)? {
            Some(request) => done(reached, request, may_begin).await,
            None => Ok(()),
        }
    };
    let Err(error) = deleted.await else { return Ok(()) };
    let error = error.context("cannot delete the service gateway");
    if !is_detached {
        return Err(error);
    }
    Err(match attach(reached, scope, true, may_begin).await {
        Ok(_) => error.context("the subnet was attached again"),
        Err(why) => error.context(format!("the subnet is still detached ({why:#})")),
    })
}

/// The request that deletes the gateway if it is still as it was read; none if it does not exist any more.
fn deletion(scope: &Scope, read: &Payload) -> anyhow::Result<Option<Request>> {
    match read {
        Payload::Gateway(gateway) if may_be_deleted(scope, gateway) => {
            let request = Request::bare(Method::Delete, scope.gateway_id());
            Ok(Some(Request { if_match: Some(gateway.meta.etag.clone()), ..request }))
        }
        Payload::Gateway(_) => bail!("its tags changed after the plan was shown; re-run the command"),
        _ => Ok(None),
    }
}

/// Attaches our subnet to the gateway or detaches it, and leaves the rest of it alone; says whether that was
/// needed.
async fn attach(
    reached: &Reached,
    scope: &Scope,
    attached: bool,
    may_begin: &(impl Fn() -> bool + Send + Sync),
) -> anyhow::Result<bool> {
    let (gateway, id) = (scope.gateway_id(), scope.subnet_id());
    let read = send(reached, Request::bare(Method::Get, id.clone())).await?;
    let Payload::Subnet(subnet) = read.payload else { return Ok(false) };
    let (from, to) = if attached { (None, Some(gateway)) } else { (Some(gateway), None) };
    if subnet.gateway != from {
        return Ok(false);
    }
    println!("{} subnet {} …", if attached { "Attaching" } else { "Detaching" }, id.name());
    let body = Body::Subnet(SubnetBody { gateway: to, rest: subnet.rest });
    let request = Request { if_match: Some(subnet.etag), ..Request::with(Method::Put, id, body) };
    done(reached, request, may_begin).await?;
    Ok(true)
}

/// The command with which a person deletes a gateway that stays.
pub(super) fn command(scope: &Scope) -> String {
    format!("az resource delete --ids {}", scope.gateway_id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_model::azure::{ETag, Meta, Provisioning, Tags};

    fn scope() -> Scope {
        Scope {
            subscription: "s".into(),
            resource_group: "rg".into(),
            network_resource_group: "rg".into(),
            virtual_network: "vnet".into(),
            subnet: "pods".into(),
            gateway: "gw".into(),
            cluster_id: "c1".into(),
        }
    }

    fn gateway(tags: Tags) -> Gateway {
        let scope = scope();
        Gateway {
            meta: Meta {
                id: scope.gateway_id(),
                tags,
                etag: ETag("1".into()),
                provisioning: Provisioning::Succeeded,
            },
            virtual_network: scope.virtual_network_id(),
            route_target_subnet: scope.subnet_id(),
            route_target_address: None,
            route_target_address_v6: None,
            document: "{}".into(),
        }
    }

    fn why(fate: Fate) -> String {
        match fate {
            Fate::Kept(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_gateway_that_sluice_created_and_nobody_uses_is_deleted() {
        let (scope, nobody) = (scope(), Users::default());
        let created = gateway(scope.created_gateway_tags());
        assert_eq!(judged(&scope, &created, &nobody), Fate::Deleted);
        let claimed = gateway(scope.gateway_tags());
        assert!(why(judged(&scope, &claimed, &nobody)).contains("no tag sluice-created"));
        let others = Scope { cluster_id: "c2".into(), ..scope.clone() };
        for tags in [Tags::new(), others.created_gateway_tags()] {
            assert_eq!(judged(&scope, &gateway(tags), &nobody), Fate::Untouched);
        }
    }

    #[test]
    fn a_gateway_is_deleted_only_as_it_was_read_right_before() {
        let scope = scope();
        let created = gateway(scope.created_gateway_tags());
        let request = deletion(&scope, &Payload::Gateway(created)).unwrap().unwrap();
        assert_eq!((request.method, request.if_match), (Method::Delete, Some(ETag("1".into()))));
        let claimed = Payload::Gateway(gateway(scope.gateway_tags()));
        assert!(deletion(&scope, &claimed).unwrap_err().to_string().contains("changed after the plan"));
        assert_eq!(deletion(&scope, &Payload::None).unwrap(), None, "it is gone");
    }

    #[test]
    fn whoever_uses_the_gateway_keeps_it_and_is_named() {
        let scope = scope();
        let created = gateway(scope.created_gateway_tags());
        let name = |name: &str| vec![name.to_owned()];
        for (users, words) in [
            (Users { registrations: name("theirs"), ..Users::default() }, "registrations theirs"),
            (Users { locations: 2, ..Users::default() }, "2 address locations"),
            (Users { nat_gateways: name("corporate"), ..Users::default() }, "NAT gateways corporate"),
            (Users { subnets: name("other"), ..Users::default() }, "subnets other"),
        ] {
            assert_eq!(why(judged(&scope, &created, &users)), format!("in use by {words}"));
        }
    }

    #[test]
    fn a_nat_gateway_uses_the_gateway_that_it_names() {
        let scope = scope();
        let nat = |name: &str, gateway: Option<&str>| NatGateway {
            meta: Meta { id: scope.resource("natGateways", name), ..super::tests::gateway(Tags::new()).meta },
            gateway: gateway.map(|name| scope.resource("serviceGateways", name)),
            public_ips: Vec::new(),
            public_ips_v6: Vec::new(),
        };
        let all = vec![nat("corporate", Some("GW")), nat("elsewhere", Some("other")), nat("alone", None)];
        let users = Users::listed(&[Listing::NatGateways(all)], &scope);
        assert_eq!(users.words().as_deref(), Some("NAT gateways corporate"));
        assert_eq!(Users::listed(&[Listing::Registrations(Vec::new())], &scope).words(), None);
    }

    #[test]
    fn the_command_names_the_gateway_by_its_id() {
        let id = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/serviceGateways/gw";
        assert_eq!(command(&scope()), format!("az resource delete --ids {id}"));
    }
}
