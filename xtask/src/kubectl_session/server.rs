//! The API servers that the session is run against: a control plane of `testenv/`, or the playground's.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::programs::Program;
use crate::testenv;
use crate::testenv::process::{ControlPlane, field};

/// The variable that names a program to take for the playground.
const VARIABLE: &str = "SLUICE_PLAYGROUND_SERVER";

/// Which one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Real,
    Playground,
}

/// One that serves. It ends with us.
pub(super) enum Server {
    Real(ControlPlane),
    Playground { kubeconfig: PathBuf, process: Child },
}

impl Side {
    /// As people say it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Side::Real => "the real API server",
            Side::Playground => "the playground's API server",
        }
    }

    pub(super) fn start(self) -> Result<Server, Vec<String>> {
        match self {
            Side::Real => {
                ControlPlane::start(&testenv::program()?).map(Server::Real).map_err(|why| vec![why])
            }
            Side::Playground => playground(&playground_program()?).map_err(|why| vec![why]),
        }
    }
}

impl Server {
    /// The file for kubectl.
    pub(super) fn kubeconfig(&self) -> &Path {
        match self {
            Server::Real(plane) => Path::new(&plane.kubeconfig),
            Server::Playground { kubeconfig, .. } => kubeconfig,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Server::Playground { process, .. } = self {
            // As Ctrl-C does, so that it clears up.
            let asked = Command::new("kill").args(["-INT", &process.id().to_string()]).status();
            if !asked.is_ok_and(|end| end.success()) {
                let _ = process.kill();
            }
            let _ = process.wait();
        }
    }
}

fn playground_program() -> Result<PathBuf, Vec<String>> {
    if let Some(given) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let given = PathBuf::from(given);
        let missing = format!("{VARIABLE} names {}, and there is no such program", given.display());
        return if given.is_file() { Ok(given) } else { Err(vec![missing]) };
    }
    Program::Lab.path()
}

/// The playground without nodes: no scheduler and no kubelet, as with the control plane of `testenv/`.
fn playground(program: &Path) -> Result<Server, String> {
    let mut process = Command::new(program)
        .args(["playground", "--kubernetes-only", "--nodes=0", "--output=json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
    let output = process.stdout.take().ok_or("the playground has no output")?;
    let line = BufReader::new(output).lines().next().and_then(Result::ok).unwrap_or_default();
    match field(&line, "kubeconfig") {
        Some(kubeconfig) => Ok(Server::Playground { kubeconfig: kubeconfig.into(), process }),
        None => {
            let _ = process.kill();
            let _ = process.wait();
            Err(format!("the playground did not start; it said {line:?}"))
        }
    }
}
