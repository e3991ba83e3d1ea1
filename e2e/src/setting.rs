//! What a story may choose before it begins: the controller's configuration and how the emulator behaves.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::azure::{GATEWAY, GROUP, Greeting, NETWORK, SUBNET, SUBSCRIPTION};
use crate::judge::Contract;

/// How many times as fast as real time emulator and controller go.
const TIME_FACTOR: u32 = 30;

/// How long after its last renewal a leader begins requests.
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(2);

/// The choices.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// `sluice.loadBalancerClass`; `None`: the controller is the cluster's service controller.
    pub(crate) class: Option<String>,
    /// The value of the cluster tag.
    pub(crate) cluster_id: String,
    /// Emulator and controller go so many times as fast as real time.
    pub(crate) time_factor: u32,
    /// How many replicas there are.
    pub(crate) replicas: usize,
    /// Whether the controller runs when the story begins.
    pub(crate) starts_running: bool,
    /// Whether the controller may end by itself: because it lost its lease, or found no API server.
    pub(crate) may_end: bool,
    /// It leaves so much behind that its plane goes with it, instead of everything being cleared up.
    pub(crate) leaves_all: bool,
    /// Further arguments of the emulator.
    pub(crate) emulator: Vec<String>,
    /// Keys of the `sluice:` section, by their path: `("egress.linger", "30s")`.
    keys: Vec<(String, Value)>,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting {
            class: Some("sluice.dev/e2e".to_string()),
            cluster_id: "e2e".to_string(),
            time_factor: TIME_FACTOR,
            replicas: 1,
            starts_running: true,
            may_end: false,
            leaves_all: false,
            emulator: Vec::new(),
            keys: Vec::new(),
        }
    }
}

impl Setting {
    /// Sets a key of the `sluice:` section: `setting.key("egress.linger", "30s")`.
    pub(crate) fn key(&mut self, path: &str, value: impl Into<Value>) -> &mut Setting {
        self.keys.retain(|(other, _)| other != path);
        self.keys.push((path.to_string(), value.into()));
        self
    }

    fn value(&self, path: &str) -> Option<&Value> {
        self.keys.iter().find(|(other, _)| other == path).map(|(_, value)| value)
    }

    /// What follows from it for the judge.
    pub(crate) fn contract(&self) -> Contract {
        let namespaces = self.value("egress.namespaces").and_then(Value::as_array);
        Contract {
            class: self.class.clone(),
            cluster_id: self.cluster_id.clone(),
            default_outbound: self.value("defaultOutbound").is_none_or(|mode| mode != "leave"),
            egress_namespaces: namespaces
                .map(|all| all.iter().filter_map(Value::as_str).map(str::to_string).collect()),
            exceptions: Default::default(),
        }
    }

    /// The configuration file.
    pub(crate) fn config_file(&self, azure: &Greeting, lease_namespace: &str) -> String {
        let mut sluice = Map::new();
        let mut put = |path: &str, value: Value| {
            let mut section = &mut sluice;
            let mut parts: Vec<&str> = path.split('.').collect();
            let last = parts.pop().unwrap_or_default();
            for part in parts {
                let inner = section.entry(part).or_insert_with(|| json!({}));
                section = inner.as_object_mut().expect("a key is not a section and a value at once");
            }
            section.insert(last.to_string(), value);
        };
        put("clusterId", json!(self.cluster_id));
        put("gateway.name", json!(GATEWAY));
        if let Some(class) = &self.class {
            put("loadBalancerClass", json!(class));
        }
        for (path, value) in [
            ("azure.authorityHost", json!(azure.url)),
            ("azure.caFile", json!(azure.ca_path)),
            ("leaderElection.namespace", json!(lease_namespace)),
            // What a leader has begun must have left before another one starts.
            ("azure.connectLimit", json!("2s")),
            ("leaderElection.leaseDuration", json!("4s")),
            ("leaderElection.renewDeadline", json!(format!("{}ms", RENEW_DEADLINE.as_millis()))),
            ("leaderElection.retryPeriod", json!("250ms")),
            ("listen.health", json!("127.0.0.1:0")),
            ("listen.api", json!("127.0.0.1:0")),
        ] {
            put(path, value);
        }
        for (path, value) in &self.keys {
            put(path, value.clone());
        }
        let whole = json!({
            "cloud": "AzurePublicCloud",
            "tenantId": azure.tenant_id,
            "subscriptionId": SUBSCRIPTION,
            "aadClientId": azure.client_id,
            "aadClientSecret": azure.client_secret,
            "resourceGroup": GROUP,
            "location": "westeurope",
            "vnetName": NETWORK,
            "subnetName": SUBNET,
            "resourceManagerEndpoint": azure.url,
            "sluice": sluice,
        });
        serde_json::to_string_pretty(&whole).expect("a configuration of strings and maps can be written")
    }
}
