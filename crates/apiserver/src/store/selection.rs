//! Which objects a list or a watch wants: label selectors and field selectors.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::{Kind, NEW_EVENT};
use crate::refusal::Refusal;
use crate::value::{at, text};

/// The one field with a place in the index.
const NODE_NAME: &str = "spec.nodeName";

/// The terms of an object in the index: each label with its value, and the node of a pod.
pub(super) fn terms(object: &Value) -> BTreeSet<String> {
    let labels = at(object, &["metadata", "labels"]).as_object().into_iter().flatten();
    let mut terms: BTreeSet<String> =
        labels.map(|(key, value)| label_term(key, value.as_str().unwrap_or(""))).collect();
    let node = text(object, &["spec", "nodeName"]);
    if !node.is_empty() {
        terms.insert(node_term(node));
    }
    terms
}

fn label_term(key: &str, value: &str) -> String {
    format!("{key}={value}")
}

fn node_term(node: &str) -> String {
    // No label begins so.
    format!("@{node}")
}

/// One demand on a label.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Demand {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

/// What is wanted. The default is everything.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    labels: Vec<Demand>,
    /// Path, whether it must be equal, and to what.
    fields: Vec<(String, bool, String)>,
}

impl Selection {
    /// Reads both selectors as they stand in a query.
    pub fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Selection, Refusal> {
        Ok(Selection { labels: parse_labels(labels)?, fields: parse_fields(kind, fields)? })
    }

    /// Everything with these labels.
    pub fn labels(labels: &str) -> Result<Selection, Refusal> {
        Ok(Selection { labels: parse_labels(labels)?, fields: Vec::new() })
    }

    /// The selector of a Deployment or a ReplicaSet.
    pub fn of_label_selector(selector: &Value) -> Selection {
        let mut labels = Vec::new();
        for (key, value) in at(selector, &["matchLabels"]).as_object().into_iter().flatten() {
            labels.push(Demand::In(key.clone(), vec![value.as_str().unwrap_or("").to_owned()]));
        }
        for rule in at(selector, &["matchExpressions"]).as_array().into_iter().flatten() {
            let key = text(rule, &["key"]).to_owned();
            let values = at(rule, &["values"]).as_array().into_iter().flatten();
            let values = values.filter_map(|it| it.as_str().map(ToOwned::to_owned)).collect();
            labels.push(match text(rule, &["operator"]) {
                "In" => Demand::In(key, values),
                "NotIn" => Demand::NotIn(key, values),
                "Exists" => Demand::Exists(key),
                _ => Demand::Missing(key),
            });
        }
        Selection { labels, fields: Vec::new() }
    }

    /// The pods of a node.
    pub fn on_node(node: &str) -> Selection {
        Selection { labels: Vec::new(), fields: vec![(NODE_NAME.to_owned(), true, node.to_owned())] }
    }

    /// A term that every object has which can match, and whether it says all.
    pub(super) fn term(&self) -> Option<(String, bool)> {
        let is_all = self.labels.len() + self.fields.len() == 1;
        let label = self.labels.iter().find_map(|demand| match demand {
            Demand::In(key, values) => match values.as_slice() {
                [value] => Some(label_term(key, value)),
                _ => None,
            },
            _ => None,
        });
        let node = || {
            let named = self
                .fields
                .iter()
                .find(|(path, equal, node)| path == NODE_NAME && *equal && !node.is_empty());
            named.map(|(_, _, node)| node_term(node))
        };
        label.or_else(node).map(|term| (term, is_all))
    }

    /// Whether it wants everything.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The name, if only an object of this name can match.
    pub fn only_name(&self) -> Option<&str> {
        let named = self.fields.iter().find(|(path, equal, _)| path == "metadata.name" && *equal);
        named.map(|(_, _, name)| name.as_str())
    }

    /// Whether an object is wanted.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = at(object, &["metadata", "labels"]);
        self.labels.iter().all(|demand| demand.holds(labels))
            && self.fields.iter().all(|(path, equal, wanted)| (field(object, path) == *wanted) == *equal)
    }

    /// Whether labels alone are wanted.
    pub fn matches_labels(&self, labels: &Value) -> bool {
        self.labels.iter().all(|demand| demand.holds(labels))
    }
}

impl Demand {
    fn holds(&self, labels: &Value) -> bool {
        let value = |key: &str| labels.get(key).and_then(Value::as_str);
        match self {
            Demand::In(key, wanted) => value(key).is_some_and(|it| wanted.iter().any(|one| one == it)),
            Demand::NotIn(key, unwanted) => value(key).is_none_or(|it| unwanted.iter().all(|one| one != it)),
            Demand::Exists(key) => value(key).is_some(),
            Demand::Missing(key) => value(key).is_none(),
        }
    }
}

/// The value of a field as a field selector sees it.
fn field(object: &Value, path: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    match at(object, &parts) {
        Value::String(text) => text.clone(),
        Value::Null => match path {
            "spec.unschedulable" | "spec.hostNetwork" => "false".to_owned(),
            "source" | "reportingComponent" => text(object, &["source", "component"]).to_owned(),
            _ => String::new(),
        },
        Value::Object(_) if path == "source" => text(object, &["source", "component"]).to_owned(),
        other => other.to_string(),
    }
}

fn parse_labels(selector: &str) -> Result<Vec<Demand>, Refusal> {
    let wrong = |why: String| Refusal::bad_request(format!("unable to parse requirement: {why}"));
    let mut demands = Vec::new();
    for part in split_outside_parentheses(selector) {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let demand = if let Some(key) = part.strip_prefix('!') {
            Demand::Missing(key.trim().to_owned())
        } else if let Some((key, value)) = part.split_once("!=") {
            Demand::NotIn(key.trim().to_owned(), vec![value.trim().to_owned()])
        } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            Demand::In(key.trim().to_owned(), vec![value.trim().to_owned()])
        } else if let Some((head, values)) = part.split_once('(') {
            let values =
                values.strip_suffix(')').ok_or_else(|| wrong(format!("found '{part}', expected: ')'")))?;
            let values = values.split(',').map(|it| it.trim().to_owned()).collect();
            match head.split_whitespace().collect::<Vec<_>>().as_slice() {
                [key, "in"] => Demand::In((*key).to_owned(), values),
                [key, "notin"] => Demand::NotIn((*key).to_owned(), values),
                _ => return Err(wrong(format!("found '{head}', expected: in, notin"))),
            }
        } else {
            Demand::Exists(part.to_owned())
        };
        let (Demand::In(key, _) | Demand::NotIn(key, _) | Demand::Exists(key) | Demand::Missing(key)) =
            &demand;
        if let Some(second) = key.split_whitespace().nth(1) {
            return Err(wrong(format!("found '{second}', expected: in, notin, =, ==, !=, gt, lt")));
        }
        if key.is_empty() {
            return Err(wrong(format!("found '{part}', expected: !, identifier, or 'end of string'")));
        }
        demands.push(demand);
    }
    Ok(demands)
}

fn split_outside_parentheses(selector: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0u32, 0);
    for (index, sign) in selector.char_indices() {
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&selector[begin..index]);
                begin = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&selector[begin..]);
    parts
}

fn parse_fields(kind: &Kind, selector: &str) -> Result<Vec<(String, bool, String)>, Refusal> {
    let mut fields = Vec::new();
    for part in selector.split(',').filter(|part| !part.is_empty()) {
        let (path, equal, value) = if let Some((path, value)) = part.split_once("!=") {
            (path, false, value)
        } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            (path, true, value)
        } else {
            return Err(Refusal::bad_request(format!("invalid field selector: \"{part}\"")));
        };
        let is_known = path == "metadata.name"
            || (path == "metadata.namespace" && kind.namespaced)
            || kind.selectable.contains(&path);
        if !is_known {
            let why = if kind.selectable.is_empty() {
                format!(
                    "\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            } else {
                format!("field label not supported: {path}")
            };
            return Err(Refusal::bad_request(why));
        }
        fields.push((stored_path(kind, path), equal, value.to_owned()));
    }
    Ok(fields)
}

/// Where a field is in what is stored: events have one shape there and two names.
fn stored_path(kind: &Kind, path: &str) -> String {
    if *kind != NEW_EVENT {
        return path.to_owned();
    }
    match path.split_once('.') {
        Some(("regarding", rest)) => format!("involvedObject.{rest}"),
        None if path == "reportingController" => "reportingComponent".to_owned(),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::{EVENT, NODE, POD};

    fn selects(labels: &str, fields: &str, object: &Value) -> bool {
        Selection::parse(&POD, labels, fields).unwrap().matches(object)
    }

    #[test]
    fn every_form_of_a_label_selector_selects_as_kubectl_means_it() {
        let pod = json!({"metadata": {"name": "a", "labels": {"app": "web", "tier": "front"}}});
        for (selector, expected) in [
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (api, web)", true),
            ("app notin (api,web),tier", false),
            ("!other", true),
            ("tier", true),
            ("!tier", false),
        ] {
            assert_eq!(selects(selector, "", &pod), expected, "{selector}");
        }
        assert!(Selection::labels("app in (a").is_err());
        assert!(Selection::labels("a b").is_err());
    }

    #[test]
    fn each_group_of_events_is_selected_in_its_own_words() {
        let stored = json!({"involvedObject": {"name": "p"}, "reportingComponent": "c", "reason": "r"});
        let selects = |kind, fields| Selection::parse(kind, "", fields).map(|it| it.matches(&stored));
        assert_eq!(selects(&NEW_EVENT, "regarding.name=p,reportingController=c,reason=r"), Ok(true));
        assert_eq!(selects(&NEW_EVENT, "regarding.name=q"), Ok(false));
        assert_eq!(selects(&NEW_EVENT, "reportingController=d"), Ok(false));
        assert_eq!(selects(&EVENT, "involvedObject.name=p,reportingComponent=c"), Ok(true));
        for (kind, fields) in [(&NEW_EVENT, "involvedObject.name=p"), (&EVENT, "regarding.name=p")] {
            assert_eq!(selects(kind, fields).unwrap_err().code, 400, "{fields}");
        }
    }

    #[test]
    fn a_field_that_cannot_be_selected_by_is_refused_with_its_name() {
        let refusal = Selection::parse(&POD, "", "spec.foo=1").unwrap_err();
        assert!(refusal.message.ends_with("field label not supported: spec.foo"), "{refusal}");
        let pod =
            json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}});
        assert!(selects("", "spec.nodeName=n1,status.phase!=Failed", &pod));
        assert!(!selects("", "spec.nodeName=n2", &pod));
        assert!(Selection::parse(&NODE, "", "spec.unschedulable=false").unwrap().matches(&json!({})));
        assert!(Selection::parse(&NODE, "", "metadata.namespace=x").is_err());
    }
}
