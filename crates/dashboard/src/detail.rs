//! The page of one service or egress: how it stands, why, what it waits for, and what was done.

use maud::{Markup, html};
use sluice_view::moment::span;
use sluice_view::{Call, Explanation, Operation, Overview, Status, StepPhase};

use crate::front::{pill, ticked};
use crate::layout::{Which, whole};
use crate::words::grouped;

/// What the page is made from.
#[derive(Clone, Copy, Debug)]
pub struct Detail<'a> {
    /// The controller as a whole.
    pub overview: &'a Overview,
    /// The one.
    pub explanation: &'a Explanation,
}

/// The whole page.
pub fn detail(of: &Detail<'_>) -> String {
    let explanation = of.explanation;
    let title = title(&explanation.status);
    let asked_for = match &explanation.status {
        Status::Service(service) => format!("service/{}", service.uid),
        Status::Egress(egress) => format!("egress/{}", egress.name),
    };
    let main = html! {
        nav.crumbs aria-label="Breadcrumb" { a href="/" { "Findings" } " / " (kind(&explanation.status)) }
        div #detail data-busy[explanation.status.progress().operation.is_some()] {
            (head(explanation, &title))
            div.columns {
                div {
                    (waits(explanation))
                    @if let Some(plan) = &explanation.plan { (operation(plan)) }
                    (timeline(explanation))
                    (events(explanation))
                    (calls(explanation))
                }
                div { (figures(explanation)) }
            }
        }
    };
    whole(&title, Which::Detail(&asked_for), Some(of.overview), &main)
}

fn kind(status: &Status) -> &'static str {
    match status {
        Status::Service(_) => "Service",
        Status::Egress(_) => "egress",
    }
}

fn title(status: &Status) -> String {
    match status {
        Status::Service(service) => service.title(),
        Status::Egress(egress) => egress.name.clone(),
    }
}

fn head(explanation: &Explanation, title: &str) -> Markup {
    let progress = explanation.status.progress();
    html! {
        section.panel.hero aria-labelledby="title" {
            div.line {
                h1 #title { (title) }
                (pill(progress))
                @if progress.parked {
                    span.pill.is-trouble { "parked" }
                } @else if progress.trouble {
                    span.pill.is-trouble { "in trouble" }
                }
                @if let Some(ip) = progress.public_ip { span.ip { (ip) } }
            }
            p.summary #summary aria-live="polite" { (without_age(&explanation.summary, progress.since.age_seconds)) }
            @if !explanation.what_to_do.is_empty() {
                h2 { "What to do" }
                ul.todo { @for step in &explanation.what_to_do { li { (ticked(step)) } } }
            }
        }
    }
}

/// A summary without how long it has been so: it is read aloud when it changes, and an age always does.
/// The facts have the age.
fn without_age(summary: &str, age_seconds: u64) -> String {
    summary.replacen(&format!(" for {}", span(age_seconds)), "", 1)
}

fn waits(explanation: &Explanation) -> Markup {
    html! {
        @if !explanation.waits_for.is_empty() {
            section.panel aria-labelledby="waits-title" {
                h2 #waits-title { "Waiting for" }
                ul.plain { @for wait in &explanation.waits_for { li { (ticked(&wait.sentence)) } } }
            }
        }
    }
}

fn figures(explanation: &Explanation) -> Markup {
    let progress = explanation.status.progress();
    let addresses = &progress.addresses;
    let identity = match &explanation.status {
        Status::Service(service) => ("UID", service.uid.clone()),
        Status::Egress(egress) => ("pods", grouped(egress.pods)),
    };
    html! {
        section.panel aria-labelledby="figures-title" {
            h2 #figures-title { "Addresses" }
            @if addresses.desired > 0 {
                progress.wide max=(addresses.desired) value=(addresses.programmed.min(addresses.desired))
                    aria-label="Addresses programmed" {}
            }
            dl.figures {
                div { dt { "programmed" } dd { (grouped(addresses.programmed)) } }
                div { dt { "desired" } dd { (grouped(addresses.desired)) } }
                div { dt { "buffered (not registered yet)" } dd { (grouped(addresses.buffered)) } }
                div { dt { "in Azure (confirmed or uncertain)" } dd { (grouped(addresses.mapped)) } }
                div { dt { "node IP missing" } dd { (grouped(addresses.unplaceable)) } }
                div { dt { "quarantined" } dd { (grouped(addresses.quarantined)) } }
            }
        }
        section.panel aria-labelledby="facts-title" {
            h2 #facts-title { "Facts" }
            dl.figures {
                div { dt { "in this state" } dd { (span(progress.since.age_seconds)) } }
                div { dt { "desired" } dd { (if progress.desired { "yes" } else { "no" }) } }
                div { dt { "carries traffic" } dd { (if progress.live { "yes" } else { "no" }) } }
                div { dt { "failures since the last success" } dd { (progress.attempts) } }
                @if let Some(last) = &progress.last_attempt {
                    div { dt { "last attempt" } dd { (span(last.age_seconds)) " ago" } }
                }
                @if let Some(next) = &progress.next_retry {
                    div { dt { "next attempt" } dd { "in " (span(next.in_seconds)) } }
                }
                @if let Some(operation) = &progress.operation {
                    div { dt { "operation" } dd { (operation) } }
                }
                div { dt { (identity.0) } dd.mono { (identity.1) } }
            }
        }
        @if let Some(failure) = &progress.last_failure {
            section.panel aria-labelledby="failure-title" {
                h2 #failure-title { "Last error" }
                p { b { (failure.code) } " at " code { (failure.step) } ", " (span(failure.at.age_seconds)) " ago" }
                p.muted { (failure.message) }
            }
        }
    }
}

fn timeline(explanation: &Explanation) -> Markup {
    html! {
        section.panel aria-labelledby="timeline-title" {
            h2 #timeline-title { "Timeline" }
            @if explanation.timeline.is_empty() { p.muted { "No entries yet." } }
            ol.timeline {
                // The newest first, since that is what one looks for.
                @for happening in explanation.timeline.iter().rev() {
                    li.bad[happening.bad] {
                        time datetime=(happening.at.at) title=(happening.at.at) {
                            (span(happening.at.age_seconds)) " ago"
                        }
                        span { (happening.sentence) }
                    }
                }
            }
        }
    }
}

fn operation(plan: &Operation) -> Markup {
    let done = plan.steps.iter().filter(|step| step.phase == StepPhase::Done).count();
    let standing = match (&plan.ended, &plan.failure) {
        (None, _) => format!("in progress for {}", span(plan.begun.age_seconds)),
        (Some(ended), None) => format!("done {} ago", span(ended.age_seconds)),
        (Some(ended), Some(_)) => format!("failed {} ago", span(ended.age_seconds)),
    };
    html! {
        section.panel aria-labelledby="plan-title" {
            h2 #plan-title { "Plan" }
            p { b { (plan.intent) } " " span.muted { (plan.id) ", cause: " (plan.cause) "; " (standing) } }
            @if !plan.steps.is_empty() {
                progress max=(plan.steps.len()) value=(done) aria-label="Steps done" {}
            }
            ol.steps {
                @for step in &plan.steps {
                    @let (class, word) = match step.phase {
                        StepPhase::Done => ("done", "done"),
                        StepPhase::Running => ("running", "in progress"),
                        StepPhase::Failed => ("failed", "failed"),
                        StepPhase::Waiting | StepPhase::Unknown => ("waiting", "waiting"),
                    };
                    li.(class) {
                        span { code { (step.step) } }
                        span.took { (word) @if let Some(ms) = step.took_ms { ", " (took(ms)) } }
                        @if let Some(why) = &step.failure { span.why { (why) } }
                    }
                }
            }
        }
    }
}

fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{:.1} s", ms as f64 / 1_000.0),
        _ => span(ms / 1_000),
    }
}

fn events(explanation: &Explanation) -> Markup {
    html! {
        section.panel aria-labelledby="events-title" {
            h2 #events-title { "Events" }
            @if explanation.events.is_empty() { p.muted { "No recent events." } }
            @else {
                div.scroll tabindex="0" role="region" aria-labelledby="events-title" {
                    table.list {
                        thead { tr { th scope="col" { "When" } th scope="col" { "Reason" } th scope="col" { "Message" } } }
                        tbody {
                            @for told in explanation.events.iter().rev() {
                                tr {
                                    td { time datetime=(told.at.at) title=(told.at.at) { (span(told.at.age_seconds)) " ago" } }
                                    td.bad[told.warning] { (told.reason) }
                                    td.wrap { (ticked(&told.message)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn calls(explanation: &Explanation) -> Markup {
    html! {
        section.panel aria-labelledby="calls-title" {
            h2 #calls-title { "Calls to Azure" }
            @if explanation.calls.is_empty() { p.muted { "No recent calls." } }
            @else {
                div.scroll tabindex="0" role="region" aria-labelledby="calls-title" {
                    table.list {
                        thead {
                            tr {
                                th scope="col" { "When" }
                                th scope="col" { "Operation" }
                                th scope="col" { "Call" }
                                th scope="col" { "Response" }
                                th scope="col" { "Duration" }
                            }
                        }
                        tbody { @for call in explanation.calls.iter().rev() { (call_line(call)) } }
                    }
                }
            }
        }
    }
}

fn call_line(call: &Call) -> Markup {
    let is_bad = call.status.map_or(call.took_ms.is_some(), |status| status >= 400);
    html! {
        tr {
            td { time datetime=(call.at.at) title=(call.at.at) { (span(call.at.age_seconds)) " ago" } }
            td { (call.operation) }
            td.wrap title=(call.target) { b { (call.method) } " " span.mono { (short(&call.target)) } }
            td.bad[is_bad] {
                @match (call.status, &call.trouble) {
                    (Some(status), Some(trouble)) => { (status) " " (trouble) },
                    (Some(status), None) => (status),
                    (None, Some(trouble)) => (trouble),
                    (None, None) => span.muted { "in flight" },
                }
            }
            td { @if let Some(ms) = call.took_ms { (took(ms)) } }
        }
    }
}

/// The part of a resource id that tells them apart: what stands after the provider.
fn short(target: &str) -> &str {
    target.rsplit_once("/providers/").map_or(target, |(_, rest)| rest.split_once('/').map_or(rest, |it| it.1))
}

#[cfg(test)]
mod tests {
    use sluice_model::reason::Reason;
    use sluice_view::{Since, State, Step, Told};

    use super::*;
    use crate::findings::tests::overview;
    use crate::rows::tests::{parked, service};

    fn shown(plan: Option<Operation>, calls: Vec<Call>) -> String {
        let since = Since { at: "2026-11-16T02:40:00Z".into(), age_seconds: 65 };
        let explanation = Explanation {
            status: Status::Service(parked(service("shop", "web", State::NotStarted), Reason::QuotaExceeded)),
            summary: "Pending: no load balancer yet.".into(),
            waits_for: Vec::new(),
            timeline: Vec::new(),
            what_to_do: vec!["Raise it. See `sluice explain SGW0008`.".into()],
            plan,
            events: vec![Told {
                at: since,
                warning: true,
                reason: "QuotaExceeded".into(),
                message: "No <more>.".into(),
            }],
            calls,
        };
        detail(&Detail { overview: &overview(), explanation: &explanation })
    }

    #[test]
    fn the_page_has_the_plan_with_its_progress_the_events_and_the_calls() {
        let since = |age_seconds| Since { at: "2026-11-16T02:40:00Z".into(), age_seconds };
        let step = |word: &str, phase, failure: Option<&str>| Step {
            step: word.into(),
            phase,
            took_ms: Some(1_240),
            failure: failure.map(str::to_owned),
        };
        let plan = Operation {
            id: "#12".into(),
            intent: "provision".into(),
            cause: "service applied".into(),
            begun: since(65),
            ended: Some(since(5)),
            failure: Some("no".into()),
            steps: vec![
                step("public-ip", StepPhase::Done, None),
                step("load-balancer", StepPhase::Failed, Some("Azure said <no>")),
                Step { took_ms: None, ..step("register", StepPhase::Waiting, None) },
            ],
        };
        let call = Call {
            at: since(5),
            operation: "#12".into(),
            method: "PUT".into(),
            target: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/loadBalancers/x".into(),
            status: Some(400),
            took_ms: Some(90),
            trouble: Some("LimitReached".into()),
        };
        let html = shown(Some(plan), vec![call]);
        for words in [
            "<progress max=\"3\" value=\"1\" aria-label=\"Steps done\">",
            "done, 1.2 s",
            "Azure said &lt;no&gt;",
            "failed 5 s ago",
            "No &lt;more&gt;.",
            "<td class=\"bad\">400 LimitReached</td>",
            "loadBalancers/x</span>",
            "<code>sluice explain SGW0008</code>",
            "data-of=\"service/5e1f",
        ] {
            assert!(html.contains(words), "{words} is not in {html}");
        }
        assert!(!html.contains(" style="));
    }

    #[test]
    fn what_is_read_aloud_has_no_age_in_it() {
        assert_eq!(
            without_age("Pending for 1 min 5 s: no NAT gateway yet.", 65),
            "Pending: no NAT gateway yet."
        );
        assert_eq!(without_age("In sync for 5 s. Wait for 5 s.", 5), "In sync. Wait for 5 s.");
        assert_eq!(without_age("Not desired.", 65), "Not desired.");
    }

    #[test]
    fn a_service_for_which_nothing_was_done_has_a_page_too() {
        let html = shown(None, Vec::new());
        assert!(html.contains("No recent calls.") && !html.contains("Steps done"));
    }
}
