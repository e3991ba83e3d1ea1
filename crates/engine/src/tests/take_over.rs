//! Stories about Services for which another controller has resources.

use expect_test::expect;

use super::story::check;

#[test]
fn a_public_ip_of_others_is_not_written_when_its_service_is_wanted_again_after_a_listing() {
    check(
        "config default-outbound=ensure
         service web known
         azure has web public-ip foreign
         lead
         service web applied clusterip
         #2 done
         state web
         #1 done
         #3 done
         service web applied nofinalizer
         last done
         explain web",
        expect![[r#"
            #1 inspect default-natgw: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because asked for
            #2 remove finalizer from web   because operation ended
            web is forgotten
            #3 provision default-natgw: public-ip, nat-gateway, register   because asked for
            #4 add finalizer to web   because service applied
            web is NotStarted, wanted, parked: Conflict
              waits for a change: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip exists and is not managed by this cluster. Delete it, or claim it as `sluice explain SGW0011` describes
              waits for its next attempt at t=60.9: Conflict
        "#]],
    );
}

#[test]
fn conditions_name_what_keeps_a_service_although_our_finalizer_was_refused_often() {
    check(
        "show status
         service web known nofinalizer inherited
         azure has web load-balancer foreign
         lead
         last refused
         tick 2
         last refused
         tick 4
         last refused
         tick 8
         last refused
         tick 16
         last refused
         service web applied nofinalizer inherited deleting
         tick 60
         state web",
        expect![[r#"
            #1 add finalizer to web   because service applied
            #2 add finalizer to web   because service applied
            #3 add finalizer to web   because service applied
            #4 add finalizer to web   because service applied
            #5 add finalizer to web   because service applied
            (write status of web: Provisioning Conflict of Deletion, not Serving Conflict of Deletion)
            web is DeletionPending
        "#]],
    );
}

#[test]
fn a_public_ip_that_was_released_is_known_to_be_there() {
    check(
        "service web known nofinalizer invalid
         azure has web
         azure untags load-balancer web
         lead
         services relisted
         #3 done
         #2 done
         last done
         service web applied
         last done",
        expect![[r#"
            #1 list Services of Kubernetes again   because start-up
            #2 add finalizer to web   because service applied
            #3 deprovision web: release-public-ip   because last address left
            #4 deprovision web: adopt, adopt, clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #5 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
fn a_conflict_stays_in_the_conditions_while_it_is_looked_at_again() {
    check(
        "show status
         service web known
         azure has web public-ip foreign
         lead
         tick 61
         #1 done
         tick 61
         #2 done",
        expect![[r#"
            (write status of web: Provisioning Conflict, not Serving Conflict)
            #1 inspect web: read-public-ip, read-load-balancer, read-registration   because service applied
            #2 inspect web: read-public-ip, read-load-balancer, read-registration   because service applied
        "#]],
    );
}

#[test]
fn a_registration_that_names_no_service_goes_only_after_a_list_that_was_asked_for() {
    check(
        "azure has uid=9 registration
         lead
         tick 60
         last done
         service web applied uid=9
         services relisted
         tick 60",
        expect![[r#"
            #1 inspect 00000000-0000-0000-0000-000000000009: read-public-ip, read-load-balancer   because orphaned
            #2 list Services of Kubernetes again   because start-up
            #3 update web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}
