//! Actions as requests to an API server.
//!
//! Whatever a story does to a slice is written as the model has it afterwards: which endpoint moves where is
//! the EndpointSlice controller's business, and that one is played.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use sluice_k8s::strings;
use sluice_model::address::Family;
use sluice_model::annotations::IDLE_TIMEOUT;
use sluice_model::kube::{FamilyPolicy, Phase, ServicePort, SlicePort, TargetPort};
use sluice_model::{ObjectName, Uid};
use sluice_sim::cluster::objects::{OUR_FINALIZER, PodRecord, ServiceRecord, SliceRecord};
use sluice_sim::cluster::stories::{Oddity, UserAction};

/// Whether an API server takes this as an address.
pub(crate) fn is_plain(address: &str) -> bool {
    address.parse::<IpAddr>().is_ok_and(|ip| ip.to_string() == address)
}

/// Somebody who acts on a real API server.
pub(crate) struct People {
    client: Client,
}

impl People {
    pub(crate) fn new(client: Client) -> People {
        People { client }
    }

    fn services(&self, name: &ObjectName) -> Api<Service> {
        Api::namespaced(self.client.clone(), &name.namespace)
    }

    fn slices(&self, name: &ObjectName) -> Api<EndpointSlice> {
        Api::namespaced(self.client.clone(), &name.namespace)
    }

    fn pods(&self, name: &ObjectName) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &name.namespace)
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub(crate) async fn namespace(&self, name: &str) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        if namespaces.get_opt(name).await?.is_none() {
            let body = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
            namespaces.create(&PostParams::default(), &body).await?;
        }
        Ok(())
    }

    /// Does it; gives the UID of what it made. Slices are another matter.
    pub(crate) async fn act(&self, action: &UserAction) -> anyhow::Result<Option<Uid>> {
        match action {
            UserAction::CreateService { service, record } => {
                let body = serde_json::from_value(new_service(service, record))?;
                let made = self.services(service).create(&PostParams::default(), &body).await?;
                return Ok(Some(uid(made.uid())?));
            }
            UserAction::SetType { service, balanced: true } => {
                let spec = json!({ "type": "LoadBalancer", "allocateLoadBalancerNodePorts": false });
                self.patch(service, json!({ "spec": spec })).await?;
            }
            UserAction::SetType { service, balanced: false } => {
                self.patch(service, json!({ "spec": { "type": "ClusterIP" } })).await?;
            }
            UserAction::SetPorts { service, ports } => {
                self.patch(service, json!({ "spec": { "ports": ports_of(ports) } })).await?;
            }
            UserAction::SetIdleTimeout { service, minutes } => {
                let annotations = json!({ IDLE_TIMEOUT: minutes.as_deref() });
                self.patch(service, json!({ "metadata": { "annotations": annotations } })).await?;
            }
            UserAction::SetOddity { service, oddity, on } => {
                let patch = self.oddity(service, *oddity, *on).await?;
                self.patch(service, patch).await?;
            }
            UserAction::TouchService { service } => {
                let version = self.services(service).get(service.name.as_ref()).await?.resource_version();
                self.patch(service, json!({ "metadata": { "labels": { "touched-at": version } } })).await?;
            }
            UserAction::HoldService { service, finalizer } => {
                self.finalizers(service, |all| all.push(finalizer.to_string())).await?;
            }
            UserAction::ReleaseService { service, finalizer } => {
                self.finalizers(service, |all| all.retain(|it| **it != **finalizer)).await?;
            }
            UserAction::StripFinalizer { service } => {
                self.finalizers(service, |all| all.retain(|it| it != OUR_FINALIZER)).await?;
            }
            UserAction::DeleteService { service } => {
                self.services(service).delete(&service.name, &DeleteParams::default()).await?;
            }
            UserAction::WipeStatus { service } => {
                let status = json!({ "status": { "loadBalancer": { "ingress": null }, "conditions": null } });
                self.patch_status(service, status).await?;
            }
            UserAction::AddIngress { service, ip } => {
                let object = self.services(service).get(&service.name).await?;
                let status = object.status.and_then(|it| it.load_balancer).and_then(|it| it.ingress);
                let mut ingress = serde_json::to_value(status.unwrap_or_default())?;
                ingress.as_array_mut().context("a list")?.insert(0, json!({ "ip": ip, "ipMode": "VIP" }));
                let annotations = json!({ sluice_k8s::strings::PUBLISHED_IP: ip });
                let patch = json!({
                    "metadata": { "annotations": annotations },
                    "status": { "loadBalancer": { "ingress": ingress } },
                });
                self.patch_status(service, patch).await?;
            }
            UserAction::PutNode { node, ips } => self.put_node(node, ips).await?,
            UserAction::DeleteNode { node } => {
                self.nodes().delete(node, &DeleteParams::default()).await?;
            }
            UserAction::CreatePod { pod, record } => return self.create_pod(pod, record).await.map(Some),
            UserAction::PlacePod { pod, node, ips, host_ips } => {
                self.bind(pod, node).await?;
                self.pod_status(pod, Phase::Running, ips, host_ips).await?;
            }
            UserAction::ClearPodIps { pod } => {
                let status = json!({ "status": { "podIP": null, "podIPs": null } });
                self.patch_pod_status(pod, status).await?;
            }
            UserAction::SetPhase { pod, phase } => {
                self.patch_pod_status(pod, json!({ "status": { "phase": phase_word(*phase) } })).await?;
            }
            UserAction::LabelPod { pod, egress } => {
                let labels = json!({ strings::EGRESS_LABEL: egress.as_deref() });
                let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
                self.pods(pod).patch(&pod.name, &PatchParams::default(), &patch).await?;
            }
            UserAction::TerminatePod { pod } => {
                self.pods(pod).delete(&pod.name, &DeleteParams::default().grace_period(3_600)).await?;
            }
            UserAction::DeletePod { pod } => {
                self.pods(pod).delete(&pod.name, &DeleteParams::default().grace_period(0)).await?;
            }
            UserAction::PutSlice { .. }
            | UserAction::MoveEndpoint { .. }
            | UserAction::SetHealth { .. }
            | UserAction::DeleteSlice { .. }
            | UserAction::CollectGarbage
            | UserAction::CompactHistory
            | UserAction::DropNamespace { .. }
            | UserAction::StopLeader
            | UserAction::AllowDeletion
            | UserAction::TagPublicIp { .. }
            | UserAction::DeleteTaggedIp { .. }
            | UserAction::CreateServedByOthers { .. }
            | UserAction::Retag { .. }
            | UserAction::Trouble(_)
            | UserAction::OthersBind { .. } => {}
        }
        Ok(None)
    }

    async fn patch(&self, service: &ObjectName, patch: Value) -> anyhow::Result<()> {
        self.services(service).patch(&service.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    async fn patch_status(&self, service: &ObjectName, patch: Value) -> anyhow::Result<()> {
        let patch = Patch::Merge(patch);
        self.services(service).patch_status(&service.name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn finalizers(
        &self,
        service: &ObjectName,
        change: impl FnOnce(&mut Vec<String>),
    ) -> anyhow::Result<()> {
        let mut finalizers = self.services(service).get(&service.name).await?.finalizers().to_vec();
        change(&mut finalizers);
        self.patch(service, json!({ "metadata": { "finalizers": finalizers } })).await
    }

    async fn oddity(&self, service: &ObjectName, oddity: Oddity, on: bool) -> anyhow::Result<Value> {
        Ok(match oddity {
            Oddity::Affinity => {
                json!({ "spec": { "sessionAffinity": if on { "ClientIP" } else { "None" } } })
            }
            Oddity::FixedIp => json!({ "spec": { "loadBalancerIP": on.then_some("203.0.113.99") } }),
            Oddity::Internal | Oddity::PublicIpName | Oddity::PrivateLink => {
                let key = oddity.annotation().context("it is asked for by an annotation")?;
                json!({ "metadata": { "annotations": { key: on.then_some("true") } } })
            }
            Oddity::SourceRanges => {
                json!({ "spec": { "loadBalancerSourceRanges": on.then_some(["203.0.113.0/24"]) } })
            }
            Oddity::DualStack if on => json!({ "spec": { "ipFamilyPolicy": "RequireDualStack" } }),
            Oddity::PreferDualStack if on => json!({ "spec": { "ipFamilyPolicy": "PreferDualStack" } }),
            Oddity::DualStack | Oddity::PreferDualStack => {
                let spec = self.services(service).get(&service.name).await?.spec.context("a spec")?;
                let first = |list: Option<Vec<String>>| list.and_then(|it| it.into_iter().next());
                json!({ "spec": {
                    "ipFamilyPolicy": "SingleStack",
                    "ipFamilies": [first(spec.ip_families)],
                    "clusterIPs": [first(spec.cluster_ips)],
                } })
            }
        })
    }

    async fn put_node(&self, node: &str, ips: &[Arc<str>]) -> anyhow::Result<()> {
        let addresses: Vec<Value> =
            ips.iter().map(|ip| json!({ "type": "InternalIP", "address": ip })).collect();
        let status = json!({ "addresses": addresses });
        if self.nodes().get_opt(node).await?.is_none() {
            let body = serde_json::from_value(json!({ "metadata": { "name": node }, "status": status }))?;
            self.nodes().create(&PostParams::default(), &body).await?;
        } else {
            // A merge by type would keep addresses that are gone.
            let patch = Patch::Merge(json!({ "status": status }));
            self.nodes().patch_status(node, &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }

    async fn create_pod(&self, pod: &ObjectName, record: &PodRecord) -> anyhow::Result<Uid> {
        let labels = record.egress.as_ref().map(|egress| json!({ strings::EGRESS_LABEL: egress }));
        let body = serde_json::from_value(json!({
            "metadata": { "name": pod.name, "labels": labels },
            "spec": {
                "nodeName": record.node,
                "hostNetwork": record.host_network,
                "containers": [{ "name": "main", "image": "example.com/main" }],
            },
        }))?;
        let made = self.pods(pod).create(&PostParams::default(), &body).await?;
        if !record.ips.is_empty() || record.phase != Phase::Pending {
            self.pod_status(pod, record.phase, &record.ips, &record.host_ips).await?;
        }
        uid(made.uid())
    }

    async fn bind(&self, pod: &ObjectName, node: &str) -> anyhow::Result<()> {
        let bound = self.pods(pod).get(&pod.name).await?.spec.and_then(|spec| spec.node_name);
        if bound.as_deref() == Some(node) {
            return Ok(());
        }
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": { "name": pod.name, "namespace": pod.namespace },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        });
        let _: Value =
            self.pods(pod).create_subresource("binding", &pod.name, &PostParams::default(), &binding).await?;
        Ok(())
    }

    async fn pod_status(
        &self,
        pod: &ObjectName,
        phase: Phase,
        ips: &[Arc<str>],
        host_ips: &[Arc<str>],
    ) -> anyhow::Result<()> {
        let list = |ips: &[Arc<str>]| ips.iter().map(|ip| json!({ "ip": ip })).collect::<Vec<_>>();
        let status = json!({ "status": {
            "phase": phase_word(phase),
            "podIP": ips.first(), "podIPs": list(ips),
            "hostIP": host_ips.first(), "hostIPs": list(host_ips),
        } });
        self.patch_pod_status(pod, status).await
    }

    async fn patch_pod_status(&self, pod: &ObjectName, patch: Value) -> anyhow::Result<()> {
        let patch = Patch::Merge(patch);
        self.pods(pod).patch_status(&pod.name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Writes a slice as it should be; `owner` is the UID on this side of the Service that owns it.
    pub(crate) async fn write_slice(
        &self,
        name: &ObjectName,
        record: &SliceRecord,
        owner: Option<(Arc<str>, Uid)>,
    ) -> anyhow::Result<()> {
        let endpoints = record.endpoints.iter().map(|it| {
            let (ready, serving, terminating) = it.health.conditions();
            json!({
                "addresses": [it.address], "nodeName": it.node,
                "conditions": { "ready": ready, "serving": serving, "terminating": terminating },
            })
        });
        let owners = owner.map(|(name, uid)| {
            json!([{ "apiVersion": "v1", "kind": "Service", "name": name, "uid": uid.to_string(),
                     "controller": true, "blockOwnerDeletion": true }])
        });
        let labels = record.service_label.as_ref().map(|it| json!({ strings::SERVICE_NAME_LABEL: it }));
        let there = self.slices(name).get_opt(&name.name).await?;
        let mut body: EndpointSlice = serde_json::from_value(json!({
            "metadata": { "name": name.name, "labels": labels, "ownerReferences": owners },
            "addressType": record.address_type.to_string(),
            "endpoints": endpoints.collect::<Vec<_>>(),
            "ports": record.ports.iter().map(slice_port).collect::<Vec<_>>(),
        }))?;
        match there {
            None => drop(self.slices(name).create(&PostParams::default(), &body).await?),
            Some(there) => {
                body.metadata.resource_version = there.resource_version();
                self.slices(name).replace(&name.name, &PostParams::default(), &body).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn delete_slice(&self, name: &ObjectName) -> anyhow::Result<()> {
        self.slices(name).delete(&name.name, &DeleteParams::default()).await?;
        Ok(())
    }
}

fn new_service(name: &ObjectName, record: &ServiceRecord) -> Value {
    let spec = &record.spec;
    let families: Vec<&str> = spec
        .families
        .iter()
        .map(|family| match family {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
        .collect();
    let policy = match spec.family_policy {
        FamilyPolicy::SingleStack => None,
        FamilyPolicy::PreferDualStack => Some("PreferDualStack"),
        FamilyPolicy::RequireDualStack => Some("RequireDualStack"),
    };
    let mut annotations = serde_json::Map::new();
    if let Some(minutes) = &spec.idle_timeout {
        annotations.insert(IDLE_TIMEOUT.to_owned(), json!(minutes));
    }
    for key in &spec.rejected_annotations {
        annotations.insert(key.to_string(), json!("true"));
    }
    json!({
        "metadata": { "name": name.name, "annotations": annotations },
        "spec": {
            "type": if record.balanced { "LoadBalancer" } else { "ClusterIP" },
            "allocateLoadBalancerNodePorts": record.balanced.then_some(false),
            "loadBalancerClass": record.class,
            "ports": ports_of(&spec.ports),
            "ipFamilies": (!families.is_empty()).then_some(&families),
            "ipFamilyPolicy": policy,
            "sessionAffinity": spec.client_ip_affinity.then_some("ClientIP"),
            "loadBalancerIP": spec.fixed_ip.then_some("203.0.113.99"),
            "loadBalancerSourceRanges": spec.source_ranges.then_some(["203.0.113.0/24"]),
        },
    })
}

fn ports_of(ports: &[ServicePort]) -> Vec<Value> {
    let port = |port: &ServicePort| {
        let target = match &port.target {
            TargetPort::Number(number) => json!(number),
            TargetPort::Name(name) => json!(name),
        };
        let protocol = port.protocol.word().to_ascii_uppercase();
        json!({ "name": port.name, "protocol": protocol, "port": port.port, "targetPort": target })
    };
    ports.iter().map(port).collect()
}

fn slice_port(port: &SlicePort) -> Value {
    json!({ "name": port.name, "protocol": port.protocol.word().to_ascii_uppercase(), "port": port.port })
}

fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Running => "Running",
        Phase::Finished => "Succeeded",
    }
}

fn uid(text: Option<String>) -> anyhow::Result<Uid> {
    let text = text.context("what was made has a UID")?;
    Uid::parse(&text).map_err(|error| anyhow::anyhow!("{error}"))
}
