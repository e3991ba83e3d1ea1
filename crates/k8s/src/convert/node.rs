//! Nodes: a name and its InternalIPs.

use std::sync::Arc;

use sluice_model::address::parse_ip;
use sluice_model::kube::NodeObject;

use super::identity::{self, Unreadable};
use super::words::Words;
use crate::light;

/// A Node in the engine's words.
pub(crate) fn node(light: &light::Node, words: &mut Words) -> Result<NodeObject, Unreadable> {
    let name = identity::name("Node", &light.metadata, words)?;
    let is_internal = |it: &&light::NodeAddress| it.kind.as_deref() == Some("InternalIP");
    let internal = light.status.addresses.iter().filter(is_internal);
    Ok(NodeObject {
        name: Arc::clone(&name.name),
        version: identity::version("Node", &light.metadata)?,
        internal_ips: internal.filter_map(|it| parse_ip(it.address.as_deref()?).ok()).collect(),
    })
}
