//! The services by small numbers, with everything that is counted per service.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use sluice_model::{Time, Uid};

use super::Map;
use super::place::Spot;
use super::pods::PodId;
use super::sets::SetId;
use super::slab::{Slab, key};
use super::slices::OwnerId;

key!(
    /// A service of the gateway, by a small number.
    ///
    /// The number is good from `open` until the service is closed and nothing mentions it any more; then it
    /// may be given to another service. A number that names nothing answers like a service without addresses.
    pub ServiceIndex
);

impl ServiceIndex {
    /// For tables beside this one that use the same numbers.
    pub(crate) const fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// What happens to the addresses of a service.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mode {
    /// Its registration is live: what it wants is sent, and nothing else stays.
    Ready,
    /// Its registration is not known to be live: nothing is added, and what it still wants stays.
    Waiting,
    /// Its removal is not decided: nothing is added, and whatever Azure may have stays.
    Frozen,
    /// It belongs to others, as far as is known: like frozen, and no egress of ours gets an address that it has.
    Unmanaged,
    /// It is on its way out: nothing is added, and what Azure has is taken away.
    Draining,
}

/// One service.
pub(super) struct Service {
    pub(super) identity: Arc<str>,
    /// An egress: an address leaves by one at most.
    pub(super) outbound: bool,
    /// The lifecycle knows it.
    pub(super) open: bool,
    pub(super) mode: Mode,
    /// Entries that stay only because it is frozen or waits.
    pub(super) kept: BTreeSet<Spot>,
    /// It is on the list of `take_touched`.
    touched: bool,
    /// It is on the list of `take_recounted`.
    recounted: bool,
    /// The list that names nobody else, if anybody holds it.
    pub(super) solo: SetId,
    /// How many lists name it.
    pub(super) mentions: u32,
    /// (location, address) pairs that may be mapped to it in Azure.
    pub(super) mapped: u32,
    /// (location, address) pairs that are known to be mapped to it in Azure.
    pub(super) programmed: u32,
    /// (node, address) pairs that it wants.
    pub(super) wanted: u32,
    /// Those of them whose node has no address of the family.
    pub(super) unplaceable: u32,
    /// Since when there have been such.
    pub(super) unplaceable_since: Time,
    /// (location, address) pairs that Azure rejects and that it has, may have or wants.
    pub(super) rejected: u32,
    /// Ready endpoints in all of its slices.
    pub(super) ready_endpoints: u32,
    /// Pods as the seeded bug counts them.
    pub(super) pods_counted: u32,
    pub(super) owners: Vec<OwnerId>,
    pub(super) pods: Vec<PodId>,
    /// Its entries that may differ from Azure, first come first served.
    pub(super) queue: VecDeque<Spot>,
    /// Since when those have been news: moments, and how many entries in a row share each.
    pub(super) queued_since: VecDeque<(Time, u32)>,
}

impl Service {
    pub(super) fn is_ready(&self) -> bool {
        self.mode == Mode::Ready
    }

    pub(super) fn is_unmanaged(&self) -> bool {
        self.mode == Mode::Unmanaged
    }
}

/// All services.
pub(super) struct Services {
    slab: Slab<ServiceIndex, Service>,
    by_identity: Map<Arc<str>, ServiceIndex>,
    touched: Vec<ServiceIndex>,
    recounted: Vec<ServiceIndex>,
    /// Found in Azure and not known to the lifecycle.
    strangers: BTreeSet<ServiceIndex>,
    /// Stands in for the identity of a number that names nothing.
    nobody: Arc<str>,
}

impl Services {
    pub(super) fn new() -> Services {
        Services {
            slab: Slab::new(),
            by_identity: Map::default(),
            touched: Vec::new(),
            recounted: Vec::new(),
            strangers: BTreeSet::new(),
            nobody: "".into(),
        }
    }

    pub(super) fn get(&self, service: ServiceIndex) -> Option<&Service> {
        self.slab.get(service)
    }

    pub(super) fn identity(&self, service: ServiceIndex) -> &Arc<str> {
        self.slab.get(service).map_or(&self.nobody, |record| &record.identity)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ServiceIndex, &Service)> {
        self.slab.iter()
    }

    /// The number of an identity, in whatever case it is written.
    pub(super) fn find(&self, identity: &str) -> Option<ServiceIndex> {
        if identity.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return self.by_identity.get(identity.to_ascii_lowercase().as_str()).copied();
        }
        self.by_identity.get(identity).copied()
    }

    fn find_or_add(&mut self, identity: &str) -> ServiceIndex {
        if let Some(service) = self.find(identity) {
            return service;
        }
        let identity: Arc<str> = identity.to_ascii_lowercase().into();
        let service = self.slab.insert(Service {
            identity: Arc::clone(&identity),
            outbound: Uid::parse(&identity).is_err(),
            open: false,
            mode: Mode::Draining,
            kept: BTreeSet::new(),
            touched: false,
            recounted: false,
            solo: SetId::EMPTY,
            mentions: 0,
            mapped: 0,
            programmed: 0,
            wanted: 0,
            unplaceable: 0,
            unplaceable_since: Time::ZERO,
            rejected: 0,
            ready_endpoints: 0,
            pods_counted: 0,
            owners: Vec::new(),
            pods: Vec::new(),
            queue: VecDeque::new(),
            queued_since: VecDeque::new(),
        });
        self.by_identity.insert(identity, service);
        service
    }

    pub(super) fn open(&mut self, identity: &str) -> ServiceIndex {
        let service = self.find_or_add(identity);
        self.slab[service].open = true;
        self.strangers.remove(&service);
        service
    }

    /// A service that a listing mentions. One that the lifecycle does not know is unmanaged until it is decided about.
    pub(super) fn meet(&mut self, identity: &str) -> ServiceIndex {
        let service = self.find_or_add(identity);
        if !self.slab[service].open && self.strangers.insert(service) {
            self.slab[service].mode = Mode::Unmanaged;
        }
        service
    }

    pub(super) fn strangers(&self) -> Vec<ServiceIndex> {
        let mut strangers: Vec<ServiceIndex> = self.strangers.iter().copied().collect();
        strangers.sort_by_key(|&service| self.identity(service));
        strangers
    }

    pub(super) fn close(&mut self, service: ServiceIndex) {
        if let Some(record) = self.slab.get_mut(service) {
            record.open = false;
            if record.mapped > 0 {
                self.strangers.insert(service);
            }
            self.forget_if_unused(service);
        }
    }

    /// Puts a service on the list of those that the lifecycle should look at.
    pub(super) fn touch(&mut self, service: ServiceIndex) {
        let record = &mut self.slab[service];
        if !record.touched {
            record.touched = true;
            self.touched.push(service);
        }
    }

    pub(super) fn take_touched(&mut self) -> Vec<ServiceIndex> {
        if self.touched.is_empty() {
            return Vec::new();
        }
        let mut touched = core::mem::take(&mut self.touched);
        for &service in &touched {
            self.slab[service].touched = false;
        }
        touched.retain(|&service| !self.forget_if_unused(service));
        touched
    }

    /// Puts a service on the list of those whose counts have changed.
    pub(super) fn recount(&mut self, service: ServiceIndex) {
        let record = &mut self.slab[service];
        if !record.recounted {
            record.recounted = true;
            self.recounted.push(service);
        }
    }

    pub(super) fn take_recounted(&mut self) -> Vec<ServiceIndex> {
        if self.recounted.is_empty() {
            return Vec::new();
        }
        let mut recounted = core::mem::take(&mut self.recounted);
        // One that has gone meanwhile has nothing to show.
        recounted.retain(|&service| match self.slab.get_mut(service) {
            Some(record) => core::mem::take(&mut record.recounted),
            None => false,
        });
        recounted
    }

    pub(super) fn unmention(&mut self, service: ServiceIndex) {
        self.slab[service].mentions -= 1;
        self.forget_if_unused(service);
    }

    /// Frees the number of a service that nobody has any use for; says whether it did.
    pub(super) fn forget_if_unused(&mut self, service: ServiceIndex) -> bool {
        let record = &self.slab[service];
        let used = record.open
            || record.touched
            || record.mentions > 0
            || record.rejected > 0
            || !record.owners.is_empty()
            || !record.pods.is_empty()
            || !record.queue.is_empty();
        if used {
            return false;
        }
        if let Some(record) = self.slab.remove(service) {
            self.by_identity.remove(&record.identity);
            self.strangers.remove(&service);
        }
        true
    }

    /// One more pair whose node has no address of the family. From the first on, it is watched how long that lasts.
    pub(super) fn count_unplaceable(&mut self, service: ServiceIndex, now: Time) {
        let record = &mut self.slab[service];
        record.unplaceable += 1;
        if record.unplaceable == 1 {
            record.unplaceable_since = now;
            self.touch(service);
        }
        self.recount(service);
    }

    /// One pair less.
    pub(super) fn discount_unplaceable(&mut self, service: ServiceIndex) {
        let record = &mut self.slab[service];
        record.unplaceable = record.unplaceable.saturating_sub(1);
        self.recount(service);
    }

    /// One more pair that may be mapped to the service.
    pub(super) fn count_mapped(&mut self, service: ServiceIndex) {
        self.slab[service].mapped += 1;
        self.recount(service);
    }

    /// One pair less; the last one opens the gate.
    pub(super) fn discount_mapped(&mut self, service: ServiceIndex) {
        let record = &mut self.slab[service];
        record.mapped -= 1;
        if record.mapped == 0 {
            self.touch(service);
        }
        self.recount(service);
    }
}

impl Index<ServiceIndex> for Services {
    type Output = Service;
    fn index(&self, service: ServiceIndex) -> &Service {
        &self.slab[service]
    }
}

impl IndexMut<ServiceIndex> for Services {
    fn index_mut(&mut self, service: ServiceIndex) -> &mut Service {
        &mut self.slab[service]
    }
}
