//! What must be right in the spec of a pod, wherever it stands.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::LISTS_OF_CONTAINERS;
use crate::kinds::metadata::labels;
use crate::kinds::words::{label_1123, port_name, port_number, subdomain_1123};
use crate::refusal::Cause;
use crate::value::{at, list, number, text};

/// Everything that is wrong with a spec.
pub(super) fn check_spec(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    volumes(field, spec, causes);
    if list(spec, &["containers"]).is_empty() {
        causes.push(Cause::required(format!("{field}.containers"), ""));
    }
    for name in LISTS_OF_CONTAINERS {
        let mut seen = BTreeSet::new();
        for (index, container) in list(spec, &[name]).iter().enumerate() {
            check_container(&format!("{field}.{name}[{index}]"), spec, container, &mut seen, causes);
        }
    }
    one_of(field, spec, "restartPolicy", &["Always", "OnFailure", "Never"], causes);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(field, spec, "dnsPolicy", &policies, causes);
    labels(&format!("{field}.nodeSelector"), at(spec, &["nodeSelector"]), causes);
    for name in ["serviceAccountName", "nodeName"] {
        let value = text(spec, &[name]);
        if !value.is_empty() {
            let problems = subdomain_1123(value);
            let place = format!("{field}.{name}");
            causes.extend(problems.iter().map(|why| Cause::invalid(&*place, &json!(value), why)));
        }
    }
    if let Some(seconds) = number(spec, &["activeDeadlineSeconds"])
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        causes.push(Cause::invalid(format!("{field}.activeDeadlineSeconds"), &json!(seconds), why));
    }
}

fn one_of(field: &str, of: &Value, name: &str, supported: &[&str], causes: &mut Vec<Cause>) {
    let value = at(of, &[name]);
    if value.as_str().is_some_and(|it| !supported.contains(&it)) {
        causes.push(Cause::unsupported(format!("{field}.{name}"), value, supported));
    }
}

fn volumes(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, volume) in list(spec, &["volumes"]).iter().enumerate() {
        let name = text(volume, &["name"]);
        let place = format!("{field}.volumes[{index}].name");
        if name.is_empty() {
            causes.push(Cause::required(place, ""));
            continue;
        }
        let problems = label_1123(name);
        causes.extend(problems.iter().map(|why| Cause::invalid(&*place, &json!(name), why)));
        if problems.is_empty() && !seen.insert(name) {
            causes.push(Cause::duplicate(place, &json!(name)));
        }
    }
}

fn check_container<'a>(
    field: &str,
    spec: &Value,
    container: &'a Value,
    seen: &mut BTreeSet<&'a str>,
    causes: &mut Vec<Cause>,
) {
    let name = text(container, &["name"]);
    let place = format!("{field}.name");
    if name.is_empty() {
        causes.push(Cause::required(&*place, ""));
    } else {
        causes.extend(label_1123(name).iter().map(|why| Cause::invalid(&*place, &json!(name), why)));
        if !seen.insert(name) {
            causes.push(Cause::duplicate(place, &json!(name)));
        }
    }
    let image = text(container, &["image"]);
    if image.is_empty() {
        causes.push(Cause::required(format!("{field}.image"), ""));
    } else if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        causes.push(Cause::invalid(format!("{field}.image"), &json!(image), why));
    }
    let policies = ["File", "FallbackToLogsOnError"];
    one_of(field, container, "terminationMessagePolicy", &policies, causes);
    ports(field, container, causes);
    variables(field, container, causes);
    mounts(field, spec, container, causes);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = at(container, &[name]);
        let has_handler = ["exec", "httpGet", "tcpSocket", "grpc"].iter().any(|it| probe.get(it).is_some());
        if probe.is_object() && !has_handler {
            causes.push(Cause::required(format!("{field}.{name}"), "must specify a handler type"));
        }
    }
    one_of(field, container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], causes);
}

fn ports(field: &str, container: &Value, causes: &mut Vec<Cause>) {
    let mut names = BTreeSet::new();
    for (index, port) in list(container, &["ports"]).iter().enumerate() {
        let place = |name: &str| format!("{field}.ports[{index}].{name}");
        let name = text(port, &["name"]);
        if !name.is_empty() {
            let problems = port_name(name);
            causes.extend(problems.iter().map(|why| Cause::invalid(place("name"), &json!(name), why)));
            if problems.is_empty() && !names.insert(name) {
                causes.push(Cause::duplicate(place("name"), &json!(name)));
            }
        }
        match number(port, &["containerPort"]).unwrap_or(0) {
            0 => causes.push(Cause::required(place("containerPort"), "")),
            own => {
                if let Some(why) = port_number(own) {
                    causes.push(Cause::invalid(place("containerPort"), &json!(own), why));
                }
            }
        }
        let place = format!("{field}.ports[{index}]");
        one_of(&place, port, "protocol", &["SCTP", "TCP", "UDP"], causes);
    }
}

fn variables(field: &str, container: &Value, causes: &mut Vec<Cause>) {
    for (index, variable) in list(container, &["env"]).iter().enumerate() {
        let name = text(variable, &["name"]);
        let place = format!("{field}.env[{index}].name");
        if name.is_empty() {
            causes.push(Cause::required(place, ""));
        } else if !name.chars().all(|sign| (' '..='~').contains(&sign) && sign != '=') {
            let why = "a valid environment variable name must consist only of printable ASCII characters \
                       other than '='";
            causes.push(Cause::invalid(place, &json!(name), why));
        }
    }
}

fn mounts(field: &str, spec: &Value, container: &Value, causes: &mut Vec<Cause>) {
    for (index, mount) in list(container, &["volumeMounts"]).iter().enumerate() {
        let place = |name: &str| format!("{field}.volumeMounts[{index}].{name}");
        let name = text(mount, &["name"]);
        let is_there = list(spec, &["volumes"]).iter().any(|volume| text(volume, &["name"]) == name);
        if name.is_empty() {
            causes.push(Cause::required(place("name"), ""));
        } else if !is_there {
            let message = format!("Not found: {name:?}");
            causes.push(Cause { reason: "FieldValueNotFound", field: place("name"), message });
        }
        if text(mount, &["mountPath"]).is_empty() {
            causes.push(Cause::required(place("mountPath"), ""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_refused_field_by_field_in_the_words_of_the_real_server() {
        let spec = json!({"restartPolicy": "Foo", "volumes": [{"name": "A"}], "nodeSelector": {"a b": "c"},
            "containers": [{"name": "c", "image": " x", "ports": [{"containerPort": 80, "name": "a"},
                {"containerPort": 0, "name": "a", "protocol": "X"}], "env": [{"name": "1a="}],
                "volumeMounts": [{"name": "q"}]}, {"name": "c", "image": "i"}]});
        let mut causes = Vec::new();
        check_spec("spec", &spec, &mut causes);
        let told: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message.split(": ").next().unwrap()))
            .collect();
        assert_eq!(
            told,
            [
                "spec.volumes[0].name: Invalid value",
                "spec.containers[0].image: Invalid value",
                "spec.containers[0].ports[1].name: Duplicate value",
                "spec.containers[0].ports[1].containerPort: Required value",
                "spec.containers[0].ports[1].protocol: Unsupported value",
                "spec.containers[0].env[0].name: Invalid value",
                "spec.containers[0].volumeMounts[0].name: Not found",
                "spec.containers[0].volumeMounts[0].mountPath: Required value",
                "spec.containers[1].name: Duplicate value",
                "spec.restartPolicy: Unsupported value",
                "spec.nodeSelector: Invalid value",
            ]
        );
    }
}
