//! Every Azure fault of the list, Z1 to Z22, injected by the control API and seen by a client.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Azure, load_balancer, options, public_ip, resource};

/// An emulator with a gateway and a registered load balancer with one address.
async fn azure() -> Azure {
    let azure = Azure::start(options()).await.with_gateway().await.with_load_balancer("web").await;
    let (gateway, lb) = (resource("serviceGateways", "gw"), resource("loadBalancers", "web"));
    let service = json!({"name": "web", "serviceType": "Inbound",
        "loadBalancerBackendPools": [format!("{lb}/backendAddressPools/web")]});
    azure.do_control("tamper", json!({"do": "register", "gateway": gateway, "service": service})).await;
    azure
        .do_control(
            "tamper",
            json!({"do": "addAddress", "gateway": gateway, "location": "10.1.0.4",
        "address": "10.1.2.3", "services": ["web"]}),
        )
        .await;
    azure
}

/// What a write of a new public IP is answered; `None`: nothing.
async fn write(azure: &Azure) -> Option<(u16, String)> {
    let path = resource("publicIPAddresses", "new");
    let response = azure.request(Method::PUT, &path, Some(public_ip())).send().await.ok()?;
    let answer = crate::support::Answer::of(response).await;
    Some((answer.status, answer.code().to_owned()))
}

/// What the list says of a row: the fault, how it is said, and how one sees it.
#[tokio::test]
async fn every_fault_of_the_list_can_be_injected_and_is_seen() {
    let mut seen = BTreeSet::new();

    for (fault, rule, status, code) in [
        ("Z1", json!({"fault": "throttled", "retryAfter": 2}), 429, "SubscriptionRequestsThrottled"),
        ("Z1", json!({"fault": "throttled"}), 429, "SubscriptionRequestsThrottled"),
        ("Z2", json!({"fault": "anotherOperation"}), 429, "RetryableErrorDueToAnotherOperation"),
        ("Z3", json!({"fault": "conflict"}), 409, "AnotherOperationInProgress"),
        ("Z3", json!({"fault": "preconditionFailed"}), 412, "PreconditionFailed"),
        ("Z4", json!({"fault": "serverError", "times": 3}), 500, "InternalServerError"),
        ("Z4", json!({"fault": "unavailable", "times": 3}), 503, "ServiceUnavailable"),
        ("Z12", json!({"fault": "quotaExceeded"}), 400, "QuotaExceeded"),
        ("Z13", json!({"fault": "forbidden", "times": 1}), 403, "AuthorizationFailed"),
        ("Z13", json!({"fault": "unauthorized", "times": 1}), 401, "ExpiredAuthenticationToken"),
        ("Z14", json!({"fault": "locked"}), 409, "ScopeLocked"),
        ("Z15", json!({"fault": "disallowed"}), 403, "RequestDisallowedByPolicy"),
        ("Z17", json!({"fault": "tooLarge"}), 413, "RequestEntityTooLarge"),
        ("Z22", json!({"fault": "unknownApiVersion"}), 400, "NoRegisteredProviderFound"),
    ] {
        let azure = Azure::start(options()).await;
        azure.fault(rule.clone()).await;
        assert_eq!(write(&azure).await, Some((status, code.to_owned())), "{fault} {rule}");
        seen.insert(fault);
    }

    // Z5 to Z11, Z21, Z22: what a write or its operation does.
    let azure = azure().await;
    let is_made = async || {
        let state = azure.state().await;
        state["publicIPAddresses"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["id"] == resource("publicIPAddresses", "new"))
    };
    let stands = async || {
        let state = azure.state().await;
        let all = state["publicIPAddresses"].as_array().unwrap().clone();
        let new = all.into_iter().find(|it| it["id"] == resource("publicIPAddresses", "new"));
        new.map(|it| it["provisioningState"].as_str().unwrap().to_owned())
    };
    for (fault, rule, is_answered, made, after_a_minute) in [
        ("Z5", json!({"fault": "noAnswer"}), false, true, Some("Succeeded")),
        ("Z6", json!({"fault": "notApplied"}), true, false, None),
        ("Z7", json!({"fault": "neverEnds"}), true, true, Some("Updating")),
        ("Z8", json!({"fault": "fails", "code": "Broken"}), true, true, Some("Failed")),
        ("Z8", json!({"fault": "canceled"}), true, true, Some("Failed")),
        ("Z9", json!({"fault": "provisioningFails"}), true, true, Some("Failed")),
        ("Z21", json!({"fault": "slowBy", "factor": 50}), true, true, Some("Updating")),
        ("Z22", json!({"fault": "unknownField"}), true, true, Some("Succeeded")),
    ] {
        let number = azure.fault(rule.clone()).await;
        assert_eq!(write(&azure).await.is_some(), is_answered, "{fault}");
        assert_eq!(is_made().await, made, "{fault}");
        azure.pass(60).await;
        assert_eq!(stands().await.as_deref(), after_a_minute, "{fault}");
        azure.control(Method::DELETE, &format!("faults/{number}"), None).await;
        if made {
            let id = resource("publicIPAddresses", "new");
            azure.do_control("tamper", json!({"do": "delete", "id": id})).await;
        }
        seen.insert(fault);
    }

    // Z10: a read that lags behind a write.
    azure.fault(json!({"fault": "lag", "ms": 5_000, "times": 1})).await;
    write(&azure).await;
    assert_eq!(azure.get(&resource("publicIPAddresses", "new")).await.status, 404);
    assert!(is_made().await);
    azure.pass(6).await;
    assert_eq!(azure.get(&resource("publicIPAddresses", "new")).await.status, 200);
    seen.insert("Z10");

    // Z11: pages.
    let list = format!("{}/providers/Microsoft.Network/publicIPAddresses", crate::support::GROUP);
    azure.fault(json!({"fault": "shortPage", "items": 1, "times": 1})).await;
    let page = azure.get(&list).await.body;
    assert_eq!(page["value"].as_array().unwrap().len(), 1);
    assert!(page["nextLink"].is_string());
    azure.fault(json!({"fault": "failPage", "times": 1})).await;
    assert_eq!(azure.get(&list).await.status, 500);
    seen.insert("Z11");

    // Z12, Z14, Z15 by the cloud itself.
    azure.do_control("quota", json!({"publicIps": 2})).await;
    let over = azure.put(&resource("publicIPAddresses", "more"), public_ip()).await;
    assert_eq!(over.status, 400, "{over:?}");
    let lb = resource("loadBalancers", "web");
    azure.do_control("tamper", json!({"do": "lock", "scope": lb, "level": "CanNotDelete"})).await;
    assert_eq!(azure.delete(&lb).await.code(), "ScopeLocked");
    azure.do_control("tamper", json!({"do": "unlock", "scope": lb})).await;
    azure.do_control("tamper", json!({"do": "deny", "scope": lb})).await;
    assert_eq!(azure.put(&lb, load_balancer("web")).await.code(), "RequestDisallowedByPolicy");
    azure.do_control("tamper", json!({"do": "allow", "scope": lb})).await;
    azure.do_control("tamper", json!({"do": "forbid", "scope": lb, "what": "everything"})).await;
    assert_eq!(azure.get(&lb).await.code(), "AuthorizationFailed");
    azure.do_control("tamper", json!({"do": "permit", "scope": lb})).await;

    // Z16: one poison address spoils its batch.
    let gateway = resource("serviceGateways", "gw");
    azure.do_control("poison", json!({"address": "10.1.2.4"})).await;
    let update = |address: &str| {
        json!({"action": "PartialUpdate", "addressLocations": [{
        "addressLocation": "10.1.0.4", "addressUpdateAction": "PartialUpdate",
        "addresses": [{"address": address, "services": ["web"]}]}]})
    };
    let post = async |body: Value| {
        let path = format!("{gateway}/updateAddressLocations");
        azure.request(Method::POST, &path, Some(body)).send().await.unwrap().status().as_u16()
    };
    assert!(post(update("10.1.2.4")).await >= 400);
    assert!(post(update("10.1.2.5")).await < 300);
    azure.pass(60).await;
    seen.insert("Z16");

    // Z18: edits and deletions behind our back. Z19: strangers with names like ours. Z20: no gateway.
    for deed in [
        json!({"do": "editTags", "id": lb, "tags": {}}),
        json!({"do": "editRules", "id": lb, "rules": [{"protocol": "Udp", "frontendPort": 53, "backendPort": 53}]}),
        json!({"do": "removeAddress", "gateway": gateway, "location": "10.1.0.4", "address": "10.1.2.3"}),
        json!({"do": "unregister", "gateway": gateway, "name": "web"}),
        json!({"do": "delete", "id": lb}),
        json!({"do": "delete", "id": resource("publicIPAddresses", "web-pip")}),
    ] {
        let before = azure.timeless_state().await;
        azure.do_control("tamper", deed.clone()).await;
        assert_ne!(azure.timeless_state().await, before, "{deed}");
    }
    seen.insert("Z18");
    let ours = resource("publicIPAddresses", "0a1b2c3d-0000-4000-8000-00000000000f-pip");
    azure.do_control("tamper", json!({"do": "put", "id": ours, "body": public_ip()})).await;
    assert_eq!(azure.get(&ours).await.status, 200);
    seen.insert("Z19");
    azure.do_control("tamper", json!({"do": "delete", "id": gateway})).await;
    assert_eq!(azure.get(&gateway).await.status, 404);
    seen.insert("Z20");
    azure.do_control("slow", json!({"factor": 50})).await;

    let all: BTreeSet<String> = (1..=22).map(|number| format!("Z{number}")).collect();
    let seen: BTreeSet<String> = seen.into_iter().map(ToOwned::to_owned).collect();
    assert_eq!(seen, all);
}
