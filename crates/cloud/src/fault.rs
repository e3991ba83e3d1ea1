//! What can go wrong with one request.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::Time;
use sluice_model::azure::{Meta, Provisioning};
use sluice_model::call::{Answer, ArmError, Method, OperationState, Payload, Reply, Request};

use crate::cloud::{Cloud, InlineSubnet, Outcome};
use crate::list::Cut;
use crate::operation::Ending;
use crate::refusal::Refusal;

/// How long a read can lag at most.
const LAG_MAX: Duration = Duration::from_secs(10);

/// One thing that goes wrong with one request.
///
/// A fault that does not fit its request (a short page of a PUT, a failing operation where none begins)
/// does nothing, and the request is handled as usual.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Azure refuses it and does nothing.
    Refuse {
        /// The HTTP status.
        status: u16,
        /// The code.
        code: Arc<str>,
        /// The text.
        message: Arc<str>,
        /// `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// It never leaves: no connection, no token.
    NotSent,
    /// It gets lost on its way and nobody can know.
    LostUnapplied,
    /// It is carried out, but the answer gets lost.
    AppliedButLost,
    /// It is answered as if it had been carried out, but it has not. Its operation succeeds in due time.
    AnsweredButNotApplied,
    /// Its operation never ends, and keeps the resource all the while.
    OperationNeverEnds,
    /// Its operation fails: nothing is done, and the resource is `Failed`.
    OperationFails {
        /// The code.
        code: Arc<str>,
    },
    /// Its operation is cancelled, likewise.
    OperationCanceled,
    /// Its operation says that it succeeded, but the resource is `Failed`.
    ProvisioningFails,
    /// Reads show the state before it for so long after it took effect, at most 10 s.
    LaggingReads {
        /// How long.
        duration: Duration,
    },
    /// A page ends early, after so many items, and still has a successor.
    ShortPage {
        /// How many.
        items: usize,
    },
    /// A page fails.
    FailPage,
    /// Its operation takes so many times as long.
    SlowBy(u32),
    /// The answer has words in it that nobody knows.
    UnknownEnum,
    /// It answers 200 with an ARM error in the body, and nothing is done.
    ErrorIn200,
    /// A gateway POST is carried out at once and answers 200, whatever the API version. The answer names
    /// an operation all the same, which is over.
    AnsweredAtOnce,
}

/// How a request is bent on its way through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Twist {
    pub(crate) never_ends: bool,
    pub(crate) at_once: bool,
    pub(crate) ending: Ending,
    pub(crate) lag: Option<Duration>,
    pub(crate) page: Cut,
    pub(crate) slowness: u32,
    /// It is answered as if, and nothing is written.
    pub(crate) pretends: bool,
    /// The subnets in the body of a virtual network, if the body has any.
    pub(crate) subnets: Option<Vec<InlineSubnet>>,
}

impl Default for Twist {
    fn default() -> Twist {
        Twist {
            never_ends: false,
            at_once: false,
            ending: Ending::default(),
            lag: None,
            page: Cut::default(),
            slowness: 1,
            pretends: false,
            subnets: None,
        }
    }
}

impl Cloud {
    /// One request arrives now, and one thing goes wrong with it.
    pub fn handle_faulty(&mut self, now: Time, request: &Request, fault: &Fault) -> Reply {
        self.attempt(now, request, Some(fault), None).reply
    }

    /// One request arrives now, with whatever is beside it.
    pub(crate) fn attempt(
        &mut self,
        now: Time,
        request: &Request,
        fault: Option<&Fault>,
        subnets: Option<&[InlineSubnet]>,
    ) -> Outcome {
        let error = |code: &str, message: &str| ArmError { code: code.into(), message: message.into() };
        let lost = Reply::lost("no answer came back, so the change may or may not have been made");
        let mut twist = Twist { subnets: subnets.map(<[_]>::to_vec), ..Twist::default() };
        match fault {
            Some(Fault::NotSent) => {
                self.advance(now);
                return Reply::not_sent("the request could not be sent").into();
            }
            Some(Fault::LostUnapplied) => {
                self.advance(now);
                return lost.into();
            }
            Some(Fault::AppliedButLost) => {
                // Nobody hears whether it was refused.
                let _ = self.serve(now, request, &twist);
                return lost.into();
            }
            Some(Fault::Refuse { status, code, message, retry_after }) => {
                let answer = self.refuse(now, request, Refusal::new(*status, code, message));
                return Answer { retry_after: *retry_after, ..answer }.into();
            }
            Some(Fault::FailPage) if request.method == Method::List => {
                let refusal = Refusal::new(500, "InternalServerError", "The page could not be read.");
                return self.refuse(now, request, refusal).into();
            }
            Some(Fault::ErrorIn200) => {
                let refusal = Refusal::new(200, "InternalServerError", "An error occurred.");
                return self.refuse(now, request, refusal).into();
            }
            None | Some(Fault::FailPage | Fault::UnknownEnum) => {}
            Some(Fault::AnsweredButNotApplied) => twist.pretends = true,
            Some(Fault::OperationNeverEnds) => twist.never_ends = true,
            Some(Fault::OperationFails { code }) => {
                twist.ending = Ending::Fail(error(code, "The operation failed."));
            }
            Some(Fault::OperationCanceled) => {
                twist.ending = Ending::Cancel(error("Canceled", "The operation was canceled."));
            }
            Some(Fault::ProvisioningFails) => twist.ending = Ending::SucceedInNameOnly,
            Some(Fault::LaggingReads { duration }) => twist.lag = Some((*duration).min(LAG_MAX)),
            Some(Fault::ShortPage { items }) => twist.page = Cut::Short(*items),
            Some(Fault::SlowBy(factor)) => twist.slowness = *factor,
            Some(Fault::AnsweredAtOnce) => twist.at_once = true,
        }
        match self.serve(now, request, &twist) {
            Ok(answer) if fault == Some(&Fault::UnknownEnum) => unknown_words(answer).into(),
            Ok(answer) => answer.into(),
            Err((refusal, remaining)) => Outcome::refused(refusal, remaining),
        }
    }

    /// A refusal still costs the call, if there is anything left to pay with.
    fn refuse(&mut self, now: Time, request: &Request, refusal: Refusal) -> Answer {
        self.advance(now);
        let remaining = self.spend(&request.target, request.method.bucket()).unwrap_or(Some(0));
        Answer { remaining, ..refusal.answer(remaining) }
    }
}

/// The same answer from a newer Azure.
fn unknown_words(mut answer: Answer) -> Answer {
    let unknown = |meta: &mut Meta| meta.provisioning = Provisioning::Unknown;
    match &mut answer.payload {
        Payload::PublicIp(it) => unknown(&mut it.meta),
        Payload::LoadBalancer(it) => unknown(&mut it.meta),
        Payload::NatGateway(it) => unknown(&mut it.meta),
        Payload::Gateway(it) => unknown(&mut it.meta),
        Payload::PublicIps(page) => page.items.iter_mut().for_each(|it| unknown(&mut it.meta)),
        Payload::LoadBalancers(page) => page.items.iter_mut().for_each(|it| unknown(&mut it.meta)),
        Payload::NatGateways(page) => page.items.iter_mut().for_each(|it| unknown(&mut it.meta)),
        Payload::Gateways(page) => page.items.iter_mut().for_each(|it| unknown(&mut it.meta)),
        Payload::Operation(state) => *state = OperationState::Running,
        Payload::None
        | Payload::Error(_)
        | Payload::Subnet(_)
        | Payload::Container(_)
        | Payload::Networks(_)
        | Payload::Subnets(_)
        | Payload::Registrations(_)
        | Payload::Locations(_) => {}
    }
    answer
}
