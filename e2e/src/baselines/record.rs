//! Makes the baselines: plays what they are about with a controller, and writes down what is there.

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::{Value, json};

use super::files::{Baseline, States};
use super::{CREATED, Means, NAMESPACE, Which};
use crate::judge::cluster::Cluster;
use crate::scene::{Look, Scene};
use crate::world::World;
use crate::world::ports::{named_port, tcp};

/// Plays one and reads it.
pub(super) async fn play(scene: &Scene, which: Which, means: &Means) -> Result<Baseline> {
    let world = scene.other_namespace(NAMESPACE).await?;
    scene.controller().start()?;
    let states = match which {
        Which::Settled => {
            settled(scene, &world).await?;
            let states = means.states(scene).await?;
            scene.controller().stop().await?;
            states
        }
        Which::Interrupted => interrupted(scene, &world, means).await?,
    };
    scene.quiet().await?;
    let azure = scene.azure.state().await?;
    scene.azure.go_away().await?;
    if which == Which::Interrupted {
        let running = azure["operations"].as_array().map_or(0, Vec::len);
        ensure!(running == 4, "{running} of the four held operations run: {}", azure["operations"]);
    }
    let folder = scene.controller().log.with_file_name(super::files::JOURNAL_OF_A_SCENE);
    let journal = std::fs::read_to_string(folder)?;
    Ok(Baseline { objects: objects(scene).await?, journal, azure, states })
}

/// All kinds of Services and egresses, in sync.
async fn settled(scene: &Scene, world: &World) -> Result<()> {
    world.node_at("node-a", &["10.0.0.5", "fd00::5"]).await?;
    world.node_at("node-b", &["10.0.0.6", "fd00::6"]).await?;
    world.node_at("node-c", &["10.0.0.7"]).await?;
    world.pods("web", 3, &["node-a", "node-b", "node-c"]).await?;
    for (name, node, ips) in
        [("six-1", "node-a", ["10.1.9.1", "fd00:1::1"]), ("six-2", "node-b", ["10.1.9.2", "fd00:1::2"])]
    {
        world.pod(name).of("six").on(node).at(&ips).container_port("http", 8080).run().await?;
    }
    world.service("web").port(80, 8080).selecting("web").make().await?;
    world.service("ports").port(80, 8080).port(443, 8443).udp(53, 5353).selecting("web").make().await?;
    world
        .service("six")
        .port_as(named_port("http", "TCP", 80, "http"))
        .selecting("six")
        .ipv6()
        .make()
        .await?;
    world.service("empty").port(80, 8080).selecting("nobody").make().await?;
    let timeout = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
    world.service("annotated").port(80, 8080).selecting("web").annotated(timeout, "15").make().await?;
    world.service("by-hand").port(80, 8080).make().await?;
    let slice = world.slice("by-hand-1").of("by-hand").port("", 8080);
    slice.endpoint("10.1.9.11", "node-a").endpoint("10.1.9.12", "node-c").write().await?;
    world
        .service("refused")
        .port(80, 8080)
        .selecting("web")
        .with("sessionAffinity", "ClientIP")
        .make()
        .await?;
    world.egress_pods("wide", 1, 5, &["node-a", "node-b", "node-c"]).await?;
    world.pod("narrow-1").egress("narrow").on("node-a").at(&["10.1.9.21", "fd00:1::21"]).run().await?;
    scene.warned_somewhere(&["InvalidSpec", "sessionAffinity"]).await?;
    scene.judged().await
}

/// One Service in each of the six states, and an egress in sync; the controller is killed in the middle.
async fn interrupted(scene: &Scene, world: &World, means: &Means) -> Result<States> {
    world.nodes(&["node-a", "node-b"]).await?;
    for app in ["created", "updating", "draining", "deleting"] {
        world.pods(app, 2, &["node-a", "node-b"]).await?;
        world.service(app).port(80, 8080).selecting(app).make().await?;
    }
    world.egress_pods("wide", 1, 3, &["node-a", "node-b"]).await?;
    scene.settled().await?;

    let reached = async |name: &str, state: &str, target: Option<&str>| {
        let uid = world.uid_of(name).await?;
        scene
            .until(&format!("{name} is in {state}"), async || {
                let states = means.states(scene).await?;
                let is = states.get(&format!("service/{NAMESPACE}/{name}")).cloned().unwrap_or_default();
                let azure = scene.azure.state().await?;
                let mut running = azure["operations"].as_array().into_iter().flatten();
                let end = target.map(|it| it.replace("UID", &uid));
                let runs = end.is_none_or(|end| {
                    running.any(|it| it["target"].as_str().is_some_and(|it| it.ends_with(&end)))
                });
                Ok(if is == state && runs {
                    Look::Yes(())
                } else {
                    Look::NotYet(format!("{is}, held: {runs}"))
                })
            })
            .await
    };
    // NotStarted: its public IP is refused, so nothing of it is in Azure.
    let rule = json!({"match": {"kind": "publicIPAddresses", "call": "Put"}, "fault": "quotaExceeded"});
    scene.azure.tell("faults", rule).await?;
    world.pods("refused", 1, &["node-a"]).await?;
    let refused = world.service("refused").port(80, 8080).selecting("refused").make().await?;
    scene
        .until("the public IP of refused is refused", async || {
            let asked = scene.azure.requests(0).await?;
            let is = asked.iter().any(|it| {
                it.is_put_of("publicIPAddresses", &format!("{refused}-pip")) && it.status == Some(400)
            });
            Ok(if is { Look::Yes(()) } else { Look::NotYet("nobody has asked for it".to_string()) })
        })
        .await?;
    reached("refused", "NotStarted", None).await?;
    scene.azure.calm().await?;

    // The others are held: these operations take so many times as long, enough to see them all run at once.
    let hold = async |kind: &str, call: &str, factor: u32| {
        let rule = json!({"match": {"kind": kind, "call": call}, "fault": "slowBy", "factor": factor});
        scene.azure.tell("faults", rule).await
    };
    hold("loadBalancers", "Put", 20).await?;
    world.pods("creating", 1, &["node-b"]).await?;
    world.service("creating").port(80, 8080).selecting("creating").make().await?;
    world.set_ports("updating", &[tcp(80, 8080), tcp(443, 8443)]).await?;
    reached("creating", "CreationInProgress", Some("/loadBalancers/UID")).await?;
    reached("updating", "UpdateInProgress", Some("/loadBalancers/UID")).await?;
    hold("loadBalancers", "Delete", 60).await?;
    world.delete_service("deleting").await?;
    reached("deleting", "DeletionInProgress", Some("/loadBalancers/UID")).await?;
    // DeletionPending: the update that takes its addresses away is held.
    hold("serviceGateways", "UpdateLocations", 40).await?;
    world.delete_service("draining").await?;
    reached("draining", "DeletionPending", Some("/serviceGateways/servicegateway")).await?;

    let states = means.states(scene).await?;
    scene.controller().kill().await?;
    for (name, state) in [
        ("refused", "NotStarted"),
        ("creating", "CreationInProgress"),
        ("created", CREATED),
        ("updating", "UpdateInProgress"),
        ("draining", "DeletionPending"),
        ("deleting", "DeletionInProgress"),
    ] {
        let is = states.get(&format!("service/{NAMESPACE}/{name}"));
        if is.is_none_or(|is| is != state) {
            bail!("{name} was to be in {state} and is in {is:?}");
        }
    }
    Ok(states)
}

/// The objects that are there, in the order in which they can be made.
async fn objects(scene: &Scene) -> Result<Vec<Value>> {
    let namespace = Api::<Namespace>::all(scene.client.clone()).get(NAMESPACE).await?;
    let Cluster { services, slices, nodes, pods } = Cluster::read(&scene.client).await?;
    let mut all = vec![serde_json::to_value(namespace)?];
    for list in [json!(nodes), json!(services), json!(slices), json!(pods)] {
        all.extend(list.as_array().into_iter().flatten().cloned());
    }
    let is_own = |it: &Value| {
        it["kind"] == "Node" || it["kind"] == "Namespace" || it["metadata"]["namespace"] == NAMESPACE
    };
    Ok(all.into_iter().filter(is_own).map(as_object).collect())
}

/// An object without what every API server writes anew.
pub(super) fn as_object(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for own in ["managedFields", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.remove(own);
        }
    }
    object
}
