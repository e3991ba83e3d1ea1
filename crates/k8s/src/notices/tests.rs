//! Where an event stands, when it is counted, and when it is held back.

use super::book::REMEMBERED_MAX;
use super::*;
use crate::scripted::{Heard, Say, answering};
use sluice_model::kube::ObjectRef;
use sluice_model::{EgressName, ObjectName, ServiceKey, Uid};
use std::sync::atomic::AtomicI64;

/// A clock that a test sets, in seconds.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicI64>);

impl Hand {
    fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    fn clock(&self) -> WallClock {
        let hand = self.clone();
        Arc::new(move || Timestamp::from_second(1_800_000_000 + hand.0.load(Ordering::SeqCst)).unwrap())
    }
}

fn taken(heard: &Heard) -> Say {
    if heard.line.ends_with("/leases/sluice") {
        return Say::ok(json!({"metadata": {"uid": "lease-uid"}}));
    }
    Say::Json(201, heard.body.clone())
}

fn scene(answer: impl FnMut(&Heard) -> Say + Send + 'static) -> (Notices, Hand, Arc<Mutex<Vec<Heard>>>) {
    let (client, heard) = answering(answer);
    let hand = Hand::default();
    let notices = Notices::new(client, "sluice-0".into(), hand.clock());
    (notices.with_home("sluice-system", "sluice"), hand, heard)
}

fn web(number: u128) -> About {
    About::Service(ObjectRef { uid: Uid::from_number(number), name: ObjectName::new("shop", "web") })
}

fn notice(about: About, text: &str) -> Notice {
    Notice { about, warning: true, reason: Reason::InvalidSpec, text: text.into() }
}

#[tokio::test]
async fn a_notice_about_a_service_stands_at_that_incarnation() {
    let (notices, _, heard) = scene(taken);
    notices.tell(&notice(web(7), "SCTP is not carried")).await;
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].line, "POST /apis/events.k8s.io/v1/namespaces/shop/events");
    let event = &heard[0].body;
    assert_eq!(event["metadata"]["namespace"], "shop");
    assert_eq!(event["regarding"]["kind"], "Service");
    assert_eq!(event["regarding"]["name"], "web");
    assert_eq!(event["regarding"]["uid"], Uid::from_number(7).to_string());
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["reason"], "InvalidSpec");
    assert_eq!(event["note"], "SCTP is not carried (SGW0010)");
    assert_eq!(event["reportingController"], "sluice");
    assert_eq!(event["reportingInstance"], "sluice-0");
    assert_eq!(event["eventTime"], "2027-01-15T08:00:00.000000Z");
}

#[tokio::test]
async fn a_notice_without_an_object_of_its_own_stands_at_the_lease() {
    let (notices, _, heard) = scene(taken);
    let blue = ServiceKey::Outbound(EgressName::parse("blue").unwrap());
    notices.tell(&notice(About::Key(blue), "is parked")).await;
    notices.tell(&Notice { warning: false, ..notice(About::Cluster, "the gateway is back") }).await;
    let heard = heard.lock().unwrap();
    let lines: Vec<&str> = heard.iter().map(|request| request.line.as_str()).collect();
    let post = "POST /apis/events.k8s.io/v1/namespaces/sluice-system/events";
    // The Lease is looked up once.
    let get = "GET /apis/coordination.k8s.io/v1/namespaces/sluice-system/leases/sluice";
    assert_eq!(lines, [get, post, post]);
    assert_eq!(heard[1].body["regarding"]["kind"], "Lease");
    assert_eq!(heard[1].body["regarding"]["uid"], "lease-uid");
    assert_eq!(heard[1].body["note"], "egress/blue: is parked (SGW0010)");
    assert_eq!(heard[2].body["note"], "the gateway is back");
    assert_eq!(heard[2].body["type"], "Normal");
}

#[tokio::test]
async fn the_same_words_are_counted_and_other_words_are_another_event() {
    let (notices, hand, heard) = scene(taken);
    notices.tell(&notice(web(7), "SCTP is not carried")).await;
    hand.advance(60);
    notices.tell(&notice(web(7), "SCTP is not carried")).await;
    hand.advance(60);
    notices.tell(&notice(web(7), "the idle timeout is no number")).await;
    hand.advance(30 * 60);
    notices.tell(&notice(web(7), "SCTP is not carried")).await;
    // A successor of the same name is another object.
    notices.tell(&notice(web(8), "SCTP is not carried")).await;
    notices.tell(&Notice { warning: false, ..notice(web(7), "SCTP is not carried (SGW0010)") }).await;
    notices.tell(&Notice { reason: Reason::Conflict, ..notice(web(7), "SCTP is not carried") }).await;
    let heard = heard.lock().unwrap();
    let lines: Vec<&str> = methods(&heard);
    assert_eq!(lines, ["POST", "PATCH", "POST", "PATCH", "POST", "POST", "POST"]);
    let name = heard[0].body["metadata"]["name"].as_str().unwrap();
    assert!(heard[1].line.ends_with(&format!("/events/{name}")), "{}", heard[1].line);
    assert_eq!(heard[1].body["series"]["count"], 2);
    assert_eq!(heard[3].body["series"]["count"], 3);
    assert_eq!(heard[2].body["note"], "the idle timeout is no number (SGW0010)");
    let names: std::collections::BTreeSet<&str> =
        heard.iter().filter_map(|it| it.body["metadata"]["name"].as_str()).collect();
    assert_eq!(names.len(), 5, "every event has a name of its own: {names:?}");
}

fn methods(heard: &[Heard]) -> Vec<&str> {
    heard.iter().map(|it| it.line.split(' ').next().unwrap()).collect()
}

/// An API server that keeps events, as far as notices need one.
fn keeping() -> impl FnMut(&Heard) -> Say + Send + 'static {
    let mut events: std::collections::BTreeMap<String, Value> = Default::default();
    move |heard| {
        let name = heard.body["metadata"]["name"].as_str();
        let name = name.or(heard.line.rsplit('/').next()).unwrap().to_string();
        match (heard.line.starts_with("POST"), events.get_mut(&name)) {
            (true, Some(_)) => Say::status(409, "AlreadyExists", "it is there"),
            (true, None) => {
                events.insert(name, heard.body.clone());
                Say::Json(201, heard.body.clone())
            }
            (false, None) => Say::status(404, "NotFound", "gone"),
            (false, Some(event)) => {
                let changes = heard.body.as_object().unwrap().clone();
                event.as_object_mut().unwrap().extend(changes);
                Say::ok(event.clone())
            }
        }
    }
}

#[tokio::test]
async fn whoever_leads_next_counts_on_in_the_event_that_is_there() {
    let (client, heard) = answering(keeping());
    let hand = Hand::default();
    for (instance, count) in [("sluice-0", None), ("sluice-1", Some(2)), ("sluice-2", Some(3))] {
        heard.lock().unwrap().clear();
        hand.advance(600);
        let notices = Notices::new(client.clone(), instance.into(), hand.clock());
        notices.tell(&notice(web(7), "SCTP is not carried")).await;
        let heard = heard.lock().unwrap();
        let Some(count) = count else {
            assert_eq!(methods(&heard), ["POST"]);
            continue;
        };
        assert_eq!(methods(&heard), ["POST", "PATCH", "PATCH"]);
        // The first patch only asks what is there.
        assert_eq!(heard[1].body, json!({}));
        assert_eq!(heard[2].body["series"]["count"], count);
        assert_eq!(heard[2].body.as_object().unwrap().len(), 1, "all else of an event may not change");
    }
    // From then on it is known.
    let notices = Notices::new(client, "sluice-3".into(), hand.clock());
    notices.tell(&notice(web(7), "SCTP is not carried")).await;
    heard.lock().unwrap().clear();
    notices.tell(&notice(web(7), "SCTP is not carried")).await;
    let heard = heard.lock().unwrap();
    assert_eq!(methods(&heard), ["PATCH"]);
    assert_eq!(heard[0].body["series"]["count"], 5);
}

#[test]
fn the_name_of_an_event_is_the_same_in_every_version() {
    let words = Words {
        about: "uid",
        warning: true,
        reason: Reason::InvalidSpec,
        note: "SCTP is not carried".into(),
    };
    assert_eq!(words.event_name("web"), "web.60d5420aafb526b4");
    // What stands in which part matters.
    assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
}

#[tokio::test]
async fn a_lease_that_runs_out_between_two_requests_of_a_notice_ends_it() {
    let post = "POST";
    for (allowed, sent) in
        [(0, vec![]), (1, vec!["GET"]), (2, vec!["GET", post]), (3, vec!["GET", post, "PATCH"])]
    {
        let mut keeping = keeping();
        let (client, heard) = answering(move |heard| match heard.line.contains("/leases/") {
            true => taken(heard),
            false => keeping(heard),
        });
        let cluster = || notice(About::Cluster, "no");
        let hand = Hand::default();
        let fresh =
            || Notices::new(client.clone(), "sluice-0".into(), hand.clock()).with_home("system", "sluice");
        // Somebody has said it before, so that all four requests are needed.
        fresh().tell(&cluster()).await;
        heard.lock().unwrap().clear();
        let left = Arc::new(AtomicI64::new(allowed));
        let fence: Fence = Arc::new(move || left.fetch_sub(1, Ordering::SeqCst) > 0);
        fresh().with_fence(fence).tell(&cluster()).await;
        assert_eq!(methods(&heard.lock().unwrap()), sent, "after {allowed}");
    }
}

#[tokio::test]
async fn an_event_that_was_thrown_away_is_made_anew() {
    let (notices, _, heard) = scene(|heard| match heard.line.starts_with("PATCH") {
        true => Say::status(404, "NotFound", "gone"),
        false => taken(heard),
    });
    notices.tell(&notice(web(7), "no")).await;
    notices.tell(&notice(web(7), "no")).await;
    assert_eq!(methods(&heard.lock().unwrap()), ["POST", "PATCH", "POST"]);
}

#[tokio::test]
async fn a_conflict_over_an_event_that_is_not_there_is_not_tried_for_ever() {
    let (notices, _, heard) = scene(|heard| match heard.line.starts_with("PATCH") {
        true => Say::status(404, "NotFound", "gone"),
        false => Say::status(409, "Conflict", "the quota changed"),
    });
    notices.tell(&notice(web(7), "no")).await;
    assert_eq!(methods(&heard.lock().unwrap()), ["POST", "PATCH"]);
}

#[tokio::test]
async fn a_long_text_is_cut_to_what_an_event_holds() {
    let (notices, _, heard) = scene(taken);
    notices.tell(&notice(web(7), &"ä".repeat(2000))).await;
    let note = heard.lock().unwrap()[0].body["note"].as_str().unwrap().to_string();
    assert!(
        note.len() <= 1024 && note.len() > 1015 && note.ends_with("ä… (SGW0010)"),
        "{} bytes",
        note.len()
    );
    notices.tell(&notice(web(8), &format!("Denied: {}. Grant it", "ä".repeat(2000)))).await;
    let note = heard.lock().unwrap()[1].body["note"].as_str().unwrap().to_string();
    assert!(note.len() <= 1024 && note.ends_with("ä… Grant it (SGW0010)"), "{note}");
}

#[tokio::test]
async fn a_storm_about_one_object_is_held_back_counted_and_hurts_no_other() {
    let (notices, hand, heard) = scene(taken);
    for number in 0..50 {
        notices.tell(&notice(web(7), &format!("mistake {number}"))).await;
    }
    assert_eq!(heard.lock().unwrap().len(), 10);
    assert_eq!(notices.held_back(), 40);
    notices.tell(&notice(web(8), "another's mistake")).await;
    assert_eq!(heard.lock().unwrap().len(), 11);
    hand.advance(65);
    for number in 50..60 {
        notices.tell(&notice(web(7), &format!("mistake {number}"))).await;
    }
    assert_eq!(heard.lock().unwrap().len(), 13, "two more in a minute");
    // A clock that is set back gives nothing.
    hand.advance(-3600);
    notices.tell(&notice(web(7), "mistake 60")).await;
    assert_eq!(heard.lock().unwrap().len(), 13);
}

#[tokio::test]
async fn a_storm_is_held_back_from_the_log_too() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (notices, hand, _) = scene(taken);
    for number in 0..50 {
        notices.tell(&notice(web(7), &format!("{number} {}", "mistake ".repeat(100_000)))).await;
    }
    let (held, given): (Vec<String>, Vec<String>) =
        lines.taken().into_iter().partition(|line| line.contains("rate limit"));
    assert_eq!((given.len(), held.len()), (10, 1), "said once: {held:?}");
    assert!(given.iter().all(|line| line.len() < 2 * NOTE_BYTES_MAX), "long texts are cut");
    hand.advance(35);
    for _ in 0..5 {
        notices.tell(&notice(web(7), "one more mistake")).await;
    }
    assert_eq!(lines.taken().len(), 2, "one, and that the others are held back");
}

#[tokio::test]
async fn notices_at_the_lease_are_held_back_by_egress_and_by_reason() {
    let (notices, _, heard) = scene(taken);
    let egress = |name: &str| About::Key(ServiceKey::Outbound(EgressName::parse(name).unwrap()));
    for number in 0..50 {
        let text = format!("mistake {number}");
        notices.tell(&notice(About::Cluster, &text)).await;
        notices.tell(&notice(egress("blue"), &text)).await;
    }
    heard.lock().unwrap().clear();
    notices.tell(&notice(egress("green"), "another egress")).await;
    notices.tell(&Notice { reason: Reason::Forbidden, ..notice(About::Cluster, "another reason") }).await;
    assert_eq!(methods(&heard.lock().unwrap()), ["POST", "POST"]);
}

/// The lines of the log that notices write on this thread.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().ends_with("notices") && *metadata.level() <= tracing::Level::INFO
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            line.push_str(&format!("{field}={value:?} "));
        });
        self.0.lock().unwrap().push(line);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_storm_over_very_many_objects_is_held_back_too() {
    let (notices, _, heard) = scene(taken);
    for number in 0..5000 {
        notices.tell(&notice(web(number), "all of them")).await;
    }
    assert_eq!(heard.lock().unwrap().len(), 200);
    assert_eq!(notices.held_back(), 4800);
    assert!(notices.book().subjects.len() <= REMEMBERED_MAX + 1);
}

#[tokio::test]
async fn an_event_that_is_refused_stops_nobody() {
    let words = "namespace shop is being terminated";
    let (notices, _, heard) = scene(move |_| Say::status(403, "Forbidden", words));
    notices.tell(&notice(web(7), "no")).await;
    notices.tell(&notice(web(7), "no")).await;
    // It is not counted on in an event that was never made.
    assert!(heard.lock().unwrap().iter().all(|it| it.line.starts_with("POST")));
}

#[tokio::test]
async fn an_instance_without_a_name_or_with_a_long_one_still_reports() {
    for (instance, reported) in [("", "sluice"), ("p".repeat(300).as_str(), &"p".repeat(128))] {
        let (client, heard) = answering(taken);
        Notices::new(client, instance.into(), Hand::default().clock()).tell(&notice(web(7), "no")).await;
        assert_eq!(heard.lock().unwrap()[0].body["reportingInstance"], *reported);
    }
}

#[test]
fn the_name_of_an_event_is_a_name_whatever_the_object_is_called() {
    let long = format!("{}-.tail", "a".repeat(NAME_BYTES_MAX - 1));
    let words = Words { about: "uid", warning: true, reason: Reason::InvalidSpec, note: "no".into() };
    let name = words.event_name(&long);
    assert!(name.len() <= 253, "{}", name.len());
    assert!(!name.contains("-.") && !name.contains(".."), "{name}");
}
