//! The cloud's settings as JSON: what the control API takes and shows, and what the journal begins with.
//!
//! Each kind of setting is one table of names and places, read in both directions. What is not named
//! stays as it is; a name that is not in the table is refused with those that are.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sluice_cloud::{Buckets, Config, Latencies, Quota, Rate, Span, Window};

fn quota_fields(quota: &mut Quota) -> [(&'static str, &mut usize); 8] {
    [
        ("publicIps", &mut quota.public_ips),
        ("loadBalancers", &mut quota.load_balancers),
        ("natGateways", &mut quota.nat_gateways),
        ("gateways", &mut quota.gateways),
        ("virtualNetworks", &mut quota.virtual_networks),
        ("publicIpsPerNatGateway", &mut quota.public_ips_per_nat_gateway),
        ("rulesPerLoadBalancer", &mut quota.rules_per_load_balancer),
        ("subnetsPerNetwork", &mut quota.subnets_per_network),
    ]
}

fn latency_fields(latency: &mut Latencies) -> [(&'static str, &mut Span); 6] {
    [
        ("publicIp", &mut latency.public_ip),
        ("loadBalancer", &mut latency.load_balancer),
        ("natGateway", &mut latency.nat_gateway),
        ("gateway", &mut latency.gateway),
        ("network", &mut latency.network),
        ("delete", &mut latency.delete),
    ]
}

fn rate_fields(buckets: &mut Buckets) -> [(&'static str, &mut Rate); 3] {
    [("reads", &mut buckets.reads), ("writes", &mut buckets.writes), ("deletes", &mut buckets.deletes)]
}

/// Quotas for people.
pub(crate) fn show_quota(mut quota: Quota) -> Value {
    quota_fields(&mut quota).into_iter().map(|(name, count)| (name.to_owned(), json!(*count))).collect()
}

/// Changes the quotas that are named.
pub(crate) fn read_quota(mut quota: Quota, value: &Value) -> Result<Quota, String> {
    let mut fields = quota_fields(&mut quota);
    let names = fields.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    for (name, value) in object(value, &names)? {
        let (_, count) = fields.iter_mut().find(|(it, _)| it == name).ok_or_else(|| unknown(name, &names))?;
        **count = number(name, value)?;
    }
    Ok(quota)
}

/// Call limits for people; `null` if nobody counts.
pub(crate) fn show_buckets(buckets: Option<Buckets>) -> Value {
    let Some(mut buckets) = buckets else { return Value::Null };
    let rate = |it: &Rate| json!({"burst": it.burst, "perSecond": it.per_second});
    let network = buckets
        .network
        .map(|it| json!({"writes": it.writes, "reads": it.reads, "seconds": it.length.as_secs()}));
    let mut shown: Map<String, Value> =
        rate_fields(&mut buckets).into_iter().map(|(name, it)| (name.to_owned(), rate(it))).collect();
    shown.insert("network".into(), network.unwrap_or(Value::Null));
    Value::Object(shown)
}

/// Changes the call limits that are named; `null` lifts all of them.
pub(crate) fn read_buckets(buckets: Option<Buckets>, value: &Value) -> Result<Option<Buckets>, String> {
    const NAMES: [&str; 4] = ["reads", "writes", "deletes", "network"];
    if value.is_null() {
        return Ok(None);
    }
    let mut buckets = buckets.unwrap_or_default();
    for (name, value) in object(value, &NAMES)? {
        if name == "network" {
            buckets.network = match value {
                Value::Null => None,
                value => {
                    let mut window = buckets.network.or(Buckets::default().network).unwrap_or(Window {
                        writes: 0,
                        reads: 0,
                        length: Duration::ZERO,
                    });
                    for (part, value) in object(value, &["writes", "reads", "seconds"])? {
                        match part.as_str() {
                            "writes" => window.writes = number(part, value)?,
                            "reads" => window.reads = number(part, value)?,
                            "seconds" => window.length = Duration::from_secs(number(part, value)?),
                            _ => return Err(unknown(part, &["writes", "reads", "seconds"])),
                        }
                    }
                    Some(window)
                }
            };
            continue;
        }
        let mut fields = rate_fields(&mut buckets);
        let (_, rate) = fields.iter_mut().find(|(it, _)| it == name).ok_or_else(|| unknown(name, &NAMES))?;
        for (part, value) in object(value, &["burst", "perSecond"])? {
            match part.as_str() {
                "burst" => rate.burst = number(part, value)?,
                "perSecond" => rate.per_second = number(part, value)?,
                _ => return Err(unknown(part, &["burst", "perSecond"])),
            }
        }
    }
    Ok(Some(buckets))
}

/// All of a cloud's settings.
pub(crate) fn show_config(config: &Config) -> Value {
    let mut latency = config.latency;
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let spans: Map<String, Value> = latency_fields(&mut latency)
        .into_iter()
        .map(|(name, span)| (name.to_owned(), json!([millis(span.min), millis(span.max)])))
        .collect();
    json!({
        "seed": config.seed,
        "pageSize": config.page_size,
        "bodyBytesMax": config.body_bytes_max,
        "latencyMs": spans,
        "buckets": show_buckets(config.buckets),
        "quota": show_quota(config.quota),
    })
}

/// Reads them back; what is missing is as by default.
pub(crate) fn read_config(value: &Value) -> Result<Config, String> {
    const NAMES: [&str; 6] = ["seed", "pageSize", "bodyBytesMax", "latencyMs", "buckets", "quota"];
    let mut config = Config::default();
    for (name, value) in object(value, &NAMES)? {
        match name.as_str() {
            "seed" => config.seed = number(name, value)?,
            "pageSize" => config.page_size = number(name, value)?,
            "bodyBytesMax" => config.body_bytes_max = number(name, value)?,
            "latencyMs" => read_latency(&mut config.latency, value)?,
            "buckets" => config.buckets = read_buckets(config.buckets, value)?,
            "quota" => config.quota = read_quota(config.quota, value)?,
            _ => return Err(unknown(name, &NAMES)),
        }
    }
    Ok(config)
}

fn read_latency(latency: &mut Latencies, value: &Value) -> Result<(), String> {
    let mut fields = latency_fields(latency);
    let names = fields.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    for (name, value) in object(value, &names)? {
        let (_, span) = fields.iter_mut().find(|(it, _)| it == name).ok_or_else(|| unknown(name, &names))?;
        let ends = value.as_array().map(Vec::as_slice);
        let Some([min, max]) = ends else { return Err(format!("{name} is not [from, to] in milliseconds")) };
        **span = Span::millis(number(name, min)?, number(name, max)?);
    }
    Ok(())
}

fn object<'a>(value: &'a Value, names: &[&str]) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{value} is not an object with some of {}", names.join(", ")))
}

fn unknown(name: &str, names: &[&str]) -> String {
    format!("{name:?} is none of {}", names.join(", "))
}

fn number<N: TryFrom<u64>>(name: &str, value: &Value) -> Result<N, String> {
    let whole = value.as_u64().and_then(|it| N::try_from(it).ok());
    whole.ok_or_else(|| format!("{name} {value} is not a whole number that fits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_survives_being_written_down() {
        let rate = Rate { burst: 1, per_second: 2 };
        let config = Config {
            seed: u64::MAX,
            page_size: 7,
            body_bytes_max: 8,
            latency: Latencies { delete: Span::millis(5, 6), ..Latencies::default() },
            buckets: Some(Buckets { reads: rate, network: None, ..Buckets::default() }),
            quota: Quota { gateways: 3, ..Quota::default() },
            ..Config::default()
        };
        assert_eq!(read_config(&show_config(&config)), Ok(config.clone()));
        let unlimited = Config { buckets: None, ..config };
        assert_eq!(read_config(&show_config(&unlimited)), Ok(unlimited));
    }

    #[test]
    fn only_what_is_named_changes() {
        let quota = read_quota(Quota::default(), &json!({"publicIps": 5})).unwrap();
        assert_eq!(quota, Quota { public_ips: 5, ..Quota::default() });
        let given = json!({"writes": {"burst": 5}, "network": {"writes": 9}});
        let buckets = read_buckets(Some(Buckets::default()), &given).unwrap().unwrap();
        assert_eq!(buckets.writes, Rate { burst: 5, per_second: 10 });
        assert_eq!(buckets.network.unwrap().writes, 9);
        assert_eq!(buckets.network.unwrap().reads, 10_000);
        assert_eq!(read_buckets(Some(Buckets::default()), &Value::Null), Ok(None));
    }

    #[test]
    fn a_wrong_name_or_number_is_refused_with_the_right_ones() {
        let problem = read_quota(Quota::default(), &json!({"publicIPs": 5})).unwrap_err();
        assert!(problem.contains("publicIps"), "{problem}");
        for bad in [json!([]), json!({"writes": 5}), json!({"writes": {"burst": -1}}), json!({"w": {}})] {
            assert!(read_buckets(None, &bad).is_err(), "{bad}");
        }
        assert!(read_config(&json!({"latencyMs": {"delete": [1]}})).unwrap_err().contains("from, to"));
        let too_much = json!({"reads": {"burst": u64::MAX}});
        assert!(read_buckets(None, &too_much).unwrap_err().contains("fits"));
    }
}
