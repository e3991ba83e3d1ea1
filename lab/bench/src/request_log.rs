//! What an emulator process wrote down of every call, read through its control API.

use anyhow::Context as _;
use serde_json::Value;
use sluice_emulator_client::{Client, Request};
use sluice_model::Time;
use sluice_model::call::Method;

use super::ledger::{Entry, Errand};

/// A call that arrives so many real milliseconds after an answer may have been on its way when that
/// left, even on a busy machine. `Retry-After` is a second at least.
const GRACE_MS: u64 = 200;

/// What was written down since one last looked.
#[derive(Clone, PartialEq, Debug)]
pub struct RequestLog {
    /// The calls to the resource manager by one client, in the order in which they arrived.
    pub calls: Vec<Entry>,
    /// How many calls came before a `Retry-After` was over.
    pub early: u64,
    /// What the emulator says of each of them.
    pub early_calls: Vec<Value>,
    /// How many answers asked for a wait; without any, nobody can come too early.
    pub waits: u64,
    /// How many calls came so soon after such an answer that they may have been on their way.
    pub excused: u64,
}

/// How far the log has been read. Nothing is forgotten: what comes between two looks belongs to the
/// second, and a wait that was asked for before a look holds after it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Bookmark {
    number: u64,
    early: u64,
    excused: u64,
}

impl RequestLog {
    /// Reads everything that one client has asked.
    pub async fn read(emulator: &Client) -> anyhow::Result<RequestLog> {
        RequestLog::read_on(emulator, &mut Bookmark::default()).await
    }

    /// Reads what one client has asked since the bookmark, and puts that behind it.
    pub async fn read_on(emulator: &Client, bookmark: &mut Bookmark) -> anyhow::Result<RequestLog> {
        let after = bookmark.number;
        let requests = emulator.control.requests(after, true).await?;
        let summary = emulator.control.ask(&format!("requests/summary?graceMs={GRACE_MS}")).await?;
        let count = |pointer: &str| {
            let count = summary.pointer(pointer).and_then(Value::as_u64);
            count.with_context(|| format!("the summary has no {pointer}"))
        };
        let early_calls = summary.pointer("/early/calls").and_then(Value::as_array).cloned();
        let now = Bookmark {
            number: requests.last().map_or(after, |entry| entry.number),
            early: count("/early/count")?,
            excused: count("/early/onTheirWay")?,
        };
        let before = std::mem::replace(bookmark, now);
        let ours: Vec<Request> = requests
            .into_iter()
            .filter(|entry| {
                entry.area == "arm" && entry.principal.as_deref() == Some(&emulator.greeting.client_id)
            })
            .collect();
        Ok(RequestLog {
            early: now.early - before.early,
            early_calls: early_calls.context("the summary does not say who came too early")?,
            waits: ours.iter().filter(|entry| entry.retry_after.is_some()).count() as u64,
            excused: now.excused - before.excused,
            calls: ours.into_iter().map(entry).collect::<anyhow::Result<Vec<Entry>>>()?,
        })
    }
}

fn entry(request: Request) -> anyhow::Result<Entry> {
    let method = match request.call.as_deref() {
        Some("Get") => Method::Get,
        Some("List") => Method::List,
        Some("Put") => Method::Put,
        Some("PatchTags") => Method::PatchTags,
        Some("Delete") => Method::Delete,
        Some("UpdateServices") => Method::UpdateServices,
        Some("UpdateLocations") => Method::UpdateLocations,
        Some("Poll") => Method::Poll,
        other => anyhow::bail!("request {} is {other:?}, an unexpected call", request.number),
    };
    let at = Time::from_millis(request.arrived_emulated_ms);
    Ok(Entry {
        at,
        answered: request.answered_emulated_ms.map_or(at, Time::from_millis),
        method,
        kind: request.kind.unwrap_or_default(),
        target: request.path,
        status: request.status.unwrap_or(0),
        code: request.code,
        operation: request
            .operation
            .zip(request.operation_ends_emulated_ms)
            .map(|(operation, ends)| (operation, Time::from_millis(ends))),
        services: services(&request.body),
        fault: request.fault,
        body: request.body,
    })
}

/// The services in the body of an `updateServices` call.
fn services(body: &Value) -> Vec<(String, Errand)> {
    let requests = body.get("serviceRequests").and_then(Value::as_array).into_iter().flatten();
    let service = |request: &Value| {
        let name = request.pointer("/service/name").and_then(Value::as_str)?.to_ascii_lowercase();
        let is_delete = request.get("isDelete").and_then(Value::as_bool).unwrap_or(false);
        let properties = request.pointer("/service/properties");
        let pools = properties.and_then(|it| it.get("loadBalancerBackendPools")).and_then(Value::as_array);
        let nat = properties.and_then(|it| it.get("publicNatGatewayId")).and_then(Value::as_str);
        let is_bound = pools.is_some_and(|pools| !pools.is_empty()) || nat.is_some();
        Some((name, Errand::of(is_delete, is_bound)))
    };
    requests.filter_map(service).collect()
}
