//! What went wrong on the way, whether the request had left by then, and what to do about it.
//!
//! The one question that matters to the updaters is [`Fate`]: a request that provably never
//! left may be sent again at once, any other must be looked for first. When nothing proves
//! that it did not leave, it counts as lost.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use rustls::CertificateError;

/// Whether the request can have been carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It cannot.
    NotSent,
    /// It cannot, and nothing will be sent before somebody has mended our credential.
    Denied,
    /// Nobody knows.
    Lost,
}

/// What went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Trouble {
    pub(crate) fate: Fate,
    /// A fixed word for metrics.
    pub(crate) word: &'static str,
    /// For people: who, what, and what to do.
    pub(crate) text: String,
}

/// Whom we were talking to, for the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer<'a> {
    /// Host and port.
    pub(crate) host: &'a str,
    /// Host and port of the proxy, if there is one.
    pub(crate) proxy: Option<&'a str>,
    /// The setting that this host comes from.
    pub(crate) setting: &'static str,
    pub(crate) connect_limit: Duration,
}

impl Trouble {
    /// Nothing came back in time.
    pub(crate) fn no_answer(host: &str, limit: Duration) -> Trouble {
        lost("timeout", format!("no answer from {host} within {}{LOOK_FIRST}", seconds(limit)))
    }

    /// The answer is too large to be kept.
    pub(crate) fn too_large(host: &str, limit: usize) -> Trouble {
        let text = format!(
            "the answer from {host} has more than {limit} bytes and was discarded; check that this is the right \
             endpoint{LOOK_FIRST}"
        );
        lost("too-large", text)
    }

    /// What an error of the HTTP client means.
    pub(crate) fn of(error: &reqwest::Error, peer: Peer<'_>) -> Trouble {
        let chain = Chain::of(error);
        match error.is_connect() {
            true => chain.on_connecting(error, peer),
            false => chain.on_sending(error, peer),
        }
    }

    /// What an error while the body came in means.
    pub(crate) fn in_body(error: &reqwest::Error, host: &str) -> Trouble {
        let text = format!("the answer from {host} was cut off: {}{LOOK_FIRST}", innermost(error));
        lost("truncated", text)
    }
}

/// Why a lost request is not simply repeated.
pub(crate) const LOOK_FIRST: &str =
    "; the request may have taken effect, so Sluice checks Azure before retrying";

/// What the system says when a process has too many open files.
const EMFILE: i32 = 24;
/// What it says when all processes together have.
const ENFILE: i32 = 23;

fn lost(word: &'static str, text: String) -> Trouble {
    Trouble { fate: Fate::Lost, word, text }
}

fn not_sent(word: &'static str, text: String) -> Trouble {
    Trouble { fate: Fate::NotSent, word, text }
}

/// The causes of an error that say something.
#[derive(Default)]
struct Chain<'a> {
    tls: Option<&'a rustls::Error>,
    io: Option<io::ErrorKind>,
    /// This process, or the machine, has no file descriptor left.
    too_many_files: bool,
    hyper: Option<&'a hyper::Error>,
    h2: Option<&'a h2::Error>,
}

impl<'a> Chain<'a> {
    fn of(error: &'a reqwest::Error) -> Chain<'a> {
        let mut chain = Chain::default();
        let mut next: Option<&(dyn StdError + 'static)> = error.source();
        while let Some(cause) = next {
            chain.tls = chain.tls.or_else(|| cause.downcast_ref());
            chain.hyper = chain.hyper.or_else(|| cause.downcast_ref());
            chain.h2 = chain.h2.or_else(|| cause.downcast_ref());
            next = match cause.downcast_ref::<io::Error>() {
                None => cause.source(),
                Some(io) => {
                    chain.io = Some(io.kind());
                    chain.too_many_files |= matches!(io.raw_os_error(), Some(EMFILE | ENFILE));
                    // The source of an I/O error that wraps another is the other's source: ask for the other itself.
                    match io.get_ref() {
                        Some(inner) => Some(inner as &(dyn StdError + 'static)),
                        None => io.source(),
                    }
                }
            };
        }
        chain
    }

    /// No connection came about, so nothing was sent.
    fn on_connecting(&self, error: &reqwest::Error, peer: Peer<'_>) -> Trouble {
        let Peer { host, setting, .. } = peer;
        // First, since names cannot be resolved without a descriptor either.
        if self.too_many_files {
            let text = format!(
                "cannot connect to {host}: too many open files; raise the limit of open files (ulimit -n)"
            );
            return not_sent("too-many-open-files", text);
        }
        let through = peer.proxy.map(|proxy| format!(" through proxy {proxy}")).unwrap_or_default();
        if let Some(tls) = self.tls {
            return not_sent("tls", tls_text(tls, host));
        }
        if error.is_dns() {
            let name = peer.proxy.unwrap_or(host);
            let text = format!(
                "cannot resolve {name} ({}); check the DNS of this machine or pod, and {setting}",
                innermost(error)
            );
            return not_sent("dns", text);
        }
        if error.is_timeout() || self.io == Some(io::ErrorKind::TimedOut) {
            let text = format!(
                "connection to {host}{through} timed out after {}; check firewalls, routes and HTTPS_PROXY",
                seconds(peer.connect_limit)
            );
            return not_sent("connect-timeout", text);
        }
        let (word, what) = match self.io {
            Some(io::ErrorKind::ConnectionRefused) => ("refused", "connection refused".to_owned()),
            Some(
                io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe,
            ) => ("connect-reset", "connection closed during the handshake".to_owned()),
            _ => ("connect", innermost(error)),
        };
        let text = format!(
            "cannot connect to {host}{through}: {what}; check that the server is running, and check {setting}, \
             firewalls and HTTPS_PROXY"
        );
        not_sent(word, text)
    }

    /// There was a connection; what did it see of the request?
    fn on_sending(&self, error: &reqwest::Error, peer: Peer<'_>) -> Trouble {
        let host = peer.host;
        if error.is_builder() {
            let text =
                format!("cannot send the request to {host}: {}; check {}", innermost(error), peer.setting);
            return not_sent("unwritable", text);
        }
        let closed_before = self.hyper.is_some_and(hyper::Error::is_canceled);
        let never_looked_at = self.h2.is_some_and(|h2| {
            h2.is_remote() && (h2.is_go_away() || h2.reason() == Some(h2::Reason::REFUSED_STREAM))
        });
        if closed_before || never_looked_at {
            let text = format!(
                "{host} closed the connection before processing the request; the next attempt opens a new one"
            );
            return not_sent("closed", text);
        }
        if error.is_timeout() {
            let text = format!("{host} stopped responding{LOOK_FIRST}");
            return lost("timeout", text);
        }
        if self.hyper.is_some_and(hyper::Error::is_parse) {
            let text = format!(
                "{host} did not answer with HTTP ({}); check {} and HTTPS_PROXY{LOOK_FIRST}",
                innermost(error),
                peer.setting
            );
            return lost("no-http", text);
        }
        let text = format!("connection to {host} lost before the answer: {}{LOOK_FIRST}", innermost(error));
        lost("reset", text)
    }
}

fn tls_text(error: &rustls::Error, host: &str) -> String {
    use CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            Bad::UnknownIssuer | Bad::BadSignature => format!(
                "certificate of {host} is signed by an unknown CA; set sluice.azure.caFile to a file with this CA"
            ),
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => format!(
                "certificate of {host} does not match this name ({certificate}); use a name that the certificate \
                 contains, or check which server answers there"
            ),
            Bad::Expired | Bad::ExpiredContext { .. } | Bad::NotValidYet | Bad::NotValidYetContext { .. } => {
                format!(
                    "certificate of {host} has expired or is not valid yet ({certificate}); check the clock of this \
                     machine, then renew the certificate"
                )
            }
            other => format!(
                "certificate of {host} is not accepted ({other}); check which server answers there, and that \
                 sluice.azure.caFile contains its CA and not the certificate itself"
            ),
        },
        rustls::Error::InvalidMessage(_) => {
            format!("{host} does not speak TLS; check the port, and that no proxy answers in its place")
        }
        rustls::Error::AlertReceived(alert) => {
            format!("{host} aborted the TLS handshake ({alert:?}); check the host name and proxies")
        }
        other => format!("TLS handshake with {host} failed: {other}; check the host name and proxies"),
    }
}

/// The last cause: the others only say that there was one.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

/// A duration as one says it.
pub(crate) fn seconds(limit: Duration) -> String {
    match limit.subsec_millis() {
        0 => format!("{} s", limit.as_secs()),
        _ => format!("{} ms", limit.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use reqwest::dns::{Name, Resolve, Resolving};

    use super::*;

    /// A resolver that fails as the system does.
    struct Failing(i32);

    impl Resolve for Failing {
        fn resolve(&self, _: Name) -> Resolving {
            let error = io::Error::from_raw_os_error(self.0);
            Box::pin(async move { Err(error.into()) })
        }
    }

    async fn trouble(os_error: i32) -> Trouble {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().dns_resolver(Arc::new(Failing(os_error))).build();
        let error = client.unwrap().get("https://azure.example/").send().await.unwrap_err();
        let connect_limit = Duration::from_secs(5);
        Trouble::of(&error, Peer { host: "azure.example", proxy: None, setting: "the cloud", connect_limit })
    }

    #[tokio::test]
    async fn too_many_open_files_are_not_blamed_on_dns() {
        for os_error in [EMFILE, ENFILE] {
            let text = "cannot connect to azure.example: too many open files; raise the limit of open files (ulimit -n)";
            assert_eq!(trouble(os_error).await, not_sent("too-many-open-files", text.into()));
        }
        assert_eq!(trouble(5).await.word, "dns");
    }
}
