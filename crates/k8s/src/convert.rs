//! Light objects in the engine's words; pure.
//!
//! Addresses get their one spelling, words become enums, and what has a default of Kubernetes gets it.
//! What cannot be read in a field is left out or taken for the harmless thing; only an object without a
//! name, a UID or a version is skipped whole, with a sentence that says so (`Unreadable`).

use std::net::IpAddr;

use sluice_model::address::parse_ip;

mod identity;
mod node;
mod pod;
mod service;
mod slice;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use identity::Unreadable;
pub(crate) use node::node;
pub(crate) use pod::pod;
pub(crate) use service::service;
pub(crate) use slice::slice;
pub(crate) use words::Words;

/// What stands before the address in the message of `LoadBalancerServing`.
const REACHED_AT: &str = "Reached at ";

/// Which Services are ours, by `sluice.loadBalancerClass`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Only Services of this class; without one we are the cluster's service controller and serve those without.
    pub class: Option<String>,
}

/// The sentence in the message of `LoadBalancerServing` that says which IP we published.
///
/// Version 0.1 learns only there which entry of the status is ours to retract, so [`published_in`], which is its rule,
/// must find the IP again. Later versions read the annotation too. More sentences may follow or go before.
pub fn published_message(ip: IpAddr) -> String {
    format!("{REACHED_AT}{ip}.")
}

/// The message without a sentence about the published IP at its begin.
pub(crate) fn without_published(message: &str) -> &str {
    match message.strip_prefix(REACHED_AT) {
        Some(rest) => rest.split_once(". ").map_or("", |(_, rest)| rest),
        None => message,
    }
}

/// The address that a message of `LoadBalancerServing` says we published.
pub fn published_in(message: &str) -> Option<IpAddr> {
    let (_, rest) = message.split_once(REACHED_AT)?;
    let address = rest.split_whitespace().next()?;
    parse_ip(address.strip_suffix('.').unwrap_or(address)).ok()
}
