//! A playground that is started as the pages say, and the reader's shell beside it: the README's first minute, and
//! the commands of the book.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::process::Command;

use super::pages::{self, Step};
use super::shell::Shell;
use super::{Programs, ROOT, spelling};
use crate::process::{Program, Signal, Talk};

const README: &str = "README.md";
/// The page that has a check of its own.
const TOUR: &str = "docs/try/tour.md";
/// The last word of the playground's greeting.
const LAST: &str = "Stop with Ctrl-C";

/// What the pages speak of: a Service `shop/web`, and a pod `crawlers/crawler-1` of the egress `blue`.
const OBJECTS: &str = "\
kubectl create namespace shop
kubectl create namespace crawlers
kubectl -n shop create deployment web --image=nginx --replicas=3
kubectl -n shop expose deployment web --type=LoadBalancer --port=80
kubectl -n crawlers run crawler-1 --image=nginx --labels=kubernetes.azure.com/service-egress-gateway=blue
";
/// When all of it is there.
const READY: &str = "\
sluice status --check
kubectl -n shop wait service/web --for=jsonpath='{.status.loadBalancer.ingress}' --timeout=1s
";

/// The first command of README.md starts the playground; what is typed beside it prints what is shown.
pub(crate) async fn first_minute(programs: &Programs) -> Result<String> {
    let page = pages::read(README)?;
    let first = page.split_once("```sh\n").and_then(|(_, rest)| rest.lines().next()).unwrap_or_default();
    let arguments = pages::arguments_of_sluice(first)
        .with_context(|| format!("{README}: the first command is `{first}`, which does not run sluice"))?;
    let steps = typed_beside(&page);
    ensure!(
        steps.iter().any(|(_, shows)| shows.is_some()),
        "{README}: nothing is typed beside the playground whose output is shown"
    );
    let playground = Playground::start(programs, arguments).await?;
    for (commands, shows) in &steps {
        match shows {
            None => drop(playground.shell.run(commands).await.context(README)?),
            Some(shows) => {
                let shown = spelling::of_pages(shows);
                let is_shown = |printed: &str| spelling::of_pages(printed) == shown;
                playground.shell.until(commands, shows, is_shown).await.context(README)?;
            }
        }
    }
    playground.stop().await?;
    Ok(steps.into_iter().map(|(commands, _)| commands).collect::<Vec<_>>().join("\n"))
}

/// The commands of the second shell.
fn typed_beside(page: &str) -> Vec<(String, Option<String>)> {
    let is_beside = |line: &str| ["kubectl ", "sluice "].iter().any(|start| line.starts_with(start));
    runs(page).filter(|(commands, _)| commands.lines().all(is_beside)).collect()
}

fn runs(page: &str) -> impl Iterator<Item = (String, Option<String>)> {
    pages::steps(page).into_iter().filter_map(|step| match step {
        Step::Run { commands, shows } => Some((commands, shows)),
        Step::Text(_) => None,
    })
}

/// Every `sh` block of docs/ but those of the tour and those of cargo, to the letter. `xtask tidy` sees to it that what
/// is not run says why.
pub(crate) async fn book(programs: &Programs) -> Result<String> {
    let mut steps = Vec::new();
    for path in book_pages()? {
        let page = pages::read(&path)?;
        let typed = runs(&page).filter(|(commands, _)| !is_of_cargo(commands));
        steps.extend(typed.map(|(commands, shows)| (path.clone(), commands, shows)));
    }
    ensure!(!steps.is_empty(), "no page of the book has a command to run");
    let playground = Playground::start(programs, "playground").await?;
    playground.shell.run(OBJECTS).await?;
    playground.shell.until(READY, "that all is well", |_| true).await?;
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for (path, commands, shows) in &steps {
        let right = shows.as_deref().unwrap_or("that it prints something");
        match playground.shell.until(commands, right, |printed| is_as_shown(shows.as_deref(), printed)).await
        {
            Ok(()) => done.push(format!("{path}: {commands}")),
            Err(why) => problems.push(format!("{path}:\n{why:#}")),
        }
    }
    problems.extend(playground.stop().await.err().map(|why| format!("{why:#}")));
    ensure!(problems.is_empty(), "{}", problems.join("\n\n"));
    Ok(done.join("\n"))
}

/// A block that a stage of its own runs (`xtask/src/outputs.rs`): there is no cargo in the reader's second shell.
fn is_of_cargo(commands: &str) -> bool {
    commands.lines().all(|line| line.starts_with("cargo "))
}

/// The pages below docs/, in order.
fn book_pages() -> Result<Vec<String>> {
    let mut folders = vec!["docs".to_string()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(format!("{ROOT}/{folder}"))? {
            let entry = entry?;
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.ends_with(".md") && path != TOUR {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A command without a block behind it must print something; one with a block, that.
fn is_as_shown(shows: Option<&str>, printed: &str) -> bool {
    shows.map_or(!printed.trim().is_empty(), |shows| shows.trim() == printed.trim())
}

/// The playground, and the shell beside it.
struct Playground {
    shell: Shell,
    /// Where its configuration is.
    folder: PathBuf,
    program: Program,
    _talk: Talk,
    _log: tempfile::TempDir,
}

impl Playground {
    async fn start(programs: &Programs, arguments: &str) -> Result<Playground> {
        let (sluice, log) = (programs.sluice()?, tempfile::tempdir()?);
        let mut command = Command::new(&sluice);
        command.args(arguments.split_whitespace());
        let (program, mut talk) = Program::talk("the playground", &mut command, &log.path().join("log"))?;
        let greeting = talk.hear_until(LAST).await?;
        let export = greeting.lines().find_map(|line| line.split_once("export ")).map(|(_, rest)| rest);
        let kubeconfig =
            export.and_then(|it| it.split_whitespace().find_map(|it| it.strip_prefix("KUBECONFIG=")));
        let (Some(export), Some(kubeconfig)) = (export, kubeconfig) else {
            bail!("the playground does not say what to export:\n{greeting}");
        };
        let folder = PathBuf::from(kubeconfig).parent().map(PathBuf::from).unwrap_or_default();
        let shell = Shell::new(&folder, &[&sluice, &programs.kubectl()?])?.after(&format!("export {export}"));
        Ok(Playground { shell, folder, program, _talk: talk, _log: log })
    }

    /// Ctrl-C, after which nothing may be left.
    async fn stop(self) -> Result<()> {
        self.program.signal(Signal::Interrupt).await?;
        let end = self.program.ended().await;
        ensure!(end.success(), "the playground did not stop cleanly: {end}");
        ensure!(!self.folder.exists(), "the playground left {} behind", self.folder.display());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_typed_beside_the_playground_is_typed_there() {
        let page = "```sh\ncargo run\n```\n```text\nx\n```\n```sh\nkubectl get svc\n```\n\n```text\nweb\n```\n\
            ```sh\nsluice status\nkubectl get pods\n```\n```text\nshown\n```\n";
        let commands: Vec<String> = typed_beside(page).into_iter().map(|(commands, _)| commands).collect();
        assert_eq!(commands, ["kubectl get svc", "sluice status\nkubectl get pods"]);
    }

    #[test]
    fn another_word_and_nothing_at_all_are_not_as_shown() {
        assert!(is_as_shown(Some("x y"), "x y\n"));
        assert!(!is_as_shown(Some("x y"), "x z"));
        assert!(is_as_shown(None, "a"));
        assert!(!is_as_shown(None, " \n"));
    }

    #[test]
    fn only_a_block_of_nothing_but_cargo_is_left_to_another_stage() {
        assert!(is_of_cargo("cargo run -- bench calls"));
        assert!(!is_of_cargo("cargo run -- bench calls\nsluice status"));
        assert!(!is_of_cargo("kubectl get pods"));
    }

    #[test]
    fn the_book_has_the_guides_and_not_the_tour() {
        let pages = book_pages().unwrap();
        assert!(pages.contains(&"docs/try/emulator.md".to_string()), "{pages:?}");
        assert!(!pages.contains(&TOUR.to_string()), "{pages:?}");
    }
}
