//! How long addresses wait for their service, what is promoted, and how things stand now.

use super::story::{Story, told};

/// A service with two endpoints, seconds before and after its provisioning.
fn provisioned(after: &str) -> Story {
    let mut story = told(
        "node node-a 192.168.0.1
         service web applied
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a",
    );
    story.play(after);
    story
}

#[test]
fn endpoints_count_as_buffered_until_their_service_is_ready_and_the_time_is_measured() {
    let mut story = provisioned("tick 3");
    assert_eq!(story.engine.gauges().buffered_endpoints, 2);
    assert_eq!(story.engine.services()[0].addresses_buffered, 2);
    story.play("#1 done");
    assert_eq!(story.engine.gauges().buffered_endpoints, 0);
    assert_eq!(story.engine.services()[0].addresses_buffered, 0);
    let waited = story.engine.counters().endpoint_buffer;
    assert_eq!(waited.count, 2);
    assert!(waited.sum_ms >= 2 * 3_000, "{waited:?}");
}

#[test]
fn pods_count_as_buffered_until_their_egress_is_ready_and_their_promotion_is_counted() {
    let mut story = told(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         pod p2 egress=blue ip=10.1.0.2 node=node-a
         #1 done
         tick 3",
    );
    assert_eq!(story.engine.gauges().buffered_pods, 2);
    story.play("#2 done");
    assert_eq!(story.engine.gauges().buffered_pods, 0);
    let counters = story.engine.counters();
    assert_eq!(counters.pod_promotions, 2);
    assert_eq!(counters.pod_promotion_failures, 0);
    assert_eq!(counters.pod_buffer.count, 2);
    assert!(counters.pod_buffer.sum_ms >= 2 * 3_000);
}

#[test]
fn a_pod_whose_node_has_no_address_of_its_family_is_a_failed_promotion() {
    let story = told(
        "node node-a fd01::1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done",
    );
    let counters = story.engine.counters();
    assert_eq!((counters.pod_promotions, counters.pod_promotion_failures), (0, 1));
}

#[test]
fn pending_deletions_and_operations_in_flight_are_gauges_and_the_deletion_is_measured() {
    let mut story = provisioned("#1 done");
    story.play("#2 done");
    assert_eq!(story.engine.gauges().operations_active, 0);
    story.play("service web applied deleting");
    assert_eq!(story.engine.gauges().pending_deletions, 1);
    story.play("#3 done");
    assert_eq!(story.engine.gauges().operations_active, 1);
    story.play(
        "#4 done
         #5 done
         service web deleted",
    );
    assert_eq!(story.engine.gauges(), Default::default());
    assert_eq!(story.engine.counters().deletions.count, 1);
}

#[test]
fn a_pod_that_gets_its_ip_later_waits_for_its_egress_and_is_promoted() {
    let mut story = told("node node-a 192.168.0.1\npod p1 egress=blue node=node-a\ntick 3");
    assert_eq!(story.engine.gauges().buffered_pods, 0, "it has no address yet");
    story.play("pod p1 egress=blue ip=10.1.0.1 node=node-a\ntick 4");
    assert_eq!(story.engine.gauges().buffered_pods, 1);
    story.play("#1 done\n#2 done");
    assert_eq!(story.engine.gauges().buffered_pods, 0, "{}", story.shown());
    let counters = story.engine.counters();
    assert_eq!((counters.pod_buffer.count, counters.pod_buffer.sum_ms), (1, 4_300));
    assert_eq!((counters.pod_promotions, counters.pod_promotion_failures), (1, 0));
}

#[test]
fn a_pod_that_loses_its_ip_does_not_wait_for_its_egress() {
    let story = told(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         tick 3
         pod p1 egress=blue node=node-a
         tick 3
         pod p1 egress=blue ip=10.1.0.2 node=node-a
         tick 1
         #1 done
         #2 done",
    );
    let buffer = story.engine.counters().pod_buffer;
    assert_eq!((buffer.count, buffer.sum_ms), (1, 1_300), "{}", story.shown());
}

#[test]
fn a_promotion_fails_without_a_location_and_when_azure_refuses_the_address() {
    let mut story = told(
        "node node-a 192.168.0.1
         pod p1 egress=blue node=node-a
         pod p1 egress=blue ip=fd01::4 node=node-a
         pod p2 egress=blue ip=10.1.0.2 node=node-a
         #1 done
         #2 done",
    );
    let promotions = |story: &Story| {
        let counters = story.engine.counters();
        (counters.pod_promotions, counters.pod_promotion_failures)
    };
    assert_eq!(promotions(&story), (1, 1), "{}", story.shown());
    story.play("#3 refused");
    assert_eq!(promotions(&story), (1, 2), "{}", story.shown());
    story.play("tick 300\nlast refused");
    assert_eq!(promotions(&story), (1, 2), "counted once: {}", story.shown());
}

#[test]
fn a_service_that_is_rejected_or_deleted_wants_no_addresses() {
    let mut story = told(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         service web applied invalid",
    );
    let counts = |story: &Story| {
        let (view, gauges) = (&story.engine.services()[0], story.engine.gauges());
        assert_eq!(u64::from(view.addresses_wanted), gauges.addresses_wanted);
        assert_eq!(u64::from(view.addresses_buffered), gauges.buffered_endpoints);
        (view.addresses_wanted, view.addresses_buffered)
    };
    assert_eq!(counts(&story), (0, 0));
    story.play("service web applied");
    assert_eq!(counts(&story), (2, 2));
    story.play("#1 done\n#2 done");
    assert_eq!(counts(&story), (2, 0));
    story.play("service web applied invalid");
    assert_eq!(counts(&story), (2, 0), "it is live and stays in sync");
    story.play("service web applied deleting");
    assert_eq!(counts(&story), (0, 0), "{}", story.shown());
}
