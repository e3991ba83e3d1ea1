//! One story for each hazard of what is wanted, and where.

mod addresses_world;

use core::time::Duration;

use addresses_world::scene::{
    API, BLUE, GREEN, WEB, azure, by_uid, node, pod, slice, slice_name, sync, world,
};
use addresses_world::{End, ip};
use sluice_engine::addresses::{AddressNotice, Sample};
use sluice_model::azure::{AddressUpdate, LocationUpdate};
use sluice_model::kube::{Phase, PodObject, Slice};
use sluice_model::{Family, ObjectName, Uid};

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
    world.bind(by_uid(9), Some(API));
    sync(&mut world);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 api"]);
    world.bind(by_uid(9), None);
    sync(&mut world);
    assert_eq!(azure(&world), [""; 0]);
}

#[test]
fn a_slice_counts_only_for_a_service_of_its_own_namespace() {
    for service_first in [true, false] {
        let mut world = world();
        if service_first {
            world.bind(by_uid(9), Some(API));
        }
        let foreign = slice("s", 9, &["10.1.0.6@a"]);
        world.apply_slice(Slice { name: ObjectName::new("evil", "s"), ..foreign });
        world.apply_slice(slice("s", 9, &["10.1.0.1@a"]));
        world.bind(by_uid(9), Some(API));
        sync(&mut world);
        assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 api"], "service first: {service_first}");
    }
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
    world.list(false);
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
    let addresses = Sample { first: vec!["web.example".into(), "127.0.0.1".into()], count: 2 };
    let warning = AddressNotice::Malformed { service: "web".into(), slice: slice_name("s"), addresses };
    assert_eq!(world.addresses.take_notices(), [warning]);
    world.drain(10);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 web", "10.1.0.2@10.0.0.1 web"]);
}

#[test]
fn a_standby_keeps_a_bounded_number_of_notices() {
    let mut world = world();
    let (odd, right) = (slice("s", 1, &["127.0.0.1@a"]), slice("s", 1, &["10.1.0.1@a"]));
    for _ in 0..5_000 {
        world.addresses.apply_slice(&odd);
        world.addresses.apply_slice(&right);
    }
    assert_eq!(world.addresses.take_notices().len(), 1_000);
}

#[test]
fn a_location_that_was_listed_long_ago_loses_our_addresses_by_name() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a", "10.1.0.3@b"]));
    sync(&mut world);
    world.list(false);
    world.wait(Duration::from_secs(31));
    world.remove_node("a");
    assert!(world.send());
    let address = AddressUpdate { address: ip("10.1.0.1"), services: vec![] };
    let unbinding = LocationUpdate { location: ip("10.0.0.1"), full: false, addresses: vec![address] };
    assert_eq!(world.in_flight.as_deref(), Some(&[unbinding][..]), "others may have addresses there by now");
}
