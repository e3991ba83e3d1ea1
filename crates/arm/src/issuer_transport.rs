//! How `azure_identity` reaches those who issue tokens: through our HTTP client, under our eyes.
//!
//! Its own errors lose the status, quote what they could not read, and break on ordinary texts
//! of Entra. So every answer is looked at here first: a token is passed on in the one shape
//! that all credentials understand, and anything else ends the fetch with a sentence for people.
//! That also keeps their pipeline from sleeping and trying again, which is not its business.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use azure_core::error::ErrorKind;
use azure_core::http::headers::Headers;
use azure_core::http::{AsyncRawResponse, Body, HttpClient, Method, Request};
use serde::Deserialize;
use url::Url;

use crate::connection::{origin_name, readable};
use crate::secret::{self, Secret};
use crate::settings::{AUTHORITY_HOST, Limits, is_near};
use crate::trouble::{LOOK_FIRST, Peer, Trouble};

/// No token is larger.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// What a token is used for whose answer does not say how long it is good.
const UNKNOWN_LIFE_S: i64 = 300;
/// Where the metadata service of every machine in Azure is.
const METADATA_HOST: &str = "169.254.169.254";

/// One fetch of a token. Made anew for each, because it remembers how this one went.
#[derive(Debug)]
pub(crate) struct IssuerTransport {
    pub(crate) http: reqwest::Client,
    pub(crate) proxy: Option<String>,
    pub(crate) limits: Limits,
    /// Stands in for the metadata service.
    pub(crate) metadata: Option<Url>,
    /// Must not show up in what we say.
    pub(crate) secret: Option<Secret>,
    pub(crate) trouble: Mutex<Option<Said>>,
}

/// What went wrong, in a sentence.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) text: String,
    /// For a refusal, Entra's number for it, or nothing if it has none.
    pub(crate) refusal: Option<String>,
    /// Entra has looked at our credential and refuses it.
    pub(crate) is_denial: bool,
    /// How long the issuer wants to be left alone.
    pub(crate) wait: Option<Duration>,
}

impl IssuerTransport {
    /// What went wrong last.
    pub(crate) fn said(&self) -> Option<Said> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps the sentence and makes an error of it that no policy of the pipeline waits and retries for.
    fn fail(&self, text: String) -> azure_core::Error {
        self.end(Said { text, refusal: None, is_denial: false, wait: None })
    }

    fn end(&self, said: Said) -> azure_core::Error {
        let text = secret::scrub(&said.text, self.secret.as_ref());
        let error = azure_core::Error::with_message(ErrorKind::Credential, text.clone());
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(Said { text, ..said });
        error
    }

    /// Where the request really goes, if it may.
    fn address(&self, request: &Request) -> Result<Url, azure_core::Error> {
        let mut url = request.url().clone();
        if let Some(metadata) = self.metadata.as_ref().filter(|_| url.host_str() == Some(METADATA_HOST)) {
            let mut there = metadata.clone();
            there.set_path(url.path());
            there.set_query(url.query());
            url = there;
        }
        if url.scheme() == "https" || is_near(&url) {
            return Ok(url);
        }
        let text = format!(
            "token request to {} not sent: plain http is not allowed; check IDENTITY_ENDPOINT and \
             sluice.azure.authorityHost",
            origin_name(&url)
        );
        Err(self.fail(text))
    }

    async fn exchange(&self, request: &Request) -> Result<(u16, Vec<u8>), azure_core::Error> {
        let url = self.address(request)?;
        let host = origin_name(&url);
        let is_metadata = request.url().host_str() == Some(METADATA_HOST);
        let peer = Peer {
            host: &host,
            proxy: self.proxy.as_deref().filter(|_| url.scheme() == "https" && !is_near(&url)),
            setting: if is_metadata { "sluice.azure.metadataEndpoint" } else { AUTHORITY_HOST },
            connect_limit: self.limits.connect,
        };
        let method = match request.method() {
            Method::Get => reqwest::Method::GET,
            _ => reqwest::Method::POST,
        };
        let mut ours = self.http.request(method, url);
        for (name, value) in request.headers().iter() {
            let mut value = reqwest::header::HeaderValue::from_str(value.as_str())
                .map_err(|_| self.fail(format!("cannot send header {}: invalid value", name.as_str())))?;
            // One of them may be the key to a managed identity.
            value.set_sensitive(true);
            ours = ours.header(name.as_str(), value);
        }
        if let Body::Bytes(bytes) = request.body()
            && !bytes.is_empty()
        {
            ours = ours.body(bytes.clone());
        }
        let failed = |trouble: Trouble| self.fail(token_text(&trouble));
        let mut answer = ours.send().await.map_err(|error| failed(Trouble::of(&error, peer)))?;
        let mut body = Vec::new();
        while let Some(chunk) =
            answer.chunk().await.map_err(|error| failed(Trouble::in_body(&error, &host)))?
        {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(failed(Trouble::too_large(&host, ANSWER_BYTES_MAX)));
            }
            body.extend_from_slice(&chunk);
        }
        let status = answer.status().as_u16();
        match status {
            200..300 => Ok((status, self.token_in(&host, status, &body)?)),
            _ => Err(self.end(refusal(&host, status, answer.headers(), &body))),
        }
    }

    /// The answer in the shape that every credential of `azure_identity` reads.
    fn token_in(&self, host: &str, status: u16, body: &[u8]) -> Result<Vec<u8>, azure_core::Error> {
        let answer: Option<TokenAnswer> = serde_json::from_slice(body).ok();
        let answer = answer.filter(|answer| !answer.access_token.is_empty()).ok_or_else(|| {
            // The body is not quoted: half a token is a secret too.
            let text = format!("{host} answered {status} without a token; check that this is a token issuer");
            self.fail(text)
        })?;
        let now = i64::try_from(unix_time().as_secs()).unwrap_or(i64::MAX);
        let read = |seconds: &Option<Seconds>| seconds.as_ref().and_then(Seconds::value);
        let lasts = read(&answer.expires_in)
            .or_else(|| read(&answer.expires_on).map(|at| at.saturating_sub(now)))
            .unwrap_or(UNKNOWN_LIFE_S);
        let shape = serde_json::json!({
            "token_type": "Bearer",
            "access_token": answer.access_token,
            "expires_in": lasts,
            "expires_on": now.saturating_add(lasts).to_string(),
            "resource": "",
        });
        Ok(shape.to_string().into_bytes())
    }
}

/// What an issuer says when it gives no token.
fn refusal(host: &str, status: u16, headers: &reqwest::header::HeaderMap, body: &[u8]) -> Said {
    let answer: RefusalAnswer = serde_json::from_slice(body).unwrap_or_default();
    let said = answer.error_description.as_deref().or(answer.error.as_deref()).unwrap_or_default();
    let said: String = said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(600).collect();
    let number = said.strip_prefix("AADSTS").and_then(|rest| rest.split(':').next()).unwrap_or_default();
    let location = headers.get(reqwest::header::LOCATION).and_then(|value| value.to_str().ok());
    let text = match (location, said.as_str()) {
        (Some(location), _) if (300..400).contains(&status) => {
            let there = location.split(['?', '#']).next().unwrap_or_default();
            format!("{host} answered {status} with a redirect to {there}, which Sluice does not follow")
        }
        (_, "") => format!("{host} answered {status} without a token"),
        (_, said) => format!("{host} answered {status}: {said}"),
    };
    // What Entra numbers is Entra's own; its words for trouble that passes are OAuth's.
    let passes = matches!(answer.error.as_deref(), None | Some("temporarily_unavailable" | "server_error"));
    Said {
        text,
        is_denial: matches!(status, 400 | 401 | 403) && !number.is_empty() && !passes,
        wait: sluice_arm_wire::retry_after(&readable(headers), unix_time()),
        refusal: Some(number.to_owned()),
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO)
}

/// A lost request for a token does no harm, so the text need not say that Azure is asked first.
fn token_text(trouble: &Trouble) -> String {
    trouble.text.split(LOOK_FIRST).next().unwrap_or_default().to_owned()
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: Option<Seconds>,
    expires_on: Option<Seconds>,
}

/// A number that some issuers write as a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Plain(i64),
    Text(String),
    Other(serde::de::IgnoredAny),
}

impl Seconds {
    fn value(&self) -> Option<i64> {
        match self {
            Seconds::Plain(number) => Some(*number),
            Seconds::Text(text) => text.trim().parse().ok(),
            Seconds::Other(_) => None,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RefusalAnswer {
    error: Option<String>,
    error_description: Option<String>,
}

#[async_trait::async_trait]
impl HttpClient for IssuerTransport {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let (status, body) = self.exchange(request).await?;
        Ok(AsyncRawResponse::from_bytes(status.into(), Headers::new(), body))
    }
}
