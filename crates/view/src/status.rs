//! One service or egress as it stands.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::moment::{Due, Since};
use crate::state::{State, Why};

/// A Service of type `LoadBalancer`, and its load balancer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    /// The Service's namespace; nothing when its object is gone and only Azure's side is left.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The Service's name; nothing when its object is gone.
    #[serde(default)]
    pub name: Option<String>,
    /// The Service's UID, and the name of its load balancer.
    pub uid: String,
    /// How far it is.
    #[serde(flatten)]
    pub progress: Progress,
}

impl ServiceStatus {
    /// What people call it: `shop/web`, or `-/UID` when its object is gone.
    pub fn title(&self) -> String {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
            _ => format!("-/{}", self.uid),
        }
    }
}

/// An egress, and its NAT gateway.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EgressStatus {
    /// Its name, and the name of its NAT gateway.
    pub name: String,
    /// It serves every pod that has no egress of its own.
    #[serde(default)]
    pub is_default: bool,
    /// Its pods that have not finished.
    #[serde(default)]
    pub pods: u64,
    /// How far it is.
    #[serde(flatten)]
    pub progress: Progress,
}

/// How far a service or egress is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Where it is in its life.
    pub state: State,
    /// Since when.
    pub since: Since,
    /// Whether anybody wants it.
    pub desired: bool,
    /// The gateway sends traffic to it, or takes traffic from it.
    pub live: bool,
    /// The operation in flight, as logs call it: `#12`.
    #[serde(default)]
    pub operation: Option<String>,
    /// Failures since the last success.
    #[serde(default)]
    pub attempts: u32,
    /// When its last operation began.
    #[serde(default)]
    pub last_attempt: Option<Since>,
    /// When it is tried again.
    #[serde(default)]
    pub next_retry: Option<Due>,
    /// It waits long enough that people were told.
    #[serde(default)]
    pub parked: bool,
    /// Its desired state is not programmed for longer than ordinary work takes; `why` says what is wrong.
    #[serde(default)]
    pub trouble: bool,
    /// What keeps it from being as wanted now.
    #[serde(default)]
    pub why: Option<Why>,
    /// How its last operation failed; nothing once one has succeeded.
    #[serde(default)]
    pub last_failure: Option<LastFailure>,
    /// Its public IP.
    #[serde(default)]
    pub public_ip: Option<IpAddr>,
    /// Its addresses.
    #[serde(default)]
    pub addresses: Addresses,
    /// Its deletion is held as one of too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
}

/// A service or egress whose deletion is held.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// What people call it, also when its object is gone: `service/shop/web`, `egress/blue`.
    pub name: String,
    /// How the operator's consent names it.
    pub fingerprint: String,
}

/// How many addresses a service has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Addresses {
    /// That it should have.
    pub desired: u64,
    /// Of those, the ones that wait because the service is not ready.
    pub buffered: u64,
    /// That Azure is known to have.
    pub programmed: u64,
    /// That Azure may have; nothing is deleted before this is zero.
    pub mapped: u64,
    /// That wait for an address of their node.
    pub unplaceable: u64,
    /// That Azure refuses.
    pub quarantined: u64,
}

/// How an operation failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastFailure {
    /// When.
    pub at: Since,
    /// At which step: `load-balancer`.
    pub step: String,
    /// Azure's code, or ours.
    pub code: String,
    /// A sentence.
    pub message: String,
}

/// Either of the two.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Status {
    /// A Service.
    Service(ServiceStatus),
    /// An egress.
    Egress(EgressStatus),
}

impl Status {
    /// What is asked for to see it: `service/shop/web`, `egress/blue`.
    pub fn title(&self) -> String {
        match self {
            Status::Service(service) => format!("service/{}", service.title()),
            Status::Egress(egress) => format!("egress/{}", egress.name),
        }
    }

    /// How far it is.
    pub fn progress(&self) -> &Progress {
        match self {
            Status::Service(service) => &service.progress,
            Status::Egress(egress) => &egress.progress,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use expect_test::expect;
    use sluice_model::reason::Reason;

    use super::*;

    pub(crate) fn parked() -> ServiceStatus {
        ServiceStatus {
            namespace: Some("shop".into()),
            name: Some("web".into()),
            uid: "5e1f0000-0000-4000-8000-000000000001".into(),
            progress: Progress {
                state: State::NotStarted,
                since: Since { at: "2026-11-16T02:40:00Z".into(), age_seconds: 65 },
                desired: true,
                live: false,
                operation: None,
                attempts: 2,
                last_attempt: Some(Since { at: "2026-11-16T02:41:00Z".into(), age_seconds: 5 }),
                next_retry: Some(Due { at: "2026-11-16T02:51:00Z".into(), in_seconds: 595 }),
                parked: true,
                trouble: true,
                why: Some(Why::new(Reason::QuotaExceeded, "PublicIPCountLimitReached: no more public IPs")),
                last_failure: None,
                public_ip: None,
                addresses: Addresses { desired: 3, buffered: 3, ..Addresses::default() },
                held: None,
            },
        }
    }

    #[test]
    fn the_json_of_a_service_is_flat_and_in_camel_case() {
        let json = serde_json::to_string_pretty(&parked()).unwrap();
        expect![[r#"
            {
              "namespace": "shop",
              "name": "web",
              "uid": "5e1f0000-0000-4000-8000-000000000001",
              "state": "NotStarted",
              "since": {
                "at": "2026-11-16T02:40:00Z",
                "ageSeconds": 65
              },
              "desired": true,
              "live": false,
              "operation": null,
              "attempts": 2,
              "lastAttempt": {
                "at": "2026-11-16T02:41:00Z",
                "ageSeconds": 5
              },
              "nextRetry": {
                "at": "2026-11-16T02:51:00Z",
                "inSeconds": 595
              },
              "parked": true,
              "trouble": true,
              "why": {
                "reason": "QuotaExceeded",
                "code": "SGW0008",
                "message": "PublicIPCountLimitReached: no more public IPs"
              },
              "lastFailure": null,
              "publicIp": null,
              "addresses": {
                "desired": 3,
                "buffered": 3,
                "programmed": 0,
                "mapped": 0,
                "unplaceable": 0,
                "quarantined": 0
              }
            }"#]]
        .assert_eq(&json);
        assert_eq!(serde_json::from_str::<ServiceStatus>(&json).unwrap(), parked());
    }

    #[test]
    fn a_reader_needs_neither_the_fields_of_later_versions_nor_all_of_earlier_ones() {
        let json = r#"{"name": "blue", "mood": "fine", "state": "Created", "desired": true, "live": true,
                       "since": {"at": "2026-11-16T02:40:00Z", "ageSeconds": 65, "moon": "full"}}"#;
        let egress: EgressStatus = serde_json::from_str(json).unwrap();
        assert_eq!((egress.pods, egress.progress.attempts, egress.progress.why), (0, 0, None));
    }

    #[test]
    fn a_service_whose_object_is_gone_goes_by_its_uid() {
        let mut service = parked();
        assert_eq!(Status::Service(service.clone()).title(), "service/shop/web");
        service.namespace = None;
        service.name = None;
        assert_eq!(service.title(), "-/5e1f0000-0000-4000-8000-000000000001");
    }
}
