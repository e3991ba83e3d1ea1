//! Why a command ends badly: the exit code, the words, and what one can do about it.

/// The exit codes.
pub mod exit {
    /// It failed, and none of the others says how.
    pub const FAILED: u8 = 1;
    /// Wrong arguments or configuration.
    pub const WRONG: u8 = 2;
    /// An address cannot be listened on.
    pub const LISTEN: u8 = 3;
    /// Kubernetes cannot be reached, or refuses us.
    pub const KUBERNETES: u8 = 5;
    /// There is no credential for Azure.
    pub const AZURE: u8 = 6;
    /// The lease was lost.
    pub const LEASE: u8 = 7;

    /// What a command says with 2 that has an answer to give: "there are changes", "something is wrong".
    pub const ANSWER: u8 = 2;
}

/// Why the program ends badly.
#[derive(Debug)]
pub struct Failure {
    /// The exit code, one of [`exit`].
    pub code: u8,
    /// What went wrong.
    pub error: anyhow::Error,
    /// What one can do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// One without a hint: its words say what to do.
    pub fn new(code: u8, error: impl Into<anyhow::Error>) -> Failure {
        Failure { code, error: error.into(), hint: None }
    }

    /// The same, with what one can do.
    pub fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::new(exit::FAILED, error)
    }
}

/// The exit code of a command that failed. Some commands answer a question with 2; for a script that asks
/// them a typo must not look like that answer, so what is wrong with the question itself is 1 there.
pub fn exit_code(code: u8, answers: bool) -> u8 {
    if answers && code == exit::WRONG { exit::FAILED } else { code }
}

/// Whether a command line asks a command that answers with 2; read without clap, which has just refused it.
pub fn is_question(arguments: impl IntoIterator<Item = String>) -> bool {
    let mut arguments = arguments.into_iter().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--log" => drop(arguments.next()),
            flag if flag.starts_with('-') => {}
            command => return ["plan", "status"].contains(&command),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_in_a_question_is_not_its_answer() {
        assert_ne!(exit_code(exit::WRONG, true), exit::ANSWER);
        assert_eq!(exit_code(exit::WRONG, false), exit::WRONG);
        for code in [exit::FAILED, exit::LISTEN, exit::KUBERNETES, exit::AZURE, exit::LEASE] {
            assert_eq!((exit_code(code, true), exit_code(code, false)), (code, code));
        }
    }

    #[test]
    fn the_command_is_found_behind_the_flags_that_stand_before_it() {
        let asks = |line: &str| is_question(line.split(' ').map(str::to_owned));
        for line in ["sluice plan --odd", "sluice --log debug plan --odd", "sluice --log=debug status --odd"]
        {
            assert!(asks(line), "{line}");
        }
        for line in ["sluice", "sluice run plan", "sluice --log plan", "sluice --log plan run"] {
            assert!(!asks(line), "{line}");
        }
    }
}
