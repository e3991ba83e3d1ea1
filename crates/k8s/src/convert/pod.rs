//! Pods with the egress label: where they are and how far.

use std::net::IpAddr;

use k8s_openapi::jiff::Timestamp;
use sluice_model::address::parse_ip;
use sluice_model::kube::{Phase, PodObject};

use super::identity::{self, Unreadable};
use super::words::Words;
use crate::light;

/// A pod in the engine's words.
pub(crate) fn pod(light: &light::Pod, words: &mut Words) -> Result<PodObject, Unreadable> {
    let (meta, spec, status) = (&light.metadata, &light.spec, &light.status);
    Ok(PodObject {
        uid: identity::uid("Pod", meta)?,
        name: identity::name("Pod", meta, words)?,
        version: identity::version("Pod", meta)?,
        egress: meta.labels.egress.as_deref().map(|label| words.share(label)),
        node: spec.node_name.as_deref().filter(|node| !node.is_empty()).map(|node| words.share(node)),
        ips: addresses(&status.pod_ips, status.pod_ip.as_deref()),
        host_ips: addresses(&status.host_ips, status.host_ip.as_deref()),
        phase: phase(status.phase.as_deref()),
        terminating: meta.deletion_timestamp.is_some(),
        host_network: spec.host_network.unwrap_or(false),
        created: created(meta),
    })
}

/// The list, or the single address of an API server that fills in nothing else.
fn addresses(list: &[light::AddressOf], single: Option<&str>) -> Vec<IpAddr> {
    let read = |text: &str| parse_ip(text).ok();
    if list.is_empty() {
        return single.and_then(read).map_or_else(Vec::new, |ip| vec![ip]);
    }
    // Collected, a single address would take the room of four, and there may be 150,000 pods.
    let mut all = Vec::with_capacity(list.len());
    all.extend(list.iter().filter_map(|it| it.ip.as_deref().and_then(read)));
    all
}

/// Only what says so has ended; a phase that we do not know may well be sending.
fn phase(word: Option<&str>) -> Phase {
    match word {
        Some("Succeeded" | "Failed") => Phase::Finished,
        None | Some("" | "Pending") => Phase::Pending,
        Some(_) => Phase::Running,
    }
}

/// Seconds since 1970; a pod without a time is the oldest.
fn created(meta: &light::Meta) -> u64 {
    let time = meta.creation_timestamp.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
    time.and_then(|time| u64::try_from(time.as_second()).ok()).unwrap_or(0)
}
