//! The emulator's own certificate authority, and the certificate that it serves with.
//!
//! The authority's key is what is kept: its name follows from the key, so that a folder with a key and
//! a lost certificate gives a certificate that old clients still trust. The server's certificate is
//! made anew at every start, since it names the address of that start. Both are good from 2000 to
//! 2099: whoever tests with a skewed clock tests their code and not our dates.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, date_time_ymd,
};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;

use crate::answers::hex;
use crate::emulator::StartError;

/// The file with the CA's certificate, in the emulator's folder.
pub const CA_FILE: &str = "sluice-emulator-ca.pem";
/// The file with its key.
const CA_KEY_FILE: &str = "sluice-emulator-ca.key";

/// A certificate authority with its key.
pub(crate) struct Authority {
    key: KeyPair,
    /// Where its certificate is, for clients.
    pub(crate) path: PathBuf,
    /// The certificate.
    pub(crate) pem: String,
}

impl Authority {
    /// Takes the authority from a folder, or makes one there.
    pub(crate) fn in_folder(folder: &Path) -> Result<Authority, StartError> {
        let key_path = folder.join(CA_KEY_FILE);
        let key = match fs::read_to_string(&key_path) {
            Ok(pem) => KeyPair::from_pem(&pem).map_err(|problem| StartError::Certificate {
                path: key_path,
                why: format!("the file does not contain a private key in PEM format ({problem})"),
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let key = KeyPair::generate().map_err(|problem| StartError::Certificate {
                    path: key_path.clone(),
                    why: problem.to_string(),
                })?;
                write_secret(&key_path, key.serialize_pem().as_bytes())?;
                key
            }
            Err(source) => return Err(StartError::Folder { path: key_path, source }),
        };
        let path = folder.join(CA_FILE);
        let pem = match fs::read_to_string(&path) {
            Ok(pem) => pem,
            Err(_) => {
                let certificate = params(&key).self_signed(&key);
                let certificate = certificate.map_err(|problem| StartError::Certificate {
                    path: path.clone(),
                    why: problem.to_string(),
                })?;
                let pem = certificate.pem();
                fs::write(&path, &pem).map_err(|source| StartError::Folder { path: path.clone(), source })?;
                pem
            }
        };
        Ok(Authority { key, path, pem })
    }

    /// What a server at this address and with these names needs: HTTP/2 first, HTTP/1.1 for those without.
    pub(crate) fn server(&self, address: IpAddr, names: &[String]) -> Result<ServerConfig, StartError> {
        let broken = |why: String| StartError::Certificate {
            path: self.path.clone(),
            why: format!("the key cannot sign ({why})"),
        };
        let mut all =
            vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), address.to_string()];
        all.extend_from_slice(names);
        let mut seen = BTreeSet::new();
        all.retain(|name| seen.insert(name.clone()));
        let mut leaf = CertificateParams::new(all).map_err(|problem| broken(problem.to_string()))?;
        leaf.distinguished_name = rcgen::DistinguishedName::new();
        leaf.distinguished_name.push(DnType::CommonName, "Sluice emulator");
        (leaf.not_before, leaf.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2099, 12, 31));
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // Strict verifiers (Python from 3.13 on) refuse a chain without it.
        leaf.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(|problem| broken(problem.to_string()))?;
        let issuer = Issuer::new(params(&self.key), &self.key);
        let certificate = leaf.signed_by(&key, &issuer).map_err(|problem| broken(problem.to_string()))?;
        let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(|why| broken(why.to_owned()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], private)
            })
            .map_err(|problem| broken(problem.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The authority's certificate, all of it but the signature a consequence of the key.
fn params(key: &KeyPair) -> CertificateParams {
    let digest = ring::digest::digest(&ring::digest::SHA256, &key.subject_public_key_info());
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    let name = format!("Sluice emulator CA {}", hex(&digest.as_ref()[..6]));
    params.distinguished_name.push(DnType::CommonName, name);
    (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2099, 12, 31));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// Writes a file that only its owner may read.
pub(crate) fn write_secret(path: &Path, content: &[u8]) -> Result<(), StartError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let written = options.open(path).and_then(|mut file| file.write_all(content));
    written.map_err(|source| StartError::Folder { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_folder_has_the_same_authority_even_without_its_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let first = Authority::in_folder(folder.path()).unwrap();
        let again = Authority::in_folder(folder.path()).unwrap();
        assert_eq!(first.pem, again.pem);
        fs::remove_file(&first.path).unwrap();
        let remade = Authority::in_folder(folder.path()).unwrap();
        assert_eq!(params(&first.key).distinguished_name, params(&remade.key).distinguished_name);
        assert_eq!(first.key.serialize_der(), remade.key.serialize_der());
    }

    #[test]
    fn a_key_that_is_none_is_refused_and_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CA_KEY_FILE);
        fs::write(&path, "nothing").unwrap();
        let Err(error) = Authority::in_folder(folder.path()) else { panic!("taken for a key") };
        assert!(error.to_string().contains(CA_KEY_FILE), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "nothing");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_read_the_key() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        Authority::in_folder(folder.path()).unwrap();
        let mode = fs::metadata(folder.path().join(CA_KEY_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
}
