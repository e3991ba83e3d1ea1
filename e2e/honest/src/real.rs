//! A story on a real API server, led by the model so that both do the same.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sluice_k8s::convert::Selection;
use sluice_k8s::strings;
use sluice_k8s::watch::{Closed, Facts, Watches};
use sluice_k8s::write::Writer;
use sluice_model::event::Relist;
use sluice_model::kube::{Kind, ObjectRef};
use sluice_model::{Event, ObjectName, Uid};
use sluice_sim::cluster::objects::SliceRecord;
use sluice_sim::cluster::stories::{Story, UserAction, apply};
use sluice_sim::cluster::{Cluster, KubeWrite, WriteFault};
use tokio::sync::mpsc;

use crate::controller::next_write;
use crate::heard::{Incarnations, Line, Steps, line, settle};
use crate::requests::People;

/// Where the fences stand.
const FENCES: &str = "fences";
const FENCE: &str = "fence";
/// A watch that has not brought a fence by then is broken.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone)]
struct Ears(mpsc::UnboundedSender<Event>);

impl Facts for Ears {
    async fn tell(&self, event: Event) -> Result<(), Closed> {
        self.0.send(event).map_err(|_| Closed)
    }
}

/// Plays it, and gives what the engine would have been told in each step.
pub(crate) async fn play(client: Client, story: &Story) -> anyhow::Result<Steps> {
    let people = People::new(client.clone());
    people.namespace(FENCES).await?;
    for (_, action) in &story.steps {
        if let Some(namespace) = namespace_of(action) {
            people.namespace(namespace).await?;
        }
    }
    let (tell, heard) = mpsc::unbounded_channel();
    let watches = Watches::new(client.clone(), Selection { class: None });
    let watching = tokio::spawn(async move { watches.run(Ears(tell)).await });
    let mut stage = Stage {
        people,
        writer: Writer::new(client.clone(), true, "honest".to_owned()),
        client,
        model: Cluster::new(),
        twins: BTreeMap::new(),
        incarnations: Incarnations::default(),
        heard,
        fences: 0,
    };
    stage.make_fences().await?;
    stage.fence().await?;
    let mut steps = Vec::new();
    for (_, action) in &story.steps {
        steps.push(stage.step(action).await.with_context(|| action.to_string())?);
    }
    watching.abort();
    stage.clear().await?;
    Ok(settle(steps))
}

fn namespace_of(action: &UserAction) -> Option<&str> {
    match action {
        UserAction::CreateService { service, .. } => Some(&service.namespace),
        UserAction::PutSlice { slice, .. } => Some(&slice.namespace),
        UserAction::CreatePod { pod, .. } => Some(&pod.namespace),
        _ => None,
    }
}

struct Stage {
    people: People,
    writer: Writer,
    client: Client,
    /// The same story on the model: says what the controller writes and what slices look like.
    model: Cluster,
    /// The UID on the API server of each incarnation of the model.
    twins: BTreeMap<Uid, Uid>,
    incarnations: Incarnations,
    heard: mpsc::UnboundedReceiver<Event>,
    fences: u64,
}

impl Stage {
    async fn step(&mut self, action: &UserAction) -> anyhow::Result<Vec<Line>> {
        let before: BTreeMap<ObjectName, SliceRecord> = slices(&self.model);
        if apply(&mut self.model, action) {
            if let Some(uid) = self.people.act(action).await? {
                self.incarnations.made(uid);
                let twin = match action {
                    UserAction::CreateService { service, .. } => {
                        self.model.service(service).map(|it| it.meta.uid)
                    }
                    UserAction::CreatePod { pod, .. } => self.model.pod(pod).map(|it| it.meta.uid),
                    _ => None,
                };
                self.twins.extend(twin.map(|twin| (twin, uid)));
            }
            self.write_slices(action, before).await?;
        }
        let mut lines = self.fence().await?;
        while let Some(write) = next_write(&self.model) {
            let model = self.model.write(&write, WriteFault::None);
            let real = self.write(&write).await?;
            if std::mem::discriminant(&model) != std::mem::discriminant(&real) {
                bail!("{write:?} ends with {model:?} in the model and with {real:?} here");
            }
            lines.extend(self.fence().await?);
        }
        Ok(lines)
    }

    /// Slices as the model has them now; of two that change, the order is the action's.
    async fn write_slices(
        &self,
        action: &UserAction,
        before: BTreeMap<ObjectName, SliceRecord>,
    ) -> anyhow::Result<()> {
        let after = slices(&self.model);
        let mut changed: Vec<&ObjectName> =
            after.iter().filter(|(name, it)| before.get(*name) != Some(it)).map(|(name, _)| name).collect();
        if let UserAction::MoveEndpoint { from, to, add_first, .. } = action {
            changed = if *add_first { vec![to, from] } else { vec![from, to] };
        }
        for name in changed {
            let record = &after[name];
            let owner = record.owner.and_then(|uid| self.twins.get(&uid)).copied();
            let owner = record.service_label.clone().zip(owner);
            self.people.write_slice(name, record, owner).await?;
        }
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            self.people.delete_slice(name).await?;
        }
        Ok(())
    }

    async fn write(&self, write: &KubeWrite) -> anyhow::Result<sluice_model::effect::KubeOutcome> {
        let object = write.object();
        let uid = *self.twins.get(&object.uid).context("every incarnation has a twin")?;
        let object = ObjectRef { uid, name: object.name.clone() };
        Ok(match write {
            KubeWrite::AddFinalizer(_) => self.writer.add_finalizer(&object).await,
            KubeWrite::RemoveFinalizer(_) => self.writer.remove_finalizer(&object).await,
            KubeWrite::WriteStatus { ingress, retract, conditions, .. } => {
                self.writer.write_status(&object, *ingress, *retract, conditions).await
            }
        })
    }

    /// One object of each kind that is touched after every step: what a watch brings before it happened
    /// before it.
    async fn make_fences(&self) -> anyhow::Result<()> {
        let meta = json!({ "name": FENCE, "labels": { strings::EGRESS_LABEL: FENCE } });
        let post = PostParams::default();
        let service = json!({ "metadata": meta, "spec": { "ports": [{ "port": 1 }] } });
        let slice = json!({ "metadata": meta, "addressType": "IPv4", "endpoints": [] });
        let pod =
            json!({ "metadata": meta, "spec": { "containers": [{ "name": "main", "image": "fence" }] } });
        let node = json!({ "metadata": meta });
        let (services, slices, pods, nodes) = self.fences();
        if services.get_opt(FENCE).await?.is_none() {
            services.create(&post, &serde_json::from_value(service)?).await?;
            slices.create(&post, &serde_json::from_value(slice)?).await?;
            pods.create(&post, &serde_json::from_value(pod)?).await?;
            nodes.create(&post, &serde_json::from_value(node)?).await?;
        }
        Ok(())
    }

    fn fences(&self) -> (Api<Service>, Api<EndpointSlice>, Api<Pod>, Api<Node>) {
        let client = || self.client.clone();
        (
            Api::namespaced(client(), FENCES),
            Api::namespaced(client(), FENCES),
            Api::namespaced(client(), FENCES),
            Api::all(client()),
        )
    }

    /// Touches all fences, and hears until every kind has brought its own.
    async fn fence(&mut self) -> anyhow::Result<Vec<Line>> {
        self.fences += 1;
        let annotations: Value = json!({ "fence": format!("{}-{}", std::process::id(), self.fences) });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        let how = PatchParams::default();
        let (services, slices, pods, nodes) = self.fences();
        let mut waits = BTreeMap::new();
        let mut expect = |kind: Kind, version: Option<String>| -> anyhow::Result<()> {
            waits.insert(kind, version.context("a version")?.parse::<u64>()?);
            Ok(())
        };
        expect(Kind::Service, services.patch(FENCE, &how, &patch).await?.metadata.resource_version)?;
        expect(Kind::Slice, slices.patch(FENCE, &how, &patch).await?.metadata.resource_version)?;
        expect(Kind::Pod, pods.patch(FENCE, &how, &patch).await?.metadata.resource_version)?;
        expect(Kind::Node, nodes.patch(FENCE, &how, &patch).await?.metadata.resource_version)?;
        let mut lines = Vec::new();
        while !waits.is_empty() {
            let heard = tokio::time::timeout(PATIENCE, self.heard.recv()).await;
            let Some(event) = heard.with_context(|| format!("no fence of {waits:?}"))? else {
                bail!("the watches have ended");
            };
            match fence_of(&event) {
                Some((kind, version)) => {
                    waits.retain(|waiting, until| *waiting != kind || version < *until);
                }
                None => lines.extend(line(event, &self.incarnations)),
            }
        }
        Ok(lines)
    }

    /// Leaves nothing for the next story.
    async fn clear(&self) -> anyhow::Result<()> {
        let all = ListParams::default();
        let services: Api<Service> = Api::all(self.client.clone());
        let at_once = DeleteParams::default().grace_period(0);
        for service in services.list(&all).await? {
            let (namespace, name) =
                (service.metadata.namespace.unwrap_or_default(), service.metadata.name.unwrap_or_default());
            if namespace == "default" || namespace == FENCES {
                continue;
            }
            let api: Api<Service> = Api::namespaced(self.client.clone(), &namespace);
            let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
            api.patch(&name, &PatchParams::default(), &free).await?;
            // Releasing one that is being deleted ends it.
            let _ = api.delete(&name, &at_once).await;
        }
        let slices: Api<EndpointSlice> = Api::all(self.client.clone());
        for slice in slices.list(&all).await? {
            let (namespace, name) =
                (slice.metadata.namespace.unwrap_or_default(), slice.metadata.name.unwrap_or_default());
            if namespace != "default" && namespace != FENCES {
                self.people.delete_slice(&ObjectName::new(namespace, name)).await?;
            }
        }
        let pods: Api<Pod> = Api::all(self.client.clone());
        for pod in pods.list(&all).await? {
            let (namespace, name) =
                (pod.metadata.namespace.unwrap_or_default(), pod.metadata.name.unwrap_or_default());
            if namespace != FENCES {
                let api: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
                api.delete(&name, &at_once).await?;
            }
        }
        let nodes: Api<Node> = Api::all(self.client.clone());
        for node in nodes.list(&all).await? {
            let name = node.metadata.name.unwrap_or_default();
            if name != FENCE {
                nodes.delete(&name, &at_once).await?;
            }
        }
        Ok(())
    }
}

fn slices(cluster: &Cluster) -> BTreeMap<ObjectName, SliceRecord> {
    cluster.slices().map(|stored| (stored.meta.name.clone(), stored.body.clone())).collect()
}

/// Which fence an event is about, and at which version.
fn fence_of(event: &Event) -> Option<(Kind, u64)> {
    let is_fence = |name: &ObjectName| *name.namespace == *FENCES;
    match event {
        Event::ServiceApplied(it) if is_fence(&it.name) => Some((Kind::Service, it.version)),
        Event::SliceApplied(it) if is_fence(&it.name) => Some((Kind::Slice, it.version)),
        Event::PodApplied(it) if is_fence(&it.name) => Some((Kind::Pod, it.version)),
        Event::NodeApplied(it) if *it.name == *FENCE => Some((Kind::Node, it.version)),
        // The first list may be newer than the first fence.
        Event::Relisted { version, objects } => {
            let kind = match objects {
                Relist::Services(_) => Kind::Service,
                Relist::Slices(_) => Kind::Slice,
                Relist::Nodes(_) => Kind::Node,
                Relist::Pods(_) => Kind::Pod,
            };
            Some((kind, *version))
        }
        _ => None,
    }
}
