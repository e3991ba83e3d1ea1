//! Stories about teardowns that do not go straight: wanted again, failing, still mapped, overtaken by others.

use expect_test::expect;

use super::story::check;

#[test]
pub(super) fn a_service_wanted_again_before_its_teardown_keeps_everything() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied clusterip
         state web
         service web applied
         state web
         #3 done
         #4 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove node-a   because addresses changed
            web is DeletionPending
            web is Created
            #4 push 10.0.0.4 to node-a for web   because service became ready
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_service_wanted_again_while_its_creation_runs_is_in_creation_again() {
    check(
        "service web applied
         service web applied clusterip
         state web
         service web applied
         state web
         #1 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is DeletionPending
            web is CreationInProgress
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_service_wanted_again_while_its_update_runs_is_in_update_again() {
    check(
        "service web applied
         #1 done
         service web applied port=81->8081
         service web applied clusterip port=81->8081
         service web applied port=81->8081
         state web
         #2 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            web is UpdateInProgress
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_service_wanted_again_that_was_never_live_starts_anew() {
    check(
        "service web applied
         service web applied clusterip
         #1 lost applied at load-balancer
         state web
         service web applied
         state web
         #2 done
         #3 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-load-balancer   because outcome unknown
            web is DeletionPending
            web is NotStarted
            #3 provision web: register   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_service_wanted_again_in_the_middle_of_its_teardown_is_made_anew_when_that_has_ended() {
    check(
        "service web applied
         #1 done
         service web applied clusterip
         state web
         service web applied
         state web
         #2 done
         state web
         #3 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            web is DeletionInProgress
            web is DeletionInProgress
            #3 provision web: public-ip, load-balancer, register   because service applied
            web is CreationInProgress
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn wanted_and_unwanted_again_in_the_middle_of_a_teardown_ends_forgotten() {
    check(
        "service web applied
         #1 done
         service web applied clusterip
         service web applied port=81->8081
         service web applied clusterip
         #2 done
         last done
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
pub(super) fn a_teardown_that_fails_goes_on_where_it_stopped() {
    check(
        "show times
         service web applied
         #1 done
         service web applied deleting
         #2 failed ServerBusy 503 at unregister
         explain web
         tick 5
         #3 done
         #4 done",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.5 #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            t=0.7 web is DeletionInProgress, not wanted, waits: AzureUnavailable, 1 failures
            t=0.7   waits for its next attempt at t=1.7: AzureUnavailable
            t=1.7 #3 deprovision web: unregister, delete-public-ip   because retry due
            t=5.9 #4 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn a_teardown_step_of_unknown_outcome_is_repeated() {
    check(
        "service web applied
         #1 done
         service web applied deleting
         #2 lost applied at delete-load-balancer
         state web
         tick 5
         #3 done
         #4 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            web is DeletionInProgress
            #3 deprovision web: delete-load-balancer, unregister, delete-public-ip   because retry due
            #4 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn drift_while_draining_leaves_less_to_tear_down() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         tick 60
         service web applied deleting
         azure loses load-balancer web
         tick 1500
         #3 done
         #4 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove 10.0.0.4 from node-a   because addresses changed
            #4 deprovision web: clear, unregister, delete-public-ip   because last address left
            #5 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn drift_in_a_parked_teardown_leaves_less_to_tear_down() {
    check(
        "service web applied
         #1 done
         tick 60
         service web applied deleting
         plans fail AuthorizationFailed 403
         #2 failed AuthorizationFailed 403
         azure loses load-balancer web
         tick 1500
         plans stop failing
         tick 3600",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            #4 deprovision web: clear, unregister, delete-public-ip   because retry due
            #5 deprovision web: clear, unregister, delete-public-ip   because retry due
        "#]],
    );
}

#[test]
pub(super) fn addresses_that_azure_still_has_send_the_teardown_back_to_wait_for_them() {
    check(
        "show times
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied deleting
         #3 done
         tick 60
         azure has address 10.0.0.4 at 192.168.0.1 for web
         hold lists
         #4 failed ServiceWithOverlayMappingsCannotBeDeleted 400 at unregister
         state web
         #5 done
         release lists
         explain web
         last done
         tick 60
         last done
         last done
         state web",
        expect![[r#"
            t=0.5 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.6 #2 push 10.0.0.4 to node-a for web   because service became ready
            t=0.8 #3 remove node-a   because addresses changed
            t=0.9 #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            t=61.3 #5 list locations   because drift sweep
            t=61.4 web is DeletionPending
            t=61.5 #6 remove node-a   because addresses changed
            t=61.7 web is DeletionPending, not wanted, waits: Draining, 1 failures, addresses: 0 wanted, 1 programmed, 1 mapped
            t=61.7   waits for its next attempt at t=62.4: Draining
            t=61.7   waits for 1 addresses
            t=62.4 #7 deprovision web: unregister, delete-public-ip   because retry due
            t=122.0 #8 remove finalizer from web   because operation ended
            t=122.2 web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_teardown_that_had_begun_and_has_nothing_left_is_made_anew_if_wanted() {
    check(
        "service web applied
         #1 done
         service web applied clusterip
         service web applied
         tick 60
         azure has address 10.0.0.4 at 192.168.0.1 for web
         #2 failed ServiceWithOverlayMappingsCannotBeDeleted 400 at unregister
         state web
         azure loses registration web
         azure loses public-ip web
         tick 2000
         state web
         last done
         state web
         last done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 remove 192.168.0.1   because addresses changed
            web is DeletionPending
            web is DeletionPending
            #4 provision web: public-ip, load-balancer, register   because service applied
            web is CreationInProgress
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_public_ip_that_something_else_uses_is_let_go_and_named() {
    check(
        "show news
         service web applied
         #1 done
         service web applied deleting
         azure uses public-ip web
         #2 failed PublicIPAddressCannotBeDeleted 400 at delete-public-ip
         tick 5
         last done
         last done
         last done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            tell web: Provisioned: Load balancer is ready; public IP 20.1.2.1
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            tell web: Deleting: Drained; deleting load balancer and public IP
            #3 inspect web: read-public-ip   because outcome unknown
            #4 deprovision web: release-public-ip   because retry due
            #5 remove finalizer from web   because operation ended
            tell web: Deleting: Kept /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip: the unmanaged resource /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/networkInterfaces/somebody-elses uses it. Its Sluice tags were removed
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_public_ip_that_nobody_seems_to_use_is_deleted_again() {
    check(
        "service web applied
         #1 done
         service web applied deleting
         #2 failed PublicIPAddressCannotBeDeleted 400 at delete-public-ip
         tick 5
         last done
         last done
         last done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 inspect web: read-public-ip   because outcome unknown
            #4 deprovision web: delete-public-ip   because retry due
            #5 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_service_that_others_tore_down_while_it_drained_is_let_go() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         tick 60
         service web applied deleting
         azure loses registration web
         azure loses load-balancer web
         azure loses public-ip web
         tick 2000
         state web
         #3 done
         state web
         #4 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove 10.0.0.4 from node-a   because addresses changed
            web is DeletionPending
            #4 remove finalizer from web   because operation ended
            web is DeletionPending
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_service_wanted_and_unwanted_again_while_its_begun_teardown_waits_is_torn_down() {
    check(
        "service web applied
         #1 done
         service web applied clusterip
         service web applied
         tick 60
         azure has address 10.0.0.4 at 192.168.0.1 for web
         #2 failed ServiceWithOverlayMappingsCannotBeDeleted 400 at unregister
         explain web
         service web applied clusterip
         explain web
         #3 done
         #4 done
         #5 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 remove 192.168.0.1   because addresses changed
            web is DeletionPending, wanted, waits: Draining, 1 failures, addresses: 0 wanted, 1 programmed, 1 mapped
              waits for its next attempt at t=61.9: Draining
              waits for 1 addresses
            web is DeletionPending, not wanted, addresses: 0 wanted, 1 programmed, 1 mapped
              waits for 1 addresses
            #4 deprovision web: unregister, delete-public-ip   because last address left
            #5 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_service_wanted_again_while_its_teardown_waits_for_a_slot_keeps_everything() {
    check(
        "config slots=1
         service web applied
         #1 done
         service api applied
         service web applied clusterip
         explain web
         service web applied
         state web
         #2 done
         tick 60
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 provision api: public-ip, load-balancer, register   because service applied
            web is DeletionPending, not wanted, live
              waits for a slot
            web is Created
            web is Created, wanted, live, 20.1.2.1
        "#]],
    );
}

#[test]
pub(super) fn a_service_wanted_again_while_its_failed_teardown_waits_is_torn_down_first_and_then_made_anew() {
    check(
        "service web applied
         #1 done
         service web applied clusterip
         #2 failed ServerBusy 503 at unregister
         service web applied
         state web
         tick 5
         state web
         last done
         last done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 deprovision web: unregister, delete-public-ip   because last address left
            web is DeletionInProgress
            web is DeletionInProgress
            #4 provision web: public-ip, load-balancer, register   because service applied
            web is Created
        "#]],
    );
}
