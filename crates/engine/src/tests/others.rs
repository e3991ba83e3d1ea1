//! Stories about services of others in the gateway: their addresses and names stay, whoever opens a record.

use expect_test::expect;

use super::story::check;

#[test]
pub(super) fn an_egress_of_others_keeps_its_address_when_a_pod_has_its_label() {
    check(
        "node node-a 192.168.0.1
         azure has egress=blue foreign
         azure has address 10.9.0.9 at 192.168.0.1 for egress=blue
         azure has address 10.9.0.8 at 192.168.0.1 for egress=blue
         lead
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         egress green requested
         #1 done
         #2 done
         pod p2 egress=green ip=10.9.0.9 node=node-a
         tick 100
         pod p1 deleted
         tick 100",
        expect![[r#"
            #1 inspect green: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because asked for
            #2 provision green: public-ip, nat-gateway, register   because asked for
            #3 inspect blue: read-public-ip, read-nat-gateway   because pods came
        "#]],
    );
}

#[test]
pub(super) fn a_default_outbound_of_others_keeps_its_addresses_when_a_pod_has_its_label() {
    check(
        "node node-a 192.168.0.1
         azure registers partner default
         azure has address 10.9.0.9 at 192.168.0.1 for partner
         lead
         pod p1 egress=partner ip=10.1.0.1 node=node-a
         tick 2000
         pod p1 deleted
         tick 4000",
        expect![[r#"
            #1 inspect partner: read-public-ip, read-nat-gateway   because pods came
        "#]],
    );
}

#[test]
pub(super) fn addresses_under_a_new_label_stay_until_its_registration_is_read() {
    check(
        "node node-a 192.168.0.1
         azure has address 10.9.0.9 at 192.168.0.1 for partner
         lead
         azure registers partner default
         pod p1 egress=partner ip=10.1.0.1 node=node-a
         tick 2000
         #1 done
         tick 2000
         pod p1 deleted
         tick 4000",
        expect![[r#"
            #1 inspect partner: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 inspect partner: read-public-ip, read-nat-gateway   because pods came
        "#]],
    );
}

#[test]
pub(super) fn an_orphan_keeps_its_addresses_until_its_resources_are_read() {
    check(
        "azure has address 10.0.0.9 at 192.168.0.1 for uid=9
         lead
         tick 2000
         azure has uid=9 registration elsewhere
         #1 done
         tick 4000",
        expect![[r#"
            #1 inspect 00000000-0000-0000-0000-000000000009: read-load-balancer, read-registration   because orphaned
        "#]],
    );
}

#[test]
pub(super) fn an_address_of_an_orphaned_egress_goes_to_the_egress_of_its_pod_at_once() {
    check(
        "node node-a 192.168.0.1
         azure has egress=red
         azure has egress=green
         azure has address 10.1.0.1 at 192.168.0.1 for egress=red
         pod p1 known egress=green ip=10.1.0.1 node=node-a
         lead",
        expect![[r#"
            #1 push 10.1.0.1 to node-a for green   because service became ready
        "#]],
    );
}

#[test]
pub(super) fn a_pod_whose_address_belongs_to_an_egress_of_others_is_warned_about() {
    check(
        "show notices
         node node-a 192.168.0.1
         azure has egress=blue
         azure registers partner default
         azure has address 10.9.0.9 at 192.168.0.1 for partner
         pod p1 known egress=blue ip=10.1.0.1 node=node-a
         lead
         #1 done
         pod p2 egress=blue ip=10.9.0.9 node=node-a
         pod p2 applied again
         azure has address 10.1.0.1 at 192.168.0.1 for egress=blue partner
         tick 4000
         pods relisted",
        expect![[r#"
            #1 push 10.1.0.1 to node-a for blue   because service became ready
            warn pod p2: Conflict: Address 10.9.0.9 belongs to the unmanaged egress partner in the gateway, so this pod's egress does not get it. Remove the address from that egress, or delete the egress
            #2 list Pods of Kubernetes again   because worth knowing
            #3 push 10.1.0.1 to node-a for partner   because addresses changed
            warn pod p1: Conflict: Address 10.1.0.1 belongs to the unmanaged egress partner in the gateway, so this pod's egress does not get it. Remove the address from that egress, or delete the egress
        "#]],
    );
}

#[test]
pub(super) fn an_inbound_service_of_others_shares_an_address_with_an_egress_of_ours() {
    check(
        "show notices
         node node-a 192.168.0.1
         azure has egress=blue
         azure registers partner inbound
         azure has address 10.9.0.9 at 192.168.0.1 for partner
         azure registers not_an_identity! inbound
         azure has address 10.9.0.8 at 192.168.0.1 for not_an_identity!
         pod p1 known egress=blue ip=10.9.0.9 node=node-a
         pod p2 known egress=blue ip=10.9.0.8 node=node-a
         lead
         #1 done",
        expect![[r#"
            warn cluster: Conflict: Unmanaged registrations left unchanged: not_an_identity!, partner. No Service or egress needs them; delete them if they are unused
            #1 push 10.9.0.8 to node-a for blue+not_an_identity!, push 10.9.0.9 to node-a for blue+partner   because service became ready
        "#]],
    );
}

#[test]
pub(super) fn a_refused_write_beside_a_name_that_is_no_longer_registered_drops_the_name() {
    check(
        "node node-a 192.168.0.1
         service web known
         azure has web
         azure registers partner inbound
         azure has address 10.0.0.4 at 192.168.0.1 for web partner
         azure registers not_an_identity! inbound
         azure has address 10.0.0.5 at 192.168.0.1 for web not_an_identity!
         lead
         azure loses registration partner
         azure loses registration not_an_identity!
         show lists
         #1 refused
         hide lists
         #2 done
         #3 refused
         #4 done
         tick 60
         #5 done
         tick 400
         last done",
        expect![[r#"
            #1 push 10.0.0.5 to node-a for not_an_identity!, push 10.0.0.4 to node-a for partner   because addresses changed
            (list registrations)
            (list locations)
            #2 inspect partner: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because orphaned
            #3 push 10.0.0.4 to node-a for partner   because addresses changed
            #4 push 10.0.0.5 to node-a for not_an_identity!   because addresses changed
            #5 remove 10.0.0.5 from node-a   because addresses changed
            #6 remove 10.0.0.4 from node-a   because addresses changed
        "#]],
    );
}

const FOUND_BY_A_LOOK: &str = "
    azure has address 10.0.0.9 at 192.168.0.1 for uid=9
    lead
    tick 2000
    azure has uid=9
    #1 done
    tick 4000
";

/// The simulator cannot see this bug, so it is planted here.
#[cfg(feature = "seeded-bugs")]
#[test]
fn the_bug_that_tears_down_after_a_look_is_caught() {
    use sluice_model::seeded::{Bug, Seeded};
    let sound = super::story::told(FOUND_BY_A_LOOK).shown();
    let broken = super::story::told_with(FOUND_BY_A_LOOK, Seeded::with(Bug::TearDownAfterLook)).shown();
    assert_ne!(sound, broken);
}

#[test]
pub(super) fn what_the_look_at_an_unknown_name_finds_is_confirmed_before_it_is_torn_down() {
    check(
        &alloc::format!("{FOUND_BY_A_LOOK}\n#2 exists\ntick 60"),
        expect![[r#"
            #1 inspect 00000000-0000-0000-0000-000000000009: read-load-balancer, read-registration   because orphaned
            #2 ask whether ghost is gone   because service no longer wanted
            #3 list Services of Kubernetes again   because drift found
            #4 ask whether ghost is gone   because service no longer wanted
        "#]],
    );
}

#[test]
pub(super) fn what_the_looks_at_many_unknown_names_find_is_held_by_the_brake() {
    check(
        "azure has address 10.0.0.1 at 192.168.0.1 for egress=e1
         azure has address 10.0.0.2 at 192.168.0.1 for egress=e2
         azure has address 10.0.0.3 at 192.168.0.1 for egress=e3
         azure has address 10.0.0.4 at 192.168.0.1 for egress=e4
         azure has address 10.0.0.5 at 192.168.0.1 for egress=e5
         azure has address 10.0.0.6 at 192.168.0.1 for egress=e6
         lead
         tick 100
         azure has egress=e1
         azure has egress=e2
         azure has egress=e3
         azure has egress=e4
         azure has egress=e5
         azure has egress=e6
         #1 done
         #2 done
         #3 done
         #4 done
         #5 done
         #6 done
         tick 4000
         explain e1",
        expect![[r#"
            #1 inspect e1: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because orphaned
            #2 inspect e2: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because orphaned
            #3 inspect e3: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because orphaned
            #4 inspect e4: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because orphaned
            #5 inspect e5: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because orphaned
            #6 inspect e6: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because orphaned
            e1 is DeletionPending, not wanted, live, 20.1.2.1, addresses: 0 wanted, 1 programmed, 1 mapped
              waits for consent to a mass deletion
        "#]],
    );
}

#[test]
pub(super) fn an_egress_of_others_keeps_its_addresses_while_its_nat_gateway_is_read_again() {
    check(
        "node node-a 192.168.0.1
         azure has egress=blue foreign
         azure has address 10.9.0.9 at 192.168.0.1 for egress=blue
         lead
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         tick 1000
         last done
         tick 100",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-nat-gateway   because pods came
            #2 inspect blue: read-public-ip, read-nat-gateway   because pods came
        "#]],
    );
}

#[test]
pub(super) fn a_new_egress_of_others_keeps_its_address_until_its_nat_gateway_is_listed() {
    check(
        "node node-a 192.168.0.1
         azure has egress=green
         pod p1 known egress=green ip=10.1.0.1 node=node-a
         azure fails to list nat-gateways
         lead
         azure lists nat-gateways again
         tick 60
         #1 done
         azure fails to list nat-gateways
         azure has egress=red foreign
         azure has address 10.1.0.1 at 192.168.0.1 for egress=red
         tick 2000",
        expect![[r#"
            #1 push 10.1.0.1 to node-a for green   because service became ready
            #2 inspect red: read-nat-gateway   because orphaned
            #3 list Pods of Kubernetes again   because worth knowing
        "#]],
    );
}

#[test]
pub(super) fn a_list_from_before_the_registration_does_not_drain_the_addresses_of_its_name() {
    check(
        "node node-a 192.168.0.1
         hold lists
         tick 1100
         #4 done
         azure registers not_an_identity! inbound
         azure has address 10.9.0.9 at 192.168.0.1 for not_an_identity!
         tick 1200
         last done
         #2 done
         release lists
         tick 4000",
        expect![[r#"
            #1 list load-balancers   because drift sweep
            #2 list registrations   because drift sweep
            #3 list gateway   because drift sweep
            #4 list locations   because drift sweep
            #5 list nat-gateways   because drift sweep
            #6 list public-ips   because drift sweep
            #7 list locations   because drift sweep
        "#]],
    );
}
