//! What Azure's side has written down of every call.
//!
//! Filled from the emulator's request log, or by whoever plays Azure in a test. Times are those of
//! the emulated clock.

use sluice_model::Time;
use sluice_model::call::{Bucket, Method};

/// What a service rides in an `updateServices` call for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Errand {
    /// It is bound to what carries its traffic.
    Register,
    /// It is bound to nothing any more.
    Clear,
    /// It goes.
    Unregister,
}

impl Errand {
    /// What a request is for.
    pub const fn of(is_delete: bool, is_bound: bool) -> Errand {
        match (is_delete, is_bound) {
            (true, _) => Errand::Unregister,
            (false, true) => Errand::Register,
            (false, false) => Errand::Clear,
        }
    }
}

/// One call, as Azure saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// When it arrived.
    pub at: Time,
    /// When its answer left.
    pub answered: Time,
    /// What it did.
    pub method: Method,
    /// The kind that it was about, as it stands in ids: `loadBalancers`; of polls `operations`.
    pub kind: String,
    /// The id that it was about.
    pub target: String,
    /// The status of the answer; 0 if there was none.
    pub status: u16,
    /// The error code in the answer.
    pub code: Option<String>,
    /// The operation that it began, and when that is over.
    pub operation: Option<(String, Time)>,
    /// The services that ride in it, and what for.
    pub services: Vec<(String, Errand)>,
    /// The word of the fault that struck it.
    pub fault: Option<String>,
    /// What was sent, as JSON, where that is known.
    pub body: serde_json::Value,
}

impl Entry {
    /// Whether it changes something.
    pub fn is_write(&self) -> bool {
        self.method.bucket() != Bucket::Reads
    }

    /// The last part of the id.
    pub fn name(&self) -> &str {
        self.target.rsplit('/').next().unwrap_or_default()
    }

    /// The identity that its resource is named after; of shared calls none.
    pub fn identity(&self) -> Option<String> {
        let name = self.name();
        match self.kind.as_str() {
            "publicIPAddresses" => {
                let identity = name.strip_suffix("-pip").or_else(|| name.strip_suffix("-pip-v6"));
                Some(identity.unwrap_or(name).to_owned())
            }
            "loadBalancers" | "natGateways" => Some(name.to_owned()),
            _ => None,
        }
    }

    /// What it is called in tables.
    pub fn word(&self) -> String {
        let kind = self.kind.as_str();
        match self.method {
            Method::Get => format!("GET {kind}"),
            Method::List => format!("GET list of {kind}"),
            Method::Put => format!("PUT {kind}"),
            Method::PatchTags => format!("PATCH {kind}"),
            Method::Delete => format!("DELETE {kind}"),
            Method::UpdateServices => "POST updateServices".into(),
            Method::UpdateLocations => "POST updateAddressLocations".into(),
            Method::Poll => "GET operation".into(),
        }
    }
}
