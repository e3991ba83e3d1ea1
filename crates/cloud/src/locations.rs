//! `updateAddressLocations`: which address lives where, and for which services.
//!
//! A request is carried out as a whole or not at all; one bad address refuses everybody.

use alloc::collections::BTreeSet;

use sluice_model::address::{Family, is_routable};
use sluice_model::azure::{AddressUpdate, ArmId, LocationUpdate};

use crate::cloud::Cloud;
use crate::contents::lower;
use crate::refusal::Refusal;

impl Cloud {
    /// Whether all of a request can be carried out.
    pub(crate) fn check_locations(&self, gateway: &ArmId, updates: &[LocationUpdate]) -> Result<(), Refusal> {
        let mut locations = BTreeSet::new();
        for update in updates {
            let location = update.location;
            if !locations.insert(location) {
                return Err(Refusal::location_twice(location));
            }
            if !is_routable(location) || location.to_canonical() != location {
                return Err(Refusal::bad_address(location));
            }
            let mut addresses = BTreeSet::new();
            for entry in &update.addresses {
                let address = entry.address;
                if !addresses.insert(address) {
                    return Err(Refusal::address_twice(location, address));
                }
                if Family::of(address) != Family::of(location) {
                    return Err(Refusal::mixed_families(location, address));
                }
                if !is_routable(address)
                    || address.to_canonical() != address
                    || self.poison.contains(&address)
                {
                    return Err(Refusal::bad_address(address));
                }
                self.check_names(gateway, entry)?;
            }
        }
        Ok(())
    }

    fn check_names(&self, gateway: &ArmId, entry: &AddressUpdate) -> Result<(), Refusal> {
        let mut names = BTreeSet::new();
        for service in &entry.services {
            if !names.insert(lower(service)) {
                return Err(Refusal::service_twice(service));
            }
            if self.state.registration(gateway, service).is_none() {
                return Err(Refusal::unknown_service(service, entry.address));
            }
        }
        Ok(())
    }

    /// Carries out what has been checked.
    pub(crate) fn apply_locations(&mut self, gateway: &ArmId, updates: &[LocationUpdate]) {
        let Some(contents) = self.state.contents.get_mut(gateway) else { return };
        for update in updates {
            // A full update begins with an empty location, and so ends a partial one without addresses.
            if update.full || update.addresses.is_empty() {
                for address in contents.addresses_at(update.location) {
                    contents.bind(update.location, address, core::iter::empty());
                }
            }
            for entry in &update.addresses {
                contents.bind(update.location, entry.address, entry.services.iter());
            }
        }
    }
}

/// About how long the JSON of a request is.
pub(crate) fn body_bytes(updates: &[LocationUpdate]) -> usize {
    let entry =
        |entry: &AddressUpdate| 60 + entry.services.iter().map(|service| service.len() + 3).sum::<usize>();
    let location = |update: &LocationUpdate| 110 + update.addresses.iter().map(entry).sum::<usize>();
    60 + updates.iter().map(location).sum::<usize>()
}
