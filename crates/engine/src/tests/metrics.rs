//! What is counted: the numbers behind the metrics of the design documents.

use sluice_model::reason::Reason;

use super::story::told;
use crate::State;
use crate::counters::Histogram;

const LIVE_EGRESS: &str = "
    node node-a 192.168.0.1
    pod p1 egress=blue ip=10.1.0.1 node=node-a
    #1 done
    #2 done
    #3 done
";

#[test]
fn the_time_from_wanted_to_created_is_counted() {
    let mut story = told("service web applied\ntick 7");
    assert_eq!(story.engine.counters().creations, Histogram::default());
    story.play("#1 done");
    let creations = story.engine.counters().creations;
    assert_eq!((creations.count, creations.sum_ms), (1, 7_200));
    story.play("service web applied port=81->8081\n#2 done");
    assert_eq!(story.engine.counters().creations.count, 1, "an update is no creation");
}

#[test]
fn creations_of_13_18_and_25_seconds_are_told_apart() {
    let bucket = |seconds: u64| {
        let mut story = told(&std::format!("service web applied\ntick {seconds}"));
        story.play("#1 done");
        story.engine.counters().creations.buckets.iter().position(|count| *count > 0)
    };
    assert!(bucket(13) < bucket(18) && bucket(18) < bucket(25));
}

#[test]
fn the_time_from_unwanted_to_forgotten_is_counted() {
    let mut story = told("service web applied\n#1 done\nservice web applied deleting\ntick 5\n#2 done");
    assert_eq!(story.engine.counters().deletions, Histogram::default());
    story.play("#3 done");
    let deletions = story.engine.counters().deletions;
    assert_eq!((deletions.count, deletions.sum_ms), (1, 5_300));
}

#[test]
fn the_time_of_a_location_sync_is_counted() {
    let mut story = told(LIVE_EGRESS);
    let before = story.engine.counters().syncs;
    story.play("pod p2 egress=blue ip=10.1.0.2 node=node-a\ntick 3\n#4 failed ServerBusy 503");
    let after = story.engine.counters().syncs;
    assert_eq!((after.count - before.count, after.sum_ms - before.sum_ms), (1, 3_200));
}

#[test]
fn failed_creations_plans_and_parks_are_counted() {
    let mut story = told("service web applied\n#1 failed QuotaExceeded 400");
    let counters = story.engine.counters();
    assert_eq!((counters.creations_failed, counters.plans_failed, counters.parks), (1, 1, 1));
    story.play("service web applied port=81->8081\n#2 done\n#3 done");
    let counters = story.engine.counters();
    assert_eq!((counters.plans_started, counters.plans_succeeded, counters.plans_failed), (3, 2, 1));
    story.play("service web applied port=82->8082\n#4 failed QuotaExceeded 400");
    assert_eq!(story.engine.counters().creations_failed, 1, "an update is no creation");
}

#[test]
fn buffered_endpoints_and_pods_are_counted_while_they_wait() {
    let mut story = told(
        "node node-a 192.168.0.1
         endpoints other 10.0.0.9@node-a
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a",
    );
    assert_eq!(story.engine.addresses().totals().buffered, 0, "nobody has asked for these Services");
    story.play("service web applied");
    assert_eq!(story.engine.addresses().totals().buffered, 2);
    story.play("pod p1 egress=blue ip=10.1.0.1 node=node-a");
    assert_eq!(story.engine.addresses().totals().buffered, 3);
    story.play("#1 done");
    assert_eq!(story.engine.addresses().totals().buffered, 1);
    story.play("pod p1 deleted");
    assert_eq!(story.engine.addresses().totals().buffered, 0);
}

#[test]
fn promoted_addresses_are_counted_once() {
    let mut story = told(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         pod p2 egress=blue ip=10.1.0.2 node=node-a
         #1 done
         #2 done",
    );
    assert_eq!(story.engine.addresses().totals().promoted, 2);
    story.play("#3 done\npod p3 egress=blue ip=10.1.0.3 node=node-a");
    assert_eq!(story.engine.addresses().totals().promoted, 2, "it never waited");
}

#[test]
fn operations_in_flight_and_pending_deletions_are_seen_now() {
    let mut story = told(LIVE_EGRESS);
    story.play("service web applied");
    assert_eq!(story.engine.slots(), (1, 0));
    story.play("pod p1 deleted");
    let pending = |story: &super::story::Story| {
        story.engine.services().iter().filter(|it| it.state == State::DeletionPending).count()
    };
    assert_eq!(pending(&story), 1);
    story.play("#5 done");
    assert_eq!(pending(&story), 0);
    assert_eq!(story.engine.slots(), (2, 0));
}

#[test]
fn drift_and_orphans_are_counted_when_they_are_believed() {
    let mut story = told("service web applied\n#1 done\ntick 60\nazure changes load-balancer web");
    story.play("azure has egress=lost\ntick 3000");
    let counters = story.engine.counters();
    assert_eq!((counters.drift_found, counters.orphans_found), (1, 1));
    assert_eq!((counters.drift_repaired, counters.orphans_removed), (0, 0));
    story.play("#2 done");
    let counters = story.engine.counters();
    assert_eq!((counters.drift_repaired, counters.orphans_removed), (1, 0));
    story.play("#3 done\n#4 done");
    assert_eq!(story.engine.counters().orphans_removed, 1, "{}", story.shown());
}

#[test]
fn an_address_that_somebody_took_away_is_repaired_drift_once_it_is_back() {
    let mut story = told(LIVE_EGRESS);
    story.play("tick 60\nazure loses address 10.1.0.1\ntick 2000");
    assert_eq!((story.engine.counters().drift_found, story.engine.counters().drift_repaired), (1, 0));
    story.play("#4 done\ntick 1");
    assert_eq!((story.engine.counters().drift_found, story.engine.counters().drift_repaired), (1, 1));
}

#[test]
fn a_gateway_that_somebody_deleted_is_repaired_drift_once_it_is_made_again() {
    let mut story = told("service web applied\n#1 done\ntick 60\nazure loses gateway\ntick 2000");
    assert_eq!((story.engine.counters().drift_found, story.engine.counters().drift_repaired), (1, 0));
    story.play("#2 done\ntick 100\nlast done\ntick 4000");
    let counters = story.engine.counters();
    assert_eq!(counters.drift_found, counters.drift_repaired, "{}", story.shown());
    // The next time counts anew.
    let before = counters.drift_found;
    story.play("azure loses gateway\ntick 2000");
    assert!(story.engine.counters().drift_found > before, "{}", story.shown());
    assert_eq!(story.engine.counters().drift_repaired, before);
}

#[test]
fn drift_of_a_service_that_is_deleted_before_it_is_mended_does_not_stay_found_for_ever() {
    let mut story = told("service web applied\n#1 done\ntick 60\nazure changes load-balancer web\ntick 3000");
    assert_eq!((story.engine.counters().drift_found, story.engine.counters().drift_repaired), (1, 0));
    story.play("service web deleted\n#3 gone\n#2 failed ServerBusy 503\ntick 60\nlast done\ntick 60\nlast done\ntick 60");
    assert_eq!(story.engine.services().len(), 0, "{}", story.shown());
    assert_eq!((story.engine.counters().drift_found, story.engine.counters().drift_repaired), (1, 1));
}

#[test]
fn the_time_from_a_change_of_a_service_to_its_end_is_counted_and_nothing_that_was_right() {
    let mut story = told("service web known\nazure has web\nlead");
    assert_eq!(story.engine.counters().services_programmed, Histogram::default(), "adopted as it was");
    story.play(
        "service web applied port=81->8081\ntick 4\n#1 failed ServerBusy 503\ntick 2\n#2 done\n#3 done",
    );
    let programmed = story.engine.counters().services_programmed;
    assert_eq!((programmed.count, programmed.sum_ms), (1, 6_500));
}

#[test]
fn the_time_from_a_change_of_a_pod_to_azures_word_is_counted_through_failures() {
    let mut story = told(LIVE_EGRESS);
    let first = story.engine.counters().addresses_programmed;
    assert_eq!(first.count, 1);
    assert!(first.sum_ms > 100, "the time it waited for its egress counts: {first:?}");
    story.play(
        "pod p2 egress=blue ip=10.1.0.2 node=node-a\ntick 3\n#4 failed ServerBusy 503\ntick 2\n#5 done",
    );
    let programmed = story.engine.counters().addresses_programmed;
    assert_eq!((programmed.count - first.count, programmed.sum_ms - first.sum_ms), (1, 5_400));
}

#[test]
fn a_change_that_comes_while_its_address_is_on_the_way_counts_from_the_sending() {
    let mut story = told(LIVE_EGRESS);
    let first = story.engine.counters().addresses_programmed;
    story.play("pod p2 egress=blue ip=10.1.0.2 node=node-a\npod p2 deleted\n#4 done\ntick 1\n#5 done");
    let programmed = story.engine.counters().addresses_programmed;
    assert_eq!(programmed.count - first.count, 2);
    assert_eq!(programmed.sum_ms - first.sum_ms, 200 + 1_400);
}

#[test]
fn failures_are_counted_by_class_and_parks_by_reason() {
    let mut story = told("service web applied\n#1 failed QuotaExceeded 400\nservice bad applied invalid");
    let failures = story.engine.counters().failures;
    assert_eq!(failures[sluice_model::FailureClass::Quota as usize], 1);
    assert_eq!(failures.iter().sum::<u64>(), 1);
    let gauges = story.engine.gauges();
    assert_eq!(gauges.parked_for[Reason::QuotaExceeded as usize], 1);
    assert_eq!(gauges.parked_for[Reason::InvalidSpec as usize], 1);
    assert_eq!(gauges.states[0][State::NotStarted as usize], 2);
    story.play("pod p1 egress=blue ip=10.1.0.1 node=node-a");
    assert_eq!(story.engine.gauges().states[1][State::NotStarted as usize], 1);
}

#[test]
fn the_last_failure_is_shown_until_an_operation_succeeds() {
    let mut story = told("service web applied\ntick 1\n#1 failed ServerBusy 503 at load-balancer");
    let view = |story: &super::story::Story| story.engine.view_of(&story.key("web")).expect("known");
    let failed = view(&story).last_failure.expect("it failed");
    assert_eq!((failed.step, &*failed.code), ("load-balancer", "ServerBusy"));
    assert!(view(&story).last_attempt < Some(failed.at));
    story.play("tick 2\n#2 done");
    assert!(view(&story).last_failure.is_some(), "a look mends nothing");
    story.play("#3 done");
    assert_eq!(view(&story).last_failure, None);
}
