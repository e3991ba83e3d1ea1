//! Leader election by a Lease: who may act, and until when.
//!
//! [`Elector`] is pure. It is handed the time of a clock that never goes back, says what to ask the API
//! server next, and is told what came of it; [`ask`] does the asking. Two rules make two leaders at
//! once impossible, however the clocks of machines differ and however many answers get lost:
//!
//! * We may act until the renewal deadline (10 s) after the moment *before* our last successful
//!   renewal was sent. An answer that is lost is no renewal.
//! * A Lease of somebody else is taken over only after we have seen it unchanged for the whole lease
//!   (15 s, or as long as the Lease says, up to [`LEASE_MAX`]), by our own clock, and only in the version
//!   that we saw. The times that stand in it are for people; they are never compared with anything.
//!
//! ```text
//!  holder   ├─ sent ── stored ──────────── may act until sent + 10 s ┤
//!  standby           └─ seen ─────────────────────────────────────── not before seen + 15 s ┤ takes over
//! ```
//!
//! The five seconds between them are for clocks that run at different speeds. What they cannot
//! cover is a clock that stands still while its machine is suspended whole: the first request after
//! waking is then sent in good faith, and the fences of the writes themselves have to hold.
//!
//! Missing on purpose: tasks, timers and what leadership means. A Lease that somebody deletes while it
//! is held is not taken over at once by those who had seen it; only a process that has never seen one
//! makes it without waiting, or every first start would take 15 s longer.

mod elector;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use serde_json::json;

use crate::call::{Call, Trouble};

pub use elector::Elector;
pub use sluice_model::lease::{BadTiming, LEASE_MAX, Timing};

/// How often an annotation is written over what somebody else wrote meanwhile. A renewal comes every two seconds, so
/// the second try nearly always succeeds.
const ANNOTATE_TRIES_MAX: u32 = 10;

/// An election that could not be safe.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadElection {
    /// Two replicas could act at once.
    #[error(transparent)]
    Timing(#[from] BadTiming),
    /// No name: a Lease without a holder is free.
    #[error("leader election needs a unique, non-empty identity; a Lease with an empty holder is free")]
    NoIdentity,
}

/// What to do next.
#[derive(Clone, PartialEq, Debug)]
pub enum Next {
    /// Nothing before this moment.
    Wait(sluice_model::Time),
    /// Ask this now, and tell [`Elector::heard`] what came of it.
    Ask(Request),
}

/// One request about the Lease.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// Read it.
    Read,
    /// Make it.
    Create(Box<Lease>),
    /// Write it over the version that it carries.
    Replace(Box<Lease>),
}

/// What came of a request.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// It is like this.
    Found(Box<Lease>),
    /// There is none.
    Missing,
    /// It has been written and is like this.
    Written(Box<Lease>),
    /// Somebody else was quicker.
    Conflict,
    /// No answer, or none that helps; a write may have been done.
    Failed(Trouble),
}

/// Where the Lease is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Place {
    fn all(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.all(), self.name)
    }
}

/// Sends one request, once, within the limit.
pub async fn ask(client: &Client, place: &Place, request: &Request, limit: Duration) -> Answer {
    match request {
        Request::Read => read_lease(client, place, limit).await,
        Request::Create(lease) => create_lease(client, place, lease, limit).await,
        Request::Replace(lease) => replace_lease(client, place, lease, limit).await,
    }
}

/// Reads the Lease, live.
pub async fn read_lease(client: &Client, place: &Place, limit: Duration) -> Answer {
    let call = Call::get("leases.coordination.k8s.io", place.path());
    match call.within(limit).send::<Lease>(client).await {
        Ok(lease) => Answer::Found(Box::new(lease)),
        Err(Trouble::Missing(_)) => Answer::Missing,
        Err(trouble) => Answer::Failed(trouble),
    }
}

/// Makes the Lease; somebody who made it meanwhile was quicker.
pub async fn create_lease(client: &Client, place: &Place, lease: &Lease, limit: Duration) -> Answer {
    let mut object = json!(lease);
    object["metadata"] = json!({"name": place.name, "namespace": place.namespace});
    let call = Call::create("leases.coordination.k8s.io", place.all(), object);
    written(call.within(limit).send::<Lease>(client).await, Answer::Failed)
}

/// Writes the Lease over the version that it carries, and over no other.
pub async fn replace_lease(client: &Client, place: &Place, lease: &Lease, limit: Duration) -> Answer {
    let call = Call::replace("leases.coordination.k8s.io", place.path(), json!(lease));
    written(call.within(limit).send::<Lease>(client).await, |trouble| match trouble {
        Trouble::Missing(_) => Answer::Conflict,
        trouble => Answer::Failed(trouble),
    })
}

/// Writes an annotation made of the one that is there, for somebody who does not hold the Lease. Whatever is written
/// in between, a renewal or another annotation, is read and kept.
pub async fn annotate_lease(
    client: &Client,
    place: &Place,
    name: &str,
    change: impl Fn(&str) -> String,
    limit: Duration,
) -> Result<(), Trouble> {
    const RESOURCE: &str = "leases.coordination.k8s.io";
    let mut tries = 0;
    loop {
        let lease: Lease = Call::get(RESOURCE, place.path()).within(limit).send(client).await?;
        let before = lease.metadata.annotations.as_ref().and_then(|all| all.get(name));
        let text = change(before.map_or("", String::as_str));
        let version = lease.metadata.resource_version;
        let overlay = json!({"metadata": {"resourceVersion": version, "annotations": {name: text}}});
        let patch = Call::merge(RESOURCE, place.path(), overlay).within(limit);
        tries += 1;
        match patch.send::<Lease>(client).await {
            Err(Trouble::Conflict(_)) if tries < ANNOTATE_TRIES_MAX => {}
            end => return end.map(drop),
        }
    }
}

fn written(answer: Result<Lease, Trouble>, otherwise: impl Fn(Trouble) -> Answer) -> Answer {
    match answer {
        Ok(lease) => Answer::Written(Box::new(lease)),
        Err(Trouble::Conflict(_)) => Answer::Conflict,
        Err(trouble) => otherwise(trouble),
    }
}

#[cfg(test)]
mod tests;
