//! Runs the pods that have a node: containers start, become ready, and stop, each after a short while.
//!
//! How far a pod has come is seen in the pod alone; here is only kept since when it is there. A pod that is
//! annotated `playground.sluice/ready: "false"` runs and is not ready, from that moment on.

use std::collections::{BTreeSet, HashMap};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::Settings;
use super::machine::{Change, Controller, Key, Told, Work};
use super::object::{condition, holds, is_going, key, set_condition, uid};
use crate::kinds::{Kind, NODE, POD, Sub};
use crate::store::{Deletion, Selection, Store, What};
use crate::value::{at, fields, list, name_of, now, number, object, text};

/// Whether a pod may be ready.
const READY: &str = "playground.sluice/ready";

/// How far a pod has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It has a node, and its containers are being made.
    Placed,
    /// Its image is there, and its containers start.
    Starting,
    /// It runs, and is not ready yet or should not be ready any more.
    Settling,
    /// Nothing is to be done.
    Settled,
    /// It was told to stop.
    Stopping,
    /// Its containers have stopped.
    Stopped,
    /// Its node is gone.
    Lost,
}

impl Stage {
    /// That of a pod whose node is there.
    fn of(pod: &Value) -> Stage {
        let is_running = text(pod, &["status", "phase"]) == "Running";
        if is_going(pod) {
            return if is_running && holds(pod, "Ready") { Stage::Stopping } else { Stage::Stopped };
        }
        if matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed") {
            return Stage::Settled;
        }
        if !is_running {
            let is_made = condition(pod, "Initialized").is_some();
            return if is_made { Stage::Starting } else { Stage::Placed };
        }
        if holds(pod, "Ready") == may_be_ready(pod) { Stage::Settled } else { Stage::Settling }
    }

    /// How long it stays there, in the world.
    fn lasts(self, pod: &Value) -> Duration {
        let time = match self {
            Stage::Placed | Stage::Settled => Duration::ZERO,
            Stage::Starting => Duration::from_millis(1200),
            Stage::Settling if may_be_ready(pod) => Duration::from_millis(800),
            Stage::Settling => Duration::ZERO,
            Stage::Stopping => Duration::from_millis(1500),
            Stage::Stopped => Duration::from_millis(300),
            // Nobody stops it, and a node that is away for a moment keeps its pods.
            Stage::Lost if is_going(pod) => Duration::ZERO,
            Stage::Lost => Duration::from_secs(40),
        };
        let grace = number(pod, &["metadata", "deletionGracePeriodSeconds"]);
        match grace.and_then(|seconds| u64::try_from(seconds).ok()) {
            Some(seconds) if is_going(pod) => time.min(Duration::from_secs(seconds)),
            _ => time,
        }
    }
}

fn may_be_ready(pod: &Value) -> bool {
    text(pod, &["metadata", "annotations", READY]) != "false"
}

pub(super) struct Kubelet {
    settings: Settings,
    /// Since when a pod is where it is.
    since: HashMap<Key, (String, Stage, Instant)>,
    /// The number of the address that a node gave last, so that none is given twice in a row.
    given: HashMap<String, u32>,
}

impl Kubelet {
    pub(super) fn new(settings: Settings) -> Kubelet {
        Kubelet { settings, since: HashMap::new(), given: HashMap::new() }
    }

    /// How long the pod is at this stage.
    fn waited(&mut self, key: &Key, pod: &Value, stage: Stage) -> Duration {
        let now = Instant::now();
        let known = self.since.get(key).filter(|(id, at, _)| id == uid(pod) && *at == stage).map(|it| it.2);
        let since = known.unwrap_or(now);
        self.since.insert(key.clone(), (uid(pod).to_owned(), stage, since));
        now - since
    }

    fn addresses(&mut self, store: &Store, pod: &Value, node: &Value) -> Option<Vec<String>> {
        if at(pod, &["spec", "hostNetwork"]) == true {
            return Some(node_addresses(node));
        }
        let node_name = text(node, &["metadata", "name"]).to_owned();
        let here = store.list(&POD, None, &Selection::on_node(&node_name)).items;
        let taken: BTreeSet<&str> =
            here.iter().flat_map(|it| list(it, &["status", "podIPs"])).map(|it| text(it, &["ip"])).collect();
        let cidrs: Vec<&str> = list(node, &["spec", "podCIDRs"]).iter().filter_map(Value::as_str).collect();
        let last = self.given.entry(node_name).or_default();
        let found = (0..ROOM).map(|step| (*last + step) % ROOM + FIRST).find_map(|number| {
            let addresses: Option<Vec<String>> = cidrs.iter().map(|cidr| address(cidr, number)).collect();
            let is_free =
                |all: &Vec<String>| !all.is_empty() && !all.iter().any(|it| taken.contains(it.as_str()));
            addresses.filter(is_free).map(|addresses| (number, addresses))
        });
        let (number, addresses) = found?;
        *last = number - FIRST + 1;
        Some(addresses)
    }
}

/// The first address of a node's range that a pod may have, and how many there are.
const FIRST: u32 = 2;
const ROOM: u32 = 253;

/// The address with a number in a range.
fn address(cidr: &str, number: u32) -> Option<String> {
    let (base, _) = cidr.split_once('/')?;
    if let Ok(base) = base.parse::<Ipv4Addr>() {
        return u32::from(base).checked_add(number).map(|it| Ipv4Addr::from(it).to_string());
    }
    let base = base.parse::<Ipv6Addr>().ok()?;
    u128::from(base).checked_add(u128::from(number)).map(|it| Ipv6Addr::from(it).to_string())
}

fn node_addresses(node: &Value) -> Vec<String> {
    let internal = list(node, &["status", "addresses"]).iter().filter(|it| it["type"] == "InternalIP");
    internal.map(|it| text(it, &["address"]).to_owned()).collect()
}

impl Controller for Kubelet {
    const NAME: &'static str = "kubelet";

    fn follows(&self) -> Vec<&'static Kind> {
        vec![&POD, &NODE]
    }

    fn concerns(&mut self, store: &Store, kind: &'static Kind, what: What, object: &Value) -> Vec<Key> {
        if *kind == NODE {
            let pods = store.list(&POD, None, &Selection::on_node(name_of(object))).items;
            // Only that it comes or goes says something to its pods.
            return match what {
                What::Modified => Vec::new(),
                What::Added | What::Deleted => pods.iter().map(|pod| key(pod)).collect(),
            };
        }
        if what == What::Deleted {
            self.since.remove(&key(object));
            return Vec::new();
        }
        if text(object, &["spec", "nodeName"]).is_empty() { Vec::new() } else { vec![key(object)] }
    }

    fn look(&mut self, store: &Store, place: &Key) -> Work {
        let Ok(pod) = store.get(&POD, &place.0, &place.1) else { return Work::default() };
        let node = store.get(&NODE, "", text(&pod, &["spec", "nodeName"]));
        let stage = if node.is_ok() { Stage::of(&pod) } else { Stage::Lost };
        let node = node.unwrap_or_default();
        let waited = self.waited(place, &pod, stage);
        let lasts = self.settings.paced(stage.lasts(&pod));
        if let Some(rest) = lasts.checked_sub(waited).filter(|rest| !rest.is_zero()) {
            return Work { changes: Vec::new(), again: Some(rest) };
        }
        let addresses = match stage {
            Stage::Starting => self.addresses(store, &pod, &node),
            _ => None,
        };
        if stage == Stage::Starting && addresses.is_none() {
            let message = format!("no address is free on {}", place.1);
            let told = Told { is_warning: true, ..Told::of(&pod, "FailedCreatePodSandBox", message) };
            let again = Some(self.settings.paced(Duration::from_secs(5)));
            return Work { changes: vec![Change::Tell(told)], again };
        }
        reconcile(&View { pod, node, addresses: addresses.unwrap_or_default() }, stage).into()
    }
}

struct View {
    pod: Arc<Value>,
    node: Arc<Value>,
    /// Those that it gets, if it starts.
    addresses: Vec<String>,
}

/// What a pod does at the end of a stage.
fn reconcile(view: &View, stage: Stage) -> Vec<Change> {
    let mut pod = (*view.pod).clone();
    let mut told = Vec::new();
    match stage {
        Stage::Settled => return Vec::new(),
        Stage::Stopped | Stage::Lost => {
            let deletion = Deletion::at_once();
            return vec![Change::Delete { kind: &POD, object: view.pod.clone(), deletion }];
        }
        Stage::Placed => {
            let host = node_addresses(&view.node);
            let status = object(&mut pod, "status");
            status["hostIP"] = json!(host.first());
            status["hostIPs"] = host.iter().map(|ip| json!({"ip": ip})).collect();
            status["startTime"] = json!(now());
            conditions(status, &[("PodReadyToStartContainers", false), ("Initialized", true)], "");
            conditions(status, &[("Ready", false), ("ContainersReady", false)], "ContainersNotReady");
            containers(&mut pod, &|_| json!({"waiting": {"reason": "ContainerCreating"}}), false);
        }
        Stage::Starting => {
            let status = object(&mut pod, "status");
            status["phase"] = json!("Running");
            status["podIP"] = json!(view.addresses.first());
            status["podIPs"] = view.addresses.iter().map(|ip| json!({"ip": ip})).collect();
            conditions(status, &[("PodReadyToStartContainers", true)], "");
            containers(&mut pod, &|_| json!({"running": {"startedAt": now()}}), false);
            for container in list(&view.pod, &["spec", "containers"]) {
                let (name, image) = (text(container, &["name"]), text(container, &["image"]));
                let pulled = format!("Container image \"{image}\" already present on machine");
                told.push(Told::of(&view.pod, "Pulled", pulled));
                told.push(Told::of(&view.pod, "Created", format!("Created container: {name}")));
                told.push(Told::of(&view.pod, "Started", format!("Started container {name}")));
            }
        }
        Stage::Settling => {
            let ready = may_be_ready(&view.pod);
            let why = if ready { "" } else { "ContainersNotReady" };
            let status = object(&mut pod, "status");
            conditions(status, &[("Ready", ready), ("ContainersReady", ready)], why);
            each_container(&mut pod, |container| container["ready"] = json!(ready));
            if !ready {
                let message = "Readiness probe failed: the pod says that it is not ready";
                told.push(Told { is_warning: true, ..Told::of(&view.pod, "Unhealthy", message) });
            }
        }
        Stage::Stopping => {
            let status = object(&mut pod, "status");
            conditions(status, &[("Ready", false), ("ContainersReady", false)], "ContainersNotReady");
            each_container(&mut pod, |container| {
                let started = at(container, &["state", "running", "startedAt"]).clone();
                container["ready"] = json!(false);
                container["started"] = json!(false);
                container["state"] = json!({"terminated": {"exitCode": 0, "reason": "Completed",
                    "startedAt": started, "finishedAt": now()}});
            });
            for container in list(&view.pod, &["spec", "containers"]) {
                let message = format!("Stopping container {}", text(container, &["name"]));
                told.push(Told::of(&view.pod, "Killing", message));
            }
        }
    }
    let mut changes = vec![Change::Put { kind: &POD, sub: Some(Sub::Status), object: pod }];
    changes.extend(told.into_iter().map(Change::Tell));
    changes
}

fn conditions(status: &mut Value, all: &[(&str, bool)], reason: &str) {
    for (kind, is) in all {
        let mut told = json!({"type": kind, "status": if *is { "True" } else { "False" }});
        if !reason.is_empty() {
            told["reason"] = json!(reason);
        }
        set_condition(status, told);
    }
}

/// Writes the status of every container anew.
fn containers(pod: &mut Value, state: &dyn Fn(&Value) -> Value, ready: bool) {
    let is_running = |state: &Value| state.get("running").is_some();
    let told: Vec<Value> = list(pod, &["spec", "containers"])
        .iter()
        .map(|container| {
            let state = state(container);
            let image = text(container, &["image"]);
            let id = if is_running(&state) {
                format!("playground://{}", uuid::Uuid::new_v4().simple())
            } else {
                String::new()
            };
            json!({
                "name": container["name"], "image": image,
                "imageID": if id.is_empty() { "" } else { image }, "containerID": id,
                "lastState": {}, "ready": ready, "restartCount": 0, "started": is_running(&state),
                "state": state,
            })
        })
        .collect();
    fields(object(pod, "status")).insert("containerStatuses".to_owned(), Value::Array(told));
}

fn each_container(pod: &mut Value, mut change: impl FnMut(&mut Value)) {
    let told = object(pod, "status").get_mut("containerStatuses").and_then(Value::as_array_mut);
    told.into_iter().flatten().for_each(&mut change);
}

#[cfg(test)]
mod tests;
