//! Stories about our writes to Services: the finalizer, the published IP and the conditions.

use expect_test::expect;

use super::story::check;

#[test]
pub(super) fn our_finalizer_is_on_before_anything_is_made() {
    check(
        "service web applied nofinalizer
         explain web
         tick 60
         #1 done",
        expect![[r#"
            #1 add finalizer to web   because service applied
            web is NotStarted, wanted
              waits for our finalizer
              waits for a write to Kubernetes
            #2 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_finalizer_that_kubernetes_refuses_is_told_and_tried_again_and_nothing_is_made() {
    check(
        "show times
         show notices
         service web applied nofinalizer
         #1 refused
         tick 2
         #2 refused
         explain web
         tick 5
         #3 done",
        expect![[r#"
            t=0.4 #1 add finalizer to web   because service applied
            t=0.5 warn web: KubernetesRejected: The API server rejected the patch: a webhook said no. Sluice retries; grant the permission, or exempt its service account from the webhook or policy
            t=1.5 #2 add finalizer to web   because service applied
            t=2.8 web is NotStarted, wanted
            t=2.8   waits for our finalizer
            t=2.8   waits for a write to Kubernetes
            t=4.7 #3 add finalizer to web   because service applied
            t=8.0 #4 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_conflict_is_repeated_with_what_the_watch_shows_by_then() {
    check(
        "show times
         service web applied nofinalizer
         #1 conflict
         service web applied",
        expect![[r#"
            t=0.3 #1 add finalizer to web   because service applied
            t=0.5 #2 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_finalizer_write_that_got_no_answer_is_repeated() {
    check(
        "show times
         service web applied nofinalizer
         #1 unavailable
         tick 3
         #2 done",
        expect![[r#"
            t=0.3 #1 add finalizer to web   because service applied
            t=1.4 #2 add finalizer to web   because service applied
            t=3.6 #3 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_finalizer_for_an_object_that_is_gone_is_not_insisted_on() {
    check(
        "show times
         service web applied nofinalizer
         #1 gone
         tick 10
         service web deleted
         tick 60
         state web",
        expect![[r#"
            t=0.3 #1 add finalizer to web   because service applied
            t=70.8 web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn the_ip_is_published_when_the_service_is_registered_and_not_before() {
    check(
        "show status
         service web applied
         #1 failed AnotherOperationInProgress 409 at register
         tick 3
         #2 done
         #3 done",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-registration   because outcome unknown
            #3 provision web: register   because retry due
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
pub(super) fn a_status_write_that_fails_is_repeated() {
    check(
        "show times
         hold status
         service web applied
         #1 done
         #2 done
         tick 1
         #3 conflict
         tick 2
         #4 unavailable
         tick 3
         #5 refused
         tick 5
         #6 done",
        expect![[r#"
            t=0.4 #1 write status of web: Provisioning Provisioning, not Serving Provisioning   because operation ended
            t=0.4 #2 provision web: public-ip, load-balancer, register   because service applied
            t=0.6 #3 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
            t=2.8 #4 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
            t=6.0 #5 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
            t=11.2 #6 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn an_ip_that_is_missing_from_the_status_is_filled_in_later() {
    check(
        "show status
         service web known
         azure has web
         lead",
        expect![[r#"
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
pub(super) fn a_status_that_is_already_right_is_not_written() {
    check(
        "show status
         service web applied
         #1 done
         service web applied
         service web applied again
         tick 4000",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
pub(super) fn an_ip_that_somebody_took_off_the_status_is_put_back() {
    check(
        "show status
         service web applied
         #1 done
         service web applied ingress=1.2.3.4",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
pub(super) fn entries_of_others_stay_in_the_status() {
    check(
        "show status
         service web applied ingress=1.2.3.4
         #1 done
         state web",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_published_ip_whose_public_ip_is_gone_is_retracted_at_once() {
    check(
        "show status
         show notices
         service web known published=20.9.9.9 ingress=20.9.9.9
         lead
         #1 done",
        expect![[r#"
            (write status of web: not 20.9.9.9, Provisioning Provisioning, not Serving Provisioning)
            warn web: Updating: Public IP 20.9.9.9 was deleted in Azure. Sluice creates a new one; update DNS records when it is published
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
pub(super) fn a_status_that_others_wipe_is_written_again_and_no_public_ip_is_called_gone() {
    check(
        "show status
         show notices
         service web applied
         #1 done
         service web applied wiped
         service web applied wiped port=81->8080
         #2 done",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            (write status of web: 20.1.2.1, Provisioning Updating, Serving Provisioned)
            #2 update web: load-balancer   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
pub(super) fn an_ip_that_left_the_status_is_published_again_only_when_registered() {
    // A change of the type cleared the status and left the condition that names the IP; then the type came back.
    check(
        "show status
         service web known published=20.1.2.1
         azure has web public-ip load-balancer
         lead
         #1 done",
        expect![[r#"
            (write status of web: not 20.1.2.1, Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
pub(super) fn a_published_ip_stays_published_while_its_service_is_being_mended() {
    check(
        "show status
         service web known published=20.1.2.1 ingress=20.1.2.1
         azure has web public-ip load-balancer
         lead
         #1 done",
        expect![[r#"
            (write status of web: 20.1.2.1, Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
fn an_ip_in_the_annotation_alone_counts_only_if_it_is_that_of_a_managed_public_ip() {
    // The registration is missing, so nothing new is published. The IP that was published before stays.
    check(
        "show status
         service web known annotated=20.1.2.1 ingress=20.1.2.1
         azure has web public-ip load-balancer
         lead
         #1 done",
        expect![[r#"
            (write status of web: 20.1.2.1, Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
    // A user has edited the annotation: the entry in the status is not the controller's to remove.
    check(
        "show status
         service web known annotated=203.0.113.7 ingress=203.0.113.7
         azure has web
         lead
         service web applied clusterip
         #1 done",
        expect![[r#"
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            (write status of web: not 20.1.2.1, Provisioning Deleting, not Serving Deleting)
            #1 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            (write status of web: nothing)
            #2 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
fn an_annotation_is_removed_after_others_removed_its_ip() {
    check(
        "show status
         service web known clusterip annotated=20.1.2.1
         lead",
        expect![[r#"
            (write status of web: nothing)
            #1 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
fn a_crash_before_or_after_the_ip_was_written_leads_to_the_same_status() {
    check(
        "show status
         service web known
         azure has web
         lead",
        expect![[r#"
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
    check(
        "show status
         service web known annotated=20.1.2.1 published=20.1.2.1 ingress=20.1.2.1
         azure has web
         lead",
        expect![[r#"
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
pub(super) fn the_ip_is_retracted_when_the_service_leaves_type_load_balancer() {
    check(
        "show status
         service web applied
         #1 done
         service web applied clusterip
         #2 done
         #3 done
         state web",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            (write status of web: not 20.1.2.1, Provisioning Deleting, not Serving Deleting)
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            (write status of web: nothing)
            #3 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn load_balancer_to_cluster_ip_tears_down_and_back_again_makes_anew() {
    check(
        "service web applied
         #1 done
         service web applied clusterip
         #2 done
         #3 done
         state web
         service web applied clusterip nofinalizer
         service web applied nofinalizer
         #4 done
         #5 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 remove finalizer from web   because operation ended
            web is forgotten
            #4 add finalizer to web   because service applied
            #5 provision web: public-ip, load-balancer, register   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_fast_toggle_ends_in_what_is_wanted_last() {
    check(
        "service web applied
         service web applied clusterip
         service web applied
         service web applied clusterip
         #1 done
         service web applied
         #2 done
         #3 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 provision web: public-ip, load-balancer, register   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn an_invalid_service_gets_a_condition_and_nothing_is_made() {
    check(
        "show status
         show notices
         service web applied invalid
         explain web
         service web applied",
        expect![[r#"
            warn web: InvalidSpec: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
            (write status of web: Provisioning InvalidSpec, not Serving InvalidSpec)
            web is NotStarted, wanted
              waits for a change: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn an_unresolved_port_is_a_condition_and_never_a_write() {
    check(
        "show status
         show notices
         node node-a 192.168.0.1
         service web applied port=80->http
         tick 59
         endpoints web 10.0.0.4@node-a port=8080
         #1 done
         #2 done
         tick 300",
        expect![[r#"
            (write status of web: Provisioning PortUnresolved, not Serving PortUnresolved)
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            #2 push 10.0.0.4 to node-a for web   because service became ready
        "#]],
    );
}

#[test]
pub(super) fn a_live_load_balancer_keeps_its_port_until_all_endpoints_agree_on_another() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a port=8080
         service web applied port=80->http
         #1 done
         #2 done
         endpoints web 10.0.0.5@node-a port=9090 slice=2
         #3 done
         tick 60
         endpoints web slice=1
         #4 done
         #5 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 push 10.0.0.5 to node-a for web   because addresses changed
            #4 update web: load-balancer   because service applied
            #5 remove 10.0.0.4 from node-a   because addresses changed
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_live_load_balancer_keeps_its_port_while_no_endpoint_says_which_it_is() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a port=8080
         service web applied port=80->http
         #1 done
         #2 done
         endpoints web slice=1
         #3 done
         tick 60
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove node-a   because addresses changed
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_port_that_is_unresolved_for_a_minute_is_warned_about_once() {
    check(
        "show notices
         show times
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a port=8080
         endpoints web 10.0.0.5@node-a port=9090 slice=2
         service web applied port=80->http
         explain web
         tick 300
         endpoints web vanish slice=1
         endpoints web vanish slice=2
         slices relisted
         tick 300",
        expect![[r#"
            t=0.8 web is NotStarted, wanted, addresses: 2 wanted, 0 programmed, 0 mapped
            t=0.8   waits for a change: Ready endpoints define different numbers for targetPort "http"
            t=60.7 warn web: PortUnresolved: Ready endpoints define different numbers for targetPort "http". Define the port name with the same number on all ready pods, or use a number as `targetPort`
        "#]],
    );
}

#[test]
fn a_live_port_that_is_unresolved_for_a_minute_is_warned_about_too() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a port=8080
         service web applied port=80->http
         #1 done
         #2 done
         show notices
         show times
         endpoints web 10.0.0.5@node-a port=9090 slice=2
         #3 done
         tick 300",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            t=0.9 #3 push 10.0.0.5 to node-a for web   because addresses changed
            t=60.9 warn web: PortUnresolved: Ready endpoints define different numbers for targetPort "http"; the load balancer keeps port 8080. Define the port name with the same number on all ready pods, or use a number as `targetPort`
        "#]],
    );
}

#[test]
pub(super) fn the_finalizer_goes_only_after_azure_has_confirmed_the_last_deletion() {
    check(
        "service web applied
         #1 done
         service web applied deleting
         #2 failed ServerBusy 503 at delete-public-ip
         tick 1
         explain web
         tick 5
         #3 done
         #4 unavailable
         tick 5
         #5 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            web is DeletionInProgress, not wanted, waits: AzureUnavailable, 1 failures
              waits for its next attempt at t=1.6: AzureUnavailable
            #3 deprovision web: delete-public-ip   because retry due
            #4 remove finalizer from web   because operation ended
            #5 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_refusal_that_follows_a_conflict_is_told_too() {
    check(
        "show notices
         service web applied nofinalizer
         #1 conflict
         tick 2
         #2 refused
         tick 5
         #3 refused
         tick 9",
        expect![[r#"
            #1 add finalizer to web   because service applied
            #2 add finalizer to web   because service applied
            warn web: KubernetesRejected: The API server rejected the patch: a webhook said no. Sluice retries; grant the permission, or exempt its service account from the webhook or policy
            #3 add finalizer to web   because service applied
            #4 add finalizer to web   because service applied
        "#]],
    );
}
#[test]
pub(super) fn conditions_follow_a_service_through_its_life() {
    check(
        "show status
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied port=81->8081
         #3 done
         service web applied deleting port=81->8081
         #4 done
         #5 done
         #6 done",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            #2 push 10.0.0.4 to node-a for web   because service became ready
            (write status of web: 20.1.2.1, Provisioning Updating, Serving Provisioned)
            #3 update web: load-balancer   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            (write status of web: not 20.1.2.1, Provisioning Draining, not Serving Draining)
            #4 remove node-a   because addresses changed
            (write status of web: not 20.1.2.1, Provisioning Deleting, not Serving Deleting)
            #5 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            (write status of web: nothing)
            #6 remove finalizer from web   because operation ended
        "#]],
    );
}
