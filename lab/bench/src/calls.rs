//! `sluice bench calls`: what it costs to create and delete many Services, counted by the emulator.
//!
//! Everything is real: an emulator process with its default latencies, HTTPS with its CA, tokens from
//! its token endpoint, the product's client, engine, updaters and loop. Only Kubernetes is in memory.
//! Time goes faster by a factor, on both sides alike. What is counted is what the emulator's own
//! request log says; nothing is taken from our own counters but how much CPU all of this took.

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::{bail, ensure};
use clap::Args;
use sluice_commands::pace::{Paced, Waited};
use sluice_controller::Clock as _;
use tokio::time::Instant;

use super::Common;
use super::figures::{Figures, Limit};
use super::report::{self, Phase, Report, Run};
use super::request_log::{Bookmark, RequestLog};
use super::rig::Rig;
use super::usage::{Usage, cpu_time};
use super::workload;
use super::world::{self, World};

/// How long the controller has to make the gateway and to settle before anything is counted.
const SETTLE: Duration = Duration::from_secs(60);

/// What to measure.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Number of Services to create and delete
    #[arg(long, value_name = "COUNT", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=900))]
    services: u32,
    /// Number of concurrent operations (repeatable) [default: 10 and 50]
    ///
    /// Up to 10, the run uses the default call budget and Azure's throttling. Above 10, it uses an unlimited
    /// budget and no throttling.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=500))]
    concurrency: Vec<u16>,
    /// Run emulated time FACTOR times as fast, from 1 to 200
    #[arg(long, value_name = "FACTOR", default_value_t = 20.0, value_parser = factor)]
    time_factor: f64,
    /// Seed for all latencies
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    common: Common,
}

const HELP: &str = "\
Examples:
  sluice bench calls
      Measure 500 Services with concurrency 10 and 50 (about 1 min).
  sluice bench calls --services 50 --concurrency 10 --time-factor 50
      Run a short measurement. The pass limits are set for 500 Services, so this run may exceed them.
  sluice bench calls --output json
      Print the result for scripts.

Exit codes: 0 within all limits · 1 a limit is exceeded, or the measurement failed · 2 invalid arguments";

pub(crate) fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (1.0..=200.0).contains(&factor) => Ok(factor),
        Ok(_) => Err("a factor between 1 and 200, so that our own CPU time does not show".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Measures, prints, and fails when a limit is missed.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let concurrencies =
        if arguments.concurrency.is_empty() { vec![10, 50] } else { arguments.concurrency.clone() };
    let mut runs = Vec::new();
    for concurrency in concurrencies {
        runs.push(measure(&arguments, usize::from(concurrency)).await?);
    }
    let report = Report { services: arguments.services, time_factor: arguments.time_factor, runs };
    report::print(&report, arguments.common.output)?;
    let missed = report.missed();
    ensure!(missed == 0, "limits missed: {missed}");
    Ok(())
}

async fn measure(arguments: &Arguments, concurrency: usize) -> anyhow::Result<Run> {
    let Arguments { services, time_factor, .. } = *arguments;
    let throttled = concurrency <= 10;
    let began = Instant::now();
    let own_before = cpu_time(None);
    let seed = format!("--seed={}", arguments.seed);
    let mut options = vec![seed.as_str()];
    if !throttled {
        options.push("--no-throttling");
    }
    let config = |scope| {
        let config = world::config(scope, concurrency, arguments.seed);
        if throttled { config } else { world::lifted(config) }
    };
    let mut waited = Waited::default();
    let sender = |client| {
        let paced = Paced::new(client, time_factor);
        waited = paced.waited();
        paced
    };
    let rig = Rig::start(arguments.common.program.as_ref(), time_factor, &options, config, sender).await?;
    // The emulator's folder stays in the rig until the end.
    let Rig { process, world, clock, .. } = rig;
    let emulator = &process.client;

    let count = |log: RequestLog| {
        let figures = Figures::count(&log.calls, services, concurrency);
        let (served, all) = (figures.served, services as usize);
        ensure!(served == all, "Azure has carried out something for {served} services of {all}");
        Ok(Phase { figures, early: log.early, waits: log.waits, excused: log.excused })
    };
    let patience = Patience::new(services, concurrency, time_factor);
    let all = usize::try_from(services)?;

    clock.sleep_until(clock.now() + SETTLE).await;
    let mut bookmark = Bookmark::default();
    RequestLog::read_on(emulator, &mut bookmark).await?;
    workload::create(&world.cluster, services);
    let progress = Progress::start(&world, "creating", concurrency, services);
    let published =
        world.cluster.wait_until(|they| they.len() == all && they.iter().all(|it| it.published.is_some()));
    let done = async {
        published.await;
        world.settled().await
    };
    patience.wait_for(&world, "created", done).await??;
    drop(progress);
    let created = count(RequestLog::read_on(emulator, &mut bookmark).await?)?;

    workload::delete(&world.cluster, services);
    let progress = Progress::start(&world, "deleting", concurrency, services);
    patience.wait_for(&world, "deleted", world.cluster.wait_until(<[_]>::is_empty)).await?;
    drop(progress);
    let deleted = count(RequestLog::read_on(emulator, &mut bookmark).await?)?;

    let ended = world.stop().await?;
    ensure!(ended.tally.panics == 0, "{} calls panicked; see the log", ended.tally.panics);
    let usage = Usage {
        real: began.elapsed(),
        own: cpu_time(None).zip(own_before).map(|(after, before)| after.saturating_sub(before)),
        emulator: cpu_time(Some(process.program.id())),
        calls: ended.tally.calls_ended,
        in_calls: waited.so_far(),
    };
    process.program.kill().await?;
    Ok(Run { concurrency, time_factor, throttled, created, deleted, usage })
}

impl Run {
    /// What is held against a limit. The makespan's are for ten at once and Azure's throttling.
    pub fn limits(&self) -> [Vec<Limit>; 2] {
        let writes_max = if self.throttled { 2.75 } else { 2.2 };
        let limit = |what, found, max| Limit { what, found, max, is_judged: true };
        // What is deleted is read right before, which costs two reads.
        let of = |phase: &Phase, reads_max: f64, over_bound_max: f64| {
            let figures = &phase.figures;
            // No more than that can have been on their way when a wait was asked for.
            let excused_max = phase.waits.saturating_mul(self.concurrency as u64);
            let mut limits = vec![
                limit("writes per service", figures.per_service(figures.service_writes), writes_max),
                limit("reads per service", figures.per_service(figures.reads), reads_max),
                limit("calls before a Retry-After", phase.early as f64, 0.0),
                limit("  on their way by then", phase.excused as f64, excused_max as f64),
            ];
            if self.throttled {
                let over_bound = limit("makespan over the bound", figures.over_bound(), over_bound_max);
                limits.push(Limit { is_judged: !self.is_too_slow(), ..over_bound });
            }
            limits
        };
        [of(&self.created, 6.0, 1.15), of(&self.deleted, 7.0, 1.30)]
    }
}

/// How long one waits before something counts as stuck.
struct Patience {
    emulated: Duration,
    real: Duration,
}

impl Patience {
    /// Some ten times as long as it should take, and an hour for whoever is parked.
    fn new(services: u32, concurrency: usize, time_factor: f64) -> Patience {
        let workers = u32::try_from(concurrency.max(1)).unwrap_or(u32::MAX);
        let emulated = Duration::from_secs(3_600) + Duration::from_secs(200) * services / workers;
        Patience { emulated, real: emulated.div_f64(time_factor) }
    }

    async fn wait_for<T>(
        &self,
        world: &World,
        what: &str,
        done: impl Future<Output = T>,
    ) -> anyhow::Result<T> {
        if let Ok(done) = tokio::time::timeout(self.real, done).await {
            return Ok(done);
        }
        let services = world.handle.services().await?;
        let stuck = services.iter().filter(|it| !(it.wanted && it.live) || it.hold.is_some());
        let stuck: Vec<String> = stuck.map(|it| format!("{} {:?} {:?}", it.key, it.state, it.hold)).collect();
        let some = stuck.iter().take(10).map(String::as_str).collect::<Vec<_>>().join("\n  ");
        let minutes = self.emulated.as_secs() / 60;
        bail!("not all are {what} after {minutes} emulated minutes; {} are stuck:\n  {some}", stuck.len());
    }
}

/// A line that says how far it is, where somebody looks.
struct Progress(Option<tokio::task::JoinHandle<()>>);

impl Progress {
    fn start(world: &World, what: &'static str, concurrency: usize, services: u32) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress(None);
        }
        let cluster = std::sync::Arc::clone(&world.cluster);
        Progress(Some(tokio::spawn(async move {
            loop {
                let they = cluster.services();
                let published = they.iter().filter(|it| it.published.is_some()).count();
                let done = match what {
                    "creating" => published,
                    _ => (services as usize).saturating_sub(they.len()),
                };
                eprint!("\r{what} at concurrency {concurrency}: {done} of {services}  ");
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
        })))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
            eprint!("\r{:60}\r", "");
        }
    }
}
