//! One call to the API server that is not a watch: sent once, within a limit, and its end put in four words.
//!
//! Everything that writes, asks or looks goes through [`Call::send`], so that a lost connection, a
//! missing permission or a webhook's refusal means the same everywhere. Requests are made by hand
//! and not by `kube::Api`: JSON patches then need no further crate, fields that we do not know stay
//! as they are, and the HTTP status counts instead of the code that a proxy may or may not put
//! into its text.
//!
//! Missing on purpose: repetition. Whether to try again is for whoever decides.

use sluice_model::reason::cut;
use std::error::Error;
use std::io;
use std::time::Duration;

use http::{Method, Request, StatusCode};
use kube::Client;
use kube::client::Body;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How long a call may take before it counts as lost.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(10);
/// More of the server's words than this helps nobody.
const WORDS_MAX: usize = 600;

/// Why a call did not do what it should, grouped by what can be done next.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Trouble {
    /// There is no such object; the API server itself said so.
    #[error("{0}")]
    Missing(String),
    /// It is not as it was when it was read.
    #[error("{0}")]
    Conflict(String),
    /// The API server, a webhook or a policy stands against it; trying again changes nothing by itself.
    #[error("{words}")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// What was refused and the server's own words.
        words: String,
    },
    /// No answer, or one that says "not now"; what was asked for may have been done.
    #[error("{0}")]
    Unavailable(String),
}

impl Trouble {
    /// It may pass by itself, so that the same is worth another try later.
    pub fn is_passing(&self) -> bool {
        match self {
            Trouble::Conflict(_) | Trouble::Unavailable(_) => true,
            // A token is renewed, and a version that is too old is followed by a newer one.
            Trouble::Refused { code, .. } => matches!(code, 401 | 410),
            Trouble::Missing(_) => false,
        }
    }
}

/// What is asked of the API server.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The permission that it needs: the verb.
    verb: &'static str,
    /// The permission that it needs: the resource, with the subresource behind a slash.
    resource: &'static str,
    method: Method,
    path: String,
    accept: &'static str,
    content_type: Option<&'static str>,
    body: Option<Value>,
    limit: Duration,
}

impl Call {
    /// `GET` of one object.
    pub(crate) fn get(resource: &'static str, path: String) -> Call {
        Call {
            verb: "get",
            resource,
            method: Method::GET,
            path,
            accept: "application/json",
            content_type: None,
            body: None,
            limit: CALL_LIMIT,
        }
    }

    /// `GET` of a page of objects.
    pub(crate) fn list(resource: &'static str, path: String) -> Call {
        Call { verb: "list", ..Call::get(resource, path) }
    }

    /// `POST` of a new object.
    pub(crate) fn create(resource: &'static str, path: String, object: Value) -> Call {
        let with_body = Call { verb: "create", method: Method::POST, ..Call::get(resource, path) };
        Call { content_type: Some("application/json"), body: Some(object), ..with_body }
    }

    /// `PUT` of a whole object.
    pub(crate) fn replace(resource: &'static str, path: String, object: Value) -> Call {
        Call { verb: "update", method: Method::PUT, ..Call::create(resource, path, object) }
    }

    /// `PATCH` by a list of operations (RFC 6902).
    pub(crate) fn patch(resource: &'static str, path: String, operations: Vec<Value>) -> Call {
        let call = Call::create(resource, path, Value::Array(operations));
        Call {
            verb: "patch",
            method: Method::PATCH,
            content_type: Some("application/json-patch+json"),
            ..call
        }
    }

    /// `PATCH` by overlaying an object (RFC 7386).
    pub(crate) fn merge(resource: &'static str, path: String, overlay: Value) -> Call {
        let call = Call::create(resource, path, overlay);
        Call {
            verb: "patch",
            method: Method::PATCH,
            content_type: Some("application/merge-patch+json"),
            ..call
        }
    }

    /// The same, answered in another form.
    pub(crate) fn accepting(self, accept: &'static str) -> Call {
        Call { accept, ..self }
    }

    /// The same with another limit.
    pub(crate) fn within(self, limit: Duration) -> Call {
        Call { limit, ..self }
    }

    /// Sends it, once.
    pub(crate) async fn send<T: DeserializeOwned>(&self, client: &Client) -> Result<T, Trouble> {
        let request = self.request()?;
        let lost = |why| {
            Trouble::Unavailable(format!("{} failed: no answer from the API server: {why}", self.what()))
        };
        let (status, body) = exchange(client, request, self.limit).await.map_err(lost)?;
        self.understand(status, &body)
    }

    fn understand<T: DeserializeOwned>(&self, status: StatusCode, bytes: &[u8]) -> Result<T, Trouble> {
        if !status.is_success() {
            return Err(self.trouble(status, bytes));
        }
        serde_json::from_slice(bytes).map_err(|error| {
            Trouble::Unavailable(format!(
                "{} failed: cannot read the API server's answer: {error}",
                self.what()
            ))
        })
    }

    fn request(&self) -> Result<Request<Body>, Trouble> {
        let mut request = Request::builder().method(self.method.clone()).uri(&self.path);
        request = request.header(http::header::ACCEPT, self.accept);
        if let Some(content_type) = self.content_type {
            request = request.header(http::header::CONTENT_TYPE, content_type);
        }
        let body =
            self.body.as_ref().map_or_else(Body::empty, |body| Body::from(body.to_string().into_bytes()));
        request.body(body).map_err(|error| Trouble::Refused {
            code: 0,
            words: format!("{} is not a valid path: {error}", self.path),
        })
    }

    fn trouble(&self, status: StatusCode, body: &[u8]) -> Trouble {
        let words = words(body);
        let code = status.as_u16();
        let said = format!("{} failed with HTTP {code}: {words}", self.what());
        match code {
            // Only the API server's own words prove that an object is not there; a proxy says 404 too, and
            // so does a server that does not know the whole kind.
            404 if is_not_found(body) => Trouble::Missing(said),
            404 => Trouble::Unavailable(said),
            409 => Trouble::Conflict(said),
            401 => Trouble::Refused {
                code,
                words: format!(
                    "{} failed: the API server does not accept the credentials (401): {words}; check whether the \
                     token has expired",
                    self.what()
                ),
            },
            // Denials of webhooks are 403 too; only the authorizer writes it like this.
            403 if words.contains("cannot ") && words.contains(" resource ") => Trouble::Refused {
                code,
                words: format!("{} denied: {words}; grant this permission to the account", self.what()),
            },
            // A webhook that cannot be called stands against the write as much as one that says no.
            500 if words.contains("failed calling webhook") => Trouble::Refused { code, words },
            408 | 429 | 500.. => Trouble::Unavailable(said),
            _ => Trouble::Refused { code, words },
        }
    }

    /// The permission in words: `patch services/status`.
    fn what(&self) -> String {
        format!("{} {}", self.verb, self.resource)
    }
}

/// Status and body of whatever the server says, or why it said nothing.
pub(crate) async fn exchange(
    client: &Client,
    request: Request<Body>,
    limit: Duration,
) -> Result<(StatusCode, Vec<u8>), String> {
    let exchange = async {
        let answer = client.send(request).await?;
        let status = answer.status();
        let bytes = answer.into_body().collect_bytes().await?;
        Ok((status, bytes.to_vec()))
    };
    match tokio::time::timeout(limit, exchange).await {
        Ok(Ok(answer)) => Ok(answer),
        // The outer words of kube say only that it was a service that failed.
        Ok(Err(kube::Error::Service(error))) => Err(chain(&*error)),
        Ok(Err(error)) => Err(chain(&error)),
        Err(_) => Err(format!("timed out after {:.1} s", limit.as_secs_f64())),
    }
}

/// Whether this is the API server's word that an object is not there.
fn is_not_found(body: &[u8]) -> bool {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    status["kind"] == "Status" && status["reason"] == "NotFound"
}

/// The message of a `Status`, else the text itself.
fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let message = serde_json::from_str::<Value>(&text)
        .ok()
        .and_then(|status| status.get("message").and_then(Value::as_str).map(str::to_string));
    cut(message.as_deref().unwrap_or(text.trim()), WORDS_MAX)
}

/// What is said instead of an error that comes from having no file descriptor left.
pub(crate) const TOO_MANY_FILES: &str = "too many open files; raise the limit of open files (ulimit -n)";

/// Whether this process (EMFILE) or the machine (ENFILE) has no file descriptor left.
fn is_too_many_files(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        let io = cause.downcast_ref::<io::Error>();
        if io.is_some_and(|io| matches!(io.raw_os_error(), Some(23 | 24))) {
            return true;
        }
        // The source of an I/O error that wraps another is the other's source: ask for the other itself.
        next = match io.and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    false
}

/// An error with all its causes; libraries tend to hide the one that helps at the bottom.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    if is_too_many_files(error) {
        return TOO_MANY_FILES.into();
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    cut(&text, WORDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Say, answering};

    async fn ending(say: Say) -> Trouble {
        let (client, _) = answering(move |_| say.clone());
        let call =
            Call::merge("services/status", "/api/v1/namespaces/shop/services/web/status".into(), Value::Null);
        call.send::<Value>(&client).await.unwrap_err()
    }

    #[tokio::test]
    async fn each_answer_is_one_of_four_troubles() {
        assert!(matches!(ending(Say::status(404, "NotFound", "not found")).await, Trouble::Missing(_)));
        assert!(matches!(ending(Say::status(409, "Conflict", "changed")).await, Trouble::Conflict(_)));
        for code in [408, 429, 500, 502, 503, 504] {
            let trouble = ending(Say::status(code, "Busy", "later")).await;
            assert!(matches!(trouble, Trouble::Unavailable(_)), "{code} {trouble}");
        }
        for code in [400, 401, 403, 405, 413, 415, 422] {
            let trouble = ending(Say::status(code, "No", "no")).await;
            assert!(matches!(trouble, Trouble::Refused { .. }), "{code} {trouble}");
        }
        assert!(matches!(ending(Say::Break).await, Trouble::Unavailable(_)));
        assert!(matches!(ending(Say::Text(200, "<html>")).await, Trouble::Unavailable(_)));
    }

    #[tokio::test]
    async fn the_http_status_counts_and_not_what_a_proxy_writes_into_its_text() {
        let trouble = ending(Say::Json(502, serde_json::json!({"error": "no upstream"}))).await;
        assert!(matches!(trouble, Trouble::Unavailable(_)), "{trouble}");
    }

    #[tokio::test]
    async fn a_missing_permission_is_named_and_a_webhooks_denial_keeps_its_own_words() {
        let rbac = "services \"web\" is forbidden: User \"system:serviceaccount:a:b\" cannot patch resource \
                    \"services/status\" in API group \"\" in the namespace \"shop\"";
        let said = ending(Say::status(403, "Forbidden", rbac)).await.to_string();
        assert!(said.starts_with("patch services/status denied: services \"web\" is forbidden"), "{said}");
        let webhook = "admission webhook \"policy.example.com\" denied the request: no";
        assert_eq!(ending(Say::status(403, "Forbidden", webhook)).await.to_string(), webhook);
        let down = "Internal error occurred: failed calling webhook \"policy.example.com\": refused";
        let trouble = ending(Say::status(500, "InternalError", down)).await;
        assert_eq!(trouble, Trouble::Refused { code: 500, words: down.into() });
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_nothing_is_left_after_the_limit() {
        let trouble = ending(Say::Hang).await;
        let words = "patch services/status failed: no answer from the API server: timed out after 10.0 s";
        assert_eq!(trouble, Trouble::Unavailable(words.into()));
    }

    #[tokio::test]
    async fn too_many_open_files_are_named_however_deep_they_are() {
        for os_error in [23, 24] {
            let trouble = ending(Say::OsError(os_error)).await;
            let words =
                format!("patch services/status failed: no answer from the API server: {TOO_MANY_FILES}");
            assert_eq!(trouble, Trouble::Unavailable(words));
            let wrapped = io::Error::other(io::Error::other(io::Error::from_raw_os_error(os_error)));
            assert_eq!(chain(&wrapped), TOO_MANY_FILES);
        }
        assert!(chain(&io::Error::from_raw_os_error(5)).contains("os error 5"));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("äöüß", 7), "äö…");
        assert_eq!(cut("äöüß", 6), "ä…");
    }
}
