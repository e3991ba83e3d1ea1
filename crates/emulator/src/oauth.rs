//! The directory: hands out tokens for client secrets, certificates and federated tokens.
//!
//! It is as picky as the real one about the form of a request, since that is what a client gets wrong,
//! and answers with its codes. It believes every assertion that is well formed and not over: nobody
//! has told it a public key. People cannot sign in; there is no page for it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::answers::{fresh_guid, json};
use crate::dates::sortable;
use crate::options::Credentials;
use crate::tokens::{Grant, Tokens};

const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// What of the directory a path names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Page<'a> {
    /// `/{tenant}/oauth2/v2.0/token`.
    Token { tenant: &'a str },
    /// `/{tenant}/oauth2/token`, the older form, with `resource` in place of `scope`.
    OldToken { tenant: &'a str },
    /// `/{tenant}/v2.0/.well-known/openid-configuration`, or the older one without `v2.0`.
    Configuration { tenant: &'a str },
    /// `/common/discovery/instance`.
    Instance,
    /// `/{tenant}/discovery/v2.0/keys`.
    Keys,
}

/// Reads a path; `None`: not the directory's.
pub(crate) fn page(path: &str) -> Option<Page<'_>> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let rest: [Option<&str>; 5] = std::array::from_fn(|_| parts.next());
    let [Some(tenant), Some(a), b, c, None] = rest else { return None };
    let same = |part: Option<&str>, word: &str| part.is_some_and(|part| part.eq_ignore_ascii_case(word));
    let is = |second: &str, third: Option<&str>, fourth: Option<&str>| {
        a.eq_ignore_ascii_case(second)
            && third.map_or(b.is_none(), |word| same(b, word))
            && fourth.map_or(c.is_none(), |word| same(c, word))
    };
    match tenant {
        "" => None,
        "common" if is("discovery", Some("instance"), None) => Some(Page::Instance),
        _ if is("oauth2", Some("v2.0"), Some("token")) => Some(Page::Token { tenant }),
        _ if is("oauth2", Some("token"), None) => Some(Page::OldToken { tenant }),
        _ if is("v2.0", Some(".well-known"), Some("openid-configuration"))
            || is(".well-known", Some("openid-configuration"), None) =>
        {
            Some(Page::Configuration { tenant })
        }
        _ if is("discovery", Some("v2.0"), Some("keys")) || is("discovery", Some("keys"), None) => {
            Some(Page::Keys)
        }
        _ => None,
    }
}

/// The directory.
pub(crate) struct Directory<'a> {
    pub(crate) tokens: &'a Tokens,
    pub(crate) credentials: &'a Credentials,
    /// Unix seconds.
    pub(crate) now: u64,
    /// What the caller thinks we are called.
    pub(crate) origin: &'a str,
}

/// A client that got its token, or why not.
type Outcome = Result<(String, Value), Problem>;

/// An error of the directory.
#[derive(Debug)]
struct Problem {
    status: StatusCode,
    error: &'static str,
    number: u32,
    text: Cow<'static, str>,
}

impl Directory<'_> {
    /// Answers one request, and says which client it was for, where it was for one.
    pub(crate) fn answer(
        &self,
        method: &Method,
        page: Page<'_>,
        content_type: Option<&str>,
        body: &[u8],
    ) -> (Response<Bytes>, Option<String>) {
        let document = match page {
            Page::Token { tenant } | Page::OldToken { tenant } => {
                let is_old = matches!(page, Page::OldToken { .. });
                let outcome = self.grant(method, tenant, is_old, content_type, body);
                return match outcome {
                    Ok((client, token)) => (json(StatusCode::OK, &token), Some(client)),
                    Err(problem) => (self.refuse(&problem), None),
                };
            }
            Page::Configuration { tenant } => self.configuration(tenant),
            Page::Instance => json!({
                "tenant_discovery_endpoint":
                    format!("{}/common/v2.0/.well-known/openid-configuration", self.origin),
                "api-version": "1.1",
                "metadata": [],
            }),
            Page::Keys => json!({"keys": []}),
        };
        (json(StatusCode::OK, &document), None)
    }

    fn configuration(&self, tenant: &str) -> Value {
        let base = format!("{}/{tenant}", self.origin);
        json!({
            "token_endpoint": format!("{base}/oauth2/v2.0/token"),
            "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
            "jwks_uri": format!("{base}/discovery/v2.0/keys"),
            "response_modes_supported": ["query", "fragment", "form_post"],
            "subject_types_supported": ["pairwise"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "response_types_supported": ["code", "id_token", "code id_token", "id_token token"],
            "scopes_supported": ["openid", "profile", "email", "offline_access"],
            "issuer": format!("{base}/v2.0"),
            "authorization_endpoint": format!("{base}/oauth2/v2.0/authorize"),
            "device_authorization_endpoint": format!("{base}/oauth2/v2.0/devicecode"),
            "end_session_endpoint": format!("{base}/oauth2/v2.0/logout"),
            "tenant_region_scope": "EU",
            "cloud_instance_name": "sluice-emulator",
        })
    }

    fn grant(
        &self,
        method: &Method,
        tenant: &str,
        is_old: bool,
        content_type: Option<&str>,
        body: &[u8],
    ) -> Outcome {
        if method != Method::POST {
            return Err(Problem {
                status: StatusCode::METHOD_NOT_ALLOWED,
                error: "invalid_request",
                number: 900_561,
                text: "The endpoint only accepts POST requests.".into(),
            });
        }
        let is_form = content_type.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        if !is_form {
            let text = "The body must be 'application/x-www-form-urlencoded'.";
            return Err(bad_request("invalid_request", 90_011, text));
        }
        let form: BTreeMap<Cow<'_, str>, Cow<'_, str>> = url::form_urlencoded::parse(body).collect();
        let field = |name: &str| form.get(name).map(AsRef::as_ref).filter(|value: &&str| !value.is_empty());
        let needed = |name: &str| field(name).ok_or_else(|| missing(name));
        let grant_type = needed("grant_type")?;
        let client = needed("client_id")?;
        if grant_type != "client_credentials" {
            let text = format!(
                "The app requested an unsupported grant type '{grant_type}'. The emulator has no people who \
                 could sign in; use 'client_credentials'."
            );
            return Err(bad_request("unsupported_grant_type", 70_003, text));
        }
        let audience = if is_old { needed("resource")? } else { audience(needed("scope")?)? };
        self.admit(client, tenant, field("client_secret"), field("client_assertion"), || {
            field("client_assertion_type")
        })?;
        let issued = self.tokens.issue(self.now, &Grant { tenant, client, audience });
        let token = if is_old {
            json!({
                "token_type": "Bearer",
                "expires_in": issued.expires_in.to_string(),
                "ext_expires_in": issued.expires_in.to_string(),
                "expires_on": issued.expires_on.to_string(),
                "not_before": issued.not_before.to_string(),
                "resource": audience,
                "access_token": issued.token,
            })
        } else {
            json!({
                "token_type": "Bearer",
                "expires_in": issued.expires_in,
                "ext_expires_in": issued.expires_in,
                "access_token": issued.token,
            })
        };
        Ok((client.to_owned(), token))
    }

    /// Checks what a client brought to prove itself.
    fn admit<'b>(
        &self,
        client: &str,
        tenant: &str,
        secret: Option<&str>,
        assertion: Option<&str>,
        assertion_type: impl Fn() -> Option<&'b str>,
    ) -> Result<(), Problem> {
        let known = match self.credentials {
            Credentials::Any => None,
            Credentials::Only(known) => Some(known.get(client).ok_or_else(|| {
                let text = format!(
                    "Application with identifier '{client}' was not found in the directory '{tenant}'."
                );
                bad_request("unauthorized_client", 700_016, text)
            })?),
        };
        match (secret, assertion) {
            (Some(secret), None) if known.is_none_or(|known| known == secret) => Ok(()),
            (Some(_), None) => Err(unauthorized(
                7_000_215,
                format!(
                    "Invalid client secret provided. Ensure the secret being sent in the request is the client \
                     secret value, not the client secret ID, for a secret added to app '{client}'."
                ),
            )),
            (None, Some(assertion)) => {
                if assertion_type() != Some(JWT_BEARER) {
                    let text = format!("'client_assertion_type' must be '{JWT_BEARER}'.");
                    return Err(bad_request("invalid_request", 900_144, text));
                }
                self.believe(assertion)
            }
            (Some(_), Some(_)) => Err(unauthorized(
                7_000_216,
                "Only one of 'client_assertion' and 'client_secret' may be in the body.",
            )),
            (None, None) => Err(unauthorized(
                7_000_218,
                "The request body must contain the following parameter: 'client_assertion' or 'client_secret'.",
            )),
        }
    }

    /// Whether an assertion is well formed and not over.
    fn believe(&self, assertion: &str) -> Result<(), Problem> {
        let malformed =
            || unauthorized(50_027, "JWT token is invalid or malformed: it is not three parts of JSON.");
        let parts: Vec<&str> = assertion.split('.').collect();
        let [head, claims, signature] = parts[..] else { return Err(malformed()) };
        let read = |part: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok()?;
            serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes).ok()
        };
        let (Some(_), Some(claims), false) = (read(head), read(claims), signature.is_empty()) else {
            return Err(malformed());
        };
        match claims.get("exp").and_then(Value::as_u64) {
            Some(expires) if expires <= self.now => {
                let text = format!(
                    "Client assertion is not within its valid time range. Current time: {}, expiry time of \
                     assertion {}.",
                    sortable(self.now),
                    sortable(expires)
                );
                Err(unauthorized(700_024, text))
            }
            _ => Ok(()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Response<Bytes> {
        let (trace, correlation, time) = (fresh_guid(), fresh_guid(), sortable(self.now));
        let description = format!(
            "AADSTS{}: {} Trace ID: {trace} Correlation ID: {correlation} Timestamp: {time}",
            problem.number, problem.text
        );
        let body = json!({
            "error": problem.error,
            "error_description": description,
            "error_codes": [problem.number],
            "timestamp": time,
            "trace_id": trace,
            "correlation_id": correlation,
        });
        json(problem.status, &body)
    }
}

/// The resource that a scope asks for.
fn audience(scope: &str) -> Result<&str, Problem> {
    // Some clients ask for the openid scopes as well; they mean nothing to a client without a user.
    let mut asked =
        scope.split_whitespace().filter(|word| !matches!(*word, "openid" | "profile" | "offline_access"));
    match (asked.next().and_then(|word| word.strip_suffix("/.default")), asked.next()) {
        (Some(resource), None) if !resource.is_empty() => Ok(resource),
        _ => {
            let text = format!(
                "The provided value for scope {scope} is not valid. Client credential flows must have a scope \
                 value with /.default suffixed to the resource identifier (application ID URI)."
            );
            Err(bad_request("invalid_scope", 1_002_012, text))
        }
    }
}

fn missing(name: &str) -> Problem {
    let text = format!("The request body must contain the following parameter: '{name}'.");
    bad_request("invalid_request", 900_144, text)
}

fn bad_request(error: &'static str, number: u32, text: impl Into<Cow<'static, str>>) -> Problem {
    Problem { status: StatusCode::BAD_REQUEST, error, number, text: text.into() }
}

fn unauthorized(number: u32, text: impl Into<Cow<'static, str>>) -> Problem {
    Problem { status: StatusCode::UNAUTHORIZED, error: "invalid_client", number, text: text.into() }
}
