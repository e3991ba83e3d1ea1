//! What a baseline consists of, as files and in memory.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{CREATED, NAMESPACE};

const OBJECTS: &str = "objects.json";
const JOURNAL: &str = "azure.journal";
const AZURE: &str = "azure.json";
const STATES: &str = "states.json";
/// Where the controller ends that starts from here.
pub(super) const END: &str = "end.json";
/// What the emulator of a scene calls its state file.
pub(super) const JOURNAL_OF_A_SCENE: &str = "azure.journal";

/// The state of each Service and egress.
pub(super) type States = BTreeMap<String, String>;

/// One baseline.
#[derive(Clone, Debug)]
pub(super) struct Baseline {
    /// The Kubernetes objects, in the order in which they can be made.
    pub(super) objects: Vec<Value>,
    /// The emulator's state file.
    pub(super) journal: String,
    /// The state that it shows.
    pub(super) azure: Value,
    /// What the controller said.
    pub(super) states: States,
}

impl Baseline {
    /// Reads one.
    pub(super) fn read(folder: &Path) -> Result<Baseline> {
        let list: Value = read_json(&folder.join(OBJECTS))?;
        Ok(Baseline {
            objects: list["items"].as_array().context("the objects are no list")?.clone(),
            journal: read(&folder.join(JOURNAL))?,
            azure: read_json(&folder.join(AZURE))?,
            states: read_json(&folder.join(STATES))?,
        })
    }

    /// Writes it.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        let list = json!({"apiVersion": "v1", "kind": "List", "items": self.objects});
        write_json(&folder.join(OBJECTS), &list)?;
        std::fs::write(folder.join(JOURNAL), &self.journal)?;
        write_json(&folder.join(AZURE), &self.azure)?;
        write_json(&folder.join(STATES), &self.states)
    }

    /// The same with the UIDs that its Services have on an API server: names in Azure are made of them.
    pub(super) async fn with_uids_of(&self, client: &Client) -> Result<Baseline> {
        let services = Api::<Service>::namespaced(client.clone(), NAMESPACE);
        let mut loaded = self.clone();
        let (mut objects, mut azure) = (serde_json::to_string(&self.objects)?, self.azure.to_string());
        for (name, old) in self.uids() {
            let new = services.get(&name).await?.metadata.uid.context("the API server gives no UID")?;
            for text in [&mut objects, &mut loaded.journal, &mut azure] {
                *text = text.replace(&old, &new);
            }
        }
        loaded.objects = serde_json::from_str(&objects)?;
        loaded.azure = serde_json::from_str(&azure)?;
        Ok(loaded)
    }

    /// Names and UIDs of its Services.
    pub(super) fn uids(&self) -> Vec<(String, String)> {
        let services = self.objects.iter().filter(|it| it["kind"] == "Service");
        let word = |it: &Value, name: &str| it["metadata"][name].as_str().unwrap_or_default().to_string();
        services.map(|it| (word(it, "name"), word(it, "uid"))).collect()
    }

    /// The names in Azure of what was in sync, and its addresses in quotation marks, as requests would have them.
    pub(super) fn in_sync(&self) -> Vec<String> {
        let uids: BTreeMap<String, String> = self.uids().into_iter().collect();
        let settled = self.states.iter().filter(|(_, state)| *state == CREATED);
        let mut names: Vec<String> = settled
            .filter_map(|(title, _)| match title.strip_prefix(&format!("service/{NAMESPACE}/")) {
                Some(name) => uids.get(name).cloned(),
                None => title.strip_prefix("egress/").map(str::to_string),
            })
            .collect();
        let gateways = self.azure["serviceGateways"].as_array().into_iter().flatten();
        let locations = gateways.flat_map(|it| it["addressLocations"].as_array().into_iter().flatten());
        let addresses = locations.flat_map(|it| it["addresses"].as_array().into_iter().flatten());
        let is_settled = |it: &&Value| {
            let mut services = it["services"].as_array().into_iter().flatten();
            services.any(|name| name.as_str().is_some_and(|name| names.iter().any(|it| it == name)))
        };
        let own: Vec<String> = addresses.filter(is_settled).map(|it| it["address"].to_string()).collect();
        names.extend(own);
        names
    }
}

/// The states out of the JSON of `sluice status`.
pub(super) fn states(shown: &Value) -> Result<States> {
    let mut states = States::new();
    let services = shown["services"].as_array().context("`sluice status` shows no services")?;
    let egresses = shown["egresses"].as_array().context("`sluice status` shows no egresses")?;
    for it in services.iter().chain(egresses) {
        let word = |name: &str| it[name].as_str().unwrap_or("-");
        let title = match it.get("uid") {
            Some(_) => format!("service/{}/{}", word("namespace"), word("name")),
            None => format!("egress/{}", word("name")),
        };
        states.insert(title, word("state").to_string());
    }
    Ok(states)
}

/// Reads a file of JSON.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_str(&read(path)?).with_context(|| format!("{} cannot be read", path.display()))
}

/// Writes a file of JSON.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}
