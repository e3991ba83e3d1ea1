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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::parked;

    #[test]
    fn an_explanation_reads_back_as_it_was_written() {
        let explanation = Explanation {
            status: Status::Service(parked()),
            summary: "It is parked.".into(),
            waits_for: vec![Wait {
                kind: WaitKind::Retry,
                sentence: "The next attempt comes in 9 min.".into(),
                until: Some(Due { at: "2026-11-16T02:51:00Z".into(), in_seconds: 595 }),
            }],
            timeline: vec![Happening {
                at: Since { at: "2026-11-16T02:40:00Z".into(), age_seconds: 65 },
                sentence: "Operation #1 failed.".into(),
                bad: true,
            }],
            what_to_do: vec!["Ask for more public IPs.".into()],
        };
        let json = serde_json::to_value(&explanation).unwrap();
        assert_eq!(json["status"]["kind"], "service");
        assert_eq!(json["status"]["state"], "NotStarted");
        assert_eq!(json["waitsFor"][0]["kind"], "retry");
        assert_eq!(serde_json::from_value::<Explanation>(json).unwrap(), explanation);
    }
}
