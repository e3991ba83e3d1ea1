//! `sluice bench budget`: what the shipped budget costs while Azure's limits are far away.
//!
//! Azure's operations take no time, so that every wait is one of ours. 50 Services with 100 pods each are created,
//! and then single pods are replaced in even intervals. The same happens to a second controller whose budget is
//! lifted, which is what the first one is compared with: times of one run on one machine.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::{Value, json};
use sluice_commands::output::Output;
use sluice_controller::{Azure, Config};
use sluice_model::call::{Answer, Body, Method, OperationState, Payload, Reply, Request};
use sluice_model::kube::ServiceObject;
use sluice_model::names::Scope;
use tokio::time::Instant;

use super::Common;
use super::figures::Limit;
use super::ledger::Entry;
use super::request_log::{Bookmark, RequestLog};
use super::rig::Rig;
use super::workload;
use super::world;

/// What is created.
const SERVICES: u32 = 50;
const PODS_EACH: u32 = 100;
/// Writes per Service: its resources, its share of the registrations, and an address update at most. A change is one more.
const WRITES_EACH_MAX: f64 = 3.75;
/// The time between two changes.
const INTERVAL: Duration = Duration::from_millis(600);
/// How long the first sync or the last change may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// What to measure.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Number of pods to replace, one every 0.6 s
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=300))]
    changes: u32,
    #[command(flatten)]
    common: Common,
}

const HELP: &str = "\
Examples:
  sluice bench budget
      Measure 50 Services with 100 pods each, and 100 changes (about 1 min).
  sluice bench budget --changes 20
      Run a short measurement.

Exit codes: 0 within all limits · 1 a limit is exceeded, or the measurement failed · 2 invalid arguments";

/// One controller.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// `shipped` or `lifted`.
    pub name: &'static str,
    /// From the first Service until every pod is in Azure.
    pub first_sync: Duration,
    /// From each change to its request on the wire, sorted.
    pub waits: Vec<Duration>,
    /// Calls of `updateAddressLocations` for the changes.
    pub location_calls: usize,
    /// All writes, those included.
    pub writes: usize,
}

impl Row {
    fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.waits.len() * percent).div_ceil(100).saturating_sub(1);
        self.waits.get(rank).copied().unwrap_or_default()
    }
}

/// Measures, prints, and fails when a limit is missed.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let rows = measure(&arguments).await?;
    let limits = limits(&rows, arguments.changes);
    let text = match arguments.common.output {
        Output::Text => text(&rows, &limits, arguments.changes),
        Output::Json => format!("{:#}\n", json(&rows, &limits, arguments.changes)),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let missed = limits.iter().filter(|it| it.holds() == Some(false)).count();
    ensure!(missed == 0, "limits missed: {missed}");
    Ok(())
}

async fn measure(arguments: &Arguments) -> anyhow::Result<[Row; 2]> {
    let program = arguments.common.program.as_ref();
    let mut shipped = Site::start("shipped", program, world::shipped).await?;
    shipped.create().await?;
    let mut lifted = Site::start("lifted", program, |scope| world::lifted(world::shipped(scope))).await?;
    lifted.create().await?;
    // At the same time, so that both meet the same machine, and not in the same moments.
    let start = Instant::now() + INTERVAL;
    let (one, other) = tokio::join!(
        shipped.change(start, arguments.changes),
        lifted.change(start + INTERVAL / 2, arguments.changes)
    );
    Ok([one?, other?])
}

/// A controller, its Azure, and what has been measured of them.
struct Site {
    name: &'static str,
    rig: Rig,
    sent: Sent,
    bookmark: Bookmark,
    first_sync: Duration,
    writes: usize,
}

impl Site {
    async fn start(
        name: &'static str,
        program: Option<&PathBuf>,
        config: impl FnOnce(Scope) -> Config,
    ) -> anyhow::Result<Site> {
        let sent = Sent::default();
        let notes = sent.clone();
        let at_once = |azure| AtOnce { azure, sent: notes };
        let rig = Rig::start(program, 1.0, &["--instant", "--no-throttling"], config, at_once).await?;
        let mut bookmark = Bookmark::default();
        RequestLog::read_on(&rig.process.client, &mut bookmark).await?;
        Ok(Site { name, rig, sent, bookmark, first_sync: Duration::ZERO, writes: 0 })
    }

    /// Creates all Services and waits until every pod is in Azure.
    async fn create(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        for service in 0..SERVICES {
            workload::create_with(&self.rig.world.cluster, service, pods(service, None));
        }
        self.settled().await?;
        self.first_sync = began.elapsed();
        let log = RequestLog::read_on(&self.rig.process.client, &mut self.bookmark).await?;
        self.writes = log.calls.iter().filter(|entry| entry.is_write()).count();
        Ok(())
    }

    /// Replaces so many pods, one after the other.
    async fn change(mut self, start: Instant, changes: u32) -> anyhow::Result<Row> {
        let mut changed = Vec::new();
        for number in 0..changes {
            tokio::time::sleep_until(start + INTERVAL * number).await;
            let (service, address) = (number % SERVICES, address(128, number));
            changed.push((address, Instant::now()));
            workload::set_pods(&self.rig.world.cluster, service, pods(service, Some(address)));
        }
        self.settled().await?;
        let log = RequestLog::read_on(&self.rig.process.client, &mut self.bookmark).await?;
        let is_location = |entry: &&Entry| entry.method == Method::UpdateLocations;
        let mut waits = Vec::new();
        for (address, at) in changed {
            let sent = self.sent.at(address).with_context(|| format!("{address} was never sent"))?;
            waits.push(sent.duration_since(at));
        }
        waits.sort_unstable();
        let writes = self.writes + log.calls.iter().filter(|entry| entry.is_write()).count();
        let ended = self.rig.world.stop().await?;
        ensure!(ended.tally.panics == 0, "{} calls panicked; see the log", ended.tally.panics);
        self.rig.process.program.kill().await?;
        Ok(Row {
            name: self.name,
            first_sync: self.first_sync,
            waits,
            location_calls: log.calls.iter().filter(is_location).count(),
            writes,
        })
    }

    async fn settled(&self) -> anyhow::Result<()> {
        let all = |they: &[ServiceObject]| {
            they.len() == SERVICES as usize && they.iter().all(|it| it.published.is_some())
        };
        let done = async {
            self.rig.world.cluster.wait_until(all).await;
            self.rig.world.settled().await
        };
        let in_time = tokio::time::timeout(PATIENCE, done).await;
        Ok(in_time.with_context(|| format!("not everything is in Azure after {PATIENCE:?}"))??)
    }
}

/// The pods of a Service, with another one in place of the first.
fn pods(service: u32, replaced: Option<IpAddr>) -> Vec<IpAddr> {
    let usual = (0..PODS_EACH).map(|pod| address(0, service * PODS_EACH + pod));
    let skipped = usize::from(replaced.is_some());
    replaced.into_iter().chain(usual.skip(skipped)).collect()
}

fn address(second: u8, number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(u32::from(Ipv4Addr::new(11, second, 0, 0)) + number))
}

/// When each address was first on the wire.
#[derive(Clone, Default, Debug)]
struct Sent(Arc<Mutex<HashMap<IpAddr, Instant>>>);

impl Sent {
    fn note(&self, body: &Body) {
        let Body::Locations(updates) = body else { return };
        let now = Instant::now();
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for update in updates.iter().flat_map(|it| &it.addresses) {
            sent.entry(update.address).or_insert(now);
        }
    }

    fn at(&self, address: IpAddr) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&address).copied()
    }
}

/// An Azure that answers a write when it is done, with the result: no operation is left to poll.
///
/// The emulator answers with an operation that is over at once; this asks about it in the controller's place.
struct AtOnce<A> {
    azure: A,
    sent: Sent,
}

impl<A: Azure> Azure for AtOnce<A> {
    async fn send(&self, request: Request, may_begin: impl FnOnce() -> bool + Send) -> Reply {
        let (method, target) = (request.method, request.target.clone());
        let body = request.body.clone();
        let begins = || {
            let may = may_begin();
            if may {
                self.sent.note(&body);
            }
            may
        };
        let reply = self.azure.send(request, begins).await;
        let is_write = !matches!(method, Method::Get | Method::List | Method::Poll);
        let Reply::Answered(answer) = reply else { return reply };
        let Some(operation) = answer.operation.clone().filter(|_| is_write && answer.status < 300) else {
            return Reply::Answered(answer);
        };
        loop {
            let poll = self.azure.send(Request::bare(Method::Poll, operation.clone()), || true).await;
            match poll {
                Reply::Answered(Answer { payload: Payload::Operation(OperationState::Running), .. }) => {}
                Reply::Answered(Answer {
                    payload: Payload::Operation(OperationState::Succeeded), ..
                }) => break,
                // The controller finds out by itself what is the matter.
                _ => return Reply::Answered(answer),
            }
        }
        let payload = match method {
            Method::Put | Method::PatchTags => {
                match self.azure.send(Request::bare(Method::Get, target), || true).await {
                    Reply::Answered(Answer { status: 200, payload, .. }) => payload,
                    _ => return Reply::Answered(answer),
                }
            }
            _ => Payload::None,
        };
        Reply::Answered(Answer { status: 200, payload, operation: None, retry_after: None, ..answer })
    }
}

/// What is held against a limit: ratios of the two rows, and counts.
fn limits([shipped, lifted]: &[Row; 2], changes: u32) -> Vec<Limit> {
    let ratio = |of: fn(&Row) -> Duration| of(shipped).as_secs_f64() / of(lifted).as_secs_f64();
    let limit = |what, found, max| Limit { what, found, max, is_judged: true };
    let alone = shipped.location_calls.min(changes as usize);
    vec![
        limit("first sync, shipped over lifted", ratio(|row| row.first_sync), 2.0),
        limit("median wait, shipped over lifted", ratio(|row| row.percentile(50)), 3.0),
        limit("changes that waited for the next one", f64::from(changes) - alone as f64, 0.0),
        limit("writes", shipped.writes as f64, WRITES_EACH_MAX * f64::from(SERVICES) + f64::from(changes)),
    ]
}

fn text(rows: &[Row; 2], limits: &[Limit], changes: u32) -> String {
    let mut text = format!(
        "{SERVICES} Services with {PODS_EACH} pods each, created on an emulated Azure whose operations take no time,\n\
         and {changes} pods replaced then, one per 0.6 s. Through HTTPS, with the shipped budget, and with a lifted\n\
         one beside it to compare with.\n\n{:<10}{:>14}{:>12}{:>12}{:>16}{:>10}\n",
        "budget", "first sync", "wait p50", "p99", "location calls", "writes"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:<10}{:>12.2} s{:>9.2} ms{:>9.2} ms{:>16}{:>10}",
            row.name,
            row.first_sync.as_secs_f64(),
            row.percentile(50).as_secs_f64() * 1_000.0,
            row.percentile(99).as_secs_f64() * 1_000.0,
            row.location_calls,
            row.writes,
        );
    }
    text.push_str("goal          ≤ 0.60 s   ≤ 2.00 ms   ≤ 5.00 ms    (times are not judged)\n\n");
    for limit in limits {
        let verdict = if limit.holds() == Some(true) { "✓" } else { "✗" };
        let _ = writeln!(text, "{:<38}{:>8.2} ≤ {} {verdict}", limit.what, limit.found, limit.max);
    }
    text.push_str("\nwait: from a pod's change to its request on the wire.\n");
    text
}

fn json(rows: &[Row; 2], limits: &[Limit], changes: u32) -> Value {
    let row = |row: &Row| {
        json!({
            "budget": row.name,
            "firstSyncSeconds": row.first_sync.as_secs_f64(),
            "waitP50Seconds": row.percentile(50).as_secs_f64(),
            "waitP99Seconds": row.percentile(99).as_secs_f64(),
            "locationCalls": row.location_calls,
            "writes": row.writes,
        })
    };
    json!({
        "services": SERVICES,
        "podsEach": PODS_EACH,
        "changes": changes,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "limits": limits.iter().map(Limit::json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, first_sync_ms: u64, wait_ms: u64, location_calls: usize) -> Row {
        let waits = vec![Duration::from_millis(wait_ms); 100];
        Row { name, first_sync: Duration::from_millis(first_sync_ms), waits, location_calls, writes: 250 }
    }

    #[test]
    fn a_budget_that_delays_changes_misses_its_limits() {
        let lifted = row("lifted", 300, 1, 100);
        let missed = |shipped: Row| {
            let limits = limits(&[shipped, lifted.clone()], 100);
            limits.iter().filter(|it| it.holds() == Some(false)).map(|it| it.what).collect::<Vec<_>>()
        };
        assert_eq!(missed(row("shipped", 320, 1, 100)), Vec::<&str>::new());
        assert_eq!(missed(row("shipped", 1_150, 1, 100)), ["first sync, shipped over lifted"]);
        assert_eq!(missed(Row { writes: 300, ..row("shipped", 320, 1, 100) }), ["writes"]);
        assert_eq!(
            missed(row("shipped", 320, 900, 60)),
            ["median wait, shipped over lifted", "changes that waited for the next one"]
        );
    }
}
