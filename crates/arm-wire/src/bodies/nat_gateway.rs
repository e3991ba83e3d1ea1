//! NAT gateways.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use sluice_model::azure::{NatGateway, NatGatewayBody, Provisioning};

use super::text::Text;
use super::{Misread, Outline, Provisioned, Reference, RefersTo, Resource, Sku, Written, ids, list};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties<'a> {
    /// `null` takes it off; left out, it would stay.
    service_gateway: Option<RefersTo<'a>>,
    public_ip_addresses: Vec<RefersTo<'a>>,
    /// An empty list takes them off; left out, they would stay.
    public_ip_addresses_v6: Vec<RefersTo<'a>>,
}

/// The body of a PUT.
pub(crate) fn json(body: &NatGatewayBody, region: &str) -> Vec<u8> {
    let properties = Properties {
        service_gateway: body.gateway.as_ref().map(RefersTo::new),
        public_ip_addresses: RefersTo::all(&body.public_ips),
        public_ip_addresses_v6: RefersTo::all(&body.public_ips_v6),
    };
    Written::json(region, Sku::STANDARD_V2, properties, &body.tags)
}

/// A NAT gateway as it is read.
pub(crate) type NatGatewayOutline = Resource<Found>;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Found {
    provisioning_state: Option<Text<Provisioning>>,
    service_gateway: Option<Reference>,
    #[serde(default, deserialize_with = "list")]
    public_ip_addresses: Vec<Reference>,
    #[serde(default, deserialize_with = "list")]
    public_ip_addresses_v6: Vec<Reference>,
}

impl Provisioned for Found {
    fn state(&self) -> Option<Provisioning> {
        self.provisioning_state.as_ref().map(|state| state.0)
    }
}

impl Outline<'_> for NatGatewayOutline {
    type Model = NatGateway;

    fn model(self) -> Result<NatGateway, Misread> {
        let (meta, found) = self.split()?;
        Ok(NatGateway {
            meta,
            gateway: found.service_gateway.and_then(Reference::id),
            public_ips: ids(found.public_ip_addresses, "a public IP")?,
            public_ips_v6: ids(found.public_ip_addresses_v6, "an IPv6 public IP")?,
        })
    }
}
