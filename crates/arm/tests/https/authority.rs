//! Who issues tokens in these tests, and what it is asked.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sluice_arm::{Credential, Secret};

use crate::leaks;
use crate::server::{Act, Seen, json};
use crate::world::public_ip_json;

pub(crate) const TENANT: &str = "11111111-2222-3333-4444-555555555555";
pub(crate) const CLIENT: &str = "the-application";
pub(crate) const CLIENT_SECRET: &str = "client-s3cr3t";

pub(crate) fn client_secret() -> Credential {
    Credential::ClientSecret {
        tenant: TENANT.into(),
        client_id: CLIENT.into(),
        secret: Secret::new(CLIENT_SECRET),
    }
}

/// Whether this asks for a token.
pub(crate) fn is_for_token(seen: &Seen) -> bool {
    seen.path.contains("/oauth2/")
}

/// The n-th token. It looks like a real one, and its middle is a secret of these tests.
pub(crate) fn token(number: usize) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let token = format!("{}.token{number}-s3cr3t.c2ln", part(r#"{"alg":"none"}"#));
    leaks::also(&token);
    token
}

/// A token as Entra gives it.
pub(crate) fn grant(number: usize) -> Act {
    let token = token(number);
    json(
        200,
        &format!(
            r#"{{"token_type":"Bearer","expires_in":3599,"ext_expires_in":3599,"access_token":"{token}"}}"#
        ),
    )
}

/// Gives tokens to whom asks for them, and public IPs to whom has one.
pub(crate) fn entra(seen: &Seen) -> Act {
    if is_for_token(seen) { grant(seen.number) } else { json(200, &public_ip_json()) }
}
