//! Deployments and replica sets: defaults, and what must be right.

use serde_json::{Value, json};

use super::pod;
use crate::refusal::Cause;
use crate::value::{at, default_to, number, object, text};

/// What the writer of a deployment left out.
pub(super) fn default_deployment(deployment: &mut Value) {
    let spec = object(deployment, "spec");
    default_to(spec, "replicas", 1);
    default_to(spec, "revisionHistoryLimit", 10);
    default_to(spec, "progressDeadlineSeconds", 600);
    let strategy = object(spec, "strategy");
    default_to(strategy, "type", "RollingUpdate");
    if text(strategy, &["type"]) == "RollingUpdate" {
        let rolling = object(strategy, "rollingUpdate");
        default_to(rolling, "maxSurge", "25%");
        default_to(rolling, "maxUnavailable", "25%");
    }
    default_template(spec);
}

/// What the writer of a replica set left out.
pub(super) fn default_replica_set(set: &mut Value) {
    let spec = object(set, "spec");
    default_to(spec, "replicas", 1);
    default_template(spec);
    default_to(object(set, "status"), "replicas", 0);
}

fn default_template(spec: &mut Value) {
    let template = object(spec, "template");
    object(template, "metadata");
    pod::default_spec(object(template, "spec"));
}

/// Everything that is wrong with a deployment.
pub(super) fn check_deployment(deployment: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = check(deployment, old);
    let spec = at(deployment, &["spec"]);
    let strategy = at(spec, &["strategy", "type"]);
    if !["Recreate", "RollingUpdate"].contains(&strategy.as_str().unwrap_or("")) {
        causes.push(Cause::unsupported("spec.strategy.type", strategy, &["Recreate", "RollingUpdate"]));
    }
    let rolling = at(spec, &["strategy", "rollingUpdate"]);
    for name in ["maxUnavailable", "maxSurge"] {
        let value = at(rolling, &[name]);
        if let Some(why) = wrong_pace(value) {
            causes.push(Cause::invalid(format!("spec.strategy.rollingUpdate.{name}"), value, why));
        }
    }
    let is_none = |field: &str| {
        let value = at(rolling, &[field]);
        *value == json!(0) || value == "0%"
    };
    if is_none("maxSurge") && is_none("maxUnavailable") {
        let field = "spec.strategy.rollingUpdate.maxUnavailable";
        let why = "may not be 0 when `maxSurge` is 0";
        causes.push(Cause::invalid(field, at(rolling, &["maxUnavailable"]), why));
    }
    let unavailable = at(rolling, &["maxUnavailable"]);
    if percentage(unavailable).is_some_and(|share| share > 100) {
        let field = "spec.strategy.rollingUpdate.maxUnavailable";
        causes.push(Cause::invalid(field, unavailable, "must not be greater than 100%"));
    }
    if strategy == "Recreate" && !at(spec, &["strategy", "rollingUpdate"]).is_null() {
        let why = "may not be specified when strategy `type` is 'Recreate'";
        causes.push(Cause::forbidden("spec.strategy.rollingUpdate", why));
    }
    let deadline = number(spec, &["progressDeadlineSeconds"]).unwrap_or(600);
    if deadline <= number(spec, &["minReadySeconds"]).unwrap_or(0) {
        let why = "must be greater than minReadySeconds";
        causes.push(Cause::invalid("spec.progressDeadlineSeconds", &json!(deadline), why));
    }
    causes
}

/// What is wrong with a number or percentage of pods.
fn wrong_pace(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => None,
        Value::String(_) if percentage(value).is_some() => None,
        Value::String(_) => Some(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
             regex used for validation is '[0-9]+%')",
        ),
        _ => match value.as_i64() {
            Some(number) if number < 0 => Some("must be greater than or equal to 0"),
            Some(number) if number > i64::from(i32::MAX) => Some("must be less than or equal to 2147483647"),
            Some(_) => None,
            None => Some("must be an integer or percentage (e.g '5%%')"),
        },
    }
}

/// The number of a percentage; one that is too large to count is the largest.
fn percentage(value: &Value) -> Option<u64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Everything that is wrong with a replica set.
pub(super) fn check(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit"] {
        if let Some(value) = number(object, &["spec", field]).filter(|value| *value < 0) {
            let why = "must be greater than or equal to 0";
            causes.push(Cause::invalid(format!("spec.{field}"), &json!(value), why));
        }
    }
    pod::check_template(object, &mut causes);
    if let Some(old) = old {
        let (is, was) = (at(object, &["spec", "selector"]), at(old, &["spec", "selector"]));
        if is != was {
            causes.push(Cause::invalid("spec.selector", is, "field is immutable"));
        }
    }
    causes
}
