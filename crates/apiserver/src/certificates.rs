//! A certificate authority of one's own, and the certificate that the server serves with.
//!
//! Both are made anew at every start and good from 2000 to 2099: a playground does not outlive its
//! process, and a skewed clock is no reason to refuse it.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;

use crate::running::StartError;

/// The authority's certificate in PEM, and what a server at this address needs.
pub(crate) fn make(address: IpAddr) -> Result<(String, ServerConfig), StartError> {
    let broken = |problem: &dyn std::fmt::Display| StartError::Certificate { why: problem.to_string() };
    let ca_key = KeyPair::generate().map_err(|problem| broken(&problem))?;
    let ca = authority();
    let pem = ca.self_signed(&ca_key).map_err(|problem| broken(&problem))?.pem();

    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !names.contains(&address.to_string()) {
        names.push(address.to_string());
    }
    let mut leaf = CertificateParams::new(names).map_err(|problem| broken(&problem))?;
    leaf.distinguished_name = DistinguishedName::new();
    leaf.distinguished_name.push(DnType::CommonName, "Sluice playground");
    (leaf.not_before, leaf.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2099, 12, 31));
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Strict verifiers (Python from 3.13 on) refuse a chain without it.
    leaf.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().map_err(|problem| broken(&problem))?;
    let issuer = Issuer::new(ca, &ca_key);
    let certificate = leaf.signed_by(&key, &issuer).map_err(|problem| broken(&problem))?;
    let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(|problem| broken(&problem))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], private)
        })
        .map_err(|problem| broken(&problem))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((pem, config))
}

fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Sluice playground CA");
    (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2099, 12, 31));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}
