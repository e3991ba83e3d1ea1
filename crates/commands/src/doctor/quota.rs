//! How much of what we make there may still be.

use serde_json::Value;

use super::finding::{Finding, Group};

const GROUP: Group = Group::Quota;
/// What Azure's names of the quotas that concern us have in them, in small letters.
const OURS: [&str; 4] = ["publicip", "loadbalancer", "natgateway", "servicegateway"];

/// The question for one region.
pub(super) fn question(subscription: &str, region: &str, api_version: &str) -> String {
    format!(
        "/subscriptions/{subscription}/providers/Microsoft.Network/locations/{region}/usages?api-version={api_version}"
    )
}

struct Usage {
    name: String,
    used: u64,
    limit: u64,
}

/// What Azure's answer means. Prefixes and other parts of public IPs are not ours.
pub(super) fn diagnose(region: &str, status: u16, body: &Value) -> Vec<Finding> {
    let Some(entries) = body["value"].as_array().filter(|_| status == 200) else {
        let code = body["error"]["code"].as_str().map_or(String::new(), |code| format!(", {code}"));
        if status == 401 {
            let text = format!("quotas in {region}: not checked (Azure rejected the credential: 401{code})");
            return vec![Finding::skipped(GROUP, text)];
        }
        return vec![Finding::skipped(
            GROUP,
            format!(
                "quotas in {region}: not checked ({status}{code}); needs Microsoft.Network/locations/usages/read on \
                 the subscription"
            ),
        )];
    };
    let usages: Vec<Usage> = entries.iter().filter_map(usage).collect();
    let (mut findings, mut free) = (Vec::new(), Vec::new());
    for Usage { name, used, limit } in &usages {
        let remedy = format!(
            "request an increase in the Azure portal (Quotas, Networking, {region}), or delete unused resources; \
             `az network list-usages --location {region} --output table` shows the usage"
        );
        if used >= limit {
            let text = format!(
                "quota {name} in {region}: exhausted ({used} of {limit} used; new Services and egresses wait)"
            );
            findings.push(Finding::problem(GROUP, text, remedy));
        } else if *used * 10 >= *limit * 9 {
            let text = format!("quota {name} in {region}: nearly exhausted ({used} of {limit} used)");
            findings.push(Finding::warning(GROUP, text, remedy));
        } else {
            free.push(format!("{} {name}", limit - used));
        }
    }
    if !free.is_empty() {
        let text = format!("quotas in {region}: sufficient ({} free)", free.join(", "));
        findings.insert(0, Finding::good(GROUP, text));
    }
    if usages.is_empty() {
        findings.push(Finding::skipped(
            GROUP,
            format!("quotas in {region}: not checked (Azure lists none that Sluice uses)"),
        ));
    }
    findings
}

fn usage(entry: &Value) -> Option<Usage> {
    let name = entry["name"]["value"].as_str()?;
    let folded = name.to_ascii_lowercase();
    let is_ours = OURS.iter().any(|ours| folded.contains(ours))
        && !folded.contains("prefix")
        && !folded.contains("basic");
    let shown = entry["name"]["localizedValue"].as_str().unwrap_or(name);
    // Azure writes -1 and such for "no limit".
    let limit = entry["limit"].as_u64()?;
    is_ours.then(|| Usage {
        name: shown.to_owned(),
        used: entry["currentValue"].as_u64().unwrap_or(0),
        limit,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::doctor::finding::told;

    fn entry(name: &str, used: i64, limit: i64) -> Value {
        json!({"currentValue": used, "limit": limit, "unit": "Count", "name": {"value": name, "localizedValue": name}})
    }

    #[test]
    fn a_quota_that_is_used_up_is_a_problem_and_a_full_one_nearly() {
        let body = json!({"value": [
            entry("VirtualNetworks", 1000, 1000), entry("PublicIPAddresses", 1000, 1000),
            entry("LoadBalancers", 12, 1000), entry("NatGateways", 95, 100), entry("PublicIpPrefixes", 5, 5),
            entry("ServiceGateways", 1, -1), entry("StandardSkuPublicIpAddresses", 2, 10),
        ]});
        expect![[r#"
            ✓ quotas in westeurope: sufficient (988 LoadBalancers, 8 StandardSkuPublicIpAddresses free)
            ✗ quota PublicIPAddresses in westeurope: exhausted (1000 of 1000 used; new Services and egresses wait)
                → request an increase in the Azure portal (Quotas, Networking, westeurope), or delete unused resources; `az network list-usages --location westeurope --output table` shows the usage
            ! quota NatGateways in westeurope: nearly exhausted (95 of 100 used)
                → request an increase in the Azure portal (Quotas, Networking, westeurope), or delete unused resources; `az network list-usages --location westeurope --output table` shows the usage"#]]
        .assert_eq(&told(&diagnose("westeurope", 200, &body)));
    }

    #[test]
    fn what_azure_does_not_say_is_not_made_up() {
        let expired = told(&diagnose("westeurope", 401, &json!({})));
        assert_eq!(expired, "– quotas in westeurope: not checked (Azure rejected the credential: 401)");
        let refused = told(&diagnose("westeurope", 403, &json!({"error": {"code": "AuthorizationFailed"}})));
        assert!(
            refused.starts_with("– quotas in westeurope: not checked (403, AuthorizationFailed)"),
            "{refused}"
        );
        assert_eq!(
            told(&diagnose("westeurope", 200, &json!({"value": []}))),
            "– quotas in westeurope: not checked (Azure lists none that Sluice uses)"
        );
    }
}
