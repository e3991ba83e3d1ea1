//! The token and the certificate of the API, read again while it runs: whoever renews them, a person or
//! cert-manager, restarts nothing.
//!
//! The files are small and read every few seconds, and what they say is compared; a mounted Secret changes by a
//! link, so neither times nor notifications of a path can be relied on. What cannot be used, a half of a new
//! pair for instance, is said once, and the old one stays.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use sluice_arm::Secret;
use tokio::sync::watch;

use crate::config::Listen;

/// How long a new token or certificate may lie there before it counts.
const PACE: Duration = Duration::from_secs(10);

/// What the API needs, from files that may change.
pub(crate) struct Renewals {
    token: Option<Renewed<Secret>>,
    certificate: Option<Renewed<Arc<CertifiedKey>>>,
}

/// One thing from one or two files.
struct Renewed<T> {
    files: Vec<PathBuf>,
    /// What the files held when they were last looked at, be it of use or not.
    seen: Vec<Vec<u8>>,
    of: fn(&[PathBuf], &[Vec<u8>]) -> anyhow::Result<T>,
    now: watch::Sender<T>,
}

impl<T> Renewed<T> {
    fn first(
        files: Vec<PathBuf>,
        of: fn(&[PathBuf], &[Vec<u8>]) -> anyhow::Result<T>,
    ) -> anyhow::Result<Renewed<T>> {
        let seen = read(&files)?;
        let now = watch::channel(of(&files, &seen)?).0;
        Ok(Renewed { files, seen, of, now })
    }

    /// Reads the files; true if what they say now counts from now on.
    fn look_again(&mut self) -> anyhow::Result<bool> {
        let read = read(&self.files)?;
        if read == self.seen {
            return Ok(false);
        }
        self.seen = read;
        self.now.send_replace((self.of)(&self.files, &self.seen)?);
        Ok(true)
    }
}

impl Renewals {
    /// Reads everything for the first time.
    pub(crate) fn first(config: &Listen) -> anyhow::Result<Renewals> {
        let token = config.token_file.iter().map(|path| Renewed::first(vec![path.clone()], token)).next();
        let pair = config.tls_certificate.clone().zip(config.tls_key.clone());
        let certificate = pair.map(|(certificate, key)| Renewed::first(vec![certificate, key], certified));
        Ok(Renewals { token: token.transpose()?, certificate: certificate.transpose()? })
    }

    /// The token as it is now.
    pub(crate) fn token(&self) -> Option<Secret> {
        self.token.as_ref().map(|it| it.now.borrow().clone())
    }

    /// The token as it is at any time.
    pub(crate) fn tokens(&self) -> Option<watch::Receiver<Secret>> {
        self.token.as_ref().map(|it| it.now.subscribe())
    }

    /// How to speak TLS, with the certificate as it is at the time.
    pub(crate) fn tls(&self) -> Option<Arc<ServerConfig>> {
        let newest = Newest(self.certificate.as_ref()?.now.subscribe());
        let config = ServerConfig::builder().with_no_client_auth().with_cert_resolver(Arc::new(newest));
        Some(Arc::new(config))
    }

    /// Looks again, for ever.
    pub(crate) async fn run(mut self) -> Infallible {
        let mut trouble = [None, None];
        loop {
            tokio::time::sleep(PACE).await;
            let looks = self.look_again();
            for ((what, look), said) in looks.into_iter().zip(&mut trouble) {
                tell(what, look, said);
            }
        }
    }

    fn look_again(&mut self) -> [(&'static str, anyhow::Result<bool>); 2] {
        [
            ("token", self.token.as_mut().map_or(Ok(false), Renewed::look_again)),
            ("certificate", self.certificate.as_mut().map_or(Ok(false), Renewed::look_again)),
        ]
    }
}

/// Says what is new; the same trouble only once.
fn tell(what: &str, look: anyhow::Result<bool>, said: &mut Option<String>) {
    match look {
        Ok(true) => {
            *said = None;
            tracing::info!(kind = what, "reloaded API credential");
        }
        Ok(false) => {}
        Err(error) => {
            let words = format!("{error:#}");
            if said.as_ref() != Some(&words) {
                tracing::warn!(
                    kind = what,
                    error = words,
                    "cannot reload API credential; the previous one stays in use"
                );
            }
            *said = Some(words);
        }
    }
}

/// The newest certificate there is.
#[derive(Debug)]
struct Newest(watch::Receiver<Arc<CertifiedKey>>);

impl ResolvesServerCert for Newest {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.borrow()))
    }
}

fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Vec<u8>>> {
    let one = |path: &PathBuf| {
        std::fs::read(path).with_context(|| format!("cannot read {} (sluice.listen)", path.display()))
    };
    files.iter().map(one).collect()
}

fn token(files: &[PathBuf], read: &[Vec<u8>]) -> anyhow::Result<Secret> {
    let text = read.first().map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    let text = text.filter(|text| !text.is_empty());
    let text =
        text.with_context(|| format!("{} contains no token (sluice.listen.tokenFile)", name(files, 0)))?;
    Ok(Secret::new(text))
}

fn certified(files: &[PathBuf], read: &[Vec<u8>]) -> anyhow::Result<Arc<CertifiedKey>> {
    let [certificate, key] = read else {
        anyhow::bail!("sluice.listen.tlsCertFile needs sluice.listen.tlsKeyFile")
    };
    let (named, key_named) = (name(files, 0), name(files, 1));
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain
        .with_context(|| format!("{named} contains no valid PEM certificate (sluice.listen.tlsCertFile)"))?;
    let key = PrivateKeyDer::from_pem_slice(key).with_context(|| {
        format!("{key_named} contains no valid PEM private key (sluice.listen.tlsKeyFile)")
    })?;
    let provider = CryptoProvider::get_default().context("no TLS crypto provider is installed")?;
    let certified = CertifiedKey::from_der(chain, key, provider)
        .with_context(|| format!("certificate {named} and private key {key_named} do not match"))?;
    Ok(Arc::new(certified))
}

fn name(files: &[PathBuf], number: usize) -> String {
    files.get(number).map(|path: &PathBuf| Path::display(path).to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate and its key, in PEM.
    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["sluice.example".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    fn listen(folder: &Path) -> Listen {
        Listen {
            health: "127.0.0.1:0".parse().unwrap(),
            api: "127.0.0.1:0".parse().unwrap(),
            token_file: Some(folder.join("token")),
            tls_certificate: Some(folder.join("tls.crt")),
            tls_key: Some(folder.join("tls.key")),
            hosts: Vec::new(),
        }
    }

    fn outcome(renewals: &mut Renewals) -> [Result<bool, String>; 2] {
        renewals.look_again().map(|(_, look)| look.map_err(|error| format!("{error:#}")))
    }

    #[test]
    fn what_is_renewed_counts_and_what_cannot_be_used_changes_nothing() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let (old, new) = (pair(), pair());
        write("token", "s3cret\n");
        write("tls.crt", &old.0);
        write("tls.key", &old.1);
        let mut renewals = Renewals::first(&listen(folder.path())).unwrap();
        let tokens = renewals.tokens().unwrap();
        let served = renewals.certificate.as_ref().unwrap().now.subscribe();
        let first = Arc::clone(&served.borrow());
        assert_eq!(outcome(&mut renewals), [Ok(false), Ok(false)]);

        // A half of the new pair does not belong to the other half of the old one.
        write("token", " \n");
        write("tls.crt", &new.0);
        let [token, certificate] = outcome(&mut renewals);
        assert!(token.unwrap_err().contains("contains no token"));
        assert!(certificate.unwrap_err().contains("do not match"));
        assert_eq!(tokens.borrow().reveal(), "s3cret");
        assert!(Arc::ptr_eq(&first, &served.borrow()));

        write("token", "newer");
        write("tls.key", &new.1);
        assert_eq!(outcome(&mut renewals), [Ok(true), Ok(true)]);
        assert_eq!(tokens.borrow().reveal(), "newer");
        assert_ne!(first.cert, served.borrow().cert);

        std::fs::remove_file(folder.path().join("token")).unwrap();
        let [token, _] = outcome(&mut renewals);
        assert!(token.unwrap_err().contains("cannot read"));
        assert_eq!(tokens.borrow().reveal(), "newer");
    }

    #[test]
    fn an_empty_token_file_is_an_error_at_start() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "\n").unwrap();
        let mut config = listen(folder.path());
        (config.tls_certificate, config.tls_key) = (None, None);
        let error = Renewals::first(&config).map(drop).unwrap_err().to_string();
        assert!(error.contains("contains no token (sluice.listen.tokenFile)"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_files_are_looked_at_by_themselves() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "s3cret").unwrap();
        let mut config = listen(folder.path());
        (config.tls_certificate, config.tls_key) = (None, None);
        let renewals = Renewals::first(&config).unwrap();
        let mut tokens = renewals.tokens().unwrap();
        std::fs::write(folder.path().join("token"), "newer").unwrap();
        let running = tokio::spawn(renewals.run());
        tokens.changed().await.unwrap();
        assert_eq!(tokens.borrow().reveal(), "newer");
        running.abort();
    }
}
