//! Starting and stopping.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tracing::warn;

use crate::certificates::Authority;
use crate::doors::{Door, House};
use crate::front::Front;
use crate::journal::{Journal, JournalError};
use crate::options::Options;
use crate::request_log::RequestLog;
use crate::tokens::Tokens;
use crate::world::{Shared, World};

/// The slowest and the fastest clock.
const TIME_FACTORS: std::ops::RangeInclusive<f64> = 0.1..=10_000.0;

/// Why an emulator did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Others could reach it, and nobody has said that they may.
    #[error("{address} can be reached by other machines, and the emulator lets everybody write")]
    NotLoopback {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A key or certificate is there and useless.
    #[error("cannot use {}: {why}", path.display())]
    Certificate {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The state file cannot be used.
    #[error(transparent)]
    State(#[from] JournalError),
    /// A number is out of its range.
    #[error("the time factor {0} is not between 0.1 and 10000")]
    TimeFactor(f64),
}

impl StartError {
    /// What one can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            StartError::NotLoopback { .. } => {
                "listen on 127.0.0.1, or say --insecure-listen if everybody on that network may write"
            }
            StartError::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                "another program has this port; choose another one, or port 0 for any that is free"
            }
            StartError::Listen { .. } => "choose an address of this machine, 127.0.0.1:0 for instance",
            StartError::Folder { .. } => {
                "make sure that the folder is there and can be written, or name another"
            }
            StartError::Certificate { .. } => {
                "remove the file to have a new one made; clients must then trust the new CA"
            }
            StartError::State(JournalError::InUse { .. }) => "stop the other one, or name another file",
            StartError::State(JournalError::Line { .. }) => {
                "remove that line to lose that write and perhaps what follows from it, or name another file \
                 to begin anew"
            }
            StartError::State(JournalError::Foreign { .. }) => "name another file; this one was left alone",
            StartError::State(JournalError::File { .. }) => {
                "make sure that the file can be read and written and its folder is there"
            }
            StartError::TimeFactor(_) => "1 is real time, 100 makes a wait of 5 s one of 50 ms",
        }
    }
}

/// The emulator, to be started.
#[derive(Debug)]
pub struct Emulator;

/// An emulator that serves.
///
/// Dropped without [`Running::stop`] it breaks off like a killed process: nothing in flight is
/// finished, and what was answered is in the state file all the same.
pub struct Running {
    address: SocketAddr,
    http_address: Option<SocketAddr>,
    /// What clients call us, if the address is no name for it.
    name: Option<String>,
    authority: Authority,
    tokens: Arc<Tokens>,
    world: Shared,
    stop: watch::Sender<bool>,
    doors: Vec<JoinHandle<()>>,
    /// Goes when it is dropped.
    _temporary: Option<TempDir>,
}

impl Emulator {
    /// Opens the doors. Must be called in a tokio runtime.
    ///
    /// The future is boxed, so that it is compiled here and not in every crate that starts an emulator.
    pub fn start(options: Options) -> Pin<Box<dyn Future<Output = Result<Running, StartError>> + Send>> {
        Box::pin(Emulator::open(options))
    }

    async fn open(options: Options) -> Result<Running, StartError> {
        if !TIME_FACTORS.contains(&options.time_factor) {
            return Err(StartError::TimeFactor(options.time_factor));
        }
        let asked = [(options.listen, options.insecure_listen)];
        let plain = options.listen_http.map(|address| (address, false));
        for (address, may_be_open) in asked.into_iter().chain(plain) {
            if !address.ip().is_loopback() && !may_be_open {
                return Err(StartError::NotLoopback { address });
            }
        }
        let (folder, temporary) = folder(&options)?;
        let authority = Authority::in_folder(&folder)?;
        let tokens = Arc::new(Tokens::in_folder(&folder, options.token_lifetime)?);

        let listener = listen(options.listen).await?;
        let address = own_address(&listener, options.listen);
        let plain = match options.listen_http {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let http_address = plain.as_ref().zip(options.listen_http).map(|(it, asked)| own_address(it, asked));

        let (config, journal) = match &options.state_file {
            None => (options.cloud.clone(), None),
            Some(path) => {
                let (journal, config, history) = Journal::open(path, &options.cloud)?;
                if config != options.cloud {
                    warn!(
                        file = %path.display(),
                        "the cloud in the state file began with other settings, and keeps them"
                    );
                }
                (config, Some((journal, history)))
            }
        };
        let world = Shared::new(World::new(
            config.clone(),
            options.time_factor,
            journal,
            Arc::clone(&tokens),
            RequestLog::new(options.limits.log_entries_max),
            options.prepare,
        ));
        let front = Arc::new(Front {
            world: world.clone(),
            tokens: Arc::clone(&tokens),
            credentials: options.credentials.clone(),
            body_bytes_max: config.body_bytes_max,
            body_time: options.limits.body,
        });
        let (stop, stopped) = watch::channel(false);
        let house = House {
            front,
            places: Arc::new(Semaphore::new(options.limits.connections_max)),
            limits: options.limits,
            stop: stopped,
        };
        let tls = TlsAcceptor::from(Arc::new(authority.server(address.ip(), &options.names)?));
        let mut doors = vec![tokio::spawn(Door { listener, tls: Some(tls) }.serve(house.clone()))];
        if let Some(listener) = plain {
            doors.push(tokio::spawn(Door { listener, tls: None }.serve(house)));
        }
        // An address that stands for all of a machine's is none that one can connect to everywhere.
        let name = options.names.first().cloned();
        let name = name.or_else(|| address.ip().is_unspecified().then(|| "127.0.0.1".to_owned()));
        Ok(Running {
            address,
            http_address,
            name,
            authority,
            tokens,
            world,
            stop,
            doors,
            _temporary: temporary,
        })
    }
}

impl Running {
    /// Where HTTPS is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where plain HTTP is served, if it is.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// The resource manager, the authority and the control API: all the same.
    pub fn url(&self) -> String {
        match &self.name {
            Some(name) => format!("https://{name}:{}", self.address.port()),
            None => format!("https://{}", self.address),
        }
    }

    /// The same without TLS.
    pub fn http_url(&self) -> Option<String> {
        self.http_address.map(|address| format!("http://{address}"))
    }

    /// The file with the certificate that clients have to trust.
    pub fn ca_path(&self) -> &Path {
        &self.authority.path
    }

    /// That certificate.
    pub fn ca_pem(&self) -> &str {
        &self.authority.pem
    }

    /// The value of `IDENTITY_HEADER` for managed identities.
    pub fn identity_header(&self) -> String {
        self.tokens.identity_header()
    }

    /// Takes no new connection, finishes what is being answered, and ends.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        for door in std::mem::take(&mut self.doors) {
            // A door that panicked is closed as well.
            let _ = door.await;
        }
        self.world.lock().close();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for door in &self.doors {
            door.abort();
        }
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Where keys are kept, and a folder for them if nobody named one.
fn folder(options: &Options) -> Result<(PathBuf, Option<TempDir>), StartError> {
    let beside_state = options.state_file.as_deref().map(|file| match file.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    });
    match options.folder.clone().or(beside_state) {
        Some(folder) => {
            std::fs::create_dir_all(&folder)
                .map_err(|source| StartError::Folder { path: folder.clone(), source })?;
            Ok((folder, None))
        }
        None => {
            let made = tempfile::Builder::new().prefix("sluice-emulator-").tempdir();
            let made = made.map_err(|source| StartError::Folder { path: std::env::temp_dir(), source })?;
            Ok((made.path().to_owned(), Some(made)))
        }
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Listen { address, source })
}

fn own_address(listener: &TcpListener, asked: SocketAddr) -> SocketAddr {
    listener.local_addr().unwrap_or(asked)
}
