//! What many services cost: calls by kind, and how long it takes to make and to remove them all.
//!
//! The real engine and the real updaters against the model of Azure, in virtual time and without
//! faults. Kubernetes is the simplest that will do: it takes every write and answers after a few
//! milliseconds. First all Services are applied at once, then all are deleted at once.
//!
//! The *bound* is what latency and concurrency alone allow: the time that Azure took for every
//! step of every service, as it was drawn, divided by the number of slots. A commit counts for
//! each service that rode in it. Gateway calls for addresses are nobody's step; they are shown
//! apart.

mod bench;
pub mod budget;
pub mod polls;

use core::time::Duration;

use sluice_cloud::Latencies;
use sluice_updater::Numbers;

use crate::names::Violation;
use bench::Bench;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Load {
    /// How many Services.
    pub services: usize,
    /// How many plans work at once.
    pub slots: usize,
    /// How many pods each has.
    pub pods_each: usize,
    /// Azure counts calls, and so do we.
    pub throttled: bool,
    /// How long nothing happens between the last Service made and the first deleted.
    pub rest: Duration,
    /// How long the way to Azure and back takes.
    pub round_trip: Duration,
    /// How long Azure's operations take.
    pub latency: Latencies,
    /// The `Retry-After` of every answer about an operation that runs.
    pub retry_after: Option<Duration>,
    /// Azure's operations take no time, and its answers have their results.
    pub instant: bool,
    /// Our share of what Azure allows.
    pub share_permille: u32,
    /// Decides every latency.
    pub seed: u64,
}

impl Load {
    /// So many Services with so many slots, two pods each, all limits on, no rest.
    pub fn new(services: usize, slots: usize) -> Load {
        Load {
            services,
            slots,
            pods_each: 2,
            throttled: true,
            rest: Duration::ZERO,
            round_trip: Duration::from_millis(40),
            latency: Latencies::default(),
            retry_after: None,
            instant: false,
            share_permille: 800,
            seed: 1,
        }
    }
}

/// What one half came to.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// How many Services.
    pub services: usize,
    /// Public IPs and load balancers written.
    pub puts: u64,
    /// Resources deleted.
    pub deletes: u64,
    /// `updateServices` calls.
    pub commits: u64,
    /// `updateAddressLocations` calls.
    pub location_writes: u64,
    /// Single resources read.
    pub gets: u64,
    /// Pages read.
    pub pages: u64,
    /// Polls.
    pub polls: u64,
    /// Answers that asked for a pause.
    pub throttled: u64,
    /// From the first Service applied or deleted to the last one served or gone.
    pub makespan: Duration,
    /// What latency and concurrency alone allow.
    pub bound: Duration,
}

impl Figures {
    /// Writes and deletes per Service in thousandths, without those of addresses.
    pub fn writes_permille(&self) -> u64 {
        self.per_service(self.puts + self.deletes + self.commits)
    }

    /// Reads per Service in thousandths, polls among them.
    pub fn reads_permille(&self) -> u64 {
        self.per_service(self.gets + self.pages + self.polls)
    }

    /// Makespan over bound in thousandths.
    pub fn over_bound_permille(&self) -> u64 {
        let bound_ms = u64::try_from(self.bound.as_millis()).unwrap_or(u64::MAX).max(1);
        u64::try_from(self.makespan.as_millis()).unwrap_or(u64::MAX).saturating_mul(1_000) / bound_ms
    }

    fn per_service(&self, calls: u64) -> u64 {
        calls * 1_000 / (self.services as u64).max(1)
    }
}

/// One row of the table of calls: a load, and what it may cost.
#[derive(Clone, Debug)]
pub struct Target {
    /// In a few words.
    pub name: &'static str,
    /// What is measured.
    pub load: Load,
    /// Writes and deletes per Service at most, in thousandths, to make it and to remove it.
    pub writes_permille_max: u64,
    /// Reads per Service at most, in thousandths, to make it and to remove it: what is deleted is read right before.
    pub reads_permille_max: (u64, u64),
    /// Makespan over bound at most, in thousandths, to make all and to remove all; where the
    /// budget binds, latency and concurrency are no bound.
    pub over_bound_permille_max: Option<(u64, u64)>,
}

impl Target {
    /// What was too much.
    pub fn misses(&self, (create, delete): &(Figures, Figures)) -> Vec<String> {
        let mut misses = Vec::new();
        let mut check = |what: &str, is: u64, most: u64| {
            if is > most {
                misses.push(format!("{}: {what} {} > {}", self.name, decimal(is), decimal(most)));
            }
        };
        let (reads_to_create_max, reads_to_delete_max) = self.reads_permille_max;
        for (half, figures, reads_max) in
            [("create", create, reads_to_create_max), ("delete", delete, reads_to_delete_max)]
        {
            check(&format!("writes to {half}"), figures.writes_permille(), self.writes_permille_max);
            check(&format!("reads to {half}"), figures.reads_permille(), reads_max);
            check(&format!("429s to {half}"), figures.throttled * 1_000, 0);
        }
        if let Some((create_max, delete_max)) = self.over_bound_permille_max {
            check("create over bound", create.over_bound_permille(), create_max);
            check("delete over bound", delete.over_bound_permille(), delete_max);
        }
        misses
    }
}

/// Thousandths as people write them.
pub fn decimal(permille: u64) -> String {
    format!("{}.{:02}", permille / 1_000, permille % 1_000 / 10)
}

/// The table of calls: five hundred services.
pub fn targets() -> Vec<Target> {
    let target = |name, load, writes_permille_max, over_bound_permille_max| Target {
        name,
        load,
        writes_permille_max,
        reads_permille_max: (6_000, 7_000),
        over_bound_permille_max,
    };
    let ten = Load::new(500, 10);
    let rested = Load { rest: Duration::from_secs(600), ..ten.clone() };
    let bare = Load { pods_each: 0, ..ten.clone() };
    let lifted = Load { throttled: false, ..Load::new(500, 50) };
    let over = Some((1_150, 1_300));
    vec![
        target("10 slots", ten, 2_750, over),
        target("10 slots, 10 min between", rested, 2_750, over),
        target("10 slots, no pods", bare, 2_750, over),
        target("50 slots, buckets lifted", lifted, 2_200, None),
        target("50 slots, the budget binds", Load::new(500, 50), 2_200, None),
    ]
}

/// Makes all Services and removes them again. Fails when a call is begun that the budget or a
/// pause does not allow, or when nothing happens any more before all is done.
pub fn measure(load: &Load) -> Result<(Figures, Figures), Violation> {
    let mut bench = Bench::new(load);
    bench.settle_in()?;
    let create = bench.half(Bench::apply_all, Bench::all_served)?;
    bench.rest(load.rest)?;
    let delete = bench.half(Bench::delete_all, Bench::all_gone)?;
    Ok((create, delete))
}

fn figures(
    services: usize,
    before: &Numbers,
    after: &Numbers,
    makespan: Duration,
    bound: Duration,
) -> Figures {
    Figures {
        services,
        puts: after.puts + after.tag_patches - before.puts - before.tag_patches,
        deletes: after.deletes - before.deletes,
        commits: after.service_commits - before.service_commits,
        location_writes: after.location_syncs - before.location_syncs,
        gets: after.gets - before.gets,
        pages: after.lists - before.lists,
        polls: after.polls - before.polls,
        throttled: after.throttled - before.throttled,
        makespan,
        bound,
    }
}
