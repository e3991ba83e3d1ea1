//! Stories about what others do to our resources: found by two listings, mended once.

use expect_test::expect;

use super::story::{check, told};

#[test]
pub(super) fn nothing_is_written_when_there_is_nothing_to_mend() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #3 done
         #4 done
         #5 done
         tick 14400",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #4 provision blue: public-ip, nat-gateway, register   because pods came
            #5 push 10.1.0.1 to node-a for blue   because service became ready
        "#]],
    );
}

#[test]
pub(super) fn each_kind_is_listed_about_every_quarter_of_an_hour_and_not_all_at_once() {
    check(
        "show times
         show lists
         tick 1900",
        expect![[r#"
            t=767.6 (list load-balancers)
            t=848.2 (list registrations)
            t=849.8 (list gateway)
            t=874.1 (list locations)
            t=915.9 (list nat-gateways)
            t=1012.8 (list public-ips)
            t=1595.4 (list locations)
            t=1617.5 (list registrations)
            t=1658.5 (list load-balancers)
            t=1886.8 (list nat-gateways)
            t=1887.8 (list gateway)
        "#]],
    );
}

#[test]
pub(super) fn a_difference_is_mended_when_two_listings_show_it() {
    check(
        "show times
         service web applied
         #1 done
         tick 60
         azure loses load-balancer web
         hold lists
         tick 1200
         #2 done
         #3 done
         #4 done
         #5 done
         #6 done
         #7 done
         tick 44
         tick 2
         last done
         last done
         state web",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=767.6 #2 list load-balancers   because drift sweep
            t=848.2 #3 list registrations   because drift sweep
            t=849.8 #4 list gateway   because drift sweep
            t=874.1 #5 list locations   because drift sweep
            t=915.9 #6 list nat-gateways   because drift sweep
            t=1012.8 #7 list public-ips   because drift sweep
            t=1305.9 #8 list load-balancers   because drift sweep
            t=1307.7 #9 update web: load-balancer, register   because drift found
            t=1307.9 web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_difference_that_only_one_listing_showed_is_not_mended() {
    check(
        "service web applied
         #1 done
         tick 60
         azure loses load-balancer web
         hold lists
         tick 1200
         #2 done
         #3 done
         #4 done
         #5 done
         #6 done
         #7 done
         azure has web load-balancer
         release lists
         tick 4000",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 list load-balancers   because drift sweep
            #3 list registrations   because drift sweep
            #4 list gateway   because drift sweep
            #5 list locations   because drift sweep
            #6 list nat-gateways   because drift sweep
            #7 list public-ips   because drift sweep
        "#]],
    );
}

#[test]
pub(super) fn what_was_written_shortly_before_a_listing_began_is_left_alone() {
    check(
        "show times
         show lists
         service web applied
         tick 750
         #1 done
         azure loses load-balancer web
         tick 200",
        expect![[r#"
            t=0.4 #1 provision web: public-ip, load-balancer, register   because service applied
            t=767.6 (list load-balancers)
            t=848.2 (list registrations)
            t=849.8 (list gateway)
            t=874.1 (list locations)
            t=915.9 (list nat-gateways)
        "#]],
    );
}

#[test]
pub(super) fn what_was_written_since_a_listing_began_is_left_alone() {
    check(
        "hold lists
         tick 1200
         service web applied
         #7 done
         tick 60
         #1 done
         #2 done
         #3 done
         #4 done
         #5 done
         #6 done
         state web",
        expect![[r#"
            #1 list load-balancers   because drift sweep
            #2 list registrations   because drift sweep
            #3 list gateway   because drift sweep
            #4 list locations   because drift sweep
            #5 list nat-gateways   because drift sweep
            #6 list public-ips   because drift sweep
            #7 provision web: public-ip, load-balancer, register   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_lost_load_balancer_is_made_and_registered_again() {
    check(
        "service web applied
         #1 done
         tick 60
         azure loses load-balancer web
         tick 2000
         #2 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer, register   because drift found
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_lost_registration_is_made_again_and_its_addresses_are_sent_again() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         tick 60
         azure loses registration web
         azure loses address 10.0.0.4
         tick 2000
         last done
         tick 2000
         last done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 update web: register   because drift found
            #4 push 10.0.0.4 to node-a for web   because service became ready
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_new_public_ip_is_published_after_its_service_is_registered_again() {
    check(
        "service web applied
         #1 done
         tick 60
         azure loses public-ip web
         tick 2000
         show status
         #2 failed ServerBusy 503 at load-balancer
         tick 2
         #3 done
         #4 failed ServerBusy 503 at register
         tick 4
         #5 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: public-ip, load-balancer, register   because drift found
            #3 inspect web: read-load-balancer   because outcome unknown
            #4 update web: register   because retry due
            #5 update web: register   because retry due
            (write status of web: 20.1.2.2, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
pub(super) fn no_ip_is_published_while_a_listing_does_not_show_its_public_ip() {
    check(
        "show times
         hold status
         show lists
         service web applied
         #1 done
         #2 done
         azure loses public-ip web
         tick 1020
         #3 unavailable
         tick 120
         #4 done
         #5 done
         #6 done",
        expect![[r#"
            t=0.5 #1 write status of web: Provisioning Provisioning, not Serving Provisioning   because operation ended
            t=0.5 #2 provision web: public-ip, load-balancer, register   because service applied
            t=0.7 #3 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
            t=767.6 (list load-balancers)
            t=848.2 (list registrations)
            t=849.8 (list gateway)
            t=874.1 (list locations)
            t=915.9 (list nat-gateways)
            t=1012.8 (list public-ips)
            t=1022.0 #4 write status of web: Provisioning Updating, not Serving Updating   because operation ended
            t=1057.8 (list public-ips)
            t=1057.8 #5 update web: public-ip, load-balancer, register   because drift found
            t=1141.3 #6 write status of web: 20.1.2.2, not Provisioning Provisioned, Serving Provisioned   because operation ended
        "#]],
    );
}

#[test]
fn an_ip_is_not_published_if_a_listing_soon_after_its_creation_lacks_it() {
    check(
        "show times
         hold status
         show lists
         service web applied
         #1 done
         tick 1005
         #2 done
         azure loses public-ip web
         #3 unavailable
         tick 5
         #4 unavailable
         tick 30
         last done
         tick 100",
        expect![[r#"
            t=0.5 #1 write status of web: Provisioning Provisioning, not Serving Provisioning   because operation ended
            t=0.5 #2 provision web: public-ip, load-balancer, register   because service applied
            t=300.5 #3 write status of web: Provisioning AzureUnavailable, not Serving AzureUnavailable   because operation ended
            t=767.6 (list load-balancers)
            t=848.2 (list registrations)
            t=849.8 (list gateway)
            t=874.1 (list locations)
            t=915.9 (list nat-gateways)
            t=1007.0 #4 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
            t=1012.8 (list public-ips)
            t=1013.2 #5 write status of web: Provisioning Updating, not Serving Updating   because operation ended
            t=1057.8 (list public-ips)
            t=1102.8 (list public-ips)
            t=1102.8 #6 update web: public-ip, load-balancer, register   because drift found
        "#]],
    );
}

#[test]
fn a_public_ip_that_a_listing_during_a_short_operation_lacks_is_read_before_it_is_published() {
    check(
        "hold status
         service web applied
         #1 done
         #2 done
         #3 unavailable
         tick 1004
         azure loses public-ip web
         service web applied port=80->8081
         tick 20
         last done
         last done
         last done",
        expect![[r#"
            #1 write status of web: Provisioning Provisioning, not Serving Provisioning   because operation ended
            #2 provision web: public-ip, load-balancer, register   because service applied
            #3 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
            #4 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
            #5 update web: load-balancer   because service applied
            #6 inspect web: read-public-ip   because outcome unknown
            #7 update web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
fn a_new_public_ip_of_others_is_published_when_two_listings_show_it() {
    check(
        "show times
         hold status
         service web applied
         #1 done
         tick 1005
         #2 done
         azure loses public-ip web
         #3 unavailable
         tick 5
         #4 unavailable
         tick 3
         #5 done
         azure has web public-ip
         tick 100
         last done
         tick 10",
        expect![[r#"
            t=0.4 #1 write status of web: Provisioning Provisioning, not Serving Provisioning   because operation ended
            t=0.4 #2 provision web: public-ip, load-balancer, register   because service applied
            t=300.4 #3 write status of web: Provisioning AzureUnavailable, not Serving AzureUnavailable   because operation ended
            t=1006.9 #4 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
            t=1013.1 #5 write status of web: Provisioning Updating, not Serving Updating   because operation ended
            t=1102.8 #6 write status of web: 20.1.2.2, not Provisioning Provisioned, Serving Provisioned   because operation ended
        "#]],
    );
}

#[test]
fn no_ip_is_published_without_its_registration_when_an_operation_runs_at_the_second_listing() {
    check(
        "show times
         hold status
         service web applied
         #1 done
         #2 done
         azure loses registration web
         tick 849
         #3 unavailable
         service web applied port=80->8081
         tick 45
         #5 done
         #4 done
         tick 60",
        expect![[r#"
            t=0.4 #1 write status of web: Provisioning Provisioning, not Serving Provisioning   because operation ended
            t=0.4 #2 provision web: public-ip, load-balancer, register   because service applied
            t=0.6 #3 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
            t=850.0 #4 update web: load-balancer   because service applied
            t=850.9 #5 write status of web: Provisioning Updating, not Serving Updating   because operation ended
            t=938.2 #6 update web: register   because drift found
        "#]],
    );
}

#[test]
pub(super) fn a_public_ip_that_a_listing_lacks_is_read_before_it_is_published() {
    check(
        "show status
         service web applied
         tick 1100
         #1 done
         #2 done",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: Provisioning AzureUnavailable, not Serving AzureUnavailable)
            (write status of web: Provisioning Updating, not Serving Updating)
            #2 inspect web: read-public-ip   because outcome unknown
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
pub(super) fn an_ip_is_published_when_a_second_listing_shows_its_registration_again() {
    check(
        "show times
         hold status
         show lists
         service web applied
         #1 done
         #2 done
         azure loses registration web
         tick 870
         azure has web registration
         #3 unavailable
         tick 2
         #4 done
         tick 118",
        expect![[r#"
            t=0.5 #1 write status of web: Provisioning Provisioning, not Serving Provisioning   because operation ended
            t=0.5 #2 provision web: public-ip, load-balancer, register   because service applied
            t=0.7 #3 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
            t=767.6 (list load-balancers)
            t=848.2 (list registrations)
            t=849.8 (list gateway)
            t=872.1 #4 write status of web: Provisioning Updating, not Serving Updating   because operation ended
            t=874.1 (list locations)
            t=893.2 (list registrations)
            t=893.2 #5 write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned   because operation ended
            t=915.9 (list nat-gateways)
        "#]],
    );
}

#[test]
pub(super) fn a_lost_public_ip_is_made_again_the_status_corrected_and_people_warned() {
    let shown = told(
        "show notices
         service web applied
         #1 done
         tick 60
         azure loses public-ip web
         show status
         tick 2000
         #2 done
         explain web",
    )
    .shown();
    assert!(shown.contains("#2 update web: public-ip, load-balancer, register "), "{shown}");
    assert!(shown.contains("(write status of web: not 20.1.2.1, Provisioning"), "{shown}");
    assert!(shown.contains("(write status of web: 20.1.2.2, not Provisioning"), "{shown}");
    assert!(shown.contains("web is Created, wanted, live, 20.1.2.2"), "{shown}");
    assert_eq!(shown.matches("warn web: ").count(), 1, "people are told that the IP has changed: {shown}");
}

#[test]
pub(super) fn a_changed_load_balancer_is_changed_back() {
    check(
        "service web applied
         #1 done
         tick 60
         azure changes load-balancer web
         tick 2000
         #2 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because drift found
            web is Created
        "#]],
    );
}

#[test]
fn a_load_balancer_that_was_edited_where_no_rule_shows_it_is_set_right_once() {
    check(
        "service web applied
         #1 done
         tick 60
         azure edits load-balancer web
         tick 2000
         #2 done
         tick 2000
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because drift found
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_load_balancer_whose_last_write_failed_is_written_again() {
    check(
        "service web applied
         #1 done
         tick 60
         azure fails load-balancer web
         tick 2000
         #2 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 update web: load-balancer   because drift found
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn foreign_tags_are_no_drift() {
    check(
        "service web applied
         #1 done
         tick 60
         azure tags load-balancer web
         tick 4000
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_lost_address_is_sent_again() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         tick 60
         azure loses address 10.0.0.4
         tick 2000",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 push 10.0.0.4 to node-a for web   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn an_address_that_nobody_wants_is_removed() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         tick 60
         azure has address 10.0.0.9 at 192.168.0.1 for web
         tick 2000",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove 10.0.0.9 from node-a   because addresses changed
        "#]],
    );
}

#[test]
pub(super) fn a_lost_nat_gateway_is_made_again() {
    check(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         tick 60
         azure loses nat-gateway blue
         tick 2000
         #4 done
         state blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            #3 push 10.1.0.1 to node-a for blue   because service became ready
            #4 update blue: nat-gateway, register   because drift found
            blue is Created
        "#]],
    );
}

#[test]
pub(super) fn a_lost_gateway_is_made_again_and_everything_in_it() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         tick 60
         azure loses gateway
         tick 2000
         #3 done
         tick 100
         last done
         last done
         tick 100
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 provision gateway: gateway   because start-up
            #4 update web: register   because service applied
            #5 push 10.0.0.4 to node-a for web   because service became ready
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn a_listing_that_fails_leads_to_no_write() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         azure fails to list load-balancers
         azure fails to list public-ips
         azure fails to list registrations
         azure fails to list locations
         azure fails to list gateway
         azure fails to list nat-gateways
         tick 7200
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            web is Created, wanted, live, 20.1.2.1, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
pub(super) fn what_turns_up_in_a_later_listing_and_nobody_wants_goes_after_two_sightings_and_an_answer() {
    check(
        "show times
         tick 60
         azure has uid=9
         tick 760
         #2 done
         tick 1240
         #1 gone
         #3 done",
        expect![[r#"
            t=812.6 #1 ask whether ghost is gone   because service no longer wanted
            t=812.6 #2 inspect 00000000-0000-0000-0000-000000000009: read-registration   because orphaned
            t=2060.8 #3 deprovision 00000000-0000-0000-0000-000000000009: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
        "#]],
    );
}

#[test]
pub(super) fn drift_is_found_while_a_creation_is_parked() {
    check(
        "service web applied
         #1 failed QuotaExceeded 400 at load-balancer
         azure loses public-ip web
         plans fail QuotaExceeded 400
         tick 1500
         plans stop failing
         tick 1500",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-load-balancer   because outcome unknown
            #3 provision web: load-balancer, register   because retry due
            #4 provision web: public-ip, load-balancer, register   because retry due
        "#]],
    );
}

#[test]
fn tags_of_others_are_kept_on_every_write() {
    let mut story = told("service web applied\n#1 done\ntick 60\nazure tags load-balancer web\ntick 2000");
    story.play("service web applied port=81->8081\n#2 done");
    let lb = story.azure.load_balancers.values().next().expect("it is there");
    assert_eq!(lb.rules[0].frontend_port, 81);
    assert!(lb.meta.tags.contains_key("cost-centre"), "{:?}", lb.meta.tags);
    assert!(lb.meta.tags.contains_key("sluice-cluster"), "{:?}", lb.meta.tags);
}

#[test]
pub(super) fn a_lost_registration_is_noticed_in_a_list_that_was_read_for_an_egress() {
    check(
        "show times
         service web applied
         #1 done
         tick 40
         azure loses registration web
         egress blue requested
         #2 done
         #3 done
         tick 60",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=40.7 #2 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because asked for
            t=40.8 #3 provision blue: public-ip, nat-gateway, register   because asked for
            t=85.8 #4 update web: register   because drift found
        "#]],
    );
}
