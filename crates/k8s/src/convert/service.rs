//! Services: which are ours, and what their owners want.

use std::sync::Arc;

use sluice_model::address::parse_ip;
use sluice_model::annotations::{self, Treatment};
use sluice_model::kube::{
    Concern, Condition, ConditionKind, FamilyPolicy, Protocol, ServiceObject, ServicePort, ServiceSpec,
    TargetPort,
};
use sluice_model::reason::{Reason, Severity};
use sluice_model::{Family, ObjectName};

use super::identity::{self, Unreadable, label};
use super::words::Words;
use super::{Selection, published_in, without_published};
use crate::light;
use crate::strings::{FINALIZER, PUBLISHED_IP, condition_type, is_inherited};

/// A Service in the engine's words.
///
/// One that is nothing to us comes with an empty spec: the engine remembers only that it lives.
pub(crate) fn service(
    light: &light::Service,
    selection: &Selection,
    words: &mut Words,
) -> Result<ServiceObject, Unreadable> {
    let meta = &light.metadata;
    let name = identity::name("Service", meta, words)?;
    let selected = selection.takes(&light.spec);
    let finalizer = meta.finalizers.iter().any(|it| it == FINALIZER);
    let inherited = selection.inherits_from(&light.spec) && meta.finalizers.iter().any(|it| is_inherited(it));
    let published = published(&light.status);
    let is_ours = selected || finalizer || published.is_some();
    Ok(ServiceObject {
        uid: identity::uid("Service", meta)?,
        version: identity::version("Service", meta)?,
        selected,
        load_balancer: is_load_balancer(&light.spec),
        deleting: meta.deletion_timestamp.is_some(),
        finalizer,
        inherited,
        spec: if is_ours { spec(light, words)? } else { ServiceSpec::default() },
        ingress: light.status.load_balancer.ingress.iter().filter_map(address).collect(),
        published,
        annotated: annotated(meta),
        conditions: light.status.conditions.iter().filter_map(|it| condition(it, &name)).collect(),
        name,
    })
}

impl Selection {
    /// Type `LoadBalancer` and of our class; without a class of ours, those without one.
    fn takes(&self, spec: &light::ServiceSpec) -> bool {
        is_load_balancer(spec) && class(spec) == self.class.as_deref()
    }

    /// Whether finalizers of other service controllers are ours to clear. Those on a Service of another class
    /// belong to the controller of that class.
    fn inherits_from(&self, spec: &light::ServiceSpec) -> bool {
        self.class.is_none() && class(spec).is_none()
    }
}

fn is_load_balancer(spec: &light::ServiceSpec) -> bool {
    spec.kind.as_deref() == Some("LoadBalancer")
}

fn class(spec: &light::ServiceSpec) -> Option<&str> {
    spec.load_balancer_class.as_deref().filter(|class| !class.is_empty())
}

fn spec(light: &light::Service, words: &mut Words) -> Result<ServiceSpec, Unreadable> {
    let (meta, spec) = (&light.metadata, &light.spec);
    let mut ports = Vec::with_capacity(spec.ports.len());
    for port in &spec.ports {
        ports.push(
            service_port(port, words)
                .map_err(|why| Unreadable(format!("{} skipped: {why}", label("Service", meta))))?,
        );
    }
    let (mut rejected_annotations, mut idle_annotations) = (Vec::new(), Vec::new());
    for (key, value) in &meta.annotations.0 {
        match annotations::treatment(key, value) {
            Treatment::Rejected => rejected_annotations.push(words.share(key)),
            Treatment::WithoutEffect => idle_annotations.push(words.share(key)),
            Treatment::Read | Treatment::Nothing => {}
        }
    }
    Ok(ServiceSpec {
        ports,
        families: spec.ip_families.iter().filter_map(|word| family(word)).collect(),
        family_policy: match spec.ip_family_policy.as_deref() {
            Some("PreferDualStack") => FamilyPolicy::PreferDualStack,
            Some("RequireDualStack") => FamilyPolicy::RequireDualStack,
            _ => FamilyPolicy::SingleStack,
        },
        client_ip_affinity: spec.session_affinity.as_deref() == Some("ClientIP"),
        fixed_ip: spec.load_balancer_ip.as_deref().is_some_and(|ip| !ip.is_empty()),
        source_ranges: !spec.load_balancer_source_ranges.is_empty(),
        rejected_annotations,
        idle_timeout: meta.annotations.0.get(annotations::IDLE_TIMEOUT).map(|text| words.share(text)),
        idle_annotations,
    })
}

fn service_port(light: &light::ServicePort, words: &mut Words) -> Result<ServicePort, String> {
    let number = |value: i64, what: &str| {
        u16::try_from(value).map_err(|_| format!("{what} {value} is not a port number"))
    };
    let port = number(light.port.unwrap_or(0), "port")?;
    let target = match &light.target_port {
        // As the API server's own defaulting has it.
        None | Some(light::IntOrString::Int(0)) => TargetPort::Number(port),
        Some(light::IntOrString::Int(value)) => TargetPort::Number(number(*value, "targetPort")?),
        Some(light::IntOrString::String(word)) if word.is_empty() => TargetPort::Number(port),
        Some(light::IntOrString::String(word)) => match word.parse::<u16>() {
            Ok(value) => TargetPort::Number(value),
            Err(_) => TargetPort::Name(words.share(word)),
        },
    };
    let name: Arc<str> = words.share(light.name.as_deref().unwrap_or_default());
    // A protocol of a later day is as little carried as SCTP; taking it for TCP would be a guess.
    let protocol = protocol(light.protocol.as_deref()).unwrap_or(Protocol::Sctp);
    Ok(ServicePort { name, protocol, port, target })
}

/// The protocol, TCP when absent; `None` when we do not know it.
pub(crate) fn protocol(word: Option<&str>) -> Option<Protocol> {
    match word {
        None | Some("" | "TCP") => Some(Protocol::Tcp),
        Some("UDP") => Some(Protocol::Udp),
        Some("SCTP") => Some(Protocol::Sctp),
        Some(_) => None,
    }
}

/// The family that a word of Kubernetes means.
pub(crate) fn family(word: &str) -> Option<Family> {
    match word {
        "IPv4" => Some(Family::V4),
        "IPv6" => Some(Family::V6),
        _ => None,
    }
}

fn address(entry: &light::AddressOf) -> Option<std::net::IpAddr> {
    parse_ip(entry.ip.as_deref()?).ok()
}

fn annotated(meta: &light::Meta) -> Option<std::net::IpAddr> {
    parse_ip(meta.annotations.0.get(PUBLISHED_IP)?).ok()
}

fn published(status: &light::ServiceStatus) -> Option<std::net::IpAddr> {
    let serving = condition_type(ConditionKind::Serving);
    let ours = status.conditions.iter().find(|it| it.kind.as_deref() == Some(serving))?;
    published_in(ours.message.as_deref()?)
}

/// One of our two conditions. A word that we do not know is no condition of ours, so it is written anew.
fn condition(light: &light::Condition, service: &ObjectName) -> Option<Condition> {
    let kind = [ConditionKind::Provisioning, ConditionKind::Serving]
        .into_iter()
        .find(|kind| light.kind.as_deref() == Some(condition_type(*kind)))?;
    let reason = Reason::from_word(light.reason.as_deref()?)?;
    let holds = match light.status.as_deref() {
        Some("True") => true,
        Some("False") => false,
        _ => return None,
    };
    let message = without_published(light.message.as_deref().unwrap_or_default());
    let concern = Concern::in_message(message);
    let has_details = kind == ConditionKind::Provisioning
        && reason.row().severity >= Severity::Warning
        && message != reason.message(concern, Some(service), None);
    let message = if has_details { message.into() } else { Box::default() };
    Some(Condition { message, ..Condition::new(kind, holds, reason, concern) })
}
