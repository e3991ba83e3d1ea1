//! The two listeners: health for the kubelet and Prometheus, the API for people.
//!
//! They are bound first of all, so that a port that somebody else has is said before anything is begun.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sluice::config::Listen;
use sluice_arm::Secret;
use sluice_controller::admin::Access;
use tokio::net::TcpListener;

use crate::{Failure, exit};

/// Both, bound and not yet served.
pub(crate) struct Listeners {
    pub(crate) health: TcpListener,
    pub(crate) api: TcpListener,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) access: Access,
}

impl Listeners {
    /// Binds both, and reads what the API needs.
    pub(crate) async fn bind(config: &Listen) -> Result<Listeners, Failure> {
        let token = match &config.token_file {
            Some(path) => Some(token(path).map_err(wrong)?),
            None => None,
        };
        let tls = match (&config.tls_certificate, &config.tls_key) {
            (Some(certificate), Some(key)) => Some(tls(certificate, key).map_err(wrong)?),
            _ => None,
        };
        let access = Access { hosts: config.hosts.clone(), token };
        access.suits(config.api, tls.is_some()).map_err(|exposed| wrong(exposed.into()))?;
        let health = bind("sluice.listen.health", config.health).await?;
        let api = bind("sluice.listen.api", config.api).await?;
        tracing::info!(
            health = health.local_addr().ok().map(|it| it.to_string()),
            api = api.local_addr().ok().map(|it| it.to_string()),
            tls = tls.is_some(),
            token = access.token.is_some(),
            "listening"
        );
        Ok(Listeners { health, api, tls, access })
    }
}

fn wrong(error: anyhow::Error) -> Failure {
    Failure { code: exit::WRONG, error, hint: None }
}

async fn bind(key: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| Failure {
        code: exit::LISTEN,
        error: anyhow::Error::new(error).context(format!("cannot listen on {address} ({key})")),
        hint: Some(format!("does another process have the port? --set {key}=HOST:PORT chooses another")),
    })
}

fn token(path: &Path) -> anyhow::Result<Secret> {
    let text = std::fs::read_to_string(path).with_context(|| {
        format!("cannot read the token of the API, {} (sluice.listen.tokenFile)", path.display())
    })?;
    anyhow::ensure!(
        !text.trim().is_empty(),
        "{} has no token in it (sluice.listen.tokenFile)",
        path.display()
    );
    Ok(Secret::new(text.trim()))
}

fn tls(certificate: &Path, key: &Path) -> anyhow::Result<Arc<ServerConfig>> {
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.with_context(|| {
        format!("cannot use {} as a certificate (sluice.listen.tlsCertFile)", certificate.display())
    })?;
    let key_der = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("cannot use {} as a key (sluice.listen.tlsKeyFile)", key.display()))?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key_der)
        .with_context(|| format!("{} and {} do not belong together", certificate.display(), key.display()))?;
    Ok(Arc::new(config))
}
