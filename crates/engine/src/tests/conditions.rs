//! Stories about what a Service shows while something is in its way: its conditions and its IP.

use expect_test::expect;

use super::story::check;

#[test]
fn an_ip_that_was_taken_off_is_not_published_again_while_nothing_is_decided() {
    check(
        "show status
         service web known published=20.1.2.1 ingress=1.2.3.4
         azure gateway of cluster-before
         azure has web
         lead",
        expect![[r#"
            (write status of web: Provisioning GatewayUnavailable, not Serving GatewayUnavailable)
        "#]],
    );
}

#[test]
fn services_whose_teardown_the_brake_holds_keep_their_ip_and_say_why() {
    check(
        "show status
         show notices
         service a known other-class published=20.1.2.1 ingress=20.1.2.1
         service b known other-class
         service c known other-class
         service d known other-class
         service e known other-class
         service f known other-class
         azure has a
         azure has b
         azure has c
         azure has d
         azure has e
         azure has f
         lead
         explain a
         tick 4000
         hide notices
         allow deletion",
        expect![[r#"
            warn cluster: MassDeletionHeld: Mass-deletion guard: held deletion of 6 gateway services: service/shop/a, service/shop/b, service/shop/c, service/shop/d, service/shop/e, service/shop/f. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
            (write status of a: 20.1.2.1, Provisioning MassDeletionHeld, Serving Provisioned)
            (write status of b: Provisioning MassDeletionHeld, not Serving MassDeletionHeld)
            (write status of c: Provisioning MassDeletionHeld, not Serving MassDeletionHeld)
            (write status of d: Provisioning MassDeletionHeld, not Serving MassDeletionHeld)
            (write status of e: Provisioning MassDeletionHeld, not Serving MassDeletionHeld)
            (write status of f: Provisioning MassDeletionHeld, not Serving MassDeletionHeld)
            a is DeletionPending, not wanted, live, 20.1.2.1
              waits for consent to a mass deletion
            (write status of a: not 20.1.2.1, Provisioning Deleting, not Serving Deleting)
            (write status of b: not 20.1.2.2, Provisioning Deleting, not Serving Deleting)
            (write status of c: not 20.1.2.3, Provisioning Deleting, not Serving Deleting)
            (write status of d: not 20.1.2.4, Provisioning Deleting, not Serving Deleting)
            (write status of e: not 20.1.2.5, Provisioning Deleting, not Serving Deleting)
            (write status of f: not 20.1.2.6, Provisioning Deleting, not Serving Deleting)
            #1 deprovision a: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
            #2 deprovision b: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
            #3 deprovision c: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
            #4 deprovision d: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
            #5 deprovision e: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
            #6 deprovision f: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
        "#]],
    );
}

#[test]
fn a_new_cluster_id_finds_the_gateway_of_another_and_touches_nothing() {
    check(
        "show status
         service web known published=20.1.2.1 ingress=20.1.2.1
         azure gateway of cluster-before
         azure has web
         lead
         tick 10000",
        expect![[r#"
            (write status of web: 20.1.2.1, Provisioning GatewayUnavailable, not Serving GatewayUnavailable)
        "#]],
    );
}

#[test]
fn a_new_cluster_id_with_a_new_gateway_leaves_the_resources_of_the_old_one_alone() {
    check(
        "show notices
         service a known
         service b known deleting
         azure has a public-ip load-balancer tagged=cluster-before
         azure has b public-ip load-balancer tagged=cluster-before
         lead
         tick 10000
         state a
         state b",
        expect![[r#"
            warn a: Conflict: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/a exists and is not managed by this cluster. Delete it, or claim it as `sluice explain SGW0011` describes
            #1 remove finalizer from b   because operation ended
            #2 inspect a: read-public-ip, read-load-balancer, read-registration   because service applied
            a is NotStarted
            b is NotStarted
        "#]],
    );
}

#[test]
fn while_the_gateway_cannot_be_used_every_service_says_so_and_when_it_can_all_is_made() {
    check(
        "show status
         service web known nofinalizer
         service old known deleting
         azure gateway of cluster-2
         lead
         service new applied nofinalizer
         tick 300
         azure gateway of cluster-1
         tick 61",
        expect![[r#"
            (write status of old: Provisioning GatewayUnavailable, not Serving GatewayUnavailable)
            (write status of web: Provisioning GatewayUnavailable, not Serving GatewayUnavailable)
            (write status of new: Provisioning GatewayUnavailable, not Serving GatewayUnavailable)
            (write status of old: nothing)
            #1 remove finalizer from old   because operation ended
            #2 add finalizer to web   because service applied
            #3 add finalizer to new   because service applied
        "#]],
    );
}

#[test]
fn a_subnet_that_does_not_exist_is_said_and_looked_for_again() {
    check(
        "show notices
         show status
         azure loses subnet
         service web known
         lead
         azure gains subnet
         tick 61",
        expect![[r#"
            warn cluster: GatewayUnavailable: Subnet /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet/subnets/subnet does not exist. Create it, or correct vnetName, vnetResourceGroup and subnetName (or sluice.gateway.subnet)
            (write status of web: Provisioning GatewayUnavailable, not Serving GatewayUnavailable)
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
fn a_gateway_that_somebody_else_takes_stops_us_and_services_show_it() {
    check(
        "show status
         show notices
         service web applied
         #1 done
         tick 60
         azure gateway of cluster-2
         tick 1000
         service web applied port=81->8081
         azure gateway of cluster-1
         tick 61",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            warn cluster: GatewayUnavailable: Gateway /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/serviceGateways/servicegateway belongs to cluster cluster-2. Set another sluice.gateway.name, or correct sluice.clusterId
            (write status of web: 20.1.2.1, Provisioning GatewayUnavailable, Serving Provisioned)
            (write status of web: 20.1.2.1, Provisioning Updating, Serving Provisioned)
            #2 update web: load-balancer   because service applied
        "#]],
    );
}

#[test]
fn a_live_load_balancer_whose_named_port_is_unclear_keeps_it_and_shows_that() {
    check(
        "show status
         show notices
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a port=8080
         service web applied port=80->http
         #1 done
         #2 done
         endpoints web 10.0.0.5@node-a port=9090 slice=2
         explain web
         #3 done
         endpoints web deleted slice=2
         #4 done
         endpoints web 10.0.0.4@node-a port=9090
         #5 done",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            #2 push 10.0.0.4 to node-a for web   because service became ready
            (write status of web: 20.1.2.1, Provisioning PortUnresolved, Serving Provisioned)
            #3 push 10.0.0.5 to node-a for web   because addresses changed
            web is Created, wanted, live, 20.1.2.1, addresses: 2 wanted, 1 programmed, 2 mapped
              waits for a change: Ready endpoints define different numbers for targetPort "http"; the load balancer keeps port 8080
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            #4 remove 10.0.0.5 from node-a   because addresses changed
            (write status of web: 20.1.2.1, Provisioning Updating, Serving Provisioned)
            #5 update web: load-balancer   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
fn a_long_pause_that_azure_asks_for_is_shown_and_a_short_one_is_not() {
    check(
        "show status
         service web applied
         #1 throttled 5
         #1 wants
         #1 throttled 90
         explain web
         tick 90
         #1 wants
         #1 done",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 resume #1   because slot granted
            (write status of web: Provisioning Throttled, not Serving Throttled)
            web is CreationInProgress, wanted
              waits for operation #1
              waits for its next attempt at t=90.6: Throttled
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #3 resume #1   because slot granted
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
fn annotations_without_effect_are_told_once_and_change_nothing() {
    check(
        "show notices
         service web applied annotations=a,b
         #1 failed QuotaExceeded 400
         service web applied annotations=a,b
         service web applied annotations=a
         service web applied
         tick 60
         state web",
        expect![[r#"
            warn web: InvalidSpec: Ignored unsupported annotations: a, b. Remove them
            #1 provision web: public-ip, load-balancer, register   because service applied
            warn web: QuotaExceeded: Azure quota used up: QuotaExceeded (quota): as the story says. Request a higher limit for the quota that Azure names, or delete unused resources
            warn web: InvalidSpec: Ignored unsupported annotations: a. Remove them
            web is NotStarted
        "#]],
    );
}

#[test]
fn a_service_that_prefers_two_families_is_served_with_the_first_and_told_once() {
    check(
        "show notices
         service web applied both-families=prefer
         #1 done
         service web applied both-families=prefer
         service web applied
         tick 60
         state web",
        expect![[r#"
            warn web: InvalidSpec: Only the first IP family of spec.ipFamilyPolicy PreferDualStack is served. Set it to SingleStack
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is Created
        "#]],
    );
}

#[test]
fn a_service_says_when_it_is_ready_updated_repaired_and_on_its_way_out_once_each() {
    check(
        "show news
         service web applied
         #1 failed ServerBusy 503 at load-balancer
         tick 5
         #2 done
         #3 done
         tick 5
         service web applied port=81->8081
         #4 done
         tick 60
         azure changes load-balancer web
         tick 2000
         #5 done
         service web applied deleting
         #6 failed ServerBusy 503
         tick 5
         #7 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-load-balancer   because outcome unknown
            #3 provision web: load-balancer, register   because retry due
            tell web: Provisioned: Load balancer is ready; public IP 20.1.2.1
            #4 update web: load-balancer   because service applied
            tell web: Provisioned: Updated load balancer; public IP 20.1.2.1
            #5 update web: load-balancer   because drift found
            tell web: Provisioned: Restored load balancer after an external change; public IP 20.1.2.1
            #6 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            tell web: Deleting: Drained; deleting load balancer and public IP
            #7 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            #8 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
fn what_is_adopted_as_it_was_is_no_news() {
    check(
        "show news
         service web known
         azure has web
         lead
         tick 60",
        expect![[""]],
    );
}

#[test]
fn a_condition_has_the_detail_of_a_failure_and_no_retry_writes_it_again() {
    check(
        "show status
         show messages
         service web applied
         #1 failed QuotaExceeded 400 says=At_most_10_public_IPs._Request_1f0a.
         tick 4000
         #2 failed QuotaExceeded 400 says=At_most_12_public_IPs._Request_2e9b.
         tick 9000
         #3 failed QuotaExceeded 400 says=At_most_10_public_IPs._Request_3d8c.
         tick 9000
         #4 failed QuotaExceeded 400 says=At_most_10_public_IPs._Request_4c7d.
         tick 9000
         #5 failed QuotaExceeded 400 says=At_most_10_public_IPs._Request_5b6e.
         tick 9000
         #6 failed QuotaExceeded 400 says=At_most_40_load_balancers._Request_6a5f.
         tick 9000
         #7 done",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: Provisioning QuotaExceeded, not Serving QuotaExceeded, Azure quota used up: QuotaExceeded (quota): At most 10 public IPs. Request 1f0a. Request a higher limit for the quota that Azure names, or delete unused resources. Sluice retries later, or as soon as the Service changes. Details: `sluice explain service/shop/web` and `sluice explain SGW0008`.)
            #2 inspect web: read-public-ip   because outcome unknown
            #3 provision web: public-ip, load-balancer, register   because retry due
            #4 provision web: public-ip, load-balancer, register   because retry due
            #5 provision web: public-ip, load-balancer, register   because retry due
            #6 provision web: public-ip, load-balancer, register   because retry due
            (write status of web: Provisioning QuotaExceeded, not Serving QuotaExceeded, Azure quota used up: QuotaExceeded (quota): At most 40 load balancers. Request 6a5f. Request a higher limit for the quota that Azure names, or delete unused resources. Sluice retries later, or as soon as the Service changes. Details: `sluice explain service/shop/web` and `sluice explain SGW0008`.)
            #7 provision web: public-ip, load-balancer, register   because retry due
            (write status of web: Provisioning Updating, not Serving Updating)
            #8 inspect web: read-public-ip   because outcome unknown
        "#]],
    );
}

#[test]
fn in_an_outage_a_condition_keeps_the_first_answer_of_azure() {
    check(
        "show status
         show messages
         service web applied
         plans fail InternalServerError 500 says=Try_later.
         #1 failed InternalServerError 500 says=Try_later.
         tick 60
         plans fail ServerBusy 503 says=Overloaded.
         tick 60",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-public-ip   because outcome unknown
            #3 provision web: public-ip, load-balancer, register   because retry due
            #4 inspect web: read-public-ip   because outcome unknown
            #5 provision web: public-ip, load-balancer, register   because retry due
            (write status of web: Provisioning AzureUnavailable, not Serving AzureUnavailable, Azure did not complete the request: InternalServerError (transient): Try later. Check the error of Azure; if it names no cause, check Azure Service Health and the network between the controller and Azure. Sluice retries until it succeeds. Details: `sluice explain service/shop/web` and `sluice explain SGW0013`.)
            #6 inspect web: read-public-ip   because outcome unknown
            #7 provision web: public-ip, load-balancer, register   because retry due
            #8 inspect web: read-public-ip   because outcome unknown
            #9 provision web: public-ip, load-balancer, register   because retry due
            #10 inspect web: read-public-ip   because outcome unknown
            #11 provision web: public-ip, load-balancer, register   because retry due
            #12 inspect web: read-public-ip   because outcome unknown
            #13 provision web: public-ip, load-balancer, register   because retry due
            #14 inspect web: read-public-ip   because outcome unknown
            #15 provision web: public-ip, load-balancer, register   because retry due
        "#]],
    );
}

#[test]
fn a_condition_follows_what_the_owner_of_the_service_changes() {
    check(
        "show status
         show messages
         service web applied port=80->0
         service web applied port=81->0
         service web applied port=80->8080/sctp
         service web applied",
        expect![[r#"
            (write status of web: Provisioning InvalidSpec, not Serving InvalidSpec, Port 80 has targetPort 0; set another targetPort. Details: `sluice explain service/shop/web` and `sluice explain SGW0010`.)
            (write status of web: Provisioning InvalidSpec, not Serving InvalidSpec, Port 81 has targetPort 0; set another targetPort. Details: `sluice explain service/shop/web` and `sluice explain SGW0010`.)
            (write status of web: Provisioning InvalidSpec, not Serving InvalidSpec, Port 80 uses SCTP, which Azure load balancers do not support; use TCP or UDP. Details: `sluice explain service/shop/web` and `sluice explain SGW0010`.)
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
fn a_new_leader_keeps_the_detail_that_the_condition_shows() {
    check(
        "show status
         show messages
         service web known stuck=quota
         lead
         #1 failed QuotaExceeded 400 says=At_most_10_public_IPs.
         tick 4000
         #2 failed QuotaExceeded 400 says=At_most_10_public_IPs.",
        expect![[r#"
            (write status of web: Provisioning QuotaExceeded, not Serving QuotaExceeded, Azure quota used up: as the leader before has written.)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: Provisioning QuotaExceeded, not Serving QuotaExceeded, Azure quota used up: QuotaExceeded (quota): At most 10 public IPs. Request a higher limit for the quota that Azure names, or delete unused resources. Sluice retries later, or as soon as the Service changes. Details: `sluice explain service/shop/web` and `sluice explain SGW0008`.)
            #2 inspect web: read-public-ip   because outcome unknown
        "#]],
    );
}

#[test]
fn pauses_after_a_failure_do_not_change_the_message() {
    check(
        "show status
         show messages
         service web applied
         #1 failed ServerBusy 503 says=Overloaded.
         plans fail TooManyRequests 429 after=20 says=Wait.
         tick 330
         plans fail TooManyRequests 429 after=25 says=Wait_longer.
         tick 60",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-public-ip   because outcome unknown
            #3 provision web: public-ip, load-balancer, register   because retry due
            #4 inspect web: read-public-ip   because outcome unknown
            #5 provision web: public-ip, load-balancer, register   because retry due
            #6 inspect web: read-public-ip   because outcome unknown
            #7 provision web: public-ip, load-balancer, register   because retry due
            #8 inspect web: read-public-ip   because outcome unknown
            #9 provision web: public-ip, load-balancer, register   because retry due
            #10 inspect web: read-public-ip   because outcome unknown
            #11 provision web: public-ip, load-balancer, register   because retry due
            #12 inspect web: read-public-ip   because outcome unknown
            #13 provision web: public-ip, load-balancer, register   because retry due
            #14 inspect web: read-public-ip   because outcome unknown
            #15 provision web: public-ip, load-balancer, register   because retry due
            #16 inspect web: read-public-ip   because outcome unknown
            #17 provision web: public-ip, load-balancer, register   because retry due
            #18 inspect web: read-public-ip   because outcome unknown
            #19 provision web: public-ip, load-balancer, register   because retry due
            #20 inspect web: read-public-ip   because outcome unknown
            #21 provision web: public-ip, load-balancer, register   because retry due
            #22 inspect web: read-public-ip   because outcome unknown
            #23 provision web: public-ip, load-balancer, register   because retry due
            #24 inspect web: read-public-ip   because outcome unknown
            #25 provision web: public-ip, load-balancer, register   because retry due
            #26 inspect web: read-public-ip   because outcome unknown
            #27 provision web: public-ip, load-balancer, register   because retry due
            #28 inspect web: read-public-ip   because outcome unknown
            #29 provision web: public-ip, load-balancer, register   because retry due
            #30 inspect web: read-public-ip   because outcome unknown
            #31 provision web: public-ip, load-balancer, register   because retry due
            (write status of web: Provisioning AzureUnavailable, not Serving AzureUnavailable, Azure did not complete the request: TooManyRequests (throttled): Wait. Check the error of Azure; if it names no cause, check Azure Service Health and the network between the controller and Azure. Sluice retries until it succeeds. Details: `sluice explain service/shop/web` and `sluice explain SGW0013`.)
            #32 inspect web: read-public-ip   because outcome unknown
            #33 provision web: public-ip, load-balancer, register   because retry due
            #34 inspect web: read-public-ip   because outcome unknown
            #35 provision web: public-ip, load-balancer, register   because retry due
            #36 inspect web: read-public-ip   because outcome unknown
            #37 provision web: public-ip, load-balancer, register   because retry due
            #38 inspect web: read-public-ip   because outcome unknown
            #39 provision web: public-ip, load-balancer, register   because retry due
        "#]],
    );
}
