//! What the parts of the program are told.

use std::time::Duration;

use sluice_arm::{Credential, Pem, UserAssigned};
use sluice_engine::{DefaultOutbound, GatewayMode};

use super::{LEAST, config, ours};

#[test]
fn the_defaults_are_those_of_the_engine_the_updaters_the_client_and_the_loop() {
    let config = config(LEAST);
    let engine = config.engine("uid");
    let theirs = sluice_engine::Config::new(engine.scope.clone());
    assert_eq!(format!("{engine:#?}"), format!("{theirs:#?}"));
    assert_eq!(config.updaters(), sluice_updater::Config::default());
    assert_eq!(config.limits(), sluice_controller::Limits::default());
    assert_eq!(config.lease_timing(), sluice_k8s::lease::Timing::default());
    let settings = config.arm_settings().unwrap();
    let theirs = sluice_arm::Settings {
        virtual_network: settings.virtual_network.clone(),
        ..sluice_arm::Settings::new("westeurope", settings.credential.clone())
    };
    assert_eq!(format!("{settings:#?}"), format!("{theirs:#?}"));
}

#[test]
fn what_is_said_arrives() {
    let text = ours(
        "gateway:\n  name: gw\n  mode: verify\n  subnet: other\n  routeTargetAddress: [10.0.0.4, \"fd00::4\"]\n\
         defaultOutbound: leave\nconcurrency: 3\nallowMassDeletion: true\n\
         egress:\n  max: 7\n  linger: 10m\n  namespaces: [a, b]\n\
         drift:\n  interval: 1h\n  confirmAfter: 2m\n  settle: 20s\ndeletion:\n  reportAfter: 1m\n\
         retry:\n  backoffMax: 20s\n  quotaParkMin: 1m\nlocations:\n  quarantineRetry: 3m\n\
         budget:\n  share: 50%\n  writes:\n    burst: 20\n    perSecond: 2\n\
         operations:\n  pollMax: 3s\nazure:\n  responseTimeout: 10s\n  caFile: /ca.pem\n\
         shutdown:\n  grace: 5s",
    );
    let text = format!(
        "{text}networkResourceSubscriptionID: 00000000-0000-0000-0000-000000000002\nvnetResourceGroup: net\n"
    );
    let config = config(&text);
    let engine = config.engine("uid");
    assert_eq!(&*engine.scope.subscription, "00000000-0000-0000-0000-000000000002");
    assert_eq!(&*engine.scope.network_resource_group, "net");
    assert_eq!((&*engine.scope.subnet, &*engine.scope.gateway), ("other", "gw"));
    assert_eq!(&*engine.scope.cluster_id, "uid");
    assert_eq!((engine.gateway_mode, engine.default_outbound), (GatewayMode::Verify, DefaultOutbound::Leave));
    assert_eq!(engine.route_target_address, Some("10.0.0.4".parse().unwrap()));
    assert_eq!(engine.route_target_address_v6, Some("fd00::4".parse().unwrap()));
    assert_eq!((engine.slots_max, engine.egress_max, engine.allow_mass_deletion), (3, 7, true));
    assert_eq!(engine.linger, Duration::from_secs(600));
    assert_eq!(engine.egress_namespaces.map(|names| names.len()), Some(2));
    assert_eq!(engine.drift_interval, Duration::from_secs(3_600));
    assert_eq!((engine.second_look, engine.settle), (Duration::from_secs(120), Duration::from_secs(20)));
    assert_eq!(engine.locations.listing_margin, Duration::from_secs(20));
    assert_eq!(engine.report_after, Duration::from_secs(60));
    assert_eq!(engine.retry.quota_park, (Duration::from_secs(60), Duration::from_secs(3_600)));
    assert_eq!(engine.retry.backoff_max, Duration::from_secs(20));
    assert_eq!(engine.locations.backoff_max, Duration::from_secs(20), "one backoff for both");
    assert_eq!(engine.locations.quarantine_retry, Duration::from_secs(180));
    let updaters = config.updaters();
    assert_eq!(
        updaters.reads_lag_max,
        Duration::from_secs(30),
        "a read may lag for 30 s, however short `settle` is"
    );
    assert_eq!(updaters.share_permille, 500);
    assert_eq!((updaters.writes.burst, updaters.writes.per_second), (20, 2));
    assert_eq!(updaters.poll.interval_max, Duration::from_secs(3));
    assert_eq!(updaters.answer_limit, Duration::from_secs(15));
    let limits = config.limits();
    assert_eq!(limits.grace, Duration::from_secs(5));
    let settings = config.arm_settings().unwrap();
    assert_eq!(settings.limits.answer, Duration::from_secs(10));
    assert_eq!(settings.extra_ca, Some(Pem::File("/ca.pem".into())));
    assert!(settings.limits.answer < updaters.answer_limit && updaters.answer_limit < limits.call);
    let network = settings.virtual_network.unwrap();
    assert!(
        network.as_str().ends_with("/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/vnet")
    );
}

#[test]
fn each_credential_is_the_one_that_was_named() {
    let none = LEAST.replace("useManagedIdentityExtension: true\n", "tenantId: t\naadClientId: app\n");
    let credential = |text: &str| config(text).arm_settings().unwrap().credential;
    assert!(matches!(
        credential(&format!("{none}aadClientSecret: s\n")),
        Credential::ClientSecret { tenant, client_id, secret } if tenant == "t" && client_id == "app" && secret.reveal() == "s"
    ));
    assert!(matches!(
        credential(&format!("{none}aadClientCertPath: /c.pem\n")),
        Credential::ClientCertificate { certificate: Pem::File(path), .. } if path.ends_with("c.pem")
    ));
    assert!(matches!(
        credential(&format!("{none}useFederatedWorkloadIdentityExtension: true\naadFederatedTokenFile: /t\n")),
        Credential::WorkloadIdentity { token_file, .. } if token_file.ends_with("t")
    ));
    let user = "/subscriptions/s/x";
    assert!(matches!(
        credential(&format!("{LEAST}userAssignedIdentityID: {user}\n")),
        Credential::ManagedIdentity { user_assigned: Some(UserAssigned::ResourceId(id)), .. } if id == user
    ));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "the-token\n").unwrap();
    let text = ours(&format!("azure:\n  tokenFile: {}", path.display()));
    assert!(matches!(credential(&text), Credential::Token(token) if token.reveal() == "the-token"));
    std::fs::remove_file(&path).unwrap();
    assert!(config(&text).arm_settings().unwrap_err().to_string().contains("sluice.azure.tokenFile"));
}

#[test]
fn a_connection_to_the_api_server_never_takes_longer_than_the_lease_outlives_its_holder() {
    let limit = |more: &str| config(&ours(more)).kubernetes_connect_limit().as_secs();
    assert_eq!(limit("concurrency: 3"), 5);
    let short = "azure:\n  connectTimeout: 1s\nleaderElection:\n  leaseDuration: 12s\n";
    assert_eq!(limit(short), 2);
    assert_eq!(limit(&format!("{short}  enabled: false")), 5);
}
