//! Time passes here only when a test says so: the clock stands nearly still and is moved by hand, behind
//! the cloud's back.

use serde_json::{Value, json};

use super::*;

const GROUP: &str = "/subscriptions/s/resourceGroups/rg";

/// A world with a network, a gateway, a load balancer `web` and a service of the same name.
struct Stage {
    world: World,
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Stage {
        Stage::with_factor(0.1)
    }

    fn with_factor(factor: f64) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let world = open(folder.path(), factor);
        let mut stage = Stage { world, folder };
        let network = id("virtualNetworks", "vnet");
        for (id, body) in [
            (
                network.clone(),
                json!({"location": "eastus", "properties": {
                    "addressSpace": {"addressPrefixes": ["10.0.0.0/8"]},
                    "subnets": [{"name": "pods", "properties": {"addressPrefix": "10.1.0.0/16"}}],
                }}),
            ),
            (
                id("serviceGateways", "gw"),
                json!({"location": "eastus", "properties": {
                    "virtualNetwork": {"id": network},
                    "routeTargetAddress": {"subnet": {"id": format!("{network}/subnets/pods")}},
                }}),
            ),
            (id("publicIPAddresses", "web-pip"), public_ip()),
            (id("loadBalancers", "web"), load_balancer(8080)),
        ] {
            stage.change("tamper", json!({"do": "put", "id": id, "body": body})).unwrap();
        }
        let pool = format!("{}/backendAddressPools/web", id("loadBalancers", "web"));
        let service = json!({"name": "web", "serviceType": "Inbound", "loadBalancerBackendPools": [pool]});
        let gateway = id("serviceGateways", "gw");
        stage.change("tamper", json!({"do": "register", "gateway": gateway, "service": service})).unwrap();
        stage
    }

    fn change(&mut self, word: &str, with: Value) -> Result<Value, Problem> {
        self.world.change_now(word, &with)
    }

    fn send(&mut self, method: &str, path: &str, body: Option<Value>, fault: Option<&What>) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}?api-version=2025-05-01"))
            .header("content-type", "application/json")
            .body(body.map_or_else(Bytes::new, |body| body.to_string().into()))
            .unwrap();
        let answer = self.world.handle("app", &request, "https://localhost", fault).unwrap().answer.unwrap();
        let body = serde_json::from_slice(answer.body()).unwrap_or(Value::Null);
        (answer.status().as_u16(), body)
    }

    /// Time passes, and nobody tells the cloud.
    fn pass(&mut self, seconds: u64) {
        self.world.clock.skip(Duration::from_secs(seconds));
    }

    fn etags(&mut self) -> Vec<Value> {
        let ids = [id("loadBalancers", "web"), id("publicIPAddresses", "web-pip")];
        ids.iter().map(|id| self.send("GET", id, None, None).1["etag"].clone()).collect()
    }

    /// As after a `kill -9`.
    fn killed(self) -> Stage {
        let Stage { world, folder } = self;
        drop(world);
        Stage { world: open(folder.path(), 0.1), folder }
    }
}

fn open(folder: &std::path::Path, factor: f64) -> World {
    let tokens = Tokens::in_folder(folder, Duration::from_secs(60)).unwrap();
    let (journal, config, history) = Journal::open(&folder.join("state"), &Config::default()).unwrap();
    let prepare = vec![Prepared { subscription: "s".into(), group: "rg".into() }];
    World::new(config, factor, Some((journal, history)), Arc::new(tokens), RequestLog::new(9), prepare)
}

fn id(kind: &str, name: &str) -> String {
    format!("{GROUP}/providers/Microsoft.Network/{kind}/{name}")
}

fn public_ip() -> Value {
    json!({"location": "eastus", "sku": {"name": "StandardV2"},
        "properties": {"publicIPAllocationMethod": "Static"}})
}

fn load_balancer(backend_port: u16) -> Value {
    let own = id("loadBalancers", "web");
    json!({"location": "eastus", "sku": {"name": "Service"}, "properties": {
        "scope": "Public",
        "frontendIPConfigurations": [{"name": "frontend", "properties": {
            "publicIPAddress": {"id": id("publicIPAddresses", "web-pip")}}}],
        "backendAddressPools": [{"name": "web", "properties": {}}],
        "loadBalancingRules": [{"name": "rule", "properties": {
            "protocol": "Tcp", "frontendPort": 80, "backendPort": backend_port,
            "frontendIPConfiguration": {"id": format!("{own}/frontendIPConfigurations/frontend")},
            "backendAddressPool": {"id": format!("{own}/backendAddressPools/web")}}}],
    }})
}

#[test]
fn a_refused_deed_does_not_end_what_others_have_begun() {
    let mut stage = Stage::new();
    let web = id("loadBalancers", "web");
    assert_eq!(stage.send("PUT", &web, Some(load_balancer(81)), None).0, 200);
    let deed = json!({"do": "put", "id": web, "body": load_balancer(82)});
    assert_eq!(stage.change("tamper", deed).unwrap_err().status, 429);
    assert_eq!(stage.world.surface.cloud().operations_running(), 1);
}

#[test]
fn a_refused_deed_uses_up_no_etag() {
    let mut stage = Stage::new();
    let (web, missing) = (id("loadBalancers", "web"), id("loadBalancers", "missing"));
    let twins = json!([{"protocol": "Tcp", "frontendPort": 1, "backendPort": 9},
        {"protocol": "Tcp", "frontendPort": 2, "backendPort": 9}]);
    for deed in [
        json!({"do": "editTags", "id": missing, "tags": {}}),
        json!({"do": "editRules", "id": missing, "rules": []}),
        json!({"do": "editRules", "id": web, "rules": twins}),
    ] {
        assert!(stage.change("tamper", deed).is_err());
    }
    stage.send("PATCH", &web, Some(json!({"tags": {"a": "b"}})), None);
    let before = stage.etags();
    assert_eq!(stage.killed().etags(), before);
}

#[test]
fn what_ended_before_a_refused_deed_has_ended_after_a_restart() {
    let mut stage = Stage::new();
    let web = id("loadBalancers", "web");
    stage.send("PUT", &web, Some(load_balancer(81)), None);
    stage.pass(60);
    let deed = json!({"do": "delete", "id": id("publicIPAddresses", "missing")});
    assert_eq!(stage.change("tamper", deed).unwrap_err().status, 404);
    let seen = stage.send("GET", &web, None, None).1;
    assert_eq!(seen["properties"]["provisioningState"], "Succeeded");
    assert_eq!(stage.killed().send("GET", &web, None, None).1, seen);
}

#[test]
fn what_was_over_before_a_change_knows_nothing_of_it() {
    let mut stage = Stage::new();
    let gateway = id("serviceGateways", "gw");
    let update = json!({"action": "PartialUpdate", "addressLocations": [{"addressLocation": "10.1.0.4",
        "addressUpdateAction": "PartialUpdate",
        "addresses": [{"address": "10.1.2.3", "services": ["web"]}]}]});
    let path = format!("{gateway}/updateAddressLocations");
    assert_eq!(stage.send("POST", &path, Some(update), None).0, 202);
    stage.pass(60);
    stage.change("poison", json!({"address": "10.1.2.3"})).unwrap();
    let mapped =
        |stage: &Stage| stage.world.surface.cloud().state().mapped(&ArmId::new(gateway.as_str()), "web");
    stage.world.settle().unwrap();
    assert_eq!(mapped(&stage), 1);
    assert_eq!(mapped(&stage.killed()), 1);
}

#[test]
fn reads_that_have_caught_up_do_not_lag_again_after_a_restart() {
    let mut stage = Stage::new();
    let web = id("loadBalancers", "web");
    let lag = What::Lag { ms: 10_000 };
    stage.send("PATCH", &web, Some(json!({"tags": {"a": "b"}})), Some(&lag));
    assert_eq!(stage.send("GET", &web, None, None).1["tags"], Value::Null);
    stage.pass(11);
    let seen = stage.send("GET", &web, None, None).1;
    assert_eq!(seen["tags"], json!({"a": "b"}));
    assert_eq!(stage.killed().send("GET", &web, None, None).1, seen);
}

#[test]
fn a_finished_operation_can_be_asked_for_ten_real_minutes_later_however_fast_the_clock_is() {
    for factor in [1.0, 100.0, 10_000.0] {
        let mut stage = Stage::with_factor(factor);
        let request = Request::builder()
            .method("PUT")
            .uri(format!("{}?api-version=2025-05-01", id("publicIPAddresses", "new")))
            .header("content-type", "application/json")
            .body(public_ip().to_string().into())
            .unwrap();
        let begun = stage.world.handle("app", &request, "https://localhost", None).unwrap().answer.unwrap();
        let url = begun.headers()["azure-asyncoperation"].to_str().unwrap();
        let path = url.strip_prefix("https://localhost").unwrap().split('?').next().unwrap().to_owned();
        // Somebody looks in between, so that what is too old would be thrown away.
        for _ in 0..20 {
            stage.pass((30.0 * factor) as u64);
            let (status, body) = stage.send("GET", &path, None, None);
            assert_eq!((status, &body["status"]), (200, &json!("Succeeded")), "{factor}");
        }
    }
}
