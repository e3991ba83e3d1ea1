//! EndpointSlices: whose endpoints, where, and how they feel.

use std::sync::Arc;

use sluice_model::address::parse_ip;
use sluice_model::kube::{Endpoint, Slice, SliceOwner, SlicePort};
use sluice_model::{Family, Uid};

use super::identity::{self, Unreadable};
use super::service::{family, protocol};
use super::words::Words;
use crate::light;

/// An EndpointSlice in the engine's words.
pub(crate) fn slice(light: &light::EndpointSlice, words: &mut Words) -> Result<Slice, Unreadable> {
    let meta = &light.metadata;
    let name = identity::name("EndpointSlice", meta, words)?;
    // An FQDN slice, or a type of a later day, has no family, so each of its addresses is malformed.
    let family = light.address_type.as_deref().and_then(family);
    let mut endpoints = Vec::with_capacity(light.endpoints.len());
    let mut malformed = Vec::new();
    for endpoint in &light.endpoints {
        // Further addresses of an endpoint mean nothing, and kube-proxy does not look at them either.
        let Some(text) = endpoint.addresses.first() else { continue };
        match parse_ip(text).ok().filter(|ip| Some(Family::of(*ip)) == family) {
            Some(address) => endpoints.push(located(address, endpoint, words)),
            None => malformed.push(Arc::from(text.as_str())),
        }
    }
    Ok(Slice {
        name,
        version: identity::version("EndpointSlice", meta)?,
        owner: owner(meta, words),
        ports: light.ports.iter().filter_map(|port| slice_port(port, words)).collect(),
        endpoints,
        malformed,
    })
}

fn located(address: std::net::IpAddr, light: &light::Endpoint, words: &mut Words) -> Endpoint {
    let ready = light.conditions.ready.unwrap_or(true);
    Endpoint {
        address,
        node: light.node_name.as_deref().filter(|node| !node.is_empty()).map(|node| words.share(node)),
        ready,
        serving: light.conditions.serving.unwrap_or(ready),
        terminating: light.conditions.terminating.unwrap_or(false),
    }
}

/// The Service of the owner references, the controlling one first; else the one that the label names.
/// A slice that is being deleted has none, so that its endpoints do not count while a finalizer keeps it.
fn owner(meta: &light::Meta, words: &mut Words) -> SliceOwner {
    if meta.deletion_timestamp.is_some() {
        return SliceOwner::Nobody;
    }
    // Others have a kind called Service too.
    let is_service = |it: &&light::OwnerReference| {
        it.kind.as_deref() == Some("Service") && it.api_version.as_deref() == Some("v1")
    };
    let services = || meta.owner_references.iter().filter(is_service);
    let controlling = services().find(|it| it.controller == Some(true));
    let owner = controlling.or_else(|| services().next());
    if let Some(uid) = owner.and_then(|it| Uid::parse(it.uid.as_deref()?).ok()) {
        return SliceOwner::Uid(uid);
    }
    match meta.labels.service_name.as_deref() {
        None | Some("") => SliceOwner::Nobody,
        Some(name) => SliceOwner::Name(words.share(name)),
    }
}

/// A port; one that we cannot read names nothing, so a port that is called after it stays unresolved.
fn slice_port(light: &light::SlicePort, words: &mut Words) -> Option<SlicePort> {
    let port = match light.port {
        None => None,
        Some(number) => Some(u16::try_from(number).ok().filter(|port| *port != 0)?),
    };
    let name = words.share(light.name.as_deref().unwrap_or_default());
    Some(SlicePort { name, protocol: protocol(light.protocol.as_deref())?, port })
}
