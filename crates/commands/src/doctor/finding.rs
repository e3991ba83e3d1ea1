//! One line of the doctor's: what was looked at, how it is, and what to do about it.

/// What a finding is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    /// The file, the environment, the flags.
    Configuration,
    /// The API server and what we may do there.
    Kubernetes,
    /// Who else serves Services.
    OtherControllers,
    /// The resource manager and what we may do there.
    Azure,
    /// The gateway and its subnet.
    Gateway,
    /// How much there may be.
    Quota,
}

impl Group {
    /// Its heading.
    pub const fn title(self) -> &'static str {
        match self {
            Group::Configuration => "Configuration",
            Group::Kubernetes => "Kubernetes",
            Group::OtherControllers => "Other controllers",
            Group::Azure => "Azure",
            Group::Gateway => "Gateway and subnet",
            Group::Quota => "Quota",
        }
    }
}

/// How it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// As it should be.
    Good,
    /// It works, and may surprise.
    Warning,
    /// Sluice cannot do its work like this.
    Problem,
    /// Nobody could look.
    Skipped,
}

impl Mark {
    /// One letter for people.
    pub const fn letter(self) -> &'static str {
        match self {
            Mark::Good => "✓",
            Mark::Warning => "!",
            Mark::Problem => "✗",
            Mark::Skipped => "–",
        }
    }

    /// A fixed word for scripts.
    pub const fn word(self) -> &'static str {
        match self {
            Mark::Good => "ok",
            Mark::Warning => "warning",
            Mark::Problem => "problem",
            Mark::Skipped => "skipped",
        }
    }
}

/// One line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What it is about.
    pub group: Group,
    /// How it is.
    pub mark: Mark,
    /// What was found.
    pub text: String,
    /// What to do about it; every problem has one.
    pub remedy: Option<String>,
}

impl Finding {
    pub(crate) fn good(group: Group, text: impl Into<String>) -> Finding {
        Finding { group, mark: Mark::Good, text: text.into(), remedy: None }
    }

    pub(crate) fn warning(group: Group, text: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { group, mark: Mark::Warning, text: text.into(), remedy: Some(remedy.into()) }
    }

    pub(crate) fn problem(group: Group, text: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { group, mark: Mark::Problem, text: text.into(), remedy: Some(remedy.into()) }
    }

    pub(crate) fn skipped(group: Group, text: impl Into<String>) -> Finding {
        Finding { group, mark: Mark::Skipped, text: text.into(), remedy: None }
    }
}

/// The finding as tests compare it: mark, text, remedy.
#[cfg(test)]
pub(crate) fn told(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let remedy = finding.remedy.as_ref().map(|remedy| format!("\n    → {remedy}")).unwrap_or_default();
        format!("{} {}{remedy}", finding.mark.letter(), finding.text)
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}
