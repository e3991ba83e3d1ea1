//! The kinds that are served: one row each, with names, verbs, defaults, checks and columns.
//!
//! Discovery, the routes, the tables that `kubectl get` prints and SUPPORT.md all follow from these
//! rows. What a row does not say is the same for every kind and stands in the store or the surface.

pub(crate) mod metadata;
mod namespace;
pub(crate) mod pod;
pub(crate) mod service;
mod small;
pub(crate) mod words;
mod workload;

use serde_json::Value;

use crate::refusal::Cause;

/// What one may do with every ordinary kind.
pub const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Namespaces are not deleted by the dozen.
const NAMESPACE_VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
/// Questions are asked and not kept.
const REVIEW_VERBS: &[&str] = &["create"];

/// A part of an object with a path of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sub {
    /// `/status`: what controllers say of it.
    Status,
    /// `/scale`: how many.
    Scale,
    /// `/finalize`: a namespace's own finalizers.
    Finalize,
    /// `/binding`: a pod's node.
    Binding,
}

impl Sub {
    /// Its word in paths.
    pub fn word(self) -> &'static str {
        match self {
            Sub::Status => "status",
            Sub::Scale => "scale",
            Sub::Finalize => "finalize",
            Sub::Binding => "binding",
        }
    }

    /// What one may do with it.
    pub fn verbs(self) -> &'static [&'static str] {
        match self {
            Sub::Status | Sub::Scale => &["get", "patch", "update"],
            Sub::Finalize => &["update"],
            Sub::Binding => &["create"],
        }
    }
}

/// A kind.
#[derive(Debug)]
pub struct Kind {
    /// Its API group, empty for the oldest.
    pub group: &'static str,
    /// The version of the group.
    pub version: &'static str,
    /// As it stands in paths.
    pub resource: &'static str,
    /// One of them.
    pub singular: &'static str,
    /// As it stands in objects.
    pub kind: &'static str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What one may do.
    pub verbs: &'static [&'static str],
    /// Parts with a path of their own.
    pub subresources: &'static [Sub],
    /// What people type instead.
    pub short_names: &'static [&'static str],
    /// Groups of kinds such as `all`.
    pub categories: &'static [&'static str],
    /// Its type in the table of fields.
    pub schema: &'static str,
    /// Whether a change of its spec counts in `metadata.generation`.
    pub generations: bool,
    /// Whether a deletion answers with the object and not with a Status.
    pub returns_deleted: bool,
    /// Fields that a field selector may name, besides name and namespace.
    pub selectable: &'static [&'static str],
    /// Fills in what the writer left out.
    pub default: fn(&mut Value),
    /// What the server adds to a new object, and nobody owns.
    pub admit: fn(&mut Value),
    /// What is wrong with it, given what it was before.
    pub check: fn(&Value, Option<&Value>) -> Vec<Cause>,
}

impl Kind {
    /// `group/version`, or the version alone.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `resource.group`, as messages say it.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    /// Whether it has this part.
    pub fn has(&self, sub: Sub) -> bool {
        self.subresources.contains(&sub)
    }

    /// Whether one may do this with it.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.group == other.group && self.resource == other.resource
    }
}

impl Eq for Kind {}

fn as_it_is(_: &mut Value) {}

fn anything(_: &Value, _: Option<&Value>) -> Vec<Cause> {
    Vec::new()
}

const PLAIN: Kind = Kind {
    group: "",
    version: "v1",
    resource: "",
    singular: "",
    kind: "",
    namespaced: true,
    verbs: ALL_VERBS,
    subresources: &[],
    short_names: &[],
    categories: &[],
    schema: "",
    generations: false,
    returns_deleted: false,
    selectable: &[],
    default: as_it_is,
    admit: as_it_is,
    check: anything,
};

/// Namespaces.
pub static NAMESPACE: Kind = Kind {
    resource: "namespaces",
    singular: "namespace",
    kind: "Namespace",
    namespaced: false,
    verbs: NAMESPACE_VERBS,
    subresources: &[Sub::Finalize, Sub::Status],
    short_names: &["ns"],
    schema: "core.v1.Namespace",
    selectable: &["status.phase"],
    default: namespace::default,
    admit: namespace::admit,
    ..PLAIN
};

/// Services.
pub static SERVICE: Kind = Kind {
    resource: "services",
    singular: "service",
    kind: "Service",
    subresources: &[Sub::Status],
    short_names: &["svc"],
    categories: &["all"],
    schema: "core.v1.Service",
    returns_deleted: true,
    selectable: &["spec.clusterIP", "spec.type"],
    default: service::default,
    check: service::check,
    ..PLAIN
};

/// Pods.
pub static POD: Kind = Kind {
    resource: "pods",
    singular: "pod",
    kind: "Pod",
    subresources: &[Sub::Binding, Sub::Status],
    short_names: &["po"],
    categories: &["all"],
    schema: "core.v1.Pod",
    generations: true,
    returns_deleted: true,
    selectable: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ],
    default: pod::default,
    admit: pod::admit,
    check: pod::check,
    ..PLAIN
};

/// Nodes.
pub static NODE: Kind = Kind {
    resource: "nodes",
    singular: "node",
    kind: "Node",
    namespaced: false,
    subresources: &[Sub::Status],
    short_names: &["no"],
    schema: "core.v1.Node",
    selectable: &["spec.unschedulable"],
    default: small::default_node,
    admit: small::admit_node,
    check: small::check_node,
    ..PLAIN
};

/// Endpoints, as they were before slices; nobody fills them here.
pub static ENDPOINTS: Kind = Kind {
    resource: "endpoints",
    singular: "endpoints",
    kind: "Endpoints",
    short_names: &["ep"],
    schema: "core.v1.Endpoints",
    ..PLAIN
};

/// Config maps.
pub static CONFIG_MAP: Kind = Kind {
    resource: "configmaps",
    singular: "configmap",
    kind: "ConfigMap",
    short_names: &["cm"],
    schema: "core.v1.ConfigMap",
    check: small::check_config_map,
    ..PLAIN
};

/// Secrets.
pub static SECRET: Kind = Kind {
    resource: "secrets",
    singular: "secret",
    kind: "Secret",
    schema: "core.v1.Secret",
    selectable: &["type"],
    default: small::default_secret,
    check: small::check_secret,
    ..PLAIN
};

/// Service accounts.
pub static SERVICE_ACCOUNT: Kind = Kind {
    resource: "serviceaccounts",
    singular: "serviceaccount",
    kind: "ServiceAccount",
    short_names: &["sa"],
    schema: "core.v1.ServiceAccount",
    returns_deleted: true,
    ..PLAIN
};

/// Events, as most write them.
pub static EVENT: Kind = Kind {
    resource: "events",
    singular: "event",
    kind: "Event",
    short_names: &["ev"],
    schema: "core.v1.Event",
    selectable: &[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
    default: small::default_event,
    check: small::check_event,
    ..PLAIN
};

/// The same events, in the words of their newer group.
pub static NEW_EVENT: Kind = Kind {
    group: "events.k8s.io",
    resource: "events",
    singular: "event",
    kind: "Event",
    short_names: &["ev"],
    schema: "events.v1.Event",
    selectable: &[
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingController",
        "type",
    ],
    ..PLAIN
};

/// Deployments.
pub static DEPLOYMENT: Kind = Kind {
    group: "apps",
    resource: "deployments",
    singular: "deployment",
    kind: "Deployment",
    subresources: &[Sub::Scale, Sub::Status],
    short_names: &["deploy"],
    categories: &["all"],
    schema: "apps.v1.Deployment",
    generations: true,
    default: workload::default_deployment,
    check: workload::check_deployment,
    ..PLAIN
};

/// Replica sets.
pub static REPLICA_SET: Kind = Kind {
    group: "apps",
    resource: "replicasets",
    singular: "replicaset",
    kind: "ReplicaSet",
    subresources: &[Sub::Scale, Sub::Status],
    short_names: &["rs"],
    categories: &["all"],
    schema: "apps.v1.ReplicaSet",
    generations: true,
    selectable: &["status.replicas"],
    default: workload::default_replica_set,
    check: workload::check,
    ..PLAIN
};

/// Endpoint slices.
pub static ENDPOINT_SLICE: Kind = Kind {
    group: "discovery.k8s.io",
    resource: "endpointslices",
    singular: "endpointslice",
    kind: "EndpointSlice",
    schema: "discovery.v1.EndpointSlice",
    generations: true,
    default: small::default_slice,
    check: small::check_slice,
    ..PLAIN
};

/// Leases.
pub static LEASE: Kind = Kind {
    group: "coordination.k8s.io",
    resource: "leases",
    singular: "lease",
    kind: "Lease",
    schema: "coordination.v1.Lease",
    check: small::check_lease,
    ..PLAIN
};

/// Roles for all namespaces. They are kept, and nobody is refused by them.
pub static CLUSTER_ROLE: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "clusterroles",
    singular: "clusterrole",
    kind: "ClusterRole",
    namespaced: false,
    schema: "rbac.v1.ClusterRole",
    ..PLAIN
};

/// Who has them.
pub static CLUSTER_ROLE_BINDING: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "clusterrolebindings",
    singular: "clusterrolebinding",
    kind: "ClusterRoleBinding",
    namespaced: false,
    schema: "rbac.v1.ClusterRoleBinding",
    default: small::default_binding,
    ..PLAIN
};

/// Roles in a namespace.
pub static ROLE: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "roles",
    singular: "role",
    kind: "Role",
    schema: "rbac.v1.Role",
    ..PLAIN
};

/// Who has them.
pub static ROLE_BINDING: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "rolebindings",
    singular: "rolebinding",
    kind: "RoleBinding",
    schema: "rbac.v1.RoleBinding",
    default: small::default_binding,
    ..PLAIN
};

/// May I?
pub static SELF_ACCESS_REVIEW: Kind = Kind {
    group: "authorization.k8s.io",
    resource: "selfsubjectaccessreviews",
    singular: "selfsubjectaccessreview",
    kind: "SelfSubjectAccessReview",
    namespaced: false,
    verbs: REVIEW_VERBS,
    schema: "authorization.v1.SelfSubjectAccessReview",
    ..PLAIN
};

/// What may I?
pub static SELF_RULES_REVIEW: Kind = Kind {
    group: "authorization.k8s.io",
    resource: "selfsubjectrulesreviews",
    singular: "selfsubjectrulesreview",
    kind: "SelfSubjectRulesReview",
    namespaced: false,
    verbs: REVIEW_VERBS,
    schema: "authorization.v1.SelfSubjectRulesReview",
    ..PLAIN
};

/// All of them, by group and then by name, as discovery tells them.
pub static KINDS: &[&Kind] = &[
    &CONFIG_MAP,
    &ENDPOINTS,
    &EVENT,
    &NAMESPACE,
    &NODE,
    &POD,
    &SECRET,
    &SERVICE_ACCOUNT,
    &SERVICE,
    &DEPLOYMENT,
    &REPLICA_SET,
    &NEW_EVENT,
    &SELF_ACCESS_REVIEW,
    &SELF_RULES_REVIEW,
    &CLUSTER_ROLE_BINDING,
    &CLUSTER_ROLE,
    &ROLE_BINDING,
    &ROLE,
    &LEASE,
    &ENDPOINT_SLICE,
];

/// The kind of a path.
pub fn find(group: &str, version: &str, resource: &str) -> Option<&'static Kind> {
    KINDS
        .iter()
        .find(|kind| kind.group == group && kind.version == version && kind.resource == resource)
        .copied()
}

/// The kind of an object, by its `apiVersion` and `kind`.
pub fn of_object(api_version: &str, name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.kind == name && kind.api_version() == api_version).copied()
}
