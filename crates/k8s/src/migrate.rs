//! Removes the finalizer that the Service Gateway mode of the cloud controller manager put on pods.
//!
//! A pod that still has it stays after its deletion, and no other controller removes it. Sluice itself puts no
//! finalizer on pods, so this is a command of the administrator, and the controller may not patch pods. All pods are
//! listed, in pages of metadata only, since the label that made the mode add the finalizer may be gone. Each pod is
//! patched by UID and version. A pod that changed between list and patch is read again, a few times.
//!
//! Missing on purpose: pauses. A pod that could not be released is reported with its error, and with whether another
//! attempt may help.

use futures::stream::{self, StreamExt};
use kube::Client;
use kube::api::ListParams;
use kube::core::Request;
use serde::Deserialize;
use serde_json::json;
use sluice_model::ObjectName;

use crate::call::{Call, Trouble};
use crate::strings::{FIELD_MANAGER, PREDECESSOR_POD_FINALIZER};

/// Pods in one page.
const PAGE: u32 = 500;
/// Patches in flight at once.
const PATCHES_MAX: usize = 8;
/// How often a list starts again because its token expired.
const EXPIRED_MAX: u32 = 5;
/// Attempts for one pod that keeps changing.
const TRIES_MAX: usize = 4;
/// Asks for metadata alone; a server that cannot gives whole objects, which are read just as well.
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// All pods of the cluster, as far as they matter here.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pods {
    /// Number of pods.
    pub seen: usize,
    /// Those with the finalizer.
    pub held: Vec<HeldPod>,
}

/// A pod with the finalizer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldPod {
    /// Namespace and name.
    pub name: ObjectName,
    uid: String,
    version: String,
    finalizers: Vec<String>,
}

/// A pod that still has the finalizer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreleased {
    /// The pod.
    pub pod: HeldPod,
    /// Why, as a sentence.
    pub error: String,
    /// Another attempt may succeed.
    pub is_passing: bool,
}

/// Lists all pods.
pub async fn list_pods(client: &Client) -> Result<Pods, Trouble> {
    let mut pods = Pods::default();
    let mut token = None;
    let mut expired = 0;
    loop {
        let params = ListParams { limit: Some(PAGE), continue_token: token.take(), ..ListParams::default() };
        let request = Request::new("/api/v1/pods").list(&params);
        let path = request.map_err(|error| Trouble::Unavailable(error.to_string()))?.uri().to_string();
        let page: Page = match Call::list("pods", path).accepting(METADATA_LIST).send(client).await {
            Ok(page) => page,
            Err(Trouble::Refused { code: 410, .. }) if expired < EXPIRED_MAX => {
                expired += 1;
                pods = Pods::default();
                continue;
            }
            Err(trouble) => return Err(trouble),
        };
        pods.seen += page.items.len();
        pods.held
            .extend(page.items.into_iter().map(|item| item.metadata).filter(Pod::is_held).map(HeldPod::from));
        token = Some(page.metadata.next).filter(|token| !token.is_empty());
        if token.is_none() {
            return Ok(pods);
        }
    }
}

/// Removes the finalizer from these pods, and calls `released` after each success. Returns the others.
pub async fn release_pods(
    client: &Client,
    pods: Vec<HeldPod>,
    mut released: impl FnMut(),
) -> Vec<Unreleased> {
    let mut left = Vec::new();
    let mut ends = stream::iter(pods)
        .map(|pod| async {
            let end = release(client, pod.clone()).await;
            (pod, end)
        })
        .buffer_unordered(PATCHES_MAX);
    while let Some((pod, end)) = ends.next().await {
        match end {
            Ok(()) => released(),
            Err(trouble) => {
                let is_passing = trouble.is_passing();
                left.push(Unreleased { pod, error: trouble.to_string(), is_passing });
            }
        }
    }
    drop(ends);
    left.sort_by(|one, other| one.pod.name.cmp(&other.pod.name));
    left
}

/// Removes the finalizer from one pod. A pod that does not exist any more is done.
async fn release(client: &Client, mut pod: HeldPod) -> Result<(), Trouble> {
    let path = format!("/api/v1/namespaces/{}/pods/{}", pod.name.namespace, pod.name.name);
    for _ in 0..TRIES_MAX {
        let left: Vec<&String> =
            pod.finalizers.iter().filter(|it| *it != PREDECESSOR_POD_FINALIZER).collect();
        let finalizers = json!({"op": "replace", "path": "/metadata/finalizers", "value": left});
        let operations = vec![
            json!({"op": "test", "path": "/metadata/uid", "value": pod.uid}),
            json!({"op": "replace", "path": "/metadata/resourceVersion", "value": pod.version}),
            finalizers,
        ];
        let patch = Call::patch("pods", format!("{path}?fieldManager={FIELD_MANAGER}"), operations);
        let refused = match patch.accepting(METADATA).send::<Item>(client).await {
            Ok(_) | Err(Trouble::Missing(_)) => return Ok(()),
            Err(Trouble::Conflict(_)) => None,
            // A failed test of the UID is 422 like a refusal by a policy; the pod itself shows which it was.
            Err(refused @ Trouble::Refused { code: 422, .. }) => Some(refused),
            Err(trouble) => return Err(trouble),
        };
        let found = match Call::get("pods", path.clone()).accepting(METADATA).send::<Item>(client).await {
            Ok(found) => found.metadata,
            Err(Trouble::Missing(_)) => return Ok(()),
            Err(trouble) => return Err(trouble),
        };
        if found.uid != pod.uid || !found.is_held() {
            return Ok(());
        }
        if let Some(refused) = refused.filter(|_| found.version == pod.version) {
            return Err(refused);
        }
        pod = HeldPod::from(found);
    }
    Err(Trouble::Conflict(format!("the pod was changed by others during all {TRIES_MAX} attempts")))
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: Pod,
}

/// The little that matters of a pod.
#[derive(Deserialize)]
struct Pod {
    namespace: String,
    name: String,
    uid: String,
    #[serde(rename = "resourceVersion")]
    version: String,
    #[serde(default)]
    finalizers: Vec<String>,
}

impl Pod {
    fn is_held(&self) -> bool {
        self.finalizers.iter().any(|it| it == PREDECESSOR_POD_FINALIZER)
    }
}

impl From<Pod> for HeldPod {
    fn from(Pod { namespace, name, uid, version, finalizers }: Pod) -> HeldPod {
        HeldPod { name: ObjectName::new(namespace.as_str(), name.as_str()), uid, version, finalizers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Say, Script};
    use serde_json::Value;

    const LIST: &str = "GET /api/v1/pods";
    const GET: &str = "GET /api/v1/namespaces/shop/pods/web";
    const PATCH: &str = "PATCH /api/v1/namespaces/shop/pods/web";

    fn pod(name: &str, version: u64, finalizers: &[&str]) -> Value {
        let mut pod = json!({"metadata": {
            "namespace": "shop", "name": name, "uid": format!("uid-of-{name}"),
            "resourceVersion": version.to_string(),
        }});
        if !finalizers.is_empty() {
            pod["metadata"]["finalizers"] = json!(finalizers);
        }
        pod
    }

    fn page(next: &str, pods: Vec<Value>) -> Say {
        Say::ok(json!({"metadata": {"resourceVersion": "9", "continue": next}, "items": pods}))
    }

    fn held(version: u64) -> Value {
        pod("web", version, &["example.com/keep", PREDECESSOR_POD_FINALIZER])
    }

    fn conflict() -> Say {
        Say::status(409, "Conflict", "changed")
    }

    /// Lists all pods and releases those that are held: how many pods there are, how many were released, and the rest.
    async fn migrate(client: &Client) -> (usize, usize, Vec<Unreleased>) {
        let pods = list_pods(client).await.unwrap();
        let mut released = 0;
        let left = release_pods(client, pods.held, || released += 1).await;
        (pods.seen, released, left)
    }

    #[tokio::test]
    async fn only_pods_with_the_finalizer_are_patched() {
        let (client, script) = Script::of([
            (LIST, page("a+b", vec![pod("plain", 1, &[]), pod("other", 2, &["example.com/keep"])])),
            (LIST, page("", vec![held(3)])),
            (PATCH, Say::ok(held(4))),
        ]);
        assert_eq!(migrate(&client).await, (3, 1, Vec::new()));
        let requests = script.played();
        assert_eq!(requests[0].query, "&limit=500");
        assert_eq!(requests[1].query, "&limit=500&continue=a%2Bb");
        assert_eq!(
            requests[2].body,
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "uid-of-web"},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": "3"},
                {"op": "replace", "path": "/metadata/finalizers", "value": ["example.com/keep"]},
            ])
        );
    }

    #[tokio::test]
    async fn a_list_alone_changes_nothing() {
        let (client, script) = Script::of([(LIST, page("", vec![held(3), pod("plain", 1, &[])]))]);
        let pods = list_pods(&client).await.unwrap();
        let names: Vec<String> = pods.held.iter().map(|pod| pod.name.to_string()).collect();
        assert_eq!((pods.seen, names), (2, vec!["shop/web".to_owned()]));
        script.played();
    }

    #[tokio::test]
    async fn a_pod_that_changed_is_read_and_patched_again() {
        let (client, script) = Script::of([
            (LIST, page("", vec![held(3)])),
            (PATCH, conflict()),
            (GET, Say::ok(held(5))),
            (PATCH, Say::ok(held(6))),
        ]);
        assert_eq!(migrate(&client).await, (1, 1, Vec::new()));
        assert_eq!(script.played()[3].body[1]["value"], "5");
    }

    #[tokio::test]
    async fn a_pod_that_was_deleted_replaced_or_released_counts_as_released() {
        let mut successor = held(7);
        successor["metadata"]["uid"] = json!("another");
        for found in [Say::ok(successor), Say::ok(pod("web", 8, &[])), Say::status(404, "NotFound", "gone")] {
            let (client, script) =
                Script::of([(LIST, page("", vec![held(3)])), (PATCH, conflict()), (GET, found)]);
            assert_eq!(migrate(&client).await, (1, 1, Vec::new()));
            script.played();
        }
    }

    #[tokio::test]
    async fn a_denied_patch_is_reported_and_does_not_stop_the_others() {
        let words = "pods \"web\" is forbidden: User \"u\" cannot patch resource \"pods\" in API group";
        let (client, script) = Script::of([
            (LIST, page("", vec![held(3), held(3)])),
            (PATCH, Say::status(403, "Forbidden", words)),
            (PATCH, Say::ok(held(4))),
        ]);
        let (_, released, left) = migrate(&client).await;
        assert_eq!((released, left.len()), (1, 1));
        assert_eq!((&left[0].pod.name, left[0].is_passing), (&ObjectName::new("shop", "web"), false));
        assert!(left[0].error.starts_with("patch pods denied: "), "{}", left[0].error);
        script.played();
    }

    #[tokio::test]
    async fn a_refusal_of_an_unchanged_pod_keeps_its_words() {
        let (client, script) = Script::of([
            (LIST, page("", vec![held(3)])),
            (PATCH, Say::status(422, "Invalid", "a policy says no")),
            (GET, Say::ok(held(3))),
        ]);
        let (_, _, left) = migrate(&client).await;
        assert_eq!((left[0].error.as_str(), left[0].is_passing), ("a policy says no", false));
        script.played();
    }

    #[tokio::test]
    async fn a_pod_that_keeps_changing_is_reported() {
        let mut exchanges = vec![(LIST, page("", vec![held(3)]))];
        for version in 0..TRIES_MAX as u64 {
            exchanges.push((PATCH, conflict()));
            exchanges.push((GET, Say::ok(held(10 + version))));
        }
        let (client, script) = Script::of(exchanges);
        let (_, _, left) = migrate(&client).await;
        assert!(left.len() == 1 && left[0].is_passing, "{left:?}");
        script.played();
    }

    #[tokio::test]
    async fn an_expired_list_starts_again_and_counts_every_pod_once() {
        let (client, script) = Script::of([
            (LIST, page("old", vec![held(3), pod("plain", 1, &[])])),
            (LIST, Say::status(410, "Expired", "The provided continue parameter is too old")),
            (LIST, page("new", vec![held(3), pod("plain", 1, &[])])),
            (LIST, page("", vec![pod("last", 2, &[])])),
        ]);
        let pods = list_pods(&client).await.unwrap();
        assert_eq!((pods.seen, pods.held.len()), (3, 1));
        assert_eq!(script.played()[2].query, "&limit=500", "from the first page");
    }

    #[tokio::test]
    async fn a_list_that_always_expires_is_an_error() {
        let exchanges = (0..=EXPIRED_MAX)
            .flat_map(|_| [(LIST, page("old", vec![])), (LIST, Say::status(410, "Expired", "too old"))]);
        let (client, script) = Script::of(exchanges);
        let trouble = list_pods(&client).await.unwrap_err();
        assert!(trouble.is_passing(), "{trouble}");
        script.played();
    }

    #[tokio::test]
    async fn errors_that_may_pass_are_distinguished_from_refusals() {
        for (say, is_passing) in [
            (Say::status(429, "TooManyRequests", "later"), true),
            (Say::status(503, "ServiceUnavailable", "later"), true),
            (Say::status(401, "Unauthorized", "expired"), true),
            (Say::Break, true),
            (Say::status(403, "Forbidden", "a policy says no"), false),
            (Say::status(400, "BadRequest", "no"), false),
        ] {
            let (client, script) = Script::of([(LIST, page("", vec![held(3)])), (PATCH, say.clone())]);
            let (_, _, left) = migrate(&client).await;
            assert_eq!((left.len(), left[0].is_passing), (1, is_passing), "{say:?}");
            script.played();
        }
    }
}
