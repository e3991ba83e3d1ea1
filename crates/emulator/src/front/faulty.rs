//! Answers that no good server would give, and what the log keeps of an answer.

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};

use super::unauthorized;
use crate::answers;
use crate::dates::unix_now;
use crate::faults::What;
use crate::request_log::{Outcome, cut};
use crate::tokens::Denied;

/// What comes back in place of the answer, if the fault is of that kind; nothing is done then. The model
/// refuses by itself what is for the resource manager.
pub(super) fn instead(
    what: &What,
    request: &Request<Bytes>,
    origin: &str,
    is_for_the_cloud: bool,
) -> Option<Response<Bytes>> {
    match what {
        What::Refuse { status, code, message, retry_after, .. } if !is_for_the_cloud => {
            let body = json!({"error": code, "error_description": message});
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut answer = answers::json(status, &body);
            if let Some(seconds) = retry_after {
                answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(*seconds));
            }
            Some(answer)
        }
        What::Unauthorized {} => {
            let now = unix_now();
            Some(unauthorized(&Denied::Expired { at: now.saturating_sub(1), now }, origin))
        }
        What::HtmlPage { status } => {
            let page = "<!DOCTYPE html>\n<html><head><title>Bad Gateway</title></head>\
                        <body><h1>The proxy could not reach the server.</h1></body></html>\n";
            let mut answer = Response::new(Bytes::from_static(page.as_bytes()));
            *answer.status_mut() = StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY);
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            Some(answer)
        }
        What::Redirect { status, to } => {
            let host = origin.split_once("://").map_or(origin, |(_, host)| host);
            let path = request.uri().path_and_query().map_or("/", |it| it.as_str());
            let to = to.clone().unwrap_or_else(|| format!("http://{host}{path}"));
            let mut answer = Response::new(Bytes::new());
            *answer.status_mut() = StatusCode::from_u16(*status).unwrap_or(StatusCode::TEMPORARY_REDIRECT);
            if let Ok(to) = HeaderValue::from_str(&to) {
                answer.headers_mut().insert(LOCATION, to);
            }
            Some(answer)
        }
        _ => None,
    }
}

/// The answer after the fault has been at it, and whether all of it is sent.
pub(super) fn changed(mut answer: Response<Bytes>, what: Option<&What>) -> (Response<Bytes>, bool) {
    match what {
        Some(What::Refuse { code, message, .. }) => {
            // Waits in texts are turned into real seconds on their way; who orders a text means it so.
            if let Ok(mut body) = serde_json::from_slice::<Value>(answer.body())
                && body["error"]["code"] == code.as_str()
            {
                body["error"]["message"] = message.as_str().into();
                *answer.body_mut() = body.to_string().into();
            }
        }
        Some(What::UnknownField {}) => {
            if let Ok(mut body) = serde_json::from_slice::<Value>(answer.body()) {
                add_field(&mut body);
                *answer.body_mut() = body.to_string().into();
            }
        }
        Some(What::MalformedJson {}) => {
            let half = answer.body().len() / 2;
            let mut body = BytesMut::from(&answer.body()[..half]);
            body.extend_from_slice(b"{\"oops\": ]");
            *answer.body_mut() = body.freeze();
        }
        Some(What::HugeBody { bytes }) => {
            let mut body = BytesMut::from(&answer.body()[..]);
            body.resize((*bytes).max(body.len()), b' ');
            *answer.body_mut() = body.freeze();
        }
        Some(What::WrongContentType { content_type }) => {
            if let Ok(value) = HeaderValue::from_str(content_type) {
                answer.headers_mut().insert(CONTENT_TYPE, value);
            }
        }
        Some(What::TruncatedBody {}) => return (answer, false),
        _ => return (answer, true),
    }
    answer.headers_mut().remove(CONTENT_LENGTH);
    (answer, true)
}

/// A field that nobody knows, in the document, its properties, and every item of a list.
fn add_field(body: &mut Value) {
    let new = || json!({"since": "a newer version", "items": [1, null, {"deep": true}]});
    let Some(fields) = body.as_object_mut() else { return };
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("fieldOfTheFuture".into(), new());
    }
    if let Some(items) = fields.get_mut("value").and_then(Value::as_array_mut) {
        items.iter_mut().for_each(add_field);
    }
    fields.insert("fieldOfTheFuture".into(), new());
}

/// What the log keeps of an answer.
pub(super) fn outcome(answer: &Response<Bytes>, polled: Option<&str>) -> Outcome {
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let status = answer.status().as_u16();
    let begun = header("azure-asyncoperation").or_else(|| header("location").filter(|_| status < 300));
    let begun = begun.and_then(|url| url.split('?').next()?.rsplit('/').next());
    // Only errors are looked into; they are small.
    let is_small = answer.body().len() < 64 << 10;
    let looks_like_an_error = status >= 400 || answer.body().starts_with(b"{\"error\"");
    let code = (is_small && looks_like_an_error)
        .then(|| serde_json::from_slice::<Value>(answer.body()).ok())
        .flatten()
        .and_then(|body| body["error"]["code"].as_str().or(body["error"].as_str()).map(ToOwned::to_owned));
    let mut operation = polled.or(begun).map(ToOwned::to_owned);
    operation.iter_mut().for_each(cut);
    Outcome {
        status: Some(status),
        bytes_out: answer.body().len(),
        retry_after: header("retry-after").and_then(|it| it.parse().ok()),
        code,
        operation,
        ..Outcome::default()
    }
}
