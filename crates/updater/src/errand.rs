//! One request on somebody's behalf, and how far it has got.

use alloc::collections::BTreeMap;
use core::time::Duration;

use sluice_model::azure::ArmId;
use sluice_model::call::{Answer, Payload, Reply, Request};
use sluice_model::event::{ThrottledCalls, Wait};
use sluice_model::{EffectId, Failure, Time};

use crate::CallId;
use crate::answer::Watch;
use crate::budget::Gate;
use crate::lister::WalkId;
use crate::pauses::Pause;
use crate::poll::Operation;

/// Who waits for an errand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Plan(EffectId),
    Commit,
    Locations,
    Walk(WalkId),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ErrandId(pub(crate) u64);

/// What an owner is told.
#[derive(Debug)]
pub(crate) enum Happening {
    /// The errand is over. `sent_at` is when its request was last sent.
    Ended { owner: Owner, result: Result<Payload, Failure>, sent_at: Time },
    /// It takes longer than its kind usually does.
    BecameSlow(EffectId),
    /// It fell asleep: its gate is shut for long, or another operation is in its way.
    FellAsleep(EffectId, Wait),
    /// It waits, and needs no slot: an address update or a shared commit.
    Held(Owner, EffectId, Wait),
    /// It could go on; it sleeps until it is woken.
    GateOpened(EffectId),
    /// Azure asked for a pause of these calls that is to be reported.
    Paused(ThrottledCalls, Duration),
}

/// One request, from its beginning to its real end.
pub(crate) struct Errand {
    pub(crate) owner: Owner,
    pub(crate) effect: EffectId,
    pub(crate) request: Request,
    /// First come, first served, but cosmetics last.
    pub(crate) place: Place,
    pub(crate) stage: Stage,
    pub(crate) timer: Option<Time>,
    pub(crate) sent_at: Time,
    pub(crate) operation: Option<Operation>,
    /// What its owner was last told that it waits for.
    pub(crate) held: Option<Wait>,
}

/// A resource for which Azure asked to wait.
#[derive(Clone, Copy, Default)]
pub(crate) struct Busy {
    pub(crate) pause: Pause,
    /// Since when another operation on it has been in the way, whoever asked; `None` when Azure had another
    /// reason.
    pub(crate) since: Option<Time>,
}

/// How far an errand has got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Until its timer goes off.
    Delayed,
    Queued,
    /// Its plan may need a slot before it goes on; with a timer, not before that either.
    Asleep,
    Sent(CallId),
    Resting,
    PollQueued,
    /// With the time at which the poll was sent.
    PollSent(CallId, Time),
}

/// Cosmetic or not, then the number of the errand.
pub(crate) type Place = (bool, u64);

/// Those who wait at one gate.
#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) awake: BTreeMap<Place, ErrandId>,
    /// They wait for their plan's slot.
    pub(crate) asleep: BTreeMap<Place, ErrandId>,
    /// Until when one of those was woken to probe a pause, so that no other is.
    pub(crate) probe_offered_until: Time,
}

/// A request on the wire: through which gate it went, when, and what it is about.
pub(crate) struct Passage {
    pub(crate) gate: Gate,
    pub(crate) sent_at: Time,
    pub(crate) target: ArmId,
    /// What its errand wants, which for a poll is something else than the poll.
    pub(crate) wanted: (Gate, ArmId),
}

impl Passage {
    /// What a wait in this failed reply holds. If a poll tells that the operation failed, that is not
    /// the poll but what was wanted.
    pub(crate) fn held_by(self, reply: &Reply) -> (Gate, ArmId) {
        match reply {
            Reply::Answered(Answer { payload: Payload::Operation(_), .. }) => self.wanted,
            _ => (self.gate, self.target),
        }
    }
}

impl Errand {
    /// The request that is on the wire.
    pub(crate) fn passage(&self) -> Passage {
        let wanted = (Gate::of(self.request.method), self.request.target.clone());
        let (gate, sent_at, target) = match self.stage {
            Stage::PollSent(_, at) => (Gate::Reads, at, self.poll_target()),
            _ => (wanted.0, self.sent_at, &self.request.target),
        };
        Passage { gate, sent_at, target: target.clone(), wanted }
    }

    /// What is asked when the operation is polled.
    pub(crate) fn poll_target(&self) -> &ArmId {
        match &self.operation {
            Some(Operation { watch: Watch::Operation(id), .. }) => id,
            _ => &self.request.target,
        }
    }
}
