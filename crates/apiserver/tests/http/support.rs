//! SUPPORT.md says exactly what is served.

use sluice_apiserver::kinds::KINDS;

fn table() -> String {
    let mut text = String::from("| kind | API | verbs | parts | scope |\n|---|---|---|---|---|\n");
    for kind in KINDS {
        let parts: Vec<String> = kind
            .subresources
            .iter()
            .map(|sub| format!("`{}` ({})", sub.word(), sub.verbs().join(", ")))
            .collect();
        text.push_str(&format!(
            "| `{}` | `{}` | {} | {} | {} |\n",
            kind.resource,
            kind.api_version(),
            kind.verbs.join(", "),
            parts.join(", "),
            if kind.namespaced { "namespace" } else { "cluster" },
        ));
    }
    text
}

#[test]
fn the_page_has_a_line_for_every_kind_with_its_verbs_and_parts() {
    let page = include_str!("../../SUPPORT.md");
    let told =
        page.split_once("<!-- kinds -->\n").and_then(|(_, rest)| rest.split_once("<!-- end of kinds -->"));
    let (told, _) = told.expect("SUPPORT.md has its table of kinds between two marks");
    assert_eq!(told, table(), "write this into SUPPORT.md:\n{}", table());
}
