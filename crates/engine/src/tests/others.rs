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
        expect![[r#""#]],
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
