//! Stories about the first look: adopt what is right, mend what is not, and delete nothing without proof.

use expect_test::expect;

use super::story::{Story, check};

#[test]
pub(super) fn nothing_is_asked_for_before_we_lead() {
    check(
        "service web known
         node node-a 192.168.0.1
         service web applied
         endpoints web 10.0.0.4@node-a
         tick 60
         hold lists
         lead",
        expect![[r#"
            #1 list gateway   because start-up
            #2 list registrations   because start-up
            #3 list locations   because start-up
            #4 list load-balancers   because start-up
            #5 list nat-gateways   because start-up
            #6 list public-ips   because start-up
        "#]],
    );
}

#[test]
pub(super) fn nothing_is_written_before_all_of_azure_has_been_listed() {
    check(
        "hold lists
         service web known
         lead
         #1 done
         #2 done
         #3 done
         #4 done
         #5 done
         explain web
         #6 done",
        expect![[r#"
            #1 list gateway   because start-up
            #2 list registrations   because start-up
            #3 list locations   because start-up
            #4 list load-balancers   because start-up
            #5 list nat-gateways   because start-up
            #6 list public-ips   because start-up
            web is NotStarted, wanted
              waits for the first listing of Azure
            #7 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_listing_that_fails_is_repeated_and_nothing_is_believed_meanwhile() {
    check(
        "show times
         azure fails to list public-ips
         service web known
         show lists
         lead
         tick 4
         azure lists public-ips again
         tick 8",
        expect![[r#"
            t=0.5 (list gateway)
            t=0.5 (list registrations)
            t=0.5 (list locations)
            t=0.5 (list load-balancers)
            t=0.5 (list nat-gateways)
            t=0.5 (list public-ips)
            t=1.5 (list public-ips)
            t=3.5 (list public-ips)
            t=7.5 (list public-ips)
            t=7.5 #1 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn start_up_from_complete_listings_adopts_without_a_write_and_starts_what_is_missing() {
    check(
        "service web known
         service api known nofinalizer
         service old known deleting
         pod p1 known egress=blue ip=10.1.0.1 node=node-a
         azure has web
         azure has old
         lead
         state web
         state old",
        expect![[r#"
            #1 add finalizer to api   because service applied
            #2 deprovision old: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 provision blue: public-ip, nat-gateway, register   because pods came
            web is Created
            old is DeletionInProgress
        "#]],
    );
}

#[test]
pub(super) fn a_lone_public_ip_of_ours_that_nobody_wants_goes_after_two_sightings() {
    check(
        "azure has uid=9 public-ip
         lead
         tick 1
         #1 gone
         #2 done",
        expect![[r#"
            #1 ask whether ghost is gone   because service no longer wanted
            #2 inspect 00000000-0000-0000-0000-000000000009: read-load-balancer, read-registration   because orphaned
            #3 deprovision 00000000-0000-0000-0000-000000000009: delete-public-ip   because orphaned
        "#]],
    );
}

#[test]
pub(super) fn a_missing_gateway_is_made_and_the_subnet_attached_before_any_service_starts() {
    check(
        "service web known
         azure loses gateway
         azure detaches subnet
         lead
         explain web
         #1 done
         #2 done
         state web",
        expect![[r#"
            #1 provision gateway: gateway, attach-subnet   because start-up
            web is NotStarted, wanted
              waits for the gateway
            #2 provision web: public-ip, load-balancer, register   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn an_unattached_subnet_is_attached() {
    check(
        "azure detaches subnet
         lead",
        expect![[r#"
            #1 provision gateway: attach-subnet   because start-up
        "#]],
    );
}

#[test]
pub(super) fn verify_makes_no_gateway_and_says_what_is_missing() {
    check(
        "config gateway=verify
         show notices
         service web known
         azure loses gateway
         lead
         explain web
         tick 2000",
        expect![[r#"
            warn cluster: GatewayUnavailable: Gateway /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/serviceGateways/servicegateway does not exist. Create it, or set sluice.gateway.mode to ensure
            web is NotStarted, wanted
              waits for the first listing of Azure
              waits for the gateway
        "#]],
    );
}

#[test]
pub(super) fn verify_attaches_no_subnet_and_says_what_is_missing() {
    check(
        "config gateway=verify
         show notices
         azure detaches subnet
         lead",
        expect![[r#"
            warn cluster: GatewayUnavailable: Subnet /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet/subnets/subnet is not attached to the gateway. Attach it, or set sluice.gateway.mode to ensure
        "#]],
    );
}

#[test]
pub(super) fn a_gateway_of_another_cluster_is_refused() {
    check(
        "show notices
         service web known
         azure gateway of cluster-2
         azure has web
         lead
         explain web
         tick 4000",
        expect![[r#"
            warn cluster: GatewayUnavailable: Gateway /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/serviceGateways/servicegateway belongs to cluster cluster-2. Set another sluice.gateway.name, or correct sluice.clusterId
            web is NotStarted, wanted
              waits for the first listing of Azure
              waits for the gateway
        "#]],
    );
}

#[test]
pub(super) fn a_subnet_that_is_attached_to_another_gateway_is_refused() {
    check(
        "show notices
         azure attaches subnet elsewhere
         lead",
        expect![[r#"
            warn cluster: GatewayUnavailable: Subnet /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet/subnets/subnet is attached to /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/serviceGateways/another. Detach the subnet, or set sluice.gateway.name to the gateway that it is attached to
        "#]],
    );
}

#[test]
pub(super) fn a_gateway_that_becomes_usable_is_used() {
    check(
        "service web known
         azure gateway of cluster-2
         lead
         azure gateway of cluster-1
         tick 2000",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn the_default_outbound_service_is_made_when_none_is_registered() {
    check(
        "config default-outbound=ensure
         lead
         #1 done
         #2 done",
        expect![[r#"
            #1 inspect default-natgw: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because asked for
            #2 provision default-natgw: public-ip, nat-gateway, register   because asked for
        "#]],
    );
}

#[test]
pub(super) fn a_default_outbound_service_that_is_ours_is_adopted() {
    check(
        "config default-outbound=ensure
         azure has egress=default-natgw
         lead
         initial sync
         tick 3600",
        expect![[r#"
            initial sync is done, 0 left
        "#]],
    );
}

#[test]
pub(super) fn a_default_outbound_service_of_somebody_else_is_never_touched() {
    check(
        "config default-outbound=ensure
         azure registers corporate default
         lead
         tick 3600",
        expect![[""]],
    );
}

#[test]
pub(super) fn switching_the_default_outbound_off_never_deletes_it() {
    check(
        "azure has egress=default-natgw
         lead
         tick 7200",
        expect![[""]],
    );
}

#[test]
pub(super) fn a_new_service_is_served_while_the_initial_difference_is_being_worked_off() {
    check(
        "service web known
         lead
         service api applied
         #2 done
         initial sync
         #1 done
         initial sync",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 provision api: public-ip, load-balancer, register   because service applied
            initial sync is not done, 1 left
            initial sync is done, 0 left
        "#]],
    );
}

#[test]
pub(super) fn the_initial_sync_ends_when_every_service_of_the_first_difference_has_succeeded_or_is_parked() {
    check(
        "service web known
         service api known
         service bad known invalid
         lead
         initial sync
         #1 failed QuotaExceeded 400
         initial sync
         #2 done
         initial sync",
        expect![[r#"
            #1 provision api: public-ip, load-balancer, register   because service applied
            #2 provision web: public-ip, load-balancer, register   because service applied
            initial sync is not done, 2 left
            initial sync is not done, 1 left
            initial sync is done, 0 left
        "#]],
    );
}

#[test]
pub(super) fn an_engine_that_lost_the_lease_emits_nothing_any_more() {
    check(
        "service web known
         lead
         leadership lost
         #1 done
         service api applied
         tick 4000",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_relist_of_everything_during_the_start_up_changes_nothing() {
    check(
        "hold lists
         service web known
         azure has web
         lead
         services relisted
         slices relisted
         pods relisted
         nodes relisted
         #1 done
         #2 done
         #3 done
         #4 done
         #5 done
         #6 done
         state web",
        expect![[r#"
            #1 list gateway   because start-up
            #2 list registrations   because start-up
            #3 list locations   because start-up
            #4 list load-balancers   because start-up
            #5 list nat-gateways   because start-up
            #6 list public-ips   because start-up
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_gateway_that_nobody_has_claimed_is_claimed() {
    check(
        "azure gateway of nobody
         lead
         #1 done",
        expect![[r#"
            #1 provision gateway: claim-gateway   because start-up
        "#]],
    );
}

#[test]
pub(super) fn a_gateway_whose_last_write_failed_is_written_back_as_it_is() {
    check(
        "azure fails gateway
         lead
         #1 done",
        expect![[r#"
            #1 provision gateway: repair-gateway   because start-up
        "#]],
    );
}

#[test]
pub(super) fn a_failed_gateway_that_nobody_has_claimed_is_claimed_before_it_is_written() {
    check(
        "azure gateway of nobody
         azure fails gateway
         lead
         #1 done",
        expect![[r#"
            #1 provision gateway: claim-gateway, repair-gateway   because start-up
        "#]],
    );
}

#[test]
pub(super) fn verify_claims_no_gateway_and_says_how_to() {
    check(
        "config gateway=verify
         show notices
         azure gateway of nobody
         lead",
        expect![[r#"
            warn cluster: GatewayUnavailable: Gateway /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/serviceGateways/servicegateway is not managed by this cluster. Run `sluice adopt gateway`
        "#]],
    );
}
#[test]
pub(super) fn a_gateway_that_cannot_be_made_is_told_and_tried_again_every_minute_since_everything_stands_on_it()
 {
    check(
        "show notices
         show times
         azure loses gateway
         lead
         #1 failed AuthorizationFailed 403
         tick 400
         #2 done",
        expect![[r#"
            t=0.4 #1 provision gateway: gateway   because start-up
            t=0.5 warn cluster: Forbidden: Cannot set up the gateway: AuthorizationFailed (forbidden): as the story says. Sluice retries; run `sluice doctor`
            t=60.5 #2 provision gateway: gateway   because start-up
        "#]],
    );
}

#[test]
pub(super) fn a_standby_asks_for_nothing_and_catches_up_when_it_leads() {
    let mut story = Story::standby(Story::config());
    story.play(
        "show notices
         service web applied
         services relisted stale
         pod p1 egress=UPPER/CASE ip=10.1.0.1 node=node-a
         pod p1 egress=UPPER/CASE ip=10.1.0.1 node=node-a",
    );
    expect![[""]].assert_eq(&story.shown());
    story.tell(sluice_model::Event::LeadershipGained);
    story.play("pod p1 egress=UPPER/CASE ip=10.1.0.1 node=node-a");
    expect![[r##"
        #1 list Services of Kubernetes again   because start-up
        warn pod p1: InvalidSpec: Ignored egress label "UPPER/CASE": the name has characters other than a-z, 0-9, '.', '_' and '-'. Correct the label
    "##]].assert_eq(&story.shown());
}

#[test]
pub(super) fn the_initial_sync_is_not_done_before_the_gateway_is_there() {
    check(
        "config default-outbound=ensure
         azure loses gateway
         lead
         initial sync
         #1 done
         initial sync
         #2 done
         #3 done
         initial sync",
        expect![[r#"
            #1 provision gateway: gateway   because start-up
            initial sync is not done, 1 left
            #2 inspect default-natgw: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because asked for
            initial sync is not done, 1 left
            #3 provision default-natgw: public-ip, nat-gateway, register   because asked for
            initial sync is done, 0 left
        "#]],
    );
}

#[test]
pub(super) fn without_any_service_the_initial_sync_waits_for_the_gateway_and_ends_when_it_cannot_be_made() {
    check(
        "azure loses gateway
         lead
         initial sync
         #1 failed AuthorizationFailed 403
         initial sync",
        expect![[r#"
            #1 provision gateway: gateway   because start-up
            initial sync is not done, 0 left
            initial sync is done, 0 left
        "#]],
    );
}
