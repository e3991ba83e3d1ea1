//! What only the whole course of a story shows: published IPs, and who was written to.

use std::collections::{BTreeMap, BTreeSet};

use crate::azure::{GATEWAY, NETWORK, Request, SUBNET};
use crate::recorder::Shown;

/// What others did to what a Service has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Others {
    /// How often they deleted its public IP.
    pub(crate) deleted: usize,
    /// How often they wiped its status.
    pub(crate) wiped: usize,
}

/// A published IP changes or goes only when the Service wanted none for a while, or when somebody else deleted
/// its public IP. That the controller deleted it is no excuse: while the Service wants an IP, it never may.
///
/// `others` says what others did to a UID, `by_us` which requests of the controller deleted its public IP.
pub(crate) fn moved_ips(
    shown: &[Shown],
    others: impl Fn(&str) -> Others,
    by_us: impl Fn(&str) -> Vec<String>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut of: BTreeMap<&str, Vec<&Shown>> = BTreeMap::new();
    for it in shown {
        of.entry(&it.uid).or_default().push(it);
    }
    for (uid, versions) in of {
        let name = &versions[0].name;
        let versions = due(&versions);
        let rests = versions.chunk_by(|a, b| a.0 == b.0).filter(|it| !it[0].0).count();
        let own = by_us(uid);
        if rests == 0 && !own.is_empty() {
            problems
                .push(format!("{name} wanted an IP all the time, and its public IP was deleted: {own:?}"));
        }
        let others = others(uid);
        let allowed = rests + others.deleted;
        let published: BTreeSet<&str> =
            versions.iter().flat_map(|(_, it)| it.ingress.iter().map(String::as_str)).collect();
        if published.len() > 1 + allowed {
            problems.push(format!(
                "{name} was published at {published:?}, but there was a reason for only {allowed} changes"
            ));
        }
        // It may come late: a Service that wants an IP again sees the end of the one that it had before.
        let retracted: Vec<&Vec<String>> = versions
            .windows(2)
            .filter(|pair| !pair[0].1.ingress.is_empty() && pair[1].1.ingress.is_empty())
            .filter(|pair| pair[0].0 && pair[1].0)
            .map(|pair| &pair[0].1.ingress)
            .collect();
        if retracted.len() > allowed + others.wiped {
            problems.push(format!("{name} lost its published IP for a while: {retracted:?}"));
        }
    }
    problems
}

/// The versions of a Service, each with whether it is due an IP: one that is rejected is due none before it was
/// published, and keeps the one that it had.
fn due<'a>(versions: &[&'a Shown]) -> Vec<(bool, &'a Shown)> {
    let mut published = false;
    let mut with_due = Vec::new();
    for it in versions {
        let is_due = it.wants_an_ip && (!it.rejected || published || !it.ingress.is_empty());
        published = is_due && (published || !it.ingress.is_empty());
        with_due.push((is_due, *it));
    }
    with_due
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

    fn shown(wants_an_ip: bool, ingress: &[&str]) -> Shown {
        Shown {
            uid: "u".into(),
            name: "shop/web".into(),
            wants_an_ip,
            rejected: false,
            ingress: ingress.iter().map(|ip| ip.to_string()).collect(),
        }
    }

    /// What is wrong with this course, if the public IP was deleted so often by others and by us.
    fn problems(versions: &[Shown], deleted: usize, by_us: usize) -> Vec<String> {
        moved_ips(versions, |_| Others { deleted, wiped: 0 }, |_| vec!["DELETE".to_string(); by_us])
    }

    #[test]
    fn an_ip_that_moves_while_its_public_ip_lives_is_a_problem() {
        let moved = [shown(true, &["198.18.0.1"]), shown(true, &["198.18.0.2"])];
        assert_eq!(problems(&moved, 0, 0).len(), 1);
        assert!(problems(&moved, 1, 0).is_empty());
        let flapped = [shown(true, &["198.18.0.1"]), shown(true, &[]), shown(true, &["198.18.0.1"])];
        assert_eq!(problems(&flapped, 0, 0).len(), 1);
        let wiped = |_: &str| Others { deleted: 0, wiped: 1 };
        assert!(moved_ips(&flapped, wiped, |_| Vec::new()).is_empty(), "that was somebody else");
        assert_eq!(moved_ips(&moved, wiped, |_| Vec::new()).len(), 1, "a wiped status is no excuse for that");
        let toggled = [shown(true, &["198.18.0.1"]), shown(false, &[]), shown(true, &["198.18.0.1"])];
        assert!(problems(&toggled, 0, 0).is_empty());
    }

    #[test]
    fn a_controller_that_deletes_a_wanted_public_ip_is_not_excused_by_its_own_deletion() {
        let moved = [shown(true, &["198.18.0.1"]), shown(true, &[]), shown(true, &["198.18.0.2"])];
        let found = problems(&moved, 0, 1);
        assert_eq!(found.len(), 3, "deleted, moved and lost for a while: {found:?}");
        let unmoved = [shown(true, &["198.18.0.1"])];
        assert_eq!(problems(&unmoved, 0, 1).len(), 1, "even if nobody saw it");
        assert_eq!(problems(&unmoved, 1, 1).len(), 1, "even if others did the same");
    }

    #[test]
    fn each_time_without_a_wish_excuses_one_change() {
        let once = [
            shown(true, &["198.18.0.1"]),
            shown(false, &["198.18.0.1"]),
            shown(true, &["198.18.0.1"]),
            shown(true, &[]),
            shown(true, &["198.18.0.2"]),
        ];
        assert!(problems(&once, 0, 1).is_empty());
        let twice = [&once[..], &[shown(true, &[]), shown(true, &["198.18.0.3"])]].concat();
        assert_eq!(problems(&twice, 0, 2).len(), 2, "moved and lost once too often");
        let deleted = [shown(true, &["198.18.0.1"]), shown(false, &["198.18.0.1"])];
        assert!(problems(&deleted, 0, 1).is_empty());
    }

    #[test]
    fn a_rejected_service_keeps_the_ip_that_it_had_and_gets_none_before() {
        let rejected = |ingress: &[&str]| Shown { rejected: true, ..shown(true, ingress) };
        let created = [shown(true, &[]), rejected(&[]), shown(true, &["198.18.0.1"])];
        assert!(problems(&created, 0, 1).is_empty(), "it was rejected while it was created");
        let live = [shown(true, &["198.18.0.1"]), rejected(&["198.18.0.1"]), rejected(&[])];
        assert_eq!(problems(&live, 0, 0).len(), 1, "it became internal, and its IP was retracted");
        assert_eq!(problems(&live, 0, 1).len(), 2, "and its public IP deleted");
    }

    #[test]
    fn writes_are_followed_to_an_identity_or_are_strange() {
        let write = |path: &str| Request {
            number: 1,
            area: "arm".into(),
            method: "PUT".into(),
            path: format!("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/{path}"),
            status: Some(200),
            ..Request::default()
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
