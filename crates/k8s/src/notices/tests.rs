//! Where an event stands, when it is counted, and when it is held back.

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
    hand.advance(60);
    notices.tell(&notice(web(7), "SCTP is not carried")).await;
    // A successor of the same name is another object.
    notices.tell(&notice(web(8), "SCTP is not carried")).await;
    hand.advance(6 * 60);
    notices.tell(&notice(web(7), "SCTP is not carried")).await;
    let heard = heard.lock().unwrap();
    let methods: Vec<&str> = heard.iter().map(|it| it.line.split(' ').next().unwrap()).collect();
    assert_eq!(methods, ["POST", "PATCH", "POST", "PATCH", "POST", "POST"]);
    let name = heard[0].body["metadata"]["name"].as_str().unwrap();
    assert!(heard[1].line.ends_with(&format!("/events/{name}")), "{}", heard[1].line);
    assert_eq!(heard[1].body["series"]["count"], 2);
    assert_eq!(heard[3].body["series"]["count"], 3);
    assert_eq!(heard[2].body["note"], "the idle timeout is no number (SGW0010)");
    let names: std::collections::BTreeSet<&str> =
        heard.iter().filter_map(|it| it.body["metadata"]["name"].as_str()).collect();
    assert_eq!(names.len(), 4, "every event has a name of its own: {names:?}");
}

#[tokio::test]
async fn an_event_that_was_thrown_away_is_made_anew() {
    let (notices, _, heard) = scene(|heard| match heard.line.starts_with("PATCH") {
        true => Say::status(404, "NotFound", "gone"),
        false => taken(heard),
    });
    notices.tell(&notice(web(7), "no")).await;
    notices.tell(&notice(web(7), "no")).await;
    let methods: Vec<String> =
        heard.lock().unwrap().iter().map(|it| it.line.split(' ').next().unwrap().to_string()).collect();
    assert_eq!(methods, ["POST", "PATCH", "POST"]);
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
async fn a_storm_over_very_many_objects_is_held_back_too() {
    let (notices, _, heard) = scene(taken);
    for number in 0..5000 {
        notices.tell(&notice(web(number), "all of them")).await;
    }
    assert_eq!(heard.lock().unwrap().len(), 200);
    assert_eq!(notices.held_back(), 4800);
    assert!(notices.book().objects.len() <= REMEMBERED_MAX + 1);
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
    let mut book = Book::default();
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let long = format!("{}-.tail", "a".repeat(NAME_BYTES_MAX - 1));
    let name = book.name(&long, now);
    assert!(name.len() <= 253, "{}", name.len());
    assert!(!name.contains("-.") && !name.contains(".."), "{name}");
}
