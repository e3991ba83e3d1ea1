//! Releases the pods that our predecessor held: takes its finalizer off, once, at the start.
//!
//! A pod that still carries it cannot go away when it is deleted, and nobody else is left to take it
//! off. All pods are listed, pages of metadata only, since the label that made the predecessor put it
//! there may be gone by now; those that carry it are patched, each by UID and version. Sluice itself
//! puts no finalizer on pods, so this is done only when migration is switched on, which is also when
//! the role grants `patch` on pods.
//!
//! What changed between list and patch is read again, a few times; what cannot be released is
//! reported by name, with whether it is worth another try. A list that took longer than the API server
//! remembers is begun anew: what has been released by then takes no time any more.

use futures::stream::{self, StreamExt};
use kube::Client;
use serde::Deserialize;
use serde_json::json;
use sluice_model::ObjectName;

use crate::call::{Call, Trouble};
use crate::strings::{FIELD_MANAGER, PREDECESSOR_POD_FINALIZER};

/// Pods in one page.
const PAGE: usize = 500;
/// Patches under way at once.
const PATCHES_MAX: usize = 8;
/// A list whose tokens expired so often is given up for this time.
const EXPIRED_MAX: u32 = 5;
/// Tries for one pod that others keep changing.
const TRIES_MAX: usize = 4;
/// Asks for metadata alone; a server that cannot gives whole objects, which are read just as well.
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Released {
    /// Pods that were looked at.
    pub seen: usize,
    /// Pods that carry the finalizer no more.
    pub released: usize,
    /// Pods that still carry it.
    pub left: Vec<Left>,
}

/// A pod that still carries the finalizer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Left {
    /// Which.
    pub pod: ObjectName,
    /// Why, as a sentence.
    pub why: String,
    /// Another try may succeed.
    pub is_passing: bool,
}

/// Lists all pods once and releases those that the predecessor held. `may_begin` is asked before
/// every patch: whoever does not lead any more leaves the rest to the next leader.
pub async fn release_pods(client: &Client, may_begin: impl Fn() -> bool) -> Result<Released, Trouble> {
    let mut outcome = Released::default();
    let mut token = String::new();
    let mut expired = 0;
    loop {
        let path = match token.as_str() {
            "" => format!("/api/v1/pods?limit={PAGE}"),
            token => format!("/api/v1/pods?limit={PAGE}&continue={}", escaped(token)),
        };
        let page: Page = match Call::list("pods", path).accepting(METADATA_LIST).send(client).await {
            Ok(page) => page,
            Err(Trouble::Refused { code: 410, .. }) if expired < EXPIRED_MAX => {
                expired += 1;
                token.clear();
                // All of them are met again.
                outcome = Released { released: outcome.released, ..Released::default() };
                continue;
            }
            Err(trouble) => return Err(trouble),
        };
        outcome.seen += page.items.len();
        let held = page.items.into_iter().map(|item| item.metadata).filter(Pod::is_held);
        let mut ends = stream::iter(held)
            .map(|pod| async {
                let name = ObjectName::new(pod.namespace.as_str(), pod.name.as_str());
                (name, release(client, pod, &may_begin).await)
            })
            .buffer_unordered(PATCHES_MAX);
        while let Some((pod, end)) = ends.next().await {
            match end {
                Ok(()) => outcome.released += 1,
                Err(trouble) => {
                    let is_passing = trouble.is_passing();
                    outcome.left.push(Left { pod, why: trouble.to_string(), is_passing });
                }
            }
        }
        drop(ends);
        token = page.metadata.next;
        if token.is_empty() {
            outcome.left.sort();
            return Ok(outcome);
        }
    }
}

/// Takes the finalizer off one pod; a pod that is gone needs none taken off.
async fn release(client: &Client, mut pod: Pod, may_begin: &impl Fn() -> bool) -> Result<(), Trouble> {
    let path = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
    let uid = pod.uid.clone();
    for _ in 0..TRIES_MAX {
        if !may_begin() {
            return Err(Trouble::Unavailable("leadership lost; the next leader continues".into()));
        }
        let left: Vec<&String> =
            pod.finalizers.iter().filter(|it| *it != PREDECESSOR_POD_FINALIZER).collect();
        let finalizers = json!({"op": "replace", "path": "/metadata/finalizers", "value": left});
        let operations = vec![
            json!({"op": "test", "path": "/metadata/uid", "value": uid}),
            json!({"op": "replace", "path": "/metadata/resourceVersion", "value": pod.version}),
            finalizers,
        ];
        let patch = Call::patch("pods", format!("{path}?fieldManager={FIELD_MANAGER}"), operations);
        let refused = match patch.accepting(METADATA).send::<Item>(client).await {
            Ok(_) | Err(Trouble::Missing(_)) => return Ok(()),
            Err(Trouble::Conflict(_)) => None,
            // A failed test of the UID is 422 like a policy's refusal; the next look tells.
            Err(refused @ Trouble::Refused { code: 422, .. }) => Some(refused),
            Err(trouble) => return Err(trouble),
        };
        let found = match Call::get("pods", path.clone()).accepting(METADATA).send::<Item>(client).await {
            Ok(found) => found.metadata,
            Err(Trouble::Missing(_)) => return Ok(()),
            Err(trouble) => return Err(trouble),
        };
        if found.uid != uid || !found.is_held() {
            return Ok(());
        }
        if let Some(refused) = refused.filter(|_| found.version == pod.version) {
            return Err(refused);
        }
        pod = found;
    }
    Err(Trouble::Conflict(format!("the pod was changed by others during all {TRIES_MAX} attempts")))
}

/// A token may hold anything; in a query only letters, digits and a few signs stand for themselves.
fn escaped(token: &str) -> String {
    let mut text = String::with_capacity(token.len());
    for byte in token.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(byte as char),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
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

    #[tokio::test]
    async fn only_pods_that_carry_it_are_patched_on_every_page() {
        let (client, script) = Script::of([
            (LIST, page("a+b", vec![pod("plain", 1, &[]), pod("other", 2, &["example.com/keep"])])),
            (LIST, page("", vec![held(3)])),
            (PATCH, Say::ok(held(4))),
        ]);
        let outcome = release_pods(&client, || true).await.unwrap();
        assert_eq!(outcome, Released { seen: 3, released: 1, left: Vec::new() });
        let requests = script.played();
        assert_eq!(requests[0].query, "limit=500");
        assert_eq!(requests[1].query, "limit=500&continue=a%2Bb");
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
    async fn a_pod_that_changed_meanwhile_is_read_and_tried_again() {
        let (client, script) = Script::of([
            (LIST, page("", vec![held(3)])),
            (PATCH, conflict()),
            (GET, Say::ok(held(5))),
            (PATCH, Say::ok(held(6))),
        ]);
        assert_eq!(release_pods(&client, || true).await.unwrap().released, 1);
        assert_eq!(script.played()[3].body[1]["value"], "5");
    }

    #[tokio::test]
    async fn a_pod_that_is_gone_replaced_or_already_released_is_left_alone() {
        let mut successor = held(7);
        successor["metadata"]["uid"] = json!("another");
        for found in [Say::ok(successor), Say::ok(pod("web", 8, &[])), Say::status(404, "NotFound", "gone")] {
            let (client, script) =
                Script::of([(LIST, page("", vec![held(3)])), (PATCH, conflict()), (GET, found)]);
            assert_eq!(release_pods(&client, || true).await.unwrap().released, 1);
            script.played();
        }
    }

    #[tokio::test]
    async fn what_cannot_be_released_is_named_and_does_not_stop_the_others() {
        let words = "pods \"web\" is forbidden: User \"u\" cannot patch resource \"pods\" in API group";
        let (client, script) = Script::of([
            (LIST, page("more", vec![held(3)])),
            (PATCH, Say::status(403, "Forbidden", words)),
            (LIST, page("", vec![held(3)])),
            (PATCH, Say::ok(held(4))),
        ]);
        let outcome = release_pods(&client, || true).await.unwrap();
        assert_eq!((outcome.released, outcome.left.len()), (1, 1));
        let left = &outcome.left[0];
        assert_eq!((&left.pod, left.is_passing), (&ObjectName::new("shop", "web"), false));
        assert!(left.why.starts_with("patch pods denied: "), "{}", left.why);
        script.played();
    }

    #[tokio::test]
    async fn a_refusal_of_a_pod_that_did_not_change_keeps_its_words() {
        let (client, script) = Script::of([
            (LIST, page("", vec![held(3)])),
            (PATCH, Say::status(422, "Invalid", "a policy says no")),
            (GET, Say::ok(held(3))),
        ]);
        let left = release_pods(&client, || true).await.unwrap().left;
        assert_eq!((left[0].why.as_str(), left[0].is_passing), ("a policy says no", false));
        script.played();
    }

    #[tokio::test]
    async fn a_pod_that_never_keeps_still_is_given_up_for_this_time() {
        let mut exchanges = vec![(LIST, page("", vec![held(3)]))];
        for version in 0..TRIES_MAX as u64 {
            exchanges.push((PATCH, conflict()));
            exchanges.push((GET, Say::ok(held(10 + version))));
        }
        let (client, script) = Script::of(exchanges);
        let outcome = release_pods(&client, || true).await.unwrap();
        assert!(outcome.left.len() == 1 && outcome.left[0].is_passing, "{:?}", outcome.left);
        script.played();
    }

    #[tokio::test]
    async fn a_list_that_took_too_long_is_begun_anew_and_counts_every_pod_once() {
        let refused = || Say::status(403, "Forbidden", "a policy says no");
        let (client, script) = Script::of([
            (LIST, page("old", vec![held(3), pod("plain", 1, &[])])),
            (PATCH, refused()),
            (LIST, Say::status(410, "Expired", "The provided continue parameter is too old")),
            (LIST, page("new", vec![held(3), pod("plain", 1, &[])])),
            (PATCH, refused()),
            (LIST, page("", vec![pod("last", 2, &[])])),
        ]);
        let outcome = release_pods(&client, || true).await.unwrap();
        assert_eq!((outcome.seen, outcome.released, outcome.left.len()), (3, 0, 1));
        let requests = script.played();
        assert_eq!(requests[3].query, "limit=500", "from the first page");
    }

    #[tokio::test]
    async fn a_list_that_never_gets_to_its_end_is_given_up_for_this_time() {
        let exchanges = (0..=EXPIRED_MAX)
            .flat_map(|_| [(LIST, page("old", vec![])), (LIST, Say::status(410, "Expired", "too old"))]);
        let (client, script) = Script::of(exchanges);
        let trouble = release_pods(&client, || true).await.unwrap_err();
        assert!(trouble.is_passing(), "{trouble}");
        script.played();
    }

    #[tokio::test]
    async fn what_may_pass_by_itself_is_told_from_what_stays() {
        for (say, is_passing) in [
            (Say::status(429, "TooManyRequests", "later"), true),
            (Say::status(503, "ServiceUnavailable", "later"), true),
            (Say::status(401, "Unauthorized", "expired"), true),
            (Say::Break, true),
            (Say::status(403, "Forbidden", "a policy says no"), false),
            (Say::status(400, "BadRequest", "no"), false),
        ] {
            let (client, script) = Script::of([(LIST, page("", vec![held(3)])), (PATCH, say.clone())]);
            let outcome = release_pods(&client, || true).await.unwrap();
            assert_eq!((outcome.left.len(), outcome.left[0].is_passing), (1, is_passing), "{say:?}");
            script.played();
        }
    }

    #[tokio::test]
    async fn whoever_does_not_lead_begins_nothing() {
        let (client, script) = Script::of([(LIST, page("", vec![held(3)]))]);
        let outcome = release_pods(&client, || false).await.unwrap();
        assert_eq!((outcome.released, outcome.left.len()), (0, 1));
        assert!(outcome.left[0].is_passing, "should we lead after all, it goes on");
        script.played();
    }
}
