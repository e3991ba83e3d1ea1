//! `sluice bench one-service`: how soon the ends of Azure's operations are noticed.
//!
//! One Service with one pod, on an Azure whose operations all take 0.8 s, with the shipped configuration: once by a
//! controller that has seen no operation of these kinds yet (cold), and once after ten of each (warm). What is
//! judged is the time from each write to the poll that found its operation finished, against the time that the
//! operations took; both are the emulator's, of the same run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::{Value, json};
use sluice_commands::output::Output;
use sluice_commands::pace::{Paced, Waited};
use sluice_controller::Clock as _;
use sluice_model::Time;
use sluice_model::call::Method;
use sluice_model::kube::ServiceObject;

use super::Common;
use super::figures::Limit;
use super::ledger::Entry;
use super::request_log::{Bookmark, RequestLog};
use super::rig::Rig;
use super::workload;
use super::world::{self, World};

/// How often the Service is created and deleted before the warm row.
const WARM_UP: usize = 10;
/// How long one creation or deletion may take before it counts as stuck, in emulated time.
const PATIENCE: Duration = Duration::from_secs(300);
/// A way to Azure and back that is longer than this, in emulated time, shows in the figures.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(60);

/// What to measure.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Duration of each Azure operation, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 800, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    operation_ms: u64,
    /// Run emulated time FACTOR times as fast, from 1 to 200
    #[arg(long, value_name = "FACTOR", default_value_t = 5.0, value_parser = super::calls::factor)]
    time_factor: f64,
    #[command(flatten)]
    common: Common,
}

const HELP: &str = "\
Examples:
  sluice bench one-service
      Measure operations of 0.8 s, at the first operation (cold) and after ten (warm). Takes 30 s.
  sluice bench one-service --operation-ms 5000 --time-factor 20
      Measure operations of 5 s.

Exit codes: 0 within all limits · 1 a limit is exceeded, or the measurement failed · 2 invalid arguments";

/// One creation, as the emulator saw it.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Cold or warm.
    pub name: &'static str,
    /// From the Service to its addresses being in Azure and its IP in its status, by the controller's clock.
    pub total: Duration,
    /// How many operations Azure carried out.
    pub operations: u32,
    /// How long they took.
    pub best: Duration,
    /// How long it was from each write to the poll that found its operation finished.
    pub noticed: Duration,
    /// Reads, polls included.
    pub reads: usize,
    /// What is held against a limit.
    pub limits: Vec<Limit>,
}

/// Measures, prints, and fails when a limit is missed.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let rows = measure(&arguments).await?;
    let text = match arguments.common.output {
        Output::Text => text(&rows, arguments.operation_ms),
        Output::Json => format!("{:#}\n", json(&rows, arguments.operation_ms)),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let missed = rows.iter().flat_map(|row| &row.limits).filter(|it| it.holds() == Some(false)).count();
    ensure!(missed == 0, "limits missed: {missed}");
    Ok(())
}

async fn measure(arguments: &Arguments) -> anyhow::Result<Vec<Row>> {
    let span = format!("{0}ms-{0}ms", arguments.operation_ms);
    let latencies: Vec<String> =
        ["public-ip", "load-balancer", "nat-gateway", "gateway", "network", "delete"]
            .iter()
            .map(|kind| format!("--latency-{kind}={span}"))
            .collect();
    let options: Vec<&str> = latencies.iter().map(String::as_str).collect();
    let factor = arguments.time_factor;
    let mut waited = Waited::default();
    let rig = Rig::start(arguments.common.program.as_ref(), factor, &options, world::shipped, |client| {
        let paced = Paced::new(client, factor);
        waited = paced.waited();
        paced
    })
    .await?;
    let mut bookmark = Bookmark::default();
    let mut rows = Vec::new();
    for round in 0..=WARM_UP {
        // The making of the gateway is not a part of the cold row, and a deletion of no row.
        RequestLog::read_on(&rig.process.client, &mut bookmark).await?;
        let waited_before = waited.so_far();
        let began = rig.clock.now();
        workload::create(&rig.world.cluster, 1);
        patiently(factor, "created", async {
            let is_published = |all: &[ServiceObject]| all.iter().any(|it| it.published.is_some());
            rig.world.cluster.wait_until(is_published).await;
            rig.world.settled().await
        })
        .await??;
        let total = rig.clock.now().since(began);
        let log = RequestLog::read_on(&rig.process.client, &mut bookmark).await?;
        let calls = u32::try_from(log.calls.len()).unwrap_or(u32::MAX).max(1);
        let round_trip = (waited.so_far() - waited_before).mul_f64(factor) / calls;
        let name = match round {
            0 => Some("cold"),
            WARM_UP => Some("warm"),
            _ => None,
        };
        if let Some(name) = name {
            rows.push(row(name, total, &log.calls, round_trip)?);
        }
        if round < WARM_UP {
            gone(&rig.world, factor).await?;
        }
    }
    rig.world.stop().await?;
    rig.process.program.kill().await?;
    Ok(rows)
}

async fn gone(world: &World, factor: f64) -> anyhow::Result<()> {
    workload::delete(&world.cluster, 1);
    patiently(factor, "deleted", world.cluster.wait_until(<[_]>::is_empty)).await
}

async fn patiently<T>(factor: f64, what: &str, done: impl Future<Output = T>) -> anyhow::Result<T> {
    let in_time = tokio::time::timeout(PATIENCE.div_f64(factor), done).await;
    in_time.with_context(|| format!("the Service is not {what} after {PATIENCE:?} of emulated time"))
}

/// Counts one creation.
fn row(name: &'static str, total: Duration, calls: &[Entry], round_trip: Duration) -> anyhow::Result<Row> {
    // The last poll of each operation is the one that found it finished.
    let polls = calls.iter().filter(|entry| entry.method == Method::Poll);
    let found: BTreeMap<&str, Time> = polls.map(|poll| (poll.name(), poll.answered)).collect();
    let (mut operations, mut best, mut noticed) = (0, Duration::ZERO, Duration::ZERO);
    for entry in calls.iter().filter(|entry| entry.is_write()) {
        let Some((operation, ends)) = &entry.operation else { continue };
        let seen = found.get(operation.as_str()).filter(|at| *at >= ends);
        let seen = seen.with_context(|| format!("{} was never found finished", entry.word()))?;
        operations += 1;
        best += ends.since(entry.at);
        noticed += seen.since(entry.at);
    }
    let reads = calls.iter().filter(|entry| !entry.is_write()).count();
    let each = |ms: u64| Duration::from_millis(ms) * operations;
    let is_judged = round_trip <= ROUND_TRIP_MAX;
    let time = |max: Duration| Limit {
        what: "until the ends are noticed",
        found: noticed.as_secs_f64(),
        max: max.as_secs_f64(),
        is_judged,
    };
    let limits = match name {
        "cold" => vec![time(best.mul_f64(1.5) + each(500))],
        _ => vec![
            time(best.mul_f64(1.15) + each(100)),
            Limit { what: "reads", found: reads as f64, max: 10.0, is_judged: true },
        ],
    };
    Ok(Row { name, total, operations, best, noticed, reads, limits })
}

fn text(rows: &[Row], operation_ms: u64) -> String {
    let mut text = format!(
        "One Service with one pod, created with the shipped configuration on an emulated Azure whose operations\n\
         take {operation_ms} ms: cold, and warm after {WARM_UP} operations of each kind. Emulated time.\n\n\
         {:<6}{:>12}{:>10}{:>10}{:>8}{:>8}{:>10}  limits\n",
        "", "operations", "best", "noticed", "ratio", "reads", "total"
    );
    for row in rows {
        let limits = row.limits.iter().map(|limit| {
            let verdict = match limit.holds() {
                Some(true) => "✓",
                Some(false) => "✗",
                None => "not judged: the machine is too slow or too busy for this factor",
            };
            format!("{} ≤ {:.2} {verdict}", limit.what, limit.max)
        });
        let _ = writeln!(
            text,
            "{:<6}{:>12}{:>8.2} s{:>8.2} s{:>8.2}{:>8}{:>8.2} s  {}",
            row.name,
            row.operations,
            row.best.as_secs_f64(),
            row.noticed.as_secs_f64(),
            row.noticed.as_secs_f64() / row.best.as_secs_f64(),
            row.reads,
            row.total.as_secs_f64(),
            limits.collect::<Vec<_>>().join(", "),
        );
    }
    text.push_str(
        "\nbest: how long the operations took. noticed: from each write to the poll that found it finished.\n\
         total: from the Service to its pod in Azure and the IP in its status.\n",
    );
    text
}

fn json(rows: &[Row], operation_ms: u64) -> Value {
    let row = |row: &Row| {
        json!({
            "name": row.name,
            "operations": row.operations,
            "bestSeconds": row.best.as_secs_f64(),
            "noticedSeconds": row.noticed.as_secs_f64(),
            "reads": row.reads,
            "totalSeconds": row.total.as_secs_f64(),
            "limits": row.limits.iter().map(Limit::json).collect::<Vec<_>>(),
        })
    };
    json!({"operationMs": operation_ms, "rows": rows.iter().map(row).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(ms: u64, method: Method, target: &str, operation: Option<(&str, u64)>) -> Entry {
        let at = Time::from_millis(ms);
        Entry {
            at,
            answered: at,
            method,
            kind: "loadBalancers".into(),
            target: target.into(),
            status: 200,
            code: None,
            operation: operation.map(|(name, ends)| (name.into(), Time::from_millis(ends))),
            services: Vec::new(),
            fault: None,
            body: Value::Null,
        }
    }

    #[test]
    fn an_operation_is_noticed_by_the_last_poll_of_it() {
        let calls = [
            entry(0, Method::Put, "/loadBalancers/a", Some(("op-1", 800))),
            entry(500, Method::Poll, "/operations/op-1", Some(("op-1", 800))),
            entry(2_900, Method::Poll, "/operations/op-1", None),
            entry(2_900, Method::Get, "/loadBalancers/a", None),
        ];
        let cold = row("cold", Duration::ZERO, &calls, Duration::ZERO).unwrap();
        assert_eq!((cold.operations, cold.reads), (1, 3));
        assert_eq!((cold.best, cold.noticed), (Duration::from_millis(800), Duration::from_millis(2_900)));
        assert_eq!(cold.limits[0].holds(), Some(false), "2.9 s are more than 1.5 × 0.8 s + 0.5 s");
        let busy = row("cold", Duration::ZERO, &calls, Duration::from_secs(1)).unwrap();
        assert_eq!(busy.limits[0].holds(), None);
        assert!(row("cold", Duration::ZERO, &calls[..2], Duration::ZERO).is_err(), "nobody saw its end");
    }
}
