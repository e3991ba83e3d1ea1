//! What a service gateway knows: its registered services, and the addresses that name them.
//!
//! What would be slow to find anew is kept beside the lists it follows from, each in one place.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::Bound;

use sluice_model::azure::{AddressUpdate, Location, Registration};

/// What a service gateway knows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contents {
    /// The registered services, by name in lower case.
    registrations: BTreeMap<Arc<str>, Registration>,
    /// The addresses with their services, by location. No set and no location is empty.
    locations: BTreeMap<IpAddr, BTreeMap<IpAddr, BTreeSet<Arc<str>>>>,
    /// How many addresses each service has.
    mapped: BTreeMap<Arc<str>, usize>,
    /// The registered services that are the default.
    defaults: BTreeSet<Arc<str>>,
}

impl Contents {
    /// The registered services, by name.
    pub fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.registrations.values()
    }

    /// One registered service; case does not matter.
    pub fn registration(&self, name: &str) -> Option<&Registration> {
        self.registrations.get(&lower(name))
    }

    /// The locations, by address.
    pub fn locations(&self) -> impl Iterator<Item = Location> {
        self.locations_after(None)
    }

    /// The registered services whose names come after this one.
    pub(crate) fn registrations_after(&self, name: Option<&str>) -> impl Iterator<Item = &Registration> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(lower(name)));
        self.registrations.range((from, Bound::Unbounded)).map(|(_, registration)| registration)
    }

    /// The locations that come after this one.
    pub(crate) fn locations_after(&self, location: Option<IpAddr>) -> impl Iterator<Item = Location> {
        let from = location.map_or(Bound::Unbounded, Bound::Excluded);
        self.locations.range((from, Bound::Unbounded)).map(|(&location, addresses)| Location {
            location,
            addresses: (addresses.iter())
                .map(|(&address, services)| AddressUpdate {
                    address,
                    services: services.iter().cloned().collect(),
                })
                .collect(),
        })
    }

    /// How many addresses name this service.
    pub fn mapped(&self, service: &str) -> usize {
        self.mapped.get(&lower(service)).copied().unwrap_or(0)
    }

    /// The services of one address at one location.
    pub fn services_of(&self, location: IpAddr, address: IpAddr) -> Vec<Arc<str>> {
        let services = self.locations.get(&location).and_then(|addresses| addresses.get(&address));
        services.into_iter().flatten().cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.registrations.is_empty() && self.locations.is_empty()
    }

    /// Writes a registration, or takes it away; hands out the one before. Only the state may call this,
    /// which keeps account of who names whom.
    pub(crate) fn register(
        &mut self,
        name: &str,
        registration: Option<Registration>,
    ) -> Option<Registration> {
        let name = lower(name);
        if registration.as_ref().is_some_and(|it| it.is_default) {
            self.defaults.insert(Arc::clone(&name));
        } else {
            self.defaults.remove(&name);
        }
        match registration {
            Some(new) => self.registrations.insert(name, new),
            None => self.registrations.remove(&name),
        }
    }

    /// The names of the registered services that are the default, in lower case.
    pub(crate) fn defaults(&self) -> impl Iterator<Item = &Arc<str>> {
        self.defaults.iter()
    }

    /// Writes the services of one address; none of them unbinds it.
    pub(crate) fn bind<'a>(
        &mut self,
        location: IpAddr,
        address: IpAddr,
        services: impl Iterator<Item = &'a Arc<str>>,
    ) {
        // One copy of a name is enough for all addresses that are bound to it.
        let known = |name: Arc<str>| match self.registrations.get_key_value(&name) {
            Some((known, _)) => Arc::clone(known),
            None => name,
        };
        let new: BTreeSet<Arc<str>> = services.map(|service| known(lower(service))).collect();
        for service in &new {
            *self.mapped.entry(Arc::clone(service)).or_default() += 1;
        }
        let addresses = self.locations.entry(location).or_default();
        let old = if new.is_empty() { addresses.remove(&address) } else { addresses.insert(address, new) };
        if addresses.is_empty() {
            self.locations.remove(&location);
        }
        for service in old.iter().flatten() {
            count_down(&mut self.mapped, service);
        }
    }

    /// Takes a service off all addresses.
    pub(crate) fn unmap(&mut self, service: &str) {
        let service = lower(service);
        let holds = |services: &BTreeSet<Arc<str>>| services.contains(&service);
        let bound: Vec<(IpAddr, IpAddr)> = (self.locations.iter())
            .flat_map(|(&location, all)| all.iter().map(move |(&address, it)| (location, address, it)))
            .filter(|(_, _, services)| holds(services))
            .map(|(location, address, _)| (location, address))
            .collect();
        for (location, address) in bound {
            let kept = self.services_of(location, address);
            self.bind(location, address, kept.iter().filter(|name| **name != service));
        }
    }

    pub(crate) fn addresses_at(&self, location: IpAddr) -> Vec<IpAddr> {
        self.locations.get(&location).into_iter().flat_map(|addresses| addresses.keys().copied()).collect()
    }
}

/// One less; what is at zero is not kept.
pub(crate) fn count_down<K: Ord + Clone>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// Names of services differ by everything but case.
pub(crate) fn lower(name: &str) -> Arc<str> {
    name.to_ascii_lowercase().into()
}
