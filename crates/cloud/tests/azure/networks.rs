//! Virtual networks with the subnets in their body.

use sluice_cloud::{Config, Fault, InlineSubnet, Outcome, Quota, Tamper};
use sluice_model::azure::*;
use sluice_model::call::*;

use crate::support::*;

fn network(scene: &Scene) -> ArmId {
    scene.scope.virtual_network_id()
}

fn subnet(scene: &Scene, name: &str) -> ArmId {
    network(scene).child("subnets", name)
}

fn inline(subnets: &[(&str, &str)]) -> Vec<InlineSubnet> {
    let one = |&(name, rest): &(&str, &str)| InlineSubnet {
        name: name.into(),
        body: SubnetBody { gateway: None, rest: rest.into() },
    };
    subnets.iter().map(one).collect()
}

fn put(scene: &mut Scene, id: &ArmId, subnets: Option<&[InlineSubnet]>) -> Outcome {
    let request = Request::with(Method::Put, id.clone(), Body::Container);
    scene.cloud.put_network(scene.now, &request, subnets, None)
}

fn answer(outcome: Outcome) -> Answer {
    match outcome.reply {
        Reply::Answered(answer) => answer,
        reply => panic!("no answer: {reply:?}"),
    }
}

/// A network that no gateway is in, with two subnets.
fn quiet(scene: &mut Scene) -> ArmId {
    let id = ArmId::new(network(scene).as_str().replace("/vnet", "/quiet"));
    let made = answer(put(scene, &id, Some(&inline(&[("a", "1"), ("b", "2")]))));
    assert_eq!(made.status, 201);
    scene.wait(60);
    id
}

fn names_in(scene: &Scene, network: &ArmId) -> Vec<String> {
    let subnets = scene.cloud.state().subnets.keys();
    subnets
        .filter(|id| id.parent("virtualNetworks").as_ref() == Some(network))
        .map(|id| id.name().into())
        .collect()
}

#[test]
fn a_network_and_its_subnets_are_one_operation() {
    let mut scene = Scene::new();
    let id = ArmId::new(network(&scene).as_str().replace("/vnet", "/new"));
    let made = answer(put(&mut scene, &id, Some(&inline(&[("a", "1"), ("b", "2")]))));
    assert_eq!((made.status, &made.payload), (201, &Payload::Container(id.clone())));
    let a = id.child("subnets", "a");
    for written in [&id, &a] {
        assert_eq!(scene.cloud.provisioning_of(written), Some(Provisioning::Updating), "{written}");
        assert_eq!(scene.cloud.at_work(written), Some(Provisioning::Updating));
    }
    assert_eq!(scene.cloud.operations_running(), 1);
    scene.wait(2);
    assert_eq!(scene.poll(&made.operation.unwrap()), OperationState::Succeeded);
    for written in [&id, &a] {
        assert_eq!(scene.cloud.provisioning_of(written), Some(Provisioning::Succeeded), "{written}");
    }
    assert_eq!(names_in(&scene, &id), ["a", "b"]);
    assert_eq!(&*scene.cloud.state().subnets[&a].rest, "1");
}

#[test]
fn subnets_that_are_not_named_go_and_those_that_are_stay() {
    let mut scene = Scene::new();
    let id = quiet(&mut scene);
    answer(put(&mut scene, &id, Some(&inline(&[("B", "2"), ("c", "3")]))));
    assert_eq!(names_in(&scene, &id), ["b", "c"]);
    assert_eq!(scene.cloud.provisioning_of(&id.child("subnets", "a")), None);
    scene.wait(60);
    answer(put(&mut scene, &id, Some(&[])));
    assert_eq!(names_in(&scene, &id), [] as [&str; 0]);
}

#[test]
fn a_body_without_subnets_leaves_them_as_they_are() {
    let mut scene = Scene::new();
    let id = quiet(&mut scene);
    let before = scene.cloud.state().subnets.clone();
    let again = answer(put(&mut scene, &id, None));
    assert_eq!(again.status, 201, "as recorded, also where the network was there");
    assert_eq!(scene.poll(&again.operation.unwrap()), OperationState::Succeeded);
    assert_eq!(scene.cloud.state().subnets, before);
}

#[test]
fn a_put_that_changes_no_subnet_is_over_at_once_and_one_that_does_is_not() {
    let mut scene = Scene::new();
    let id = quiet(&mut scene);
    let same = answer(put(&mut scene, &id, Some(&inline(&[("a", "1"), ("b", "2")]))));
    assert_eq!(scene.poll(&same.operation.unwrap()), OperationState::Succeeded);
    assert_eq!(scene.cloud.provisioning_of(&id), Some(Provisioning::Succeeded));
    let other = answer(put(&mut scene, &id, Some(&inline(&[("a", "1"), ("b", "9")]))));
    assert_eq!(scene.poll(&other.operation.unwrap()), OperationState::Running);
    let state = |name: &str| scene.cloud.provisioning_of(&id.child("subnets", name));
    assert_eq!((state("a"), state("b")), (Some(Provisioning::Succeeded), Some(Provisioning::Updating)));
}

#[test]
fn what_the_model_does_not_see_can_still_take_its_time() {
    let mut scene = Scene::new();
    let id = quiet(&mut scene);
    scene.cloud.set_unseen_change(true);
    let again = answer(put(&mut scene, &id, None));
    assert_eq!(scene.poll(&again.operation.unwrap()), OperationState::Running);
    assert_eq!(scene.cloud.provisioning_of(&id), Some(Provisioning::Updating));
}

#[test]
fn a_subnet_in_use_cannot_be_left_out_and_then_nothing_happens() {
    let mut scene = Scene::new();
    let id = network(&scene);
    let before = scene.cloud.state().clone();
    let outcome = put(&mut scene, &id, Some(&inline(&[("new", "1")])));
    assert_eq!(code(&answer(outcome)), refusal(400, "InUseSubnetCannotBeDeleted"));
    assert_eq!(*scene.cloud.state(), before);
}

#[test]
fn a_subnet_in_the_body_is_attached_by_the_same_rules_as_on_its_own() {
    let mut scene = Scene::new();
    let id = network(&scene);
    let with = |gateway: ArmId| {
        vec![InlineSubnet {
            name: "pods".into(),
            body: SubnetBody { gateway: Some(gateway), rest: "10.0.0.0/16".into() },
        }]
    };
    let stray = with(scene.scope.resource("serviceGateways", "none"));
    let refused = answer(put(&mut scene, &id, Some(&stray)));
    assert_eq!(code(&refused), refusal(400, "InvalidResourceReference"));
    let good = with(scene.gateway());
    answer(put(&mut scene, &id, Some(&good)));
    assert_eq!(scene.cloud.state().subnets[&subnet(&scene, "pods")].gateway, Some(scene.gateway()));
    // Now the gateway is in use by it.
    scene.wait(60);
    let delete = scene.delete(&scene.gateway());
    assert_eq!(scene.refused(&delete), refusal(400, "InUseServiceGatewayCannotBeDeleted"));
}

#[test]
fn subnets_in_the_body_have_names_and_each_its_own() {
    let mut scene = Scene::new();
    let id = quiet(&mut scene);
    let twice = answer(put(&mut scene, &id, Some(&inline(&[("a", "1"), ("A", "1")]))));
    assert_eq!(code(&twice), refusal(400, "DuplicateResourceName"));
    let bad = answer(put(&mut scene, &id, Some(&inline(&[("-", "1")]))));
    assert_eq!(code(&bad), refusal(400, "InvalidResourceName"));
}

#[test]
fn a_network_and_its_subnets_are_changed_one_at_a_time() {
    let mut scene = Scene::new();
    let id = quiet(&mut scene);
    let put_subnet = |name: &str| {
        let body = SubnetBody { gateway: None, rest: "x".into() };
        Request::with(Method::Put, id.child("subnets", name), Body::Subnet(body))
    };
    let (a, b) = (put_subnet("a"), put_subnet("b"));
    let other = refusal(409, "AnotherOperationInProgress");
    assert_eq!(scene.send(&a).status, 200);
    assert_eq!(scene.refused(&b), other);
    assert_eq!(code(&answer(put(&mut scene, &id, None))), other);
    assert_eq!(scene.refused(&a), refusal(429, "RetryableErrorDueToAnotherOperation"));
    scene.wait(2);
    assert_eq!(scene.send(&b).status, 200);
    scene.wait(2);
    scene.cloud.set_unseen_change(true);
    assert_eq!(answer(put(&mut scene, &id, None)).status, 201);
    assert_eq!(scene.refused(&b), other);
    // Another network has nothing to do with it.
    let elsewhere = Request { target: subnet(&scene, "b"), ..b };
    assert_eq!(scene.send(&elsewhere).status, 201);
}

#[test]
fn an_operation_that_fails_leaves_network_and_written_subnets_failed_until_they_are_written_again() {
    let mut scene = Scene::new();
    let id = quiet(&mut scene);
    let request = Request::with(Method::Put, id.clone(), Body::Container);
    let fault = Fault::OperationFails { code: "InternalServerError".into() };
    let changed = inline(&[("a", "9"), ("b", "2")]);
    scene.cloud.put_network(scene.now, &request, Some(&changed), Some(&fault));
    scene.wait(60);
    let (a, b) = (id.child("subnets", "a"), id.child("subnets", "b"));
    let failed = Some(Provisioning::Failed);
    assert_eq!((scene.cloud.provisioning_of(&id), scene.cloud.provisioning_of(&a)), (failed, failed));
    assert_eq!(scene.cloud.provisioning_of(&b), Some(Provisioning::Succeeded), "it was not written");
    let again = answer(put(&mut scene, &id, Some(&changed)));
    assert_eq!(scene.poll(&again.operation.unwrap()), OperationState::Running);
    scene.wait(60);
    for id in [&id, &a] {
        assert_eq!(scene.cloud.provisioning_of(id), Some(Provisioning::Succeeded), "{id}");
    }
}

#[test]
fn a_subnet_that_somebody_deletes_takes_only_its_own_operation_along() {
    let mut scene = Scene::new();
    let id = quiet(&mut scene);
    let body = Body::Subnet(SubnetBody { gateway: None, rest: "x".into() });
    let put = Request::with(Method::Put, id.child("subnets", "a"), body);
    let operation = scene.send(&put).operation.unwrap();
    scene.tamper(Tamper::DeleteSubnet(id.child("subnets", "b")));
    assert_eq!(scene.poll(&operation), OperationState::Running);
    scene.tamper(Tamper::DeleteSubnet(id.child("subnets", "a")));
    assert!(matches!(scene.poll(&operation), OperationState::Canceled(_)));
    // The network is free again.
    assert_eq!(scene.send(&put).status, 201);
}

#[test]
fn faults_strike_here_as_everywhere() {
    let mut scene = Scene::new();
    let id = quiet(&mut scene);
    let request = Request::with(Method::Put, id.clone(), Body::Container);
    let before = scene.cloud.state().clone();
    let fewer = inline(&[("a", "1")]);
    let lie = scene.cloud.put_network(scene.now, &request, Some(&fewer), Some(&Fault::AnsweredButNotApplied));
    assert_eq!(answer(lie).status, 201);
    assert_eq!(*scene.cloud.state(), before);
    let lost = scene.cloud.put_network(scene.now, &request, Some(&fewer), Some(&Fault::AppliedButLost));
    assert!(matches!(lost.reply, Reply::Lost(_)));
    assert_eq!(names_in(&scene, &id), ["a"]);
}

#[test]
fn a_subnet_says_how_its_own_write_stands() {
    let mut scene = Scene::new();
    let id = subnet(&scene, "pods");
    let body = SubnetBody { gateway: None, rest: "other".into() };
    scene.send(&Request::with(Method::Put, id.clone(), Body::Subnet(body)));
    assert_eq!(scene.cloud.provisioning_of(&id), Some(Provisioning::Updating));
    assert_eq!(scene.cloud.provisioning_of(&network(&scene)), Some(Provisioning::Succeeded));
    scene.wait(2);
    assert_eq!(scene.cloud.provisioning_of(&id), Some(Provisioning::Succeeded));
    let network = quiet(&mut scene);
    scene.send(&scene.delete(&network));
    assert_eq!(scene.cloud.provisioning_of(&network), Some(Provisioning::Deleting));
    scene.wait(60);
    assert_eq!(scene.cloud.provisioning_of(&network), None);
}

#[test]
fn a_network_holds_so_many_subnets_and_a_subscription_so_many_networks() {
    let quota = Quota { virtual_networks: 2, subnets_per_network: 2, ..Quota::default() };
    let mut scene = Scene::with(Config { buckets: None, quota, ..Config::default() });
    let id = quiet(&mut scene);
    let over = refusal(400, "QuotaExceeded");
    let third = answer(put(&mut scene, &id, Some(&inline(&[("a", ""), ("b", ""), ("c", "")]))));
    assert_eq!(code(&third), over);
    let body = Body::Subnet(SubnetBody { gateway: None, rest: "".into() });
    let alone = Request::with(Method::Put, id.child("subnets", "c"), body);
    assert_eq!(scene.refused(&alone), over);
    let more = ArmId::new(format!("{id}-2"));
    assert_eq!(code(&answer(put(&mut scene, &more, None))), over);
    // Another subscription counts for itself.
    let theirs = ArmId::new(more.as_str().replace("11111111-", "99999999-"));
    let group = theirs.parent("resourceGroups").unwrap();
    scene.tamper(Tamper::Put { id: group, body: Body::Container });
    assert_eq!(answer(put(&mut scene, &theirs, None)).status, 201);
}

#[test]
fn tags_of_a_network_are_not_kept_but_its_version_moves_on() {
    let mut scene = Scene::new();
    let id = network(&scene);
    let before = scene.cloud.state().virtual_networks[&id].clone();
    let patch = Request::with(Method::PatchTags, id.clone(), Body::Tags(Tags::new()));
    let answer = scene.send(&patch);
    assert_eq!((answer.status, answer.payload), (200, Payload::Container(id.clone())));
    assert_ne!(scene.cloud.state().virtual_networks[&id], before);
}
