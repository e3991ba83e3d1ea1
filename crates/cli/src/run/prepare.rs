//! Everything that must be right before anything is begun, one phase after the other, each with a
//! line of the log and a message of its own when it is not.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use sluice::config::{Config, ConfigArguments};
use sluice::lease;
use sluice_arm::{CallRecord, Observer as _};
use sluice_controller::metrics::Calls;
use sluice_k8s::access::{self, Need};
use sluice_k8s::connect::{self, Connection};

use super::listeners::Listeners;
use crate::{Failure, exit};

/// What `work` needs.
pub(crate) struct Prepared {
    pub(crate) config: Config,
    pub(crate) time_factor: f64,
    pub(crate) listeners: Listeners,
    pub(crate) connection: Connection,
    pub(crate) cluster_id: String,
    pub(crate) azure: sluice_arm::Client,
    pub(crate) calls: Arc<Calls>,
    /// The pod or machine that this is.
    pub(crate) instance: String,
    /// The namespace of the Lease.
    pub(crate) namespace: String,
}

/// Goes through all phases.
pub(crate) async fn prepare(
    arguments: &ConfigArguments,
    config: &Config,
    time_factor: f64,
) -> Result<Prepared, Failure> {
    let listeners = Listeners::bind(&config.listen).await?;
    let connection = connect(arguments).await?;
    let place = lease::place(config, &connection);
    if config.leader_election.enabled {
        let no_home = |error| Failure { code: exit::WRONG, error, hint: None };
        lease::has_a_home(&connection, &place).await.map_err(no_home)?;
    }
    let namespace = place.namespace;
    permitted(config, &connection, &namespace).await?;
    let cluster_id = cluster_id(config, &connection).await?;
    let (azure, calls) = azure(config).await?;
    Ok(Prepared {
        config: config.clone(),
        time_factor,
        listeners,
        connection,
        cluster_id,
        azure,
        calls,
        instance: instance(),
        namespace,
    })
}

async fn connect(arguments: &ConfigArguments) -> Result<Connection, Failure> {
    let connected = connect::connect(arguments.kubeconfig.as_deref(), arguments.context.as_deref()).await;
    let connection =
        connected.map_err(|error| Failure { code: exit::KUBERNETES, error: error.into(), hint: None })?;
    tracing::info!(host = connection.host, namespace = connection.namespace, "Kubernetes: connected");
    Ok(connection)
}

/// Asks for every permission, so that a missing one is named here and not by a list that never comes.
async fn permitted(config: &Config, connection: &Connection, namespace: &str) -> Result<(), Failure> {
    let needs = access::needs(config.migration.enabled, namespace);
    let missing = access::missing(&connection.client, &needs).await.map_err(|error| Failure {
        code: exit::KUBERNETES,
        error: error.into(),
        hint: Some("the API server could not say what we may do; without that nothing is begun".into()),
    })?;
    let (bearable, fatal): (Vec<Need>, Vec<Need>) = missing.into_iter().partition(is_bearable);
    for need in &bearable {
        tracing::warn!(
            "Kubernetes: we {need}; people will miss our events. The shipped ClusterRole grants it"
        );
    }
    if fatal.is_empty() {
        tracing::info!(asked = needs.len(), missing = bearable.len(), "Kubernetes: permissions");
        return Ok(());
    }
    let list: Vec<String> = fatal.iter().map(|need| format!("\n  we {need}")).collect();
    Err(Failure {
        code: exit::KUBERNETES,
        error: anyhow::anyhow!("Kubernetes does not allow us what we need:{}", list.concat()),
        hint: Some("bind the shipped ClusterRole and Role to our account; `kubectl auth can-i --list` shows what it has".into()),
    })
}

/// Without events people are told less, and that is all.
fn is_bearable(need: &Need) -> bool {
    need.resource == "events"
}

async fn cluster_id(config: &Config, connection: &Connection) -> Result<String, Failure> {
    if let Some(id) = &config.general.cluster_id {
        tracing::info!(cluster_id = id, "cluster id, as configured");
        return Ok(id.clone());
    }
    let id = connect::cluster_id(&connection.client).await.map_err(|error| Failure {
        code: exit::KUBERNETES,
        error: error.into(),
        hint: Some("allow us to get the namespace kube-system, or set sluice.clusterId".into()),
    })?;
    tracing::info!(cluster_id = id, "cluster id: the UID of the namespace kube-system");
    Ok(id)
}

/// A client whose credential works, or whose issuer is merely away: that may pass, and is said in the
/// log and by the state of every service until it has.
async fn azure(config: &Config) -> Result<(sluice_arm::Client, Arc<Calls>), Failure> {
    let wrong =
        |error: sluice_arm::SetupError| Failure { code: exit::WRONG, error: error.into(), hint: None };
    let settings = config.arm_settings().map_err(wrong)?;
    let calls = Arc::new(Calls::default());
    let client = sluice_arm::Client::observed(&settings, {
        let calls = Arc::clone(&calls);
        move |record: &CallRecord| calls.called(record)
    })
    .map_err(wrong)?;
    match client.warm_up().await {
        Ok(()) => tracing::info!(
            host = client.host(),
            credential = config.identity.name(),
            "Azure: a token has come"
        ),
        Err(why) if why.is_refused => {
            return Err(Failure {
                code: exit::AZURE,
                error: anyhow::Error::new(why).context("Azure refuses our credential"),
                hint: Some(format!(
                    "the credential is {}; `--print-config` shows the keys that it comes from",
                    config.identity.name()
                )),
            });
        }
        Err(why) => tracing::warn!("Azure: there is no token yet, and it is asked for again: {why}"),
    }
    Ok((client, calls))
}

/// The name of the pod; elsewhere that of the machine.
fn instance() -> String {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let machine = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = named("POD_NAME").or_else(|| named("HOSTNAME")).or_else(machine);
    name.map_or_else(|| "sluice".to_owned(), |name| name.trim().to_owned())
}

/// Who holds a lease must be told apart from its own predecessor in the same pod.
pub(crate) fn identity(instance: &str) -> String {
    format!("{instance}_{}-{:x}", std::process::id(), nanoseconds() / 1_000_000)
}

/// Decides nothing but jitter.
pub(crate) fn seed() -> u64 {
    u64::try_from(nanoseconds() & u128::from(u64::MAX)).unwrap_or_default() ^ u64::from(std::process::id())
}

fn nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}
