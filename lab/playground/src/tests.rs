//! The playground in this process, with all of its real parts.

use std::time::Duration;

use clap::Parser as _;

use super::azure::resource_id;
use super::narrator::Notebook;
use super::scenarios::{End, Scenario, named, play};
use super::stage::{Look, Stage};
use super::*;

/// The arguments as they would be typed.
fn typed(line: &str) -> Arguments {
    #[derive(clap::Parser)]
    struct Alone {
        #[command(flatten)]
        arguments: Arguments,
    }
    Alone::parse_from(std::iter::once("playground").chain(line.split_whitespace())).arguments
}

/// A playground in a folder, without its controller, and what is told in it.
async fn started(line: &str, folder: &Folder) -> (Playground, Notebook) {
    // Another test may have done it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let notebook = Notebook::default();
    let telling = notebook.clone();
    let started = Playground::start(&typed(line), folder, move |pace| telling.narrator(pace)).await;
    (started.unwrap_or_else(|failure| panic!("{:#}", failure.error)), notebook)
}

/// A playground with its controller at work, and what is told in it.
async fn begun(line: &str) -> (Playground, Folder, Notebook) {
    let folder = Folder::make(None).unwrap();
    let (mut playground, notebook) = started(line, &folder).await;
    let started = playground.stage.start_controller().await;
    started.unwrap_or_else(|failure| panic!("{:#}", failure.error));
    (playground, folder, notebook)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tour_passes_in_one_process_and_prints_its_steps() {
    let (mut playground, folder, notebook) = begun("--time-factor 60").await;
    let end = play(named("tour").unwrap(), &mut playground.stage).await;
    let told = notebook.text();
    assert_eq!(end, End::Converged, "{told}");
    let mut rest = told.as_str();
    for line in [
        "tour: create, change and delete",
        "Times are emulated; 60 s = 1 s real.",
        "1. Create Deployment shop",
        "$ kubectl create deployment shop --image=nginx --replicas=3",
        "$ kubectl expose deployment shop --type=LoadBalancer --port=80",
        "Service shop: public IP ",
        "$ kubectl run crawler",
        "egress partners: public IP ",
        "6 of 6 pod addresses programmed",
        "public IP still ",
        "egress partners deleted with its last pod",
        "6. Compare Kubernetes with Azure",
        "PASS: Kubernetes and Azure match (0 load balancers, 1 NAT gateway, 1 public IP, 0 addresses)",
        "Next: run `sluice playground --scenario burst`",
    ] {
        let found = rest.find(line).unwrap_or_else(|| panic!("{line:?} does not follow in\n{told}"));
        rest = &rest[found..];
    }
    let path = folder.path().to_owned();
    for name in ["kubeconfig", "azure.yaml"] {
        assert!(path.join(name).exists(), "{name}");
        #[cfg(unix)]
        assert_eq!(mode(&path.join(name)), 0o600, "{name}");
    }
    playground.stop().await;
    drop(folder);
    assert!(!path.exists(), "{} is left behind", path.display());
}

#[cfg(unix)]
fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_folder_that_is_kept() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("of/mine");
    let folder = Folder::make(Some(&path)).unwrap();
    assert_eq!(mode(folder.path()), 0o700);
    // A log of an earlier version, which everybody could read.
    let log = path.join("sluice.log");
    std::fs::write(&log, "old").unwrap();
    parts::private_file(&log).unwrap();
    assert_eq!((mode(&log), std::fs::read(&log).unwrap()), (0o600, Vec::new()));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_can_read_what_is_kept_in_a_shared_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("shared");
    // A folder that somebody shares, with one in it of an earlier version, which everybody could enter.
    std::fs::create_dir_all(path.join("azure")).unwrap();
    for folder in [&path, &path.join("azure")] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let folder = Folder::make(Some(&path)).unwrap();
    let (playground, _) = started("--time-factor 60", &folder).await;
    playground.stop().await;
    assert_eq!(mode(&path), 0o755, "the folder is not ours");
    let mut files = 0;
    let mut folders = vec![path];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                assert_eq!(mode(&path), 0o700, "{}", path.display());
                folders.push(path);
            } else if !path.ends_with(sluice_emulator::CA_FILE) {
                // All but the CA's certificate, which is no secret.
                assert_eq!(mode(&path), 0o600, "{}", path.display());
                files += 1;
            }
        }
    }
    // The kubeconfig, the configuration, and the keys of the CA and of the tokens.
    assert_eq!(files, 4);
}

/// Creates Service shop, stops the controller, and deletes the load balancer.
async fn no_repair(stage: &mut Stage) -> anyhow::Result<()> {
    stage.create_deployment("shop", 1).await?;
    stage.expose("shop", 80).await?;
    stage
        .until("Service shop has a public IP", |seen| {
            Look::at(seen.cluster.ip("shop").is_some(), || "EXTERNAL-IP is <pending>".to_owned())
        })
        .await?;
    let uid = stage.converged().await?.cluster.uid("shop").unwrap_or_default();
    stage.controller.stop().await.map_err(|failure| failure.error)?;
    stage.patience = Duration::from_secs(30);
    stage.azure.tamper(json!({"do": "delete", "id": resource_id("loadBalancers", &uid)})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_story_that_ends_in_drift_fails_and_lists_the_differences() {
    let (mut playground, _folder, notebook) = begun("--time-factor 60").await;
    let scenario = Scenario::new("broken", "no repair", "none", |stage| Box::pin(no_repair(stage)));
    let end = play(&scenario, &mut playground.stage).await;
    let told = notebook.text();
    let End::Stuck(lines) = end else { panic!("it passed:\n{told}") };
    assert!(lines.iter().any(|it| it.ends_with("of Service default/shop is missing")), "{lines:#?}");
    let end = &told[told.find("FAIL: Kubernetes and Azure differ after 30 s (emulated); ").expect(&told)..];
    assert!(end.contains("of Service default/shop is missing") && !end.contains("Next:"), "{told}");
    playground.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_times_out_names_the_condition_and_the_current_state() {
    let (mut playground, _folder, notebook) = begun("--time-factor 60 --scenario tour --timeout 20s").await;
    let scenario = Scenario::new("slow", "a wait that times out", "none", |stage| {
        Box::pin(async {
            stage.until("pod a is ready", |_| Look::NotYet("it is Pending".to_owned())).await.map(drop)
        })
    });
    let end = play(&scenario, &mut playground.stage).await;
    let End::Stuck(lines) = end else { panic!("it passed:\n{}", notebook.text()) };
    assert_eq!(lines, ["timed out after 20 s (emulated) waiting until pod a is ready; now: it is Pending"]);
    playground.stop().await;
}
