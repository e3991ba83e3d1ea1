//! The actions of the Azure role: in which scope each is needed, by which calls, and why.
//!
//! This is the only list. Tests compare it with `deploy/azure-role.json`, with the table in `docs/reference/azure-role.md`
//! and with the calls that the code can make; `sluice doctor` checks the actions of each resource group.
//!
//! Two rules give the actions of a call. The call itself needs the action that is named after its resource type
//! and method. Each resource that its body refers to needs a `join`, and Azure checks that on every write, also
//! for references that the write does not change.

use sluice_model::call::Method::{
    self, Delete, Get, List, PatchTags, Poll, Put, UpdateLocations, UpdateServices,
};

use Call::{ReadPermissions, ReadUsages, Request};
use RoleScope::{ClusterGroup, NetworkGroup, Subscription};
use Target::{Gateway, LoadBalancer, Locations, NatGateway, Operation, PublicIp, Registrations, Subnet};

/// One action of the role.
#[derive(Debug)]
pub(crate) struct Grant {
    /// The action, as roles name it.
    pub(crate) action: &'static str,
    /// Where the role must be assigned for it.
    pub(crate) scopes: &'static [RoleScope],
    /// The calls that need it.
    #[cfg_attr(not(test), allow(dead_code, reason = "tests compare it with the calls that the code makes"))]
    pub(crate) calls: &'static [Call],
    /// What it is for, as `sluice doctor` and `docs/reference/azure-role.md` say it.
    pub(crate) why: &'static str,
}

/// Where a role is assigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RoleScope {
    /// The resource group of the load balancers, NAT gateways, public IPs and the service gateway.
    ClusterGroup,
    /// The resource group of the virtual network.
    NetworkGroup,
    /// The subscription.
    Subscription,
}

/// A kind of call to Azure, as far as permissions tell calls apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Call {
    /// A request with this method to this type of resource.
    Request(Method, Target),
    /// `sluice doctor` reads which actions the identity is granted in a resource group.
    ReadPermissions,
    /// `sluice doctor` reads the quotas of a region.
    ReadUsages,
}

/// The type of resource that a request is sent to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Target {
    /// Public IPs.
    PublicIp,
    /// Load balancers.
    LoadBalancer,
    /// NAT gateways.
    NatGateway,
    /// The service gateway.
    Gateway,
    /// The services that are registered with the service gateway.
    Registrations,
    /// The address locations of the service gateway.
    Locations,
    /// The subnet of the nodes.
    Subnet,
    /// An asynchronous operation.
    Operation,
}

const BOTH_GROUPS: &[RoleScope] = &[ClusterGroup, NetworkGroup];

/// Every action of the role, in the order of `deploy/azure-role.json`.
pub(crate) const GRANTS: &[Grant] = &[
    Grant {
        action: "Microsoft.Network/publicIPAddresses/read",
        scopes: &[ClusterGroup],
        calls: &[Request(Get, PublicIp), Request(List, PublicIp)],
        why: "to list and read public IPs",
    },
    Grant {
        action: "Microsoft.Network/publicIPAddresses/write",
        scopes: &[ClusterGroup],
        calls: &[Request(Put, PublicIp), Request(PatchTags, PublicIp)],
        why: "to create public IPs and change their tags",
    },
    Grant {
        action: "Microsoft.Network/publicIPAddresses/delete",
        scopes: &[ClusterGroup],
        calls: &[Request(Delete, PublicIp)],
        why: "to delete public IPs",
    },
    Grant {
        action: "Microsoft.Network/publicIPAddresses/join/action",
        scopes: &[ClusterGroup],
        calls: &[Request(Put, LoadBalancer), Request(Put, NatGateway)],
        why: "to write load balancers and NAT gateways, which refer to their public IPs",
    },
    Grant {
        action: "Microsoft.Network/loadBalancers/read",
        scopes: &[ClusterGroup],
        calls: &[Request(Get, LoadBalancer), Request(List, LoadBalancer)],
        why: "to list and read load balancers",
    },
    Grant {
        action: "Microsoft.Network/loadBalancers/write",
        scopes: &[ClusterGroup],
        calls: &[Request(Put, LoadBalancer), Request(PatchTags, LoadBalancer)],
        why: "to create and update load balancers",
    },
    Grant {
        action: "Microsoft.Network/loadBalancers/delete",
        scopes: &[ClusterGroup],
        calls: &[Request(Delete, LoadBalancer)],
        why: "to delete load balancers",
    },
    Grant {
        action: "Microsoft.Network/loadBalancers/backendAddressPools/join/action",
        scopes: &[ClusterGroup],
        calls: &[Request(UpdateServices, Gateway)],
        why: "to register Services with the service gateway, which refers to their backend pools",
    },
    Grant {
        action: "Microsoft.Network/natGateways/read",
        scopes: &[ClusterGroup],
        calls: &[Request(Get, NatGateway), Request(List, NatGateway)],
        why: "to list and read NAT gateways",
    },
    Grant {
        action: "Microsoft.Network/natGateways/write",
        scopes: &[ClusterGroup],
        calls: &[Request(Put, NatGateway), Request(PatchTags, NatGateway)],
        why: "to create and update NAT gateways",
    },
    Grant {
        action: "Microsoft.Network/natGateways/delete",
        scopes: &[ClusterGroup],
        calls: &[Request(Delete, NatGateway)],
        why: "to delete NAT gateways",
    },
    Grant {
        action: "Microsoft.Network/natGateways/join/action",
        scopes: BOTH_GROUPS,
        calls: &[Request(UpdateServices, Gateway), Request(Put, Subnet)],
        why: "to register egresses with the service gateway, which refers to their NAT gateways, and to write a \
              subnet that has a NAT gateway of its own",
    },
    Grant {
        action: "Microsoft.Network/serviceGateways/read",
        scopes: &[ClusterGroup],
        calls: &[Request(Get, Gateway)],
        why: "to read the service gateway",
    },
    Grant {
        action: "Microsoft.Network/serviceGateways/write",
        scopes: &[ClusterGroup],
        calls: &[Request(Put, Gateway), Request(PatchTags, Gateway)],
        why: "to create the service gateway and change its tags",
    },
    Grant {
        action: "Microsoft.Network/serviceGateways/delete",
        scopes: &[ClusterGroup],
        calls: &[Request(Delete, Gateway)],
        why: "to delete the service gateway (`sluice cleanup`)",
    },
    Grant {
        action: "Microsoft.Network/serviceGateways/join/action",
        scopes: &[ClusterGroup],
        calls: &[Request(Put, NatGateway), Request(Put, Subnet)],
        why: "to attach NAT gateways and the subnet to the service gateway",
    },
    Grant {
        action: "Microsoft.Network/serviceGateways/services/read",
        scopes: &[ClusterGroup],
        calls: &[Request(List, Registrations)],
        why: "to list the services that are registered with the service gateway",
    },
    Grant {
        action: "Microsoft.Network/serviceGateways/addressLocations/read",
        scopes: &[ClusterGroup],
        calls: &[Request(List, Locations)],
        why: "to list the pod addresses in the service gateway",
    },
    Grant {
        action: "Microsoft.Network/serviceGateways/updateServices/action",
        scopes: &[ClusterGroup],
        calls: &[Request(UpdateServices, Gateway)],
        why: "to register and unregister services",
    },
    Grant {
        action: "Microsoft.Network/serviceGateways/updateAddressLocations/action",
        scopes: &[ClusterGroup],
        calls: &[Request(UpdateLocations, Gateway)],
        why: "to update the pod addresses in the service gateway",
    },
    Grant {
        action: "Microsoft.Network/virtualNetworks/join/action",
        scopes: &[NetworkGroup],
        calls: &[Request(Put, Gateway), Request(UpdateServices, Gateway)],
        why: "to create the service gateway and to register Services, which refer to the virtual network",
    },
    Grant {
        action: "Microsoft.Network/virtualNetworks/subnets/read",
        scopes: &[NetworkGroup],
        calls: &[Request(Get, Subnet), Request(List, Subnet)],
        why: "to read the subnet",
    },
    Grant {
        action: "Microsoft.Network/virtualNetworks/subnets/write",
        scopes: &[NetworkGroup],
        calls: &[Request(Put, Subnet)],
        why: "to attach the subnet to the service gateway and to detach it (`sluice cleanup`)",
    },
    Grant {
        action: "Microsoft.Network/virtualNetworks/subnets/join/action",
        scopes: &[NetworkGroup],
        calls: &[Request(Put, Gateway)],
        why: "to create the service gateway, whose route target address is in the subnet",
    },
    Grant {
        action: "Microsoft.Network/networkSecurityGroups/join/action",
        scopes: &[NetworkGroup],
        calls: &[Request(Put, Subnet)],
        why: "to write a subnet that has a network security group",
    },
    Grant {
        action: "Microsoft.Network/routeTables/join/action",
        scopes: &[NetworkGroup],
        calls: &[Request(Put, Subnet)],
        why: "to write a subnet that has a route table",
    },
    Grant {
        action: "Microsoft.Network/serviceEndpointPolicies/join/action",
        scopes: &[NetworkGroup],
        calls: &[Request(Put, Subnet)],
        why: "to write a subnet that has service endpoint policies",
    },
    // The URL of an operation is below the subscription, but Azure accepts a role on the resource group of the
    // resource that the operation changes. A role on that resource alone is not enough.
    Grant {
        action: "Microsoft.Network/locations/operations/read",
        scopes: BOTH_GROUPS,
        calls: &[Request(Poll, Operation)],
        why: "to poll asynchronous operations",
    },
    Grant {
        action: "Microsoft.Network/locations/operationResults/read",
        scopes: BOTH_GROUPS,
        calls: &[Request(Poll, Operation)],
        why: "to poll asynchronous operations that Azure announces in a `Location` header only",
    },
    Grant {
        action: "Microsoft.Network/locations/usages/read",
        scopes: &[Subscription],
        calls: &[ReadUsages],
        why: "to check quotas (`sluice doctor`)",
    },
    Grant {
        action: "Microsoft.Authorization/permissions/read",
        scopes: BOTH_GROUPS,
        calls: &[ReadPermissions],
        why: "to check which of these actions are granted (`sluice doctor`)",
    },
];
