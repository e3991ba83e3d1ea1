//! The objects of Kubernetes, cut down as they arrive.
//!
//! Only what [`crate::convert`] reads is ever taken out of the JSON: managed fields, pod templates and
//! long annotations are skipped by the parser and never kept. Everything may be absent or null, and words
//! (phases, protocols, address types) stay text, so that a value from a newer Kubernetes is no error
//! here; only a field of another shape than Kubernetes promises makes an object unreadable.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::strings::PUBLISHED_IP;

/// Annotations that can matter to us begin so.
const ANNOTATION_PREFIX: &str = "service.beta.kubernetes.io/";

/// The metadata of any object.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    pub(crate) name: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) creation_timestamp: Option<String>,
    pub(crate) deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) finalizers: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) owner_references: Vec<OwnerReference>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) labels: Labels,
    #[serde(deserialize_with = "nullable")]
    pub(crate) annotations: Annotations,
}

/// The two labels that we read.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct Labels {
    #[serde(rename = "kubernetes.azure.com/service-egress-gateway")]
    pub(crate) egress: Option<String>,
    #[serde(rename = "kubernetes.io/service-name")]
    pub(crate) service_name: Option<String>,
}

/// The annotations for load balancers and our own; all others are skipped, however long they are.
#[derive(Default, Debug)]
pub(crate) struct Annotations(pub(crate) BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Annotations, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Annotations;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Annotations, A::Error> {
                let mut kept = BTreeMap::new();
                while let Some(key) = entries.next_key::<String>()? {
                    if key.starts_with(ANNOTATION_PREFIX) || key == PUBLISHED_IP {
                        kept.insert(key, entries.next_value::<Option<String>>()?.unwrap_or_default());
                    } else {
                        entries.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Annotations(kept))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Who owns an object.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OwnerReference {
    pub(crate) api_version: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) uid: Option<String>,
    pub(crate) controller: Option<bool>,
}

/// A Service.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct Service {
    #[serde(deserialize_with = "nullable")]
    pub(crate) metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub(crate) spec: ServiceSpec,
    #[serde(deserialize_with = "nullable")]
    pub(crate) status: ServiceStatus,
}

#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServiceSpec {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) load_balancer_class: Option<String>,
    #[serde(rename = "loadBalancerIP")]
    pub(crate) load_balancer_ip: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) load_balancer_source_ranges: Vec<String>,
    pub(crate) session_affinity: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) ip_families: Vec<String>,
    pub(crate) ip_family_policy: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) ports: Vec<ServicePort>,
}

#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServicePort {
    pub(crate) name: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) port: Option<i64>,
    pub(crate) target_port: Option<IntOrString>,
}

/// A number or a word, as `targetPort` is.
#[derive(Deserialize, Debug)]
#[serde(untagged)]
pub(crate) enum IntOrString {
    Int(i64),
    String(String),
}

#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServiceStatus {
    #[serde(deserialize_with = "nullable")]
    pub(crate) load_balancer: LoadBalancerStatus,
    #[serde(deserialize_with = "nullable")]
    pub(crate) conditions: Vec<Condition>,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct LoadBalancerStatus {
    #[serde(deserialize_with = "nullable")]
    pub(crate) ingress: Vec<AddressOf>,
}

/// An entry of `ingress`, `podIPs` or `hostIPs`.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct AddressOf {
    pub(crate) ip: Option<String>,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
}

/// An EndpointSlice.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EndpointSlice {
    #[serde(deserialize_with = "nullable")]
    pub(crate) metadata: Meta,
    pub(crate) address_type: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) endpoints: Vec<Endpoint>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) ports: Vec<SlicePort>,
}

#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Endpoint {
    #[serde(deserialize_with = "nullable")]
    pub(crate) addresses: Vec<String>,
    pub(crate) node_name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) conditions: EndpointConditions,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct EndpointConditions {
    pub(crate) ready: Option<bool>,
    pub(crate) serving: Option<bool>,
    pub(crate) terminating: Option<bool>,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct SlicePort {
    pub(crate) name: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) port: Option<i64>,
}

/// A Node.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct Node {
    #[serde(deserialize_with = "nullable")]
    pub(crate) metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub(crate) status: NodeStatus,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct NodeStatus {
    #[serde(deserialize_with = "nullable")]
    pub(crate) addresses: Vec<NodeAddress>,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct NodeAddress {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) address: Option<String>,
}

/// A pod.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct Pod {
    #[serde(deserialize_with = "nullable")]
    pub(crate) metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub(crate) spec: PodSpec,
    #[serde(deserialize_with = "nullable")]
    pub(crate) status: PodStatus,
}

#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpec {
    pub(crate) node_name: Option<String>,
    pub(crate) host_network: Option<bool>,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct PodStatus {
    pub(crate) phase: Option<String>,
    #[serde(rename = "podIP")]
    pub(crate) pod_ip: Option<String>,
    #[serde(rename = "podIPs", deserialize_with = "nullable")]
    pub(crate) pod_ips: Vec<AddressOf>,
    #[serde(rename = "hostIP")]
    pub(crate) host_ip: Option<String>,
    #[serde(rename = "hostIPs", deserialize_with = "nullable")]
    pub(crate) host_ips: Vec<AddressOf>,
}

/// Go writes an empty list as `null`.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use sluice_model::annotations;

    use super::*;
    use crate::strings::{EGRESS_LABEL, SERVICE_NAME_LABEL};

    fn meta(text: &str) -> Meta {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn long_annotations_of_others_are_not_kept() {
        let kept = meta(
            r#"{"annotations": {"kubectl.kubernetes.io/last-applied-configuration": {"any": ["thing"]},
                "service.beta.kubernetes.io/azure-dns-label-name": "web", "service.beta.kubernetes.io/x": null},
                "managedFields": [{"fieldsV1": {"f:metadata": {}}}]}"#,
        );
        let entries: Vec<_> = kept.annotations.0.into_iter().collect();
        assert_eq!(
            entries,
            [
                ("service.beta.kubernetes.io/azure-dns-label-name".into(), "web".into()),
                ("service.beta.kubernetes.io/x".to_string(), String::new()),
            ]
        );
    }

    #[test]
    fn the_labels_are_those_of_the_shared_words() {
        let text = format!(
            r#"{{"labels": {{"{EGRESS_LABEL}": "blue", "{SERVICE_NAME_LABEL}": "web", "app": "x"}}}}"#
        );
        let labels = meta(&text).labels;
        assert_eq!((labels.egress.as_deref(), labels.service_name.as_deref()), (Some("blue"), Some("web")));
        assert!(annotations::AZURE.starts_with(ANNOTATION_PREFIX));
        assert!(annotations::TABLE.iter().all(|row| row.key.starts_with(ANNOTATION_PREFIX)));
    }

    #[test]
    fn null_is_nothing_everywhere() {
        let _: Service = serde_json::from_str(r#"{"metadata": null, "spec": null, "status": null}"#).unwrap();
        let service: Service = serde_json::from_str(
            r#"{"metadata": {"labels": null, "annotations": null, "finalizers": null, "ownerReferences": null,
                "name": null, "creationTimestamp": null},
                "spec": {"ports": null, "ipFamilies": null, "loadBalancerSourceRanges": null, "type": null},
                "status": {"loadBalancer": {"ingress": null}, "conditions": null}}"#,
        )
        .unwrap();
        assert!(service.spec.ports.is_empty() && service.metadata.annotations.0.is_empty());
        let _: EndpointSlice = serde_json::from_str(
            r#"{"endpoints": [{"addresses": null, "conditions": null}], "ports": null}"#,
        )
        .unwrap();
        let _: Node = serde_json::from_str(r#"{"status": {"addresses": null}}"#).unwrap();
        let _: Pod =
            serde_json::from_str(r#"{"spec": {}, "status": {"podIPs": null, "hostIPs": null}}"#).unwrap();
    }
}
