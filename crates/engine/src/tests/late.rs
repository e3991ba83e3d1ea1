//! Stories about facts that come late: answers, listings and deletions that speak of an earlier moment.

use std::time::Duration;

use expect_test::expect;
use sluice_model::{Event, ObjectName};

use super::story::{check, told};
use crate::State;

#[test]
fn a_look_speaks_of_the_moment_it_was_asked_for_not_of_the_moment_its_answer_came() {
    let mut story = told(
        "service web applied
         #1 lost at public-ip
         tick 2",
    );
    // The read did not show the public IP a second after the write, and its answer takes its time.
    story.now = story.now + Duration::from_secs(40);
    story.play(
        "service web applied deleting
         #2 done",
    );
    let shown = story.shown();
    assert!(shown.contains("deprovision web: delete-public-ip"), "{shown}");
    assert!(!shown.contains("remove finalizer"), "{shown}");
}

#[test]
fn an_egress_in_conflict_that_loses_its_last_pod_is_not_parked_once_more() {
    let mut story = told(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         azure loses nat-gateway blue
         azure has egress=blue nat-gateway foreign
         tick 1000",
    );
    let parked = |story: &super::story::Story| story.engine.services().iter().any(|it| it.hold.is_some());
    assert!(parked(&story), "somebody else's NAT gateway stands in the way");
    story.play("pod p1 deleted");
    assert!(!parked(&story), "a deletion ends any park at once");
}

#[test]
fn an_address_that_turns_up_in_the_middle_of_a_teardown_drains_before_the_teardown_goes_on() {
    let mut story = told(
        "node node-a 192.168.0.1
         service web applied
         endpoints web 10.0.0.4@node-a
         #1 done
         #2 done
         service web applied clusterip
         #3 done
         #4 failed ScopeLocked 409 at delete-load-balancer
         azure has address 10.0.0.9 at 192.168.0.1 for web
         tick 1100",
    );
    // The second attempt was on its way when two listings showed the address; now it fails.
    story.play(
        "#5 failed ServerBusy 503 at delete-load-balancer
         tick 10",
    );
    let view = story.engine.services().remove(0);
    assert_eq!((view.state, view.operation, view.addresses_mapped), (State::DeletionPending, None, 1));
    assert_eq!(story.engine.counters().internal_errors, 0);
    assert!(
        story.shown().trim_end().ends_with("remove node-a   because addresses changed"),
        "{}",
        story.shown()
    );
}

#[test]
fn a_listing_that_began_before_a_teardown_is_not_believed_when_the_service_comes_back() {
    let story = told(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         hold lists
         tick 1100
         service web applied clusterip
         #8 done
         #9 done
         #2 done
         #3 done
         #7 done
         service web applied",
    );
    let shown = story.shown();
    let again = shown.rfind("provision web: public-ip, load-balancer, register").expect("made anew");
    assert!(again > shown.find("remove finalizer from web").expect("gone before"), "{shown}");
}

#[test]
fn a_deletion_from_a_watch_that_stands_on_a_refused_list_takes_nothing_away() {
    let mut story = told(
        "node node-a 192.168.0.1
         service web applied
         endpoints web 10.0.0.4@node-a
         #1 done
         #2 done
         slices relisted stale",
    );
    let wanted = story.engine.addresses().totals().wanted;
    assert_eq!(wanted, 1);
    for name in ["web-0", "web-1"] {
        story.tell(Event::SliceDeleted(ObjectName::new("shop", name)));
    }
    assert_eq!(story.engine.addresses().totals().wanted, wanted);
}

#[test]
fn a_slow_watch_does_not_make_us_write_the_same_again() {
    check(
        "show status
         service web applied nofinalizer
         #1 done
         service web applied late nofinalizer
         #2 done
         service web applied late nofinalizer ingress=1.2.3.4
         state web
         service web applied
         tick 60",
        expect![[r#"
            #1 add finalizer to web   because service applied
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #2 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            web is Created
        "#]],
    );
}

#[test]
fn a_finalizer_is_taken_off_once_however_late_the_watch_is() {
    check(
        "service web applied
         #1 done
         service web applied deleting
         #2 done
         #3 done
         service web applied late deleting
         tick 60
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
fn a_spec_that_is_rejected_right_before_our_write_is_not_served() {
    check(
        "config slots=1
         service busy applied
         service web applied nofinalizer
         #2 done
         service web applied late invalid
         #1 done
         explain web",
        expect![[r#"
            #1 provision busy: public-ip, load-balancer, register   because service applied
            #2 add finalizer to web   because service applied
            web is NotStarted, wanted
              waits for a change: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
        "#]],
    );
}

#[test]
fn what_somebody_edits_right_after_our_write_is_seen() {
    check(
        "service web applied nofinalizer
         #1 done
         service web applied late nofinalizer port=81->8081
         #2 done
         service web applied port=81->8081",
        expect![[r#"
            #1 add finalizer to web   because service applied
            #2 provision web: public-ip, load-balancer, register   because service applied
            #3 update web: load-balancer   because service applied
        "#]],
    );
}
