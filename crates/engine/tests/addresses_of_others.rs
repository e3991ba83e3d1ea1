//! Stories about entries that also name services of others: when they are written, and what a listing changes.

mod addresses_world;

use std::time::Duration;

use addresses_world::scene::{azure, slice, slice_name, sync, world, world_with_bug};
use addresses_world::{End, World, ip};
use sluice_engine::addresses::{Limits, Trust};
use sluice_model::azure::Location;
use sluice_model::seeded::Seeded;

/// A load balancer of others.
const PARTNER: &str = "00000000-0000-0000-0000-0000000000ff";

/// 10.1.0.1 belongs to web and to a partner, as a listing showed long ago.
fn shared() -> World {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    sync(&mut world);
    world.azure.insert((ip("10.0.0.1"), ip("10.1.0.1")), ["web".into(), PARTNER.into()].into());
    world.wait(Duration::from_secs(60));
    world.list(true);
    world.wait(Duration::from_secs(100));
    world
}

/// A listing arrives that took so long.
fn list_for(world: &mut World, span: Duration) {
    let began = world.now;
    world.wait(span);
    let listing = world.listing();
    world.addresses.listed(world.now, began, &listing, Trust::Sweep);
    world.check();
}

#[test]
fn a_listing_that_took_long_still_allows_a_write_beside_an_unmanaged_service() {
    let mut world = shared();
    world.remove_slice(&slice_name("s"));
    assert!(!world.send(), "the entry waits for a listing");
    assert!(world.addresses.needs_listing());
    list_for(&mut world, Duration::from_secs(40));
    assert!(world.send(), "the listing took longer than 30 s");
    world.finish(End::Success);
    assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 00000000-0000-0000-0000-0000000000ff"]);
}

#[test]
fn an_entry_that_waited_for_a_listing_needs_a_second_one_behind_a_slow_batch() {
    let mut world = shared();
    world.remove_slice(&slice_name("s"));
    assert!(!world.send(), "the entry waits for a listing");
    world.apply_slice(slice("t", 2, &["10.1.0.2@b"]));
    assert!(world.send(), "another change does not wait");
    list_for(&mut world, Duration::from_secs(40));
    world.wait(Duration::from_secs(50));
    world.finish(End::Success);
    assert!(!world.send(), "others may have changed it during the batch");
    list_for(&mut world, Duration::from_secs(40));
    assert!(world.send(), "its listing is in");
    world.finish(End::Success);
    assert_eq!(
        azure(&world),
        ["10.1.0.1@10.0.0.1 00000000-0000-0000-0000-0000000000ff", "10.1.0.2@10.0.0.2 api"]
    );
}

#[test]
fn an_entry_needs_a_new_listing_after_a_pause_of_the_lane() {
    let mut world = shared();
    world.remove_slice(&slice_name("s"));
    assert!(!world.send(), "the entry waits for a listing");
    world.apply_slice(slice("t", 2, &["10.1.0.2@b"]));
    assert!(world.send());
    list_for(&mut world, Duration::from_secs(40));
    world.finish(End::Throttled);
    world.wait(Duration::from_secs(600));
    while world.send() {
        world.finish(End::Success);
    }
    assert!(world.addresses.needs_listing(), "others may have changed it during the pause");
    world.check();
}

#[test]
fn an_entry_that_waits_for_a_listing_counts_as_dirty() {
    let mut world = shared();
    assert_eq!(world.addresses.totals().dirty, 0);
    world.remove_slice(&slice_name("s"));
    assert_eq!(world.addresses.totals().dirty, 1);
    assert!(!world.send(), "the entry waits for a listing");
    assert_eq!(world.addresses.totals().dirty, 1);
    world.list(false);
    assert_eq!(world.addresses.totals().dirty, 1);
    world.drain(10);
    assert_eq!(world.addresses.totals().dirty, 0);
}

#[test]
fn a_suspect_that_waited_for_a_listing_is_still_sent_apart_from_the_others() {
    let mut world = shared();
    world.list(false);
    world.remove_slice(&slice_name("s"));
    world.apply_slice(slice("t", 2, &["10.1.0.2@b"]));
    world.sticky.insert(ip("10.1.0.1"));
    assert!(world.send());
    world.finish(End::Success);
    world.wait(Duration::from_secs(100));
    while world.send() {
        world.finish(End::Success);
        world.check();
    }
    assert!(world.addresses.needs_listing(), "the suspect waits for a listing");
    world.list(false);
    world.apply_slice(slice("u", 2, &["10.1.0.3@b"]));
    let mut together = false;
    while world.send() {
        let batch = world.in_flight.clone().unwrap_or_default();
        let has = |address| batch.iter().flat_map(|it| &it.addresses).any(|it| it.address == ip(address));
        together |= has("10.1.0.1") && has("10.1.0.3");
        world.finish(End::Success);
        world.check();
    }
    assert!(!together, "one refusal would hit both");
}

#[test]
fn names_of_others_that_one_listing_has_shown_are_not_overwritten() {
    for written_before in [Duration::from_secs(5), Duration::from_secs(60)] {
        let mut world = left_after_one_listing(Seeded::NONE, written_before);
        assert!(!world.send(), "the entry waits for a second listing");
        world.wait(Duration::from_secs(60));
        world.list(false);
        world.drain(10);
        assert_eq!(azure(&world), ["10.1.0.1@10.0.0.1 00000000-0000-0000-0000-0000000000ff"]);
    }
}

#[test]
fn a_name_of_others_that_one_listing_lacks_is_not_written_again() {
    let entry = (ip("10.0.0.1"), ip("10.1.0.1"));
    for (in_flight, is_listed) in [(false, true), (true, true), (false, false), (true, false)] {
        let mut world = shared();
        if in_flight {
            world.list(false);
            world.remove_slice(&slice_name("s"));
            assert!(world.send(), "the listing is new");
        }
        // Others leave the address, or delete the whole entry.
        match is_listed {
            true => drop(world.azure.insert(entry, ["web".into()].into())),
            false => drop(world.azure.remove(&entry)),
        }
        world.list(false);
        if in_flight {
            world.finish(End::Throttled);
            world.wait(Duration::from_secs(10));
        } else {
            world.remove_slice(&slice_name("s"));
        }
        assert!(!world.send(), "the entry waits for a second listing: {in_flight}, {is_listed}");
        world.wait(Duration::from_secs(60));
        world.list(false);
        world.drain(10);
        assert_eq!(azure(&world), Vec::<String>::new(), "{in_flight}, {is_listed}");
    }
}

/// The simulator cannot see this bug, so it is planted here.
#[cfg(feature = "seeded-bugs")]
#[test]
fn the_bug_that_forgets_the_first_sighting_is_caught() {
    use sluice_model::seeded::Bug;
    let bug = Seeded::with(Bug::ForgetFirstSighting);
    let mut world = left_after_one_listing(bug, Duration::from_secs(60));
    assert!(world.send(), "with the bug, the entry is overwritten at once");
}

/// Others add a name to an address of ours, one listing shows it, and our pod leaves.
fn left_after_one_listing(seeded: Seeded, written_before: Duration) -> World {
    let mut world = world_with_bug(Limits::default(), seeded);
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    sync(&mut world);
    world.azure.insert((ip("10.0.0.1"), ip("10.1.0.1")), ["web".into(), PARTNER.into()].into());
    world.wait(written_before);
    world.list(false);
    world.remove_slice(&slice_name("s"));
    world
}

#[test]
fn an_address_that_one_listing_has_shown_holds_the_deletion_of_a_service_that_is_opened_later() {
    let mut world = world();
    let entry = (ip("10.0.0.1"), ip("10.1.0.9"));
    world.azure.insert(entry, ["Purple".into()].into());
    world.wait(Duration::from_secs(60));
    world.list(false);
    let purple = world.addresses.open("purple");
    assert_eq!(world.addresses.mapped(purple), 1, "a second listing must say otherwise first");
    world.azure.remove(&entry);
    world.wait(Duration::from_secs(60));
    world.list(false);
    assert_eq!(world.addresses.mapped(purple), 0);
}

#[test]
fn a_listing_that_an_entry_waited_for_does_not_count_for_a_later_change() {
    let mut world = shared();
    world.remove_slice(&slice_name("s"));
    assert!(!world.send(), "the entry waits for a listing");
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    world.list(false);
    assert!(!world.send(), "there is nothing to change any more");
    world.wait(Duration::from_secs(600));
    world.remove_slice(&slice_name("s"));
    assert!(!world.send(), "that listing is ten minutes old");
    assert!(world.addresses.needs_listing());
}

#[test]
fn a_listing_that_an_entry_waited_for_does_not_count_for_ever() {
    let mut world = shared();
    world.remove_slice(&slice_name("s"));
    assert!(!world.send(), "the entry waits for a listing");
    world.list(false);
    world.wait(Duration::from_secs(600));
    assert!(!world.send(), "nothing could be sent for ten minutes");
    assert!(world.addresses.needs_listing());
}

#[test]
fn a_location_is_not_written_in_full_while_one_listing_has_shown_others_there() {
    let mut world = world();
    world.apply_slice(slice("s", 1, &["10.1.0.1@a"]));
    sync(&mut world);
    world.azure.insert((ip("10.0.0.1"), ip("10.1.0.9")), [PARTNER.into()].into());
    world.sticky.insert(ip("10.1.0.1"));
    world.wait(Duration::from_secs(60));
    world.list(false);
    world.remove_slice(&slice_name("s"));
    while world.send() {
        world.finish(End::Success);
        world.check();
    }
    assert!(world.addresses.needs_listing(), "a second listing decides");
    assert!(azure(&world).contains(&format!("10.1.0.9@10.0.0.1 {PARTNER}")), "{:?}", azure(&world));
}

#[test]
fn a_location_that_others_use_again_is_not_removed_with_the_empty_ones() {
    let mut world = world();
    let hollow = Location { location: ip("10.0.0.9"), addresses: Vec::new() };
    world.addresses.listed(world.now, world.now, &[hollow], Trust::Sweep);
    world.azure.insert((ip("10.0.0.9"), ip("10.1.0.9")), [PARTNER.into()].into());
    world.wait(Duration::from_secs(5));
    world.list(false);
    world.drain(10);
    assert_eq!(azure(&world), [format!("10.1.0.9@10.0.0.9 {PARTNER}")]);
}
