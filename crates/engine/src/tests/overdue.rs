//! Stories about trouble by time alone: nothing fails, and what is desired is still not programmed.

use std::format;
use std::string::String;
use std::vec::Vec;

use sluice_model::reason::Reason;

use super::story::{Story, told};

/// The trouble of a service: its reason, what it concerns, and its sentence.
fn trouble(story: &Story, name: &str) -> Option<String> {
    let trouble = story.engine.view_of(&story.key(name)).and_then(|view| view.trouble);
    trouble.map(|it| format!("{} of {:?}: {}", it.reason, it.concern, it.text))
}

fn count(story: &Story, reason: Reason) -> u64 {
    story.engine.gauges().trouble[reason as usize]
}

fn none(story: &Story) {
    assert_eq!(story.engine.gauges().trouble.iter().sum::<u64>(), 0, "{}", story.shown());
}

const LIVE: &str = "
    service web applied
    #1 done
";

#[test]
fn addresses_whose_node_has_no_address_are_trouble_after_a_minute() {
    let mut story = told(LIVE);
    story.play("show status\nnode node-a\nendpoints web 10.0.0.4@node-a 10.0.0.5@node-b\ntick 59");
    none(&story);
    story.play("tick 1");
    let text = "InvalidSpec of Addresses: 2 of 2 addresses are not programmed in Azure. \
                The node IP is missing for 2 addresses. Node node-a has no IPv4 InternalIP";
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());
    assert_eq!(count(&story, Reason::InvalidSpec), 1);
    let status = "Provisioning InvalidSpec of Addresses, not Serving InvalidSpec of Addresses";
    assert!(story.shown().contains(status), "{}", story.shown());

    story.play("node node-a 192.168.0.1\nlast done");
    let text = "InvalidSpec of Addresses: 1 of 2 addresses are not programmed in Azure. \
                The node IP is missing for 1 address. Node node-b does not exist";
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());
    let status = "Provisioning InvalidSpec of Addresses, Serving Provisioned)";
    assert!(story.shown().contains(status), "{}", story.shown());

    story.play("node node-b 192.168.0.2\nlast done");
    none(&story);
    assert!(story.shown().ends_with("not Provisioning Provisioned, Serving Provisioned)\n"));
}

#[test]
fn an_endpoint_without_a_node_is_trouble_too_and_so_is_a_pod_of_an_egress() {
    let mut story = told(LIVE);
    story.play("endpoints web 10.0.0.4@\ntick 60");
    let text = "InvalidSpec of Addresses: 1 of 1 addresses are not programmed in Azure. \
                The node IP is missing for 1 address. An endpoint has no nodeName";
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());

    let mut story =
        told("node node-a\npod p1 egress=blue ip=10.1.0.1 node=node-a\n#1 done\n#2 done\ntick 60");
    assert_eq!(count(&story, Reason::InvalidSpec), 1, "{}", story.shown());
    story.play("pod p1 deleted");
    none(&story);
}

#[test]
fn a_node_that_gets_its_address_in_time_is_no_trouble() {
    let mut story = told(LIVE);
    story.play("show status\nendpoints web 10.0.0.4@node-a\ntick 50\nnode node-a 192.168.0.1\nlast done");
    story.play("endpoints web 10.0.0.4@node-a 10.0.0.5@node-b\ntick 50");
    none(&story);
    assert!(!story.shown().contains("write status"), "{}", story.shown());
    story.play("tick 10");
    assert_eq!(count(&story, Reason::InvalidSpec), 1, "{}", story.shown());
}

#[test]
fn a_node_that_loses_its_address_is_trouble_a_minute_later() {
    let mut story = told(LIVE);
    story.play("node node-a 192.168.0.1\nendpoints web 10.0.0.4@node-a\nlast done\nnode node-a\nlast done");
    story.play("tick 59");
    none(&story);
    story.play("tick 1");
    assert_eq!(count(&story, Reason::InvalidSpec), 1, "{}", story.shown());
}

#[test]
fn a_new_leader_says_at_once_that_addresses_still_have_no_place() {
    let mut story = told(
        "show status
         node node-a
         service web known published=20.1.2.1 ingress=20.1.2.1 stuck=nodes
         endpoints web 10.0.0.4@node-a
         azure has web
         lead
         hide status",
    );
    assert_eq!(count(&story, Reason::InvalidSpec), 1, "{}", story.shown());
    assert!(!story.shown().contains("Provisioned"), "{}", story.shown());
    story.play("node node-a 192.168.0.1\nlast done");
    none(&story);
}

#[test]
fn a_creation_that_does_not_end_is_trouble_after_five_minutes() {
    let mut story = told("show status\nservice web applied\n#1 waits\ntick 299");
    none(&story);
    story.play("tick 2");
    let text = "AzureUnavailable of Resources: The creation has not ended in Azure for over 5 min";
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());
    let status = "(write status of web: Provisioning AzureUnavailable, not Serving AzureUnavailable)\n";
    assert!(story.shown().ends_with(status), "{}", story.shown());
    story.play("tick 600");
    assert_eq!(story.shown().matches("AzureUnavailable, not").count(), 1, "{}", story.shown());
    story.play("#1 done");
    none(&story);
}

#[test]
fn an_update_that_does_not_end_is_trouble_and_the_service_goes_on_serving() {
    let mut story = told(LIVE);
    story.play("show status\nservice web applied port=81->8080\ntick 301");
    let text = "AzureUnavailable of Resources: The update has not ended in Azure for over 5 min";
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());
    let status = "(write status of web: 20.1.2.1, Provisioning AzureUnavailable, Serving Provisioned)\n";
    assert!(story.shown().ends_with(status), "{}", story.shown());
    story.play("last done");
    none(&story);
}

#[test]
fn a_deletion_that_does_not_end_is_trouble_after_five_minutes() {
    let mut story = told(LIVE);
    story.play("show status\nservice web applied deleting\ntick 299");
    none(&story);
    story.play("tick 2");
    let text = "AzureUnavailable of Deletion: The deletion has not ended in Azure for over 5 min";
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());
    let status = "Provisioning AzureUnavailable of Deletion, not Serving AzureUnavailable of Deletion)\n";
    assert!(story.shown().ends_with(status), "{}", story.shown());
}

#[test]
fn one_failure_after_five_minutes_is_said_in_its_own_words() {
    let mut story = told("service web applied\ntick 400\n#1 failed ServerBusy 503");
    let text = "AzureUnavailable of Resources: ServerBusy (transient): as the story says.";
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());
    // A failure of an earlier desire says nothing about the next.
    story.play("tick 10\nlast done\nlast done\nservice web applied port=81->8080\ntick 200");
    none(&story);
}

#[test]
fn a_service_that_waits_for_a_slot_says_so_and_does_not_blame_azure() {
    let mut story = told("config slots=1\nservice a applied\nservice b applied\nshow status\ntick 301");
    assert_eq!(count(&story, Reason::AzureUnavailable), 1, "{}", story.shown());
    let text = "Provisioning of Resources: The creation has not succeeded for over 5 min: \
                waiting for a free slot (sluice.concurrency)";
    assert_eq!(trouble(&story, "b").as_deref(), Some(text), "{}", story.shown());
    assert!(!story.shown().contains("write status of b"), "{}", story.shown());
    story.play("#1 done");
    let text = "Provisioning of Resources: The creation has not succeeded for over 5 min: \
                the operation is in progress";
    assert_eq!(trouble(&story, "b").as_deref(), Some(text), "{}", story.shown());
    story.play("tick 300");
    assert_eq!(count(&story, Reason::AzureUnavailable), 1, "{}", story.shown());
    story.play("#2 done");
    none(&story);
}

#[test]
fn a_plan_that_waits_for_our_budget_does_not_blame_azure() {
    let mut story = told("service web applied\n#1 budgeted 900\ntick 310");
    let text = "Provisioning of Resources: The creation has not succeeded for over 5 min: \
                waiting for the call budget";
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());
    story.play("tick 590\n#1 wants\ntick 290");
    assert_eq!(count(&story, Reason::Provisioning), 1, "{}", story.shown());
    story.play("tick 11");
    assert_eq!(count(&story, Reason::AzureUnavailable), 1, "{}", story.shown());
}

#[test]
fn a_new_leader_goes_on_saying_that_a_creation_is_stuck_until_an_operation_succeeds() {
    let mut story = told("service web known stuck=resources\nlead\ntrouble web");
    let text = "AzureUnavailable of Resources: The previous leader reported AzureUnavailable; \
                no operation has succeeded since";
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());
    story.play("#1 failed TooManyRequests 429");
    let text = trouble(&story, "web").unwrap_or_default();
    assert!(text.starts_with("AzureUnavailable of Resources: TooManyRequests"), "{text}: {}", story.shown());
    story.play("tick 5\nlast done\nlast done");
    none(&story);
}

#[test]
fn a_new_leader_does_not_repeat_what_is_mended() {
    let mut story =
        told("service web known published=20.1.2.1 ingress=20.1.2.1 stuck=resources\nazure has web\nlead");
    none(&story);
    story.play("show status\nservice web applied port=81->8080\ntick 200");
    none(&story);
}

#[test]
fn an_address_update_that_waits_for_a_pause_is_throttled_until_a_minute_after_the_pause() {
    let mut story = told(LIVE);
    story.play("node node-a 192.168.0.1\nendpoints web 10.0.0.4@node-a\n#2 held 200\ntick 61\nshow status");
    let text = "Throttled of Addresses: 1 of 1 addresses are not programmed in Azure. \
                The address update waits for Retry-After of Azure";
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());
    story.play("tick 190");
    assert_eq!(count(&story, Reason::Throttled), 1, "{}", story.shown());
    assert!(!story.shown().contains("write status"), "{}", story.shown());
    story.play("tick 10");
    assert_eq!(count(&story, Reason::AzureUnavailable), 1, "{}", story.shown());
    story.play("#2 done");
    none(&story);
}

#[test]
fn a_plan_whose_shared_commit_waits_for_a_pause_is_throttled_and_does_not_blame_azure() {
    let mut story = told("service web applied\n#1 waits\n#1 held 900\ntick 600");
    assert_eq!(count(&story, Reason::Throttled), 1, "{}", story.shown());
    story.play("tick 301\n#1 wants\ntick 290");
    assert_eq!(count(&story, Reason::Provisioning), 1, "{}", story.shown());
    story.play("tick 11");
    assert_eq!(count(&story, Reason::AzureUnavailable), 1, "{}", story.shown());
}

#[test]
fn a_pause_that_is_over_is_not_shown_any_more_although_the_operation_goes_on() {
    let mut story = told("show status\nservice web applied\n#1 waits\n#1 held 40\ntick 39");
    assert_eq!(
        trouble(&story, "web").as_deref(),
        Some("Throttled of Resources: Azure answered 429; Sluice waits for Retry-After")
    );
    story.play("tick 2");
    none(&story);
    let status = "(write status of web: Provisioning Provisioning, not Serving Provisioning)\n";
    assert!(story.shown().ends_with(status), "{}", story.shown());
    story.play("explain web");
    assert!(!story.shown().contains("waits for its next attempt"), "{}", story.shown());
    story.play("tick 300");
    assert_eq!(count(&story, Reason::AzureUnavailable), 1, "{}", story.shown());
    story.play("#1 done");
    none(&story);
}

#[test]
fn an_address_update_that_waits_for_our_budget_does_not_blame_azure() {
    let mut story = told(LIVE);
    story.play("node node-a 192.168.0.1\nendpoints web 10.0.0.4@node-a\n#2 held 200 budget\ntick 61");
    let text = "Throttled of Addresses: 1 of 1 addresses are not programmed in Azure. \
                The address update waits for the call budget; see `sluice.budget.share`";
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());
    // What ends last is what it waits for.
    story.play("#2 held 300");
    let text = "Throttled of Addresses: 1 of 1 addresses are not programmed in Azure. \
                The address update waits for Retry-After of Azure";
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());
    story.play("#2 held 10 budget");
    assert_eq!(trouble(&story, "web").as_deref(), Some(text), "{}", story.shown());
    story.play("tick 361");
    assert_eq!(count(&story, Reason::AzureUnavailable), 1, "{}", story.shown());
}

#[test]
fn a_deletion_that_no_address_holds_up_is_not_draining() {
    let mut story = told("config slots=1\nservice a applied\n#1 done\nservice b applied\n#2 waits");
    story.play("show status\nservice c applied\nservice a applied deleting\ntick 301");
    let text = "Deleting of Resources: The deletion has not succeeded for over 5 min: \
                waiting for a free slot (sluice.concurrency)";
    assert_eq!(trouble(&story, "a").as_deref(), Some(text), "{}", story.shown());
    let shown = story.shown();
    let written: Vec<_> = shown.lines().filter(|line| line.contains("write status of a")).collect();
    assert_eq!(written, ["(write status of a: not 20.1.2.1, Provisioning Deleting, not Serving Deleting)"]);
}

#[test]
fn short_pauses_that_do_not_end_are_throttled_after_five_minutes_and_written_once() {
    let mut story = told("show status\nservice web applied\n#1 throttled 20\ntick 20");
    for _ in 0..30 {
        story.play("#1 wants\ntick 1\n#1 throttled 20\ntick 20");
    }
    assert_eq!(
        trouble(&story, "web").as_deref(),
        Some("Throttled of Resources: Azure answered 429; Sluice waits for Retry-After")
    );
    story.play("#1 wants");
    assert_eq!(count(&story, Reason::Throttled), 1, "{}", story.shown());
    let written = story.shown().matches("write status of web").count();
    assert_eq!(written, 2, "{}", story.shown());
    // The pauses have ceased, and the operation is in progress.
    story.play("tick 31");
    assert_eq!(count(&story, Reason::Provisioning), 1, "{}", story.shown());
    story.play("#1 done");
    none(&story);
}

#[test]
fn updates_that_succeed_one_after_the_other_are_no_trouble() {
    let mut story = told(LIVE);
    story.play("service web applied port=81->8080\ntick 10");
    for port in 82..120 {
        story.play(&format!("service web applied port={port}->8080\ntick 10\nlast done\ntick 10"));
        none(&story);
    }
    story.play("tick 279");
    none(&story);
    story.play("tick 12");
    assert_eq!(count(&story, Reason::AzureUnavailable), 1, "{}", story.shown());
}

#[test]
fn what_has_no_object_waits_for_no_write_to_it() {
    let story = told("azure has uid=9 registration\nlead\ntick 60\n#1 done\ntick 301");
    let told = story.engine.services().into_iter().find_map(|view| view.trouble).map(|it| it.text);
    let text = "The deletion has not succeeded for over 5 min";
    assert_eq!(told.as_deref(), Some(text), "{}", story.shown());
}
