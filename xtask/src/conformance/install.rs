//! Gives every client its packages, once per list of versions.
//!
//! Versions are fixed in the tree, the ones that packages bring along included; where they come from
//! is the machine's own configuration of pip and npm. A folder is used again as long as the
//! list that it was made from is the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Client, Language};
use crate::tree::root;

/// The file in a folder of packages that says what the folder was made from. Written last.
const MADE_FROM: &str = "made-from.txt";

/// The oldest Python and Node that the pinned packages run on.
const PYTHON_MIN: (u32, u32) = (3, 11);
const NODE_MIN: u32 = 20;

/// The packages of Debian that bring the tools.
const DEBIAN: [&str; 4] = ["python3", "python3-venv", "nodejs", "npm"];

/// Makes sure of python3, node and npm, with apt-get's help if need be.
pub(crate) fn ensure_tools() -> Result<(), String> {
    if missing().is_empty() {
        return Ok(());
    }
    println!("{}; asking apt-get", missing().join("; "));
    let apt =
        |arguments: &[&str]| Command::new("apt-get").args(arguments).status().is_ok_and(|end| end.success());
    let _ = apt(&["update", "-q"]) && apt(&[&["install", "-q", "-y"][..], &DEBIAN].concat());
    match missing() {
        still if still.is_empty() => Ok(()),
        still => Err(format!("{}: install them with your system's packages", still.join("; "))),
    }
}

/// What is not there, or too old, in words.
fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    let (major, minor) = PYTHON_MIN;
    let probe = format!("import ensurepip, sys, venv; sys.exit(sys.version_info < ({major}, {minor}))");
    if !works("python3", &["-c", &probe]) {
        missing.push(format!("python3 of at least {major}.{minor} with venv is missing"));
    }
    let probe = format!("process.exit(parseInt(process.versions.node) < {NODE_MIN} ? 1 : 0)");
    if !works("node", &["-e", &probe]) {
        missing.push(format!("node of at least {NODE_MIN} is missing"));
    }
    if !works("npm", &["--version"]) {
        missing.push("npm is missing".to_string());
    }
    missing
}

fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|end| end.success())
}

/// Installs what a client needs and gives back the folder that has it.
pub(super) fn client(client: Client, folder: &Path) -> Result<PathBuf, String> {
    match client.language {
        Language::Python => python(client, folder),
        Language::JavaScript => javascript(folder),
    }
}

/// The interpreter of a virtual environment.
pub(super) fn python_of(home: &Path) -> PathBuf {
    home.join("bin").join("python3")
}

fn python(client: Client, folder: &Path) -> Result<PathBuf, String> {
    let home = folder.join(client.name);
    let lists = root().join("conformance/python/requirements");
    let list = lists.join(format!("{}.txt", client.version));
    let wanted = [version_of("python3")?, read(&lists.join("common.txt"))?, read(&list)?].concat();
    if is_made_from(&home, &wanted) && works_at(&python_of(&home)) {
        return Ok(home);
    }
    println!("installing the packages of {}", client.name);
    clear(&home)?;
    run(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    let pip = || {
        let mut pip = Command::new(python_of(&home));
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    run(pip().args(["install", "--no-deps", "--requirement"]).arg(&list))?;
    run(pip().arg("check"))?;
    finish(&home, &wanted)
}

fn javascript(folder: &Path) -> Result<PathBuf, String> {
    const FILES: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];
    let home = folder.join("javascript");
    let source = root().join("conformance/javascript");
    let mut wanted = version_of("node")?;
    for name in FILES {
        wanted += &read(&source.join(name))?;
    }
    if is_made_from(&home, &wanted) {
        return Ok(home);
    }
    println!("installing the packages of the JavaScript clients");
    clear(&home)?;
    fs::create_dir_all(&home).map_err(|error| format!("{} cannot be made: {error}", home.display()))?;
    for name in FILES {
        fs::copy(source.join(name), home.join(name)).map_err(|error| format!("{name}: {error}"))?;
    }
    // Not the audit, nor scripts of strangers: neither has to do with the tests.
    let arguments = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    run(Command::new("npm").args(arguments).current_dir(&home))?;
    finish(&home, &wanted)
}

fn is_made_from(home: &Path, wanted: &str) -> bool {
    fs::read_to_string(home.join(MADE_FROM)).is_ok_and(|text| text == wanted)
}

/// Whether an environment still has its interpreter: it is a link into the system.
fn works_at(python: &Path) -> bool {
    works(&python.to_string_lossy(), &["-c", "import pytest"])
}

fn finish(home: &Path, wanted: &str) -> Result<PathBuf, String> {
    let path = home.join(MADE_FROM);
    fs::write(&path, wanted).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    Ok(home.to_path_buf())
}

fn clear(home: &Path) -> Result<(), String> {
    match fs::remove_dir_all(home) {
        Err(error) if home.exists() => Err(format!("{} cannot be removed: {error}", home.display())),
        _ => Ok(()),
    }
}

fn version_of(program: &str) -> Result<String, String> {
    let output = Command::new(program).arg("--version").output();
    let output = output.map_err(|error| format!("`{program} --version` cannot be run: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_os_string();
    let first = command.get_args().map(|word| word.to_string_lossy().into_owned()).take(4);
    let line = format!("{} {}", program.to_string_lossy(), first.collect::<Vec<_>>().join(" "));
    match command.stdin(Stdio::null()).status() {
        Ok(end) if end.success() => Ok(()),
        Ok(end) => Err(format!("`{line} …` ended with {end}")),
        Err(error) => Err(format!("`{line} …` cannot be started: {error}")),
    }
}
