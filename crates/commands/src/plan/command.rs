//! The command itself: reach both worlds, read them, foresee, print.

use clap::Args;
use futures::future::LocalBoxFuture;

use super::foresight::foresee;
use super::report::{Report, Verdict};
use crate::config::ConfigArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::paint::Paint;
use crate::reach::Reached;

/// Show what `sluice run` would do, without a write.
#[derive(Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

const HELP: &str = "\
Example: sluice plan --config azure.yaml

A change is held if it is needed but something blocks it, for example the mass-deletion guard, an unusable \
gateway or an unmanaged resource. A Service with an unsupported spec is listed, but does not count as held.

Exit codes: 0 in sync · 1 failed, or invalid arguments or configuration · 2 changes are needed or held · \
5 Kubernetes unreachable or access denied · 6 no Azure access token";

/// Reads, foresees and prints.
pub fn run(arguments: Arguments) -> LocalBoxFuture<'static, Result<Verdict, Failure>> {
    Box::pin(execute(arguments))
}

async fn execute(arguments: Arguments) -> Result<Verdict, Failure> {
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
    if report.in_sync && !report.settles {
        return Err(anyhow::anyhow!(
            "the plan is incomplete: not all changes can be predicted; see the warnings above"
        )
        .into());
    }
    Ok(report.verdict)
}
