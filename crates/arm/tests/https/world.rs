//! One client and one server, and the requests that the tests send.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_arm::{CallRecord, Client, Credential, Limits, Pem, Secret, Settings};
use sluice_model::address::Family;
use sluice_model::azure::{ArmId, PublicIpBody};
use sluice_model::call::{Body, Method, Reply, Request};
use sluice_model::{Failure, FailureClass};

use crate::certificates::Ca;
use crate::leaks;
use crate::server::{Act, Door, Seen, Server};

/// A token that need not be fetched.
pub(crate) const TOKEN: &str = "given-s3cr3t-token";
/// Where the resources of these tests are.
pub(crate) const NETWORK: &str = "/subscriptions/sub/resourceGroups/group/providers/Microsoft.Network";

pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) server: Server,
    pub(crate) ca: Ca,
    records: Arc<Mutex<Vec<CallRecord>>>,
}

impl World {
    /// A server behind TLS with this script, and a client that trusts it.
    pub(crate) async fn new(script: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> World {
        World::with(|_| (), script).await
    }

    /// The same with other settings.
    pub(crate) async fn with(
        change: impl FnOnce(&mut Settings),
        script: impl Fn(&Seen) -> Act + Send + Sync + 'static,
    ) -> World {
        World::at(|ca| Door::Tls(ca.acceptor(&["127.0.0.1"], &["http/1.1"])), change, script).await
    }

    /// The same behind another door.
    pub(crate) async fn at(
        door: impl FnOnce(&Ca) -> Door,
        change: impl FnOnce(&mut Settings),
        script: impl Fn(&Seen) -> Act + Send + Sync + 'static,
    ) -> World {
        leaks::listen();
        let ca = Ca::new();
        let server = Server::start(door(&ca), script).await;
        let mut settings = settings(&ca, &server);
        change(&mut settings);
        let records = Arc::new(Mutex::new(Vec::new()));
        let keep = records.clone();
        let observer = move |record: &CallRecord| keep.lock().unwrap().push(record.clone());
        let client = Client::observed(&settings, observer).unwrap();
        World { client, server, ca, records }
    }

    pub(crate) async fn read(&self) -> Reply {
        self.client.send(&read()).await
    }

    pub(crate) async fn write(&self) -> Reply {
        self.client.send(&write()).await
    }

    pub(crate) fn records(&self) -> Vec<CallRecord> {
        self.records.lock().unwrap().clone()
    }
}

/// Whatever a test did: nothing secret was logged, and no record has any of it.
impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            leaks::check();
            let records = format!("{:?}", self.records());
            assert!(!records.contains(leaks::MARK), "{records}");
        }
    }
}

/// The settings for a server that this CA vouches for.
pub(crate) fn settings(ca: &Ca, server: &Server) -> Settings {
    Settings {
        resource_manager_endpoint: Some(format!("https://{}", server.address)),
        authority_host: Some(format!("https://{}", server.address)),
        extra_ca: Some(Pem::Bytes(ca.pem.clone().into_bytes())),
        ..Settings::new("westeurope", Credential::Token(Secret::new(TOKEN)))
    }
}

/// Limits that are soon reached by what never comes, and not by a busy machine.
pub(crate) fn impatient() -> Limits {
    Limits { answer: Duration::from_millis(1500), ..Limits::default() }
}

pub(crate) fn public_ip() -> ArmId {
    ArmId::new(format!("{NETWORK}/publicIPAddresses/web-pip"))
}

/// Reads a public IP.
pub(crate) fn read() -> Request {
    Request::bare(Method::Get, public_ip())
}

/// Writes a public IP.
pub(crate) fn write() -> Request {
    let body = PublicIpBody { family: Family::V4, tags: Default::default() };
    Request::with(Method::Put, public_ip(), Body::PublicIp(body))
}

/// A public IP as Azure writes it.
pub(crate) fn public_ip_json() -> String {
    format!(
        r#"{{"name":"web-pip","id":"{}","etag":"W/\"1\"","location":"westeurope","tags":{{}},
            "sku":{{"name":"StandardV2"}},"properties":{{"provisioningState":"Succeeded",
            "publicIPAddressVersion":"IPv4","publicIPAllocationMethod":"Static","ipAddress":"198.18.0.1"}}}}"#,
        public_ip()
    )
}

/// The failure in a reply that must be one, after a look at what it says to people.
#[track_caller]
pub(crate) fn failure(reply: &Reply, class: FailureClass, says: &[&str]) -> Failure {
    let failure = Failure::in_reply(reply).unwrap_or_else(|| panic!("no failure: {reply:?}"));
    assert_eq!(failure.class, class, "{failure}");
    for words in says {
        assert!(failure.message.contains(words), "{words:?} is not in: {}", failure.message);
    }
    failure
}

/// A request that provably never left.
#[track_caller]
pub(crate) fn not_sent(reply: &Reply, says: &[&str]) {
    assert!(matches!(reply, Reply::NotSent(_)), "{reply:?}");
    failure(reply, FailureClass::Transient, says);
}

/// A request of which nobody knows.
#[track_caller]
pub(crate) fn lost(reply: &Reply, says: &[&str]) {
    assert!(matches!(reply, Reply::Lost(_)), "{reply:?}");
    failure(reply, FailureClass::Unknown, says);
}

/// An answer that is a success.
#[track_caller]
pub(crate) fn answered(reply: &Reply) {
    assert!(matches!(reply, Reply::Answered(_)), "{reply:?}");
    assert_eq!(Failure::in_reply(reply), None);
}
