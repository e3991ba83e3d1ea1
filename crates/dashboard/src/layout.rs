//! What all pages share: the head, the bar at the top, the keys, and pages with nothing but a message.

use maud::{DOCTYPE, Markup, html};
use sluice_view::Overview;

use crate::assets::{ICON, LIVE, STYLE, TABLE, THEME};
use crate::words::phase;

/// Which page it is, for the scripts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which<'a> {
    /// The front page, with the long table.
    Front,
    /// The page of one service or egress: what the stream of changes is asked for.
    Detail(&'a str),
    /// A page that does not change.
    Still,
}

/// A whole page.
pub(crate) fn whole(title: &str, which: Which<'_>, overview: Option<&Overview>, main: &Markup) -> String {
    let (page, of) = match which {
        Which::Front => ("front", None),
        Which::Detail(of) => ("detail", Some(of)),
        Which::Still => ("still", None),
    };
    let html = html! {
        (DOCTYPE)
        html lang="en" data-page=(page) data-of=[of] {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) " · Sluice" }
                link rel="icon" type=(ICON.content_type) href=(ICON.path());
                link rel="stylesheet" href=(STYLE.path());
                script src=(THEME.path()) {}
                @if which == Which::Front {
                    script type="module" src=(TABLE.path()) {}
                }
                script type="module" src=(LIVE.path()) {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                (bar(overview))
                p.stale #stale role="alert" hidden {}
                main #main tabindex="-1" { (main) }
                (keys())
            }
        }
    };
    html.into_string()
}

fn bar(overview: Option<&Overview>) -> Markup {
    html! {
        header.bar {
            a.brand href="/" {
                svg aria-hidden="true" viewBox="0 0 24 24" width="24" height="24" {
                    path.wood d="M4 3v18M20 3v18" {}
                    path.gate d="M4 7h16" {}
                    path.water d="M4 14q2.7-2.4 5.3 0t5.4 0t5.3 0M4 19q2.7-2.4 5.3 0t5.4 0t5.3 0" {}
                }
                "Sluice"
            }
            @if let Some(overview) = overview { (about(overview)) }
            div.tools {
                span.live #live role="status" { "not live" }
                button #theme type="button" hidden { "Dark" }
                button #keys-open type="button" hidden aria-haspopup="dialog" { "Keys " kbd { "?" } }
            }
        }
    }
}

/// Who answers.
pub(crate) fn about(overview: &Overview) -> Markup {
    let role = overview.role.word();
    html! {
        dl.about #about {
            @if !overview.cluster_id.is_empty() {
                div { dt { "cluster" } dd { (overview.cluster_id) } }
            }
            div { dt { "replica" } dd { (overview.identity) } }
            div { dt { "role" } dd.(format!("role-{role}")) { (role) } }
            @if !overview.initial_sync.done {
                div { dt { "initial sync" } dd { (phase(&overview.initial_sync.phase)) } }
            }
            div.wide { dt { "version" } dd { (overview.version) } }
        }
    }
}

fn keys() -> Markup {
    let rows = [
        ("/", "search"),
        ("j or ↓, k or ↑", "next or previous row"),
        ("Enter", "open the row"),
        ("g, G", "first or last row"),
        ("h", "go to the front page"),
        ("t", "switch between light and dark"),
        ("Esc", "leave the search or close this dialog"),
        ("?", "show this list"),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keyboard shortcuts" }
            dl {
                @for (key, what) in rows { div { dt { kbd { (key) } } dd { (what) } } }
            }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// A page that says one thing: what happened and what to do.
pub fn message(title: &str, text: &str, see: &[&str]) -> String {
    let main = html! {
        section.panel.message {
            h1 { (title) }
            p { (text) }
            @if !see.is_empty() {
                ul { @for path in see { li { a href=(path) { (path) } } } }
            }
        }
    };
    whole(title, Which::Still, None, &main)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_no_script_and_no_style_inside_and_nothing_of_other_hosts() {
        let page = message("Not found", "No page at <script>alert(1)</script>.", &["/"]);
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
        assert!(!page.contains(" style=") && !page.contains("<style") && !page.contains("http"));
        // Every script is a file.
        assert_eq!(page.matches("<script").count(), page.matches("src=\"/assets/").count());
    }
}
