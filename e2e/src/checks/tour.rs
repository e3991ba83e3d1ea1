//! docs/try/tour.md: a control plane, an emulator and a controller, and every command of the page in its order, with
//! its output compared.
//!
//! A command whose output is not yet what the page shows is repeated for a while, as a reader would.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use sluice_e2e::testenv::Testenv;

use super::pages::{self, Step};
use super::shell::Shell;
use super::{Programs, ROOT, spelling};
use crate::process::{Program, Signal, tail};

const PAGE: &str = "docs/try/tour.md";
/// The address of the controller's API on the page; here it takes any free port.
const API: &str = "127.0.0.1:8082";
/// How many lines of a log are told after a failure.
const TOLD: usize = 25;

/// Runs it.
pub(crate) async fn run(programs: &Programs) -> Result<String> {
    let steps = pages::steps(&pages::read(PAGE)?);
    let folder = tempfile::tempdir()?;
    let testenv = Testenv::start(&programs.testenv()?, &folder.path().join("testenv.log")).await?;
    std::os::unix::fs::symlink(std::fs::canonicalize(ROOT)?.join("docs"), folder.path().join("docs"))?;
    let shell = Shell::new(folder.path(), &[&programs.sluice()?, &programs.kubectl()?])?
        .with("KUBECONFIG", &testenv.ready.kubeconfig);
    let mut tour = Tour { folder: folder.path(), shell, api: API.to_string(), staying: Vec::new() };
    let compared = tour.play(&steps).await.map_err(|why| why.context(tour.logs()).context(PAGE))?;
    testenv.stop().await?;
    ensure!(compared > 0, "{PAGE} has no command whose output is shown");
    Ok(format!("{compared} commands print what {PAGE} shows"))
}

struct Tour<'a> {
    folder: &'a Path,
    shell: Shell,
    /// Where the controller's API is.
    api: String,
    /// The programs that stay, and their logs.
    staying: Vec<(Program, PathBuf)>,
}

impl Tour<'_> {
    async fn play(&mut self, steps: &[Step]) -> Result<usize> {
        let (mut compared, mut different) = (0, Vec::new());
        for step in steps {
            match step {
                Step::Text(command) => self.stay(command).await?,
                Step::Run { commands, shows } => {
                    if commands.contains("cleanup") {
                        // The page stops the controller with Ctrl-C before this.
                        self.stop_last().await?;
                    }
                    let commands = commands.replace(API, &self.api);
                    match shows {
                        None => drop(self.shell.run(&commands).await?),
                        Some(shows) => {
                            let shown = spelling::of_pages(shows);
                            let is_shown = |printed: &str| spelling::of_pages(printed) == shown;
                            // All differences at once, so that the page can be corrected from one run.
                            match self.shell.until(&commands, shows, is_shown).await {
                                Ok(()) => compared += 1,
                                Err(difference) => different.push(format!("{difference:#}")),
                            }
                        }
                    }
                }
            }
        }
        ensure!(different.is_empty(), "{}", different.join("\n\n"));
        Ok(compared)
    }

    /// Starts a program that stays, and waits until it serves. The control plane is there already.
    async fn stay(&mut self, command: &str) -> Result<()> {
        let Some(words) = pages::arguments_of_sluice(command.trim()) else { return Ok(()) };
        let name = words.split(' ').next().unwrap_or_default();
        let (more, serves) = match name {
            "emulator" => ("", "Ctrl-C"),
            "run" => {
                ("--set=sluice.listen.health=127.0.0.1:0 --set=sluice.listen.api=127.0.0.1:0", "listening")
            }
            _ => bail!("`{command}` is none of the programs that stay"),
        };
        let mut command = self.shell.command(&format!("exec sluice {words} {more} 2>&1"));
        let log = self.folder.join(format!("{name}.log"));
        let (program, mut talk) = Program::talk(name, &mut command, &log)?;
        let said = talk.hear_until(serves).await?;
        if name == "run" {
            let (_, rest) = said.split_once("api=\"").with_context(|| format!("it has no API:\n{said}"))?;
            self.api = rest.split('"').next().unwrap_or_default().to_string();
        }
        // Its output is read as long as it runs, so that it never waits for a reader.
        let mut kept = std::fs::File::create(&log)?;
        kept.write_all(said.as_bytes())?;
        tokio::spawn(async move {
            while let Ok(line) = talk.hear().await {
                // A log that cannot be written is only missing in the report of a failure.
                let _ = writeln!(kept, "{line}");
            }
        });
        self.staying.push((program, log));
        Ok(())
    }

    async fn stop_last(&mut self) -> Result<()> {
        let Some((last, log)) = self.staying.pop() else { return Ok(()) };
        last.signal(Signal::Interrupt).await?;
        let end = last.ended().await;
        ensure!(end.success(), "it ended with {end} after Ctrl-C:\n{}", tail(&log, TOLD));
        Ok(())
    }

    fn logs(&self) -> String {
        let ends = self
            .staying
            .iter()
            .map(|(_, log)| format!("the end of {}:\n{}\n", log.display(), tail(log, TOLD)));
        ends.collect()
    }
}
