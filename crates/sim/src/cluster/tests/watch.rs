//! What an informer sees of the cluster.

use std::time::Duration;

use sluice_model::Time;
use sluice_model::event::{Event, Relist};
use sluice_model::kube::{Kind, Phase};

use super::mirror::{Mirror, Process, kind_of};
use super::{at, name, reference, web, with_web};
use crate::cluster::faults::{FaultCounts, KubeFault};
use crate::cluster::objects::PodRecord;
use crate::cluster::stories::{apply, random_action};
use crate::cluster::{Cluster, KubeFaults};
use crate::rng::Rng;

fn blue_pod() -> PodRecord {
    PodRecord {
        egress: Some("blue".into()),
        node: Some("node-a".into()),
        ips: vec!["10.244.0.4".into()],
        host_ips: vec!["10.0.0.1".into()],
        phase: Phase::Running,
        host_network: false,
    }
}

fn words(heard: &[(Time, Event)]) -> Vec<String> {
    let word = |event: &Event| match event {
        Event::Relisted { objects, .. } => format!("list of {:?}", kind_of(objects)),
        Event::ServiceApplied(it) => format!("{} at {}", it.name, it.version),
        Event::ServiceDeleted { name, .. } => format!("{name} gone"),
        Event::PodApplied(it) => format!("{} with {:?}", it.name, it.egress.as_deref().unwrap_or("nothing")),
        Event::PodDeleted { .. } => "pod gone".to_string(),
        other => format!("{other:?}"),
    };
    heard.iter().map(|(_, event)| word(event)).collect()
}

/// The version of an object of that kind.
fn version_of(event: &Event, kind: Kind) -> Option<u64> {
    match (event, kind) {
        (Event::ServiceApplied(it), Kind::Service) => Some(it.version),
        (Event::SliceApplied(it), Kind::Slice) => Some(it.version),
        (Event::NodeApplied(it), Kind::Node) => Some(it.version),
        (Event::PodApplied(it), Kind::Pod) => Some(it.version),
        _ => None,
    }
}

/// A process that has heard the first lists.
fn watching(cluster: &Cluster, faults: &mut KubeFaults) -> Process {
    let mut process = Process::start(Time::ZERO, &Rng::new(1));
    process.run(Time::ZERO, at(1), cluster, faults);
    assert_eq!(process.heard.len(), 4);
    process.heard.clear();
    process
}

#[test]
fn every_kind_is_listed_before_it_is_watched() {
    let (mut cluster, _) = with_web();
    let mut process = Process::start(Time::ZERO, &Rng::new(1));
    process.run(Time::ZERO, at(1), &cluster, &mut KubeFaults::none());
    cluster.set_time(at(1));
    cluster.touch_service(&name("shop/web"));
    process.run(at(1), at(2), &cluster, &mut KubeFaults::none());
    let mut heard = words(&process.heard);
    assert_eq!(heard.pop().as_deref(), Some("shop/web at 102"));
    heard.sort();
    assert_eq!(heard, ["list of Node", "list of Pod", "list of Service", "list of Slice"]);
    assert_eq!(process.informer.last_seen(&reference(&cluster, "shop/web")), Some(102));
}

#[test]
fn a_pod_that_leaves_the_selector_arrives_as_deleted() {
    let mut cluster = Cluster::new();
    let mut faults = KubeFaults::none();
    let mut process = watching(&cluster, &mut faults);
    let pod = name("ops/job-0");
    cluster.create_pod(&pod, PodRecord { egress: None, ..blue_pod() });
    cluster.label_pod(&pod, Some("blue".into()));
    cluster.label_pod(&pod, None);
    cluster.set_phase(&pod, Phase::Finished);
    cluster.delete_pod(&pod);
    process.run(at(1), at(2), &cluster, &mut faults);
    assert_eq!(words(&process.heard), ["ops/job-0 with \"blue\"", "pod gone"]);
    assert!(matches!(cluster.list(Kind::Pod).objects, Relist::Pods(all) if all.is_empty()));
}

#[test]
fn a_watch_that_is_too_old_is_replaced_by_a_list() {
    let (mut cluster, object) = with_web();
    let mut faults = KubeFaults::none();
    let mut process = watching(&cluster, &mut faults);
    cluster.delete_service(&object.name);
    cluster.create_service(&name("shop/api"), web());
    cluster.compact(1);
    process.run(at(1), at(10), &cluster, &mut faults);
    assert_eq!(words(&process.heard), ["list of Service"]);
    assert_eq!(faults.injected().of(KubeFault::HistoryGone), 1);
    // The deleted Service was seen only by its absence.
    assert_eq!(faults.injected().of(KubeFault::SeenByAbsence), 1);
    assert_eq!(process.reader.mirror, Mirror::of(&cluster));
}

#[test]
fn the_history_is_bounded() {
    let (mut cluster, object) = with_web();
    let begin = cluster.version();
    for _ in 0..1000 {
        cluster.touch_service(&object.name);
    }
    assert!(cluster.watch(Kind::Service, begin).is_err());
    assert_eq!(cluster.watch(Kind::Service, begin + 900).unwrap().len(), 100);
}

#[test]
fn a_stale_list_is_what_was_true_before_the_last_changes() {
    let (mut cluster, object) = with_web();
    let past = cluster.list(Kind::Service);
    cluster.touch_service(&object.name);
    cluster.create_service(&name("shop/api"), web());
    cluster.delete_service(&object.name);
    let stale = cluster.stale_list(Kind::Service, 3).unwrap();
    assert_eq!((stale.version, stale.objects), (past.version, past.objects));
    assert_eq!(cluster.stale_list(Kind::Service, 100).unwrap().members, []);
    cluster.compact(0);
    assert!(cluster.stale_list(Kind::Service, 1).is_none());
}

#[test]
fn a_refused_list_is_followed_by_others_until_one_is_new_enough() {
    let (mut cluster, object) = with_web();
    let mut faults = KubeFaults::none();
    let mut process = watching(&cluster, &mut faults);
    for _ in 0..20 {
        cluster.touch_service(&object.name);
    }
    process.run(at(1), at(2), &cluster, &mut faults);
    process.heard.clear();
    faults.set(KubeFault::StaleList, 1000);
    process.informer.relist(at(2), Kind::Service);
    process.run(at(2), at(60), &cluster, &mut faults);
    assert!(process.reader.refused > 5, "{}", process.reader.refused);
    assert!(
        words(&process.heard).iter().all(|word| word == "list of Service"),
        "nothing stands on a refused list"
    );
    assert_eq!(process.settle(at(60), &cluster, &mut faults), Mirror::of(&cluster));
}

#[test]
fn an_unknowing_process_that_gets_a_stale_list_watches_on_from_there() {
    let (mut cluster, object) = with_web();
    cluster.delete_service(&object.name);
    cluster.create_service(&name("shop/api"), web());
    let mut faults = KubeFaults::none().with(KubeFault::StaleList, 1000);
    let mut process = Process::start(Time::ZERO, &Rng::new(5));
    process.run(Time::ZERO, at(5), &cluster, &mut faults);
    assert!(faults.injected().of(KubeFault::StaleList) > 0);
    assert_eq!(process.reader.refused, 0);
    assert_eq!(process.reader.mirror, Mirror::of(&cluster));
}

#[test]
fn nothing_is_heard_during_an_outage_and_everything_after_it() {
    let (mut cluster, object) = with_web();
    let mut faults = KubeFaults::none();
    let mut process = watching(&cluster, &mut faults);
    faults.begin_outage(at(1));
    cluster.touch_service(&object.name);
    process.run(at(1), at(1800), &cluster, &mut faults);
    assert!(process.heard.is_empty());
    process.run(at(1800), at(1900), &cluster, &mut faults);
    assert!(process.heard.iter().all(|(when, _)| *when >= at(1) + KubeFaults::OUTAGE));
    assert_eq!(process.reader.mirror, Mirror::of(&cluster));
}

#[test]
fn kinds_overtake_each_other_and_one_kind_stays_in_order() {
    let mut overtaken = false;
    for seed in 0..20 {
        let mut cluster = Cluster::new();
        let mut faults = KubeFaults::none();
        let mut process = Process::start(Time::ZERO, &Rng::new(seed));
        process.run(Time::ZERO, at(1), &cluster, &mut faults);
        process.heard.clear();
        faults.set(KubeFault::KindsReordered, 300);
        for number in 0..5 {
            cluster.create_service(&name(&format!("shop/web-{number}")), web());
            cluster.put_node(&format!("node-{number}"), &["10.0.0.1".into()]);
        }
        process.run(at(1), at(60), &cluster, &mut faults);
        let versions = |kind: Kind| -> Vec<u64> {
            process.heard.iter().filter_map(|(_, event)| version_of(event, kind)).collect()
        };
        for kind in [Kind::Service, Kind::Node] {
            assert_eq!(versions(kind).len(), 5);
            assert!(versions(kind).is_sorted());
        }
        let any = |event| version_of(event, Kind::Service).or_else(|| version_of(event, Kind::Node));
        let heard: Vec<u64> = process.heard.iter().filter_map(|(_, event)| any(event)).collect();
        overtaken |= !heard.is_sorted();
    }
    assert!(overtaken);
}

/// Plays dice under faults, with a restart now and then; the last process, its end and all counts.
fn play(seed: u64, mut faults: KubeFaults) -> (Process, Cluster, Mirror, FaultCounts) {
    let rng = Rng::new(seed);
    let (mut dice, mut pace) = (rng.fork("story"), rng.fork("pace"));
    let mut cluster = Cluster::new();
    let mut now = Time::ZERO;
    let mut process = Process::start(now, &rng.fork("process-0"));
    for step in 0..150 {
        let action = random_action(&mut dice, &cluster);
        apply(&mut cluster, &action);
        if pace.chance(20) {
            process = Process::start(now, &rng.fork(&format!("process-{step}")));
        }
        faults.roll_outage(now, &mut pace);
        let wait = if pace.chance(600) { pace.between(0, 50) } else { pace.between(0, 20_000) };
        let next = now + Duration::from_millis(wait);
        process.run(now, next, &cluster, &mut faults);
        now = next;
        cluster.set_time(now);
    }
    let mirror = process.settle(now, &cluster, &mut faults);
    let mut counts = *faults.injected();
    counts.merge(cluster.happened());
    (process, cluster, mirror, counts)
}

#[test]
fn once_faults_are_calm_the_whole_truth_has_been_told() {
    let mut counts = FaultCounts::default();
    for seed in 0..300 {
        let mut rng = Rng::new(seed).fork("faults");
        let faults = if seed % 10 == 0 { KubeFaults::storm() } else { KubeFaults::random(&mut rng) };
        let (_, cluster, mirror, counted) = play(seed, faults);
        assert_eq!(mirror, Mirror::of(&cluster), "seed {seed}");
        counts.merge(&counted);
    }
    // Without a controller nobody writes, so nobody is refused, stripped of a finalizer or judged by a lease.
    let by_controller = [KubeFault::WriteRefused, KubeFault::FinalizerStripped, KubeFault::LeaseSkew];
    for fault in KubeFault::ALL.into_iter().filter(|fault| !by_controller.contains(fault)) {
        assert!(counts.of(fault) > 0, "{} never happened: {:?}", fault.label(), counts);
    }
}

#[test]
fn without_faults_nothing_is_told_twice_or_refused() {
    for seed in 0..20 {
        let (process, cluster, mirror, counts) = play(seed, KubeFaults::none());
        assert_eq!(mirror, Mirror::of(&cluster));
        for fault in KubeFault::ALL.into_iter().filter(|fault| fault.is_rolled()) {
            // The story itself forgets history now and then.
            assert!(counts.of(fault) == 0 || fault == KubeFault::HistoryGone, "{}", fault.label());
        }
        assert_eq!(process.reader.refused, 0);
        for kind in Kind::ALL {
            let versions: Vec<u64> =
                process.heard.iter().filter_map(|(_, it)| version_of(it, kind)).collect();
            assert!(versions.is_sorted_by(|a, b| a < b), "{kind:?}: {versions:?}");
        }
    }
}

#[test]
fn the_same_seed_tells_the_same_events_at_the_same_times() {
    for seed in [3, 77] {
        let (first, _, _, counts) = play(seed, KubeFaults::storm());
        let (again, _, _, counts_again) = play(seed, KubeFaults::storm());
        assert_eq!(first.heard, again.heard);
        assert_eq!(counts, counts_again);
        let (other, ..) = play(seed + 1, KubeFaults::storm());
        assert_ne!(first.heard, other.heard);
    }
}
