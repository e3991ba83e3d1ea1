//! Kubernetes objects with the fields that stories and the last check look at.
//!
//! The complete types of `k8s-openapi` would be compiled for every field that an object can have; here they only
//! say where a kind is found.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{ApiResource, DynamicObject, ListParams, Request};
use kube::{Api, Client, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// An object with a part that is wanted and a part that is.
#[derive(Deserialize, Clone, Debug)]
pub(super) struct Object<Spec, Status> {
    pub(super) metadata: Metadata,
    #[serde(default)]
    pub(super) spec: Spec,
    #[serde(default)]
    pub(super) status: Status,
}

/// What every object has.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) generation: Option<i64>,
    pub(super) deletion_timestamp: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) finalizers: Vec<String>,
}

/// A part of which nothing is looked at.
#[derive(Deserialize, Clone, Debug, Default)]
pub(super) struct Unread {}

pub(super) type Service = Object<ServiceSpec, ServiceStatus>;
pub(super) type Node = Object<Unread, NodeStatus>;
pub(super) type Pod = Object<PodSpec, PodStatus>;
pub(super) type Deployment = Object<DeploymentSpec, DeploymentStatus>;

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ServiceSpec {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) load_balancer_class: Option<String>,
    pub(super) ports: Vec<ServicePort>,
}

#[derive(Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServicePort {
    pub(super) protocol: Option<String>,
    pub(super) port: u16,
    pub(super) target_port: Option<IntOrString>,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ServiceStatus {
    pub(super) load_balancer: LoadBalancer,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub(super) struct LoadBalancer {
    pub(super) ingress: Vec<Ingress>,
}

#[derive(Deserialize, Clone, Debug)]
pub(super) struct Ingress {
    pub(super) ip: Option<String>,
}

#[derive(Deserialize, Clone, Debug)]
pub(super) struct EndpointSlice {
    pub(super) metadata: Metadata,
    /// A real API server writes null for an empty list here.
    pub(super) endpoints: Option<Vec<SliceEndpoint>>,
}

#[derive(Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct SliceEndpoint {
    pub(super) addresses: Vec<String>,
    pub(super) node_name: Option<String>,
    #[serde(default)]
    pub(super) conditions: Conditions,
}

#[derive(Deserialize, Clone, Copy, Debug, Default)]
pub(super) struct Conditions {
    pub(super) ready: Option<bool>,
    pub(super) serving: Option<bool>,
    pub(super) terminating: Option<bool>,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub(super) struct NodeStatus {
    pub(super) addresses: Vec<NodeAddress>,
}

#[derive(Deserialize, Clone, Debug)]
pub(super) struct NodeAddress {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) address: String,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    pub(super) host_network: bool,
    pub(super) node_name: String,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub(super) struct PodStatus {
    pub(super) phase: String,
    #[serde(rename = "podIP")]
    pub(super) pod_ip: Option<String>,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub(super) struct DeploymentSpec {
    pub(super) replicas: Option<i32>,
}

#[derive(Deserialize, Clone, Copy, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeploymentStatus {
    pub(super) observed_generation: Option<i64>,
    pub(super) replicas: i32,
    pub(super) updated_replicas: i32,
    pub(super) ready_replicas: i32,
}

/// All objects of a kind in all namespaces.
pub(super) async fn list<K, T>(client: &Client) -> Result<Vec<T>>
where
    K: Resource<DynamicType = ()>,
    T: DeserializeOwned,
{
    #[derive(Deserialize)]
    struct List<T> {
        items: Vec<T>,
    }
    let path = K::url_path(&(), None);
    let request = Request::new(&path).list(&ListParams::default())?;
    let list: List<T> = client.request(request).await.with_context(|| format!("cannot list {path}"))?;
    Ok(list.items)
}

/// A kind in all namespaces, as objects of which nobody reads more than the metadata.
pub(super) fn untyped<K: Resource<DynamicType = ()>>(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<K>(&()))
}

/// The same in the namespace `default`.
pub(super) fn untyped_in_default<K: Resource<DynamicType = ()>>(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "default", &ApiResource::erase::<K>(&()))
}
