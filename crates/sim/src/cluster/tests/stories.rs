//! Stories and dice.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use sluice_model::Time;
use sluice_model::kube::ObjectRef;

use crate::cluster::objects::OUR_FINALIZER;
use crate::cluster::stories::{UserAction, apply, named, random_action};
use crate::cluster::{Cluster, KubeFault, KubeWrite, WriteFault};
use crate::rng::Rng;

/// A controller that does the least: finalizer and status on what is ours, and off what goes.
fn serve(cluster: &mut Cluster) {
    let all: Vec<_> = cluster.services().cloned().collect();
    for stored in all {
        let object = ObjectRef { uid: stored.meta.uid, name: stored.meta.name.clone() };
        if stored.body.is_ours() && stored.meta.deletion_seconds.is_none() {
            cluster.add_finalizer(&object, WriteFault::None);
            let ingress = Some(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)));
            let status = KubeWrite::WriteStatus {
                object,
                ingress,
                retract: None,
                conditions: Vec::new(),
                based_on: None,
            };
            cluster.write(&status, WriteFault::None);
        } else if stored.meta.finalizers.contains(OUR_FINALIZER) {
            cluster.remove_finalizer(&object, WriteFault::None);
        }
    }
}

#[test]
fn every_step_of_every_story_does_something() {
    for story in named() {
        let mut cluster = Cluster::new();
        let mut now = Time::ZERO;
        for (wait_ms, action) in &story.steps {
            // What is quicker than a second is quicker than the controller.
            if *wait_ms >= 1_000 {
                serve(&mut cluster);
            }
            now = now + Duration::from_millis(*wait_ms);
            cluster.set_time(now);
            let changed = apply(&mut cluster, action);
            assert!(changed || matches!(action, UserAction::CollectGarbage), "{}: {action}", story.name);
        }
    }
}

#[test]
fn stories_have_names_of_their_own_that_read_like_sentences() {
    let names: BTreeSet<_> = named().iter().map(|story| story.name).collect();
    assert_eq!(names.len(), named().len());
    assert!(names.len() >= 25, "{}", names.len());
    assert!(names.iter().all(|name| name.split(' ').count() >= 5), "{names:?}");
}

#[test]
fn every_story_leaves_something_to_agree_about() {
    // What must exist in the end differs from story to story; where nothing must, the story says why.
    let empty: Vec<_> = named()
        .into_iter()
        .filter(|story| {
            let mut cluster = Cluster::new();
            for (_, action) in &story.steps {
                serve(&mut cluster);
                apply(&mut cluster, action);
            }
            let desired = cluster.desired(&BTreeSet::new());
            desired.inbound.is_empty() && desired.outbound.is_empty()
        })
        .map(|story| story.name)
        .collect();
    assert_eq!(
        empty,
        [
            "a service toggles its type in the middle of its teardown and ends as ClusterIP",
            "a service is deleted while it is being made",
            "a deletion waits for the finalizer of somebody else",
            "a service with only an inherited finalizer is released when nothing in Azure is tagged for it",
            "a public IP that is tagged for a service keeps its inherited finalizer until it is deleted",
            "our finalizer is stripped from a service that is being deleted",
            "our finalizer is stripped from a service that lives on",
            "a terminating pod keeps its egress until its containers have ended",
        ]
    );
}

#[test]
fn dice_play_every_kind_of_action_and_every_fault_of_people() {
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    let mut happened = crate::cluster::faults::FaultCounts::default();
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let mut cluster = Cluster::new();
        for step in 0..200 {
            cluster.set_time(Time::from_millis(step * 700));
            let action = random_action(&mut rng, &cluster);
            let line = action.to_string();
            assert!(!line.contains('\n') && line.len() > 5, "{line:?}");
            let kind = format!("{action:?}");
            let kind = kind.split([' ', '{']).next().unwrap_or_default().to_string();
            if apply(&mut cluster, &action) {
                *kinds.entry(kind).or_default() += 1;
            }
            serve(&mut cluster);
        }
        happened.merge(cluster.happened());
    }
    assert_eq!(kinds.len(), 29, "{kinds:?}");
    for fault in [
        KubeFault::NameReused,
        KubeFault::AddressReused,
        KubeFault::NodeChanged,
        KubeFault::LabelReturned,
        KubeFault::TypeReturned,
        KubeFault::SlicesOverlap,
        KubeFault::FinalizerStripped,
        KubeFault::NamespaceDropped,
        KubeFault::OddAddresses,
    ] {
        assert!(happened.of(fault) >= 10, "{}: {:?}", fault.label(), happened);
    }
}

#[test]
fn actions_read_like_what_they_do() {
    let lines: Vec<String> = named()
        .into_iter()
        .filter(|story| story.name.starts_with("endpoints move between"))
        .flat_map(|story| story.steps)
        .map(|(_, action)| action.to_string())
        .collect();
    assert_eq!(
        lines,
        [
            "put node node-a at 10.0.0.1,fd01::1",
            "put node node-b at 10.0.0.2,fd01::2",
            "create service shop/web LoadBalancer tcp-80 tcp 80→8080",
            "put slice shop/web-0 of shop/web by uid IPv4 [10.244.0.4@node-a 10.244.0.5@node-b]",
            "put slice shop/web-1 of shop/web by uid IPv4 [10.244.0.6@node-a]",
            "move endpoint 10.244.0.4 from shop/web-0 to shop/web-1, adding first",
            "move endpoint 10.244.0.6 from shop/web-1 to shop/web-0, removing first",
            "put slice shop/web-2 of shop/web by uid IPv4 [10.244.0.5@node-b 10.244.0.6@node-a]",
            "delete slice shop/web-0",
        ]
    );
}
