//! Access tokens: what the token endpoints hand out and the resource manager asks for.
//!
//! A token is a JWT that carries everything about itself and is signed with a key of the emulator's
//! folder, so nothing has to be remembered and a restart with the same folder still knows its tokens.
//! No client looks inside one of them, but some print or parse the claims, so they look like Azure's.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::answers::{fresh_guid, guid_of};
use crate::certificates::write_secret;
use crate::dates::american;
use crate::emulator::StartError;

const KEY_FILE: &str = "sluice-emulator-tokens.key";
const KEY_BYTES: usize = 32;

/// For whom the resource manager of every cloud takes a token.
const AUDIENCES: [&str; 7] = [
    "https://management.azure.com",
    "https://management.core.windows.net",
    "https://management.chinacloudapi.cn",
    "https://management.core.chinacloudapi.cn",
    "https://management.usgovcloudapi.net",
    "https://management.core.usgovcloudapi.net",
    "https://management.microsoftazure.de",
];

/// Makes tokens and knows them again.
pub(crate) struct Tokens {
    key: hmac::Key,
    lifetime: Duration,
    /// Tokens of an earlier generation count as expired.
    generation: AtomicU64,
}

/// Who asks for a token, and for what.
#[derive(Clone, Debug)]
pub(crate) struct Grant<'a> {
    /// The tenant as the caller spelled it.
    pub(crate) tenant: &'a str,
    /// The client id.
    pub(crate) client: &'a str,
    /// The resource that the token is for, without `/.default`.
    pub(crate) audience: &'a str,
}

/// A token with what the caller is told about it.
pub(crate) struct Issued {
    pub(crate) token: String,
    pub(crate) not_before: u64,
    pub(crate) expires_on: u64,
    pub(crate) expires_in: u64,
}

/// What a token says.
#[derive(Serialize, Deserialize)]
struct Claims {
    aud: String,
    iss: String,
    iat: u64,
    nbf: u64,
    exp: u64,
    appid: String,
    appidacr: String,
    idtyp: String,
    oid: String,
    sub: String,
    tid: String,
    uti: String,
    ver: String,
    generation: u64,
}

/// Why a request is not let in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Denied {
    /// It brought no bearer token.
    Missing,
    /// It brought something that this emulator has not made.
    Invalid,
    /// It brought a token for somebody else.
    WrongAudience(String),
    /// It brought a token that is over.
    Expired { at: u64, now: u64 },
}

impl Denied {
    /// The resource manager's code.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Denied::Missing => "AuthenticationFailed",
            Denied::Invalid => "InvalidAuthenticationToken",
            Denied::WrongAudience(_) => "InvalidAuthenticationTokenAudience",
            Denied::Expired { .. } => "ExpiredAuthenticationToken",
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denied::Missing => f.write_str(
                "Authentication failed. The 'Authorization' header is missing or is not 'Bearer <token>'.",
            ),
            Denied::Invalid => f.write_str(
                "The access token is invalid: it was not issued by the token endpoint of this emulator.",
            ),
            Denied::WrongAudience(audience) => write!(
                f,
                "The access token has been obtained for wrong audience or resource '{audience}'. It should \
                 be the address of this emulator or one of '{}'.",
                AUDIENCES.join("', '")
            ),
            Denied::Expired { at, now } => write!(
                f,
                "The access token expiry UTC time '{}' is earlier than current UTC time '{}'.",
                american(*at),
                american(*now)
            ),
        }
    }
}

impl Tokens {
    /// With the key of a folder, which is made if there is none.
    pub(crate) fn in_folder(folder: &Path, lifetime: Duration) -> Result<Tokens, StartError> {
        let path = folder.join(KEY_FILE);
        let secret = match fs::read(&path) {
            Ok(secret) if secret.len() >= KEY_BYTES => secret,
            Ok(_) => {
                let why = format!("it is shorter than {KEY_BYTES} bytes");
                return Err(StartError::Certificate { path, why });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut secret = vec![0u8; KEY_BYTES];
                SystemRandom::new().fill(&mut secret).expect("the system has randomness");
                write_secret(&path, &secret)?;
                secret
            }
            Err(source) => return Err(StartError::Folder { path, source }),
        };
        Ok(Tokens::new(&secret, lifetime))
    }

    fn new(secret: &[u8], lifetime: Duration) -> Tokens {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        Tokens { key, lifetime, generation: AtomicU64::new(0) }
    }

    /// What a managed identity shows that it runs where it says: a word that follows from our key.
    pub(crate) fn identity_header(&self) -> String {
        let tag = hmac::sign(&self.key, b"identity header");
        crate::answers::hex(&tag.as_ref()[..16])
    }

    /// From now on every token that is out counts as expired.
    pub(crate) fn expire_all(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes a token at a time in Unix seconds.
    pub(crate) fn issue(&self, now: u64, grant: &Grant<'_>) -> Issued {
        let expires_on = now.saturating_add(self.lifetime.as_secs());
        let principal = guid_of(grant.client);
        let claims = Claims {
            aud: grant.audience.to_owned(),
            iss: format!("https://sts.windows.net/{}/", grant.tenant),
            iat: now,
            nbf: now,
            exp: expires_on,
            appid: grant.client.to_owned(),
            appidacr: "1".to_owned(),
            idtyp: "app".to_owned(),
            oid: principal.clone(),
            sub: principal,
            tid: grant.tenant.to_owned(),
            uti: fresh_guid(),
            ver: "1.0".to_owned(),
            generation: self.generation.load(Ordering::Relaxed),
        };
        let head = URL_SAFE_NO_PAD.encode(br#"{"typ":"JWT","alg":"HS256","kid":"sluice-emulator"}"#);
        let claims = serde_json::to_vec(&claims).expect("claims are plain words and numbers");
        let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims));
        let tag = hmac::sign(&self.key, signed.as_bytes());
        let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag));
        Issued { token, not_before: now, expires_on, expires_in: self.lifetime.as_secs() }
    }

    /// Who sends this `Authorization` header. `origin` is what the caller thinks we are called.
    pub(crate) fn principal(
        &self,
        now: u64,
        authorization: Option<&str>,
        origin: &str,
    ) -> Result<String, Denied> {
        let (scheme, token) =
            authorization.and_then(|header| header.split_once(' ')).ok_or(Denied::Missing)?;
        if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
            return Err(Denied::Missing);
        }
        let (signed, tag) = token.trim().rsplit_once('.').ok_or(Denied::Invalid)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| Denied::Invalid)?;
        hmac::verify(&self.key, signed.as_bytes(), &tag).map_err(|_| Denied::Invalid)?;
        let claims = signed.split_once('.').ok_or(Denied::Invalid)?.1;
        let claims = URL_SAFE_NO_PAD.decode(claims).map_err(|_| Denied::Invalid)?;
        let claims: Claims = serde_json::from_slice(&claims).map_err(|_| Denied::Invalid)?;
        if claims.exp <= now {
            return Err(Denied::Expired { at: claims.exp, now });
        }
        if claims.generation < self.generation.load(Ordering::Relaxed) {
            return Err(Denied::Expired { at: now.saturating_sub(1), now });
        }
        let audience = claims.aud.trim_end_matches('/');
        let fits = |known: &&str| known.eq_ignore_ascii_case(audience);
        if !AUDIENCES.iter().any(fits) && !origin.eq_ignore_ascii_case(audience) {
            return Err(Denied::WrongAudience(claims.aud));
        }
        Ok(claims.appid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "https://127.0.0.1:8443";

    fn tokens() -> Tokens {
        Tokens::new(&[7; 32], Duration::from_secs(60))
    }

    fn bearer(tokens: &Tokens, audience: &str) -> String {
        let grant = Grant { tenant: "t", client: "app", audience };
        format!("Bearer {}", tokens.issue(1_000, &grant).token)
    }

    #[test]
    fn a_token_is_good_until_the_second_it_expires() {
        let tokens = tokens();
        let header = bearer(&tokens, "https://management.azure.com/");
        assert_eq!(tokens.principal(1_059, Some(&header), ORIGIN), Ok("app".to_owned()));
        let over = tokens.principal(1_060, Some(&header), ORIGIN);
        assert_eq!(over, Err(Denied::Expired { at: 1_060, now: 1_060 }));
    }

    #[test]
    fn our_own_address_is_an_audience_and_strangers_are_none() {
        let tokens = tokens();
        assert!(tokens.principal(1_000, Some(&bearer(&tokens, ORIGIN)), ORIGIN).is_ok());
        let other = bearer(&tokens, "https://graph.microsoft.com");
        let denied = tokens.principal(1_000, Some(&other), ORIGIN).unwrap_err();
        assert_eq!(denied, Denied::WrongAudience("https://graph.microsoft.com".to_owned()));
    }

    #[test]
    fn what_we_have_not_signed_is_invalid() {
        let ours = bearer(&tokens(), ORIGIN);
        let others = Tokens::new(&[8; 32], Duration::from_secs(60));
        assert_eq!(others.principal(1_000, Some(&ours), ORIGIN), Err(Denied::Invalid));
        let mut bent = ours.clone();
        bent.insert(20, 'A');
        assert_eq!(tokens().principal(1_000, Some(&bent), ORIGIN), Err(Denied::Invalid));
        for odd in ["Bearer x", "Bearer a.b", "Bearer a.b.c", "Bearer ..", "bearer ü.ü.ü"] {
            assert_eq!(tokens().principal(1_000, Some(odd), ORIGIN), Err(Denied::Invalid), "{odd}");
        }
        for none in [None, Some(""), Some("Bearer"), Some("Bearer "), Some("Basic YTpi")] {
            assert_eq!(tokens().principal(1_000, none, ORIGIN), Err(Denied::Missing), "{none:?}");
        }
    }

    #[test]
    fn all_tokens_that_are_out_can_be_made_to_expire() {
        let tokens = tokens();
        let old = bearer(&tokens, ORIGIN);
        tokens.expire_all();
        let denied = tokens.principal(1_000, Some(&old), ORIGIN).unwrap_err();
        assert_eq!(denied.code(), "ExpiredAuthenticationToken");
        assert!(tokens.principal(1_000, Some(&bearer(&tokens, ORIGIN)), ORIGIN).is_ok());
    }

    #[test]
    fn a_restart_in_the_same_folder_knows_its_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let lifetime = Duration::from_secs(60);
        let first = Tokens::in_folder(folder.path(), lifetime).unwrap();
        let header = bearer(&first, ORIGIN);
        let again = Tokens::in_folder(folder.path(), lifetime).unwrap();
        assert!(again.principal(1_000, Some(&header), ORIGIN).is_ok());
        assert_eq!(first.identity_header(), again.identity_header());
    }
}
