//! `sluice version`: which Sluice this is.

use clap::Args;
use sluice_commands::output::Output;
use sluice_commands::say;

/// Says which version this is.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// How to say it
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Says it.
pub(crate) fn run(arguments: &Arguments) {
    let version = env!("CARGO_PKG_VERSION");
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    match arguments.output {
        Output::Text => say!("sluice {version} {platform}"),
        Output::Json => say!("{}", serde_json::json!({ "version": version, "platform": platform })),
    }
}
