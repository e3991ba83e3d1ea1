//! Where a value came from.

/// Where a value came from; later ones win over earlier ones.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A variable that Azure's own libraries look at. Others set those, often without asking (the
    /// webhook of workload identity does), so they only fill in what nobody else says.
    Ambient {
        /// Its name.
        variable: String,
    },
    /// A line of the file.
    File {
        /// Counted from one.
        line: usize,
    },
    /// The twin of a key in the environment.
    Environment {
        /// Its name.
        variable: String,
    },
    /// `--set`.
    Flag,
}

impl Origin {
    /// A fixed word.
    pub const fn word(&self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::Ambient { .. } => "ambient",
            Origin::File { .. } => "file",
            Origin::Environment { .. } => "environment",
            Origin::Flag => "flag",
        }
    }

    /// For people, who know the file by its name.
    pub(crate) fn place(&self, file: &str) -> String {
        match self {
            Origin::Default => "default".to_owned(),
            Origin::File { line } => format!("{file}:{line}"),
            Origin::Ambient { variable } | Origin::Environment { variable } => {
                format!("environment variable {variable}")
            }
            Origin::Flag => "--set".to_owned(),
        }
    }
}
