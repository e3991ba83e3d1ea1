//! Stories about Services: created, served and kept in sync.

use expect_test::expect;

use super::story::check;

#[test]
pub(super) fn an_applied_service_starts_one_plan() {
    check(
        "service web applied nofinalizer
         service web applied
         service web applied again
         state web
         #2 done
         state web",
        expect![[r#"
            #1 add finalizer to web   because service applied
            #2 provision web: public-ip, load-balancer, register   because service applied
            web is CreationInProgress
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn endpoints_that_arrive_before_the_load_balancer_wait_for_it_and_are_sent_when_it_is_registered()
{
    check(
        "node node-a 192.168.0.1
         service web applied
         endpoints web 10.0.0.4@node-a
         explain web
         #1 done
         #2 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is CreationInProgress, wanted, addresses: 1 wanted, 0 programmed, 0 mapped
              waits for operation #1
            #2 push 10.0.0.4 to node-a for web   because service became ready
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn endpoints_of_a_created_service_are_sent_at_once() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a
         #2 done
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         #3 done
         endpoints web 10.0.0.5@node-a
         #4 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            #3 push 10.0.0.5 to node-a for web   because addresses changed
            #4 remove 10.0.0.4 from node-a   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn several_services_are_made_at_the_same_time() {
    check(
        "service web applied
         service api applied
         service bank/web applied
         #3 done
         #1 done
         #2 done
         state web
         state api
         state bank/web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 provision api: public-ip, load-balancer, register   because service applied
            #3 provision bank/web: public-ip, load-balancer, register   because service applied
            web is Created
            api is Created
            bank/web is Created
        "#]],
    );
}

#[test]
pub(super) fn endpoints_known_before_their_service_are_sent_when_it_is_live() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
        "#]],
    );
}

#[test]
pub(super) fn the_addresses_of_a_service_are_the_union_of_its_slices() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a slice=1
         #2 done
         endpoints web 10.0.0.5@node-a 10.0.0.6@node-a slice=2
         #3 done
         endpoints web deleted slice=1
         #4 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 10.0.0.5 to node-a for web   because addresses changed
            #3 push 10.0.0.6 to node-a for web   because addresses changed
            #4 remove 10.0.0.4 from node-a   because addresses changed
            web is Created, wanted, live, 20.1.2.1, addresses: 2 wanted, 2 programmed, 2 mapped
        "#]],
    );
}

#[test]
pub(super) fn an_address_that_moves_between_slices_is_never_lost_in_either_order() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a slice=1
         #2 done
         endpoints web 10.0.0.4@node-a slice=2
         endpoints web slice=1
         endpoints web 10.0.0.4@node-a slice=1
         endpoints web slice=2
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn terminating_endpoints_count_only_while_none_is_ready() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a!terminating 10.0.0.6@node-a!unready
         #2 done
         endpoints web 10.0.0.4@node-a!unready 10.0.0.5@node-a!terminating slice=1
         #3 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            #3 remove 10.0.0.4 from node-a, push 10.0.0.5 to node-a for web   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn an_endpoint_waits_for_its_unknown_node() {
    check(
        "service web applied
         #1 done
         endpoints web 10.0.0.4@node-a
         node node-a 192.168.0.1
         #2 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn the_location_of_an_address_is_the_smallest_address_of_its_node_in_its_family() {
    check(
        "node node-a 192.168.0.9 192.168.0.1 fd00::2
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a fd01::4@node-a",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to 192.168.0.1 for web, push fd01::4 to fd00::2 for web   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn an_address_without_a_location_of_its_family_waits_and_people_are_told_once() {
    check(
        "show notices
         node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web fd01::4@node-a
         endpoints web fd01::4@node-a fd01::5@node-a
         node node-a 192.168.0.1 fd00::2",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            warn cluster: InvalidSpec: Node node-a has no IPv6 InternalIP, so its IPv6 pods are not programmed. Add an InternalIP
            #2 push fd01::4 fd01::5 to fd00::2 for web   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn a_node_that_changes_its_address_moves_its_endpoints_in_one_request() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         node node-a 192.168.0.2
         #3 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove node-a, push 10.0.0.4 to 192.168.0.2 for web   because addresses changed
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn an_endpoint_that_moves_to_another_node_is_unbound_and_bound_in_one_request() {
    check(
        "node node-a 192.168.0.1
         node node-b 192.168.0.2
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         endpoints web 10.0.0.4@node-b
         #3 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove node-a, push 10.0.0.4 to node-b for web   because addresses changed
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_node_that_goes_drains_its_addresses() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         node node-a deleted
         #3 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove node-a   because addresses changed
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 0 programmed, 0 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_slice_belongs_to_the_service_of_its_owner_reference_else_of_its_label() {
    check(
        "node node-a 192.168.0.1
         service web applied uid=2
         #1 done
         endpoints other 10.0.0.4@node-a owner=2
         #2 done
         endpoints web 10.0.0.5@node-a
         #3 done
         endpoints web 10.0.0.6@node-a owner=3 slice=9
         endpoints web 10.0.0.7@node-a owner=nobody slice=8
         endpoints bank/web 10.0.0.8@node-a
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            #3 push 10.0.0.5 to node-a for web   because addresses changed
            web is Created, wanted, live, 20.1.2.1, addresses: 2 wanted, 2 programmed, 2 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_slice_of_another_namespace_adds_no_address_and_sets_no_port() {
    check(
        "node node-a 192.168.0.1
         service web applied uid=2 port=80->http
         endpoints evil/web 10.0.0.6@node-a owner=2 port=666
         explain web
         endpoints web 10.0.0.4@node-a owner=2 port=8080
         #1 done
         #2 done
         endpoints evil/web 10.0.0.6@node-a 10.0.0.7@node-a owner=2 port=666
         tick 60
         explain web",
        expect![[r#"
            web is NotStarted, wanted
              waits for a change: No ready endpoint defines targetPort "http"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_slice_of_another_namespace_does_not_count_when_it_comes_first() {
    check(
        "node node-a 192.168.0.1
         endpoints evil/web 10.0.0.6@node-a owner=2 port=666
         service evil/web applied uid=3
         #1 done
         endpoints web 10.0.0.4@node-a owner=2 port=8080
         service web applied uid=2 port=80->http
         #2 done
         #3 done
         explain web
         explain evil/web",
        expect![[r#"
            #1 provision evil/web: public-ip, load-balancer, register   because service applied
            #2 provision web: public-ip, load-balancer, register   because service applied
            #3 push 10.0.0.4 to node-a for web   because service became ready
            web is Created, wanted, live, 20.1.2.2, addresses: 1 wanted, 1 programmed, 1 mapped
            evil/web is Created, wanted, live, 20.1.2.1
        "#]],
    );
}

#[test]
pub(super) fn a_label_means_the_service_of_that_name_in_the_slices_own_namespace() {
    check(
        "node node-a 192.168.0.1
         endpoints bank/web 10.0.0.8@node-a
         service web applied
         #1 done
         explain web
         service bank/web applied
         #2 done
         #3 done
         endpoints web 10.0.0.4@node-a
         #4 done
         explain web
         explain bank/web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is Created, wanted, live, 20.1.2.1
            #2 provision bank/web: public-ip, load-balancer, register   because service applied
            #3 push 10.0.0.8 to node-a for bank/web   because service became ready
            #4 push 10.0.0.4 to node-a for web   because addresses changed
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
            bank/web is Created, wanted, live, 20.1.2.2, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_slice_that_belongs_to_nobody_any_more_does_not_count() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         endpoints web 10.0.0.4@node-a owner=nobody
         #3 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove node-a   because addresses changed
            web is Created, wanted, live, 20.1.2.1
        "#]],
    );
}

#[test]
pub(super) fn one_address_of_two_services_is_one_entry_that_lists_both() {
    check(
        "node node-a 192.168.0.1
         service web applied
         service api applied
         #1 done
         #2 done
         endpoints web 10.0.0.4@node-a
         #3 done
         endpoints api 10.0.0.4@node-a
         #4 done
         endpoints web slice=1",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 provision api: public-ip, load-balancer, register   because service applied
            #3 push 10.0.0.4 to node-a for web   because addresses changed
            #4 push 10.0.0.4 to node-a for web+api   because addresses changed
            #5 push 10.0.0.4 to node-a for api   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn unusable_addresses_are_skipped_with_one_warning() {
    check(
        "show notices
         node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a malformed=web.example
         #2 done
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a malformed=web.example",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            warn web: InvalidSpec: Ignored invalid addresses in EndpointSlice shop/web-1: web.example. Correct the EndpointSlice
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            #3 push 10.0.0.5 to node-a for web   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn changes_during_a_sync_ride_in_the_next_one() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a
         endpoints web 10.0.0.5@node-a
         endpoints web 10.0.0.6@node-a
         #2 done
         #3 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            #3 remove 10.0.0.4 from node-a, push 10.0.0.6 to node-a for web   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn a_failed_location_sync_leaves_its_addresses_dirty_and_they_are_sent_again() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 failed ServerBusy 503
         tick 2
         #3 failed ServerBusy 503
         tick 4
         #4 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 push 10.0.0.4 to node-a for web   because addresses changed
            #4 push 10.0.0.4 to node-a for web   because addresses changed
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_new_change_ends_the_backoff_of_the_lane() {
    check(
        "show times
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 failed ServerBusy 503
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a",
        expect![[r#"
            t=0.5 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.6 #2 push 10.0.0.4 to node-a for web   because service became ready
            t=0.8 #3 push 10.0.0.4 10.0.0.5 to node-a for web   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn no_change_ends_the_pause_that_azure_asked_for() {
    check(
        "show times
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 failed TooManyRequests 429 after=17
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         tick 60",
        expect![[r#"
            t=0.5 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.6 #2 push 10.0.0.4 to node-a for web   because service became ready
            t=17.7 #3 push 10.0.0.4 10.0.0.5 to node-a for web   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn the_lane_is_never_parked_and_says_after_twelve_failures_that_it_fails() {
    check(
        "show notices
         show times
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         syncs fail ServerBusy 503
         #1 done
         tick 280
         syncs stop failing
         tick 30
         last done
         explain web",
        expect![[r#"
            t=0.6 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.8 #2 push 10.0.0.4 to node-a for web   because service became ready
            t=1.5 #3 push 10.0.0.4 to node-a for web   because addresses changed
            t=3.0 #4 push 10.0.0.4 to node-a for web   because addresses changed
            t=6.5 #5 push 10.0.0.4 to node-a for web   because addresses changed
            t=13.6 #6 push 10.0.0.4 to node-a for web   because addresses changed
            t=24.4 #7 push 10.0.0.4 to node-a for web   because addresses changed
            t=50.5 #8 push 10.0.0.4 to node-a for web   because addresses changed
            t=74.6 #9 push 10.0.0.4 to node-a for web   because addresses changed
            t=95.2 #10 push 10.0.0.4 to node-a for web   because addresses changed
            t=124.4 #11 push 10.0.0.4 to node-a for web   because addresses changed
            t=143.9 #12 push 10.0.0.4 to node-a for web   because addresses changed
            t=160.4 #13 push 10.0.0.4 to node-a for web   because addresses changed
            t=160.4 warn cluster: AzureUnavailable: Address updates failed 12 times in a row: ServerBusy (transient): as the story says. Sluice retries; run `sluice doctor`
            t=183.6 #14 push 10.0.0.4 to node-a for web   because addresses changed
            t=212.2 #15 push 10.0.0.4 to node-a for web   because addresses changed
            t=235.5 #16 push 10.0.0.4 to node-a for web   because addresses changed
            t=254.4 #17 push 10.0.0.4 to node-a for web   because addresses changed
            t=276.2 #18 push 10.0.0.4 to node-a for web   because addresses changed
            t=303.4 #19 push 10.0.0.4 to node-a for web   because addresses changed
            t=311.3 web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_lost_location_sync_is_sent_again() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 lost applied
         explain web
         tick 2
         #3 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 0 programmed, 1 mapped
            #3 push 10.0.0.4 to node-a for web   because addresses changed
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn one_poison_address_is_set_aside_and_all_others_go_through() {
    check(
        "show notices
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         service web applied
         #1 done
         #2 refused
         last refused
         last done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 10.0.0.5 to node-a for web   because service became ready
            #3 push 10.0.0.4 to node-a for web   because addresses changed
            warn web: Rejected: Azure rejected 1 address: InvalidRequest (rejected): as the story says. Sluice retries; check 10.0.0.4 on node IP node-a
            #4 push 10.0.0.5 to node-a for web   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn a_service_of_another_type_or_class_is_left_alone() {
    check(
        "service web applied clusterip nofinalizer
         service web applied deleting clusterip nofinalizer
         service web deleted",
        expect![[""]],
    );
}

#[test]
pub(super) fn a_service_that_is_being_deleted_gets_no_finalizer_and_nothing_is_made_for_it() {
    check(
        "service web applied deleting nofinalizer
         service web deleted",
        expect![[""]],
    );
}
