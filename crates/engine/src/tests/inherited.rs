//! Stories about Services that only finalizers of other controllers keep.

use expect_test::expect;

use super::story::check;

#[test]
fn a_deleted_service_with_only_inherited_finalizers_is_released_when_azure_has_nothing_of_it() {
    check(
        "service web known nofinalizer inherited deleting
         lead
         last done
         state web",
        expect![[r#"
            #1 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
fn a_service_that_is_no_load_balancer_any_more_is_released_while_it_lives_on() {
    check(
        "service web known nofinalizer inherited clusterip
         lead
         last done
         state web
         service web applied nofinalizer clusterip
         state web",
        expect![[r#"
            #1 remove finalizer from web   because operation ended
            web is forgotten
            web is forgotten
        "#]],
    );
}

#[test]
fn a_service_that_is_deleted_before_our_finalizer_is_on_is_released() {
    check(
        "service web applied nofinalizer inherited
         service web applied nofinalizer inherited deleting
         #1 refused
         tick 2
         last done
         state web",
        expect![[r#"
            #1 add finalizer to web   because service applied
            #2 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
fn what_is_ours_is_torn_down_before_the_inherited_finalizers_go() {
    check(
        "service web known nofinalizer inherited deleting
         azure has web
         lead
         #1 done
         #2 done
         state web",
        expect![[r#"
            #1 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #2 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
fn a_public_ip_tagged_for_a_service_keeps_it_until_it_is_gone() {
    check(
        "show notices
         show status
         show times
         service web known nofinalizer inherited deleting
         azure has ip kubernetes-a1 for shop/api,shop/web
         lead
         explain web
         azure loses ip kubernetes-a1
         tick 70
         last done
         state web",
        expect![[r#"
            t=0.6 warn web: Conflict: Finalizers of another controller are kept: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/kubernetes-a1 is tagged k8s-azure-service for this Service. Delete it, or remove the tag
            t=0.6 (write status of web: Provisioning Conflict of Deletion, not Serving Conflict of Deletion)
            t=0.7 web is DeletionPending, not wanted, parked: Conflict
            t=0.7   waits for its next attempt at t=60.6: Conflict
            t=60.6 (write status of web: nothing)
            t=60.6 #1 remove finalizer from web   because operation ended
            t=71.1 web is forgotten
        "#]],
    );
}

#[test]
fn a_foreign_public_ip_under_the_uid_keeps_the_service_until_two_listings_miss_it() {
    check(
        "show notices
         service web known nofinalizer inherited clusterip
         azure has web public-ip foreign
         lead
         azure loses public-ip web
         tick 90
         tick 90
         last done
         state web",
        expect![[r#"
            warn web: Conflict: Finalizers of another controller are kept: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip has the UID of this Service and is not managed by Sluice. Delete it
            #1 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}

#[test]
fn what_others_registered_under_the_uid_is_left_alone_with_its_addresses() {
    check(
        "show notices
         service web known nofinalizer inherited deleting
         azure has web foreign
         azure has address 10.0.0.4 at 192.168.0.1 for web
         lead
         tick 3600
         state web",
        expect![[r#"
            warn web: Conflict: Finalizers of another controller are kept: /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/web has the UID of this Service and is not managed by Sluice. Delete it, or claim it with `sluice adopt`
            web is DeletionPending
        "#]],
    );
}

#[test]
fn services_that_are_kept_do_not_count_as_a_mass_deletion() {
    check(
        "service a known nofinalizer inherited clusterip
         service b known nofinalizer inherited clusterip
         service c known nofinalizer inherited clusterip
         service d known nofinalizer inherited clusterip
         service e known nofinalizer inherited clusterip
         service f known nofinalizer inherited clusterip
         azure has a load-balancer foreign
         azure has b load-balancer foreign
         azure has c load-balancer foreign
         azure has d load-balancer foreign
         azure has e load-balancer foreign
         azure has f load-balancer foreign
         lead
         explain a",
        expect![[r#"
            a is DeletionPending, not wanted, parked: Conflict
              waits for its next attempt at t=61.3: Conflict
        "#]],
    );
}

#[test]
fn a_service_that_is_deleted_while_its_leftovers_are_read_is_not_forgotten() {
    check(
        "service web known nofinalizer other-class
         azure has address 10.0.0.9 at 192.168.0.1 for web
         lead
         tick 2000
         azure has web registration cleared
         service web applied nofinalizer inherited clusterip deleting
         #1 done
         last done
         last done
         last done
         state web",
        expect![[r#"
            #1 inspect web: read-load-balancer, read-registration   because orphaned
            #2 remove 10.0.0.9 from 192.168.0.1   because addresses changed
            #3 deprovision web: unregister   because orphaned
            #4 remove finalizer from web   because operation ended
            web is forgotten
        "#]],
    );
}
