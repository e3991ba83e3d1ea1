//! `updateAddressLocations`, and the list of what is bound where.

use std::net::IpAddr;

use serde_json::{Value, json};
use sluice_model::azure::{AddressUpdate, ArmId, Location, LocationUpdate};

use super::fields::Object;
use super::full_update;
use super::kinds::View;
use super::refused::{Refused, printable};
use super::services::{Action, only};

/// Reads the body of `updateAddressLocations`.
pub(crate) fn read(view: View<'_>, gateway: &ArmId, body: &Value) -> Result<Vec<LocationUpdate>, Refused> {
    let object = Object::body(body)?;
    only(&object, &["action", "addressLocations"])?;
    let action = Action::read(&object, "action")?;
    let listed = match object.objects("addressLocations")? {
        Some(listed) => listed,
        // All addresses would go, by a field that was forgotten.
        None if action == Action::Full => {
            return Err(Refused::unreadable("addressLocations", "A full update needs a list."));
        }
        None => Vec::new(),
    };
    let updates = listed.iter().map(read_one).collect::<Result<Vec<_>, _>>()?;
    Ok(match action {
        Action::Partial => updates,
        Action::Full => full_update::of_locations(view.state().locations(gateway), updates),
    })
}

fn read_one(one: &Object<'_>) -> Result<LocationUpdate, Refused> {
    only(one, &["addressLocation", "addressUpdateAction", "addresses"])?;
    let location = read_ip(one, "addressLocation")?;
    let full = Action::read(one, "addressUpdateAction")? == Action::Full;
    let mut addresses = Vec::new();
    for entry in one.objects("addresses")?.unwrap_or_default() {
        only(&entry, &["address", "services"])?;
        let address = read_ip(&entry, "address")?;
        let services = entry.texts("services")?.unwrap_or_default();
        addresses.push(AddressUpdate { address, services: services.into_iter().map(Into::into).collect() });
    }
    Ok(LocationUpdate { location, full, addresses })
}

fn read_ip(object: &Object<'_>, field: &str) -> Result<IpAddr, Refused> {
    let Some(text) = object.text(field)? else {
        return Err(Refused::unreadable(&object.at(field), "An address is missing."));
    };
    text.parse().map_err(|_| {
        let message = format!("'{}' at {} is no IP address.", printable(text), object.at(field));
        Refused::provider(400, "InvalidAddress", message)
    })
}

/// A location with its addresses.
pub(crate) fn show(it: &Location) -> Value {
    let addresses = it.addresses.iter().map(|entry| {
        let services = entry.services.iter().map(|name| Value::from(&**name)).collect::<Vec<_>>();
        json!({ "address": entry.address.to_string(), "services": services })
    });
    json!({ "addressLocation": it.location.to_string(), "addresses": addresses.collect::<Vec<_>>() })
}
