//! Looks at all of Azure: once before anything is done, then now and then for drift and orphans.
//!
//! The first complete look is the *baseline*: only then does absence mean anything. Later looks are
//! compared with what we know; a difference is believed when two listings show it, and what we
//! wrote around the time a listing began is left alone. A listing that fails changes nothing.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::allow_deletion::{AllowedDeletions, Fingerprint};
use sluice_model::azure::{ArmId, Direction, LoadBalancer, Location, NatGateway, PublicIp, Registration};
use sluice_model::effect::{About, Cause, Listable, Listing};
use sluice_model::names::{IDENTITY_TAG, Scope, key_of_public_ip};
use sluice_model::reason::Reason;
use sluice_model::seeded::Bug;
use sluice_model::{
    Action, EffectId, EgressName, Failure, FailureClass, Family, ObjectName, ServiceKey, Time,
};

use crate::addresses::{ServiceIndex, Trust};
use crate::config::DefaultOutbound;
use crate::engine::{Engine, Errand};
use crate::failure_row::{FailureRow, clause};
use crate::plan::is_default_of_others;
use crate::resources::{Actual, Carrier};
use crate::start_up::FirstDifference;

const KINDS: usize = Listable::ALL.len();

/// The looks, and what they found that nobody has a record of.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) looks: [Look; KINDS],
    pending: Pending,
    pub(crate) complete: bool,
    /// Resources that no record knows, ours or not, by the key that their name says.
    pub(crate) strays: BTreeMap<ServiceKey, Stray>,
    /// When a key lost its record: a listing that began around then says nothing about it.
    pub(crate) forgotten: BTreeMap<ServiceKey, Time>,
    /// Services found unwanted by comparison, to which the brake applies.
    pub(crate) discovered: BTreeSet<ServiceIndex>,
    /// Services that the initial sync has not brought to rest yet.
    pub(crate) initial: BTreeSet<ServiceIndex>,
    pub(crate) initial_done: bool,
    /// The gateway cannot be used, and services show that.
    pub(crate) waits_for_gateway: bool,
    /// What the first complete look at both sides found.
    pub(crate) first_difference: Option<FirstDifference>,
    /// Identities that have addresses and no registration that is known, as the last listing showed, and since when.
    pub(crate) strangers: BTreeMap<Arc<str>, Time>,
    pub(crate) unclaimed: BTreeSet<Arc<str>>,
    /// Services that a public IP of others is tagged for, as the last listing showed, with that public IP.
    pub(crate) tagged: BTreeMap<ObjectName, ArmId>,
    /// Registrations whose names cannot be ours, as the last listing showed, in lower case.
    pub(crate) odd_names: BTreeMap<Arc<str>, Direction>,
    pub(crate) braked: bool,
    /// How many held services people have been told of.
    pub(crate) held_told: usize,
    /// Held services whose deletion the operator allows.
    pub(crate) allowed: AllowedDeletions,
    /// When teardowns of such services began, as far back as the brake looks.
    pub(crate) teardowns: Vec<Time>,
}

/// One kind's listing.
#[derive(Debug, Default)]
pub(crate) struct Look {
    pub(crate) in_flight: Option<EffectId>,
    pub(crate) next_at: Option<Time>,
    pub(crate) failures: u32,
    /// The listings that failed since the last success.
    pub(crate) failing: Option<FailureRow>,
    /// A listing that begins then or later is believed at once.
    pub(crate) trusted_since: Option<Time>,
    /// When the last listing began that was answered.
    began: Option<Time>,
}

/// The first listings, until all are in.
#[derive(Debug, Default)]
struct Pending {
    gateway_missing: Option<bool>,
    registrations: Option<Vec<Registration>>,
    locations: Option<(Time, Vec<Location>)>,
    load_balancers: Option<Vec<LoadBalancer>>,
    nat_gateways: Option<Vec<NatGateway>>,
    public_ips: Option<Vec<PublicIp>>,
}

/// Resources without a record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stray {
    pub(crate) found: Found,
    /// Per kind, when the first listing that showed it began.
    pub(crate) first_seen: [Option<Time>; KINDS],
    pub(crate) seen_twice: bool,
}

impl Stray {
    /// That of the service which it becomes.
    pub(crate) fn fingerprint(&self, key: &ServiceKey) -> Fingerprint {
        Fingerprint::of(key, self.found.public_ips[0].as_ref().and_then(|ip| ip.address))
    }
}

/// What listings show for one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) public_ips: [Option<PublicIp>; 2],
    pub(crate) carrier: Option<Carrier>,
    pub(crate) registration: Option<Registration>,
}

impl Found {
    pub(crate) fn is_nothing(&self) -> bool {
        self.public_ips.iter().all(Option::is_none) && self.carrier.is_none() && self.registration.is_none()
    }

    /// The gateway's reference to it was cleared, or its NAT gateway detached: no state of a service that is used.
    fn was_cleared(&self) -> bool {
        let detached = matches!(&self.carrier, Some(Carrier::NatGateway(nat)) if nat.gateway.is_none());
        detached || self.registration.as_ref().is_some_and(Registration::is_cleared)
    }

    /// Its teardown had begun before we looked.
    pub(crate) fn teardown_begun(&self) -> bool {
        self.was_cleared() || self.registration.is_none() && self.carrier.is_none()
    }

    /// Ours by tag, or registered with our gateway for nobody else.
    pub(crate) fn is_ours(&self, scope: &Scope, key: &ServiceKey, by_name: bool) -> bool {
        let ip = self.public_ips.iter().flatten().any(|ip| by_name || scope.owns(&ip.meta.tags));
        let carrier = self.carrier.as_ref().map(|carrier| by_name || scope.owns(&carrier.meta().tags));
        let registration = self.registration.as_ref().is_some_and(|it| {
            let points_home = it.pools.iter().all(|pool| *pool == scope.pool_id(key))
                && it.nat_gateway.iter().all(|nat| *nat == scope.carrier_id(key));
            points_home && (carrier != Some(false) || it.is_cleared()) && !is_default_of_others(key, it)
        });
        ip || carrier == Some(true) || registration
    }
}

impl Survey {
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Which kinds have been listed completely, in the order of [`Listable::ALL`].
    pub(crate) fn listed(&self) -> [bool; KINDS] {
        let pending = &self.pending;
        Listable::ALL.map(|kind| {
            self.complete
                || match kind {
                    Listable::Foundation => pending.gateway_missing.is_some(),
                    Listable::Registrations => pending.registrations.is_some(),
                    Listable::Locations => pending.locations.is_some(),
                    Listable::LoadBalancers => pending.load_balancers.is_some(),
                    Listable::NatGateways => pending.nat_gateways.is_some(),
                    Listable::PublicIps => pending.public_ips.is_some(),
                }
        })
    }

    pub(crate) fn start(&mut self, now: Time) {
        for look in &mut self.looks {
            look.next_at = Some(now);
        }
    }

    /// Forgets the first listings, unless all are in and taken, and lists again.
    pub(crate) fn begin_again(&mut self, now: Time) {
        if !self.complete {
            let gateway_missing = self.pending.gateway_missing;
            self.pending = Pending { gateway_missing, ..Pending::default() };
            for kind in Listable::ALL.into_iter().filter(|kind| *kind != Listable::Foundation) {
                self.look_soon(kind, now);
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.looks.iter().filter(|look| look.in_flight.is_none()).filter_map(|look| look.next_at).min()
    }

    /// Whether a kind is being listed, or was by a listing that is not older than that.
    pub(crate) fn has_looked(&self, kind: Listable, now: Time, age: Duration) -> bool {
        let look = &self.looks[kind as usize];
        look.in_flight.is_some() || look.began.is_some_and(|began| now < began + age)
    }

    /// Looks at a kind as soon as that is due, or sooner than planned.
    pub(crate) fn look_soon(&mut self, kind: Listable, at: Time) {
        let look = &mut self.looks[kind as usize];
        if look.failures > 0 && look.next_at.is_some() {
            // It is on its way as fast as its failures allow.
            return;
        }
        look.next_at = Some(look.next_at.map_or(at, |planned| planned.min(at)));
    }

    /// Looks again soon, because one look is not enough.
    pub(crate) fn second_look(&mut self, kind: Listable, now: Time, after: Duration) {
        self.look_soon(kind, now + after);
    }

    /// Azure knows better than we do: reads a kind again and believes it at once.
    pub(crate) fn read_again(&mut self, kind: Listable, now: Time) {
        self.looks[kind as usize].trusted_since = Some(now);
        self.look_soon(kind, now);
    }

    /// The gateway is new: what it holds is read again and believed at once.
    pub(crate) fn trust_next_of_gateway(&mut self, now: Time) {
        self.read_again(Listable::Registrations, now);
        self.read_again(Listable::Locations, now);
    }

    /// What is known of a key that gets a record only now.
    pub(crate) fn fill(&mut self, key: &ServiceKey, actual: &mut Actual) {
        let found = self.strays.remove(key).map(|stray| stray.found).unwrap_or_default();
        if !key.is_inbound() && found.is_nothing() {
            // Egress names are chosen by people, so somebody may have used this one since we listed: look first.
            return;
        }
        actual.believe(found);
        actual.doubt_absent(key);
    }

    /// Drops the record of a key; resources that are left under its name are unmanaged.
    pub(crate) fn forget(&mut self, key: &ServiceKey, now: Time, left: Found) {
        self.strays.remove(key);
        if !left.is_nothing() {
            self.strays.insert(key.clone(), Stray { found: left, ..Stray::default() });
        }
        self.forgotten.insert(key.clone(), now);
    }
}

impl Actual {
    /// What is known to be there.
    pub(crate) fn found(&self) -> Found {
        Found {
            public_ips: [0, 1].map(|slot| self.public_ips[slot].present().cloned()),
            carrier: self.carrier.present().cloned(),
            registration: self.registration.present().cloned(),
        }
    }

    /// Its teardown had begun before we looked; what is unknown proves nothing.
    pub(crate) fn teardown_begun(&self) -> bool {
        self.found().was_cleared() || self.registration.is_absent() && self.carrier.is_absent()
    }

    fn believe(&mut self, found: Found) {
        for (slot, ip) in self.public_ips.iter_mut().zip(found.public_ips) {
            slot.believe(ip);
        }
        self.carrier.believe(found.carrier);
        self.registration.believe(found.registration);
    }
}

impl Engine {
    /// What is registered, unwanted and not provably ours.
    pub fn unclaimed(&self) -> Vec<Arc<str>> {
        self.survey.unclaimed.iter().cloned().collect()
    }

    pub(crate) fn work_on_survey(&mut self) {
        for kind in Listable::ALL {
            let look = &self.survey.looks[kind as usize];
            if look.in_flight.is_some() || look.next_at.is_none_or(|at| at > self.now) {
                continue;
            }
            let cause = if self.survey.complete { Cause::DriftSweep } else { Cause::StartUp };
            let id = self.send(Action::List(kind), cause, Errand::List(kind));
            let look = &mut self.survey.looks[kind as usize];
            look.in_flight = Some(id);
            look.next_at = None;
        }
        self.try_baseline();
    }

    pub(crate) fn listed(&mut self, kind: Listable, began: Time, result: Result<Listing, Failure>) {
        let (now, interval) = (self.now, self.config.drift_interval);
        let next_at = now + self.jitter.around(interval);
        let trusts_failures = self.seeded.has(Bug::TrustFailedList);
        let look = &mut self.survey.looks[kind as usize];
        look.in_flight = None;
        let planned = look.next_at.take();
        let listing = match result {
            Ok(listing) => {
                look.failures = 0;
                look.failing = None;
                look.began = Some(began);
                let next_at = if self.seeded.has(Bug::NoDriftSweep) { Time::NEVER } else { next_at };
                look.next_at = Some(planned.map_or(next_at, |at| at.min(next_at)));
                listing
            }
            Err(_) if trusts_failures && kind != Listable::Foundation => {
                look.next_at = Some(next_at);
                empty(kind)
            }
            Err(failure) => {
                look.failures = look.failures.saturating_add(1);
                FailureRow::add(&mut look.failing, began.min(now), &failure);
                let retry = &self.config.retry;
                let doublings = look.failures.saturating_sub(1).min(8);
                let span = retry.backoff_min.saturating_mul(1 << doublings).min(retry.backoff_max);
                look.next_at = Some(now + span);
                let forbidden = failure.class == FailureClass::Forbidden && look.failures == 1;
                let missing = failure.class == FailureClass::NotFound;
                if forbidden || look.failures == self.config.retry.attempts_max && !missing {
                    let text = format!(
                        "Cannot read {} from Azure: {}. Sluice retries; run `sluice doctor`",
                        kind.phrase(),
                        clause(&failure)
                    );
                    let reason = if forbidden { Reason::Forbidden } else { Reason::AzureUnavailable };
                    self.notify(About::Cluster, true, reason, text);
                }
                if failure.class == FailureClass::NotFound && kind != Listable::Foundation {
                    self.survey.look_soon(Listable::Foundation, now);
                }
                return;
            }
        };
        if let Listing::Foundation { gateway, subnet } = &listing {
            self.foundation_listed(gateway.as_ref(), subnet.as_ref());
        }
        if self.survey.complete {
            self.compare_with(kind, began, listing);
        } else {
            self.keep(began, listing);
        }
    }

    pub(crate) fn keep(&mut self, began: Time, listing: Listing) {
        let pending = &mut self.survey.pending;
        match listing {
            Listing::Foundation { gateway, .. } => pending.gateway_missing = Some(gateway.is_none()),
            Listing::Registrations(all) => pending.registrations = Some(all),
            Listing::Locations(all) => pending.locations = Some((began, all)),
            Listing::LoadBalancers(all) => pending.load_balancers = Some(all),
            Listing::NatGateways(all) => pending.nat_gateways = Some(all),
            Listing::PublicIps(all) => pending.public_ips = Some(all),
        }
    }

    /// Joins the first complete look at both worlds.
    pub(crate) fn try_baseline(&mut self) {
        if self.survey.complete || self.kinds_listed.contains(&false) || self.foundation.is_unusable() {
            return;
        }
        let pending = &mut self.survey.pending;
        let Some(gateway_missing) = pending.gateway_missing else { return };
        if gateway_missing {
            // A gateway that does not exist has nothing in it.
            pending.registrations.get_or_insert_default();
            pending.locations.get_or_insert_default();
        }
        let ready = pending.registrations.is_some()
            && pending.locations.is_some()
            && pending.load_balancers.is_some()
            && pending.nat_gateways.is_some()
            && pending.public_ips.is_some();
        if !ready {
            return;
        }
        let pending = core::mem::take(pending);
        let (began, locations) = pending.locations.unwrap_or_default();
        let registrations = pending.registrations.unwrap_or_default();
        let foreign_default = self.note_default(&registrations);
        let mut found: BTreeMap<ServiceKey, Found> = BTreeMap::new();
        for (key, registration) in self.keyed_registrations(registrations) {
            found.entry(key).or_default().registration = Some(registration);
        }
        for (key, carrier) in keyed_load_balancers(pending.load_balancers.unwrap_or_default()) {
            found.entry(key).or_default().carrier = Some(carrier);
        }
        for (key, carrier) in keyed_nat_gateways(pending.nat_gateways.unwrap_or_default()) {
            found.entry(key).or_default().carrier = Some(carrier);
        }
        let public_ips = pending.public_ips.unwrap_or_default();
        self.note_tagged(&public_ips);
        for (key, slot, ip) in self.keyed_public_ips(public_ips) {
            found.entry(key).or_default().public_ips[slot] = Some(ip);
        }
        self.survey.complete = true;
        let records: Vec<ServiceIndex> = self.services.iter().flatten().map(|record| record.index).collect();
        for service in records {
            let rewrite = self.seeded.has(Bug::RewriteOnAdopt);
            if let Some(record) = self.record_mut(service) {
                let mut mine = found.remove(&record.key).unwrap_or_default();
                if rewrite && mine.registration.is_some() {
                    mine.registration = None;
                }
                record.actual.believe(mine);
                // The lists are of different moments: what others made in between is in some and not in others.
                record.actual.doubt_absent(&record.key);
                record.compared = None;
            }
            self.note_discovered(service);
            self.tend_addresses(service);
            self.survey.initial.insert(service);
        }
        for (key, found) in found {
            let mut stray = Stray { found, ..Stray::default() };
            if stray.found.registration.is_some() {
                stray.first_seen[Listable::Registrations as usize] = Some(began);
            }
            if stray.found.carrier.is_some() {
                let kind = if key.is_inbound() { Listable::LoadBalancers } else { Listable::NatGateways };
                stray.first_seen[kind as usize] = Some(began);
            }
            if stray.found.public_ips.iter().any(Option::is_some) {
                stray.first_seen[Listable::PublicIps as usize] = Some(began);
            }
            self.survey.strays.insert(key, stray);
        }
        self.want_default_outbound(foreign_default);
        // The modes are set, so only what nobody has decided about is kept as it is.
        self.addresses.listed(self.now, began, &locations, Trust::Baseline);
        if self.note_strangers(None) {
            self.survey.second_look(Listable::Locations, self.now, self.config.second_look);
        }
        self.adopt_confirmed_strays();
        self.end_initial_sync();
        self.touch_all();
    }

    /// Whether the gateway has a default outbound service that is not ours.
    pub(crate) fn note_default(&self, registrations: &[Registration]) -> bool {
        registrations.iter().any(|it| it.is_default && !it.name.eq_ignore_ascii_case(EgressName::DEFAULT))
    }

    pub(crate) fn want_default_outbound(&mut self, foreign_default: bool) {
        let name = EgressName::default_outbound();
        let key = ServiceKey::Outbound(name.clone());
        let there = self
            .survey
            .strays
            .get(&key)
            .is_some_and(|stray| stray.found.is_ours(&self.config.scope, &key, false));
        let ensure = self.config.default_outbound == DefaultOutbound::Ensure && !foreign_default;
        // One that is ours stays even when the option is switched off.
        if ensure || there {
            self.egress_requested(name, true);
            if let Some(&service) = self.by_key.get(&key) {
                self.survey.initial.insert(service);
            }
        }
    }

    /// A registration by its key; odd names are only shown.
    pub(crate) fn keyed_registrations(&mut self, all: Vec<Registration>) -> Vec<(ServiceKey, Registration)> {
        self.survey.odd_names.clear();
        let mut keyed = Vec::with_capacity(all.len());
        for registration in all {
            match ServiceKey::from_identity(&registration.name) {
                Some(key) => keyed.push((key, registration)),
                None => {
                    let name = registration.name.to_ascii_lowercase().into();
                    self.survey.odd_names.insert(name, registration.direction);
                }
            }
        }
        keyed
    }

    /// A public IP by its key: the identity tag decides where there is one of ours, else the name.
    pub(crate) fn keyed_public_ips(&self, all: Vec<PublicIp>) -> Vec<(ServiceKey, usize, PublicIp)> {
        let scope = &self.config.scope;
        let keyed = |ip: PublicIp| {
            let name = ip.meta.id.name();
            let tagged = ip.meta.tags.get(IDENTITY_TAG).filter(|_| scope.owns(&ip.meta.tags));
            let by_tag = tagged.and_then(|identity| ServiceKey::from_identity(identity)).and_then(|key| {
                let family = Family::ALL
                    .into_iter()
                    .find(|family| name.eq_ignore_ascii_case(scope.public_ip_id(&key, *family).name()))?;
                Some((key, family))
            });
            let (key, family) = by_tag.or_else(|| key_of_public_ip(name))?;
            let slot = Actual::public_ip_slot(&key, family);
            Some((key, slot, ip))
        };
        all.into_iter().filter_map(keyed).collect()
    }
}

pub(crate) fn keyed_load_balancers(all: Vec<LoadBalancer>) -> Vec<(ServiceKey, Carrier)> {
    let key = |lb: &LoadBalancer| ServiceKey::from_identity(lb.meta.id.name()).filter(ServiceKey::is_inbound);
    all.into_iter().filter_map(|lb| key(&lb).map(|key| (key, Carrier::LoadBalancer(lb)))).collect()
}

pub(crate) fn keyed_nat_gateways(all: Vec<NatGateway>) -> Vec<(ServiceKey, Carrier)> {
    let key =
        |nat: &NatGateway| ServiceKey::from_identity(nat.meta.id.name()).filter(|key| !key.is_inbound());
    all.into_iter().filter_map(|nat| key(&nat).map(|key| (key, Carrier::NatGateway(nat)))).collect()
}

fn empty(kind: Listable) -> Listing {
    match kind {
        Listable::Foundation => Listing::Foundation { gateway: None, subnet: None },
        Listable::Registrations => Listing::Registrations(Vec::new()),
        Listable::Locations => Listing::Locations(Vec::new()),
        Listable::LoadBalancers => Listing::LoadBalancers(Vec::new()),
        Listable::NatGateways => Listing::NatGateways(Vec::new()),
        Listable::PublicIps => Listing::PublicIps(Vec::new()),
    }
}
