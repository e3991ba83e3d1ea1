//! Keys of earlier versions.

use std::time::Duration;

use expect_test::expect;

use super::{LEAST, config, load, load_with};
use crate::config::Config;
use crate::config::old::{Fate, OLD};
use crate::config::table::twin_of;
use crate::config::values::{Setting as _, Share};

#[test]
fn an_old_key_is_an_error_with_its_fixed_value_or_its_successor() {
    let mut file = format!("{LEAST}sluice:\n");
    let mut section = "";
    for (path, _) in OLD {
        let (name, key) = path.trim_start_matches("sluice.").split_once('.').expect("it is in a section");
        if name != section {
            file.push_str(&format!("  {name}:\n"));
            section = name;
        }
        file.push_str(&format!("    {key}: 1\n"));
    }
    expect![[r#"
        the configuration has 18 problems:
          - sluice.azure.answerLimit (azure.yaml:9): is now called sluice.azure.responseTimeout; rename the key
          - sluice.azure.connectLimit (azure.yaml:10): is now called sluice.azure.connectTimeout; rename the key
          - sluice.budget.locationShare (azure.yaml:12): is no longer a setting: the value is always 30%; remove the key
          - sluice.drift.secondLook (azure.yaml:14): is now called sluice.drift.confirmAfter; rename the key
          - sluice.kubernetes.callLimit (azure.yaml:16): is no longer a setting: the value is always 30 s; remove the key
          - sluice.locations.addressesMax (azure.yaml:18): is no longer a setting: the value is always 1000; remove the key
          - sluice.locations.backoffMax (azure.yaml:19): is no longer a setting: sluice.retry.backoffMax is used instead; remove the key
          - sluice.locations.backoffMin (azure.yaml:20): is no longer a setting: sluice.retry.backoffMin is used instead; remove the key
          - sluice.locations.bisectCallsMax (azure.yaml:21): is no longer a setting: the value is always 40; remove the key
          - sluice.locations.bytesMax (azure.yaml:22): is no longer a setting: the value is always 1 MiB; remove the key
          - sluice.locations.failuresReported (azure.yaml:23): is no longer a setting: the value is always 12; remove the key
          - sluice.operations.busyLimit (azure.yaml:25): is no longer a setting: the value is always 2 min; remove the key
          - sluice.operations.gatewayLimit (azure.yaml:26): is no longer a setting: the value is always 3 min; remove the key
          - sluice.operations.registrationsMax (azure.yaml:27): is no longer a setting: the value is always 100; remove the key
          - sluice.operations.resourceLimit (azure.yaml:28): is no longer a setting: the value is always 15 min; remove the key
          - sluice.retry.attempts (azure.yaml:30): is no longer a setting: the value is always 12; remove the key
          - sluice.retry.forbiddenParkMax (azure.yaml:31): is no longer a setting: the value is always 1 h; remove the key
          - sluice.retry.quotaParkMax (azure.yaml:32): is no longer a setting: the value is always 1 h; remove the key"#]].assert_eq(&load(&file).unwrap_err().to_string());
}

#[test]
fn an_old_key_is_an_error_in_each_place() {
    let told =
        |variables: &[(&str, &str)], set: &[&str]| load_with(LEAST, variables, set).unwrap_err().to_string();
    for (path, _) in OLD {
        let twin = twin_of(path).expect("each old key was below sluice:");
        let from_flag = told(&[], &[&format!("{path}=1")]);
        assert!(from_flag.contains(&format!("{path} (--set): is no")), "{from_flag}");
        let from_environment = told(&[(&twin, "1")], &[]);
        let place = format!("{path} (environment variable {twin}): is no");
        assert!(from_environment.contains(&place), "{from_environment}");
        load_with(LEAST, &[(&twin, " ")], &[]).expect("an empty variable says nothing");
    }
}

#[test]
fn an_old_key_has_a_successor_that_exists_or_the_value_that_is_used() {
    let config = config(LEAST);
    let (engine, updaters) = (config.engine("uid"), config.updaters());
    let time = |text: &str, used: Duration| assert_eq!(Duration::read(text), Ok(used));
    let number = |text: &str, used: usize| assert_eq!(text, used.to_string());
    let rows = Config::rows();
    for (path, fate) in OLD {
        assert!(rows.iter().all(|row| row.path != path), "{path} is a key");
        let fixed = match fate {
            Fate::Fixed(text) => text,
            Fate::Renamed(key) | Fate::Merged(key) => {
                assert!(rows.iter().any(|row| row.path == key), "{path}: there is no {key}");
                continue;
            }
        };
        match path {
            "sluice.budget.locationShare" => {
                assert_eq!(Share::read(fixed), Ok(Share { permille: updaters.location_lane_permille }));
            }
            "sluice.kubernetes.callLimit" => time(fixed, config.limits().kube_call),
            "sluice.locations.addressesMax" => number(fixed, engine.locations.addresses_max),
            "sluice.locations.bisectCallsMax" => number(fixed, engine.locations.bisect_calls_max as usize),
            "sluice.locations.bytesMax" => {
                assert_eq!(format!("{} MiB", engine.locations.bytes_max >> 20), fixed);
            }
            "sluice.locations.failuresReported" => number(fixed, engine.locations.failures_reported as usize),
            "sluice.operations.busyLimit" => time(fixed, updaters.busy_limit),
            "sluice.operations.gatewayLimit" => time(fixed, updaters.gateway_operation_limit),
            "sluice.operations.registrationsMax" => number(fixed, updaters.commit_size_max),
            "sluice.operations.resourceLimit" => time(fixed, updaters.resource_operation_limit),
            "sluice.retry.attempts" => number(fixed, engine.retry.attempts_max as usize),
            "sluice.retry.forbiddenParkMax" => time(fixed, engine.retry.forbidden_park.1),
            "sluice.retry.quotaParkMax" => time(fixed, engine.retry.quota_park.1),
            _ => panic!("{path}: compare {fixed} with the value that is used"),
        }
    }
}
