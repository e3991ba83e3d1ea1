//! The elector's rules one by one, and the API server's answers in its words.

use super::*;
use crate::scripted::{Say, Script};
use k8s_openapi::jiff::Timestamp;
use sluice_model::Time;

mod annotated;
mod simulated;

fn at(seconds: f64) -> Time {
    Time::from_millis((seconds * 1000.0) as u64)
}

fn wall() -> Timestamp {
    "2026-11-16T10:00:00Z".parse().unwrap()
}

fn elector(name: &str) -> Elector {
    Elector::new(name, Timing::default()).unwrap()
}

/// A Lease as the API server has it.
fn lease(holder: &str, version: u64) -> Box<Lease> {
    let mut lease = json!({
        "metadata": {"name": "sluice", "namespace": "ours", "uid": "u", "resourceVersion": version.to_string(),
                     "labels": {"kept": "yes"}},
        "spec": {"leaseDurationSeconds": 15, "leaseTransitions": 3,
                 "renewTime": "2020-01-01T00:00:00.000000Z"},
    });
    if !holder.is_empty() {
        lease["spec"]["holderIdentity"] = json!(holder);
    }
    Box::new(serde_json::from_value(lease).unwrap())
}

fn request(next: Next) -> Request {
    match next {
        Next::Ask(request) => request,
        Next::Wait(until) => panic!("waits until {until}"),
    }
}

fn waits(next: Next) -> Time {
    match next {
        Next::Wait(until) => until,
        Next::Ask(request) => panic!("asks {request:?}"),
    }
}

fn replaced(next: Next) -> Box<Lease> {
    match request(next) {
        Request::Replace(lease) => lease,
        other => panic!("{other:?}"),
    }
}

/// As the API server stores what was sent.
fn stored(mut sent: Box<Lease>, version: u64) -> Answer {
    sent.metadata.resource_version = Some(version.to_string());
    Answer::Written(sent)
}

/// Leads since the given moment, with the Lease in version 2.
fn leader(name: &str, since: Time) -> Elector {
    let mut elector = elector(name);
    assert_eq!(request(elector.next(since, wall())), Request::Read);
    elector.heard(since, Answer::Found(lease("", 1)));
    let sent = replaced(elector.next(since, wall()));
    elector.heard(since, stored(sent, 2));
    assert!(elector.leads(since));
    elector
}

#[test]
fn spans_that_do_not_fit_are_refused() {
    let seconds = Duration::from_secs;
    let timing = |lease, renew_deadline, retry| Timing {
        lease: seconds(lease),
        renew_deadline: seconds(renew_deadline),
        retry: seconds(retry),
    };
    assert!(Elector::new("a", timing(15, 10, 2)).is_ok());
    for bad in [timing(10, 10, 2), timing(15, 2, 2), timing(15, 10, 0), timing(5, 10, 2)] {
        assert_eq!(Elector::new("a", bad).unwrap_err(), BadElection::Timing(BadTiming::Order(bad)));
    }
    assert_eq!(Elector::new("", Timing::default()).unwrap_err(), BadElection::NoIdentity);
}

#[test]
fn the_first_process_makes_the_lease_and_acts_from_before_its_request() {
    let mut elector = elector("a");
    assert_eq!(request(elector.next(at(1.0), wall())), Request::Read);
    elector.heard(at(1.5), Answer::Missing);
    let Request::Create(sent) = request(elector.next(at(2.0), wall())) else { panic!() };
    let spec = sent.spec.clone().unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("a"));
    assert_eq!(spec.lease_duration_seconds, Some(15));
    assert_eq!(spec.lease_transitions, Some(0));
    assert!(!elector.leads(at(2.0)), "not before the answer");
    elector.heard(at(5.0), stored(sent, 7));
    assert_eq!(elector.may_act_until(), Some(at(12.0)), "10 s after it was sent, not after the answer");
    assert!(elector.leads(at(11.9)) && !elector.leads(at(12.0)));
    let sent = replaced(elector.next(at(5.0), wall()));
    assert_eq!(sent.metadata.resource_version.as_deref(), Some("7"));
}

#[test]
fn a_leader_renews_every_retry_and_a_lost_answer_is_no_renewal() {
    let mut elector = leader("a", at(0.0));
    assert_eq!(waits(elector.next(at(0.5), wall())), at(2.0));
    let sent = replaced(elector.next(at(2.0), wall()));
    assert_eq!(sent.spec.as_ref().unwrap().lease_transitions, Some(4), "taken once, renewed since");
    assert_eq!(sent.metadata.labels.as_ref().unwrap()["kept"], "yes");
    elector.heard(at(5.3), Answer::Failed(Trouble::Unavailable("lost".into())));
    assert_eq!(elector.may_act_until(), Some(at(10.0)));
    // It may have been stored, so the next step is to look; then it is renewed over what is there.
    assert_eq!(request(elector.next(at(5.3), wall())), Request::Read);
    let mut found = sent;
    found.metadata.resource_version = Some("3".into());
    elector.heard(at(5.4), Answer::Found(found));
    assert_eq!(elector.may_act_until(), Some(at(10.0)), "a look is no renewal either");
    let sent = replaced(elector.next(at(5.4), wall()));
    assert_eq!(sent.metadata.resource_version.as_deref(), Some("3"));
    elector.heard(at(5.5), stored(sent, 4));
    assert_eq!(elector.may_act_until(), Some(at(15.4)));
}

#[test]
fn a_foreign_lease_is_taken_only_after_it_was_seen_unchanged_for_its_whole_length() {
    let mut elector = elector("b");
    // The times in it are six years old; that says nothing.
    let mut now = 100.0;
    let mut reads = 0;
    let taken = loop {
        match request(elector.next(at(now), wall())) {
            Request::Read => elector.heard(at(now), Answer::Found(lease("a", 5))),
            Request::Replace(sent) => break sent,
            other @ Request::Create(_) => panic!("{other:?}"),
        }
        reads += 1;
        if let Next::Wait(until) = elector.clone().next(at(now), wall()) {
            assert!(until <= at(now + 2.0));
            now = until.as_millis() as f64 / 1000.0;
        }
    };
    assert_eq!(now, 115.0);
    assert_eq!(reads, 9, "at 100, every 2 s, and at 115");
    let spec = taken.spec.as_ref().unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("b"), Some(4)));
    assert_eq!(spec.acquire_time, spec.renew_time);
}

#[test]
fn any_change_begins_the_wait_anew() {
    let mut elector = elector("b");
    for (now, version) in [(0.0, 5), (13.0, 5), (15.0, 6), (29.9, 6)] {
        assert_eq!(request(elector.next(at(now), wall())), Request::Read, "{now}");
        elector.heard(at(now), Answer::Found(lease("a", version)));
    }
    assert_eq!(waits(elector.next(at(29.9), wall())), at(30.0));
    assert_eq!(request(elector.next(at(30.0), wall())), Request::Read);
    elector.heard(at(30.0), Answer::Found(lease("a", 6)));
    assert_eq!(replaced(elector.next(at(30.0), wall())).metadata.resource_version.as_deref(), Some("6"));
}

#[test]
fn another_holders_lease_is_honored_for_its_duration_up_to_300_s() {
    let cases = [(40, 40), (5, 15), (-3, 15), (299, 299), (300, 300), (600, 300), (i32::MAX, 300)];
    for (claimed, honored) in cases {
        let mut elector = elector("b");
        let mut foreign = lease("a", 5);
        foreign.spec.as_mut().unwrap().lease_duration_seconds = Some(claimed);
        let end = Time::from_millis(honored * 1000);
        let just_before = Time::from_millis(honored * 1000 - 1);
        for now in [at(0.0), just_before] {
            assert_eq!(request(elector.next(now, wall())), Request::Read, "{claimed} s, at {now}");
            elector.heard(now, Answer::Found(foreign.clone()));
        }
        assert_eq!(waits(elector.next(just_before, wall())), end, "{claimed} s");
        assert_eq!(request(elector.next(end, wall())), Request::Read, "{claimed} s");
        elector.heard(end, Answer::Found(foreign));
        replaced(elector.next(end, wall()));
    }
}

#[test]
fn a_lease_longer_than_other_replicas_wait_is_refused() {
    let timing = |lease| Timing { lease, ..Timing::default() };
    assert!(Elector::new("a", timing(Duration::from_secs(300))).is_ok());
    for lease in [Duration::from_millis(300_001), Duration::from_secs(600)] {
        let refused = Elector::new("a", timing(lease)).unwrap_err();
        assert_eq!(refused, BadElection::Timing(BadTiming::LeaseTooLong(lease)));
    }
    assert_eq!(
        BadElection::from(BadTiming::LeaseTooLong(Duration::from_secs(600))).to_string(),
        "the lease duration is 600s; it must be at most 300s, since other replicas take over after that time"
    );
}

#[test]
fn a_leader_with_the_longest_lease_stops_before_a_standby_takes_over() {
    let margin = Duration::from_secs(5);
    let timing = Timing { lease: LEASE_MAX, renew_deadline: LEASE_MAX - margin, ..Timing::default() };
    let mut leader = Elector::new("a", timing).unwrap();
    assert_eq!(request(leader.next(at(0.0), wall())), Request::Read);
    leader.heard(at(0.0), Answer::Missing);
    let Request::Create(mut held) = request(leader.next(at(0.0), wall())) else { panic!() };
    held.metadata.resource_version = Some("7".into());
    leader.heard(at(0.0), Answer::Written(held.clone()));

    // From here on the leader does not reach the API server any more.
    let mut standby = elector("b");
    let mut now = at(0.0);
    loop {
        match standby.next(now, wall()) {
            Next::Wait(until) => now = until,
            Next::Ask(Request::Read) => standby.heard(now, Answer::Found(held.clone())),
            Next::Ask(Request::Replace(_)) => break,
            Next::Ask(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(leader.may_act_until().map(|until| until + margin), Some(now));
}

#[test]
fn a_takeover_that_comes_too_late_waits_again() {
    let mut elector = elector("b");
    for now in [0.0, 15.0] {
        assert_eq!(request(elector.next(at(now), wall())), Request::Read);
        elector.heard(at(now), Answer::Found(lease("a", 5)));
    }
    replaced(elector.next(at(15.0), wall()));
    elector.heard(at(15.1), Answer::Conflict);
    assert!(!elector.leads(at(15.1)));
    assert_eq!(waits(elector.next(at(15.1), wall())), at(17.1));
    assert_eq!(request(elector.next(at(17.1), wall())), Request::Read);
    elector.heard(at(17.1), Answer::Found(lease("a", 6)));
    assert_eq!(waits(elector.next(at(17.1), wall())), at(19.1));
}

#[test]
fn a_leader_in_conflict_looks_at_once_but_does_not_run_in_circles() {
    let mut elector = leader("a", at(0.0));
    replaced(elector.next(at(2.0), wall()));
    elector.heard(at(2.1), Answer::Conflict);
    assert_eq!(request(elector.next(at(2.1), wall())), Request::Read);
    elector.heard(at(2.2), Answer::Found(lease("a", 9)));
    replaced(elector.next(at(2.2), wall()));
    elector.heard(at(2.3), Answer::Conflict);
    assert_eq!(waits(elector.next(at(2.3), wall())), at(4.3));
    assert_eq!(elector.may_act_until(), Some(at(10.0)));
}

#[test]
fn a_lease_that_was_taken_from_us_is_seen_as_foreign() {
    let mut elector = leader("a", at(0.0));
    replaced(elector.next(at(40.0), wall()));
    elector.heard(at(40.0), Answer::Conflict);
    assert_eq!(waits(elector.next(at(40.0), wall())), at(42.0), "nothing is led, so nothing is hurried");
    assert_eq!(request(elector.next(at(42.0), wall())), Request::Read);
    elector.heard(at(42.0), Answer::Found(lease("b", 9)));
    assert_eq!(elector.holder(), Some("b"));
    assert_eq!(waits(elector.next(at(42.0), wall())), at(44.0));
}

#[test]
fn a_write_that_changed_nothing_is_no_renewal() {
    let mut elector = leader("a", at(0.0));
    let sent = replaced(elector.next(at(2.0), wall()));
    elector.heard(at(2.1), stored(sent, 2));
    assert_eq!(elector.may_act_until(), Some(at(10.0)));
    assert_eq!(waits(elector.next(at(2.1), wall())), at(4.1));
}

#[test]
fn a_clock_that_stands_still_still_makes_every_renewal_differ() {
    let mut elector = leader("a", at(0.0));
    let first = replaced(elector.next(at(2.0), wall()));
    elector.heard(at(2.0), stored(first.clone(), 3));
    let second = replaced(elector.next(at(4.0), wall()));
    assert_ne!(first.spec.unwrap().renew_time, second.spec.unwrap().renew_time);
}

#[test]
fn a_lease_that_vanished_is_made_again_at_once_only_by_its_holder() {
    let mut standby = elector("b");
    assert_eq!(request(standby.next(at(0.0), wall())), Request::Read);
    standby.heard(at(0.0), Answer::Found(lease("a", 5)));
    assert_eq!(request(standby.next(at(2.0), wall())), Request::Read);
    standby.heard(at(2.0), Answer::Missing);
    assert_eq!(request(standby.next(at(16.9), wall())), Request::Read);
    standby.heard(at(16.9), Answer::Missing);
    assert_eq!(request(standby.next(at(17.0), wall())), Request::Read);
    standby.heard(at(17.0), Answer::Missing);
    assert!(matches!(request(standby.next(at(17.0), wall())), Request::Create(_)));

    let mut leader = leader("a", at(0.0));
    replaced(leader.next(at(2.0), wall()));
    leader.heard(at(2.0), Answer::Conflict);
    assert_eq!(request(leader.next(at(2.0), wall())), Request::Read);
    leader.heard(at(2.0), Answer::Missing);
    assert!(matches!(request(leader.next(at(2.0), wall())), Request::Create(_)));
}

#[test]
fn a_clock_that_goes_back_is_not_followed() {
    let mut elector = leader("a", at(50.0));
    let sent = replaced(elector.next(at(52.0), wall()));
    elector.heard(at(3.0), stored(sent, 3));
    assert_eq!(elector.may_act_until(), Some(at(62.0)));
    assert_eq!(waits(elector.next(at(3.0), wall())), at(54.0));
}

#[test]
fn a_request_whose_end_was_never_told_counts_as_failed() {
    let mut elector = leader("a", at(0.0));
    replaced(elector.next(at(2.0), wall()));
    assert_eq!(request(elector.next(at(4.0), wall())), Request::Read);
    assert_eq!(elector.may_act_until(), Some(at(10.0)));
}

#[test]
fn only_what_is_ours_is_released_and_nothing_is_asked_for_afterwards() {
    let mut leader = leader("a", at(0.0));
    let Some(Request::Replace(free)) = leader.release(wall()) else { panic!() };
    assert_eq!(free.spec.as_ref().unwrap().holder_identity, None);
    assert_eq!(free.metadata.resource_version.as_deref(), Some("2"));
    assert_eq!(leader.may_act_until(), None);
    assert_eq!(waits(leader.next(at(99.0), wall())), Time::NEVER);

    let mut standby = elector("b");
    assert_eq!(request(standby.next(at(0.0), wall())), Request::Read);
    standby.heard(at(0.0), Answer::Found(lease("a", 5)));
    assert_eq!(standby.release(wall()), None);

    // What was released is taken without a wait.
    let mut next = elector("c");
    assert_eq!(request(next.next(at(0.0), wall())), Request::Read);
    let mut released = free;
    released.metadata.resource_version = Some("6".into());
    next.heard(at(0.0), Answer::Found(released));
    replaced(next.next(at(0.0), wall()));
}

const ALL: &str = "/apis/coordination.k8s.io/v1/namespaces/ours/leases";

#[tokio::test]
async fn the_api_servers_answers_are_told_in_the_electors_words() {
    let get = "GET /apis/coordination.k8s.io/v1/namespaces/ours/leases/sluice";
    let put = "PUT /apis/coordination.k8s.io/v1/namespaces/ours/leases/sluice";
    let post = "POST /apis/coordination.k8s.io/v1/namespaces/ours/leases";
    assert!(post.ends_with(ALL));
    let place = Place { namespace: "ours".into(), name: "sluice".into() };
    let create = Request::Create(lease("a", 1));
    let replace = Request::Replace(lease("a", 1));
    let conflict = || Say::status(409, "Conflict", "changed");
    let missing = || Say::status(404, "NotFound", "gone");
    let forbidden = || {
        let words = "leases is forbidden: User \"u\" cannot update resource \"leases\" in API group";
        Say::status(403, "Forbidden", words)
    };
    for (request, line, say, expected) in [
        (&Request::Read, get, Say::ok(json!(lease("a", 1))), Some(Answer::Found(lease("a", 1)))),
        (&Request::Read, get, missing(), Some(Answer::Missing)),
        (&Request::Read, get, Say::Break, None),
        (&create, post, Say::Json(201, json!(lease("a", 2))), Some(Answer::Written(lease("a", 2)))),
        (&create, post, conflict(), Some(Answer::Conflict)),
        // The namespace is not there.
        (&create, post, missing(), None),
        (&replace, put, Say::ok(json!(lease("a", 2))), Some(Answer::Written(lease("a", 2)))),
        (&replace, put, conflict(), Some(Answer::Conflict)),
        (&replace, put, missing(), Some(Answer::Conflict)),
        (&replace, put, forbidden(), None),
    ] {
        let (client, script) = Script::of([(line, say)]);
        let answer = ask(&client, &place, request, Duration::from_secs(3)).await;
        match expected {
            Some(expected) => assert_eq!(answer, expected),
            None => assert!(matches!(answer, Answer::Failed(_)), "{answer:?}"),
        }
        let heard = script.played().remove(0);
        match line {
            _ if line == post => {
                assert_eq!(heard.body["metadata"], json!({"name": "sluice", "namespace": "ours"}))
            }
            _ if line == put => assert_eq!(heard.body["metadata"]["resourceVersion"], "1"),
            _ => assert_eq!(heard.query, ""),
        }
    }
    let (client, _) = Script::of([(put, forbidden())]);
    let answer = ask(&client, &place, &replace, Duration::from_secs(3)).await;
    let Answer::Failed(trouble) = answer else { panic!("{answer:?}") };
    assert!(trouble.to_string().starts_with("update leases.coordination.k8s.io denied"), "{trouble}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_not_waited_for_beyond_the_limit() {
    let (client, _) =
        Script::of([("GET /apis/coordination.k8s.io/v1/namespaces/ours/leases/sluice", Say::Hang)]);
    let place = Place { namespace: "ours".into(), name: "sluice".into() };
    let answer = ask(&client, &place, &Request::Read, Timing::default().call_limit()).await;
    assert!(matches!(answer, Answer::Failed(Trouble::Unavailable(_))), "{answer:?}");
}
