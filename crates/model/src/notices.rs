//! Which events there are: with which reason, on which object, and when.
//!
//! The engine makes the sentences, and `docs/reference/events.md` is generated from this table and the table of reasons. In debug
//! builds a notice without a row fails the test that sent it, so the page is complete.

use alloc::borrow::ToOwned;
use alloc::string::String;

use crate::effect::{About, Notice};
use crate::reason::{Reason, cut};

/// The bytes that the note of an event may have.
pub const NOTE_BYTES_MAX: usize = 1024;

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
            Place::Key => "the Lease, for an egress or a Service that no longer exists",
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
    /// When it is recorded.
    pub when: &'static str,
    /// What to do, where the action of the reason does not fit.
    pub action: Option<&'static str>,
}

impl Row {
    /// With what to do instead of the action of the reason.
    const fn action(self, action: &'static str) -> Row {
        Row { action: Some(action), ..self }
    }
}

const fn normal(reason: Reason, places: &'static [Place], when: &'static str) -> Row {
    Row { reason, warning: false, places, when, action: None }
}

const fn warning(reason: Reason, places: &'static [Place], when: &'static str) -> Row {
    Row { reason, warning: true, places, when, action: None }
}

/// A warning about a gateway service, recorded for what the reason means.
const fn its_own(reason: Reason) -> Row {
    warning(reason, ITS_OWN, reason.row().meaning)
}

/// A gateway service, with or without an object.
const ITS_OWN: &[Place] = &[Place::Service, Place::Key];

/// All of them.
pub const TABLE: &[Row] = &[
    normal(
        Reason::Provisioned,
        ITS_OWN,
        "The load balancer or NAT gateway is ready, was updated, or was restored after an external change.",
    ),
    normal(
        Reason::Deleting,
        ITS_OWN,
        "All addresses are removed, and the Azure resources are being deleted. Another event of this kind names a public IP that is kept, because its tag was removed or an unmanaged resource uses it.",
    )
    .action("If a public IP is kept and you do not need it, delete it."),
    warning(
        Reason::Updating,
        &[Place::Service],
        "The public IP of the Service was deleted in Azure, and the Service gets another one.",
    )
    .action("Update DNS records that contain the old public IP."),
    warning(
        Reason::Draining,
        ITS_OWN,
        "The deletion has waited for addresses longer than `sluice.deletion.reportAfter`. The event names the first addresses.",
    ),
    warning(Reason::PortUnresolved, &[Place::Service], Reason::PortUnresolved.row().meaning),
    warning(
        Reason::InvalidSpec,
        &[Place::Service],
        "The Service uses a field or annotation that is not supported or has no effect, or one of its EndpointSlices has unusable addresses.",
    )
    .action("Correct the field, remove the annotation, or correct the EndpointSlice."),
    warning(
        Reason::InvalidSpec,
        &[Place::Pod],
        "The egress label has no effect: the name is invalid, the namespace is not allowed to use egresses, or the pod uses the host network.",
    )
    .action("Correct or remove the label, correct the pod, or extend `sluice.egress.namespaces`."),
    warning(
        Reason::InvalidSpec,
        &[Place::Key],
        "The egress is not created, because `sluice.egress.max` is reached.",
    )
    .action("Raise `sluice.egress.max`, or remove an egress."),
    warning(Reason::InvalidSpec, &[Place::Cluster], "A node has no InternalIP of the IP family of its pods.")
        .action("Correct the Node or the EndpointSlice."),
    warning(
        Reason::Throttled,
        &[Place::Cluster],
        "Azure requested a pause of more than 1 min (`Retry-After`). If the pause is longer than 15 min, Sluice tests with one call every 15 min whether it has ended.",
    )
    .action("Look for other clients that use up the limits of the subscription, if this happens often."),
    its_own(Reason::QuotaExceeded),
    warning(
        Reason::QuotaExceeded,
        &[Place::Cluster],
        "The gateway cannot be created, because a quota is used up.",
    ),
    its_own(Reason::Forbidden),
    warning(
        Reason::Forbidden,
        &[Place::Cluster],
        "Azure denies a list, or the creation or attachment of the gateway. If a list is denied at start-up, Sluice makes no change until Azure allows it.",
    ),
    its_own(Reason::Conflict),
    warning(
        Reason::Conflict,
        &[Place::Pod],
        "The address of the pod belongs to an unmanaged egress in the gateway.",
    )
    .action("Remove the address from that egress, or delete the egress."),
    warning(
        Reason::Conflict,
        &[Place::Cluster],
        "The gateway has unmanaged registrations that no Kubernetes object needs. Sluice does not change them.",
    )
    .action("Delete them if they are unused."),
    its_own(Reason::Rejected),
    warning(
        Reason::Rejected,
        &[Place::Cluster],
        "Azure rejected the gateway. Or Azure rejected the removal of an address, and Sluice removed it with a full update of its location instead.",
    )
    .action("Run `sluice doctor`."),
    its_own(Reason::AzureUnavailable),
    warning(
        Reason::AzureUnavailable,
        &[Place::Cluster],
        "Lists, address updates or the creation of the gateway have failed many times in a row.",
    ),
    its_own(Reason::InternalError),
    warning(Reason::KubernetesRejected, &[Place::Service], Reason::KubernetesRejected.row().meaning),
    warning(
        Reason::KubernetesRejected,
        &[Place::Cluster],
        "An old admission policy rejects the annotation with the published IP.",
    )
    .action("Apply the admission policy of the installed version."),
    warning(Reason::MassDeletionHeld, &[Place::Cluster], Reason::MassDeletionHeld.row().meaning),
    warning(Reason::GatewayUnavailable, &[Place::Cluster], Reason::GatewayUnavailable.row().meaning),
];

/// Whether the table has it.
pub fn is_promised(notice: &Notice) -> bool {
    let place = Place::of(&notice.about);
    TABLE.iter().any(|row| {
        row.reason == notice.reason && row.warning == notice.warning && row.places.contains(&place)
    })
}

/// A text of at most that many bytes. Its last sentence says what to do, so what is too long is cut before that.
pub fn shortened(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let (said, action) = text.split_at(text.rfind(". ").map_or(text.len(), |at| at + 1));
    let action = cut(action, bytes_max.saturating_sub(said.len().min(bytes_max / 4)));
    cut(said, bytes_max.saturating_sub(action.len())) + &action
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;
    use crate::reason::Severity;
    use crate::reason::names_an_action;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/events.md");

    const HEAD: &str = "# Events

Sluice records Kubernetes events for problems and for important changes. Only the leader records events. It also writes
them to its log.

| object | command |
|---|---|
| a Service | `kubectl -n NAMESPACE describe service NAME` |
| a pod | `kubectl -n NAMESPACE describe pod NAME` |
| an egress, the cluster, or a Service that no longer exists: the Lease | `kubectl -n sluice-system events --for lease/sluice` |

The source is `sluice`. A Warning ends with its code in brackets, for example `(SGW0008)`; `sluice explain SGW0008` prints its
page. Events with the same text on the same object are counted in one event. By default, the API server deletes an event
one hour after it last occurred.

Sluice limits its events:

| limit | burst | then | above the limit |
|---|---|---|---|
| events of one object or egress; for the cluster, events with one reason | 10 | one every 30 s | neither recorded nor logged |
| all events together | 200 | 20 per second | only logged |

The metric `sluice_notices_suppressed_total` counts the events above either limit.

| type | reason | code | object | when | what to do |
|---|---|---|---|---|---|
";

    const TAIL: &str = "
`Provisioning`, and `Throttled` for pauses of up to 1 min, appear only in [conditions](conditions.md).

This page is generated from the table of reasons; `UPDATE_EXPECT=1 cargo test -p sluice-model notices` updates it.
";

    fn page() -> String {
        let mut text = HEAD.to_string();
        for row in TABLE {
            let kind = if row.warning { "Warning" } else { "Normal" };
            let (word, code) = (row.reason.word(), row.reason.code());
            // A status has a section of the page about conditions, and no page of its own.
            let page = match row.reason.row().severity {
                Severity::Status => format!("conditions.md#{}", format!("{code}-{word}").to_lowercase()),
                _ => format!("errors/{code}.md"),
            };
            let places: Vec<&str> = row.places.iter().map(|place| place.words()).collect();
            let at = places.join("; ");
            text.push_str(&format!(
                "| {kind} | `{word}` | [{code}]({page}) | {at} | {} | {} |\n",
                row.when,
                row.action.unwrap_or(row.reason.row().action)
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
        panic!(
            "docs/reference/events.md is behind the code; run `UPDATE_EXPECT=1 cargo test -p sluice-model notices`"
        );
    }

    #[test]
    fn every_row_says_when_in_sentences() {
        for row in TABLE {
            let ok = row.when.starts_with(char::is_uppercase) && row.when.ends_with('.');
            assert!(ok, "{}: {}", row.reason, row.when);
            let action = row.action.unwrap_or("None.");
            assert!(
                action.starts_with(char::is_uppercase) && action.ends_with('.'),
                "{}: {action}",
                row.reason
            );
            let action = row.action.unwrap_or(row.reason.row().action);
            assert!(!row.warning || names_an_action(action), "{}: {action}", row.reason);
        }
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
    fn a_long_note_keeps_what_to_do() {
        let azure = "é".repeat(2_000);
        let note = shortened(&format!("Quota: {azure}. More. Request a higher limit"), NOTE_BYTES_MAX);
        assert!(note.len() <= NOTE_BYTES_MAX && note.len() > NOTE_BYTES_MAX - 4, "{note}");
        assert!(note.starts_with("Quota: éé") && note.ends_with("é… Request a higher limit"), "{note}");
        let note = shortened(&format!("Rejected. Check {azure}"), NOTE_BYTES_MAX);
        assert!(note.len() <= NOTE_BYTES_MAX && note.starts_with("Rejected. Check éé"), "{note}");
        let note = shortened(&format!("{azure}. Check {azure}"), NOTE_BYTES_MAX);
        assert!(note.len() <= NOTE_BYTES_MAX && note.contains("é… Check éé"), "{note}");
        assert_eq!(shortened("ééé", 6), "ééé");
        assert_eq!(shortened("ééé", 5), "é…");
    }

    #[test]
    fn what_has_no_row_is_not_promised() {
        let notice = |about, warning, reason| Notice { about, warning, reason, text: String::new() };
        assert!(is_promised(&notice(About::Cluster, true, Reason::MassDeletionHeld)));
        assert!(!is_promised(&notice(About::Cluster, false, Reason::MassDeletionHeld)));
        assert!(!is_promised(&notice(About::Cluster, true, Reason::Provisioning)));
    }
}
