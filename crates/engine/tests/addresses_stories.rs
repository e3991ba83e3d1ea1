//! One story for each hazard of the address diff.

mod addresses_world;

use std::net::IpAddr;
use std::time::Duration;

use addresses_world::{End, World, failure, ip};
use sluice_engine::addresses::{AddressNotice, Limits, Mode, OwnerKey, PortResolution, Trust};
use sluice_model::azure::{AddressUpdate, Location, LocationUpdate};
use sluice_model::kube::{Endpoint, NodeObject, Phase, PodObject, Protocol, Slice, SliceOwner, SlicePort};
use sluice_model::{FailureClass, Family, ObjectName, Time, Uid};

const WEB: usize = 0;
const API: usize = 1;
const BLUE: usize = 2;
const GREEN: usize = 3;

/// Nodes a and b, services web and api (bound by UID), egresses blue and green; all ready.
fn world() -> World {
    world_with(Limits::default())
}

fn world_with(limits: Limits) -> World {
    let mut world = World::new(limits, &["web", "api", "blue", "green"]);
    world.apply_node(node("a", &["10.0.0.1", "fd01::1"]));
    world.apply_node(node("b", &["10.0.0.2"]));
    world.bind(OwnerKey::Uid(Uid::from_number(1)), Some(WEB));
    world.bind(OwnerKey::Uid(Uid::from_number(2)), Some(API));
    for service in [WEB, API, BLUE, GREEN] {
        world.set_ready(service, true);
    }
    world
}

fn node(name: &str, ips: &[&str]) -> NodeObject {
    NodeObject { name: name.into(), version: 0, internal_ips: ips.iter().map(|text| ip(text)).collect() }
}

/// `"10.1.0.1@a"` is ready; with `~` it is serving and terminating, with `!` nothing.
fn endpoint(text: &str) -> Endpoint {
    let (bare, state) = match text.strip_suffix(['~', '!']) {
        Some(bare) => (bare, &text[bare.len()..]),
        None => (text, ""),
    };
    let (address, node) = bare.split_once('@').unwrap_or((bare, ""));
    Endpoint {
        address: ip(address),
        node: Some(node.into()).filter(|_| !node.is_empty()),
        ready: state.is_empty(),
        serving: state != "!",
        terminating: state == "~",
    }
}

fn slice(name: &str, owner: u128, endpoints: &[&str]) -> Slice {
    Slice {
        name: ObjectName::new("shop", name),
        version: 0,
        owner: SliceOwner::Uid(Uid::from_number(owner)),
        ports: vec![],
        endpoints: endpoints.iter().map(|text| endpoint(text)).collect(),
        malformed: vec![],
    }
}

fn slice_name(name: &str) -> ObjectName {
    ObjectName::new("shop", name)
}

fn pod(uid: u128, address: &str, node: &str, created: u64) -> PodObject {
    PodObject {
        uid: Uid::from_number(uid),
        name: ObjectName::new("shop", "pod"),
        version: 0,
        egress: None,
        node: Some(node.into()),
        ips: if address.is_empty() { vec![] } else { vec![ip(address)] },
        host_ips: vec![],
        phase: Phase::Running,
        terminating: false,
        host_network: false,
        created,
    }
}

/// Azure, one line per address.
fn azure(world: &World) -> Vec<String> {
    let line =
        |(&(location, address), services): (&(IpAddr, IpAddr), &std::collections::BTreeSet<String>)| {
            let services: Vec<&str> = services.iter().map(String::as_str).collect();
            format!("{address}@{location} {}", services.join("+"))
        };
    world.azure.iter().map(line).collect()
}

fn sync(world: &mut World) {
    world.drain(500);
    world.check_settled();
}

#[test]
fn addresses_wait_until_their_service_is_ready() {
    let mut world = world();
    world.set_ready(WEB, false);
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    assert!(!world.send());
    assert_eq!(world.addresses.totals().buffered, 1);
    world.set_ready(WEB, true);
    assert_eq!((world.addresses.totals().buffered, world.addresses.totals().promoted), (0, 1));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 web"]);
}

#[test]
fn slices_of_a_service_that_is_not_ours_cost_nothing_until_it_is() {
    let mut world = world();
    world.apply_slice(slice("s", 9, &["10.1.0.1@a"]));
    assert!(!world.send());
    assert_eq!((world.addresses.totals().buffered, world.addresses.totals().wanted), (0, 0));
    world.bind(OwnerKey::Uid(Uid::from_number(9)), Some(API));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 api"]);
    world.bind(OwnerKey::Uid(Uid::from_number(9)), None);
    sync(&mut world);
    assert_eq!(azure(&world), [""; 0]);
}

#[test]
fn an_address_that_moves_between_slices_is_never_lost_and_never_written() {
    for add_first in [true, false] {
        let mut world = world();
        world.apply_slice(slice("one", 1, &["10.1.0.1@a", "10.1.0.2@a"]));
        sync(&mut world);
        let calls = world.calls;
        let add = slice("two", 1, &["10.1.0.2@a"]);
        let remove = slice("one", 1, &["10.1.0.1@a"]);
        let order = if add_first { [add, remove] } else { [remove, add] };
        for slice in order {
            world.apply_slice(slice);
            world.check();
        }
        sync(&mut world);
        assert_eq!(world.calls, calls, "add first: {add_first}");
        assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 web", "10.1.0.2@10.0.0.1 web"]);
    }
}

#[test]
fn an_address_of_two_services_and_an_egress_is_one_entry_with_all_three() {
    let mut world = world();
    world.apply_slice(slice("one", 1, &["10.1.0.1@a"]));
    world.apply_slice(slice("two", 2, &["10.1.0.1@a"]));
    world.apply_pod(pod(1, "10.1.0.1", "a", 1), Some(BLUE));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 api+blue+web"]);
    world.set_ready(API, false);
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 blue+web"]);
}

#[test]
fn terminating_endpoints_count_only_while_nobody_is_ready() {
    let mut world = world();
    world.apply_slice(slice("one", 1, &["10.1.0.1@a~", "10.1.0.2@a!"]));
    world.apply_slice(slice("two", 1, &["10.1.0.3@b~"]));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 web", "10.1.0.3@10.0.0.2 web"]);
    world.apply_slice(slice("two", 1, &["10.1.0.3@b~", "10.1.0.4@b"]));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.4@10.0.0.2 web"]);
    world.remove_slice(&slice_name("two"));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 web"]);
}

#[test]
fn a_replacement_pod_with_the_same_ip_survives_the_late_delete_of_the_old_one() {
    let mut world = world();
    world.apply_pod(pod(1, "10.1.0.1", "a", 1), Some(BLUE));
    sync(&mut world);
    world.apply_pod(pod(2, "10.1.0.1", "b", 2), Some(GREEN));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.2 green"]);
    world.remove_pod(Uid::from_number(1));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.2 green"]);
}

#[test]
fn a_terminating_pod_keeps_its_address_until_another_takes_it_and_gets_it_back() {
    let mut world = world();
    world.apply_pod(PodObject { terminating: true, ..pod(1, "10.1.0.1", "a", 5) }, Some(BLUE));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 blue"]);
    world.apply_pod(pod(2, "10.1.0.1", "a", 1), Some(GREEN));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 green"]);
    world.remove_pod(Uid::from_number(2));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 blue"]);
    world.apply_pod(PodObject { phase: Phase::Finished, ..pod(1, "10.1.0.1", "a", 5) }, Some(BLUE));
    sync(&mut world);
    assert_eq!(azure(&world), [""; 0]);
}

#[test]
fn a_pod_is_counted_once_however_often_it_is_applied() {
    let mut world = world();
    for _ in 0..3 {
        world.apply_pod(pod(1, "", "a", 1), Some(BLUE));
    }
    assert_eq!(world.addresses.pods(world.index(BLUE)), 1);
    assert!(world.addresses.take_touched().contains(&world.index(BLUE)));
    world.apply_pod(pod(1, "", "a", 1), Some(GREEN));
    assert_eq!(world.addresses.pods(world.index(BLUE)), 0);
    assert_eq!(world.addresses.pod_egress(Uid::from_number(1)), Some(world.index(GREEN)));
    world.remove_pod(Uid::from_number(1));
    world.remove_pod(Uid::from_number(1));
    assert_eq!(world.addresses.pods(world.index(GREEN)), 0);
    world.check();
}

#[test]
fn a_pod_on_the_host_network_names_its_egress_and_maps_no_address() {
    let mut world = world();
    world.apply_pod(PodObject { host_network: true, ..pod(1, "10.0.0.1", "a", 1) }, Some(BLUE));
    assert!(!world.send());
    assert_eq!(world.addresses.pods(world.index(BLUE)), 1);
}

#[test]
fn a_node_that_moves_takes_its_addresses_along_in_one_request() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a", "10.1.0.2@a"]));
    sync(&mut world);
    let calls = world.calls;
    world.apply_node(node("a", &["10.0.0.9"]));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.9 web", "10.1.0.2@10.0.0.9 web"]);
    assert_eq!(world.calls, calls + 1);
}

#[test]
fn the_location_is_the_smallest_internal_ip_whatever_the_order() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    world.apply_node(node("a", &["10.0.0.9", "10.0.0.3", "fd01::1"]));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.3 web"]);
}

#[test]
fn a_node_that_goes_drains_its_addresses_and_the_location_with_them() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a", "10.1.0.2@a", "10.1.0.3@b"]));
    sync(&mut world);
    world.remove_node("a");
    assert!(world.send());
    let removal = LocationUpdate { location: ip("10.0.0.1"), full: false, addresses: vec![] };
    assert_eq!(world.in_flight.as_deref(), Some(&[removal][..]), "the location goes as a whole");
    world.finish(End::Success);
    assert_eq!(world.addresses.unplaceable(world.index(WEB)), 2);
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.3@10.0.0.2 web"]);
}

#[test]
fn endpoints_on_an_unknown_node_wait_for_it() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@late", "10.1.0.2"]));
    assert!(!world.send());
    assert_eq!(world.addresses.unplaceable(world.index(WEB)), 2);
    world.apply_node(node("late", &["10.0.0.7"]));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.7 web"]);
    assert_eq!(world.addresses.unplaceable(world.index(WEB)), 1, "without a node there is no place");
}

#[test]
fn the_hosts_ip_stands_in_while_the_node_is_unknown() {
    let mut world = world();
    let host_ips = vec![ip("10.0.0.7")];
    world.apply_pod(PodObject { host_ips, ..pod(1, "10.1.0.1", "late", 1) }, Some(BLUE));
    world.apply_slice(slice("s", 1, &["10.1.0.2@late"]));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.7 blue", "10.1.0.2@10.0.0.7 web"]);
    world.apply_node(node("late", &["10.0.0.8"]));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.8 blue", "10.1.0.2@10.0.0.8 web"]);
}

#[test]
fn two_nodes_with_one_ip_share_the_location_and_part_again() {
    let mut world = world();
    world.apply_slice(slice("one", 1, &["10.1.0.1@a"]));
    world.apply_slice(slice("two", 2, &["10.1.0.1@b", "10.1.0.2@b"]));
    world.apply_node(node("b", &["10.0.0.1"]));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 api+web", "10.1.0.2@10.0.0.1 api"]);
    world.remove_node("a");
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 api", "10.1.0.2@10.0.0.1 api"]);
    world.apply_node(node("b", &["10.0.0.2"]));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.2 api", "10.1.0.2@10.0.0.2 api"]);
}

#[test]
fn each_family_goes_to_the_location_of_its_own_family() {
    let mut world = world();
    let ips = vec![ip("10.1.0.1"), ip("fd00::1"), ip("fd00::2")];
    world.apply_pod(PodObject { ips, ..pod(1, "", "a", 1) }, Some(BLUE));
    world.apply_slice(slice("v6", 1, &["fd00::5@a", "fd00::6@b"]));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 blue", "fd00::1@fd01::1 blue", "fd00::5@fd01::1 web"]);
    assert_eq!(world.addresses.unplaceable(world.index(WEB)), 1);
    let missing = AddressNotice::FamilyMissing { node: "b".into(), family: Family::V6 };
    assert_eq!(world.addresses.take_notices(), [missing]);
    world.apply_slice(slice("v6", 1, &["fd00::5@a", "fd00::6@b", "fd00::7@b"]));
    assert_eq!(world.addresses.take_notices(), [], "it is said once");
}

#[test]
fn unusable_addresses_are_skipped_with_one_warning() {
    let mut world = world();
    let mut odd = slice("s", 1, &["10.1.0.1@a", "127.0.0.1@a", "::ffff:10.1.0.2@a"]);
    odd.malformed = vec!["web.example".into()];
    world.addresses.apply_slice(&odd);
    world.addresses.apply_slice(&odd);
    let addresses = vec!["web.example".into(), "127.0.0.1".into()];
    let warning = AddressNotice::Malformed { slice: slice_name("s"), addresses };
    assert_eq!(world.addresses.take_notices(), [warning]);
    world.drain(10);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 web", "10.1.0.2@10.0.0.1 web"]);
}

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
    let [AddressNotice::Quarantined { entries, count: 1, .. }] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(*entries, [(ip("10.0.0.1"), ip("10.1.0.77"))]);
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

#[test]
fn what_azure_already_has_is_adopted_without_a_write() {
    let mut world = World::new(Limits::default(), &["web"]);
    world.azure.insert((ip("10.0.0.1"), ip("10.1.0.1")), ["web".to_string()].into());
    world.apply_node(node("a", &["10.0.0.1"]));
    world.bind(OwnerKey::Uid(Uid::from_number(1)), Some(WEB));
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    world.set_mode(WEB, Mode::Frozen);
    world.list(true);
    assert_eq!(world.addresses.mapped(world.index(WEB)), 1);
    world.set_ready(WEB, true);
    assert!(!world.send());
    world.check_settled();
}

#[test]
fn addresses_of_a_frozen_service_stay_whatever_the_cluster_says() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a", "10.1.0.2@a"]));
    sync(&mut world);
    world.set_mode(WEB, Mode::Frozen);
    world.remove_slice(&slice_name("s"));
    world.remove_node("a");
    assert!(!world.send());
    world.check();
    world.set_mode(WEB, Mode::Draining);
    sync(&mut world);
    assert_eq!(azure(&world), [""; 0]);
}

#[test]
fn drift_is_repaired_when_two_listings_show_it_and_never_about_fresh_writes() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a", "10.1.0.2@a"]));
    world.drain(10);
    let old = world.listing();
    // Somebody removes one address and adds another for a service that nobody knows.
    world.azure.remove(&(ip("10.0.0.1"), ip("10.1.0.1")));
    world.tampered = true;
    assert_eq!(world.list(false), 0, "written a moment ago");
    world.azure.insert((ip("10.0.0.1"), ip("10.1.0.9")), ["Stranger".to_string()].into());
    world.wait(Duration::from_secs(31));
    assert_eq!(world.list(false), 0, "one sighting is none");
    assert!(!world.send());
    world.wait(Duration::from_secs(900));
    assert_eq!(world.list(false), 2);
    let strangers = world.addresses.strangers();
    assert_eq!(strangers.len(), 1);
    assert_eq!(&**world.addresses.identity(strangers[0]), "stranger");
    world.addresses.set_mode(strangers[0], Mode::Draining);
    world.drain(10);
    world.check_settled();
    assert!(!world.addresses.take_touched().is_empty());
    assert_eq!(world.addresses.strangers(), [], "forgotten with its last address");
    // A listing from before our repairs is not believed.
    let long_ago = Time::from_millis(1_000_000);
    assert_eq!(world.addresses.listed(world.now, long_ago, &old, Trust::Sweep), 0);
    assert_eq!(world.addresses.listed(world.now, long_ago, &old, Trust::Sweep), 0);
    world.check_settled();
}

#[test]
fn nothing_is_written_when_listings_show_what_we_know() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a", "fd00::1@a"]));
    sync(&mut world);
    let calls = world.calls;
    for _ in 0..3 {
        world.wait(Duration::from_secs(900));
        assert_eq!(world.list(false), 0);
        assert!(!world.send());
    }
    assert_eq!(world.calls, calls);
}

#[test]
fn a_location_that_azure_has_without_addresses_is_removed() {
    let mut world = world();
    let location = ip("10.0.0.77");
    let empty = [Location { location, addresses: vec![] }];
    world.addresses.listed(world.now, world.now, &empty, Trust::Baseline);
    assert!(world.send());
    assert_eq!(world.in_flight, Some(vec![LocationUpdate { location, full: false, addresses: vec![] }]));
    world.finish(End::Success);
    assert!(!world.send());
    world.check_settled();
}

#[test]
fn a_listing_that_mixes_families_or_repeats_itself_breaks_nothing() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    sync(&mut world);
    world.wait(Duration::from_secs(900));
    let address = |text: &str, services: &[&str]| AddressUpdate {
        address: ip(text),
        services: services.iter().map(|&name| name.into()).collect(),
    };
    let locations = [
        Location {
            location: ip("10.0.0.1"),
            addresses: vec![address("fd00::1", &["web"]), address("10.1.0.1", &["WEB", "web"])],
        },
        Location { location: ip("10.0.0.1"), addresses: vec![address("10.1.0.1", &["api"])] },
    ];
    assert_eq!(world.addresses.listed(world.now, world.now, &locations, Trust::Reread), 0);
    world.check_settled();
}

#[test]
fn named_ports_resolve_when_all_counting_endpoints_agree() {
    let mut world = world();
    let with_port = |name: &str, endpoints: &[&str], port: Option<u16>| Slice {
        ports: vec![SlicePort { name: "http".into(), protocol: Protocol::Tcp, port }],
        ..slice(name, 1, endpoints)
    };
    let port = |world: &World| world.addresses.port(world.index(WEB), "http", Protocol::Tcp);
    assert_eq!(port(&world), PortResolution::Unresolved);
    world.apply_slice(with_port("one", &["10.1.0.1@a"], Some(8080)));
    assert_eq!(port(&world), PortResolution::Agreed(8080));
    world.addresses.take_touched();
    world.apply_slice(with_port("two", &["10.1.0.2@a"], Some(9090)));
    assert_eq!(port(&world), PortResolution::Disagree);
    assert_eq!(world.addresses.take_touched(), [world.index(WEB)]);
    world.apply_slice(with_port("two", &["10.1.0.2@a~"], Some(9090)));
    assert_eq!(port(&world), PortResolution::Agreed(8080), "only those that count are asked");
    world.apply_slice(with_port("one", &["10.1.0.1@a"], None));
    assert_eq!(port(&world), PortResolution::Unresolved);
    assert_eq!(world.addresses.port(world.index(WEB), "http", Protocol::Udp), PortResolution::Unresolved);
}

#[test]
fn numbers_that_name_nothing_and_ends_of_no_request_do_nothing() {
    let mut world = world();
    let gone = world.addresses.open("gone");
    world.addresses.close(gone);
    world.addresses.close(gone);
    world.addresses.set_ready(gone, true);
    world.addresses.bind(OwnerKey::Uid(Uid::from_number(5)), Some(gone));
    world.addresses.apply_pod(&pod(1, "10.1.0.1", "a", 1), Some(gone));
    world.addresses.finish(world.now, None);
    world.addresses.finish(Time::ZERO, Some(&failure(FailureClass::Refused)));
    world.addresses.release_quarantined(gone);
    assert_eq!(&**world.addresses.identity(gone), "");
    assert_eq!((world.addresses.mapped(gone), world.addresses.pods(gone)), (0, 0));
    assert_eq!(world.addresses.port(gone, "", Protocol::Tcp), PortResolution::Unresolved);
    assert_eq!(world.addresses.holding(gone, 3), []);
    assert!(!world.addresses.has_pod(Uid::from_number(1)));
    world.check();
}

#[test]
fn an_identity_keeps_its_number_while_anything_mentions_it() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    sync(&mut world);
    let before = world.index(WEB);
    world.addresses.close(before);
    assert_eq!(world.addresses.open("WEB"), before);
    world.check();
}
