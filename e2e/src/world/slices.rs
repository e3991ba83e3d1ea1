//! EndpointSlices by hand, for what the real controller would never make.

use anyhow::Result;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::{World, count};

/// Says who made them, as a selector.
pub(super) const BY_HAND: &str = "endpointslice.kubernetes.io/managed-by=e2e.sluice.dev";

/// An EndpointSlice that is about to be written; writing it again replaces its endpoints.
#[must_use = "a slice is written by write()"]
pub(crate) struct SliceToMake<'a> {
    world: &'a World,
    name: String,
    service: String,
    family: &'static str,
    ports: Vec<Value>,
    endpoints: Vec<Value>,
    told: bool,
}

impl World {
    /// A slice of a Service without a selector: `world.slice("web-1").of("web").endpoint(…).write()`.
    pub(crate) fn slice(&self, name: &str) -> SliceToMake<'_> {
        SliceToMake {
            world: self,
            name: name.to_string(),
            service: String::new(),
            family: "IPv4",
            ports: Vec::new(),
            endpoints: Vec::new(),
            told: true,
        }
    }

    /// Deletes one.
    pub(crate) async fn delete_slice(&self, name: &str) -> Result<()> {
        self.tell(format!("deletes slice {name}"));
        self.api::<EndpointSlice>().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }
}

impl SliceToMake<'_> {
    /// The Service that it belongs to, by label.
    pub(crate) fn of(mut self, service: &str) -> Self {
        self.service = service.to_string();
        self
    }

    /// Its addresses are of IPv6, or names (`FQDN`).
    pub(crate) fn family(mut self, family: &'static str) -> Self {
        self.family = family;
        self
    }

    /// A port, by the name of the Service's port.
    pub(crate) fn port(mut self, name: &str, port: u16) -> Self {
        self.ports.push(json!({"name": name, "port": port, "protocol": "TCP"}));
        self
    }

    /// A ready endpoint.
    pub(crate) fn endpoint(self, address: &str, node: &str) -> Self {
        self.endpoint_with(address, node, json!({"ready": true}))
    }

    /// An endpoint with these conditions.
    pub(crate) fn endpoint_with(mut self, address: &str, node: &str, conditions: Value) -> Self {
        self.endpoints.push(json!({"addresses": [address], "nodeName": node, "conditions": conditions}));
        self
    }

    /// Many ready endpoints.
    pub(crate) fn endpoints(self, all: impl IntoIterator<Item = (String, String)>) -> Self {
        all.into_iter().fold(self, |slice, (address, node)| slice.endpoint(&address, &node))
    }

    /// It is one of many, so nothing is told about it.
    pub(crate) fn quiet(mut self) -> Self {
        self.told = false;
        self
    }

    /// Makes or replaces it.
    pub(crate) async fn write(self) -> Result<()> {
        let SliceToMake { world, name, .. } = &self;
        if self.told {
            let number = count(self.endpoints.len(), "endpoint");
            world.tell(format!("slice {name} of {} has {number}", self.service));
        }
        let object = json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/service-name": self.service,
                    "endpointslice.kubernetes.io/managed-by": "e2e.sluice.dev",
                },
            },
            "addressType": self.family,
            "ports": self.ports,
            "endpoints": self.endpoints,
        });
        let own = PatchParams::apply("sluice-e2e").force();
        world.api::<EndpointSlice>().patch(name, &own, &Patch::Apply(&object)).await?;
        Ok(())
    }
}
