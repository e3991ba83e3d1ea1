//! Which services look different than before, and how far start-up has come.

use std::vec::Vec;

use super::story::{Story, told};
use crate::start_up::{FirstDifference, Phase};

/// The names of what has changed since the last look, which is remembered.
fn changed(story: &Story, seen: &mut u64) -> Vec<std::string::String> {
    let keys = story.engine.changed_since(*seen).expect("not too long ago");
    *seen = story.engine.change_number();
    keys.iter().map(|key| story.name_of(key)).collect()
}

#[test]
fn only_the_services_that_look_different_are_named() {
    let mut story =
        told("node node-a 192.168.0.1\nservice web applied\nservice api applied\n#1 done\n#2 done");
    let mut seen = 0;
    assert_eq!(changed(&story, &mut seen), ["web", "api"]);
    assert_eq!(changed(&story, &mut seen), [""; 0]);
    story.play("service web applied again\nservice api applied again\ntick 5000");
    assert_eq!(changed(&story, &mut seen), [""; 0], "sweeps and repeated events change nothing that is seen");
    story.play("service api applied port=81->8081");
    assert_eq!(changed(&story, &mut seen), ["api"]);
    story.play("endpoints web 10.0.0.4@node-a");
    assert_eq!(changed(&story, &mut seen), ["web"], "an address is wanted");
    story.play("#4 done");
    assert_eq!(changed(&story, &mut seen), ["web"], "the address is programmed");
    assert_eq!(story.engine.view_of(&story.key("web")).expect("known").addresses_programmed, 1);
}

#[test]
fn what_has_gone_is_named_and_has_no_view() {
    let mut story = told("service web applied\n#1 done");
    let key = story.key("web");
    let mut seen = story.engine.change_number();
    story.play("service web applied deleting\n#2 done\n#3 done");
    assert_eq!(changed(&story, &mut seen), ["web"]);
    assert_eq!(story.engine.view_of(&key), None);
}

#[test]
fn whoever_is_too_far_behind_starts_over() {
    let mut story = told("");
    let seen = story.engine.change_number();
    for _ in 0..1_100 {
        story.play("service web applied nofinalizer\nservice web deleted");
    }
    assert_eq!(story.engine.changed_since(seen), None);
    let seen = story.engine.change_number();
    assert_eq!(story.engine.changed_since(seen), Some(Vec::new()));
    assert!(story.engine.changed_since(seen - 500).expect("remembered").len() <= 500);
}

#[test]
fn a_standby_sees_what_changes_too() {
    let mut story = Story::standby(Story::config());
    let seen = story.engine.change_number();
    story.play("service web applied");
    assert_eq!(story.engine.changed_since(seen), Some(std::vec![story.key("web")]));
}

#[test]
fn start_up_says_what_it_is_at_and_what_it_found() {
    let mut story = Story::standby(Story::config());
    assert_eq!(story.engine.start_up().phase, Phase::Standby);
    story.play(
        "node node-a 192.168.0.1
         service right known
         service new known
         service wrong known
         service stuck known deleting
         service bad known invalid
         endpoints right 10.0.0.4@node-a
         azure has right
         azure has wrong
         azure changes load-balancer wrong
         azure has egress=lost
         hold lists
         lead",
    );
    let progress = story.engine.start_up();
    assert_eq!(progress.phase, Phase::ReadingAzure);
    assert_eq!((progress.kubernetes_listed, progress.azure_listed), ([true; 4], [false; 6]));
    story.play("#1 done");
    assert_eq!(story.engine.start_up().azure_listed.iter().filter(|listed| **listed).count(), 1);
    story.play("#2 done\n#3 done\n#4 done\n#5 done\n#6 done");
    let progress = story.engine.start_up();
    assert_eq!(progress.phase, Phase::InitialSync);
    assert_eq!(
        progress.found,
        Some(FirstDifference {
            right: 1,
            create: 1,
            update: 1,
            invalid: 1,
            stuck_finalizers: 1,
            addresses: 1,
            orphans: 1,
            ..FirstDifference::default()
        })
    );
    assert!(progress.left > 0);
    story.play("release lists\n#7 done\n#8 done\n#9 done\n#10 done\ntick 1");
    let progress = story.engine.start_up();
    assert_eq!((progress.phase, progress.left), (Phase::Done, 0));
    assert_eq!(progress.found.map(|found| found.create), Some(1), "what was found at first stays on record");
}

#[test]
fn a_gateway_that_is_in_the_way_is_what_start_up_waits_for() {
    let mut story = Story::standby(Story::config());
    story.play("azure gateway of other\nlead");
    let progress = story.engine.start_up();
    assert_eq!(progress.phase, Phase::Gateway);
    assert!(progress.gateway_trouble.is_some_and(|why| why.contains("belongs to cluster other")));
}

#[test]
fn start_up_counts_the_addresses_that_are_written() {
    let mut story = Story::standby(Story::config());
    story.play(
        "node node-a 192.168.0.1
         service web known
         service shop known
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         endpoints shop 10.0.0.6@node-a 10.0.0.7@node-a 10.0.0.8@node-a
         azure has web
         azure has address 10.0.0.4 at 192.168.0.1 for web
         azure has address 10.0.0.5 at 192.168.0.1 for web
         azure has address 10.0.0.9 at 192.168.0.1 for web
         lead",
    );
    let found = story.engine.start_up().found.unwrap();
    // One is to be removed, and three wait for the service that is to be created.
    assert_eq!((found.right, found.create, found.addresses), (1, 1, 4));
}
