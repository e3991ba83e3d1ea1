//! Every kind of mistake, and what is said about it.

use expect_test::{Expect, expect};
use sluice_k8s::lease::{Elector, LEASE_MAX};

use super::{LEAST, load, load_with, ours};

fn check(text: &str, expect: Expect) {
    expect.assert_eq(&load(text).expect_err("it should be refused").to_string());
}

#[test]
fn everything_that_is_missing_is_named_together() {
    check(
        "",
        expect![[r#"
        the configuration has 6 problems:
          - subscriptionId: is missing; set it to the subscription ID, as printed by `az account show --query id`
          - resourceGroup: is missing; set it to the resource group of the gateway and load balancers, as listed by `az group list`
          - location: is missing; set it to the region, as printed by `az group show --name GROUP --query location`
          - vnetName: is missing; set it to the virtual network of the nodes, as listed by `az network vnet list`
          - credential: is missing; set one of useFederatedWorkloadIdentityExtension, useManagedIdentityExtension, aadClientSecret (with aadClientId and tenantId) or aadClientCertPath
          - subnetName: is missing; set it to the subnet of the nodes, as listed by `az network vnet subnet list`, or set sluice.gateway.subnet"#]],
    );
}

#[test]
fn an_unknown_key_of_ours_is_refused_and_the_nearest_is_named() {
    check(
        &ours("concurency: 20\ngateway:\n  modus: ensure\n  aadClientId: x\nzzz: 1\nretry:\n  linger: 1s"),
        expect![[r#"
            the configuration has 5 problems:
              - sluice.concurency (azure.yaml:8): unknown key; did you mean sluice.concurrency?
              - sluice.gateway.modus (azure.yaml:10): unknown key; did you mean sluice.gateway.mode?
              - sluice.gateway.aadClientId (azure.yaml:11): unknown key; aadClientId belongs at the top level of the file, outside sluice:
              - sluice.zzz (azure.yaml:12): unknown key; the keys of sluice are gateway, defaultOutbound, clusterId, concurrency, loadBalancerClass, allowMassDeletion, egress, deletion, drift, retry, budget, locations, operations, azure, listen, leaderElection, log, migration, shutdown
              - sluice.retry.linger (azure.yaml:14): unknown key; did you mean sluice.egress.linger?"#]],
    );
}

#[test]
fn a_section_is_no_value_and_a_value_no_section() {
    check(
        &ours("gateway: prod\ndrift: [1]\nconcurrency:\n  max: 3\nclusterId: [a]"),
        expect![[r#"
        the configuration has 4 problems:
          - sluice.gateway (azure.yaml:8): is a section; its keys are name, mode, subnet, routeTargetAddress
          - sluice.drift (azure.yaml:9): is a section; its keys are interval, confirmAfter, settle
          - sluice.clusterId (azure.yaml:12): is a list; it must be text
          - sluice.concurrency (azure.yaml:10): is a section; it must be a whole number"#]],
    );
}

#[test]
fn values_of_the_wrong_kind_say_what_is_allowed() {
    let text = ours(
        "concurrency: 0\ndefaultOutbound: maybe\ngateway:\n  mode: make\n  routeTargetAddress: ten\n  name: a/b\n\
         drift:\n  interval: 15\nbudget:\n  share: 120%\nlocations:\n  quarantineRetry: 1M\nlisten:\n  api: localhost\n\
         egress:\n  namespaces: [a, B]\nlog:\n  level: loud=loud\n  format: xml\nloadBalancerClass: a b\n\
         leaderElection:\n  leaseDuration: 15500ms\nazure:\n  apiVersion: latest\n  authorityHost: login.example",
    );
    check(
        &text,
        expect![[r#"
            the configuration has 16 problems:
              - sluice.gateway.name is "a/b" (azure.yaml:13): must be a resource name, not an ID: at most 80 letters, digits, '-', '_' and '.', starting with a letter or digit and ending with a letter, digit or '_'
              - sluice.gateway.mode is "make" (azure.yaml:11): must be ensure or verify
              - sluice.gateway.routeTargetAddress is "ten" (azure.yaml:12): must be an IP address, or one of each family, like 10.0.0.4 or 10.0.0.4,fd00::4
              - sluice.defaultOutbound is "maybe" (azure.yaml:9): must be ensure or leave
              - sluice.concurrency is "0" (azure.yaml:8): must be 1 to 200
              - sluice.loadBalancerClass is "a b" (azure.yaml:27): must be a load balancer class, like example.com/sluice or sluice
              - sluice.egress.namespaces (azure.yaml:23): contains "B", which is not a valid namespace name
              - sluice.drift.interval is "15" (azure.yaml:15): must be a duration with a unit, like 500ms, 90s, 15m, 1h or 1h30m
              - sluice.budget.share is "120%" (azure.yaml:17): must be 1% to 100%
              - sluice.locations.quarantineRetry is "1M" (azure.yaml:19): must be a duration with a unit, like 500ms, 90s, 15m, 1h or 1h30m
              - sluice.azure.apiVersion is "latest" (azure.yaml:31): must be an API version, like 2025-05-01 or 2025-05-01-preview
              - sluice.azure.authorityHost is "login.example" (azure.yaml:32): must be a URL, like https://management.azure.com
              - sluice.listen.api is "localhost" (azure.yaml:21): must be an IP address and a port, like 127.0.0.1:8082 or [::1]:8082
              - sluice.leaderElection.leaseDuration is "15500ms" (azure.yaml:29): must be a whole number of seconds, because a Lease counts in seconds
              - sluice.log.format is "xml" (azure.yaml:26): must be text or json
              - sluice.log.level is "loud=loud" (azure.yaml:25): must be error, warn, info, debug or trace, or comma-separated module=level pairs"#]],
    );
}

#[test]
fn numbers_that_contradict_each_other_are_refused() {
    let text = ours(
        "retry:\n  backoffMin: 1m\n\
         drift:\n  confirmAfter: 15m\nleaderElection:\n  retryPeriod: 10s\n  leaseDuration: 10s\n\
         operations:\n  pollMin: 20s\nazure:\n  connectTimeout: 2s\n  responseTimeout: 1s",
    );
    check(
        &text,
        expect![[r#"
            the configuration has 6 problems:
              - sluice.retry.backoffMin is "1m" (azure.yaml:9): must not be longer than sluice.retry.backoffMax (30s)
              - sluice.operations.pollMin is "20s" (azure.yaml:16): must not be longer than sluice.operations.pollMax (10s)
              - sluice.azure.responseTimeout is "1s" (azure.yaml:19): must not be shorter than sluice.azure.connectTimeout (2s)
              - sluice.drift.confirmAfter is "15m" (azure.yaml:11): must be shorter than sluice.drift.interval (15m), because a difference is checked again before the next comparison
              - sluice.leaderElection.retryPeriod is "10s" (azure.yaml:13): must be shorter than sluice.leaderElection.renewDeadline (10s), so that a failed renewal can be retried in time
              - sluice.leaderElection.leaseDuration is "10s" (azure.yaml:14): must be longer than sluice.leaderElection.renewDeadline (10s), so that the leader has stopped before another one starts"#]],
    );
}

#[test]
fn a_connection_that_takes_longer_than_the_lease_outlives_its_holder_is_refused() {
    check(
        &ours("azure:\n  connectTimeout: 6s"),
        expect![[
            r#"the configuration is invalid: sluice.azure.connectTimeout is "6s" (azure.yaml:9): must not be longer than 5s, which is sluice.leaderElection.leaseDuration minus sluice.leaderElection.renewDeadline, so that all requests of a leader are sent before another leader starts"#
        ]],
    );
    check(
        &ours("leaderElection:\n  leaseDuration: 12s"),
        expect![[
            r#"the configuration is invalid: sluice.leaderElection.leaseDuration is "12s" (azure.yaml:9): must be at least sluice.azure.connectTimeout (5s) longer than sluice.leaderElection.renewDeadline, so that all requests of a leader are sent before another leader starts"#
        ]],
    );
    check(
        &ours("leaderElection:\n  renewDeadline: 11s\nazure:\n  connectTimeout: 5s"),
        expect![[
            r#"the configuration is invalid: sluice.azure.connectTimeout is "5s" (azure.yaml:11): must not be longer than 4s, which is sluice.leaderElection.leaseDuration minus sluice.leaderElection.renewDeadline, so that all requests of a leader are sent before another leader starts"#
        ]],
    );
    load(&ours("azure:\n  connectTimeout: 2s\nleaderElection:\n  leaseDuration: 12s")).unwrap();
    load(&ours("azure:\n  connectTimeout: 30s\nleaderElection:\n  leaseDuration: 1m")).unwrap();
    // Without an election there is no lease to outlive.
    load(&ours("azure:\n  connectTimeout: 30s\nleaderElection:\n  enabled: false")).unwrap();
}

#[test]
fn a_lease_longer_than_other_replicas_wait_is_refused() {
    check(
        &ours("leaderElection:\n  leaseDuration: 600s"),
        expect![[
            r#"the configuration is invalid: sluice.leaderElection.leaseDuration is "600s" (azure.yaml:9): must be 2s to 5m"#
        ]],
    );
    check(
        &ours("leaderElection:\n  leaseDuration: 301s\n  renewDeadline: 301s"),
        expect![[r#"
            the configuration has 2 problems:
              - sluice.leaderElection.leaseDuration is "301s" (azure.yaml:9): must be 2s to 5m
              - sluice.leaderElection.renewDeadline is "301s" (azure.yaml:10): must be 1s to 5m"#]],
    );
    let longest = load(&ours("leaderElection:\n  leaseDuration: 300s\n  renewDeadline: 295s")).unwrap();
    let timing = longest.config.lease_timing();
    assert_eq!(timing.lease, LEASE_MAX);
    assert!(Elector::new("a", timing).is_ok());
}

#[test]
fn the_api_is_not_served_openly() {
    check(
        &ours("listen:\n  api: 0.0.0.0:8082"),
        expect![[
            r#"the configuration is invalid: sluice.listen.api is "0.0.0.0:8082" (azure.yaml:9): other machines can reach this address, so the API requires a token and TLS; also set sluice.listen.tokenFile and sluice.listen.tlsCertFile and sluice.listen.tlsKeyFile, or listen on 127.0.0.1"#
        ]],
    );
    check(
        &ours("listen:\n  api: 10.0.0.1:8081\n  tokenFile: /t\n  tlsCertFile: /c"),
        expect![[r#"
            the configuration has 3 problems:
              - sluice.listen.tlsCertFile is "/c" (azure.yaml:11): needs a private key; also set sluice.listen.tlsKeyFile
              - sluice.listen.api is "10.0.0.1:8081" (azure.yaml:9): other machines can reach this address, so the API requires a token and TLS; also set sluice.listen.tlsKeyFile, or listen on 127.0.0.1
              - sluice.listen.api is "10.0.0.1:8081" (azure.yaml:9): uses the same port as sluice.listen.health; choose another port"#]],
    );
    // Whoever names a file wants a token, also if a template put nothing in its place.
    check(
        &ours("listen:\n  tokenFile: \"\""),
        expect![[
            r#"the configuration is invalid: sluice.listen.tokenFile is "" (azure.yaml:9): must not be empty; set it to a file path, or remove the key"#
        ]],
    );
    for (environment, set) in
        [(&[("SLUICE_LISTEN_TOKEN_FILE", " ")][..], &[][..]), (&[], &["sluice.listen.tokenFile="])]
    {
        let error = load_with(LEAST, environment, set).unwrap_err().to_string();
        assert!(error.contains("sluice.listen.tokenFile") && error.contains("must not be empty"), "{error}");
    }
    let closed = "listen:\n  api: 0.0.0.0:8443\n  tokenFile: /t\n  tlsCertFile: /c\n  tlsKeyFile: /k";
    load(&ours(closed)).unwrap();
    load(&ours("listen:\n  api: '[::1]:9000'")).unwrap();
}

#[test]
fn a_credential_is_one_and_whole() {
    check(
        &format!("{LEAST}aadClientId: app\naadClientSecret: geheim\ntenantId: t\n"),
        expect![
            "the configuration is invalid: credential: more than one is configured: a managed identity by useManagedIdentityExtension (azure.yaml:6), and a client secret by aadClientSecret (azure.yaml:8); keep one"
        ],
    );
    let none = LEAST.replace("useManagedIdentityExtension: true\n", "");
    check(
        &format!("{none}aadClientSecret: geheim\n"),
        expect![[r#"
        the configuration has 2 problems:
          - tenantId: is missing, but a client secret requires it; set it to the tenant ID, as printed by `az account show --query tenantId`, or set AZURE_TENANT_ID
          - aadClientId: is missing, but a client secret requires it; set it to the client ID of the application or identity, or set AZURE_CLIENT_ID"#]],
    );
    check(
        &format!("{none}useFederatedWorkloadIdentityExtension: 'true'\n"),
        expect![[r#"
        the configuration has 3 problems:
          - tenantId: is missing, but a workload identity requires it; set it to the tenant ID, as printed by `az account show --query tenantId`, or set AZURE_TENANT_ID
          - aadClientId: is missing, but a workload identity requires it; set it to the client ID of the application or identity, or set AZURE_CLIENT_ID
          - aadFederatedTokenFile: is missing, but a workload identity requires it; set it to the service account token file, which AKS mounts in pods with the label azure.workload.identity/use, or set AZURE_FEDERATED_TOKEN_FILE"#]],
    );
    let ambient = [("AZURE_CLIENT_SECRET", "geheim"), ("AZURE_FEDERATED_TOKEN_FILE", "/t")];
    let error = load_with(&none, &ambient, &[]).unwrap_err();
    expect!["the configuration is invalid: credential: more than one is configured: a client secret by aadClientSecret (environment variable AZURE_CLIENT_SECRET), and a workload identity by aadFederatedTokenFile (environment variable AZURE_FEDERATED_TOKEN_FILE); keep one"].assert_eq(&error.to_string());
}

#[test]
fn flags_are_checked_like_the_file() {
    let set = [
        "sluice.concurency=3",
        "sluice.concurrency",
        "sluice.egress.max=many",
        "aadClientSecret=geheim",
        "=x",
    ];
    let error = load_with(LEAST, &[], &set).unwrap_err();
    expect![[r#"
        the configuration has 5 problems:
          - sluice.concurency (--set): unknown key; did you mean sluice.concurrency?
          - sluice.concurrency (--set): has no value; use --set KEY=VALUE
          - aadClientSecret (--set): is a secret, and all users of this machine can see command lines; use the file or AZURE_CLIENT_SECRET
          - --set: has no key; use --set KEY=VALUE
          - sluice.egress.max is "many" (--set): must be a whole number"#]].assert_eq(&error.to_string());
}

#[test]
fn a_file_that_is_no_configuration_is_one_problem_with_its_line() {
    check(
        "a: 1\na: 2\n",
        expect![[
            r#"the configuration is invalid: azure.yaml, line 2: duplicate key "a", first set in line 1; keep one"#
        ]],
    );
    check(
        "{\"a\": ",
        expect![
            "the configuration is invalid: azure.yaml, line 2: is not valid YAML or JSON: while parsing a node, did not find expected node content"
        ],
    );
    check(
        &format!("{LEAST}SubscriptionID: other\nSluice:\n  concurrency: 3\n"),
        expect![[r#"
        the configuration has 2 problems:
          - SubscriptionID (azure.yaml:7): is also set in line 1, with different capitalization; keep one
          - Sluice (azure.yaml:8): must be lower case: sluice"#]],
    );
}

#[test]
fn a_file_that_cannot_be_read_says_what_to_look_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("azure.json");
    let told =
        |path| super::super::load(Some(path), &[], &super::Environment::default()).unwrap_err().to_string();
    let missing = told(&path);
    assert!(missing.contains("cannot be read") && missing.contains("check --config"), "{missing}");
    std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    assert!(told(&path).contains("is not UTF-8 text"), "{}", told(&path));
    let error = super::super::load(None, &[], &super::Environment::default()).unwrap_err().to_string();
    assert!(error.contains("--config: no file specified"), "{error}");
}
