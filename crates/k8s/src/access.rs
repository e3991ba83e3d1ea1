//! What we must be allowed to do, and which of it we are not: asked before it is needed.
//!
//! [`needs`] is the list from which the ClusterRole in `deploy/` is made: every verb that this crate
//! uses, and no other. [`missing`] asks the API server about each, as the account that we have, so
//! that a missing permission is a sentence at the start and not a loop of failures later.

use std::fmt;

use futures::stream::{self, StreamExt, TryStreamExt};
use kube::Client;
use serde_json::{Value, json};

use crate::call::{Call, Trouble};
use crate::strings::CLOUD_CONTROLLER_MANAGER_LEASE;

/// Questions under way at once.
const QUESTIONS_MAX: usize = 8;

/// One permission.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Need {
    /// The verb, as roles have it.
    pub verb: &'static str,
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The resource.
    pub resource: &'static str,
    /// Its subresource, or empty.
    pub subresource: &'static str,
    /// Only in this namespace; else everywhere.
    pub namespace: Option<String>,
    /// Only of this name; else of any.
    pub name: Option<String>,
}

impl Need {
    const fn new(verb: &'static str, group: &'static str, resource: &'static str) -> Need {
        Need { verb, group, resource, subresource: "", namespace: None, name: None }
    }

    /// Without it something is told or seen less, and all work is done.
    pub fn is_bearable(&self) -> bool {
        self.resource == "events" || self.name.as_deref() == Some(CLOUD_CONTROLLER_MANAGER_LEASE.1)
    }

    /// The resource as roles write it: `services/status`, `leases.coordination.k8s.io`.
    pub fn what(&self) -> String {
        let mut what = self.resource.to_string();
        if !self.subresource.is_empty() {
            what = format!("{what}/{}", self.subresource);
        }
        if !self.group.is_empty() {
            what = format!("{what}.{}", self.group);
        }
        what
    }
}

/// A sentence without its end: `cannot patch services/status at the cluster scope`.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}", self.verb, self.what())?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => write!(f, " at the cluster scope"),
        }
    }
}

/// Every permission that the controller uses; with an election, in this namespace, also those for its Lease.
///
/// `create` cannot be limited to a name, so it is asked for without.
pub fn needs(election: Option<&str>) -> Vec<Need> {
    const CORE: &str = "";
    const DISCOVERY: &str = "discovery.k8s.io";
    const EVENTS: &str = "events.k8s.io";
    const COORDINATION: &str = "coordination.k8s.io";
    let mut needs = Vec::new();
    for (group, resource) in
        [(CORE, "services"), (DISCOVERY, "endpointslices"), (CORE, "nodes"), (CORE, "pods")]
    {
        needs.extend(["list", "watch"].map(|verb| Need::new(verb, group, resource)));
    }
    needs.push(Need::new("get", CORE, "services"));
    needs.push(Need::new("patch", CORE, "services"));
    needs.push(Need { subresource: "status", ..Need::new("patch", CORE, "services") });
    needs.extend(["create", "patch"].map(|verb| Need::new(verb, EVENTS, "events")));
    let kube_system = Some("kube-system".to_string());
    needs.push(Need { name: kube_system, ..Need::new("get", CORE, "namespaces") });
    let lease = |verb| Need::new(verb, COORDINATION, "leases");
    if let Some(namespace) = election {
        let here = Some(namespace.to_string());
        needs.extend(["get", "create", "update"].map(|verb| Need { namespace: here.clone(), ..lease(verb) }));
    }
    let (namespace, name) = CLOUD_CONTROLLER_MANAGER_LEASE;
    needs.push(Need { namespace: Some(namespace.into()), name: Some(name.into()), ..lease("get") });
    needs
}

/// Every permission that `sluice migrate pods` uses, which an administrator runs.
pub fn needs_to_migrate_pods() -> Vec<Need> {
    ["list", "get", "patch"].map(|verb| Need::new(verb, "", "pods")).to_vec()
}

/// Those that we do not have, in the order they were given.
pub async fn missing(client: &Client, needs: &[Need]) -> Result<Vec<Need>, Trouble> {
    let answers: Vec<Option<Need>> = stream::iter(needs.iter().cloned())
        .map(|need| async move { Ok((!is_allowed(client, &need).await?).then_some(need)) })
        .buffered(QUESTIONS_MAX)
        .try_collect()
        .await?;
    Ok(answers.into_iter().flatten().collect())
}

async fn is_allowed(client: &Client, need: &Need) -> Result<bool, Trouble> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": need.verb,
            "group": need.group,
            "resource": need.resource,
            "subresource": need.subresource,
            "namespace": need.namespace.as_deref().unwrap_or_default(),
            "name": need.name.as_deref().unwrap_or_default(),
        }},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_string();
    let review: Value =
        Call::create("selfsubjectaccessreviews.authorization.k8s.io", path, review).send(client).await?;
    review["status"]["allowed"].as_bool().ok_or_else(|| {
        Trouble::Unavailable("the answer to a SelfSubjectAccessReview has no status.allowed".into())
    })
}

#[cfg(test)]
mod tests;
