//! Everything that must be right before anything is begun, one phase after the other, each with a
//! line of the log and a message of its own when it is not.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;
use sluice_arm::{CallRecord, Observer as _};
use sluice_controller::metrics::Calls;
use sluice_k8s::access::{self, Need};
use sluice_k8s::connect::Connection;

use super::listeners::Listeners;
use crate::config::{Config, ConfigArguments};
use crate::doctor::{self, Finding, Mark};
use crate::failure::{Failure, exit};
use crate::{lease, reach};

/// What `work` needs.
pub struct Prepared {
    pub(crate) config: Config,
    /// How many seconds pass for the loop in a real one.
    #[cfg(feature = "lab")]
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

impl Prepared {
    /// Where health and metrics are served.
    pub fn health_address(&self) -> io::Result<SocketAddr> {
        self.listeners.health.local_addr()
    }

    /// Where the API and the dashboard are served.
    pub fn api_address(&self) -> io::Result<SocketAddr> {
        self.listeners.api.local_addr()
    }

    /// The same, for a loop whose clock runs that many times as fast as real time.
    #[cfg(feature = "lab")]
    pub fn with_time_factor(self, time_factor: f64) -> Prepared {
        Prepared { time_factor, ..self }
    }
}

/// Goes through all phases.
pub fn prepare<'a>(
    arguments: &'a ConfigArguments,
    config: &'a Config,
) -> BoxFuture<'a, Result<Prepared, Failure>> {
    Box::pin(all_phases(arguments, config))
}

async fn all_phases(arguments: &ConfigArguments, config: &Config) -> Result<Prepared, Failure> {
    let listeners = Listeners::bind(&config.listen)?;
    let connection = reach::kubernetes(arguments, config).await?;
    let place = lease::place(config, &connection);
    if config.leader_election.enabled {
        let no_home = |error: anyhow::Error| Failure::new(exit::WRONG, error);
        lease::has_a_home(&connection, &place).await.map_err(no_home)?;
    }
    let namespace = place.namespace;
    permitted(config, &connection, &namespace).await?;
    alone(config, &connection).await?;
    let cluster_id = reach::cluster_id(config, &connection).await?;
    let (azure, calls) = azure(config).await?;
    Ok(Prepared {
        config: config.clone(),
        #[cfg(feature = "lab")]
        time_factor: 1.0,
        listeners,
        connection,
        cluster_id,
        azure,
        calls,
        instance: instance(),
        namespace,
    })
}

/// Asks for every permission, so that a missing one is named here and not by a list that never comes.
async fn permitted(config: &Config, connection: &Connection, namespace: &str) -> Result<(), Failure> {
    let election = config.leader_election.enabled.then_some(namespace);
    let needs = access::needs(election);
    let missing = access::missing(&connection.client, &needs).await.map_err(|error| Failure {
        code: exit::KUBERNETES,
        error: error.into(),
        hint: Some(
            "the permissions of the account could not be checked; run `kubectl auth can-i --list`, then retry".into(),
        ),
    })?;
    let (bearable, fatal): (Vec<Need>, Vec<Need>) = missing.into_iter().partition(Need::is_bearable);
    for need in &bearable {
        let (permission, impact) = (doctor::permission(need), doctor::impact(need));
        tracing::warn!(
            permission,
            impact,
            "missing Kubernetes permission; apply the shipped ClusterRole and Role"
        );
    }
    if fatal.is_empty() {
        tracing::info!(asked = needs.len(), missing = bearable.len(), "checked Kubernetes permissions");
        return Ok(());
    }
    let list: Vec<String> = fatal.iter().map(|need| format!("\n  {}", doctor::permission(need))).collect();
    Err(Failure {
        code: exit::KUBERNETES,
        error: anyhow::anyhow!("the Kubernetes account lacks these permissions:{}", list.concat()),
        hint: Some(doctor::GRANT.into()),
    })
}

/// Two writers of one gateway undo each other's work, so beside the predecessor we do not start.
async fn alone(config: &Config, connection: &Connection) -> Result<(), Failure> {
    let Some(Finding { mark, text, remedy, .. }) = doctor::predecessor(connection, config).await else {
        return Ok(());
    };
    let remedy = remedy.unwrap_or_default();
    if mark != Mark::Problem {
        tracing::warn!(finding = text, remedy, "another controller may use the gateway");
        return Ok(());
    }
    Err(Failure::new(exit::FAILED, anyhow::anyhow!("another controller uses the gateway: {text}"))
        .hint(remedy))
}

/// A client whose credential works, or whose issuer is merely away: that may pass, and is said in the
/// log and by the state of every service until it has.
async fn azure(config: &Config) -> Result<(sluice_arm::Client, Arc<Calls>), Failure> {
    let calls = Arc::new(Calls::default());
    let client = reach::azure(config, {
        let calls = Arc::clone(&calls);
        move |record: &CallRecord| calls.called(record)
    })?;
    match client.warm_up().await {
        Ok(()) => tracing::info!(
            host = client.host(),
            credential = config.identity.name(),
            "received Azure access token"
        ),
        Err(why) if why.is_refused => return Err(reach::no_credential(config, why)),
        Err(why) => tracing::warn!(error = %why, "no Azure access token yet; retrying"),
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

/// Decides nothing but jitter.
pub(crate) fn seed() -> u64 {
    u64::try_from(nanoseconds() & u128::from(u64::MAX)).unwrap_or_default() ^ u64::from(std::process::id())
}

fn nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}
