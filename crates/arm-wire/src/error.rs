//! ARM's errors, in every shape in which they come, and errors made up where none came.
//!
//! ```text
//! {"error": {"code", "message", "details": [{"code", "message"}], "target"}}   Azure
//! {"code", "message"}                                                          some providers
//! {"odata.error": {"code", "message": {"lang", "value"}}}                      the old ones
//! {"error": "Not Found", "message"}                                            others on the way
//! {"Message"}                                                                  the same
//! ```
//!
//! Keys count whatever their case. `innererror` is for Azure's own people and is left out.

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::{String, ToString};

use serde_json::{Map, Value};
use sluice_model::call::ArmError;

use crate::excerpt::{describe, one_line};
use crate::headers::Headers;
use crate::url;

/// Messages end up in events and logs of other people.
const MESSAGE_CHARS_MAX: usize = 1_000;
const CODE_CHARS_MAX: usize = 100;
/// A message shorter than this may be no more than the code in other words.
const TERSE_CHARS_MAX: usize = 80;

/// The error that a body is about; `None` if it is not about one.
pub(crate) fn in_body(status: u16, value: &Value) -> Option<ArmError> {
    let body = value.as_object()?;
    match field(body, "error").or_else(|| field(body, "odata.error")) {
        Some(Value::Object(error)) => in_object(status, error),
        Some(Value::String(error)) if !error.trim().is_empty() => {
            let message = text(body, "error_description").or_else(|| text(body, "message"));
            Some(worded(status, "", format!("{}: {}", error.trim(), message.unwrap_or_default())))
        }
        _ => {
            let whole = text(body, "code").is_some() && text(body, "message").is_some();
            if whole { in_object(status, body) } else { None }
        }
    }
}

/// The error of an answer whose status says that it is one, however little of it there is.
pub(crate) fn in_refusal(status: u16, value: &Value) -> Option<ArmError> {
    in_body(status, value).or_else(|| in_object(status, value.as_object()?))
}

/// An error for a status that came without one.
pub(crate) fn made_up(status: u16, headers: Headers<'_>, body: &[u8]) -> ArmError {
    let message = match (status, headers.first("Location")) {
        (300..=399, Some(target)) => format!(
            "the answer redirects to {}, which Sluice does not follow: the access token must not be sent to \
             another address",
            url::without_query(target)
        ),
        (300..=399, None) => {
            format!("the answer is a redirect without a target; {}", describe(headers, body))
        }
        _ => format!("the answer has no ARM error; {}", describe(headers, body)),
    };
    worded(status, "", message)
}

/// Puts code and message together. Azure's codes are words, and they decide what is done next;
/// what is not one word is somebody else's, and the code is made up from the status.
fn worded(status: u16, code: &str, mut message: String) -> ArmError {
    let code = code.trim();
    let is_word = code.bytes().any(|b| b.is_ascii_alphabetic()) && !code.contains(char::is_whitespace);
    if !is_word && !code.is_empty() {
        message = format!("{code}: {message}");
    }
    let code = if is_word { code.to_owned() } else { format!("Http{status}") };
    ArmError {
        code: one_line(code.as_bytes(), CODE_CHARS_MAX).into(),
        message: one_line(message.as_bytes(), MESSAGE_CHARS_MAX).into(),
    }
}

fn in_object(status: u16, error: &Map<String, Value>) -> Option<ArmError> {
    let code = text(error, "code").unwrap_or_default();
    let mut message = text(error, "message").unwrap_or_default().into_owned();
    let detail = first_detail(error).filter(|detail| !message.contains(&**detail));
    if code.is_empty() && message.is_empty() && detail.is_none() {
        return None;
    }
    if let Some(detail) = detail.filter(|_| message.chars().count() < TERSE_CHARS_MAX) {
        if !message.is_empty() {
            message.push(' ');
        }
        message.push_str(&detail);
    }
    if let Some(target) = text(error, "target").filter(|target| !message.contains(&**target)) {
        message = format!("{message} (target: {target})");
    }
    Some(worded(status, &code, message))
}

/// The first detail that says anything.
fn first_detail(error: &Map<String, Value>) -> Option<Cow<'_, str>> {
    let Value::Array(details) = field(error, "details")? else { return None };
    details.iter().filter_map(Value::as_object).find_map(|detail| text(detail, "message"))
}

/// A field that is there and not null, whatever the case of its name.
pub(crate) fn field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let exact = object.get(name);
    exact
        .or_else(|| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value))
        .filter(|value| !value.is_null())
}

/// A text that is not empty; numbers count, and so does OData's wrapped text.
fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<Cow<'a, str>> {
    let text = match field(object, name)? {
        Value::String(text) => Cow::Borrowed(text.trim()),
        Value::Number(number) => Cow::Owned(number.to_string()),
        Value::Object(wrapped) => return text(wrapped, "value"),
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: &Value) -> (String, String) {
        let error = in_body(400, value).unwrap();
        (error.code.to_string(), error.message.to_string())
    }

    #[test]
    fn every_shape_of_an_error_is_understood() {
        for value in [
            json!({"error": {"code": "C", "message": "M", "details": [], "innererror": {"code": "I"}}}),
            json!({"code": "C", "message": "M"}),
            json!({"Error": {"Code": "C", "Message": "M"}}),
            json!({"odata.error": {"code": "C", "message": {"lang": "en-us", "value": "M"}}}),
            json!({"error": {"code": "C", "message": "M", "details": "none", "target": null}}),
        ] {
            assert_eq!(read(&value), ("C".into(), "M".into()), "{value}");
        }
    }

    #[test]
    fn a_message_that_says_nothing_is_explained_by_its_first_detail() {
        let details = json!([{"code": "X"}, {"message": "The etag differs."}, {"message": "More."}]);
        let terse = json!({"error": {"code": "C", "message": "Precondition failed.", "details": details}});
        assert_eq!(read(&terse).1, "Precondition failed. The etag differs.");
        let none = json!({"error": {"code": "C", "details": details}});
        assert_eq!(read(&none).1, "The etag differs.");
        let long = "It is said in many words what is wrong and what one might do about it in the end.";
        assert_eq!(read(&json!({"error": {"code": "C", "message": long, "details": details}})).1, long);
        let twice = json!({"error": {"code": "C", "message": "So: The etag differs.", "details": details}});
        assert_eq!(read(&twice).1, "So: The etag differs.");
        let target = json!({"error": {"code": "C", "message": "Bad.", "target": "sku.name"}});
        assert_eq!(read(&target).1, "Bad. (target: sku.name)");
    }

    #[test]
    fn what_is_no_error_is_none() {
        for value in [
            json!({}),
            json!(null),
            json!([{"error": {}}]),
            json!({"error": null, "status": "Succeeded"}),
            json!({"error": {}}),
            json!({"error": ""}),
            json!({"error": false}),
            json!({"code": "C"}),
            json!({"id": "/x", "properties": {"error": {"code": "C", "message": "M"}}}),
        ] {
            assert_eq!(in_body(200, &value), None, "{value}");
        }
    }

    #[test]
    fn a_refusal_needs_no_code() {
        let error = in_refusal(500, &json!({"Message": "An error has occurred."})).unwrap();
        assert_eq!((&*error.code, &*error.message), ("Http500", "An error has occurred."));
        assert_eq!(&*in_refusal(400, &json!({"code": "Odd"})).unwrap().code, "Odd");
        assert_eq!(in_refusal(400, &json!({"title": "Bad"})), None);
    }

    #[test]
    fn what_azure_would_not_write_has_no_code_of_azures() {
        for value in [
            json!({"code": 404, "message": "page not found"}),
            json!({"error": "Not Found", "message": "page not found"}),
            json!({"error": "not_found", "error_description": "page not found"}),
            json!({"error": {"code": "404", "message": "page not found"}}),
        ] {
            let error = in_body(404, &value).unwrap();
            assert_eq!(&*error.code, "Http404", "{value}");
            assert!(error.message.ends_with(": page not found"), "{}", error.message);
        }
    }

    #[test]
    fn a_long_message_is_cut() {
        let (_, message) = read(&json!({"code": "C".repeat(500), "message": "ä".repeat(5_000)}));
        assert_eq!(message.chars().count(), MESSAGE_CHARS_MAX + 1);
        assert!(message.ends_with('…'));
    }

    #[test]
    fn a_redirect_names_its_target_without_the_query() {
        let headers = Headers(&[("location", "http://login.example/x?token=secret")]);
        let error = made_up(302, headers, b"");
        assert_eq!(&*error.code, "Http302");
        assert!(error.message.contains("http://login.example/x,"), "{}", error.message);
        assert!(!error.message.contains("secret"));
        assert!(made_up(304, Headers(&[]), b"").message.contains("without a target"));
    }
}
