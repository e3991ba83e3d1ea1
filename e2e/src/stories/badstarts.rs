//! Starts that cannot be: each says what is wrong and what to do, once, and ends; or, where it may pass
//! by itself, says it where people look and goes on when it has passed. None of them is a silent loop.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::azure::subnet_id;
use crate::scene::{Look, Scene};
use crate::story::{Story, Variant};

/// Why most of them are played in one way only.
const ENDS: &str = "the process ends by itself, so there is nobody to kill or to stop";

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new("broken-config", "a configuration that cannot be read, or says what cannot be", |scene| {
        Box::pin(broken_config(scene))
    })
    .with(|setting| setting.starts_running = false)
    .only(&[Variant::Plain], ENDS),
    Story::new("no-api-server", "nobody answers where the API server should be", |scene| {
        Box::pin(no_api_server(scene))
    })
    .with(|setting| setting.starts_running = false)
    .only(&[Variant::Plain], ENDS),
    Story::new("no-credentials", "Azure does not know the credential", |scene| {
        Box::pin(no_credentials(scene))
    })
    .with(|setting| {
        setting.starts_running = false;
        setting.emulator.push("--client=sluice=the-right-secret".to_string());
    })
    .only(&[Variant::Plain], ENDS),
    Story::new("no-permissions", "an account without the shipped roles", |scene| {
        Box::pin(no_permissions(scene))
    })
    .on_a_real_plane("it knows no roles")
    .with(|setting| setting.starts_running = false)
    .only(&[Variant::Plain], ENDS),
    Story::new("missing-subnet", "the subnet is not there: said where people look, until it is", |scene| {
        Box::pin(missing_subnet(scene))
    })
    .scaled("a gateway that cannot be used is looked at again after a minute, which no key shortens")
    .with(|setting| setting.starts_running = false),
];

/// After all the bad ones a good start: what was wrong was what the story says, and nothing else.
async fn starts_well(scene: &Scene) -> Result<()> {
    scene.no_write_since(scene.start_of_writes()).await?;
    scene.node("a").await?;
    scene.pods("web", 1, &["a"]).await?;
    scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.tell("the controller is started as it should be");
    scene.controller().start()?;
    scene.settled().await
}

async fn broken_config(scene: &Scene) -> Result<()> {
    let kubeconfig = scene.own_kubeconfig()?;
    scene.tell("a configuration that is no JSON and no YAML");
    let attempt = scene.attempt("{\"cloud\": [", &kubeconfig).await?;
    attempt.failed_with(2, &["attempt-config.json"])?;
    scene.tell("one with a key that is written wrongly, a time without a unit and no resource group");
    let text = scene.config_with(|it| {
        it.key("concurency", 20).key("drift.interval", "15");
    });
    let mut config: Value = serde_json::from_str(&text)?;
    config["resourceGroup"] = Value::Null;
    let attempt = scene.attempt(&config.to_string(), &kubeconfig).await?;
    let all = ["3 problems", "sluice.concurrency", "sluice.drift.interval", "resourceGroup"];
    attempt.failed_with(2, &all)?;
    attempt.keeps_to_itself(&scene.azure.greeting.client_secret)?;
    starts_well(scene).await
}

async fn no_api_server(scene: &Scene) -> Result<()> {
    scene.tell("the API server's port is closed");
    let config = scene.config_with(|_| {});
    let kubeconfig = scene.own_kubeconfig()?;
    let closed = kubeconfig.replace(&scene.plane.ready.url, "https://127.0.0.1:1");
    ensure!(closed != kubeconfig, "the kubeconfig does not name {}", scene.plane.ready.url);
    scene.attempt(&config, &closed).await?.failed_with(5, &["127.0.0.1:1", "cannot reach"])?;
    scene.tell("the token is not one of the API server's");
    let mut strange: Value = serde_json::from_str(&kubeconfig)?;
    strange["users"][0]["user"]["token"] = json!("not-a-token");
    scene.attempt(&config, &strange.to_string()).await?.failed_with(5, &["credentials"])?;
    starts_well(scene).await
}

async fn no_credentials(scene: &Scene) -> Result<()> {
    let kubeconfig = scene.own_kubeconfig()?;
    let mut config: Value = serde_json::from_str(&scene.config_with(|_| {}))?;
    config["aadClientSecret"] = json!("a-wrong-secret");
    scene.tell("the application's password is wrong");
    let attempt = scene.attempt(&config.to_string(), &kubeconfig).await?;
    attempt.failed_with(6, &["Azure rejected the credential", "aadClientSecret"])?;
    attempt.keeps_to_itself("a-wrong-secret")?;
    scene.tell("there is none at all");
    config["aadClientSecret"] = Value::Null;
    scene.attempt(&config.to_string(), &kubeconfig).await?.failed_with(2, &["aadClientSecret"])?;
    starts_well(scene).await
}

async fn no_permissions(scene: &Scene) -> Result<()> {
    let stranger = scene.plane.stranger().await?;
    scene.tell("the account has no role");
    let attempt = scene.attempt(&scene.config_with(|_| {}), &stranger).await?;
    let all = ["list services", "patch services/status", "watch endpointslices", "leases", "ClusterRole"];
    attempt.failed_with(5, &all)?;
    starts_well(scene).await
}

async fn missing_subnet(scene: &Scene) -> Result<()> {
    scene.tell("the subnet is not there");
    scene.azure.tamper(json!({"do": "delete", "id": subnet_id()})).await?;
    scene.node("a").await?;
    scene.controller().start()?;
    scene
        .meanwhile(async {
            scene.pods("web", 1, &["a"]).await?;
            scene.service("web").port(80, 8080).selecting("web").make().await
        })
        .await?;
    scene.warned_somewhere(&["GatewayUnavailable", "Subnet", "does not exist"]).await?;
    scene
        .until("the conditions of web say that there is no gateway", async || {
            let service = scene.service_object("web").await?.context("it is not there")?;
            let conditions = service.status.and_then(|it| it.conditions).unwrap_or_default();
            let says = conditions.iter().any(|it| it.reason == "GatewayUnavailable");
            Ok(if says { Look::Yes(()) } else { Look::NotYet(format!("{conditions:?}")) })
        })
        .await?;
    scene.no_write_since(scene.start_of_writes()).await?;
    scene.tell("somebody makes the subnet");
    let body = json!({"properties": {"addressPrefix": "10.0.0.0/16"}});
    scene.azure.tamper(json!({"do": "put", "id": subnet_id(), "body": body})).await?;
    scene.settled().await
}
