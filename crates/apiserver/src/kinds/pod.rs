//! Pods and the templates of pods: what the server fills in, and what may not be.

mod check;

use serde_json::{Value, json};

use self::check::check_spec;
use super::metadata::{annotations, labels};
use crate::refusal::Cause;
use crate::store::Selection;
use crate::value::{at, default_to, fields, is_empty, list, name_of, object, remove, text};

/// What may change in a pod that is there.
const MAY_CHANGE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
    existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously \
    negative)";
const LISTS_OF_CONTAINERS: [&str; 2] = ["initContainers", "containers"];
/// What a pod has from its node, once it has one.
const TOPOLOGY: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

pub(super) fn default(pod: &mut Value) {
    let spec = object(pod, "spec");
    default_spec(spec);
    default_to(spec, "enableServiceLinks", true);
    for name in LISTS_OF_CONTAINERS {
        for container in spec.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
            request_what_is_limited(container);
        }
    }
    let class = quality(spec);
    let status = object(pod, "status");
    default_to(status, "phase", "Pending");
    default_to(status, "qosClass", class);
}

/// What a new pod gets that nobody owns.
pub(super) fn admit(pod: &mut Value) {
    let spec = object(pod, "spec");
    default_to(spec, "priority", 0);
    default_to(spec, "preemptionPolicy", "PreemptLowerPriority");
    tolerations(spec);
}

/// Who says how much at most asks for as much, if it does not say otherwise.
fn request_what_is_limited(container: &mut Value) {
    let limits = at(container, &["resources", "limits"]).as_object().cloned().unwrap_or_default();
    for (name, amount) in limits {
        default_to(object(object(container, "resources"), "requests"), &name, amount);
    }
}

/// What is filled in of a pod and of a template alike.
pub(super) fn default_spec(spec: &mut Value) {
    default_to(spec, "dnsPolicy", "ClusterFirst");
    default_to(spec, "restartPolicy", "Always");
    default_to(spec, "schedulerName", "default-scheduler");
    default_to(spec, "securityContext", json!({}));
    default_to(spec, "terminationGracePeriodSeconds", 30);
    if at(spec, &["terminationGracePeriodSeconds"]).as_i64().is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
    if !text(spec, &["serviceAccountName"]).is_empty() {
        // The old name of the same field.
        spec["serviceAccount"] = spec["serviceAccountName"].clone();
    }
    let is_on_host = at(spec, &["hostNetwork"]) == true;
    for name in LISTS_OF_CONTAINERS {
        for container in spec.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
            default_container(container, is_on_host);
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        for source in ["configMap", "secret", "projected", "downwardAPI"] {
            if let Some(source) = volume.get_mut(source) {
                default_to(source, "defaultMode", 420);
            }
        }
        if volume.as_object().is_some_and(|fields| fields.len() == 1) {
            object(volume, "emptyDir");
        }
    }
}

fn default_container(container: &mut Value, is_on_host: bool) {
    let image = text(container, &["image"]);
    let tag = image.rsplit('/').next().unwrap_or("").split_once(':').map_or("latest", |(_, tag)| tag);
    let policy = if tag == "latest" && !image.contains('@') { "Always" } else { "IfNotPresent" };
    default_to(container, "imagePullPolicy", policy);
    default_to(container, "resources", json!({}));
    default_to(container, "terminationMessagePath", "/dev/termination-log");
    default_to(container, "terminationMessagePolicy", "File");
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default_to(port, "protocol", "TCP");
        if is_on_host && let Some(number) = port.get("containerPort").cloned() {
            default_to(port, "hostPort", number);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(probe) else { continue };
        for (field, value) in
            [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
        {
            default_to(probe, field, value);
        }
        if let Some(get) = probe.get_mut("httpGet") {
            default_to(get, "path", "/");
            default_to(get, "scheme", "HTTP");
        }
    }
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(field) = variable.get_mut("valueFrom").and_then(|from| from.get_mut("fieldRef")) {
            default_to(field, "apiVersion", "v1");
        }
    }
}

/// Every pod bears a node that is away for five minutes.
fn tolerations(spec: &mut Value) {
    let mut all = list(spec, &["tolerations"]).to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let has = all.iter().any(|it| {
            (text(it, &["key"]) == key || text(it, &["key"]).is_empty())
                && matches!(text(it, &["effect"]), "" | "NoExecute")
        });
        if !has {
            all.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
    spec["tolerations"] = Value::Array(all);
}

/// How good its resources are.
fn quality(spec: &Value) -> &'static str {
    let containers = || LISTS_OF_CONTAINERS.iter().flat_map(|name| list(spec, &[name]));
    let has = |container: &Value, of: &str| !is_empty(at(container, &["resources", of]));
    if !containers().any(|it| has(it, "requests") || has(it, "limits")) {
        return "BestEffort";
    }
    let is_sure = |container: &Value| {
        let (limits, requests) =
            (at(container, &["resources", "limits"]), at(container, &["resources", "requests"]));
        ["cpu", "memory"].iter().all(|name| {
            limits.get(name).is_some() && requests.get(name).is_none_or(|it| Some(it) == limits.get(name))
        })
    };
    if containers().all(is_sure) { "Guaranteed" } else { "Burstable" }
}

pub(super) fn check(pod: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    check_spec("spec", at(pod, &["spec"]), &mut causes);
    if let Some(old) = old
        && essence(old) != essence(pod)
    {
        causes.push(Cause::forbidden("spec", MAY_CHANGE));
    }
    causes
}

/// A pod's spec without what may change.
fn essence(pod: &Value) -> Value {
    let mut spec = at(pod, &["spec"]).clone();
    for field in ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"] {
        remove(&mut spec, field);
    }
    // It gets its node once, by a binding.
    remove(&mut spec, "nodeName");
    for name in LISTS_OF_CONTAINERS {
        for container in spec.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
            remove(container, "image");
        }
    }
    spec
}

/// What is wrong with the selector and the template of a Deployment or a ReplicaSet.
pub(super) fn check_template(owner: &Value, causes: &mut Vec<Cause>) {
    let selector = at(owner, &["spec", "selector"]);
    if selector.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    }
    let told = causes.len();
    check_selector(selector, causes);
    if causes.len() > told {
        // What a wrong selector selects says nothing of the template.
        causes.push(Cause::invalid("spec.selector", selector, "invalid label selector"));
        return;
    }
    let selects_nothing =
        is_empty(at(selector, &["matchLabels"])) && list(selector, &["matchExpressions"]).is_empty();
    if selects_nothing && !selector.is_null() {
        causes.push(Cause::invalid("spec.selector", selector, "empty selector is invalid for deployment"));
        return;
    }
    let template = at(owner, &["spec", "template"]);
    let own = at(template, &["metadata", "labels"]);
    if selects_nothing || !Selection::of_label_selector(selector).matches_labels(own) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", own, why));
    }
    labels("spec.template.labels", own, causes);
    annotations("spec.template.annotations", at(template, &["metadata", "annotations"]), causes);
    check_spec("spec.template.spec", at(template, &["spec"]), causes);
    let policy = text(template, &["spec", "restartPolicy"]);
    if policy != "Always" {
        let field = "spec.template.spec.restartPolicy";
        causes.push(Cause::unsupported(field, &json!(policy), &["Always"]));
    }
}

fn check_selector(selector: &Value, causes: &mut Vec<Cause>) {
    labels("spec.selector.matchLabels", at(selector, &["matchLabels"]), causes);
    for (index, rule) in list(selector, &["matchExpressions"]).iter().enumerate() {
        let field = format!("spec.selector.matchExpressions[{index}]");
        let has_values = !list(rule, &["values"]).is_empty();
        match text(rule, &["operator"]) {
            "In" | "NotIn" if !has_values => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                causes.push(Cause::required(format!("{field}.values"), why));
            }
            "Exists" | "DoesNotExist" if has_values => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(Cause::forbidden(format!("{field}.values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let why = "not a valid selector operator";
                causes.push(Cause::invalid(format!("{field}.operator"), &json!(other), why));
            }
        }
    }
}

/// A pod that has a node has the zone and the region of it as labels.
pub(crate) fn label_with_topology(pod: &mut Value, node: Option<&Value>) {
    let Some(node) = node.filter(|node| name_of(node) == text(pod, &["spec", "nodeName"])) else { return };
    for label in TOPOLOGY {
        if let Some(value) = at(node, &["metadata", "labels"]).get(label) {
            fields(object(object(pod, "metadata"), "labels")).insert(label.to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(image: &str) -> Value {
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "web", "image": image}]}})
    }

    #[test]
    fn an_image_is_pulled_always_only_if_it_is_the_latest() {
        for (image, policy) in [
            ("web", "Always"),
            ("example.com:5000/web", "Always"),
            ("web:latest", "Always"),
            ("web:1", "IfNotPresent"),
            ("web@sha256:00", "IfNotPresent"),
        ] {
            let mut pod = pod(image);
            default(&mut pod);
            assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], policy, "{image}");
        }
    }

    #[test]
    fn a_pod_that_is_there_may_change_its_image_and_get_a_node_and_nothing_else() {
        let old = pod("web:1");
        let mut new = pod("web:2");
        new["spec"]["nodeName"] = json!("n");
        new["spec"]["restartPolicy"] = json!("Always");
        let mut same = old.clone();
        same["spec"]["restartPolicy"] = json!("Always");
        assert_eq!(check(&new, Some(&same)), []);
        new["spec"]["containers"][0]["name"] = json!("other");
        assert_eq!(check(&new, Some(&same)), [Cause::forbidden("spec", MAY_CHANGE)]);
    }

    #[test]
    fn a_pod_needs_containers_with_names_and_images() {
        let mut empty = json!({"spec": {"containers": []}});
        default(&mut empty);
        assert_eq!(check(&empty, None), [Cause::required("spec.containers", "")]);
        let mut two = json!({"spec": {"containers": [{"name": "a"}, {"name": "a", "image": "x"}]}});
        default(&mut two);
        let expected = [
            Cause::required("spec.containers[0].image", ""),
            Cause::duplicate("spec.containers[1].name", &json!("a")),
        ];
        assert_eq!(check(&two, None), expected);
    }

    #[test]
    fn what_a_pod_asks_for_decides_how_good_it_has_it() {
        let class = |resources: Value| quality(&json!({"containers": [{"resources": resources}]}));
        assert_eq!(class(json!({})), "BestEffort");
        assert_eq!(class(json!({"requests": {"cpu": "1"}})), "Burstable");
        assert_eq!(class(json!({"limits": {"cpu": "1", "memory": "1Gi"}})), "Guaranteed");
    }

    #[test]
    fn a_selector_must_be_well_formed_and_select_its_template() {
        let told = |selects: &str, labelled: &str| {
            let mut template =
                json!({"metadata": {"labels": {"app": labelled}}, "spec": pod("web:1")["spec"]});
            default_spec(&mut template["spec"]);
            let owner =
                json!({"spec": {"selector": {"matchLabels": {"app": selects}}, "template": template}});
            let mut causes = Vec::new();
            check_template(&owner, &mut causes);
            causes.iter().map(|it| format!("{}: {}", it.field, it.message)).collect::<Vec<_>>()
        };
        assert!(told("web", "web").is_empty());
        let why = "spec.template.metadata.labels: Invalid value: {\"app\":\"two\"}: `selector` does not match \
                   template `labels`";
        assert_eq!(told("one", "two"), [why]);
        let wrong = told("Web!", "Web!");
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        let why =
            "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"Web!\"}}: invalid label selector";
        assert_eq!(wrong[1], why);
    }

    #[test]
    fn a_pod_has_the_zone_of_its_node() {
        let node =
            json!({"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "1", "x": "y"}}});
        let mut pod = pod("web:1");
        label_with_topology(&mut pod, Some(&node));
        assert!(at(&pod, &["metadata", "labels"]).is_null(), "it has no node yet");
        pod["spec"]["nodeName"] = json!("n");
        label_with_topology(&mut pod, Some(&node));
        assert_eq!(pod["metadata"]["labels"], json!({"topology.kubernetes.io/zone": "1"}));
    }
}
