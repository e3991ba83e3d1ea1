//! The locations updater: one `updateAddressLocations` call after the other.
//!
//! The engine decides what goes into a call and never has two under way; should it ask for
//! a second one anyway, that one waits. Each end says when the write budget allows the next call, so
//! that steady churn is paced and a change leaves at once while half of the lane's share is unused.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::azure::LocationUpdate;
use sluice_model::call::{Body, Method, Payload, Request};
use sluice_model::names::Scope;
use sluice_model::{EffectId, Event, Failure, Outcome};

use crate::Reports;
use crate::errand::Owner;
use crate::wire::Wire;

#[derive(Default)]
pub(crate) struct Locations {
    running: Option<EffectId>,
    waiting: VecDeque<(EffectId, Vec<LocationUpdate>)>,
}

impl Locations {
    pub(crate) fn start(
        &mut self,
        effect: EffectId,
        updates: Vec<LocationUpdate>,
        scope: &Scope,
        wire: &mut Wire,
        reports: &mut Reports,
    ) {
        self.waiting.push_back((effect, updates));
        self.go_on(scope, wire, reports);
    }

    fn go_on(&mut self, scope: &Scope, wire: &mut Wire, reports: &mut Reports) {
        while self.running.is_none() {
            let Some((effect, updates)) = self.waiting.pop_front() else { return };
            if updates.is_empty() {
                report(effect, None, wire, reports);
                continue;
            }
            let request =
                Request::with(Method::UpdateLocations, scope.gateway_id(), Body::Locations(updates));
            wire.begin(Owner::Locations, effect, request, Duration::ZERO);
            self.running = Some(effect);
        }
    }

    pub(crate) fn ended(
        &mut self,
        result: Result<Payload, Failure>,
        scope: &Scope,
        wire: &mut Wire,
        reports: &mut Reports,
    ) {
        let Some(effect) = self.running.take() else { return };
        report(effect, result.err(), wire, reports);
        self.go_on(scope, wire, reports);
    }
}

fn report(effect: EffectId, failure: Option<Failure>, wire: &mut Wire, reports: &mut Reports) {
    let next_at = wire.budget.next_location(wire.now());
    let outcome = Outcome::Locations { failure, next_at };
    reports.push_back(Event::EffectFinished { id: effect, outcome });
}
