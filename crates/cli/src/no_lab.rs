//! What the production build answers to commands that only the lab has.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What only a build with the feature `lab` understands.
const LAB: [&str; 4] = ["playground", "emulator", "bench", "--time-factor"];

/// The same error; if it is about something of the lab, with where to find that.
pub(crate) fn explained(error: clap::Error) -> clap::Error {
    let unknown = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg].into_iter().find_map(|kind| {
        match error.get(kind) {
            Some(ContextValue::String(name)) => Some(name.as_str()),
            _ => None,
        }
    });
    let is_unknown = matches!(error.kind(), ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument);
    match unknown.filter(|name| is_unknown && LAB.contains(name)) {
        None => error,
        Some(name) => clap::Error::raw(
            error.kind(),
            format!(
                "{name} is not in the production build of sluice; build it with: cargo build -p sluice\n"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    fn said(line: &str) -> String {
        let run = Command::new("run").arg(Arg::new("config").long("config"));
        let error = Command::new("sluice").subcommand(run).try_get_matches_from(line.split(' ')).unwrap_err();
        explained(error).to_string()
    }

    #[test]
    fn a_command_of_the_lab_is_answered_with_where_to_find_it() {
        for name in ["playground", "emulator", "bench"] {
            let hint = format!("error: {name} is not in the production build of sluice; build it with");
            assert!(said(&format!("sluice {name} --list")).starts_with(&hint), "{name}");
        }
        assert!(said("sluice run --time-factor 20").contains("--time-factor is not in the production build"));
    }

    #[test]
    fn other_mistakes_are_answered_as_ever() {
        assert!(said("sluice rnu").contains("unrecognized subcommand 'rnu'"));
        assert!(said("sluice run --time-facto 20").contains("unexpected argument '--time-facto'"));
    }
}
