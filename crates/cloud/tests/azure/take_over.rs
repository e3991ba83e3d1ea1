//! A cloud that looks like one that was listed.

use sluice_cloud::{Cloud, Config};
use sluice_model::effect::Listing;
use sluice_model::names::Scope;

use crate::support::*;

/// What complete listings of a scope show.
fn listings(cloud: &Cloud, scope: &Scope) -> Vec<Listing> {
    let (state, gateway) = (cloud.state(), scope.gateway_id());
    vec![
        Listing::Foundation {
            gateway: state.gateways.get(&gateway).cloned(),
            subnet: state.subnets.get(&scope.subnet_id()).cloned(),
        },
        Listing::Registrations(state.registrations(&gateway).cloned().collect()),
        Listing::Locations(state.locations(&gateway).collect()),
        Listing::LoadBalancers(state.load_balancers.values().cloned().collect()),
        Listing::NatGateways(state.nat_gateways.values().cloned().collect()),
        Listing::PublicIps(state.public_ips.values().cloned().collect()),
    ]
}

fn busy_scene() -> Scene {
    let mut scene = Scene::new();
    scene.make_service("web");
    scene.make_egress("blue");
    scene.done(&scene.locations(vec![at("10.0.0.4", &[("10.1.0.1", &["web", "blue"])])]));
    scene
}

#[test]
fn a_cloud_that_took_over_what_another_shows_shows_the_same() {
    let scene = busy_scene();
    let shown = listings(&scene.cloud, &scene.scope);
    let mut copy = Cloud::new(Config::default());
    for listing in &shown {
        copy.take_over(&scene.scope, listing);
    }
    assert_eq!(listings(&copy, &scene.scope), shown);
    let mut references = [copy.state(), scene.cloud.state()].map(|it| it.references().collect::<Vec<_>>());
    references.iter_mut().for_each(|all| all.sort());
    assert_eq!(references[0], references[1]);
}

#[test]
fn what_was_taken_over_is_held_to_the_same_rules() {
    let scene = busy_scene();
    let mut copy = Scene::with(Config { buckets: None, ..Config::default() });
    copy.cloud = Cloud::new(Config { buckets: None, ..Config::default() });
    for listing in listings(&scene.cloud, &scene.scope) {
        copy.cloud.take_over(&scene.scope, &listing);
    }
    let in_use = copy.delete(&copy.load_balancer("web"));
    assert_eq!(copy.refused(&in_use).0, 400);
    // A fresh address is none that somebody has.
    copy.done(&copy.put_ip("new"));
    let addresses: Vec<_> = copy.cloud.state().public_ips.values().filter_map(|it| it.address).collect();
    assert_eq!(addresses.len(), 3);
    assert!(addresses.iter().enumerate().all(|(at, one)| !addresses[..at].contains(one)), "{addresses:?}");
}
