//! Where values come from, and who wins.

use super::{LEAST, load, load_with, ours};
use crate::config::old::OLD;
use crate::config::table::{Default, twin_of};
use crate::config::{Config, Identity, Origin, print};

fn origin_of(loaded: &crate::config::Loaded, key: &str) -> Origin {
    loaded.values.iter().find(|value| value.key == key).expect("there is such a key").origin.clone()
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let key = "sluice.concurrency";
    let text = ours("concurrency: 11");
    let variables = [("SLUICE_CONCURRENCY", "12")];
    let set = ["sluice.concurrency=13"];
    for (text, variables, set, value, origin) in [
        (LEAST, &[][..], &[][..], 10, Origin::Default),
        (&text, &[], &[], 11, Origin::File { line: 8 }),
        (&text, &variables, &[], 12, Origin::Environment { variable: "SLUICE_CONCURRENCY".into() }),
        (&text, &variables, &set, 13, Origin::Flag),
    ] {
        let loaded = load_with(text, variables, set).unwrap();
        assert_eq!(loaded.config.general.concurrency, value);
        assert_eq!(origin_of(&loaded, key), origin);
    }
}

#[test]
fn the_variables_of_azures_libraries_only_fill_gaps() {
    let injected = [
        ("AZURE_CLIENT_ID", "injected"),
        ("AZURE_TENANT_ID", "tenant"),
        ("AZURE_FEDERATED_TOKEN_FILE", "/var/run/token"),
        ("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.com/"),
    ];
    let none = LEAST.replace("useManagedIdentityExtension: true\n", "");
    let loaded = load_with(&none, &injected, &[]).unwrap();
    assert_eq!(loaded.config.identity, Identity::WorkloadIdentity);
    assert_eq!(loaded.config.azure.client_id.as_deref(), Some("injected"));
    assert_eq!(origin_of(&loaded, "aadClientId"), Origin::Ambient { variable: "AZURE_CLIENT_ID".into() });

    let with_secret = format!("{none}aadClientId: app\naadClientSecret: geheim\n");
    let loaded = load_with(&with_secret, &injected, &[]).unwrap();
    assert_eq!(loaded.config.identity, Identity::ClientSecret);
    assert_eq!(loaded.config.azure.client_id.as_deref(), Some("app"));

    let loaded = load_with(LEAST, &injected, &[]).unwrap();
    assert_eq!(loaded.config.identity, Identity::ManagedIdentity);
}

#[test]
fn the_azure_json_of_an_aks_cluster_does_as_it_is() {
    let text = r#"{
    "cloud": "AzurePublicCloud", "tenantId": "t", "subscriptionId": "00000000-0000-0000-0000-000000000001",
    "aadClientId": "msi", "aadClientSecret": "msi", "resourceGroup": "MC_rg_aks_westeurope",
    "location": "westeurope", "vmType": "vmss", "subnetName": "aks-subnet", "securityGroupName": "nsg",
    "vnetName": "aks-vnet", "vnetResourceGroup": "", "routeTableName": "rt", "primaryAvailabilitySetName": "",
    "cloudProviderBackoff": true, "cloudProviderRateLimitQPS": 10, "useManagedIdentityExtension": "true",
    "userAssignedIdentityID": "00000000-0000-0000-0000-0000000000aa", "loadBalancerSku": "Standard",
    "excludeMasterFromStandardLB": null, "aadFederatedTokenFile": "", "tags": {"a": ["b"]}
}"#;
    let loaded = load(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.config.identity, Identity::ManagedIdentity);
    assert_eq!(loaded.config.azure.client_secret, None);
    assert_eq!(loaded.config.azure.network_resource_group, None);
    assert_eq!(loaded.warnings, Vec::<String>::new());
}

#[test]
fn azures_keys_are_found_in_any_case_and_ours_exactly() {
    let text = LEAST.replace("subscriptionId", "SubscriptionID").replace("vnetName", "VNETNAME");
    assert_eq!(load(&text).unwrap().config.azure.virtual_network, "vnet");
    let error = load(&ours("ClusterID: x")).unwrap_err().to_string();
    assert!(error.contains("did you mean sluice.clusterId?"), "{error}");
}

#[test]
fn what_looks_like_a_slip_is_a_warning() {
    let text = format!("{LEAST}egress:\n  max: 3\nvnetResourcegrup: net\nroutTableName: x\n");
    let variables =
        [("SLUICE_CONCURENCY", "3"), ("SLUICE_SERVICE_HOST", "10.0.0.1"), ("SLUICE_PORT", "tcp://x")];
    let loaded = load_with(&text, &variables, &["sluice.allowMassDeletion=true"]).unwrap();
    expect_test::expect![[r#"
        the environment variable SLUICE_CONCURENCY is unknown and ignored; did you mean SLUICE_CONCURRENCY?
        egress (azure.yaml:7) is ignored at the top level; move it below sluice:
        vnetResourcegrup (azure.yaml:9) is unknown and ignored; did you mean vnetResourceGroup?
        sluice.allowMassDeletion is true: the mass-deletion guard is disabled; remove the key after the intended deletion"#]].assert_eq(&loaded.warnings.join("\n"));
}

#[test]
fn no_twin_of_a_key_can_be_set_by_kubernetes_for_a_service_called_sluice() {
    let old = OLD.iter().filter_map(|(path, _)| twin_of(path));
    for twin in Config::rows().iter().filter_map(|row| row.twin()).chain(old) {
        let is_theirs = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"].iter().any(|end| twin.ends_with(end))
            || twin.contains("_PORT_")
            || twin.contains("_SERVICE_PORT_");
        assert!(!is_theirs, "{twin}");
    }
}

#[test]
fn every_key_is_there_once_and_its_default_and_bounds_can_be_read() {
    let rows = Config::rows();
    let mut paths: Vec<&str> = rows.iter().map(|row| row.path).collect();
    let mut twins: Vec<String> = rows.iter().filter_map(|row| row.twin()).collect();
    let (all, all_twins) = (paths.len(), twins.len());
    paths.sort_unstable();
    paths.dedup();
    twins.sort_unstable();
    twins.dedup();
    assert_eq!((paths.len(), twins.len()), (all, all_twins));
    // Reading the defaults panics if one of them cannot be read; then they are said aloud, which looks at
    // their bounds and forms too.
    let loaded = load(LEAST).unwrap();
    assert_eq!(loaded.values.len(), all);
    let said: Vec<String> = rows
        .iter()
        .filter(|row| row.path != "useManagedIdentityExtension")
        .filter_map(|row| match row.traits.default {
            Default::Is(text) => Some(format!("{}={text}", row.path)),
            _ => None,
        })
        .collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let again = load_with(LEAST, &[], &said).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.config, again.config);
    // Bounds are in the kind of their key: one step outside is refused, which an unreadable bound would not.
    for row in rows.iter().filter(|row| row.traits.bounds.is_some()) {
        let (_, most) = row.traits.bounds.expect("just looked");
        let beyond = match most.chars().last() {
            Some('%') => "101%",
            Some('h' | 'm' | 's') => "9999h",
            _ => "999999999",
        };
        let set = format!("{}={beyond}", row.path);
        let told = load_with(LEAST, &[], &[&set]).unwrap_err().to_string();
        assert!(told.contains(&format!("to {most}")), "{}: {told}", row.path);
    }
}

#[test]
fn the_table_shows_value_and_place_of_every_key() {
    let text = ours("gateway:\n  name: prod").replace("location", "aadClientSecret: geheim\nlocation");
    let text = text.replace("useManagedIdentityExtension: true", "aadClientId: app\ntenantId: t");
    let loaded = load_with(&text, &[("SLUICE_CONCURRENCY", "20")], &["sluice.drift.interval=20m"]).unwrap();
    let shown = print::text(&loaded);
    let lines: Vec<&str> = shown.lines().collect();
    for start in [
        "KEY",
        "aadClientSecret",
        "sluice.gateway.name",
        "sluice.concurrency",
        "sluice.drift.interval",
        "sluice.drift.settle",
        "vnetResourceGroup",
    ] {
        assert!(lines.iter().any(|line| line.trim_start().starts_with(start)), "{start}\n{shown}");
    }
    let told = |key: &str| {
        let line = lines.iter().find(|line| line.trim_start().starts_with(key)).expect("shown");
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(told("sluice.gateway.name"), "prod azure.yaml:11");
    assert_eq!(told("aadClientSecret"), "(redacted, from azure.yaml:3) azure.yaml:3");
    assert_eq!(told("sluice.concurrency"), "20 environment variable SLUICE_CONCURRENCY");
    assert_eq!(told("sluice.drift.interval"), "20m --set");
    assert_eq!(told("sluice.drift.settle"), "30s default");
    assert_eq!(told("vnetResourceGroup"), "(same as `resourceGroup`) default");
    let json = print::json(&loaded);
    let values = json["values"].as_array().unwrap();
    assert_eq!(values.len(), loaded.values.len());
    let secret = values.iter().find(|value| value["key"] == "aadClientSecret").unwrap();
    assert_eq!(secret["value"], serde_json::Value::Null);
    assert_eq!((&secret["redacted"], &secret["line"]), (&true.into(), &3.into()));
}
