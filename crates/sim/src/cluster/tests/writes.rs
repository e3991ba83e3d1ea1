//! What happens to the controller's writes.

use std::net::IpAddr;
use std::time::Duration;

use sluice_model::effect::{Existence, KubeOutcome};
use sluice_model::kube::{Concern, Condition, ConditionKind, ObjectRef};
use sluice_model::reason::Reason;

use super::{at, name, reference, web, with_web};
use crate::cluster::objects::{FOREIGN_FINALIZER, INHERITED_FINALIZER, OUR_FINALIZER};
use crate::cluster::{Cluster, KubeWrite, WriteFault};

const OURS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 18, 0, 1));
const THEIRS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 7));

fn status(object: &ObjectRef, ingress: Option<IpAddr>, based_on: Option<u64>) -> KubeWrite {
    KubeWrite::WriteStatus {
        object: object.clone(),
        ingress,
        retract: None,
        conditions: vec![Condition::new(
            ConditionKind::Serving,
            ingress.is_some(),
            Reason::Provisioned,
            Concern::Resources,
        )],
        based_on,
    }
}

fn has_ours(cluster: &Cluster, object: &ObjectRef) -> bool {
    cluster.service(&object.name).is_some_and(|stored| stored.meta.finalizers.contains(OUR_FINALIZER))
}

#[test]
fn a_status_based_on_an_old_version_conflicts_and_changes_nothing() {
    let (mut cluster, object) = with_web();
    let seen = cluster.service(&object.name).unwrap().meta.version;
    cluster.touch_service(&object.name);
    let before = cluster.service(&object.name).unwrap().clone();
    assert_eq!(
        cluster.write(&status(&object, Some(OURS), Some(seen)), WriteFault::None),
        KubeOutcome::Conflict
    );
    assert_eq!(*cluster.service(&object.name).unwrap(), before);
    let fresh = Some(before.meta.version);
    assert!(matches!(
        cluster.write(&status(&object, Some(OURS), fresh), WriteFault::None),
        KubeOutcome::Done { .. }
    ));
    assert_eq!(cluster.service(&object.name).unwrap().body.ingress, [OURS]);
    assert_eq!(cluster.service(&object.name).unwrap().body.published, Some(OURS));
}

#[test]
fn only_our_own_ip_is_retracted() {
    let (mut cluster, object) = with_web();
    cluster.add_ingress(&object.name, THEIRS);
    cluster.write(&status(&object, Some(OURS), None), WriteFault::None);
    assert_eq!(cluster.service(&object.name).unwrap().body.ingress, [THEIRS, OURS]);
    let retract = KubeWrite::WriteStatus {
        object: object.clone(),
        ingress: None,
        retract: Some(OURS),
        conditions: Vec::new(),
        based_on: None,
    };
    cluster.write(&retract, WriteFault::None);
    let body = &cluster.service(&object.name).unwrap().body;
    assert_eq!((&*body.ingress, body.published), (&[THEIRS][..], None));
}

#[test]
fn a_write_for_a_predecessor_never_touches_its_successor() {
    let (mut cluster, old) = with_web();
    cluster.delete_service(&old.name);
    cluster.create_service(&old.name, web());
    let new = reference(&cluster, "shop/web");
    assert_ne!(old.uid, new.uid);
    let before = cluster.service(&new.name).unwrap().clone();
    for write in [
        KubeWrite::AddFinalizer(old.clone()),
        KubeWrite::RemoveFinalizer(old.clone()),
        status(&old, Some(OURS), Some(before.meta.version)),
    ] {
        for fault in [WriteFault::None, WriteFault::Conflict] {
            assert_eq!(cluster.write(&write, fault), KubeOutcome::Gone);
        }
    }
    assert_eq!(*cluster.service(&new.name).unwrap(), before);
    assert_eq!(cluster.exists(&old, false), Existence::Gone);
    assert_eq!(cluster.exists(&new, false), Existence::Exists);
    assert_eq!(cluster.exists(&new, true), Existence::Unclear);
}

#[test]
fn a_write_that_changes_nothing_makes_no_new_version() {
    let (mut cluster, object) = with_web();
    for write in [KubeWrite::AddFinalizer(object.clone()), status(&object, Some(OURS), None)] {
        assert!(matches!(cluster.write(&write, WriteFault::None), KubeOutcome::Done { .. }));
        let version = cluster.version();
        assert!(matches!(cluster.write(&write, WriteFault::None), KubeOutcome::Done { .. }));
        assert_eq!(cluster.version(), version);
    }
}

#[test]
fn a_deleted_service_stays_until_its_last_finalizer_goes() {
    let (mut cluster, object) = with_web();
    cluster.add_finalizer(&object, WriteFault::None);
    cluster.hold_service(&object.name, FOREIGN_FINALIZER);
    cluster.hold_service(&object.name, INHERITED_FINALIZER);
    cluster.delete_service(&object.name);
    assert!(cluster.service(&object.name).unwrap().meta.deletion_seconds.is_some());
    // Ours takes the one that we inherited along, but not that of somebody else.
    assert!(matches!(cluster.remove_finalizer(&object, WriteFault::None), KubeOutcome::Done { .. }));
    let left = &cluster.service(&object.name).unwrap().meta.finalizers;
    assert_eq!(left.iter().map(|it| &**it).collect::<Vec<_>>(), [FOREIGN_FINALIZER]);
    assert!(cluster.release_service(&object.name, FOREIGN_FINALIZER));
    assert_eq!(cluster.service(&object.name), None);
}

#[test]
fn a_service_without_finalizers_is_gone_as_soon_as_it_is_deleted() {
    let (mut cluster, object) = with_web();
    assert!(cluster.delete_service(&object.name));
    assert_eq!(cluster.service(&object.name), None);
}

#[test]
fn a_service_that_is_being_deleted_gets_no_new_finalizer() {
    let (mut cluster, object) = with_web();
    cluster.hold_service(&object.name, FOREIGN_FINALIZER);
    cluster.delete_service(&object.name);
    assert!(matches!(cluster.add_finalizer(&object, WriteFault::None), KubeOutcome::Refused(_)));
    assert!(!has_ours(&cluster, &object));
}

#[test]
fn without_an_answer_a_write_may_be_done_or_not_or_done_later() {
    for (fault, done_now, done_later) in [
        (WriteFault::AnswerLost, true, true),
        (WriteFault::RequestLost, false, false),
        (WriteFault::LandsLater(Duration::from_secs(20)), false, true),
    ] {
        let (mut cluster, object) = with_web();
        assert_eq!(cluster.add_finalizer(&object, fault), KubeOutcome::Unavailable);
        assert_eq!(has_ours(&cluster, &object), done_now, "{fault:?}");
        cluster.set_time(at(19));
        assert_eq!(has_ours(&cluster, &object), done_now, "{fault:?}");
        if !done_now && done_later {
            assert_eq!(cluster.next_landing(), Some(at(20)));
        }
        cluster.set_time(at(20));
        assert_eq!(has_ours(&cluster, &object), done_later, "{fault:?}");
        assert_eq!(cluster.next_landing(), None);
    }
}

#[test]
fn what_is_refused_is_not_written() {
    for fault in [WriteFault::Webhook, WriteFault::Forbidden, WriteFault::Conflict] {
        let (mut cluster, object) = with_web();
        let version = cluster.version();
        let outcome = cluster.add_finalizer(&object, fault);
        assert!(matches!(outcome, KubeOutcome::Refused(_) | KubeOutcome::Conflict), "{outcome:?}");
        assert_eq!(cluster.version(), version);
    }
}

#[test]
fn a_dropped_namespace_ignores_finalizers_and_leaves_the_others_alone() {
    let (mut cluster, object) = with_web();
    cluster.create_service(&name("blog/web"), web());
    cluster.add_finalizer(&object, WriteFault::None);
    assert!(cluster.drop_namespace("shop"));
    assert_eq!(cluster.exists(&object, false), Existence::Gone);
    assert!(cluster.service(&name("blog/web")).is_some());
    assert!(!cluster.drop_namespace("shop"));
}

#[test]
fn time_does_not_go_backwards() {
    let (mut cluster, _) = with_web();
    cluster.set_time(at(20));
    cluster.set_time(at(5));
    assert_eq!(cluster.now(), at(20));
}
