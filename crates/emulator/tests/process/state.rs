//! The state file: a restart loses nothing, however the process ended.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use sluice_cloud::{Buckets, Window};
use sluice_emulator::{Emulator, JournalError, Options, StartError};

use crate::support::{Azure, kept, load_balancer, public_ip, resource};

/// Ends an emulator as `kill -9` would and starts another one on its file.
async fn killed(azure: Azure, options: &Options) -> Azure {
    drop(azure);
    started(options).await
}

/// Starts an emulator as soon as the one before has let go of the file.
async fn started(options: &Options) -> Azure {
    loop {
        match Emulator::start(options.clone()).await {
            Ok(running) => return Azure::around(running).await,
            Err(StartError::State(JournalError::InUse { .. })) => tokio::task::yield_now().await,
            Err(problem) => panic!("{problem}"),
        }
    }
}

fn file(options: &Options) -> &Path {
    options.state_file.as_deref().unwrap()
}

#[tokio::test]
async fn a_killed_emulator_comes_back_as_it_was_and_finishes_what_ran() {
    let folder = tempfile::tempdir().unwrap();
    // A clock so slow that nothing ends by itself before somebody has looked.
    let options = Options { time_factor: 0.1, ..kept(folder.path()) };
    let azure = Azure::start(options.clone()).await.with_gateway().await.with_load_balancer("web").await;
    azure.put(&resource("publicIPAddresses", "blue-pip"), public_ip()).await;
    azure.delete(&resource("loadBalancers", "web")).await;
    let before = azure.timeless_state().await;
    assert_eq!(before["operations"].as_array().unwrap().len(), 2, "{before:#}");

    let azure = killed(azure, &options).await;
    assert_eq!(azure.timeless_state().await, before);
    azure.pass(60).await;
    let after = azure.state().await;
    assert_eq!(after["operations"], json!([]));
    assert_eq!(after["loadBalancers"], json!([]));
    let blue = &after["publicIPAddresses"][0];
    assert_eq!(blue["provisioningState"], "Succeeded");
    assert!(blue["ipAddress"].is_string());
}

#[tokio::test]
async fn documents_that_clients_see_come_back_too() {
    let folder = tempfile::tempdir().unwrap();
    let options = kept(folder.path());
    let azure = Azure::start(options.clone()).await.with_load_balancer("web").await;
    let paths = [resource("loadBalancers", "web"), resource("publicIPAddresses", "web-pip")];
    let mut before = Vec::new();
    for path in &paths {
        before.push(azure.get(path).await.body);
    }
    let azure = killed(azure, &options).await;
    for (path, before) in paths.iter().zip(before) {
        assert_eq!(azure.get(path).await.body, before);
    }
}

#[tokio::test]
async fn what_somebody_has_seen_is_not_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    // So fast that the operation is over by the next request, without any help.
    let options = Options { time_factor: 10_000.0, ..kept(folder.path()) };
    let azure = Azure::start(options.clone()).await;
    let path = resource("publicIPAddresses", "web-pip");
    azure.put(&path, public_ip()).await;
    let mut seen = azure.get(&path).await.body;
    while seen["properties"]["provisioningState"] != "Succeeded" {
        seen = azure.get(&path).await.body;
    }
    // The slowest clock: were the time lost, the operation would run again.
    let slow = Options { time_factor: 0.1, ..options };
    let azure = killed(azure, &slow).await;
    assert_eq!(azure.get(&path).await.body, seen);
}

#[tokio::test]
async fn time_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let options = kept(folder.path());
    let azure = Azure::start(options.clone()).await;
    azure.pass(3_600).await;
    azure.running.stop().await;
    let azure = started(&options).await;
    let now = azure.state().await["time"]["emulatedMs"].as_u64().unwrap();
    assert!((3_600_000..3_700_000).contains(&now), "{now}");
}

#[tokio::test]
async fn faults_of_the_past_are_replayed_and_rules_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let options = kept(folder.path());
    let azure = Azure::start(options.clone()).await;
    for (number, rule) in [
        json!({"fault": "neverEnds"}),
        json!({"fault": "fails", "code": "Broken"}),
        json!({"fault": "notApplied"}),
        json!({"fault": "noAnswer"}),
        json!({"fault": "reset"}),
        json!({"fault": "slowBy", "factor": 50}),
        json!({"fault": "throttled"}),
        json!({"fault": "truncatedBody"}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut rule = rule;
        rule["times"] = json!(1);
        azure.fault(rule).await;
        let path = resource("publicIPAddresses", &format!("ip-{number}"));
        // Some of them have no answer.
        let _ = azure.request(Method::PUT, &path, Some(public_ip())).send().await;
    }
    azure.pass(10).await;
    azure.fault(json!({"fault": "hang"})).await;
    let before = azure.timeless_state().await;
    let names: Vec<&str> = before["publicIPAddresses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap().rsplit('/').next().unwrap())
        .collect();
    assert_eq!(names, ["ip-0", "ip-1", "ip-3", "ip-5", "ip-7"]);
    let azure = killed(azure, &options).await;
    assert_eq!(azure.timeless_state().await, before);
    assert_eq!(azure.control(Method::GET, "faults", None).await.body, json!([]));
}

#[tokio::test]
async fn what_the_control_api_changed_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let options = kept(folder.path());
    let azure = Azure::start(options.clone()).await.with_gateway().await.with_load_balancer("web").await;
    let (gateway, lb) = (resource("serviceGateways", "gw"), resource("loadBalancers", "web"));
    for deed in [
        json!({"do": "put", "id": resource("publicIPAddresses", "theirs"), "body": public_ip()}),
        json!({"do": "register", "gateway": gateway, "service": {
            "name": "web", "serviceType": "Inbound",
            "loadBalancerBackendPools": [format!("{lb}/backendAddressPools/web")]}}),
        json!({"do": "addAddress", "gateway": gateway, "location": "10.1.0.4", "address": "10.1.2.3",
            "services": ["web"]}),
        json!({"do": "editTags", "id": lb, "tags": {"by": "them"}}),
        json!({"do": "lock", "scope": lb, "level": "ReadOnly"}),
        json!({"do": "deny", "scope": gateway}),
    ] {
        azure.do_control("tamper", deed).await;
    }
    azure.do_control("quota", json!({"loadBalancers": 1})).await;
    azure.do_control("buckets", json!({"writes": {"burst": 7}})).await;
    azure.do_control("slow", json!({"factor": 50})).await;
    azure.do_control("poison", json!({"address": "10.1.2.4"})).await;
    azure.do_control("tokens/expire", json!({})).await;
    let (before, token) = (azure.timeless_state().await, azure.token.clone());
    assert_eq!(before["serviceGateways"][0]["addressLocations"][0]["addressLocation"], "10.1.0.4");
    let mut azure = killed(azure, &options).await;
    assert_eq!(azure.timeless_state().await, before);
    azure.token = token;
    assert_eq!(azure.get(&lb).await.code(), "ExpiredAuthenticationToken");
}

#[tokio::test]
async fn what_was_allowed_then_is_not_throttled_when_it_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = kept(folder.path());
    let window = Window { writes: 2, reads: 9, length: Duration::from_secs(100) };
    options.cloud.buckets = Some(Buckets { network: Some(window), ..Buckets::default() });
    let azure = Azure::start(options.clone()).await;
    // A read opens the window, and it is not in the file: without it all writes would fall into one.
    azure.get(&resource("publicIPAddresses", "none")).await;
    for (pass, name) in [(90, "a"), (0, "b"), (20, "c"), (0, "d")] {
        azure.pass(pass).await;
        let answer = azure.put(&resource("publicIPAddresses", name), public_ip()).await;
        assert_eq!(answer.status, 201, "{name}: {answer:?}");
    }
    let before = azure.timeless_state().await;
    let azure = killed(azure, &options).await;
    assert_eq!(azure.timeless_state().await, before);
    // And from now on it counts again.
    let statuses =
        async |name: &str| azure.put(&resource("publicIPAddresses", name), public_ip()).await.status;
    assert_eq!([statuses("e").await, statuses("f").await, statuses("g").await], [201, 201, 429]);
}

/// A small generator, so that the same seed asks the same.
fn mix(seed: u64) -> u64 {
    let mut bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^ bits >> 27
}

#[tokio::test]
async fn any_history_with_refusals_in_it_gives_the_same_state_again() {
    for seed in 1..=4u64 {
        let folder = tempfile::tempdir().unwrap();
        let mut options = kept(folder.path());
        options.cloud.quota.public_ips = 3;
        let azure = Azure::start(options.clone()).await.with_gateway().await;
        let words =
            ["notApplied", "fails", "canceled", "provisioningFails", "errorIn200", "throttled", "atOnce"];
        for word in words {
            azure.fault(json!({"fault": word, "probability": 0.1, "seed": seed})).await;
        }
        let mut refused = 0;
        for step in 0..120u64 {
            let chance = mix(seed * 1_000 + step);
            let name = ["a", "b", "c"][(chance % 3) as usize];
            let (ip, lb) =
                (resource("publicIPAddresses", &format!("{name}-pip")), resource("loadBalancers", name));
            match (chance >> 8) % 10 {
                0 | 1 => drop(azure.put(&ip, public_ip()).await),
                2 | 3 => drop(azure.put(&lb, load_balancer(name)).await),
                4 => drop(azure.delete(&ip).await),
                5 => drop(azure.delete(&lb).await),
                6 => drop(azure.get(&lb).await),
                7 => {
                    let deed = match chance >> 16 & 3 {
                        0 => json!({"do": "put", "id": lb, "body": load_balancer(name)}),
                        1 => json!({"do": "delete", "id": ip}),
                        2 => json!({"do": "editRules", "id": lb, "rules": [{"protocol": "Tcp",
                            "frontendPort": 80, "backendPort": 1}, {"protocol": "Tcp",
                            "frontendPort": chance >> 20 & 127, "backendPort": 1 + (chance >> 30 & 1)}]}),
                        _ => json!({"do": "editTags", "id": lb, "tags": {"step": step.to_string()}}),
                    };
                    let answer = azure.control(Method::POST, "tamper", Some(deed)).await;
                    refused += u32::from(answer.status >= 400);
                }
                _ => azure.pass(chance >> 16 & 7).await,
            }
        }
        let before = azure.timeless_state().await;
        let azure = killed(azure, &options).await;
        assert_eq!(azure.timeless_state().await, before, "seed {seed}");
        assert!(refused > 0, "seed {seed}");
    }
}

#[tokio::test]
async fn a_torn_last_line_is_dropped_and_any_other_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let options = kept(folder.path());
    let azure = Azure::start(options.clone()).await;
    let before = azure.timeless_state().await;
    azure.put(&resource("publicIPAddresses", "lost"), public_ip()).await;
    azure.running.stop().await;
    // The last line is the time of the stop, the one before it the write.
    let text = std::fs::read_to_string(file(&options)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [head @ .., write, _] = &lines[..] else { panic!("{text}") };
    let torn = format!("{}\n{}", head.join("\n"), &write[..write.len() / 2]);
    std::fs::write(file(&options), torn).unwrap();
    let azure = started(&options).await;
    assert_eq!(azure.timeless_state().await, before);
    azure.running.stop().await;

    let torn = format!("{}\n{}\n{write}\n", head.join("\n"), &write[..write.len() / 2]);
    std::fs::write(file(&options), torn).unwrap();
    let refused = loop {
        match Emulator::start(options.clone()).await.unwrap_err() {
            StartError::State(JournalError::InUse { .. }) => tokio::task::yield_now().await,
            other => break other,
        }
    };
    assert!(refused.to_string().contains(&format!("line {}", head.len() + 1)), "{refused}");
    assert!(refused.hint().contains("remove that line"));
}

#[tokio::test]
async fn a_reset_empties_the_file_and_the_cloud_but_not_the_clock() {
    let folder = tempfile::tempdir().unwrap();
    let options = kept(folder.path());
    let azure = Azure::start(options.clone()).await;
    let fresh = azure.timeless_state().await;
    let azure = azure.with_gateway().await;
    let long = std::fs::metadata(file(&options)).unwrap().len();
    azure.fault(json!({"fault": "hang", "match": {"area": "token"}, "nth": 1_000})).await;
    azure.do_control("reset", json!({})).await;
    assert_eq!(without_settings(azure.timeless_state().await), without_settings(fresh.clone()));
    assert!(std::fs::metadata(file(&options)).unwrap().len() < long);
    assert!(azure.state().await["time"]["emulatedMs"].as_u64() > Some(100_000));
    assert_eq!(azure.control(Method::GET, "faults", None).await.body, json!([]));
    let azure = killed(azure, &options).await;
    assert_eq!(without_settings(azure.timeless_state().await), without_settings(fresh));
    assert!(azure.state().await["time"]["emulatedMs"].as_u64() > Some(100_000));
}

fn without_settings(mut state: Value) -> Value {
    if let Some(fields) = state.as_object_mut() {
        fields.remove("settings");
    }
    state
}

#[tokio::test]
async fn settings_of_the_file_stay_when_others_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let options = kept(folder.path());
    let azure = Azure::start(options.clone()).await.with_gateway().await;
    let before = azure.timeless_state().await;
    let mut other = options;
    other.cloud.seed = 99;
    other.cloud.quota.gateways = 0;
    let azure = killed(azure, &other).await;
    assert_eq!(azure.timeless_state().await, before);
}
