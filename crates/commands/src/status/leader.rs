//! Reaches the controller that leads: by its address, or through the API server.
//!
//! Without an address the Lease says which pod leads, and the API server forwards a port of it, so
//! that nothing of the controller has to be reachable from here. What may be read is then decided by
//! who may forward ports in its namespace.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use reqwest::Url;
use serde::de::DeserializeOwned;
use sluice_arm::Secret;
use sluice_k8s::lease::{Answer, Place, read_lease};
use sluice_view::{Page, Problem};

/// How long one answer may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Where the controller is.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Controller")]
pub struct LeaderArguments {
    /// URL of the controller API, for example `http://127.0.0.1:8082`
    ///
    /// By default, the command finds the leader by its Lease and connects through the Kubernetes API server.
    #[arg(long, value_name = "URL", env = "SLUICE_ADDRESS", value_parser = address)]
    pub address: Option<Url>,
    /// File with the bearer token for the controller API
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// PEM file with the CA of the controller API [default: system roots]
    #[arg(long, value_name = "FILE", requires = "address")]
    pub ca_file: Option<PathBuf>,
    /// Kubeconfig file [default: in-cluster, then kubectl's default]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Kubeconfig context [default: the current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace of the Lease and of the controller
    #[arg(long, value_name = "NAME", default_value = crate::lease::SHIPPED_NAMESPACE)]
    pub lease_namespace: String,
    /// Name of the Lease
    #[arg(long, value_name = "NAME", default_value = "sluice")]
    pub lease_name: String,
    /// Port of the controller API in the leader's pod
    #[arg(long, value_name = "PORT", default_value_t = 8082)]
    pub api_port: u16,
}

/// The controller that leads.
pub struct Leader {
    way: Way,
    token: Option<Secret>,
    /// How to call it in messages.
    name: String,
}

enum Way {
    Direct { client: reqwest::Client, base: Url },
    Tunnel { pods: Box<Api<Pod>>, pod: String, port: u16 },
}

impl std::fmt::Debug for Leader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leader").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The API has answered, and says no.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// The HTTP status.
    pub status: u16,
    /// The fixed word.
    pub error: String,
    /// The sentence.
    pub message: String,
}

impl Leader {
    /// Finds it. That it answers is not known before it is asked.
    pub async fn find(arguments: &LeaderArguments) -> anyhow::Result<Leader> {
        let token = match &arguments.token_file {
            Some(path) => {
                let read = std::fs::read_to_string(path);
                Some(Secret::new(read.with_context(|| {
                    format!("cannot read the token file {} (--token-file)", path.display())
                })?))
            }
            None => None,
        };
        if let Some(address) = &arguments.address {
            let client = direct(address, arguments.ca_file.as_ref())?;
            let way = Way::Direct { client, base: address.clone() };
            return Ok(Leader { way, token, name: address.to_string() });
        }
        let connection =
            sluice_k8s::connect::connect(arguments.kubeconfig.as_deref(), arguments.context.as_deref())
                .await?;
        let place =
            Place { namespace: arguments.lease_namespace.clone(), name: arguments.lease_name.clone() };
        let holder = holder(&connection.client, &place).await?;
        let pod = pod_of(&holder);
        let name = format!("pod {}/{pod}", place.namespace);
        let pods = Box::new(Api::namespaced(connection.client, &place.namespace));
        let way = Way::Tunnel { pods, pod: pod.to_owned(), port: arguments.api_port };
        Ok(Leader { way, token, name })
    }

    /// Asks for one thing.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let asking = async {
            let mut answer = self.send(path, &[]).await?;
            let mut body = Vec::new();
            while let Some(chunk) = answer.next().await? {
                body.extend_from_slice(&chunk);
            }
            Ok::<_, anyhow::Error>((answer.status, body))
        };
        let asked = tokio::time::timeout(LIMIT, asking).await;
        let (status, body) =
            asked.map_err(|_| anyhow!("{} did not respond within {} s", self.name, LIMIT.as_secs()))??;
        if !(200..300).contains(&status) {
            return Err(self.refused(status, &body));
        }
        serde_json::from_slice(&body).with_context(|| {
            format!(
                "{} sent a response that this version cannot read; use the version of the controller",
                self.name
            )
        })
    }

    /// Asks for everything of a list, page by page.
    pub async fn all<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> anyhow::Result<Vec<T>> {
        let mut items = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let mut pairs = url_pairs(query);
            if let Some(after) = &after {
                pairs.append_pair("continue", after);
            }
            let page: Page<T> = self.get(&format!("{path}?{}", pairs.finish())).await?;
            items.extend(page.items);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(items),
            }
        }
    }

    /// Opens the stream of changes.
    pub(super) async fn events(&self, last_id: Option<&str>) -> anyhow::Result<Chunks> {
        let headers: Vec<(&str, &str)> = last_id.map(|id| ("last-event-id", id)).into_iter().collect();
        let opening = self.send("/api/v1/events", &headers);
        let opened = tokio::time::timeout(LIMIT, opening).await;
        let mut answer =
            opened.map_err(|_| anyhow!("{} did not respond within {} s", self.name, LIMIT.as_secs()))??;
        if answer.status != 200 {
            let mut body = Vec::new();
            while let Some(chunk) = answer.next().await? {
                body.extend_from_slice(&chunk);
            }
            return Err(self.refused(answer.status, &body));
        }
        Ok(answer)
    }

    /// How to call it in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn refused(&self, status: u16, body: &[u8]) -> anyhow::Error {
        let name = &self.name;
        match serde_json::from_slice::<Problem>(body) {
            Ok(Problem { error, message, .. }) if status == 401 => Refused {
                status,
                error,
                message: format!("{}; set --token-file FILE", message.trim_end_matches('.')),
            }
            .into(),
            Ok(Problem { error, message, .. }) => Refused { status, error, message }.into(),
            Err(_) => {
                anyhow!("{name} answered with status {status} and without a Sluice error; check the address")
            }
        }
    }

    async fn send(&self, path: &str, headers: &[(&str, &str)]) -> anyhow::Result<Chunks> {
        match &self.way {
            Way::Direct { client, base } => {
                let url =
                    base.join(path).with_context(|| format!("invalid address: {base} with path {path}"))?;
                let mut request = client.get(url);
                for (name, value) in headers {
                    request = request.header(*name, *value);
                }
                if let Some(token) = &self.token {
                    request = request.bearer_auth(token.reveal());
                }
                let answer = request.send().await.map_err(|error| {
                    let why = anyhow::Error::new(error.without_url());
                    anyhow!(
                        "cannot connect to {}: {why:#}; check that a controller listens there (sluice.listen.api)",
                        self.name
                    )
                })?;
                Ok(Chunks { status: answer.status().as_u16(), body: Body::Direct(answer) })
            }
            Way::Tunnel { pods, pod, port } => {
                let mut request = http::Request::get(path).header("host", "localhost");
                for (name, value) in headers {
                    request = request.header(*name, *value);
                }
                if let Some(token) = &self.token {
                    request = request.header("authorization", format!("Bearer {}", token.reveal()));
                }
                let request =
                    request.body(Empty::<Bytes>::new()).context("invalid path or token for a request")?;
                tunnel(pods, pod, *port, request).await.map_err(|why| {
                    anyhow!(
                        "cannot port-forward to {}, port {port}: {why:#}; to connect directly, set --address or \
                         SLUICE_ADDRESS",
                        self.name
                    )
                })
            }
        }
    }
}

/// An answer, piece by piece.
pub(super) struct Chunks {
    status: u16,
    body: Body,
}

enum Body {
    Direct(reqwest::Response),
    /// The connection goes with the answer.
    Tunnel(Incoming, tokio::task::JoinHandle<()>),
}

impl Chunks {
    /// The next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<Bytes>> {
        match &mut self.body {
            Body::Direct(answer) => Ok(answer.chunk().await.map_err(reqwest::Error::without_url)?),
            Body::Tunnel(body, _) => loop {
                match body.frame().await.transpose()? {
                    None => return Ok(None),
                    Some(frame) => {
                        if let Ok(data) = frame.into_data() {
                            return Ok(Some(data));
                        }
                    }
                }
            },
        }
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        if let Body::Tunnel(_, connection) = &self.body {
            connection.abort();
        }
    }
}

async fn tunnel(
    pods: &Api<Pod>,
    pod: &str,
    port: u16,
    request: http::Request<Empty<Bytes>>,
) -> anyhow::Result<Chunks> {
    let mut forwarder = pods.portforward(pod, &[port]).await.map_err(forwarding)?;
    let stream = forwarder.take_stream(port).context("the port was not forwarded")?;
    let trouble = forwarder.take_error(port).context("the port was not forwarded")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(async move {
        let _ = connection.await;
        drop(forwarder);
    });
    let answered = tokio::select! {
        answered = sender.send_request(request) => answered.map_err(anyhow::Error::from),
        Some(trouble) = trouble => Err(anyhow!("{}", trouble.trim())),
    };
    match answered {
        Ok(answer) => {
            let status = answer.status().as_u16();
            Ok(Chunks { status, body: Body::Tunnel(answer.into_body(), connection) })
        }
        Err(error) => {
            connection.abort();
            Err(error)
        }
    }
}

fn forwarding(error: kube::Error) -> anyhow::Error {
    match &error {
        kube::Error::Api(status) if status.code == 403 => {
            anyhow!("access denied, needs create on pods/portforward: {}", status.message)
        }
        // Its own words are a dump of the answer.
        kube::Error::Api(status) => {
            anyhow!("the API server rejected the port-forward: {} ({})", status.message, status.code)
        }
        _ => anyhow::Error::new(error),
    }
}

/// Who holds the Lease.
async fn holder(client: &kube::Client, place: &Place) -> anyhow::Result<String> {
    let Place { namespace, name } = place;
    let lease = match read_lease(client, place, LIMIT).await {
        Answer::Found(lease) => lease,
        Answer::Missing => bail!(
            "no leader: Lease {namespace}/{name} does not exist; if the controller runs elsewhere, set \
             --lease-namespace and --lease-name, or --address"
        ),
        Answer::Failed(trouble) => bail!("cannot read Lease {namespace}/{name}: {trouble}"),
        Answer::Written(_) | Answer::Conflict => bail!("unexpected response for Lease {namespace}/{name}"),
    };
    let holder = lease.spec.and_then(|spec| spec.holder_identity).filter(|holder| !holder.is_empty());
    holder.with_context(|| {
        format!("no leader: Lease {namespace}/{name} has no holder; check `kubectl -n {namespace} get pods`")
    })
}

/// The pod in what a leader calls itself: `POD_PROCESS`.
fn pod_of(holder: &str) -> &str {
    holder.rsplit_once('_').map_or(holder, |(pod, _)| pod)
}

/// The address of an API, from a flag or the environment.
fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| {
        "expected the URL of the controller API, for example http://127.0.0.1:8082 (--address or SLUICE_ADDRESS)"
            .to_owned()
    })
}

fn direct(address: &Url, ca_file: Option<&PathBuf>) -> anyhow::Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("sluice/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_secs(10))
        .redirect(reqwest::redirect::Policy::none());
    let host = address.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    if is_loopback {
        builder = builder.no_proxy();
    }
    match address.scheme() {
        "http" => {}
        _ => builder = builder.tls_backend_preconfigured(trust(ca_file)?),
    }
    builder.build().context("cannot create an HTTP client")
}

fn trust(ca_file: Option<&PathBuf>) -> anyhow::Result<rustls::ClientConfig> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    let mut roots = rustls::RootCertStore::empty();
    match ca_file {
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(path) => {
            let unusable = || format!("cannot read CA certificates from {} (--ca-file)", path.display());
            for certificate in CertificateDer::pem_file_iter(path).with_context(unusable)? {
                roots.add(certificate.with_context(unusable)?).with_context(unusable)?;
            }
        }
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

fn url_pairs(query: &[(&str, &str)]) -> url::form_urlencoded::Serializer<'static, String> {
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    pairs.extend_pairs(query);
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_stands_before_the_last_underscore() {
        assert_eq!(pod_of("sluice-7d9c-abcde_12-18f"), "sluice-7d9c-abcde");
        assert_eq!(pod_of("sluice-0"), "sluice-0");
    }

    #[test]
    fn an_address_that_is_no_http_url_is_refused_with_an_example() {
        for wrong in ["", "foo", "127.0.0.1:8082", "localhost:8082", "ftp://example.com", "http://"] {
            let error = address(wrong).unwrap_err();
            assert!(error.contains("for example http://127.0.0.1:8082"), "{wrong}: {error}");
        }
        for right in ["http://127.0.0.1:8082", "https://sluice.example/"] {
            address(right).unwrap();
        }
    }

    #[test]
    fn an_api_server_that_does_not_forward_is_a_sentence() {
        let status =
            kube::core::Status::failure("pods/portforward is not served here", "NotFound").with_code(404);
        let error = format!("{:#}", forwarding(kube::Error::Api(status.boxed())));
        assert_eq!(
            error,
            "the API server rejected the port-forward: pods/portforward is not served here (404)"
        );
    }
}
