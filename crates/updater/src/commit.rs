//! Group commit: one `updateServices` call for all registrations that wait.
//!
//! At most one call is under way. Whatever waits when it returns goes into the next, so the
//! busier it gets, the more ride together, and nobody waits for company while it is quiet.
//! Only while the write budget binds does a new call gather a little longer.
//!
//! A call that Azure refuses is repeated one service at a time, so that each gets its own
//! answer; calls for those who came meanwhile go in between. When nobody knows what became
//! of a call, the registrations are listed once and each service is judged by what is there.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::azure::{Direction, Registration, ServiceRequest};
use sluice_model::call::{Body, Method, Payload, Request};
use sluice_model::event::Wait;
use sluice_model::names::Scope;
use sluice_model::seeded::{Bug, Seeded};
use sluice_model::{EffectId, Failure, FailureClass};

use crate::config::Config;
use crate::errand::{ErrandId, Owner};
use crate::lister::{Asker, Lister};
use crate::wire::Wire;

/// One service's wish.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pub(crate) effect: EffectId,
    pub(crate) wish: Wish,
}

/// What should become of a registration.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    /// It should be so.
    Register(Registration),
    /// It should be so and refer to nothing.
    Clear(Registration),
    /// It should be gone.
    Unregister(Arc<str>),
}

/// The answer to one ticket.
pub(crate) type Answered = (EffectId, Result<(), Failure>);

pub(crate) struct Commit {
    waiting: VecDeque<Ticket>,
    /// From a refused call; these go one by one.
    single: VecDeque<Ticket>,
    /// The call under way, or about to be.
    running: Option<Running>,
    /// Singles and groups take turns, so that a refused call does not hold up the next hundred.
    single_was_last: bool,
    size_max: usize,
    gather: Duration,
    seeded: Seeded,
}

struct Running {
    errand: ErrandId,
    tickets: Vec<Ticket>,
    alone: bool,
}

impl Commit {
    pub(crate) fn new(config: &Config, seeded: Seeded) -> Commit {
        Commit {
            waiting: VecDeque::new(),
            single: VecDeque::new(),
            running: None,
            single_was_last: false,
            size_max: config.commit_size_max.max(1),
            gather: config.gather_under_pressure,
            seeded,
        }
    }

    /// Takes a ticket; its answer comes from [`Commit::ended`] or [`judge`].
    pub(crate) fn join(&mut self, ticket: Ticket, scope: &Scope, wire: &mut Wire) {
        if let Some(running) = &mut self.running
            && !running.alone
            && running.tickets.len() < self.size_max
            && !running.tickets.iter().any(|other| other.same_service(&ticket))
            && self.waiting.is_empty()
            && let Some(Request { body: Body::Services(requests), .. }) = wire.unsent(running.errand)
        {
            requests.push(ticket.request());
            running.tickets.push(ticket);
            return;
        }
        self.waiting.push_back(ticket);
        self.go_on(scope, wire);
    }

    /// The plans that wait for an answer.
    pub(crate) fn plans(&self) -> impl Iterator<Item = EffectId> {
        let running = self.running.iter().flat_map(|running| &running.tickets);
        running.chain(&self.single).chain(&self.waiting).map(|ticket| ticket.effect)
    }

    /// What the call that is not sent yet waits for.
    pub(crate) fn held(&self, wire: &Wire) -> Option<Wait> {
        wire.held(self.running.as_ref()?.errand)
    }

    /// Begins the next call, if none is under way and somebody waits.
    fn go_on(&mut self, scope: &Scope, wire: &mut Wire) {
        if self.running.is_some() {
            return;
        }
        let alone = !self.single.is_empty() && (self.waiting.is_empty() || !self.single_was_last);
        let tickets = if alone { self.single.pop_front().into_iter().collect() } else { self.group() };
        let Some(first) = tickets.first() else { return };
        self.single_was_last = alone;
        let oldest = tickets.iter().map(|ticket| ticket.effect).min().unwrap_or(first.effect);
        let gather = if !alone && wire.writes_bind() { self.gather } else { Duration::ZERO };
        let mut requests: Vec<ServiceRequest> = tickets.iter().map(Ticket::request).collect();
        if self.seeded.has(Bug::TwiceInOneCommit) {
            // The one that opened the call is also among those who wait.
            requests.push(first.request());
        }
        let request = Request::with(Method::UpdateServices, scope.gateway_id(), Body::Services(requests));
        let errand = wire.begin(Owner::Commit, oldest, request, gather);
        self.running = Some(Running { errand, tickets, alone });
    }

    /// Takes from those who wait as many as fit into one call, never one service twice.
    fn group(&mut self) -> Vec<Ticket> {
        let mut group: Vec<Ticket> = Vec::new();
        let mut later = VecDeque::new();
        while let Some(ticket) = self.waiting.pop_front() {
            let twice = group.iter().any(|other| other.same_service(&ticket));
            if twice || group.len() >= self.size_max { later.push_back(ticket) } else { group.push(ticket) }
        }
        self.waiting = later;
        group
    }

    /// The call is over. Returns the answers that are certain; the others come later.
    pub(crate) fn ended(
        &mut self,
        result: Result<Payload, Failure>,
        scope: &Scope,
        wire: &mut Wire,
        lister: &mut Lister,
    ) -> Vec<Answered> {
        let Some(Running { tickets, .. }) = self.running.take() else { return Vec::new() };
        let answers = match result {
            Ok(_) => tickets.into_iter().map(|ticket| (ticket.effect, Ok(()))).collect(),
            Err(failure) => match failure.class {
                FailureClass::Unknown => {
                    for ticket in tickets {
                        lister.ask(Asker::Ticket(ticket, failure.clone()), scope, wire);
                    }
                    Vec::new()
                }
                FailureClass::Rejected
                | FailureClass::NotFound
                | FailureClass::StillMapped
                | FailureClass::InUse
                    if tickets.len() > 1 =>
                {
                    self.single.extend(tickets);
                    Vec::new()
                }
                class => tickets
                    .into_iter()
                    .map(|ticket| {
                        // What is not registered refers to nothing; that holds without a gateway too.
                        let is_done = class == FailureClass::NotFound && ticket.takes_away();
                        (ticket.effect, if is_done { Ok(()) } else { Err(failure.clone()) })
                    })
                    .collect(),
            },
        };
        self.go_on(scope, wire);
        answers
    }
}

/// What became of a ticket whose call nobody knows the outcome of, and why nobody does, by the
/// registrations as they are now.
pub(crate) fn judge(
    ticket: &Ticket,
    why: &Failure,
    registrations: &Result<Vec<Registration>, Failure>,
) -> Answered {
    let still_unknown =
        |what_now: &str| Failure { message: format!("{}; {what_now}", why.message).into(), ..why.clone() };
    let all = match registrations {
        Ok(all) => all,
        Err(failure) => {
            let text = format!("reading the registrations failed: {failure}");
            return (ticket.effect, Err(still_unknown(&text)));
        }
    };
    let mut found = all.iter().filter(|it| it.name.eq_ignore_ascii_case(ticket.name()));
    let is_done = match &ticket.wish {
        Wish::Register(wanted) | Wish::Clear(wanted) => found.any(|it| it.same(wanted)),
        Wish::Unregister(_) => found.next().is_none(),
    };
    let result =
        if is_done { Ok(()) } else { Err(still_unknown("the registration differs from the desired state")) };
    (ticket.effect, result)
}

impl Ticket {
    fn name(&self) -> &str {
        match &self.wish {
            Wish::Register(registration) | Wish::Clear(registration) => &registration.name,
            Wish::Unregister(name) => name,
        }
    }

    fn same_service(&self, other: &Ticket) -> bool {
        self.name().eq_ignore_ascii_case(other.name())
    }

    fn takes_away(&self) -> bool {
        matches!(self.wish, Wish::Clear(_) | Wish::Unregister(_))
    }

    fn request(&self) -> ServiceRequest {
        match &self.wish {
            Wish::Register(service) | Wish::Clear(service) => {
                ServiceRequest { is_delete: false, service: service.clone() }
            }
            Wish::Unregister(name) => ServiceRequest {
                is_delete: true,
                service: Registration {
                    name: Arc::clone(name),
                    // Of a deletion only the name matters.
                    direction: Direction::Inbound,
                    is_default: false,
                    pools: Vec::new(),
                    nat_gateway: None,
                },
            },
        }
    }
}
