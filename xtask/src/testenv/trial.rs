//! The stage: a control plane starts, answers kubectl, survives a restart and a freeze of its API server,
//! and leaves nothing behind.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::process::ControlPlane;
use super::{go, gofmt, program};
use crate::kubectl;
use crate::tree::Tree;

/// What the trial makes and removes.
const NAMESPACE: &str = "testenv-trial";

/// Those that have the folder in their arguments: three parts and the guard.
const PROCESSES: usize = 4;

/// Runs it.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    sources().map_err(|why| vec![why])?;
    let (program, kubectl) = (program()?, kubectl::program()?);
    trial(&program, &kubectl).map_err(|why| vec![why])
}

/// What Go's own tools say of the code that is ours alone; that of Kubernetes takes them minutes.
fn sources() -> Result<(), String> {
    match gofmt(&["-l", "."])? {
        files if files.is_empty() => {}
        files => return Err(format!("testenv: gofmt would write these otherwise:\n{files}")),
    }
    go(&["vet", "./internal/..."])?;
    go(&["test", "./internal/..."])?;
    Ok(())
}

fn trial(program: &Path, kubectl: &Path) -> Result<String, String> {
    let began = Instant::now();
    let mut plane = ControlPlane::start(program)?;
    let started = began.elapsed();
    let kubectl =
        Kubectl { program: kubectl, kubeconfig: &plane.kubeconfig.clone(), dir: &plane.dir.clone() };
    kubectl.shows(&["version"], &format!("Server Version: {}", plane.version))?;
    kubectl.run(&["create", "namespace", NAMESPACE])?;
    let token = kubectl.run(&["--namespace", NAMESPACE, "create", "token", "default"])?;
    let user = format!("system:serviceaccount:{NAMESPACE}:default");
    kubectl.shows(&["auth", "whoami", "--token", token.trim()], &user)?;

    plane.must("restart apiserver")?;
    kubectl.shows(&["get", "namespace", NAMESPACE], NAMESPACE)?;

    plane.must("pause apiserver")?;
    if kubectl.run(&["get", "namespaces", "--request-timeout=1s"]).is_ok() {
        return Err("a paused API server has answered".to_string());
    }
    plane.must("resume apiserver")?;
    // That it goes shows that its controller works again too.
    kubectl.run(&["delete", "namespace", NAMESPACE, "--timeout=2m"])?;

    let running = processes_of(&plane.dir)?;
    if running.len() != PROCESSES {
        return Err(format!("{} processes were expected to run, and these do: {running:#?}", PROCESSES));
    }
    plane.stop()?;
    let left = processes_of(&plane.dir)?;
    if !left.is_empty() {
        return Err(format!("the control plane left processes behind: {left:#?}"));
    }
    if Path::new(&plane.dir).exists() {
        return Err(format!("the control plane left {} behind", plane.dir));
    }
    Ok(format!(
        "Kubernetes {} was ready after {:.1} s; nothing is left of it",
        plane.version,
        started.as_secs_f64()
    ))
}

/// kubectl, as an administrator of that control plane and nobody else.
struct Kubectl<'a> {
    program: &'a Path,
    kubeconfig: &'a str,
    dir: &'a str,
}

impl Kubectl<'_> {
    fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(self.program);
        command.args(["--kubeconfig", self.kubeconfig, "--cache-dir", &format!("{}/kubectl", self.dir)]);
        let output = command.args(arguments).stdin(Stdio::null()).output();
        // Not its arguments: a token may be among them.
        let what = format!("kubectl {}", arguments.first().copied().unwrap_or_default());
        let output = output.map_err(|error| format!("{what} cannot be started: {error}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!(
                "{what} ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            ))
        }
    }

    fn shows(&self, arguments: &[&str], wanted: &str) -> Result<(), String> {
        let shown = self.run(arguments)?;
        if shown.contains(wanted) {
            Ok(())
        } else {
            Err(format!("kubectl {} does not show {wanted:?} but\n{shown}", arguments[0]))
        }
    }
}

/// The command lines of all processes that were told about a folder.
fn processes_of(dir: &str) -> Result<Vec<String>, String> {
    let lines = if Path::new("/proc/self/cmdline").exists() { lines_of_proc()? } else { lines_of_ps()? };
    Ok(lines.into_iter().filter(|line| line.contains(dir)).collect())
}

fn lines_of_proc() -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    // A process may end while we look; then it has no line any more, as one that is dead and not yet reaped.
    let lines = entries.flatten().filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    Ok(lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).collect())
}

fn lines_of_ps() -> Result<Vec<String>, String> {
    let output = Command::new("ps").args(["-axww", "-o", "args"]).output();
    let output = output.map_err(|error| format!("ps cannot be started: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_a_word_of_its_command_line() {
        let here = std::env::current_exe().unwrap();
        let here = here.file_name().unwrap().to_string_lossy();
        assert!(!processes_of(&here).unwrap().is_empty());
        assert!(processes_of("no-process-has-this-word\0").unwrap().is_empty());
    }
}
