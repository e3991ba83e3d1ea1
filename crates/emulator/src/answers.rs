//! HTTP answers that do not come from the surface: errors at the gate, documents, plain JSON.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

/// JSON with a status.
pub(crate) fn json(status: StatusCode, body: &Value) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from(body.to_string()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// An error as the resource manager's front answers it, before any provider has seen the request.
pub(crate) fn arm_error(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    let mut answer = json(status, &json!({"error": {"code": code, "message": message}}));
    let headers = answer.headers_mut();
    headers.insert("x-ms-failure-cause", HeaderValue::from_static("gateway"));
    headers.insert("pragma", HeaderValue::from_static("no-cache"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    let id = HeaderValue::from_str(&fresh_guid()).expect("a GUID is made of letters, digits and dashes");
    headers.insert("x-ms-request-id", id.clone());
    headers.insert("x-ms-correlation-request-id", id);
    answer
}

/// A random GUID, for ids that nobody replays.
pub(crate) fn fresh_guid() -> String {
    let mut bytes = [0u8; 16];
    SystemRandom::new().fill(&mut bytes).expect("the system has randomness");
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    guid(bytes)
}

/// A GUID that always belongs to the same words.
pub(crate) fn guid_of(words: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, words.as_bytes());
    let mut bytes = [0u8; 16];
    bytes.copy_from_slice(&digest.as_ref()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x50;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    guid(bytes)
}

fn guid(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}").expect("a String takes all that is written");
    }
    text
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String takes all that is written");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_have_their_shape_and_the_same_words_the_same_guid() {
        for guid in [fresh_guid(), guid_of("app")] {
            let lengths: Vec<usize> = guid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{guid}");
        }
        assert_eq!(guid_of("app"), guid_of("app"));
        assert_ne!(guid_of("app"), guid_of("other"));
        assert_ne!(fresh_guid(), fresh_guid());
    }
}
