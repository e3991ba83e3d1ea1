//! Services as their owners make and change them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::World;
use super::ports::{tcp, udp};
use super::slices::BY_HAND;

/// A Service that is about to be made.
#[must_use = "a Service is made by make()"]
pub(crate) struct ServiceToMake<'a> {
    world: &'a World,
    name: String,
    ports: Vec<Value>,
    selector: Option<String>,
    annotations: BTreeMap<String, String>,
    spec: Value,
    told: bool,
}

impl World {
    /// A Service of type LoadBalancer: `world.service("web").port(80, 8080).selecting("web").make()`.
    pub(crate) fn service(&self, name: &str) -> ServiceToMake<'_> {
        let mut spec = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false});
        if let Some(class) = &self.class {
            spec["loadBalancerClass"] = json!(class);
        }
        ServiceToMake {
            world: self,
            name: name.to_string(),
            ports: Vec::new(),
            selector: None,
            annotations: BTreeMap::new(),
            spec,
            told: true,
        }
    }

    /// Changes a Service by a merge patch; `why` is what the narration says.
    pub(crate) async fn edit_service(&self, name: &str, why: &str, patch: Value) -> Result<()> {
        self.tell(format!("service {name}: {why}"));
        self.api::<Service>().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }

    /// Gives a Service other ports, all of them.
    pub(crate) async fn set_ports(&self, name: &str, ports: &[Value]) -> Result<()> {
        let shown: Vec<String> = ports.iter().map(show_port).collect();
        let why = format!("its ports are {}", shown.join(", "));
        self.edit_service(name, &why, json!({"spec": {"ports": ports}})).await
    }

    /// Sets or takes away an annotation.
    pub(crate) async fn annotate(&self, name: &str, key: &str, value: Option<&str>) -> Result<()> {
        let why = match value {
            Some(value) => format!("is annotated {key}={value}"),
            None => format!("loses its annotation {key}"),
        };
        self.edit_service(name, &why, json!({"metadata": {"annotations": {key: value}}})).await
    }

    /// LoadBalancer → ClusterIP. The class goes with the type, as Kubernetes wants it.
    pub(crate) async fn make_cluster_ip(&self, name: &str) -> Result<()> {
        let patch = json!({"spec": {
            "type": "ClusterIP", "loadBalancerClass": null, "allocateLoadBalancerNodePorts": null,
        }});
        self.edit_service(name, "becomes a ClusterIP", patch).await
    }

    /// ClusterIP → LoadBalancer.
    pub(crate) async fn make_load_balancer(&self, name: &str) -> Result<()> {
        let patch = json!({"spec": {
            "type": "LoadBalancer",
            "loadBalancerClass": self.class,
            "allocateLoadBalancerNodePorts": false,
        }});
        self.edit_service(name, "becomes a LoadBalancer", patch).await
    }

    /// Deletes a Service; it goes when its finalizers have.
    pub(crate) async fn delete_service(&self, name: &str) -> Result<()> {
        self.tell(format!("deletes service {name}"));
        self.quietly_delete_service(name).await
    }

    /// The same for one of many, so nothing is told about it.
    pub(crate) async fn quietly_delete_service(&self, name: &str) -> Result<()> {
        self.api::<Service>().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Deletes every Service of the namespace and the slices that were made by hand, without a word.
    pub(crate) async fn delete_services_and_slices(&self) -> Result<()> {
        for service in self.api::<Service>().list(&ListParams::default()).await? {
            self.api::<Service>().delete(&service.name_any(), &DeleteParams::default()).await?;
        }
        let by_hand = ListParams::default().labels(BY_HAND);
        self.api::<EndpointSlice>().delete_collection(&DeleteParams::default(), &by_hand).await?;
        Ok(())
    }

    /// Somebody takes all finalizers off a Service by force.
    pub(crate) async fn without_finalizers(&self, name: &str) -> Result<()> {
        let patch = json!({"metadata": {"finalizers": null}});
        self.edit_service(name, "loses its finalizers by force", patch).await
    }

    /// Takes away all that its status says.
    pub(crate) async fn wipe_status(&self, name: &str) -> Result<()> {
        self.tell(format!("somebody wipes the status of service {name}"));
        let patch = json!({"status": {"loadBalancer": null, "conditions": null}});
        self.api::<Service>().patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }

    /// A Service that has our finalizer and is being deleted, and never had anything else.
    pub(crate) async fn stuck_service(&self, name: &str) -> Result<()> {
        self.service(name).port(80, 8080).make().await?;
        let patch = json!({"metadata": {"finalizers": ["sluice.dev/cleanup"]}});
        self.edit_service(name, "has our finalizer", patch).await?;
        self.delete_service(name).await
    }

    /// A Service that has only finalizers of other service controllers.
    pub(crate) async fn inherited_service(&self, name: &str) -> Result<()> {
        self.service(name).port(80, 8080).make().await?;
        let finalizers =
            ["service.kubernetes.io/load-balancer-cleanup", "servicegateway.azure.com/service-cleanup"];
        let patch = json!({"metadata": {"finalizers": finalizers}});
        self.edit_service(name, "has finalizers of other controllers", patch).await
    }

    /// The Service as it is, or `None`.
    pub(crate) async fn service_object(&self, name: &str) -> Result<Option<Service>> {
        Ok(self.api::<Service>().get_opt(name).await?)
    }

    /// Its UID.
    pub(crate) async fn uid_of(&self, name: &str) -> Result<String> {
        let service = self.service_object(name).await?.with_context(|| format!("no service {name}"))?;
        service.metadata.uid.with_context(|| format!("service {name} has no UID"))
    }
}

fn show_port(port: &Value) -> String {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let protocol = word(&port["protocol"]).to_ascii_lowercase();
    format!("{protocol} {}→{}", port["port"], word(&port["targetPort"]))
}

impl ServiceToMake<'_> {
    /// A TCP port.
    pub(crate) fn port(self, port: u16, target: impl Into<Value>) -> Self {
        self.port_as(tcp(port, target))
    }

    /// A UDP port.
    pub(crate) fn udp(self, port: u16, target: impl Into<Value>) -> Self {
        self.port_as(udp(port, target))
    }

    /// A port as it would stand in the spec.
    pub(crate) fn port_as(mut self, port: Value) -> Self {
        self.ports.push(port);
        self
    }

    /// It selects the pods of this app.
    pub(crate) fn selecting(mut self, app: &str) -> Self {
        self.selector = Some(app.to_string());
        self
    }

    /// It has an annotation.
    pub(crate) fn annotated(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_string(), value.to_string());
        self
    }

    /// A field of its spec, as Kubernetes calls it; `null` takes it away.
    pub(crate) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        match value.into() {
            Value::Null => {
                if let Some(spec) = self.spec.as_object_mut() {
                    spec.remove(field);
                }
            }
            value => self.spec[field] = value,
        }
        self
    }

    /// It is of IPv6.
    pub(crate) fn ipv6(self) -> Self {
        self.with("ipFamilies", json!(["IPv6"])).with("ipFamilyPolicy", "SingleStack")
    }

    /// It is one of many, so nothing is told about it.
    pub(crate) fn quiet(mut self) -> Self {
        self.told = false;
        self
    }

    /// Makes it, and gives its UID.
    pub(crate) async fn make(mut self) -> Result<String> {
        if self.told {
            let ports: Vec<String> = self.ports.iter().map(show_port).collect();
            let pods = self.selector.as_ref().map(|it| format!(" for the pods of {it}")).unwrap_or_default();
            self.world.tell(format!("makes service {} with {}{pods}", self.name, ports.join(", ")));
        }
        self.spec["ports"] = json!(self.ports);
        if let Some(app) = self.selector {
            self.spec["selector"] = json!({"app": app});
        }
        let object = json!({
            "metadata": {"name": self.name, "annotations": self.annotations},
            "spec": self.spec,
        });
        let service = serde_json::from_value(object)?;
        let made = self.world.api::<Service>().create(&PostParams::default(), &service).await?;
        made.metadata.uid.context("the API server gives no UID")
    }
}
