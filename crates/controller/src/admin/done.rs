//! What was done for a service, in the words of the views: its operation, its calls, its events.

use std::time::Duration;

use sluice_model::call::Method;
use sluice_view as view;

use super::almanac::Today;
use super::words::intent_word;
use crate::journal::{CallNote, NoticeNote, PlanNote, StepLine, StepPhase};

/// The last operation, step by step.
pub(super) fn operation(today: &Today<'_>, plan: &PlanNote) -> view::Operation {
    view::Operation {
        id: plan.effect.to_string(),
        intent: intent_word(plan.intent).into(),
        cause: plan.cause.into(),
        begun: today.since(plan.at),
        ended: plan.end.as_ref().map(|(at, _)| today.since(*at)),
        failure: plan.end.as_ref().and_then(|(_, failure)| failure.clone()),
        steps: plan.steps.iter().map(step).collect(),
    }
}

fn step(line: &StepLine) -> view::Step {
    let (phase, took, failure) = match &line.phase {
        StepPhase::Waiting => (view::StepPhase::Waiting, None, None),
        StepPhase::Running => (view::StepPhase::Running, None, None),
        StepPhase::Ended(took, None) => (view::StepPhase::Done, Some(*took), None),
        StepPhase::Ended(took, Some(why)) => (view::StepPhase::Failed, Some(*took), Some(why.to_string())),
    };
    view::Step { step: line.word.into(), phase, took_ms: took.map(ms), failure }
}

/// One call.
pub(super) fn call(today: &Today<'_>, note: &CallNote) -> view::Call {
    let end = note.end.as_ref();
    view::Call {
        at: today.since(note.at),
        operation: note.effect.to_string(),
        method: method(note.method).into(),
        target: note.target.clone(),
        status: end.and_then(|end| end.status),
        took_ms: end.map(|end| ms(end.took)),
        trouble: end.and_then(|end| end.trouble.clone()),
    }
}

/// One event.
pub(super) fn told(today: &Today<'_>, note: &NoticeNote) -> view::Told {
    view::Told {
        at: today.since(note.at),
        warning: note.notice.warning,
        reason: note.notice.reason.word().into(),
        message: note.notice.text.clone(),
    }
}

const fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::List => "GET list",
        Method::Put => "PUT",
        Method::PatchTags => "PATCH tags",
        Method::Delete => "DELETE",
        Method::UpdateServices => "POST updateServices",
        Method::UpdateLocations => "POST updateAddressLocations",
        Method::Poll => "GET operation",
    }
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
