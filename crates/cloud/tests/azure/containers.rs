//! Groups, networks, subnets and gateways.

use std::net::IpAddr;

use sluice_cloud::Tamper;
use sluice_model::azure::*;
use sluice_model::call::*;

use crate::support::*;

#[test]
fn an_unknown_group_is_named_whatever_is_asked() {
    let mut scene = Scene::new();
    let place = |kind: &str, tail: &str| {
        let network = scene.group().child("providers", "Microsoft.Network");
        ArmId::new(network.as_str().replace("/rg/", "/gone/") + "/" + kind + tail)
    };
    let group = ArmId::new(scene.group().as_str().replace("/rg", "/gone"));
    let (resource, collection) = (place("publicIPAddresses", "/a"), place("natGateways", ""));
    for request in [
        Request::bare(Method::Get, resource.clone()),
        Request::bare(Method::List, collection),
        Request::bare(Method::Delete, resource.clone()),
        Request { target: resource, ..scene.put_ip("a") },
        Request::bare(Method::Get, group.clone()),
        Request::bare(Method::Delete, group),
    ] {
        assert_eq!(scene.refused(&request), refusal(404, "ResourceGroupNotFound"), "{request:?}");
    }
}

#[test]
fn a_group_is_made_once_and_found_in_any_case() {
    let mut scene = Scene::new();
    let id = ArmId::new("/subscriptions/s/resourceGroups/New");
    let put = Request::with(Method::Put, id.clone(), Body::Container);
    assert_eq!(scene.send(&put).status, 201);
    assert_eq!(scene.send(&put).status, 200);
    let shouted = ArmId::new("/SUBSCRIPTIONS/s/RESOURCEGROUPS/new");
    assert_eq!(scene.get(&shouted).payload, Payload::Container(id));
}

#[test]
fn a_deleted_group_takes_everything_along() {
    let mut scene = Scene::new();
    scene.make_service("web");
    scene.make_egress("blue");
    scene.done(&scene.delete(&scene.group()));
    let state = scene.cloud.state();
    assert!(state.public_ips.is_empty() && state.load_balancers.is_empty() && state.nat_gateways.is_empty());
    assert!(state.gateways.is_empty() && state.contents.is_empty());
    assert_eq!(state.subnets.len(), 1);
    let code_after = refusal(404, "ResourceGroupNotFound");
    assert_eq!(code(&scene.get(&scene.group())), code_after);
}

#[test]
fn nothing_is_written_in_a_group_that_is_going() {
    let mut scene = Scene::new();
    scene.send(&scene.delete(&scene.group()));
    let request = scene.put_ip("web-pip");
    assert_eq!(scene.refused(&request), refusal(409, "ResourceGroupBeingDeleted"));
}

#[test]
fn a_group_that_others_need_stays() {
    let mut scene = Scene::new();
    let group = scene.scope.virtual_network_id().parent("resourceGroups").unwrap();
    let request = scene.delete(&group);
    assert_eq!(scene.refused(&request), refusal(409, "ResourceGroupDeletionBlocked"));
}

#[test]
fn a_network_is_read_and_deleted_with_its_subnets() {
    let mut scene = Scene::new();
    let network = scene.scope.virtual_network_id();
    assert_eq!(scene.get(&network).payload, Payload::Container(network.clone()));
    let request = scene.delete(&network);
    assert_eq!(scene.refused(&request), refusal(400, "InUseSubnetCannotBeDeleted"));
    scene.done(&scene.delete(&scene.gateway()));
    scene.done(&request);
    assert!(scene.cloud.state().subnets.is_empty());
    assert_eq!(code(&scene.get(&network)), refusal(404, "ResourceNotFound"));
}

#[test]
fn a_missing_subnet_is_not_found_in_words_of_its_own() {
    let mut scene = Scene::new();
    let id = scene.scope.virtual_network_id().child("subnets", "none");
    assert_eq!(code(&scene.get(&id)), refusal(404, "NotFound"));
    let elsewhere = ArmId::new(id.as_str().replace("/vnet/", "/other/"));
    assert_eq!(code(&scene.get(&elsewhere)), refusal(404, "ResourceNotFound"));
    let body = SubnetBody { gateway: None, rest: "".into() };
    let put = Request::with(Method::Put, elsewhere, Body::Subnet(body));
    assert_eq!(scene.refused(&put), refusal(404, "ParentResourceNotFound"));
}

fn attach(scene: &Scene, gateway: ArmId) -> Request {
    let subnet = &scene.cloud.state().subnets[&scene.scope.subnet_id()];
    let body = SubnetBody { gateway: Some(gateway), rest: subnet.rest.clone() };
    let request = Request::with(Method::Put, scene.scope.subnet_id(), Body::Subnet(body));
    Request { if_match: Some(subnet.etag.clone()), ..request }
}

#[test]
fn a_subnet_is_attached_only_at_the_version_that_was_read() {
    let mut scene = Scene::new();
    let request = attach(&scene, scene.gateway());
    scene.done(&request);
    assert_eq!(scene.cloud.state().subnets[&scene.scope.subnet_id()].gateway, Some(scene.gateway()));
    assert_eq!(scene.refused(&request), refusal(412, "PreconditionFailed"));
}

#[test]
fn a_request_that_arrives_late_is_stopped_by_its_if_match() {
    let mut scene = Scene::new();
    let late = attach(&scene, scene.gateway());
    scene.done(&attach(&scene, scene.gateway()));
    scene.tamper(Tamper::DetachSubnet(scene.scope.subnet_id()));
    scene.cloud.deliver_late(scene.now, &late);
    assert_eq!(scene.cloud.state().subnets[&scene.scope.subnet_id()].gateway, None);
}

#[test]
fn a_subnet_is_attached_to_a_gateway_that_is_there() {
    let mut scene = Scene::new();
    let request = attach(&scene, scene.scope.resource("serviceGateways", "none"));
    assert_eq!(scene.refused(&request), refusal(400, "InvalidResourceReference"));
}

#[test]
fn a_subnet_in_use_cannot_be_deleted() {
    let mut scene = Scene::new();
    let request = scene.delete(&scene.scope.subnet_id());
    // The gateway's route target address is in it.
    assert_eq!(scene.refused(&request), refusal(400, "InUseSubnetCannotBeDeleted"));
    scene.done(&scene.delete(&scene.gateway()));
    scene.done(&request);
}

#[test]
fn a_gateway_needs_its_network_and_subnet() {
    let mut scene = Scene::new();
    let id = scene.scope.resource("serviceGateways", "second");
    let Body::Gateway(body) = scene.gateway_body() else { panic!() };
    let elsewhere = ArmId::new(body.virtual_network.as_str().replace("vnet", "other"));
    for wrong in [
        GatewayBody { virtual_network: elsewhere.clone(), ..body.clone() },
        GatewayBody { route_target_subnet: elsewhere.child("subnets", "pods"), ..body.clone() },
        GatewayBody { route_target_subnet: body.virtual_network.child("subnets", "none"), ..body.clone() },
    ] {
        let request = Request::with(Method::Put, id.clone(), Body::Gateway(wrong));
        assert_eq!(scene.refused(&request), refusal(400, "InvalidResourceReference"));
    }
    scene.done(&Request::with(Method::Put, id.clone(), Body::Gateway(body)));
    let address = |id: &ArmId| scene.cloud.state().gateways[id].route_target_address.map(IpAddr::V4);
    assert_eq!((address(&scene.gateway()), address(&id)), (Some(ip("10.0.0.4")), Some(ip("10.0.0.5"))));
}

#[test]
fn a_put_replaces_a_gateway_and_loses_what_it_does_not_carry() {
    let mut scene = Scene::new();
    let id = scene.gateway();
    let made = scene.cloud.state().gateways[&id].clone();
    let six = "fd00::4".parse().ok();
    let theirs = Gateway { route_target_address_v6: six, document: "zones 1, 2".into(), ..made };
    let write = |body| Request::with(Method::Put, id.clone(), body);
    scene.done(&write(Body::GatewayAsRead(theirs.clone())));
    let foreign = |scene: &Scene| {
        let it = &scene.cloud.state().gateways[&id];
        (it.route_target_address_v6, it.document.to_string())
    };
    assert_eq!(foreign(&scene), (six, "zones 1, 2".into()));
    // Tags leave everything else as it is, and so does writing back what was read.
    let tags = Tags::from([("a".into(), "b".into())]);
    scene.send(&Request::with(Method::PatchTags, id.clone(), Body::Tags(tags)));
    scene.tamper(Tamper::FailWrite(id.clone()));
    let read = scene.cloud.state().gateways[&id].clone();
    assert_eq!(read.meta.provisioning, Provisioning::Failed);
    scene.done(&write(Body::GatewayAsRead(read)));
    assert_eq!(foreign(&scene), (six, "zones 1, 2".into()));
    assert_eq!(scene.cloud.state().gateways[&id].meta.provisioning, Provisioning::Succeeded);
    scene.done(&write(scene.gateway_body()));
    assert_eq!(foreign(&scene), (None, String::new()));
}

#[test]
fn a_gateway_stays_in_its_network() {
    let mut scene = Scene::new();
    let Body::Gateway(body) = scene.gateway_body() else { panic!() };
    let other = ArmId::new(body.virtual_network.as_str().replace("vnet", "other"));
    let subnet = other.child("subnets", "pods");
    scene.done(&Request::with(Method::Put, other.clone(), Body::Container));
    let rest = SubnetBody { gateway: None, rest: "".into() };
    scene.done(&Request::with(Method::Put, subnet.clone(), Body::Subnet(rest)));
    let moved = GatewayBody { virtual_network: other, route_target_subnet: subnet, ..body };
    let request = Request::with(Method::Put, scene.gateway(), Body::Gateway(moved));
    assert_eq!(scene.refused(&request), refusal(400, "PropertyCannotBeChanged"));
}

#[test]
fn a_gateway_in_use_cannot_be_deleted() {
    let code = refusal(400, "InUseServiceGatewayCannotBeDeleted");
    let mut attached = Scene::new();
    attached.done(&attach(&attached, attached.gateway()));
    let mut named = Scene::new();
    named.make_nat("blue");
    let mut registered = Scene::new();
    registered.make_service("web");
    for scene in [&mut attached, &mut named, &mut registered] {
        let request = scene.delete(&scene.gateway());
        assert_eq!(scene.refused(&request), code);
    }
}

#[test]
fn a_subnet_that_is_taken_into_use_while_it_goes_stays() {
    let mut scene = Scene::new();
    let spare = scene.scope.virtual_network_id().child("subnets", "spare");
    let body = SubnetBody { gateway: None, rest: "".into() };
    scene.done(&Request::with(Method::Put, spare.clone(), Body::Subnet(body)));
    let delete = scene.send(&scene.delete(&spare)).operation.unwrap();
    let Body::Gateway(body) = scene.gateway_body() else { panic!() };
    let moved = GatewayBody { route_target_subnet: spare.clone(), ..body };
    scene.done(&Request::with(Method::Put, scene.gateway(), Body::Gateway(moved)));
    let OperationState::Failed(error) = scene.poll(&delete) else { panic!() };
    assert_eq!(&*error.code, "InUseSubnetCannotBeDeleted");
    assert!(scene.cloud.state().subnets.contains_key(&spare));
}

#[test]
fn what_runs_in_a_group_that_goes_is_called_off() {
    let mut scene = Scene::new();
    let fault = sluice_cloud::Fault::OperationNeverEnds;
    let operation = scene.send_faulty(&scene.put_ip("web-pip"), fault).operation.unwrap();
    scene.done(&scene.delete(&scene.group()));
    assert!(matches!(scene.poll(&operation), OperationState::Canceled(_)));
    scene.done(&Request::with(Method::Put, scene.group(), Body::Container));
    scene.done(&scene.put_ip("web-pip"));
}

#[test]
fn a_group_that_somebody_begins_to_need_while_it_goes_stays() {
    let mut scene = Scene::new();
    scene.tamper(Tamper::DeleteGateway(scene.gateway()));
    let networks = scene.scope.virtual_network_id().parent("resourceGroups").unwrap();
    let delete = scene.send(&scene.delete(&networks)).operation.unwrap();
    scene.done(&Request::with(Method::Put, scene.gateway(), scene.gateway_body()));
    let OperationState::Failed(error) = scene.poll(&delete) else { panic!() };
    assert_eq!(&*error.code, "ResourceGroupDeletionBlocked");
    assert_eq!(scene.cloud.state().subnets.len(), 1);
}
