//! Reads all of one kind from Azure, page by page, and never hands out half of it.
//!
//! A *walk* goes from page to page until there is no next one. It runs for an effect of the
//! engine, or for all who want to know about registrations at the moment: those share one.
//! A page that fails for the moment is repeated a few times; then the whole walk fails. One that
//! runs in a circle is noticed by a mark that is set ever further apart and met again.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::azure::{ArmId, Gateway, Registration};
use sluice_model::call::{Method, Page, PageToken, Payload, Request};
use sluice_model::effect::{Listable, Listing};
use sluice_model::names::Scope;
use sluice_model::seeded::{Bug, Seeded};
use sluice_model::{EffectId, Event, Failure, FailureClass, Outcome, Time};

use crate::Reports;
use crate::answer::unexpected;
use crate::commit::Ticket;
use crate::config::Config;
use crate::errand::{ErrandId, Owner};
use crate::wire::Wire;

/// Whose walk it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum WalkId {
    /// The engine's.
    Effect(EffectId),
    /// Everybody's who waits for the registrations.
    Shared,
}

/// Somebody who wants to know about one registration.
pub(crate) enum Asker {
    /// A step that reads it.
    Step(EffectId, Arc<str>),
    /// A commit whose outcome is unknown, and why.
    Ticket(Ticket, Failure),
}

impl Asker {
    fn effect(&self) -> EffectId {
        match self {
            Asker::Step(effect, _) => *effect,
            Asker::Ticket(ticket, _) => ticket.effect,
        }
    }
}

/// All who asked, when the walk began, and what there is to see.
pub(crate) type Seen = (Vec<Asker>, Time, Result<Vec<Registration>, Failure>);

pub(crate) struct Lister {
    walks: BTreeMap<WalkId, Walk>,
    /// Those whom the shared walk under way will answer.
    served: Vec<Asker>,
    /// Those who came after it began: what it has read may be older than their question.
    waiting: Vec<Asker>,
    page_retries_max: u32,
    retry_wait_first: Duration,
    retry_wait_max: Duration,
    pages_max: u32,
    seeded: Seeded,
}

struct Walk {
    effect: EffectId,
    /// The page that is being read.
    errand: ErrandId,
    found: Listing,
    /// The gateway has been read, or found missing.
    gateway_read: bool,
    began: Option<Time>,
    page: Option<PageToken>,
    /// A page on the way, the so-manieth for some power of two. Whoever comes by again runs in a circle.
    mark: Option<PageToken>,
    pages: u32,
    /// How often a page was empty and said to ask for it again.
    stalls: u32,
    retries: u32,
}

/// A list that has nothing to show so often is not read on.
const STALLS_MAX: u32 = 20;

/// What comes after a page.
enum After {
    More,
    Complete,
    /// For ever the same.
    Circle,
}

impl Lister {
    pub(crate) fn new(config: &Config, seeded: Seeded) -> Lister {
        Lister {
            walks: BTreeMap::new(),
            served: Vec::new(),
            waiting: Vec::new(),
            page_retries_max: config.page_retries_max,
            retry_wait_first: config.reread_wait_first,
            retry_wait_max: config.reread_wait_max,
            pages_max: config.pages_max,
            seeded,
        }
    }

    /// Lists all of a kind for the engine.
    pub(crate) fn start(&mut self, effect: EffectId, what: Listable, scope: &Scope, wire: &mut Wire) {
        self.walk(WalkId::Effect(effect), effect, what, scope, wire);
    }

    /// Answers with the next walk over the registrations that begins.
    pub(crate) fn ask(&mut self, asker: Asker, scope: &Scope, wire: &mut Wire) {
        let begun = self.walks.get(&WalkId::Shared).map(|walk| walk.has_begun(wire));
        match begun {
            Some(false) => self.served.push(asker),
            Some(true) => self.waiting.push(asker),
            None => {
                self.waiting.push(asker);
                self.share(scope, wire);
            }
        }
    }

    fn share(&mut self, scope: &Scope, wire: &mut Wire) {
        let Some(oldest) = self.waiting.iter().map(Asker::effect).min() else { return };
        self.served = core::mem::take(&mut self.waiting);
        self.walk(WalkId::Shared, oldest, Listable::Registrations, scope, wire);
    }

    fn walk(&mut self, id: WalkId, effect: EffectId, what: Listable, scope: &Scope, wire: &mut Wire) {
        if self.walks.contains_key(&id) {
            return;
        }
        let found = match what {
            Listable::Foundation => Listing::Foundation { gateway: None, subnet: None },
            Listable::Registrations => Listing::Registrations(Vec::new()),
            Listable::Locations => Listing::Locations(Vec::new()),
            Listable::LoadBalancers => Listing::LoadBalancers(Vec::new()),
            Listable::NatGateways => Listing::NatGateways(Vec::new()),
            Listable::PublicIps => Listing::PublicIps(Vec::new()),
        };
        let request = request(&found, false, None, scope);
        let errand = wire.begin(Owner::Walk(id), effect, request, Duration::ZERO);
        let walk = Walk {
            effect,
            errand,
            found,
            gateway_read: false,
            began: None,
            page: None,
            mark: None,
            pages: 0,
            stalls: 0,
            retries: 0,
        };
        self.walks.insert(id, walk);
    }

    /// A page has come, or not. Returns the answer to all who shared the walk, if it ended.
    pub(crate) fn page_ended(
        &mut self,
        id: WalkId,
        result: Result<Payload, Failure>,
        sent_at: Time,
        scope: &Scope,
        wire: &mut Wire,
        reports: &mut Reports,
    ) -> Option<Seen> {
        let walk = self.walks.get_mut(&id)?;
        if walk.page.is_none() && !walk.gateway_read {
            walk.began = Some(sent_at);
        }
        let endless = |text| Err(Failure::of(FailureClass::Transient, "EndlessList", text));
        let result = match walk.take(result, self.seeded) {
            Ok(After::Circle) => endless("the pages of the list form a loop"),
            Ok(After::More) if walk.pages >= self.pages_max => endless("the list has too many pages"),
            Ok(After::More) => {
                walk.retries = 0;
                walk.read_on(id, Duration::ZERO, scope, wire);
                return None;
            }
            Err(failure)
                if failure.class == FailureClass::Transient && walk.retries < self.page_retries_max =>
            {
                let doubled = self.retry_wait_first.saturating_mul(1 << walk.retries.min(16));
                walk.retries += 1;
                let wait = doubled.min(self.retry_wait_max).max(failure.retry_after.unwrap_or_default());
                walk.read_on(id, wait, scope, wire);
                return None;
            }
            Ok(After::Complete) => Ok(()),
            Err(failure) => Err(failure),
        };
        let walk = self.walks.remove(&id)?;
        let result = result.map(|()| walk.found);
        let began = walk.began.unwrap_or(sent_at);
        match id {
            WalkId::Effect(effect) => {
                let outcome = Outcome::Listed { began, result };
                reports.push_back(Event::EffectFinished { id: effect, outcome });
                None
            }
            WalkId::Shared => {
                let askers = core::mem::take(&mut self.served);
                self.share(scope, wire);
                let result = result.and_then(|found| match found {
                    Listing::Registrations(all) => Ok(all),
                    _ => Err(unexpected()),
                });
                Some((askers, began, result))
            }
        }
    }
}

impl Walk {
    fn read_on(&mut self, id: WalkId, wait: Duration, scope: &Scope, wire: &mut Wire) {
        let request = request(&self.found, self.gateway_read, self.page.clone(), scope);
        self.errand = wire.begin(Owner::Walk(id), self.effect, request, wait);
    }

    /// Whether it may have read something already.
    fn has_begun(&self, wire: &mut Wire) -> bool {
        self.page.is_some() || wire.unsent(self.errand).is_none()
    }

    fn take(&mut self, result: Result<Payload, Failure>, seeded: Seeded) -> Result<After, Failure> {
        if let Listing::Foundation { gateway, subnet } = &mut self.found {
            let missing = matches!(&result, Err(failure) if failure.class == FailureClass::NotFound);
            if !self.gateway_read {
                *gateway = if missing { None } else { Some(gateway_in(result?)?) };
                self.gateway_read = true;
                return Ok(After::More);
            }
            *subnet = match result {
                _ if missing => None,
                Ok(Payload::Subnet(subnet)) => Some(subnet),
                Ok(_) => return Err(unexpected()),
                Err(failure) => return Err(failure),
            };
            return Ok(After::Complete);
        }
        let (next, is_empty) = match (&mut self.found, result?) {
            (Listing::Registrations(all), Payload::Registrations(page)) => append(all, page, seeded),
            (Listing::Locations(all), Payload::Locations(page)) => append(all, page, seeded),
            (Listing::LoadBalancers(all), Payload::LoadBalancers(page)) => append(all, page, seeded),
            (Listing::NatGateways(all), Payload::NatGateways(page)) => append(all, page, seeded),
            (Listing::PublicIps(all), Payload::PublicIps(page)) => append(all, page, seeded),
            _ => return Err(unexpected()),
        };
        // Nothing yet, and the same place to go on: that repeats nothing, so it is no circle at first.
        if is_empty && next.is_some() && next == self.page {
            self.stalls += 1;
            return Ok(if self.stalls > STALLS_MAX { After::Circle } else { After::More });
        }
        if next.is_some() && next == self.mark {
            return Ok(After::Circle);
        }
        self.pages = self.pages.saturating_add(1);
        if self.pages.is_power_of_two() {
            self.mark.clone_from(&next);
        }
        self.page = next;
        Ok(if self.page.is_some() { After::More } else { After::Complete })
    }
}

/// The request for the next page, or for the gateway and then its subnet.
fn request(found: &Listing, gateway_read: bool, page: Option<PageToken>, scope: &Scope) -> Request {
    let gateway = scope.gateway_id();
    let target = match found {
        Listing::Foundation { .. } if gateway_read => return Request::bare(Method::Get, scope.subnet_id()),
        Listing::Foundation { .. } => return Request::bare(Method::Get, gateway),
        Listing::Registrations(_) => ArmId::new(format!("{gateway}/services")),
        Listing::Locations(_) => ArmId::new(format!("{gateway}/addressLocations")),
        Listing::LoadBalancers(_) => scope.collection("loadBalancers"),
        Listing::NatGateways(_) => scope.collection("natGateways"),
        Listing::PublicIps(_) => scope.collection("publicIPAddresses"),
    };
    Request { page, ..Request::bare(Method::List, target) }
}

fn gateway_in(payload: Payload) -> Result<Gateway, Failure> {
    match payload {
        Payload::Gateway(gateway) => Ok(gateway),
        _ => Err(unexpected()),
    }
}

/// Where the list goes on, and whether this page was empty: it may be so and still have a successor.
fn append<T>(all: &mut Vec<T>, page: Page<T>, seeded: Seeded) -> (Option<PageToken>, bool) {
    let is_empty = page.items.is_empty();
    if is_empty && seeded.has(Bug::EmptyPageEndsList) {
        return (None, is_empty);
    }
    all.extend(page.items);
    (page.next, is_empty)
}
