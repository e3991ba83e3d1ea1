//! Answers that say what they should.

use serde_json::json;
use sluice_model::address::Family;
use sluice_model::azure::*;
use sluice_model::call::*;
use std::time::Duration;

use crate::support::*;

#[test]
fn a_public_ip_is_read_with_its_user() {
    let frontend = format!("{NETWORK}/loadBalancers/web/frontendIPConfigurations/frontend");
    let nat = format!("{NETWORK}/natGateways/blue");
    for (user, used_by) in [
        (json!({"ipConfiguration": {"id": frontend}}), Some(frontend.as_str())),
        (json!({"natGateway": {"id": nat}, "ipConfiguration": null}), Some(nat.as_str())),
        (json!({"natGateway": {}}), None),
    ] {
        let mut properties = json!({
            "provisioningState": "Succeeded", "ipAddress": "20.1.2.3", "publicIPAddressVersion": "IPv4",
            "publicIPAllocationMethod": "Static", "idleTimeoutInMinutes": 4, "ipTags": [],
        });
        properties.as_object_mut().unwrap().extend(user.as_object().unwrap().clone());
        let body = resource("publicIPAddresses/web-pip", properties).to_string();
        assert_eq!(
            payload(&get("publicIPAddresses/web-pip"), 200, &body),
            Payload::PublicIp(PublicIp {
                meta: meta("publicIPAddresses/web-pip"),
                family: Family::V4,
                address: Some("20.1.2.3".parse().unwrap()),
                used_by: used_by.map(ArmId::new),
            })
        );
    }
}

#[test]
fn a_nat_gateway_and_a_gateway_are_read() {
    let nat = resource(
        "natGateways/blue",
        json!({
            "provisioningState": "Failed",
            "serviceGateway": {"id": format!("{NETWORK}/serviceGateways/gw")},
            "publicIpAddresses": [{"id": format!("{NETWORK}/publicIPAddresses/blue-pip")}],
            "publicIpAddressesV6": null,
        }),
    );
    assert_eq!(
        payload(&get("natGateways/blue"), 200, &nat.to_string()),
        Payload::NatGateway(NatGateway {
            meta: Meta { provisioning: Provisioning::Failed, ..meta("natGateways/blue") },
            gateway: Some(id("serviceGateways/gw")),
            public_ips: vec![id("publicIPAddresses/blue-pip")],
            public_ips_v6: Vec::new(),
        })
    );
    let subnet = json!({"id": format!("{NETWORK}/virtualNetworks/vnet/subnets/pods")});
    let gateway = |targets: serde_json::Value| {
        let mut properties = json!({"virtualNetwork": {"id": format!("{NETWORK}/virtualNetworks/vnet")}});
        properties.as_object_mut().unwrap().extend(targets.as_object().unwrap().clone());
        let body = resource("serviceGateways/gw", properties).to_string();
        match payload(&get("serviceGateways/gw"), 200, &body) {
            Payload::Gateway(gateway) => gateway,
            other => panic!("{other:?}"),
        }
    };
    let v4 = json!({"privateIPAddress": "10.0.0.4", "subnet": subnet});
    let v6 = json!({"privateIPAddress": "fd00::0:4", "subnet": subnet});
    let both = gateway(json!({"routeTargetAddress": v4, "routeTargetAddressV6": v6}));
    assert_eq!(both.route_target_address, Some("10.0.0.4".parse().unwrap()));
    assert_eq!(both.route_target_address_v6, Some("fd00::4".parse().unwrap()));
    assert_eq!(both.route_target_subnet, id("virtualNetworks/vnet/subnets/pods"));
    assert_eq!(both.virtual_network, id("virtualNetworks/vnet"));
    let only_v6 = gateway(json!({"routeTargetAddressV6": v6}));
    assert_eq!(only_v6.route_target_address, None);
    assert_eq!(only_v6.route_target_address_v6, Some("fd00::4".parse().unwrap()));
    assert_eq!(only_v6.route_target_subnet, id("virtualNetworks/vnet/subnets/pods"));
}

#[test]
fn a_gateway_goes_back_to_the_last_digit_as_it_came() {
    let target = r#"{"privateIPAddress":"10.0.0.4","privateIPAllocationMethod":"Dynamic","novelty":1.10}"#;
    let six = r#"{"privateIPAddress":"fd00::4","privateIPAllocationMethod":"Static"}"#;
    let whole = format!(
        r#"{{"id":"{NETWORK}/serviceGateways/gw","zones":["1","3"],"location":"westus","tags":{{"team":"network"}},
            "properties":{{"provisioningState":"Failed","routeTargetAddress":{target},"routeTargetAddressV6":{six},
            "big":12345678901234567890123,"services":[ ]}},"sku":{{"name":"Standard"}}}}"#
    );
    let little = format!(r#"{{ "id":"{NETWORK}/serviceGateways/gw" }}"#);
    for document in [whole, little] {
        let Payload::Gateway(found) = payload(&get("serviceGateways/gw"), 200, &document) else {
            panic!("a gateway was asked for");
        };
        let again = Request::with(Method::Put, id("serviceGateways/gw"), Body::GatewayAsRead(found));
        let body = written(&again).body.map(|body| String::from_utf8(body).unwrap());
        assert_eq!(body, Some(document));
    }
}

#[test]
fn missing_fields_null_and_empty_texts_have_the_mildest_meaning() {
    let expected = PublicIp {
        meta: Meta { tags: Tags::new(), etag: ETag("".into()), ..meta("publicIPAddresses/web-pip") },
        family: Family::V4,
        address: None,
        used_by: None,
    };
    let id = format!("{NETWORK}/publicIPAddresses/web-pip");
    for body in [
        json!({"id": id}),
        json!({"id": id, "etag": null, "tags": null, "properties": null}),
        json!({"id": id, "etag": "", "tags": {}, "properties": {
            "provisioningState": null, "ipAddress": "", "publicIPAddressVersion": null, "natGateway": null}}),
        json!({"id": id, "properties": {"publicIPAddressVersion": "IPv5", "ipConfiguration": {"id": ""}}}),
    ] {
        let found = payload(&get("publicIPAddresses/web-pip"), 200, &body.to_string());
        assert_eq!(found, Payload::PublicIp(expected.clone()), "{body}");
    }
    let v6 = json!({"id": id, "properties": {"ipAddress": "2603:0::1"}}).to_string();
    let Payload::PublicIp(found) = payload(&get("publicIPAddresses/web-pip"), 200, &v6) else { panic!() };
    assert_eq!(found.family, Family::V6, "the address tells");
}

#[test]
fn the_etag_may_stand_in_the_header_alone() {
    let body = format!(r#"{{"id":"{NETWORK}/publicIPAddresses/web-pip"}}"#);
    let reply = reply_with(&get("publicIPAddresses/web-pip"), 200, &[("etag", "W/\"7\"")], body.as_bytes());
    let Reply::Answered(Answer { payload: Payload::PublicIp(found), .. }) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(&*found.meta.etag.0, "W/\"7\"");
}

#[test]
fn ids_are_kept_as_they_came_and_compared_without_case() {
    let shouted = format!("{NETWORK}/publicIPAddresses/web-pip").to_ascii_uppercase();
    let body = json!({"id": shouted}).to_string();
    let Payload::PublicIp(found) = payload(&get("publicIPAddresses/web-pip"), 200, &body) else { panic!() };
    assert_eq!(found.meta.id.as_str(), shouted);
}

#[test]
fn a_byte_order_mark_is_no_obstacle() {
    let body = format!("\u{feff} {{\"id\":\"{NETWORK}/publicIPAddresses/web-pip\"}}");
    assert!(matches!(payload(&get("publicIPAddresses/web-pip"), 200, &body), Payload::PublicIp(_)));
}

#[test]
fn containers_and_subnets_are_read() {
    let group_body =
        r#"{"id":"/subscriptions/s/resourceGroups/RG","properties":{"provisioningState":"Succeeded"}}"#;
    let read = Request::bare(Method::Get, group());
    assert_eq!(payload(&read, 200, group_body), Payload::Container(group()));
    let vnet = resource("virtualNetworks/vnet", json!({"subnets": []})).to_string();
    assert_eq!(
        payload(&get("virtualNetworks/vnet"), 200, &vnet),
        Payload::Container(id("virtualNetworks/vnet"))
    );
    let tail = "virtualNetworks/vnet/subnets/pods";
    let subnet = format!(
        r#"{{"id":"{NETWORK}/{tail}","etag":"1","properties":{{"serviceGateway":{{"id":"/gw"}},"n":1.50}}}}"#
    );
    assert_eq!(
        payload(&get(tail), 200, &subnet),
        Payload::Subnet(Subnet {
            id: id(tail),
            etag: ETag("1".into()),
            gateway: Some(ArmId::new("/gw")),
            rest: format!(r#"{{"id":"{NETWORK}/{tail}","etag":"1","properties":{{"n":1.50}}}}"#).into(),
        })
    );
}

#[test]
fn a_list_goes_on_where_its_link_says() {
    let next = format!("{ENDPOINT}/next?$skiptoken=1");
    for (link, expected) in
        [(json!(next), Some(PageToken(next.as_str().into()))), (json!(null), None), (json!(""), None)]
    {
        let body =
            json!({"value": [{"id": format!("{NETWORK}/natGateways/a")}], "nextLink": link}).to_string();
        let Payload::NatGateways(page) = payload(&list("natGateways"), 200, &body) else { panic!() };
        assert_eq!((page.items.len(), page.next), (1, expected));
    }
    let empty = payload(&list("natGateways"), 200, r#"{"value":[],"nextLink":"https://x/"}"#);
    assert!(matches!(empty, Payload::NatGateways(Page { items, next: Some(_) }) if items.is_empty()));
}

#[test]
fn every_kind_of_list_is_read() {
    let at = |tail: &str| format!("{NETWORK}/{tail}");
    let one = |tail: &str| json!({"value": [{"id": at(tail)}]}).to_string();
    let of = |target: &str, item: &str| payload(&list(target), 200, &one(item));
    assert!(
        matches!(of("publicIPAddresses", "publicIPAddresses/a"), Payload::PublicIps(it) if it.items.len() == 1)
    );
    assert!(
        matches!(of("loadBalancers", "loadBalancers/a"), Payload::LoadBalancers(it) if it.items.len() == 1)
    );
    assert!(
        matches!(of("serviceGateways", "serviceGateways/a"), Payload::Gateways(it) if it.items.len() == 1)
    );
    assert!(
        matches!(of("virtualNetworks", "virtualNetworks/a"), Payload::Networks(it) if it.items.len() == 1)
    );
    let subnets = of("virtualNetworks/v/subnets", "virtualNetworks/v/subnets/a");
    assert!(matches!(subnets, Payload::Subnets(it) if it.items.len() == 1));
    let everywhere = Request::bare(
        Method::List,
        ArmId::new("/subscriptions/s/providers/Microsoft.Network/serviceGateways"),
    );
    let found = payload(&everywhere, 200, &one("serviceGateways/a"));
    assert!(matches!(found, Payload::Gateways(it) if it.items.len() == 1));
}

#[test]
fn registrations_are_read_with_types_that_we_do_not_know() {
    let pool = format!("{NETWORK}/loadBalancers/web/backendAddressPools/web");
    let nat = format!("{NETWORK}/natGateways/blue");
    let services = [
        json!({"name": "a", "properties": {"serviceType": "Inbound", "isDefault": false,
            "loadBalancerBackendPools": [{"id": pool, "name": "web", "properties": {}}], "publicNatGatewayId": null}}),
        json!({"name": "b", "etag": "1", "properties": {"serviceType": "Outbound", "isDefault": true,
            "loadBalancerBackendPools": [], "publicNatGatewayId": nat, "provisioningState": "Succeeded"}}),
        json!({"name": "c", "properties": {"serviceType": "Diagonal"}}),
        json!({"id": format!("{NETWORK}/serviceGateways/gw/services/d")}),
        json!({"name": "e", "properties": {"loadBalancerBackendPools": [{"id": pool}], "publicNatGatewayId": ""}}),
        json!({"name": "f", "properties": {"publicNatGatewayId": nat}}),
    ];
    let body = json!({"value": services}).to_string();
    let Payload::Registrations(page) = payload(&list("serviceGateways/gw/services"), 200, &body) else {
        panic!()
    };
    let seen: Vec<_> = page
        .items
        .iter()
        .map(|it| (&*it.name, it.direction, it.is_default, it.pools.len(), it.nat_gateway.is_some()))
        .collect();
    assert_eq!(
        seen,
        [
            ("a", Direction::Inbound, false, 1, false),
            ("b", Direction::Outbound, true, 0, true),
            ("c", Direction::InboundOutbound, false, 0, false),
            ("d", Direction::InboundOutbound, false, 0, false),
            ("e", Direction::Inbound, false, 1, false),
            ("f", Direction::Outbound, false, 0, true),
        ]
    );
}

#[test]
fn locations_are_read_in_any_spelling_and_in_one_form() {
    let body = json!({"value": [
        {"addressLocation": "10.0.0.1", "addresses": [
            {"address": "10.1.0.1", "services": ["blue", "green"]}, {"address": "10.1.0.2"},
            {"address": "10.1.0.3", "services": null}]},
        {"addressLocation": "FD00:0:0:0::1", "addresses": [{"address": "fd01::00:2", "services": []}],
            "addressUpdateAction": "FullUpdate"},
        {"addressLocation": "10.0.0.2", "addresses": null},
    ]})
    .to_string();
    let Payload::Locations(page) = payload(&list("serviceGateways/gw/addressLocations"), 200, &body) else {
        panic!()
    };
    let update = |address: &str, services: &[&str]| AddressUpdate {
        address: address.parse().unwrap(),
        services: services.iter().map(|&name| name.into()).collect(),
    };
    let location = |location: &str, addresses| Location { location: location.parse().unwrap(), addresses };
    assert_eq!(
        page.items,
        [
            location(
                "10.0.0.1",
                vec![
                    update("10.1.0.1", &["blue", "green"]),
                    update("10.1.0.2", &[]),
                    update("10.1.0.3", &[])
                ]
            ),
            location("fd00::1", vec![update("fd01::2", &[])]),
            location("10.0.0.2", Vec::new()),
        ]
    );
}

#[test]
fn a_write_answers_with_the_resource_or_with_where_to_follow_it() {
    let headers = [("Azure-AsyncOperation", OPERATION), ("Location", RESULT), ("Retry-After", "3")];
    let body = format!(
        r#"{{"id":"{NETWORK}/publicIPAddresses/web-pip","properties":{{"provisioningState":"Updating"}}}}"#
    );
    for (status, body) in
        [(201, &*body), (200, &body), (202, ""), (201, ""), (200, ""), (202, "{}"), (202, "null")]
    {
        let Reply::Answered(answer) = reply_with(&put(), status, &headers, body.as_bytes()) else { panic!() };
        assert_eq!(answer.operation.as_ref().map(ArmId::as_str), Some(OPERATION));
        assert_eq!(answer.retry_after, Some(Duration::from_secs(3)));
        let has_resource = matches!(answer.payload, Payload::PublicIp(_));
        assert_eq!(has_resource, body.contains("id"), "{status} {body}");
        assert!(has_resource || answer.payload == Payload::None);
    }
}

#[test]
fn an_operation_that_must_not_be_followed_is_none() {
    // A private name before Azure, which passes Azure's own addresses on.
    for there in [
        "https://management.private.example/subscriptions/s/operations/1?s=1",
        "http://management.azure.com/subscriptions/s/operations/1",
        "relative/path",
        "https://evil.example\\@management.azure.com/x",
    ] {
        let resource = format!(r#"{{"id":"{NETWORK}/publicIPAddresses/web-pip"}}"#);
        for (request, status, body) in
            [(put(), 201, resource.as_str()), (put(), 202, ""), (delete(), 202, ""), (post(), 202, "")]
        {
            let operation = |headers: &[(&str, &str)]| {
                let reply = reply_with(&request, status, headers, body.as_bytes());
                let Reply::Answered(answer) = reply else { panic!("{reply:?} to {status} {body}") };
                answer.operation
            };
            assert_eq!(operation(&[("Azure-AsyncOperation", there)]), None, "{there}");
            assert_eq!(operation(&[("Location", there)]), None, "{there}");
            // What is left may still be followed.
            let result = operation(&[("Azure-AsyncOperation", there), ("Location", RESULT)]);
            assert_eq!(result.as_ref().map(ArmId::as_str), Some(RESULT));
        }
        // An empty success promised nothing but the operation, so nobody knows.
        let empty = reply_with(&put(), 201, &[("Azure-AsyncOperation", there)], b"");
        assert!(matches!(empty, Reply::Lost(_)), "{empty:?}");
    }
    // A path is one on the endpoint.
    let reply = reply_with(&put(), 202, &[("Location", "/operations/1")], b"");
    assert!(matches!(reply, Reply::Answered(Answer { operation: Some(_), .. })), "{reply:?}");
}

#[test]
fn patched_tags_answer_with_the_resource() {
    let patch = Request::with(Method::PatchTags, id("natGateways/blue"), Body::Tags(Tags::new()));
    let body = format!(r#"{{"id":"{NETWORK}/natGateways/blue","tags":{{"a":"b","c":null}}}}"#);
    let Payload::NatGateway(nat) = payload(&patch, 200, &body) else { panic!() };
    assert_eq!(nat.meta.tags, tags(&[("a", "b"), ("c", "")]));
}

#[test]
fn a_post_answers_with_nothing_or_with_how_it_stands() {
    for (status, body, expected) in [
        (202, "", Payload::None),
        (204, "", Payload::None),
        (200, "", Payload::None),
        (200, "  \r\n", Payload::None),
        (200, "null", Payload::None),
        (200, "{}", Payload::None),
        (200, r#"{"error":null,"services":[]}"#, Payload::None),
        (200, r#"{"status":"Succeeded"}"#, Payload::Operation(OperationState::Succeeded)),
        (200, r#"{"Status":"succeeded"}"#, Payload::Operation(OperationState::Succeeded)),
        (202, r#"{"status":"InProgress"}"#, Payload::Operation(OperationState::Running)),
    ] {
        for request in [post(), delete()] {
            assert_eq!(payload(&request, status, body), expected, "{status} {body}");
        }
    }
}

#[test]
fn a_200_to_a_post_with_an_error_in_it_is_an_error() {
    for body in [
        r#"{"error":{"code":"C","message":"M"}}"#,
        r#"{"status":"Succeeded","error":{"code":"C","message":"M"}}"#,
        r#"{"code":"C","message":"M"}"#,
    ] {
        let Payload::Error(error) = payload(&post(), 200, body) else { panic!("{body}") };
        assert_eq!((&*error.code, &*error.message), ("C", "M"));
    }
    let failed = r#"{"status":"Failed","error":{"code":"C","message":"M"}}"#;
    assert!(matches!(payload(&post(), 200, failed), Payload::Operation(OperationState::Failed(_))));
}

#[test]
fn a_poll_says_how_the_operation_stands() {
    use OperationState::*;
    let error = ArmError { code: "C".into(), message: "M".into() };
    for (status, body, expected) in [
        (200, r#"{"status":"Succeeded"}"#, Payload::Operation(Succeeded)),
        (200, r#"{"status":"Succeeded","error":{}}"#, Payload::Operation(Succeeded)),
        (200, r#"{"status":"InProgress"}"#, Payload::Operation(Running)),
        (202, r#"{"status":"Marinating","percentComplete":3.5}"#, Payload::Operation(Running)),
        (
            200,
            r#"{"status":"Failed","error":{"code":"C","message":"M"}}"#,
            Payload::Operation(Failed(error.clone())),
        ),
        (
            500,
            r#"{"status":"Failed","error":{"code":"C","message":"M"}}"#,
            Payload::Operation(Failed(error.clone())),
        ),
        (
            200,
            r#"{"status":"Succeeded","error":{"code":"C","message":"M"}}"#,
            Payload::Operation(Failed(error.clone())),
        ),
        (
            200,
            r#"{"status":"Cancelled","error":{"code":"C","message":"M"}}"#,
            Payload::Operation(Canceled(error)),
        ),
        (200, "{}", Payload::Operation(Running)),
        (202, "", Payload::None),
        (204, "", Payload::None),
    ] {
        assert_eq!(payload(&poll(OPERATION), status, body), expected, "{status} {body}");
    }
    let Payload::Operation(Failed(unsaid)) = payload(&poll(OPERATION), 200, r#"{"status":"Failed"}"#) else {
        panic!()
    };
    assert_eq!(&*unsaid.code, "OperationFailed");
}

#[test]
fn behind_a_location_comes_the_result() {
    for (status, body) in [(200, ""), (204, ""), (200, "{}"), (200, r#"{"anything":1}"#)] {
        assert_eq!(payload(&poll(RESULT), status, body), Payload::None, "{status} {body}");
    }
    assert_eq!(payload(&poll(RESULT), 202, ""), Payload::None);
    assert_eq!(payload(&poll(RESULT), 202, "{}"), Payload::Operation(OperationState::Running));
    let body =
        format!(r#"{{"id":"{NETWORK}/natGateways/blue","properties":{{"provisioningState":"Succeeded"}}}}"#);
    assert!(matches!(payload(&poll(RESULT), 200, &body), Payload::NatGateway(_)));
    assert!(matches!(payload(&poll(OPERATION), 200, &body), Payload::NatGateway(_)));
}

#[test]
fn what_remains_is_told_to_the_bucket_that_paid() {
    let headers = [
        ("x-ms-ratelimit-remaining-subscription-writes", "17"),
        ("X-Ms-Ratelimit-Remaining-Subscription-Global-Deletes", "5"),
        ("x-ms-ratelimit-remaining-subscription-global-reads", "9"),
    ];
    for (request, expected) in [(post(), 17), (delete(), 5), (poll(RESULT), 9)] {
        let Reply::Answered(answer) = reply_with(&request, 202, &headers, b"") else { panic!() };
        assert_eq!(answer.remaining, Some(expected));
    }
}
