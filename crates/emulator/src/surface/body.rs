//! Bytes to JSON.

use bytes::Bytes;
use http::{Request, Version};
use serde_json::Value;

use super::refused::{Refused, printable};

/// The JSON of a request that must have some.
pub(crate) fn read(request: &Request<Bytes>, bytes_max: usize) -> Result<Value, Refused> {
    let bytes = request.body();
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    if bytes.len() > bytes_max {
        return Err(Refused::too_large(bytes.len(), bytes_max));
    }
    let has_length = header("content-length").is_some() || header("transfer-encoding").is_some();
    if bytes.is_empty() && !has_length && request.version() <= Version::HTTP_11 {
        return Err(Refused::no_length());
    }
    let media_type = header("content-type");
    let is_json = media_type.is_some_and(|it| {
        let essence = it.split(';').next().unwrap_or("").trim();
        essence.eq_ignore_ascii_case("application/json") || essence.eq_ignore_ascii_case("text/json")
    });
    if !is_json {
        return Err(Refused::media_type(media_type));
    }
    // Some clients begin with a byte order mark.
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(text).map_err(|error| Refused::content(&printable(&error.to_string())))
}
