//! Before → message, for diagnoses that look at several things at once.

use crate::doctor::Mark;
use std::time::Duration;

use expect_test::expect;
use sluice_engine::GatewayMode;
use sluice_model::azure::{ETag, Gateway, Meta, Provisioning, Subnet, Tags};
use sluice_model::names::{CLUSTER_TAG, Scope};

use super::finding::told;
use super::gateway::{self, Facts as GatewayFacts};
use super::rivals::{self, Facts, LeaseFacts, ServiceFacts};
use crate::config::{ConfigArguments, Environment, load};

fn scope() -> Scope {
    Scope {
        subscription: "s".into(),
        resource_group: "rg".into(),
        network_resource_group: "net".into(),
        virtual_network: "vnet".into(),
        subnet: "nodes".into(),
        gateway: "gw".into(),
        cluster_id: "uid-1".into(),
    }
}

fn gateway_of(cluster: Option<&str>, provisioning: Provisioning) -> Gateway {
    let scope = scope();
    let tags: Tags = cluster.map(|id| (CLUSTER_TAG.into(), id.into())).into_iter().collect();
    Gateway {
        meta: Meta { id: scope.gateway_id(), tags, etag: ETag("1".into()), provisioning },
        virtual_network: scope.virtual_network_id(),
        route_target_subnet: scope.subnet_id(),
        route_target_address: None,
        route_target_address_v6: None,
        document: "".into(),
    }
}

fn subnet_of(gateway: Option<&str>) -> Subnet {
    let gateway = gateway.map(|name| scope().resource("serviceGateways", name));
    Subnet { id: scope().subnet_id(), etag: ETag("1".into()), gateway, rest: "{}".into() }
}

fn of_gateway(mode: GatewayMode, gateway: Option<&Gateway>, subnet: Option<&Subnet>) -> String {
    let facts =
        GatewayFacts { scope: &scope(), mode, knows_cluster: true, gateway: Ok(gateway), subnet: Ok(subnet) };
    told(&gateway::diagnose(&facts))
}

#[test]
fn a_gateway_that_is_ours_and_attached_is_good() {
    let gateway = gateway_of(Some("uid-1"), Provisioning::Succeeded);
    for mode in [GatewayMode::Ensure, GatewayMode::Verify] {
        assert_eq!(
            of_gateway(mode, Some(&gateway), Some(&subnet_of(Some("gw")))),
            "✓ gateway gw: managed by this cluster\n✓ subnet vnet/nodes: attached to gateway gw"
        );
    }
}

#[test]
fn what_is_missing_is_made_or_named_as_the_mode_says() {
    expect![[r#"
        ✓ gateway gw: not found (`sluice run` creates it in resource group rg)
        ✓ subnet vnet/nodes: not attached (`sluice run` attaches it)"#]]
    .assert_eq(&of_gateway(GatewayMode::Ensure, None, Some(&subnet_of(None))));
    expect![[r#"
        ✗ gateway gw: not found in resource group rg (sluice.gateway.mode is verify)
            → create it, correct sluice.gateway.name, or set sluice.gateway.mode to ensure
        ✗ subnet vnet/nodes: not attached to gateway gw (sluice.gateway.mode is verify)
            → attach the subnet to the gateway, or set sluice.gateway.mode to ensure"#]]
    .assert_eq(&of_gateway(GatewayMode::Verify, None, Some(&subnet_of(None))));
    let unclaimed = gateway_of(None, Provisioning::Succeeded);
    expect![[r#"
        ! gateway gw: unmanaged (`sluice run` tags it as managed by this cluster)
            → to use another gateway, set sluice.gateway.name
        ✗ subnet vnet/nodes: not found (/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/vnet/subnets/nodes)
            → correct vnetName, vnetResourceGroup and subnetName (or sluice.gateway.subnet)"#]]
    .assert_eq(&of_gateway(GatewayMode::Ensure, Some(&unclaimed), None));
    expect![[r#"
        ✗ gateway gw: unmanaged (sluice.gateway.mode is verify)
            → run `sluice adopt --config FILE gateway`
        ✗ subnet vnet/nodes: not found (/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/vnet/subnets/nodes)
            → correct vnetName, vnetResourceGroup and subnetName (or sluice.gateway.subnet)"#]]
    .assert_eq(&of_gateway(GatewayMode::Verify, Some(&unclaimed), None));
}

#[test]
fn what_belongs_to_others_is_a_problem_in_every_mode() {
    let theirs = gateway_of(Some("uid-2"), Provisioning::Succeeded);
    let said = of_gateway(GatewayMode::Ensure, Some(&theirs), Some(&subnet_of(Some("other"))));
    expect![[r#"
        ✗ gateway gw: managed by another cluster (uid-2; this cluster is uid-1)
            → set sluice.gateway.name to another gateway; if this cluster replaces that one, set sluice.clusterId to uid-2
        ✗ subnet vnet/nodes: attached to another gateway (/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/serviceGateways/other)
            → detach the subnet, or set sluice.gateway.name to other"#]]
    .assert_eq(&said);
    assert_eq!(said, of_gateway(GatewayMode::Verify, Some(&theirs), Some(&subnet_of(Some("other")))));
}

#[test]
fn a_gateway_in_the_state_failed_is_written_again_or_named() {
    let failed = gateway_of(Some("uid-1"), Provisioning::Failed);
    let attached = subnet_of(Some("gw"));
    assert!(
        of_gateway(GatewayMode::Ensure, Some(&failed), Some(&attached))
            .starts_with("! gateway gw: provisioning state is Failed")
    );
    assert!(
        of_gateway(GatewayMode::Verify, Some(&failed), Some(&attached))
            .starts_with("✗ gateway gw: provisioning state is Failed")
    );
}

#[test]
fn what_could_not_be_read_is_not_judged() {
    let scope = scope();
    let facts = GatewayFacts {
        scope: &scope,
        mode: GatewayMode::Ensure,
        knows_cluster: true,
        gateway: Err(()),
        subnet: Err(()),
    };
    assert_eq!(
        told(&gateway::diagnose(&facts)),
        "– gateway gw: not checked (read failed)\n– subnet vnet/nodes: not checked (read failed)"
    );
    let gateway = gateway_of(Some("uid-1"), Provisioning::Succeeded);
    let subnet = subnet_of(Some("gw"));
    let facts = GatewayFacts {
        scope: &scope,
        mode: GatewayMode::Ensure,
        knows_cluster: false,
        gateway: Ok(Some(&gateway)),
        subnet: Ok(Some(&subnet)),
    };
    assert!(
        told(&gateway::diagnose(&facts))
            .starts_with("– owner of gateway gw: not checked (cluster unreachable)")
    );
}

fn service(name: &str, class: Option<&str>, finalizers: &[&str]) -> ServiceFacts {
    ServiceFacts {
        name: name.into(),
        class: class.map(str::to_owned),
        finalizers: finalizers.iter().map(|it| (*it).to_owned()).collect(),
    }
}

fn lease(ago: u64) -> Result<Option<LeaseFacts>, String> {
    Ok(Some(LeaseFacts {
        holder: "ccm-1".into(),
        renewed_ago: Duration::from_secs(ago),
        duration: Duration::from_secs(15),
    }))
}

fn of_rivals(
    class: Option<&str>,
    services: &[ServiceFacts],
    lease: Result<Option<LeaseFacts>, String>,
    busy_with: Result<Vec<String>, String>,
) -> String {
    told(&rivals::diagnose(&Facts { class, migrating: false, services, lease, busy_with }))
}

const THEIRS: &str = "service.kubernetes.io/load-balancer-cleanup";
const GATEWAY_MODE: &str = "servicegateway.azure.com/service-cleanup";

#[test]
fn a_cluster_without_others_is_good() {
    let ours = service("a/x", None, &["sluice.dev/cleanup", THEIRS]);
    expect![[r#"
        ✓ cloud controller manager in Service Gateway mode: not detected
        ✓ other service controller: not detected"#]]
    .assert_eq(&of_rivals(None, &[ours], Ok(None), Ok(Vec::new())));
}

#[test]
fn a_service_controller_that_works_is_a_problem_for_the_classless() {
    expect![[r#"
        ✓ cloud controller manager in Service Gateway mode: not detected
        ✗ other service controller: running (it recorded events on 2 Services in the last hour, for example a/x)
            → disable it (--controllers=*,-service-lb-controller on the cloud controller manager), or set sluice.loadBalancerClass"#]]
    .assert_eq(&of_rivals(None, &[], lease(3), Ok(vec!["a/x".into(), "a/y".into()])));
    expect![[r#"
        ✓ cloud controller manager in Service Gateway mode: not detected
        ✓ other service controllers: no conflict (Sluice serves only class sluice)"#]]
    .assert_eq(&of_rivals(Some("sluice"), &[], lease(3), Ok(vec!["a/x".into()])));
}

#[test]
fn finalizers_of_a_service_controller_are_a_warning() {
    let services: Vec<ServiceFacts> = (1..=5).map(|n| service(&format!("a/{n}"), None, &[THEIRS])).collect();
    expect![[r#"
        ✓ cloud controller manager in Service Gateway mode: not detected
        ! other service controller: possibly running (a cloud controller manager runs; its finalizer service.kubernetes.io/load-balancer-cleanup is on 5 Services: a/1, a/2, a/3, …)
            → disable it (--controllers=*,-service-lb-controller on the cloud controller manager), or set sluice.loadBalancerClass"#]]
    .assert_eq(&of_rivals(None, &services, lease(3), Ok(Vec::new())));
    expect![[r#"
        ✓ cloud controller manager in Service Gateway mode: not detected
        ! other service controller: not running (its finalizer service.kubernetes.io/load-balancer-cleanup is on 1 Service: a/1)
            → no action needed: `sluice run` takes over these Services and removes the finalizer when they are deleted
        – events of other service controllers: not checked (403)"#]]
    .assert_eq(&of_rivals(None, &services[..1], lease(300), Err("403".into())));
    // Services of other classes are nobody's business.
    let classed = service("a/x", Some("other"), &[THEIRS]);
    expect![[r#"
        ✓ cloud controller manager in Service Gateway mode: not detected
        ✓ other service controller: not detected
        – cloud controller manager: not checked (403)"#]]
    .assert_eq(&of_rivals(None, &[classed], Err("403".into()), Ok(Vec::new())));
}

#[test]
fn a_cloud_controller_manager_in_service_gateway_mode_is_refused() {
    let services = [service("a/x", Some("sluice"), &[GATEWAY_MODE])];
    for class in [None, Some("sluice")] {
        let said = of_rivals(class, &services, lease(3), Ok(Vec::new()));
        assert!(
            said.starts_with(
                "✗ cloud controller manager: running (ccm-1; its Service Gateway finalizer \
                 servicegateway.azure.com/service-cleanup is on 1 Service: a/x)"
            ),
            "{said}"
        );
        assert!(said.contains("two controllers would overwrite each other's addresses"), "{said}");
        assert!(said.contains("serviceGatewayEnabled: false"), "{said}");
        let left_over = of_rivals(class, &services, lease(300), Ok(Vec::new()));
        assert!(left_over.starts_with("! cloud controller manager: not running ("), "{left_over}");
        let unseen = of_rivals(class, &services, Err("403".into()), Ok(Vec::new()));
        assert!(unseen.starts_with("! cloud controller manager: unknown"), "{unseen}");
    }
}

#[test]
fn what_was_taken_over_or_is_said_to_be_off_is_no_reason_to_refuse() {
    let taken_over = [service("a/x", None, &[GATEWAY_MODE, "sluice.dev/cleanup"])];
    let said = of_rivals(None, &taken_over, lease(3), Ok(Vec::new()));
    assert!(said.starts_with("✓ cloud controller manager in Service Gateway mode: not detected"), "{said}");
    let theirs = [service("a/x", None, &[GATEWAY_MODE])];
    let facts = |migrating| Facts {
        class: None,
        migrating,
        services: &theirs,
        lease: lease(3),
        busy_with: Ok(Vec::new()),
    };
    let marks = [true, false].map(|it| rivals::predecessor(&facts(it))[0].mark);
    assert_eq!(marks, [Mark::Warning, Mark::Problem]);
}

#[test]
fn every_problem_of_a_configuration_is_a_line() {
    let broken = load(None, &[], &Environment::default());
    let said = super::configuration::diagnose(&broken);
    assert!(said.len() > 4 && said.iter().all(|it| it.mark == super::Mark::Problem && it.remedy.is_some()));
    assert_eq!(
        told(&said[..1]),
        "✗ subscriptionId: is missing\n    → set it to the subscription ID, as printed by `az account show --query id`"
    );
}

#[tokio::test]
async fn without_a_cluster_and_a_configuration_there_are_problems_and_no_silence() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ConfigArguments {
        config: Some(folder.path().join("azure.yaml")),
        kubeconfig: Some(folder.path().join("kubeconfig")),
        ..ConfigArguments::default()
    };
    let mut heard = Vec::new();
    let report = super::examine(&arguments, |findings| heard.extend_from_slice(findings)).await;
    assert_eq!(heard, report.findings);
    let marks: Vec<&str> = report.findings.iter().map(|it| it.mark.letter()).collect();
    assert_eq!(marks, ["✗", "✗", "–"], "{:#?}", report.findings);
}
