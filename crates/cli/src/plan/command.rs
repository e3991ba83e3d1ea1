//! The command itself: reach both worlds, read them, foresee, print.

use clap::Args;

use super::foresight::foresee;
use super::report::Report;
use crate::bench::Output;
use crate::config::ConfigArguments;
use crate::failure::Failure;
use crate::paint::Paint;
use crate::reach::Reached;

/// Shows what `sluice run` would do, and does nothing.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// How to say it
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// What came of it, for the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing would be written.
    InSync,
    /// Something would be.
    Changes,
}

/// Reads, foresees and prints.
pub async fn run(arguments: Arguments) -> Result<Verdict, Failure> {
    let reached = Reached::by(&arguments.config).await?;
    let worlds = reached.read().await?;
    let scope = reached.config.scope(&reached.cluster_id);
    let forecast = foresee(reached.config.engine(&reached.cluster_id), reached.config.updaters(), &worlds);
    let report = Report::of(&scope, &forecast);
    match arguments.output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&report)?),
        Output::Text => {
            print!("{}", report.text(Paint::for_stdout()));
        }
    }
    if !report.in_sync {
        return Ok(Verdict::Changes);
    }
    if !report.settles {
        return Err(anyhow::anyhow!("not everything can be foreseen: see the lines above").into());
    }
    Ok(Verdict::InSync)
}
