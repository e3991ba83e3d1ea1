//! All of Kubernetes that stories and the last check look at, in one reading.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::{apps, core, discovery};
use kube::Client;

use crate::kinds::{Deployment, EndpointSlice, Node, Pod, Service, list};

/// The label that names a pod's egress.
pub(super) const EGRESS_LABEL: &str = "kubernetes.azure.com/service-egress-gateway";
/// The label by which a slice names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The objects as the API server has them.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    pub(super) services: Vec<Service>,
    pub(super) slices: Vec<EndpointSlice>,
    pub(super) nodes: Vec<Node>,
    pub(super) pods: Vec<Pod>,
    pub(super) deployments: Vec<Deployment>,
}

/// An address of a Service, and the node that it is on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Endpoint {
    pub(super) address: String,
    pub(super) node: String,
}

impl Cluster {
    /// Reads everything, live.
    pub(super) async fn read(client: &Client) -> Result<Cluster> {
        let (services, slices, nodes, pods, deployments) = tokio::try_join!(
            list::<core::v1::Service, _>(client),
            list::<discovery::v1::EndpointSlice, _>(client),
            list::<core::v1::Node, _>(client),
            list::<core::v1::Pod, _>(client),
            list::<apps::v1::Deployment, _>(client),
        )?;
        Ok(Cluster { services, slices, nodes, pods, deployments })
    }

    /// A Service of the namespace `default`.
    pub(super) fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|it| it.metadata.name == name && it.metadata.namespace == "default")
    }

    /// The UID of a Service, which is its name in Azure.
    pub(super) fn uid(&self, service: &str) -> Option<String> {
        Some(self.service(service)?.metadata.uid.clone())
    }

    /// The public IP in the status of a Service.
    pub(super) fn ip(&self, service: &str) -> Option<String> {
        published(self.service(service)?).into_iter().next()
    }

    /// The public IPs of the Services that have one, by name.
    pub(super) fn ips(&self) -> BTreeMap<String, String> {
        let of = |it: &Service| Some((it.metadata.name.clone(), published(it).into_iter().next()?));
        self.services.iter().filter_map(of).collect()
    }

    /// The endpoints that count: the ready ones, or else those that still serve while they end.
    pub(super) fn counting(&self, service: &Service) -> Vec<Endpoint> {
        let (mut ready, mut ending) = (Vec::new(), Vec::new());
        for slice in self.slices.iter().filter(|it| belongs(it, service)) {
            for endpoint in slice.endpoints.iter().flatten() {
                let conditions = endpoint.conditions;
                let is_ready = conditions.ready.unwrap_or(true);
                let Some(address) = endpoint.addresses.first().cloned() else { continue };
                let node = endpoint.node_name.clone().unwrap_or_default();
                if is_ready {
                    ready.push(Endpoint { address, node });
                } else if conditions.serving.unwrap_or(is_ready) && conditions.terminating.unwrap_or(false) {
                    ending.push(Endpoint { address, node });
                }
            }
        }
        let mut counting = if ready.is_empty() { ending } else { ready };
        counting.sort();
        counting.dedup();
        counting
    }

    /// The address of a node that addresses of this family are at.
    pub(super) fn location(&self, node: &str, address: &str) -> Option<String> {
        let node = self.nodes.iter().find(|it| it.metadata.name == node)?;
        let mut own: Vec<std::net::IpAddr> = node
            .status
            .addresses
            .iter()
            .filter(|it| it.kind == "InternalIP")
            .filter_map(|it| it.address.parse().ok())
            .filter(|ip: &std::net::IpAddr| ip.is_ipv6() == address.contains(':'))
            .collect();
        own.sort_unstable();
        own.first().map(ToString::to_string)
    }

    /// The pods of egresses: those with the label, without finished ones and those on the host network.
    pub(super) fn egress_pods(&self) -> impl Iterator<Item = (&Pod, String)> {
        self.pods.iter().filter_map(|pod| {
            let name = pod.metadata.labels.get(EGRESS_LABEL)?.to_ascii_lowercase();
            let is_over = matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
            (!is_over && !pod.spec.host_network && !name.is_empty()).then_some((pod, name))
        })
    }

    /// Deployments that still wait for new or ready pods, a line for each.
    pub(super) fn unsettled(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for it in &self.deployments {
            let wanted = it.spec.replicas.unwrap_or(1);
            let status = it.status;
            let (ready, updated, all) = (status.ready_replicas, status.updated_replicas, status.replicas);
            let is_seen = status.observed_generation == it.metadata.generation;
            if !is_seen || (ready, updated, all) != (wanted, wanted, wanted) {
                lines.push(format!(
                    "Deployment {}: {ready} of {wanted} pods ready, {updated} of {all} pods up to date",
                    it.metadata.name
                ));
            }
        }
        lines
    }

    /// The number of terminating pods.
    pub(super) fn ending_pods(&self) -> usize {
        self.pods.iter().filter(|it| it.metadata.deletion_timestamp.is_some()).count()
    }
}

/// The public IPs in the status of a Service.
pub(super) fn published(service: &Service) -> Vec<String> {
    service.status.load_balancer.ingress.iter().filter_map(|it| it.ip.clone()).collect()
}

/// The first address of a pod.
pub(super) fn pod_ip(pod: &Pod) -> Option<&str> {
    pod.status.pod_ip.as_deref()
}

fn belongs(slice: &EndpointSlice, service: &Service) -> bool {
    slice.metadata.namespace == service.metadata.namespace
        && slice.metadata.labels.get(SERVICE_NAME) == Some(&service.metadata.name)
}
