//! How long polls delay a Service: the time until its IP is published, next to the best possible.
//!
//! Services are created one after another on an Azure whose operations all take about the same time. *Best* is the
//! time until the first moment after its end at which a poll was allowed, added up over the operations that the
//! Service waits for. A *cold* Service is the first one of a new cluster; ten clusters are measured. *Warm* Services
//! are those of one cluster after the first ten; ten of them are measured.

use core::fmt;
use core::time::Duration;

use sluice_cloud::{Latencies, Span};

use super::Load;
use super::bench::Bench;
use crate::names::Violation;

/// How many Services a row averages over, and how many make a cluster warm.
const SERVICES: u32 = 10;

/// One row: an Azure, and whether the controller has seen it before.
#[derive(Clone, Debug)]
pub struct Target {
    /// How long operations take, give or take a tenth.
    pub operation: Duration,
    /// The `Retry-After` of every answer about an operation that runs.
    pub retry_after: Option<Duration>,
    /// After ten Services instead of before the first.
    pub warm: bool,
    /// The most reads per Service, in thousandths.
    pub reads_permille_max: Option<u64>,
}

/// What was measured, per Service.
#[derive(Clone, Debug)]
pub struct Figures {
    /// From the Service to its published IP.
    pub to_ip: Duration,
    /// What that would take if every operation's end were seen at the first allowed moment.
    pub best: Duration,
    /// How many operations the Service waited for, in thousandths.
    pub operations_permille: u32,
    /// Reads in thousandths, polls among them and those for its pods.
    pub reads_permille: u64,
}

impl Figures {
    /// Time over best, in thousandths.
    pub fn ratio_permille(&self) -> u64 {
        let ratio = self.to_ip.as_millis() * 1_000 / self.best.as_millis().max(1);
        u64::try_from(ratio).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>4} s", self.operation.as_secs_f64())?;
        match self.retry_after {
            Some(wait) => write!(f, ", Retry-After {:>2} s", wait.as_secs())?,
            None => write!(f, ",{:17}", "")?,
        }
        f.write_str(if self.warm { ", warm" } else { ", cold" })
    }
}

impl Target {
    /// The longest time to the IP: 1.5 times the best and 0.5 s per operation, or 1.15 times and 0.1 s when warm.
    pub fn to_ip_max(&self, figures: &Figures) -> Duration {
        let (factor_permille, extra) =
            if self.warm { (1_150, Duration::from_millis(100)) } else { (1_500, Duration::from_millis(500)) };
        (figures.best * factor_permille + extra * figures.operations_permille) / 1_000
    }

    /// Which limits were exceeded.
    pub fn misses(&self, figures: &Figures) -> Vec<String> {
        let mut misses = Vec::new();
        let limit = self.to_ip_max(figures);
        if figures.to_ip > limit {
            misses.push(format!("{self}: {} ms > {} ms", figures.to_ip.as_millis(), limit.as_millis()));
        }
        if let Some(max) = self.reads_permille_max.filter(|max| figures.reads_permille > *max) {
            misses.push(format!("{self}: {} reads in thousandths > {max}", figures.reads_permille));
        }
        misses
    }
}

/// The table.
pub fn targets() -> Vec<Target> {
    let mut targets = Vec::new();
    for warm in [false, true] {
        for retry_after_s in [None, Some(1), Some(10)] {
            for operation_ms in [300, 800, 2_000, 5_000, 10_000, 20_000] {
                targets.push(Target {
                    operation: Duration::from_millis(operation_ms),
                    retry_after: retry_after_s.map(Duration::from_secs),
                    warm,
                    reads_permille_max: warm.then_some(10_000),
                });
            }
        }
    }
    targets
}

/// Creates the Services. Fails when a call is begun that the budget or a pause does not allow, or when a Service
/// does not get its IP.
pub fn measure(target: &Target) -> Result<Figures, Violation> {
    let mut sum = Sum::default();
    if target.warm {
        let mut bench = bench(target, 1)?;
        for number in 0..SERVICES {
            Sum::default().create(&mut bench, number)?;
        }
        for number in SERVICES..2 * SERVICES {
            sum.create(&mut bench, number)?;
        }
    } else {
        for seed in 1..=SERVICES {
            sum.create(&mut bench(target, u64::from(seed))?, 0)?;
        }
    }
    Ok(Figures {
        to_ip: sum.to_ip / SERVICES,
        best: sum.best / SERVICES,
        operations_permille: sum.operations * 1_000 / SERVICES,
        reads_permille: sum.reads * 1_000 / u64::from(SERVICES),
    })
}

fn bench(target: &Target, seed: u64) -> Result<Bench, Violation> {
    let (min, max) = (target.operation * 9 / 10, target.operation * 11 / 10);
    let each = Span { min, max };
    let latency = Latencies {
        public_ip: each,
        load_balancer: each,
        nat_gateway: each,
        gateway: each,
        network: each,
        delete: each,
    };
    let load = Load { latency, retry_after: target.retry_after, seed, ..Load::new(1, 10) };
    let mut bench = Bench::new(&load);
    bench.settle_in()?;
    Ok(bench)
}

/// Over several Services.
#[derive(Default)]
struct Sum {
    to_ip: Duration,
    best: Duration,
    operations: u32,
    reads: u64,
}

impl Sum {
    /// Creates one more Service, and waits until its pods are in Azure too.
    fn create(&mut self, bench: &mut Bench, number: u32) -> Result<(), Violation> {
        let (best, operations, reads) = (bench.best, bench.operations_ended, bench.reads());
        self.to_ip += bench.create(number as usize)?;
        self.best += bench.best - best;
        self.operations += bench.operations_ended - operations;
        bench.run(Bench::addresses_in_sync)?;
        self.reads += bench.reads() - reads;
        Ok(())
    }
}
