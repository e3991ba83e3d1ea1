//! What people should know about addresses, as data.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use sluice_model::reason::Reason;
use sluice_model::{Failure, Family, ObjectName};

/// Something that people should know about addresses; each is given once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AddressNotice {
    /// Azure refuses these entries; they are tried again every few minutes and when they change.
    Quarantined {
        /// The services that they belong to.
        services: Vec<Arc<str>>,
        /// The entries, as (location, address); at most ten.
        entries: Vec<(IpAddr, IpAddr)>,
        /// How many there are.
        count: usize,
        /// What Azure said.
        failure: Failure,
    },
    /// Azure refused to unbind an address, so its location was written in full without it.
    RemovedByFullUpdate {
        /// The location.
        location: IpAddr,
        /// The address that is no longer bound there.
        address: IpAddr,
    },
    /// Addresses of a slice cannot be used, and are skipped.
    Malformed {
        /// The slice.
        slice: ObjectName,
        /// The addresses, as they are written.
        addresses: Vec<Arc<str>>,
    },
    /// A node has no address of a family that is wanted on it, so those addresses wait.
    FamilyMissing {
        /// The node.
        node: Arc<str>,
        /// The family.
        family: Family,
    },
    /// The sync has failed many times in a row; it goes on trying.
    LaneFailing {
        /// How many times.
        failures: u32,
        /// What happened last.
        failure: Failure,
    },
}

impl AddressNotice {
    /// The reason word and a sentence for people.
    pub(crate) fn words(&self) -> (Reason, String) {
        match self {
            AddressNotice::Quarantined { services, entries, count, failure } => {
                let mut text =
                    format!("Azure refuses {count} addresses of {}: {failure}", services.join(", "));
                for (location, address) in entries {
                    text.push_str(&format!("; {address} at {location}"));
                }
                (Reason::Refused, text)
            }
            AddressNotice::RemovedByFullUpdate { location, address } => (
                Reason::Refused,
                format!("Azure refused to unbind {address}, so {location} was written without it"),
            ),
            AddressNotice::Malformed { slice, addresses } => {
                let addresses = addresses.join(", ");
                (
                    Reason::InvalidSpec,
                    format!("the EndpointSlice {slice} has unusable addresses: {addresses}"),
                )
            }
            AddressNotice::FamilyMissing { node, family } => (
                Reason::InvalidSpec,
                format!("the node {node} has no {family} address, so its {family} pods wait"),
            ),
            AddressNotice::LaneFailing { failures, failure } => {
                let text =
                    format!("{failures} address updates have failed in a row; they are repeated: {failure}");
                (Reason::AzureUnavailable, text)
            }
        }
    }
}
