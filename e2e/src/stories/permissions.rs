//! What the controller's account may do: what it needs, as every other story shows, and nothing else.
//!
//! The attempts are made with the controller's own token, against the role and the admission policy as
//! they are shipped. None of them may change anything, so the story settles with nothing to repair.

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use crate::scene::{Look, Scene};
use crate::story::Story;
use crate::world::ports::tcp;

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new(
        "only-what-is-granted",
        "the controller's token is tried for what the account has no permission for",
        |scene| Box::pin(only_what_is_granted(scene)),
    )
    .on_a_real_plane("it knows no roles"),
    Story::new(
        "published-ip-annotation",
        "an old admission policy rejects the annotation with the published IP, then the policy goes, then a user edits the annotation",
        |scene| Box::pin(published_ip_annotation(scene)),
    )
    .on_a_real_plane("it has no admission policies"),
];

/// The annotation with the published IP.
const PUBLISHED_IP: &str = "sluice.dev/published-ip";

/// How the admission policy begins its refusals.
const POLICY: &str = "ValidatingAdmissionPolicy 'sluice-services'";

async fn only_what_is_granted(scene: &Scene) -> Result<()> {
    scene.nodes(&["a"]).await?;
    scene.pods("web", 1, &["a"]).await?;
    scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    let people = Api::<Service>::namespaced(scene.plane.admin.0.clone(), &scene.namespace);
    let theirs = json!({"metadata": {"annotations": {"team": "shop"}}});
    people.patch("web", &PatchParams::default(), &Patch::Merge(&theirs)).await?;
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
    ensure!(before.metadata.annotations == after.metadata.annotations, "the annotations of web have changed");
    let published = after.metadata.annotations.and_then(|mut it| it.remove("sluice.dev/published-ip"));
    let ingress = after.status.and_then(|it| it.load_balancer?.ingress?.into_iter().next()?.ip);
    ensure!(
        published.is_some() && published == ingress,
        "the annotation names {published:?}, the status {ingress:?}"
    );
    ensure!(before.metadata.finalizers == after.metadata.finalizers, "the finalizers of web have changed");
    scene.no_write_since(mark).await
}

async fn published_ip_annotation(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    forbid_annotations(scene).await?;
    scene.meanwhile(scene.service("early").port(80, 8080).selecting("web").make()).await?;
    scene.settled().await?;
    let early = scene.ip_of("early").await?;
    ensure!(
        annotation_of(scene, "early").await?.is_none(),
        "early has the annotation that the policy rejects"
    );
    scene.warned_somewhere(&[PUBLISHED_IP, &scene.namespace]).await?;

    allow_annotations(scene).await?;
    scene.restart_with("an admission policy that allows the annotation", |_| {}).await?;
    scene.meanwhile(scene.service("late").port(80, 8080).selecting("web").make()).await?;
    scene.meanwhile(scene.set_ports("early", &[tcp(81, 8080)])).await?;
    scene.settled().await?;
    let late = scene.ip_of("late").await?;
    ensure!(scene.ip_of("early").await? == early, "early has another IP after the restart");
    for (name, ip) in [("early", &early), ("late", &late)] {
        let annotation = annotation_of(scene, name).await?;
        ensure!(annotation.as_ref() == Some(ip), "{name} has the IP {ip} and the annotation {annotation:?}");
    }

    let mark = scene.mark_writes().await?;
    scene.calm_down().await?;
    scene.controller().stop().await?;
    // Only the annotation can say which entry is the controller's, and a user has put another one into it.
    scene.annotate("late", PUBLISHED_IP, Some(FOREIGN_IP)).await?;
    show_only(scene, "late", FOREIGN_IP).await?;
    scene.annotate("early", PUBLISHED_IP, None).await?;
    scene.controller().start()?;
    scene
        .until("late shows the IP of others and its own", async || {
            let shown = ips_of(scene, "late").await?;
            let as_it_should_be = shown == [FOREIGN_IP, &*late];
            Ok(if as_it_should_be { Look::Yes(()) } else { Look::NotYet(format!("it shows {shown:?}")) })
        })
        .await?;
    let annotation = annotation_of(scene, "late").await?;
    ensure!(annotation.as_ref() == Some(&late), "late has the annotation {annotation:?}");
    ensure!(scene.ip_of("early").await? == early, "early has another IP after its annotation was removed");
    scene.no_write_since(mark).await?;
    show_only(scene, "late", &late).await?;

    scene.meanwhile(scene.make_cluster_ip("late")).await?;
    scene.settled().await?;
    let annotation = annotation_of(scene, "late").await?;
    ensure!(annotation.is_none(), "late has no IP any more, and the annotation {annotation:?}");
    Ok(())
}

/// An entry of others in a status.
const FOREIGN_IP: &str = "203.0.113.7";

/// Replaces the status of a Service by one IP, without conditions.
async fn show_only(scene: &Scene, name: &str, ip: &str) -> Result<()> {
    let patch = json!({"status": {"loadBalancer": {"ingress": [{"ip": ip}]}, "conditions": null}});
    let services = Api::<Service>::namespaced(scene.client.clone(), &scene.namespace);
    services.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

async fn ips_of(scene: &Scene, name: &str) -> Result<Vec<String>> {
    let service = scene.service_object(name).await?.with_context(|| format!("{name} is not there"))?;
    let ingress = service.status.and_then(|it| it.load_balancer?.ingress).unwrap_or_default();
    Ok(ingress.into_iter().filter_map(|it| it.ip).collect())
}

async fn annotation_of(scene: &Scene, name: &str) -> Result<Option<String>> {
    let service = scene.service_object(name).await?.with_context(|| format!("{name} is not there"))?;
    Ok(service.metadata.annotations.and_then(|mut it| it.remove(PUBLISHED_IP)))
}

/// Lets service accounts change no annotation in the story's namespace, as the policy of version 0.1 does.
async fn forbid_annotations(scene: &Scene) -> Result<()> {
    scene.tell("an admission policy as in version 0.1: the controller is not allowed to change annotations");
    let (policies, bindings) = policies(scene);
    let (namespace, name) = (scene.namespace.as_str(), old_policy(scene));
    let annotations = |object: &str| format!("{object}.metadata.?annotations.orValue({{}})");
    let policy = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
                    "resources": ["services", "services/status"],
                }],
            },
            "matchConditions": [{
                "name": "accounts",
                "expression": "request.userInfo.username.startsWith('system:serviceaccount:')",
            }],
            "validations": [{
                "expression": format!("{} == {}", annotations("object"), annotations("oldObject")),
                "message": "The annotations of a Service must not change.",
            }],
        },
    }))?;
    let binding = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }))?;
    policies.create(&PostParams::default(), &policy).await?;
    bindings.create(&PostParams::default(), &binding).await?;
    let probe: Service = serde_json::from_value(json!({
        "metadata": {"name": "probe"}, "spec": {"ports": [{"port": 80}]},
    }))?;
    let services = Api::<Service>::namespaced(scene.plane.admin.0.clone(), namespace);
    services.create(&PostParams::default(), &probe).await?;
    until_annotations_are(scene, "rejected", false).await
}

/// The end of the policy that [`forbid_annotations`] makes.
async fn allow_annotations(scene: &Scene) -> Result<()> {
    scene.tell("the policy is deleted");
    let (policies, bindings) = policies(scene);
    bindings.delete(&old_policy(scene), &DeleteParams::default()).await?;
    policies.delete(&old_policy(scene), &DeleteParams::default()).await?;
    until_annotations_are(scene, "accepted", true).await
}

/// It begins with the name of the shipped policy, by which the controller knows it.
fn old_policy(scene: &Scene) -> String {
    format!("sluice-services-of-{}", scene.namespace)
}

fn policies(scene: &Scene) -> (Api<ValidatingAdmissionPolicy>, Api<ValidatingAdmissionPolicyBinding>) {
    (Api::all(scene.plane.admin.0.clone()), Api::all(scene.plane.admin.0.clone()))
}

/// Waits until the API server has read the policies: tries, without an effect, what the controller does.
async fn until_annotations_are(scene: &Scene, what: &str, accepted: bool) -> Result<()> {
    let ours = Api::<Service>::namespaced(client(scene).await?, &scene.namespace);
    let patch = Patch::Merge(json!({"metadata": {"annotations": {PUBLISHED_IP: "192.0.2.1"}}}));
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    scene
        .until(&format!("the annotation is {what}"), async || {
            Ok(match ours.patch_status("probe", &dry, &patch).await {
                Ok(_) if accepted => Look::Yes(()),
                Err(kube::Error::Api(status)) if !accepted && status.code == 422 => Look::Yes(()),
                answer => Look::NotYet(format!("the API server answers {:?}", answer.map(|_| "accepted"))),
            })
        })
        .await
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
        json!({"annotations": {"sluice.dev/published-ip": null, "tried": "yes"}}),
        // An annotation of others, with its value changed and removed.
        json!({"annotations": {"team": "other"}}),
        json!({"annotations": {"team": null}}),
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
