//! Writes what the engine asks for into Services: our finalizer and the status.
//!
//! Every write is a patch: a list of operations that begins with a `test` of the UID and brings along the
//! resourceVersion that it was made from. So a same-named successor is never touched, and what others wrote
//! meanwhile is never lost. It is made from the Service as the watch, or the answer to our last write, showed it
//! ([`LastSeen`]). If that is missing, has changed since or needs no patch, a live read decides.
//!
//! Why a JSON patch and not server-side apply: `status.loadBalancer.ingress` is one atomic list, so
//! applying it would claim the entries of others, and taking a field over from another manager needs
//! `force`, which is blind; apply also makes what is not there; and finalizers that we inherited are
//! not ours to apply away. With a patch, the ClusterRole needs `patch` and no `update`.
//!
//! Missing on purpose: trying again. A conflict or a refusal is an answer, and the engine decides.

mod status;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use sluice_model::Uid;
use sluice_model::effect::{About, Existence, KubeOutcome, Notice};
use sluice_model::kube::{Condition, Kind, ObjectRef};
use sluice_model::reason::Reason;
use tokio::time::Instant;

use crate::call::{Call, Trouble};
use crate::notices::Notices;
use crate::strings::{ADMISSION_POLICY, FIELD_MANAGER, FINALIZER, PUBLISHED_IP, is_inherited};
use crate::watch::{LastSeen, Offsets};

/// The time of day, for what people read; nothing is decided by it.
pub(crate) type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
/// Whether a request may be begun now.
pub(crate) type Fence = Arc<dyn Fn() -> bool + Send + Sync>;

/// Writes finalizers, status and events; cheap to clone.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    we_are_the_service_controller: bool,
    notices: Notices,
    clock: WallClock,
    fence: Fence,
    offsets: Offsets,
    seen: LastSeen,
    annotation: AnnotationGate,
}

impl Writer {
    /// A writer under the name of one instance (the pod's name).
    ///
    /// As the cluster's service controller (no load balancer class is configured) it also clears the
    /// finalizers of the service controller and of our predecessor, when it takes ours off.
    pub fn new(client: Client, we_are_the_service_controller: bool, instance: String) -> Writer {
        let clock: WallClock = Arc::new(Timestamp::now);
        let notices = Notices::new(client.clone(), instance, Arc::clone(&clock));
        Writer {
            client,
            we_are_the_service_controller,
            notices,
            clock,
            fence: Arc::new(|| true),
            offsets: Offsets::default(),
            seen: LastSeen::default(),
            annotation: AnnotationGate::default(),
        }
    }

    /// With another time of day.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Writer {
        self.clock = Arc::new(clock);
        self.notices = self.notices.with_clock(Arc::clone(&self.clock));
        self
    }

    /// With a question that is asked right before a patch is sent: a read before it takes its time,
    /// and the lease may run out meanwhile. A "no" ends the write as [`KubeOutcome::Unavailable`]. Before
    /// each request of a notice it is asked too.
    #[must_use]
    pub fn with_fence(mut self, may_begin: impl Fn() -> bool + Send + Sync + 'static) -> Writer {
        self.fence = Arc::new(may_begin);
        self.notices = self.notices.with_fence(Arc::clone(&self.fence));
        self
    }

    /// With versions as these watches tell them, so that the two can be compared.
    #[must_use]
    pub fn with_offsets(mut self, offsets: Offsets) -> Writer {
        self.offsets = offsets;
        self
    }

    /// With Services as these watches saw them last: a write begins with a patch instead of a read.
    #[must_use]
    pub fn with_last_seen(mut self, seen: LastSeen) -> Writer {
        self.seen = seen;
        self
    }

    /// With the Lease by which we lead: notices that are about no object of their own stand there.
    #[must_use]
    pub fn with_home(mut self, namespace: &str, lease: &str) -> Writer {
        self.notices = self.notices.with_home(namespace, lease);
        self
    }

    /// Puts our finalizer on a Service; one that is being deleted gets none.
    pub async fn add_finalizer(&self, object: &ObjectRef) -> KubeOutcome {
        self.write(object, |found| {
            let mut finalizers = found.finalizers();
            if finalizers.iter().any(|it| it == FINALIZER) {
                return Wanted::Nothing;
            }
            if found.is_deleting() {
                return Wanted::Never;
            }
            finalizers.push(FINALIZER.into());
            Wanted::patch("services", "", finalizer_operations(&finalizers))
        })
        .await
    }

    /// Takes our finalizer off a Service, and those that we inherited; all others stay. On a Service that has got a
    /// class meanwhile, they belong to the controller of that class.
    pub async fn remove_finalizer(&self, object: &ObjectRef) -> KubeOutcome {
        self.write(object, |found| {
            let inherited = self.we_are_the_service_controller && !found.has_class();
            let goes = |finalizer: &str| finalizer == FINALIZER || inherited && is_inherited(finalizer);
            let finalizers = found.finalizers();
            let left: Vec<String> = finalizers.iter().filter(|it| !goes(it)).cloned().collect();
            if left.len() == finalizers.len() {
                return Wanted::Nothing;
            }
            Wanted::patch("services", "", finalizer_operations(&left))
        })
        .await
    }

    /// Has our IP among the ingress IPs and an IP that was ours no longer, and our conditions as given;
    /// entries and conditions of others stay as they are.
    pub async fn write_status(
        &self,
        object: &ObjectRef,
        ingress: Option<IpAddr>,
        retract: Option<IpAddr>,
        conditions: &[Condition],
    ) -> KubeOutcome {
        let is_annotated = AtomicBool::new(false);
        let wanted = |found: &Found, with_annotation: bool| {
            // Others than load balancers may have none; the watch will say so too.
            if ingress.is_some() && !found.is_load_balancer() {
                return Wanted::Never;
            }
            let now = (self.clock)();
            let mut operations =
                status::operations(&found.0, &object.name, ingress, retract, conditions, now);
            let annotation = status::annotation_operation(&found.0, ingress, retract);
            let annotation = annotation.filter(|_| with_annotation);
            is_annotated.store(annotation.is_some(), Ordering::Relaxed);
            operations.extend(annotation);
            if operations.is_empty() {
                return Wanted::Nothing;
            }
            Wanted::patch("services/status", "/status", operations)
        };
        // The gate only holds back what an old policy would reject again and again.
        let with_annotation = ingress.is_none() || self.annotation.may_try(Instant::now());
        let outcome = self.patch_or_read(object, |found| wanted(found, with_annotation)).await;
        let policy = match &outcome {
            Ok(_) if is_annotated.load(Ordering::Relaxed) => {
                self.annotation.accepted();
                None
            }
            Err(Trouble::Refused { words, .. }) if is_annotated.load(Ordering::Relaxed) => {
                Some(words).filter(|words| is_denied_by_admission(words))
            }
            _ => None,
        };
        let Some(words) = policy else { return self.conclude(object, outcome) };
        // The policy of version 0.1, or a policy or webhook of the cluster, allows no annotation. The condition says the IP too.
        let plain = self.patch_or_read(object, |found| wanted(found, false)).await;
        if plain.is_ok() {
            tracing::info!(service = %object.name, answer = %words, "annotation rejected; status written without it");
        }
        let is_new = words.contains(ADMISSION_POLICY) && self.annotation.rejected(Instant::now());
        if plain.is_ok() && is_new {
            let text = format!(
                "The annotation {PUBLISHED_IP} of Services was rejected: {}. The status is written without it; apply the admission policy of the installed version",
                words.trim_end_matches('.')
            );
            self.notify(&Notice {
                about: About::Cluster,
                warning: true,
                reason: Reason::KubernetesRejected,
                text,
            })
            .await;
        }
        self.conclude(object, plain)
    }

    /// Asks the API server, live, whether this incarnation is there.
    pub async fn look_for(&self, object: &ObjectRef) -> Existence {
        match self.read(object).await {
            Ok(found) => match found.uid() {
                Some(uid) if uid == object.uid => Existence::Exists,
                Some(_) => Existence::Gone,
                None => unclear(object, &"the API server's answer has no valid UID"),
            },
            Err(Trouble::Missing(_)) => Existence::Gone,
            Err(trouble) => unclear(object, &trouble),
        }
    }

    /// Tells people: a line in the log, and an event at the object that it is about.
    pub async fn notify(&self, notice: &Notice) {
        self.notices.tell(notice).await;
    }

    /// How many events were not written because there were too many.
    pub fn notices_held_back(&self) -> u64 {
        self.notices.held_back()
    }

    async fn write(&self, object: &ObjectRef, wanted: impl Fn(&Found) -> Wanted) -> KubeOutcome {
        let outcome = self.patch_or_read(object, wanted).await;
        self.conclude(object, outcome)
    }

    fn conclude(&self, object: &ObjectRef, outcome: Result<u64, Trouble>) -> KubeOutcome {
        if let Err(trouble) = &outcome {
            tracing::debug!(service = %object.name, %trouble, "write to Kubernetes failed");
        }
        match outcome {
            Ok(version) => KubeOutcome::Done { version: self.offsets.told(Kind::Service, version) },
            Err(Trouble::Missing(_)) => KubeOutcome::Gone,
            Err(Trouble::Conflict(_)) => KubeOutcome::Conflict,
            Err(Trouble::Refused { words, .. }) => KubeOutcome::Refused(words.into()),
            Err(Trouble::Unavailable(_)) => KubeOutcome::Unavailable,
        }
    }

    /// The object's resourceVersion, once it is as wanted.
    async fn patch_or_read(
        &self,
        object: &ObjectRef,
        wanted: impl Fn(&Found) -> Wanted,
    ) -> Result<u64, Trouble> {
        if let Some(seen) = self.seen.get(object.uid).map(Found)
            && let Wanted::Patch(patch) = wanted(&seen)
        {
            match self.patch(object, &seen, patch).await {
                Err(Trouble::Conflict(_)) => {}
                ended => return ended,
            }
        }
        let found = self.read_this(object).await?;
        match wanted(&found) {
            Wanted::Nothing => Ok(found.version_number()),
            Wanted::Never => {
                Err(Trouble::Conflict("the Service changed, so the write no longer applies".into()))
            }
            Wanted::Patch(patch) => self.patch(object, &found, patch).await,
        }
    }

    /// Changes the object if it is still as it was found; its resourceVersion after that.
    async fn patch(&self, object: &ObjectRef, found: &Found, patch: Patch) -> Result<u64, Trouble> {
        let Some(version) = found.version() else {
            return Err(Trouble::Unavailable("the API server's answer has no resourceVersion".into()));
        };
        // The test of the UID says whom we mean. The version is *replaced* by itself and not tested:
        // the API server then answers a stale one with 409, while a failed test is 422 like bad input.
        let mut operations = vec![
            json!({"op": "test", "path": "/metadata/uid", "value": object.uid.to_string()}),
            json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}),
        ];
        operations.extend(patch.operations);
        if !(self.fence)() {
            return Err(Trouble::Unavailable("request not sent: the lease may be lost".into()));
        }
        let path = format!("{}{}?fieldManager={FIELD_MANAGER}", service_path(object), patch.subresource);
        match Call::patch(patch.resource, path, operations).send::<Value>(&self.client).await {
            Ok(after) => {
                let after = Found(after);
                let version = after.version_number();
                self.seen.written(object.uid, self.offsets.told(Kind::Service, version), &after.0);
                Ok(version)
            }
            // A failed test looks like bad input; only another look tells the two apart.
            Err(refused @ Trouble::Refused { code: 422, .. }) => {
                let again = self.read_this(object).await?;
                if again.version() == Some(version) {
                    return Err(refused);
                }
                Err(Trouble::Conflict("the Service was changed between read and write".into()))
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// The object as it is now, if it is still the one that was meant.
    async fn read_this(&self, object: &ObjectRef) -> Result<Found, Trouble> {
        let found = self.read(object).await?;
        match found.uid() {
            Some(uid) if uid == object.uid => Ok(found),
            Some(_) => {
                Err(Trouble::Missing(format!("{} is now another Service with the same name", object.name)))
            }
            None => Err(Trouble::Unavailable("the API server's answer has no valid UID".into())),
        }
    }

    async fn read(&self, object: &ObjectRef) -> Result<Found, Trouble> {
        Call::get("services", service_path(object)).send::<Value>(&self.client).await.map(Found)
    }
}

/// Whether the API server accepts our annotation. The admission policy of version 0.1 rejects it.
#[derive(Clone, Debug, Default)]
struct AnnotationGate(Arc<Mutex<Option<Instant>>>);

/// How long status writes go without the annotation after our policy rejected it.
const ANNOTATION_RETRY: Duration = Duration::from_mins(10);

/// How the API server says that a policy or a webhook rejects a request.
const DENIED: &str = "denied the request";
const DENIED_BY_POLICY: &str = "denied request";

fn is_denied_by_admission(words: &str) -> bool {
    words.contains(DENIED) || words.contains(DENIED_BY_POLICY)
}

impl AnnotationGate {
    /// Of many writes, one tries it again.
    fn may_try(&self, now: Instant) -> bool {
        match &mut *self.rejected_at() {
            None => true,
            Some(at) if now.duration_since(*at) >= ANNOTATION_RETRY => {
                *at = now;
                true
            }
            Some(_) => false,
        }
    }

    /// Returns whether this is the first time since it was accepted.
    fn rejected(&self, now: Instant) -> bool {
        self.rejected_at().replace(now).is_none()
    }

    fn accepted(&self) {
        *self.rejected_at() = None;
    }

    fn rejected_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to do about a Service as it was found.
enum Wanted {
    /// It is as it should be.
    Nothing,
    /// What it has become forbids it; the watch will say so too.
    Never,
    Patch(Patch),
}

/// A change, and where to send it.
struct Patch {
    resource: &'static str,
    subresource: &'static str,
    operations: Vec<Value>,
}

impl Wanted {
    fn patch(resource: &'static str, subresource: &'static str, operations: Vec<Value>) -> Wanted {
        Wanted::Patch(Patch { resource, subresource, operations })
    }
}

/// A Service as the API server has it, with all its fields, known to us or not.
struct Found(Value);

impl Found {
    fn uid(&self) -> Option<Uid> {
        Uid::parse(self.0["metadata"]["uid"].as_str()?).ok()
    }

    fn version(&self) -> Option<&str> {
        self.0["metadata"]["resourceVersion"].as_str()
    }

    fn version_number(&self) -> u64 {
        self.version().and_then(|version| version.parse().ok()).unwrap_or_default()
    }

    fn is_load_balancer(&self) -> bool {
        self.0["spec"]["type"] == "LoadBalancer"
    }

    fn has_class(&self) -> bool {
        self.0["spec"]["loadBalancerClass"].as_str().is_some_and(|class| !class.is_empty())
    }

    fn is_deleting(&self) -> bool {
        self.0["metadata"]["deletionTimestamp"].is_string()
    }

    fn finalizers(&self) -> Vec<String> {
        let listed = self.0["metadata"]["finalizers"].as_array();
        listed.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_string)).collect()
    }
}

/// Has the list as given; the version fences the change of the whole list.
fn finalizer_operations(finalizers: &[String]) -> Vec<Value> {
    const PATH: &str = "/metadata/finalizers";
    if finalizers.is_empty() {
        vec![json!({"op": "remove", "path": PATH})]
    } else {
        vec![json!({"op": "add", "path": PATH, "value": finalizers})]
    }
}

fn service_path(object: &ObjectRef) -> String {
    format!("/api/v1/namespaces/{}/services/{}", object.name.namespace, object.name.name)
}

/// What stands before a deletion must be certain: an answer that proves nothing is no answer.
fn unclear(object: &ObjectRef, why: &dyn std::fmt::Display) -> Existence {
    tracing::warn!(service = %object.name, %why, "cannot determine whether the Service exists");
    Existence::Unclear
}

#[cfg(test)]
mod tests;
