//! Load balancers as anybody may write them.

use sluice_model::azure::*;
use sluice_model::call::*;

use crate::support::*;

fn foreign(scene: &Scene, name: &str, frontend: Option<(&str, &str)>, pools: &[&str]) -> Request {
    let body = ForeignLoadBalancerBody {
        frontend: frontend.map(|(frontend, public_ip)| (frontend.into(), scene.public_ip(public_ip))),
        pools: names(pools),
        rules: vec![],
        tags: Tags::new(),
    };
    Request::with(Method::Put, scene.load_balancer(name), Body::ForeignLoadBalancer(body))
}

fn used_by(scene: &Scene, public_ip: &str) -> Option<ArmId> {
    scene.cloud.state().public_ips[&scene.public_ip(public_ip)].used_by.clone()
}

#[test]
fn it_needs_neither_frontend_nor_pool() {
    let mut scene = Scene::new();
    scene.done(&foreign(&scene, "theirs", None, &[]));
    let it = &scene.cloud.state().load_balancers[&scene.load_balancer("theirs")];
    assert_eq!((&it.public_ip, it.pools.len()), (&None, 0));
}

#[test]
fn its_frontend_and_pools_may_have_any_names() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("pip"));
    scene.done(&foreign(&scene, "theirs", Some(("front-1", "pip")), &["one", "two"]));
    let it = &scene.cloud.state().load_balancers[&scene.load_balancer("theirs")];
    assert_eq!(it.pools, names(&["one", "two"]));
    let user = scene.load_balancer("theirs").child("frontendIPConfigurations", "front-1");
    assert_eq!(used_by(&scene, "pip"), Some(user));
    let delete = scene.delete(&scene.public_ip("pip"));
    assert_eq!(scene.refused(&delete), refusal(400, "PublicIPAddressCannotBeDeleted"));
}

#[test]
fn a_renamed_frontend_keeps_its_public_ip() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("pip"));
    scene.done(&foreign(&scene, "theirs", Some(("old", "pip")), &[]));
    let renamed = foreign(&scene, "theirs", Some(("new", "pip")), &[]);
    let answer = scene.send(&renamed);
    // It changes something, so it takes a while.
    assert_eq!(scene.poll(&answer.operation.unwrap()), OperationState::Running);
    let user = scene.load_balancer("theirs").child("frontendIPConfigurations", "new");
    assert_eq!(used_by(&scene, "pip"), Some(user));
}

#[test]
fn a_frontend_that_is_left_out_sets_its_public_ip_free() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("pip"));
    scene.done(&foreign(&scene, "theirs", Some(("front", "pip")), &[]));
    scene.done(&foreign(&scene, "theirs", None, &[]));
    assert_eq!(used_by(&scene, "pip"), None);
    scene.done(&scene.delete(&scene.public_ip("pip")));
}

#[test]
fn the_public_ip_of_another_is_refused_whatever_the_frontend_is_called() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    // Its id begins with the id of the owner.
    let thief = foreign(&scene, "web2", Some(("frontend", "web-pip")), &[]);
    assert_eq!(scene.refused(&thief), refusal(400, "PublicIPAddressInUse"));
}

#[test]
fn any_of_its_pools_can_be_registered_and_then_not_be_left_out() {
    let mut scene = Scene::new();
    scene.done(&foreign(&scene, "theirs", None, &["one", "two"]));
    let pool = scene.load_balancer("theirs").child("backendAddressPools", "two");
    let service = Registration { pools: vec![pool.clone()], ..scene.inbound("web") };
    scene.done(&scene.services(vec![write(service.clone())]));

    let without = foreign(&scene, "theirs", None, &["one"]);
    assert_eq!(scene.refused(&without), refusal(400, "InUseBackendAddressPoolCannotBeDeleted"));
    // The other may go, and case does not matter.
    scene.done(&foreign(&scene, "theirs", None, &["TWO"]));
    // Nor can it vanish because we write the load balancer in our own way.
    scene.done(&scene.put_ip("theirs-pip"));
    let ours = scene.put_lb("theirs", &[]);
    assert_eq!(scene.refused(&ours), refusal(400, "InUseBackendAddressPoolCannotBeDeleted"));

    scene.done(&scene.services(vec![write(Registration { pools: vec![], ..service })]));
    scene.done(&without);
    let gone = Registration { pools: vec![pool], ..scene.inbound("web") };
    let request = scene.services(vec![write(gone)]);
    assert_eq!(scene.refused(&request), refusal(400, "InvalidResourceReference"));
}

#[test]
fn pools_have_names_and_each_its_own() {
    let mut scene = Scene::new();
    let twice = foreign(&scene, "theirs", None, &["one", "ONE"]);
    assert_eq!(scene.refused(&twice), refusal(400, "DuplicateResourceName"));
    let bad = foreign(&scene, "theirs", None, &["-"]);
    assert_eq!(scene.refused(&bad), refusal(400, "InvalidResourceName"));
}

#[test]
fn rules_share_a_backend_port_only_where_there_are_pools_to_choose_from() {
    let mut scene = Scene::new();
    let rules = vec![tcp(80, 8080), tcp(81, 8080)];
    let with = |pools: &[&str]| {
        let request = foreign(&scene, "theirs", None, pools);
        let Body::ForeignLoadBalancer(body) = request.body.clone() else { panic!() };
        let body = ForeignLoadBalancerBody { rules: rules.clone(), ..body };
        Request { body: Body::ForeignLoadBalancer(body), ..request }
    };
    let (one, two) = (with(&["a"]), with(&["a", "b"]));
    assert_eq!(scene.refused(&one), refusal(400, "RulesUseSameBackendPortProtocolAndPool"));
    scene.done(&two);
}

#[test]
fn ours_is_a_special_case_of_it() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    // The same load balancer in other words: nothing changes, so it is over at once.
    let request = foreign(&scene, "web", Some(("frontend", "web-pip")), &["web"]);
    let Body::ForeignLoadBalancer(body) = request.body.clone() else { panic!() };
    let body = ForeignLoadBalancerBody { rules: vec![tcp(80, 8080)], ..body };
    let same = Request { body: Body::ForeignLoadBalancer(body), ..request };
    let answer = scene.send(&same);
    assert_eq!(answer.status, 200);
    assert_eq!(scene.poll(&answer.operation.unwrap()), OperationState::Succeeded);
}
