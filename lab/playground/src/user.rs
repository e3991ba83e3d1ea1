//! Actions of a user: each is printed as a kubectl command and carried out by the API.

use std::ops::RangeInclusive;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::{Value, json};

use super::cluster::EGRESS_LABEL;
use super::kinds::{untyped, untyped_in_default};
use super::stage::{Look, Stage};

/// The image of every container; nothing is ever pulled.
const IMAGE: &str = "nginx";
/// Number of parallel requests, when there are many.
const AT_ONCE: usize = 16;
/// The port of the pods.
pub(super) const TARGET_PORT: u16 = 8080;

impl Stage {
    /// `kubectl create deployment`.
    pub(super) async fn create_deployment(&self, name: &str, replicas: u32) -> Result<()> {
        self.narrator
            .command(&format!("kubectl create deployment {name} --image={IMAGE} --replicas={replicas}"));
        self.make_deployment(name, replicas).await
    }

    /// The same, without printing the command.
    pub(super) async fn make_deployment(&self, name: &str, replicas: u32) -> Result<()> {
        let labels = json!({"app": name});
        self.create::<Deployment>(json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": IMAGE, "image": IMAGE}]},
                },
            },
        }))
        .await
    }

    /// `kubectl expose deployment`, as a load balancer.
    pub(super) async fn expose(&self, deployment: &str, port: u16) -> Result<()> {
        self.narrator.command(&format!(
            "kubectl expose deployment {deployment} --type=LoadBalancer --port={port} --target-port={TARGET_PORT}"
        ));
        self.make_service(deployment, deployment, port).await
    }

    /// Creates a Service for the pods of an app, without printing a command.
    pub(super) async fn make_service(&self, name: &str, app: &str, port: u16) -> Result<()> {
        self.create::<Service>(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "labels": {"app": app}},
            "spec": {
                "type": "LoadBalancer",
                "selector": {"app": app},
                "ports": [{"port": port, "targetPort": TARGET_PORT, "protocol": "TCP"}],
            },
        }))
        .await
    }

    /// `kubectl expose deployment` in a loop: Services `NAME-1`, `NAME-2` and so on.
    pub(super) async fn expose_many(
        &self,
        deployment: &str,
        name: &str,
        numbers: RangeInclusive<usize>,
    ) -> Result<()> {
        self.narrator.command(&format!(
            "for n in $(seq {} {}); do kubectl expose deployment {deployment} --name={name}-$n --type=LoadBalancer \
             --port=80 --target-port={TARGET_PORT}; done",
            numbers.start(),
            numbers.end()
        ));
        futures::stream::iter(numbers)
            .map(|number| async move { self.make_service(&format!("{name}-{number}"), deployment, 80).await })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await
    }

    /// Waits until all pods of all Deployments are ready.
    pub(super) async fn settled_pods(&mut self) -> Result<()> {
        self.until("all pods are ready", |seen| {
            let unsettled = seen.cluster.unsettled();
            Look::at(unsettled.is_empty(), || unsettled.join("; "))
        })
        .await?;
        Ok(())
    }

    /// `kubectl scale`.
    pub(super) async fn scale(&self, deployment: &str, replicas: u32) -> Result<()> {
        self.narrator.command(&format!("kubectl scale deployment {deployment} --replicas={replicas}"));
        self.patch::<Deployment>(deployment, json!({"spec": {"replicas": replicas}})).await
    }

    /// `kubectl set image`: all pods are replaced, a few at a time.
    pub(super) async fn set_image(&self, deployment: &str, tag: &str) -> Result<()> {
        self.narrator.command(&format!("kubectl set image deployment/{deployment} {IMAGE}={IMAGE}:{tag}"));
        let containers = json!([{"name": IMAGE, "image": format!("{IMAGE}:{tag}")}]);
        self.patch::<Deployment>(
            deployment,
            json!({"spec": {"template": {"spec": {"containers": containers}}}}),
        )
        .await
    }

    /// `kubectl patch service`, with another port.
    pub(super) async fn set_port(&self, service: &str, port: u16) -> Result<()> {
        let patch =
            json!({"spec": {"ports": [{"port": port, "targetPort": TARGET_PORT, "protocol": "TCP"}]}});
        self.narrator.command(&format!("kubectl patch service {service} --type=merge -p '{patch}'"));
        self.patch::<Service>(service, patch).await
    }

    /// `kubectl run`, with the label of an egress.
    pub(super) async fn run_with_egress(&self, name: &str, egress: &str) -> Result<()> {
        self.narrator
            .command(&format!("kubectl run {name} --image={IMAGE} --labels={EGRESS_LABEL}={egress}"));
        self.create::<Pod>(json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {(EGRESS_LABEL): egress}},
            "spec": {"containers": [{"name": name, "image": IMAGE}]},
        }))
        .await
    }

    /// `kubectl label pod`, with another egress.
    pub(super) async fn set_egress(&self, pod: &str, egress: &str) -> Result<()> {
        self.narrator.command(&format!("kubectl label pod {pod} --overwrite {EGRESS_LABEL}={egress}"));
        self.patch::<Pod>(pod, json!({"metadata": {"labels": {(EGRESS_LABEL): egress}}})).await
    }

    /// `kubectl delete service`.
    pub(super) async fn delete_service(&self, name: &str) -> Result<()> {
        self.delete::<Service>("service", name).await
    }

    /// `kubectl delete deployment`.
    pub(super) async fn delete_deployment(&self, name: &str) -> Result<()> {
        self.delete::<Deployment>("deployment", name).await
    }

    /// `kubectl delete pod`.
    pub(super) async fn delete_pod(&self, name: &str) -> Result<()> {
        self.delete::<Pod>("pod", name).await
    }

    async fn create<K: Resource<DynamicType = ()>>(&self, object: Value) -> Result<()> {
        create(untyped_in_default::<K>(&self.client), object).await
    }

    async fn patch<K: Resource<DynamicType = ()>>(&self, name: &str, patch: Value) -> Result<()> {
        untyped_in_default::<K>(&self.client)
            .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .with_context(|| format!("cannot change {name}"))?;
        Ok(())
    }

    async fn delete<K: Resource<DynamicType = ()>>(&self, kind: &str, name: &str) -> Result<()> {
        self.narrator.command(&format!("kubectl delete {kind} {name}"));
        untyped_in_default::<K>(&self.client)
            .delete(name, &DeleteParams::background())
            .await
            .with_context(|| format!("cannot delete {kind} {name}"))?;
        Ok(())
    }
}

async fn create(api: Api<DynamicObject>, object: Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object)?;
    let name = object.name_any();
    api.create(&PostParams::default(), &object).await.with_context(|| format!("cannot create {name}"))?;
    Ok(())
}

/// Creates a namespace, unless it exists.
pub(super) async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    match create(untyped::<Namespace>(client), namespace).await {
        Err(error) if matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 409) => {
            Ok(())
        }
        made => made,
    }
}

/// The UID of a namespace.
pub(super) async fn namespace_uid(client: &Client, name: &str) -> Result<String> {
    let namespace = untyped::<Namespace>(client).get(name).await?;
    namespace.metadata.uid.with_context(|| format!("namespace {name} has no UID"))
}
