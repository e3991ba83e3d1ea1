//! `/metadata/endpoints`: where a cloud has what, as `az cloud register` and some libraries ask.
//!
//! The answer changed its shape twice: a small object in 2015, a list of clouds from 2019 on, and
//! from 2022-09-01 on the one cloud that was asked. Only what the emulator has is named; no portal, no
//! gallery.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::answers::{arm_error, json};

/// Answers one request.
pub(crate) fn answer(query: &str, origin: &str) -> Response<Bytes> {
    let version = url::form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == "api-version")
        .map(|pair| pair.1);
    let Some(version) = version else {
        let message = "The api-version query parameter (?api-version=) is required for all requests.";
        return arm_error(StatusCode::BAD_REQUEST, "MissingApiVersionParameter", message);
    };
    let audiences = json!([origin, "https://management.azure.com/", "https://management.core.windows.net/"]);
    // Dates of the form 2022-09-01 are in order as text.
    let document = if *version < *"2019" {
        json!({
            "galleryEndpoint": Value::Null,
            "graphEndpoint": Value::Null,
            "portalEndpoint": Value::Null,
            "authentication": {"loginEndpoint": origin, "audiences": audiences},
        })
    } else {
        let cloud = json!({
            "name": "SluiceEmulator",
            "authentication": {
                "loginEndpoint": origin,
                "audiences": audiences,
                "tenant": "common",
                "identityProvider": "AAD",
            },
            "resourceManager": origin,
            "suffixes": {},
        });
        if *version < *"2022-09-01" { json!([cloud]) } else { cloud }
    };
    json(StatusCode::OK, &document)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(query: &str) -> Value {
        serde_json::from_slice(answer(query, "https://localhost:1").body()).unwrap()
    }

    #[test]
    fn each_age_gets_its_shape() {
        let login = |cloud: &Value| cloud["authentication"]["loginEndpoint"].as_str().unwrap().to_owned();
        let old = document("api-version=2015-01-01");
        assert_eq!(login(&old), "https://localhost:1");
        assert!(old.get("resourceManager").is_none());
        let list = document("api-version=2020-06-01");
        assert_eq!(list[0]["resourceManager"], "https://localhost:1");
        let one = document("api-version=2022-09-01");
        assert_eq!(login(&one), "https://localhost:1");
        assert_eq!(document("")["error"]["code"], "MissingApiVersionParameter");
    }
}
