//! The commands of the book, as a reader types them: in a shell beside a playground that has what the pages
//! speak of, each until it ends well and prints what the page shows, to the letter.
//!
//! The tour has a stage of its own, with a real API server around it. What else stands in `docs/` as `sh` is run
//! here; `tidy` sees to it that what is not run says why.

use crate::beside::Playground;
use crate::tour;
use crate::tree::Tree;

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
    let playground = Playground::start()?;
    playground.typed(OBJECTS).map_err(|why| vec![why])?;
    playground.until(READY, "that all is well", |_| true).map_err(|why| vec![why])?;
    let mut problems = Vec::new();
    let mut done = Vec::new();
    for (path, steps) in &pages {
        for step in steps {
            let right = step.shows.as_deref().unwrap_or("that it says something");
            match playground.until(&step.commands, right, |printed| is_as_shown(step, printed)) {
                Ok(()) => done.push(format!("{path}: {}", step.commands)),
                Err(why) => problems.push(format!("{path}:\n{why}")),
            }
        }
    }
    problems.extend(playground.stop().err());
    if problems.is_empty() { Ok(done.join("\n")) } else { Err(problems) }
}

/// The blocks to run; what a page only shows is not among them.
fn commands(page: &str) -> Vec<tour::Step> {
    tour::steps(page).into_iter().filter(|step| !step.commands.starts_with("# ")).collect()
}

/// A command without a block behind it must print something; one with a block, that.
fn is_as_shown(step: &tour::Step, printed: &str) -> bool {
    match &step.shows {
        Some(shows) => shows.trim() == printed.trim(),
        None => !printed.trim().is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# A\n```text\nsluice run\n```\n```sh\nprintf 'x y'\n```\n\n```text\nx y\n```\n```sh\necho a\n```\n";

    #[test]
    fn blocks_of_commands_are_run_and_what_is_only_shown_is_not() {
        let said: Vec<String> = commands(PAGE).into_iter().map(|step| step.commands).collect();
        assert_eq!(said, ["printf 'x y'", "echo a"]);
    }

    #[test]
    fn another_word_and_nothing_at_all_are_not_as_shown() {
        let steps = commands(PAGE);
        assert!(is_as_shown(&steps[0], "x y\n"));
        assert!(!is_as_shown(&steps[0], "x z"));
        assert!(is_as_shown(&steps[1], "a"));
        assert!(!is_as_shown(&steps[1], " \n"));
    }
}
