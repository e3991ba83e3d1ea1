//! What the controller's account may do: what it needs, as every other story shows, and nothing else.
//!
//! The attempts are made with the controller's own token, against the role and the admission policy as
//! they are shipped. None of them may change anything, so the story settles with nothing to repair.

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use crate::scene::Scene;
use crate::story::Story;

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[Story::new(
    "only-what-is-granted",
    "with the controller's token somebody tries what it is not for",
    |scene| Box::pin(only_what_is_granted(scene)),
)
.on_a_real_plane("it knows no roles")];

/// How the admission policy begins its refusals.
const POLICY: &str = "ValidatingAdmissionPolicy 'sluice-services'";

async fn only_what_is_granted(scene: &Scene) -> Result<()> {
    scene.nodes(&["a"]).await?;
    scene.pods("web", 1, &["a"]).await?;
    scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    let mark = scene.mark_writes().await?;
    let before = scene.service_object("web").await?.context("web is not there")?;
    let ours = client(scene).await?;
    scene
        .meanwhile(async {
            scene.tell("with the controller's token, Services are patched where it has no business");
            patches(scene, &ours).await?;
            scene.tell("and other things are read, made and deleted");
            verbs(scene, &ours).await
        })
        .await?;
    scene.settled().await?;
    let after = scene.service_object("web").await?.context("web is gone")?;
    ensure!(before.spec == after.spec, "the spec of web has changed");
    ensure!(before.metadata.labels == after.metadata.labels, "the labels of web have changed");
    ensure!(before.metadata.finalizers == after.metadata.finalizers, "the finalizers of web have changed");
    scene.no_write_since(mark).await
}

/// A client with the controller's token.
async fn client(scene: &Scene) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(&scene.plane.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Patches that the role allows and the policy does not.
async fn patches(scene: &Scene, ours: &Client) -> Result<()> {
    let services = Api::<Service>::namespaced(ours.clone(), &scene.namespace);
    let own = PatchParams::default();
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "somebody"});
    let metadata = [
        json!({"labels": {"tried": "yes"}}),
        json!({"annotations": {"tried": "yes"}}),
        json!({"ownerReferences": [owner]}),
        json!({"finalizers": ["example.com/foreign"]}),
    ];
    for change in metadata {
        let patch = json!({"metadata": change});
        let answer = services.patch("web", &own, &Patch::Merge(&patch)).await;
        refused(answer, 422, POLICY, &patch)?;
        // A patch of the status leaves the spec alone, but takes the metadata along.
        let answer = services.patch_status("web", &own, &Patch::Merge(&patch)).await;
        refused(answer, 422, POLICY, &patch)?;
    }
    let patch = json!({"spec": {"ports": [{"name": "other", "port": 81}]}});
    refused(services.patch("web", &own, &Patch::Merge(&patch)).await, 422, POLICY, &patch)?;

    let people = Api::<Service>::namespaced(scene.plane.admin.0.clone(), &scene.namespace);
    let kept: Service = serde_json::from_value(json!({
        "metadata": {"name": "kept", "finalizers": ["example.com/keep"]},
        "spec": {"ports": [{"port": 80}]},
    }))?;
    people.create(&PostParams::default(), &kept).await?;
    let patch = json!({"metadata": {"finalizers": null}});
    refused(services.patch("kept", &own, &Patch::Merge(&patch)).await, 422, POLICY, &patch)?;
    people.patch("kept", &own, &Patch::Merge(&patch)).await?;
    people.delete("kept", &DeleteParams::default()).await?;
    Ok(())
}

/// Verbs that the role does not have.
async fn verbs(scene: &Scene, ours: &Client) -> Result<()> {
    let here = scene.namespace.as_str();
    let (all, post, delete, patch) =
        (ListParams::default(), PostParams::default(), DeleteParams::default(), PatchParams::default());
    let services = Api::<Service>::namespaced(ours.clone(), here);
    let web = services.get("web").await?;
    forbidden(services.replace("web", &post, &web).await, "update services")?;
    forbidden(services.replace_status("web", &post, &web).await, "update services/status")?;
    forbidden(services.delete("web", &delete).await, "delete services")?;
    let mut fresh = web.clone();
    fresh.metadata = serde_json::from_value(json!({"name": "fresh"}))?;
    forbidden(services.create(&post, &fresh).await, "create services")?;
    let change = Patch::Merge(json!({"metadata": {"labels": {"tried": "yes"}}}));
    let pods = Api::<Pod>::namespaced(ours.clone(), here);
    let pod = pods.list(&all).await?.items.pop().context("web has no pod")?;
    let pod = pod.metadata.name.context("a pod has no name")?;
    forbidden(pods.patch(&pod, &patch, &change).await, "patch pods")?;
    forbidden(pods.delete(&pod, &delete).await, "delete pods")?;
    forbidden(Api::<Node>::all(ours.clone()).patch("a", &patch, &change).await, "patch nodes")?;
    forbidden(Api::<Namespace>::all(ours.clone()).get(here).await, "get another namespace")?;
    forbidden(Api::<Secret>::all(ours.clone()).list(&all).await, "list secrets")?;
    let own_namespace = &scene.plane.account.namespace;
    let secrets = Api::<Secret>::namespaced(ours.clone(), own_namespace);
    forbidden(secrets.get("sluice-config").await, "get our own Secret through the API")?;
    forbidden(Api::<ConfigMap>::all(ours.clone()).list(&all).await, "list configmaps")?;
    let elsewhere = Api::<Lease>::namespaced(ours.clone(), "kube-system");
    forbidden(elsewhere.list(&all).await, "list leases elsewhere")?;
    let lease: Lease = serde_json::from_value(json!({"metadata": {"name": "tried"}}))?;
    forbidden(elsewhere.create(&post, &lease).await, "create leases elsewhere")?;
    forbidden(
        Api::<Lease>::namespaced(ours.clone(), own_namespace).delete("sluice", &delete).await,
        "delete leases",
    )
}

fn forbidden<T>(answer: kube::Result<T>, what: &str) -> Result<()> {
    refused(answer, 403, "cannot", &json!(what))
}

/// Checks that it was refused, by whom it should be.
fn refused<T>(answer: kube::Result<T>, code: u16, words: &str, what: &Value) -> Result<()> {
    match answer {
        Ok(_) => bail!("the controller's account may do this: {what}"),
        Err(kube::Error::Api(status)) => {
            ensure!(
                status.code == code,
                "{what} is answered {} and not {code}: {}",
                status.code,
                status.message
            );
            ensure!(status.message.contains(words), "{what} is refused by somebody else: {}", status.message);
            Ok(())
        }
        Err(error) => Err(error).with_context(|| format!("{what} was not answered")),
    }
}
