//! Stories about live Services that change.

use expect_test::expect;

use super::story::check;

#[test]
pub(super) fn a_changed_port_is_one_write_of_the_load_balancer() {
    check(
        "service web applied
         #1 done
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
pub(super) fn every_part_of_the_spec_that_matters_is_one_write() {
    check(
        "service web applied
         #1 done
         service web applied port=80->8080 idle=9
         #2 done
         service web applied port=80->9090 idle=9
         #3 done
         service web applied port=80->9090/udp idle=9
         #4 done
         service web applied port=80->9090/udp port=81->9091 idle=9
         #5 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            #3 update web: load-balancer   because service applied
            #4 update web: load-balancer   because service applied
            #5 update web: load-balancer   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_change_that_does_not_matter_is_no_write() {
    check(
        "service web applied
         #1 done
         service web applied
         service web applied again
         tick 3600
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_spec_that_changes_during_the_creation_is_applied_when_it_ends() {
    check(
        "service web applied
         service web applied port=81->8081
         state web
         #1 done
         state web
         #2 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is CreationInProgress
            #2 update web: load-balancer   because service applied
            web is UpdateInProgress
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_spec_that_changes_during_an_update_is_applied_next() {
    check(
        "service web applied
         #1 done
         service web applied port=81->8081
         service web applied port=82->8082
         service web applied port=83->8083
         #2 done
         state web
         #3 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            #3 update web: load-balancer   because service applied
            web is UpdateInProgress
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_spec_that_changes_back_during_an_update_is_written_back() {
    check(
        "service web applied
         #1 done
         service web applied port=81->8081
         service web applied port=80->8080
         #2 done
         #3 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            #3 update web: load-balancer   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn an_update_that_fails_stays_and_is_tried_again() {
    check(
        "show times
         service web applied
         #1 done
         service web applied port=81->8081
         #2 failed AnotherOperationInProgress 409
         explain web
         tick 5
         #3 done
         #4 done
         state web",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.5 #2 update web: load-balancer   because service applied
            t=0.7 web is UpdateInProgress, wanted, live, 20.1.2.1, waits: AzureUnavailable, 1 failures
            t=0.7   waits for its next attempt at t=1.7: AzureUnavailable
            t=1.7 #3 inspect web: read-load-balancer   because outcome unknown
            t=5.9 #4 update web: load-balancer   because retry due
            t=6.1 web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_live_service_keeps_its_addresses_in_sync_while_its_update_fails() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied port=81->8081
         #3 failed QuotaExceeded 400
         endpoints web 10.0.0.5@node-a
         explain web
         #4 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 update web: load-balancer   because service applied
            #4 remove 10.0.0.4 from node-a, push 10.0.0.5 to node-a for web   because addresses changed
            web is UpdateInProgress, wanted, live, 20.1.2.1, parked: QuotaExceeded, 1 failures, addresses: 1 wanted, 0 programmed, 2 mapped
              waits for its next attempt at t=515.7: QuotaExceeded
            web is UpdateInProgress, wanted, live, 20.1.2.1, parked: QuotaExceeded, 1 failures, addresses: 1 wanted, 1 programmed, 1 mapped
              waits for its next attempt at t=515.7: QuotaExceeded
        "#]],
    );
}

#[test]
pub(super) fn a_live_service_keeps_its_addresses_in_sync_while_its_update_runs() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         service web applied port=81->8081
         endpoints web 10.0.0.5@node-a
         #3 done
         #2 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            #3 push 10.0.0.5 to node-a for web   because addresses changed
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_difference_that_goes_by_itself_needs_no_write() {
    check(
        "service web applied
         #1 done
         service web applied port=81->8081
         #2 failed AnotherOperationInProgress 409
         service web applied port=80->8080
         #3 done
         state web
         tick 3600",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            #3 inspect web: read-load-balancer   because outcome unknown
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn an_invalid_change_leaves_the_live_load_balancer_as_it_is() {
    check(
        "show notices
         node node-a 192.168.0.1
         service web applied
         #1 done
         service web applied invalid
         explain web
         endpoints web 10.0.0.4@node-a
         tick 1800
         service web applied
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            warn web: InvalidSpec: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
            web is Created, wanted, live, 20.1.2.1
              waits for a change: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn an_update_of_unknown_outcome_is_looked_at_before_it_is_repeated() {
    check(
        "service web applied
         #1 done
         service web applied port=81->8081
         #2 lost
         state web
         tick 2
         #3 done
         #4 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            web is UpdateInProgress
            #3 inspect web: read-load-balancer   because outcome unknown
            #4 update web: load-balancer   because retry due
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn an_update_of_unknown_outcome_that_came_through_is_not_repeated() {
    check(
        "service web applied
         #1 done
         service web applied port=81->8081
         #2 lost applied
         tick 2
         #3 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            #3 inspect web: read-load-balancer   because outcome unknown
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn drift_that_is_found_while_an_update_is_parked_is_mended_by_its_next_attempt() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         service web applied port=81->8081
         plans fail AuthorizationFailed 403
         #2 failed AuthorizationFailed 403
         azure loses registration web
         tick 1400
         plans stop failing
         tick 3600
         last done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            #3 inspect web: read-load-balancer   because outcome unknown
            #4 update web: load-balancer   because retry due
            #5 update web: load-balancer, register   because retry due
            #6 update web: load-balancer, register   because retry due
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn wanted_again_while_a_look_is_running_it_is_compared_when_the_look_ends() {
    check(
        "service web applied
         #1 done
         service web applied port=81->8081
         service web applied clusterip port=81->8081
         #2 lost
         service web applied port=81->8081
         state web
         #3 done
         #4 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            #3 inspect web: read-load-balancer   because outcome unknown
            web is Created
            #4 update web: load-balancer   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_look_that_fails_while_created_is_repeated() {
    check(
        "service web applied
         #1 done
         service web applied port=81->8081
         service web applied clusterip port=81->8081
         #2 lost
         service web applied port=81->8081
         #3 failed ServerBusy 503
         state web
         tick 2
         #4 lost
         state web
         tick 5
         #5 done
         #6 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            #3 inspect web: read-load-balancer   because outcome unknown
            web is Created
            #4 inspect web: read-load-balancer   because outcome unknown
            web is Created
            #5 inspect web: read-load-balancer   because outcome unknown
            #6 update web: load-balancer   because retry due
            web is Created
        "#]],
    );
}
