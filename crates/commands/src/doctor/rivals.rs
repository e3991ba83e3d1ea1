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
/// What becomes of a finalizer that is left over.
const TAKEN_OVER: &str = "no action needed: `sluice run` takes over these Services and removes the finalizer when \
                          they are deleted";

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
    /// `sluice.migration.enabled` is set.
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
        findings.push(Finding::skipped(GROUP, format!("cloud controller manager: not checked ({why})")));
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
        return vec![Finding::good(GROUP, "cloud controller manager in Service Gateway mode: not detected")];
    }
    let mark = format!("its Service Gateway finalizer {PREDECESSOR_FINALIZER} is on {}", named(&theirs));
    vec![match &facts.lease {
        Ok(Some(lease)) if lease.is_live() && facts.migrating => Finding::warning(
            GROUP,
            format!("cloud controller manager: running ({}; {mark})", lease.holder),
            "make sure that serviceGatewayEnabled is false in its cloud config, as sluice.migration.enabled: true \
             asserts",
        ),
        Ok(Some(lease)) if lease.is_live() => Finding::problem(
            GROUP,
            format!(
                "cloud controller manager: running ({}; {mark}); two controllers would overwrite each other's \
                 addresses in the gateway",
                lease.holder
            ),
            "set serviceGatewayEnabled: false in the cloud config of the cloud controller manager, set \
             sluice.migration.enabled: true, then start Sluice",
        ),
        Ok(_) => Finding::warning(
            GROUP,
            format!("cloud controller manager: not running ({mark})"),
            match facts.class {
                None => TAKEN_OVER.to_owned(),
                Some(class) => format!(
                    "remove the finalizer from {}, or run without sluice.loadBalancerClass; Sluice serves only class \
                     {class} and does not remove it",
                    count(theirs.len())
                ),
            },
        ),
        Err(_) => Finding::warning(
            GROUP,
            format!("cloud controller manager: unknown whether it is running ({mark})"),
            "make sure that serviceGatewayEnabled is false in its cloud config before Sluice starts",
        ),
    }]
}

/// A service controller that makes load balancers of its own for the Services that we serve.
fn service_controller(facts: &Facts<'_>) -> Vec<Finding> {
    if let Some(class) = facts.class {
        let text = format!("other service controllers: no conflict (Sluice serves only class {class})");
        return vec![Finding::good(GROUP, text)];
    }
    let remedy = "disable it (--controllers=*,-service-lb-controller on the cloud controller manager), or set \
                  sluice.loadBalancerClass";
    let busy: Vec<&String> = match &facts.busy_with {
        Ok(names) => names.iter().collect(),
        Err(_) => Vec::new(),
    };
    if let Some(first) = busy.first() {
        let text = format!(
            "other service controller: running (it recorded events on {} in the last hour, for example {first})",
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
        let mark = format!("its finalizer {SERVICE_CONTROLLER_FINALIZER} is on {}", named(&theirs));
        findings.push(match runs {
            true => Finding::warning(
                GROUP,
                format!(
                    "other service controller: possibly running (a cloud controller manager runs; {mark})"
                ),
                remedy,
            ),
            false => {
                Finding::warning(GROUP, format!("other service controller: not running ({mark})"), TAKEN_OVER)
            }
        });
    } else if runs {
        findings.push(Finding::warning(
            GROUP,
            "other service controller: possibly running (a cloud controller manager runs)",
            remedy,
        ));
    } else {
        findings.push(Finding::good(GROUP, "other service controller: not detected"));
    }
    if let Err(why) = &facts.busy_with {
        findings.push(Finding::skipped(
            GROUP,
            format!("events of other service controllers: not checked ({why})"),
        ));
    }
    findings
}

fn count(services: usize) -> String {
    match services {
        1 => "1 Service".to_owned(),
        several => format!("{several} Services"),
    }
}

/// `4 Services: a/x, a/y, a/z, …`.
fn named(services: &[&ServiceFacts]) -> String {
    let mut names: Vec<&str> = services.iter().take(NAMED_MAX).map(|it| it.name.as_str()).collect();
    if services.len() > NAMED_MAX {
        names.push("…");
    }
    format!("{}: {}", count(services.len()), names.join(", "))
}
