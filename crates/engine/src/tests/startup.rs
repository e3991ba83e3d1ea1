//! Stories about the first look: adopt what is right, mend what is not, and delete nothing without proof.

use expect_test::expect;

use super::story::check;

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
pub(super) fn what_is_already_right_is_adopted_without_a_write() {
    check(
        "service web known port=80->8080
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         azure has web
         azure has address 10.0.0.4 at 192.168.0.1 for web
         lead
         explain web
         initial sync
         tick 7200
         state web",
        expect![[r#"
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
            initial sync is done, 0 left
            web is Created
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
pub(super) fn what_is_registered_but_different_is_updated_and_its_addresses_are_kept_meanwhile() {
    check(
        "node node-a 192.168.0.1
         service web known
         endpoints web 10.0.0.4@node-a
         azure has web backend=9999
         lead
         state web",
        expect![[r#"
            #1 push 10.0.0.4 to node-a for web   because service became ready
            #2 update web: load-balancer   because service applied
            web is UpdateInProgress
        "#]],
    );
}

#[test]
pub(super) fn what_is_registered_without_its_public_ip_gets_the_full_plan() {
    check(
        "service web known
         azure has web load-balancer registration
         lead
         state web",
        expect![[r#"
            #1 update web: public-ip, load-balancer   because service applied
            web is UpdateInProgress
        "#]],
    );
}

#[test]
pub(super) fn what_is_registered_without_its_load_balancer_gets_the_full_plan() {
    check(
        "service web known
         azure has web public-ip registration
         lead",
        expect![[r#"
            #1 update web: load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn what_is_partly_made_is_finished_without_repeating_what_is_right() {
    check(
        "service web known
         service api known
         service cart known
         azure has web public-ip
         azure has api public-ip load-balancer
         azure has cart registration public-ip load-balancer cleared
         lead
         state web",
        expect![[r#"
            #1 provision api: register   because service applied
            #2 provision cart: register   because service applied
            #3 provision web: load-balancer, register   because service applied
            web is CreationInProgress
        "#]],
    );
}

#[test]
pub(super) fn what_is_registered_and_invalid_is_live_and_waits_for_its_owner() {
    check(
        "show notices
         node node-a 192.168.0.1
         service web known invalid
         endpoints web 10.0.0.4@node-a
         azure has web
         lead
         explain web",
        expect![[r#"
            #1 push 10.0.0.4 to node-a for web   because service became ready
            warn web: InvalidSpec: internal load balancers are not supported; remove the annotation
            web is UpdateInProgress, wanted, live, 20.1.2.1, addresses: 1 wanted, 0 programmed, 1 mapped
              waits for a change: internal load balancers are not supported; remove the annotation
        "#]],
    );
}

#[test]
pub(super) fn a_crash_between_create_and_register_is_finished_after_the_restart() {
    check(
        "service web known
         azure has web public-ip load-balancer
         lead
         #1 done
         state web",
        expect![[r#"
            #1 provision web: register   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_lone_public_ip_of_a_service_that_is_going_is_removed_before_its_finalizer() {
    check(
        "service web known deleting
         azure has web public-ip
         lead
         #1 done
         #2 done
         state web",
        expect![[r#"
            #1 deprovision web: delete-public-ip   because last address left
            #2 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_finalizer_with_nothing_behind_it_is_taken_off() {
    check(
        "service web known deleting
         service api known clusterip
         lead
         #1 done
         #2 done
         state web
         state api",
        expect![[r#"
            #1 remove finalizer from api   because operation ended
            #2 remove finalizer from web   because operation ended
            web is forgotten
            api is forgotten
        "#]],
    );
}

#[test]
pub(super) fn addresses_of_a_service_that_is_going_drain_after_a_restart() {
    check(
        "node node-a 192.168.0.1
         service web known deleting
         endpoints web 10.0.0.4@node-a
         azure has web
         azure has address 10.0.0.4 at 192.168.0.1 for web
         lead
         state web
         #1 done
         #2 done",
        expect![[r#"
            #1 remove node-a   because service became ready
            web is DeletionPending
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn stale_addresses_of_a_live_service_are_removed_at_start_up() {
    check(
        "node node-a 192.168.0.1
         service web known
         endpoints web 10.0.0.4@node-a
         azure has web
         azure has address 10.0.0.4 at 192.168.0.1 for web
         azure has address 10.0.0.5 at 192.168.0.1 for web
         lead",
        expect![[r#"
            #1 remove 10.0.0.5 from node-a   because service became ready
        "#]],
    );
}

#[test]
pub(super) fn an_orphan_needs_two_sightings_and_a_live_answer() {
    check(
        "show times
         show lists
         azure has uid=9
         lead
         tick 1
         #1 gone
         #2 done",
        expect![[r#"
            t=0.4 (list gateway)
            t=0.4 (list registrations)
            t=0.4 (list locations)
            t=0.4 (list load-balancers)
            t=0.4 (list nat-gateways)
            t=0.4 (list public-ips)
            t=0.5 (list gateway)
            t=0.5 (list registrations)
            t=0.5 #1 ask whether ghost is gone   because service no longer wanted
            t=0.5 (list locations)
            t=0.5 (list load-balancers)
            t=0.5 (list nat-gateways)
            t=0.5 (list public-ips)
            t=1.6 #2 deprovision 00000000-0000-0000-0000-000000000009: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
        "#]],
    );
}

#[test]
pub(super) fn an_orphan_whose_object_exists_after_all_is_left_alone() {
    check(
        "show times
         azure has uid=9
         lead
         tick 1
         #1 exists
         tick 25
         tick 10
         #3 unclear
         tick 10",
        expect![[r#"
            t=0.4 #1 ask whether ghost is gone   because service no longer wanted
            t=1.5 #2 list Services of Kubernetes again   because drift found
            t=31.5 #3 ask whether ghost is gone   because service no longer wanted
            t=37.8 #4 ask whether ghost is gone   because service no longer wanted
        "#]],
    );
}

#[test]
pub(super) fn an_orphan_that_was_seen_only_once_is_left_alone() {
    check(
        "hold lists
         azure has uid=9 public-ip
         lead
         #1 done
         #2 done
         #3 done
         #4 done
         #5 done
         #6 done
         azure loses public-ip uid=9
         release lists
         tick 7200",
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
pub(super) fn a_lone_public_ip_of_ours_that_nobody_wants_goes_after_two_sightings() {
    check(
        "azure has uid=9 public-ip
         lead
         tick 1
         #1 gone
         #2 done",
        expect![[r#"
            #1 ask whether ghost is gone   because service no longer wanted
            #2 deprovision 00000000-0000-0000-0000-000000000009: delete-public-ip   because orphaned
        "#]],
    );
}

#[test]
pub(super) fn an_orphaned_egress_goes_after_two_sightings() {
    check(
        "azure has egress=blue
         lead
         tick 1
         #1 done",
        expect![[r#"
            #1 deprovision blue: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
        "#]],
    );
}

#[test]
pub(super) fn an_orphan_with_addresses_drains_first() {
    check(
        "azure has uid=9
         azure has address 10.0.0.4 at 192.168.0.1 for uid=9
         lead
         tick 1
         #1 gone
         #2 done
         #3 done",
        expect![[r#"
            #1 ask whether ghost is gone   because service no longer wanted
            #2 remove 192.168.0.1   because addresses changed
            #3 deprovision 00000000-0000-0000-0000-000000000009: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
        "#]],
    );
}

#[test]
pub(super) fn an_orphan_that_is_wanted_before_its_teardown_is_adopted() {
    check(
        "node node-a 192.168.0.1
         azure has egress=blue
         azure has address 10.1.0.1 at 192.168.0.1 for egress=blue
         lead
         state blue
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         state blue",
        expect![[r#"
            blue is forgotten
            blue is Created
        "#]],
    );
}

#[test]
pub(super) fn foreign_resources_are_never_touched_whatever_their_names() {
    check(
        "show notices
         azure has uid=9 public-ip load-balancer foreign
         azure has egress=blue public-ip nat-gateway foreign
         lead
         tick 7200",
        expect![[""]],
    );
}

#[test]
pub(super) fn what_is_registered_for_somebody_elses_resource_is_shown_as_unclaimed() {
    check(
        "show notices
         azure registers partner
         lead
         tick 2000",
        expect![[r#"
            warn cluster: Conflict: partner is registered with the gateway, unwanted, and not provably ours; left alone
        "#]],
    );
}

#[test]
pub(super) fn a_foreign_public_ip_of_our_name_is_a_conflict_and_looked_at_again() {
    check(
        "show notices
         show times
         service web known
         azure has web public-ip foreign
         lead
         explain web
         azure loses public-ip web
         tick 800
         last done
         last done
         state web",
        expect![[r#"
            t=0.5 warn web: Conflict: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip exists and does not carry our cluster tag; remove it, or claim it with `sluice adopt`
            t=0.6 web is NotStarted, wanted, parked: Conflict
            t=0.6   waits for a change: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip exists and does not carry our cluster tag; remove it, or claim it with `sluice adopt`
            t=0.6   waits for its next attempt at t=600.5: Conflict
            t=600.5 #1 inspect web: read-public-ip   because service applied
            t=800.9 #2 provision web: public-ip, load-balancer, register   because service applied
            t=801.1 web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_load_balancer_registered_under_a_live_service_is_adopted_without_a_write_though_it_has_no_tag()
 {
    check(
        "service web known
         azure has web foreign
         lead
         state web
         service web applied port=81->8081",
        expect![[r#"
            web is Created
            #1 update web: load-balancer   because service applied
        "#]],
    );
}

#[test]
pub(super) fn many_teardowns_at_once_are_held_until_they_are_allowed() {
    check(
        "show notices
         azure has egress=e1
         azure has egress=e2
         azure has egress=e3
         azure has egress=e4
         azure has egress=e5
         azure has egress=e6
         lead
         tick 1
         explain e1
         tick 3600
         allow mass deletion",
        expect![[r#"
            warn cluster: MassDeletionHeld: 6 services would be torn down at once; this is held until sluice.allowMassDeletion is set or they are deleted one by one
            e1 is DeletionPending, not wanted, live, 20.1.2.1
              waits for consent to a mass deletion
            #1 deprovision e1: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #2 deprovision e2: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #3 deprovision e3: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #4 deprovision e4: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #5 deprovision e5: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #6 deprovision e6: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
        "#]],
    );
}

#[test]
pub(super) fn a_few_teardowns_at_once_are_not_held() {
    check(
        "azure has egress=e1
         azure has egress=e2
         azure has egress=e3
         azure has egress=e4
         azure has egress=e5
         lead
         tick 1",
        expect![[r#"
            #1 deprovision e1: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #2 deprovision e2: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #3 deprovision e3: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #4 deprovision e4: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #5 deprovision e5: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
        "#]],
    );
}

#[test]
pub(super) fn what_is_held_by_the_brake_goes_one_by_one_by_its_own_deletion() {
    check(
        "show notices
         service s1 known clusterip
         service s2 known clusterip
         service s3 known clusterip
         service s4 known clusterip
         service s5 known clusterip
         service s6 known clusterip
         azure has s1
         azure has s2
         azure has s3
         azure has s4
         azure has s5
         azure has s6
         lead
         explain s1
         service s1 applied deleting clusterip
         tick 4000
         state s2",
        expect![[r#"
            warn cluster: MassDeletionHeld: 6 services would be torn down at once; this is held until sluice.allowMassDeletion is set or they are deleted one by one
            s1 is DeletionPending, not wanted, live
              waits for consent to a mass deletion
            #1 deprovision s1: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            s2 is DeletionPending
        "#]],
    );
}

#[test]
pub(super) fn held_services_keep_their_addresses() {
    check(
        "node node-a 192.168.0.1
         azure has egress=e1
         azure has egress=e2
         azure has egress=e3
         azure has egress=e4
         azure has egress=e5
         azure has egress=e6
         azure has address 10.1.0.1 at 192.168.0.1 for egress=e1
         lead
         tick 3600
         explain e1",
        expect![[r#"
            e1 is DeletionPending, not wanted, live, 20.1.2.1, addresses: 0 wanted, 1 programmed, 1 mapped
              waits for consent to a mass deletion
              waits for 1 addresses
        "#]],
    );
}

#[test]
pub(super) fn the_deletion_of_many_services_by_their_owners_is_not_braked() {
    check(
        "service s1 known deleting
         service s2 known deleting
         service s3 known deleting
         service s4 known deleting
         service s5 known deleting
         service s6 known deleting
         azure has s1
         azure has s2
         azure has s3
         azure has s4
         azure has s5
         azure has s6
         lead",
        expect![[r#"
            #1 deprovision s1: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #2 deprovision s2: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 deprovision s3: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #4 deprovision s4: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #5 deprovision s5: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #6 deprovision s6: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
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
pub(super) fn a_gateway_that_cannot_be_made_is_tried_again_and_told() {
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
            t=0.5 warn cluster: Forbidden: the gateway cannot be made: AuthorizationFailed (forbidden): as the story says
            t=336.0 #2 provision gateway: gateway   because start-up
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
            warn cluster: GatewayUnavailable: the gateway /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/serviceGateways/servicegateway does not exist
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
            warn cluster: GatewayUnavailable: the subnet /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet/subnets/subnet is not attached to the gateway
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
            warn cluster: GatewayUnavailable: the gateway /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/serviceGateways/servicegateway belongs to the cluster cluster-2
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
            warn cluster: GatewayUnavailable: the subnet is attached to /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/serviceGateways/another; detach it or configure that gateway
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
pub(super) fn a_foreign_nat_gateway_called_like_the_default_outbound_is_never_touched() {
    check(
        "config default-outbound=ensure
         show notices
         azure has egress=default-natgw foreign
         lead
         tick 3600",
        expect![[r#"
            warn default-natgw: Conflict: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/natGateways/default-natgw exists and does not carry our cluster tag; remove it, or claim it with `sluice adopt`
            #1 inspect default-natgw: read-public-ip, read-nat-gateway   because asked for
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
