//! `sluice doctor` against an emulated Azure, without a cluster: each illness, and what is said about it.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use sluice_arm::{Client, Credential, Pem, Secret, Settings};
use sluice_cloud::{Config as CloudConfig, Latencies, Quota};
use sluice_commands::config::{Assignment, ConfigArguments};
use sluice_commands::doctor::{self, Group, Mark, Report};
use sluice_emulator::{Credentials, Emulator, Options, Prepared, Running};
use sluice_emulator_client::Control;
use sluice_model::Failure;
use sluice_model::azure::{ArmId, GatewayBody, SubnetBody};
use sluice_model::call::{Body, Method, Request};
use sluice_model::names::{CLUSTER_TAG, Scope};

const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000001";
const SECRET: &str = "hunter2-geheim";

/// An Azure, and a configuration for it.
struct World {
    emulator: Running,
    folder: tempfile::TempDir,
}

impl World {
    async fn new(change: impl FnOnce(&mut Options)) -> World {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut options = Options {
            cloud: CloudConfig { latency: Latencies::INSTANT, buckets: None, ..CloudConfig::default() },
            prepare: vec![Prepared { subscription: SUBSCRIPTION.into(), group: "rg".into() }],
            credentials: Credentials::Only(BTreeMap::from([("app".into(), SECRET.into())])),
            ..Options::for_tests()
        };
        change(&mut options);
        let emulator = Emulator::start(options).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let url = emulator.url();
        let ca = emulator.ca_path().display();
        let text = format!(
            "subscriptionId: {SUBSCRIPTION}\ntenantId: tenant\naadClientId: app\naadClientSecret: {SECRET}\n\
             resourceGroup: rg\nlocation: westeurope\nvnetName: vnet\nsubnetName: nodes\n\
             resourceManagerEndpoint: {url}\n\
             sluice:\n  clusterId: this\n  gateway:\n    name: gw\n  azure:\n    authorityHost: {url}\n    caFile: {ca}\n"
        );
        std::fs::write(folder.path().join("azure.yaml"), text).unwrap();
        World { emulator, folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("azure.yaml")
    }

    async fn examined(&self, set: &[&str]) -> Report {
        let arguments = ConfigArguments {
            config: Some(self.path()),
            set: set.iter().map(|text| Assignment::new(*text)).collect(),
            // There is no cluster here; what is said about that is another test's.
            kubeconfig: Some(self.folder.path().join("no-kubeconfig")),
            context: None,
        };
        let report = doctor::examine(&arguments, |_| {}).await;
        assert!(!report.json().to_string().contains(SECRET));
        report
    }

    /// What is said about one group.
    async fn said(&self, group: Group, set: &[&str]) -> Vec<String> {
        let report = self.examined(set).await;
        let findings = report.findings.iter().filter(|finding| finding.group == group);
        findings.map(|finding| format!("{} {}", finding.mark.letter(), finding.text)).collect()
    }

    fn client(&self) -> Client {
        let credential = Credential::ClientSecret {
            tenant: "tenant".into(),
            client_id: "app".into(),
            secret: Secret::new(SECRET),
        };
        let settings = Settings {
            resource_manager_endpoint: Some(self.emulator.url()),
            authority_host: Some(self.emulator.url()),
            extra_ca: Some(Pem::File(self.emulator.ca_path().to_owned())),
            ..Settings::new("westeurope", credential)
        };
        Client::new(&settings).unwrap()
    }

    async fn put(&self, id: ArmId, body: Body) {
        let reply = self.client().send(&Request::with(Method::Put, id, body)).await;
        assert_eq!(Failure::in_reply(&reply), None);
    }

    async fn with_subnet(&self) {
        self.put(scope().virtual_network_id(), Body::Container).await;
        let properties = r#"{"properties":{"addressPrefix":"10.1.0.0/24"}}"#;
        self.put(scope().subnet_id(), Body::Subnet(SubnetBody { gateway: None, rest: properties.into() }))
            .await;
    }

    async fn with_gateway_of(&self, cluster: &str) {
        let body = GatewayBody {
            virtual_network: scope().virtual_network_id(),
            route_target_subnet: scope().subnet_id(),
            route_target_address: None,
            route_target_address_v6: None,
            tags: [(CLUSTER_TAG.into(), cluster.into())].into_iter().collect(),
        };
        self.put(scope().gateway_id(), Body::Gateway(body)).await;
    }

    /// The methods of all requests so far that were not for tokens.
    async fn methods(&self) -> Vec<String> {
        let control = Control::new(&self.emulator.url(), self.emulator.ca_pem().as_bytes()).unwrap();
        let log = control.requests(0, false).await.unwrap();
        let of_azure = log.into_iter().filter(|entry| entry.path.contains("/subscriptions/"));
        of_azure.map(|entry| entry.method).collect()
    }
}

fn scope() -> Scope {
    Scope {
        subscription: SUBSCRIPTION.into(),
        resource_group: "rg".into(),
        network_resource_group: "rg".into(),
        virtual_network: "vnet".into(),
        subnet: "nodes".into(),
        gateway: "gw".into(),
        cluster_id: "this".into(),
    }
}

#[tokio::test]
async fn a_healthy_azure_has_no_problem_and_is_only_read() {
    let world = World::new(|_| ()).await;
    world.with_subnet().await;
    let before = world.methods().await.len();
    let report = world.examined(&[]).await;
    let ill = report.findings.iter().filter(|it| it.group != Group::Kubernetes && it.mark == Mark::Problem);
    assert_eq!(ill.count(), 0, "{:#?}", report.findings);
    let methods = world.methods().await;
    assert!(methods.len() > before + 5, "{methods:?}");
    assert!(methods[before..].iter().all(|method| method == "GET"), "{methods:?}");
    let gateway = world.said(Group::Gateway, &[]).await;
    assert_eq!(
        gateway,
        [
            "✓ gateway gw: not found (`sluice run` creates it in resource group rg)",
            "✓ subnet vnet/nodes: not attached (`sluice run` attaches it)",
        ]
    );
}

#[tokio::test]
async fn a_gateway_of_another_cluster_is_refused_before_anything_starts() {
    let world = World::new(|_| ()).await;
    world.with_subnet().await;
    world.with_gateway_of("another").await;
    let said = world.said(Group::Gateway, &[]).await;
    assert_eq!(said[0], "✗ gateway gw: managed by another cluster (another; this cluster is this)");
    let said = world.said(Group::Gateway, &["sluice.clusterId=another"]).await;
    assert_eq!(said[0], "✓ gateway gw: managed by this cluster");
    let azure = world.said(Group::Azure, &[]).await;
    assert!(
        azure.iter().any(|line| {
            line.starts_with("✓ Azure read access: granted (")
                && line.contains("serviceGateways/addressLocations")
        }),
        "{azure:#?}"
    );
}

#[tokio::test]
async fn a_missing_subnet_and_a_missing_group_are_told_apart() {
    let world = World::new(|_| ()).await;
    let said = world.said(Group::Gateway, &[]).await;
    assert!(said[1].starts_with("✗ subnet vnet/nodes: not found"), "{said:#?}");
    let azure = world.said(Group::Azure, &["resourceGroup=nowhere"]).await;
    assert!(azure.iter().any(|line| line.starts_with("✗ loadBalancers: read failed")), "{azure:#?}");
    let said = world.said(Group::Gateway, &["resourceGroup=nowhere"]).await;
    assert!(said.iter().all(|line| line.starts_with('–')), "{said:#?}");
}

#[tokio::test]
async fn a_credential_that_is_refused_ends_the_look_at_azure() {
    let world = World::new(|_| ()).await;
    let report = world.examined(&["aadClientId=stranger"]).await;
    let azure: Vec<_> = report.findings.iter().filter(|it| it.group == Group::Azure).collect();
    assert_eq!(azure.len(), 1, "{azure:#?}");
    assert!(azure[0].mark == Mark::Problem && azure[0].text.contains("not received (a client secret"));
    assert!(azure[0].remedy.as_ref().unwrap().contains("az ad app credential reset"));
    assert!(report.findings.iter().any(|it| it.group == Group::Gateway && it.mark == Mark::Skipped));
}

#[tokio::test]
async fn an_azure_that_is_away_is_a_problem_of_the_way_there() {
    let world = World::new(|_| ()).await;
    let report = world.examined(&["sluice.azure.authorityHost=https://127.0.0.1:9"]).await;
    let azure = report.findings.iter().find(|it| it.group == Group::Azure).unwrap();
    assert_eq!(azure.mark, Mark::Problem);
    assert!(
        azure.remedy.as_ref().unwrap().contains("check the connection to the token endpoint"),
        "{azure:#?}"
    );
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_named() {
    let world = World::new(|options| {
        options.cloud.quota = Quota { public_ips: 0, ..options.cloud.quota };
    })
    .await;
    let said = world.said(Group::Quota, &[]).await;
    let expected =
        "✗ quota Public IP Addresses in westeurope: exhausted (0 of 0 used; new Services and egresses wait)";
    assert!(said.iter().any(|line| line == expected), "{said:#?}");
}
