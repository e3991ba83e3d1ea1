//! A real control plane (`testenv`): etcd, API server and the controllers that make EndpointSlices,
//! collect garbage and empty namespaces. Or the playground's own, which must do for the same stories: it knows
//! no roles, so there the controller has all rights, and stories about rights or about the parts of a control
//! plane are not played on it.
//!
//! One story at a time has a plane for itself: every Sluice of a cluster has the same finalizer, so
//! two of them on one plane would take it off each other's Services, as the contract says. Several
//! planes run side by side instead, and each serves story after story; between two of them
//! [`Plane::left_over`] must be empty. The permissions are those of the shipped manifests, applied once
//! per plane, and the controller gets a token of the ServiceAccount in them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client, Config, ResourceExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use sluice_e2e::testenv::{Ready, Testenv};
use tokio::process::Command;

use crate::judge::cluster::{Cluster, named};
use crate::process::Program;

/// The namespaces that are there from the start.
const OWN_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// One control plane.
#[derive(Debug)]
pub(crate) struct Plane {
    /// How many stories were played on it.
    stories: AtomicUsize,
    pub(crate) ready: Ready,
    /// With all rights; for the story and the judge, never for the controller.
    pub(crate) admin: AdminClient,
    /// The account that the shipped manifests give to the controller.
    pub(crate) account: Account,
    /// A kubeconfig with nothing but that account's token.
    pub(crate) kubeconfig: PathBuf,
    program: Server,
}

/// What serves. Only testenv takes commands.
#[derive(Debug)]
enum Server {
    Testenv(Box<Testenv>),
    Playground(#[allow(dead_code, reason = "it ends when it is dropped")] Program),
}

/// A client that can be shown as nothing but its name.
#[derive(Clone)]
pub(crate) struct AdminClient(pub(crate) Client);

impl std::fmt::Debug for AdminClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminClient")
    }
}

/// Namespace and name of a ServiceAccount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Account {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What a plane is made of.
#[derive(Clone, Debug)]
pub(crate) enum Material {
    /// The program `testenv`, and the shipped manifests.
    Testenv { program: PathBuf, manifests: PathBuf },
    /// `sluice playground --kubernetes-only`.
    Playground { program: PathBuf },
}

impl Plane {
    /// Starts one.
    pub(crate) async fn start(number: usize, material: &Material, folder: &Path) -> Result<Plane> {
        match material {
            Material::Testenv { program, manifests } => {
                Plane::of_testenv(number, program, manifests, folder).await
            }
            Material::Playground { program } => Plane::of_playground(number, program, folder).await,
        }
    }

    /// The playground's own API server, without a kubelet: the story plays that.
    async fn of_playground(number: usize, sluice: &Path, folder: &Path) -> Result<Plane> {
        let log = folder.join(format!("plane-{number}.log"));
        let keep = folder.join(format!("plane-{number}"));
        let (program, ready) = playground_without_nodes(sluice, &log, Some(&keep)).await?;
        // Stories about bad starts change it, and know it as JSON.
        let text: Value = serde_yaml_ng::from_str(&std::fs::read_to_string(&ready.kubeconfig)?)?;
        let kubeconfig = folder.join(format!("plane-{number}.kubeconfig"));
        std::fs::write(&kubeconfig, text.to_string())?;
        let admin = admin_client(&ready).await?;
        let account = Account { namespace: "sluice-system".to_string(), name: "sluice".to_string() };
        let namespace = serde_json::from_value(json!({"metadata": {"name": account.namespace}}))?;
        Api::<Namespace>::all(admin.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(Plane {
            stories: AtomicUsize::new(0),
            ready,
            admin: AdminClient(admin),
            account,
            kubeconfig,
            program: Server::Playground(program),
        })
    }

    /// Starts testenv and applies the shipped manifests.
    async fn of_testenv(number: usize, testenv: &Path, manifests: &Path, folder: &Path) -> Result<Plane> {
        let log = folder.join(format!("plane-{number}.log"));
        let testenv = Testenv::start(testenv, &log).await?;
        let ready = testenv.ready.clone();
        let admin = admin_client(&ready).await?;
        let account = install(&admin, manifests).await?;
        let kubeconfig = folder.join(format!("plane-{number}.kubeconfig"));
        let token = token(&admin, &account).await?;
        std::fs::write(&kubeconfig, kubeconfig_text(&ready, &token, &account.namespace))?;
        Ok(Plane {
            stories: AtomicUsize::new(0),
            ready,
            admin: AdminClient(admin),
            account,
            kubeconfig,
            program: Server::Testenv(Box::new(testenv)),
        })
    }

    /// A number for the next story, for names that must differ from those of the last one.
    pub(crate) fn next_story(&self) -> usize {
        self.stories.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Does something to a part of the plane: `restart apiserver`, `pause apiserver`, ….
    pub(crate) async fn tell(&self, command: &str) -> Result<()> {
        match &self.program {
            Server::Testenv(testenv) => testenv.tell(command).await,
            Server::Playground(_) => bail!("the playground's control plane cannot {command}"),
        }
    }

    /// The namespaces that stories have made and that are not on their way out.
    pub(crate) async fn story_namespaces(&self) -> Result<Vec<String>> {
        let all = Api::<Namespace>::all(self.admin.0.clone()).list(&ListParams::default()).await?;
        let stays = all.into_iter().filter(|it| it.metadata.deletion_timestamp.is_none());
        let names = stays.map(|it| it.name_any());
        Ok(names
            .filter(|it| !OWN_NAMESPACES.contains(&it.as_str()) && *it != self.account.namespace)
            .collect())
    }

    /// The kubeconfig of an account that nobody has given any permission.
    pub(crate) async fn stranger(&self) -> Result<String> {
        let client = &self.admin.0;
        let account = Account { name: "stranger".to_string(), ..self.account.clone() };
        let object = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account.name, "namespace": account.namespace},
        });
        apply(client, object).await?;
        let token = token(client, &account).await?;
        Ok(kubeconfig_text(&self.ready, &token, &account.namespace))
    }

    /// What a story left behind, which makes the plane unfit for the next one. Namespaces that are empty
    /// and on their way out are no hindrance: the next story has names of its own.
    pub(crate) async fn left_over(&self) -> Result<Vec<String>> {
        let cluster = Cluster::read(&self.admin.0).await?;
        let mut left = self.story_namespaces().await?;
        left.iter_mut().for_each(|it| it.insert_str(0, "namespace "));
        left.extend(cluster.nodes.iter().map(|it| format!("node {}", it.name_any())));
        let services = cluster.services.iter().filter(|it| it.name_any() != "kubernetes");
        left.extend(
            services.map(|it| format!("service {} with finalizers {:?}", named(it), it.finalizers())),
        );
        left.extend(cluster.pods.iter().map(|it| format!("pod {}", named(it))));
        Ok(left)
    }
}

/// Starts `sluice playground --kubernetes-only` without scheduler and kubelet, and waits until it serves.
pub(crate) async fn playground_without_nodes(
    sluice: &Path,
    log: &Path,
    keep: Option<&Path>,
) -> Result<(Program, Ready)> {
    let mut command = Command::new(sluice);
    command.args(["playground", "--kubernetes-only", "--nodes=0", "--output=json"]);
    command.args(keep.map(|it| format!("--keep={}", it.display())));
    let (program, mut talk) = Program::talk("the playground", &mut command, log)?;
    let said: Value =
        serde_json::from_str(&talk.hear().await?).context("the playground says what is no JSON")?;
    let word = |name: &str| said[name].as_str().with_context(|| format!("the playground has no {name}"));
    let ready = json!({"url": word("kubernetesUrl")?, "kubeconfig": word("kubeconfig")?});
    Ok((program, serde_json::from_value(ready)?))
}

async fn admin_client(ready: &Ready) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(&ready.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Client::try_from(config).context("the administrator's kubeconfig of testenv does not do")
}

/// Applies every manifest but the Deployment and what is about it: the harness plays its part.
async fn install(client: &Client, manifests: &Path) -> Result<Account> {
    let text = std::fs::read_to_string(manifests).with_context(|| {
        format!("{}: the permissions of the controller are in there", manifests.display())
    })?;
    let mut account = None;
    for document in serde_yaml_ng::Deserializer::from_str(&text) {
        let value =
            Value::deserialize(document).with_context(|| format!("{} is no YAML", manifests.display()))?;
        let kind = value["kind"].as_str().unwrap_or_default().to_string();
        if matches!(
            kind.as_str(),
            "" | "Deployment" | "PodDisruptionBudget" | "Service" | "ConfigMap" | "Secret"
        ) {
            continue;
        }
        if kind == "ServiceAccount" {
            let word = |name: &str| value["metadata"][name].as_str().unwrap_or_default().to_string();
            account = Some(Account { namespace: word("namespace"), name: word("name") });
        }
        apply(client, value).await.with_context(|| format!("{kind} of {}", manifests.display()))?;
    }
    account.with_context(|| format!("{} has no ServiceAccount", manifests.display()))
}

async fn apply(client: &Client, value: Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(value)?;
    let types = object.types.clone().context("it has no kind")?;
    let kind = GroupVersionKind::try_from(&types)?;
    let (resource, capabilities) = pinned_kind(client, &kind).await?;
    let api: Api<DynamicObject> = match (capabilities.scope, object.namespace()) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), &namespace, &resource),
        (Scope::Namespaced, None) => bail!("{} has no namespace", object.name_any()),
    };
    let own = PatchParams::apply("sluice-e2e").force();
    api.patch(&object.name_any(), &own, &Patch::Apply(&object)).await?;
    Ok(())
}

async fn token(client: &Client, account: &Account) -> Result<String> {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &account.namespace);
    let request: TokenRequest =
        serde_json::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 86_400}}))?;
    let answer = accounts.create_token_request(&account.name, &PostParams::default(), &request).await?;
    answer.status.and_then(|status| status.token).context("the API server gives no token")
}

fn kubeconfig_text(ready: &Ready, token: &str, namespace: &str) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sluice",
        "clusters": [{
            "name": "testenv",
            "cluster": {"server": ready.url, "certificate-authority": ready.ca},
        }],
        "users": [{"name": "sluice", "user": {"token": token}}],
        "contexts": [{
            "name": "sluice",
            "context": {"cluster": "testenv", "user": "sluice", "namespace": namespace},
        }],
    });
    config.to_string()
}
