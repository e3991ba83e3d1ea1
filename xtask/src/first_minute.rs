//! The README's first minute, as a reader has it: the playground is started by the shown command, and what the
//! page types in a second shell is typed there, with the kubectl that users have, until it prints what is shown.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::conformance::{binary, target_folder};
use crate::stage::cargo_quietly;
use crate::tidy::readme;
use crate::tour::{self, Step};
use crate::tree::Tree;
use crate::{kubectl, packages};

/// How long a command is repeated until it prints what the page shows.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one waits before it is repeated.
const PAUSE: Duration = Duration::from_millis(250);
/// The line that says what the reader's shell needs.
const EXPORT: &str = "export ";
/// The last word of the greeting.
const LAST: &str = "Stop with Ctrl-C";

/// The stage.
pub(crate) fn run(tree: &Tree) -> Result<String, Vec<String>> {
    let steps = beside(tree.text("README.md").unwrap_or(""));
    if !steps.iter().any(|step| step.shows.is_some()) {
        return Err(vec!["README.md: nothing is typed beside the playground whose output is shown".into()]);
    }
    cargo_quietly(&["build", "--quiet", "--release", "-p", "sluice"])?;
    let kubectl = kubectl::program()?;
    let mut playground = Playground::start(&kubectl).map_err(|why| vec![why])?;
    let typed: Result<Vec<&str>, String> =
        steps.iter().map(|step| playground.until_as_shown(step).map(|()| step.commands.as_str())).collect();
    let stopped = playground.stop();
    let typed = typed.map_err(|why| vec![why])?;
    stopped.map_err(|why| vec![why])?;
    Ok(typed.join("\n"))
}

/// What the page types in the second shell.
fn beside(page: &str) -> Vec<Step> {
    let is_beside = |step: &Step| step.commands.lines().all(readme::is_beside_the_playground);
    tour::steps(page).into_iter().filter(is_beside).collect()
}

/// The playground, and a shell beside it.
struct Playground {
    process: Child,
    /// Assignments of the reader's shell.
    exports: String,
    path: String,
    folder: PathBuf,
}

impl Playground {
    fn start(kubectl: &Path) -> Result<Playground, String> {
        let (_, arguments) = readme::PLAYGROUND.split_once(" -- ").unwrap_or_default();
        let mut process = Command::new(binary())
            .args(arguments.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the playground cannot be started: {error}"))?;
        let output = process.stdout.take().ok_or("the playground has no output")?;
        let mut greeting = String::new();
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|error| format!("the playground cannot be read: {error}"))?;
            greeting.push_str(&line);
            greeting.push('\n');
            if line.contains(LAST) {
                break;
            }
        }
        let exports =
            greeting.lines().find_map(|line| line.split_once(EXPORT)).map(|(_, rest)| rest.to_string());
        let Some(exports) = exports.filter(|_| greeting.contains(LAST)) else {
            let _ = process.kill();
            return Err(format!(
                "the playground does not say what to export and how to stop it:\n{greeting}"
            ));
        };
        let kubeconfig = exports.split_whitespace().find_map(|it| it.strip_prefix("KUBECONFIG="));
        let folder = kubeconfig.and_then(|it| Path::new(it).parent()).map(Path::to_owned).unwrap_or_default();
        let tools =
            [target_folder().join("release"), kubectl.parent().map(Path::to_owned).unwrap_or_default()];
        let before = std::env::var("PATH").unwrap_or_default();
        let path = tools.iter().map(|it| it.display().to_string()).chain([before]);
        Ok(Playground { process, exports, path: path.collect::<Vec<_>>().join(":"), folder })
    }

    /// Types the commands, again and again until they print what is shown; once if nothing is.
    fn until_as_shown(&self, step: &Step) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let printed = self.typed(&step.commands)?;
            let Some(shows) = &step.shows else { return Ok(()) };
            if tour::plain(&printed) == tour::plain(shows) {
                return Ok(());
            }
            if Instant::now() >= end {
                let commands = &step.commands;
                return Err(format!(
                    "README.md:\n$ {commands}\nprints\n{printed}\nand the page shows\n{shows}"
                ));
            }
            // The other side is another program's screen: it can only be looked at again.
            std::thread::sleep(PAUSE);
        }
    }

    fn typed(&self, commands: &str) -> Result<String, String> {
        let output = Command::new("sh")
            .args(["-e", "-c", &format!("export {}\n{commands}", self.exports)])
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("sh cannot be started: {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("README.md:\n$ {commands}\nends with {}:\n{said}", output.status))
    }

    /// Ctrl-C, after which nothing may be left.
    fn stop(&mut self) -> Result<(), String> {
        packages::run(Command::new("kill").args(["-INT", &self.process.id().to_string()]))?;
        let end = self.process.wait().map_err(|error| format!("the playground was lost: {error}"))?;
        if !end.success() {
            return Err(format!("the playground did not stop cleanly: {end}"));
        }
        if self.folder.exists() {
            return Err(format!("the playground left {} behind", self.folder.display()));
        }
        Ok(())
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        // Only if it was not stopped: then nobody wants it any more.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_typed_beside_the_playground_is_typed_there() {
        let page = "```sh\ncargo run\n```\n```text\nx\n```\n```sh\nkubectl get svc\n```\n\n```text\nweb\n```\n\
            ```sh\nsluice status\nkubectl get pods\n```\n```text\nshown\n```\n";
        let commands: Vec<String> = beside(page).into_iter().map(|step| step.commands).collect();
        assert_eq!(commands, ["kubectl get svc", "sluice status\nkubectl get pods"]);
    }
}
