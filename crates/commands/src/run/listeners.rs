//! The two listeners: health for the kubelet and Prometheus, the API for people.
//!
//! They are bound first of all, so that a port that somebody else has is said before anything is begun. What
//! the API needs to be reached from elsewhere, its token and its certificate, is read again while it runs
//! ([`Renewals`](super::renewals::Renewals)).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use sluice_controller::admin::Access;
use tokio::net::{TcpListener, TcpSocket};

use super::renewals::Renewals;
use crate::config::Listen;
use crate::failure::{Failure, exit};

/// Both, bound and not yet served.
pub(crate) struct Listeners {
    pub(crate) health: TcpListener,
    pub(crate) api: TcpListener,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) access: Access,
    /// Reads again what the API needs; none if that is nothing.
    pub(crate) renewals: Option<Renewals>,
}

impl Listeners {
    /// Binds both, and reads what the API needs.
    pub(crate) fn bind(config: &Listen) -> Result<Listeners, Failure> {
        let renewals = Renewals::first(config).map_err(wrong)?;
        let tls = renewals.tls();
        let access = Access { hosts: hosts(config), token: renewals.token(), renewed: renewals.tokens() };
        access.suits(config.api, tls.is_some()).map_err(|exposed| wrong(exposed.into()))?;
        let health = bind("sluice.listen.health", config.health)?;
        let api = bind("sluice.listen.api", config.api)?;
        tracing::info!(
            health = health.local_addr().ok().map(|it| it.to_string()),
            api = api.local_addr().ok().map(|it| it.to_string()),
            tls = tls.is_some(),
            token = access.token.is_some(),
            "listening"
        );
        let renewals = (tls.is_some() || access.token.is_some()).then_some(renewals);
        Ok(Listeners { health, api, tls, access, renewals })
    }
}

/// The names by which the API may be asked: those that were said, and the address itself, if it is one.
fn hosts(config: &Listen) -> Vec<String> {
    let ip = config.api.ip();
    let own = (!ip.is_unspecified()).then(|| ip.to_string());
    config.hosts.iter().cloned().chain(own).collect()
}

fn wrong(error: anyhow::Error) -> Failure {
    Failure::new(exit::WRONG, error)
}

/// Connections that wait to be accepted. Beyond the 128 that are usual, a client tries again only after a second.
const BACKLOG: u32 = 1024;

fn bind(key: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    let listen = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listen().map_err(|error: io::Error| Failure {
        code: exit::LISTEN,
        error: anyhow::Error::new(error).context(format!("cannot listen on {address} ({key})")),
        hint: Some(format!(
            "if another process uses the port (`ss -ltnp`), stop it or choose another with `--set {key}=HOST:PORT`"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_known_by_the_address_that_it_listens_on() {
        let listen = |api: &str| Listen {
            health: "0.0.0.0:8081".parse().unwrap(),
            api: api.parse().unwrap(),
            token_file: None,
            tls_certificate: None,
            tls_key: None,
            hosts: vec!["sluice.example".into()],
        };
        assert_eq!(hosts(&listen("10.0.0.7:8443")), ["sluice.example", "10.0.0.7"]);
        assert_eq!(hosts(&listen("[fd00::7]:8443")), ["sluice.example", "fd00::7"]);
        // Everywhere is no name.
        assert_eq!(hosts(&listen("0.0.0.0:8443")), ["sluice.example"]);
    }
}
