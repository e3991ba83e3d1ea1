//! Services.

use std::sync::Arc;

use sluice_model::Family;
use sluice_model::kube::{
    Concern, Condition, ConditionKind, FamilyPolicy, Protocol, ServiceObject, ServicePort, ServiceSpec,
    TargetPort,
};
use sluice_model::reason::Reason;

use super::*;

const IDLE: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";

fn try_service(with: Value, class: Option<&str>) -> Result<ServiceObject, Unreadable> {
    let base = json!({
        "metadata": metadata(),
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    });
    let light = serde_json::from_value(overlaid(base, with)).unwrap();
    service(&light, &Selection { class: class.map(String::from) }, &mut Words::default())
}

fn read(with: Value) -> ServiceObject {
    try_service(with, None).unwrap()
}

fn annotated(key: &str, value: &str) -> ServiceSpec {
    read(json!({"metadata": {"annotations": {key: value}}})).spec
}

#[test]
fn a_plain_service_is_read_whole() {
    let all = read(json!({
        "metadata": {"finalizers": ["service.kubernetes.io/load-balancer-cleanup", "sluice.dev/cleanup"],
            "deletionTimestamp": "2026-11-16T02:39:47Z", "annotations": {IDLE: "17"}},
        "spec": {"clusterIP": "10.96.0.7", "ipFamilies": ["IPv6"], "sessionAffinity": "None",
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": "web", "nodePort": 31000},
                {"name": "dns", "protocol": "UDP", "port": 53, "targetPort": 5353}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "20.1.2.3", "ipMode": "VIP"}, {"hostname": "x.example"}]},
            "conditions": [
                {"type": "Someone's", "status": "True", "reason": "Provisioned"},
                {"type": "LoadBalancerProvisioning", "status": "False", "reason": "Provisioned"},
                {"type": "LoadBalancerServing", "status": "True", "reason": "Provisioned",
                    "message": "Reached at 20.1.2.3."}]},
    }));
    let port = |name: &str, protocol, port, target| ServicePort { name: name.into(), protocol, port, target };
    let expected = ServiceObject {
        uid: sluice_model::Uid::parse(UID).unwrap(),
        name: sluice_model::ObjectName::new("shop", "web"),
        version: 41,
        selected: true,
        load_balancer: true,
        deleting: true,
        finalizer: true,
        inherited: true,
        spec: ServiceSpec {
            ports: vec![
                port("http", Protocol::Tcp, 80, TargetPort::Name("web".into())),
                port("dns", Protocol::Udp, 53, TargetPort::Number(5353)),
            ],
            families: vec![Family::V6],
            idle_timeout: Some("17".into()),
            ..ServiceSpec::default()
        },
        ingress: ips(&["20.1.2.3"]),
        published: Some("20.1.2.3".parse().unwrap()),
        annotated: None,
        conditions: vec![
            Condition::new(ConditionKind::Provisioning, false, Reason::Provisioned, Concern::Resources),
            Condition::new(ConditionKind::Serving, true, Reason::Provisioned, Concern::Resources),
        ],
    };
    assert_eq!(all, expected);
}

#[test]
fn a_service_is_selected_by_its_type_and_class() {
    let of_class = |class: Value| json!({"spec": {"loadBalancerClass": class}});
    let selected = |with: Value, class| try_service(with, class).unwrap().selected;
    assert!(selected(json!({}), None));
    assert!(selected(of_class(json!("")), None));
    assert!(!selected(of_class(json!("sluice.dev/gateway")), None));
    assert!(selected(of_class(json!("sluice.dev/gateway")), Some("sluice.dev/gateway")));
    assert!(!selected(of_class(json!("other")), Some("sluice.dev/gateway")));
    assert!(!selected(json!({}), Some("sluice.dev/gateway")));
    for kind in ["ClusterIP", "NodePort", "ExternalName", ""] {
        assert!(!selected(json!({"spec": {"type": kind}}), None), "{kind}");
    }
}

#[test]
fn a_service_that_is_nothing_to_us_is_told_without_its_spec() {
    let cluster_ip = json!({"spec": {"type": "ClusterIP"}});
    let bystander = read(cluster_ip.clone());
    assert_eq!((bystander.selected, bystander.spec), (false, ServiceSpec::default()));
    // With our finalizer, or an address of ours, it is ours to clean up.
    let held =
        read(overlaid(cluster_ip.clone(), json!({"metadata": {"finalizers": ["sluice.dev/cleanup"]}})));
    assert_eq!((held.finalizer, held.spec.ports.len()), (true, 1));
    let serving = json!([{"type": "LoadBalancerServing", "message": "Reached at 20.1.2.3."}]);
    let shown = read(overlaid(cluster_ip, json!({"status": {"conditions": serving}})));
    assert_eq!((shown.published, shown.spec.ports.len()), (Some("20.1.2.3".parse().unwrap()), 1));
}

#[test]
fn the_annotation_is_read_beside_the_condition() {
    let read = |condition: Option<&str>, annotation: &str| {
        let conditions =
            condition.map(|message| json!([{"type": "LoadBalancerServing", "message": message}]));
        let service = read(json!({
            "metadata": {"annotations": {"sluice.dev/published-ip": annotation}},
            "status": {"conditions": conditions},
        }));
        (service.published, service.annotated)
    };
    let ip = |text: &str| Some(text.parse().unwrap());
    assert_eq!(read(None, "20.1.2.3"), (None, ip("20.1.2.3")));
    assert_eq!(read(Some("Reached at 20.1.2.4."), "20.1.2.3"), (ip("20.1.2.4"), ip("20.1.2.3")));
    assert_eq!(read(Some("Reached at 20.1.2.4."), "not an IP"), (ip("20.1.2.4"), None));
}

#[test]
fn finalizers_are_inherited_by_the_service_controller_alone_and_not_from_other_classes() {
    let inherited = |finalizer: &str, spec: Value, class: Option<&str>| {
        let with = json!({"metadata": {"finalizers": ["example.com/hold", finalizer]}, "spec": spec});
        try_service(with, class).unwrap().inherited
    };
    for theirs in ["service.kubernetes.io/load-balancer-cleanup", "servicegateway.azure.com/service-cleanup"]
    {
        assert!(inherited(theirs, json!({}), None), "{theirs}");
        assert!(inherited(theirs, json!({"type": "ClusterIP"}), None), "{theirs}");
        assert!(!inherited(theirs, json!({"loadBalancerClass": "other"}), None), "{theirs}");
        assert!(!inherited(theirs, json!({}), Some("sluice.dev/gateway")), "{theirs}");
    }
    assert!(!inherited("sluice.dev/cleanup", json!({}), None));
}

#[test]
fn a_target_port_that_is_not_said_is_the_port_itself() {
    let targets = |value: Value| {
        let port = overlaid(json!({"port": 80}), value);
        read(json!({"spec": {"ports": [port]}})).spec.ports.remove(0).target
    };
    for absent in
        [json!({}), json!({"targetPort": null}), json!({"targetPort": 0}), json!({"targetPort": ""})]
    {
        assert_eq!(targets(absent.clone()), TargetPort::Number(80), "{absent}");
    }
    assert_eq!(targets(json!({"targetPort": 8080})), TargetPort::Number(8080));
    assert_eq!(targets(json!({"targetPort": "8080"})), TargetPort::Number(8080));
    assert_eq!(targets(json!({"targetPort": "http"})), TargetPort::Name("http".into()));
}

#[test]
fn a_protocol_that_we_do_not_know_is_never_taken_for_tcp() {
    let protocol = |value: Value| {
        let port = overlaid(json!({"port": 80}), json!({"protocol": value}));
        read(json!({"spec": {"ports": [port]}})).spec.ports[0].protocol
    };
    assert_eq!(protocol(Value::Null), Protocol::Tcp);
    assert_eq!(protocol(json!("TCP")), Protocol::Tcp);
    assert_eq!(protocol(json!("UDP")), Protocol::Udp);
    assert_eq!(protocol(json!("SCTP")), Protocol::Sctp);
    assert_eq!(protocol(json!("QUIC")), Protocol::Sctp);
}

#[test]
fn what_is_refused_later_is_seen_here() {
    assert!(read(json!({"spec": {"sessionAffinity": "ClientIP"}})).spec.client_ip_affinity);
    assert!(read(json!({"spec": {"loadBalancerIP": "20.1.2.3"}})).spec.fixed_ip);
    assert!(!read(json!({"spec": {"loadBalancerIP": ""}})).spec.fixed_ip);
    assert_eq!(read(json!({"spec": {"ipFamilies": ["IPv4", "IPv6"]}})).spec.families, Family::ALL);
    let policy = |word: &str| read(json!({"spec": {"ipFamilyPolicy": word}})).spec.family_policy;
    assert_eq!(policy("SingleStack"), FamilyPolicy::SingleStack);
    assert_eq!(policy("PreferDualStack"), FamilyPolicy::PreferDualStack);
    assert_eq!(policy("RequireDualStack"), FamilyPolicy::RequireDualStack);
    assert!(read(json!({"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}})).spec.source_ranges);
    assert!(!read(json!({"spec": {"loadBalancerSourceRanges": []}})).spec.source_ranges);
    assert_eq!(annotated(IDLE, " 4 minutes").idle_timeout.as_deref(), Some(" 4 minutes"));
}

#[test]
fn annotations_that_ask_for_less_exposure_or_another_ip_are_rejected() {
    for key in [
        "azure-load-balancer-internal",
        "azure-allowed-ip-ranges",
        "azure-allowed-service-tags",
        "azure-deny-all-except-load-balancer-source-ranges",
        "azure-load-balancer-ipv4",
        "azure-pip-name",
        "azure-pip-name-ipv6",
        "azure-pip-prefix-id",
        "azure-pls-create",
        "load-balancer-source-ranges",
    ] {
        let key = format!("service.beta.kubernetes.io/{key}");
        let asked = annotated(&key, "true");
        assert_eq!(asked.rejected_annotations, [Arc::<str>::from(key.as_str())]);
        assert!(asked.idle_annotations.is_empty(), "{key} is not just without effect");
        assert!(annotated(&key, " ").rejected_annotations.is_empty(), "{key} asks for nothing");
    }
}

#[test]
fn annotations_without_effect_are_named_and_others_are_not() {
    let spec = read(json!({"metadata": {"annotations": {
        "service.beta.kubernetes.io/azure-pip-tags": "a=b",
        "service.beta.kubernetes.io/azure-dns-label-name": "shop",
        "service.beta.kubernetes.io/azure-load-balancer-internal": "false",
        "service.beta.kubernetes.io/aws-load-balancer-type": "nlb",
        "shop.example/azure-dns-label-name": "x",
        IDLE: "4",
    }}}))
    .spec;
    let named: Vec<&str> = spec.idle_annotations.iter().map(|key| &**key).collect();
    assert_eq!(
        named,
        ["service.beta.kubernetes.io/azure-dns-label-name", "service.beta.kubernetes.io/azure-pip-tags"]
    );
    assert!(spec.rejected_annotations.is_empty());
}

#[test]
fn a_condition_in_unknown_words_is_not_ours() {
    let conditions = |reason: &str, status: &str| {
        let one = json!([{"type": "LoadBalancerServing", "status": status, "reason": reason}]);
        read(json!({"status": {"conditions": one}})).conditions.len()
    };
    assert_eq!(conditions("Provisioned", "True"), 1);
    assert_eq!(conditions("Magic", "True"), 0);
    assert_eq!(conditions("Provisioned", "Unknown"), 0);
    for concern in Concern::ALL {
        let message = format!("{} Azure does not answer.", concern.sentence().unwrap_or_default());
        let one = json!([{"type": "LoadBalancerProvisioning", "status": "True", "reason": "AzureUnavailable", "message": message}]);
        let read = read(json!({"status": {"conditions": one}}));
        assert_eq!(read.conditions[0].concern, concern, "{message}");
    }
}

#[test]
fn the_reasons_of_version_0_1_are_still_read_from_conditions() {
    for (word, reason) in [("Refused", Reason::Rejected), ("KubernetesRefused", Reason::KubernetesRejected)] {
        let one = json!([{"type": "LoadBalancerProvisioning", "status": "True", "reason": word}]);
        let read = read(json!({"status": {"conditions": one}}));
        assert_eq!(read.conditions[0].reason, reason, "{word}");
        assert_ne!(reason.word(), word, "it is no longer written");
    }
}

#[test]
fn only_an_object_without_identity_is_skipped_and_the_sentence_names_it() {
    let why = |with: Value| try_service(with, None).unwrap_err().to_string();
    assert_eq!(
        why(json!({"metadata": {"uid": "web"}})),
        "Service shop/web skipped: uid \"web\" is not a UID (8-4-4-4-12 hexadecimal digits)"
    );
    assert_eq!(
        why(json!({"metadata": {"resourceVersion": "abc"}})),
        "Service shop/web skipped: resourceVersion \"abc\" is not a number"
    );
    assert!(why(json!({"metadata": {"name": null}})).contains("has no name"));
    assert!(why(json!({"spec": {"ports": [{"port": 70000}]}})).contains("port 70000 is not a port number"));
    assert!(why(json!({"spec": {"ports": [{"port": 80, "targetPort": -1}]}})).contains("targetPort -1"));
}
