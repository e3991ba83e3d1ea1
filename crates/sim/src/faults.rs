//! Which faults one run has, and how they strike.
//!
//! Swarm style: every seed switches a random subset on, each with a strength of its own, because
//! faults that are always all on hide each other. Three sorts: those that bend one call to Azure
//! ([`FaultPlan::bend`]), those that begin at a moment and last a while or change the world
//! ([`FaultPlan::schedule`]), and those of Kubernetes, which the fake cluster rolls itself.
//!
//! P1 strikes at external calls. P3 is not rolled: it is what a frozen leader (P4) and a slow wire
//! lead to, and is counted when two processes believe to lead at once. P5 is a crash between the
//! first request of the first listing and its end. P6 is a restart with other numbers in its
//! configuration and all state present; names and tags stay, since they are the state.

use core::time::Duration;

use sluice_cloud::Fault;
use sluice_model::Time;
use sluice_model::call::{Answer, Body, Method, OperationState, Payload, Reply, Request};

use crate::cluster::stories::{Requests, Trouble};
use crate::cluster::{KubeFault, KubeFaults};
use crate::names::FaultKind;
use crate::rng::Rng;

/// The faults of one run.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// How often each strikes when it has the chance, in a thousand; zero is off.
    strength: [u16; FaultKind::COUNT],
    /// The next calls fail because a burst is on.
    burst_left: u32,
    /// Until when permissions are gone.
    denied_until: Time,
    /// What a story says about the next requests of a kind, and how many are left.
    told: Vec<Told>,
    /// How often each strikes for sure at the next chances.
    insisted: [u32; FaultKind::COUNT],
}

/// A fault that a story has named.
#[derive(Clone, Debug)]
struct Told {
    kind: FaultKind,
    requests: Requests,
    left: u32,
    fault: Fault,
    answer_takes: Option<Duration>,
}

/// What goes wrong with one call.
#[derive(Clone, Debug)]
pub struct Bent {
    /// How it is counted.
    pub kind: FaultKind,
    /// What.
    pub fault: Fault,
    /// How long the answer takes, if that is said.
    pub answer_takes: Option<Duration>,
}

/// A fault that begins at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scheduled {
    /// When.
    pub at: Time,
    /// Which.
    pub kind: FaultKind,
}

/// Faults that begin at a moment, with the most that one run has of them.
const SCHEDULED: &[(FaultKind, u64)] = &[
    (FaultKind::Z13, 2),
    (FaultKind::Z14, 2),
    (FaultKind::Z15, 1),
    (FaultKind::Z16, 2),
    (FaultKind::Z18, 4),
    (FaultKind::Z19, 2),
    (FaultKind::Z20, 1),
    (FaultKind::Z21, 1),
    (FaultKind::P2, 2),
    (FaultKind::P4, 2),
    (FaultKind::P6, 2),
    (FaultKind::K20, 1),
];

/// Faults that bend one call, with their greatest strength.
const BENDING: &[(FaultKind, u64)] = &[
    (FaultKind::Z1, 60),
    (FaultKind::Z2, 60),
    (FaultKind::Z3, 80),
    (FaultKind::Z4, 15),
    (FaultKind::Z5, 60),
    (FaultKind::Z6, 60),
    (FaultKind::Z7, 25),
    (FaultKind::Z8, 60),
    (FaultKind::Z9, 60),
    (FaultKind::Z10, 150),
    (FaultKind::Z11, 200),
    (FaultKind::Z12, 100),
    (FaultKind::Z17, 900),
    (FaultKind::Z22, 60),
    (FaultKind::P1, 15),
    (FaultKind::P5, 250),
];

impl FaultPlan {
    /// Nothing goes wrong.
    pub fn none() -> FaultPlan {
        let strength = [0; FaultKind::COUNT];
        FaultPlan {
            strength,
            burst_left: 0,
            denied_until: Time::ZERO,
            told: Vec::new(),
            insisted: [0; FaultKind::COUNT],
        }
    }

    /// About a third of the faults, each with a strength of its own.
    pub fn random(rng: &mut Rng) -> FaultPlan {
        let mut plan = FaultPlan::none();
        let share = *rng.pick(&[100, 250, 250, 400, 700]).unwrap_or(&250);
        for (kind, most) in BENDING {
            let strength = rng.between(most / 5 + 1, *most);
            if rng.chance(share) {
                plan.strength[kind.index()] = u16::try_from(strength).unwrap_or(u16::MAX);
            }
        }
        for (kind, _) in SCHEDULED {
            // Half an hour without an API server makes a long run, and a deleted gateway a monotonous one.
            let share = if matches!(kind, FaultKind::K20 | FaultKind::Z20) { share / 5 } else { share };
            if rng.chance(share) {
                plan.strength[kind.index()] = 1_000;
            }
        }
        plan
    }

    /// Exactly these, at their greatest strength; for stories and for tests.
    pub fn only(kinds: &[FaultKind]) -> FaultPlan {
        let mut plan = FaultPlan::none();
        for (kind, most) in BENDING.iter().filter(|(kind, _)| kinds.contains(kind)) {
            plan.strength[kind.index()] = u16::try_from(*most).unwrap_or(u16::MAX);
        }
        for (kind, _) in SCHEDULED.iter().filter(|(kind, _)| kinds.contains(kind)) {
            plan.strength[kind.index()] = 1_000;
        }
        plan
    }

    /// Whether a fault is on.
    pub fn has(&self, kind: FaultKind) -> bool {
        self.strength[kind.index()] > 0
    }

    /// All faults end.
    pub fn calm(&mut self) {
        *self = FaultPlan::none();
    }

    /// Permissions are gone until then.
    pub fn deny_until(&mut self, until: Time) {
        self.denied_until = until;
    }

    /// A story names a fault. What is no fault of a call is not for here.
    pub fn tell(&mut self, trouble: &Trouble) {
        match trouble {
            Trouble::Strikes { kind, requests, times, fault, answer_takes } => self.told.push(Told {
                kind: *kind,
                requests: requests.clone(),
                left: *times,
                fault: fault.clone(),
                answer_takes: *answer_takes,
            }),
            Trouble::Insists(kind, times) => self.insisted[kind.index()] += times,
            _ => {}
        }
    }

    /// The moments of the faults that begin at one, within the fault phase.
    pub fn schedule(&self, rng: &mut Rng, phase: Duration) -> Vec<Scheduled> {
        let mut all = Vec::new();
        let end = u64::try_from(phase.as_millis()).unwrap_or(0);
        for (kind, most) in SCHEDULED.iter().filter(|(kind, _)| self.has(*kind)) {
            for _ in 0..rng.between(1, *most) {
                all.push(Scheduled {
                    at: Time::from_millis(rng.between(3_000, end.max(3_001))),
                    kind: *kind,
                });
            }
        }
        all.sort_by_key(|one| (one.at, one.kind));
        all
    }

    /// Whether a fault without more to it strikes now.
    pub fn strikes(&mut self, kind: FaultKind, rng: &mut Rng) -> bool {
        if self.insists(kind) {
            return true;
        }
        self.has(kind) && rng.chance(self.strength[kind.index()])
    }

    fn insists(&mut self, kind: FaultKind) -> bool {
        let left = &mut self.insisted[kind.index()];
        let insists = *left > 0;
        *left = left.saturating_sub(1);
        insists
    }

    /// What goes wrong with this call, if anything.
    pub fn bend(&mut self, now: Time, request: &Request, rng: &mut Rng) -> Option<Bent> {
        if let Some(told) = self.told.iter_mut().find(|it| it.left > 0 && it.requests.include(request)) {
            told.left -= 1;
            let Told { kind, fault, answer_takes, .. } = told.clone();
            return Some(Bent { kind, fault, answer_takes });
        }
        let (kind, fault) = self.bend_by_dice(now, request, rng)?;
        Some(Bent { kind, fault, answer_takes: None })
    }

    fn bend_by_dice(&mut self, now: Time, request: &Request, rng: &mut Rng) -> Option<(FaultKind, Fault)> {
        if now < self.denied_until {
            return Some((FaultKind::Z13, denied(request, rng)));
        }
        if self.burst_left > 0 {
            self.burst_left -= 1;
            return Some((FaultKind::Z4, unavailable(rng)));
        }
        for (kind, _) in BENDING {
            if !fits(*kind, request) || !self.strikes(*kind, rng) {
                continue;
            }
            if *kind == FaultKind::Z4 {
                self.burst_left = u32::try_from(rng.between(0, 14)).unwrap_or(0);
            }
            if let Some(fault) = fault_of(*kind, request, rng) {
                return Some((*kind, fault));
            }
        }
        None
    }

    /// A failed operation may say how long to wait, as Azure's own texts do.
    pub fn reword(&self, reply: &mut Reply, rng: &mut Rng) {
        if let Reply::Answered(Answer { payload: Payload::Operation(state), .. }) = reply
            && let OperationState::Failed(error) = state
            && error.code.starts_with("RetryableError")
            && self.has(FaultKind::Z8)
            && rng.chance(700)
        {
            let text = format!("Another operation is running; retry after {} seconds.", rng.between(1, 20));
            error.message = text.into();
        }
    }
}

/// A random mixture for the fake API server, of the same temper as the plan.
pub fn kube_faults(rng: &mut Rng) -> KubeFaults {
    let mut faults = KubeFaults::random(rng);
    // An outage is scheduled, so that it happens at most once.
    faults.set(KubeFault::ServerAway, 0);
    if rng.chance(300) {
        return KubeFaults::none();
    }
    faults
}

/// Only these faults of the fake API server, as often as a stormy day has them.
pub fn only_kube_faults(kinds: &[FaultKind]) -> KubeFaults {
    let storm = KubeFaults::storm();
    let mut faults = KubeFaults::none();
    for (at, fault) in KubeFault::ALL.into_iter().enumerate() {
        if kinds.contains(&FaultKind::ALL[at]) && fault != KubeFault::ServerAway {
            faults.set(fault, storm.per_mille(fault));
        }
    }
    faults
}

fn is_write(request: &Request) -> bool {
    !matches!(request.method, Method::Get | Method::List | Method::Poll)
}

fn is_post(request: &Request) -> bool {
    matches!(request.method, Method::UpdateServices | Method::UpdateLocations)
}

fn fits(kind: FaultKind, request: &Request) -> bool {
    match kind {
        FaultKind::Z2 | FaultKind::Z3 | FaultKind::Z7 | FaultKind::Z8 | FaultKind::Z10 => is_write(request),
        FaultKind::Z6 => is_write(request) && request.method != Method::PatchTags,
        FaultKind::Z9 => request.method == Method::Put && request.target.segment("subnets").is_none(),
        FaultKind::Z11 => request.method == Method::List,
        FaultKind::Z12 => {
            request.method == Method::Put
                && matches!(request.body, Body::PublicIp(_) | Body::LoadBalancer(_) | Body::NatGateway(_))
        }
        FaultKind::Z17 => match &request.body {
            Body::Locations(updates) => {
                updates.iter().map(|update| update.addresses.len()).sum::<usize>() > 1
            }
            _ => false,
        },
        FaultKind::P1 | FaultKind::P5 => false,
        _ => true,
    }
}

fn refuse(status: u16, code: &str, message: &str, retry_after: Option<u64>) -> Fault {
    Fault::Refuse {
        status,
        code: code.into(),
        message: message.into(),
        retry_after: retry_after.map(Duration::from_secs),
    }
}

fn unavailable(rng: &mut Rng) -> Fault {
    match rng.below(4) {
        0 => {
            let wait = if rng.chance(500) { Some(rng.between(1, 20)) } else { None };
            refuse(503, "ServerBusy", "The server is busy.", wait)
        }
        1 => refuse(502, "BadGateway", "", None),
        2 => refuse(408, "RequestTimeout", "", None),
        _ => refuse(500, "InternalServerError", "An error occurred.", None),
    }
}

fn denied(request: &Request, rng: &mut Rng) -> Fault {
    match rng.below(4) {
        0 => refuse(401, "ExpiredAuthenticationToken", "The access token has expired.", None),
        1 => Fault::NotSent,
        _ => {
            let text =
                format!("The client does not have authorization to perform action on {}.", request.target);
            refuse(403, "AuthorizationFailed", &text, None)
        }
    }
}

fn fault_of(kind: FaultKind, request: &Request, rng: &mut Rng) -> Option<Fault> {
    Some(match kind {
        FaultKind::Z1 => {
            let wait = if rng.chance(500) { Some(rng.between(1, 20)) } else { None };
            refuse(429, "TooManyRequests", "The request was throttled.", wait)
        }
        FaultKind::Z2 => {
            let text = match rng.chance(700) {
                true => format!("Another operation is running; retry after {} seconds.", rng.between(1, 12)),
                false => "Another operation is running.".to_owned(),
            };
            refuse(429, "RetryableErrorDueToAnotherOperation", &text, None)
        }
        FaultKind::Z3 => match rng.below(3) {
            0 => refuse(412, "PreconditionFailed", "The ETag does not match.", None),
            1 => refuse(409, "AnotherOperationInProgress", "Another operation is in progress.", None),
            _ => refuse(409, "Conflict", "", None),
        },
        FaultKind::Z4 => unavailable(rng),
        FaultKind::Z5 if is_write(request) && rng.chance(700) => Fault::AppliedButLost,
        FaultKind::Z5 => Fault::LostUnapplied,
        FaultKind::Z6 if is_post(request) || rng.chance(150) => Fault::AnsweredButNotApplied,
        FaultKind::Z7 => Fault::OperationNeverEnds,
        FaultKind::Z8 => match rng.below(4) {
            0 => Fault::OperationCanceled,
            1 if is_post(request) => Fault::ErrorIn200,
            2 => Fault::OperationFails { code: "RetryableErrorDueToAnotherOperation".into() },
            _ => Fault::OperationFails { code: "InternalServerError".into() },
        },
        FaultKind::Z9 => Fault::ProvisioningFails,
        FaultKind::Z10 => Fault::LaggingReads { duration: Duration::from_millis(rng.between(200, 10_000)) },
        FaultKind::Z11 if rng.chance(400) => Fault::FailPage,
        FaultKind::Z11 => Fault::ShortPage { items: usize::try_from(rng.below(4)).unwrap_or(0) },
        FaultKind::Z12 => match &request.body {
            Body::PublicIp(_) => {
                refuse(400, "PublicIPCountLimitReached", "Cannot create more public IPs.", None)
            }
            _ => refuse(409, "QuotaExceeded", "The quota of the subscription is used up.", None),
        },
        FaultKind::Z17 => refuse(413, "RequestEntityTooLarge", "The request is too large.", None),
        FaultKind::Z22 if is_post(request) && rng.chance(400) => Fault::AnsweredAtOnce,
        FaultKind::Z22 => Fault::UnknownEnum,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_azure_and_of_the_process_is_rolled_somewhere() {
        let rolled: Vec<FaultKind> = BENDING.iter().chain(SCHEDULED).map(|(kind, _)| *kind).collect();
        for kind in FaultKind::ALL.into_iter().filter(|kind| !kind.code().starts_with('K')) {
            assert!(rolled.contains(&kind) || kind == FaultKind::P3, "{kind}");
        }
    }

    #[test]
    fn the_same_seed_has_the_same_faults_and_some_seed_has_none_of_a_kind() {
        let plan = |seed| FaultPlan::random(&mut Rng::new(seed)).strength;
        assert_eq!(plan(1), plan(1));
        for kind in [FaultKind::Z5, FaultKind::P1, FaultKind::Z18] {
            let on = (0..100).filter(|seed| plan(*seed)[kind.index()] > 0).count();
            assert!((5..95).contains(&on), "{kind}: {on}");
        }
    }
}
