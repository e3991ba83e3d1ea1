//! Whatever is written is read back, and whatever comes ends in a reply.

use proptest::prelude::*;
use serde_json::{Value, json};
use sluice_arm_wire::write;
use sluice_model::Failure;
use sluice_model::azure::*;
use sluice_model::call::*;

use crate::any::*;
use crate::support::*;

/// What Azure would answer: what was written, with an id, an etag and a state.
fn echoed(request: &Request, word: &str, etag: &str) -> Value {
    let mut document = body(request);
    document["id"] = json!(request.target.as_str());
    document["etag"] = json!(etag);
    document["properties"]["provisioningState"] = json!(word);
    document
}

/// The payload that says of a body what the body says, and nothing that it does not.
fn expected(request: &Request, state: Provisioning, etag: &str, document: &str) -> Payload {
    let meta = |tags: &Tags| Meta {
        id: request.target.clone(),
        tags: tags.clone(),
        etag: ETag(etag.into()),
        provisioning: state,
    };
    match request.body.clone() {
        Body::PublicIp(it) => Payload::PublicIp(PublicIp {
            meta: meta(&it.tags),
            family: it.family,
            address: None,
            used_by: None,
        }),
        Body::LoadBalancer(it) => Payload::LoadBalancer(LoadBalancer {
            meta: meta(&it.tags),
            public_ip: Some(it.public_ip),
            pools: vec![request.target.name().into()],
            rules: it.rules,
            edited: false,
        }),
        Body::NatGateway(it) => Payload::NatGateway(NatGateway {
            meta: meta(&it.tags),
            gateway: it.gateway,
            public_ips: it.public_ips,
            public_ips_v6: it.public_ips_v6,
        }),
        Body::Gateway(it) => Payload::Gateway(Gateway {
            meta: meta(&it.tags),
            virtual_network: it.virtual_network,
            route_target_subnet: it.route_target_subnet,
            route_target_address: it.route_target_address,
            route_target_address_v6: it.route_target_address_v6,
            document: document.into(),
        }),
        other => panic!("{other:?} is not written here"),
    }
}

/// Any reply is one of these, and says what happened.
fn is_sound(request: &Request, status: u16, reply: &Reply) -> Result<(), TestCaseError> {
    match reply {
        Reply::Answered(answer) => {
            prop_assert_eq!(answer.status, status);
            prop_assert!(status >= 200);
            let failure = Failure::in_reply(reply);
            prop_assert!(status < 300 || failure.is_some(), "{status} is no success");
            if let Some(failure) = failure {
                prop_assert!(!failure.code.is_empty());
                prop_assert!(failure.message.chars().count() <= 1_001);
            }
            let answers_a_read = !matches!(answer.payload, Payload::None | Payload::Operation(_));
            let is_read = matches!(request.method, Method::Get | Method::List);
            prop_assert!(!is_read || answers_a_read, "{answer:?}");
        }
        Reply::Lost(why) => prop_assert!(status < 300 && !why.is_empty()),
        Reply::NotSent(why) => prop_assert!(false, "it was sent: {why}"),
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read_back(
        request in any_put(),
        (word, state) in state(),
        etag in "[ -~]{1,12}",
    ) {
        let answer = echoed(&request, word, &etag).to_string();
        prop_assert_eq!(payload(&request, 200, &answer), expected(&request, state, &etag, &answer));
    }

    #[test]
    fn registrations_are_listed_as_they_were_registered(all in registrations()) {
        let requests = all.iter().map(|it| ServiceRequest { is_delete: false, service: it.clone() }).collect();
        let update = Request::with(Method::UpdateServices, id("serviceGateways/gw"), Body::Services(requests));
        let entries: Vec<Value> = body(&update)["serviceRequests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["service"].clone())
            .collect();
        let answer = json!({"value": entries}).to_string();
        let found = payload(&list("serviceGateways/gw/services"), 200, &answer);
        prop_assert_eq!(found, Payload::Registrations(Page { items: all, next: None }));
    }

    #[test]
    fn locations_are_listed_as_they_were_sent(all in locations(), full in any::<bool>()) {
        let updates = all
            .iter()
            .map(|it| LocationUpdate { location: it.location, full, addresses: it.addresses.clone() })
            .collect();
        let update = Request::with(Method::UpdateLocations, id("serviceGateways/gw"), Body::Locations(updates));
        let answer = json!({"value": body(&update)["addressLocations"]}).to_string();
        let found = payload(&list("serviceGateways/gw/addressLocations"), 200, &answer);
        prop_assert_eq!(found, Payload::Locations(Page { items: all, next: None }));
    }

    #[test]
    fn a_subnet_keeps_everything_but_our_reference(
        mut made in any_json().prop_filter("an object", Value::is_object),
        properties in any_json().prop_filter("an object", Value::is_object),
        gateway in prop::option::of(an_id("serviceGateways")),
        pretty in any::<bool>(),
    ) {
        let target = id("virtualNetworks/v/subnets/s");
        made["id"] = json!(target.as_str());
        made["etag"] = json!("1");
        made["properties"] = properties;
        made["properties"]["serviceGateway"] = json!(gateway.as_ref().map(|id| json!({"id": id.as_str()})));
        let text = if pretty { format!("{made:#}") } else { made.to_string() };
        // The tree of this test loses the last digit of some numbers; the subnet must not.
        let mut document: Value = serde_json::from_str(&text).unwrap();
        let Payload::Subnet(found) = payload(&get("virtualNetworks/v/subnets/s"), 200, &text) else {
            return Err(TestCaseError::fail("a subnet was asked for"));
        };
        prop_assert_eq!(&found.gateway, &gateway);
        let again = Body::Subnet(SubnetBody { gateway, rest: found.rest.clone() });
        prop_assert_eq!(body(&Request::with(Method::Put, target, again)), document.clone());
        document["properties"].as_object_mut().unwrap().remove("serviceGateway");
        prop_assert_eq!(serde_json::from_str::<Value>(&found.rest).unwrap(), document);
    }

    #[test]
    fn half_an_answer_is_never_an_answer(request in any_put(), (word, _) in state(), cut in any::<prop::sample::Index>()) {
        let answer = echoed(&request, word, "1").to_string();
        let page = json!({"value": [echoed(&request, word, "1")]}).to_string();
        let collection = request.target.as_str().rsplit_once('/').unwrap().0;
        let listing = Request::bare(Method::List, ArmId::new(collection));
        for (request, answer) in [(&request, answer), (&listing, page)] {
            let bytes = &answer.as_bytes()[..cut.index(answer.len())];
            let length = answer.len().to_string();
            let reply = reply_with(request, 200, &[("Content-Length", &length)], bytes);
            prop_assert!(matches!(reply, Reply::Lost(_)), "{reply:?}");
        }
    }

    #[test]
    fn half_an_error_is_never_success(cut in any::<prop::sample::Index>(), status in prop::sample::select(vec![200u16, 202, 404, 500])) {
        let answer = r#"{"status":"Failed","error":{"code":"C","message":"M","details":[{"message":"D"}]}}"#;
        let bytes = &answer.as_bytes()[..cut.index(answer.len())];
        for request in [post(), delete(), poll(OPERATION), poll(RESULT), put()] {
            let reply = reply_with(&request, status, &[("Content-Length", "80")], bytes);
            prop_assert!(Failure::in_reply(&reply).is_some(), "{reply:?}");
        }
    }

    #[test]
    fn any_bytes_end_in_a_reply(
        request in any_request(),
        status in 0..1_000u16,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        header in "\\PC{0,30}",
    ) {
        for name in ["Retry-After", "Date", "Content-Type", "Azure-AsyncOperation", "Location", "ETag",
            "x-ms-ratelimit-remaining-subscription-reads", "Content-Length", &header] {
            let reply = reply_with(&request, status, &[(name, &header)], &bytes);
            if status >= 200 {
                is_sound(&request, status, &reply)?;
            }
        }
    }

    #[test]
    fn any_json_ends_in_a_reply(
        request in any_request(),
        status in prop::sample::select(vec![200u16, 201, 202, 204, 302, 400, 404, 409, 429, 500, 503]),
        value in any_json(),
    ) {
        is_sound(&request, status, &reply(&request, status, &value.to_string()))?;
    }

    #[test]
    fn a_list_is_read_whole_or_not_at_all(value in any_json(), tail in prop::sample::select(vec![
        "publicIPAddresses", "loadBalancers", "natGateways", "serviceGateways", "virtualNetworks",
        "virtualNetworks/v/subnets", "serviceGateways/gw/services", "serviceGateways/gw/addressLocations",
    ]), good in 0..3usize) {
        let good_item = json!({
            "id": format!("{NETWORK}/x"), "name": "x", "addressLocation": "10.0.0.1", "addresses": [], "properties": {},
        });
        let mut items = vec![good_item; good];
        items.push(value);
        let answer = json!({"value": items.clone()}).to_string();
        if let Reply::Answered(answer) = reply(&list(tail), 200, &answer) {
            let length = match answer.payload {
                Payload::PublicIps(page) => page.items.len(),
                Payload::LoadBalancers(page) => page.items.len(),
                Payload::NatGateways(page) => page.items.len(),
                Payload::Gateways(page) => page.items.len(),
                Payload::Networks(page) => page.items.len(),
                Payload::Subnets(page) => page.items.len(),
                Payload::Registrations(page) => page.items.len(),
                Payload::Locations(page) => page.items.len(),
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            };
            prop_assert_eq!(length, items.len());
        }
    }

    #[test]
    fn fields_that_we_do_not_know_change_nothing(request in any_put(), novelty in any_json()) {
        fn sprinkle(value: &mut Value, novelty: &Value, in_tags: bool) {
            match value {
                Value::Object(fields) => {
                    for (key, inner) in fields.iter_mut() {
                        sprinkle(inner, novelty, key == "tags");
                    }
                    if !in_tags {
                        fields.insert("noveltyOfTheYear".into(), novelty.clone());
                    }
                }
                Value::Array(items) => items.iter_mut().for_each(|item| sprinkle(item, novelty, false)),
                _ => {}
            }
        }
        let mut document = echoed(&request, "Succeeded", "1");
        sprinkle(&mut document, &novelty, false);
        let document = document.to_string();
        let found = payload(&request, 200, &document);
        prop_assert_eq!(found, expected(&request, Provisioning::Succeeded, "1", &document));
    }

    #[test]
    fn no_request_ever_leaves_for_another_host(parts in prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..8)) {
        let given = parts.concat();
        let page = Request { page: Some(PageToken(given.as_str().into())), ..list("loadBalancers") };
        for request in [poll(&given), page] {
            let Ok(written) = write(&dialect(), &request) else { continue };
            // Whoever sends it reads it in this way.
            let Ok(url) = url::Url::parse(&written.url) else { continue };
            prop_assert_eq!(url.scheme(), "https");
            prop_assert_eq!(url.host_str(), Some("management.azure.com"));
            prop_assert_eq!(url.port_or_known_default(), Some(443));
            prop_assert_eq!((url.username(), url.password()), ("", None));
        }
    }

    #[test]
    fn every_name_arrives_as_it_is(name in "\\PC{1,12}") {
        let request = get(&format!("publicIPAddresses/{name}"));
        let Ok(written) = write(&dialect(), &request) else {
            prop_assert!(name.contains('/') || name == "." || name == "..", "{name}");
            return Ok(());
        };
        let url = url::Url::parse(&written.url).unwrap();
        let last = url.path_segments().unwrap().next_back().unwrap().to_owned();
        prop_assert_eq!(percent_decoded(&last), name);
        prop_assert_eq!(url.query(), Some("api-version=2025-05-01"));
        prop_assert_eq!(url.fragment(), None);
    }

    #[test]
    fn writing_the_same_twice_gives_the_same(request in any_put()) {
        prop_assert_eq!(written(&request), written(&request.clone()));
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).expect("hexadecimal digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("hexadecimal digits"));
                rest = tail;
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).expect("names are UTF-8")
}
