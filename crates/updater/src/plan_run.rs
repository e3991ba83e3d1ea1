//! The service updater: runs plans step by step and reports once how far each got.
//!
//! A plan holds a worker's slot while it makes calls. It gives the slot back while it waits
//! for something that needs no worker (the shared commit, a pause that Azure asked for, the
//! budget, a slow operation) and asks for one when it could go on:
//!
//! ```text
//! Held ──SlotReleased──▶ Given ──SlotWanted──▶ Asked ──ResumePlan──▶ Held
//! ```
//!
//! An operation that is under way goes on being polled without a slot; only a new step, or a
//! call that fell asleep at its gate, needs one. Nothing is retried here but reads that lag:
//! whether and when to try a plan again is the engine's decision.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use sluice_model::azure::{ArmId, Gateway, Meta, Provisioning, PublicIp, Registration, SubnetBody, Tags};
use sluice_model::call::{Body, Method, Payload, Request};
use sluice_model::event::Wait;
use sluice_model::names::{CLUSTER_TAG, Scope, without_our_tags};
use sluice_model::plan::{Intent, Plan, PlanReport, Step, StepResult};
use sluice_model::seeded::{Bug, Seeded};
use sluice_model::{EffectId, Event, Failure, FailureClass, Outcome, Time};

use crate::Reports;
use crate::answer::{not_provisioned, unexpected};
use crate::commit::{Commit, Ticket, Wish};
use crate::config::Config;
use crate::errand::{ErrandId, Owner};
use crate::lister::{Asker, Lister};
use crate::steps::{Notes, StepEnd, StepNote};
use crate::wire::Wire;

/// How often a step reads a resource again that somebody else changed, before it fails.
const REREADS_MAX: u32 = 3;

/// What plans act through.
pub(crate) struct Means<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) wire: &'a mut Wire,
    pub(crate) commit: &'a mut Commit,
    pub(crate) lister: &'a mut Lister,
    pub(crate) reports: &'a mut Reports,
}

pub(crate) struct Plans {
    running: BTreeMap<EffectId, PlanRun>,
    pub(crate) notes: Notes,
    tagged: Tagged,
    readback_retries_max: u32,
    reread_wait_first: Duration,
    reread_wait_max: Duration,
}

struct PlanRun {
    intent: Intent,
    steps: Vec<Step>,
    done: Vec<StepResult>,
    slot: Slot,
    doing: Doing,
    /// When the current step began.
    step_began: Time,
    /// How often the current step has read again what somebody changed before it was written.
    rereads: u32,
    /// The public IP that the current step found and releases.
    released: Option<PublicIp>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    Held,
    Given,
    Asked,
}

/// What the current step waits for.
enum Doing {
    /// A slot to begin with.
    Nothing,
    /// Its one call.
    Calling(ErrandId),
    /// A read of the public IP that was just written.
    ReadingBack { errand: ErrandId, retries: u32, address: Option<IpAddr> },
    /// A read of what exists and is to be changed or deleted.
    ReadingFirst(ErrandId),
    /// The shared commit, or the list that decides an unknown one.
    Committing,
    /// The shared list of registrations.
    Listing,
}

/// The code of a failure: what is to be changed does not carry our tag.
const NOT_MANAGED: &str = "NotManaged";

/// The resources that got our tags lately, and when: a read may not show them yet.
struct Tagged {
    at: BTreeMap<ArmId, Time>,
    reads_lag_max: Duration,
}

impl Tagged {
    fn remember(&mut self, id: &ArmId, now: Time) {
        let max = self.reads_lag_max;
        self.at.retain(|_, at| now.since(*at) < max);
        self.at.insert(id.clone(), now);
    }

    /// A missing tag that we wrote a moment ago says nothing: the read is repeated later.
    fn explain(&self, failure: Failure, step: &Step, now: Time) -> Failure {
        let lags = step.read_first().is_some_and(|id| self.may_lag(id, now));
        if &*failure.code == NOT_MANAGED && lags { reading_lags() } else { failure }
    }

    /// The write of a step that has read its resource. If a read does not show what we wrote a moment ago, it is
    /// repeated later: a write without the tags and the version would overwrite what others have changed.
    fn change(
        &self,
        step: &Step,
        read: Result<Payload, Failure>,
        means: &Means<'_>,
    ) -> Result<Option<Request>, Failure> {
        let now = means.wire.now();
        let is_missing = matches!(&read, Err(failure) if failure.class == FailureClass::NotFound);
        if is_missing && put_target(step).is_some_and(|id| self.may_lag(id, now)) {
            return Err(reading_lags());
        }
        change(step, read, means).map_err(|failure| self.explain(failure, step, now))
    }

    /// The same for a resource that was only read.
    fn believe(&self, found: StepResult, scope: &Scope, now: Time) -> Result<StepResult, Failure> {
        let meta = match &found {
            StepResult::PublicIp(ip) => &ip.meta,
            StepResult::LoadBalancer(lb) => &lb.meta,
            StepResult::NatGateway(nat) => &nat.meta,
            _ => return Ok(found),
        };
        let lags = !scope.owns(&meta.tags) && self.may_lag(&meta.id, now);
        if lags { Err(reading_lags()) } else { Ok(found) }
    }

    fn may_lag(&self, id: &ArmId, now: Time) -> bool {
        self.at.get(id).is_some_and(|at| now.since(*at) < self.reads_lag_max)
    }
}

/// What a step writes as a whole.
fn put_target(step: &Step) -> Option<&ArmId> {
    match step {
        Step::PutPublicIp { id, .. } | Step::PutLoadBalancer { id, .. } | Step::PutNatGateway { id, .. } => {
            Some(id)
        }
        _ => None,
    }
}

/// What carries our tags after a step.
fn tagged_by(step: &Step) -> Option<&ArmId> {
    match step {
        Step::Adopt { id, .. } => Some(id),
        step => put_target(step),
    }
}

fn reading_lags() -> Failure {
    Failure::of(
        FailureClass::Transient,
        "ReadLagsBehind",
        "the tags were written, but a read of the resource does not return them yet",
    )
}

impl Plans {
    pub(crate) fn new(config: &Config) -> Plans {
        Plans {
            running: BTreeMap::new(),
            notes: Notes::default(),
            tagged: Tagged { at: BTreeMap::new(), reads_lag_max: config.reads_lag_max },
            readback_retries_max: config.readback_retries_max,
            reread_wait_first: config.reread_wait_first,
            reread_wait_max: config.reread_wait_max,
        }
    }

    /// Runs a plan that was just given a slot. A number that runs already is ignored.
    pub(crate) fn start(&mut self, id: EffectId, plan: &Plan, means: &mut Means<'_>) {
        if self.running.contains_key(&id) {
            return;
        }
        let run = PlanRun {
            intent: plan.intent,
            steps: plan.steps.clone(),
            done: Vec::new(),
            slot: Slot::Held,
            doing: Doing::Nothing,
            step_began: means.wire.now(),
            rereads: 0,
            released: None,
        };
        self.running.insert(id, run);
        self.begin_step(id, means);
    }

    /// The engine has a slot for it.
    pub(crate) fn resume(&mut self, id: EffectId, means: &mut Means<'_>) {
        let Some(run) = self.running.get_mut(&id) else { return };
        if run.slot == Slot::Held {
            return;
        }
        run.slot = Slot::Held;
        match run.doing {
            Doing::Nothing => self.begin_step(id, means),
            Doing::Calling(errand) | Doing::ReadingBack { errand, .. } | Doing::ReadingFirst(errand) => {
                means.wire.wake(errand)
            }
            Doing::Committing | Doing::Listing => {}
        }
    }

    /// It waits for something that needs no slot.
    pub(crate) fn release(&mut self, id: EffectId, wait: Wait, means: &mut Means<'_>) {
        let Some(run) = self.running.get_mut(&id) else { return };
        if run.slot == Slot::Held {
            run.slot = Slot::Given;
            means.wire.numbers.slots_released += 1;
            means.reports.push_back(Event::SlotReleased { id, wait });
        }
    }

    /// The gate at which its call sleeps is open.
    pub(crate) fn gate_opened(&mut self, id: EffectId, means: &mut Means<'_>) {
        let Some(run) = self.running.get_mut(&id) else { return };
        match (run.slot, &run.doing) {
            (Slot::Given, _) => {
                run.slot = Slot::Asked;
                means.reports.push_back(Event::SlotWanted(id));
            }
            (Slot::Asked, _) => {}
            (
                Slot::Held,
                Doing::Calling(errand) | Doing::ReadingBack { errand, .. } | Doing::ReadingFirst(errand),
            ) => means.wire.wake(*errand),
            (Slot::Held, Doing::Nothing | Doing::Committing | Doing::Listing) => {}
        }
    }

    fn begin_step(&mut self, id: EffectId, means: &mut Means<'_>) {
        let Some(run) = self.running.get_mut(&id) else { return };
        let Some(step) = run.steps.get(run.done.len()) else { return self.report(id, None, means) };
        run.step_began = means.wire.now();
        run.rereads = 0;
        self.notes.push(run.note(id, step, run.step_began, None));
        match Way::of(step, means.wire.seeded) {
            Way::Call(request) => {
                let errand = means.wire.begin(Owner::Plan(id), id, request, Duration::ZERO);
                run.doing = Doing::Calling(errand);
            }
            Way::ReadFirst(target) => {
                let read = Request::bare(Method::Get, target);
                run.doing = Doing::ReadingFirst(means.wire.begin(Owner::Plan(id), id, read, Duration::ZERO));
            }
            Way::Commit(wish) => {
                run.doing = Doing::Committing;
                self.release(id, Wait::SharedCommit, means);
                means.commit.join(Ticket { effect: id, wish }, means.scope, means.wire);
                if let Some(wait) = means.commit.held(means.wire) {
                    means.reports.push_back(Event::Held { id, wait });
                }
            }
            Way::List(name) => {
                run.doing = Doing::Listing;
                means.lister.ask(Asker::Step(id, name), means.scope, means.wire);
            }
        }
    }

    /// A call of the current step is over.
    pub(crate) fn call_ended(
        &mut self,
        id: EffectId,
        result: Result<Payload, Failure>,
        means: &mut Means<'_>,
    ) {
        let Some(run) = self.running.get_mut(&id) else { return };
        let Some(step) = run.steps.get(run.done.len()) else { return };
        let begin =
            |means: &mut Means<'_>, request, wait| means.wire.begin(Owner::Plan(id), id, request, wait);
        if let (Doing::Calling(_), Err(failure), Some(target)) = (&run.doing, &result, step.read_first())
            && changed_meanwhile(failure)
            && run.rereads < REREADS_MAX
        {
            run.rereads += 1;
            let read = Request::bare(Method::Get, target.clone());
            run.doing = Doing::ReadingFirst(begin(means, read, Duration::ZERO));
            return;
        }
        if let Step::ReleasePublicIp(_) = step {
            match (&run.doing, &result) {
                (Doing::ReadingFirst(_), Ok(Payload::PublicIp(ip))) => run.released = Some(ip.clone()),
                (_, Err(_)) => run.released = None,
                _ => {}
            }
        }
        let ended = match (step, &run.doing, result) {
            (Step::PutPublicIp { id: target, .. }, Doing::Calling(_), Ok(payload)) => match payload {
                // Finished at once, with its address: there is nothing to read back.
                Payload::PublicIp(ip) if is_ready(&ip) => Ok(StepResult::PublicIp(ip)),
                payload => {
                    let address = if let Payload::PublicIp(ip) = payload { ip.address } else { None };
                    let errand = begin(means, Request::bare(Method::Get, target.clone()), Duration::ZERO);
                    run.doing = Doing::ReadingBack { errand, retries: 0, address };
                    return;
                }
            },
            (Step::PutPublicIp { id: target, .. }, &Doing::ReadingBack { retries, address, .. }, result) => {
                match read_back(result, address) {
                    Err(why) if why.may_pass() && retries < self.readback_retries_max => {
                        let doubled = self.reread_wait_first.saturating_mul(1 << retries.min(16));
                        let wait = doubled.min(self.reread_wait_max).max(why.retry_after());
                        let errand = begin(means, Request::bare(Method::Get, target.clone()), wait);
                        run.doing = Doing::ReadingBack { errand, retries: retries + 1, address };
                        return;
                    }
                    Err(Reread::Lags) => Err(Failure::of(
                        FailureClass::Transient,
                        "ReadLagsBehind",
                        "the public IP was written, but a read does not return its IP address yet",
                    )),
                    Err(Reread::Broken(failure) | Reread::Failed(failure)) => Err(failure),
                    Ok(ip) => Ok(StepResult::PublicIp(ip)),
                }
            }
            (step, Doing::ReadingFirst(_), result) => match self.tagged.change(step, result, means) {
                Ok(None) => Ok(StepResult::Done),
                Ok(Some(request)) => {
                    // The tags of a service that is right otherwise; nothing waits for them, and for all other tags
                    // an update, a teardown or the whole gateway does.
                    let cosmetic = matches!(step, Step::Adopt { .. }) && run.intent == Intent::Adopt;
                    let errand =
                        means.wire.begin_in_order(Owner::Plan(id), id, request, Duration::ZERO, cosmetic);
                    run.doing = Doing::Calling(errand);
                    return;
                }
                Err(failure) => Err(failure),
            },
            (step, _, result) => finish(step, result)
                .and_then(|found| self.tagged.believe(found, means.scope, means.wire.now())),
        };
        self.step_ended(id, ended, means);
    }

    /// The shared list has been read.
    pub(crate) fn registrations_seen(
        &mut self,
        id: EffectId,
        name: &str,
        seen: &Result<Vec<Registration>, Failure>,
        means: &mut Means<'_>,
    ) {
        let result = match seen {
            Ok(all) => Ok(all
                .iter()
                .find(|registration| registration.name.eq_ignore_ascii_case(name))
                .map_or(StepResult::Absent, |found| StepResult::Registration(found.clone()))),
            Err(failure) => Err(failure.clone()),
        };
        self.step_ended(id, result, means);
    }

    /// The current step is over.
    pub(crate) fn step_ended(
        &mut self,
        id: EffectId,
        result: Result<StepResult, Failure>,
        means: &mut Means<'_>,
    ) {
        let Some(run) = self.running.get_mut(&id) else { return };
        run.doing = Doing::Nothing;
        // A public IP that stays is told, so that people learn which one it is.
        let result = match (result, run.released.take()) {
            (Ok(StepResult::Done), Some(mut ip)) => {
                ip.meta.tags = without_our_tags(&ip.meta.tags);
                Ok(StepResult::PublicIp(ip))
            }
            (result, _) => result,
        };
        if let Some(step) = run.steps.get(run.done.len()) {
            let now = means.wire.now();
            match (step, &result) {
                (
                    Step::DeletePublicIp(id) | Step::DeleteLoadBalancer(id) | Step::DeleteNatGateway(id),
                    Ok(_),
                ) => {
                    self.tagged.at.remove(id);
                }
                (step, Ok(_)) => {
                    if let Some(id) = tagged_by(step) {
                        self.tagged.remember(id, now);
                    }
                }
                (_, Err(_)) => {}
            }
            let end = StepEnd { took: now.since(run.step_began), failure: result.as_ref().err().cloned() };
            self.notes.push(run.note(id, step, now, Some(end)));
        }
        match result {
            Err(failure) => return self.report(id, Some(failure), means),
            Ok(result) => run.done.push(result),
        }
        if run.done.len() >= run.steps.len() {
            return self.report(id, None, means);
        }
        match run.slot {
            Slot::Held => self.begin_step(id, means),
            Slot::Given => {
                run.slot = Slot::Asked;
                means.reports.push_back(Event::SlotWanted(id));
            }
            Slot::Asked => {}
        }
    }

    fn report(&mut self, id: EffectId, failure: Option<Failure>, means: &mut Means<'_>) {
        let Some(run) = self.running.remove(&id) else { return };
        let outcome = Outcome::Plan(PlanReport { done: run.done, failure });
        means.reports.push_back(Event::EffectFinished { id, outcome });
    }
}

impl PlanRun {
    fn note(&self, effect: EffectId, step: &Step, at: Time, end: Option<StepEnd>) -> StepNote {
        let number = self.done.len() + 1;
        StepNote { effect, number, of: self.steps.len(), step: step.word(), at, end }
    }
}

/// How a step begins.
enum Way {
    /// With a call of its own.
    Call(Request),
    /// With a read of what it changes.
    ReadFirst(ArmId),
    /// With the shared commit.
    Commit(Wish),
    /// With the shared list.
    List(Arc<str>),
}

impl Way {
    fn of(step: &Step, seeded: Seeded) -> Way {
        let unchecked = seeded.has(Bug::DeleteOnStaleTags) || seeded.has(Bug::DeleteWithoutTagCheck);
        let unread = step.is_delete() && unchecked;
        match step.read_first().filter(|_| !unread) {
            Some(target) => Way::ReadFirst(target.clone()),
            None => Way::unread(step),
        }
    }

    /// How a step begins if nothing is read before.
    fn unread(step: &Step) -> Way {
        let put = |id: &ArmId, body| Way::Call(Request::with(Method::Put, id.clone(), body));
        match step {
            Step::PutPublicIp { id, body, .. } => put(id, Body::PublicIp(body.clone())),
            Step::PutLoadBalancer { id, body, .. } => put(id, Body::LoadBalancer(body.clone())),
            Step::PutNatGateway { id, body, .. } => put(id, Body::NatGateway(body.clone())),
            Step::PutGateway { id, body } => put(id, Body::Gateway(body.clone())),
            Step::DeleteLoadBalancer(id) | Step::DeleteNatGateway(id) | Step::DeletePublicIp(id) => {
                Way::Call(Request::bare(Method::Delete, id.clone()))
            }
            Step::ReadPublicIp(id) | Step::ReadLoadBalancer(id) | Step::ReadNatGateway(id) => {
                Way::Call(Request::bare(Method::Get, id.clone()))
            }
            Step::AttachSubnet { subnet: id, .. }
            | Step::ClaimGateway { id, .. }
            | Step::RepairGateway(id)
            | Step::Adopt { id, .. }
            | Step::ReleasePublicIp(id) => Way::ReadFirst(id.clone()),
            Step::Register(registration) => Way::Commit(Wish::Register(registration.clone())),
            Step::Clear(registration) => Way::Commit(Wish::Clear(registration.clone())),
            Step::Unregister(name) => Way::Commit(Wish::Unregister(Arc::clone(name))),
            Step::ReadRegistration(name) => Way::List(Arc::clone(name)),
        }
    }
}

/// What a step that needed one call has to tell.
fn finish(step: &Step, result: Result<Payload, Failure>) -> Result<StepResult, Failure> {
    let payload = match result {
        Ok(payload) => payload,
        Err(failure) if failure.class == FailureClass::NotFound => {
            return match step {
                // Nothing is left to release.
                Step::ReleasePublicIp(_) => Ok(StepResult::Done),
                step if step.is_read() => Ok(StepResult::Absent),
                _ => Err(failure),
            };
        }
        Err(failure) => return Err(failure),
    };
    match (step, payload) {
        (Step::ReadPublicIp(_), Payload::PublicIp(ip)) => Ok(StepResult::PublicIp(ip)),
        (Step::ReadLoadBalancer(_), Payload::LoadBalancer(it)) => Ok(StepResult::LoadBalancer(it)),
        (Step::ReadNatGateway(_), Payload::NatGateway(it)) => Ok(StepResult::NatGateway(it)),
        (step, _) if step.is_read() => Err(unexpected()),
        _ => Ok(StepResult::Done),
    }
}

/// Whether a public IP whose write is finished shows it. A state that we do not know is no
/// reason for doubt.
fn is_ready(ip: &PublicIp) -> bool {
    ip.address.is_some() && matches!(ip.meta.provisioning, Provisioning::Succeeded | Provisioning::Unknown)
}

/// Why a public IP could not be read back.
enum Reread {
    /// The read shows a time before the write.
    Lags,
    /// The write came to nothing after all.
    Broken(Failure),
    /// The read itself went wrong.
    Failed(Failure),
}

impl Reread {
    /// How long Azure asked to wait.
    fn retry_after(&self) -> Duration {
        match self {
            Reread::Failed(failure) => failure.retry_after.unwrap_or_default(),
            Reread::Lags | Reread::Broken(_) => Duration::ZERO,
        }
    }

    /// Whether another read may show more.
    fn may_pass(&self) -> bool {
        match self {
            Reread::Lags => true,
            Reread::Broken(_) => false,
            Reread::Failed(failure) => failure.class == FailureClass::Transient,
        }
    }
}

/// The public IP after its write; `written` is the address that the write itself answered with.
fn read_back(result: Result<Payload, Failure>, written: Option<IpAddr>) -> Result<PublicIp, Reread> {
    match result {
        Ok(Payload::PublicIp(ip)) if ip.meta.provisioning == Provisioning::Failed => {
            Err(Reread::Broken(not_provisioned()))
        }
        Ok(Payload::PublicIp(ip)) if is_ready(&ip) && (written.is_none() || written == ip.address) => Ok(ip),
        Ok(Payload::PublicIp(_)) => Err(Reread::Lags),
        Ok(_) => Err(Reread::Failed(unexpected())),
        Err(failure) if failure.class == FailureClass::NotFound => Err(Reread::Lags),
        Err(failure) => Err(Reread::Failed(failure)),
    }
}

/// Somebody wrote the resource after it was read, or the read was behind.
fn changed_meanwhile(failure: &Failure) -> bool {
    failure.status == 412
}

/// The write that a step makes of what it has just read, or nothing if it is so already. It is sent only
/// if nobody has changed the resource meanwhile.
fn change(
    step: &Step,
    read: Result<Payload, Failure>,
    means: &Means<'_>,
) -> Result<Option<Request>, Failure> {
    let payload = match read {
        Ok(payload) => payload,
        Err(failure) if failure.class == FailureClass::NotFound => return change_absent(step, failure),
        Err(failure) => return Err(failure),
    };
    match (step, payload) {
        (Step::AttachSubnet { subnet, gateway }, payload) => attach(subnet, gateway, payload),
        (Step::ClaimGateway { id, tags }, Payload::Gateway(found)) => claim(id, tags, &found.meta),
        (Step::Adopt { id, tags }, payload) => match payload.meta().filter(|found| found.id == *id) {
            // Whoever has tagged it meanwhile, it is managed.
            Some(found) if means.scope.owns(&found.tags) => Ok(None),
            Some(found) => claim(id, tags, found),
            None => Err(unexpected()),
        },
        (Step::RepairGateway(id), Payload::Gateway(found)) => repair(id, found, means.scope),
        (step, payload) => match payload.meta().filter(|found| step.read_first() == Some(&found.id)) {
            Some(found) => change_managed(step, found, means),
            None => Err(unexpected()),
        },
    }
}

/// The write of a step whose resource is not there. Reads can be behind, and only the answer to a deletion
/// proves that something is gone.
fn change_absent(step: &Step, failure: Failure) -> Result<Option<Request>, Failure> {
    match (step, Way::unread(step)) {
        (Step::PutNatGateway { body, .. }, _) if body.gateway.is_none() => Ok(None),
        (Step::ReleasePublicIp(_), _) => Ok(None),
        (_, Way::Call(request)) => Ok(Some(request)),
        _ => Err(failure),
    }
}

/// The write of a public IP, load balancer or NAT gateway that was just found so. One that has lost our tag is
/// left as it is; one that keeps it keeps the tags of others too.
fn change_managed(step: &Step, found: &Meta, means: &Means<'_>) -> Result<Option<Request>, Failure> {
    if !means.scope.owns(&found.tags) {
        if let Step::ReleasePublicIp(_) = step {
            return Ok(None);
        }
        let text = format!("{} no longer has this cluster's tag, so Sluice does not change it", found.id);
        return Err(Failure::of(FailureClass::Rejected, NOT_MANAGED, &text));
    }
    let request = match step {
        Step::ReleasePublicIp(id) => {
            let tags = without_our_tags(&found.tags);
            Request::with(Method::PatchTags, id.clone(), Body::Tags(tags))
        }
        step => match Way::unread(step) {
            Way::Call(request) => request,
            _ => return Err(unexpected()),
        },
    };
    let mut request = Request { if_match: Some(found.etag.clone()), ..request };
    if let Some(ours) = request.body.tags_mut().filter(|_| !means.wire.seeded.has(Bug::WipeTagsOfOthers)) {
        let of_others = found.tags.iter().filter(|(name, _)| !ours.contains_key(*name));
        let of_others: Tags = of_others.map(|(name, value)| (Arc::clone(name), Arc::clone(value))).collect();
        ours.extend(of_others);
    }
    Ok(Some(request))
}

/// A PATCH replaces all tags, so it carries those that are there, and ours.
fn claim(id: &ArmId, tags: &Tags, found: &Meta) -> Result<Option<Request>, Failure> {
    let now = &found.tags;
    if now.get(CLUSTER_TAG).is_some_and(|cluster| Some(cluster) != tags.get(CLUSTER_TAG)) {
        return Err(Failure::of(
            FailureClass::Rejected,
            "ClaimedElsewhere",
            "another cluster has claimed the resource in the meantime",
        ));
    }
    let mut merged = now.clone();
    merged.extend(tags.iter().map(|(name, value)| (Arc::clone(name), Arc::clone(value))));
    if merged == *now {
        return Ok(None);
    }
    let patch = Request::with(Method::PatchTags, id.clone(), Body::Tags(merged));
    Ok(Some(Request { if_match: Some(found.etag.clone()), ..patch }))
}

/// A PUT replaces everything, so it carries everything that is there.
fn repair(id: &ArmId, found: Gateway, scope: &Scope) -> Result<Option<Request>, Failure> {
    if found.meta.provisioning != Provisioning::Failed {
        return Ok(None);
    }
    if !scope.owns(&found.meta.tags) {
        return Err(Failure::of(
            FailureClass::Transient,
            "ReadLagsBehind",
            "the gateway was claimed, but a read does not return this cluster's tag yet",
        ));
    }
    let etag = found.meta.etag.clone();
    let put = Request::with(Method::Put, id.clone(), Body::GatewayAsRead(found));
    Ok(Some(Request { if_match: Some(etag), ..put }))
}

/// The write that attaches a subnet, or nothing if it is attached.
fn attach(subnet: &ArmId, gateway: &ArmId, payload: Payload) -> Result<Option<Request>, Failure> {
    let Payload::Subnet(found) = payload else { return Err(unexpected()) };
    match &found.gateway {
        Some(attached) if attached == gateway => return Ok(None),
        Some(_) => {
            return Err(Failure::of(
                FailureClass::Rejected,
                "SubnetAttachedElsewhere",
                "the subnet is attached to another gateway; detach the subnet, or set sluice.gateway.name to the gateway that it is attached to",
            ));
        }
        None => {}
    }
    let body = Body::Subnet(SubnetBody { gateway: Some(gateway.clone()), rest: found.rest });
    Ok(Some(Request { if_match: Some(found.etag), ..Request::with(Method::Put, subnet.clone(), body) }))
}
