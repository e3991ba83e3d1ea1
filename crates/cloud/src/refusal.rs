//! Every way in which Azure says no, with its status, code and text.
//!
//! Codes that the wire contract or a recording names are Azure's. The few that only we know of are marked
//! "ours": Azure surely refuses those requests too, but nobody has recorded with which word.

use alloc::format;
use alloc::string::String;
use core::net::IpAddr;
use core::time::Duration;

use sluice_model::address::Family;
use sluice_model::azure::{ArmId, Provisioning};
use sluice_model::call::{Answer, ArmError, Bucket, Payload};

/// A request that is not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) error: ArmError,
    retry_after: Option<Duration>,
    /// What is left in the bucket, where that is the reason.
    remaining: Option<u32>,
}

impl Refusal {
    pub(crate) fn new(status: u16, code: &str, message: impl AsRef<str>) -> Refusal {
        let error = ArmError { code: code.into(), message: message.as_ref().into() };
        Refusal { status, error, retry_after: None, remaining: None }
    }

    fn bad(code: &str, message: String) -> Refusal {
        Refusal::new(400, code, message)
    }

    pub(crate) fn answer(self) -> Answer {
        let answer = Answer::new(self.status, Payload::Error(self.error));
        Answer { retry_after: self.retry_after, remaining: self.remaining, ..answer }
    }

    // What is not there.

    pub(crate) fn no_group(group: &str) -> Refusal {
        Refusal::new(404, "ResourceGroupNotFound", format!("Resource group '{group}' could not be found."))
    }

    pub(crate) fn no_resource(word: &str, name: &str, group: &str) -> Refusal {
        let message = format!(
            "The Resource 'Microsoft.Network/{word}/{name}' under resource group '{group}' was not found. \
             For more details please go to https://aka.ms/ARMResourceNotFoundFix"
        );
        Refusal::new(404, "ResourceNotFound", message)
    }

    pub(crate) fn no_child(id: &ArmId) -> Refusal {
        Refusal::new(404, "NotFound", format!("Resource {id} not found."))
    }

    pub(crate) fn no_parent(parent: &ArmId) -> Refusal {
        let message = format!("Cannot write below '{parent}', because that parent could not be found.");
        Refusal::new(404, "ParentResourceNotFound", message)
    }

    pub(crate) fn no_operation(id: &ArmId) -> Refusal {
        Refusal::new(404, "OperationNotFound", format!("Operation '{}' was not found.", id.name()))
    }

    pub(crate) fn no_place(id: &ArmId) -> Refusal {
        Refusal::new(404, "InvalidResourceType", format!("No resource type is served at '{id}'."))
    }

    // Requests that make no sense.

    pub(crate) fn bad_request(message: &str) -> Refusal {
        Refusal::bad("InvalidRequestFormat", message.into())
    }

    pub(crate) fn bad_name(name: &str) -> Refusal {
        let message = format!(
            "Resource name '{name}' is invalid: 1 to 80 letters, digits, '.', '_' or '-', beginning with a \
             letter or digit and ending with a letter, digit or '_'."
        );
        Refusal::bad("InvalidResourceName", message)
    }

    pub(crate) fn bad_page(token: &str) -> Refusal {
        Refusal::bad("InvalidSkipToken", format!("'{token}' does not continue this list."))
    }

    pub(crate) fn too_large(bytes: usize, most: usize) -> Refusal {
        let message = format!("The request has {bytes} bytes; at most {most} are allowed.");
        Refusal::new(413, "RequestEntityTooLarge", message)
    }

    // Waiting, versions, locks.

    pub(crate) fn throttled(bucket: Bucket, wait: Duration) -> Refusal {
        let word = match bucket {
            Bucket::Reads => "read",
            Bucket::Writes => "write",
            Bucket::Deletes => "delete",
        };
        let message = format!(
            "Number of '{word}' requests exceeded the limit. Please try again after '{}' seconds.",
            wait.as_secs()
        );
        let refusal = Refusal::new(429, "SubscriptionRequestsThrottled", message);
        Refusal { retry_after: Some(wait), remaining: Some(0), ..refusal }
    }

    pub(crate) fn throttled_by_network(wait: Duration) -> Refusal {
        let message =
            format!("Too many requests for Microsoft.Network; retry in {} seconds.", wait.as_secs());
        Refusal { retry_after: Some(wait), ..Refusal::new(429, "TooManyRequests", message) }
    }

    pub(crate) fn busy_writing(operation: &ArmId, target: &ArmId, wait: Duration) -> Refusal {
        let message = format!(
            "Operation {} is updating resource {target}. The call can be retried in {} seconds.",
            operation.name(),
            wait.as_secs()
        );
        Refusal::new(429, "RetryableErrorDueToAnotherOperation", message)
    }

    pub(crate) fn busy_deleting(operation: &ArmId, target: &ArmId) -> Refusal {
        let message = format!("Another operation ({}) on {target} is in progress.", operation.name());
        Refusal::new(409, "AnotherOperationInProgress", message)
    }

    pub(crate) fn group_going(group: &ArmId) -> Refusal {
        let message = format!("The resource group '{}' is in deprovisioning state.", group.name());
        Refusal::new(409, "ResourceGroupBeingDeleted", message)
    }

    pub(crate) fn wrong_version(id: &ArmId, given: &str, actual: Option<&str>) -> Refusal {
        let actual = actual.unwrap_or("(none)");
        let message = format!(
            "Precondition failed. Etag provided in if-match header {given} does not match etag {actual} of \
             resource {id} in NRP data store."
        );
        Refusal::new(412, "PreconditionFailed", message)
    }

    pub(crate) fn locked(id: &ArmId, word: &str, scope: &ArmId) -> Refusal {
        let message = format!(
            "The scope '{id}' cannot perform {word} operation because following scope(s) are locked: \
             '{scope}'. Please remove the lock and try again."
        );
        Refusal::new(409, "ScopeLocked", message)
    }

    pub(crate) fn denied_by_policy(id: &ArmId, scope: &ArmId) -> Refusal {
        let message = format!("Resource '{}' was disallowed by policy at '{scope}'.", id.name());
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

    pub(crate) fn over_quota(word: &str, most: usize) -> Refusal {
        let message = format!("The quota of {most} {word} for this subscription in this region is used up.");
        Refusal::bad("QuotaExceeded", message)
    }

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
        let why = format!(
            "Cannot proceed with operation because resource {target} used by resource {by} is not in \
             Succeeded state. Resource is in {state:?} state."
        );
        if state == Provisioning::Failed {
            return Refusal::bad("ReferencedResourceNotProvisioned", why);
        }
        let message = format!("A retryable error occurred. ReferencedResourceNotProvisioned: {why}");
        Refusal::new(429, "RetryableError", message)
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
            "Public IP address {public_ip} can not be deleted since it is still allocated to resource {owner}."
        );
        Refusal::bad("PublicIPAddressCannotBeDeleted", message)
    }

    /// `InUse{what}CannotBeDeleted`.
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

    pub(crate) fn group_used(group: &ArmId, by: &ArmId) -> Refusal {
        let message = format!("Resources in '{}' are in use by {by}.", group.name());
        Refusal::new(409, "ResourceGroupDeletionBlocked", message)
    }

    // Values.

    pub(crate) fn family_fixed(id: &ArmId) -> Refusal {
        let message = format!("The IP version of public IP address {id} cannot be changed.");
        Refusal::bad("PublicIPAddressVersionCannotBeChanged", message)
    }

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

    pub(crate) fn same_backend(id: &ArmId, one: &str, other: &str) -> Refusal {
        let message = format!(
            "Load balancing rules {one} and {other} of {id} use the same backend port, protocol and pool."
        );
        Refusal::bad("RulesUseSameBackendPortProtocolAndPool", message)
    }

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
