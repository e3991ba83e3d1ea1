//! Whom we trust: the roots of the system, and one CA more when it is given.
//!
//! The ring provider is handed over, so nothing here depends on what the process installed.
//! The CA is added to the system's roots and does not replace them, because the resource
//! manager may have a private CA while tokens still come from Microsoft. It is enough by itself
//! on a machine without any roots.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::error::SetupError;
use crate::settings::Pem;

const CA: &str = "the CA (sluice.azure.caFile)";

/// The TLS settings of every connection: TLS 1.2 or 1.3, HTTP/2 preferred.
pub(crate) fn config(extra_ca: Option<&Pem>) -> Result<ClientConfig, SetupError> {
    config_with(rustls_native_certs::load_native_certs().certs, extra_ca)
}

fn config_with(
    system: Vec<CertificateDer<'static>>,
    extra_ca: Option<&Pem>,
) -> Result<ClientConfig, SetupError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system);
    if let Some(pem) = extra_ca {
        add(pem, &mut roots)?;
    }
    if roots.is_empty() {
        return Err(SetupError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| SetupError::Internal(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn add(pem: &Pem, roots: &mut RootCertStore) -> Result<(), SetupError> {
    let (bytes, from) = match pem {
        Pem::Bytes(bytes) => (bytes.clone(), "given inline".to_owned()),
        Pem::File(path) => {
            let read = std::fs::read(path);
            let bytes = read.map_err(|source| SetupError::File { what: CA, path: path.clone(), source })?;
            (bytes, path.display().to_string())
        }
    };
    let unusable = |why: String| SetupError::Content { what: CA, from: from.clone(), why };
    let mut found = 0;
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| unusable(format!("invalid PEM: {error}")))?;
        roots.add(certificate).map_err(|error| unusable(format!("not a CA certificate: {error}")))?;
        found += 1;
    }
    match found {
        0 => Err(unusable(
            "no `BEGIN CERTIFICATE` block found; convert DER with `openssl x509 -inform der -in ca.cer -out ca.pem`"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ca() -> Vec<u8> {
        let key = rcgen::KeyPair::generate().unwrap();
        rcgen::CertificateParams::default().self_signed(&key).unwrap().pem().into_bytes()
    }

    #[test]
    fn an_extra_ca_is_enough_on_a_machine_without_roots() {
        config_with(Vec::new(), Some(&Pem::Bytes(ca()))).unwrap();
    }

    #[test]
    fn without_any_root_one_is_told_what_to_install() {
        let error = config_with(Vec::new(), None).unwrap_err();
        assert!(
            error.to_string().contains("ca-certificates")
                && error.to_string().contains("sluice.azure.caFile")
        );
    }

    #[test]
    fn a_ca_that_cannot_be_read_or_used_is_named() {
        let missing = config(Some(&Pem::File("/does/not/exist.pem".into()))).unwrap_err();
        assert!(missing.to_string().contains("/does/not/exist.pem") && missing.word() == "file", "{missing}");
        let der = config(Some(&Pem::Bytes(vec![0x30, 0x82, 1, 2]))).unwrap_err();
        assert!(der.to_string().contains("openssl x509 -inform der"), "{der}");
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
        let broken = config(Some(&Pem::Bytes(broken))).unwrap_err();
        assert!(broken.to_string().contains("not a CA certificate"), "{broken}");
    }
}
