//! A certificate with its key, and the assertion that it signs: "I am this application".
//!
//! `azure_identity` signs with OpenSSL, which we do not have, so the assertion is ours: a JSON
//! web token with `PS256` and the certificate's SHA-256 thumbprint, as Entra asks for today. It
//! lives for ten minutes and is used once.
//!
//! Missing on purpose: PKCS#12 files and encrypted keys (the error says how to convert them),
//! keys other than RSA (Entra takes none), and sending the chain along.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RSA_PSS_SHA256;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::error::SetupError;
use crate::settings::Pem;

const WHAT: &str = "the client certificate (aadClientCertPath)";
/// How long an assertion is good for.
const LIFE: Duration = Duration::from_secs(600);
/// How far our clock may be ahead of Entra's.
const SKEW: Duration = Duration::from_secs(120);

/// A certificate and its key, ready to sign.
pub(crate) struct Certificate {
    key: KeyPair,
    thumbprint: String,
}

impl Certificate {
    /// Reads certificate and key, and makes sure that they belong together.
    pub(crate) fn read(pem: &Pem) -> Result<Certificate, SetupError> {
        match pem {
            Pem::Bytes(bytes) => Certificate::from_pem(bytes, "given inline"),
            Pem::File(path) => {
                let read = std::fs::read(path).map(Zeroizing::new);
                let bytes =
                    read.map_err(|source| SetupError::File { what: WHAT, path: path.clone(), source })?;
                Certificate::from_pem(&bytes, &path.display().to_string())
            }
        }
    }

    fn from_pem(bytes: &[u8], from: &str) -> Result<Certificate, SetupError> {
        let unusable =
            |why: &str| SetupError::Content { what: WHAT, from: from.to_owned(), why: why.to_owned() };
        if bytes.first() == Some(&0x30) {
            return Err(unusable(
                "the file is PKCS#12 (PFX) or DER, not PEM; convert it with \
                 `openssl pkcs12 -in cert.pfx -out cert.pem -nodes` and use cert.pem",
            ));
        }
        let holds = |words: &str| bytes.windows(words.len()).any(|window| window == words.as_bytes());
        if holds("BEGIN ENCRYPTED PRIVATE KEY") || holds("Proc-Type: 4,ENCRYPTED") {
            return Err(unusable(
                "the private key is encrypted; decrypt it with `openssl pkey -in key.pem -out plain.pem` and \
                 store the file in a Kubernetes Secret",
            ));
        }
        let certificate = CertificateDer::pem_slice_iter(bytes).next();
        let certificate = certificate.ok_or_else(|| {
            unusable("no `BEGIN CERTIFICATE` block found; put the certificate and its key into one PEM file")
        })?;
        let certificate = certificate.map_err(|error| unusable(&format!("invalid PEM: {error}")))?;
        let key = PrivateKeyDer::from_pem_slice(bytes).map_err(|_| {
            unusable("no `BEGIN PRIVATE KEY` block found; put the certificate and its key into one PEM file")
        })?;
        let key = match &key {
            PrivateKeyDer::Pkcs8(der) => KeyPair::from_pkcs8(der.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(der) => KeyPair::from_der(der.secret_pkcs1_der()),
            _ => return Err(unusable("the private key is not RSA; use an RSA key of at least 2048 bits")),
        }
        .map_err(|error| {
            unusable(&format!("invalid private key ({error}); use an RSA key of at least 2048 bits"))
        })?;
        // The public key stands in the certificate exactly as ring writes it.
        let public = key.public().as_ref();
        if !certificate.windows(public.len()).any(|window| window == public) {
            return Err(unusable(
                "the first certificate does not match the private key; put the application's certificate first",
            ));
        }
        let thumbprint = URL_SAFE_NO_PAD.encode(digest(&SHA256, &certificate));
        Ok(Certificate { key, thumbprint })
    }

    /// The assertion: `client_id` says to `audience`, now, that it is itself.
    pub(crate) fn assertion(
        &self,
        client_id: &str,
        audience: &str,
        unix_time: Duration,
    ) -> Result<String, ring::error::Unspecified> {
        let header = serde_json::json!({ "alg": "PS256", "typ": "JWT", "x5t#S256": self.thumbprint });
        let claims = serde_json::json!({
            "aud": audience,
            "iss": client_id,
            "sub": client_id,
            "jti": uuid::Uuid::new_v4().to_string(),
            "nbf": unix_time.saturating_sub(SKEW).as_secs(),
            "exp": (unix_time + LIFE - SKEW).as_secs(),
        });
        let part = |json: serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let mut token = format!("{}.{}", part(header), part(claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key.sign(&RSA_PSS_SHA256, &SystemRandom::new(), token.as_bytes(), &mut signature)?;
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature));
        Ok(token)
    }
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificate").field("thumbprint", &self.thumbprint).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{RSA_PSS_2048_8192_SHA256, UnparsedPublicKey};

    const CERTIFICATE: &str = include_str!("../tests/keys/application.crt.pem");
    const KEY: &str = include_str!("../tests/keys/application.key.pem");
    const KEY_PKCS1: &str = include_str!("../tests/keys/application.key.pkcs1.pem");

    fn read(parts: &[&str]) -> Result<Certificate, SetupError> {
        Certificate::read(&Pem::Bytes(parts.concat().into_bytes()))
    }

    #[test]
    fn the_assertion_is_signed_by_the_key_and_names_the_certificate() {
        for parts in [[CERTIFICATE, KEY], [KEY_PKCS1, CERTIFICATE]] {
            let certificate = read(&parts).unwrap();
            let now = Duration::from_secs(1_800_000_000);
            let audience = "https://login.example/t/oauth2/v2.0/token";
            let token = certificate.assertion("the-app", audience, now).unwrap();
            let (signed, signature) = token.rsplit_once('.').unwrap();
            let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
            let public = UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, certificate.key.public());
            public.verify(signed.as_bytes(), &signature).unwrap();

            let (header, claims) = signed.split_once('.').unwrap();
            let json = |part: &str| -> serde_json::Value {
                serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
            };
            let header = json(header);
            let der = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
            assert_eq!((&header["alg"], &header["typ"]), (&"PS256".into(), &"JWT".into()));
            assert_eq!(header["x5t#S256"], URL_SAFE_NO_PAD.encode(digest(&SHA256, &der)));
            let claims = json(claims);
            assert_eq!((&claims["iss"], &claims["sub"]), (&"the-app".into(), &"the-app".into()));
            assert_eq!(claims["aud"], audience);
            let seconds = |claim: &str| claims[claim].as_u64().unwrap();
            assert!(seconds("nbf") < now.as_secs() && now.as_secs() < seconds("exp"));
            assert_eq!(seconds("exp") - seconds("nbf"), 600);
        }
    }

    #[test]
    fn no_two_assertions_are_the_same() {
        let certificate = read(&[CERTIFICATE, KEY]).unwrap();
        let sign = || certificate.assertion("a", "b", Duration::ZERO).unwrap();
        assert_ne!(sign().split('.').nth(1), sign().split('.').nth(1));
    }

    #[test]
    fn what_cannot_be_used_says_how_to_mend_it() {
        let encrypted = include_str!("../tests/keys/encrypted.key.pem");
        let elliptic = include_str!("../tests/keys/elliptic.key.pem");
        let other = include_str!("../tests/keys/other.key.pem");
        for (parts, says) in [
            (vec![CERTIFICATE, encrypted], "openssl pkey -in key.pem"),
            (vec![CERTIFICATE, elliptic], "an RSA key"),
            (vec![CERTIFICATE, other], "does not match the private key"),
            (vec![CERTIFICATE], "no `BEGIN PRIVATE KEY`"),
            (vec![KEY], "no `BEGIN CERTIFICATE`"),
            (vec!["hello"], "no `BEGIN CERTIFICATE`"),
        ] {
            let error = read(&parts).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("aadClientCertPath"), "{error}");
        }
        let pfx = Certificate::read(&Pem::Bytes(vec![0x30, 0x82, 9, 9])).unwrap_err().to_string();
        assert!(pfx.contains("openssl pkcs12 -in cert.pfx -out cert.pem -nodes"), "{pfx}");
        let missing = Certificate::read(&Pem::File("/no/such.pem".into())).unwrap_err().to_string();
        assert!(missing.contains("/no/such.pem"), "{missing}");
    }

    #[test]
    fn a_certificate_does_not_print_its_key() {
        let shown = format!("{:?}", read(&[CERTIFICATE, KEY]).unwrap());
        assert!(shown.starts_with("Certificate { thumbprint: ") && shown.len() < 100, "{shown}");
    }
}
