//! The emulator against recorded traffic of Azure.
//!
//! Every recorded request is sent to a fresh surface, in order, and every answer is compared with the one
//! that Azure gave: status, names of headers and values of those that do not change, and the whole body.
//! What the recordings mask (GUIDs), what is drawn anew (addresses) and where we differ on purpose is
//! listed here by name, with the reason; an exception that nothing needs any more fails the test.
//!
//! The recordings are not part of the project; they lie beside its root, in `../shared`.
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail as loudly as the test")]
#![allow(clippy::print_stderr, reason = "who runs it must see that it tested nothing")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use sluice_cloud::Config;
use sluice_emulator::surface::Surface;
use sluice_model::Time;

const ORIGIN: &str = "https://management.azure.com";
const MASK: &str = "00000000-0000-0000-0000-000000000000";

/// Headers that we send and the recordings have not: whoever recorded took them out, because they differ
/// from run to run.
const OURS: [&str; 6] = [
    "x-ms-request-id",
    "x-ms-correlation-request-id",
    "x-ms-routing-request-id",
    "x-ms-ratelimit-remaining-subscription-reads",
    "x-ms-ratelimit-remaining-subscription-writes",
    "x-ms-ratelimit-remaining-subscription-deletes",
];

/// Fields whose values are masked in the recordings or drawn anew; they must be there and have the type.
const DRAWN: [&str; 3] = ["etag", "resourceGuid", "ipAddress"];

/// Where we differ from a recording: file, which of its interactions (all if none is named), what, and why.
struct Exception {
    file: &'static str,
    at: Option<usize>,
    what: &'static str,
    why: &'static str,
}

const fn exception(
    file: &'static str,
    at: Option<usize>,
    what: &'static str,
    why: &'static str,
) -> Exception {
    Exception { file, at, what, why }
}

const LENGTH: &str = "the HTTP server writes it, not the surface";
const ONLY_EASTUS2: &str = "Azure sends it in some regions and not in others; nobody reads it";
const POLICY: &str = "a policy of that subscription tags new groups; the emulator has no such policy";
const AT_ONCE: &str = "Azure was done when it answered; our first answer to a real change must not say so, or nobody would poll";

const EXCEPTIONS: &[Exception] = &[
    exception("*", None, "header content-length missing", LENGTH),
    exception("natgateway", None, "header x-ms-operation-identifier missing", ONLY_EASTUS2),
    exception("servicegateway", None, "header x-ms-operation-identifier missing", ONLY_EASTUS2),
    exception("natgateway", Some(11), "header x-ms-original-request-ids missing", ONLY_EASTUS2),
    exception("servicegateway", Some(16), "header x-ms-original-request-ids missing", ONLY_EASTUS2),
    exception(
        "servicegateway",
        Some(3),
        "header etag added",
        "every other recorded read of a network has the header",
    ),
    exception("servicegateway", Some(0), "body tags missing", POLICY),
    exception("loadbalancer", Some(4), "body properties.provisioningState differs", AT_ONCE),
    exception(
        "loadbalancer",
        Some(4),
        "body properties.frontendIPConfigurations[0].properties.provisioningState differs",
        AT_ONCE,
    ),
    exception(
        "natgateway",
        Some(1),
        "body properties.provisioningState differs",
        "the address was changed by that PUT; nobody knows what it was before",
    ),
];

#[derive(Deserialize)]
struct Recording {
    interactions: Vec<Interaction>,
}

#[derive(Deserialize)]
struct Interaction {
    id: usize,
    request: Asked,
    response: Answered,
}

#[derive(Deserialize)]
struct Asked {
    method: String,
    url: String,
    body: String,
    headers: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Answered {
    code: u16,
    body: String,
    headers: BTreeMap<String, Vec<String>>,
}

/// A surface with the clock, and the operations that it has named.
struct Stage {
    surface: Surface,
    now: Time,
    /// The newest `Azure-AsyncOperation` and `Location`.
    status_url: String,
    location: String,
}

impl Stage {
    fn new() -> Stage {
        let surface = Surface::new(Config::default());
        Stage { surface, now: Time::ZERO, status_url: String::new(), location: String::new() }
    }

    /// Sends one request a minute after the one before, so that whatever was begun is done.
    fn send(&mut self, method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Response<Bytes> {
        self.now = self.now + Duration::from_secs(60);
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::from(body.to_owned())).unwrap();
        let handled = self.surface.handle(self.now, &request, ORIGIN, 1.0, None);
        let answer = handled.answer.expect("without a fault there is an answer");
        let header = |name: &str| answer.headers().get(name).map(|it| it.to_str().unwrap().to_owned());
        if let Some(url) = header("azure-asyncoperation") {
            self.status_url = url;
        }
        if let Some(url) = header("location") {
            self.location = url;
        }
        answer
    }

    /// The URL of the recording, with our operation in the place of the masked one.
    fn url(&self, recorded: &str) -> String {
        let ours = if recorded.contains("/operations/") {
            &self.status_url
        } else if recorded.contains("/operationResults/") || recorded.contains("/operationresults/") {
            &self.location
        } else {
            recorded
        };
        if ours.is_empty() { recorded.to_owned() } else { ours.to_owned() }
    }

    /// What was there before the first recorded request.
    fn prepare(&mut self, file: &str) {
        if file != "natgateway" {
            return;
        }
        let group = format!("{ORIGIN}/subscriptions/{MASK}/resourceGroups/aks-cit-NatGateway");
        let json = [("content-type", "application/json")];
        let body = json!({ "location": "eastus2", "tags": { "Created": "2001-02-03T04:05:06Z" } });
        self.send("PUT", &format!("{group}?api-version=2021-04-01"), &json, &body.to_string());
        let ip = format!("{group}/providers/Microsoft.Network/publicIPAddresses/pip1?api-version=2025-05-01");
        let body = json!({
            "location": "eastus2",
            "sku": { "name": "Standard" },
            "properties": { "publicIPAllocationMethod": "Static" },
        });
        self.send("PUT", &ip, &json, &body.to_string());
    }
}

/// Every difference between two answers, in words.
fn differences(recorded: &Answered, ours: &Response<Bytes>) -> Vec<String> {
    let mut found = Vec::new();
    if recorded.code != ours.status().as_u16() {
        found.push(format!("status {} instead of {}", ours.status().as_u16(), recorded.code));
    }
    let theirs: BTreeMap<String, &str> = (recorded.headers.iter())
        .map(|(name, values)| (name.to_ascii_lowercase(), values[0].as_str()))
        .collect();
    let own: BTreeMap<&str, &str> =
        ours.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    for (name, value) in &theirs {
        match own.get(name.as_str()) {
            None => found.push(format!("header {name} missing")),
            Some(ours) if !same_header(name, value, ours) => {
                found.push(format!("header {name} is {ours} instead of {value}"));
            }
            Some(_) => {}
        }
    }
    for name in own.keys().filter(|name| !theirs.contains_key(**name) && !OURS.contains(name)) {
        found.push(format!("header {name} added"));
    }
    match (recorded.body.is_empty(), ours.body().is_empty()) {
        (true, true) => {}
        (true, false) => found.push("body added".into()),
        (false, true) => found.push("body missing".into()),
        (false, false) => {
            let theirs: Value = serde_json::from_str(&recorded.body).unwrap();
            let own: Value = serde_json::from_slice(ours.body()).unwrap();
            compare("", &theirs, &own, &mut found);
        }
    }
    found
}

/// Whether a header has the value it should have, as far as that can be known.
fn same_header(name: &str, theirs: &str, ours: &str) -> bool {
    if name.starts_with("x-ms-ratelimit") {
        return ours.parse::<u32>().is_ok();
    }
    match name {
        "content-length" => true,
        "etag" => is_etag(ours),
        "azure-asyncoperation" | "location" => url_shape(theirs) == url_shape(ours),
        _ => theirs == ours,
    }
}

fn is_etag(text: &str) -> bool {
    text.starts_with("W/\"") && text.ends_with('"') && text.len() == MASK.len() + 4
}

/// A URL without what is different in every run: the operation, and the values of its tokens.
fn url_shape(url: &str) -> (Vec<String>, BTreeSet<String>) {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    *parts.last_mut().unwrap() = "…".into();
    let names = query.split('&').map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name == "api-version" { format!("{name}={value}") } else { name.to_owned() }
    });
    (parts, names.collect())
}

fn compare(path: &str, theirs: &Value, ours: &Value, found: &mut Vec<String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (name, value) in theirs {
                match ours.get(name) {
                    Some(own) => compare(&below(name), value, own, found),
                    None => found.push(format!("body {} missing", below(name))),
                }
            }
            for name in ours.keys().filter(|name| !theirs.contains_key(*name)) {
                found.push(format!("body {} added", below(name)));
            }
            if theirs.keys().ne(ours.keys()) && theirs.len() == ours.len() {
                found.push(format!("body {path} has its fields in another order"));
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            if theirs.len() != ours.len() {
                found.push(format!("body {path} has {} items instead of {}", ours.len(), theirs.len()));
            }
            for (at, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                compare(&format!("{path}[{at}]"), theirs, ours, found);
            }
        }
        (Value::String(theirs), Value::String(ours)) => {
            let name = path.rsplit('.').next().unwrap_or("");
            // A text that quotes an ETag is the same up to that ETag.
            let masked = ours.split("etag W/\"").map(|part| part.split_once('"').map_or(part, |it| it.1));
            let theirs_masked =
                theirs.split("etag W/\"").map(|part| part.split_once('"').map_or(part, |it| it.1));
            if !DRAWN.contains(&name) && theirs != ours && masked.ne(theirs_masked) {
                found.push(format!("body {path} differs"));
            }
        }
        _ if std::mem::discriminant(theirs) != std::mem::discriminant(ours) => {
            found.push(format!("body {path} has another type"));
        }
        _ if theirs != ours => found.push(format!("body {path} differs")),
        _ => {}
    }
}

#[test]
#[ignore = "needs the recordings in ../shared/azure-recordings, beside the repository"]
fn every_recorded_request_is_answered_as_azure_answered_it() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/azure-recordings");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "yaml"));
    files.sort();
    assert!(files.len() >= 6, "there are six recordings, here are {}", files.len());

    let mut used = vec![0usize; EXCEPTIONS.len()];
    let (mut requests, mut problems) = (0, Vec::new());
    for path in files {
        let file = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let recording: Recording = serde_yaml_ng::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut stage = Stage::new();
        stage.prepare(&file);
        let (count, before) = (recording.interactions.len(), problems.len());
        for Interaction { id, request, response } in recording.interactions {
            let url = stage.url(&request.url);
            let headers: Vec<(&str, &str)> =
                request.headers.iter().map(|(name, values)| (name.as_str(), values[0].as_str())).collect();
            let ours = stage.send(&request.method, &url, &headers, &request.body);
            requests += 1;
            for difference in differences(&response, &ours) {
                let fits = |it: &Exception| {
                    (it.file == "*" || it.file == file)
                        && it.at.is_none_or(|at| at == id)
                        && it.what == difference
                };
                match EXCEPTIONS.iter().position(fits) {
                    Some(at) => used[at] += 1,
                    None => problems.push(format!("{file} {id} ({} {}): {difference}", request.method, url)),
                }
            }
        }
        println!("{file}: {count} requests, {} unexpected differences", problems.len() - before);
    }
    println!("{requests} requests; differences that are meant:");
    for (exception, used) in EXCEPTIONS.iter().zip(&used) {
        println!("  {used:>3} × {}: {}: {}", exception.file, exception.what, exception.why);
    }
    assert!(problems.is_empty(), "{} differences:\n{}", problems.len(), problems.join("\n"));
    for (exception, used) in EXCEPTIONS.iter().zip(used) {
        assert!(used > 0, "nothing needs the exception of {} for '{}'", exception.file, exception.what);
    }
}

#[test]
fn a_comparison_finds_what_differs() {
    let mut found = Vec::new();
    let theirs = json!({ "name": "a", "list": [{ "id": "x" }], "port": 4, "flag": true });
    let ours = json!({ "name": "b", "list": [{ "ID": "x" }, {}], "port": "4" });
    compare("", &theirs, &ours, &mut found);
    found.sort();
    let expected = [
        "body flag missing",
        "body list has 2 items instead of 1",
        "body list[0].ID added",
        "body list[0].id missing",
        "body list[0] has its fields in another order",
        "body name differs",
        "body port has another type",
    ];
    let mut expected: Vec<_> = expected.map(str::to_owned).into();
    expected.sort();
    assert_eq!(found, expected);
}
