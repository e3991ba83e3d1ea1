//! The arguments that every command shares which needs a configuration or a cluster.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

/// Which configuration and which cluster.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Configuration")]
pub struct ConfigArguments {
    /// Configuration file: azure.json or YAML, with a `sluice:` section
    #[arg(long, value_name = "FILE", env = "SLUICE_CONFIG")]
    pub config: Option<PathBuf>,
    /// Override one key, e.g. sluice.concurrency=20 (can be repeated)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<Assignment>,
    /// Kubeconfig file [default: service account of the pod, else as kubectl]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// One `--set key=value`, as it was written. The value is not printed: somebody may have put a secret there.
#[derive(Clone, PartialEq, Eq)]
pub struct Assignment(String);

impl Assignment {
    /// Takes the words as they are.
    pub fn new(text: impl Into<String>) -> Assignment {
        Assignment(text.into())
    }

    /// Key and value, or the key alone if there is no `=`.
    pub(crate) fn parts(&self) -> (&str, Option<&str>) {
        match self.0.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim())),
            None => (self.0.trim(), None),
        }
    }
}

impl FromStr for Assignment {
    type Err = Infallible;

    /// Never fails: all problems of a configuration are told together, and clap would repeat the value.
    fn from_str(text: &str) -> Result<Assignment, Infallible> {
        Ok(Assignment::new(text))
    }
}

impl fmt::Debug for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=…", self.parts().0)
    }
}
