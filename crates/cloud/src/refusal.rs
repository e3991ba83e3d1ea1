//! Every way in which Azure says no, with its status, code and text.
//!
//! Where the words come from, best first:
//!
//! - Recorded: `ResourceNotFound`, `ResourceGroupNotFound`, `NotFound`, `PreconditionFailed` with its detail.
//! - Published, in documentation or in reports of people who met them, code and text: `InvalidResourceName`,
//!   `InvalidResourceReference`, `ParentResourceNotFound`, `ResourceGroupBeingDeleted`, `ScopeLocked`,
//!   `RequestDisallowedByPolicy`, `AuthorizationFailed`, `SubscriptionRequestsThrottled`,
//!   `AnotherOperationInProgress`, `RetryableErrorDueToAnotherOperation`, `RetryableError` with its detail
//!   `ReferencedResourceNotProvisioned`, `PublicIPAddressInUse`, `PublicIPAddressCannotBeDeleted`,
//!   `InUseSubnetCannotBeDeleted`, `PublicIPCountLimitReached`, `DuplicateResourceName`,
//!   `RulesUseSameBackendPortProtocolAndPool`, `PrivateIPAddressIsAllocated`.
//! - Only the code is known, the text is ours: `QuotaExceeded`, `MaxPublicIpCountLimitReached`,
//!   `InUseNatGatewayCannotBeDeleted`, `InvalidRequestFormat`, `InvalidResourceType`, `TooManyRequests`,
//!   `ResourceGroupDeletionBlocked`, and those of the gateway's two lists that the wire contract names.
//! - Marked "ours": Azure surely refuses those requests too, but nobody has told with which word.
//!
//! The resource manager refuses by itself what it can decide without the provider ([`is_managers_code`]).
//! Its errors have no `details`, and nobody says what is left in a bucket; the provider's have both.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use sluice_model::address::Family;
use sluice_model::azure::{ArmId, Provisioning};
use sluice_model::call::{Answer, ArmError, Bucket, Payload};

use crate::throttle::whole_seconds;

/// Whoever calls, to a model that knows of one caller.
const CALLER: &str = "00000000-0000-0000-0000-000000000000";

/// Whether the resource manager refuses with this code before the provider is asked: such an answer says
/// `x-ms-failure-cause: gateway`.
pub fn is_managers_code(code: &str) -> bool {
    const CODES: [&str; 21] = [
        "AuthenticationFailed",
        "AuthenticationFailedInvalidHeader",
        "AuthorizationFailed",
        "ExpiredAuthenticationToken",
        "InvalidApiVersionParameter",
        "InvalidAuthenticationToken",
        "InvalidAuthenticationTokenTenant",
        "InvalidResourceType",
        "InvalidSubscriptionId",
        "LinkedAuthorizationFailed",
        "MissingApiVersionParameter",
        "NoRegisteredProviderFound",
        "ParentResourceNotFound",
        "RequestDisallowedByPolicy",
        "ResourceGroupBeingDeleted",
        "ResourceGroupDeletionBlocked",
        "ResourceGroupNotFound",
        "ResourceNotFound",
        "ScopeLocked",
        "SubscriptionNotFound",
        "SubscriptionRequestsThrottled",
    ];
    CODES.iter().any(|known| known.eq_ignore_ascii_case(code))
}

/// A request that is not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) error: ArmError,
    pub(crate) details: Vec<ArmError>,
    /// How long to wait, to the millisecond; an answer says it in whole seconds.
    pub(crate) wait: Option<Duration>,
    /// What is left in the bucket, where that is the reason.
    remaining: Option<u32>,
}

impl Refusal {
    pub(crate) fn new(status: u16, code: &str, message: impl AsRef<str>) -> Refusal {
        let error = ArmError { code: code.into(), message: message.as_ref().into() };
        Refusal { status, error, details: Vec::new(), wait: None, remaining: None }
    }

    fn bad(code: &str, message: String) -> Refusal {
        Refusal::new(400, code, message)
    }

    /// An error that says what it means in its first detail.
    fn with_detail(self, code: &str, message: String) -> Refusal {
        Refusal { details: vec![ArmError { code: code.into(), message: message.into() }], ..self }
    }

    /// The answer; `remaining` is what a provider's answer says.
    pub(crate) fn answer(self, remaining: Option<u32>) -> Answer {
        let is_managers = is_managers_code(&self.error.code);
        let remaining = self.remaining.or(remaining.filter(|_| !is_managers));
        let answer = Answer::new(self.status, Payload::Error(self.error));
        Answer { retry_after: self.wait.map(whole_seconds), remaining, ..answer }
    }

    // What is not there.

    pub(crate) fn no_group(group: &str) -> Refusal {
        Refusal::new(404, "ResourceGroupNotFound", no_group_text(group))
    }

    pub(crate) fn no_resource(word: &str, name: &str, group: &str) -> Refusal {
        Refusal::new(404, "ResourceNotFound", no_resource_text(word, name, group))
    }

    pub(crate) fn no_child(id: &ArmId) -> Refusal {
        Refusal::new(404, "NotFound", format!("Resource {id} not found."))
    }

    pub(crate) fn no_parent(parent: &ArmId) -> Refusal {
        let message = format!(
            "Failed to perform 'write' on resource(s) of type 'virtualNetworks/subnets', because the parent \
             resource '{parent}' could not be found."
        );
        Refusal::new(404, "ParentResourceNotFound", message)
    }

    /// Ours.
    pub(crate) fn no_operation(id: &ArmId) -> Refusal {
        Refusal::new(404, "OperationNotFound", format!("Operation '{}' was not found.", id.name()))
    }

    pub(crate) fn no_place(id: &ArmId) -> Refusal {
        Refusal::new(404, "InvalidResourceType", format!("No resource type is served at '{id}'."))
    }

    // Requests that make no sense.

    /// Ours.
    pub(crate) fn no_method() -> Refusal {
        Refusal::new(405, "MethodNotAllowed", "This method is not allowed here.")
    }

    pub(crate) fn bad_request(message: &str) -> Refusal {
        Refusal::bad("InvalidRequestFormat", message.into())
    }

    pub(crate) fn bad_name(name: &str) -> Refusal {
        let message = format!(
            "Resource name {name} is invalid. The name can be up to 80 characters long. It must begin with a \
             word character, and it must end with a word character or with '_'. The name may contain word \
             characters or '.', '-', '_'."
        );
        Refusal::bad("InvalidResourceName", message)
    }

    /// Ours.
    pub(crate) fn bad_page(token: &str) -> Refusal {
        Refusal::bad("InvalidSkipToken", format!("'{token}' does not continue this list."))
    }

    /// Ours.
    pub(crate) fn too_large(bytes: usize, most: usize) -> Refusal {
        let message = format!("The request has {bytes} bytes; at most {most} are allowed.");
        Refusal::new(413, "RequestEntityTooLarge", message)
    }

    // Waiting, versions, locks.

    pub(crate) fn throttled(bucket: Bucket, subscription: &str, wait: Duration) -> Refusal {
        let word = match bucket {
            Bucket::Reads => "read",
            Bucket::Writes => "write",
            Bucket::Deletes => "delete",
        };
        let message = format!(
            "Number of '{word}' requests for subscription '{subscription}' actor '{CALLER}' exceeded. Please \
             try again after '{}' seconds.",
            whole_seconds(wait).as_secs()
        );
        let refusal = Refusal::new(429, "SubscriptionRequestsThrottled", message);
        Refusal { wait: Some(wait), remaining: Some(0), ..refusal }
    }

    /// `left` is what the resource manager's bucket holds, which is not the one that is empty.
    pub(crate) fn throttled_by_network(wait: Duration, left: u32) -> Refusal {
        let seconds = whole_seconds(wait).as_secs();
        let message = format!("Too many requests for Microsoft.Network; retry in {seconds} seconds.");
        let refusal = Refusal::new(429, "TooManyRequests", message);
        Refusal { wait: Some(wait), remaining: Some(left), ..refusal }
    }

    /// `running` is the operation in the way, in Azure's words: `PutLoadBalancerOperation (guid)`.
    pub(crate) fn busy_writing(running: &str, target: &ArmId, wait: Duration) -> Refusal {
        let message = format!(
            "Operation {running} is updating resource {target}. The call can be retried in {} seconds.",
            wait.as_secs()
        );
        Refusal::new(429, "RetryableErrorDueToAnotherOperation", message)
    }

    pub(crate) fn busy_deleting(operation: &ArmId) -> Refusal {
        let message = format!(
            "Another operation on this or dependent resource is in progress. To retrieve status of the \
             operation use uri: https://management.azure.com{operation}?api-version=2025-05-01."
        );
        Refusal::new(409, "AnotherOperationInProgress", message)
    }

    pub(crate) fn group_going(group: &ArmId) -> Refusal {
        let message = format!(
            "The resource group '{}' is in deprovisioning state and cannot perform this operation.",
            group.name()
        );
        Refusal::new(409, "ResourceGroupBeingDeleted", message)
    }

    /// `given` in Azure's spelling; a resource that is not there has no version (ours).
    pub(crate) fn wrong_version(id: &ArmId, given: &str, actual: Option<&str>) -> Refusal {
        let actual = actual.unwrap_or("(none)");
        let message = format!(
            "Etag provided in if-match header {given} does not match etag {actual} of resource {id} in NRP \
             data store."
        );
        Refusal::new(412, "PreconditionFailed", "Precondition failed.")
            .with_detail("PreconditionFailedEtagMismatch", message)
    }

    /// `action` is what was tried: `Microsoft.Network/loadBalancers/write`.
    pub(crate) fn forbidden(action: &str, scope: &ArmId) -> Refusal {
        let message = format!(
            "The client '{CALLER}' with object id '{CALLER}' does not have authorization to perform action \
             '{action}' over scope '{scope}' or the scope is invalid. If access was recently granted, please \
             refresh your credentials."
        );
        Refusal::new(403, "AuthorizationFailed", message)
    }

    pub(crate) fn locked(id: &ArmId, word: &str, scope: &ArmId) -> Refusal {
        let message = format!(
            "The scope '{id}' cannot perform {word} operation because following scope(s) are locked: \
             '{scope}'. Please remove the lock and try again."
        );
        Refusal::new(409, "ScopeLocked", message)
    }

    pub(crate) fn denied_by_policy(id: &ArmId, scope: &ArmId) -> Refusal {
        let policy = "/providers/Microsoft.Authorization";
        let message = format!(
            "Resource '{}' was disallowed by policy. Policy identifiers: \
             '[{{\"policyAssignment\":{{\"name\":\"deny\",\"id\":\"{scope}{policy}/policyAssignments/deny\"}},\
             \"policyDefinition\":{{\"name\":\"deny\",\"id\":\"{policy}/policyDefinitions/deny\"}}}}]'.",
            id.name()
        );
        Refusal::new(403, "RequestDisallowedByPolicy", message)
    }

    // Limits.

    pub(crate) fn too_many_public_ips(most: usize) -> Refusal {
        let message = format!(
            "Cannot create more than {most} public IP addresses for this subscription in this region."
        );
        Refusal::bad("PublicIPCountLimitReached", message)
    }

    pub(crate) fn too_many_on_nat_gateway(id: &ArmId, most: usize) -> Refusal {
        let message = format!("NAT gateway {id} cannot have more than {most} public IP addresses.");
        Refusal::bad("MaxPublicIpCountLimitReached", message)
    }

    /// `where_to` is the subscription or a resource that can hold no more.
    pub(crate) fn over_quota(word: &str, most: usize, where_to: &str) -> Refusal {
        Refusal::bad("QuotaExceeded", format!("Cannot create more than {most} {word} for {where_to}."))
    }

    /// Ours.
    pub(crate) fn no_addresses_left(family: Family) -> ArmError {
        let message = format!("No {family} address is left to allocate.");
        ArmError { code: "PublicIPAddressAllocationFailed".into(), message: message.into() }
    }

    // References.

    pub(crate) fn missing_reference(target: &ArmId, by: &ArmId) -> Refusal {
        let message = format!(
            "Resource {target} referenced by resource {by} was not found. Please make sure that the \
             referenced resource exists, and that both resources are in the same region."
        );
        Refusal::bad("InvalidResourceReference", message)
    }

    /// A reference to what is on its way is worth another try; one to what has failed is not.
    pub(crate) fn unprovisioned_reference(target: &ArmId, by: &ArmId, state: Provisioning) -> Refusal {
        let verb = if state == Provisioning::Deleting { "Delete" } else { "Put" };
        let why = format!(
            "Cannot proceed with operation because resource {target} used by resource {by} is not in \
             Succeeded state. Resource is in {state:?} state and the last operation that updated/is updating \
             the resource is {verb}{}Operation.",
            noun(target)
        );
        if state == Provisioning::Failed {
            return Refusal::bad("ReferencedResourceNotProvisioned", why);
        }
        Refusal::new(429, "RetryableError", "A retryable error occurred.")
            .with_detail("ReferencedResourceNotProvisioned", why)
    }

    pub(crate) fn public_ip_taken(public_ip: &ArmId, by: &ArmId, owner: &ArmId) -> Refusal {
        let message = format!(
            "Resource {by} is referencing public IP address {public_ip} that is already allocated to \
             resource {owner}."
        );
        Refusal::bad("PublicIPAddressInUse", message)
    }

    pub(crate) fn public_ip_used(public_ip: &ArmId, owner: &ArmId) -> Refusal {
        let message = format!(
            "Public IP address {public_ip} can not be deleted since it is still allocated to resource \
             {owner}. In order to delete the public IP, disassociate/detach the Public IP address from the \
             resource.  To learn how to do this, see aka.ms/deletepublicip."
        );
        Refusal::bad("PublicIPAddressCannotBeDeleted", message)
    }

    pub(crate) fn subnet_used(subnet: &ArmId, by: &ArmId) -> Refusal {
        let message = format!(
            "Subnet {} is in use by {by} and cannot be deleted. In order to delete the subnet, delete all the \
             resources within the subnet. See aka.ms/deletesubnet.",
            subnet.name()
        );
        Refusal::bad("InUseSubnetCannotBeDeleted", message)
    }

    pub(crate) fn private_ip_taken(by: &ArmId, address: IpAddr, owner: &ArmId) -> Refusal {
        let message = format!(
            "IP configuration {by} is using the private IP address {address} which is already allocated to \
             resource {owner}."
        );
        Refusal::bad("PrivateIPAddressIsAllocated", message)
    }

    /// `InUse{what}CannotBeDeleted`; of NAT gateways the code is Azure's, of others it is ours.
    pub(crate) fn in_use(what: &str, id: &ArmId, by: &str) -> Refusal {
        let code = format!("InUse{what}CannotBeDeleted");
        Refusal::bad(&code, format!("{id} is in use by {by} and cannot be deleted."))
    }

    /// Ours.
    pub(crate) fn nat_gateway_registered(id: &ArmId) -> Refusal {
        let message = format!("NAT gateway {id} is registered with its service gateway and cannot leave it.");
        Refusal::bad("InUseNatGatewayCannotBeDetached", message)
    }

    /// Ours.
    pub(crate) fn nat_gateway_elsewhere(id: &ArmId, gateway: &ArmId) -> Refusal {
        let message = format!("NAT gateway {id} does not belong to service gateway {gateway}.");
        Refusal::bad("NatGatewayNotInServiceGateway", message)
    }

    /// Azure says so when the deletion has begun and got stuck; we say it before anything is gone.
    pub(crate) fn group_used(group: &ArmId, by: &ArmId) -> Refusal {
        let message = format!(
            "Deletion of resource group '{}' failed as resources in it are in use by '{by}'.",
            group.name()
        );
        Refusal::new(409, "ResourceGroupDeletionBlocked", message)
    }

    // Values.

    /// Ours.
    pub(crate) fn family_fixed(id: &ArmId) -> Refusal {
        let message = format!("The IP version of public IP address {id} cannot be changed.");
        Refusal::bad("PublicIPAddressVersionCannotBeChanged", message)
    }

    /// Ours.
    pub(crate) fn wrong_family(public_ip: &ArmId, by: &ArmId, expected: Family) -> Refusal {
        let message = format!("Public IP address {public_ip} of {by} is not an {expected} address.");
        Refusal::bad("PublicIPAddressVersionMismatch", message)
    }

    pub(crate) fn bad_value(what: &str, value: &str, allowed: &str) -> Refusal {
        let message = format!("Value '{value}' of {what} is invalid; allowed is {allowed}.");
        Refusal::bad("InvalidRequestFormat", message)
    }

    pub(crate) fn twin_names(id: &ArmId, name: &str) -> Refusal {
        let message = format!("Resource {id} has two child resources with the same name ({name}).");
        Refusal::bad("DuplicateResourceName", message)
    }

    pub(crate) fn same_backend(rules: [&ArmId; 2], protocol: &str, port: u16, pool: &ArmId) -> Refusal {
        let [one, other] = rules;
        let message = format!(
            "Load balancing rules {one} and {other} with floating IP disabled use the same protocol \
             {protocol} and backend port {port}, and must not be used with the same backend address pool \
             {pool}."
        );
        Refusal::bad("RulesUseSameBackendPortProtocolAndPool", message)
    }

    /// Ours.
    pub(crate) fn fixed(what: &str, id: &ArmId) -> Refusal {
        Refusal::bad("PropertyCannotBeChanged", format!("{what} of {id} cannot be changed."))
    }

    // The gateway's two lists.

    pub(crate) fn still_mapped(service: &str, addresses: usize) -> Refusal {
        let message = format!("Service {service} has {addresses} addresses mapped and cannot be deleted.");
        Refusal::bad("ServiceWithOverlayMappingsCannotBeDeleted", message)
    }

    pub(crate) fn two_defaults(one: &str, other: &str) -> Refusal {
        let message = format!("Services {one} and {other} cannot both be the default.");
        Refusal::bad("MultipleDefaultServicesNotAllowedInServiceGateway", message)
    }

    /// Ours.
    pub(crate) fn service_twice(service: &str) -> Refusal {
        let message = format!("Service {service} is in the request more than once.");
        Refusal::bad("DuplicateServicesInRequest", message)
    }

    /// Ours.
    pub(crate) fn wrong_direction(service: &str, why: &str) -> Refusal {
        Refusal::bad("InvalidServiceType", format!("Service {service} {why}."))
    }

    pub(crate) fn location_twice(location: IpAddr) -> Refusal {
        let message = format!("Location {location} is in the request more than once.");
        Refusal::bad("DuplicateLocationsInRequest", message)
    }

    /// Ours.
    pub(crate) fn address_twice(location: IpAddr, address: IpAddr) -> Refusal {
        let message = format!("Address {address} is in location {location} more than once.");
        Refusal::bad("DuplicateAddressesInLocation", message)
    }

    pub(crate) fn mixed_families(location: IpAddr, address: IpAddr) -> Refusal {
        let code = match location {
            IpAddr::V4(_) => "IPv4LocationCannotContainIPv6Addresses",
            IpAddr::V6(_) => "IPv6LocationCannotContainIPv4Addresses",
        };
        Refusal::bad(code, format!("Location {location} cannot contain address {address}."))
    }

    /// Ours.
    pub(crate) fn bad_address(address: IpAddr) -> Refusal {
        let message = format!("Address {address} cannot be used.");
        Refusal::bad("InvalidAddress", message)
    }

    /// Ours.
    pub(crate) fn unknown_service(service: &str, address: IpAddr) -> Refusal {
        let message = format!("Service {service} of address {address} is not registered.");
        Refusal::bad("ServiceNotFoundInServiceGateway", message)
    }
}

/// What Azure's operations call a resource; of service gateways it is our guess.
pub(crate) fn noun(id: &ArmId) -> &'static str {
    use crate::place::{Kind, Place, place};
    match place(id) {
        Some(Place::Resource(Kind::PublicIp)) => "PublicIpAddress",
        Some(Place::Resource(Kind::LoadBalancer)) => "LoadBalancer",
        Some(Place::Resource(Kind::NatGateway)) => "NatGateway",
        Some(Place::Resource(Kind::Gateway)) => "ServiceGateway",
        Some(Place::Resource(Kind::VirtualNetwork)) => "VirtualNetwork",
        Some(Place::Subnet { .. }) => "Subnet",
        _ => "Resource",
    }
}

/// What Azure says of a group that is not there.
pub fn no_group_text(group: &str) -> String {
    format!("Resource group '{group}' could not be found.")
}

/// What Azure says of a resource that is not there.
pub fn no_resource_text(word: &str, name: &str, group: &str) -> String {
    format!(
        "The Resource 'Microsoft.Network/{word}/{name}' under resource group '{group}' was not found. \
         For more details please go to https://aka.ms/ARMResourceNotFoundFix"
    )
}
