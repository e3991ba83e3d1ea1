//! What an id points at.
//!
//! Only the shapes that we serve are read; everything else is no place at all.

use sluice_model::azure::ArmId;

/// The kinds of resources that stand in a group of their own right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    PublicIp,
    LoadBalancer,
    NatGateway,
    Gateway,
    VirtualNetwork,
}

impl Kind {
    const ALL: [Kind; 5] =
        [Kind::PublicIp, Kind::LoadBalancer, Kind::NatGateway, Kind::Gateway, Kind::VirtualNetwork];

    /// As it stands in ids.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Kind::PublicIp => "publicIPAddresses",
            Kind::LoadBalancer => "loadBalancers",
            Kind::NatGateway => "natGateways",
            Kind::Gateway => "serviceGateways",
            Kind::VirtualNetwork => "virtualNetworks",
        }
    }

    fn from_word(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.word().eq_ignore_ascii_case(word))
    }
}

/// What an id points at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// A resource group.
    Group,
    /// A resource of a group.
    Resource(Kind),
    /// A subnet of this network.
    Subnet { network: ArmId },
    /// All resources of a kind, in a group or in a subscription.
    Collection(Kind),
    /// The subnets of this network.
    Subnets { network: ArmId },
    /// The services registered with this gateway.
    Services { gateway: ArmId },
    /// The locations of this gateway.
    Locations { gateway: ArmId },
    /// A long-running operation.
    Operation,
}

/// Reads an id.
pub(crate) fn place(id: &ArmId) -> Option<Place> {
    let mut words = id.as_str().split('/');
    let mut is = |expected: &str| words.next().is_some_and(|word| word.eq_ignore_ascii_case(expected));
    if !is("") || !is("subscriptions") {
        return None;
    }
    words.next().filter(|subscription| !subscription.is_empty())?;
    let rest: [Option<&str>; 8] = core::array::from_fn(|_| words.next());
    if words.next().is_some() || rest.contains(&Some("")) {
        return None;
    }
    let same = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
    let network = |word: &str| same(word, "Microsoft.Network");
    match rest {
        [Some(groups), Some(_), None, ..] if same(groups, "resourceGroups") => Some(Place::Group),
        [Some(groups), Some(_), Some(providers), Some(provider), Some(kind), name, child, child_name]
            if same(groups, "resourceGroups") && same(providers, "providers") && network(provider) =>
        {
            let kind = Kind::from_word(kind)?;
            let parent = || id.parent(kind.word());
            match (kind, name, child, child_name) {
                (_, None, ..) => Some(Place::Collection(kind)),
                (_, Some(_), None, _) => Some(Place::Resource(kind)),
                (Kind::VirtualNetwork, Some(_), Some(child), Some(_)) if same(child, "subnets") => {
                    Some(Place::Subnet { network: parent()? })
                }
                (Kind::VirtualNetwork, Some(_), Some(child), None) if same(child, "subnets") => {
                    Some(Place::Subnets { network: parent()? })
                }
                (Kind::Gateway, Some(_), Some(child), None) if same(child, "services") => {
                    Some(Place::Services { gateway: parent()? })
                }
                (Kind::Gateway, Some(_), Some(child), None) if same(child, "addressLocations") => {
                    Some(Place::Locations { gateway: parent()? })
                }
                _ => None,
            }
        }
        [Some(providers), Some(provider), Some(kind), None, ..]
            if same(providers, "providers") && network(provider) =>
        {
            Kind::from_word(kind).map(Place::Collection)
        }
        [Some(providers), Some(provider), Some(regions), Some(_), Some(operations), Some(_), None, None]
            if same(providers, "providers")
                && network(provider)
                && same(regions, "locations")
                && same(operations, "operations") =>
        {
            Some(Place::Operation)
        }
        _ => None,
    }
}

/// The group that an id lies in.
pub(crate) fn group_of(id: &ArmId) -> Option<ArmId> {
    id.parent("resourceGroups")
}

/// Whether `id` is `scope` or lies below it.
pub(crate) fn lies_in(id: &ArmId, scope: &ArmId) -> bool {
    let (id, scope) = (id.as_str().as_bytes(), scope.as_str().as_bytes());
    id.get(..scope.len()).is_some_and(|head| head.eq_ignore_ascii_case(scope))
        && matches!(id.get(scope.len()), None | Some(b'/'))
}

/// Whether a resource may be called so.
pub(crate) fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    bytes.len() <= 80
        && first.is_ascii_alphanumeric()
        && (last.is_ascii_alphanumeric() || *last == b'_')
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    const NETWORK: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";

    #[test]
    fn every_shape_that_we_serve_is_read_whatever_its_case() {
        let gateway = ArmId::new(format!("{NETWORK}/serviceGateways/gw"));
        let vnet = ArmId::new(format!("{NETWORK}/virtualNetworks/vnet"));
        for (id, expected) in [
            ("/subscriptions/s/resourcegroups/rg".into(), Place::Group),
            (format!("{NETWORK}/loadBalancers/web"), Place::Resource(Kind::LoadBalancer)),
            (format!("{NETWORK}/PUBLICIPADDRESSES/web-pip"), Place::Resource(Kind::PublicIp)),
            (format!("{NETWORK}/natGateways"), Place::Collection(Kind::NatGateway)),
            (
                "/subscriptions/s/providers/Microsoft.Network/loadBalancers".into(),
                Place::Collection(Kind::LoadBalancer),
            ),
            (format!("{NETWORK}/virtualNetworks/vnet/subnets/pods"), Place::Subnet { network: vnet.clone() }),
            (format!("{NETWORK}/virtualnetworks/VNET/Subnets"), Place::Subnets { network: vnet }),
            (format!("{NETWORK}/servicegateways/GW/services"), Place::Services { gateway: gateway.clone() }),
            (format!("{NETWORK}/serviceGateways/gw/addressLocations"), Place::Locations { gateway }),
            (
                "/subscriptions/s/providers/Microsoft.Network/locations/eastus/operations/1".into(),
                Place::Operation,
            ),
        ] {
            let id: alloc::string::String = id;
            assert_eq!(place(&ArmId::new(id.as_str())), Some(expected), "{id}");
        }
    }

    #[test]
    fn other_shapes_are_no_place() {
        for id in ["", "/", "/subscriptions", "/subscriptions//resourceGroups/rg", "web", "//"] {
            assert_eq!(place(&ArmId::new(id)), None, "{id}");
        }
        for tail in ["/loadBalancers/", "/loadBalancers/web/probes/p", "/disks/d", "/natGateways/a/b"] {
            assert_eq!(place(&ArmId::new(format!("{NETWORK}{tail}"))), None, "{tail}");
        }
    }

    #[test]
    fn a_scope_holds_what_is_below_it_and_not_what_only_begins_alike() {
        let rg = ArmId::new("/subscriptions/s/resourceGroups/rg");
        assert!(lies_in(&ArmId::new("/subscriptions/s/RESOURCEGROUPS/rg/x"), &rg));
        assert!(lies_in(&rg, &rg));
        assert!(!lies_in(&ArmId::new("/subscriptions/s/resourceGroups/rg2/x"), &rg));
    }
}
