//! Requests to Azure: on their way, carried out, answered, lost, late.

use core::time::Duration;

use sluice_model::call::{Method, Reply, Request};
use sluice_updater::CallId;

use super::process::Process;
use super::wire::{Incoming, OnTheWire};
use super::{Fate, Happening, World, letter};
use crate::faults::Bent;
use crate::invariants::Tally;
use crate::names::{FaultKind, Violation};

/// A request whose sender has died is carried out within this time or never.
const LATE_MAX_MS: u64 = 60_000;

/// How many of a thousand answers come when nobody waits for them any more, where answers get lost.
const LATE_ANSWERS: u16 = 15;

impl World {
    /// A process begins a request, or dies trying.
    pub(super) fn send(
        &mut self,
        slot: usize,
        process: &mut Process,
        call: CallId,
        request: Request,
    ) -> Result<Fate, Violation> {
        let listing = process.dies_listing && request.method == Method::List;
        let crash = self.crash_here(listing);
        if crash == Some(false) {
            self.trace.world(self.now, || format!("{} dies before {:?}", letter(slot), request.method));
            return Ok(Fate::Dies);
        }
        let local = process.clock.local(self.now);
        self.trace.sent(self.now, letter(slot), &format!("c{}", call.0), &request);
        let mut tally = Tally { coverage: &mut self.coverage, now: self.now };
        self.judge.begun(slot, local, call.0, &request, &mut tally)?;
        if !matches!(request.method, Method::Get | Method::List | Method::Poll) {
            self.azure_writes += 1;
            self.last_write_at = self.now;
        }
        let on_the_wire = OnTheWire { slot, life: process.life, call, request, late: false };
        self.wired += 1;
        let number = self.wired;
        self.to_azure.insert(number, on_the_wire);
        let at = self.now + self.network_delay();
        self.plan_at(at, Happening::Arrives(number));
        if crash == Some(true) {
            self.trace.world(self.now, || format!("{} dies right after sending", letter(slot)));
            return Ok(Fate::Dies);
        }
        Ok(Fate::Lives)
    }

    /// What becomes of the requests of a process that has died: carried out within a minute, or never.
    pub(super) fn orphan_requests(&mut self, life: u64) {
        let numbers: Vec<u64> = self
            .to_azure
            .iter()
            .filter(|(_, on_the_wire)| on_the_wire.life == life)
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            if self.chance.chance(400) {
                self.to_azure.remove(&number);
                continue;
            }
            if let Some(on_the_wire) = self.to_azure.get_mut(&number) {
                on_the_wire.late = true;
            }
            // Most land at once; some only when somebody else leads.
            if self.chance.chance(400)
                && let Some(on_the_wire) = self.to_azure.remove(&number)
            {
                self.wired += 1;
                let later = self.wired;
                self.to_azure.insert(later, on_the_wire);
                let delay = Duration::from_millis(self.chance.between(1, LATE_MAX_MS));
                let at = self.now + delay;
                self.plan_at(at, Happening::Arrives(later));
            }
        }
    }

    /// A request arrives at Azure.
    pub(super) fn request_arrives(&mut self, number: u64) -> Result<(), Violation> {
        let Some(on_the_wire) = self.to_azure.remove(&number) else { return Ok(()) };
        let OnTheWire { slot, life, call, request, late } = on_the_wire;
        self.cloud.advance(self.now);
        let mut tally = Tally { coverage: &mut self.coverage, now: self.now };
        self.judge.arriving(slot, &request, late, self.cloud.state(), &mut tally)?;
        self.others_keep_their_addresses(slot, &request, late)?;
        if late {
            self.trace.world(self.now, || format!("{:?} of a dead sender lands", request.method));
            // What it makes of a public IP that was released is nobody's doing any more.
            self.foreign.retain(|id| *id != request.target);
            self.cloud.deliver_late(self.now, &request);
            return Ok(());
        }
        let bent = self.plan.bend(self.now, &request, &mut self.chance);
        let mut reply = match &bent {
            None => Reply::Answered(self.cloud.handle(self.now, &request)),
            Some(Bent { kind, fault, .. }) => {
                self.coverage.injected(self.now, *kind);
                self.trace.world(self.now, || format!("{kind} strikes c{}: {fault:?}", call.0));
                self.cloud.handle_faulty(self.now, &request, fault)
            }
        };
        self.plan.reword(&mut reply, &mut self.chance);
        self.pace.hint(&mut reply, &mut self.hints);
        let mut delay = self.network_delay();
        let untold = matches!(reply, Reply::Lost(_)) && self.chance.chance(300);
        if untold || (self.plan.has(FaultKind::Z5) && self.chance.chance(LATE_ANSWERS)) {
            // Nobody tells, or only when nobody listens any more: the process finds out by its own
            // time limit.
            delay = Duration::from_secs(70);
        }
        let delay = bent.and_then(|bent| bent.answer_takes).unwrap_or(delay);
        let at = self.now + delay;
        self.plan_at(at, Happening::ReachesProcess { slot, life, incoming: Incoming::Reply { call, reply } });
        Ok(())
    }
}
