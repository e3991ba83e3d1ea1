//! Whatever comes in: the emulator survives, answers with a refusal, and nothing changes.

use std::cell::RefCell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::support::{Azure, options, resource};

const CASES: u32 = 300;

/// An emulator with something in it, and whether it is still the same and well.
struct Target {
    runtime: Runtime,
    azure: Azure,
    before: Value,
}

impl Target {
    fn new() -> Target {
        let runtime = Runtime::new().unwrap();
        let azure = runtime.block_on(async {
            let azure = Azure::start(options()).await.with_gateway().await.with_load_balancer("web").await;
            azure.control(reqwest::Method::DELETE, "buckets", None).await;
            azure
        });
        let before = runtime.block_on(azure.timeless_state());
        Target { runtime, azure, before }
    }

    fn run<S: Strategy>(&self, strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        TestRunner::new(config).run(&strategy, test).unwrap();
    }

    fn is_well_and_unchanged(&self) {
        assert_eq!(self.runtime.block_on(self.azure.timeless_state()), self.before);
        let answer = self.runtime.block_on(self.azure.get(&resource("loadBalancers", "web")));
        assert_eq!(answer.status, 200);
    }

    /// Sends bytes and reads what comes back until the other side closes.
    fn send(&self, is_secure: bool, bytes: &[u8]) -> Vec<u8> {
        let running = &self.azure.running;
        let address = if is_secure { running.address() } else { running.http_address().unwrap() };
        self.runtime.block_on(async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let mut answer = Vec::new();
            // The other side may close at any time, which is its good right.
            let _ = stream.write_all(bytes).await;
            let _ = stream.shutdown().await;
            let _ = stream.read_to_end(&mut answer).await;
            answer
        })
    }
}

/// The first line of an answer is a refusal, or there is no answer.
fn is_refusal(answer: &[u8]) -> bool {
    answer.is_empty() || answer.starts_with(b"HTTP/1.1 4") || answer.starts_with(b"HTTP/1.0 4")
}

#[test]
fn random_bytes_are_refused_on_either_door() {
    let target = Target::new();
    target.run((any::<bool>(), vec(any::<u8>(), 0..2_000)), |(is_secure, bytes)| {
        let answer = target.send(is_secure, &bytes);
        prop_assert!(is_secure || is_refusal(&answer), "{}", String::from_utf8_lossy(&answer));
        Ok(())
    });
    target.is_well_and_unchanged();
}

#[test]
fn requests_that_are_almost_right_are_refused() {
    let target = Target::new();
    let line = prop_oneof![
        Just("GET / HTTP/1.1".to_owned()),
        Just("PUT /subscriptions/s/resourcegroups/x HTTP/1.1".to_owned()),
        "[A-Z]{0,9} /[ -~]{0,40} HTTP/[0-9].[0-9]",
        "\\PC{0,40}",
    ];
    let header = prop_oneof![
        Just("Host: localhost".to_owned()),
        Just("Content-Length: 99999999999999999999".to_owned()),
        Just("Content-Length: -1".to_owned()),
        Just("Content-Length: 5".to_owned()),
        Just("Content-Length: 6".to_owned()),
        Just("Transfer-Encoding: chunked".to_owned()),
        Just("Expect: 100-continue".to_owned()),
        Just("Upgrade: h2c".to_owned()),
        Just("Authorization: Bearer".to_owned()),
        "[A-Za-z-]{0,12}: ?\\PC{0,30}",
    ];
    let request = (line, vec(header, 0..6), vec(any::<u8>(), 0..200));
    target.run(request, |(line, headers, body)| {
        let mut bytes = format!("{line}\r\n{}\r\n\r\n", headers.join("\r\n")).into_bytes();
        bytes.extend(body);
        let answer = target.send(false, &bytes);
        let text = String::from_utf8_lossy(&answer);
        prop_assert!(is_refusal(&answer) || text.starts_with("HTTP/1.1 100"), "{text}");
        Ok(())
    });
    target.is_well_and_unchanged();
}

/// JSON of any shape, some of it with names that mean something.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|it| json!(it)),
        "\\PC{0,20}".prop_map(Value::from),
        Just(json!(resource("publicIPAddresses", "web-pip"))),
        Just(json!("Service")),
    ];
    let name = prop_oneof![
        Just("location".to_owned()),
        Just("properties".to_owned()),
        Just("sku".to_owned()),
        Just("name".to_owned()),
        Just("id".to_owned()),
        Just("tags".to_owned()),
        Just("frontendIPConfigurations".to_owned()),
        Just("loadBalancingRules".to_owned()),
        Just("serviceRequests".to_owned()),
        Just("addressLocations".to_owned()),
        Just("action".to_owned()),
        "\\PC{0,8}",
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((name.clone(), inner), 0..6).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

#[test]
fn whoever_has_a_token_can_break_nothing_either() {
    let target = Target::new();
    let method = prop_oneof![
        Just("PUT"),
        Just("PATCH"),
        Just("POST"),
        Just("DELETE"),
        Just("GET"),
        Just("HEAD"),
        Just("OPTIONS")
    ];
    let piece = prop_oneof![
        Just("subscriptions".to_owned()),
        Just("resourceGroups".to_owned()),
        Just("rg".to_owned()),
        Just("providers".to_owned()),
        Just("Microsoft.Network".to_owned()),
        Just("loadBalancers".to_owned()),
        Just("publicIPAddresses".to_owned()),
        Just("serviceGateways".to_owned()),
        Just("gw".to_owned()),
        Just("web".to_owned()),
        Just("updateServices".to_owned()),
        Just("%2f..%00".to_owned()),
        "[!-~&&[^ ?#/<>\"{}|\\\\^`]]{0,12}",
    ];
    let path = prop_oneof![
        vec(piece, 0..10).prop_map(|pieces| format!("/{}", pieces.join("/"))),
        Just(resource("loadBalancers", "web")),
        Just(resource("publicIPAddresses", "other")),
        Just(format!("{}/updateServices", resource("serviceGateways", "gw"))),
        Just(format!("{}/updateAddressLocations", resource("serviceGateways", "gw"))),
    ];
    let query = prop_oneof![
        Just("api-version=2025-05-01".to_owned()),
        Just("api-version=2026-03-01".to_owned()),
        "[!-~&&[^ #<>\"{}|\\\\^`]]{0,20}",
    ];
    let body = prop_oneof![any_json().prop_map(|it| it.to_string().into_bytes()), vec(any::<u8>(), 0..300),];
    let known = RefCell::new(target.before.clone());
    target.run((method, path, query, body), |(method, path, query, body)| {
        let azure = &target.azure;
        let url = azure.url(&format!("{path}?{query}"));
        let status = target.runtime.block_on(async {
            let request = azure.client.request(method.parse().unwrap(), &url).bearer_auth(&azure.token);
            let request = request.header("content-type", "application/json").body(body);
            request.send().await.map(|answer| answer.status().as_u16())
        });
        let status = status.map_err(|problem| TestCaseError::fail(format!("{problem:?}")))?;
        // 501 is what Azure has and the emulator has not.
        prop_assert!((200..500).contains(&status) || status == 501, "{method} {url}: {status}");
        let may_change = status < 300 && method != "GET" && method != "HEAD";
        if may_change {
            // What has begun is over before the next request, or it would look like that one's doing.
            target.runtime.block_on(azure.pass(60));
        }
        let now = target.runtime.block_on(azure.timeless_state());
        prop_assert!(may_change || now == *known.borrow(), "{method} {url}: {status} and yet it changed");
        known.replace(now);
        Ok(())
    });
    assert_eq!(target.runtime.block_on(target.azure.fresh_token()).split('.').count(), 3);
}

#[test]
fn random_frames_inside_tls_end_one_connection_and_no_more() {
    let target = Target::new();
    // A frame: length, type, flags, stream, payload; the length may lie.
    let frame = (0u8..12, any::<u8>(), 0u32..8, vec(any::<u8>(), 0..60), 0usize..70).prop_map(
        |(kind, flags, stream, payload, length)| {
            let mut bytes = (length as u32).to_be_bytes()[1..].to_vec();
            bytes.extend([kind, flags]);
            bytes.extend(stream.to_be_bytes());
            bytes.extend(payload);
            bytes
        },
    );
    target.run((any::<bool>(), vec(frame, 0..12)), |(with_preface, frames)| {
        let mut bytes = if with_preface { b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec() } else { Vec::new() };
        bytes.extend(frames.concat());
        target.runtime.block_on(async {
            let mut stream = target.azure.secure_stream().await;
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
        });
        Ok(())
    });
    target.is_well_and_unchanged();
}
