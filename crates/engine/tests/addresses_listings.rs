//! One story for each hazard of what Azure shows: adoption, drift, odd listings, and what is asked of the diff.

mod addresses_world;

use std::time::Duration;

use addresses_world::scene::{WEB, azure, by_uid, node, pod, slice, slice_name, sync, world};
use addresses_world::{End, World, failure, ip};
use sluice_engine::addresses::{Limits, Mode, PortResolution, Trust};
use sluice_model::azure::{AddressUpdate, Location, LocationUpdate};
use sluice_model::kube::{Protocol, Slice, SlicePort};
use sluice_model::{FailureClass, Time, Uid};

#[test]
fn what_azure_already_has_is_adopted_without_a_write() {
    let mut world = World::new(Limits::default(), &["web"]);
    world.azure.insert((ip("10.0.0.1"), ip("10.1.0.1")), ["web".to_string()].into());
    world.apply_node(node("a", &["10.0.0.1"]));
    world.bind(by_uid(1), Some(WEB));
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
    world.addresses.bind(by_uid(5), Some(gone));
    world.addresses.apply_pod(&pod(1, "10.1.0.1", "a", 1), Some(gone));
    world.addresses.finish(world.now, None);
    world.addresses.finish(Time::ZERO, Some(&failure(FailureClass::Rejected)));
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
