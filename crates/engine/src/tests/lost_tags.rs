//! Stories about managed resources that lose the cluster tag, and about public IPs that were released.

use expect_test::expect;
use sluice_model::Family;

use super::story::{azure, check, told};

#[test]
fn a_released_public_ip_is_not_tagged_when_its_load_balancer_loses_its_tag_later() {
    check(
        "service web applied
         #1 done
         azure untags public-ip web
         tick 1900
         last done
         azure untags load-balancer web
         tick 1900
         last done
         service web applied deleting
         last done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-load-balancer   because outcome unknown
            #3 adopt web: adopt   because service applied
            #4 deprovision web: clear, delete-load-balancer, unregister   because last address left
            #5 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
fn a_public_ip_is_not_released_when_its_load_balancer_lost_its_tag_too() {
    check(
        "service web applied
         #1 done
         azure untags public-ip web
         azure untags load-balancer web
         tick 1900
         last done
         tick 1900
         service web applied deleting
         last done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 adopt web: adopt, adopt   because service applied
            #3 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #4 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
fn a_released_public_ip_survives_a_teardown_that_tags_its_load_balancer_first() {
    check(
        "service web applied
         #1 done
         azure untags public-ip web
         tick 1900
         last done
         azure untags load-balancer web
         tick 1900
         last failed AuthorizationFailed 403
         service web applied deleting
         last done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-load-balancer   because outcome unknown
            #3 adopt web: adopt   because service applied
            #4 inspect web: read-load-balancer   because outcome unknown
            #5 deprovision web: adopt, clear, delete-load-balancer, unregister   because last address left
        "#]],
    );
}

#[test]
fn a_released_public_ip_stays_released_after_a_restart_once_its_load_balancer_is_tagged_again() {
    check(
        "service web known
         azure has web
         azure untags public-ip web
         lead
         last done
         azure untags load-balancer web
         tick 1900",
        expect![[r#"
            #1 inspect web: read-load-balancer   because service applied
            #2 adopt web: adopt   because service applied
        "#]],
    );
}

#[test]
fn a_public_ip_that_is_tagged_by_hand_again_is_no_longer_released() {
    check(
        "service web applied
         #1 done
         azure untags public-ip web
         tick 1900
         last done
         azure adopts web
         tick 1900
         azure untags load-balancer web
         tick 1900
         last done
         service web applied deleting",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-load-balancer   because outcome unknown
            #3 adopt web: adopt, adopt   because service applied
            #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
        "#]],
    );
}

#[test]
fn the_tags_of_a_load_balancer_that_sluice_created_are_restored_once() {
    check(
        "show notices
         service web applied
         #1 done
         azure untags load-balancer web
         tick 1900
         #2 done
         azure untags load-balancer web
         tick 1900
         tick 1900",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 adopt web: adopt, adopt   because service applied
            warn web: Conflict: Tags of /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/web were removed again. Sluice restores them only before it changes or deletes the resource; exempt it from the tool that removes them
        "#]],
    );
}

#[test]
fn every_public_ip_that_survives_its_egress_is_named() {
    check(
        "show news
         node node-a 192.168.0.1
         node node-b fd00::1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         azure untags public-ip egress=blue
         azure untags public-ip-v6 egress=blue
         tick 1900
         last done
         pod p1 deleted
         last done
         last done
         state blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, public-ip, nat-gateway, register   because pods came
            tell blue: Provisioned: NAT gateway is ready; public IP 20.1.2.1
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            #4 inspect blue: read-nat-gateway   because outcome unknown
            #5 remove 10.1.0.1 from node-a   because addresses changed
            #6 deprovision blue: clear, detach-nat-gateway, unregister, delete-nat-gateway   because last address left
            tell blue: Deleting: Drained; deleting NAT gateway
            tell blue: Deleting: Kept /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/blue-pip: it does not carry the tag sluice-cluster. Delete it if it is unused
            tell blue: Deleting: Kept /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/blue-pip-v6: it does not carry the tag sluice-cluster. Delete it if it is unused
            blue is forgotten
        "#]],
    );
}

#[test]
fn a_public_ip_that_only_its_release_finds_is_named_and_not_overwritten() {
    check(
        "show news
         service web known
         azure has web
         azure untags load-balancer web
         azure untags public-ip web
         lead
         #1 lost
         service web deleted
         #3 gone
         azure loses public-ip web
         #2 done
         azure has web public-ip
         #4 done
         state web",
        expect![[r#"
            #1 adopt web: adopt, adopt   because service applied
            #2 inspect web: read-public-ip   because outcome unknown
            #3 ask whether web is gone   because service no longer wanted
            #4 deprovision web: release-public-ip   because last address left
            tell web: Deleting: Drained; removing the tags of the public IP, which an unmanaged resource uses
            tell web: Deleting: Kept /subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web-pip: it does not carry the tag sluice-cluster. Delete it if it is unused
            web is forgotten
        "#]],
    );
}

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

#[test]
fn released_public_ips_are_listed_while_their_services_live() {
    let mut story = told(
        "service web applied
         #1 done
         azure untags public-ip web
         tick 1900
         last done
         azure untags load-balancer web
         tick 1900",
    );
    let id = story.engine.released().pop().expect("a released public IP");
    assert_eq!(id, azure::scope().public_ip_id(&story.key("web"), Family::V4));
    story.play("last done\n azure adopts web\n tick 1900");
    assert_eq!(story.engine.released(), []);
}

#[test]
fn a_public_ip_is_not_deleted_under_the_untagged_load_balancer_of_a_service_that_is_gone() {
    check(
        "service web applied
         #1 done
         azure untags load-balancer web
         service web applied port=80->8081
         #2 failed ReadLagsBehind 503
         service web applied deleting port=80->8081
         #3 failed ReadLagsBehind 503
         service web deleted
         tick 40
         last done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because service applied
            #3 inspect web: read-load-balancer   because outcome unknown
            #4 inspect web: read-load-balancer   because outcome unknown
            #5 deprovision web: release-public-ip   because last address left
        "#]],
    );
}
