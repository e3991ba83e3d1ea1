//! What one event costs the engine at growing sizes: every row goes through `Engine::handle`, as in the controller.
//!
//! `cargo bench -p sluice-engine` prints the table for 1k, 10k, 100k and 1M addresses and checks what does
//! not depend on the machine: bytes. Times and their ratios are printed beside the targets, and never fail
//! the run. `-- --max 10000000` adds a size, `-- --max 100000` leaves one out. `-- --instructions` counts
//! instructions with callgrind instead, and checks the most important rows: one pod that is changed, or added and
//! deleted, and one deletion that waits must not cost more because the cluster is bigger.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a program for people"
)]

mod measure;
mod world;

use std::process::ExitCode;

use measure::{Rows, instructions};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const SIZES: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let number = |flag: &str| {
        let at = args.iter().position(|arg| arg == flag)?;
        args.get(at + 1)?.parse::<usize>().ok()
    };
    let workload = args.iter().position(|arg| arg == "--count").and_then(|at| args.get(at + 1));
    if let (Some(workload), Some(size), Some(times)) = (workload, number("--size"), number("--times")) {
        world::count_in(workload, size, times);
        return ExitCode::SUCCESS;
    }
    if args.iter().any(|arg| arg == "--instructions") {
        return instructions(10_000, number("--max"));
    }
    let max = number("--max").unwrap_or(1_000_000);
    let sizes: Vec<usize> = SIZES.into_iter().filter(|&size| size <= max).collect();
    let mut rows = Rows::new(&sizes);
    for &size in &sizes {
        eprintln!("measuring {size} addresses …");
        measure::inbound(&mut rows, size, &MEMORY);
        measure::outbound(&mut rows, size, &MEMORY);
    }
    rows.print();
    rows.verdict()
}
