//! Runs the official clients of Azure against the emulator process, and prints who could do what.
//!
//! The tests are in `conformance/`, in the clients' own languages, and share no code with us. Here
//! they are given their packages (once per list of versions, below `target/conformance`), the
//! binary, and a file to write their results into. What comes back is laid side by side: a check
//! is the name of a test, so the same list in every client is not a promise but a comparison.

mod install;
mod matrix;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use matrix::{Column, judge, read_results};

use crate::guard;
use crate::parts::{Part, tool};
use crate::programs::{Program, target_folder};
use crate::tree::{Tree, root};

/// One version of one official client.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    /// How it is called on the command line and in the matrix.
    pub(crate) name: &'static str,
    language: Language,
    /// The version, as its package names it.
    version: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    JavaScript,
}

/// All of them; two generations in each language, since Azure changed the contract between them.
pub(crate) const CLIENTS: [Client; 4] = [
    Client { name: "python-30.2.0", language: Language::Python, version: "30.2.0" },
    Client { name: "python-33.1.0", language: Language::Python, version: "33.1.0" },
    Client { name: "javascript-36", language: Language::JavaScript, version: "36" },
    Client { name: "javascript-39", language: Language::JavaScript, version: "39" },
];

/// The stage: all clients.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    run_clients(&CLIENTS)
}

/// Installs the packages of all clients, unless they are there.
pub(crate) fn install_clients() -> Result<(), String> {
    CLIENTS.into_iter().try_for_each(|client| install::client(client, &packages_folder()).map(|_| ()))
}

/// The task: the named clients, or all of them.
pub(crate) fn task(names: &[String]) -> ExitCode {
    let chosen: Vec<Client> = CLIENTS
        .into_iter()
        .filter(|client| names.is_empty() || names.iter().any(|name| name == client.name))
        .collect();
    let ready = Part::ensure_all(&[Part::Python, Part::Node]);
    let outcome = ready.map_err(|trouble| vec![trouble.to_string()]).and_then(|()| run_clients(&chosen));
    match outcome {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(problems) => {
            for problem in problems {
                eprintln!("{problem}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run_clients(clients: &[Client]) -> Result<String, Vec<String>> {
    let binary = Program::Lab.path()?;
    let folder = packages_folder();
    let mut columns = Vec::new();
    let mut problems = Vec::new();
    // They mostly wait for the emulator, and each starts emulators of its own, so they run side by side.
    let outcomes = std::thread::scope(|scope| {
        let run = |client: &Client| {
            let (client, folder, binary) = (*client, &folder, &binary);
            scope.spawn(move || run_client(client, folder, binary))
        };
        let running: Vec<_> = clients.iter().map(run).collect();
        running
            .into_iter()
            .map(|it| it.join().unwrap_or(Err("its thread panicked".into())))
            .collect::<Vec<_>>()
    });
    for (client, outcome) in clients.iter().zip(outcomes) {
        println!("\n-- {}", client.name);
        println!("{}", std::fs::read_to_string(log_of(*client, &folder)).unwrap_or_default().trim_end());
        match outcome {
            Ok(column) => columns.push(column),
            Err(why) => problems.push(format!("{}: {why}", client.name)),
        }
    }
    let (table, found) = judge(&columns);
    println!("\n{table}");
    problems.extend(found);
    if problems.is_empty() {
        let checks: usize = columns.iter().map(Column::passed).sum();
        Ok(format!("{checks} checks passed by {} official clients", columns.len()))
    } else {
        Err(problems)
    }
}

fn run_client(client: Client, folder: &Path, binary: &Path) -> Result<Column, String> {
    let home = install::client(client, folder)?;
    let results = folder.join(format!("{}.results", client.name));
    // What an earlier run left must not speak for this one.
    std::fs::write(&results, "")
        .map_err(|error| format!("{} cannot be written: {error}", results.display()))?;
    let mut command = match client.language {
        Language::Python => {
            let mut command = Command::new(install::python_of(&home));
            command.args(["-m", "pytest", "--quiet"]).current_dir(root().join("conformance/python"));
            // The tree stays as it is: no caches beside the tests.
            command.args(["-p", "no:cacheprovider"]).env("PYTHONDONTWRITEBYTECODE", "1");
            command
        }
        Language::JavaScript => {
            let mut command = tool("node");
            command.arg("run.mjs").current_dir(root().join("conformance/javascript"));
            command.env("CONFORMANCE_PACKAGES", &home).env("CONFORMANCE_CLIENT", client.version);
            command
        }
    };
    // A proxy of the machine would stand between the client and this very machine.
    for name in ["NO_PROXY", "no_proxy"] {
        command.env(name, "127.0.0.1,localhost");
    }
    command.env("SLUICE_BINARY", binary).env("CONFORMANCE_RESULTS", &results);
    let log = log_of(client, folder);
    let cannot = |error: std::io::Error| format!("{} cannot be written: {error}", log.display());
    let said = std::fs::File::create(&log).map_err(cannot)?;
    command.stdout(said.try_clone().map_err(cannot)?).stderr(said);
    // An emulator whose test runner was killed would stay for ever.
    let ended = guard::run_whole(&mut command, client.name)
        .map_err(|error| format!("its tests cannot be run: {error}"))?;
    let text = std::fs::read_to_string(&results).unwrap_or_default();
    let column = Column { client: client.name, results: read_results(&text) };
    // A failed check is told by the matrix; an end without one is told here.
    if !ended.success() && column.results.values().all(|result| !result.has_failed()) {
        return Err("its tests ended badly, and none of them says why; see above".to_string());
    }
    Ok(column)
}

/// What its tests print.
fn log_of(client: Client, folder: &Path) -> PathBuf {
    folder.join(format!("{}.log", client.name))
}

/// The interpreter that has the newest Python client.
pub(crate) fn newest_python() -> Result<PathBuf, String> {
    let newest = CLIENTS.into_iter().rfind(|client| client.language == Language::Python);
    let newest = newest.ok_or("there is no Python client")?;
    install::client(newest, &packages_folder()).map(|home| install::python_of(&home))
}

fn packages_folder() -> PathBuf {
    target_folder().join("conformance")
}
