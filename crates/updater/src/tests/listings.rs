//! Listings: every page or nothing.

use std::string::ToString;
use std::vec;
use std::vec::Vec;

use expect_test::expect;
use sluice_model::FailureClass;
use sluice_model::azure::Provisioning;
use sluice_model::call::{Payload, Reply};
use sluice_model::effect::Listable;

use super::story::{Story, gateway, page, public_ip, registration, subnet};

#[test]
fn a_list_is_read_to_its_last_page_even_past_an_empty_one() {
    let mut story = Story::new();
    story.until(300).list(1, Listable::Registrations);
    story.until(400).answer(1, 200, Payload::Registrations(page(vec![registration("a")], Some("2"))));
    story.answer(2, 200, Payload::Registrations(page(Vec::new(), Some("3"))));
    story.answer(3, 200, Payload::Registrations(page(vec![registration("b")], None)));
    expect![[r#"
        t=0.3 call 1 for #1: list servicegateway/services
        t=0.4 call 2 for #1: list servicegateway/services page 2
        t=0.4 call 3 for #1: list servicegateway/services page 3
        t=0.4 #1 listed as of 0.3: 2 registrations
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn every_kind_is_listed_where_azure_keeps_it() {
    let mut story = Story::new();
    for (id, what) in (1..).zip(Listable::ALL) {
        story.list(id, what);
    }
    expect![[r#"
        t=0.0 call 1 for #1: get serviceGateways/servicegateway
        t=0.0 call 2 for #2: list servicegateway/services
        t=0.0 call 3 for #3: list servicegateway/addressLocations
        t=0.0 call 4 for #4: list Microsoft.Network/loadBalancers
        t=0.0 call 5 for #5: list Microsoft.Network/natGateways
        t=0.0 call 6 for #6: list Microsoft.Network/publicIPAddresses
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_failing_page_is_repeated_three_times_and_then_fails_the_list() {
    let mut story = Story::new();
    story.list(1, Listable::LoadBalancers);
    story.answer(1, 200, Payload::LoadBalancers(page(Vec::new(), Some("2"))));
    story.refuse(2, 503, "ServerBusy").until(1_000).reply(3, Reply::lost("no answer")).until(2_000);
    story.answer(4, 200, public_ip("web", Provisioning::Succeeded)).until(4_000);
    story.reply(5, Reply::not_sent("no connection"));
    expect![[r#"
        t=0.0 call 1 for #1: list Microsoft.Network/loadBalancers
        t=0.0 call 2 for #1: list Microsoft.Network/loadBalancers page 2
        t=0.5 call 3 for #1: list Microsoft.Network/loadBalancers page 2
        t=2.0 call 4 for #1: list Microsoft.Network/loadBalancers page 2
        t=4.0 call 5 for #1: list Microsoft.Network/loadBalancers page 2
        t=4.0 #1 listed as of 0.0: failed NotSent (transient)
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_page_that_cannot_be_understood_is_repeated_and_then_the_list_fails_with_the_reason() {
    let mut story = Story::new();
    story.list(1, Listable::PublicIps);
    for (call, at) in [(1, 500), (2, 1_500), (3, 3_500)] {
        story.reply(call, Reply::lost("the page is HTML, not JSON")).until(at);
    }
    story.reply(4, Reply::lost("the page is HTML, not JSON"));
    let [failure] = story.failures.as_slice() else { panic!("{:?}", story.failures) };
    assert_eq!(failure.class, FailureClass::Transient);
    assert_eq!(&*failure.message, "the page is HTML, not JSON");
    assert_eq!(story.updaters.numbers().lists, 4);
    assert_eq!(story.updaters.next_deadline(), None);
}

#[test]
fn a_page_that_could_not_be_sent_is_repeated_like_any_other() {
    let mut story = Story::new();
    story.list(1, Listable::Foundation).reply(1, Reply::not_sent("the token was refused"));
    story.until(500).answer(2, 200, gateway()).reply(3, Reply::not_sent("no connection"));
    story.until(1_000).answer(4, 200, subnet(None));
    expect![[r#"
        t=0.0 call 1 for #1: get serviceGateways/servicegateway
        t=0.5 call 2 for #1: get serviceGateways/servicegateway
        t=0.5 call 3 for #1: get subnets/pods
        t=1.0 call 4 for #1: get subnets/pods
        t=1.0 #1 listed as of 0.5: gateway true subnet true
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_page_that_recovers_has_all_its_tries_again() {
    let mut story = Story::new();
    story.list(1, Listable::PublicIps);
    for (call, at) in [(1, 500), (2, 1_500), (3, 3_500)] {
        story.refuse(call, 500, "InternalServerError").until(at);
    }
    story.answer(4, 200, Payload::PublicIps(page(Vec::new(), Some("2"))));
    story.refuse(5, 500, "InternalServerError").until(4_000);
    story.answer(6, 200, Payload::PublicIps(page(Vec::new(), None)));
    assert!(story.told().contains("#1 listed as of 3.5: 0 public IPs"));
}

#[test]
fn a_page_that_is_forbidden_fails_the_list_at_once() {
    let mut story = Story::new();
    story.list(1, Listable::NatGateways).refuse(1, 403, "AuthorizationFailed");
    expect![[r#"
        t=0.0 call 1 for #1: list Microsoft.Network/natGateways
        t=0.0 #1 listed as of 0.0: failed AuthorizationFailed (forbidden)
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_throttled_page_waits_and_is_sent_again() {
    let mut story = Story::new();
    story.list(1, Listable::Locations).throttle(1, Some(20)).until(20_000);
    story.answer(2, 200, Payload::Locations(page(Vec::new(), None)));
    expect![[r#"
        t=0.0 call 1 for #1: list servicegateway/addressLocations
        t=20.0 call 2 for #1: list servicegateway/addressLocations
        t=20.0 #1 listed as of 20.0: 0 locations
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_missing_gateway_is_an_answer_but_the_lists_below_it_fail() {
    let mut story = Story::new();
    story.list(1, Listable::Foundation).refuse(1, 404, "ResourceNotFound").answer(2, 200, subnet(None));
    story.list(2, Listable::Foundation).answer(3, 200, gateway()).refuse(4, 404, "NotFound");
    story.list(3, Listable::Foundation).answer(5, 200, gateway()).refuse(6, 403, "AuthorizationFailed");
    story.list(4, Listable::Registrations).refuse(7, 404, "ResourceNotFound");
    expect![[r#"
        t=0.0 call 1 for #1: get serviceGateways/servicegateway
        t=0.0 call 2 for #1: get subnets/pods
        t=0.0 #1 listed as of 0.0: gateway false subnet true
        t=0.0 call 3 for #2: get serviceGateways/servicegateway
        t=0.0 call 4 for #2: get subnets/pods
        t=0.0 #2 listed as of 0.0: gateway true subnet false
        t=0.0 call 5 for #3: get serviceGateways/servicegateway
        t=0.0 call 6 for #3: get subnets/pods
        t=0.0 #3 listed as of 0.0: failed AuthorizationFailed (forbidden)
        t=0.0 call 7 for #4: list servicegateway/services
        t=0.0 #4 listed as of 0.0: failed ResourceNotFound (not-found)
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_list_that_runs_in_a_circle_ends_soon_whatever_its_length() {
    for length in [1, 2, 3, 7] {
        let mut story = Story::new();
        story.list(1, Listable::Registrations);
        let mut pages = 0;
        while story.failures.is_empty() {
            let (call, request) = story.sent.pop_first().expect("a page is being read");
            pages += 1;
            let at: usize = request.page.map_or(0, |page| page.0.parse().unwrap());
            let next = (at % length + 1).to_string();
            story.answer(call.0, 200, Payload::Registrations(page(vec![registration("a")], Some(&next))));
        }
        assert_eq!(&*story.failures[0].code, "EndlessList");
        assert!(pages <= 3 * length + 1, "{pages} pages of a circle of {length}");
        assert_eq!(story.updaters.next_deadline(), None);
    }
}

#[test]
fn an_empty_page_that_points_to_itself_is_asked_for_again_but_not_for_ever() {
    let mut story = Story::new();
    story.list(1, Listable::Registrations);
    let one = |next| Payload::Registrations(page(vec![registration("a")], next));
    let none = || Payload::Registrations(page(Vec::new(), Some("2")));
    story.answer(1, 200, one(Some("2"))).answer(2, 200, none()).answer(3, 200, none());
    story.answer(4, 200, one(None));
    assert!(story.told().contains("#1 listed as of 0.0: 2 registrations"));
    story.list(2, Listable::Registrations);
    for call in 5..=26 {
        assert!(story.failures.is_empty(), "call {call}");
        story.answer(call, 200, none());
    }
    assert!(story.told().contains("#2 listed as of 0.0: failed EndlessList (transient)"));
}

#[test]
fn a_list_with_more_pages_than_is_plausible_ends() {
    let mut story = Story::with(crate::Config { pages_max: 5, ..Default::default() }, Default::default());
    story.list(1, Listable::PublicIps);
    for call in 1..=5 {
        let next = call.to_string();
        story.answer(call, 200, Payload::PublicIps(page(Vec::new(), Some(&next))));
    }
    let told = story.told();
    assert!(told.contains("#1 listed as of 0.0: failed EndlessList (transient)"), "{told}");
}
