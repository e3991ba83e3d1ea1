//! What a Service may ask for: each refusal with its text, and how named ports are resolved.

use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use expect_test::expect;
use sluice_model::Family;
use sluice_model::annotations::{INTERNAL, PRIVATE_LINK, PUBLIC_IP_NAME};
use sluice_model::azure::Rule;
use sluice_model::kube::{FamilyPolicy, Protocol, ServicePort, ServiceSpec, TargetPort};
use sluice_model::reason::Reason;

use crate::addresses::PortResolution;
use crate::validate::{is_rejected, validate};

fn port(protocol: Protocol, port: u16, target: u16) -> ServicePort {
    ServicePort { name: "".into(), protocol, port, target: TargetPort::Number(target) }
}

fn named(port: u16, target: &str) -> ServicePort {
    ServicePort { name: "".into(), protocol: Protocol::Tcp, port, target: TargetPort::Name(target.into()) }
}

fn valid() -> ServiceSpec {
    ServiceSpec { ports: vec![port(Protocol::Tcp, 80, 8080)], ..ServiceSpec::default() }
}

fn with_ports(ports: Vec<ServicePort>) -> ServiceSpec {
    ServiceSpec { ports, ..ServiceSpec::default() }
}

/// Both families if possible, the first of these if not.
fn both(families: &[Family]) -> ServiceSpec {
    let family_policy = FamilyPolicy::PreferDualStack;
    ServiceSpec { families: families.to_vec(), family_policy, ..valid() }
}

fn nobody_knows(_: &ServicePort) -> PortResolution {
    PortResolution::Unresolved
}

/// What the owner reads; empty if the Service can be served.
fn refusal(spec: &ServiceSpec) -> String {
    match validate(spec, &[], nobody_knows) {
        Ok(_) => String::new(),
        Err(invalid) => {
            assert_eq!(invalid.reason, Reason::InvalidSpec);
            invalid.text
        }
    }
}

#[test]
fn each_spec_that_cannot_be_served_is_refused_with_its_reason() {
    use Protocol::{Sctp, Tcp, Udp};
    let idle = |text: &str| ServiceSpec { idle_timeout: Some(text.into()), ..valid() };
    let specs = [
        ServiceSpec { rejected_annotations: vec![INTERNAL.into()], ..valid() },
        ServiceSpec { rejected_annotations: vec![PUBLIC_IP_NAME.into()], ..valid() },
        ServiceSpec { rejected_annotations: vec![PRIVATE_LINK.into()], ..valid() },
        ServiceSpec { rejected_annotations: vec!["example.com/odd".into()], ..valid() },
        ServiceSpec { client_ip_affinity: true, ..valid() },
        ServiceSpec { fixed_ip: true, ..valid() },
        ServiceSpec { families: vec![Family::V4, Family::V6], ..valid() },
        ServiceSpec { family_policy: FamilyPolicy::RequireDualStack, ..valid() },
        ServiceSpec { source_ranges: true, ..valid() },
        idle("3"),
        idle("31"),
        idle("4.5"),
        idle("-4"),
        idle("300"),
        idle("soon"),
        idle(""),
        with_ports(vec![port(Sctp, 80, 8080)]),
        with_ports(vec![port(Tcp, 65535, 8080)]),
        with_ports(vec![port(Tcp, 0, 8080)]),
        with_ports(vec![port(Tcp, 80, 0)]),
        with_ports(vec![port(Tcp, 80, 8080), port(Tcp, 81, 8080)]),
        with_ports(vec![port(Udp, 53, 53), port(Udp, 54, 53)]),
        with_ports(vec![port(Tcp, 80, 8080), port(Tcp, 80, 8081)]),
        with_ports(vec![]),
    ];
    let mut text = String::new();
    for spec in &specs {
        let refusal = refusal(spec);
        assert!(!refusal.is_empty(), "{spec:?} is let through");
        text.push_str(&refusal);
        text.push('\n');
    }
    expect![[r#"
        Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
        A public IP of your choice (azure-pip-name, azure-pip-prefix-id, azure-load-balancer-ipv4, azure-load-balancer-ipv6) is not supported; remove the annotation
        Private link services (azure-pls-create) are not supported; remove the annotation
        Annotation example.com/odd is not supported; remove it
        spec.sessionAffinity ClientIP is not supported; set it to None
        spec.loadBalancerIP is not supported; remove it
        More than one IP family is not supported; set spec.ipFamilyPolicy to SingleStack
        More than one IP family is not supported; set spec.ipFamilyPolicy to SingleStack
        spec.loadBalancerSourceRanges: source ranges are not supported, and ignoring them would open the Service to the Internet; remove them
        The idle timeout "3" is invalid; set a whole number of minutes from 4 to 30
        The idle timeout "31" is invalid; set a whole number of minutes from 4 to 30
        The idle timeout "4.5" is invalid; set a whole number of minutes from 4 to 30
        The idle timeout "-4" is invalid; set a whole number of minutes from 4 to 30
        The idle timeout "300" is invalid; set a whole number of minutes from 4 to 30
        The idle timeout "soon" is invalid; set a whole number of minutes from 4 to 30
        The idle timeout "" is invalid; set a whole number of minutes from 4 to 30
        Port 80 uses SCTP, which Azure load balancers do not support; use TCP or UDP
        Port 65535 is invalid; use a port from 1 to 65534
        Port 0 is invalid; use a port from 1 to 65534
        Port 80 has targetPort 0; set another targetPort
        Two ports have the same tcp target port 8080; use different target ports
        Two ports have the same udp target port 53; use different target ports
        Port 80/tcp is defined twice; remove one
        spec.ports is empty; add a port
    "#]].assert_eq(&text);
}

#[test]
fn everything_else_is_served() {
    use Protocol::{Tcp, Udp};
    let idle = |text: &str| ServiceSpec { idle_timeout: Some(text.into()), ..valid() };
    for spec in [
        valid(),
        idle("4"),
        idle("30"),
        ServiceSpec { families: vec![Family::V6], ..valid() },
        both(&[Family::V4, Family::V6]),
        with_ports(vec![port(Tcp, 1, 1), port(Tcp, 65534, 65535)]),
        with_ports(vec![port(Tcp, 53, 53), port(Udp, 53, 53)]),
    ] {
        assert_eq!(refusal(&spec), "", "{spec:?}");
    }
}

#[test]
fn the_family_the_timeout_and_the_rules_come_out_in_order() {
    let spec = ServiceSpec {
        ports: vec![
            port(Protocol::Udp, 53, 5353),
            port(Protocol::Tcp, 443, 8443),
            port(Protocol::Tcp, 80, 8080),
        ],
        families: vec![Family::V6],
        idle_timeout: Some("17".into()),
        ..ServiceSpec::default()
    };
    let valid = validate(&spec, &[], nobody_knows).expect("valid");
    assert_eq!(valid.family, Family::V6);
    let rule = |protocol, frontend_port, backend_port| Rule {
        protocol,
        frontend_port,
        backend_port,
        idle_timeout_minutes: 17,
    };
    assert_eq!(
        valid.rules,
        [rule(Protocol::Tcp, 80, 8080), rule(Protocol::Tcp, 443, 8443), rule(Protocol::Udp, 53, 5353)]
    );
    let both = validate(&both(&[Family::V6, Family::V4]), &[], nobody_knows).expect("valid");
    assert_eq!(both.family, Family::V6, "the first of the two");
    let plain = validate(&self::valid(), &[], nobody_knows).expect("valid");
    assert_eq!((plain.family, plain.rules[0].idle_timeout_minutes), (Family::V4, 4));
}

/// The backend port that a named port gets, or the reason and text.
fn resolved(resolution: PortResolution, live: Option<u16>) -> Result<u16, (Reason, String)> {
    let live: Vec<Rule> = live
        .map(|backend_port| Rule {
            protocol: Protocol::Tcp,
            frontend_port: 80,
            backend_port,
            idle_timeout_minutes: 4,
        })
        .into_iter()
        .collect();
    match validate(&with_ports(vec![named(80, "http")]), &live, |_| resolution) {
        Ok(valid) => Ok(valid.rules[0].backend_port),
        Err(invalid) => Err((invalid.reason, invalid.text)),
    }
}

#[test]
fn a_named_port_is_what_all_endpoints_agree_on() {
    assert_eq!(resolved(PortResolution::Agreed(8080), None), Ok(8080));
    assert_eq!(resolved(PortResolution::Agreed(9090), Some(8080)), Ok(9090));
}

#[test]
fn a_live_rule_keeps_its_port_until_all_agree_on_another() {
    assert_eq!(resolved(PortResolution::Disagree, Some(8080)), Ok(8080));
    assert_eq!(resolved(PortResolution::Unresolved, Some(8080)), Ok(8080));
}

#[test]
fn a_named_port_that_nobody_or_everybody_differently_knows_is_unresolved() {
    let unresolved = |text: &str| Err((Reason::PortUnresolved, text.to_string()));
    assert_eq!(
        resolved(PortResolution::Unresolved, None),
        unresolved("No ready endpoint defines targetPort \"http\"")
    );
    assert_eq!(
        resolved(PortResolution::Disagree, None),
        unresolved("Ready endpoints define different numbers for targetPort \"http\"")
    );
}

#[test]
fn what_is_wrong_for_good_is_said_before_what_may_still_resolve() {
    let spec = with_ports(vec![named(80, "http"), port(Protocol::Sctp, 81, 8081)]);
    let invalid = validate(&spec, &[], nobody_knows).expect_err("invalid");
    assert_eq!(invalid.reason, Reason::InvalidSpec);
}

#[test]
fn what_only_the_endpoints_speak_against_is_not_rejected_for_good() {
    assert!(is_rejected(&with_ports(vec![named(80, "http"), port(Protocol::Sctp, 81, 8081)])));
    assert!(is_rejected(&with_ports(vec![port(Protocol::Tcp, 80, 8080), port(Protocol::Tcp, 81, 8080)])));
    assert!(!is_rejected(&with_ports(vec![named(80, "http"), port(Protocol::Tcp, 81, 8080)])));
    assert!(!is_rejected(&valid()));
}

#[test]
fn a_named_port_that_resolves_to_the_backend_of_another_is_refused() {
    let spec = with_ports(vec![named(80, "http"), port(Protocol::Tcp, 81, 8080)]);
    let invalid = validate(&spec, &[], |_| PortResolution::Agreed(8080)).expect_err("invalid");
    assert_eq!(invalid.text, "Two ports have the same tcp target port 8080; use different target ports");
}

#[test]
fn a_named_port_that_resolves_to_nothing_usable_is_refused() {
    let spec = with_ports(vec![named(80, "http")]);
    assert!(validate(&spec, &[], |_| PortResolution::Agreed(0)).is_err());
}
