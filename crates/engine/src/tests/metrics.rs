//! What is counted: the numbers behind the metrics of the design documents.

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
}

#[test]
fn events_and_effects_are_counted() {
    let mut story = told("");
    let (events, effects) = (story.engine.counters().events, story.engine.counters().effects);
    story.play("hold status\nservice web applied");
    assert_eq!(story.engine.counters().events - events, 1);
    assert_eq!(story.engine.counters().effects - effects, 2, "a plan and a status");
}
