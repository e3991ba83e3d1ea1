//! The programs that stages start: built in the dev profile and put where later builds do not replace them.
//!
//! The runner has a stage that builds all of them at once, before the stages that start them; a task that is run
//! alone builds what it needs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::guard;
use crate::stage::cargo_quietly;
use crate::tree::{Tree, root};

/// A program of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Program {
    /// `sluice` as it ships: without the lab.
    Production,
    /// `sluice` with playground, emulator, bench and time factor.
    Lab,
    /// The player of the end-to-end stories.
    EndToEnd,
    /// The simulator's Kubernetes against a real one.
    Honest,
    /// The pages for the browser test.
    Dashboard,
}

impl Program {
    const ALL: [Program; 5] =
        [Program::Production, Program::Lab, Program::EndToEnd, Program::Honest, Program::Dashboard];

    /// The program, built if the runner has not done it before.
    pub(crate) fn path(self) -> Result<PathBuf, Vec<String>> {
        if std::env::var_os(guard::MARK).is_none() {
            self.build()?;
        }
        Ok(self.place())
    }

    /// Where it is once it is built. Each has a folder of its own, since two of them have the same name.
    fn place(self) -> PathBuf {
        let folder = format!("{self:?}").to_lowercase();
        let (_, built) = self.recipe();
        let name = built.rsplit('/').next().unwrap_or(built);
        target_folder().join("programs").join(folder).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    /// The words after `cargo build`, and where below the profile's folder the program then is.
    const fn recipe(self) -> (&'static [&'static str], &'static str) {
        match self {
            Program::Production => (&["-p", "sluice", "--no-default-features"], "sluice"),
            // Not `-p`: the features of the whole workspace are those of the tests, so nothing is compiled twice.
            Program::Lab => (&["--bin", "sluice"], "sluice"),
            Program::EndToEnd => (&["--bin", "sluice-e2e"], "sluice-e2e"),
            Program::Honest => (&["--bin", "sluice-honest"], "sluice-honest"),
            Program::Dashboard => {
                (&["-p", "sluice-controller", "--example", "dashboard"], "examples/dashboard")
            }
        }
    }

    fn build(self) -> Result<(), Vec<String>> {
        let (words, built) = self.recipe();
        cargo_quietly(&[&["build", "--quiet"], words].concat())?;
        let built = target_folder().join("debug").join(format!("{built}{}", std::env::consts::EXE_SUFFIX));
        let place = self.place();
        let cannot = |error: std::io::Error| vec![format!("{} cannot be written: {error}", place.display())];
        std::fs::create_dir_all(place.parent().unwrap_or(&place)).map_err(cannot)?;
        // A program that still runs cannot be written over, but it can be replaced.
        let next = place.with_extension("next");
        std::fs::copy(&built, &next).map_err(cannot)?;
        std::fs::rename(&next, &place).map_err(cannot)
    }
}

/// The words after `cargo` that run the fault stories, with planted bugs too. Without `-p`, so that the
/// libraries keep the features of every other build; no program of the product is built with them.
pub(crate) const FAULTS: &[&str] = &[
    "test",
    "--quiet",
    "--features",
    "sluice-bench/seeded-bugs",
    "--test",
    "faults",
    "--test",
    "table_of_calls",
];

/// The stage: builds all of them, and the fault stories, which must not compile while they measure.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    Program::ALL.into_iter().try_for_each(Program::build)?;
    has_no_lab(&Program::Production.place())?;
    cargo_quietly(&[FAULTS, &["--no-run"]].concat())?;
    Ok(format!("{} programs are built", Program::ALL.len()))
}

/// The production build has none of the lab's commands and flags.
fn has_no_lab(program: &Path) -> Result<(), Vec<String>> {
    let lab: [&[&str]; 4] = [&["playground"], &["emulator"], &["bench"], &["run", "--time-factor", "2"]];
    lab.into_iter().try_for_each(|words| {
        let output = Command::new(program).args(words).stdin(Stdio::null()).output();
        let output =
            output.map_err(|error| vec![format!("{} cannot be started: {error}", program.display())])?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() && said.contains("is not in the production build") {
            return Ok(());
        }
        Err(vec![format!("the production build accepts `sluice {}`, or says: {said}", words.join(" "))])
    })
}

/// Where cargo puts what it builds.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}
