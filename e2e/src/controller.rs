//! The controller under test: the shipped binary as a process, with somebody who restarts it like a kubelet.
//!
//! It runs with a configuration file and the kubeconfig of its own account, and nothing else. When it
//! ends by itself because it has lost its lease or found no API server, it is started again, which is
//! counted; any other end that nobody asked for is kept as the story's failure.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client};
use tokio::process::Command;

use crate::process::{Program, Signal, tail};

/// The exit code that says "the lease was lost; start me again".
const LEASE_LOST: i32 = 7;
/// The exit code of a start without an API server: a kubelet tries again.
const NO_KUBERNETES: i32 = 5;
/// How often a kubelet is patient with the same controller.
const RESTARTS_MAX: usize = 40;
/// How long a kubelet waits between two tries.
const BACKOFF: Duration = Duration::from_millis(500);
/// How long it may take to end when it is asked to: its grace period, and some for a slow machine.
const GRACE: Duration = Duration::from_secs(60);

/// SIGTERM's number.
const SIGTERM: i32 = 15;

/// One replica.
#[derive(Debug)]
pub(crate) struct Controller {
    /// `controller`, or `replica-2`.
    pub(crate) name: String,
    sluice: PathBuf,
    arguments: Vec<String>,
    /// How many files and sockets it may have open.
    descriptors_max: Option<u32>,
    /// Where its output goes.
    pub(crate) log: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    program: Option<Arc<Program>>,
    started: Option<Timestamp>,
    /// How long its log was then.
    log_before: usize,
    starts: usize,
    kills: usize,
    leases_lost: usize,
    restarts: usize,
    /// It ended by itself and is about to be started again.
    comes_back: bool,
    crashed: Option<String>,
}

/// How often what happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) starts: usize,
    pub(crate) kills: usize,
    pub(crate) leases_lost: usize,
    pub(crate) restarts: usize,
}

impl Controller {
    /// One that does not run yet.
    pub(crate) fn new(
        name: &str,
        sluice: &Path,
        arguments: Vec<String>,
        descriptors_max: Option<u32>,
        folder: &Path,
    ) -> Arc<Controller> {
        Arc::new(Controller {
            name: name.to_string(),
            sluice: sluice.to_path_buf(),
            arguments,
            descriptors_max,
            log: folder.join(format!("{name}.log")),
            inner: Mutex::default(),
        })
    }

    /// Starts it, unless it runs.
    pub(crate) fn start(self: &Arc<Self>) -> Result<()> {
        let mut inner = self.inner();
        if inner.program.is_some() {
            return Ok(());
        }
        let mut command = match self.descriptors_max {
            None => Command::new(&self.sluice),
            // Both limits, soft and hard; the shell becomes the controller, so the process id is its own.
            Some(max) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("ulimit -n {max} && exec \"$0\" \"$@\"")]).arg(&self.sluice);
                shell
            }
        };
        command.args(&self.arguments).env("NO_COLOR", "1").env("POD_NAME", &self.name);
        let log_before = std::fs::metadata(&self.log).map_or(0, |it| usize::try_from(it.len()).unwrap_or(0));
        let program = Arc::new(Program::start(&self.name, &mut command, &self.log)?);
        inner.program = Some(Arc::clone(&program));
        inner.comes_back = false;
        inner.started = Some(Timestamp::now());
        inner.log_before = log_before;
        inner.starts += 1;
        drop(inner);
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let status = program.ended().await;
            this.ended_by_itself(&program, status);
        });
        Ok(())
    }

    /// What a kubelet does when a container ends.
    fn ended_by_itself(self: &Arc<Self>, program: &Arc<Program>, status: ExitStatus) {
        let mut inner = self.inner();
        // Whoever ends it on purpose has taken it away first.
        if !inner.program.as_ref().is_some_and(|it| Arc::ptr_eq(it, program)) {
            return;
        }
        inner.program = None;
        let is_usual = matches!(status.code(), Some(LEASE_LOST | NO_KUBERNETES));
        if is_usual && inner.restarts < RESTARTS_MAX {
            inner.restarts += 1;
            inner.leases_lost += usize::from(status.code() == Some(LEASE_LOST));
            inner.comes_back = true;
            let this = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(BACKOFF).await;
                // Whoever stopped or killed it meanwhile decides when it comes back.
                if !std::mem::take(&mut this.inner().comes_back) {
                    return;
                }
                if let Err(problem) = this.start() {
                    this.inner().crashed = Some(format!("{problem:#}"));
                }
            });
            return;
        }
        inner.crashed =
            Some(format!("{} ended by itself with {status}:\n{}", self.name, tail(&self.log, 25)));
    }

    /// `kill -9`.
    pub(crate) async fn kill(&self) -> Result<()> {
        let program = {
            let mut inner = self.inner();
            inner.comes_back = false;
            inner.kills += usize::from(inner.program.is_some());
            inner.program.take()
        };
        match program {
            Some(program) => program.kill().await,
            None => Ok(()),
        }
    }

    /// SIGTERM; it must end with success within its grace period.
    pub(crate) async fn stop(&self) -> Result<()> {
        // A process that has just been started does not listen to signals yet, and SIGTERM simply ends it. It
        // listens before it says its first word.
        let is_newborn = self.said().is_some_and(|it| it.is_empty());
        let program = {
            let mut inner = self.inner();
            inner.comes_back = false;
            inner.program.take()
        };
        let Some(program) = program else { return Ok(()) };
        program.signal(Signal::Terminate).await?;
        let Ok(status) = tokio::time::timeout(GRACE, program.ended()).await else {
            program.kill().await?;
            bail!("{} did not end within {GRACE:?} of SIGTERM:\n{}", self.name, tail(&self.log, 25));
        };
        let is_well = status.success() || is_newborn && status.signal() == Some(SIGTERM);
        if !is_well {
            bail!("{} ended with {status} after SIGTERM:\n{}", self.name, tail(&self.log, 25));
        }
        Ok(())
    }

    /// Freezes it, or lets it go on.
    pub(crate) async fn signal(&self, signal: Signal) -> Result<()> {
        let program = self.inner().program.clone();
        program.with_context(|| format!("{} does not run", self.name))?.signal(signal).await
    }

    /// Whether it runs, or is about to be started again.
    pub(crate) fn is_up(&self) -> bool {
        let inner = self.inner();
        inner.program.is_some() || inner.comes_back
    }

    /// What the process that runs now has logged; `None` if none runs.
    pub(crate) fn said(&self) -> Option<String> {
        let before = {
            let inner = self.inner();
            inner.program.as_ref()?;
            inner.log_before
        };
        let all = std::fs::read(&self.log).ok()?;
        Some(String::from_utf8_lossy(all.get(before..)?).into_owned())
    }

    /// How many files and sockets it has open; `None` if it does not run.
    pub(crate) fn descriptors(&self) -> Option<usize> {
        let id = self.inner().program.as_ref()?.id();
        Some(std::fs::read_dir(format!("/proc/{id}/fd")).ok()?.count())
    }

    /// The most memory that its process ever had, in KiB; `None` if it does not run.
    pub(crate) fn memory_peak_kib(&self) -> Result<Option<u64>> {
        let Some(id) = self.inner().program.as_ref().map(|it| it.id()) else { return Ok(None) };
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|it| it.trim().strip_suffix("kB")?.trim().parse().ok());
        Ok(Some(kib.with_context(|| format!("the status of {} names no VmHWM", self.name))?))
    }

    /// The end that nobody asked for, if there was one.
    pub(crate) fn crashed(&self) -> Option<String> {
        self.inner().crashed.clone()
    }

    /// How often what happened.
    pub(crate) fn counts(&self) -> Counts {
        let inner = self.inner();
        Counts {
            starts: inner.starts,
            kills: inner.kills,
            leases_lost: inner.leases_lost,
            restarts: inner.restarts,
        }
    }

    /// Whether the lease was taken or renewed since this process was started: with one replica, by it.
    pub(crate) async fn holds_the_lease(&self, client: &Client, namespace: &str) -> Result<bool> {
        let started = {
            let inner = self.inner();
            inner.started.filter(|_| inner.program.is_some())
        };
        let Some(started) = started else { return Ok(false) };
        let leases = Api::<Lease>::namespaced(client.clone(), namespace).list(&Default::default()).await?;
        Ok(leases.into_iter().filter_map(|lease| lease.spec).any(|spec| {
            spec.holder_identity.is_some_and(|holder| !holder.is_empty())
                && spec.renew_time.is_some_and(|time| time.0 > started)
        }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics with the controller in hand")
    }
}
