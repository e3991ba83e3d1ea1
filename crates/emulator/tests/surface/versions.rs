//! What depends on the version of the API.

use serde_json::{Value, json};

use crate::stage::*;

#[test]
fn the_two_posts_are_operations_in_old_versions_and_done_at_once_in_new_ones() {
    for (version, synchronous) in [
        ("2025-05-01", false),
        ("2025-07-01", false),
        ("2025-09-01", true),
        ("2026-01-01", true),
        ("2026-03-01", true),
    ] {
        let mut stage = Stage::new();
        stage.version = version;
        stage.load_balancer("web");
        for (tail, body) in [
            (
                "updateServices",
                json!({ "action": "PartialUpdate", "serviceRequests": [stage.inbound("web")] }),
            ),
            (
                "updateAddressLocations",
                json!({ "action": "PartialUpdate", "addressLocations": [at("10.1.0.4", &[("10.2.0.4", &["web"])])] }),
            ),
        ] {
            let answer = stage.post(&format!("serviceGateways/gw/{tail}"), body);
            if synchronous {
                assert_eq!(
                    (answer.status, &answer.body),
                    (200, &json!({ "status": "Succeeded" })),
                    "{version}"
                );
                assert_eq!(answer.header("azure-asyncoperation"), None);
            } else {
                assert_eq!((answer.status, &answer.body), (202, &Value::Null), "{version}");
                stage.finish(&answer);
            }
        }
        let bound = stage.get("serviceGateways/gw/addressLocations").body;
        assert_eq!(bound["value"][0]["addresses"][0]["services"], json!(["web"]), "{version}");
    }
}

#[test]
fn one_request_at_a_time_decides_whether_its_post_is_synchronous() {
    let mut stage = Stage::new();
    let body = json!({ "serviceRequests": [] });
    let statuses = ["2026-03-01", "2025-05-01", "2025-09-01"].map(|version| {
        stage.version = version;
        stage.wait(60);
        stage.post("serviceGateways/gw/updateServices", body.clone()).status
    });
    assert_eq!(statuses, [200, 202, 200]);
}

#[test]
fn links_carry_the_version_that_the_client_speaks() {
    let mut stage = Stage::new();
    stage.version = NEW;
    let answer = stage.send(stage.put("publicIPAddresses/web-pip", public_ip("IPv4")));
    let url = answer.header("azure-asyncoperation").unwrap();
    assert!(url.starts_with(&format!(
        "{ORIGIN}/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network/locations/eastus/operations/"
    )));
    assert!(url.contains(&format!("?api-version={NEW}&t=")), "{url}");
}

#[test]
fn a_version_that_is_not_served_is_refused_with_those_that_are() {
    let mut stage = Stage::new();
    let path = format!("{}?api-version=2024-05-01", stage.path("publicIPAddresses"));
    let answer = stage.get_path(&path);
    assert_eq!(answer.refusal(), (400, "NoRegisteredProviderFound"));
    let message = answer.body["error"]["message"].as_str().unwrap();
    for version in ["2025-05-01", "2025-07-01", "2025-09-01", "2026-01-01", "2026-03-01"] {
        assert!(message.contains(version), "{message}");
    }
    assert_eq!(answer.header("x-ms-failure-cause"), Some("gateway"));
}
