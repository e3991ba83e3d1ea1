//! Pods. What their status is called is told by their containers rather than by their phase.

use serde_json::{Value, json};

use super::age::since;
use super::{AGE, Column, NAME, age, or_none, text_column, wide};
use crate::value::{at, list, name_of, number, text};

pub(super) fn columns() -> Vec<Column> {
    vec![
        NAME,
        text_column("Ready"),
        text_column("Status"),
        text_column("Restarts"),
        AGE,
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ]
}

pub(super) fn cells(pod: &Value) -> Vec<Value> {
    let containers = list(pod, &["status", "containerStatuses"]);
    let is_ready = |it: &&Value| it["ready"] == true && at(it, &["state", "running"]).is_object();
    let ready = containers.iter().filter(is_ready).count();
    let total = list(pod, &["spec", "containers"]).len();
    let address = match list(pod, &["status", "podIPs"]).first() {
        Some(first) => text(first, &["ip"]),
        None => text(pod, &["status", "podIP"]),
    };
    vec![
        json!(name_of(pod)),
        json!(format!("{ready}/{total}")),
        json!(status(pod)),
        json!(restarts(pod)),
        age(pod),
        json!(or_none(address)),
        json!(or_none(text(pod, &["spec", "nodeName"]))),
        json!(or_none(text(pod, &["status", "nominatedNodeName"]))),
        json!(gates(pod)),
    ]
}

fn status(pod: &Value) -> String {
    let said = match text(pod, &["status", "reason"]) {
        "" => text(pod, &["status", "phase"]),
        reason => reason,
    };
    let mut status = said.to_owned();
    let scheduled = list(pod, &["status", "conditions"]).iter().find(|it| it["type"] == "PodScheduled");
    if scheduled.is_some_and(|it| it["reason"] == "SchedulingGated") {
        status = "SchedulingGated".to_owned();
    }
    let mut runs = false;
    for container in list(pod, &["status", "containerStatuses"]).iter().rev() {
        let (waits, ended) = (at(container, &["state", "waiting"]), at(container, &["state", "terminated"]));
        if !text(waits, &["reason"]).is_empty() {
            text(waits, &["reason"]).clone_into(&mut status);
        } else if !text(ended, &["reason"]).is_empty() {
            text(ended, &["reason"]).clone_into(&mut status);
        } else if let Some(code) = number(ended, &["exitCode"]) {
            status = format!("ExitCode:{code}");
        } else if container["ready"] == true && at(container, &["state", "running"]).is_object() {
            runs = true;
        }
    }
    if status == "Completed" && runs {
        let is_ready = list(pod, &["status", "conditions"])
            .iter()
            .any(|it| it["type"] == "Ready" && it["status"] == "True");
        status = if is_ready { "Running" } else { "NotReady" }.to_owned();
    }
    let is_over = matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed");
    if at(pod, &["metadata", "deletionTimestamp"]).is_string() {
        if said == "NodeLost" {
            return "Unknown".to_owned();
        }
        if !is_over {
            return "Terminating".to_owned();
        }
    }
    status
}

fn restarts(pod: &Value) -> String {
    let containers = list(pod, &["status", "containerStatuses"]);
    let count: i64 = containers.iter().filter_map(|it| number(it, &["restartCount"])).sum();
    let ends = containers.iter().map(|it| text(it, &["lastState", "terminated", "finishedAt"]));
    match ends.filter(|time| !time.is_empty()).max() {
        Some(last) if count > 0 => format!("{count} ({} ago)", since(last)),
        _ => count.to_string(),
    }
}

fn gates(pod: &Value) -> String {
    let gates = list(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let conditions = list(pod, &["status", "conditions"]);
    let is_open = |gate: &&Value| {
        conditions.iter().any(|it| it["type"] == gate["conditionType"] && it["status"] == "True")
    };
    format!("{}/{}", gates.iter().filter(is_open).count(), gates.len())
}
