//! How much of each quota is used.

use serde_json::{Value, json};
use sluice_cloud::Cloud;

/// The usages of a subscription. The model has no regions, so every region has the same.
pub(crate) fn show(cloud: &Cloud, subscription: &str, region: &str) -> Vec<Value> {
    let head = format!("/subscriptions/{subscription}/providers/Microsoft.Network/locations/{region}/usages");
    let shown = cloud.usages(subscription).into_iter().map(|it| {
        json!({
            "currentValue": it.current,
            "id": format!("{head}/{}", it.name),
            "limit": it.limit,
            "name": { "localizedValue": it.localized, "value": it.name },
            "unit": "Count",
        })
    });
    shown.collect()
}
