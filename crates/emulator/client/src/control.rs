//! The control API: state, request log, faults, and changes that somebody else makes in the subscription.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// The control API of one emulator.
#[derive(Clone, Debug)]
pub struct Control {
    root: String,
    /// A client that trusts the emulator's CA and nothing else.
    pub http: reqwest::Client,
}

/// One entry of the request log.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Counted from 1 since the start of the emulator.
    pub number: u64,
    /// Which part of the emulator it was for: `arm`, `metadata`, ….
    pub area: String,
    /// When it arrived, in emulated milliseconds.
    #[serde(default)]
    pub arrived_emulated_ms: u64,
    /// When its answer was made, in emulated milliseconds.
    pub answered_emulated_ms: Option<u64>,
    /// When its answer was made, in real milliseconds since the start.
    pub answered_ms: Option<f64>,
    /// The HTTP method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The status of the answer; `None`: there was none.
    pub status: Option<u16>,
    /// The error code in the answer.
    pub code: Option<String>,
    /// `Get`, `List`, `Put`, `Poll`, ….
    pub call: Option<String>,
    /// The kind of resource, as in ids.
    pub kind: Option<String>,
    /// The name of the resource.
    pub name: Option<String>,
    /// The client id of the token.
    pub principal: Option<String>,
    /// The header `x-ms-client-request-id`.
    pub client_request_id: Option<String>,
    /// The header.
    pub user_agent: Option<String>,
    /// The operation that it started or asked for.
    pub operation: Option<String>,
    /// When that operation ends, in emulated milliseconds.
    pub operation_ends_emulated_ms: Option<u64>,
    /// The fault that struck it.
    pub fault: Option<String>,
    /// `Retry-After` of the answer, in real seconds.
    pub retry_after: Option<u64>,
    /// What was sent, if bodies were asked for.
    #[serde(default)]
    pub body: Value,
}

impl Request {
    /// Whether it asks for a change.
    pub fn is_write(&self) -> bool {
        self.area == "arm" && !matches!(self.method.as_str(), "GET" | "HEAD")
    }

    /// Whether it is about the gateway itself or the subnet.
    pub fn is_foundation(&self) -> bool {
        matches!(self.kind.as_deref(), Some("serviceGateways" | "subnets"))
    }

    /// Whether it writes this resource.
    pub fn is_put_of(&self, kind: &str, name: &str) -> bool {
        self.method == "PUT" && self.names(kind, name)
    }

    /// Whether it deletes this resource.
    pub fn is_delete_of(&self, kind: &str, name: &str) -> bool {
        self.method == "DELETE" && self.names(kind, name)
    }

    fn names(&self, kind: &str, name: &str) -> bool {
        let is =
            |own: &Option<String>, other: &str| own.as_ref().is_some_and(|it| it.eq_ignore_ascii_case(other));
        is(&self.kind, kind) && is(&self.name, name)
    }

    /// Whether a replica of this name asked.
    pub fn is_by(&self, replica: &str) -> bool {
        self.user_agent.as_ref().is_some_and(|agent| agent.split_whitespace().any(|word| word == replica))
    }

    /// One line for reports.
    pub fn line(&self) -> String {
        let status = self.status.map_or_else(|| "no answer".to_string(), |status| status.to_string());
        let short = self.path.rsplit("Microsoft.Network/").next().unwrap_or(&self.path);
        format!("#{} {} {short} → {status}", self.number, self.method)
    }

    /// Whether it is about a name: in its path, or somewhere in its body.
    pub fn is_about(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.path.to_ascii_lowercase().contains(&name)
            || self.body.to_string().to_ascii_lowercase().contains(&name)
    }
}

impl Control {
    /// The control API of the emulator at this address with this CA certificate.
    pub fn new(url: &str, ca_pem: &[u8]) -> Result<Control> {
        let http = reqwest::Client::builder()
            .tls_certs_only([reqwest::Certificate::from_pem(ca_pem)?])
            .timeout(ANSWER_MAX)
            .no_proxy()
            .build()?;
        Ok(Control { root: format!("{url}/_emulator"), http })
    }

    /// Everything there is.
    pub async fn state(&self) -> Result<Value> {
        self.ask("state").await
    }

    /// All requests after a number; an error if the emulator has dropped some of its log.
    pub async fn requests(&self, after: u64, bodies: bool) -> Result<Vec<Request>> {
        let mut all: Vec<Request> = Vec::new();
        loop {
            let from = all.last().map_or(after, |last| last.number);
            let mut answer = self.ask(&format!("requests?after={from}&bodies={bodies}")).await?;
            ensure!(answer["dropped"] == 0, "the emulator has dropped some of its request log");
            let page: Vec<Request> = serde_json::from_value(answer["requests"].take())
                .context("the request log has another form")?;
            all.extend(page);
            if answer["next"].is_null() {
                return Ok(all);
            }
        }
    }

    /// The number of the newest request.
    pub async fn newest_request(&self) -> Result<u64> {
        self.ask("requests?limit=1").await?["total"].as_u64().context("the request log has no length")
    }

    /// Counts of the request log: 429s, and calls that came before a `Retry-After` was over. On a busy machine
    /// a call may be on its way for a quarter of a second.
    pub async fn summary(&self) -> Result<Value> {
        self.ask("requests/summary?graceMs=250").await
    }

    /// Somebody else at work in the subscription.
    pub async fn tamper(&self, deed: &Value) -> Result<Value> {
        self.tell("tamper", deed).await
    }

    /// Ends all faults.
    pub async fn calm(&self) -> Result<()> {
        self.tell("calm", &json!({})).await.map(drop)
    }

    /// Reads: `ask("faults")`.
    pub async fn ask(&self, path: &str) -> Result<Value> {
        self.send(reqwest::Method::GET, path, None).await
    }

    /// Changes: `tell("faults", {…})`.
    pub async fn tell(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(reqwest::Method::POST, path, Some(body)).await
    }

    /// Removes: `withdraw("faults/1")`.
    pub async fn withdraw(&self, path: &str) -> Result<Value> {
        self.send(reqwest::Method::DELETE, path, None).await
    }

    async fn send(&self, method: reqwest::Method, path: &str, body: Option<&Value>) -> Result<Value> {
        let url = format!("{}/{path}", self.root);
        let mut request = self.http.request(method.clone(), &url);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.with_context(|| format!("no answer to {method} {url}"))?;
        let (status, text) = (answer.status(), answer.text().await?);
        let sent = body.map(Value::to_string).unwrap_or_default();
        ensure!(status.is_success(), "{method} {url} {sent} answered {status}: {text}");
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).with_context(|| format!("{method} {url} answered no JSON: {text}"))
    }
}
