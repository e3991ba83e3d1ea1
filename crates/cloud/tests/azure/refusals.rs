//! Refusals word for word, where Azure's words are known.

use std::time::Duration;

use sluice_cloud::{Buckets, Config, Fault, Forbidden, LockLevel, Rate, Tamper, is_managers_code};
use sluice_model::azure::*;
use sluice_model::call::*;

use crate::support::*;

#[test]
fn a_wrong_version_is_told_in_a_detail() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    let id = scene.public_ip("web-pip");
    let etag = scene.cloud.state().public_ips[&id].meta.etag.clone();
    let request = Request { if_match: Some(ETag("invalid".into())), ..scene.put_ip("web-pip") };
    let (error, details) = scene.refused_with(&request);
    assert_eq!((&*error.code, &*error.message), ("PreconditionFailed", "Precondition failed."));
    assert_eq!(details.len(), 1);
    assert_eq!(&*details[0].code, "PreconditionFailedEtagMismatch");
    let text = format!(
        "Etag provided in if-match header W/\"invalid\" does not match etag {} of resource {id} in NRP data store.",
        etag.0
    );
    assert_eq!(*details[0].message, *text);
}

#[test]
fn a_version_counts_with_and_without_its_quotes() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    let id = scene.public_ip("web-pip");
    for bare in [true, false] {
        let etag = scene.cloud.state().public_ips[&id].meta.etag.clone();
        let given = etag.0.trim_start_matches("W/");
        let given = if bare { given.trim_matches('"') } else { given };
        assert_ne!(given, &*etag.0);
        let request = Request { if_match: Some(ETag(given.into())), ..scene.put_ip("web-pip") };
        assert_eq!(scene.send(&request).status, 200, "{given}");
    }
}

#[test]
fn a_missing_subnet_has_the_recorded_text() {
    let mut scene = Scene::new();
    let id = scene.scope.virtual_network_id().child("subnets", "none");
    let (error, details) = scene.refused_with(&Request::bare(Method::Get, id.clone()));
    assert_eq!((&*error.code, &*error.message), ("NotFound", &*format!("Resource {id} not found.")));
    assert!(details.is_empty() && !is_managers_code(&error.code));
}

#[test]
fn a_subnet_of_a_missing_network_misses_its_parent() {
    let mut scene = Scene::new();
    let network = ArmId::new(scene.scope.virtual_network_id().as_str().replace("/vnet", "/none"));
    let body = Body::Subnet(SubnetBody { gateway: None, rest: "".into() });
    let request = Request::with(Method::Put, network.child("subnets", "a"), body);
    let (error, _) = scene.refused_with(&request);
    assert_eq!(&*error.code, "ParentResourceNotFound");
    let text = format!(
        "Failed to perform 'write' on resource(s) of type 'virtualNetworks/subnets', because the parent resource \
         '{network}' could not be found."
    );
    assert_eq!(*error.message, *text);
}

#[test]
fn what_is_not_yet_provisioned_is_told_in_a_detail() {
    let mut scene = Scene::new();
    scene.send(&scene.put_ip("web-pip"));
    let (error, details) = scene.refused_with(&scene.put_lb("web", &[]));
    assert_eq!((&*error.code, &*error.message), ("RetryableError", "A retryable error occurred."));
    assert_eq!(&*details[0].code, "ReferencedResourceNotProvisioned");
    assert!(details[0].message.ends_with(
        "is not in Succeeded state. Resource is in Updating state and the last operation that updated/is updating \
         the resource is PutPublicIpAddressOperation."
    ));
}

#[test]
fn an_operation_in_the_way_is_named_with_the_wait() {
    let mut scene = Scene::new();
    let operation = scene.send(&scene.put_ip("web-pip")).operation.unwrap();
    let (error, _) = scene.refused_with(&scene.put_ip("web-pip"));
    let start = format!("Operation PutPublicIpAddressOperation ({}) is updating resource ", operation.name());
    assert!(error.message.starts_with(&start), "{}", error.message);
    assert!(error.message.ends_with(" The call can be retried in 3 seconds."), "{}", error.message);
    let (error, _) = scene.refused_with(&scene.delete(&scene.public_ip("web-pip")));
    assert_eq!(&*error.code, "AnotherOperationInProgress");
    assert!(error.message.contains(operation.as_str()), "{}", error.message);
}

#[test]
fn a_subnet_in_use_is_named_with_its_user() {
    let mut scene = Scene::new();
    let (error, _) = scene.refused_with(&scene.delete(&scene.scope.subnet_id()));
    let text = format!(
        "Subnet pods is in use by {} and cannot be deleted. In order to delete the subnet, delete all the \
         resources within the subnet. See aka.ms/deletesubnet.",
        scene.gateway()
    );
    assert_eq!((&*error.code, &*error.message), ("InUseSubnetCannotBeDeleted", &*text));
    // So it is when the network goes.
    let (error, _) = scene.refused_with(&scene.delete(&scene.scope.virtual_network_id()));
    assert_eq!((&*error.code, &*error.message), ("InUseSubnetCannotBeDeleted", &*text));
}

#[test]
fn rules_that_clash_are_named_with_what_they_share() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    let (error, _) = scene.refused_with(&scene.put_lb("web", &[tcp(80, 8080), tcp(81, 8080)]));
    let id = scene.load_balancer("web");
    let text = format!(
        "Load balancing rules {id}/loadBalancingRules/rule-tcp-80 and {id}/loadBalancingRules/rule-tcp-81 with \
         floating IP disabled use the same protocol Tcp and backend port 8080, and must not be used with the same \
         backend address pool {id}/backendAddressPools/web."
    );
    assert_eq!(*error.message, *text);
}

#[test]
fn an_address_of_another_gateway_is_taken() {
    let mut scene = Scene::new();
    let taken = scene.cloud.state().gateways[&scene.gateway()].route_target_address;
    let Body::Gateway(body) = scene.gateway_body() else { panic!() };
    let second = scene.scope.resource("serviceGateways", "second");
    let body = GatewayBody { route_target_address: taken, ..body };
    let request = Request::with(Method::Put, second.clone(), Body::Gateway(body.clone()));
    assert_eq!(scene.refused(&request), refusal(400, "PrivateIPAddressIsAllocated"));
    // Its own it may keep, and who does not ask is given another.
    let own = Request::with(Method::Put, scene.gateway(), Body::Gateway(body));
    scene.done(&own);
    scene.done(&Request::with(Method::Put, second.clone(), scene.gateway_body()));
    assert_ne!(scene.cloud.state().gateways[&second].route_target_address, taken);
}

#[test]
fn what_the_manager_refuses_says_nothing_of_buckets_and_has_no_details() {
    let mut scene = Scene::with(Config::default());
    let missing = Request::bare(Method::Get, scene.load_balancer("none"));
    let group = ArmId::new(scene.group().as_str().replace("/rg", "/none"));
    let locked = scene.put_ip("a");
    scene.tamper(Tamper::Lock { scope: locked.target.clone(), level: LockLevel::ReadOnly });
    for request in [missing, Request::bare(Method::Get, group), locked] {
        let answer = scene.send(&request);
        let (_, code) = code(&answer);
        assert!(is_managers_code(&code), "{code}");
        assert_eq!(answer.remaining, None, "{code}");
    }
    // The provider's own refusals do.
    let child = scene.scope.virtual_network_id().child("subnets", "none");
    assert!(scene.get(&child).remaining.is_some());
}

fn forbid(scene: &mut Scene, scope: ArmId, what: Forbidden) {
    scene.tamper(Tamper::Forbid { scope, what });
}

#[test]
fn a_lost_role_forbids_everything_below_its_scope_until_it_is_given_back() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    let operation = scene.send(&scene.put_lb("web", &[])).operation.unwrap();
    let subscription = ArmId::new(format!("/subscriptions/{}", scene.scope.subscription));
    forbid(&mut scene, subscription.clone(), Forbidden::Everything);
    let denied = refusal(403, "AuthorizationFailed");
    for request in [
        scene.put_ip("other"),
        scene.delete(&scene.public_ip("web-pip")),
        scene.services(vec![]),
        Request::bare(Method::Get, scene.public_ip("web-pip")),
        Request::bare(Method::Get, scene.public_ip("none")),
        Request::bare(Method::List, scene.scope.collection("loadBalancers")),
        Request::bare(Method::Poll, operation),
    ] {
        assert_eq!(scene.refused(&request), denied, "{request:?}");
    }
    // Others go on, and so does what has begun.
    scene.wait(60);
    assert_eq!(scene.cloud.provisioning_of(&scene.load_balancer("web")), Some(Provisioning::Succeeded));
    let body = scene.put_ip("theirs").body;
    assert_eq!(scene.tamper(Tamper::Put { id: scene.public_ip("theirs"), body }).status, 201);
    let aside = scene.cloud.set_aside_limits();
    assert_eq!(scene.get(&scene.public_ip("theirs")).status, 200, "for whom nobody counts, nobody forbids");
    scene.cloud.bring_back_limits(aside);
    assert_eq!(scene.cloud.forbidden().count(), 1);
    scene.tamper(Tamper::Permit(subscription));
    scene.done(&scene.put_ip("other"));
}

#[test]
fn a_lost_writing_role_still_reads() {
    let mut scene = Scene::new();
    let group = scene.group();
    forbid(&mut scene, group, Forbidden::Writes);
    let get = Request::bare(Method::Get, scene.gateway());
    assert_eq!(scene.send(&get).status, 200);
    let (error, _) = scene.refused_with(&scene.services(vec![]));
    assert_eq!(&*error.code, "AuthorizationFailed");
    let text = format!(
        "perform action 'Microsoft.Network/serviceGateways/updateServices/action' over scope '{}' or the scope is \
         invalid. If access was recently granted, please refresh your credentials.",
        scene.gateway()
    );
    assert!(error.message.ends_with(&text), "{}", error.message);
    // Nothing but that group.
    let body = Body::Subnet(SubnetBody { gateway: None, rest: "".into() });
    scene.done(&Request::with(Method::Put, scene.scope.subnet_id(), body));
    scene.cloud.calm();
    scene.done(&scene.services(vec![]));
}

#[test]
fn throttling_names_the_subscription() {
    let one = Rate { burst: 1, per_second: 1 };
    let buckets = Buckets { reads: one, ..Buckets::default() };
    let mut scene = Scene::with(Config { buckets: Some(buckets), ..Config::default() });
    let get = Request::bare(Method::Get, scene.gateway());
    assert_eq!(scene.send(&get).status, 200);
    let (error, _) = scene.refused_with(&get);
    let text = format!(
        "Number of 'read' requests for subscription '{}' actor '00000000-0000-0000-0000-000000000000' exceeded. \
         Please try again after '1' seconds.",
        scene.scope.subscription
    );
    assert_eq!(*error.message, *text);
}

#[test]
fn an_injected_refusal_has_no_details_of_its_own() {
    let mut scene = Scene::new();
    let fault = Fault::Refuse {
        status: 429,
        code: "TooManyRequests".into(),
        message: "later".into(),
        retry_after: Some(Duration::from_secs(5)),
    };
    let outcome = scene.cloud.handle_fully(scene.now, &scene.put_ip("a"), Some(&fault));
    let Reply::Answered(answer) = outcome.reply else { panic!() };
    assert_eq!((answer.status, answer.retry_after), (429, Some(Duration::from_secs(5))));
    assert!(outcome.details.is_empty());
}
