//! Public IPs, load balancers and NAT gateways.

use sluice_model::address::Family;
use sluice_model::azure::*;
use sluice_model::call::*;
use sluice_model::kube::Protocol;

use crate::support::*;

#[test]
fn a_new_public_ip_has_its_address_when_its_operation_has_ended() {
    let mut scene = Scene::new();
    let answer = scene.send(&scene.put_ip("web-pip"));
    assert_eq!(answer.status, 201);
    let Payload::PublicIp(public_ip) = answer.payload else { panic!() };
    assert_eq!((public_ip.address, public_ip.meta.provisioning), (None, Provisioning::Updating));

    scene.wait(3);
    let id = scene.public_ip("web-pip");
    let Payload::PublicIp(public_ip) = scene.get(&id).payload else { panic!() };
    assert_eq!(public_ip.address, Some(ip("198.18.0.1")));
    assert_eq!(public_ip.meta.provisioning, Provisioning::Succeeded);
}

#[test]
fn a_written_again_public_ip_keeps_its_address() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    let mut again = scene.put_ip("web-pip");
    again.body = Body::PublicIp(PublicIpBody {
        family: Family::V4,
        tags: Tags::from([("team".into(), "shop".into())]),
    });
    let answer = scene.send(&again);
    assert_eq!(answer.status, 200);
    let Payload::PublicIp(public_ip) = answer.payload else { panic!() };
    assert_eq!(public_ip.address, Some(ip("198.18.0.1")));
    assert_eq!(public_ip.meta.provisioning, Provisioning::Updating);
    assert_eq!(public_ip.meta.tags.len(), 1);
}

#[test]
fn both_families_have_addresses_of_their_own() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip_of("blue-pip-v6", Family::V6));
    let id = scene.public_ip("blue-pip-v6");
    assert_eq!(scene.cloud.state().public_ips[&id].address, Some(ip("2001:db8::1")));
}

#[test]
fn a_put_that_changes_nothing_is_over_at_once() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    for request in [scene.put_ip("web-pip"), scene.put_lb("web", &[tcp(80, 8080)])] {
        let answer = scene.send(&request);
        assert_eq!(answer.status, 200);
        let operation = answer.operation.unwrap();
        assert_eq!(scene.poll(&operation), OperationState::Succeeded);
    }
}

#[test]
fn the_family_of_a_public_ip_is_fixed() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    let other = scene.put_ip_of("web-pip", Family::V6);
    assert_eq!(scene.refused(&other), refusal(400, "PublicIPAddressVersionCannotBeChanged"));
}

#[test]
fn a_public_ip_in_use_cannot_be_deleted() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let request = scene.delete(&scene.public_ip("web-pip"));
    assert_eq!(scene.refused(&request), refusal(400, "PublicIPAddressCannotBeDeleted"));

    scene.done(&scene.delete(&scene.load_balancer("web")));
    scene.done(&request);
    assert!(scene.cloud.state().public_ips.is_empty());
}

#[test]
fn an_address_is_not_issued_again_when_its_public_ip_is_gone() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("a"));
    scene.done(&scene.delete(&scene.public_ip("a")));
    scene.done(&scene.put_ip("a"));
    assert_eq!(scene.cloud.state().public_ips[&scene.public_ip("a")].address, Some(ip("198.18.0.2")));
}

#[test]
fn ids_differ_by_everything_but_case() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let shouted = ArmId::new(scene.load_balancer("web").as_str().to_ascii_uppercase());
    let Payload::LoadBalancer(found) = scene.get(&shouted).payload else { panic!() };
    assert_eq!(found.meta.id.as_str(), scene.load_balancer("web").as_str());
    let again = Request { target: shouted, ..scene.put_lb("web", &[tcp(81, 8080)]) };
    scene.done(&again);
    assert_eq!(scene.cloud.state().load_balancers.len(), 1);
}

#[test]
fn a_load_balancer_has_one_pool_of_its_own_name() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let load_balancer = &scene.cloud.state().load_balancers[&scene.load_balancer("web")];
    assert_eq!(load_balancer.pools, names(&["web"]));
    assert_eq!(load_balancer.public_ip, Some(scene.public_ip("web-pip")));
}

#[test]
fn a_rule_vanishes_by_omission() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    scene.done(&scene.put_lb("web", &[tcp(80, 8080), tcp(443, 8443)]));
    scene.done(&scene.put_lb("web", &[tcp(443, 8443)]));
    let load_balancer = &scene.cloud.state().load_balancers[&scene.load_balancer("web")];
    assert_eq!(load_balancer.rules, [tcp(443, 8443)]);
}

#[test]
fn a_load_balancer_needs_a_public_ip_that_is_there() {
    let mut scene = Scene::new();
    let request = scene.put_lb("web", &[]);
    assert_eq!(scene.refused(&request), refusal(400, "InvalidResourceReference"));
}

#[test]
fn a_load_balancer_must_wait_for_its_public_ip() {
    let mut scene = Scene::new();
    scene.send(&scene.put_ip("web-pip"));
    let request = scene.put_lb("web", &[]);
    assert_eq!(scene.refused(&request), refusal(429, "RetryableError"));
    scene.wait(3);
    scene.done(&request);
}

#[test]
fn a_public_ip_serves_one_load_balancer() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let thief = scene.put_lb_on("other", "web-pip", &[]);
    assert_eq!(scene.refused(&thief), refusal(400, "PublicIPAddressInUse"));
}

#[test]
fn a_load_balancer_that_changes_its_public_ip_sets_the_old_one_free() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    scene.done(&scene.put_ip("spare"));
    scene.done(&scene.put_lb_on("web", "spare", &[]));
    assert_eq!(scene.cloud.state().public_ips[&scene.public_ip("web-pip")].used_by, None);
    scene.done(&scene.delete(&scene.public_ip("web-pip")));
}

#[test]
fn rules_out_of_range_are_refused() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    for rule in [
        tcp(0, 80),
        tcp(65_535, 80),
        tcp(80, 0),
        Rule { idle_timeout_minutes: 3, ..tcp(80, 80) },
        Rule { idle_timeout_minutes: 31, ..tcp(80, 80) },
        Rule { protocol: Protocol::Sctp, ..tcp(80, 80) },
    ] {
        let request = scene.put_lb("web", &[rule]);
        assert_eq!(scene.refused(&request), refusal(400, "InvalidRequestFormat"), "{rule:?}");
    }
    scene.done(&scene.put_lb("web", &[tcp(65_534, 65_535), Rule { idle_timeout_minutes: 30, ..tcp(1, 1) }]));
}

#[test]
fn two_rules_cannot_share_backend_port_and_protocol() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    let request = scene.put_lb("web", &[tcp(80, 8080), tcp(81, 8080)]);
    assert_eq!(scene.refused(&request), refusal(400, "RulesUseSameBackendPortProtocolAndPool"));
    let udp = Rule { protocol: Protocol::Udp, ..tcp(81, 8080) };
    scene.done(&scene.put_lb("web", &[tcp(80, 8080), udp]));
}

#[test]
fn two_rules_cannot_have_one_name() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    let request = scene.put_lb("web", &[tcp(80, 8080), tcp(80, 8081)]);
    assert_eq!(scene.refused(&request), refusal(400, "DuplicateResourceName"));
}

#[test]
fn a_load_balancer_whose_pool_is_registered_cannot_be_deleted() {
    let mut scene = Scene::new();
    scene.make_service("web");
    let request = scene.delete(&scene.load_balancer("web"));
    assert_eq!(scene.refused(&request), refusal(400, "InUseLoadBalancerCannotBeDeleted"));

    let cleared = Registration { pools: vec![], ..scene.inbound("web") };
    scene.done(&scene.services(vec![write(cleared)]));
    scene.done(&request);
}

#[test]
fn a_nat_gateway_needs_its_public_ips_and_its_gateway() {
    let mut scene = Scene::new();
    let request = scene.put_nat("blue", scene.nat_body("blue"));
    assert_eq!(scene.refused(&request), refusal(400, "InvalidResourceReference"));
    scene.done(&scene.put_ip("blue-pip"));
    let stray = NatGatewayBody {
        gateway: Some(scene.scope.resource("serviceGateways", "nowhere")),
        ..scene.nat_body("blue")
    };
    let request = scene.put_nat("blue", stray);
    assert_eq!(scene.refused(&request), refusal(400, "InvalidResourceReference"));
    scene.done(&scene.put_nat("blue", scene.nat_body("blue")));
    let used_by = scene.cloud.state().public_ips[&scene.public_ip("blue-pip")].used_by.clone();
    assert_eq!(used_by, Some(scene.nat_gateway("blue")));
}

#[test]
fn a_nat_gateway_keeps_the_families_apart() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip_of("blue-pip", Family::V6));
    let request = scene.put_nat("blue", scene.nat_body("blue"));
    assert_eq!(scene.refused(&request), refusal(400, "PublicIPAddressVersionMismatch"));
    let right = NatGatewayBody {
        public_ips: vec![],
        public_ips_v6: vec![scene.public_ip("blue-pip")],
        ..scene.nat_body("blue")
    };
    scene.done(&scene.put_nat("blue", right));
}

#[test]
fn a_nat_gateway_cannot_have_a_public_ip_twice() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("blue-pip"));
    let public_ip = scene.public_ip("blue-pip");
    let twice = NatGatewayBody { public_ips: vec![public_ip.clone(), public_ip], ..scene.nat_body("blue") };
    let request = scene.put_nat("blue", twice);
    assert_eq!(scene.refused(&request), refusal(400, "DuplicateResourceName"));
}

#[test]
fn a_nat_gateway_cannot_take_a_load_balancers_public_ip() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let body = NatGatewayBody { public_ips: vec![scene.public_ip("web-pip")], ..scene.nat_body("blue") };
    let request = scene.put_nat("blue", body);
    assert_eq!(scene.refused(&request), refusal(400, "PublicIPAddressInUse"));
}

#[test]
fn a_registered_nat_gateway_can_neither_go_nor_leave_its_gateway() {
    let mut scene = Scene::new();
    scene.make_egress("blue");
    let delete = scene.delete(&scene.nat_gateway("blue"));
    assert_eq!(scene.refused(&delete), refusal(400, "InUseNatGatewayCannotBeDeleted"));
    let detach = scene.put_nat("blue", NatGatewayBody { gateway: None, ..scene.nat_body("blue") });
    assert_eq!(scene.refused(&detach), refusal(400, "InUseNatGatewayCannotBeDetached"));

    let cleared = Registration { nat_gateway: None, ..scene.outbound("blue") };
    scene.done(&scene.services(vec![write(cleared)]));
    scene.done(&detach);
    scene.done(&delete);
    scene.done(&scene.delete(&scene.public_ip("blue-pip")));
}

#[test]
fn what_is_not_there_is_named_in_azures_words() {
    let mut scene = Scene::new();
    let answer = scene.get(&scene.load_balancer("web"));
    assert_eq!(code(&answer), refusal(404, "ResourceNotFound"));
    let Payload::Error(error) = answer.payload else { panic!() };
    assert_eq!(
        &*error.message,
        "The Resource 'Microsoft.Network/loadBalancers/web' under resource group 'rg' was not found. \
         For more details please go to https://aka.ms/ARMResourceNotFoundFix"
    );
    let tags = Request::with(Method::PatchTags, scene.nat_gateway("blue"), Body::Tags(Tags::new()));
    assert_eq!(scene.refused(&tags), refusal(404, "ResourceNotFound"));
}

#[test]
fn deleting_what_is_not_there_succeeds() {
    let mut scene = Scene::new();
    for id in [scene.load_balancer("x"), scene.public_ip("x"), scene.nat_gateway("x")] {
        assert_eq!(scene.send(&scene.delete(&id)).status, 204);
    }
}

#[test]
fn tags_are_replaced_and_nothing_else_changes() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let id = scene.load_balancer("web");
    let before = scene.cloud.state().load_balancers[&id].clone();
    let tags = Tags::from([("a".into(), "b".into())]);
    let answer = scene.send(&Request::with(Method::PatchTags, id, Body::Tags(tags.clone())));
    assert_eq!((answer.status, answer.operation.clone()), (200, None));
    let Payload::LoadBalancer(after) = answer.payload else { panic!() };
    assert_ne!(after.meta.etag, before.meta.etag);
    assert_eq!(after.meta.tags, tags);
    assert_eq!(LoadBalancer { meta: before.meta.clone(), ..after }, before);
}

#[test]
fn every_write_changes_the_etag_and_if_match_wants_the_last_one() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    let id = scene.public_ip("web-pip");
    let first = scene.cloud.state().public_ips[&id].meta.etag.clone();
    scene.done(&scene.put_ip("web-pip"));
    let second = scene.cloud.state().public_ips[&id].meta.etag.clone();
    assert_ne!(first, second);

    let guarded = |etag: &ETag| Request { if_match: Some(etag.clone()), ..scene.put_ip("web-pip") };
    let (stale, fresh, any) = (guarded(&first), guarded(&second), guarded(&ETag("*".into())));
    assert_eq!(scene.refused(&stale), refusal(412, "PreconditionFailed"));
    scene.done(&fresh);
    scene.done(&any);
    let nothing = Request { target: scene.public_ip("none"), ..any };
    assert_eq!(scene.refused(&nothing), refusal(412, "PreconditionFailed"));

    let patch = Request::with(Method::PatchTags, id.clone(), Body::Tags(Tags::new()));
    for request in [patch, Request::bare(Method::Delete, id)] {
        let stale = Request { if_match: Some(first.clone()), ..request };
        assert_eq!(scene.refused(&stale), refusal(412, "PreconditionFailed"));
    }
}

#[test]
fn names_that_azure_does_not_allow_are_refused() {
    let mut scene = Scene::new();
    let long = "x".repeat(81);
    for name in ["-a", "a-", "a b", "a$", long.as_str()] {
        let request = scene.put_ip(name);
        assert_eq!(scene.refused(&request), refusal(400, "InvalidResourceName"), "{name}");
    }
}

#[test]
fn a_body_must_fit_its_target() {
    let mut scene = Scene::new();
    let wrong = Request { target: scene.load_balancer("web"), ..scene.put_ip("web") };
    assert_eq!(scene.refused(&wrong), refusal(400, "InvalidRequestFormat"));
    let reference = Request::with(
        Method::Put,
        scene.load_balancer("web"),
        Body::LoadBalancer(LoadBalancerBody { public_ip: scene.gateway(), rules: vec![], tags: Tags::new() }),
    );
    assert_eq!(scene.refused(&reference), refusal(400, "InvalidRequestFormat"));
}

#[test]
fn an_id_of_no_known_shape_leads_nowhere() {
    let mut scene = Scene::new();
    assert_eq!(code(&scene.get(&ArmId::new("/nowhere"))), refusal(404, "InvalidResourceType"));
    let post = Request::with(Method::UpdateServices, scene.public_ip("a"), Body::Services(vec![]));
    assert_eq!(scene.refused(&post), refusal(405, "MethodNotAllowed"));
}
