//! Folders of other people's packages, made once per list of versions.
//!
//! Versions are fixed in the tree; where the packages come from is the machine's own configuration of pip
//! and npm. A folder is used again as long as the list that it was made from is the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::parts::tool;

/// The file in a folder of packages that says what the folder was made from. Written last.
const MADE_FROM: &str = "made-from.txt";

/// Installs the packages that a folder of the tree locks into a home outside of it, unless they are there.
pub(crate) fn ensure_node(purpose: &str, source: &Path, home: &Path) -> Result<(), String> {
    const FILES: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];
    let mut wanted = version_of("node")?;
    for name in FILES {
        let path = source.join(name);
        let text = fs::read_to_string(&path);
        wanted += &text.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    }
    if is_made_from(home, &wanted) {
        return Ok(());
    }
    println!("installing the packages of {purpose}");
    clear(home)?;
    fs::create_dir_all(home).map_err(|error| format!("{} cannot be made: {error}", home.display()))?;
    for name in FILES {
        fs::copy(source.join(name), home.join(name)).map_err(|error| format!("{name}: {error}"))?;
    }
    // Not the audit, nor scripts of strangers: neither has to do with the tests.
    let arguments = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    run(tool("npm").args(arguments).current_dir(home))?;
    finish(home, &wanted)
}

/// Whether a program runs and ends well.
pub(crate) fn works(program: &Path, arguments: &[&str]) -> bool {
    succeeds(Command::new(program).args(arguments))
}

/// Whether a command ends well; what it prints is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|end| end.success())
}

/// A virtual environment of Python.
pub(crate) struct Environment<'a> {
    /// What it is for, in words.
    pub(crate) purpose: &'a str,
    /// Its folder.
    pub(crate) home: &'a Path,
    /// What to install, as pip's arguments.
    pub(crate) install: &'a [&'a str],
    /// Everything that decides what is installed, so that a change makes it anew.
    pub(crate) list: &'a str,
    /// A program of its, with arguments, that shows that it still works: it has links into the system.
    pub(crate) probe: &'a [&'a str],
}

impl Environment<'_> {
    /// Makes it, unless it is there.
    pub(crate) fn ensure(&self) -> Result<(), String> {
        let wanted = [&version_of("python3")?, self.list].concat();
        let (program, arguments) = self.probe.split_first().ok_or("an environment needs a probe")?;
        let works_still = || works(&program_of(self.home, program), arguments);
        if is_made_from(self.home, &wanted) && works_still() {
            return Ok(());
        }
        eprintln!("installing the packages of {}", self.purpose);
        clear(self.home)?;
        run(Command::new("python3").args(["-m", "venv"]).arg(self.home))?;
        let pip = || {
            let mut pip = Command::new(program_of(self.home, "python3"));
            pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
            pip
        };
        run(pip().args(["install", "--no-deps"]).args(self.install))?;
        run(pip().arg("check"))?;
        if !works_still() {
            return Err(format!("{program} of {} is installed and does not run", self.purpose));
        }
        finish(self.home, &wanted)
    }
}

/// A program of a virtual environment.
pub(crate) fn program_of(home: &Path, name: &str) -> PathBuf {
    home.join("bin").join(name)
}

/// Whether a folder is finished and of this list.
pub(crate) fn is_made_from(home: &Path, wanted: &str) -> bool {
    fs::read_to_string(home.join(MADE_FROM)).is_ok_and(|text| text == wanted)
}

/// Says that a folder is finished.
pub(crate) fn finish(home: &Path, wanted: &str) -> Result<(), String> {
    let path = home.join(MADE_FROM);
    fs::write(&path, wanted).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// Removes what an earlier list left.
pub(crate) fn clear(home: &Path) -> Result<(), String> {
    match fs::remove_dir_all(home) {
        Err(error) if home.exists() => Err(format!("{} cannot be removed: {error}", home.display())),
        _ => Ok(()),
    }
}

/// What a program says to `--version`.
pub(crate) fn version_of(program: &str) -> Result<String, String> {
    let output = tool(program).arg("--version").output();
    let output = output.map_err(|error| format!("`{program} --version` cannot be run: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command that must end well.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_os_string();
    let first = command.get_args().map(|word| word.to_string_lossy().into_owned()).take(4);
    let line = format!("{} {}", program.to_string_lossy(), first.collect::<Vec<_>>().join(" "));
    // Whoever asks for a program reads its path from our own output: what is told on the way goes elsewhere.
    match command.stdin(Stdio::null()).stdout(std::io::stderr()).status() {
        Ok(end) if end.success() => Ok(()),
        Ok(end) => Err(format!("`{line} …` ended with {end}")),
        Err(error) => Err(format!("`{line} …` cannot be started: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_lacks_is_said_with_its_first_words() {
        let why = run(Command::new("sluice-no-such-program").args(["a", "b"])).unwrap_err();
        assert!(why.starts_with("`sluice-no-such-program a b …` cannot be started"), "{why}");
    }
}
