//! Stories about the end of a Service: drain, tear down in order, let go.

use expect_test::expect;

use super::story::check;

#[test]
pub(super) fn a_deleted_service_drains_first_then_is_torn_down_in_order_then_its_finalizer_goes() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied deleting
         state web
         #3 done
         state web
         #4 done
         #5 done
         state web
         service web deleted",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove node-a   because addresses changed
            web is DeletionPending
            #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            web is DeletionInProgress
            #5 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_deleted_service_without_addresses_is_torn_down_at_once() {
    check(
        "service web applied
         #1 done
         service web applied deleting
         #2 done
         #3 done
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
pub(super) fn a_repeated_deletion_changes_nothing_and_does_not_bring_the_service_back() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied deleting
         service web applied again
         service web applied deleting
         #3 done
         service web applied again
         #4 done
         service web applied again
         #5 done
         service web deleted
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove node-a   because addresses changed
            #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #5 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn the_teardown_waits_until_no_address_may_refer_to_the_service() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a
         service web applied deleting
         explain web
         #2 lost applied
         explain web
         tick 2
         #3 failed ServerBusy 503
         tick 5
         explain web
         #4 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            web is DeletionPending, not wanted, live, addresses: 0 wanted, 0 programmed, 1 mapped
              waits for 1 addresses
            web is DeletionPending, not wanted, live, addresses: 0 wanted, 0 programmed, 1 mapped
              waits for 1 addresses
            #3 remove node-a   because addresses changed
            #4 remove node-a   because addresses changed
            web is DeletionPending, not wanted, live, addresses: 0 wanted, 0 programmed, 1 mapped
              waits for 1 addresses
            #5 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            web is DeletionInProgress
        "#]],
    );
}

#[test]
pub(super) fn a_deletion_waits_for_the_sync_in_flight_and_not_for_one_that_failed() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a
         service web applied deleting
         state web
         #2 failed ServerBusy 503
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            web is DeletionPending
            #3 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            web is DeletionInProgress
        "#]],
    );
}

#[test]
pub(super) fn of_several_services_that_are_torn_down_each_waits_for_its_own_addresses_only() {
    check(
        "node node-a 192.168.0.1
         node node-b 192.168.0.2
         endpoints web 10.0.0.4@node-a
         service web applied
         service api applied
         service cart applied
         #1 done
         #2 done
         #3 done
         endpoints api 10.0.0.5@node-b
         #4 done
         #5 done
         service web applied deleting
         service api applied deleting
         service cart applied deleting
         #6 done
         #8 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 provision api: public-ip, load-balancer, register   because service applied
            #3 provision cart: public-ip, load-balancer, register   because service applied
            #4 push 10.0.0.4 to node-a for web   because service became ready
            #5 push 10.0.0.5 to node-b for api   because addresses changed
            #6 remove node-a   because addresses changed
            #7 deprovision cart: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #8 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #9 remove node-b   because addresses changed
            #10 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn a_shared_address_leaves_only_the_service_that_goes() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         endpoints api 10.0.0.4@node-a
         service web applied
         service api applied
         #1 done
         #2 done
         #3 done
         #4 done
         service web applied deleting
         #5 done
         explain api",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 provision api: public-ip, load-balancer, register   because service applied
            #3 push 10.0.0.4 to node-a for web   because service became ready
            #4 push 10.0.0.4 to node-a for web+api   because service became ready
            #5 push 10.0.0.4 to node-a for api   because addresses changed
            #6 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            api is Created, wanted, live, 20.1.2.2, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_deletion_during_the_creation_lets_it_end_and_it_never_becomes_created() {
    check(
        "service web applied
         service web applied deleting
         state web
         #1 done
         state web
         #2 done
         #3 done
         timeline web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is DeletionPending
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            web is DeletionInProgress
            #3 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn a_creation_that_fails_after_the_deletion_is_looked_at_and_torn_down() {
    check(
        "service web applied
         service web applied deleting
         #1 failed QuotaExceeded 400 at load-balancer
         state web
         #2 done
         #3 done
         #4 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-load-balancer   because outcome unknown
            web is DeletionPending
            #3 deprovision web: delete-load-balancer, delete-public-ip   because last address left
            #4 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn a_write_that_failed_is_deleted_though_a_look_so_soon_does_not_show_it() {
    check(
        "service web applied
         service web applied deleting
         #1 failed QuotaExceeded 400
         state web
         #2 done
         state web
         #3 done
         #4 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-public-ip   because outcome unknown
            web is DeletionPending
            #3 deprovision web: delete-public-ip   because last address left
            web is DeletionInProgress
            #4 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_creation_of_unknown_outcome_is_looked_at_before_it_is_torn_down() {
    check(
        "service web applied
         service web applied deleting
         #1 lost applied at load-balancer
         state web
         #2 done
         #3 done
         #4 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-load-balancer   because outcome unknown
            web is DeletionPending
            #3 deprovision web: delete-load-balancer, delete-public-ip   because last address left
            #4 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_deletion_during_an_update_waits_for_its_end() {
    check(
        "service web applied
         #1 done
         service web applied port=81->8081
         service web applied deleting
         state web
         #2 done
         #3 done
         #4 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            web is DeletionPending
            #3 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #4 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn a_deletion_drops_an_update_that_waits_or_is_parked() {
    check(
        "service web applied
         #1 done
         service web applied port=81->8081
         #2 failed QuotaExceeded 400
         service web applied deleting
         #3 done
         #4 done
         #5 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            #3 inspect web: read-load-balancer   because outcome unknown
            #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #5 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn a_creation_that_failed_halfway_is_torn_down_when_it_is_not_wanted_any_more() {
    check(
        "service web applied
         #1 failed QuotaExceeded 400 at load-balancer
         explain web
         service web applied deleting
         #2 done
         #3 done
         #4 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is NotStarted, wanted, parked: QuotaExceeded, 1 failures
              waits for its next attempt at t=515.2: QuotaExceeded
            #2 inspect web: read-load-balancer   because outcome unknown
            #3 deprovision web: delete-load-balancer, delete-public-ip   because last address left
            #4 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn a_service_that_never_started_is_forgotten_without_a_call() {
    check(
        "config slots=1
         service other applied
         service web applied
         service web applied deleting
         #2 done
         state web",
        expect![[r#"
            #1 provision other: public-ip, load-balancer, register   because service applied
            #2 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn endpoints_that_come_in_a_deletion_are_not_sent() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied deleting
         endpoints web 10.0.0.5@node-a
         #3 done
         endpoints web 10.0.0.6@node-a
         #4 done
         #5 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove node-a   because addresses changed
            #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #5 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn a_deletion_that_waits_for_long_reads_the_addresses_again_and_says_which_ones_hold_it() {
    check(
        "show notices
         show times
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied deleting
         show lists
         tick 301
         explain web",
        expect![[r#"
            t=0.6 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.7 #2 push 10.0.0.4 to node-a for web   because service became ready
            t=0.9 #3 remove node-a   because addresses changed
            t=300.9 warn web: Draining: Deletion is waiting for 1 address to be removed from the gateway: 10.0.0.4 on node IP node-a. Run `sluice status --trouble`
            t=300.9 (list locations)
            t=302.2 web is DeletionPending, not wanted, live, addresses: 0 wanted, 1 programmed, 1 mapped
            t=302.2   waits for 1 addresses
        "#]],
    );
}

#[test]
pub(super) fn many_deletions_that_wait_for_long_read_the_addresses_once() {
    check(
        "show notices
         show times
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         endpoints api 10.0.0.5@node-a
         service web applied
         service api applied
         #1 done
         #2 done
         #3 done
         service web applied deleting
         show lists
         tick 100
         service api applied deleting
         tick 201
         tick 101
         tick 200",
        expect![[r#"
            t=0.7 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.8 #2 provision api: public-ip, load-balancer, register   because service applied
            t=0.9 #3 push 10.0.0.4 to node-a for web   because service became ready
            t=1.1 #4 push 10.0.0.5 to node-a for api   because service became ready
            t=301.2 warn web: Draining: Deletion is waiting for 1 address to be removed from the gateway: 10.0.0.4 on node IP node-a. Run `sluice status --trouble`
            t=301.2 (list locations)
            t=401.5 warn api: Draining: Deletion is waiting for 1 address to be removed from the gateway: 10.0.0.5 on node IP node-a. Run `sluice status --trouble`
            t=601.2 warn web: Draining: Deletion is waiting for 1 address to be removed from the gateway: 10.0.0.4 on node IP node-a. Run `sluice status --trouble`
            t=601.2 (list locations)
        "#]],
    );
}

#[test]
pub(super) fn a_look_that_fails_during_a_deletion_is_repeated_after_a_wait() {
    check(
        "show times
         service web applied
         service web applied deleting
         #1 lost applied at load-balancer
         state web
         #2 failed ServerBusy 503
         tick 5
         #3 failed ServerBusy 503
         tick 9
         #4 lost
         state web
         tick 20
         #5 done
         #6 done",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.5 #2 inspect web: read-load-balancer   because outcome unknown
            t=0.6 web is DeletionPending
            t=1.5 #3 inspect web: read-load-balancer   because outcome unknown
            t=8.2 #4 inspect web: read-load-balancer   because outcome unknown
            t=15.2 web is DeletionPending
            t=18.5 #5 inspect web: read-load-balancer   because outcome unknown
            t=35.4 #6 deprovision web: delete-load-balancer, delete-public-ip   because retry due
            t=35.5 #7 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn a_deletion_ends_the_backoff_of_the_lane() {
    check(
        "show times
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         syncs fail ServerBusy 503
         #3 failed ServerBusy 503
         tick 60
         syncs stop failing
         service web applied deleting",
        expect![[r#"
            t=0.5 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.6 #2 push 10.0.0.4 to node-a for web   because service became ready
            t=0.8 #3 push 10.0.0.5 to node-a for web   because addresses changed
            t=1.7 #4 push 10.0.0.5 to node-a for web   because addresses changed
            t=3.2 #5 push 10.0.0.5 to node-a for web   because addresses changed
            t=6.7 #6 push 10.0.0.5 to node-a for web   because addresses changed
            t=13.8 #7 push 10.0.0.5 to node-a for web   because addresses changed
            t=24.6 #8 push 10.0.0.5 to node-a for web   because addresses changed
            t=50.7 #9 push 10.0.0.5 to node-a for web   because addresses changed
            t=61.3 #10 remove 10.0.0.4 from node-a   because addresses changed
        "#]],
    );
}
