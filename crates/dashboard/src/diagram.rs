//! The six states and their arrows, with how many are in each: a picture and, by its links, a filter.
//!
//! It is drawn by hand, since the lifecycle is the engine's table and does not change with data. The
//! arrows are those of that table; that anything not wanted goes to `DeletionPending` is one arrow
//! from each, and the ways back from a failure are dashed.

use maud::{Markup, html};
use sluice_view::{Overview, State};

use crate::rows::Filter;
use crate::words::{both, grouped, state_class};

const NODE_WIDTH: u32 = 158;
const NODE_HEIGHT: u32 = 56;

/// Where a state stands.
const fn corner(state: State) -> (u32, u32) {
    match state {
        State::NotStarted => (8, 16),
        State::CreationInProgress => (211, 16),
        State::Created => (414, 16),
        State::UpdateInProgress => (414, 116),
        State::DeletionPending => (414, 216),
        State::DeletionInProgress | State::Unknown => (211, 216),
    }
}

/// An arrow's path, and whether it is a way back.
const ARROWS: &[(&str, bool)] = &[
    // NotStarted to CreationInProgress, and back when that failed.
    ("M166 38 H203", false),
    ("M211 56 H174", true),
    // CreationInProgress to Created.
    ("M369 44 H406", false),
    // Created to UpdateInProgress, and back when it is as wanted.
    ("M480 72 V108", false),
    ("M506 116 V80", false),
    // UpdateInProgress, Created and CreationInProgress to DeletionPending.
    ("M493 172 V208", false),
    ("M572 44 C 604 44 604 244 580 244", false),
    ("M290 72 C 290 150 360 232 406 232", false),
    // DeletionPending to DeletionInProgress, and back while addresses are mapped.
    ("M414 254 H377", false),
    ("M369 266 H406", true),
    // DeletionInProgress to its end, and from there to the beginning if it is wanted again.
    ("M211 244 H142", false),
    ("M87 216 V80", true),
];

/// The diagram.
pub(crate) fn diagram(overview: &Overview) -> Markup {
    let counted = |state: State| {
        let of = |counts: &sluice_view::overview::Counts| counts.by_state.get(&state).copied().unwrap_or(0);
        (of(&overview.services), of(&overview.egresses))
    };
    html! {
        svg.states viewBox="0 0 604 288" role="group" aria-label="How many are in each state" {
            defs {
                marker #arrow viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" {
                    path.tip d="M0 0 L8 4 L0 8 Z" {}
                }
            }
            g aria-hidden="true" {
                @for (path, is_back) in ARROWS {
                    path.arrow.back[*is_back] d=(path) marker-end="url(#arrow)" {}
                }
                g.end {
                    rect x="32" y="222" width="110" height="44" rx="22" {}
                    text x="87" y="249" text-anchor="middle" { "gone" }
                }
            }
            @for state in State::ALL {
                @let (services, egresses) = counted(state);
                @let (x, y) = corner(state);
                @let filter = Filter { state: Some(state), ..Filter::default() };
                a.node.(state_class(state)).empty[services + egresses == 0]
                    href={ (filter.href()) "#table" } data-state=(state.word())
                    aria-label={ (state.word()) ": " (both(services, egresses)) } {
                    rect x=(x) y=(y) width=(NODE_WIDTH) height=(NODE_HEIGHT) rx="10" {}
                    text.name x=(x + 14) y=(y + 22) { (state.word()) }
                    text.count x=(x + 14) y=(y + 45) { (grouped(services + egresses)) }
                    @if egresses > 0 {
                        text.part x=(x + NODE_WIDTH - 12) y=(y + 45) text-anchor="end" {
                            (grouped(egresses)) " egress"
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::overview;

    #[test]
    fn every_state_is_there_with_its_count_and_a_link_to_its_rows() {
        let mut overview = overview();
        overview.services.by_state.insert(State::Created, 1_234);
        overview.egresses.by_state.insert(State::Created, 2);
        let html = diagram(&overview).into_string();
        for state in State::ALL {
            assert!(html.contains(&format!("href=\"/?state={}#table\"", state.word())), "{state}");
        }
        assert!(html.contains(">1,236<") && html.contains(">2 egress<"), "{html}");
        assert!(html.contains("aria-label=\"Created: 1,234 services and 2 egresses\""), "{html}");
        assert_eq!(html.matches(" empty").count(), 5);
    }
}
