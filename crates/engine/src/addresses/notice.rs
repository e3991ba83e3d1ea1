//! What people should know about addresses, as data.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use sluice_model::reason::Reason;
use sluice_model::{Failure, Family, ObjectName};

use crate::failure_row::clause;

/// A notice names at most this many things.
const NAMED_MAX: usize = 10;

/// The things that a notice is about: the first few, and how many there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample<T> {
    /// The first ones, at most ten.
    pub first: Vec<T>,
    /// How many there are.
    pub count: usize,
}

impl<T> Sample<T> {
    pub(super) const fn new() -> Sample<T> {
        Sample { first: Vec::new(), count: 0 }
    }

    /// Counts one more, and makes its name if there is room for it.
    pub(super) fn add(&mut self, name: impl FnOnce() -> T) {
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            self.first.push(name());
        }
    }

    fn words(&self, name: impl Fn(&T) -> String) -> String {
        let text = self.first.iter().map(name).collect::<Vec<String>>().join(", ");
        match self.count - self.first.len() {
            0 => text,
            more => format!("{text}, and {more} more"),
        }
    }
}

/// `1 address`, `2 addresses`.
pub(crate) fn addresses_in_words(count: usize) -> String {
    if count == 1 { "1 address".into() } else { format!("{count} addresses") }
}

/// Something that people should know about addresses; each is given once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AddressNotice {
    /// Azure refuses these entries of a service; they are tried again every few minutes and when they change.
    Quarantined {
        /// The identity of the service.
        service: Arc<str>,
        /// The entries, as (location, address).
        entries: Sample<(IpAddr, IpAddr)>,
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
        /// The identity of the service that has the slice.
        service: Arc<str>,
        /// The slice.
        slice: ObjectName,
        /// The addresses, as they are written.
        addresses: Sample<Arc<str>>,
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
    /// The identity of the service that it is about, if it is about one.
    pub(crate) fn service(&self) -> Option<&str> {
        match self {
            AddressNotice::Quarantined { service, .. } | AddressNotice::Malformed { service, .. } => {
                Some(service)
            }
            AddressNotice::RemovedByFullUpdate { .. }
            | AddressNotice::FamilyMissing { .. }
            | AddressNotice::LaneFailing { .. } => None,
        }
    }

    /// The reason word and a sentence for people.
    pub(crate) fn words(&self) -> (Reason, String) {
        match self {
            AddressNotice::Quarantined { entries, failure, .. } => {
                let named = entries.words(|(location, address)| format!("{address} on node IP {location}"));
                let many = addresses_in_words(entries.count);
                let why = clause(failure);
                (Reason::Rejected, format!("Azure rejected {many}: {why}. Sluice retries; check {named}"))
            }
            AddressNotice::RemovedByFullUpdate { location, address } => (
                Reason::Rejected,
                format!(
                    "Azure rejected the removal of {address}; removed it with a full update of node IP {location}. Check the node"
                ),
            ),
            AddressNotice::Malformed { slice, addresses, .. } => {
                let addresses = addresses.words(|address| String::from(&**address));
                (
                    Reason::InvalidSpec,
                    format!(
                        "Ignored invalid addresses in EndpointSlice {slice}: {addresses}. Correct the EndpointSlice"
                    ),
                )
            }
            AddressNotice::FamilyMissing { node, family } => (
                Reason::InvalidSpec,
                format!(
                    "Node {node} has no {family} InternalIP, so its {family} pods are not programmed. Add an InternalIP"
                ),
            ),
            AddressNotice::LaneFailing { failures, failure } => {
                let why = clause(failure);
                let text = format!(
                    "Address updates failed {failures} times in a row: {why}. Sluice retries; run `sluice doctor`"
                );
                (Reason::AzureUnavailable, text)
            }
        }
    }
}
