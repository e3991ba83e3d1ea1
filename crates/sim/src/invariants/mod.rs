//! The safety invariants S1-S14, judged from outside after every step.
//!
//! The judge keeps one book per process: what Azure has answered to it ([`ledger`]), what
//! Kubernetes has told it ([`seen`]), how many calls it has made ([`budget`]), and until when its
//! lease lets it begin requests. It sees every event, effect, request and answer, and the truth of
//! both worlds, and asks the engine only for the views that people see too. Each invariant is one
//! function whose comment says what is judged and what is excused.

pub mod budget;
pub mod deeds;
mod effects;
mod kube_writes;
pub mod ledger;
mod requests;
pub mod seen;
pub(crate) mod tags;
mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use sluice_cloud::State as CloudState;
use sluice_engine::ServiceView;
use sluice_model::azure::Gateway;
use sluice_model::call::{Method, Reply, Request};
use sluice_model::effect::{KubeOutcome, Listable};
use sluice_model::event::Relist;
use sluice_model::failure::{Failure, FailureClass};
use sluice_model::kube::ServiceObject;
use sluice_model::names::Scope;
use sluice_model::{Effect, EffectId, Event, Outcome, ServiceKey, Time, Uid};
use sluice_updater::Config as UpdaterConfig;

use crate::cluster::oracle::refusal;
use crate::cluster::{Cluster, KubeWrite};
use crate::coverage::Coverage;
use crate::names::{Invariant, Violation};

use budget::CallCount;
use deeds::deeds;
use ledger::Ledger;
use seen::Seen;

/// So many refused location calls in a row, each with more than one address, are one bisection and no more:
/// twice the halvings of a full batch, for two offenders.
const REFUSALS_IN_A_ROW_MAX: u32 = 24;

/// Everything that is known about one process from outside.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    pub(crate) ledger: Ledger,
    pub(crate) seen: Seen,
    calls: CallCount,
    /// Requests that were not answered yet, by call; the ledger forgets those that took too long.
    unanswered: BTreeMap<u64, Request>,
    /// Until when it may begin requests, by its own clock.
    fence: Option<Time>,
    /// The same by the world's clock; `None` when it has ended.
    term_ends: Option<Time>,
    pub(crate) egress_namespaces: Option<Vec<Arc<str>>>,
    /// Services that have carried our finalizer, by their own word or by the answer to our patch.
    pub(crate) finalizers: BTreeSet<Uid>,
    /// Services whose teardown this process has begun and not followed by a new creation, with the ledger's count then.
    pub(crate) teardown: BTreeMap<ServiceKey, u64>,
    /// Services that this process found and that nobody asked for, whose teardown it has begun.
    pub(crate) found_unwanted: BTreeMap<ServiceKey, Time>,
    /// Services whose held deletion the operator has allowed.
    pub(crate) allowed: BTreeSet<ServiceKey>,
    /// Plans in flight that make a service.
    pub(crate) creations: BTreeMap<EffectId, ServiceKey>,
    /// Services whose creation came to its end although this process knew that they are rejected, as long as they are.
    pub(crate) rejected: BTreeSet<Uid>,
    /// Services whose deletion is meant and of which nothing was left or ever known, so that it was complete.
    pub(crate) completed: BTreeSet<ServiceKey>,
    refused_in_a_row: u32,
}

/// The judge of one run.
#[derive(Clone, Debug)]
pub struct Judge {
    pub(crate) scope: Scope,
    pub(crate) books: BTreeMap<usize, Book>,
    /// IPs that were published, while their Service has been wanted without a break.
    pub(crate) published: BTreeMap<Uid, IpAddr>,
    /// Services whose held deletion the operator has allowed.
    allowed: BTreeSet<ServiceKey>,
    /// Services whose IP was ever published.
    pub(crate) served: BTreeSet<Uid>,
    /// A gateway that we did not create, as it was when it was first seen.
    pub(crate) gateway_of_others: Option<Gateway>,
}

impl Judge {
    /// Nothing has happened yet.
    pub fn new(scope: Scope) -> Judge {
        Judge {
            scope,
            books: BTreeMap::new(),
            published: BTreeMap::new(),
            allowed: BTreeSet::new(),
            served: BTreeSet::new(),
            gateway_of_others: None,
        }
    }

    /// A process starts, knowing nothing.
    pub fn started(&mut self, process: usize, updater: &UpdaterConfig, namespaces: Option<Vec<Arc<str>>>) {
        let book = Book {
            ledger: Ledger::default(),
            seen: Seen::default(),
            calls: CallCount::new(updater),
            unanswered: BTreeMap::new(),
            fence: None,
            term_ends: None,
            egress_namespaces: namespaces,
            finalizers: BTreeSet::new(),
            teardown: BTreeMap::new(),
            found_unwanted: BTreeMap::new(),
            allowed: self.allowed.clone(),
            creations: BTreeMap::new(),
            rejected: BTreeSet::new(),
            completed: BTreeSet::new(),
            refused_in_a_row: 0,
        };
        self.books.insert(process, book);
    }

    /// The operator has allowed these deletions, whoever leads.
    pub fn allowed(&mut self, keys: &[ServiceKey]) {
        self.allowed.extend(keys.iter().cloned());
        for book in self.books.values_mut() {
            book.allowed.clone_from(&self.allowed);
        }
    }

    /// A process has taken the lease: what it was told before counts for nothing.
    pub fn leads(&mut self, process: usize) {
        if let Some(book) = self.books.get_mut(&process) {
            book.ledger = Ledger::default();
        }
    }

    /// A process has renewed its lease and may begin requests until then, by its own clock and by the world's.
    pub fn renewed(&mut self, process: usize, fence: Time, term_ends: Time) {
        if let Some(book) = self.books.get_mut(&process) {
            book.fence = Some(book.fence.map_or(fence, |old| old.max(fence)));
            book.term_ends = Some(term_ends);
        }
    }

    /// A process has ended, and begins nothing more.
    pub fn ended(&mut self, process: usize) {
        if let Some(book) = self.books.get_mut(&process) {
            book.term_ends = None;
        }
    }

    /// **S9**: nothing is begun while another process may still begin something, whatever their clocks say: the terms
    /// of two leaders never overlap.
    fn s9_one_leader(&self, process: usize, now: Time) -> Result<(), Violation> {
        let others = self.books.iter().filter(|(other, _)| **other != process);
        match others.filter_map(|(_, book)| book.term_ends).find(|ends| *ends > now) {
            None => Ok(()),
            Some(ends) => {
                let left = ends.since(now).as_millis();
                let text = format!("something is begun although another leader may act for {left} ms more");
                Err(Violation::of(Invariant::S9, text))
            }
        }
    }

    /// An event has reached a process, and these are the consequences.
    pub fn handled(
        &mut self,
        process: usize,
        now: Time,
        event: &Event,
        effects: &[Effect],
        cluster: &Cluster,
        tally: &mut Tally<'_>,
    ) -> Result<(), Violation> {
        let Some(book) = self.books.get_mut(&process) else { return Ok(()) };
        book.seen.apply(now, event);
        book.ledger.give_up(now);
        book.finalizers.extend(finalizers_in(event));
        note_rejected(book, event, &self.published);
        note_completed(&self.scope, book);
        for effect in effects {
            effects::judge(&self.scope, book, effect, cluster, tally)?;
        }
        Ok(())
    }

    /// A request is begun.
    pub fn begun(
        &mut self,
        process: usize,
        now: Time,
        call: u64,
        request: &Request,
        tally: &mut Tally<'_>,
    ) -> Result<(), Violation> {
        tally.judged(Invariant::S9);
        self.s9_one_leader(process, tally.now)?;
        let scope = &self.scope;
        let Some(book) = self.books.get_mut(&process) else { return Ok(()) };
        let deeds = deeds(request);
        book.ledger.give_up(now);
        requests::s9_lease_and_listing(&book.ledger, request, &deeds, now, book.fence)?;
        tally.judged(Invariant::S12);
        book.calls.s12_begin(now, request)?;
        tally.judged(Invariant::S10);
        requests::s10_well_formed(request)?;
        for deed in &deeds {
            tally.judged(Invariant::S1);
            requests::s1_only_ours(scope, &book.ledger, deed)?;
            if deed.kind.is_destructive() {
                tally.judged(Invariant::S2);
                requests::s2_nothing_mapped(book, deed)?;
                tally.judged(Invariant::S3);
                requests::s3_in_order(scope, book, deed)?;
                tally.judged(Invariant::S7);
                effects::s7_planned(book, deed)?;
            }
        }
        book.ledger.sent(now, call, request);
        book.unanswered.insert(call, request.clone());
        Ok(())
    }

    /// An answer has reached a process.
    pub fn answered(
        &mut self,
        process: usize,
        now: Time,
        call: u64,
        reply: &Reply,
        tally: &mut Tally<'_>,
    ) -> Result<(), Violation> {
        let Some(book) = self.books.get_mut(&process) else { return Ok(()) };
        book.ledger.give_up(now);
        let Some(request) = book.unanswered.remove(&call) else { return Ok(()) };
        // A wait counts however late it is told; everything else only if somebody still listens.
        book.calls.answered(now, &request, reply);
        if book.ledger.open_call(call).is_none() {
            return Ok(());
        }
        book.ledger.answered(now, call, reply);
        if request.method == Method::UpdateLocations {
            tally.judged(Invariant::S11);
            s11_one_bisection(book, &request, reply)?;
        }
        Ok(())
    }

    /// A write to Kubernetes is begun.
    pub fn kube_begun(
        &mut self,
        process: usize,
        now: Time,
        write: &KubeWrite,
        tally: &mut Tally<'_>,
    ) -> Result<(), Violation> {
        self.s9_one_leader(process, tally.now)?;
        let Some(book) = self.books.get(&process) else { return Ok(()) };
        kube_writes::judge(&self.scope, book, now, &self.published, write, tally)
    }

    /// Whether an address may be mapped to a service, by all that Azure has told a process.
    pub(crate) fn is_told(&self, process: usize, service: &str, at: (IpAddr, IpAddr)) -> bool {
        self.books.get(&process).is_some_and(|book| book.ledger.mapped_to(service).any(|it| it == at))
    }

    /// Services whose creation came to its end although its process knew that they are rejected.
    pub(crate) fn rejected_creations(&self) -> impl Iterator<Item = Uid> + '_ {
        self.books.values().flat_map(|book| book.rejected.iter().copied())
    }

    /// The answer to a write to Kubernetes has reached a process.
    pub fn kube_answered(&mut self, process: usize, write: &KubeWrite, outcome: &KubeOutcome) {
        let Some(book) = self.books.get_mut(&process) else { return };
        if let (KubeWrite::AddFinalizer(object), KubeOutcome::Done { .. }) = (write, outcome) {
            book.finalizers.insert(object.uid);
        }
    }

    /// A write to Kubernetes has landed; `before` is the cluster as it was.
    pub fn kube_landed(
        &mut self,
        write: &KubeWrite,
        before: &Cluster,
        after: &Cluster,
        cloud: &CloudState,
        tally: &mut Tally<'_>,
    ) -> Result<(), Violation> {
        tally.judged(Invariant::S8);
        kube_writes::s8_fenced(write, before, after)?;
        tally.judged(Invariant::S6);
        truth::s6_published(self, write, before, after, cloud)
    }

    /// Azure is about to carry out a request, whoever sent it.
    pub fn arriving(
        &mut self,
        process: usize,
        request: &Request,
        late: bool,
        cloud: &CloudState,
        tally: &mut Tally<'_>,
    ) -> Result<(), Violation> {
        if !late {
            tally.judged(Invariant::S1);
            tags::s1_as_it_is(self, process, request, cloud)?;
        }
        if request.method == Method::Delete && request.target.segment("publicIPAddresses").is_some() {
            tally.judged(Invariant::S6);
            truth::s6_public_ip_stays(self, request, late, cloud)?;
        }
        Ok(())
    }

    /// After every step: the truth of both worlds, and what the engines show.
    pub fn step(
        &mut self,
        cloud: &CloudState,
        cluster: &Cluster,
        tally: &mut Tally<'_>,
    ) -> Result<(), Violation> {
        truth::forget_unwanted(self, cluster);
        tally.judged(Invariant::S1);
        truth::s1_gateway_of_others(self, cloud)?;
        tally.judged(Invariant::S5);
        truth::s5_one_each(&self.scope, cloud)
    }

    /// After every step that reached a process: what its engine shows of each service.
    pub fn views(
        &self,
        process: usize,
        views: &[ServiceView],
        compared: bool,
        linger: bool,
        tally: &mut Tally<'_>,
    ) -> Result<(), Violation> {
        let Some(book) = self.books.get(&process) else { return Ok(()) };
        for view in views {
            if compared {
                tally.judged(Invariant::S2);
                books_agree(book, view)?;
            }
            if let ServiceKey::Outbound(egress) = &view.key
                && !egress.is_default()
                && !linger
            {
                tally.judged(Invariant::S13);
                effects::s13_exact(book, egress, view)?;
            }
            if view.held.is_some() {
                tally.judged(Invariant::S7);
                effects::s7_held_without_evidence(book, view)?;
            }
            tally.judged(Invariant::S14);
            kube_writes::s14_parked_says_why(view)?;
            kube_writes::s14_rejected_is_no_update(view)?;
        }
        Ok(())
    }
}

/// Writes down which Services have been made although they had been rejected meanwhile.
fn note_rejected(book: &mut Book, event: &Event, published: &BTreeMap<Uid, IpAddr>) {
    let Book { seen, creations, rejected, .. } = book;
    let is_rejected = |uid: Uid| {
        seen.service_of(uid).is_some_and(|it| refusal(&it.spec).is_some() && it.published.is_none())
    };
    rejected.retain(|uid| is_rejected(*uid));
    let Event::EffectFinished { id, outcome } = event else { return };
    if let (Some(ServiceKey::Inbound(uid)), Outcome::Plan(report)) = (creations.remove(id), outcome)
        && report.failure.is_none()
        && is_rejected(uid)
        && !published.contains_key(&uid)
    {
        rejected.insert(uid);
    }
}

/// Writes down which deletions are complete, for as long as nobody wants the service again.
fn note_completed(scope: &Scope, book: &mut Book) {
    let Book { seen, ledger, completed, .. } = book;
    completed.retain(|key| seen.is_evident(key));
    let gone = seen.evident_and_released().filter(|key| requests::all_gone(scope, ledger, key).is_ok());
    completed.extend(gone.cloned());
}

/// The Services of an event that carry our finalizer.
fn finalizers_in(event: &Event) -> Vec<Uid> {
    let shown = |service: &ServiceObject| service.finalizer.then_some(service.uid);
    match event {
        Event::ServiceApplied(service) => shown(service).into_iter().collect(),
        Event::Relisted { objects: Relist::Services(all), .. } => all.iter().filter_map(shown).collect(),
        _ => Vec::new(),
    }
}

/// **S2**, from the other side: the gate of a deletion counts every address that may be mapped, and
/// what the engine takes for programmed has been confirmed.
///
/// Compared with the ledger once both worlds have been listed and the engine has compared them, which it puts
/// off while the gateway cannot be read; before that it begins no deletion. The gate may count more than the
/// ledger, never less. It may not take more for programmed than the ledger has as possible, unless
/// a listing has ever shown something else than was believed (then one waits for a second look, and
/// the other may not).
fn books_agree(book: &Book, view: &ServiceView) -> Result<(), Violation> {
    if !book.seen.is_complete() || !Listable::ALL.iter().all(|what| book.ledger.has_listed(*what)) {
        return Ok(());
    }
    let identity = view.key.identity();
    let possible = book.ledger.mapped_to(&identity).count();
    if (view.addresses_mapped as usize) < possible {
        let text = format!(
            "{possible} addresses may be mapped to {}, the gate of its deletion counts {}",
            view.key, view.addresses_mapped
        );
        return Err(Violation::of(Invariant::S2, text));
    }
    if !book.ledger.is_disputed() && view.addresses_programmed as usize > possible {
        let text = format!(
            "{} addresses of {} are taken for programmed, at most {possible} can be",
            view.addresses_programmed, view.key
        );
        return Err(Violation::of(Invariant::S14, text));
    }
    Ok(())
}

/// **S11**: a poison object delays others by at most the few calls of one bisection.
///
/// Violated when location calls with more than one address are refused again and again and
/// nothing goes through in between. Excused: answers that are no refusal of the content
/// (throttling, outages, lost answers) neither count nor end the row.
fn s11_one_bisection(book: &mut Book, request: &Request, reply: &Reply) -> Result<(), Violation> {
    use sluice_model::call::Body;
    match Failure::in_reply(reply) {
        None => book.refused_in_a_row = 0,
        Some(failure) if failure.class == FailureClass::Rejected => {
            let Body::Locations(updates) = &request.body else { return Ok(()) };
            let addresses: usize = updates.iter().map(|update| update.addresses.len()).sum();
            if addresses > 1 {
                book.refused_in_a_row += 1;
            }
        }
        Some(_) => {}
    }
    if book.refused_in_a_row > REFUSALS_IN_A_ROW_MAX {
        let text = format!("{} location calls in a row were refused whole", book.refused_in_a_row);
        return Err(Violation::of(Invariant::S11, text));
    }
    Ok(())
}

/// Counts judgements for the coverage table.
pub struct Tally<'a> {
    /// The counts.
    pub coverage: &'a mut Coverage,
    /// The world's time.
    pub now: Time,
}

impl Tally<'_> {
    fn judged(&mut self, invariant: Invariant) {
        self.coverage.judged(self.now, invariant, 1);
    }
}
