//! The cluster as people and kubelets make it: Nodes, Pods with their status, Services, slices.
//!
//! There is no kubelet and no scheduler, so this plays both: a pod is made on its node and gets its
//! status patched, and a pod that is deleted lingers, ending, until [`World::pod_ended`]. Services
//! with a selector get their EndpointSlices from the real controller; slices by hand are for what it
//! would never make. Every deed is told in one line.

mod nodes;
mod pods;
pub(crate) mod ports;
mod services;
mod slices;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

use crate::narration::Narration;

pub(crate) use pods::Step;
pub(crate) use services::ServiceToMake;

/// One namespace of the story's cluster, and the nodes that all namespaces share.
#[derive(Clone)]
pub(crate) struct World {
    /// With all rights.
    pub(crate) client: Client,
    /// The namespace that names without one are in.
    pub(crate) namespace: String,
    /// The class that Services get unless they are told otherwise.
    class: Option<String>,
    narration: Arc<Narration>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The addresses of each node.
    nodes: Mutex<BTreeMap<String, Vec<String>>>,
    nodes_made: AtomicUsize,
    pods_made: AtomicUsize,
}

impl World {
    /// The story's first namespace.
    pub(crate) async fn new(
        client: Client,
        namespace: &str,
        class: Option<String>,
        narration: Arc<Narration>,
    ) -> Result<World> {
        let shared = Arc::default();
        let world = World { client, namespace: namespace.to_string(), class, narration, shared };
        world.make_namespace().await?;
        Ok(world)
    }

    /// Another namespace of the same cluster.
    pub(crate) async fn other_namespace(&self, name: &str) -> Result<World> {
        self.tell(format!("makes namespace {name}"));
        let other = self.in_namespace(name);
        other.make_namespace().await?;
        Ok(other)
    }

    /// The same world seen from a namespace that exists.
    pub(crate) fn in_namespace(&self, name: &str) -> World {
        World { namespace: name.to_string(), ..self.clone() }
    }

    /// Deletes the namespace; the namespace controller deletes what is in it, a kubelet ends the pods.
    pub(crate) async fn delete_namespace(&self) -> Result<()> {
        self.tell(format!("deletes namespace {}", self.namespace));
        let namespaces = Api::<Namespace>::all(self.client.clone());
        namespaces.delete(&self.namespace, &Default::default()).await?;
        Ok(())
    }

    /// Tells what happens.
    pub(crate) fn tell(&self, what: impl Into<String>) {
        self.narration.tell(what);
    }

    async fn make_namespace(&self) -> Result<()> {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let object = serde_json::from_value(json!({"metadata": {"name": self.namespace}}))?;
        namespaces.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    fn number_of_pod(&self) -> usize {
        self.shared.pods_made.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        <K as kube::Resource>::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// `one pod`, `2 pods`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("one {noun}") } else { format!("{number} {noun}s") }
}
