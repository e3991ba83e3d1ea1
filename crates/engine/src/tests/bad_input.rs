//! Nothing that can be told to the engine makes it panic, lose count or act on nonsense.

use std::format;
use std::string::{String, ToString};
use std::time::Duration;
use std::vec;
use std::vec::Vec;

use expect_test::expect;
use sluice_model::azure::Registration;
use sluice_model::effect::{Existence, KubeOutcome, Listing};
use sluice_model::event::{Relist, Wait};
use sluice_model::kube::{Endpoint, NodeObject, Slice, SliceOwner};
use sluice_model::plan::{PlanReport, StepResult};
use sluice_model::{Action, Effect, EffectId, Event, ObjectName, Outcome, Time};

use super::story::{Story, check, told};

/// Tells the engine and checks that it still adds up.
fn tell(story: &mut Story, event: Event) -> Vec<Effect> {
    let effects = story.engine.handle(story.now, event);
    story.engine.recount().expect("the engine's counts agree");
    assert_eq!(story.engine.counters().internal_errors, 0);
    effects
}

fn every_outcome(now: Time) -> Vec<Outcome> {
    vec![
        Outcome::Plan(PlanReport { done: vec![], failure: None }),
        Outcome::Locations { failure: None, next_at: now },
        Outcome::Listed { began: now, result: Ok(Listing::PublicIps(vec![])) },
        Outcome::Kube(KubeOutcome::Done { version: 1 }),
        Outcome::Existence(Existence::Gone),
    ]
}

#[test]
fn odd_identities_are_refused_and_the_refusal_is_kept() {
    let mut story = told("");
    let long = "a".repeat(74);
    let odd = [
        "",
        " ",
        "-a",
        "a-",
        "a/b",
        "a b",
        "ü",
        "\0",
        "../..",
        &long,
        "0A1B2C3D-0000-4000-8000-00000000000f",
    ];
    for name in odd {
        let before = story.engine.counters().refusals;
        assert_eq!(story.engine.add_service(story.now, name), [], "{name:?}");
        assert_eq!(story.engine.delete_service(story.now, name), [], "{name:?}");
        assert_eq!(story.engine.counters().refusals, before + 2, "{name:?}");
        let refusal = story.engine.refusals().pop().expect("kept");
        assert!(refusal.what.contains(&format!("{name:?}")), "{refusal:?}");
    }
    assert_eq!(story.engine.services(), []);
}

#[test]
fn the_default_outbound_service_can_be_asked_for_by_its_name_in_any_case() {
    let mut story = told("");
    assert_eq!(story.engine.add_service(story.now, "Default-NATGW").len(), 1);
    assert_eq!(story.engine.services().len(), 1);
    story.engine.delete_service(story.now, "default-natgw");
    assert!(!story.engine.services()[0].wanted);
}

#[test]
fn the_end_of_an_effect_that_nobody_asked_for_changes_nothing() {
    let mut story = told("service web applied\n#1 done");
    let before = story.engine.services();
    for outcome in every_outcome(story.now) {
        let effects = tell(&mut story, Event::EffectFinished { id: EffectId(9_999), outcome });
        assert_eq!(effects, []);
    }
    tell(&mut story, Event::SlotWanted(EffectId(9_999)));
    tell(&mut story, Event::SlotReleased { id: EffectId(9_999), wait: Wait::SharedCommit });
    assert_eq!(story.engine.services(), before);
    assert_eq!(story.engine.counters().refusals, 5);
}

#[test]
fn an_outcome_of_another_kind_is_refused_and_the_right_one_still_counts() {
    let mut story = told("hold status\nhold lists\nservice gone applied\nservice web applied nofinalizer");
    story.play("node node-a 192.168.0.1\nendpoints gone 10.0.0.4@node-a\n#2 done\nservice gone vanishes");
    story.play("services relisted\ntick 1100");
    // In flight by now: status, finalizer, addresses, a question and listings.
    let waiting: Vec<(EffectId, Action)> = story.in_flight();
    assert!(waiting.len() >= 5, "{waiting:?}");
    for (id, action) in &waiting {
        for outcome in every_outcome(story.now) {
            let fits = matches!(
                (action, &outcome),
                (Action::RunPlan(_), Outcome::Plan(_))
                    | (Action::SyncLocations(_), Outcome::Locations { .. })
                    | (Action::List(_), Outcome::Listed { .. })
                    | (Action::ConfirmGone(_), Outcome::Existence(_))
                    | (
                        Action::AddFinalizer(_) | Action::RemoveFinalizer(_) | Action::WriteStatus { .. },
                        Outcome::Kube(_)
                    )
            );
            if !fits {
                let refusals = story.engine.counters().refusals;
                assert_eq!(tell(&mut story, Event::EffectFinished { id: *id, outcome }), []);
                assert_eq!(story.engine.counters().refusals, refusals + 1);
            }
        }
    }
    let sync = waiting.iter().find(|(_, action)| matches!(action, Action::SyncLocations(_)));
    let (id, _) = sync.expect("addresses are on their way");
    let outcome = Outcome::Locations { failure: None, next_at: story.now };
    tell(&mut story, Event::EffectFinished { id: *id, outcome });
    let view = story.engine.explain(&story.key("gone")).expect("known").view;
    assert_eq!(view.addresses_programmed, 1);
}

#[test]
fn a_report_with_too_few_too_many_or_wrong_results_is_survived() {
    for done in [vec![], vec![StepResult::Absent; 99], vec![StepResult::Done; 3], vec![StepResult::Absent]] {
        let mut story = told("service web applied");
        let (id, _) = story.in_flight().pop().expect("a plan");
        let report = PlanReport { done: done.clone(), failure: None };
        tell(&mut story, Event::EffectFinished { id, outcome: Outcome::Plan(report) });
        let view = story.engine.explain(&story.key("web")).expect("known").view;
        assert_eq!(view.public_ip, None, "{done:?} has given no address");
    }
}

#[test]
fn a_listing_of_another_kind_or_with_everything_twice_is_survived() {
    let mut story = told("hold lists\nservice web known\nazure has web\nlead");
    let twice = |registrations: &[Registration]| [registrations, registrations].concat();
    let registrations: Vec<Registration> = story.azure.registrations.values().cloned().collect();
    for (id, _) in story.in_flight() {
        let result = Ok(Listing::Registrations(twice(&registrations)));
        let outcome = Outcome::Listed { began: Time::NEVER, result };
        tell(&mut story, Event::EffectFinished { id, outcome });
    }
    let waits = story.engine.explain(&story.key("web")).expect("known");
    assert!(!waits.waits_for.is_empty(), "five kinds have not been listed: {waits:?}");
}

#[test]
fn the_same_fact_twice_asks_for_nothing_the_second_time() {
    let mut story = told(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         #1 done
         #2 done
         #3 done
         #4 done
         #5 done",
    );
    let before = (story.shown(), story.engine.services());
    story.play(
        "node node-a 192.168.0.1
         endpoints web applied again
         service web applied again
         pod p1 applied again
         services relisted
         slices relisted
         nodes relisted
         pods relisted
         egress green released
         service web deleted uid=77
         pod p1 deleted uid=77
         node node-z deleted",
    );
    assert_eq!((story.shown(), story.engine.services()), before);
}

#[test]
fn the_same_end_twice_is_refused_the_second_time() {
    let mut story = told("service web applied");
    let (id, _) = story.in_flight().pop().expect("a plan");
    story.play("#1 done");
    let before = story.engine.services();
    for outcome in every_outcome(story.now) {
        assert_eq!(tell(&mut story, Event::EffectFinished { id, outcome }), []);
    }
    assert_eq!(story.engine.services(), before);
}

#[test]
fn time_that_goes_backwards_is_not_believed() {
    let mut story = told("service web applied\ntick 100\n#1 failed QuotaExceeded 400");
    let hold = story.engine.explain(&story.key("web")).expect("known").view.hold.expect("parked");
    let now = story.now;
    story.now = Time::ZERO;
    for _ in 0..3 {
        assert_eq!(tell(&mut story, Event::Tick), []);
    }
    story.play("service api applied");
    let since = story.engine.explain(&story.key("api")).expect("known").view.since;
    assert!(since >= now, "{since} is before {now}");
    let still = story.engine.explain(&story.key("web")).expect("known").view.hold;
    assert_eq!(still, Some(hold));
    story.now = Time::NEVER;
    tell(&mut story, Event::Tick);
}

#[test]
fn a_slice_of_ten_thousand_endpoints_goes_out_in_bounded_requests() {
    let mut story = told("node node-a 192.168.0.1\nservice web applied\n#1 done");
    let endpoints: Vec<Endpoint> = (0..10_000u32)
        .map(|n| Endpoint {
            address: [10, 7, (n >> 8) as u8, n as u8].into(),
            node: Some("node-a".into()),
            ready: true,
            serving: true,
            terminating: false,
        })
        .collect();
    // Every endpoint stands there twice; it counts once.
    let slice = Slice {
        name: ObjectName::new("shop", "web-1"),
        version: 1_000,
        owner: SliceOwner::Name("web".into()),
        ports: vec![],
        endpoints: [endpoints.clone(), endpoints].concat(),
        malformed: vec!["web.example".into(); 10_000],
    };
    let mut effects = tell(&mut story, Event::SliceApplied(slice));
    let mut sent = 0;
    let mut requests = 0;
    while let Some((id, batch)) = effects.iter().find_map(|effect| match &effect.action {
        Action::SyncLocations(batch) => Some((effect.id, batch.clone())),
        _ => None,
    }) {
        let addresses: usize = batch.iter().map(|update| update.addresses.len()).sum();
        assert!(addresses <= 1_000, "{addresses} addresses in one request");
        sent += addresses;
        requests += 1;
        let outcome = Outcome::Locations { failure: None, next_at: story.now };
        effects = tell(&mut story, Event::EffectFinished { id, outcome });
    }
    assert_eq!((sent, requests), (10_000, 10));
}

#[test]
fn empty_and_enormous_objects_are_survived() {
    let mut story = told("service web applied\n#1 done");
    let nobody = NodeObject { name: "".into(), version: 0, internal_ips: vec![] };
    tell(&mut story, Event::NodeApplied(nobody));
    tell(&mut story, Event::NodeDeleted("".into()));
    let all: Vec<NodeObject> = (0..5_000u32)
        .map(|n| NodeObject {
            name: n.to_string().into(),
            version: u64::MAX,
            internal_ips: vec![[192, 168, (n >> 8) as u8, n as u8].into(); 20],
        })
        .collect();
    tell(&mut story, Event::Relisted { version: u64::MAX, objects: Relist::Nodes(all) });
    tell(&mut story, Event::Relisted { version: u64::MAX, objects: Relist::Nodes(vec![]) });
    tell(&mut story, Event::SliceDeleted(ObjectName::new("", "")));
    story.now = story.now + Duration::from_secs(u64::MAX / 2);
    tell(&mut story, Event::Tick);
    let name = String::from_utf8(vec![b'x'; 100_000]).expect("text");
    assert_eq!(story.engine.add_service(story.now, &name), []);
}

#[test]
fn an_engine_leads_once() {
    let mut story = told("service web applied");
    for event in [Event::LeadershipGained, Event::LeadershipLost, Event::LeadershipGained] {
        assert_eq!(tell(&mut story, event), []);
    }
    story.play("service api applied\ntick 4000");
    assert_eq!(story.engine.next_deadline(), None);
    assert_eq!(story.shown().lines().count(), 1, "{}", story.shown());
    assert_eq!(story.engine.counters().refusals, 2);
}

#[test]
fn unusable_addresses_are_warned_about_at_their_service_once_it_is_ours() {
    check(
        "show notices
         node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a malformed=web.example
         endpoints web malformed=web.example
         service web applied clusterip nofinalizer
         service web applied",
        expect![[r#"
            warn web: InvalidSpec: Ignored invalid addresses in EndpointSlice shop/web-1: web.example. Correct the EndpointSlice
            #1 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
fn a_warning_names_at_most_ten_unusable_addresses() {
    let odd: Vec<String> = (1..=1000).map(|at| format!("127.0.{}.{}@node-a", at / 250, at % 250)).collect();
    let story = format!("show notices\nservice web applied\n#1 done\nendpoints web {}", odd.join(" "));
    let shown = told(&story).shown();
    assert!(shown.ends_with(" 127.0.0.9, 127.0.0.10, and 990 more. Correct the EndpointSlice\n"), "{shown}");
}
