//! Public IPs.

use alloc::vec::Vec;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};
use sluice_model::address::Family;
use sluice_model::azure::{Provisioning, PublicIp, PublicIpBody};

use super::text::Text;
use super::{Misread, Outline, Provisioned, Reference, Resource, Sku, Written};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    #[serde(rename = "publicIPAllocationMethod")]
    allocation: &'static str,
    #[serde(rename = "publicIPAddressVersion")]
    version: &'static str,
}

/// The body of a PUT.
pub(crate) fn json(body: &PublicIpBody, region: &str) -> Vec<u8> {
    let version = match body.family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    };
    let properties = Properties { allocation: "Static", version };
    Written::json(region, Sku::STANDARD_V2, properties, &body.tags)
}

/// A public IP as it is read.
pub(crate) type PublicIpOutline = Resource<Found>;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Found {
    provisioning_state: Option<Text<Provisioning>>,
    #[serde(rename = "publicIPAddressVersion")]
    version: Option<Text<alloc::sync::Arc<str>>>,
    ip_address: Option<Text<Option<IpAddr>>>,
    /// The frontend that uses it.
    ip_configuration: Option<Reference>,
    /// Or the NAT gateway.
    nat_gateway: Option<Reference>,
}

impl Provisioned for Found {
    fn state(&self) -> Option<Provisioning> {
        self.provisioning_state.as_ref().map(|state| state.0)
    }
}

impl Outline<'_> for PublicIpOutline {
    type Model = PublicIp;

    fn model(self) -> Result<PublicIp, Misread> {
        let (meta, found) = self.split()?;
        let address = found.ip_address.and_then(|address| address.0);
        let is = |word: &str| found.version.as_ref().is_some_and(|it| it.0.eq_ignore_ascii_case(word));
        let family = match address.map(Family::of) {
            _ if is("IPv6") => Family::V6,
            _ if is("IPv4") => Family::V4,
            // Azure's default, unless the address itself says otherwise.
            family => family.unwrap_or(Family::V4),
        };
        let users = [found.ip_configuration, found.nat_gateway];
        let used_by = users.into_iter().flatten().find_map(Reference::id);
        Ok(PublicIp { meta, family, address, used_by })
    }
}
