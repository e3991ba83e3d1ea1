//! Somebody else at work.

use sluice_cloud::Tamper;
use sluice_model::address::Family;
use sluice_model::azure::*;
use sluice_model::call::*;

use crate::support::*;

#[test]
fn a_foreign_resource_is_there_at_once() {
    let mut scene = Scene::new();
    let id = scene.public_ip("foreign");
    let body = Body::PublicIp(PublicIpBody { family: Family::V4, tags: Tags::new() });
    scene.tamper(Tamper::Put { id: id.clone(), body });
    let made = &scene.cloud.state().public_ips[&id];
    assert_eq!(made.meta.provisioning, Provisioning::Succeeded);
    assert!(made.address.is_some());
}

#[test]
fn others_are_bound_by_azures_rules_when_they_write() {
    let mut scene = Scene::new();
    let Request { target, body, .. } = scene.put_lb("web", &[]);
    let answer = scene.tamper(Tamper::Put { id: target, body });
    assert_eq!(code(&answer), refusal(400, "InvalidResourceReference"));
    let registration = scene.inbound("web");
    let answer = scene.tamper(Tamper::PutRegistration { gateway: scene.gateway(), registration });
    assert_eq!(code(&answer), refusal(400, "InvalidResourceReference"));
    let answer = scene.tamper(Tamper::AddAddress {
        gateway: scene.gateway(),
        location: ip("10.1.0.4"),
        address: ip("10.2.0.9"),
        services: names(&["web"]),
    });
    assert_eq!(code(&answer), refusal(400, "ServiceNotFoundInServiceGateway"));
}

#[test]
fn a_deleted_public_ip_is_missing_from_its_load_balancer() {
    let mut scene = Scene::new();
    scene.make_service("web");
    scene.tamper(Tamper::DeletePublicIp(scene.public_ip("web-pip")));
    assert_eq!(scene.cloud.state().load_balancers[&scene.load_balancer("web")].public_ip, None);
    scene.done(&scene.put_ip("web-pip"));
    scene.done(&scene.put_lb("web", &[tcp(80, 8080)]));
}

#[test]
fn a_deleted_load_balancer_leaves_a_cleared_registration() {
    let mut scene = Scene::new();
    scene.make_service("web");
    scene.tamper(Tamper::DeleteLoadBalancer(scene.load_balancer("web")));
    let left = scene.cloud.state().registration(&scene.gateway(), "web").unwrap();
    assert_eq!(left.pools, []);
    assert_eq!(scene.cloud.state().public_ips[&scene.public_ip("web-pip")].used_by, None);
}

#[test]
fn a_deleted_nat_gateway_leaves_a_cleared_registration() {
    let mut scene = Scene::new();
    scene.make_egress("blue");
    scene.tamper(Tamper::DeleteNatGateway(scene.nat_gateway("blue")));
    let left = scene.cloud.state().registration(&scene.gateway(), "blue").unwrap();
    assert_eq!(left.nat_gateway, None);
}

#[test]
fn a_deleted_registration_leaves_no_address_that_names_it() {
    let mut scene = Scene::new();
    scene.make_service("web");
    scene.make_service("api");
    scene.done(
        &scene.locations(vec![at("10.1.0.4", &[("10.2.0.8", &["web"]), ("10.2.0.9", &["web", "api"])])]),
    );
    scene.tamper(Tamper::DeleteRegistration { gateway: scene.gateway(), name: "WEB".into() });
    let left: Vec<Location> = scene.cloud.state().locations(&scene.gateway()).collect();
    assert_eq!(left[0].addresses, at("10.1.0.4", &[("10.2.0.9", &["api"])]).addresses);
    assert_eq!(scene.cloud.state().mapped(&scene.gateway(), "web"), 0);
    // What it was registered with can go now.
    scene.done(&scene.delete(&scene.load_balancer("web")));
}

#[test]
fn a_deleted_address_is_gone() {
    let mut scene = Scene::new();
    scene.make_service("web");
    let (gateway, location, address) = (scene.gateway(), ip("10.1.0.4"), ip("10.2.0.9"));
    let services = names(&["web"]);
    scene.tamper(Tamper::AddAddress { gateway: gateway.clone(), location, address, services });
    assert_eq!(scene.cloud.state().mapped(&gateway, "web"), 1);
    scene.tamper(Tamper::DeleteAddress { gateway: gateway.clone(), location, address });
    assert_eq!(scene.cloud.state().mapped(&gateway, "web"), 0);
}

#[test]
fn a_deleted_gateway_takes_what_it_knew_and_sets_the_rest_free() {
    let mut scene = Scene::new();
    scene.make_service("web");
    scene.make_egress("blue");
    scene.tamper(Tamper::DeleteGateway(scene.gateway()));
    let state = scene.cloud.state();
    assert!(state.gateways.is_empty() && state.contents.is_empty());
    assert_eq!(state.nat_gateways[&scene.nat_gateway("blue")].gateway, None);
    scene.done(&scene.delete(&scene.load_balancer("web")));
    scene.done(&Request::with(Method::Put, scene.gateway(), scene.gateway_body()));
    assert_eq!(scene.cloud.state().registrations(&scene.gateway()).count(), 0);
}

#[test]
fn edits_change_the_etag_and_what_they_edit() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let id = scene.load_balancer("web");
    let before = scene.cloud.state().load_balancers[&id].meta.etag.clone();
    scene.tamper(Tamper::EditLoadBalancer { id: id.clone(), rules: vec![tcp(9, 9)] });
    let edited = scene.cloud.state().load_balancers[&id].clone();
    assert_eq!(edited.rules, [tcp(9, 9)]);
    assert_ne!(edited.meta.etag, before);
    let tags = Tags::from([("a".into(), "b".into())]);
    scene.tamper(Tamper::EditTags { id: id.clone(), tags: tags.clone() });
    assert_eq!(scene.cloud.state().load_balancers[&id].meta.tags, tags);
}

#[test]
fn an_operation_on_what_somebody_deletes_is_called_off() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let operation = scene.send(&scene.put_lb("web", &[tcp(81, 81)])).operation.unwrap();
    scene.tamper(Tamper::DeleteLoadBalancer(scene.load_balancer("web")));
    assert!(matches!(scene.poll(&operation), OperationState::Canceled(_)));
    assert_eq!(scene.send(&scene.put_lb("web", &[tcp(81, 81)])).status, 201);
}

#[test]
fn what_is_not_there_cannot_be_tampered_with() {
    let mut scene = Scene::new();
    for change in [
        Tamper::DeletePublicIp(scene.public_ip("x")),
        Tamper::DeleteLoadBalancer(scene.load_balancer("x")),
        Tamper::DeleteGateway(scene.scope.resource("serviceGateways", "x")),
        Tamper::EditTags { id: scene.nat_gateway("x"), tags: Tags::new() },
        Tamper::DeleteNatGateway(scene.gateway()),
        Tamper::DetachSubnet(scene.gateway()),
    ] {
        assert_eq!(scene.tamper(change).status, 404);
    }
}

#[test]
fn what_loses_a_reference_has_another_version_after_it() {
    let mut scene = Scene::new();
    scene.make_service("web");
    scene.make_egress("blue");
    let (web, blue, subnet) =
        (scene.load_balancer("web"), scene.nat_gateway("blue"), scene.scope.subnet_id());
    let attach = SubnetBody { gateway: Some(scene.gateway()), rest: "10.0.0.0/16".into() };
    scene.done(&Request::with(Method::Put, subnet.clone(), Body::Subnet(attach)));
    let etags = |scene: &Scene| {
        let state = scene.cloud.state();
        [
            &state.load_balancers[&web].meta.etag,
            &state.nat_gateways[&blue].meta.etag,
            &state.subnets[&subnet].etag,
        ]
        .map(Clone::clone)
    };
    let before = etags(&scene);
    scene.tamper(Tamper::DeletePublicIp(scene.public_ip("web-pip")));
    let without_ip = etags(&scene);
    assert_ne!(without_ip[0], before[0]);
    assert_eq!(without_ip[1..], before[1..]);
    scene.tamper(Tamper::DeletePublicIp(scene.public_ip("blue-pip")));
    assert_ne!(etags(&scene)[1], before[1]);
    let without_ips = etags(&scene);
    scene.tamper(Tamper::DeleteGateway(scene.gateway()));
    let alone = etags(&scene);
    assert_eq!(alone[0], without_ips[0]);
    assert!(alone[1] != without_ips[1] && alone[2] != without_ips[2], "{alone:?}");
}
