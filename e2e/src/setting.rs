//! What a story may choose before it begins: the controller's configuration and how the emulator behaves.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::azure::{GATEWAY, GROUP, Greeting, NETWORK, SUBNET, SUBSCRIPTION};
use crate::judge::Contract;

/// How many times as fast as real time the emulator goes: its latencies, its buckets and the window in which it counts.
///
/// The controller is the production build, which knows no other clock than the real one, and [`FAST`] makes it fit. Only
/// in the few stories for which that is not enough the lab build goes by a clock that is as fast as the emulator's.
pub(crate) const TIME_FACTOR: u32 = 30;

/// The keys by which the controller keeps pace with that Azure on the real clock.
///
/// Each is about its default divided by [`TIME_FACTOR`], or the least that the key allows if that is more. So the budget
/// is what this Azure gives in real time, no operation is asked about long after it has ended, and what is waited for
/// (a retry, a parked service, the second look at a difference) comes within seconds. Limits that only end a lost cause
/// stay as they are: a busy machine must not reach them. What has no key is real: a `Retry-After`, the lease, and the
/// minute after which a gateway that cannot be used is looked at again.
const FAST: [(&str, &str); 16] = [
    // A load balancer is made within a third of a second; the first few are asked about when their kind is unknown.
    ("operations.pollMin", "20ms"),
    ("operations.pollMax", "100ms"),
    ("drift.interval", "30s"),
    ("drift.confirmAfter", "1500ms"),
    ("drift.settle", "1s"),
    ("deletion.reportAfter", "10s"),
    ("retry.backoffMin", "100ms"),
    ("retry.backoffMax", "1s"),
    ("retry.burstPark", "10s"),
    ("retry.quotaParkMin", "20s"),
    ("retry.forbiddenParkMin", "10s"),
    ("locations.quarantineRetry", "10s"),
    // A rate is multiplied instead. What a bucket holds and what a window takes are numbers without a time.
    ("budget.window", "10s"),
    ("budget.reads.perSecond", "750"),
    ("budget.writes.perSecond", "300"),
    ("budget.deletes.perSecond", "300"),
];

/// How long after its last renewal a leader begins requests, where another one is waited for. Elsewhere the lease has
/// its defaults: a controller that is stopped releases it, and a busy machine must not lose it.
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(5);

/// From that deadline to the end of the lease: what a leader has begun must have left before another one starts.
const MARGIN: Duration = Duration::from_secs(2);

/// The choices.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// `sluice.loadBalancerClass`; `None`: the controller is the cluster's service controller.
    pub(crate) class: Option<String>,
    /// The value of the cluster tag.
    pub(crate) cluster_id: String,
    /// The controller is the lab build and goes by the emulator's clock; the story says why.
    pub(crate) is_scaled: bool,
    /// How many replicas there are.
    pub(crate) replicas: usize,
    /// Whether the story waits for a lease to expire, because its holder was killed, was frozen or cannot renew it.
    pub(crate) awaits_the_lease: bool,
    /// Whether the controller runs when the story begins.
    pub(crate) starts_running: bool,
    /// Whether the controller may end by itself: because it lost its lease, or found no API server.
    pub(crate) may_end: bool,
    /// It leaves so much behind that its plane goes with it, instead of everything being cleared up.
    pub(crate) leaves_all: bool,
    /// How many files and sockets each replica may have open; `None`: as many as this process.
    pub(crate) descriptors_max: Option<u32>,
    /// A story that takes longer is a lost cause.
    pub(crate) longest: Duration,
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
            is_scaled: false,
            replicas: 1,
            awaits_the_lease: false,
            starts_running: true,
            may_end: false,
            leaves_all: false,
            descriptors_max: None,
            longest: Duration::from_secs(900),
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
            ("leaderElection.retryPeriod", json!("250ms")),
            ("listen.health", json!("127.0.0.1:0")),
            ("listen.api", json!("127.0.0.1:0")),
        ] {
            put(path, value);
        }
        if self.awaits_the_lease {
            let ms = |span: Duration| json!(format!("{}ms", span.as_millis()));
            put("azure.connectTimeout", ms(MARGIN));
            put("leaderElection.renewDeadline", ms(RENEW_DEADLINE));
            put("leaderElection.leaseDuration", ms(RENEW_DEADLINE + MARGIN));
        }
        for (path, value) in FAST.iter().filter(|_| !self.is_scaled) {
            put(path, json!(value));
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
