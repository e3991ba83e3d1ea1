//! The configuration: what the operator decides, and where each value came from.
//!
//! ```text
//! defaults < AZURE_* variables < file < SLUICE_* variables < --set
//! ```
//!
//! - `keys` is the table of all keys, from which everything else is made; `old` is that of the keys that were
//!   removed or renamed
//! - [`ConfigArguments`] is what every command takes
//! - [`mod@print`] is `--print-config`
//! - [`mod@reference`] is the page in `docs/`
//!
//! All that is wrong is said at once. Secrets are of a type that cannot be printed, and are never part
//! of a message. Missing on purpose: reloading. A changed file needs a restart, which costs nothing and
//! writes nothing; the log level alone can change at run time.

mod arguments;
mod checks;
mod conversions;
mod credential;
mod document;
mod forms;
mod keys;
mod old;
mod origin;
pub mod print;
mod problems;
pub mod reference;
mod sources;
mod table;
#[cfg(test)]
mod tests;
mod values;

use std::path::{Path, PathBuf};

use sluice_arm::Proxy;

pub use arguments::{Assignment, ConfigArguments};
pub use credential::Identity;
pub use keys::{
    Azure, Budget, Config, Deletion, Drift, Egress, Gateway, General, LeaderElection, Listen, Locations, Log,
    Migration, Operations, Process, Reach, Retry,
};
pub use origin::Origin;
pub use problems::ConfigError;
pub use sources::Environment;
pub use table::Value;
pub use values::{LogFormat, RouteTargets, Share};

use problems::Problem;
use sources::Sources;
use table::Reader;

/// A configuration that can be used.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What was decided.
    pub config: Config,
    /// Each value as text, in the order of the table, with where it came from.
    pub values: Vec<Value>,
    /// What works and will surprise. To be shown once.
    pub warnings: Vec<String>,
    /// The file, if there was one.
    pub path: Option<PathBuf>,
    /// What that is called in messages.
    file: String,
}

impl ConfigArguments {
    /// The configuration that the arguments, the file and the environment of this process make.
    pub fn load(&self) -> Result<Loaded, ConfigError> {
        load(self.config.as_deref(), &self.set, &Environment::of_this_process())
    }
}

/// Reads a file, if there is one, and puts everything together.
pub fn load(
    path: Option<&Path>,
    set: &[Assignment],
    environment: &Environment,
) -> Result<Loaded, ConfigError> {
    let text = match path {
        None => String::new(),
        Some(path) => read(path).map_err(|problem| ConfigError::new(vec![problem]))?,
    };
    assemble(&text, path, set, environment)
}

fn read(path: &Path) -> Result<String, Problem> {
    let about = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => "check --config, or the mount of the ConfigMap or Secret",
            std::io::ErrorKind::PermissionDenied => {
                "on most nodes only root can read azure.json; check the permissions of the file"
            }
            _ => "check --config",
        };
        Problem::new(&about, format!("cannot be read ({error}); {hint}"))
    })?;
    String::from_utf8(bytes).map_err(|_| Problem::new(&about, "is not UTF-8 text; save it as UTF-8"))
}

/// The same for a text that is at hand.
fn assemble(
    text: &str,
    path: Option<&Path>,
    set: &[Assignment],
    environment: &Environment,
) -> Result<Loaded, ConfigError> {
    let file = path.map_or_else(|| "no file".to_owned(), |path| path.display().to_string());
    let entries = document::parse(text).map_err(|problem| {
        let about = format!("{file}, {}", problem.about);
        ConfigError::new(vec![Problem { about, ..problem }])
    })?;
    let rows = Config::rows();
    let mut sources = Sources::new(&rows, &file);
    sources.ambient(environment);
    sources.document(entries);
    sources.environment(environment);
    sources.flags(set);
    let (said, problems, mut warnings) = sources.finish();

    let mut reader = Reader::new(said, file.clone(), problems);
    let proxy = Proxy::from_variables(|name| environment.variable(name).map(str::to_owned));
    let mut config = Config::read(&mut reader, proxy);
    let Reader { values, mut problems, .. } = reader;
    match credential::choose(&config, &values, &file) {
        Ok(identity) => config.identity = identity,
        Err(more) => problems.extend(more),
    }
    problems.extend(checks::contradictions(&config, &values, &file, &problems));
    if !problems.is_empty() {
        if path.is_none() {
            problems.push(Problem::new(
                "--config",
                "no file specified; set it to the azure.json of the cluster, with a sluice: section",
            ));
        }
        return Err(ConfigError::new(problems));
    }
    warnings.extend(checks::warnings(&config));
    Ok(Loaded { config, values, warnings, path: path.map(Path::to_owned), file })
}
