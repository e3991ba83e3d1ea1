//! What an id points at, as far as we speak about it.

use alloc::vec::Vec;

use sluice_model::azure::ArmId;

/// The kinds of things that have an id of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Group,
    VirtualNetwork,
    Subnet,
    PublicIp,
    LoadBalancer,
    NatGateway,
    Gateway,
}

impl Kind {
    /// For people.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Kind::Group => "a resource group",
            Kind::VirtualNetwork => "a virtual network",
            Kind::Subnet => "a subnet",
            Kind::PublicIp => "a public IP",
            Kind::LoadBalancer => "a load balancer",
            Kind::NatGateway => "a NAT gateway",
            Kind::Gateway => "a service gateway",
        }
    }

    fn from_segment(segment: &str) -> Option<Kind> {
        [
            ("publicIPAddresses", Kind::PublicIp),
            ("loadBalancers", Kind::LoadBalancer),
            ("natGateways", Kind::NatGateway),
            ("serviceGateways", Kind::Gateway),
            ("virtualNetworks", Kind::VirtualNetwork),
        ]
        .into_iter()
        .find_map(|(word, kind)| word.eq_ignore_ascii_case(segment).then_some(kind))
    }
}

/// What an id points at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// One resource.
    One(Kind),
    /// All of a kind, in a group, in a subscription or in a network.
    All(Kind),
    /// The services registered with a gateway.
    Services,
    /// The address locations of a gateway.
    Locations,
}

/// Reads an id; everything that we do not speak about is no place at all.
pub(crate) fn place(id: &ArmId) -> Option<Place> {
    let words: Vec<&str> = id.as_str().strip_prefix('/')?.split('/').collect();
    if words.iter().any(|word| word.is_empty()) {
        return None;
    }
    let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
    let [subscriptions, _, rest @ ..] = words.as_slice() else { return None };
    if !is(subscriptions, "subscriptions") {
        return None;
    }
    let (in_group, rest) = match rest {
        [groups, _] if is(groups, "resourceGroups") => return Some(Place::One(Kind::Group)),
        [groups, _, rest @ ..] if is(groups, "resourceGroups") => (true, rest),
        rest => (false, rest),
    };
    let [providers, provider, kind, rest @ ..] = rest else { return None };
    if !is(providers, "providers") || !is(provider, "Microsoft.Network") {
        return None;
    }
    let kind = Kind::from_segment(kind)?;
    match (kind, rest) {
        (kind, []) => Some(Place::All(kind)),
        _ if !in_group => None,
        (kind, [_]) => Some(Place::One(kind)),
        (Kind::VirtualNetwork, [_, child]) if is(child, "subnets") => Some(Place::All(Kind::Subnet)),
        (Kind::VirtualNetwork, [_, child, _]) if is(child, "subnets") => Some(Place::One(Kind::Subnet)),
        (Kind::Gateway, [_, child]) if is(child, "services") => Some(Place::Services),
        (Kind::Gateway, [_, child]) if is(child, "addressLocations") => Some(Place::Locations),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    const NETWORK: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";

    #[test]
    fn every_id_that_we_speak_about_is_known_whatever_its_case() {
        for (tail, expected) in [
            ("/loadBalancers/web", Place::One(Kind::LoadBalancer)),
            ("/PUBLICIPADDRESSES/web-pip", Place::One(Kind::PublicIp)),
            ("/natGateways", Place::All(Kind::NatGateway)),
            ("/virtualNetworks/v/subnets/pods", Place::One(Kind::Subnet)),
            ("/virtualNetworks/v/Subnets", Place::All(Kind::Subnet)),
            ("/serviceGateways/gw/services", Place::Services),
            ("/servicegateways/gw/addresslocations", Place::Locations),
        ] {
            assert_eq!(place(&ArmId::new(format!("{NETWORK}{tail}"))), Some(expected), "{tail}");
        }
        let everywhere = ArmId::new("/subscriptions/s/providers/Microsoft.Network/serviceGateways");
        assert_eq!(place(&everywhere), Some(Place::All(Kind::Gateway)));
        assert_eq!(place(&ArmId::new("/subscriptions/s/resourcegroups/rg")), Some(Place::One(Kind::Group)));
    }

    #[test]
    fn everything_else_is_no_place() {
        for id in ["", "/", "web", "//", "/subscriptions/s", "/subscriptions//resourceGroups/rg"] {
            assert_eq!(place(&ArmId::new(id)), None, "{id}");
        }
        for tail in ["/disks/d", "/loadBalancers/web/probes/p", "/natGateways/", "/loadBalancers/a/b"] {
            assert_eq!(place(&ArmId::new(format!("{NETWORK}{tail}"))), None, "{tail}");
        }
        let operation = "/subscriptions/s/providers/Microsoft.Network/locations/eastus/operations/1";
        assert_eq!(place(&ArmId::new(operation)), None);
    }
}
