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
            let text = format!("the quotas of {region}: Azure does not accept the credential (401{code})");
            return vec![Finding::skipped(GROUP, text)];
        }
        return vec![Finding::skipped(
            GROUP,
            format!(
                "the quotas of {region}: Azure does not say ({status}{code}); \
                 Microsoft.Network/locations/usages/read on the subscription is what that takes"
            ),
        )];
    };
    let usages: Vec<Usage> = entries.iter().filter_map(usage).collect();
    let (mut findings, mut free) = (Vec::new(), Vec::new());
    for Usage { name, used, limit } in &usages {
        let remedy =
            format!("ask for more in the portal (Quotas, Networking, {region}), or delete what nobody needs");
        let text = format!("{name} in {region}: {used} of {limit} are used");
        if used >= limit {
            findings.push(Finding::problem(
                GROUP,
                format!("{text}; new Services and egresses will wait"),
                remedy,
            ));
        } else if *used * 10 >= *limit * 9 {
            findings.push(Finding::warning(GROUP, text, remedy));
        } else {
            free.push(format!("{} {name}", limit - used));
        }
    }
    if !free.is_empty() {
        findings
            .insert(0, Finding::good(GROUP, format!("there is room in {region} for {}", free.join(", "))));
    }
    if usages.is_empty() {
        findings.push(Finding::skipped(
            GROUP,
            format!("the quotas of {region}: Azure names none of those that we use"),
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
            ✓ there is room in westeurope for 988 LoadBalancers, 8 StandardSkuPublicIpAddresses
            ✗ PublicIPAddresses in westeurope: 1000 of 1000 are used; new Services and egresses will wait
                → ask for more in the portal (Quotas, Networking, westeurope), or delete what nobody needs
            ! NatGateways in westeurope: 95 of 100 are used
                → ask for more in the portal (Quotas, Networking, westeurope), or delete what nobody needs"#]]
        .assert_eq(&told(&diagnose("westeurope", 200, &body)));
    }

    #[test]
    fn what_azure_does_not_say_is_not_made_up() {
        let expired = told(&diagnose("westeurope", 401, &json!({})));
        assert_eq!(expired, "– the quotas of westeurope: Azure does not accept the credential (401)");
        let refused = told(&diagnose("westeurope", 403, &json!({"error": {"code": "AuthorizationFailed"}})));
        assert!(
            refused.starts_with("– the quotas of westeurope: Azure does not say (403, AuthorizationFailed)"),
            "{refused}"
        );
        assert_eq!(
            told(&diagnose("westeurope", 200, &json!({"value": []}))),
            "– the quotas of westeurope: Azure names none of those that we use"
        );
    }
}
