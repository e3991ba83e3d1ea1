//! Who else serves Services.
//!
//! Two controllers that write the same Service undo each other's work, and two that write the same
//! gateway lose addresses. What betrays another one: its finalizers on Services, its Lease, and the events
//! that it writes while it works. A finalizer alone may be left over, so it takes two of them for a problem.

use std::time::Duration;

use sluice_k8s::strings::{FINALIZER, PREDECESSOR_FINALIZER, SERVICE_CONTROLLER_FINALIZER};

use super::finding::{Finding, Group};

const GROUP: Group = Group::OtherControllers;
/// How many Services are named at most.
const NAMED_MAX: usize = 3;

/// One Service of type `LoadBalancer`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ServiceFacts {
    pub(super) name: String,
    pub(super) class: Option<String>,
    pub(super) finalizers: Vec<String>,
}

impl ServiceFacts {
    fn has(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|it| it == finalizer)
    }
}

/// The Lease of a cloud controller manager, by the API server's clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LeaseFacts {
    pub(super) holder: String,
    pub(super) renewed_ago: Duration,
    pub(super) duration: Duration,
}

impl LeaseFacts {
    /// A holder that missed two renewals is not at work.
    pub(super) fn is_live(&self) -> bool {
        !self.holder.is_empty() && self.renewed_ago < 2 * self.duration
    }
}

/// All that could be found out.
pub(super) struct Facts<'a> {
    /// The class that we serve; without one we are the service controller.
    pub(super) class: Option<&'a str>,
    /// Somebody has said that the predecessor is off and that its pods may be released.
    pub(super) migrating: bool,
    pub(super) services: &'a [ServiceFacts],
    /// The cloud controller manager's; an error if we may not look.
    pub(super) lease: Result<Option<LeaseFacts>, String>,
    /// Services that the service controller has written an event about in the last hour; an error if we
    /// may not look.
    pub(super) busy_with: Result<Vec<String>, String>,
}

pub(super) fn diagnose(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = predecessor(facts);
    findings.extend(service_controller(facts));
    if let Err(why) = &facts.lease {
        findings.push(Finding::skipped(GROUP, format!("whether a cloud controller manager runs: {why}")));
    }
    findings
}

/// A cloud controller manager in Service Gateway mode writes the same gateway as we do.
///
/// Its mode cannot be seen, only that it runs, which it does for other reasons too, and that Services carry its
/// finalizer, which stays when the mode is off. What carries ours too was taken over; for the rest somebody has
/// to say that the mode is off.
pub(super) fn predecessor(facts: &Facts<'_>) -> Vec<Finding> {
    let theirs: Vec<&ServiceFacts> =
        facts.services.iter().filter(|it| it.has(PREDECESSOR_FINALIZER) && !it.has(FINALIZER)).collect();
    if theirs.is_empty() {
        return vec![Finding::good(
            GROUP,
            "no Service is served by a cloud controller manager in Service Gateway mode",
        )];
    }
    let text = format!(
        "{} the finalizer {PREDECESSOR_FINALIZER} of the cloud controller manager's Service Gateway mode",
        carry(&theirs)
    );
    vec![match &facts.lease {
        Ok(Some(lease)) if lease.is_live() && facts.migrating => Finding::warning(
            GROUP,
            format!("{text}, and it is at work ({})", lease.holder),
            "sluice.migration.enabled says that its Service Gateway mode is off; make sure that it is",
        ),
        Ok(Some(lease)) if lease.is_live() => Finding::problem(
            GROUP,
            format!(
                "{text}, and it is at work ({}): two writers of one gateway lose addresses",
                lease.holder
            ),
            "switch its Service Gateway mode off (serviceGatewayEnabled: false in its cloud config), then say so with \
             sluice.migration.enabled: true and start Sluice",
        ),
        Ok(_) => Finding::warning(
            GROUP,
            format!("{text}; none runs"),
            match facts.class {
                None => "`sluice run` takes these Services over and clears it when they go".to_owned(),
                Some(_) => format!(
                    "Sluice serves one class only and leaves it: take it off by hand, or run without sluice.loadBalancerClass \
                     ({} Services)",
                    theirs.len()
                ),
            },
        ),
        Err(_) => Finding::warning(
            GROUP,
            text,
            "make sure that its Service Gateway mode is off before Sluice starts",
        ),
    }]
}

/// A service controller that makes load balancers of its own for the Services that we serve.
fn service_controller(facts: &Facts<'_>) -> Vec<Finding> {
    if let Some(class) = facts.class {
        let text =
            format!("Sluice serves the class {class} only, and lives beside other service controllers");
        return vec![Finding::good(GROUP, text)];
    }
    let remedy = "switch it off (--controllers=*,-service-lb-controller for the cloud controller manager), or let Sluice \
                  serve a class of its own (sluice.loadBalancerClass)";
    let busy: Vec<&String> = match &facts.busy_with {
        Ok(names) => names.iter().collect(),
        Err(_) => Vec::new(),
    };
    if let Some(first) = busy.first() {
        let text = format!(
            "another service controller is at work: it wrote events about {} in the last hour, {first} among them",
            count(busy.len())
        );
        return vec![Finding::problem(GROUP, text, remedy)];
    }
    let theirs: Vec<&ServiceFacts> = facts
        .services
        .iter()
        .filter(|it| it.class.is_none() && it.has(SERVICE_CONTROLLER_FINALIZER) && !it.has(FINALIZER))
        .collect();
    let runs = matches!(&facts.lease, Ok(Some(lease)) if lease.is_live());
    let mut findings = Vec::new();
    if !theirs.is_empty() {
        let text = format!(
            "{} the finalizer {SERVICE_CONTROLLER_FINALIZER} of another service controller",
            carry(&theirs)
        );
        findings.push(match runs {
            true => Finding::warning(GROUP, format!("{text}, and a cloud controller manager runs; whether its service controller is on cannot be seen"), remedy),
            false => Finding::warning(GROUP, format!("{text}; none runs"), "`sluice run` takes these Services over and clears it when they go"),
        });
    } else if runs {
        findings.push(Finding::warning(
            GROUP,
            "a cloud controller manager runs; whether its service controller is on cannot be seen",
            remedy,
        ));
    } else {
        findings.push(Finding::good(GROUP, "no other service controller is to be seen"));
    }
    if let Err(why) = &facts.busy_with {
        findings.push(Finding::skipped(GROUP, format!("events of another service controller: {why}")));
    }
    findings
}

fn count(services: usize) -> String {
    match services {
        1 => "1 Service".to_owned(),
        several => format!("{several} Services"),
    }
}

/// `3 Services (a/x, a/y, a/z, …) carry`.
fn carry(services: &[&ServiceFacts]) -> String {
    let mut names: Vec<&str> = services.iter().take(NAMED_MAX).map(|it| it.name.as_str()).collect();
    if services.len() > NAMED_MAX {
        names.push("…");
    }
    let verb = if services.len() == 1 { "carries" } else { "carry" };
    format!("{} ({}) {verb}", count(services.len()), names.join(", "))
}
