//! Everything that people are told by events: with which reason, at which object, and when.
//!
//! The engine makes the sentences; this table says which of them there can be, and `docs/events.md` is made
//! from it. In debug builds a notice that has no row here is a broken promise and fails the test that made
//! it, so the page cannot leave one out.

use crate::effect::{About, Notice};
use crate::reason::Reason;

/// Where an event stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// At the Service.
    Service,
    /// At the pod.
    Pod,
    /// At the Lease, since an egress has no object, and a Service that is gone has none either.
    Key,
    /// At the Lease, since it is about the whole cluster.
    Cluster,
}

impl Place {
    /// Where a notice about this stands.
    pub const fn of(about: &About) -> Place {
        match about {
            About::Service(_) => Place::Service,
            About::Pod(_) => Place::Pod,
            About::Key(_) => Place::Key,
            About::Cluster => Place::Cluster,
        }
    }

    /// How the page calls it.
    pub const fn words(self) -> &'static str {
        match self {
            Place::Service => "the Service",
            Place::Pod => "the pod",
            Place::Key => "the Lease, for an egress or a Service whose object is gone",
            Place::Cluster => "the Lease, for the cluster",
        }
    }
}

/// One kind of notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The fixed word.
    pub reason: Reason,
    /// A Warning, not a Normal event.
    pub warning: bool,
    /// Where it can stand.
    pub places: &'static [Place],
    /// When it is told.
    pub when: &'static str,
}

const fn normal(reason: Reason, places: &'static [Place], when: &'static str) -> Row {
    Row { reason, warning: false, places, when }
}

const fn warning(reason: Reason, places: &'static [Place], when: &'static str) -> Row {
    Row { reason, warning: true, places, when }
}

/// A service of the gateway, with or without an object.
const ITS_OWN: &[Place] = &[Place::Service, Place::Key];

/// All of them.
pub const TABLE: &[Row] = &[
    normal(
        Reason::Provisioned,
        ITS_OWN,
        "its load balancer or NAT gateway is ready, updated, or set right again after somebody changed it; with its public IP",
    ),
    normal(
        Reason::Deleting,
        ITS_OWN,
        "the last address has left, and its load balancer or NAT gateway and its public IP are being deleted; or its public IP was not deleted, because its tag was removed or an unmanaged resource uses it",
    ),
    warning(
        Reason::Updating,
        &[Place::Service],
        "its public IP is gone from Azure although nobody deleted the Service; with the new one, when there is one",
    ),
    warning(
        Reason::Draining,
        ITS_OWN,
        "its deletion has waited longer than `sluice.deletion.reportAfter`; with the addresses that hold it",
    ),
    warning(
        Reason::PortUnresolved,
        &[Place::Service],
        "a named target port has had no number that all endpoints agree on for a minute",
    ),
    warning(
        Reason::InvalidSpec,
        &[Place::Service],
        "it asks for what is not served, and nothing is made; or it has annotations without effect, or prefers a second IP family, which is not served; or one of its EndpointSlices has addresses that cannot be used",
    ),
    warning(
        Reason::InvalidSpec,
        &[Place::Pod],
        "its egress label has no effect: a bad name, a namespace that may not use it, or the node's own network",
    ),
    warning(Reason::InvalidSpec, &[Place::Key], "there are as many egresses as `sluice.egress.max` allows"),
    warning(Reason::InvalidSpec, &[Place::Cluster], "a node has no address of the family of its pods"),
    warning(
        Reason::Throttled,
        &[Place::Cluster],
        "Azure asked for a pause of more than a minute; a pause of more than 15 minutes is probed with one call every 15 minutes",
    ),
    warning(
        Reason::QuotaExceeded,
        ITS_OWN,
        "a quota is used up, and it is parked; Azure's words name the quota",
    ),
    warning(
        Reason::QuotaExceeded,
        &[Place::Cluster],
        "the gateway cannot be made because a quota is used up",
    ),
    warning(
        Reason::Forbidden,
        ITS_OWN,
        "Azure does not accept the credential (`credential not accepted`), a permission is missing, or a lock or policy forbids it, and it is parked; Azure's words name action and scope",
    ),
    warning(
        Reason::Forbidden,
        &[Place::Cluster],
        "Azure does not accept the credential, or Azure may not be listed, or the gateway may not be made or attached; nothing is decided until it may",
    ),
    warning(
        Reason::Conflict,
        ITS_OWN,
        "a resource that is not ours has the name that is needed, or keeps a Service with finalizers of another controller from being released; it is left alone",
    ),
    warning(
        Reason::Conflict,
        &[Place::Pod],
        "its address belongs to an egress in the gateway that Sluice does not manage, so its own egress does not get it",
    ),
    warning(
        Reason::Conflict,
        &[Place::Cluster],
        "registrations that nobody wants and that are not provably ours are left alone; at most ten are named",
    ),
    warning(
        Reason::Refused,
        ITS_OWN,
        "Azure refuses the request for the second time, and it is parked; or Azure refuses addresses of it, which are quarantined",
    ),
    warning(
        Reason::Refused,
        &[Place::Cluster],
        "Azure refuses the gateway; or a location had to be written in full",
    ),
    warning(Reason::AzureUnavailable, ITS_OWN, "`sluice.retry.attempts` failures in a row, and it is parked"),
    warning(
        Reason::AzureUnavailable,
        &[Place::Cluster],
        "listings, address updates or the gateway have failed many times in a row; all are tried again for ever",
    ),
    warning(Reason::InternalError, ITS_OWN, "a bug was noticed before it could do harm; please report it"),
    warning(
        Reason::KubernetesRefused,
        &[Place::Service],
        "a webhook, a policy or a missing permission refuses our patch of it",
    ),
    warning(
        Reason::MassDeletionHeld,
        &[Place::Cluster],
        "more services were found unwanted at once than is plausible; their deletion is held until `sluice allow-deletion` is run",
    ),
    warning(
        Reason::GatewayUnavailable,
        &[Place::Cluster],
        "the gateway or its subnet is missing, another's, or not attached, and may not be set right by us",
    ),
];

/// Whether the table has it.
pub fn is_promised(notice: &Notice) -> bool {
    let place = Place::of(&notice.about);
    TABLE.iter().any(|row| {
        row.reason == notice.reason && row.warning == notice.warning && row.places.contains(&place)
    })
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.md");

    const HEAD: &str = "# Events

What Sluice tells people by Kubernetes events, all of it. This page is made from the table in
`crates/model/src/notices.rs`; a test fails when they differ, and
`UPDATE_EXPECT=1 cargo test -p sluice-model notices` writes it anew.

An event stands at the object that it is about: `kubectl describe service NAME` shows it. What is about an egress or
the whole cluster has no object of its own and stands at the Lease by which Sluice leads:
`kubectl -n sluice-system events --for lease/sluice`. Only the leader writes events. Every one is a line of the log too.

The source is `sluice`, the reason a fixed word, the note a sentence. A Warning ends with the code in brackets, as
`(SGW0008)`; `sluice explain SGW0008` has its page. The same words about the same object make one
event with a count for as long as the API server keeps it (an hour after the last time), also when another replica
leads by then. An object, an egress, or one reason among those for the cluster gets at most ten at once and then one in
half a minute; the others are neither written nor logged. Of all together, 200 are written at once and then 20 in a
second; the others are only in the log. `sluice_notices_held_back_total` counts both.

| type | reason | code | at | when |
|---|---|---|---|---|
";

    const TAIL: &str = "
`Provisioning`, and `Throttled` for pauses of up to a minute, are only in [conditions](conditions.md), not in events.
";

    fn page() -> String {
        let mut text = HEAD.to_string();
        for row in TABLE {
            let kind = if row.warning { "Warning" } else { "Normal" };
            let (word, code) = (row.reason.word(), row.reason.code());
            let places: Vec<&str> = row.places.iter().map(|place| place.words()).collect();
            let at = places.join("; ");
            text.push_str(&format!(
                "| {kind} | `{word}` | [{code}](errors/{code}.md) | {at} | {} |\n",
                row.when
            ));
        }
        text + TAIL
    }

    #[test]
    fn the_page_shows_the_table_as_it_is() {
        let shown = std::fs::read_to_string(PAGE).unwrap_or_default();
        if shown == page() {
            return;
        }
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(PAGE, page()).expect("the page can be written");
            return;
        }
        panic!("docs/events.md is behind the code; run `UPDATE_EXPECT=1 cargo test -p sluice-model notices`");
    }

    #[test]
    fn no_two_rows_speak_of_the_same_reason_at_the_same_place() {
        for (at, row) in TABLE.iter().enumerate() {
            for other in &TABLE[..at] {
                let same = row.reason == other.reason
                    && row.warning == other.warning
                    && row.places.iter().any(|place| other.places.contains(place));
                assert!(!same, "{row:?} and {other:?}");
            }
        }
    }

    #[test]
    fn every_reason_is_told_or_is_named_as_one_that_is_not() {
        for reason in Reason::ALL {
            let told = TABLE.iter().any(|row| row.reason == reason);
            let named = TAIL.contains(&format!("`{}`,", reason.word()));
            assert!(told != named, "{reason}");
        }
    }

    #[test]
    fn what_has_no_row_is_not_promised() {
        let notice = |about, warning, reason| Notice { about, warning, reason, text: String::new() };
        assert!(is_promised(&notice(About::Cluster, true, Reason::MassDeletionHeld)));
        assert!(!is_promised(&notice(About::Cluster, false, Reason::MassDeletionHeld)));
        assert!(!is_promised(&notice(About::Cluster, true, Reason::Provisioning)));
    }
}
