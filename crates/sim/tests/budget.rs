//! The table of the shipped budget: how long it delays changes, and what it lets through.

use sluice_sim::calls::budget::{measure, targets};

#[test]
fn the_shipped_budget_keeps_to_its_limits() {
    for target in targets() {
        let figures = measure(&target).expect("all pods reach Azure within the budget");
        assert_eq!(target.misses(&figures), Vec::<String>::new(), "{figures:#?}");
    }
}

#[test]
fn a_limit_that_is_exceeded_is_named() {
    let target = targets().into_iter().next().expect("the table has rows");
    let figures = measure(&target).expect("all pods reach Azure within the budget");
    let strict = sluice_sim::calls::budget::Target { writes_max: 10, ..target };
    assert!(matches!(strict.misses(&figures).as_slice(), [miss] if miss.contains("writes in 5 min")));
}
