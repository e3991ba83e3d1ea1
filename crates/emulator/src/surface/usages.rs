//! How much of each quota is used.

use serde_json::{Value, json};
use sluice_cloud::Cloud;

use super::document::begins_with;

/// The usages of a subscription in a region. The model counts quotas for the subscription as a whole.
pub(crate) fn show(cloud: &Cloud, subscription: &str, region: &str) -> Vec<Value> {
    let (state, quota) = (cloud.state(), cloud.quota());
    let head = format!("/subscriptions/{subscription}/");
    let own = |ids: &mut dyn Iterator<Item = &sluice_model::azure::ArmId>| {
        ids.filter(|id| begins_with(id, &head)).count()
    };
    let counted = [
        ("PublicIPAddresses", "Public IP Addresses", own(&mut state.public_ips.keys()), quota.public_ips),
        ("LoadBalancers", "Load Balancers", own(&mut state.load_balancers.keys()), quota.load_balancers),
        ("NatGateways", "Nat Gateways", own(&mut state.nat_gateways.keys()), quota.nat_gateways),
        ("ServiceGateways", "Service Gateways", own(&mut state.gateways.keys()), quota.gateways),
    ];
    let shown = counted.into_iter().map(|(name, localized, current, limit)| {
        json!({
            "currentValue": current,
            "id": format!("/subscriptions/{subscription}/providers/Microsoft.Network/locations/{region}/usages/{name}"),
            "limit": limit,
            "name": { "localizedValue": localized, "value": name },
            "unit": "Count",
        })
    });
    shown.collect()
}
