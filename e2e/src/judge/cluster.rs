//! All of Kubernetes that the judge looks at, in one reading.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};

/// The label by which a slice names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label by which a slice names its maker.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The maker that Kubernetes itself has.
const SLICE_CONTROLLER: &str = "endpointslice-controller.k8s.io";

/// The objects as the API server has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) services: Vec<Service>,
    pub(crate) slices: Vec<EndpointSlice>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) pods: Vec<Pod>,
}

/// An endpoint of a Service.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: IpAddr,
    pub(crate) node: Option<String>,
    pub(crate) ready: bool,
    pub(crate) serving: bool,
    pub(crate) terminating: bool,
}

impl Cluster {
    /// Reads everything, live.
    pub(crate) async fn read(client: &Client) -> Result<Cluster> {
        let all = ListParams::default();
        let (services, slices, nodes, pods) = (
            Api::<Service>::all(client.clone()),
            Api::<EndpointSlice>::all(client.clone()),
            Api::<Node>::all(client.clone()),
            Api::<Pod>::all(client.clone()),
        );
        let (services, slices, nodes, pods) =
            tokio::try_join!(services.list(&all), slices.list(&all), nodes.list(&all), pods.list(&all))
                .context("the API server cannot be read by the judge")?;
        Ok(Cluster { services: services.items, slices: slices.items, nodes: nodes.items, pods: pods.items })
    }

    /// The slices of a Service: by the owner's UID, or else by label in its namespace.
    pub(crate) fn slices_of<'a>(&'a self, service: &'a Service) -> impl Iterator<Item = &'a EndpointSlice> {
        self.slices.iter().filter(move |slice| {
            let mut owners =
                slice.metadata.owner_references.iter().flatten().filter(|owner| owner.kind == "Service");
            match owners.next() {
                Some(owner) => Some(&owner.uid) == service.metadata.uid.as_ref(),
                None => {
                    slice.namespace() == service.namespace()
                        && slice.labels().get(SERVICE_NAME) == service.metadata.name.as_ref()
                }
            }
        })
    }

    /// The endpoints of a slice that have an address that can be used.
    pub(crate) fn endpoints(slice: &EndpointSlice) -> Vec<Endpoint> {
        if slice.address_type == "FQDN" {
            return Vec::new();
        }
        let mut found = Vec::new();
        for endpoint in slice.endpoints.iter().flatten() {
            let conditions = endpoint.conditions.clone().unwrap_or_default();
            let ready = conditions.ready.unwrap_or(true);
            // Only the first address of an endpoint means anything; there is never another.
            let address = endpoint.addresses.first().and_then(|text| text.parse::<IpAddr>().ok());
            found.extend(address.map(|address| Endpoint {
                address: address.to_canonical(),
                node: endpoint.node_name.clone(),
                ready,
                serving: conditions.serving.unwrap_or(ready),
                terminating: conditions.terminating.unwrap_or(false),
            }));
        }
        found
    }

    /// The endpoints that count: the ready ones, or else those that still serve while they end.
    pub(crate) fn counting(&self, service: &Service) -> Vec<Endpoint> {
        let all: Vec<Endpoint> = self.slices_of(service).flat_map(Cluster::endpoints).collect();
        let ready: Vec<Endpoint> = all.iter().filter(|it| it.ready).cloned().collect();
        if ready.is_empty() {
            return all.into_iter().filter(|it| it.serving && it.terminating).collect();
        }
        ready
    }

    /// The smallest InternalIP of a node in the family of an address; `None`: the node is unknown.
    pub(crate) fn location(&self, node: &str, family_of: IpAddr) -> Option<Option<IpAddr>> {
        let node = self.nodes.iter().find(|it| it.metadata.name.as_deref() == Some(node))?;
        Some(internal_ips(node).into_iter().find(|ip| ip.is_ipv4() == family_of.is_ipv4()))
    }

    fn knows_node(&self, name: &str) -> bool {
        self.nodes.iter().any(|it| it.metadata.name.as_deref() == Some(name))
    }

    /// Whether there is a node with an IPv6 address.
    pub(crate) fn has_ipv6_nodes(&self) -> bool {
        self.nodes.iter().flat_map(internal_ips).any(|ip| ip.is_ipv6())
    }

    /// Services whose slices the EndpointSlice controller has not brought up to date yet.
    ///
    /// Until it has, what should be is still about to change, so nothing can be judged.
    pub(crate) fn slices_behind(&self) -> Vec<String> {
        let mut behind = Vec::new();
        for service in &self.services {
            let Some(selector) = service.spec.as_ref().and_then(|spec| spec.selector.as_ref()) else {
                continue;
            };
            if selector.is_empty() || service.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let should: BTreeSet<_> = self.pods_of(service, selector).collect();
            // It leaves out pods of a node that it does not know, and keeps those whose node has gone.
            let is_placed = |it: &Endpoint| it.node.as_deref().is_some_and(|node| self.knows_node(node));
            let are: BTreeSet<_> = self
                .slices_of(service)
                .filter(|slice| slice.labels().get(MANAGED_BY).is_some_and(|by| by == SLICE_CONTROLLER))
                .flat_map(Cluster::endpoints)
                .filter(is_placed)
                .map(|it| (it.address, it.ready, it.terminating))
                .collect();
            if should != are {
                behind.push(format!(
                    "the slices of {} show {are:?} and the pods are {should:?}",
                    named(service)
                ));
            }
        }
        behind
    }

    fn pods_of<'a>(
        &'a self,
        service: &'a Service,
        selector: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = (IpAddr, bool, bool)> {
        let families: Vec<String> =
            service.spec.iter().flat_map(|spec| spec.ip_families.clone().unwrap_or_default()).collect();
        let of_family = move |ip: &IpAddr| {
            families.is_empty() || families.iter().any(|it| (it == "IPv4") == ip.is_ipv4())
        };
        self.pods
            .iter()
            .filter(|pod| pod.namespace() == service.namespace())
            .filter(|pod| selector.iter().all(|(key, value)| pod.labels().get(key) == Some(value)))
            .filter(|pod| !matches!(phase(pod), "Succeeded" | "Failed"))
            .filter(|pod| {
                let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
                node.is_some_and(|node| self.knows_node(node))
            })
            .flat_map(move |pod| {
                let terminating = pod.metadata.deletion_timestamp.is_some();
                let ready = is_ready(pod) && !terminating;
                let own: Vec<IpAddr> = pod_ips(pod).into_iter().filter(&of_family).collect();
                own.into_iter().map(move |ip| (ip, ready, terminating))
            })
    }
}

/// The InternalIPs of a node, the smallest first.
pub(crate) fn internal_ips(node: &Node) -> Vec<IpAddr> {
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    let mut ips: Vec<IpAddr> = addresses
        .filter(|it| it.type_ == "InternalIP")
        .filter_map(|it| it.address.parse::<IpAddr>().ok())
        .map(|ip| ip.to_canonical())
        .collect();
    ips.sort_unstable();
    ips
}

/// The addresses of a pod.
pub(crate) fn pod_ips(pod: &Pod) -> Vec<IpAddr> {
    let listed = pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten());
    listed.filter_map(|it| it.ip.parse::<IpAddr>().ok()).map(|ip| ip.to_canonical()).collect()
}

/// The phase of a pod.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|it| it.type_ == "Ready" && it.status == "True")
}

/// `namespace/name`.
pub(crate) fn named(object: &impl kube::ResourceExt) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}
