//! A full update of a gateway, as the partial update with the same end.
//!
//! The model knows partial updates only. A full one names everything that there should be, so what is there
//! and not named is added as something to take away.

use std::collections::BTreeSet;

use sluice_model::azure::{Location, LocationUpdate, Registration, ServiceRequest};

/// All services that there should be.
pub(crate) fn of_services<'a>(
    there: impl Iterator<Item = &'a Registration>,
    mut listed: Vec<ServiceRequest>,
) -> Vec<ServiceRequest> {
    let named: BTreeSet<String> =
        listed.iter().map(|request| request.service.name.to_ascii_lowercase()).collect();
    let gone = there.filter(|it| !named.contains(&it.name.to_ascii_lowercase()));
    listed.extend(gone.map(|service| ServiceRequest { is_delete: true, service: service.clone() }));
    listed
}

/// All locations that there should be, each with all its addresses.
pub(crate) fn of_locations(
    there: impl Iterator<Item = Location>,
    listed: Vec<LocationUpdate>,
) -> Vec<LocationUpdate> {
    let named: BTreeSet<_> = listed.iter().map(|update| update.location).collect();
    let gone = there.filter(|it| !named.contains(&it.location)).map(|it| it.location);
    let gone = gone.map(|location| LocationUpdate { location, full: false, addresses: Vec::new() });
    listed.into_iter().map(|update| LocationUpdate { full: true, ..update }).chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_model::azure::{AddressUpdate, Direction};

    fn service(name: &str) -> Registration {
        Registration {
            name: name.into(),
            direction: Direction::Inbound,
            is_default: false,
            pools: Vec::new(),
            nat_gateway: None,
        }
    }

    #[test]
    fn services_that_are_not_named_go_and_case_is_no_difference() {
        let there = [service("Web"), service("old")];
        let listed = vec![ServiceRequest { is_delete: false, service: service("web") }];
        let all = of_services(there.iter(), listed);
        let told: Vec<_> = all.iter().map(|it| (&*it.service.name, it.is_delete)).collect();
        assert_eq!(told, [("web", false), ("old", true)]);
    }

    #[test]
    fn locations_that_are_not_named_go_and_the_others_are_replaced() {
        let at = |text: &str| text.parse().unwrap();
        let addresses = vec![AddressUpdate { address: at("10.1.0.1"), services: Vec::new() }];
        let there =
            ["10.0.0.1", "10.0.0.2"].map(|it| Location { location: at(it), addresses: addresses.clone() });
        let listed = vec![LocationUpdate { location: at("10.0.0.2"), full: false, addresses }];
        let all = of_locations(there.into_iter(), listed);
        let told: Vec<_> = all.iter().map(|it| (it.location, it.full, it.addresses.len())).collect();
        assert_eq!(told, [(at("10.0.0.2"), true, 1), (at("10.0.0.1"), false, 0)]);
    }
}
