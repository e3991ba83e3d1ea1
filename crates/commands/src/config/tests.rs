//! Claims about whole configurations.

mod bad_input;
mod conversions;
mod never_panics;
mod old_keys;
mod secrets;
mod sources;

use std::path::Path;

use super::{Assignment, Config, ConfigError, Environment, Loaded, assemble};

/// The least that works.
const LEAST: &str = "\
subscriptionId: 00000000-0000-0000-0000-000000000001
resourceGroup: rg
location: West Europe
vnetName: vnet
subnetName: nodes
useManagedIdentityExtension: true
";

/// A configuration from a text, as if it were in `azure.yaml`.
fn load(text: &str) -> Result<Loaded, ConfigError> {
    load_with(text, &[], &[])
}

fn load_with(text: &str, variables: &[(&str, &str)], set: &[&str]) -> Result<Loaded, ConfigError> {
    let environment: Environment = variables.iter().copied().collect();
    let set: Vec<Assignment> = set.iter().map(|text| Assignment::new(*text)).collect();
    assemble(text, Some(Path::new("azure.yaml")), &set, &environment)
}

fn config(text: &str) -> Config {
    load(text).unwrap_or_else(|error| panic!("{error}")).config
}

/// The least, and something below `sluice:`.
fn ours(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}\n")).collect();
    format!("{LEAST}sluice:\n{}", lines.concat())
}
