//! What a gateway knows: `updateServices` and `updateAddressLocations`.

use sluice_cloud::Config;
use sluice_model::azure::*;
use sluice_model::call::*;

use crate::support::*;

fn scene_with_web() -> Scene {
    let mut scene = Scene::new();
    scene.make_service("web");
    scene
}

fn addresses(scene: &Scene) -> Vec<String> {
    let locations = scene.cloud.state().locations(&scene.gateway()).collect::<Vec<_>>();
    let line = |location: &Location, entry: &AddressUpdate| {
        format!("{} {} {}", location.location, entry.address, entry.services.join(","))
    };
    locations
        .iter()
        .flat_map(|location| location.addresses.iter().map(|entry| line(location, entry)))
        .collect()
}

#[test]
fn a_post_is_accepted_and_takes_effect_when_its_operation_ends() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let answer = scene.send(&scene.services(vec![write(scene.inbound("web"))]));
    assert_eq!((answer.status, &answer.payload), (202, &Payload::None));
    let operation = answer.operation.unwrap();
    assert_eq!(scene.poll(&operation), OperationState::Running);
    assert_eq!(scene.cloud.state().registrations(&scene.gateway()).count(), 0);

    scene.wait(2);
    assert_eq!(scene.poll(&operation), OperationState::Succeeded);
    let registered = scene.cloud.state().registration(&scene.gateway(), "WEB").cloned();
    assert_eq!(registered, Some(scene.inbound("web")));
}

#[test]
fn newer_api_versions_answer_a_post_with_200_and_have_done_it() {
    let mut scene = Scene::with(Config { buckets: None, synchronous_posts: true, ..Config::default() });
    scene.make_lb("web");
    let answer = scene.send(&scene.services(vec![write(scene.inbound("web"))]));
    assert_eq!((answer.status, answer.operation), (200, None));
    assert_eq!(scene.cloud.state().registrations(&scene.gateway()).count(), 1);
}

#[test]
fn posts_to_a_gateway_that_is_not_there_are_refused() {
    let mut scene = Scene::new();
    let nowhere = scene.scope.resource("serviceGateways", "nowhere");
    for request in [scene.services(vec![]), scene.locations(vec![])] {
        let request = Request { target: nowhere.clone(), ..request };
        assert_eq!(scene.refused(&request), refusal(404, "ResourceNotFound"));
    }
}

#[test]
fn a_post_with_nothing_in_it_succeeds() {
    let mut scene = Scene::new();
    scene.done(&scene.services(vec![]));
    scene.done(&scene.locations(vec![]));
}

#[test]
fn a_service_needs_a_pool_that_is_there() {
    let mut scene = Scene::new();
    let request = scene.services(vec![write(scene.inbound("web"))]);
    assert_eq!(scene.refused(&request), refusal(400, "InvalidResourceReference"));
    scene.make_lb("web");
    let other_pool = Registration {
        pools: vec![scene.load_balancer("web").child("backendAddressPools", "other")],
        ..scene.inbound("web")
    };
    let request = scene.services(vec![write(other_pool)]);
    assert_eq!(scene.refused(&request), refusal(400, "InvalidResourceReference"));
}

#[test]
fn a_service_must_wait_for_its_load_balancer() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    scene.send(&scene.put_lb("web", &[]));
    let request = scene.services(vec![write(scene.inbound("web"))]);
    assert_eq!(scene.refused(&request), refusal(429, "RetryableError"));
    scene.wait(8);
    scene.done(&request);
}

#[test]
fn an_egress_needs_a_nat_gateway_of_this_gateway() {
    let mut scene = Scene::new();
    let request = scene.services(vec![write(scene.outbound("blue"))]);
    assert_eq!(scene.refused(&request), refusal(400, "InvalidResourceReference"));
    scene.done(&scene.put_ip("blue-pip"));
    scene.done(&scene.put_nat("blue", NatGatewayBody { gateway: None, ..scene.nat_body("blue") }));
    assert_eq!(scene.refused(&request), refusal(400, "NatGatewayNotInServiceGateway"));
    scene.done(&scene.put_nat("blue", scene.nat_body("blue")));
    scene.done(&request);
}

#[test]
fn the_direction_must_fit_the_carrier() {
    let mut scene = scene_with_web();
    scene.make_nat("blue");
    let both = Registration { nat_gateway: Some(scene.nat_gateway("blue")), ..scene.inbound("web") };
    let request = scene.services(vec![write(both.clone())]);
    assert_eq!(scene.refused(&request), refusal(400, "InvalidServiceType"));
    let outbound = Registration { direction: Direction::Outbound, ..both.clone() };
    let request = scene.services(vec![write(outbound)]);
    assert_eq!(scene.refused(&request), refusal(400, "InvalidServiceType"));
    scene.done(&scene.services(vec![write(Registration { direction: Direction::InboundOutbound, ..both })]));
}

#[test]
fn one_bad_service_refuses_the_whole_request() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let request = scene.services(vec![write(scene.inbound("web")), write(scene.inbound("missing"))]);
    assert_eq!(scene.refused(&request), refusal(400, "InvalidResourceReference"));
    scene.wait(60);
    assert_eq!(scene.cloud.state().registrations(&scene.gateway()).count(), 0);
}

#[test]
fn a_service_can_be_in_a_request_only_once() {
    let mut scene = scene_with_web();
    let shouted = Registration { name: "WEB".into(), ..scene.inbound("web") };
    let request = scene.services(vec![write(scene.inbound("web")), unregister(shouted)]);
    assert_eq!(scene.refused(&request), refusal(400, "DuplicateServicesInRequest"));
}

#[test]
fn a_service_without_a_name_is_refused() {
    let mut scene = Scene::new();
    let nameless = Registration { name: "".into(), pools: vec![], ..scene.inbound("web") };
    let request = scene.services(vec![write(nameless)]);
    assert_eq!(scene.refused(&request), refusal(400, "InvalidRequestFormat"));
}

#[test]
fn there_is_one_default_at_most() {
    let mut scene = Scene::new();
    scene.make_nat("blue");
    scene.make_nat("red");
    let default = |scene: &Scene, name: &str| Registration { is_default: true, ..scene.outbound(name) };
    let both = scene.services(vec![write(default(&scene, "blue")), write(default(&scene, "red"))]);
    let code = refusal(400, "MultipleDefaultServicesNotAllowedInServiceGateway");
    assert_eq!(scene.refused(&both), code);
    scene.done(&scene.services(vec![write(default(&scene, "blue"))]));
    let second = scene.services(vec![write(default(&scene, "red"))]);
    assert_eq!(scene.refused(&second), code);
    // In one request the default may change hands.
    scene.done(&scene.services(vec![write(scene.outbound("blue")), write(default(&scene, "red"))]));
    // One that is gone, or is none any more, is in nobody's way.
    scene.done(&scene.services(vec![unregister(default(&scene, "red"))]));
    scene.done(&scene.services(vec![write(default(&scene, "blue"))]));
    scene.done(&scene.services(vec![write(scene.outbound("blue"))]));
    scene.done(&scene.services(vec![write(default(&scene, "red"))]));
}

#[test]
fn a_service_with_mapped_addresses_cannot_be_deleted() {
    let mut scene = scene_with_web();
    scene.done(&scene.locations(vec![at("10.1.0.4", &[("10.2.0.9", &["web"])])]));
    let request = scene.services(vec![unregister(scene.inbound("web"))]);
    assert_eq!(scene.refused(&request), refusal(400, "ServiceWithOverlayMappingsCannotBeDeleted"));

    scene.done(&scene.locations(vec![at("10.1.0.4", &[("10.2.0.9", &[])])]));
    scene.done(&request);
    assert_eq!(scene.cloud.state().registrations(&scene.gateway()).count(), 0);
}

#[test]
fn unregistering_what_is_not_registered_succeeds() {
    let mut scene = Scene::new();
    scene.done(&scene.services(vec![unregister(scene.inbound("web"))]));
}

#[test]
fn an_address_that_is_mapped_meanwhile_makes_the_unregistration_fail_in_the_end() {
    let mut scene = scene_with_web();
    let answer = scene.send(&scene.services(vec![unregister(scene.inbound("web"))]));
    scene.tamper(sluice_cloud::Tamper::AddAddress {
        gateway: scene.gateway(),
        location: ip("10.1.0.4"),
        address: ip("10.2.0.9"),
        services: names(&["web"]),
    });
    scene.wait(2);
    let OperationState::Failed(error) = scene.poll(&answer.operation.unwrap()) else { panic!() };
    assert_eq!(&*error.code, "ServiceWithOverlayMappingsCannotBeDeleted");
    assert_eq!(scene.cloud.state().registrations(&scene.gateway()).count(), 1);
}

#[test]
fn the_services_of_an_address_replace_the_former_ones() {
    let mut scene = scene_with_web();
    scene.make_service("api");
    scene.done(&scene.locations(vec![at("10.1.0.4", &[("10.2.0.9", &["web", "API"])])]));
    assert_eq!(addresses(&scene), ["10.1.0.4 10.2.0.9 api,web"]);
    scene.done(&scene.locations(vec![at("10.1.0.4", &[("10.2.0.9", &["api"])])]));
    assert_eq!(addresses(&scene), ["10.1.0.4 10.2.0.9 api"]);
    assert_eq!(scene.cloud.state().mapped(&scene.gateway(), "web"), 0);
}

#[test]
fn a_partial_update_leaves_other_addresses_alone() {
    let mut scene = scene_with_web();
    scene.done(&scene.locations(vec![at("10.1.0.4", &[("10.2.0.8", &["web"]), ("10.2.0.9", &["web"])])]));
    scene.done(&scene.locations(vec![at("10.1.0.4", &[("10.2.0.9", &[])])]));
    assert_eq!(addresses(&scene), ["10.1.0.4 10.2.0.8 web"]);
}

#[test]
fn a_partial_update_without_addresses_removes_the_location() {
    let mut scene = scene_with_web();
    scene.done(&scene.locations(vec![
        at("10.1.0.4", &[("10.2.0.8", &["web"]), ("10.2.0.9", &["web"])]),
        at("10.1.0.5", &[("10.2.1.9", &["web"])]),
    ]));
    scene.done(&scene.locations(vec![at("10.1.0.4", &[])]));
    assert_eq!(addresses(&scene), ["10.1.0.5 10.2.1.9 web"]);
}

#[test]
fn a_full_update_replaces_the_location() {
    let mut scene = scene_with_web();
    scene.done(&scene.locations(vec![at("10.1.0.4", &[("10.2.0.8", &["web"]), ("10.2.0.9", &["web"])])]));
    scene.done(&scene.locations(vec![all_at("10.1.0.4", &[("10.2.0.7", &["web"])])]));
    assert_eq!(addresses(&scene), ["10.1.0.4 10.2.0.7 web"]);
    scene.done(&scene.locations(vec![all_at("10.1.0.4", &[])]));
    assert_eq!(addresses(&scene), [] as [&str; 0]);
}

#[test]
fn an_address_moves_in_one_request() {
    let mut scene = scene_with_web();
    scene.done(&scene.locations(vec![at("10.1.0.4", &[("10.2.0.9", &["web"])])]));
    scene.done(
        &scene
            .locations(vec![at("10.1.0.4", &[("10.2.0.9", &[])]), at("10.1.0.5", &[("10.2.0.9", &["web"])])]),
    );
    assert_eq!(addresses(&scene), ["10.1.0.5 10.2.0.9 web"]);
}

#[test]
fn a_location_can_be_in_a_request_only_once() {
    let mut scene = Scene::new();
    let request = scene.locations(vec![at("10.1.0.4", &[]), at("10.1.0.4", &[])]);
    assert_eq!(scene.refused(&request), refusal(400, "DuplicateLocationsInRequest"));
}

#[test]
fn an_address_can_be_in_a_location_only_once() {
    let mut scene = Scene::new();
    let request = scene.locations(vec![at("10.1.0.4", &[("10.2.0.9", &[]), ("10.2.0.9", &[])])]);
    assert_eq!(scene.refused(&request), refusal(400, "DuplicateAddressesInLocation"));
}

#[test]
fn a_location_holds_addresses_of_its_own_family() {
    let mut scene = Scene::new();
    let request = scene.locations(vec![at("10.1.0.4", &[("2001:db8::9", &[])])]);
    assert_eq!(scene.refused(&request), refusal(400, "IPv4LocationCannotContainIPv6Addresses"));
    let request = scene.locations(vec![at("2001:db8::4", &[("10.2.0.9", &[])])]);
    assert_eq!(scene.refused(&request), refusal(400, "IPv6LocationCannotContainIPv4Addresses"));
}

#[test]
fn an_address_cannot_name_an_unknown_service() {
    let mut scene = Scene::new();
    let request = scene.locations(vec![at("10.1.0.4", &[("10.2.0.9", &["web"])])]);
    assert_eq!(scene.refused(&request), refusal(400, "ServiceNotFoundInServiceGateway"));
}

#[test]
fn an_address_cannot_name_a_service_twice() {
    let mut scene = scene_with_web();
    let request = scene.locations(vec![at("10.1.0.4", &[("10.2.0.9", &["web", "Web"])])]);
    assert_eq!(scene.refused(&request), refusal(400, "DuplicateServicesInRequest"));
}

#[test]
fn addresses_that_no_pod_can_have_are_refused() {
    let mut scene = Scene::new();
    for (location, address) in [
        ("10.1.0.4", "127.0.0.1"),
        ("10.1.0.4", "224.0.0.1"),
        ("0.0.0.0", "10.2.0.9"),
        ("2001:db8::4", "::ffff:10.2.0.9"),
    ] {
        let request = scene.locations(vec![at(location, &[(address, &[])])]);
        assert_eq!(scene.refused(&request), refusal(400, "InvalidAddress"), "{location} {address}");
    }
}

#[test]
fn one_poison_address_refuses_the_whole_request() {
    let mut scene = scene_with_web();
    scene.cloud.poison(ip("10.2.0.66"));
    let request = scene.locations(vec![at("10.1.0.4", &[("10.2.0.9", &["web"]), ("10.2.0.66", &["web"])])]);
    assert_eq!(scene.refused(&request), refusal(400, "InvalidAddress"));
    scene.cloud.calm();
    scene.done(&request);
}

#[test]
fn a_body_that_is_too_large_is_refused() {
    let mut scene = Scene::with(Config { buckets: None, body_bytes_max: 1_000, ..Config::default() });
    let many: Vec<String> = (1..=9).map(|last| format!("10.2.0.{last}")).collect();
    let entries: Vec<(&str, &[&str])> = many.iter().map(|it| (it.as_str(), &[] as &[&str])).collect();
    let small = scene.locations(vec![at("10.1.0.4", &entries)]);
    let large = scene.locations(vec![at("10.1.0.4", &entries), at("10.1.0.5", &entries)]);
    assert_eq!(scene.refused(&large), refusal(413, "RequestEntityTooLarge"));
    scene.done(&small);
    let services =
        (0..9).map(|n| unregister(Registration { name: format!("s{n}").into(), ..scene.inbound("s") }));
    let request = scene.services(services.collect());
    assert_eq!(scene.refused(&request), refusal(413, "RequestEntityTooLarge"));
}

#[test]
fn a_body_must_fit_the_action() {
    let mut scene = Scene::new();
    let wrong = Request { method: Method::UpdateLocations, ..scene.services(vec![]) };
    assert_eq!(scene.refused(&wrong), refusal(400, "InvalidRequestFormat"));
}
