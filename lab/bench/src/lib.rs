//! Measurements: the real loop, engine, updaters and client against an emulated Azure.
//!
//! - [`calls`]: what it costs to create and delete many Services
//! - [`one_service`]: how soon the ends of Azure's operations are noticed
//! - [`budget`]: what the shipped budget costs while Azure's limits are far away
//! - [`azure`] and [`request_log`]: the emulated Azure, and its request log
//! - [`rig`]: an emulator process and a controller for it
//! - [`world`] and [`workload`]: a controller with a cluster in memory, and what happens in that
//! - [`ledger`] and [`figures`]: every call as Azure saw it, and what follows from that
//! - [`report`] and [`usage`]: what is printed
#![allow(clippy::print_stderr, reason = "a measurement shows at the terminal how far it is")]

pub mod azure;
pub mod budget;
pub mod calls;
pub mod figures;
pub mod ledger;
pub mod one_service;
pub mod report;
pub mod request_log;
pub mod rig;
pub mod usage;
pub mod workload;
pub mod world;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use futures::future::LocalBoxFuture;
use sluice_commands::output::Output;

/// Measure Sluice against the Azure emulator.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "Example: sluice bench calls --services 50")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

/// What every measurement takes.
#[derive(Args, Clone, Debug)]
struct Common {
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Program that contains the emulator [default: this program]
    #[arg(long, value_name = "FILE", hide = true)]
    program: Option<PathBuf>,
}

#[derive(Subcommand, Clone, Debug)]
enum What {
    /// Measure the calls and time to create and delete many Services
    Calls(calls::Arguments),
    /// Measure how soon Sluice detects that Azure operations have finished
    OneService(one_service::Arguments),
    /// Compare the default call budget with an unlimited one
    ///
    /// The emulator completes operations at once and does not throttle.
    Budget(budget::Arguments),
}

/// Measures what is asked for. A limit that is missed is an error.
pub fn run(arguments: Arguments) -> LocalBoxFuture<'static, anyhow::Result<()>> {
    Box::pin(execute(arguments))
}

async fn execute(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.what {
        What::Calls(arguments) => calls::run(arguments).await,
        What::OneService(arguments) => one_service::run(arguments).await,
        What::Budget(arguments) => budget::run(arguments).await,
    }
}
