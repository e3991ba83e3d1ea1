//! The parts of managed Services that our writes change, as last seen, so that a write needs no read before it.
//!
//! A patch that is made from them carries their resourceVersion: the API server rejects it if the Service has
//! changed since, and only then the Service is read. What is old or missing here costs a request and nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_model::Uid;

/// Services as last seen, by UID; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct LastSeen(Arc<Mutex<HashMap<Uid, Entry>>>);

#[derive(Debug)]
struct Entry {
    /// The version as the watches tell it, which never goes back.
    version: u64,
    /// The parts as JSON, which is smaller than a tree of them.
    parts: Box<str>,
}

impl LastSeen {
    /// The watch has brought a managed Service.
    pub(crate) fn watched(&self, uid: Uid, version: u64, object: &str) {
        let Ok(parts) = serde_json::from_str::<Parts>(object) else { return };
        let mut all = self.all();
        if all.get(&uid).is_none_or(|entry| entry.version <= version) {
            all.insert(uid, Entry { version, parts: parts.text() });
        }
    }

    /// A write was answered with the Service as it is now. One that is not here stays away: it may be deleted.
    pub(crate) fn written(&self, uid: Uid, version: u64, object: &Value) {
        let Ok(parts) = Parts::deserialize(object) else { return };
        if let Some(entry) = self.all().get_mut(&uid).filter(|entry| entry.version <= version) {
            *entry = Entry { version, parts: parts.text() };
        }
    }

    /// The Service is deleted, or not managed.
    pub(crate) fn forget(&self, uid: Uid) {
        self.all().remove(&uid);
    }

    /// A complete list has brought these and no others.
    pub(crate) fn keep_only(&self, listed: &HashSet<Uid>) {
        let mut all = self.all();
        all.retain(|uid, _| listed.contains(uid));
        all.shrink_to_fit();
    }

    /// The parts of a Service, in their places of the whole object.
    pub(crate) fn get(&self, uid: Uid) -> Option<Value> {
        serde_json::from_str(&self.all().get(&uid)?.parts).ok()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Uid, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What [`crate::write`] looks at, with all fields of the status, known to us or not.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Parts {
    metadata: Metadata,
    spec: Spec,
    #[serde(skip_serializing_if = "Value::is_null")]
    status: Value,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    uid: Value,
    resource_version: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    generation: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    deletion_timestamp: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    finalizers: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Annotations>,
}

/// Of the annotations only ours. An empty map says that there are others, so that a patch does not replace them.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "sluice.dev/published-ip", skip_serializing_if = "Value::is_null")]
    published_ip: Value,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(rename = "type")]
    kind: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    load_balancer_class: Value,
}

impl Parts {
    fn text(&self) -> Box<str> {
        serde_json::to_string(self).unwrap_or_default().into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::strings::PUBLISHED_IP;

    fn uid() -> Uid {
        Uid::from_number(7)
    }

    fn object(version: u64) -> Value {
        json!({
            "metadata": {
                "name": "web", "uid": uid().to_string(), "resourceVersion": version.to_string(), "generation": 3,
                "finalizers": ["example.com/keep"], "deletionTimestamp": "2026-11-16T09:59:00Z",
                "managedFields": [{"manager": "kubectl"}], "annotations": {"long": "text", PUBLISHED_IP: "9.9.9.9"},
            },
            "spec": {"type": "LoadBalancer", "loadBalancerClass": "example.com/class", "clusterIP": "10.0.0.1"},
            "status": {"loadBalancer": {"ingress": [{"ip": "9.9.9.9", "new": 1}]}, "later": {"field": true}},
        })
    }

    fn version_of(seen: &LastSeen) -> Option<Value> {
        Some(seen.get(uid())?["metadata"]["resourceVersion"].clone())
    }

    #[test]
    fn only_the_parts_that_a_write_looks_at_are_kept() {
        let seen = LastSeen::default();
        seen.watched(uid(), 41, &object(41).to_string());
        let mut expected = object(41);
        for (part, field) in [("metadata", "name"), ("metadata", "managedFields"), ("spec", "clusterIP")] {
            expected[part].as_object_mut().unwrap().remove(field);
        }
        expected["metadata"]["annotations"] = json!({PUBLISHED_IP: "9.9.9.9"});
        assert_eq!(seen.get(uid()), Some(expected));
    }

    #[test]
    fn annotations_of_others_leave_an_empty_map() {
        let seen = LastSeen::default();
        let annotations = |value: Value| {
            let mut object = object(41);
            object["metadata"]["annotations"] = value;
            seen.watched(uid(), 41, &object.to_string());
            seen.get(uid()).unwrap()["metadata"]["annotations"].clone()
        };
        assert_eq!(annotations(json!({"example.com/other": "text"})), json!({}));
        assert_eq!(annotations(Value::Null), Value::Null);
    }

    #[test]
    fn the_newer_of_watch_and_answer_is_kept() {
        let seen = LastSeen::default();
        seen.watched(uid(), 41, &object(41).to_string());
        seen.written(uid(), 43, &object(43));
        seen.watched(uid(), 42, &object(42).to_string());
        assert_eq!(version_of(&seen), Some(json!("43")));
        seen.written(uid(), 42, &object(42));
        assert_eq!(version_of(&seen), Some(json!("43")));
        seen.watched(uid(), 44, &object(44).to_string());
        assert_eq!(version_of(&seen), Some(json!("44")));
    }

    #[test]
    fn a_service_that_is_deleted_or_not_listed_is_not_kept() {
        let seen = LastSeen::default();
        seen.watched(uid(), 41, &object(41).to_string());
        seen.keep_only(&HashSet::from([uid()]));
        assert_eq!(version_of(&seen), Some(json!("41")));
        seen.keep_only(&HashSet::new());
        assert_eq!(version_of(&seen), None);
        seen.watched(uid(), 41, &object(41).to_string());
        seen.forget(uid());
        seen.written(uid(), 42, &object(42));
        assert_eq!(version_of(&seen), None);
    }
}
