//! What we know to be in Azure for one service, and how sure we are.
//!
//! A read never proves that something is not there shortly after a write: reads lag. Only the
//! answer to a DELETE, or a listing begun well after the last write, does. What a read did not
//! show too soon is *doubted*: made again when wanted, and deleted when not.

use alloc::sync::Arc;
use alloc::vec;
use core::time::Duration;

use sluice_model::azure::{
    ArmId, ETag, LoadBalancer, LoadBalancerBody, Meta, NatGateway, NatGatewayBody, Provisioning, PublicIp,
    PublicIpBody, Registration, Tags, same_ids,
};
use sluice_model::names::{OWNER_TAG, without_our_tags};
use sluice_model::plan::{PlanReport, StepResult};
use sluice_model::{Family, ObjectName, Plan, ServiceKey, Step, Time};

/// How sure we are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Knowledge<T> {
    /// Nobody has looked yet, or an outcome was unknown: look first.
    #[default]
    Unknown,
    /// It is not there: proven.
    Absent,
    /// A look did not show it, but too soon after a write to be believed.
    Doubted,
    /// It is there, so.
    Present(T),
}

/// One resource of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Slot<T> {
    /// What we know.
    pub(crate) knowledge: Knowledge<T>,
    /// When a write of ours may last have reached it.
    pub(crate) written: Option<Time>,
    /// When the first of two listings that must agree on a difference began.
    pub(crate) suspected: Option<Time>,
    /// Of a public IP: the last listing did not show it, but is no proof: it began while an operation was running, or
    /// soon after.
    pub(crate) unseen: bool,
}

impl<T> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot { knowledge: Knowledge::Unknown, written: None, suspected: None, unseen: false }
    }
}

impl<T> Slot<T> {
    pub(crate) fn present(&self) -> Option<&T> {
        match &self.knowledge {
            Knowledge::Present(thing) => Some(thing),
            _ => None,
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.knowledge, Knowledge::Absent)
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self.knowledge, Knowledge::Unknown)
    }

    /// Whether a look that began then is too early to speak about our last write.
    pub(crate) fn is_fresh(&self, began: Time, settle: Duration) -> bool {
        self.written.is_some_and(|written| began < written + settle)
    }

    fn set(&mut self, knowledge: Knowledge<T>) {
        self.knowledge = knowledge;
        self.suspected = None;
    }

    fn written(&mut self, now: Time, knowledge: Knowledge<T>) {
        self.set(knowledge);
        self.written = Some(now);
    }

    fn read(&mut self, began: Time, settle: Duration, found: Option<T>) {
        let fresh = self.is_fresh(began, settle);
        self.unseen = false;
        self.set(match found {
            Some(thing) => Knowledge::Present(thing),
            None if fresh => Knowledge::Doubted,
            None => Knowledge::Absent,
        });
    }

    /// Believes a listing.
    pub(crate) fn believe(&mut self, found: Option<T>) {
        self.set(found.map_or(Knowledge::Absent, Knowledge::Present));
    }
}

/// The load balancer of an inbound service or the NAT gateway of an outbound one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Carrier {
    LoadBalancer(LoadBalancer),
    NatGateway(NatGateway),
}

impl Carrier {
    pub(crate) fn meta(&self) -> &Meta {
        match self {
            Carrier::LoadBalancer(lb) => &lb.meta,
            Carrier::NatGateway(nat) => &nat.meta,
        }
    }
}

/// Everything of one service.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Actual {
    /// `{identity}-pip`, and `{identity}-pip-v6` for an egress.
    pub(crate) public_ips: [Slot<PublicIp>; 2],
    pub(crate) carrier: Slot<Carrier>,
    pub(crate) registration: Slot<Registration>,
    /// The public IP of a load balancer is newer than the last confirmation of its registration, so it is
    /// registered again before the new IP is published.
    pub(crate) ip_is_new: bool,
    /// Public IPs that were seen without our tag under a carrier with it: somebody released them. They stay released
    /// when the carrier loses its tag too, until they are gone or tagged by hand.
    pub(crate) released: [bool; 2],
    /// The carrier was read because a public IP seems to be released.
    pub(crate) release_checked: bool,
}

impl Actual {
    /// Nothing is there, proven.
    pub(crate) fn is_nothing(&self) -> bool {
        self.public_ips.iter().all(Slot::is_absent)
            && self.carrier.is_absent()
            && self.registration.is_absent()
    }

    /// Something must be looked at before anything is decided.
    pub(crate) fn is_unclear(&self) -> bool {
        self.public_ips.iter().any(Slot::is_unknown)
            || self.carrier.is_unknown()
            || self.registration.is_unknown()
    }

    /// The slot of a public IP: an inbound service has one whatever its family, an egress one per family.
    pub(crate) fn public_ip_slot(key: &ServiceKey, family: Family) -> usize {
        match (key, family) {
            (ServiceKey::Outbound(_), Family::V6) => 1,
            _ => 0,
        }
    }

    /// Whether the gateway sends traffic to it.
    pub(crate) fn is_live(&self) -> bool {
        self.registration.present().is_some_and(|it| !it.pools.is_empty() || it.nat_gateway.is_some())
    }

    /// An operation is over, and a listing in its time did not show a public IP: others may have deleted it, so it is
    /// read before it is published.
    pub(crate) fn doubt_unseen(&mut self) {
        for slot in &mut self.public_ips {
            if core::mem::take(&mut slot.unseen) && slot.present().is_some() {
                slot.set(Knowledge::Unknown);
            }
        }
    }

    /// Whether the last listing has shown another public IP or registration than is known, and no second one yet.
    pub(crate) fn publication_is_in_doubt(&self) -> bool {
        self.public_ips[0].unseen
            || self.public_ips[0].suspected.is_some()
            || self.registration.suspected.is_some()
    }

    /// Whether we have written any of it.
    pub(crate) fn was_written(&self) -> bool {
        self.public_ips.iter().any(|slot| slot.written.is_some())
            || self.carrier.written.is_some()
            || self.registration.written.is_some()
    }

    /// Forgets what is there, so that it is looked at again before the next decision.
    pub(crate) fn look_again(&mut self) {
        for slot in &mut self.public_ips {
            if !slot.is_absent() {
                slot.set(Knowledge::Unknown);
            }
        }
        if !self.carrier.is_absent() {
            self.carrier.set(Knowledge::Unknown);
        }
        // A live registration is not doubted: its addresses are kept in sync meanwhile.
    }

    /// What was not listed and what we never wrote is looked at if something refers to it: others have made it since.
    pub(crate) fn doubt_absent(&mut self, key: &ServiceKey) {
        let identity = key.identity();
        let carrier =
            |id: &ArmId| id.segment("loadBalancers").is_some_and(|it| it.eq_ignore_ascii_case(&identity));
        let user = self.public_ips[0].present().and_then(|ip| ip.used_by.as_ref());
        let pools = self.registration.present().map_or(&[][..], |it| &it.pools);
        let referred = key.is_inbound() && pools.iter().chain(user).any(carrier);
        if referred && self.carrier.is_absent() && self.carrier.written.is_none() {
            self.carrier.set(Knowledge::Unknown);
            if self.registration.is_absent() && self.registration.written.is_none() {
                self.registration.set(Knowledge::Unknown);
            }
            if self.public_ips[0].is_absent() && self.public_ips[0].written.is_none() {
                self.public_ips[0].set(Knowledge::Unknown);
            }
        }
    }

    /// The same, of what was not there too: what is in the way may have more to it by now.
    pub(crate) fn look_everywhere(&mut self) {
        self.look_again();
        self.public_ips[0].set(Knowledge::Unknown);
        self.carrier.set(Knowledge::Unknown);
        if !self.is_live() {
            self.registration.set(Knowledge::Unknown);
        }
    }

    /// The Service that the tags name, for an inbound service without an object.
    pub(crate) fn owner_name(&self) -> Option<ObjectName> {
        let carrier = self.carrier.present().map(|carrier| &carrier.meta().tags);
        let address = self.public_ips[0].present().map(|ip| &ip.meta.tags);
        let owner = [carrier, address].into_iter().flatten().find_map(|tags| tags.get(OWNER_TAG))?;
        let (namespace, name) = owner.strip_prefix("service/")?.split_once('/')?;
        Some(ObjectName::new(namespace, name))
    }

    /// Takes in how far a plan got that was handed out at `began` and has ended now.
    pub(crate) fn absorb(
        &mut self,
        now: Time,
        began: Time,
        settle: Duration,
        key: &ServiceKey,
        plan: &Plan,
        report: &PlanReport,
    ) {
        for (step, result) in plan.steps.iter().zip(&report.done) {
            self.absorb_done(now, (began, settle), key, step, result);
        }
        let read_carrier = |step: &Step| matches!(step, Step::ReadLoadBalancer(_));
        if plan.steps.iter().any(|step| matches!(step, Step::ReadPublicIp(_)))
            && !plan.steps.iter().any(read_carrier)
        {
            self.doubt_absent(key);
        }
        if let (Some(_), Some(step)) = (&report.failure, plan.steps.get(report.done.len())) {
            self.absorb_failed(now, key, step);
        }
    }

    fn absorb_done(
        &mut self,
        now: Time,
        (began, settle): (Time, Duration),
        key: &ServiceKey,
        step: &Step,
        result: &StepResult,
    ) {
        match step {
            Step::PutPublicIp { .. } => self.ip_is_new = key.is_inbound(),
            Step::Register(_) => self.ip_is_new = false,
            _ => {}
        }
        match (step, result) {
            (Step::PutPublicIp { id, .. } | Step::ReadPublicIp(id), StepResult::PublicIp(ip)) => {
                let slot = self.public_ip_mut(key, id);
                match step.is_read() {
                    true => slot.read(began, settle, Some(ip.clone())),
                    false => slot.written(now, Knowledge::Present(ip.clone())),
                }
            }
            // Without its address it is of no use yet, so it is read again.
            (Step::PutPublicIp { id, .. }, _) => self.public_ip_mut(key, id).written(now, Knowledge::Unknown),
            (Step::ReadPublicIp(id), _) => self.public_ip_mut(key, id).read(began, settle, None),
            (Step::DeletePublicIp(id), _) => self.public_ip_mut(key, id).written(now, Knowledge::Absent),
            (Step::ReleasePublicIp(id), StepResult::PublicIp(ip)) => {
                self.public_ip_mut(key, id).written(now, Knowledge::Present(ip.clone()));
            }
            (Step::ReleasePublicIp(id), _) => {
                let slot = self.public_ip_mut(key, id);
                slot.written = Some(now);
                match &mut slot.knowledge {
                    Knowledge::Present(ip) => ip.meta.tags = without_our_tags(&ip.meta.tags),
                    // Whether it was there or not, nothing with our tags is left.
                    unread => *unread = Knowledge::Absent,
                }
            }
            (Step::Adopt { id, tags }, _) => self.tagged(now, key, id, tags),
            (Step::PutLoadBalancer { id, body, .. }, _) => {
                self.carrier.written(
                    now,
                    Knowledge::Present(Carrier::LoadBalancer(made_load_balancer(key, id, body))),
                );
            }
            (Step::PutNatGateway { id, body, .. }, _) => {
                self.carrier
                    .written(now, Knowledge::Present(Carrier::NatGateway(made_nat_gateway(id, body))));
            }
            (Step::ReadLoadBalancer(_), StepResult::LoadBalancer(lb)) => {
                self.carrier.read(began, settle, Some(Carrier::LoadBalancer(lb.clone())));
            }
            (Step::ReadNatGateway(_), StepResult::NatGateway(nat)) => {
                self.carrier.read(began, settle, Some(Carrier::NatGateway(nat.clone())));
            }
            (Step::ReadLoadBalancer(_) | Step::ReadNatGateway(_), _) => {
                self.carrier.read(began, settle, None)
            }
            (Step::DeleteLoadBalancer(_) | Step::DeleteNatGateway(_), _) => {
                self.carrier.written(now, Knowledge::Absent);
            }
            (Step::Register(registration) | Step::Clear(registration), _) => {
                self.registration.written(now, Knowledge::Present(registration.clone()));
            }
            (Step::Unregister(_), _) => self.registration.written(now, Knowledge::Absent),
            (Step::ReadRegistration(_), StepResult::Registration(registration)) => {
                self.registration.read(began, settle, Some(registration.clone()));
            }
            (Step::ReadRegistration(_), _) => self.registration.read(began, settle, None),
            (
                Step::PutGateway { .. }
                | Step::ClaimGateway { .. }
                | Step::RepairGateway(_)
                | Step::AttachSubnet { .. },
                _,
            ) => {}
        }
    }

    /// A write that failed may have left something behind: a step is several calls, and any of them can be
    /// the one that failed. What was to be made is looked at before the next attempt.
    fn absorb_failed(&mut self, now: Time, key: &ServiceKey, step: &Step) {
        match step {
            Step::PutPublicIp { id, .. } => {
                self.ip_is_new = key.is_inbound();
                self.public_ip_mut(key, id).written(now, Knowledge::Unknown);
            }
            // Taking the gateway off does not change that it is there, and can simply be repeated.
            Step::PutNatGateway { body, .. } if body.gateway.is_none() => self.carrier.written = Some(now),
            Step::PutLoadBalancer { .. } | Step::PutNatGateway { .. } => {
                self.carrier.written(now, Knowledge::Unknown);
            }
            Step::Adopt { id, .. } if is_public_ip(id) => {
                self.public_ip_mut(key, id).written(now, Knowledge::Unknown);
            }
            Step::Adopt { .. } => self.carrier.written(now, Knowledge::Unknown),
            // A live registration stays live whichever of the two it is now, and is written again.
            Step::Register(_) if self.is_live() => self.registration.written = Some(now),
            Step::Register(_) => self.registration.written(now, Knowledge::Unknown),
            // Teardown steps are repeated; what we knew to be there stays known.
            Step::Clear(_) | Step::Unregister(_) => self.registration.written = Some(now),
            Step::DeleteLoadBalancer(_) | Step::DeleteNatGateway(_) => self.carrier.written = Some(now),
            Step::DeletePublicIp(id) | Step::ReleasePublicIp(id) => {
                self.public_ip_mut(key, id).written = Some(now);
            }
            _ => {}
        }
    }

    /// A resource carries these tags as well now.
    fn tagged(&mut self, now: Time, key: &ServiceKey, id: &ArmId, tags: &Tags) {
        let tags = tags.clone();
        if is_public_ip(id) {
            let slot = self.public_ip_mut(key, id);
            slot.written = Some(now);
            if let Knowledge::Present(ip) = &mut slot.knowledge {
                ip.meta.tags.extend(tags);
            }
            return;
        }
        self.carrier.written = Some(now);
        if let Knowledge::Present(Carrier::LoadBalancer(lb)) = &mut self.carrier.knowledge {
            lb.meta.tags.extend(tags);
        }
    }

    pub(crate) fn public_ip_mut(&mut self, key: &ServiceKey, id: &ArmId) -> &mut Slot<PublicIp> {
        let [first, second] = &mut self.public_ips;
        let is_v6 = !key.is_inbound()
            && id.name().to_ascii_lowercase().ends_with("-pip-v6")
            && !id.name().eq_ignore_ascii_case(&sluice_model::names::public_ip_name(key, Family::V4));
        if is_v6 { second } else { first }
    }
}

fn is_public_ip(id: &ArmId) -> bool {
    id.segment("publicIPAddresses").is_some()
}

fn made_meta(id: &ArmId, tags: &Tags) -> Meta {
    Meta {
        id: id.clone(),
        tags: tags.clone(),
        etag: ETag(Arc::from("")),
        provisioning: Provisioning::Succeeded,
    }
}

fn made_load_balancer(key: &ServiceKey, id: &ArmId, body: &LoadBalancerBody) -> LoadBalancer {
    LoadBalancer {
        meta: made_meta(id, &body.tags),
        public_ip: Some(body.public_ip.clone()),
        pools: vec![key.identity()],
        rules: body.rules.clone(),
        edited: false,
    }
}

fn made_nat_gateway(id: &ArmId, body: &NatGatewayBody) -> NatGateway {
    NatGateway {
        meta: made_meta(id, &body.tags),
        gateway: body.gateway.clone(),
        public_ips: body.public_ips.clone(),
        public_ips_v6: body.public_ips_v6.clone(),
    }
}

/// Whether a public IP is as wanted, as far as we send it.
pub(crate) fn public_ip_matches(ip: &PublicIp, body: &PublicIpBody) -> bool {
    ip.family == body.family && ip.address.is_some() && came_through(&ip.meta)
}

/// Whether a load balancer is as wanted: ids without case, lists without order, tags aside.
pub(crate) fn load_balancer_matches(lb: &LoadBalancer, key: &ServiceKey, body: &LoadBalancerBody) -> bool {
    let mut rules = lb.rules.clone();
    rules.sort_unstable();
    lb.public_ip.as_ref() == Some(&body.public_ip)
        && rules == body.rules
        && !lb.edited
        && lb.pools.iter().any(|pool| pool.eq_ignore_ascii_case(&key.identity()))
        && came_through(&lb.meta)
}

/// Whether a NAT gateway is as wanted.
pub(crate) fn nat_gateway_matches(nat: &NatGateway, body: &NatGatewayBody) -> bool {
    nat.gateway == body.gateway
        && same_ids(&nat.public_ips, &body.public_ips)
        && same_ids(&nat.public_ips_v6, &body.public_ips_v6)
        && came_through(&nat.meta)
}

/// What is still on its way is left to come through; only what failed or is going is written again.
fn came_through(meta: &Meta) -> bool {
    !matches!(meta.provisioning, Provisioning::Failed | Provisioning::Deleting)
}
