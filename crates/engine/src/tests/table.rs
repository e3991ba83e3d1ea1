//! The lifecycle table, exhaustively.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::string::String;

use expect_test::expect_file;

use crate::state::{Cell, State, Trigger, cell};

#[test]
fn every_trigger_in_every_state_has_its_cell_and_its_sentence() {
    let mut text = String::new();
    for state in State::ALL {
        writeln!(text, "{state}").unwrap();
        for trigger in Trigger::ALL {
            let (what, why) = match cell(state, trigger) {
                Cell::Stay(why) => ("stays".into(), why),
                Cell::Go(to, why) => (std::format!("→ {to}"), why),
                Cell::Back(why) => ("→ back".into(), why),
                Cell::Forget(why) => ("→ forgotten".into(), why),
                Cell::Never(why) => ("never".into(), why),
            };
            assert!(!why.is_empty(), "{state} × {trigger} does not say why");
            writeln!(text, "  {:<18} {what:<22} {why}", trigger.word()).unwrap();
        }
    }
    expect_file!["snapshots/matrix.txt"].assert_eq(&text);
}

#[test]
fn the_graph_of_the_table_is_the_one_in_the_picture() {
    let mut text = String::from("digraph lifecycle {\n");
    for state in State::ALL {
        for trigger in Trigger::ALL {
            let to = match cell(state, trigger) {
                Cell::Go(to, _) => to.word(),
                Cell::Back(_) => "(back)",
                Cell::Forget(_) => "(forgotten)",
                Cell::Stay(_) | Cell::Never(_) => continue,
            };
            writeln!(text, "  {state} -> \"{to}\" [label=\"{trigger}\"]").unwrap();
        }
    }
    text.push_str("}\n");
    expect_file!["snapshots/graph.dot"].assert_eq(&text);
}

/// The page for people has the same arrows, one for each pair of states.
#[test]
fn the_diagram_of_the_book_has_the_arrows_of_the_table_and_no_others() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/engine.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, diagram) = page.split_once("stateDiagram-v2\n").expect("the page has a diagram of the states");
    let (diagram, _) = diagram.split_once("```").expect("the diagram has an end");
    let arrows =
        diagram.lines().filter_map(|line| line.split_once(':').unwrap_or((line, "")).0.split_once("-->"));
    let shown: BTreeSet<(&str, &str)> = arrows.map(|(from, to)| (from.trim(), to.trim())).collect();
    let mut known = BTreeSet::from([("[*]", State::NotStarted.word())]);
    for state in State::ALL {
        for trigger in Trigger::ALL {
            let to = match cell(state, trigger) {
                Cell::Go(to, _) => to.word(),
                Cell::Back(_) => "Back",
                Cell::Forget(_) => "[*]",
                Cell::Stay(_) | Cell::Never(_) => continue,
            };
            known.insert((state.word(), to));
        }
    }
    assert_eq!(shown, known);
}

#[test]
fn every_state_can_be_reached_and_left() {
    let mut reached = BTreeSet::from([State::NotStarted]);
    for _ in State::ALL {
        for state in reached.clone() {
            for trigger in Trigger::ALL {
                if let Cell::Go(to, _) = cell(state, trigger) {
                    reached.insert(to);
                }
            }
        }
    }
    assert_eq!(reached.len(), State::COUNT);
    for state in State::ALL {
        let leaves = Trigger::ALL
            .into_iter()
            .any(|trigger| matches!(cell(state, trigger), Cell::Go(..) | Cell::Forget(_)));
        assert!(leaves, "{state} is a dead end");
    }
}

#[test]
fn numbers_of_states_and_triggers_are_their_places_in_the_table() {
    for (at, state) in State::ALL.into_iter().enumerate() {
        assert_eq!(state as usize, at);
    }
    for (at, trigger) in Trigger::ALL.into_iter().enumerate() {
        assert_eq!(trigger as usize, at);
    }
}
