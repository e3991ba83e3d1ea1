//! What has changed since somebody last looked: the stream of `/api/v1/events`.
//!
//! The first event of a stream is all there is; every later one has only what changed since the one
//! before. Whoever reads slowly gets fewer, larger steps and never a wrong picture: a step carries
//! how things stand, not what was done.

use serde::{Deserialize, Serialize};

use crate::status::{EgressStatus, ServiceStatus};

/// One step of the stream.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Delta {
    /// When this was written; RFC 3339, in UTC.
    pub at: String,
    /// This is all there is: what is not in it does not exist.
    pub complete: bool,
    /// Services as they stand now.
    pub services: Vec<ServiceStatus>,
    /// Egresses as they stand now.
    pub egresses: Vec<EgressStatus>,
    /// What is gone.
    pub removed: Vec<Removed>,
}

impl Delta {
    /// The SSE event's name when it is all there is.
    pub const SNAPSHOT: &'static str = "snapshot";
    /// The SSE event's name when it is what changed.
    pub const DELTA: &'static str = "delta";

    /// The SSE event's name.
    pub const fn event(&self) -> &'static str {
        if self.complete { Delta::SNAPSHOT } else { Delta::DELTA }
    }
}

/// Something that is gone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Removed {
    /// A Service's load balancer.
    Service {
        /// Its UID.
        uid: String,
    },
    /// An egress.
    Egress {
        /// Its name.
        name: String,
    },
}

/// The last event of a stream that the server ends: why, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Goodbye {
    /// A fixed word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl Goodbye {
    /// The SSE event's name.
    pub const EVENT: &'static str = "goodbye";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::parked;

    #[test]
    fn a_step_says_whether_it_is_all_there_is() {
        let mut delta = Delta { services: vec![parked()], complete: true, ..Delta::default() };
        assert_eq!(delta.event(), "snapshot");
        delta.complete = false;
        delta.removed.push(Removed::Egress { name: "blue".into() });
        assert_eq!(delta.event(), "delta");
        let json = serde_json::to_value(&delta).unwrap();
        assert_eq!(json["removed"][0], serde_json::json!({"kind": "egress", "name": "blue"}));
        assert_eq!(serde_json::from_value::<Delta>(json).unwrap(), delta);
    }
}
