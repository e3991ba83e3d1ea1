//! The README's first minute, as a reader has it: the playground is started by the shown command, and what the
//! page types in a second shell is typed there, with the kubectl that users have, until it prints what is shown.

use crate::beside::Playground;
use crate::tidy::readme;
use crate::tour::{self, Step};
use crate::tree::Tree;

/// The stage.
pub(crate) fn run(tree: &Tree) -> Result<String, Vec<String>> {
    let steps = beside(tree.text("README.md").unwrap_or(""));
    if !steps.iter().any(|step| step.shows.is_some()) {
        return Err(vec!["README.md: nothing is typed beside the playground whose output is shown".into()]);
    }
    let playground = Playground::start()?;
    for step in &steps {
        let typed = match &step.shows {
            None => playground.typed(&step.commands).map(drop),
            Some(shows) => {
                let is_right = |printed: &str| tour::plain(printed) == tour::plain(shows);
                playground.until(&step.commands, shows, is_right)
            }
        };
        typed.map_err(|why| vec![format!("README.md:\n{why}")])?;
    }
    playground.stop().map_err(|why| vec![why])?;
    Ok(steps.into_iter().map(|step| step.commands).collect::<Vec<_>>().join("\n"))
}

/// What the page types in the second shell.
fn beside(page: &str) -> Vec<Step> {
    let is_beside = |step: &Step| step.commands.lines().all(readme::is_beside_the_playground);
    tour::steps(page).into_iter().filter(is_beside).collect()
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
