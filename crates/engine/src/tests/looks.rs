//! Stories about listings of the address locations that a change waits for: each need costs one.

use expect_test::expect;

use super::story::check;

#[test]
pub(super) fn an_unknown_outcome_on_a_node_that_is_gone_costs_one_listing() {
    check(
        "node node-a 192.168.0.1
         node node-b 192.168.0.2
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         show lists
         show times
         #2 lost applied
         node node-a deleted
         #3 lost
         endpoints api 10.0.0.9@node-b
         service web applied again
         tick 60",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            t=1.0 #3 remove node-a   because addresses changed
            t=2.5 #4 remove node-a   because addresses changed
            t=30.9 (list locations)
        "#]],
    );
}

#[test]
pub(super) fn a_name_of_others_beside_a_new_address_costs_one_listing() {
    check(
        "node node-a 192.168.0.1
         azure registers partner inbound
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         tick 868
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         #2 done
         last done
         azure has address 10.0.0.4 at 192.168.0.1 for web partner
         azure has address 10.0.0.5 at 192.168.0.1 for web partner
         show times
         show lists
         tick 8
         endpoints web deleted
         tick 60
         last done
         tick 60",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 push 10.0.0.5 to node-a for web   because addresses changed
            t=874.1 (list locations)
            t=893.2 (list registrations)
            t=899.0 (list locations)
            t=899.0 #4 push 10.0.0.4 10.0.0.5 to node-a for partner   because addresses changed
            t=915.9 (list nat-gateways)
        "#]],
    );
}
