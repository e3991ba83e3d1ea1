//! `sluice version`: which Sluice this is.

use clap::Args;
use sluice_commands::output::Output;
use sluice_commands::say;

/// Print the version.
#[derive(Args, Debug)]
#[command(after_long_help = "Example: sluice version --output json")]
pub(crate) struct Arguments {
    /// Output format
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
