//! The emulator by its control API: its state, its request log, and changes by other clients.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sluice_emulator::Running;
use sluice_emulator_client::Control;

/// The tenant of the playground.
pub(super) const TENANT: &str = "00000000-0000-0000-0000-000000000000";
/// Its subscription.
pub(super) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
/// Its resource group.
pub(super) const GROUP: &str = "sluice";
/// The region of everything.
pub(super) const REGION: &str = "eastus";
/// The virtual network.
pub(super) const NETWORK: &str = "cluster";
/// Its subnet.
pub(super) const SUBNET: &str = "nodes";
/// The service gateway, once the controller has made it.
pub(super) const GATEWAY: &str = "servicegateway";

/// The control API of the emulator.
#[derive(Clone, Debug)]
pub(super) struct Azure {
    control: Control,
}

impl Azure {
    /// The way to an emulator of this process.
    pub(super) fn of(running: &Running) -> Result<Azure> {
        Ok(Azure { control: Control::new(&running.url(), running.ca_pem().as_bytes())? })
    }

    /// Makes the network that nodes are in.
    pub(super) async fn make_network(&self) -> Result<()> {
        let body = json!({
            "location": REGION,
            "properties": {
                "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] },
                "subnets": [{ "name": SUBNET, "properties": { "addressPrefix": "10.1.0.0/16" } }],
            },
        });
        self.tamper(json!({ "do": "put", "id": resource_id("virtualNetworks", NETWORK), "body": body })).await
    }

    /// Everything there is.
    pub(super) async fn state(&self) -> Result<State> {
        self.control.state().await.map(State)
    }

    /// Counts of the request log: all calls, 429s, and calls before a `Retry-After` was over.
    pub(super) async fn summary(&self) -> Result<Summary> {
        let summary = self.control.summary().await?;
        let count = |value: &Value| {
            value
                .as_u64()
                .with_context(|| format!("the emulator's summary has an unexpected format: {summary}"))
        };
        let sum = |which: &dyn Fn(&Value) -> bool| {
            let ours = list(&summary["byKind"]).iter().filter(|it| it["area"] == "arm" && which(it));
            ours.filter_map(|it| it["count"].as_u64()).sum()
        };
        let is_read = |it: &Value| ["Get", "List", "Poll"].iter().any(|call| it["call"] == *call);
        Ok(Summary {
            calls: count(&summary["arm"]["requests"])?,
            writes: sum(&|it| !is_read(it)),
            location_updates: sum(&|it| it["call"] == "UpdateLocations"),
            throttled: sum(&|it| it["status"] == "429"),
            early: count(&summary["early"]["count"])?,
        })
    }

    /// A change by another client of the subscription.
    pub(super) async fn tamper(&self, deed: Value) -> Result<()> {
        self.control.tamper(&deed).await.map(drop)
    }

    /// Ends all faults.
    pub(super) async fn calm(&self) -> Result<()> {
        self.control.calm().await
    }

    /// Tells the control API something: `("faults", {…})`.
    pub(super) async fn tell(&self, path: &str, body: Value) -> Result<()> {
        self.control.tell(path, &body).await.map(drop)
    }
}

/// What the request log counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Summary {
    pub(super) calls: u64,
    /// Calls that change something.
    pub(super) writes: u64,
    /// Writes of addresses.
    pub(super) location_updates: u64,
    /// Calls that Azure throttled (429).
    pub(super) throttled: u64,
    /// Calls before a `Retry-After` had elapsed.
    pub(super) early: u64,
}

/// Everything that the emulator has, by its own truth.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct State(pub(super) Value);

impl State {
    /// All of a kind: `all("loadBalancers")`.
    pub(super) fn all(&self, kind: &str) -> &[Value] {
        list(&self.0[kind])
    }

    /// One resource by its name.
    pub(super) fn named(&self, kind: &str, name: &str) -> Option<&Value> {
        self.all(kind).iter().find(|it| name_of(it).eq_ignore_ascii_case(name))
    }

    /// The IP address of a public IP.
    pub(super) fn public_ip(&self, public_ip: &str) -> Option<&str> {
        self.named("publicIPAddresses", public_ip)?["ipAddress"].as_str()
    }

    /// The gateway.
    pub(super) fn gateway(&self) -> Option<&Value> {
        self.named("serviceGateways", GATEWAY)
    }

    /// The names that are registered with the gateway.
    pub(super) fn registrations(&self) -> impl Iterator<Item = &str> {
        let gateway = self.gateway().map_or(&Value::Null, |it| &it["services"]);
        list(gateway).iter().filter_map(|it| it["name"].as_str())
    }

    /// Every address of the gateway: (node, address, its services).
    pub(super) fn mapped(&self) -> Vec<(String, String, Vec<String>)> {
        let gateway = self.gateway().map_or(&Value::Null, |it| &it["addressLocations"]);
        let mut found = Vec::new();
        for location in list(gateway) {
            let node = text(&location["addressLocation"]);
            for it in list(&location["addresses"]) {
                let mut services: Vec<String> = list(&it["services"]).iter().map(text).collect();
                services.sort_unstable();
                found.push((node.clone(), text(&it["address"]), services));
            }
        }
        found
    }

    /// How many addresses a service or egress has in the gateway.
    pub(super) fn addresses_of(&self, name: &str) -> usize {
        self.mapped().iter().filter(|(_, _, services)| services.iter().any(|it| it == name)).count()
    }
}

/// The last part of a resource's id.
pub(super) fn name_of(resource: &Value) -> &str {
    resource["id"].as_str().and_then(|id| id.rsplit('/').next()).unwrap_or_default()
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The id of a resource in the playground's group: `resource_id("loadBalancers", "web")`.
pub(super) fn resource_id(kind: &str, name: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Network/{kind}/{name}")
}
