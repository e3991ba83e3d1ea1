//! Stories about what an earlier leader left behind: kept when it is right, finished when it is not.

use expect_test::expect;

use super::story::check;

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
pub(super) fn what_is_registered_but_different_is_updated_and_its_addresses_are_kept_meanwhile() {
    check(
        "node node-a 192.168.0.1
         service web known
         endpoints web 10.0.0.4@node-a
         azure has web backend=9999
         lead
         state web",
        expect![[r#"
            #1 update web: load-balancer   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
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
            #1 update web: public-ip, load-balancer, register   because service applied
            web is UpdateInProgress
        "#]],
    );
}

#[test]
pub(super) fn what_is_registered_without_its_load_balancer_gets_the_full_plan() {
    check(
        "service web known
         azure has web public-ip registration
         lead
         #1 done",
        expect![[r#"
            #1 inspect web: read-load-balancer   because service applied
            #2 update web: load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn what_others_made_between_two_first_lists_is_looked_at_and_adopted() {
    check(
        "service web known
         azure has web registration
         lead
         azure has web foreign
         #1 done",
        expect![[r#"
            #1 inspect web: read-public-ip, read-load-balancer   because service applied
            #2 adopt web: adopt, adopt   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_registration_of_others_is_not_cleared_because_a_list_missed_their_load_balancer() {
    check(
        "service web known nofinalizer
         azure has web registration
         lead
         azure has web foreign
         service web deleted
         #3 gone
         #2 done
         tick 4000
         state web",
        expect![[r#"
            #1 add finalizer to web   because service applied
            #2 inspect web: read-public-ip, read-load-balancer   because service applied
            #3 ask whether web is gone   because service no longer wanted
            web is forgotten
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
         service web known invalid published=20.1.2.1 ingress=20.1.2.1
         endpoints web 10.0.0.4@node-a
         azure has web
         lead
         explain web",
        expect![[r#"
            warn web: InvalidSpec: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
            #1 push 10.0.0.4 to node-a for web   because service became ready
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 0 programmed, 1 mapped
              waits for a change: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
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
pub(super) fn an_untagged_load_balancer_registered_under_a_live_service_is_served_and_gets_tags_alone() {
    check(
        "service web known
         azure has web foreign
         lead
         state web
         #1 done
         tick 7200
         state web",
        expect![[r#"
            #1 adopt web: adopt, adopt   because service applied
            web is Created
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn an_untagged_load_balancer_is_tagged_first_when_it_changes() {
    check(
        "service web known port=81->8081
         azure has web foreign
         lead
         #1 done
         tick 7200",
        expect![[r#"
            #1 update web: adopt, adopt, load-balancer   because service applied
        "#]],
    );
}

#[test]
pub(super) fn tags_are_written_one_service_after_the_other_and_not_too_often() {
    check(
        "show times
         service web known
         service api known
         service cart known
         azure has web foreign
         azure has api foreign
         azure has cart foreign
         lead
         #1 done
         tick 3
         service shop applied
         #2 done
         tick 1
         #3 done
         tick 5",
        expect![[r#"
            t=0.8 #1 adopt api: adopt, adopt   because service applied
            t=4.1 #2 provision shop: public-ip, load-balancer, register   because service applied
            t=4.5 #3 adopt cart: adopt, adopt   because service applied
            t=8.3 #4 adopt web: adopt, adopt   because service applied
        "#]],
    );
}

#[test]
pub(super) fn what_was_adopted_goes_with_its_service_and_nothing_is_left_behind() {
    check(
        "service web known
         azure has web foreign
         lead
         #1 done
         service web applied deleting
         #2 done
         #3 done
         state web",
        expect![[r#"
            #1 adopt web: adopt, adopt   because service applied
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_service_that_is_deleted_before_it_is_tagged_is_tagged_by_its_teardown() {
    check(
        "service web known deleting
         azure has web foreign
         lead
         #1 done
         #2 done
         state web",
        expect![[r#"
            #1 deprovision web: adopt, adopt, clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #2 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_service_whose_load_balancer_cannot_be_tagged_keeps_its_finalizer_and_says_why() {
    check(
        "show notices
         show status
         service web known deleting
         azure has web foreign
         lead
         #1 failed AuthorizationFailed 403
         explain web",
        expect![[r#"
            (write status of web: not 20.1.2.1, Provisioning Deleting, not Serving Deleting)
            #1 deprovision web: adopt, adopt, clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            warn web: Forbidden: Azure denied the request: tagging /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip failed: AuthorizationFailed (forbidden): as the story says. To tag it yourself, run `az tag update --resource-id /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip --operation Merge --tags sluice-cluster=cluster-1`
            (write status of web: Provisioning Forbidden of Deletion, not Serving Forbidden of Deletion)
            web is DeletionInProgress, not wanted, live, parked: Forbidden, 1 failures
              waits for its next attempt at t=244.5: Forbidden
        "#]],
    );
}

#[test]
pub(super) fn a_load_balancer_that_another_cluster_claims_keeps_the_finalizer_of_a_deleted_service() {
    check(
        "show notices
         service web known deleting
         azure has web tagged=another
         lead
         tick 1
         explain web
         azure adopts web
         tick 120",
        expect![[r#"
            warn web: Conflict: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/web is registered for this Service and carries the tag of another cluster. Delete the resource, or run `az tag update --resource-id /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/web --operation Merge --tags sluice-cluster=cluster-1`
            web is DeletionPending, not wanted, live, parked: Conflict
              waits for its next attempt at t=60.4: Conflict
            #1 inspect web: read-public-ip, read-load-balancer   because service applied
        "#]],
    );
}

#[test]
pub(super) fn tags_that_disappear_again_are_restored_once_and_then_only_before_the_teardown() {
    check(
        "show notices
         service web known
         azure has web foreign
         lead
         #1 done
         azure untags load-balancer web
         tick 1900
         #2 done
         azure untags load-balancer web
         tick 1900
         service web applied deleting",
        expect![[r#"
            #1 adopt web: adopt, adopt   because service applied
            #2 adopt web: adopt, adopt   because service applied
            warn web: Conflict: Tags of /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/web were removed again. Sluice restores them only before it changes or deletes the resource; exempt it from the tool that removes them
            #3 deprovision web: adopt, adopt, clear, delete-load-balancer, unregister, delete-public-ip   because last address left
        "#]],
    );
}

#[test]
pub(super) fn a_public_ip_that_somebody_released_stays_in_use_and_survives_its_service() {
    check(
        "show news
         service web applied
         #1 done
         azure untags public-ip web
         tick 1900
         last done
         state web
         service web applied deleting
         last done
         last done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            tell web: Provisioned: Load balancer is ready; public IP 20.1.2.1
            #2 inspect web: read-load-balancer   because outcome unknown
            web is Created
            #3 deprovision web: clear, delete-load-balancer, unregister   because last address left
            tell web: Deleting: Drained; deleting load balancer
            #4 remove finalizer from web   because operation ended
            tell web: Deleting: Kept /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip: it does not carry the tag sluice-cluster. Delete it if it is unused
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn ids_that_differ_only_in_case_are_equal() {
    check(
        "service web known
         pod p1 known egress=blue
         azure has web shouting
         azure has egress=blue shouting
         lead
         state web
         state blue
         tick 4000",
        expect![[r#"
            web is Created
            blue is Created
        "#]],
    );
}

#[test]
pub(super) fn ports_in_another_order_are_equal() {
    check(
        "service web applied port=80->8080 port=81->8081
         #1 done
         service web applied port=81->8081 port=80->8080
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_foreign_ipv6_address_is_in_nobodys_way_where_none_is_wanted() {
    check(
        "show notices
         azure has egress=blue foreign public-ip-v6
         node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         node node-b fd00::1
         pod p2 egress=blue ip=10.1.0.2 node=node-a
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            warn blue: Conflict: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/blue-pip-v6 exists and is not managed by this cluster. Delete it, or claim it as `sluice explain SGW0011` describes
            #4 push 10.1.0.2 to node-a for blue   because addresses changed
            blue is UpdateInProgress, wanted, live, 20.1.2.2, parked: Conflict, 2 pods, addresses: 2 wanted, 1 programmed, 2 mapped
              waits for a change: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/blue-pip-v6 exists and is not managed by this cluster. Delete it, or claim it as `sluice explain SGW0011` describes
              waits for its next attempt at t=60.9: Conflict
        "#]],
    );
}

#[test]
pub(super) fn a_nat_gateway_of_somebody_else_is_used_only_after_the_operator_has_claimed_it() {
    check(
        "show notices
         azure has egress=blue foreign
         node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         lead
         tick 700
         explain blue
         azure adopts egress=blue
         #1 done
         #2 done
         explain blue",
        expect![[r#"
            warn blue: Conflict: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/natGateways/blue exists and is not managed by this cluster. Delete it, or claim it as `sluice explain SGW0011` describes
            #1 inspect blue: read-public-ip, read-nat-gateway   because pods came
            blue is UpdateInProgress, wanted, live, 1 pods, addresses: 1 wanted, 0 programmed, 0 mapped
              waits for operation #1
            #2 push 10.1.0.1 to node-a for blue   because service became ready
            blue is Created, wanted, live, 20.1.2.1, 1 pods, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_cleared_registration_is_removed_although_its_load_balancer_has_lost_our_tag() {
    check(
        "service web applied
         #1 done
         service web deleted
         #2 gone
         azure untags load-balancer web
         #3 failed NotManaged 0 at delete-load-balancer
         tick 2
         #4 done
         #5 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 ask whether web is gone   because service no longer wanted
            #3 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #4 inspect web: read-public-ip, read-load-balancer   because outcome unknown
            #5 deprovision web: unregister, release-public-ip   because retry due
            web is forgotten
        "#]],
    );
}

#[test]
pub(super) fn a_public_ip_that_cannot_be_tagged_is_named_and_not_its_load_balancer() {
    check(
        "show notices
         service web known
         azure has web foreign
         lead
         #1 failed AuthorizationFailed 403",
        expect![[r#"
            #1 adopt web: adopt, adopt   because service applied
            warn web: Forbidden: Azure denied the request: tagging /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip failed: AuthorizationFailed (forbidden): as the story says. To tag it yourself, run `az tag update --resource-id /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip --operation Merge --tags sluice-cluster=cluster-1`
            #2 inspect web: read-public-ip   because outcome unknown
        "#]],
    );
}

#[test]
fn a_public_ip_that_cannot_be_read_is_not_deleted_under_a_load_balancer_that_stays() {
    check(
        "service web known
         azure has web
         azure untags load-balancer web
         azure untags public-ip web
         lead
         #1 lost
         service web deleted
         #3 gone
         azure loses public-ip web
         #2 done
         #4 done
         state web",
        expect![[r#"
            #1 adopt web: adopt, adopt   because service applied
            #2 inspect web: read-public-ip   because outcome unknown
            #3 ask whether web is gone   because service no longer wanted
            #4 deprovision web: release-public-ip   because last address left
            web is forgotten
        "#]],
    );
}
