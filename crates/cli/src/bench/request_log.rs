//! What an emulator process wrote down of every call, read through its control API.

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::Value;
use sluice_model::Time;
use sluice_model::call::Method;

use super::ledger::Entry;
use super::process::Emulator;

/// More calls than any measurement makes; that many are read at once.
const READ_MAX: usize = 100_000;

/// A call that arrives so many real milliseconds after an answer may have been on its way when that
/// left, even on a busy machine. `Retry-After` is a second at least.
const GRACE_MS: u64 = 200;

/// What was written down since the log was last forgotten.
#[derive(Clone, PartialEq, Debug)]
pub struct RequestLog {
    /// The calls to the resource manager by one client, in the order in which they arrived.
    pub calls: Vec<Entry>,
    /// How many calls came before a `Retry-After` was over.
    pub early: u64,
    /// What the emulator says of each of them.
    pub early_calls: Vec<Value>,
}

/// One entry, as the control API shows it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    number: u64,
    area: String,
    arrived_emulated_ms: u64,
    answered_emulated_ms: Option<u64>,
    path: String,
    status: Option<u16>,
    code: Option<String>,
    call: Option<String>,
    kind: Option<String>,
    principal: Option<String>,
    operation: Option<String>,
    operation_ends_emulated_ms: Option<u64>,
    fault: Option<String>,
    #[serde(default)]
    body: Value,
}

impl RequestLog {
    /// Reads what one client has asked, and has the emulator forget it.
    pub async fn take(emulator: &Emulator) -> anyhow::Result<RequestLog> {
        let log = RequestLog::read(emulator).await?;
        emulator.withdraw("requests").await?;
        Ok(log)
    }

    /// Reads what one client has asked.
    pub async fn read(emulator: &Emulator) -> anyhow::Result<RequestLog> {
        let answer = emulator.ask(&format!("requests?limit={READ_MAX}&bodies=true")).await?;
        let number = |field: &str| answer.get(field).and_then(Value::as_u64);
        ensure!(number("dropped") == Some(0), "the emulator has forgotten some of the log");
        let shown = answer.get("requests").cloned().context("the request log has no requests")?;
        let shown: Vec<Shown> =
            serde_json::from_value(shown).context("the request log is of another form")?;
        ensure!(shown.len() < READ_MAX, "the request log is longer than can be read");
        let summary = emulator.ask(&format!("requests/summary?graceMs={GRACE_MS}")).await?;
        let early = summary.pointer("/early/count").and_then(Value::as_u64);
        let early_calls = summary.pointer("/early/calls").and_then(Value::as_array).cloned();
        let ours = shown.into_iter().filter(|entry| {
            entry.area == "arm" && entry.principal.as_deref() == Some(&emulator.greeting.client_id)
        });
        let calls = ours.map(Shown::into_entry).collect::<anyhow::Result<Vec<Entry>>>()?;
        Ok(RequestLog {
            calls,
            early: early.context("the summary does not say how many came too early")?,
            early_calls: early_calls.context("the summary does not say who came too early")?,
        })
    }
}

impl Shown {
    fn into_entry(self) -> anyhow::Result<Entry> {
        let method = match self.call.as_deref() {
            Some("Get") => Method::Get,
            Some("List") => Method::List,
            Some("Put") => Method::Put,
            Some("PatchTags") => Method::PatchTags,
            Some("Delete") => Method::Delete,
            Some("UpdateServices") => Method::UpdateServices,
            Some("UpdateLocations") => Method::UpdateLocations,
            Some("Poll") => Method::Poll,
            other => anyhow::bail!("request {} is {other:?}, which is no call of ours", self.number),
        };
        let at = Time::from_millis(self.arrived_emulated_ms);
        Ok(Entry {
            at,
            answered: self.answered_emulated_ms.map_or(at, Time::from_millis),
            method,
            kind: self.kind.unwrap_or_default(),
            target: self.path,
            status: self.status.unwrap_or(0),
            code: self.code,
            operation: self
                .operation
                .zip(self.operation_ends_emulated_ms)
                .map(|(operation, ends)| (operation, Time::from_millis(ends))),
            services: services(&self.body),
            fault: self.fault,
            body: self.body,
        })
    }
}

/// The names of the services in the body of an `updateServices` call.
fn services(body: &Value) -> Vec<String> {
    let requests = body.get("serviceRequests").and_then(Value::as_array);
    let names = requests.into_iter().flatten().filter_map(|request| request.pointer("/service/name"));
    names.filter_map(Value::as_str).map(str::to_ascii_lowercase).collect()
}
