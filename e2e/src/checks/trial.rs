//! A control plane of `testenv/` by itself: it starts, answers kubectl, survives a restart and a freeze of its API
//! server, and leaves nothing behind. Or it is there for a person.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use sluice_e2e::testenv::{Ready, Testenv};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::Instant;

use super::{Programs, shell};

/// What the trial makes and removes.
const NAMESPACE: &str = "testenv-trial";

/// Those that have the folder in their arguments: three parts and the guard.
const PROCESSES: usize = 4;

/// Runs it.
pub(crate) async fn run(programs: &Programs) -> Result<String> {
    let (began, folder) = (Instant::now(), tempfile::tempdir()?);
    let testenv = Testenv::start(&programs.testenv()?, &folder.path().join("testenv.log")).await?;
    let started = began.elapsed();
    let Ready { dir, version, kubeconfig, .. } = &testenv.ready;
    let kubectl = Kubectl { program: programs.kubectl()?, kubeconfig, cache: folder.path().join("kubectl") };
    kubectl.shows(&["version"], &format!("Server Version: {version}")).await?;
    kubectl.run(&["create", "namespace", NAMESPACE]).await?;
    let token = kubectl.run(&["--namespace", NAMESPACE, "create", "token", "default"]).await?;
    let user = format!("system:serviceaccount:{NAMESPACE}:default");
    kubectl.shows(&["auth", "whoami", "--token", token.trim()], &user).await?;

    testenv.tell("restart apiserver").await?;
    kubectl.shows(&["get", "namespace", NAMESPACE], NAMESPACE).await?;

    testenv.tell("pause apiserver").await?;
    let answered = kubectl.run(&["get", "namespaces", "--request-timeout=1s"]).await.is_ok();
    ensure!(!answered, "a paused API server has answered");
    testenv.tell("resume apiserver").await?;
    // The deletion completes only if the namespace controller works again.
    kubectl.run(&["delete", "namespace", NAMESPACE, "--timeout=2m"]).await?;

    let running = processes_of(dir).await?;
    let count = running.len();
    ensure!(count == PROCESSES, "{PROCESSES} processes were expected to run, and these do: {running:#?}");
    testenv.stop().await?;
    let left = processes_of(dir).await?;
    ensure!(left.is_empty(), "the control plane left processes behind: {left:#?}");
    ensure!(!dir.exists(), "the control plane left {} behind", dir.display());
    Ok(format!("Kubernetes {version} was ready after {:.1} s; nothing is left of it", started.as_secs_f64()))
}

/// Starts one for a person, until Ctrl-C or the end of the terminal's input.
pub(crate) async fn up(programs: &Programs) -> Result<String> {
    let (folder, kubectl) = (tempfile::tempdir()?, programs.kubectl()?);
    let testenv = Testenv::start(&programs.testenv()?, &folder.path().join("testenv.log")).await?;
    println!("{}", greeting(&testenv.ready, &kubectl));
    tokio::select! {
        done = typed(&testenv) => done?,
        _ = tokio::signal::ctrl_c() => {}
    }
    testenv.stop().await?;
    Ok("stopped".to_string())
}

/// What is typed goes to the control plane, and what it answers is shown. Where nobody can type, the end of the
/// input says nothing.
async fn typed(testenv: &Testenv) -> Result<()> {
    if !std::io::stdin().is_terminal() {
        return std::future::pending().await;
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        if !line.trim().is_empty() {
            println!("{}", testenv.ask(&line).await?);
        }
    }
    Ok(())
}

fn greeting(ready: &Ready, kubectl: &Path) -> String {
    let (kubectl, config) = (kubectl.display(), ready.kubeconfig.display());
    format!(
        "Kubernetes {} is at {}\n\
         its kubeconfig is {config}\n\
         its logs are in {}\n\n\
         try:\n  \
         export KUBECONFIG={config}\n  \
         {kubectl} get namespaces\n  \
         {kubectl} create deployment web --image=example/web --replicas=2\n  \
         {kubectl} get pods\n\n\
         There is no kubelet and no scheduler, so those pods stay pending.\n\
         Type `restart apiserver`, `pause apiserver` or `resume apiserver`; Ctrl-C stops everything.",
        ready.version,
        ready.url,
        ready.dir.display()
    )
}

/// kubectl with the administrator's kubeconfig.
struct Kubectl<'a> {
    program: PathBuf,
    kubeconfig: &'a Path,
    cache: PathBuf,
}

impl Kubectl<'_> {
    async fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(self.kubeconfig).arg("--cache-dir").arg(&self.cache);
        // Not all of its arguments: a token may be among them.
        shell::output(command.args(arguments)).await.with_context(|| format!("kubectl {}", arguments[0]))
    }

    async fn shows(&self, arguments: &[&str], wanted: &str) -> Result<()> {
        let shown = self.run(arguments).await?;
        ensure!(shown.contains(wanted), "kubectl {} does not show {wanted:?} but\n{shown}", arguments[0]);
        Ok(())
    }
}

/// The command lines of all processes that were told about a folder.
async fn processes_of(dir: &Path) -> Result<Vec<String>> {
    let lines: Vec<String> = if Path::new("/proc/self/cmdline").exists() {
        // A process may end while we look; then it has no line any more, as one that is dead and not yet reaped.
        let lines = std::fs::read_dir("/proc")?.flatten();
        let lines = lines.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).collect()
    } else {
        let all = shell::output(Command::new("ps").args(["-axww", "-o", "args"])).await.context("ps")?;
        all.lines().map(str::to_string).collect()
    };
    let dir = dir.to_string_lossy();
    Ok(lines.into_iter().filter(|line| line.contains(&*dir)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_is_found_by_a_word_of_its_command_line() {
        let here = std::env::current_exe().unwrap();
        assert!(!processes_of(Path::new(here.file_name().unwrap())).await.unwrap().is_empty());
        assert!(processes_of(Path::new("no-process-has-this-word\u{1}")).await.unwrap().is_empty());
    }
}
