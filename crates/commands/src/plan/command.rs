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

/// Shows what `sluice run` would do, and does nothing.
#[derive(Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// How to say it
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

const HELP: &str = "\
Held is what should be done and is not, because something stands against it: the brake on mass deletions, a
gateway that cannot be used, a resource of somebody else. A Service that asks for what cannot be is not held:
there is nothing to do for it, and it is named all the same.

Exit codes: 0 in sync · 2 there are changes, or something is held · 5 no Kubernetes · 6 no credential for Azure ·
1 anything else, wrong arguments and configuration too, so that a typo is never taken for a change";

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
        return Err(anyhow::anyhow!("not everything can be foreseen: see the lines above").into());
    }
    Ok(report.verdict)
}
