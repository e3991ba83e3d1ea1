//! The rows of the table, how each is measured, and what must hold.

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;

use crate::world::{PER_SERVICE, World};

/// One row: a value per size.
struct Row {
    name: &'static str,
    unit: &'static str,
    aim: &'static str,
    values: Vec<f64>,
    /// How much the value at the largest size may be; for bytes only.
    value_max: Option<f64>,
}

/// The table.
pub(crate) struct Rows {
    sizes: Vec<usize>,
    rows: Vec<Row>,
}

impl Rows {
    pub(crate) fn new(sizes: &[usize]) -> Rows {
        Rows { sizes: sizes.into(), rows: Vec::new() }
    }

    fn put(&mut self, name: &'static str, unit: &'static str, aim: &'static str, value: f64) -> &mut Row {
        let at = self.rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
            self.rows.push(Row { name, unit, aim, values: Vec::new(), value_max: None });
            self.rows.len() - 1
        });
        self.rows[at].values.push(value);
        &mut self.rows[at]
    }

    /// The value at 1M, or the largest size, over that at 10k.
    fn ratio(&self, row: &Row) -> Option<f64> {
        let at = self.sizes.iter().position(|&size| size == 10_000)?;
        let last = self.sizes.iter().rposition(|&size| size <= 1_000_000)?;
        (last > at).then(|| row.values[last] / row.values[at])
    }

    pub(crate) fn print(&self) {
        print!("{:<44}", "");
        for size in &self.sizes {
            print!("{:>12}", size);
        }
        println!("{:>10}  aim", "1M/10k");
        for row in &self.rows {
            print!("{:<32}{:>12}", row.name, row.unit);
            for value in &row.values {
                print!("{value:>12.1}");
            }
            match self.ratio(row) {
                Some(ratio) => print!("{ratio:>10.2}"),
                None => print!("{:>10}", "-"),
            }
            println!("  {}", row.aim);
        }
    }

    /// Fails when a number of bytes is over its limit.
    pub(crate) fn verdict(&self) -> ExitCode {
        let mut verdict = ExitCode::SUCCESS;
        for row in &self.rows {
            if let (Some(max), Some(&value)) = (row.value_max, row.values.last())
                && value > max
            {
                eprintln!("MISSED: {} is {value:.1} {}, at most {max} is allowed", row.name, row.unit);
                verdict = ExitCode::FAILURE;
            }
        }
        verdict
    }
}

/// What most of many single measurements come near, in nanoseconds: the lower quartile, because whatever
/// else the machine does can only make them slower.
fn typical(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 4].as_nanos() as f64
}

fn per(elapsed: Duration, count: usize) -> f64 {
    elapsed.as_nanos() as f64 / count as f64
}

const SAMPLES: usize = 5_000;
const ROUNDS: usize = 5;

/// Addresses of Services.
pub(crate) fn inbound(rows: &mut Rows, size: usize, memory: &PeakAlloc) {
    memory.reset_peak_usage();
    let before = memory.current_usage();
    let mut world = World::empty(size);
    world.add_slices();
    let started = Instant::now();
    world.make_ready();
    let promoting = started.elapsed();
    let drained = world.drain();
    let sent = drained.addresses;
    assert_eq!(sent, size.max(PER_SERVICE), "everything is sent");
    rows.put("full first diff", "M addr/s", "5 and more", 1e3 / per(promoting + drained.asking, sent));
    rows.put("answers to it", "M addr/s", "", 1e3 / per(drained.telling, sent));
    world.rest();
    let bytes = (memory.current_usage() - before) as f64;
    let peak = (memory.peak_usage() - before) as f64;
    rows.put("memory, inbound", "bytes/addr", "at most 120", bytes / sent as f64).value_max =
        (size >= 1_000_000).then_some(120.0);
    rows.put("peak while growing, inbound", "times", "at most 2", peak / bytes).value_max =
        (size >= 1_000_000).then_some(2.0);

    let mut times = Vec::new();
    for sample in 0..SAMPLES {
        let service = world.any_below(world.services.len());
        let at = world.any_below(PER_SERVICE);
        let changed = world.slice(service, Some((at, size.max(PER_SERVICE) + sample)));
        let original = world.slice(service, None);
        let started = Instant::now();
        world.addresses.apply_slice(black_box(&changed));
        let batch = world.addresses.next_batch(world.now);
        times.push(started.elapsed());
        assert_eq!(batch.map_or(0, |batch| batch[0].addresses.len()), 2, "one leaves, one comes");
        world.addresses.finish(world.now, None);
        world.addresses.apply_slice(&original);
        world.drain();
    }
    rows.put("a slice of 100, one differs", "µs", "under 10", typical(times) / 1e3);

    let service = world.services[0];
    world.addresses.set_ready(service, false);
    let checks = 1_000_000;
    let started = Instant::now();
    for _ in 0..checks {
        black_box(black_box(&world.addresses).mapped(black_box(service)));
        black_box(world.addresses.take_touched());
    }
    rows.put("deletion check, one pending", "ns", "O(1)", per(started.elapsed(), checks));
}

/// Addresses of egress pods.
pub(crate) fn outbound(rows: &mut Rows, size: usize, memory: &PeakAlloc) {
    memory.reset_peak_usage();
    let before = memory.current_usage();
    let mut world = World::of_pods(size);
    let bytes = (memory.current_usage() - before) as f64;
    let peak = (memory.peak_usage() - before) as f64;
    rows.put("memory, egress", "bytes/addr", "at most 220", bytes / size as f64).value_max =
        (size >= 1_000_000).then_some(220.0);
    rows.put("peak while growing, egress", "times", "at most 2", peak / bytes).value_max =
        (size >= 1_000_000).then_some(2.0);

    let mut times = Vec::new();
    for sample in 0..SAMPLES {
        let number = world.any_below(size);
        let (changed, original) = (world.pod(number, size + sample), world.pod(number, number));
        let egress = world.egress_of(number);
        let started = Instant::now();
        world.addresses.apply_pod(black_box(&changed), Some(egress));
        let batch = world.addresses.next_batch(world.now);
        times.push(started.elapsed());
        assert!(batch.is_some(), "a change makes a request");
        world.addresses.finish(world.now, None);
        world.addresses.apply_pod(&original, Some(egress));
        world.drain();
    }
    rows.put("one pod changes", "µs", "under 3, 1M at most 3 times 10k", typical(times) / 1e3);
    world.rest();

    let more = 100_000.min(size);
    let pods: Vec<_> = (size..size + more).map(|number| (world.pod(number, number), number)).collect();
    // The best of a few rounds: whatever else the machine does can only make it slower.
    let (mut adding, mut deleting) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for (pod, number) in &pods {
            let egress = world.egress_of(*number);
            world.addresses.apply_pod(pod, Some(egress));
        }
        adding = adding.min(started.elapsed());
        world.drain();
        world.rest();
        let started = Instant::now();
        for (pod, _) in &pods {
            world.addresses.remove_pod(pod.uid);
        }
        deleting = deleting.min(started.elapsed());
        world.drain();
        world.rest();
    }
    rows.put("pod added to a live egress", "M events/s", "2 and more", 1e3 / per(adding, more));
    rows.put("pod deleted from a live egress", "M events/s", "2 and more", 1e3 / per(deleting, more));
    drop(pods);

    let uids = world.addresses.pod_uids();
    let started = Instant::now();
    for uid in uids {
        world.addresses.remove_pod(uid);
    }
    world.drain();
    rows.put("mass deletion, until Azure is empty", "ns/pod", "linear", per(started.elapsed(), size));
    assert_eq!(world.addresses.totals().programmed, 0, "everything is gone");
}

/// Compares the instructions that one changed pod takes in a small and in a big cluster.
pub(crate) fn instructions(small: usize, big: usize) -> ExitCode {
    let mut counts = Vec::new();
    for size in [small, big] {
        let changes = 2_000;
        let Some(all) = callgrind(size, changes) else {
            eprintln!("valgrind is missing or failed; the instructions were not counted");
            return ExitCode::FAILURE;
        };
        let each = all as f64 / changes as f64;
        println!("{size:>10} addresses: {each:.0} instructions for one changed pod and its way back");
        counts.push(each);
    }
    let ratio = counts[1] / counts[0];
    println!("ratio: {ratio:.2}, at most 3 is allowed");
    if ratio <= 3.0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The instructions of so many changes, without those that fill the cluster, if valgrind can tell.
fn callgrind(size: usize, changes: usize) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*change_pods*"])
        .arg(std::env::current_exe().ok()?)
        .args(["--one-pod", &size.to_string(), "--changes", &changes.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :"))?.1;
    collected.trim().parse().ok().filter(|count| *count > 0)
}
