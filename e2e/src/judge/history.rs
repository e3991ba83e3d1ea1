//! What only the whole course of a story shows: published IPs, and who was written to.

use std::collections::{BTreeMap, BTreeSet};

use crate::azure::{GATEWAY, NETWORK, Request, SUBNET};
use crate::recorder::Shown;

/// A published IP changes or goes only when its public IP was deleted, or when the Service wants none.
///
/// `deletions` says how often the public IP of a name was deleted, by the controller or by others.
pub(crate) fn moved_ips(shown: &[Shown], deletions: impl Fn(&str) -> usize) -> Vec<String> {
    let mut problems = Vec::new();
    let mut of: BTreeMap<&str, Vec<&Shown>> = BTreeMap::new();
    for it in shown {
        of.entry(&it.uid).or_default().push(it);
    }
    for (uid, versions) in of {
        let deleted = deletions(&format!("{uid}-pip"));
        let mut published: Vec<&str> = Vec::new();
        for version in &versions {
            for ip in &version.ingress {
                if published.last() != Some(&ip.as_str()) {
                    published.push(ip);
                }
            }
        }
        let distinct: BTreeSet<&str> = published.iter().copied().collect();
        if distinct.len() > 1 + deleted {
            problems.push(format!(
                "{} was published at {published:?}, but its public IP was deleted only {deleted} times",
                versions[0].name
            ));
        }
        for pair in versions.windows(2) {
            let retracted = !pair[0].ingress.is_empty() && pair[1].ingress.is_empty();
            // It may have wanted none for a moment that the watch did not show, but then its public IP went.
            if retracted && pair[0].wants_an_ip && pair[1].wants_an_ip && deleted == 0 {
                problems.push(format!(
                    "{} lost its published IP {:?} for a while",
                    pair[0].name, pair[0].ingress
                ));
            }
        }
    }
    problems
}

/// Writes to anything that cannot be ours: other kinds, or names that no Service and no pod ever asked for.
pub(crate) fn strange_writes(requests: &[Request], identities: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    for request in requests.iter().filter(|it| it.is_write()) {
        let path = request.path.to_ascii_lowercase();
        let Some((_, rest)) = path.split_once("/providers/microsoft.network/") else {
            problems.push(format!("{} is no write that Sluice has any reason for", request.line()));
            continue;
        };
        let mut parts = rest.split('/');
        let (kind, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let identity = match kind {
            "publicipaddresses" => name.strip_suffix("-pip-v6").or_else(|| name.strip_suffix("-pip")),
            "loadbalancers" | "natgateways" => Some(name),
            "servicegateways" if name == GATEWAY => continue,
            "virtualnetworks" if name == NETWORK && rest.contains(&format!("/subnets/{SUBNET}")) => continue,
            _ => None,
        };
        if !identity.is_some_and(|it| identities.contains(it)) {
            problems.push(format!("{} touches what nobody asked for", request.line()));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn shown(wants_an_ip: bool, ingress: &[&str]) -> Shown {
        Shown {
            uid: "u".into(),
            name: "shop/web".into(),
            wants_an_ip,
            ingress: ingress.iter().map(|ip| ip.to_string()).collect(),
        }
    }

    #[test]
    fn an_ip_that_moves_while_its_public_ip_lives_is_a_problem() {
        let moved = [shown(true, &["198.18.0.1"]), shown(true, &["198.18.0.2"])];
        assert_eq!(moved_ips(&moved, |_| 0).len(), 1);
        assert!(moved_ips(&moved, |_| 1).is_empty());
        let flapped = [shown(true, &["198.18.0.1"]), shown(true, &[]), shown(true, &["198.18.0.1"])];
        assert_eq!(moved_ips(&flapped, |_| 0).len(), 1);
        let toggled = [shown(true, &["198.18.0.1"]), shown(false, &[]), shown(true, &["198.18.0.1"])];
        assert!(moved_ips(&toggled, |_| 0).is_empty());
    }

    #[test]
    fn writes_are_followed_to_an_identity_or_are_strange() {
        let write = |path: &str| Request {
            number: 1,
            area: "arm".into(),
            method: "PUT".into(),
            path: format!("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/{path}"),
            kind: None,
            name: None,
            call: None,
            user_agent: None,
            status: Some(200),
            answered_ms: None,
            body: Value::Null,
        };
        let identities = BTreeSet::from(["blue".to_string()]);
        let ours = [
            "natGateways/Blue",
            "publicIPAddresses/blue-pip-v6",
            "serviceGateways/servicegateway/updateServices",
        ];
        for path in ours {
            assert!(strange_writes(&[write(path)], &identities).is_empty(), "{path}");
        }
        for path in
            ["natGateways/green", "publicIPAddresses/blue", "virtualNetworks/cluster", "firewalls/blue"]
        {
            assert_eq!(strange_writes(&[write(path)], &identities).len(), 1, "{path}");
        }
    }
}
