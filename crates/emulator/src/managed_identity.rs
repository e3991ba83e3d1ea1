//! Managed identities: tokens for whoever runs on the right machine.
//!
//! Two shapes are served. A virtual machine asks `169.254.169.254` with `Metadata: true`; clients that
//! let one choose the address can ask here. An App Service is told an address and a word by
//! `IDENTITY_ENDPOINT` and `IDENTITY_HEADER`, so every unmodified client can be sent here that way.
//! Without a parameter that names one, it is the system-assigned identity.

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::answers::{arm_error, guid_of, json};
use crate::tokens::{Grant, Tokens};

/// The client id of the system-assigned identity.
const SYSTEM_ASSIGNED: &str = "5e1f0000-0000-4000-8000-000000000001";
/// The tenant of managed identities, who never name one.
const TENANT: &str = "00000000-0000-0000-0000-000000000000";

/// Which of the two shapes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Host {
    /// `/metadata/identity/oauth2/token`.
    VirtualMachine,
    /// `/msi/token`.
    AppService,
}

/// Reads a path; `None`: not ours.
pub(crate) fn host(path: &str) -> Option<Host> {
    match path {
        "/metadata/identity/oauth2/token" => Some(Host::VirtualMachine),
        "/msi/token" => Some(Host::AppService),
        _ => None,
    }
}

/// Answers one request, and says for which client.
pub(crate) fn answer(
    tokens: &Tokens,
    now: u64,
    host: Host,
    method: &Method,
    query: &str,
    headers: &HeaderMap,
) -> (Response<Bytes>, Option<String>) {
    let refuse = |status: StatusCode, error: &str, text: &str| {
        let body = json!({"error": error, "error_description": text});
        (json(status, &body), None)
    };
    let bad = |text: &str| refuse(StatusCode::BAD_REQUEST, "invalid_request", text);
    if method != Method::GET {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "invalid_request", "Only GET is served here.");
    }
    let asked = |name: &str| {
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.into_owned())
    };
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let versions: &[&str] = match host {
        Host::VirtualMachine => {
            if !header("metadata").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
                return bad("Required metadata header not specified.");
            }
            &["2018-02-01", "2019-08-01", "2020-06-01", "2021-02-01"]
        }
        Host::AppService => {
            if header("x-identity-header") != Some(&tokens.identity_header()) {
                let text = "The X-IDENTITY-HEADER is not the value of IDENTITY_HEADER.";
                return refuse(StatusCode::UNAUTHORIZED, "unauthorized_client", text);
            }
            &["2019-08-01"]
        }
    };
    match asked("api-version") {
        Some(version) if versions.contains(&&*version) => {}
        Some(version) => {
            return bad(&format!(
                "api-version {version:?} is not served here; use one of {}.",
                versions.join(", ")
            ));
        }
        None => return bad(&format!("api-version is missing; use one of {}.", versions.join(", "))),
    }
    let Some(resource) = asked("resource") else { return bad("The parameter 'resource' is missing.") };
    let client = asked("client_id").unwrap_or_else(|| {
        let named = ["object_id", "principal_id", "msi_res_id", "mi_res_id"].into_iter().find_map(asked);
        named.map_or_else(|| SYSTEM_ASSIGNED.to_owned(), |name| guid_of(&name))
    });
    let issued = tokens.issue(now, &Grant { tenant: TENANT, client: &client, audience: &resource });
    let mut body = json!({
        "access_token": issued.token,
        "client_id": client,
        "expires_on": issued.expires_on.to_string(),
        "resource": resource,
        "token_type": "Bearer",
    });
    if host == Host::VirtualMachine {
        body["expires_in"] = Value::String(issued.expires_in.to_string());
        body["ext_expires_in"] = Value::String(issued.expires_in.to_string());
        body["not_before"] = Value::String(issued.not_before.to_string());
    }
    (json(StatusCode::OK, &body), Some(client))
}

/// `/metadata/instance`: a machine that runs nowhere in particular.
pub(crate) fn instance(query: &str, headers: &HeaderMap) -> Response<Bytes> {
    let is_asked =
        headers.get("metadata").is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
    if !is_asked {
        return arm_error(StatusCode::BAD_REQUEST, "BadRequest", "Required metadata header not specified.");
    }
    if !url::form_urlencoded::parse(query.as_bytes()).any(|(key, _)| key == "api-version") {
        return arm_error(StatusCode::BAD_REQUEST, "BadRequest", "api-version was not specified.");
    }
    let body = json!({
        "compute": {
            "azEnvironment": "AzurePublicCloud",
            "location": "eastus",
            "name": "emulated",
            "osType": "Linux",
            "provider": "Microsoft.Compute",
            "resourceGroupName": "emulated",
            "resourceId": format!(
                "/subscriptions/{TENANT}/resourceGroups/emulated/providers/Microsoft.Compute/virtualMachines/emulated"
            ),
            "subscriptionId": TENANT,
            "tags": "",
            "vmId": guid_of("emulated machine"),
            "vmScaleSetName": "",
            "zone": "",
        },
        "network": {"interface": []},
    });
    json(StatusCode::OK, &body)
}
