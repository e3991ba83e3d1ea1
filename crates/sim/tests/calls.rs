//! The table of calls: five hundred services made and removed, by the real engine and the real
//! updaters against the model of Azure.

use core::time::Duration;

use sluice_sim::calls::{Load, measure, targets};

fn keeps_to_the_table(name: &str) {
    let target = targets().into_iter().find(|target| target.name == name).expect("the table has it");
    let measured = measure(&target.load).expect("everything is made and removed within the budget");
    assert_eq!(target.misses(&measured), Vec::<String>::new(), "{measured:#?}");
}

#[test]
fn ten_slots_with_every_limit_on_and_no_pause_between_making_and_removing() {
    keeps_to_the_table("10 slots");
}

#[test]
fn ten_slots_after_a_rest() {
    keeps_to_the_table("10 slots, 10 min between");
}

#[test]
fn ten_slots_without_pods() {
    keeps_to_the_table("10 slots, no pods");
}

#[test]
fn fifty_slots_without_limits() {
    keeps_to_the_table("50 slots, buckets lifted");
}

#[test]
fn fifty_slots_when_the_budget_binds() {
    keeps_to_the_table("50 slots, the budget binds");
}

#[test]
fn the_same_load_gives_the_same_figures() {
    let measured = |seed| format!("{:?}", measure(&Load { seed, ..Load::new(20, 5) }));
    assert_eq!(measured(3), measured(3));
    assert_ne!(measured(3), measured(4));
}

#[test]
fn a_fast_or_slow_way_to_azure_changes_little() {
    let table = targets();
    let target = table.first().expect("the table begins with ten slots");
    for (seed, round_trip_ms) in [(2, 2), (3, 200)] {
        let round_trip = Duration::from_millis(round_trip_ms);
        let load = Load { seed, round_trip, ..target.load.clone() };
        let measured = measure(&load).expect("everything is made and removed within the budget");
        assert_eq!(target.misses(&measured), Vec::<String>::new(), "{round_trip_ms} ms: {measured:#?}");
    }
}
