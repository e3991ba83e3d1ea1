//! What an answer means for the call that it answers.
//!
//! [`to_request`] reads the first answer to a request, [`to_poll`] the later ones about the
//! operation behind it. Both are functions of what was asked and what came back, nothing else.

use core::time::Duration;

use sluice_model::azure::{ArmId, Meta, Provisioning, Tags};
use sluice_model::call::{Answer, Body, Method, OperationState, Payload, Reply, Request};
use sluice_model::seeded::{Bug, Seeded};
use sluice_model::{Failure, FailureClass};

/// What the first answer says.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It is over and went well.
    Finished(Payload),
    /// Azure works on it; watch this.
    Running(Watch, Option<Duration>),
    /// Azure wants a pause first.
    Throttled(Throttle),
    /// It is over and did not go well.
    Failed(Failure),
}

/// What a poll says.
#[derive(Debug, PartialEq)]
pub(crate) enum Progress {
    /// The operation is over and went well.
    Finished(Payload),
    /// It still runs; ask again.
    AskAgain(Option<Duration>),
    /// The poll itself went wrong, which says nothing about the operation; ask again.
    Unclear(Failure),
    /// Azure wants a pause first.
    Throttled(Throttle),
    /// The operation is over and did not go well, or nobody knows any more.
    Failed(Failure),
}

/// Where one sees how an operation stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Watch {
    /// Azure gave an address for it.
    Operation(ArmId),
    /// It did not; the resource itself shows it.
    Resource,
}

/// A pause that Azure asked for.
#[derive(Debug, PartialEq)]
pub(crate) struct Throttle {
    pub(crate) failure: Failure,
    pub(crate) about: Pause,
}

/// What a pause is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pause {
    /// Another operation on the same resource is in the way for so long; no budget is used up.
    Resource(Duration),
    /// The resource manager's bucket is empty.
    Bucket,
    /// The network provider has had enough, or nobody says who; it counts writes and deletes
    /// together.
    Network,
}

impl Throttle {
    pub(crate) fn of(failure: &Failure) -> Throttle {
        let about = match failure.retry_after {
            // Without a length it would not be a pause but a failure to try again after.
            Some(wait) if failure.is_another_operation() => Pause::Resource(wait),
            _ if failure.is_bucket_empty() => Pause::Bucket,
            _ => Pause::Network,
        };
        Throttle { failure: failure.clone(), about }
    }
}

/// An answer that does not fit the question.
pub(crate) fn unexpected() -> Failure {
    Failure::of(FailureClass::Transient, "UnexpectedAnswer", "the answer does not match the request")
}

/// A resource whose last write did not come through.
pub(crate) fn not_provisioned() -> Failure {
    Failure::of(FailureClass::Transient, "ProvisioningFailed", "the resource's provisioning state is Failed")
}

/// Reads the first answer to a request.
pub(crate) fn to_request(request: &Request, reply: Reply, seeded: Seeded) -> Verdict {
    if let Some(failure) = Failure::in_reply(&reply) {
        if matches!(reply, Reply::Lost(_)) && seeded.has(Bug::LostIsSuccess) {
            return Verdict::Finished(Payload::None);
        }
        let is_post = matches!(request.method, Method::UpdateServices | Method::UpdateLocations);
        if is_post && (200..300).contains(&failure.status) && seeded.has(Bug::PostOkIsSuccess) {
            return Verdict::Finished(Payload::None);
        }
        return match failure.class {
            FailureClass::Throttled => Verdict::Throttled(Throttle::of(&failure)),
            FailureClass::NotFound if request.method == Method::Delete => Verdict::Finished(Payload::None),
            // A read changes nothing, so a lost one leaves nothing in doubt.
            FailureClass::Unknown if matches!(request.method, Method::Get | Method::List) => {
                Verdict::Failed(Failure { class: FailureClass::Transient, ..failure })
            }
            _ => Verdict::Failed(failure),
        };
    }
    let Reply::Answered(answer) = reply else { return Verdict::Failed(unexpected()) };
    match request.method {
        Method::Get | Method::List => Verdict::Finished(answer.payload),
        Method::Put | Method::PatchTags => to_write(request, answer),
        Method::Delete => match answer.payload {
            Payload::Operation(OperationState::Succeeded) => Verdict::Finished(Payload::None),
            Payload::None if answer.status != 202 => Verdict::Finished(Payload::None),
            Payload::None | Payload::Operation(_) => {
                let watch = answer.operation.map_or(Watch::Resource, Watch::Operation);
                Verdict::Running(watch, answer.retry_after)
            }
            _ => Verdict::Failed(unexpected()),
        },
        Method::UpdateServices | Method::UpdateLocations => match (answer.payload, answer.operation) {
            (Payload::Operation(OperationState::Succeeded), _) => Verdict::Finished(Payload::None),
            (Payload::None, _) if answer.status != 202 => Verdict::Finished(Payload::None),
            (Payload::None | Payload::Operation(_), Some(operation)) => {
                Verdict::Running(Watch::Operation(operation), answer.retry_after)
            }
            (Payload::None | Payload::Operation(_), None) => Verdict::Failed(Failure::of(
                FailureClass::Unknown,
                "NoOperation",
                "Azure accepted the request but returned no operation to poll",
            )),
            _ => Verdict::Failed(unexpected()),
        },
        // Polls are read by `to_poll`.
        Method::Poll => Verdict::Failed(unexpected()),
    }
}

fn to_write(request: &Request, answer: Answer) -> Verdict {
    let state = match (&answer.payload, &request.body) {
        (Payload::None | Payload::Operation(OperationState::Running), _)
            if answer.status == 202 || answer.operation.is_some() =>
        {
            Provisioning::Updating
        }
        // Tags need no more of an answer than this.
        (Payload::None, Body::Tags(_)) => Provisioning::Succeeded,
        (payload, body) => match state_in(body, payload) {
            // A subnet does not say how it stands; an operation next to it is asked.
            Some(None) if answer.operation.is_some() => Provisioning::Updating,
            Some(None) => Provisioning::Succeeded,
            Some(Some(state)) => state,
            None => return Verdict::Failed(unexpected()),
        },
    };
    match state {
        // The address of an operation may be there although the write is finished.
        Provisioning::Succeeded => Verdict::Finished(answer.payload),
        Provisioning::Failed => Verdict::Failed(not_provisioned()),
        Provisioning::Updating | Provisioning::Deleting | Provisioning::Unknown => {
            let watch = answer.operation.map_or(Watch::Resource, Watch::Operation);
            Verdict::Running(watch, answer.retry_after)
        }
    }
}

/// Reads an answer about the operation behind `request`.
pub(crate) fn to_poll(request: &Request, watch: &Watch, reply: Reply, seeded: Seeded) -> Progress {
    if let Reply::Answered(answer) = &reply
        && answer.status == 200
        && *watch != Watch::Resource
        && seeded.has(Bug::PollOkIsSuccess)
    {
        return Progress::Finished(Payload::None);
    }
    match watch {
        Watch::Operation(_) => to_operation_poll(request, reply),
        Watch::Resource => to_resource_poll(request, reply),
    }
}

fn to_operation_poll(request: &Request, reply: Reply) -> Progress {
    let (is_about_operation, retry_after) = match &reply {
        Reply::Answered(answer) => (matches!(answer.payload, Payload::Operation(_)), answer.retry_after),
        Reply::NotSent(_) | Reply::Lost(_) => (false, None),
    };
    if let Some(failure) = Failure::in_reply(&reply) {
        let gone = failure.class == FailureClass::NotFound;
        let is_unclear_404 =
            failure.class == FailureClass::Transient && failure.status == 404 && failure.is_azures();
        return match failure.class {
            FailureClass::Throttled => Progress::Throttled(Throttle::of(&failure)),
            _ if gone && is_about_operation && request.method == Method::Delete => {
                Progress::Finished(Payload::None)
            }
            _ if is_about_operation => Progress::Failed(failure),
            _ if gone || is_unclear_404 => {
                let code = "OperationForgotten".into();
                Progress::Failed(Failure { class: FailureClass::Unknown, code, ..failure })
            }
            FailureClass::Unknown | FailureClass::Forbidden => Progress::Unclear(failure),
            FailureClass::Transient
                if !failure.is_azures() || matches!(failure.status, 408 | 429 | 500..=599) =>
            {
                Progress::Unclear(failure)
            }
            // Behind a `Location` the operation's own failure comes as the status of the poll.
            _ => Progress::Failed(failure),
        };
    }
    let Reply::Answered(answer) = reply else { return Progress::AskAgain(None) };
    match answer.payload {
        Payload::Operation(OperationState::Succeeded) => Progress::Finished(Payload::None),
        Payload::None if answer.status != 202 => Progress::Finished(Payload::None),
        // Behind a `Location` the resource itself comes when it is ready.
        payload if answer.status == 200 => match state_in(&request.body, &payload) {
            Some(None | Some(Provisioning::Succeeded)) => Progress::Finished(payload),
            Some(Some(Provisioning::Failed)) => Progress::Failed(not_provisioned()),
            _ => Progress::AskAgain(retry_after),
        },
        _ => Progress::AskAgain(retry_after),
    }
}

fn to_resource_poll(request: &Request, reply: Reply) -> Progress {
    let deleting = request.method == Method::Delete;
    if let Some(failure) = Failure::in_reply(&reply) {
        return match failure.class {
            FailureClass::Throttled => Progress::Throttled(Throttle::of(&failure)),
            FailureClass::NotFound if deleting => Progress::Finished(Payload::None),
            _ => Progress::Unclear(failure),
        };
    }
    let Reply::Answered(answer) = reply else { return Progress::AskAgain(None) };
    if deleting {
        return Progress::AskAgain(answer.retry_after);
    }
    match state_in(&request.body, &answer.payload) {
        Some(None | Some(Provisioning::Succeeded)) => Progress::Finished(answer.payload),
        Some(Some(Provisioning::Failed)) => Progress::Failed(not_provisioned()),
        _ => Progress::AskAgain(answer.retry_after),
    }
}

/// The state of the resource in the payload: `None` if it is of another kind than the body,
/// `Some(None)` if it is of the kind but does not say.
fn state_in(body: &Body, payload: &Payload) -> Option<Option<Provisioning>> {
    match (body, payload) {
        (Body::PublicIp(_), Payload::PublicIp(it)) => Some(Some(it.meta.provisioning)),
        (Body::LoadBalancer(_), Payload::LoadBalancer(it)) => Some(Some(it.meta.provisioning)),
        (Body::NatGateway(_), Payload::NatGateway(it)) => Some(Some(it.meta.provisioning)),
        (Body::Gateway(_) | Body::GatewayAsRead(_), Payload::Gateway(it)) => Some(Some(it.meta.provisioning)),
        (Body::Subnet(_), Payload::Subnet(_)) => Some(None),
        (Body::Tags(tags), Payload::PublicIp(it)) => Some(Some(state_of_tags(tags, &it.meta))),
        (Body::Tags(tags), Payload::LoadBalancer(it)) => Some(Some(state_of_tags(tags, &it.meta))),
        (Body::Tags(tags), Payload::NatGateway(it)) => Some(Some(state_of_tags(tags, &it.meta))),
        (Body::Tags(tags), Payload::Gateway(it)) => Some(Some(state_of_tags(tags, &it.meta))),
        _ => None,
    }
}

/// How the writing of tags stands. A resource whose last write failed takes tags all the same.
fn state_of_tags(tags: &Tags, meta: &Meta) -> Provisioning {
    match meta.provisioning {
        Provisioning::Failed if meta.tags == *tags => Provisioning::Succeeded,
        state => state,
    }
}
