//! The page of one service or egress: how it stands, why, what it waits for, and what was done.

use maud::{Markup, html};
use sluice_view::moment::span;
use sluice_view::{Explanation, Overview, Status};

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
        nav.crumbs aria-label="Where you are" { a href="/" { "Findings" } " / " (kind(&explanation.status)) }
        div #detail data-busy[explanation.status.progress().operation.is_some()] {
            (head(explanation, &title))
            div.columns {
                div {
                    (waits(explanation))
                    (timeline(explanation))
                }
                div { (figures(explanation)) }
            }
        }
    };
    whole(&title, Which::Detail(&asked_for), Some(of.overview), &main)
}

fn kind(status: &Status) -> &'static str {
    match status {
        Status::Service(_) => "service",
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
                (pill(progress.state))
                @if progress.parked { span.pill.is-trouble { "parked" } }
                @if let Some(ip) = progress.public_ip { span.ip { (ip) } }
            }
            p.summary #summary aria-live="polite" { (explanation.summary) }
            @if !explanation.what_to_do.is_empty() {
                h2 { "What to do" }
                ul.todo { @for step in &explanation.what_to_do { li { (ticked(step)) } } }
            }
        }
    }
}

fn waits(explanation: &Explanation) -> Markup {
    html! {
        @if !explanation.waits_for.is_empty() {
            section.panel aria-labelledby="waits-title" {
                h2 #waits-title { "It waits for" }
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
            @if addresses.wanted > 0 {
                progress.wide max=(addresses.wanted) value=(addresses.programmed.min(addresses.wanted))
                    aria-label="Addresses programmed" {}
            }
            dl.figures {
                div { dt { "programmed" } dd { (grouped(addresses.programmed)) } }
                div { dt { "wanted" } dd { (grouped(addresses.wanted)) } }
                div { dt { "buffered until it is ready" } dd { (grouped(addresses.buffered)) } }
                div { dt { "that Azure may still have" } dd { (grouped(addresses.mapped)) } }
                div { dt { "waiting for their node" } dd { (grouped(addresses.unplaceable)) } }
                div { dt { "refused by Azure" } dd { (grouped(addresses.quarantined)) } }
            }
        }
        section.panel aria-labelledby="facts-title" {
            h2 #facts-title { "Facts" }
            dl.figures {
                div { dt { "in this state" } dd { (span(progress.since.age_seconds)) } }
                div { dt { "wanted" } dd { (if progress.wanted { "yes" } else { "no" }) } }
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
                h2 #failure-title { "Last failure" }
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
            @if explanation.timeline.is_empty() { p.muted { "Nothing has happened yet." } }
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
