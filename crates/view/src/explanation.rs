//! Why something stands where it stands, and what to do.

use serde::{Deserialize, Serialize};

use crate::moment::{Due, Since};
use crate::status::Status;

/// One service or egress, and why it is where it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// How it stands.
    pub status: Status,
    /// The whole in a sentence.
    pub summary: String,
    /// Everything it waits for, the nearest first.
    #[serde(default)]
    pub waits_for: Vec<Wait>,
    /// What happened to it, oldest first; only the last things.
    #[serde(default)]
    pub timeline: Vec<Happening>,
    /// What one can do about it; nothing when there is nothing to do.
    #[serde(default)]
    pub what_to_do: Vec<String>,
    /// Its last operation, step by step, whether it is under way or over.
    #[serde(default)]
    pub plan: Option<Operation>,
    /// What people were told in Kubernetes events, oldest first; only the last things.
    #[serde(default)]
    pub events: Vec<Told>,
    /// Calls to Azure that were made for it, oldest first; only the last ones.
    #[serde(default)]
    pub calls: Vec<Call>,
}

/// Something that a service waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// What kind of thing, as a fixed word.
    pub kind: WaitKind,
    /// The same in a sentence.
    pub sentence: String,
    /// When it ends by itself, if that is known.
    #[serde(default)]
    pub until: Option<Due>,
}

/// What kind of thing a service waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WaitKind {
    /// Nobody leads here, so nobody acts.
    Leadership,
    /// The first complete lists from Kubernetes.
    KubernetesLists,
    /// The first complete listing of Azure.
    AzureListing,
    /// The gateway or its subnet.
    Gateway,
    /// Our finalizer on its object.
    Finalizer,
    /// A mended spec.
    SpecChange,
    /// Its operation.
    Operation,
    /// A free slot.
    Slot,
    /// Its next attempt.
    Retry,
    /// Addresses that are still mapped to it.
    Addresses,
    /// The API server's word that its object is gone.
    ConfirmedAbsence,
    /// The operator's consent to a mass deletion.
    MassDeletionConsent,
    /// The end of its linger time.
    Linger,
    /// Kubernetes, which refuses or delays our write.
    KubernetesWrite,
    /// A word that this version does not know.
    #[serde(other)]
    Unknown,
}

/// Something that happened to a service.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Happening {
    /// When.
    pub at: Since,
    /// What, in a sentence.
    pub sentence: String,
    /// It is not as it should be.
    #[serde(default)]
    pub bad: bool,
}

/// An operation: a plan that was handed to the service updater.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// As logs call it: `#12`.
    pub id: String,
    /// What it is for: `provision`, `update`, `deprovision`, `inspect`.
    pub intent: String,
    /// Why it was begun.
    pub cause: String,
    /// When.
    pub begun: Since,
    /// When it ended.
    #[serde(default)]
    pub ended: Option<Since>,
    /// Why it failed, if it did.
    #[serde(default)]
    pub failure: Option<String>,
    /// Its steps, in order.
    #[serde(default)]
    pub steps: Vec<Step>,
}

/// One step of an operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its fixed word: `load-balancer`.
    pub step: String,
    /// How far it is.
    pub phase: StepPhase,
    /// How long it took, with everything that it waited for.
    #[serde(default)]
    pub took_ms: Option<u64>,
    /// Why it failed, if it did.
    #[serde(default)]
    pub failure: Option<String>,
}

/// How far a step is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StepPhase {
    /// Its turn has not come.
    Waiting,
    /// It is under way.
    Running,
    /// It succeeded.
    Done,
    /// It failed.
    Failed,
    /// A word that this version does not know.
    #[serde(other)]
    Unknown,
}

/// What people were told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// When.
    pub at: Since,
    /// Something is wrong.
    #[serde(default)]
    pub warning: bool,
    /// The fixed word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// One call to Azure.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// When it left.
    pub at: Since,
    /// The operation or sync that it belongs to: `#12`.
    pub operation: String,
    /// HTTP's verb, with the action if it is one: `PUT`, `POST updateServices`.
    pub method: String,
    /// The resource, without the query.
    pub target: String,
    /// The HTTP status; nothing while it is on its way, or when nothing came back.
    #[serde(default)]
    pub status: Option<u16>,
    /// How long it took; nothing while it is on its way.
    #[serde(default)]
    pub took_ms: Option<u64>,
    /// Azure's code, or why nothing came back.
    #[serde(default)]
    pub trouble: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::parked;

    #[test]
    fn an_explanation_reads_back_as_it_was_written() {
        let explanation = Explanation {
            status: Status::Service(parked()),
            summary: "Parked.".into(),
            waits_for: vec![Wait {
                kind: WaitKind::Retry,
                sentence: "Next attempt in 9 min.".into(),
                until: Some(Due { at: "2026-11-16T02:51:00Z".into(), in_seconds: 595 }),
            }],
            timeline: vec![Happening {
                at: Since { at: "2026-11-16T02:40:00Z".into(), age_seconds: 65 },
                sentence: "Operation #1 failed.".into(),
                bad: true,
            }],
            what_to_do: vec!["Ask for more public IPs.".into()],
            plan: Some(Operation {
                id: "#1".into(),
                intent: "provision".into(),
                cause: "service applied".into(),
                begun: Since { at: "2026-11-16T02:40:00Z".into(), age_seconds: 65 },
                ended: None,
                failure: None,
                steps: vec![Step {
                    step: "public-ip".into(),
                    phase: StepPhase::Failed,
                    took_ms: Some(40),
                    failure: Some("PublicIPCountLimitReached".into()),
                }],
            }),
            events: vec![Told {
                at: Since { at: "2026-11-16T02:40:00Z".into(), age_seconds: 65 },
                warning: true,
                reason: "QuotaExceeded".into(),
                message: "No more public IPs.".into(),
            }],
            calls: vec![Call {
                at: Since { at: "2026-11-16T02:40:00Z".into(), age_seconds: 65 },
                operation: "#1".into(),
                method: "PUT".into(),
                target: "/subscriptions/s".into(),
                status: Some(400),
                took_ms: Some(40),
                trouble: None,
            }],
        };
        let json = serde_json::to_value(&explanation).unwrap();
        assert_eq!(json["status"]["kind"], "service");
        assert_eq!(json["status"]["state"], "NotStarted");
        assert_eq!(json["waitsFor"][0]["kind"], "retry");
        assert_eq!(json["plan"]["steps"][0]["phase"], "failed");
        assert_eq!(json["calls"][0]["tookMs"], 40);
        assert_eq!(serde_json::from_value::<Explanation>(json).unwrap(), explanation);
    }
}
