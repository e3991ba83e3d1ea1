//! Starting and stopping.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use crate::certificates;
use crate::controllers::{self, Settings};
use crate::kinds::{NAMESPACE, SERVICE};
use crate::refusal::Refusal;
use crate::store::{Store, Write};
use crate::surface::{Surface, serve};

/// The kubeconfig, in the server's folder.
pub const KUBECONFIG: &str = "kubeconfig";
/// Namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// A handshake may take so long.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Those who are being answered when the server stops have so long.
const FAREWELL: Duration = Duration::from_secs(2);

/// How to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 for any that is free. Only addresses of this machine itself are taken.
    pub listen: SocketAddr,
    /// The folder for the kubeconfig; it must be there.
    pub dir: PathBuf,
    /// How many nodes there are. Without any there is no scheduler and no kubelet either: pods stay pending.
    pub nodes: u16,
    /// How much faster than life the cluster lives.
    pub time_factor: f64,
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Others could reach it.
    #[error("{address} can be reached by other machines; listen on 127.0.0.1")]
    NotLoopback {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another port, or 0 for any that is free")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The kubeconfig cannot be written.
    #[error("cannot write {}: {source}; make sure that the folder is there and can be written", path.display())]
    Folder {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No certificate could be made.
    #[error("cannot make a certificate: {why}")]
    Certificate {
        /// What is wrong.
        why: String,
    },
    /// A number is out of its range.
    #[error("the time factor {0} is not a number above 0")]
    TimeFactor(f64),
    /// What every cluster has could not be made.
    #[error("cannot make the first objects: {0}")]
    Seed(#[from] Refusal),
}

/// A server that serves. Dropped without [`Running::stop`] it breaks off.
#[derive(Debug)]
pub struct Running {
    /// Where it is.
    pub url: String,
    /// The file for `KUBECONFIG`.
    pub kubeconfig: PathBuf,
    /// The certificate that clients trust.
    pub ca_pem: String,
    /// The token that lets in.
    pub token: String,
    /// What it serves; the same calls as over HTTP.
    pub store: Store,
    stop: watch::Sender<bool>,
    door: JoinHandle<()>,
    /// Those who work behind the door; they end with it.
    _controllers: JoinSet<()>,
}

/// Opens the door. Must be called in a tokio runtime.
///
/// The future is boxed, so that it is compiled here and not in every crate that starts a server.
pub fn start(options: Options) -> BoxFuture<'static, Result<Running, StartError>> {
    Box::pin(open(options))
}

async fn open(options: Options) -> Result<Running, StartError> {
    if !options.listen.ip().is_loopback() {
        return Err(StartError::NotLoopback { address: options.listen });
    }
    if !(options.time_factor > 0.0 && options.time_factor.is_finite()) {
        return Err(StartError::TimeFactor(options.time_factor));
    }
    let refused = |source| StartError::Listen { address: options.listen, source };
    let listener = TcpListener::bind(options.listen).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let (ca_pem, tls) = certificates::make(address.ip())?;
    let url = format!("https://{address}");
    let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let kubeconfig = options.dir.join(KUBECONFIG);
    write_kubeconfig(&kubeconfig, &url, &ca_pem, &token)?;

    let store = Store::new();
    seed(&store)?;
    let _controllers = controllers::run(
        &store,
        Settings {
            nodes: options.nodes,
            kubelet: options.nodes > 0,
            time_factor: options.time_factor,
            ..Settings::default()
        },
    );
    let (stop, stopped) = watch::channel(false);
    let surface = Arc::new(Surface { store: store.clone(), token: token.clone(), stop: stopped.clone() });
    let door = tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(tls)), surface, stopped));
    Ok(Running { url, kubeconfig, ca_pem, token, store, stop, door, _controllers })
}

impl Running {
    /// Ends all watches, finishes what is being answered, and closes the door.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // It ends by itself; a panic in it is told by the runtime.
        let _ = (&mut self.door).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.door.abort();
    }
}

/// Ends when the server stops, or is gone.
pub(crate) async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// What every cluster has from its first moment.
fn seed(store: &Store) -> Result<(), Refusal> {
    let write = Write::by("kube-apiserver");
    for name in NAMESPACES {
        store.create(&NAMESPACE, "", json!({"metadata": {"name": name}}), &write)?;
    }
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": "10.96.0.1",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]},
    });
    store.create(&SERVICE, "default", service, &write)?;
    Ok(())
}

async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    surface: Arc<Surface>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = told_to_stop(&mut stopped) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, tls.clone(), surface.clone(), stopped.clone()));
                }
                // A stranger who left, or too many open files: the next one may have more luck.
                Err(problem) => {
                    debug!(%problem, "a connection was not accepted");
                    tokio::task::yield_now().await;
                }
            }
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(FAREWELL, all).await.is_err() {
        connections.shutdown().await;
    }
}

async fn connection(
    stream: TcpStream,
    tls: TlsAcceptor,
    surface: Arc<Surface>,
    mut stopped: watch::Receiver<bool>,
) {
    // Small answers go out at once.
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = timeout(HANDSHAKE, tls.accept(stream)).await else { return };
    let service = service_fn(move |request| {
        let surface = surface.clone();
        async move { Ok::<_, std::convert::Infallible>(serve(surface, request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(1_000);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        ended = serving.as_mut() => {
            if let Err(problem) = ended {
                debug!(%problem, "a connection broke off");
            }
        }
        () = told_to_stop(&mut stopped) => {
            serving.as_mut().graceful_shutdown();
            let _ = serving.await;
        }
    }
}

fn write_kubeconfig(path: &Path, url: &str, ca_pem: &str, token: &str) -> Result<(), StartError> {
    let ca = STANDARD.encode(ca_pem);
    let text = format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: sluice-playground\n  cluster:\n    server: {url}\n    \
         certificate-authority-data: {ca}\nusers:\n- name: playground-admin\n  user:\n    token: {token}\ncontexts:\n\
         - name: sluice-playground\n  context:\n    cluster: sluice-playground\n    user: playground-admin\n    \
         namespace: default\ncurrent-context: sluice-playground\n"
    );
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| StartError::Folder { path: path.to_owned(), source })
}
