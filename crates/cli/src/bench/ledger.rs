//! What Azure's side has written down of every call.
//!
//! Filled from the emulator's request log, or by whoever plays Azure in a test. Times are those of
//! the emulated clock.

use sluice_model::Time;
use sluice_model::call::{Bucket, Method};

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
    /// The services that ride in it.
    pub services: Vec<String>,
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

    /// The identities that it works for: those that ride in it, or the one that its resource is
    /// named after.
    pub fn identities(&self) -> Vec<String> {
        match (self.method, self.kind.as_str()) {
            (Method::UpdateServices, _) => self.services.clone(),
            (_, "publicIPAddresses") => {
                let name = self.name();
                let identity = name.strip_suffix("-pip").or_else(|| name.strip_suffix("-pip-v6"));
                vec![identity.unwrap_or(name).to_owned()]
            }
            (_, "loadBalancers" | "natGateways") => vec![self.name().to_owned()],
            _ => Vec::new(),
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
