//! Lists of services, each kept once.
//!
//! An address belongs to one service, rarely to a few; a million addresses share a few thousand lists.
//! A list is sorted, never changes, and is named by a [`SetId`], so that "the same services" is one
//! comparison. Lists are counted by those who keep their number.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::services::{ServiceIndex, Services};
use super::slab::{Slab, key};
use super::table::Value;

key!(
    /// One list of services.
    pub(super) SetId
);

impl Value for SetId {
    const VACANT: SetId = SetId(u32::MAX);
}

impl SetId {
    /// The list with nobody on it; always there and never counted.
    pub(super) const EMPTY: SetId = SetId(0);
}

enum Members {
    One(ServiceIndex),
    Many(Box<[ServiceIndex]>),
}

struct Set {
    members: Members,
    holders: u32,
}

/// All lists.
pub(super) struct Sets {
    slab: Slab<SetId, Set>,
    /// The lists of two and more; a list of one is found through its service.
    index: HashTable<SetId>,
    hasher: FixedState,
}

impl Sets {
    pub(super) fn new() -> Sets {
        let mut slab = Slab::new();
        slab.insert(Set { members: Members::Many(Box::default()), holders: 1 });
        Sets { slab, index: HashTable::new(), hasher: FixedState::default() }
    }

    pub(super) fn members(&self, id: SetId) -> &[ServiceIndex] {
        match &self.slab[id].members {
            Members::One(service) => core::slice::from_ref(service),
            Members::Many(services) => services,
        }
    }

    pub(super) fn contains(&self, id: SetId, service: ServiceIndex) -> bool {
        match &self.slab[id].members {
            Members::One(one) => *one == service,
            Members::Many(services) => services.binary_search(&service).is_ok(),
        }
    }

    /// One more holder of a list.
    pub(super) fn share(&mut self, id: SetId) -> SetId {
        if id != SetId::EMPTY {
            self.slab[id].holders += 1;
        }
        id
    }

    /// One holder less; the last one takes the list with it.
    pub(super) fn drop(&mut self, id: SetId, services: &mut Services) {
        if id == SetId::EMPTY {
            return;
        }
        let set = &mut self.slab[id];
        set.holders -= 1;
        if set.holders > 0 {
            return;
        }
        let Some(set) = self.slab.remove(id) else { return };
        match set.members {
            Members::One(service) => {
                services[service].solo = SetId::EMPTY;
                services.unmention(service);
            }
            Members::Many(members) => {
                let hash = self.hasher.hash_one(&members);
                if let Ok(found) = self.index.find_entry(hash, |&other| other == id) {
                    found.remove();
                }
                for &service in &members {
                    services.unmention(service);
                }
            }
        }
    }

    /// The list of one service, held.
    pub(super) fn solo(&mut self, service: ServiceIndex, services: &mut Services) -> SetId {
        let solo = services[service].solo;
        if solo != SetId::EMPTY {
            return self.share(solo);
        }
        let id = self.slab.insert(Set { members: Members::One(service), holders: 1 });
        let record = &mut services[service];
        record.solo = id;
        record.mentions += 1;
        id
    }

    /// The list of these services, which are sorted and different, held.
    pub(super) fn hold(&mut self, members: &[ServiceIndex], services: &mut Services) -> SetId {
        match members {
            [] => SetId::EMPTY,
            [service] => self.solo(*service, services),
            many => {
                let hash = self.hasher.hash_one(many);
                if let Some(&id) = self.index.find(hash, |&id| self.members(id) == many) {
                    return self.share(id);
                }
                let id = self.slab.insert(Set { members: Members::Many(many.into()), holders: 1 });
                for &service in many {
                    services[service].mentions += 1;
                }
                let (slab, hasher) = (&self.slab, &self.hasher);
                self.index.insert_unique(hash, id, |&id| match &slab[id].members {
                    Members::One(service) => hasher.hash_one(core::slice::from_ref(service)),
                    Members::Many(services) => hasher.hash_one(services),
                });
                id
            }
        }
    }

    /// The list with one service more, held; the given list stays held as it was.
    pub(super) fn with(&mut self, id: SetId, service: ServiceIndex, services: &mut Services) -> SetId {
        let mut members: Vec<ServiceIndex> = self.members(id).into();
        if let Err(at) = members.binary_search(&service) {
            members.insert(at, service);
        }
        self.hold(&members, services)
    }

    /// The list with one service less, held; the given list stays held as it was.
    pub(super) fn without(&mut self, id: SetId, service: ServiceIndex, services: &mut Services) -> SetId {
        let others: Vec<ServiceIndex> =
            self.members(id).iter().copied().filter(|&other| other != service).collect();
        self.hold(&others, services)
    }

    /// Every list with its holders; for the recount.
    pub(super) fn holders(&self) -> impl Iterator<Item = (SetId, u32)> {
        self.slab.iter().skip(1).map(|(id, set)| (id, set.holders))
    }
}
