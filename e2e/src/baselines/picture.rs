//! JSON as a picture for the judge: every leaf under its path, so that a difference names the field.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Service;
use serde_json::{Map, Value, json};

use super::files::{Baseline, States};
use super::record::as_object;
pub(super) use crate::judge::Picture;

/// Fields by which an element of a list is known, the first that it has.
const KEYS: [&str; 6] = ["id", "name", "addressLocation", "address", "scope", "type"];

/// All leaves of a value. The order of a list does not count.
pub(super) fn flat(name: &str, value: &Value) -> Picture {
    let mut picture = Picture::new();
    gather(name, value, &mut picture);
    picture
}

fn gather(path: &str, value: &Value, picture: &mut Picture) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, field) in fields {
                gather(&format!("{path} {name}"), field, picture);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            let mut list: Vec<&Value> = list.iter().collect();
            // Not by its text: the order of an object's fields does not count either.
            list.sort_by_key(|it| {
                flat("", it).into_iter().map(|leaf| format!("{leaf:?}")).collect::<Vec<_>>()
            });
            for (at, it) in list.iter().enumerate() {
                let key = KEYS.iter().find_map(|key| it[*key].as_str());
                let key =
                    key.map_or_else(|| at.to_string(), |it| it.rsplit('/').next().unwrap_or(it).to_string());
                gather(&format!("{path} {key}"), it, picture);
            }
        }
        leaf => {
            picture.insert(path.to_string(), leaf.clone());
        }
    }
}

/// The state of the emulator, but for the time.
pub(super) fn of_azure(state: &Value) -> Picture {
    let mut state = state.clone();
    state.as_object_mut().map(|it| it.remove("time"));
    flat("azure", &state)
}

/// What the controller says.
pub(super) fn of_states(states: &States) -> Picture {
    states.iter().map(|(title, state)| (format!("state of {title}"), json!(state))).collect()
}

/// Where a run from a baseline has ended. Services go by their names instead of their UIDs. Times, versions and
/// addresses of public IPs that were made since then are left out: they are another in every run.
pub(super) fn of_end(
    baseline: &Baseline,
    azure: &Value,
    services: &[Service],
    states: &States,
) -> Result<Picture> {
    let objects: Map<String, Value> = services
        .iter()
        .map(|it| {
            let service = without_annotation(it.clone())?;
            Ok((it.metadata.name.clone().unwrap_or_default(), as_object(serde_json::to_value(service)?)))
        })
        .collect::<Result<_>>()?;
    let mut text = json!({"azure": azure, "service": objects}).to_string();
    for (name, uid) in baseline.uids() {
        text = text.replace(&uid, &format!("({name})"));
    }
    let old = addresses(&baseline.azure);
    for address in addresses(azure).difference(&old) {
        text = text.replace(&format!("\"{address}\""), "\"(new)\"");
    }
    let all: Value = serde_json::from_str(&text)?;
    let mut picture = of_azure(&all["azure"]);
    picture.append(&mut flat("service", &all["service"]));
    picture.retain(|path, _| !path.ends_with(" etag") && !path.ends_with(" lastTransitionTime"));
    picture.append(&mut of_states(states));
    Ok(without_wording(picture))
}

/// The Service without the annotation that version 0.1 does not write. It must name the IP in the status.
pub(super) fn without_annotation(mut service: Service) -> Result<Service> {
    let Some(annotations) = &mut service.metadata.annotations else { return Ok(service) };
    if let Some(published) = annotations.remove("sluice.dev/published-ip") {
        let status = service.status.as_ref().and_then(|it| it.load_balancer.as_ref());
        let mut ingress = status.and_then(|it| it.ingress.as_ref()).into_iter().flatten();
        let name = service.metadata.name.as_deref().unwrap_or_default();
        ensure!(
            ingress.any(|it| it.ip.as_ref() == Some(&published)),
            "the annotation of Service {name} names {published}, which its status does not show"
        );
    }
    if annotations.is_empty() {
        service.metadata.annotations = None;
    }
    Ok(service)
}

/// Of the messages of conditions only the published IP, as version 0.1 reads it there. The wording differs between
/// versions.
pub(super) fn without_wording(picture: Picture) -> Picture {
    let kept = |(path, leaf): (String, Value)| {
        if !path.contains(" conditions ") || !path.ends_with(" message") {
            return Some((path, leaf));
        }
        let (_, rest) = leaf.as_str()?.split_once("Reached at ")?;
        let address = rest.split_whitespace().next()?;
        Some((path, json!(address.strip_suffix('.').unwrap_or(address))))
    };
    picture.into_iter().filter_map(kept).collect()
}

fn addresses(azure: &Value) -> BTreeSet<String> {
    let all = azure["publicIPAddresses"].as_array().into_iter().flatten();
    all.filter_map(|it| it["ipAddress"].as_str().map(str::to_string)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::differences;

    #[test]
    fn a_difference_names_the_field_and_the_order_of_a_list_is_none() {
        let lb = |name: &str, tag: &str| json!({"id": format!("/x/{name}"), "tags": {"cluster": tag}, "rules": []});
        let state = |first: Value, second: Value, time: u64| {
            of_azure(&json!({"time": {"emulatedMs": time}, "loadBalancers": [first, second]}))
        };
        let wanted = state(lb("a", "e2e"), lb("b", "e2e"), 1);
        assert_eq!(differences(&wanted, &state(lb("b", "e2e"), lb("a", "e2e"), 2)), Vec::<String>::new());
        let rules = |list: &str| flat("rules", &serde_json::from_str(list).unwrap());
        let (one, other) = (r#"[{"a":1,"b":2},{"b":1,"a":2}]"#, r#"[{"a":2,"b":1},{"b":2,"a":1}]"#);
        assert_eq!(differences(&rules(one), &rules(other)), Vec::<String>::new());
        let lines = differences(&wanted, &state(lb("a", "e2e"), lb("b", "other"), 1));
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("azure loadBalancers b tags cluster is"), "{lines:?}");
        assert_eq!(differences(&wanted, &of_azure(&json!({"loadBalancers": [lb("a", "e2e")]}))).len(), 3);
    }

    #[test]
    fn the_annotation_must_name_an_ip_of_the_status() {
        let of = |annotation: &str| {
            let service = json!({
                "metadata": {"name": "web", "annotations": {"sluice.dev/published-ip": annotation}},
                "status": {"loadBalancer": {"ingress": [{"ip": "198.18.0.1"}]}},
            });
            without_annotation(serde_json::from_value(service).unwrap())
        };
        assert_eq!(of("198.18.0.1").unwrap().metadata.annotations, None);
        assert!(of("198.18.0.2").is_err());
    }

    #[test]
    fn of_a_message_only_the_published_ip_counts() {
        let of = |message: &str, reason: &str| {
            let condition = json!({"type": "LoadBalancerServing", "message": message, "reason": reason});
            without_wording(flat("service web", &json!({"status": {"conditions": [condition]}})))
        };
        let wanted = of("Reached at 198.18.0.1.", "Provisioned");
        let reworded = of("Reached at 198.18.0.1. In sync.", "Provisioned");
        assert_eq!(differences(&wanted, &reworded), Vec::<String>::new());
        for other in [of("Reached at 198.18.0.2.", "Provisioned"), of("In sync.", "Provisioned")] {
            assert_eq!(differences(&wanted, &other).len(), 1);
        }
        assert_eq!(differences(&wanted, &of("Reached at 198.18.0.1.", "Updating")).len(), 1);
    }
}
