//! An emulator and a client for it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, Method, Response};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use sluice_cloud::{Config, Latencies};
use sluice_emulator::{Emulator, Options, Prepared, Running};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The subscription of all tests.
pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
/// Their resource group.
pub(crate) const GROUP: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg";
/// An audience that every cloud has.
pub(crate) const SCOPE: &str = "https://management.azure.com/.default";

/// An emulator with a client that trusts it and has a token.
pub(crate) struct Azure {
    pub(crate) running: Running,
    pub(crate) client: Client,
    pub(crate) token: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Answer {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.unwrap();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Answer { status, headers, body }
    }

    pub(crate) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or("")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Options with a group, and operations that take their usual time.
pub(crate) fn options() -> Options {
    let prepare = vec![Prepared { subscription: SUBSCRIPTION.into(), group: "rg".into() }];
    Options { prepare, ..Options::for_tests() }
}

/// The same, with everything done at once.
pub(crate) fn instant() -> Options {
    Options { cloud: Config { latency: Latencies::INSTANT, ..Config::default() }, ..options() }
}

/// The same, kept in a folder.
pub(crate) fn kept(folder: &Path) -> Options {
    Options { state_file: Some(folder.join("state")), ..options() }
}

/// A client that trusts this emulator and nobody else.
pub(crate) fn trusting(running: &Running) -> ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let ca = Certificate::from_pem(running.ca_pem().as_bytes()).unwrap();
    Client::builder().tls_certs_only([ca]).no_proxy().timeout(Duration::from_secs(60))
}

impl Azure {
    pub(crate) async fn start(options: Options) -> Azure {
        Azure::around(Emulator::start(options).await.unwrap()).await
    }

    pub(crate) async fn around(running: Running) -> Azure {
        let client = trusting(&running).build().unwrap();
        let mut azure = Azure { running, client, token: String::new() };
        azure.token = azure.fresh_token().await;
        azure
    }

    /// A connection that has agreed on HTTP/2 and has said nothing yet.
    pub(crate) async fn secure_stream(&self) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(self.running.ca_pem().as_bytes()).unwrap();
        roots.add(ca).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let tcp = TcpStream::connect(self.running.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.running.url())
    }

    pub(crate) async fn fresh_token(&self) -> String {
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", "app"),
            ("client_secret", "secret"),
            ("scope", SCOPE),
        ];
        let answer = self.ask_for_token("/tenant/oauth2/v2.0/token", &form).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body["access_token"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn ask_for_token(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = self.client.post(self.url(path)).body(body);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        Answer::of(request.send().await.unwrap()).await
    }

    /// A request to the resource manager, as it goes out.
    pub(crate) fn request(&self, method: Method, path: &str, body: Option<Value>) -> reqwest::RequestBuilder {
        let separator = if path.contains('?') { "&" } else { "?" };
        let version = if path.contains("Microsoft.Network") { "2025-05-01" } else { "2021-04-01" };
        let url = if path.contains("api-version") {
            self.url(path)
        } else {
            self.url(&format!("{path}{separator}api-version={version}"))
        };
        let request = self.client.request(method, url).bearer_auth(&self.token);
        match body {
            Some(body) => request.json(&body),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path, None).send().await.unwrap()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::PUT, path, Some(body)).send().await.unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::DELETE, path, None).send().await.unwrap()).await
    }

    /// A call of the control API.
    pub(crate) async fn control(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let request = self.client.request(method, self.url(&format!("/_emulator/{path}")));
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        Answer::of(request.send().await.unwrap()).await
    }

    /// One that must succeed.
    pub(crate) async fn do_control(&self, path: &str, body: Value) -> Value {
        let answer = self.control(Method::POST, path, Some(body)).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.body
    }

    pub(crate) async fn state(&self) -> Value {
        let answer = self.control(Method::GET, "state", None).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    /// The state without the time, which never stands still.
    pub(crate) async fn timeless_state(&self) -> Value {
        let mut state = self.state().await;
        state.as_object_mut().unwrap().remove("time");
        state
    }

    pub(crate) async fn log(&self) -> Vec<Value> {
        let answer = self.control(Method::GET, "requests?bodies=true", None).await;
        answer.body["requests"].as_array().unwrap().clone()
    }

    /// Adds a fault rule.
    pub(crate) async fn fault(&self, rule: Value) -> u64 {
        self.do_control("faults", rule).await["rule"].as_u64().unwrap()
    }

    /// Lets emulated seconds pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        self.do_control("advance", json!({"seconds": seconds})).await;
    }
}

/// The id of a resource in the group.
pub(crate) fn resource(kind: &str, name: &str) -> String {
    format!("{GROUP}/providers/Microsoft.Network/{kind}/{name}")
}

/// The body of a public IP.
pub(crate) fn public_ip() -> Value {
    json!({
        "location": "eastus",
        "sku": {"name": "StandardV2"},
        "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"},
    })
}

/// The body of a virtual network with one subnet.
pub(crate) fn network() -> Value {
    json!({
        "location": "eastus",
        "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/8"]},
            "subnets": [{"name": "pods", "properties": {"addressPrefix": "10.1.0.0/16"}}],
        },
    })
}

/// The body of a service gateway.
pub(crate) fn gateway() -> Value {
    let network = resource("virtualNetworks", "vnet");
    json!({
        "location": "eastus",
        "sku": {"name": "Standard", "tier": "Regional"},
        "properties": {
            "virtualNetwork": {"id": network},
            "routeTargetAddress": {
                "privateIPAllocationMethod": "Dynamic",
                "subnet": {"id": format!("{network}/subnets/pods")},
            },
        },
    })
}

/// The body of a load balancer of ours.
pub(crate) fn load_balancer(name: &str) -> Value {
    let own = resource("loadBalancers", name);
    json!({
        "location": "eastus",
        "sku": {"name": "Service"},
        "properties": {
            "scope": "Public",
            "frontendIPConfigurations": [{
                "name": "frontend",
                "properties": {"publicIPAddress": {"id": resource("publicIPAddresses", &format!("{name}-pip"))}},
            }],
            "backendAddressPools": [{"name": name, "properties": {}}],
            "loadBalancingRules": [{
                "name": "rule-tcp-80",
                "properties": {
                    "protocol": "Tcp",
                    "frontendPort": 80,
                    "backendPort": 8080,
                    "enableFloatingIP": false,
                    "idleTimeoutInMinutes": 4,
                    "enableTcpReset": true,
                    "frontendIPConfiguration": {"id": format!("{own}/frontendIPConfigurations/frontend")},
                    "backendAddressPool": {"id": format!("{own}/backendAddressPools/{name}")},
                },
            }],
        },
    })
}

impl Azure {
    /// Makes a network and a gateway.
    pub(crate) async fn with_gateway(self) -> Azure {
        for (path, body) in
            [(resource("virtualNetworks", "vnet"), network()), (resource("serviceGateways", "gw"), gateway())]
        {
            let answer = self.put(&path, body).await;
            assert!(answer.status < 300, "{answer:?}");
            self.pass(60).await;
        }
        self
    }

    /// Makes a load balancer with its public IP.
    pub(crate) async fn with_load_balancer(self, name: &str) -> Azure {
        for (path, body) in [
            (resource("publicIPAddresses", &format!("{name}-pip")), public_ip()),
            (resource("loadBalancers", name), load_balancer(name)),
        ] {
            let answer = self.put(&path, body).await;
            assert!(answer.status < 300, "{answer:?}");
            self.pass(60).await;
        }
        self
    }
}
