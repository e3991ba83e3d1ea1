//! Permissions as sentences, asked for one by one, and the manifests held to them.

use super::*;
use crate::scripted::{Say, answering};
use crate::strings::{
    ADMISSION_POLICY, FINALIZER, PREDECESSOR_FINALIZER, PUBLISHED_IP, SERVICE_CONTROLLER_FINALIZER,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_missing_permission_reads_as_a_sentence() {
    let said: Vec<String> = needs(Some("sluice-system")).iter().map(ToString::to_string).collect();
    for sentence in [
        "cannot list services at the cluster scope",
        "cannot watch endpointslices.discovery.k8s.io at the cluster scope",
        "cannot patch services/status at the cluster scope",
        "cannot create events.events.k8s.io at the cluster scope",
        "cannot get namespaces \"kube-system\" at the cluster scope",
        "cannot update leases.coordination.k8s.io in namespace sluice-system",
        "cannot get leases.coordination.k8s.io \"cloud-controller-manager\" in namespace kube-system",
    ] {
        assert!(said.iter().any(|it| it == sentence), "{sentence} is not among {said:#?}");
    }
}

#[test]
fn the_controller_patches_no_pod_and_updates_deletes_and_reads_no_secret() {
    for need in needs(Some("ours")) {
        assert!(need.resource != "pods" || matches!(need.verb, "list" | "watch"), "{need}");
        assert!(need.verb != "delete" && need.resource != "secrets", "{need}");
        assert!(need.verb != "update" || need.resource == "leases", "{need}");
    }
}

#[test]
fn who_holds_no_election_needs_no_lease_of_its_own() {
    let without = needs(None);
    assert_eq!(needs(Some("ours")).len(), without.len() + 3);
    let leases: Vec<String> =
        without.iter().filter(|it| it.resource == "leases").map(Need::to_string).collect();
    assert_eq!(leases.len(), 1, "only somebody else's is looked at: {leases:?}");
}

#[test]
fn only_what_tells_people_or_is_looked_at_once_is_bearable() {
    let bearable: Vec<String> =
        needs(Some("ours")).iter().filter(|it| it.is_bearable()).map(Need::what).collect();
    assert_eq!(bearable, ["events.events.k8s.io", "events.events.k8s.io", "leases.coordination.k8s.io"]);
}

#[tokio::test]
async fn every_permission_is_asked_for_and_the_refused_ones_come_back_in_order() {
    let (client, heard) = answering(|heard| {
        let asked = &heard.body["spec"]["resourceAttributes"];
        let allowed = !(asked["verb"] == "patch" && asked["resource"] == "services");
        Say::Json(201, json!({"status": {"allowed": allowed}}))
    });
    let needs = needs(Some("ours"));
    let missing = missing(&client, &needs).await.unwrap();
    let said: Vec<String> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        ["cannot patch services at the cluster scope", "cannot patch services/status at the cluster scope"]
    );
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), needs.len());
    let lease = heard.iter().find(|it| it.body["spec"]["resourceAttributes"]["verb"] == "update").unwrap();
    assert_eq!(
        lease.body["spec"]["resourceAttributes"],
        json!({"verb": "update", "group": "coordination.k8s.io", "resource": "leases",
               "subresource": "", "namespace": "ours", "name": ""})
    );
}

#[tokio::test]
async fn an_answer_that_is_none_is_not_taken_for_a_permission() {
    let (client, _) = answering(|_| Say::Json(201, json!({"status": {}})));
    assert!(missing(&client, &needs(Some("ours"))).await.is_err());
    let (client, _) = answering(|_| Say::status(500, "InternalError", "no"));
    assert!(missing(&client, &needs(Some("ours"))).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn questions_are_asked_side_by_side_but_not_all_at_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let (client, _) = answering(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Say::Hang
    });
    let needs = needs(Some("ours"));
    assert!(needs.len() > QUESTIONS_MAX);
    assert!(missing(&client, &needs).await.is_err());
    assert_eq!(asked.load(Ordering::SeqCst), QUESTIONS_MAX);
}

/// The documents of a manifest.
fn documents(text: &str) -> Vec<Value> {
    serde_yaml_ng::Deserializer::from_str(text)
        .map(|document| serde::Deserialize::deserialize(document).unwrap())
        .collect()
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|it| it.as_str().unwrap().to_string()).collect()
}

/// What the roles of a manifest grant, each permission as the sentence that would miss it.
fn granted(text: &str) -> BTreeSet<String> {
    let mut granted = BTreeSet::new();
    for role in documents(text) {
        if !matches!(role["kind"].as_str(), Some("ClusterRole" | "Role")) {
            continue;
        }
        for rule in role["rules"].as_array().unwrap() {
            let names = words(&rule["resourceNames"]);
            for (group, resource) in words(&rule["apiGroups"])
                .iter()
                .flat_map(|group| words(&rule["resources"]).into_iter().map(move |it| (group.clone(), it)))
            {
                for verb in words(&rule["verbs"]) {
                    let (resource, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
                    let need = Need {
                        verb: verb.leak(),
                        group: group.clone().leak(),
                        resource: resource.to_string().leak(),
                        subresource: subresource.to_string().leak(),
                        namespace: role["metadata"]["namespace"].as_str().map(str::to_string),
                        name: names.first().cloned(),
                    };
                    assert!(names.len() <= 1, "{need}");
                    granted.insert(need.to_string());
                }
            }
        }
    }
    granted
}

#[test]
fn the_manifest_grants_exactly_what_we_need() {
    let needed: BTreeSet<String> = needs(Some("sluice-system")).iter().map(Need::to_string).collect();
    assert_eq!(granted(include_str!("../../../../deploy/sluice.yaml")), needed);
}

#[test]
fn the_policy_names_our_account_our_finalizers_and_our_annotation() {
    let manifest = documents(include_str!("../../../../deploy/sluice.yaml"));
    let of = |kind: &str| manifest.iter().find(|it| it["kind"] == kind).unwrap();
    let account = &of("ServiceAccount")["metadata"];
    let (namespace, name) = (account["namespace"].as_str().unwrap(), account["name"].as_str().unwrap());
    let policy = of("ValidatingAdmissionPolicy");
    let condition = policy["spec"]["matchConditions"][0]["expression"].as_str().unwrap();
    assert_eq!(condition, format!("request.userInfo.username == 'system:serviceaccount:{namespace}:{name}'"));
    // A patch of the status takes labels and finalizers along.
    let rules = &policy["spec"]["matchConstraints"]["resourceRules"][0];
    assert_eq!(rules["resources"], json!(["services", "services/status"]));
    let validations = policy["spec"]["validations"].to_string();
    for finalizer in [FINALIZER, SERVICE_CONTROLLER_FINALIZER, PREDECESSOR_FINALIZER] {
        assert!(validations.contains(&format!("'{finalizer}'")), "{finalizer}");
    }
    assert!(validations.contains(&format!("'{PUBLISHED_IP}'")));
    assert_eq!(policy["metadata"]["name"], ADMISSION_POLICY);
    assert_eq!(of("ClusterRoleBinding")["subjects"], of("RoleBinding")["subjects"]);
    assert_eq!(of("ClusterRoleBinding")["subjects"][0]["name"], name);
}
