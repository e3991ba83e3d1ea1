//! Lists and their pages.

use std::time::Duration;

use sluice_cloud::{Config, Fault, Tamper};
use sluice_model::azure::*;
use sluice_model::call::*;

use crate::support::*;

fn small_pages() -> Scene {
    Scene::with(Config { buckets: None, page_size: 2, ..Config::default() })
}

fn list(scene: &mut Scene, target: ArmId) -> Vec<Vec<String>> {
    list_with(scene, target, |_, _| {})
}

/// All pages of a list, by the names on them; `between` happens after each.
fn list_with(
    scene: &mut Scene,
    target: ArmId,
    mut between: impl FnMut(&mut Scene, usize),
) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut request = Request::bare(Method::List, target);
    loop {
        let answer = scene.send(&request);
        assert_eq!(answer.status, 200, "{answer:?}");
        let (items, next) = names_on(answer.payload);
        pages.push(items);
        assert!(pages.len() < 100, "the list has no end: {pages:?}");
        between(scene, pages.len());
        match next {
            Some(token) => request.page = Some(token),
            None => return pages,
        }
    }
}

fn names_on(payload: Payload) -> (Vec<String>, Option<PageToken>) {
    fn each<T>(page: Page<T>, name: impl Fn(&T) -> String) -> (Vec<String>, Option<PageToken>) {
        (page.items.iter().map(name).collect(), page.next)
    }
    match payload {
        Payload::PublicIps(page) => each(page, |it| it.meta.id.name().to_string()),
        Payload::LoadBalancers(page) => each(page, |it| it.meta.id.name().to_string()),
        Payload::NatGateways(page) => each(page, |it| it.meta.id.name().to_string()),
        Payload::Gateways(page) => each(page, |it| it.meta.id.name().to_string()),
        Payload::Networks(page) => each(page, |it| it.name().to_string()),
        Payload::Subnets(page) => each(page, |it| it.id.name().to_string()),
        Payload::Registrations(page) => each(page, |it| it.name.to_string()),
        Payload::Locations(page) => each(page, |it| it.location.to_string()),
        payload => panic!("no list: {payload:?}"),
    }
}

#[test]
fn an_empty_list_is_one_empty_page() {
    let mut scene = Scene::new();
    for kind in ["publicIPAddresses", "loadBalancers", "natGateways"] {
        let target = scene.scope.collection(kind);
        assert_eq!(list(&mut scene, target), [[] as [&str; 0]]);
    }
}

#[test]
fn every_list_is_paged_and_complete() {
    let mut scene = small_pages();
    for name in ["a", "b", "c"] {
        scene.make_service(name);
        scene.make_nat(&format!("nat-{name}"));
    }
    scene.done(&scene.locations(vec![
        at("10.1.0.4", &[("10.2.0.4", &["a"])]),
        at("10.1.0.5", &[("10.2.0.5", &["a"])]),
        at("10.1.0.10", &[("10.2.0.6", &["a"])]),
    ]));
    let gateway = scene.gateway();
    for (target, expected) in [
        (scene.scope.collection("loadBalancers"), vec![vec!["a", "b"], vec!["c"]]),
        (scene.scope.collection("natGateways"), vec![vec!["nat-a", "nat-b"], vec!["nat-c"]]),
        (
            scene.scope.collection("publicIPAddresses"),
            vec![vec!["a-pip", "b-pip"], vec!["c-pip", "nat-a-pip"], vec!["nat-b-pip", "nat-c-pip"]],
        ),
        (ArmId::new(format!("{gateway}/services")), vec![vec!["a", "b"], vec!["c"]]),
        (
            ArmId::new(format!("{gateway}/addressLocations")),
            vec![vec!["10.1.0.4", "10.1.0.5"], vec!["10.1.0.10"]],
        ),
    ] {
        assert_eq!(list(&mut scene, target.clone()), expected, "{target}");
    }
}

#[test]
fn a_list_of_the_subscription_has_all_groups_and_no_other_subscription() {
    let mut scene = small_pages();
    scene.done(&scene.put_ip("a"));
    // An id that begins alike and sorts before the slash.
    let neighbour = scene.public_ip("x").as_str().replace("-555555555555/", "-555555555555-2/");
    for id in [neighbour, scene.public_ip("b").as_str().replace("/rg/", "/net-rg/")] {
        let id = ArmId::new(id);
        let group = id.parent("resourceGroups").unwrap();
        scene.send(&Request::with(Method::Put, group, Body::Container));
        let request = Request { target: id, ..scene.put_ip("b") };
        scene.done(&request);
    }
    let target = format!("/subscriptions/{}/providers/Microsoft.Network", scene.scope.subscription);
    let target = ArmId::new(format!("{target}/publicIPAddresses"));
    assert_eq!(list(&mut scene, target), [["b", "a"]]);
}

#[test]
fn gateways_networks_and_subnets_are_listed_too() {
    let mut scene = small_pages();
    let network = scene.scope.virtual_network_id();
    let networks = ArmId::new(network.as_str().trim_end_matches("/vnet"));
    for name in ["a-vnet", "vnet-2"] {
        let id = ArmId::new(format!("{networks}/{name}"));
        scene.tamper(Tamper::Put { id, body: Body::Container });
    }
    for name in ["apps", "more"] {
        let body = Body::Subnet(SubnetBody { gateway: None, rest: "".into() });
        scene.tamper(Tamper::Put { id: network.child("subnets", name), body });
    }
    for name in ["a-gateway", "z-gateway"] {
        let id = scene.scope.resource("serviceGateways", name);
        scene.tamper(Tamper::Put { id, body: scene.gateway_body() });
    }
    let gateways = [vec!["a-gateway", "servicegateway"], vec!["z-gateway"]];
    let all_networks = [vec!["a-vnet", "vnet"], vec!["vnet-2"]];
    let provider = format!("/subscriptions/{}/providers/Microsoft.Network", scene.scope.subscription);
    for (target, expected) in [
        (scene.scope.collection("serviceGateways"), gateways.clone()),
        (ArmId::new(format!("{provider}/serviceGateways")), gateways),
        (networks, all_networks.clone()),
        (ArmId::new(format!("{provider}/virtualNetworks")), all_networks),
        (ArmId::new(format!("{network}/subnets")), [vec!["apps", "more"], vec!["pods"]]),
    ] {
        assert_eq!(list(&mut scene, target.clone()), expected, "{target}");
    }
}

#[test]
fn the_subnets_of_another_network_are_not_in_the_list() {
    let mut scene = Scene::new();
    let network = scene.scope.virtual_network_id();
    // Its id begins with the whole id of the other.
    let longer = ArmId::new(format!("{network}2"));
    scene.tamper(Tamper::Put { id: longer.clone(), body: Body::Container });
    let body = Body::Subnet(SubnetBody { gateway: None, rest: "".into() });
    scene.tamper(Tamper::Put { id: longer.child("subnets", "theirs"), body });
    assert_eq!(list(&mut scene, ArmId::new(format!("{network}/subnets"))), [["pods"]]);
    assert_eq!(list(&mut scene, ArmId::new(format!("{longer}/subnets"))), [["theirs"]]);
}

#[test]
fn the_subnets_of_a_missing_network_are_not_found() {
    let mut scene = Scene::new();
    let network = scene.scope.virtual_network_id();
    let request = Request::bare(Method::List, ArmId::new(format!("{network}-none/subnets")));
    assert_eq!(scene.refused(&request), refusal(404, "ResourceNotFound"));
    let group = ArmId::new(format!("{network}/subnets").replace("/net-rg/", "/gone/"));
    let request = Request::bare(Method::List, group);
    assert_eq!(scene.refused(&request), refusal(404, "ResourceGroupNotFound"));
}

#[test]
fn a_list_that_lags_shows_what_was_before_in_its_right_place() {
    let mut scene = small_pages();
    for name in ["b", "d", "f"] {
        scene.done(&scene.put_ip(name));
    }
    let lag = Fault::LaggingReads { duration: Duration::from_secs(10) };
    // The new ones are not seen yet, and those that are gone are still there.
    for name in ["a", "c", "e"] {
        scene.send_faulty(&scene.put_ip(name), lag.clone());
    }
    for name in ["b", "d"] {
        scene.send_faulty(&scene.delete(&scene.public_ip(name)), lag.clone());
    }
    scene.wait(3);
    assert_eq!(scene.cloud.state().public_ips.len(), 4);
    let target = scene.scope.collection("publicIPAddresses");
    assert_eq!(list(&mut scene, target.clone()), [vec!["b", "d"], vec!["f"]]);
    scene.wait(20);
    assert_eq!(list(&mut scene, target), [["a", "c"], ["e", "f"]]);
}

#[test]
fn what_comes_and_goes_between_pages_moves_nothing_else() {
    let mut scene = small_pages();
    for name in ["b", "c", "d", "e"] {
        scene.done(&scene.put_ip(name));
    }
    let target = scene.scope.collection("publicIPAddresses");
    let pages = list_with(&mut scene, target, |scene, page| {
        if page == 1 {
            scene.done(&scene.delete(&scene.public_ip("c")));
            scene.done(&scene.put_ip("a"));
        }
    });
    assert_eq!(pages, [["b", "c"], ["d", "e"]]);
}

#[test]
fn a_page_token_belongs_to_its_list() {
    let mut scene = small_pages();
    for token in ["", "nonsense", "natGateways|x", "publicIPAddresses|/elsewhere"] {
        let request = Request {
            page: Some(PageToken(token.into())),
            ..Request::bare(Method::List, scene.scope.collection("publicIPAddresses"))
        };
        assert_eq!(scene.refused(&request), refusal(400, "InvalidSkipToken"), "{token}");
    }
    let request = Request {
        page: Some(PageToken("addressLocations|not-an-address".into())),
        ..Request::bare(Method::List, ArmId::new(format!("{}/addressLocations", scene.gateway())))
    };
    assert_eq!(scene.refused(&request), refusal(400, "InvalidSkipToken"));
}

#[test]
fn the_lists_of_a_missing_gateway_are_not_found() {
    let mut scene = Scene::new();
    let gateway = scene.scope.resource("serviceGateways", "none");
    for word in ["services", "addressLocations"] {
        let request = Request::bare(Method::List, ArmId::new(format!("{gateway}/{word}")));
        assert_eq!(scene.refused(&request), refusal(404, "ResourceNotFound"));
    }
}

#[test]
fn a_short_or_empty_page_still_has_its_successor() {
    let mut scene = small_pages();
    for name in ["a", "b", "c"] {
        scene.done(&scene.put_ip(name));
    }
    let first = Request::bare(Method::List, scene.scope.collection("publicIPAddresses"));
    let (items, next) = names_on(scene.send_faulty(&first, Fault::ShortPage { items: 0 }).payload);
    assert_eq!(items, [] as [&str; 0]);
    let second = Request { page: next, ..first.clone() };
    let (items, next) = names_on(scene.send_faulty(&second, Fault::ShortPage { items: 1 }).payload);
    assert_eq!(items, ["a"]);
    let third = Request { page: next, ..first.clone() };
    let (items, next) = names_on(scene.send_faulty(&third, Fault::ShortPage { items: 9 }).payload);
    assert_eq!(items, ["b", "c"]);
    let last = Request { page: next, ..first };
    assert_eq!(names_on(scene.send(&last).payload), (vec![], None));
}

#[test]
fn a_page_can_fail() {
    let mut scene = Scene::new();
    let request = Request::bare(Method::List, scene.scope.collection("natGateways"));
    assert_eq!(code(&scene.send_faulty(&request, Fault::FailPage)), refusal(500, "InternalServerError"));
    assert_eq!(scene.send(&request).status, 200);
}
