//! Stories about managed resources that lose the cluster tag, and about public IPs that were released.

use expect_test::expect;

use super::story::check;

#[test]
fn addresses_drain_before_a_service_goes_whose_registration_is_in_doubt() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a
         #2 done
         azure loses registration web
         tick 1900
         azure untags load-balancer web
         #3 refused
         tick 2
         #4 done
         service web applied deleting
         state web
         #5 done
         #6 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            #3 update web: register   because drift found
            #4 inspect web: read-public-ip, read-load-balancer, read-registration   because outcome unknown
            #5 remove 10.0.0.4 from node-a   because addresses changed
            web is DeletionPending
            #6 deprovision web: clear, unregister, release-public-ip   because last address left
            #7 remove finalizer from web   because operation ended
        "#]],
    );
}
