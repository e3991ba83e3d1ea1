//! Stories about egresses: made for their pods, kept while there are any, and torn down with the last.

use expect_test::expect;

use super::story::check;

#[test]
pub(super) fn the_first_pod_of_an_egress_starts_one_plan_and_waits_for_it() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         pod p1 applied again
         #1 done
         explain blue
         #2 done
         #3 done
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            blue is CreationInProgress, wanted, 1 pods, addresses: 1 wanted, 0 programmed, 0 mapped
              waits for operation #2
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            blue is Created, wanted, live, 20.1.2.1, 1 pods, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn five_pods_that_come_before_their_nat_gateway_are_sent_together_when_it_is_registered() {
    check(
        "node node-a 192.168.0.1
         node node-b 192.168.0.2
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         pod p2 egress=blue ip=10.1.0.2 node=node-b
         pod p3 egress=blue ip=10.1.0.3 node=node-a
         pod p4 egress=blue ip=10.1.0.4 node=node-a
         pod p5 egress=blue ip=10.1.0.5 node=node-b
         explain blue
         #2 done
         #3 done
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            blue is CreationInProgress, wanted, 5 pods, addresses: 5 wanted, 0 programmed, 0 mapped
              waits for operation #2
            #3 push 10.1.0.1 10.1.0.3 10.1.0.4 to node-a for blue, push 10.1.0.2 10.1.0.5 to node-b for blue   because service became ready
            blue is Created, wanted, live, 20.1.2.1, 5 pods, addresses: 5 wanted, 5 programmed, 5 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_pod_of_a_live_egress_is_sent_at_once() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         pod p2 egress=blue ip=10.1.0.2 node=node-a
         #4 done
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            #4 push 10.1.0.2 to node-a for blue   because addresses changed
            blue is Created, wanted, live, 20.1.2.1, 2 pods, addresses: 2 wanted, 2 programmed, 2 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_pod_that_is_not_the_last_leaves_and_the_egress_stays() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         pod p2 egress=blue ip=10.1.0.2 node=node-a
         #1 done
         #2 done
         #3 done
         pod p1 deleted
         #4 done
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 10.1.0.2 to node-a for blue   because service became ready
            #4 remove 10.1.0.1 from node-a   because addresses changed
            blue is Created, wanted, live, 20.1.2.1, 1 pods, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn the_last_pod_drains_first_then_the_nat_gateway_is_torn_down_in_order() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         pod p1 deleted
         state blue
         #4 done
         state blue
         #5 done
         state blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            #4 remove node-a   because addresses changed
            blue is DeletionPending
            #5 deprovision blue: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            blue is DeletionInProgress
            blue is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_pod_deleted_while_it_waits_is_simply_gone() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         pod p2 egress=blue ip=10.1.0.2 node=node-a
         #1 done
         pod p2 deleted
         #2 done",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
        "#]],
    );
}

#[test]
pub(super) fn the_last_pod_that_goes_during_the_creation_lets_it_end_and_the_teardown_follows() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         pod p1 deleted
         state blue
         #2 done
         #3 done
         state blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            blue is DeletionPending
            #3 deprovision blue: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            blue is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_pod_that_comes_while_its_egress_is_torn_down_is_served_when_that_has_ended() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         pod p1 deleted
         #4 done
         pod p2 egress=blue ip=10.1.0.2 node=node-a
         state blue
         #5 done
         #6 done
         #7 done
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            #4 remove node-a   because addresses changed
            #5 deprovision blue: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            blue is DeletionInProgress
            #6 provision blue: public-ip, nat-gateway, register   because pods came
            #7 push 10.1.0.2 to node-a for blue   because service became ready
            blue is Created, wanted, live, 20.1.2.2, 1 pods, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_pod_that_comes_while_its_egress_drains_keeps_it() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         pod p1 deleted
         pod p2 egress=blue ip=10.1.0.2 node=node-a
         state blue
         #4 done
         #5 done
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            #4 remove node-a   because addresses changed
            blue is Created
            #5 push 10.1.0.2 to node-a for blue   because service became ready
            blue is Created, wanted, live, 20.1.2.1, 1 pods, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_label_that_changes_is_a_removal_and_an_addition() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         pod p1 egress=green ip=10.1.0.1 node=node-a
         #5 done
         #4 done
         #7 done
         #6 done
         #8 done
         state blue
         explain green",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            #4 inspect green: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #5 remove node-a   because addresses changed
            #6 deprovision blue: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            #7 provision green: public-ip, nat-gateway, register   because pods came
            #8 push 10.1.0.1 to node-a for green   because service became ready
            blue is forgotten
            green is Created, wanted, live, 20.1.2.2, 1 pods, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_label_that_changes_to_a_live_egress_moves_the_address_in_one_entry() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         pod p2 egress=green ip=10.1.0.2 node=node-a
         #1 done
         #2 done
         #3 done
         #4 done
         #5 done
         #6 done
         pod p1 egress=green ip=10.1.0.1 node=node-a",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 inspect green: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #3 provision blue: public-ip, nat-gateway, register   because pods came
            #4 provision green: public-ip, nat-gateway, register   because pods came
            #5 push 10.1.0.1 to node-a for blue   because service became ready
            #6 push 10.1.0.2 to node-a for green   because service became ready
            #7 push 10.1.0.1 to node-a for green   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn labels_that_cannot_be_names_are_warned_about_once_and_nothing_is_made() {
    check(
        "show notices
         pod p1 egress=-blue ip=10.1.0.1 node=node-a
         pod p1 egress=-blue ip=10.1.0.1 node=node-a
         pod p2 egress=default-natgw ip=10.1.0.2 node=node-a
         pod p3 egress=0a1b2c3d-0000-4000-8000-00000000000f ip=10.1.0.3 node=node-a
         pod p4 egress=bl!ue ip=10.1.0.4 node=node-a",
        expect![[r#"
            warn pod p1: InvalidSpec: Ignored egress label "-blue": the name does not start with a letter or digit. Correct the label
            warn pod p2: InvalidSpec: Ignored egress label "default-natgw": the name is reserved for the default outbound service. Correct the label
            warn pod p3: InvalidSpec: Ignored egress label "0a1b2c3d-0000-4000-8000-00000000000f": the name looks like a UID, and those name load balancers. Correct the label
            warn pod p4: InvalidSpec: Ignored egress label "bl!ue": the name has characters other than a-z, 0-9, '.', '_' and '-'. Correct the label
        "#]],
    );
}

#[test]
pub(super) fn there_are_at_most_so_many_egresses_and_the_next_one_waits_for_a_place() {
    check(
        "config egress-max=1
         show notices
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         pod p2 egress=green ip=10.1.0.2 node=node-a
         #3 done
         explain green
         pod p1 deleted
         #4 done
         #5 done
         state green",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 inspect green: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            warn green: InvalidSpec: Egress limit reached (sluice.egress.max=1). Raise it or remove an egress
            green is NotStarted, wanted, 1 pods
              waits for a change: Egress limit reached (sluice.egress.max=1). Raise it or remove an egress
            #4 deprovision blue: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            #5 provision green: public-ip, nat-gateway, register   because pods came
            green is Created
        "#]],
    );
}

#[test]
pub(super) fn the_default_outbound_does_not_count_as_an_egress() {
    check(
        "config egress-max=1 default-outbound=ensure
         azure has egress=default-natgw
         lead
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         state blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            blue is Created
        "#]],
    );
}

#[test]
pub(super) fn an_egress_lingers_as_long_as_configured() {
    check(
        "config linger=60
         show times
         node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         pod p1 deleted
         explain blue
         #4 done
         tick 30
         pod p2 egress=blue ip=10.1.0.2 node=node-a
         last done
         pod p2 deleted
         last done
         tick 59
         state blue
         tick 2
         state blue",
        expect![[r#"
            t=0.4 #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            t=0.5 #2 provision blue: public-ip, nat-gateway, register   because pods came
            t=0.6 #3 push 10.1.0.1 to node-a for blue   because service became ready
            t=0.8 #4 remove node-a   because addresses changed
            t=0.9 blue is Created, wanted, live, 20.1.2.1, addresses: 0 wanted, 0 programmed, 1 mapped
            t=0.9   waits for the end of its linger time at t=60.8
            t=31.2 #5 push 10.1.0.2 to node-a for blue   because addresses changed
            t=31.4 #6 remove 10.1.0.2 from node-a   because addresses changed
            t=90.7 blue is Created
            t=91.4 #7 deprovision blue: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            t=92.9 blue is DeletionInProgress
        "#]],
    );
}

#[test]
pub(super) fn an_egress_that_was_asked_for_needs_no_pods() {
    check(
        "egress blue requested
         egress blue requested
         #1 done
         #2 done
         explain blue
         egress blue released
         #3 done
         state blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because asked for
            #2 provision blue: public-ip, nat-gateway, register   because asked for
            blue is Created, wanted, live, 20.1.2.1
            #3 deprovision blue: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            blue is forgotten
        "#]],
    );
}

#[test]
pub(super) fn releasing_what_was_never_asked_for_changes_nothing() {
    check(
        "egress blue released
         state blue",
        expect![[r#"
            blue is forgotten
        "#]],
    );
}

#[test]
pub(super) fn an_egress_that_was_asked_for_outlives_its_last_pod() {
    check(
        "node node-a 192.168.0.1
         egress blue requested
         #1 done
         #2 done
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #3 done
         pod p1 deleted
         #4 done
         state blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because asked for
            #2 provision blue: public-ip, nat-gateway, register   because asked for
            #3 push 10.1.0.1 to node-a for blue   because addresses changed
            #4 remove node-a   because addresses changed
            blue is Created
        "#]],
    );
}

#[test]
pub(super) fn an_egress_whose_last_pod_went_while_nobody_watched_lingers_too() {
    check(
        "config linger=60
         show times
         node node-a 192.168.0.1
         azure has egress=blue
         lead
         state blue
         tick 30
         state blue
         tick 31
         state blue",
        expect![[r#"
            t=0.5 blue is forgotten
            t=30.7 blue is Created
            t=60.6 #1 deprovision blue: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            t=61.9 blue is DeletionInProgress
        "#]],
    );
}
