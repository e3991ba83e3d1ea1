//! Resource groups and virtual networks, of which we need nothing but that they are there.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use sluice_model::azure::ArmId;

use super::text::Text;
use super::{Misread, Outline, json, required};

/// Wide enough for every subnet that anybody puts in; networks are only made in tests.
const ADDRESS_SPACE: &str = "10.0.0.0/8";

#[derive(Serialize)]
struct Container<'a> {
    location: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<Properties>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    address_space: AddressSpace,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AddressSpace {
    address_prefixes: [&'static str; 1],
}

/// The body of a group's PUT.
pub(crate) fn group(region: &str) -> Vec<u8> {
    json(&Container { location: region, properties: None })
}

/// The body of a network's PUT.
pub(crate) fn network(region: &str) -> Vec<u8> {
    let address_space = AddressSpace { address_prefixes: [ADDRESS_SPACE] };
    json(&Container { location: region, properties: Some(Properties { address_space }) })
}

/// Anything with an id.
#[derive(Deserialize)]
pub(crate) struct ContainerOutline {
    id: Option<Text<ArmId>>,
}

impl Outline<'_> for ContainerOutline {
    type Model = ArmId;

    fn model(self) -> Result<ArmId, Misread> {
        required(self.id)
    }
}
