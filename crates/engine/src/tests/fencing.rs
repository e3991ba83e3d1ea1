//! Stories about incarnations: every fact is about one UID, and absence is asked for before it costs anything.

use expect_test::expect;

use super::story::check;

#[test]
pub(super) fn a_late_deletion_of_another_incarnation_changes_nothing() {
    check(
        "service web applied uid=2
         #1 done
         service web deleted uid=1
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_same_named_successor_is_another_service() {
    check(
        "show times
         service web applied uid=1
         #1 done
         service web applied uid=2 nofinalizer
         #2 gone",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.5 #2 ask whether web is gone   because service no longer wanted
            t=0.5 #3 add finalizer to web   because service applied
            t=0.6 #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
        "#]],
    );
}

#[test]
pub(super) fn a_successor_gets_its_own_load_balancer_and_the_predecessor_goes() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied uid=1
         #1 done
         #2 done
         service web applied uid=2
         #3 gone
         #4 done
         #5 done
         #6 done
         #7 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 ask whether web is gone   because service no longer wanted
            #4 provision web': public-ip, load-balancer, register   because service applied
            #5 remove node-a   because addresses changed
            #6 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
            #7 push 10.0.0.4 to node-a for web'   because service became ready
            web is Created, wanted, live, 20.1.2.2, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn the_finalizer_of_a_successor_is_never_touched() {
    check(
        "service web applied uid=1
         #1 done
         service web applied uid=1 deleting
         #2 done
         service web applied uid=2
         #3 gone
         tick 60",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 remove finalizer from web   because operation ended
            #4 provision web': public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_service_that_vanished_is_asked_for_before_it_is_torn_down() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web vanishes
         services relisted
         explain web
         #3 gone
         #4 done
         #5 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 ask whether web is gone   because service no longer wanted
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
              waits for the word that its object is gone
            #4 remove node-a   because addresses changed
            #5 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_service_that_vanished_from_a_list_and_exists_after_all_is_kept() {
    check(
        "show times
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web vanishes
         services relisted
         #3 exists
         state web
         service web applied
         state web
         tick 100",
        expect![[r#"
            t=0.5 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.6 #2 push 10.0.0.4 to node-a for web   because service became ready
            t=0.9 #3 ask whether web is gone   because service no longer wanted
            t=1.0 #4 list Services of Kubernetes again   because drift found
            t=1.1 web is Created
            t=1.3 web is Created
        "#]],
    );
}

#[test]
pub(super) fn an_answer_that_is_not_clear_is_asked_for_again() {
    check(
        "show times
         service web applied
         #1 done
         service web vanishes
         services relisted
         #2 unclear
         tick 3
         #3 unclear
         tick 5
         #4 gone",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.6 #2 ask whether web is gone   because service no longer wanted
            t=1.7 #3 ask whether web is gone   because service no longer wanted
            t=5.9 #4 ask whether web is gone   because service no longer wanted
            t=9.1 #5 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
        "#]],
    );
}

#[test]
pub(super) fn a_deletion_event_without_a_deletion_timestamp_is_confirmed_by_a_live_get() {
    check(
        "service web applied
         #1 done
         service web deleted
         #2 gone
         #3 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 ask whether web is gone   because service no longer wanted
            #3 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
        "#]],
    );
}

#[test]
pub(super) fn a_service_whose_finalizer_was_taken_by_force_is_torn_down_all_the_same() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied deleting
         service web deleted
         #3 done
         #4 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove node-a   because addresses changed
            #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_service_that_never_had_anything_is_forgotten_without_asking() {
    check(
        "service web applied invalid
         service web vanishes
         services relisted",
        expect![[""]],
    );
}

#[test]
pub(super) fn a_list_older_than_the_newest_seen_is_refused_and_asked_for_again() {
    check(
        "service web applied
         #1 done
         service web vanishes
         services relisted stale
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 list Services of Kubernetes again   because drift found
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn stale_lists_of_every_kind_are_refused() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         endpoints web 10.0.0.4@node-a
         #1 done
         #2 done
         #3 done
         pod p1 vanishes
         pods relisted stale
         node node-a vanishes
         nodes relisted stale
         endpoints web vanish
         slices relisted stale
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            #4 list Pods of Kubernetes again   because drift found
            #5 list Nodes of Kubernetes again   because drift found
            #6 list Slices of Kubernetes again   because drift found
            blue is Created, wanted, live, 20.1.2.1, 1 pods, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn an_object_older_than_the_one_we_know_is_refused() {
    check(
        "service web applied
         #1 done
         service web applied port=81->8081
         #2 done
         service web applied port=80->8080 stale
         tick 60",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_relist_with_the_same_things_changes_nothing() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #3 done
         #4 done
         #5 done
         services relisted
         slices relisted
         nodes relisted
         pods relisted
         tick 60",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #4 provision blue: public-ip, nat-gateway, register   because pods came
            #5 push 10.1.0.1 to node-a for blue   because service became ready
        "#]],
    );
}

#[test]
pub(super) fn slices_and_nodes_that_are_missing_from_a_list_are_gone() {
    check(
        "node node-a 192.168.0.1
         node node-b 192.168.0.2
         endpoints web 10.0.0.4@node-a
         endpoints web 10.0.0.5@node-b slice=2
         service web applied
         #1 done
         #2 done
         endpoints web vanish slice=1
         slices relisted
         #3 done
         node node-b vanishes
         nodes relisted
         #4 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web, push 10.0.0.5 to node-b for web   because service became ready
            #3 remove node-a   because addresses changed
            #4 remove node-b   because addresses changed
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 0 programmed, 0 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_service_deleted_and_made_again_during_a_gap_is_two_services() {
    check(
        "service web applied uid=1
         #1 done
         service web vanishes
         service web known uid=2
         services relisted
         #3 done
         #2 gone
         #4 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 ask whether web is gone   because service no longer wanted
            #3 provision web': public-ip, load-balancer, register   because service applied
            #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
            web is Created
        "#]],
    );
}
