//! Decides from outside whether the controller has done its work: from the API server, the
//! emulator's state and its request log, never from what the controller says about itself.
//!
//! Both sides are painted as a [`Picture`]: a sorted list of things, each with what matters about
//! it. What should be is painted from the Kubernetes objects by a reading of the contract of its own
//! ([`wanted`]); what is, from Azure and from what the controller left on the Services ([`found`]).
//! Two pictures that are equal to the letter are peace: whatever is too much, is missing or looks
//! otherwise is a line of the difference. What only time shows (that a published IP never changed,
//! that nobody else's resource was written) is in [`history`].
//!
//! It shares no code with the controller on purpose: they could agree on a mistake.

pub(crate) mod begun;
pub(crate) mod cluster;
pub(crate) mod egress;
pub(crate) mod found;
pub(crate) mod history;
pub(crate) mod inbound;
#[cfg(test)]
mod tests;
pub(crate) mod wanted;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Things by name, each with what matters about it.
pub(crate) type Picture = BTreeMap<String, Value>;

/// The part of the story's setting that decides what should be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contract {
    /// `sluice.loadBalancerClass`.
    pub(crate) class: Option<String>,
    /// The value of the cluster tag.
    pub(crate) cluster_id: String,
    /// Whether `default-natgw` is to be there.
    pub(crate) default_outbound: bool,
    /// The namespaces whose pods may name an egress.
    pub(crate) egress_namespaces: Option<Vec<String>>,
    /// What only the story knows.
    pub(crate) exceptions: Exceptions,
}

/// What the objects of Kubernetes alone do not say, so the story does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exceptions {
    /// Services, by UID, that keep the rules they had, although their spec is refused or their port unresolved.
    pub(crate) frozen: BTreeMap<String, Value>,
    /// Egresses that stay for a while without pods.
    pub(crate) lingering: BTreeSet<String>,
    /// Egresses that have pods and are not served (the limit; a foreign NAT gateway of that name).
    pub(crate) unserved: BTreeSet<String>,
    /// Resources that are not ours, by their lower-case id: they are in no picture.
    pub(crate) foreign: BTreeSet<String>,
    /// Registrations that are not ours, likewise by name.
    pub(crate) foreign_registrations: BTreeSet<String>,
    /// Tags of others that our resources may have, by name: they are in no picture.
    pub(crate) more_tags: Vec<String>,
    /// The gateway was there before: it is claimed, and not marked as created.
    pub(crate) claimed_gateway: bool,
}

/// What differs between what should be and what is, one line each.
pub(crate) fn differences(wanted: &Picture, found: &Picture) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, wanted) in wanted {
        match found.get(name) {
            None => lines.push(format!("{name} is missing; wanted: {wanted}")),
            Some(found) if found != wanted => {
                lines.push(format!("{name} is\n      {found}\n    and should be\n      {wanted}"));
            }
            Some(_) => {}
        }
    }
    for (name, found) in found {
        if !wanted.contains_key(name) {
            lines.push(format!("{name} is left over: {found}"));
        }
    }
    lines
}
