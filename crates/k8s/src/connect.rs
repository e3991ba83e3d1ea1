//! Finds the API server and makes sure that it answers, before anything else is tried.
//!
//! A kubeconfig that was named is used; else the pod's own account when we run in a pod; else the
//! kubeconfig that kubectl would use. One question is asked (`/version`), so that what is wrong with
//! the address, the certificate or the credential is said here, once, and with what to do about it.
//!
//! The client repeats nothing by itself: kube's own repetition of 429 and 503 would send requests
//! that nobody decided to begin, maybe after the lease has run out. Calls have limits of their own
//! (`call`); the limit on a silent connection is longer than any healthy watch is silent.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderValue, Request, Uri};
use kube::client::Body;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use serde_json::Value;

use crate::call::{CALL_LIMIT, Call, TOO_MANY_FILES, Trouble, chain, exchange};
use sluice_model::reason::cut;

/// How long a connection may take to come about, unless somebody needs it shorter.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long a connection may say nothing. Watches have bookmarks every minute or so, and one without a sound is
/// left before this (`watch::feed`), so this ends only connections whose other end is gone without a word.
const SILENCE_LIMIT: Duration = Duration::from_secs(295);
/// What we call ourselves in the API server's audit log.
const OUR_USER_AGENT: &str = concat!("sluice/", env!("CARGO_PKG_VERSION"));

/// A cluster that has answered.
#[derive(Clone)]
pub struct Connection {
    /// Speaks to it.
    pub client: Client,
    /// Speaks to it over connections of its own: a renewal of the Lease never waits behind watches and writes.
    pub lease_client: Client,
    /// Its address, for messages.
    pub host: String,
    /// Our own namespace: the pod's, or that of the kubeconfig's context.
    pub namespace: String,
    /// We use the account of the pod that we run in.
    in_a_pod: bool,
}

impl Connection {
    /// The namespace of the pod that we run in; none when a kubeconfig led here, whose namespace says only
    /// where somebody's kubectl looks.
    pub fn pod_namespace(&self) -> Option<&str> {
        self.in_a_pod.then_some(&*self.namespace)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("host", &self.host)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// Why there is no connection, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing says where the cluster is.
    #[error(
        "no Kubernetes cluster: not running in a pod, and no kubeconfig found{}; \
         set --kubeconfig or the variable KUBECONFIG", 
         .0.as_ref().map(|path| format!(" at {}", path.display())).unwrap_or_default()
    )]
    NoConfig(Option<PathBuf>),
    /// A file cannot be read or understood.
    #[error("cannot use the kubeconfig{}: {why}; check the file, or choose another with --kubeconfig", 
            .path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default())]
    BadConfig {
        /// Which file, where we know.
        path: Option<PathBuf>,
        /// What is wrong with it.
        why: String,
    },
    /// The context is not in the kubeconfig.
    #[error("the kubeconfig has no context {context:?} (available: {}); choose one with --context", listed(.known))]
    UnknownContext {
        /// What was asked for.
        context: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The kubeconfig does not say which context to use.
    #[error("the kubeconfig sets no current context (available: {}); choose one with --context", listed(.known))]
    NoContext {
        /// What there is.
        known: Vec<String>,
    },
    /// We run in a pod without a usable account.
    #[error(
        "cannot use the service account of this pod: {0}; \
         let the pod mount it (automountServiceAccountToken), or choose a kubeconfig with --kubeconfig"
    )]
    NoAccount(String),
    /// Nobody answers.
    #[error(
        "cannot reach the Kubernetes API server at {host}: {why}; check the address, the network and that it is running"
    )]
    Unreachable {
        /// Its address.
        host: String,
        /// What went wrong.
        why: String,
    },
    /// This process or machine has no file descriptor left.
    #[error("cannot connect to the Kubernetes API server at {host}: {TOO_MANY_FILES}")]
    TooManyFiles {
        /// Its address.
        host: String,
    },
    /// Its certificate is not one that we trust.
    #[error(
        "certificate of the Kubernetes API server at {host} is not trusted: {why}; \
         add its CA to the kubeconfig (certificate-authority-data), or use a name that the certificate contains"
    )]
    Untrusted {
        /// Its address.
        host: String,
        /// What is wrong with it.
        why: String,
    },
    /// It does not know us.
    #[error(
        "the Kubernetes API server at {host} does not accept the credentials (401: {why}); \
         if the token has expired, log in again; otherwise use another context"
    )]
    Unauthorized {
        /// Its address.
        host: String,
        /// Its words.
        why: String,
    },
    /// Something answers that is no API server.
    #[error("{host} is not a Kubernetes API server: {why}; check the server address in the kubeconfig")]
    NotKubernetes {
        /// Its address.
        host: String,
        /// What it said.
        why: String,
    },
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        names => names.join(", "),
    }
}

/// Connects to the cluster that the arguments or the surroundings name.
pub async fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Connection, ConnectError> {
    connect_within(kubeconfig, context, CONNECT_LIMIT).await
}

/// The same, with connections that may take only so long to come about. A write is begun before its connection
/// is made, so a leader's must not take longer than from the end of its leave to write to the end of its
/// lease.
pub async fn connect_within(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    limit: Duration,
) -> Result<Connection, ConnectError> {
    let in_a_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty());
    // A pod has no contexts, so whoever names one means a file.
    let in_a_pod = in_a_pod && kubeconfig.is_none() && context.is_none();
    let config = match kubeconfig {
        Some(path) => from_file(path, context).await?,
        None if in_a_pod => Config::incluster().map_err(|error| no_account(&error))?,
        None => from_default_file(context).await?,
    };
    let connection = Connection { in_a_pod, ..client(config, limit)? };
    greet(&connection.client, &connection.host).await?;
    Ok(connection)
}

/// What names the cluster for good: the UID of the namespace `kube-system`.
pub async fn cluster_id(client: &Client) -> Result<String, Trouble> {
    let path = "/api/v1/namespaces/kube-system".to_string();
    let namespace: Value = Call::get("namespaces", path).send(client).await?;
    let uid = namespace["metadata"]["uid"].as_str().map(str::to_string);
    uid.ok_or_else(|| Trouble::Unavailable("the namespace kube-system has no UID".into()))
}

fn no_account(error: &InClusterError) -> ConnectError {
    ConnectError::NoAccount(chain(error))
}

async fn from_file(path: &Path, context: Option<&str>) -> Result<Config, ConnectError> {
    let bad = |error: KubeconfigError| bad_config(error, Some(path));
    let kubeconfig = Kubeconfig::read_from(path).map_err(bad)?;
    from_kubeconfig(kubeconfig, context, Some(path)).await
}

async fn from_default_file(context: Option<&str>) -> Result<Config, ConnectError> {
    match Kubeconfig::read() {
        Ok(kubeconfig) => from_kubeconfig(kubeconfig, context, None).await,
        Err(KubeconfigError::FindPath) => Err(ConnectError::NoConfig(None)),
        Err(KubeconfigError::ReadConfig(error, path)) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(ConnectError::NoConfig(Some(path)))
        }
        Err(error) => Err(bad_config(error, None)),
    }
}

async fn from_kubeconfig(
    kubeconfig: Kubeconfig,
    context: Option<&str>,
    path: Option<&Path>,
) -> Result<Config, ConnectError> {
    let known: Vec<String> = kubeconfig.contexts.iter().map(|it| it.name.clone()).collect();
    let wanted = context.or(kubeconfig.current_context.as_deref()).filter(|name| !name.is_empty());
    let Some(wanted) = wanted.map(str::to_string) else { return Err(ConnectError::NoContext { known }) };
    if !known.contains(&wanted) {
        return Err(ConnectError::UnknownContext { context: wanted, known });
    }
    let options = KubeConfigOptions { context: Some(wanted), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| bad_config(error, path))
}

fn bad_config(error: KubeconfigError, path: Option<&Path>) -> ConnectError {
    match error {
        KubeconfigError::ReadConfig(error, path) => {
            ConnectError::BadConfig { path: Some(path), why: error.to_string() }
        }
        // The text of the parser may show lines of the file, and there are tokens in it.
        KubeconfigError::Parse(_) => ConnectError::BadConfig {
            path: path.map(Path::to_path_buf),
            why: "not a valid kubeconfig in YAML".into(),
        },
        error => ConnectError::BadConfig { path: path.map(Path::to_path_buf), why: chain(&error) },
    }
}

fn client(mut config: Config, limit: Duration) -> Result<Connection, ConnectError> {
    // Nobody but this machine reaches its loopback, whatever HTTPS_PROXY says for everything else.
    if is_loopback(config.cluster_url.host().unwrap_or_default()) {
        config.proxy_url = None;
    }
    config.connect_timeout = Some(limit);
    config.read_timeout = Some(SILENCE_LIMIT);
    config.reset_reader_on_write = true;
    config.default_retry = false;
    config.headers.push((USER_AGENT, HeaderValue::from_static(OUR_USER_AGENT)));
    let host = config.cluster_url.to_string().trim_end_matches('/').to_string();
    let namespace = config.default_namespace.clone();
    let new_client = |config| {
        Client::try_from(config).map_err(|error| ConnectError::BadConfig { path: None, why: chain(&error) })
    };
    let lease_client = new_client(config.clone())?;
    let client = new_client(config)?;
    Ok(Connection { client, lease_client, host, namespace, in_a_pod: false })
}

/// Whether only this machine can be meant by that host of an address.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Asks who is there.
async fn greet(client: &Client, host: &str) -> Result<(), ConnectError> {
    let host = host.to_string();
    let mut question = Request::new(Body::empty());
    *question.uri_mut() = Uri::from_static("/version");
    let (status, body) = match exchange(client, question, CALL_LIMIT).await {
        Ok(answer) => answer,
        Err(why) if why == TOO_MANY_FILES => return Err(ConnectError::TooManyFiles { host }),
        // Every TLS library names the thing that it does not trust.
        Err(why) if why.contains("certificate") => return Err(ConnectError::Untrusted { host, why }),
        Err(why) => return Err(ConnectError::Unreachable { host, why }),
    };
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    let message = answer["message"].as_str().unwrap_or_default();
    match status.as_u16() {
        200..300 if answer["gitVersion"].is_string() => Ok(()),
        // It is one, and who may ask for its version is its own affair.
        403 if answer["kind"] == "Status" => Ok(()),
        401 => Err(ConnectError::Unauthorized { host, why: cut(message, 200) }),
        500.. if answer["kind"] == "Status" || status.as_u16() == 503 => {
            Err(ConnectError::Unreachable { host, why: format!("answered {status} {}", cut(message, 200)) })
        }
        _ => Err(ConnectError::NotKubernetes { host, why: format!("answered {status} to GET /version") }),
    }
}

#[cfg(test)]
mod tests;
