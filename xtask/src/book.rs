//! The commands of the book that need neither a cluster nor an Azure, as a reader types them: run, and what they
//! print compared with what the page shows, to the letter.
//!
//! The tour has a stage of its own, with both worlds around it. What else stands in `docs/` as `sh` is run here;
//! `tidy` sees to it that nothing else does.

use std::process::{Command, Stdio};

use crate::conformance::target_folder;
use crate::stage::cargo_quietly;
use crate::tour;
use crate::tree::{Tree, root};

/// The stage.
pub(crate) fn run(tree: &Tree) -> Result<String, Vec<String>> {
    let pages: Vec<(&str, Vec<tour::Step>)> = tree
        .below("docs/")
        .filter(|(path, _)| path.ends_with(".md") && *path != tour::PAGE)
        .map(|(path, text)| (path, commands(text)))
        .filter(|(_, steps)| !steps.is_empty())
        .collect();
    if pages.is_empty() {
        return Err(vec!["no page of the book has a command to run".to_string()]);
    }
    cargo_quietly(&["build", "--quiet", "--release", "-p", "sluice"])?;
    let mut problems = Vec::new();
    let mut done = Vec::new();
    for (path, steps) in &pages {
        for step in steps {
            match printed(&step.commands).and_then(|printed| as_shown(step, &printed)) {
                Ok(()) => done.push(format!("{path}: {}", step.commands)),
                Err(why) => problems.push(format!("{path}:\n$ {}\n{why}", step.commands)),
            }
        }
    }
    if problems.is_empty() { Ok(done.join("\n")) } else { Err(problems) }
}

/// The blocks to run; what a page only shows is not among them.
fn commands(page: &str) -> Vec<tour::Step> {
    tour::steps(page).into_iter().filter(|step| !step.commands.starts_with("# ")).collect()
}

fn printed(commands: &str) -> Result<String, String> {
    let before = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{before}", target_folder().join("release").display());
    let output = Command::new("sh")
        .args(["-e", "-c", commands])
        .current_dir(root())
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("sh cannot be started: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("ended with {}:\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }
}

/// A command without a block behind it must print something; one with a block, that.
fn as_shown(step: &tour::Step, printed: &str) -> Result<(), String> {
    match &step.shows {
        Some(shows) if shows.trim() == printed.trim() => Ok(()),
        Some(shows) => Err(format!("prints\n{printed}\nand the page shows\n{shows}")),
        None if printed.trim().is_empty() => Err("prints nothing".to_string()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# A\n```text\nsluice run\n```\n```sh\nprintf 'x y'\n```\n\n```text\nx y\n```\n```sh\necho a\n```\n";

    #[test]
    fn blocks_of_commands_are_run_and_what_is_only_shown_is_not() {
        let steps = commands(PAGE);
        let said: Vec<&str> = steps.iter().map(|step| step.commands.as_str()).collect();
        assert_eq!(said, ["printf 'x y'", "echo a"]);
        for step in &steps {
            assert_eq!(printed(&step.commands).and_then(|printed| as_shown(step, &printed)), Ok(()));
        }
    }

    #[test]
    fn another_word_nothing_at_all_and_a_bad_end_are_told() {
        let step = &commands(PAGE)[0];
        assert!(as_shown(step, "x z").unwrap_err().contains("the page shows"));
        let step = &commands(PAGE)[1];
        assert!(as_shown(step, " \n").unwrap_err().contains("nothing"));
        assert!(printed("exit 3").unwrap_err().contains("ended with"));
    }
}
