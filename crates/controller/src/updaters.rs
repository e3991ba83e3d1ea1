//! The shell of both updaters and of the lister: sends, receives and reports, and decides nothing.
//!
//! The service updater and the locations updater share one budget, one lease and one wire, so
//! their logic is one value, [`sluice_updater::Updaters`], and so they share this shell. What the
//! logic wants sent becomes a task of the inbox; the task's end is the reply. There is no retry, no
//! order, no batch and no budget here.
//!
//! Three things are added, because only a shell can: the lease and the wish to stop are looked at
//! once more in the task itself, and again by whoever sends, when the token is there and the request
//! is about to leave; a call whose sender forgets its own time limit is given up; and a sender that
//! panics has lost the reply, no more (see [`crate::Inbox`]).

use std::sync::Arc;
use std::time::Duration;

use sluice_model::call::{Reply, Request};
use sluice_model::{Effect, Event, Time};
use sluice_updater::{CallId, Output, Updaters};

use tracing::{Instrument as _, Span};

use crate::azure::Azure;
use crate::clock::Clock;
use crate::inbox::{Errand, Inbox, Mail, Orders};
use crate::records::Records;

/// What the loop itself has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Turns of the loop.
    pub turns: u64,
    /// Facts that have waited in the inbox at once at most.
    pub inbox_depth_max: usize,
    /// Requests handed to whoever sends.
    pub calls_begun: u64,
    /// Of those, the ones that have come to their end.
    pub calls_ended: u64,
    /// Tasks that panicked.
    pub panics: u64,
    /// Deadlines that were still in the past after everything was done.
    pub wakes_in_vain: u64,
    /// Effects that were asked for when nothing was to be begun any more.
    pub effects_not_begun: u64,
    /// Notices that stand only in the log, because there were too many.
    pub notices_held_back: u64,
}

/// The updaters' logic, and what sends for it.
pub(crate) struct Shell<A> {
    pub(crate) logic: Updaters,
    azure: Arc<A>,
    call_limit: Duration,
}

impl<A: Azure> Shell<A> {
    pub(crate) fn new(logic: Updaters, azure: Arc<A>, call_limit: Duration) -> Shell<A> {
        Shell { logic, azure, call_limit }
    }

    /// Takes the effects that are for Azure; `false` for all others.
    pub(crate) fn start(&mut self, now: Time, effect: &Effect) -> bool {
        self.logic.start(now, effect)
    }

    /// The reply to a call.
    pub(crate) fn replied(&mut self, now: Time, call: CallId, reply: Reply) {
        self.logic.replied(now, call, reply);
    }

    /// The lease or the wish to stop has changed.
    pub(crate) fn ordered(&mut self, orders: Orders) {
        self.logic.fence(orders.fence);
        if orders.stop {
            self.logic.stop();
        }
    }

    /// Sends everything that can be sent now, and gives what is to be told to the engine.
    pub(crate) fn send_all(
        &mut self,
        clock: &impl Clock,
        inbox: &mut Inbox,
        records: &mut Records,
        tally: &mut Tally,
    ) -> Vec<Event> {
        let mut reports = Vec::new();
        while let Some(output) = self.logic.next_output(clock.now()) {
            match output {
                Output::Report(event) => reports.push(event),
                Output::Send { call, request, effect } => {
                    tally.calls_begun += 1;
                    records.journal.sent(clock.now(), call, effect, &request);
                    // Where an operation is polled, Azure gave the address, and its query is signed.
                    let target = request.target.as_str().split(['?', '#']).next().unwrap_or_default();
                    tracing::debug!(call = call.0, %effect, method = ?request.method, target, "sending request");
                    // What the client says about the call stands under the same number.
                    let span = tracing::info_span!("call", %effect, call = call.0);
                    self.send(clock.clone(), inbox, call, request, span);
                }
            }
        }
        while let Some(note) = self.logic.next_step_note() {
            records.step(&note);
        }
        reports
    }

    fn send(&self, clock: impl Clock, inbox: &mut Inbox, call: CallId, request: Request, span: Span) {
        let azure = Arc::clone(&self.azure);
        let orders = inbox.orders();
        let call_limit = self.call_limit;
        let sending = async move {
            let given_up = clock.now() + call_limit;
            let may_begin = || orders.borrow().allow(clock.now());
            if !may_begin() {
                let why = "the lease expired or the process is shutting down";
                return Mail::Replied(call, Reply::not_sent(why));
            }
            let reply = tokio::select! {
                biased;
                reply = azure.send(request, may_begin) => reply,
                () = clock.sleep_until(given_up) => {
                    Reply::lost(&format!("timed out after {} s; request abandoned", call_limit.as_secs()))
                }
            };
            tracing::trace!(call = call.0, answered = matches!(reply, Reply::Answered(_)), "request ended");
            Mail::Replied(call, reply)
        };
        inbox.send_off(Errand::Call(call), sending.instrument(span));
    }
}
