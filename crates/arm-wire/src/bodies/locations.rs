//! Address locations: what `updateAddressLocations` carries and what a list of them shows.
//!
//! Lists are long, so addresses are read straight from the text, without a tree in between.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use serde::{Deserialize, Serialize, Serializer};
use sluice_model::azure::{AddressUpdate, Location, LocationUpdate};

use super::text::Text;
use super::{Misread, Outline, json as write, list};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    action: &'static str,
    address_locations: Vec<Place<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Place<'a> {
    address_location: Ip,
    address_update_action: &'static str,
    addresses: Vec<Address<'a>>,
}

#[derive(Serialize)]
struct Address<'a> {
    address: Ip,
    services: Names<'a>,
}

struct Ip(IpAddr);

impl Serialize for Ip {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.to_canonical())
    }
}

struct Names<'a>(&'a [Arc<str>]);

impl Serialize for Names<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|name| &**name))
    }
}

/// The body of `updateAddressLocations`; partial for the gateway, whatever it is for each location.
pub(crate) fn json(updates: &[LocationUpdate]) -> Vec<u8> {
    write(&Update { action: "PartialUpdate", address_locations: updates.iter().map(written).collect() })
}

fn written(update: &LocationUpdate) -> Place<'_> {
    let addresses = update.addresses.iter();
    Place {
        address_location: Ip(update.location),
        address_update_action: if update.full { "FullUpdate" } else { "PartialUpdate" },
        addresses: addresses
            .map(|it| Address { address: Ip(it.address), services: Names(&it.services) })
            .collect(),
    }
}

/// A location as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LocationOutline {
    address_location: Option<Text<IpAddr>>,
    #[serde(default, deserialize_with = "list")]
    addresses: Vec<FoundAddress>,
}

#[derive(Deserialize)]
struct FoundAddress {
    address: Option<Text<IpAddr>>,
    #[serde(default, deserialize_with = "list")]
    services: Vec<Text<Arc<str>>>,
}

impl Outline<'_> for LocationOutline {
    type Model = Location;

    fn model(self) -> Result<Location, Misread> {
        let missing = |what: &str| Misread::Malformed(String::from(what));
        let location =
            self.address_location.ok_or_else(|| missing("a location has no \"addressLocation\""))?;
        let mut addresses = Vec::with_capacity(self.addresses.len());
        for found in self.addresses {
            let address = found.address.ok_or_else(|| missing("an address has no \"address\""))?;
            let services = found.services.into_iter().map(|name| name.0).collect();
            addresses.push(AddressUpdate { address: address.0, services });
        }
        Ok(Location { location: location.0, addresses })
    }
}
