//! Stories about Services: created, changed, deleted, and everything in between.

use expect_test::expect;

use super::story::check;

#[test]
fn endpoints_that_arrive_before_the_load_balancer_wait_for_it() {
    check(
        "node node-a 192.168.0.1
         service web applied
         endpoints web 10.0.0.4@node-a
         #1 done
         #2 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a   because addresses changed
        "#]],
    );
}

#[test]
fn nothing_is_deleted_before_the_last_address_has_left() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied deleting
         #3 done
         #4 done
         #5 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a   because addresses changed
            #3 remove node-a   because addresses changed
            #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #5 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
fn our_finalizer_is_on_before_anything_is_made() {
    check(
        "service web applied nofinalizer
         #1 done
         #2 done",
        expect![[r#"
            #1 add finalizer to web   because service applied
            #2 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}
