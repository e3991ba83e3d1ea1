//! Reaches both worlds, Kubernetes and Azure, as one configuration says: for every command that works on
//! them.
//!
//! Each step that fails has the same exit code and the same words whichever command took it. What a command
//! asks beside that (`run`: its permissions) stands between the steps. Missing on purpose: patience with a
//! credential. `run` waits for an issuer that is away; whoever only looks says so and ends.

use std::time::Duration;

use sluice_arm::{Client, NoCredential, Observer, SetupError};
use sluice_controller::{Clock, Monotonic};
use sluice_k8s::Trouble;
use sluice_k8s::connect::{self, Connection};
use sluice_k8s::watch::{ListError, list_all};
use sluice_model::FailureClass;

use crate::config::{Config, ConfigArguments, Loaded};
use crate::failure::{Failure, exit};
use crate::plan::foresight::Worlds;
use crate::plan::reading::{Unreadable, read_azure};

/// How often something is read at most that fails in a way which passes.
const TRIES: u32 = 4;
/// The pause after the first try; each one is twice as long as the one before.
const PAUSE: Duration = Duration::from_secs(1);

/// Both worlds, as one configuration reaches them.
#[derive(Debug)]
pub struct Reached {
    /// The configuration.
    pub config: Config,
    /// The API server.
    pub connection: Connection,
    /// Azure.
    pub azure: Client,
    /// The value of our cluster tag.
    pub cluster_id: String,
}

impl Reached {
    /// Connects to both, or says which of them cannot be reached and why.
    pub async fn by(arguments: &ConfigArguments) -> Result<Reached, Failure> {
        let config = load(arguments)?.config;
        let connection = kubernetes(arguments, &config).await?;
        let cluster_id = cluster_id(&config, &connection).await?;
        let azure = azure(&config, |_: &sluice_arm::CallRecord| {})?;
        azure.warm_up().await.map_err(|why| no_credential(&config, why))?;
        Ok(Reached { config, connection, azure, cluster_id })
    }

    /// Reads both completely.
    pub async fn read(&self) -> Result<Worlds, Failure> {
        let scope = self.config.scope(&self.cluster_id);
        let clock = Monotonic::start();
        // Kubernetes comes last: what Azure has for an object that is newer than its list looks like an orphan.
        let azure =
            again(&clock, async || read_azure(self.config.updaters(), &scope, &self.azure, &clock).await);
        let azure = azure.await?;
        let selection = self.config.selection();
        let listed = again(&clock, async || list_all(&self.connection.client, &selection).await).await;
        let listed = listed.map_err(|error| Failure::new(exit::KUBERNETES, error))?;
        Ok(Worlds { kubernetes: listed.events, skipped: listed.skipped, azure })
    }
}

/// The configuration, or all that is wrong with it.
pub fn load(arguments: &ConfigArguments) -> Result<Loaded, Failure> {
    arguments.load().map_err(|error| {
        Failure::new(exit::WRONG, error)
            .hint("correct what the message names; `sluice explain SGW0101` lists the causes and their fixes")
    })
}

/// The API server, if it answers.
pub async fn kubernetes(arguments: &ConfigArguments, config: &Config) -> Result<Connection, Failure> {
    let ConfigArguments { kubeconfig, context, .. } = arguments;
    let limit = config.kubernetes_connect_limit();
    let connected = connect::connect_within(kubeconfig.as_deref(), context.as_deref(), limit).await;
    let connection = connected.map_err(|error| Failure::new(exit::KUBERNETES, error))?;
    tracing::info!(host = connection.host, namespace = connection.namespace, "connected to Kubernetes");
    Ok(connection)
}

/// The value of our cluster tag: the configured one, else the UID of kube-system.
pub async fn cluster_id(config: &Config, connection: &Connection) -> Result<String, Failure> {
    if let Some(id) = &config.general.cluster_id {
        tracing::info!(cluster_id = id, source = "sluice.clusterId", "cluster ID determined");
        return Ok(id.clone());
    }
    let id = connect::cluster_id(&connection.client).await.map_err(|error| {
        Failure::new(exit::KUBERNETES, error)
            .hint("grant get on the namespace kube-system, or set sluice.clusterId")
    })?;
    tracing::info!(cluster_id = id, source = "UID of namespace kube-system", "cluster ID determined");
    Ok(id)
}

/// A client for Azure, which has not asked for a token yet.
pub fn azure(config: &Config, observer: impl Observer + 'static) -> Result<Client, Failure> {
    let wrong = |error: SetupError| Failure::new(exit::WRONG, error);
    Client::observed(&config.arm_settings().map_err(wrong)?, observer).map_err(wrong)
}

/// There is no token, and nothing is begun without one.
pub fn no_credential(config: &Config, why: NoCredential) -> Failure {
    let words =
        if why.is_refused { "Azure rejected the credential" } else { "cannot get an access token for Azure" };
    Failure::new(exit::AZURE, anyhow::Error::new(why).context(words)).hint(format!(
        "the credential is {}; `sluice run --config FILE --print-config` shows its keys; `sluice explain SGW0104` lists the causes",
        config.identity.name()
    ))
}

/// A failure that may be over in a moment.
pub(crate) trait Passing {
    fn is_passing(&self) -> bool;
}

impl Passing for ListError {
    fn is_passing(&self) -> bool {
        self.is_passing
    }
}

impl Passing for Trouble {
    fn is_passing(&self) -> bool {
        Trouble::is_passing(self)
    }
}

impl Passing for Unreadable {
    fn is_passing(&self) -> bool {
        matches!(
            self.failure.class,
            FailureClass::Transient | FailureClass::Throttled | FailureClass::Unknown
        )
    }
}

/// Reads again what failed in a way that passes, a few times.
pub(crate) async fn again<T, E: Passing>(
    clock: &impl Clock,
    read: impl AsyncFn() -> Result<T, E>,
) -> Result<T, E> {
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        match read().await {
            Err(error) if error.is_passing() => {}
            done => return done,
        }
        clock.sleep_until(clock.now() + pause).await;
        pause *= 2;
    }
    read().await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use sluice_model::kube::Kind;

    use super::*;

    fn error(is_passing: bool) -> ListError {
        ListError { kind: Kind::Node, trouble: "not now".into(), is_passing, is_denied: false }
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_for_a_moment_is_read_again_and_what_is_refused_is_not() {
        let clock = Monotonic::start();
        for (is_passing, fails, reads) in [(true, 2, 3), (true, 9, TRIES), (false, 2, 1), (true, 0, 1)] {
            let count = Cell::new(0);
            let read = again(&clock, async || {
                count.set(count.get() + 1);
                if count.get() <= fails { Err(error(is_passing)) } else { Ok(()) }
            });
            assert_eq!(read.await.is_ok(), reads > fails);
            assert_eq!(count.get(), reads);
        }
    }
}
