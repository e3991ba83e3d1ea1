//! Stories about slots: no more plans than slots, fair across namespaces, half-done work first.

use expect_test::expect;

use super::story::check;

#[test]
pub(super) fn no_more_plans_than_slots() {
    check(
        "config slots=2
         service a applied
         service b applied
         service c applied
         service d applied
         explain c
         #1 done
         #2 done
         #3 done
         #4 done",
        expect![[r#"
            #1 provision a: public-ip, load-balancer, register   because service applied
            #2 provision b: public-ip, load-balancer, register   because service applied
            c is NotStarted, wanted
              waits for a slot
            #3 provision c: public-ip, load-balancer, register   because service applied
            #4 provision d: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn slots_go_round_the_namespaces_and_in_order_within_one() {
    check(
        "config slots=1
         service shop/a applied
         service shop/b applied
         service shop/c applied
         service bank/a applied
         service bank/b applied
         service park/a applied
         #1 done
         #2 done
         #3 done
         #4 done
         #5 done
         #6 done",
        expect![[r#"
            #1 provision shop/a: public-ip, load-balancer, register   because service applied
            #2 provision shop/b: public-ip, load-balancer, register   because service applied
            #3 provision bank/a: public-ip, load-balancer, register   because service applied
            #4 provision park/a: public-ip, load-balancer, register   because service applied
            #5 provision shop/c: public-ip, load-balancer, register   because service applied
            #6 provision bank/b: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn an_egress_is_a_namespace_of_its_own() {
    check(
        "config slots=1
         service a applied
         service b applied
         egress blue requested
         egress green requested
         #1 done
         #2 done
         #3 done
         #4 done",
        expect![[r#"
            #1 provision a: public-ip, load-balancer, register   because service applied
            #2 provision b: public-ip, load-balancer, register   because service applied
            #3 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because asked for
            #4 inspect green: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because asked for
            #5 provision blue: public-ip, nat-gateway, register   because asked for
        "#]],
    );
}

#[test]
pub(super) fn a_plan_that_waits_without_needing_a_worker_gives_its_slot_to_another() {
    check(
        "config slots=1
         service a applied
         service b applied
         #1 waits
         #1 wants
         #2 done
         #1 done",
        expect![[r#"
            #1 provision a: public-ip, load-balancer, register   because service applied
            #2 provision b: public-ip, load-balancer, register   because service applied
            #3 resume #1   because slot granted
        "#]],
    );
}

#[test]
pub(super) fn what_is_half_done_is_finished_before_something_new_is_begun() {
    check(
        "config slots=1
         service a applied
         service b applied
         service c applied
         #1 waits
         #1 wants
         #2 done
         #1 done",
        expect![[r#"
            #1 provision a: public-ip, load-balancer, register   because service applied
            #2 provision b: public-ip, load-balancer, register   because service applied
            #3 resume #1   because slot granted
            #4 provision c: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_plan_that_asks_twice_is_resumed_once() {
    check(
        "config slots=1
         service a applied
         service b applied
         #1 waits
         #1 wants
         #1 wants
         #2 done",
        expect![[r#"
            #1 provision a: public-ip, load-balancer, register   because service applied
            #2 provision b: public-ip, load-balancer, register   because service applied
            #3 resume #1   because slot granted
        "#]],
    );
}

#[test]
pub(super) fn a_plan_that_ends_while_it_waits_for_a_slot_gives_up_its_place() {
    check(
        "config slots=1
         service a applied
         service b applied
         service c applied
         #1 waits
         #1 wants
         #1 done
         #2 done",
        expect![[r#"
            #1 provision a: public-ip, load-balancer, register   because service applied
            #2 provision b: public-ip, load-balancer, register   because service applied
            #3 provision c: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_plan_that_never_gave_its_slot_back_is_not_resumed() {
    check(
        "config slots=1
         service a applied
         #1 wants
         service b applied
         #1 done",
        expect![[r#"
            #1 provision a: public-ip, load-balancer, register   because service applied
            #2 provision b: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_service_that_asks_many_times_stands_in_the_queue_once_and_keeps_its_place() {
    check(
        "config slots=1
         service a applied
         service b applied
         service c applied
         service b applied port=81->8081
         service b applied port=82->8082
         #1 done
         #2 done
         #3 done",
        expect![[r#"
            #1 provision a: public-ip, load-balancer, register   because service applied
            #2 provision b: public-ip, load-balancer, register   because service applied
            #3 provision c: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_service_that_is_not_wanted_any_more_leaves_the_queue() {
    check(
        "config slots=1
         service a applied
         service b applied
         service c applied
         service b applied deleting
         #1 done",
        expect![[r#"
            #1 provision a: public-ip, load-balancer, register   because service applied
            #2 remove finalizer from b   because operation ended
            #3 provision c: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn the_gateway_needs_no_slot() {
    check(
        "config slots=1
         azure detaches subnet
         lead
         #1 waits
         #1 wants",
        expect![[r#"
            #1 provision gateway: attach-subnet   because start-up
            #2 resume #1   because slot granted
        "#]],
    );
}

#[test]
pub(super) fn looks_and_teardowns_need_slots_like_everything_else() {
    check(
        "config slots=1
         service a applied
         service b applied
         #1 lost applied at load-balancer
         tick 5
         #2 done
         #3 done",
        expect![[r#"
            #1 provision a: public-ip, load-balancer, register   because service applied
            #2 provision b: public-ip, load-balancer, register   because service applied
            #3 inspect a: read-load-balancer   because outcome unknown
            #4 provision a: register   because retry due
        "#]],
    );
}
