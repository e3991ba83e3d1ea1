//! The four flows of the book have their diagrams, with the participants and phases of the design, and words for
//! each phase.
//!
//! Mermaid is read only as far as its traps go that a page shows too late: a semicolon ends a line there.

use crate::markdown;
use crate::tree::Tree;

/// A page, how many phases it tells, and who takes part.
struct Flow {
    page: &'static str,
    phases: usize,
    participants: &'static [&'static str],
}

const FLOWS: [Flow; 4] = [
    Flow {
        page: "docs/concepts/inbound.md",
        phases: 7,
        participants: &[
            "Services",
            "EndpointSlices",
            "EnsureLoadBalancer",
            "Engine",
            "Service updater",
            "Locations updater",
            "Azure",
        ],
    },
    Flow {
        page: "docs/concepts/outbound.md",
        phases: 8,
        participants: &["Pods", "pod handler", "Engine", "Service updater", "Locations updater", "Azure"],
    },
    Flow {
        page: "docs/concepts/deletion.md",
        phases: 5,
        participants: &["Kubernetes", "Inbox", "Engine", "Service updater", "Locations updater", "Azure"],
    },
    Flow {
        page: "docs/concepts/initialization.md",
        phases: 10,
        participants: &[
            "CCM main",
            "cloud provider",
            "initialization",
            "API server",
            "Azure",
            "Engine",
            "Service updater",
            "Locations updater",
        ],
    },
];

/// Names what is missing.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    FLOWS.iter().flat_map(|flow| check_flow(flow, tree.text(flow.page).unwrap_or(""))).collect()
}

fn check_flow(flow: &Flow, text: &str) -> Vec<String> {
    let page = flow.page;
    let fences = markdown::fences(text);
    let diagram =
        fences.iter().find(|it| it.language == "mermaid" && it.lines.first() == Some(&"sequenceDiagram"));
    let Some(diagram) = diagram else {
        return vec![format!("{page}: there is no sequence diagram")];
    };
    let mut problems = Vec::new();
    let shown: Vec<&&str> = diagram.lines.iter().filter(|line| line.starts_with("participant ")).collect();
    if shown.len() != flow.participants.len() {
        problems.push(format!("{page}: {} participants, not {}", shown.len(), flow.participants.len()));
    }
    for (who, line) in flow.participants.iter().zip(shown) {
        if !line.contains(who) {
            problems.push(format!("{page}: where {who:?} should stand is `{line}`"));
        }
    }
    let phases = diagram.lines.iter().filter_map(|line| line.split_once(": Phase ")).map(|(_, rest)| rest);
    let numbers: Vec<&str> =
        phases.filter_map(|rest| rest.split_once(':')).map(|(number, _)| number).collect();
    let expected: Vec<String> = (1..=flow.phases).map(|number| number.to_string()).collect();
    if numbers != expected {
        problems.push(format!("{page}: the phases are {numbers:?}, not 1 to {}", flow.phases));
    }
    for number in expected.iter().filter(|number| !is_told(text, number)) {
        problems.push(format!("{page}: no paragraph begins with `**{number}. …**`"));
    }
    let broken = diagram.lines.iter().filter(|line| line.contains(';'));
    problems.extend(broken.map(|line| format!("{page}: a semicolon ends a line for Mermaid: `{line}`")));
    problems
}

/// A paragraph may tell two phases: `**3. and 4. …**`.
fn is_told(text: &str, number: &str) -> bool {
    let titles = text.lines().filter_map(|line| line.strip_prefix("**")?.split_once("**"));
    titles.into_iter().any(|(title, _)| title.split(' ').any(|word| word.strip_suffix('.') == Some(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: Flow = Flow { page: "docs/a.md", phases: 3, participants: &["Engine", "Azure"] };

    const PAGE: &str = "```mermaid\nsequenceDiagram\n    participant E as Engine\n    participant A as Azure\n    \
        Note over E,A: Phase 1: x\n    Note over E,A: Phase 2: y\n    Note over E,A: Phase 3: z\n```\n\n\
        **1. X.** So.\n\n**2. and 3. Y and Z.** So.\n";

    #[test]
    fn a_page_with_everybody_and_every_phase_is_fine() {
        assert_eq!(check_flow(&FLOW, PAGE), [""; 0]);
    }

    #[test]
    fn who_or_what_is_missing_is_named() {
        let one = |from: &str, to: &str| check_flow(&FLOW, &PAGE.replace(from, to)).join("\n");
        assert!(one("sequenceDiagram", "flowchart").contains("no sequence diagram"));
        assert!(one("as Azure", "as AWS").contains("where \"Azure\" should stand"));
        assert!(one("    participant A as Azure\n", "").contains("1 participants, not 2"));
        assert!(one("Phase 2", "Phase 4").contains("[\"1\", \"4\", \"3\"]"));
        assert!(one("2. and 3.", "2.").contains("`**3. …**`"));
        assert!(one("Phase 1: x", "Phase 1: x; y").contains("semicolon"));
        assert!(!check(&Tree::of(&[])).is_empty());
    }
}
