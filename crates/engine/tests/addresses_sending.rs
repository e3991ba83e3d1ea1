//! One story for each hazard of sending addresses: size, fairness, failure, doubt, refusal.

mod addresses_world;

use std::time::Duration;

use addresses_world::scene::{WEB, azure, slice, slice_name, sync, world, world_with};
use addresses_world::{End, ip};
use sluice_engine::addresses::{AddressNotice, Limits, Sample};

#[test]
fn a_request_never_has_more_addresses_or_bytes_than_allowed() {
    for limits in [
        Limits { addresses_max: 100, ..Limits::default() },
        Limits { bytes_max: 10_000, ..Limits::default() },
        Limits::default(),
    ] {
        let mut world = world_with(limits);
        let endpoints: Vec<String> =
            (0..10_000).map(|at| format!("10.1.{}.{}@a", at / 250, at % 250 + 1)).collect();
        let endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
        world.apply_slice(slice("big", 1, &endpoints));
        while world.send() {
            let batch = world.in_flight.as_deref().unwrap_or_default();
            let bytes: usize = batch
                .iter()
                .map(|update| update.addresses.len() * "{'address':'10.1.39.250','services':['web']},".len())
                .sum();
            assert!(bytes <= limits.bytes_max, "{bytes} bytes");
            world.finish(End::Success);
        }
        assert!(world.calls >= 10, "{} calls", world.calls);
        world.check_settled();
    }
}

#[test]
fn one_busy_service_does_not_hold_up_another() {
    let mut world = world_with(Limits { addresses_max: 20, ..Limits::default() });
    let endpoints: Vec<String> = (1..=200).map(|at| format!("10.1.0.{at}@a")).collect();
    let endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
    world.apply_slice(slice("big", 1, &endpoints));
    world.apply_slice(slice("small", 2, &["10.1.9.1@b"]));
    assert!(world.send());
    world.finish(End::Success);
    assert!(azure(&world).contains(&"10.1.9.1@10.0.0.2 api".to_string()));
    world.drain(100);
    world.check_settled();
}

#[test]
fn what_changes_during_a_request_goes_into_the_next() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    assert!(world.send());
    world.apply_slice(slice("s", 1, &["10.1.0.2@a"]));
    assert_eq!(world.addresses.next_batch(world.now), None, "one at a time");
    world.finish(End::Success);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 web"]);
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.2@10.0.0.1 web"]);
}

#[test]
fn a_failed_request_changes_nothing_and_is_repeated_after_a_pause() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    assert!(world.send());
    assert_eq!(world.addresses.mapped(world.index(WEB)), 1, "what is on its way counts");
    world.finish(End::Transient);
    assert_eq!(world.addresses.mapped(world.index(WEB)), 0);
    assert!(!world.send(), "there is a pause");
    let wake = world.addresses.wake_at().unwrap();
    assert!(wake.since(world.now) <= Duration::from_secs(1));
    world.now = wake;
    assert!(world.send());
    world.finish(End::Success);
    world.check_settled();
}

#[test]
fn a_new_change_ends_a_pause_but_not_one_that_azure_asked_for() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    world.send();
    world.finish(End::Transient);
    world.apply_slice(slice("s", 1, &["10.1.0.1@a", "10.1.0.2@a"]));
    assert!(world.send());
    world.finish(End::Throttled);
    world.apply_slice(slice("s", 1, &["10.1.0.3@a"]));
    world.addresses.hurry();
    assert!(!world.send());
    assert_eq!(world.addresses.wake_at(), Some(world.now + Duration::from_secs(7)));
    sync(&mut world);
}

#[test]
fn a_change_ends_a_backoff_once_per_outage() {
    let calls = |churn: bool| {
        let mut world = world();
        world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
        for second in 1..=250 {
            if world.send() {
                world.finish(End::Transient);
            }
            if churn {
                world.apply_slice(slice("s", 1, &[&format!("10.1.1.{second}@a")]));
            }
            world.wait(Duration::from_secs(1));
        }
        world.calls
    };
    let (quiet, churning) = (calls(false), calls(true));
    assert!(quiet > 8 && churning <= quiet + 1, "{churning} calls under churn, {quiet} without");
}

#[test]
fn after_a_success_a_change_ends_a_backoff_again() {
    let mut world = world();
    for address in ["10.1.0.1@a", "10.1.0.2@a"] {
        world.apply_slice(slice("s", 1, &[address]));
        world.send();
        world.finish(End::Transient);
        assert!(!world.send());
        world.apply_slice(slice("s", 1, &[address, "10.1.0.9@a"]));
        assert!(world.send(), "the first change of the outage");
        world.finish(End::Transient);
        world.apply_slice(slice("s", 1, &[address, "10.1.0.8@a"]));
        assert!(!world.send(), "the second change waits");
        world.now = world.addresses.wake_at().unwrap();
        sync(&mut world);
    }
}

#[test]
fn pauses_grow_to_half_a_minute_and_the_twelfth_failure_is_told_once() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    let mut longest = Duration::ZERO;
    for _ in 0..30 {
        assert!(world.send());
        world.finish(End::Transient);
        let wake = world.addresses.wake_at().unwrap();
        longest = longest.max(wake.since(world.now));
        world.now = wake;
    }
    assert!(longest > Duration::from_secs(15) && longest <= Duration::from_secs(30), "{longest:?}");
    let told = world.addresses.take_notices();
    assert!(matches!(told.as_slice(), [AddressNotice::LaneFailing { failures: 12, .. }]), "{told:?}");
}

#[test]
fn an_unknown_outcome_holds_a_deletion_until_a_later_request_settles_it() {
    for end in [End::UnknownApplied, End::UnknownLost] {
        let mut world = world();
        world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
        world.send();
        world.finish(end);
        world.set_ready(WEB, false);
        assert_eq!(world.addresses.mapped(world.index(WEB)), 1, "it may be there");
        assert_eq!(world.addresses.holding(world.index(WEB), 5), [(ip("10.0.0.1"), ip("10.1.0.1"))]);
        world.check();
        sync(&mut world);
        assert_eq!(world.addresses.mapped(world.index(WEB)), 0);
        assert!(world.addresses.take_touched().contains(&world.index(WEB)), "the gate opened");
    }
}

#[test]
fn an_unknown_outcome_on_a_node_that_is_gone_asks_for_a_listing_which_settles_it() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    world.send();
    world.finish(End::UnknownApplied);
    assert!(!world.addresses.needs_listing(), "it is sent again anyway");
    world.remove_node("a");
    assert!(world.addresses.needs_listing());
    world.wait(Duration::from_secs(5));
    world.list(false);
    assert!(world.addresses.needs_listing(), "a listing right after the write may not show it yet");
    world.wait(Duration::from_secs(31));
    world.list(false);
    assert!(!world.addresses.needs_listing());
    world.check();
    sync(&mut world);
    assert_eq!(azure(&world), [""; 0]);
}

#[test]
fn a_poison_address_is_found_and_set_aside_and_all_others_go_through() {
    let mut world = world();
    world.poison.insert(ip("10.1.0.77"));
    for service in [1, 2] {
        let endpoints: Vec<String> = (1..=100).map(|at| format!("10.{service}.0.{at}@a")).collect();
        let endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
        world.apply_slice(slice(&format!("s{service}"), service, &endpoints));
    }
    while world.send() {
        world.finish(End::Success);
        world.check();
    }
    assert_eq!(world.azure.len(), 199);
    assert!(world.calls <= 25, "{} calls", world.calls);
    assert_eq!(world.addresses.quarantined(world.index(WEB)), 1);
    let told = world.addresses.take_notices();
    let [AddressNotice::Quarantined { service, entries, .. }] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(&**service, "web");
    assert_eq!(*entries, Sample { first: vec![(ip("10.0.0.1"), ip("10.1.0.77"))], count: 1 });
    // It is tried again after a while, in vain, and not told again.
    let retry = world.addresses.wake_at().unwrap();
    assert_eq!(retry.since(world.now), Duration::from_secs(300));
    world.now = retry;
    assert!(world.send());
    world.finish(End::Success);
    assert!(!world.send());
    assert_eq!(world.addresses.take_notices(), []);
    // And once Azure likes it, it goes through.
    world.poison.clear();
    sync(&mut world);
    assert_eq!(world.azure.len(), 200);
}

#[test]
fn new_changes_are_sent_between_the_steps_of_a_bisection() {
    let mut world = world();
    world.poison.insert(ip("10.1.0.7"));
    let endpoints: Vec<String> = (1..=64).map(|at| format!("10.1.0.{at}@a")).collect();
    let endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
    world.apply_slice(slice("s", 1, &endpoints));
    world.send();
    world.finish(End::Success);
    world.apply_slice(slice("t", 2, &["10.2.0.1@b"]));
    for _ in 0..2 {
        world.send();
        world.finish(End::Success);
    }
    assert!(azure(&world).contains(&"10.2.0.1@10.0.0.2 api".to_string()));
}

#[test]
fn a_service_that_azure_does_not_know_is_set_aside_as_a_whole_within_a_few_calls() {
    let mut world = world();
    world.unregistered.insert("web".into());
    let endpoints: Vec<String> = (1..=200).map(|at| format!("10.1.0.{at}@a")).collect();
    let endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
    world.apply_slice(slice("s", 1, &endpoints));
    world.apply_slice(slice("t", 2, &["10.2.0.1@b"]));
    while world.send() {
        world.finish(End::Success);
    }
    assert_eq!(azure(&world), ["10.2.0.1@10.0.0.2 api"]);
    assert!(world.calls <= 6, "{} calls", world.calls);
    assert_eq!(world.addresses.quarantined(world.index(WEB)), 200);
    // Registered again, it need not wait for its turn.
    world.unregistered.clear();
    world.addresses.release_quarantined(world.index(WEB));
    world.drain(100);
    world.check_settled();
}

#[test]
fn an_address_in_quarantine_that_changes_is_tried_at_once_and_one_that_goes_is_forgotten() {
    let mut world = world();
    world.poison.insert(ip("10.1.0.1"));
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    world.send();
    world.finish(End::Success);
    assert_eq!(world.addresses.quarantined(world.index(WEB)), 1);
    world.apply_slice(slice("t", 2, &["10.1.0.1@a"]));
    assert!(world.send(), "it changed");
    world.finish(End::Success);
    world.remove_slice(&slice_name("s"));
    world.remove_slice(&slice_name("t"));
    assert_eq!(world.addresses.totals().quarantined, 0);
    assert!(!world.send());
    assert_eq!(world.addresses.wake_at(), None);
    world.check_settled();
}

#[test]
fn an_unbinding_that_azure_refuses_does_not_hold_a_deletion() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    world.apply_slice(slice("t", 2, &["10.1.0.2@a"]));
    sync(&mut world);
    world.list(false);
    world.sticky.insert(ip("10.1.0.1"));
    world.set_ready(WEB, false);
    world.send();
    world.finish(End::Success);
    assert_eq!(world.addresses.mapped(world.index(WEB)), 1);
    world.drain(5);
    assert_eq!(world.addresses.mapped(world.index(WEB)), 0);
    assert_eq!(azure(&world), ["10.1.0.2@10.0.0.1 api"]);
    let told = world.addresses.take_notices();
    let full = AddressNotice::RemovedByFullUpdate { location: ip("10.0.0.1"), address: ip("10.1.0.1") };
    assert_eq!(told, [full]);
    world.check_settled();
}

#[test]
fn an_address_leaves_its_old_location_first_if_azure_insists() {
    let mut world = world();
    world.one_location_each = true;
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    sync(&mut world);
    world.apply_slice(slice("s", 1, &["10.1.0.1@b"]));
    let calls = world.calls;
    while world.send() {
        world.finish(End::Success);
    }
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.2 web"]);
    assert!(world.calls - calls <= 4, "{} calls", world.calls - calls);
    world.check_settled();
}
