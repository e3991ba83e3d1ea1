//! The parts of a playground: Azure, Kubernetes, and a configuration with which the controller finds both.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::Client;
use sluice_emulator::{Emulator, Options, Prepared};
use sluice_k8s::connect::is_loopback;

use super::azure::{Azure, GROUP, NETWORK, REGION, SUBNET, SUBSCRIPTION, TENANT};
use crate::emulator::for_sluice::LeadsToAzure;

/// The lease duration of the controller, in real time, so that a takeover takes a few seconds.
pub(super) const LEASE_DURATION: Duration = Duration::from_secs(7);

/// Where the parts listen; port 0 is any free one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doors {
    pub(super) azure: SocketAddr,
    pub(super) dashboard: SocketAddr,
    pub(super) metrics: SocketAddr,
}

/// A folder for everything that the playground writes.
pub(super) struct Folder {
    path: PathBuf,
    /// Goes when it is dropped.
    temporary: Option<tempfile::TempDir>,
}

impl Folder {
    /// The one that was named, which is kept, or else a temporary one.
    pub(super) fn make(kept: Option<&Path>) -> Result<Folder> {
        match kept {
            Some(path) => {
                make_folders(path).with_context(|| format!("cannot create the folder {}", path.display()))?;
                Ok(Folder { path: fs::canonicalize(path)?, temporary: None })
            }
            None => {
                let mut builder = tempfile::Builder::new();
                // Whoever reads the kubeconfig may do everything in the playground.
                #[cfg(unix)]
                builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
                let temporary = builder
                    .prefix("sluice-playground-")
                    .tempdir()
                    .context("cannot create a temporary folder; name another one with --keep FOLDER")?;
                Ok(Folder { path: temporary.path().to_owned(), temporary: Some(temporary) })
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_kept(&self) -> bool {
        self.temporary.is_none()
    }
}

/// Starts an Azure with a network in it.
pub(super) async fn start_azure(
    folder: &Path,
    listen: SocketAddr,
    time_factor: f64,
) -> Result<(sluice_emulator::Running, Azure), sluice_emulator::StartError> {
    let folder = folder.join("azure");
    private_folder(&folder)
        .map_err(|source| sluice_emulator::StartError::Folder { path: folder.clone(), source })?;
    let running = Emulator::start(Options {
        listen,
        folder: Some(folder),
        time_factor,
        prepare: vec![Prepared { subscription: SUBSCRIPTION.to_owned(), group: GROUP.to_owned() }],
        ..Options::default()
    })
    .await?;
    let azure = Azure::of(&running).expect("a client that trusts the CA of the emulator can be built");
    Ok((running, azure))
}

/// An empty file that only its owner can read, also if others could read what was there.
pub(super) fn private_file(path: &Path) -> Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = options.open(path);
    #[cfg(unix)]
    let opened = opened.and_then(|file| {
        // A device, such as /dev/null, is not ours to close to others.
        if file.metadata()?.is_file() {
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        }
        Ok(file)
    });
    opened.with_context(|| format!("cannot write {}", path.display()))
}

/// A folder that only its owner can enter, also if others could enter the one that was there.
fn private_folder(path: &Path) -> std::io::Result<()> {
    make_folders(path)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

/// Makes a folder, and those above it that are missing, so that only its owner can enter. One that is there stays as
/// it is: whoever names a folder may share it with others.
fn make_folders(path: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Writes the controller's configuration.
pub(super) fn write_configuration(path: &Path, azure: &sluice_emulator::Running, doors: Doors) -> Result<()> {
    let url = azure.url();
    let leads = LeadsToAzure {
        url: &url,
        ca: azure.ca_path(),
        tenant: TENANT,
        subscription: SUBSCRIPTION,
        client: "11111111-1111-1111-1111-111111111111",
        secret: "any-secret-does",
        group: GROUP,
        region: REGION,
        network: NETWORK,
        subnet: SUBNET,
    };
    let text = format!(
        "# Configuration of the controller in the playground: an azure.json in YAML for the emulator.
# While the playground runs, `sluice plan`, `doctor` and `run` accept it with --config.
{leads}    connectTimeout: 2s
  listen:
    health: {metrics}
    api: {dashboard}
  # Shorter than the default of 15m, so that drift is repaired soon.
  drift:
    interval: 1m
  # In real time. Shorter than the default, so that a standby takes over after a few seconds.
  leaderElection:
    leaseDuration: {lease}s
    renewDeadline: 5s
    retryPeriod: 500ms
",
        metrics = doors.metrics,
        dashboard = doors.dashboard,
        lease = LEASE_DURATION.as_secs(),
    );
    private_file(path)?.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

/// A client as kubectl would be: with that kubeconfig and nothing else.
pub(super) async fn client(kubeconfig: &Path) -> Result<Client> {
    let read = kube::config::Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("cannot read the kubeconfig {}", kubeconfig.display()))?;
    let mut config = kube::Config::from_custom_kubeconfig(read, &Default::default()).await?;
    // What HTTPS_PROXY leads to does not reach this machine's loopback.
    if config.cluster_url.host().is_some_and(is_loopback) {
        config.proxy_url = None;
    }
    Ok(Client::try_from(config)?)
}
