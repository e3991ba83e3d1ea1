//! Stories about egress pods: which of them count, with which address, and where.

use expect_test::expect;

use super::story::check;

#[test]
pub(super) fn labels_that_go_back_and_forth_end_where_they_end() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         pod p1 egress=green ip=10.1.0.1 node=node-a
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         state blue
         explain green
         #4 done
         state green
         #5 done
         #6 done
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            #4 inspect green: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #5 remove node-a   because addresses changed
            blue is Created
            green is NotStarted, not wanted
              waits for operation #4
            green is forgotten
            #6 push 10.1.0.1 to node-a for blue   because service became ready
            blue is Created, wanted, live, 20.1.2.1, 1 pods, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn removing_the_label_finishing_and_losing_the_address_are_removals() {
    check(
        "node node-a 192.168.0.1
         pod p0 egress=blue ip=10.1.0.9 node=node-a
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         pod p2 egress=blue ip=10.1.0.2 node=node-a
         pod p3 egress=blue ip=10.1.0.3 node=node-a
         #1 done
         #2 done
         #3 done
         pod p1 ip=10.1.0.1 node=node-a
         #4 done
         pod p2 egress=blue ip=10.1.0.2 node=node-a finished
         #5 done
         pod p3 egress=blue node=node-a
         #6 done
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.9 10.1.0.1 10.1.0.2 10.1.0.3 to node-a for blue   because service became ready
            #4 remove 10.1.0.1 from node-a   because addresses changed
            #5 remove 10.1.0.2 from node-a   because addresses changed
            #6 remove 10.1.0.3 from node-a   because addresses changed
            blue is Created, wanted, live, 20.1.2.1, 2 pods, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_pod_without_an_address_yet_makes_its_egress_wanted() {
    check(
        "pod p1 egress=blue node=node-a pending
         #1 done
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            blue is CreationInProgress, wanted, 1 pods
              waits for operation #2
        "#]],
    );
}

#[test]
pub(super) fn a_terminating_pod_keeps_its_egress_until_it_has_ended() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         pod p1 egress=blue ip=10.1.0.1 node=node-a terminating
         state blue
         pod p1 egress=blue ip=10.1.0.1 node=node-a terminating finished
         state blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            blue is Created
            #4 remove node-a   because addresses changed
            blue is DeletionPending
        "#]],
    );
}

#[test]
pub(super) fn a_pod_of_the_node_network_has_no_egress_and_people_are_told_once() {
    check(
        "show notices
         pod p1 egress=blue ip=192.168.0.1 node=node-a hostnetwork
         pod p1 egress=blue ip=192.168.0.1 node=node-a hostnetwork
         state blue",
        expect![[r#"
            warn pod p1: InvalidSpec: Ignored egress label "blue": the pod uses the host network. Remove hostNetwork or the label
            blue is forgotten
        "#]],
    );
}

#[test]
pub(super) fn the_case_of_a_label_does_not_matter() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=Blue ip=10.1.0.1 node=node-a
         pod p2 egress=BLUE ip=10.1.0.2 node=node-a
         #1 done
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            blue is CreationInProgress, wanted, 2 pods, addresses: 2 wanted, 0 programmed, 0 mapped
              waits for operation #2
        "#]],
    );
}

#[test]
pub(super) fn only_the_namespaces_that_may_use_egresses_do() {
    check(
        "config namespaces=bank
         show notices
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         pod bank/p2 egress=green ip=10.1.0.2 node=node-a",
        expect![[r#"
            warn pod p1: InvalidSpec: Ignored egress label "blue": namespace shop is not in sluice.egress.namespaces. Add it, or remove the label
            #1 inspect green: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
        "#]],
    );
}

#[test]
pub(super) fn the_newest_pod_wins_an_address_and_the_late_end_of_the_old_one_takes_nothing_from_it() {
    check(
        "node node-a 192.168.0.1
         pod old egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         pod new egress=blue ip=10.1.0.1 node=node-a
         pod old deleted
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            blue is Created, wanted, live, 20.1.2.1, 1 pods, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn an_address_that_goes_to_a_pod_of_another_egress_is_one_write() {
    check(
        "node node-a 192.168.0.1
         pod keep egress=blue ip=10.1.0.9 node=node-a
         pod old egress=blue ip=10.1.0.1 node=node-a
         pod green egress=green ip=10.1.0.2 node=node-a
         #1 done
         #2 done
         #3 done
         #4 done
         #5 done
         #6 done
         pod old egress=blue ip=10.1.0.1 node=node-a terminating
         pod new egress=green ip=10.1.0.1 node=node-a
         #7 done
         pod old deleted
         explain green",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 inspect green: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #3 provision blue: public-ip, nat-gateway, register   because pods came
            #4 provision green: public-ip, nat-gateway, register   because pods came
            #5 push 10.1.0.9 10.1.0.1 to node-a for blue   because service became ready
            #6 push 10.1.0.2 to node-a for green   because service became ready
            #7 push 10.1.0.1 to node-a for green   because addresses changed
            green is Created, wanted, live, 20.1.2.2, 2 pods, addresses: 2 wanted, 2 programmed, 2 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_pod_can_be_backend_and_egress_at_once() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.1.0.1@node-a
         #2 done
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #3 done
         #4 done
         #5 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.1.0.1 to node-a for web   because addresses changed
            #3 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #4 provision blue: public-ip, nat-gateway, register   because pods came
            #5 push 10.1.0.1 to node-a for web+blue   because service became ready
        "#]],
    );
}

#[test]
pub(super) fn ipv6_nodes_give_an_egress_a_second_public_ip() {
    check(
        "node node-a 192.168.0.1 fd00::1
         pod p1 egress=blue ip=10.1.0.1 ip=fd01::1 node=node-a
         #1 done
         #2 done
         #3 done
         pod p1 deleted
         #4 done
         #5 done",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to 192.168.0.1 for blue, push fd01::1 to fd00::1 for blue   because service became ready
            #4 remove 192.168.0.1, remove fd00::1   because addresses changed
            #5 deprovision blue: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip, delete-public-ip   because last address left
        "#]],
    );
}

#[test]
pub(super) fn the_first_ipv6_node_adds_the_second_public_ip_to_live_egresses() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         node node-b 192.168.0.2 fd00::2
         #4 done
         state blue
         node node-b deleted
         tick 3600
         state blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            #4 update blue: public-ip, nat-gateway   because pods came
            blue is Created
            blue is Created
        "#]],
    );
}

#[test]
pub(super) fn the_host_address_of_a_pod_counts_only_while_its_node_is_unknown() {
    check(
        "pod p1 egress=blue ip=10.1.0.1 node=node-a host=192.168.0.7
         #1 done
         #2 done
         #3 done
         node node-a 192.168.0.1",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to 192.168.0.7 for blue   because service became ready
            #4 remove 192.168.0.7, push 10.1.0.1 to node-a for blue   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn the_end_of_a_pod_seen_only_in_a_list_is_an_end() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         pod p2 egress=blue ip=10.1.0.2 node=node-a
         #1 done
         #2 done
         #3 done
         pod p1 vanishes
         pods relisted
         #4 done
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 10.1.0.2 to node-a for blue   because service became ready
            #4 remove 10.1.0.1 from node-a   because addresses changed
            blue is Created, wanted, live, 20.1.2.1, 1 pods, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}
