//! Stories about Services that are rejected after they were accepted: in the middle of their creation,
//! between two attempts, while they are live.

use expect_test::expect;

use super::story::check;

#[test]
pub(super) fn a_service_rejected_during_its_creation_is_torn_down_and_never_published() {
    check(
        "show status
         show notices
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         service web applied invalid
         explain web
         #1 done
         #2 done
         explain web
         service web applied
         #3 done",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            warn web: InvalidSpec: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
            (write status of web: Provisioning InvalidSpec, not Serving InvalidSpec)
            web is DeletionPending, wanted
              waits for operation #1
              waits for a change: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            web is NotStarted, wanted
              waits for a change: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #3 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.2, not Provisioning Provisioned, Serving Provisioned)
            #4 push 10.0.0.4 to node-a for web   because service became ready
        "#]],
    );
}

#[test]
pub(super) fn a_rejection_that_is_taken_back_during_the_creation_changes_nothing() {
    check(
        "service web applied
         service web applied invalid
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
pub(super) fn a_creation_of_unknown_outcome_is_torn_down_when_it_is_rejected() {
    check(
        "show status
         service web applied
         service web applied invalid
         #1 lost applied at register
         #2 done
         #3 done
         state web",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: Provisioning InvalidSpec, not Serving InvalidSpec)
            #2 inspect web: read-registration   because outcome unknown
            #3 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            web is NotStarted
        "#]],
    );
}

#[test]
pub(super) fn what_a_failed_creation_has_left_is_torn_down() {
    check(
        "service web applied
         #1 failed QuotaExceeded 400 at load-balancer
         service web applied invalid
         #2 done
         #3 done
         state web
         service web applied",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-load-balancer   because outcome unknown
            #3 deprovision web: delete-load-balancer, delete-public-ip   because last address left
            web is NotStarted
            #4 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn what_a_crash_has_left_of_a_rejected_creation_is_torn_down() {
    check(
        "service web known invalid
         azure has web public-ip load-balancer
         lead
         services relisted
         #2 done
         state web",
        expect![[r#"
            #1 list Services of Kubernetes again   because start-up
            #2 deprovision web: delete-load-balancer, delete-public-ip   because last address left
            web is NotStarted
        "#]],
    );
}

#[test]
pub(super) fn a_rejected_creation_that_was_registered_right_before_a_crash_is_torn_down() {
    check(
        "show status
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web known invalid
         azure has web
         lead
         services relisted
         #2 done
         state web",
        expect![[r#"
            #1 list Services of Kubernetes again   because start-up
            (write status of web: Provisioning InvalidSpec, not Serving InvalidSpec)
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            web is NotStarted
        "#]],
    );
}

#[test]
pub(super) fn what_another_leader_has_published_is_not_torn_down_by_an_old_view_of_the_service() {
    check(
        "node node-a 192.168.0.1
         service web known invalid
         azure has web
         lead
         service web applied
         services relisted
         state web",
        expect![[r#"
            #1 list Services of Kubernetes again   because start-up
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_rejected_service_that_is_found_with_addresses_is_served_as_before() {
    check(
        "show status
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         service web known invalid
         azure has web
         azure has address 10.0.0.4 at 192.168.0.1 for web
         lead
         state web",
        expect![[r#"
            (write status of web: Provisioning InvalidSpec, not Serving InvalidSpec)
            #1 push 10.0.0.5 to node-a for web   because service became ready
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_published_service_that_lost_its_registration_keeps_its_ip_while_it_is_rejected() {
    check(
        "service web known invalid published=20.1.2.1 ingress=20.1.2.1
         azure has web public-ip load-balancer
         lead
         tick 60
         explain web",
        expect![[r#"
            web is NotStarted, wanted, 20.1.2.1
              waits for a change: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
        "#]],
    );
}

#[test]
pub(super) fn an_update_that_waits_is_not_made_for_a_rejected_spec() {
    check(
        "service web applied
         #1 done
         service web applied port=81->8081
         #2 failed QuotaExceeded 400
         service web applied port=81->8081 invalid
         explain web
         service web applied port=81->8081
         #3 done
         #4 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            web is Created, wanted, live, 20.1.2.1
              waits for a change: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
            #3 inspect web: read-load-balancer   because outcome unknown
            #4 update web: load-balancer   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn an_ip_that_was_published_stays_and_no_other_is_published_for_a_rejected_spec() {
    check(
        "show status
         service web known invalid
         azure has web
         azure has address 10.0.0.4 at 192.168.0.1 for web
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         lead
         service web applied
         service web applied invalid",
        expect![[r#"
            (write status of web: Provisioning InvalidSpec, not Serving InvalidSpec)
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            (write status of web: 20.1.2.1, Provisioning InvalidSpec, Serving Provisioned)
        "#]],
    );
}

#[test]
pub(super) fn an_ip_that_was_taken_off_a_rejected_service_is_not_put_back() {
    check(
        "show status
         service web known invalid published=20.1.2.1 ingress=1.2.3.4
         azure has web
         azure has address 10.0.0.4 at 192.168.0.1 for web
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         lead",
        expect![[r#"
            (write status of web: not 20.1.2.1, Provisioning InvalidSpec, not Serving InvalidSpec)
        "#]],
    );
}

#[test]
pub(super) fn a_live_service_that_lost_its_registration_and_its_status_is_torn_down() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied invalid wiped
         state web
         azure loses registration web
         tick 2000
         #3 done
         #4 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            web is Created
            #3 remove node-a   because addresses changed
            #4 deprovision web: delete-load-balancer, delete-public-ip   because last address left
            web is NotStarted
        "#]],
    );
}

#[test]
pub(super) fn a_live_service_without_addresses_that_lost_its_status_is_torn_down() {
    check(
        "service web applied
         #1 done
         service web applied invalid wiped
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            web is DeletionInProgress
        "#]],
    );
}

#[test]
pub(super) fn an_update_of_what_lost_its_registration_ends_when_it_is_rejected() {
    check(
        "service web applied
         #1 done
         plans fail Forbidden 403
         azure loses registration web
         tick 2000
         state web
         plans stop failing
         service web applied invalid wiped
         state web
         last done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: register   because drift found
            #3 inspect web: read-registration   because outcome unknown
            #4 update web: register   because retry due
            #5 inspect web: read-registration   because outcome unknown
            #6 update web: register   because retry due
            web is UpdateInProgress
            #7 deprovision web: delete-load-balancer, delete-public-ip   because last address left
            web is DeletionInProgress
            web is NotStarted
        "#]],
    );
}

#[test]
pub(super) fn an_ip_whose_publication_is_under_way_counts_as_published() {
    check(
        "hold status
         service web applied
         #1 done
         #2 done
         service web applied wiped
         service web applied invalid
         state web",
        expect![[r#"
            #1 write status of web: Provisioning Provisioning, not Serving Provisioning   because operation ended
            #2 provision web: public-ip, load-balancer, register   because service applied
            #3 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
            web is Created
        "#]],
    );
}
