//! The six states and their arrows, with how many are in each: a picture and, by its links, a filter.
//!
//! It is drawn by hand, since the lifecycle is the engine's table and does not change with data. The
//! ways forward are lines, the ways back are dashed. Three rare ways of the table are left out for
//! the eye's sake: what is found different at the start goes to `UpdateInProgress` at once, what has
//! nothing in Azure is forgotten at once, and what is gone and wanted again begins anew as if it had
//! been gone for a moment.

use maud::{Markup, html};
use sluice_view::{Overview, State};

use crate::rows::Filter;
use crate::words::{grouped, state_class};

const NODE_WIDTH: u32 = 172;
const NODE_HEIGHT: u32 = 56;

/// Where a state stands.
const fn corner(state: State) -> (u32, u32) {
    match state {
        State::NotStarted => (4, 8),
        State::CreationInProgress => (218, 8),
        State::Created => (432, 8),
        State::UpdateInProgress => (432, 106),
        State::DeletionPending => (432, 204),
        State::DeletionInProgress | State::Unknown => (218, 204),
    }
}

/// An arrow's path, and whether it is a way back.
const ARROWS: &[(&str, bool)] = &[
    // NotStarted to CreationInProgress, and back when that failed.
    ("M176 28 H214", false),
    ("M218 46 H180", true),
    // What is found as wanted at the start is adopted.
    ("M110 8 C 150 -22 470 -22 510 4", false),
    // CreationInProgress to Created.
    ("M390 36 H428", false),
    // Created to UpdateInProgress, and back when it is as wanted.
    ("M504 64 V102", false),
    ("M532 106 V68", false),
    // Anything that is not wanted any more to DeletionPending, and back if it is wanted again.
    ("M150 64 C 190 160 330 170 428 214", false),
    ("M546 204 V166", true),
    ("M518 162 V200", false),
    ("M604 36 C 634 36 634 232 608 232", false),
    ("M330 64 C 330 190 440 150 456 200", false),
    // DeletionPending to DeletionInProgress, and back while addresses are mapped.
    ("M432 240 H394", false),
    ("M390 252 H428", true),
    // DeletionInProgress to its end, and from there to the beginning if it is wanted again.
    ("M218 232 H148", false),
    ("M90 208 V68", true),
];

/// The diagram.
pub(crate) fn diagram(overview: &Overview) -> Markup {
    let counted = |state: State| {
        let of = |counts: &sluice_view::overview::Counts| counts.by_state.get(&state).copied().unwrap_or(0);
        (of(&overview.services), of(&overview.egresses))
    };
    html! {
            svg.states viewBox="0 -20 632 284" role="group" aria-label="Number of Services and egresses by state" {
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
                        rect x="36" y="210" width="108" height="44" rx="22" {}
                        text x="90" y="237" text-anchor="middle" { "deleted" }
                    }
                }
                @for state in State::ALL {
                    @let (services, egresses) = counted(state);
                    @let (x, y) = corner(state);
                    @let filter = Filter { state: Some(state), ..Filter::default() };
                    a.node.(state_class(state)).empty[services + egresses == 0]
                        href={ (filter.href()) "#table" } data-state=(state.word())
    {
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
        assert_eq!(html.matches(" empty").count(), 5);
    }
}
