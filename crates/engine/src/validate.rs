//! Turns what a Service asks for into load-balancing rules, or says exactly why not.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sluice_model::Family;
use sluice_model::annotations::why_rejected;
use sluice_model::azure::Rule;
use sluice_model::kube::{FamilyPolicy, Protocol, ServicePort, ServiceSpec, TargetPort};
use sluice_model::reason::Reason;

use crate::addresses::PortResolution;

const IDLE_TIMEOUT_DEFAULT_MINUTES: u8 = 4;

/// What is wrong with a Service, and the reason word for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid {
    /// `InvalidSpec` or `PortUnresolved`.
    pub reason: Reason,
    /// A sentence for its owner.
    pub text: String,
}

/// A Service that can be served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Valid {
    /// The family of its public IP.
    pub family: Family,
    /// The rules, sorted.
    pub rules: Vec<Rule>,
    /// A named port that the endpoints do not agree on and that stays what it was; what is wrong.
    pub unresolved: Option<String>,
}

/// Whether a spec is rejected whatever its endpoints say.
pub fn is_rejected(spec: &ServiceSpec) -> bool {
    validate(spec, &[], |_| PortResolution::Unresolved)
        .is_err_and(|invalid| invalid.reason == Reason::InvalidSpec)
}

/// Checks a spec. `resolve` looks a named port up in the EndpointSlices; `live` are the rules that
/// the load balancer has now, whose ports stay until all endpoints agree on another.
pub fn validate(
    spec: &ServiceSpec,
    live: &[Rule],
    resolve: impl Fn(&ServicePort) -> PortResolution,
) -> Result<Valid, Invalid> {
    let refuse = |text: String| Err(Invalid { reason: Reason::InvalidSpec, text });
    if let Some(key) = spec.rejected_annotations.first() {
        let unknown = || format!("Annotation {key} is not supported; remove it");
        return refuse(why_rejected(key).map_or_else(unknown, Into::into));
    }
    if spec.client_ip_affinity {
        return refuse("spec.sessionAffinity ClientIP is not supported; set it to None".into());
    }
    if spec.fixed_ip {
        return refuse("spec.loadBalancerIP is not supported; remove it".into());
    }
    if spec.source_ranges {
        return refuse("spec.loadBalancerSourceRanges: source ranges are not supported, and ignoring them would open the Service to the Internet; remove them".into());
    }
    let asks_for_both = match spec.family_policy {
        FamilyPolicy::SingleStack => spec.families.len() > 1,
        FamilyPolicy::PreferDualStack => false,
        FamilyPolicy::RequireDualStack => true,
    };
    if asks_for_both {
        return refuse(
            "More than one IP family is not supported; set spec.ipFamilyPolicy to SingleStack".into(),
        );
    }
    let idle_timeout_minutes = match spec.idle_timeout.as_deref() {
        None => IDLE_TIMEOUT_DEFAULT_MINUTES,
        Some(text) => match text.parse::<u8>() {
            Ok(minutes @ 4..=30) => minutes,
            _ => {
                return refuse(format!(
                    "The idle timeout {text:?} is invalid; set a whole number of minutes from 4 to 30"
                ));
            }
        },
    };
    if spec.ports.is_empty() {
        return refuse("spec.ports is empty; add a port".into());
    }
    let mut rules = Vec::with_capacity(spec.ports.len());
    let (mut unresolved, mut stays) = (None, None);
    for port in &spec.ports {
        if port.protocol == Protocol::Sctp {
            return refuse(format!(
                "Port {} uses SCTP, which Azure load balancers do not support; use TCP or UDP",
                port.port
            ));
        }
        if !(1..=65534).contains(&port.port) {
            return refuse(format!("Port {} is invalid; use a port from 1 to 65534", port.port));
        }
        let backend_port = match &port.target {
            TargetPort::Number(0) => {
                return refuse(format!("Port {} has targetPort 0; set another targetPort", port.port));
            }
            TargetPort::Number(number) => *number,
            TargetPort::Name(name) => {
                let kept = live
                    .iter()
                    .find(|rule| rule.protocol == port.protocol && rule.frontend_port == port.port)
                    .map(|rule| rule.backend_port);
                let why = match resolve(port) {
                    PortResolution::Agreed(0) => {
                        return refuse(format!(
                            "The endpoints define port {name:?} as 0; correct the container port"
                        ));
                    }
                    PortResolution::Agreed(number) => Ok(number),
                    PortResolution::Unresolved => {
                        Err(format!("No ready endpoint defines targetPort {name:?}"))
                    }
                    PortResolution::Disagree => {
                        Err(format!("Ready endpoints define different numbers for targetPort {name:?}"))
                    }
                };
                match (why, kept) {
                    (Ok(number), _) => number,
                    (Err(why), Some(number)) => {
                        stays = Some(format!("{why}; the load balancer keeps port {number}"));
                        number
                    }
                    (Err(why), None) => {
                        unresolved = Some(why);
                        continue;
                    }
                }
            }
        };
        rules.push(Rule {
            protocol: port.protocol,
            frontend_port: port.port,
            backend_port,
            idle_timeout_minutes,
        });
    }
    rules.sort_unstable();
    for pair in rules.windows(2) {
        if let [a, b] = pair
            && (a.protocol, a.frontend_port) == (b.protocol, b.frontend_port)
        {
            return refuse(format!(
                "Port {}/{} is defined twice; remove one",
                a.frontend_port,
                a.protocol.word()
            ));
        }
    }
    let mut backends: Vec<_> = rules.iter().map(|rule| (rule.protocol, rule.backend_port)).collect();
    backends.sort_unstable();
    for pair in backends.windows(2) {
        if let [a, b] = pair
            && a == b
        {
            let (protocol, port) = a;
            return refuse(format!(
                "Two ports have the same {} target port {port}; use different target ports",
                protocol.word()
            ));
        }
    }
    if let Some(text) = unresolved {
        return Err(Invalid { reason: Reason::PortUnresolved, text });
    }
    let family = spec.families.first().copied().unwrap_or(Family::V4);
    Ok(Valid { family, rules, unresolved: stays })
}
