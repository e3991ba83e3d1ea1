//! Stories about what is ours and what is not: orphans, foreign resources and the brake.

use std::string::ToString;

use expect_test::expect;
use sluice_model::reason::Reason;

use super::story::{check, told};

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
         lead
         state blue
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         state blue",
        expect![[r#"
            blue is forgotten
            #1 push 10.1.0.1 to node-a for blue   because service became ready
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
            warn cluster: Conflict: Unmanaged registrations left unchanged: partner. No Service or egress needs them; delete them if they are unused
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
            t=0.5 warn web: Conflict: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip exists and is not managed by this cluster. Delete it, or claim it as `sluice explain SGW0011` describes
            t=0.6 web is NotStarted, wanted, parked: Conflict
            t=0.6   waits for a change: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip exists and is not managed by this cluster. Delete it, or claim it as `sluice explain SGW0011` describes
            t=0.6   waits for its next attempt at t=60.5: Conflict
            t=60.5 #1 inspect web: read-public-ip, read-load-balancer, read-registration   because service applied
            t=800.9 #2 provision web: public-ip, load-balancer, register   because service applied
            t=801.1 web is Created
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
         allow deletion",
        expect![[r#"
            warn cluster: MassDeletionHeld: Mass-deletion guard: held deletion of 6 gateway services: egress/e1, egress/e2, egress/e3, egress/e4, egress/e5, egress/e6. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
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
         service s1 known other-class
         service s2 known other-class
         service s3 known other-class
         service s4 known other-class
         service s5 known other-class
         service s6 known other-class
         azure has s1
         azure has s2
         azure has s3
         azure has s4
         azure has s5
         azure has s6
         lead
         explain s1
         service s1 applied deleting other-class
         tick 4000
         state s2",
        expect![[r#"
            warn cluster: MassDeletionHeld: Mass-deletion guard: held deletion of 6 gateway services: service/shop/s1, service/shop/s2, service/shop/s3, service/shop/s4, service/shop/s5, service/shop/s6. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
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
         service s1 known other-class
         service s2 known other-class
         service s3 known other-class
         service s4 known other-class
         service s5 known other-class
         service s6 known other-class
         azure has s1
         azure has s2
         azure has s3
         azure has s4
         azure has s5
         azure has s6
         azure has address 10.0.0.4 at 192.168.0.1 for s1
         lead
         tick 3600
         explain s1",
        expect![[r#"
            s1 is DeletionPending, not wanted, live, addresses: 0 wanted, 1 programmed, 1 mapped
              waits for consent to a mass deletion
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
pub(super) fn a_foreign_nat_gateway_called_like_the_default_outbound_is_never_touched() {
    check(
        "config default-outbound=ensure
         show notices
         azure has egress=default-natgw foreign
         lead
         tick 3600",
        expect![[r#"
            warn default-natgw: Conflict: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/natGateways/default-natgw exists and is not managed by this cluster. Delete it, or claim it as `sluice explain SGW0011` describes
            #1 inspect default-natgw: read-public-ip, read-nat-gateway   because asked for
        "#]],
    );
}

#[test]
pub(super) fn addresses_of_an_identity_that_has_nothing_else_are_removed_after_two_sightings() {
    check(
        "azure has address 10.0.0.9 at 192.168.0.1 for uid=9
         lead
         tick 2000
         last done",
        expect![[r#"
            #1 inspect 00000000-0000-0000-0000-000000000009: read-load-balancer, read-registration   because orphaned
            #2 remove 10.0.0.9 from 192.168.0.1   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn a_foreign_nat_gateway_of_an_egress_is_not_adopted() {
    check(
        "show notices
         node node-a 192.168.0.1
         pod p1 known egress=blue ip=10.1.0.1 node=node-a
         azure has egress=blue foreign
         lead
         explain blue",
        expect![[r#"
            warn blue: Conflict: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/natGateways/blue exists and is not managed by this cluster. Delete it, or claim it as `sluice explain SGW0011` describes
            blue is UpdateInProgress, wanted, live, parked: Conflict, 1 pods, addresses: 1 wanted, 0 programmed, 0 mapped
              waits for a change: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/natGateways/blue exists and is not managed by this cluster. Delete it, or claim it as `sluice explain SGW0011` describes
              waits for its next attempt at t=60.5: Conflict
        "#]],
    );
}

#[test]
pub(super) fn a_registration_that_points_elsewhere_is_a_conflict() {
    check(
        "show notices
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web known
         azure has web registration elsewhere
         lead
         explain web",
        expect![[r#"
            warn web: Conflict: The registration of this name in the gateway points to /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/another/backendAddressPools/x, which is not managed by this cluster. Remove the registration
            web is UpdateInProgress, wanted, live, parked: Conflict, addresses: 1 wanted, 0 programmed, 0 mapped
              waits for a change: The registration of this name in the gateway points to /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/another/backendAddressPools/x, which is not managed by this cluster. Remove the registration
              waits for its next attempt at t=60.6: Conflict
        "#]],
    );
}
#[test]
pub(super) fn what_is_registered_under_a_name_that_cannot_be_ours_is_shown_as_unclaimed() {
    check(
        "show notices
         azure registers not_an_identity!
         lead
         tick 4000",
        expect![[r#"
            warn cluster: Conflict: Unmanaged registrations left unchanged: not_an_identity!. No Service or egress needs them; delete them if they are unused
        "#]],
    );
}

#[test]
pub(super) fn held_egresses_keep_their_addresses() {
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
        "#]],
    );
}

#[test]
pub(super) fn an_orphaned_egress_keeps_its_addresses_until_it_was_seen_twice() {
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
pub(super) fn the_addresses_of_somebody_elses_service_stay() {
    check(
        "azure registers partner
         azure has address 10.9.0.9 at 192.168.0.1 for partner
         azure registers not_an_identity!
         azure has address 10.9.0.8 at 192.168.0.1 for not_an_identity!
         lead
         tick 4000",
        expect![[r#""#]],
    );
}

#[test]
pub(super) fn only_our_own_addresses_leave_a_location_that_was_listed_long_ago() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a
         #2 done
         tick 100
         azure registers partner
         azure has address 10.9.0.9 at 192.168.0.1 for partner
         endpoints web deleted
         last done
         tick 4000",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            #3 remove 10.0.0.4 from node-a   because addresses changed
        "#]],
    );
}

#[test]
fn an_egress_in_conflict_does_not_show_the_public_ip_of_the_unmanaged_nat_gateway() {
    let mut story = told(
        "azure has egress=blue foreign
         node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         lead",
    );
    let key = story.key("blue");
    let shown = |story: &super::story::Story| {
        let view = story.engine.view_of(&key).expect("the egress of the pod");
        (view.trouble.map(|it| it.reason), view.public_ip.map(|ip| ip.to_string()))
    };
    assert_eq!(shown(&story), (Some(Reason::Conflict), None), "{}", story.shown());
    story.play("azure adopts egress=blue\ntick 70\n#1 done\n#2 done");
    assert_eq!(shown(&story), (None, Some("20.1.2.1".into())), "{}", story.shown());
    // A public IP that an operator released stays in use.
    story.play("azure untags public-ip egress=blue\ntick 1900");
    assert_eq!(shown(&story), (None, Some("20.1.2.1".into())), "{}", story.shown());
    story.play("last done");
    assert_eq!(shown(&story), (None, Some("20.1.2.1".into())), "{}", story.shown());
}
