//! The model's payloads as JSON.

use serde_json::{Value, json};
use sluice_model::azure::{ArmId, ETag, Meta, Provisioning};
use sluice_model::call::{Page, Payload};

use super::document::Document;
use super::kinds::{View, gateway, group, load_balancer, nat_gateway, network, public_ip, subnet};
use super::route::Kind;
use super::{locations, services};

/// One resource, and its ETag.
pub(crate) struct Shown {
    pub(crate) body: Value,
    pub(crate) etag: Option<ETag>,
}

/// What a PUT that has just been answered knows better than the state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fresh<'a> {
    /// The document that was written.
    pub(crate) document: Option<&'a Document>,
    /// Whether its operation runs, for kinds of which the model does not say.
    pub(crate) state: Option<Provisioning>,
}

/// Shows a payload that is one resource.
pub(crate) fn resource(view: View<'_>, kind: Kind, payload: &Payload, fresh: Fresh<'_>) -> Option<Shown> {
    let document = |meta: &Meta| fresh.document.or_else(|| view.documents.of(&meta.id, Some(&meta.etag)));
    let (body, etag) = match payload {
        Payload::PublicIp(it) => (public_ip::show(it, document(&it.meta)), Some(&it.meta.etag)),
        Payload::LoadBalancer(it) => (load_balancer::show(it, document(&it.meta)), Some(&it.meta.etag)),
        Payload::NatGateway(it) => (nat_gateway::show(it, document(&it.meta)), Some(&it.meta.etag)),
        Payload::Gateway(it) => (gateway::show(view, it, document(&it.meta)), Some(&it.meta.etag)),
        Payload::Subnet(it) => {
            let state = fresh.state.unwrap_or_else(|| subnet::state_of(view, &it.id));
            (subnet::show(it, state), Some(&it.etag))
        }
        Payload::Container(id) if kind == Kind::Group => {
            (group::show(view, id, fresh.document.or_else(|| view.documents.newest(id))), None)
        }
        Payload::Container(id) => return Some(one_network(view, id, fresh)),
        _ => return None,
    };
    Some(Shown { body, etag: etag.cloned() })
}

fn one_network(view: View<'_>, id: &ArmId, fresh: Fresh<'_>) -> Shown {
    let etag = view.state().virtual_networks.get(id);
    // A network that was answered but not made has none.
    let etag = etag.cloned().unwrap_or_else(|| ETag("W/\"00000000-0000-0000-0000-000000000000\"".into()));
    let state = fresh.state.or_else(|| view.cloud.provisioning_of(id)).unwrap_or(Provisioning::Succeeded);
    let document = fresh.document.or_else(|| view.documents.of(id, Some(&etag)));
    Shown { body: network::show(view, id, &etag, state, document), etag: Some(etag) }
}

/// Shows a page of a list: its items, and where it goes on.
pub(crate) fn page(view: View<'_>, payload: &Payload) -> Option<(Vec<Value>, Option<String>)> {
    fn each<T>(page: &Page<T>, show: impl Fn(&T) -> Value) -> (Vec<Value>, Option<String>) {
        (page.items.iter().map(show).collect(), page.next.as_ref().map(|next| next.0.to_string()))
    }
    let document = |meta: &Meta| view.documents.of(&meta.id, Some(&meta.etag));
    Some(match payload {
        Payload::PublicIps(page) => each(page, |it| public_ip::show(it, document(&it.meta))),
        Payload::LoadBalancers(page) => each(page, |it| load_balancer::show(it, document(&it.meta))),
        Payload::NatGateways(page) => each(page, |it| nat_gateway::show(it, document(&it.meta))),
        Payload::Gateways(page) => each(page, |it| gateway::show(view, it, document(&it.meta))),
        Payload::Networks(page) => each(page, |id| one_network(view, id, Fresh::default()).body),
        Payload::Subnets(page) => each(page, |it| subnet::show(it, subnet::state_of(view, &it.id))),
        Payload::Registrations(page) => each(page, services::show),
        Payload::Locations(page) => each(page, locations::show),
        _ => return None,
    })
}

/// `{"value": […], "nextLink": …}`.
pub(crate) fn list(items: Vec<Value>, next: Option<String>) -> Value {
    let mut body = json!({ "value": items });
    if let Some(next) = next {
        body["nextLink"] = next.into();
    }
    body
}
