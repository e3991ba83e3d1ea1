//! `docs/conditions.md`, generated from the table of reasons.

use sluice_model::kube::{Concern, ConditionKind};
use sluice_model::reason::{Reason, Row};

use crate::strings::condition_type;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/conditions.md");

const HEAD: &str = "# Conditions

Sluice writes two conditions into `status.conditions` of each Service that it serves.

| condition | `True` | `False` |
|---|---|---|
| `PROVISIONING` | a change is pending, in progress or blocked; the reason says which | Azure matches the desired state |
| `SERVING` | the Service is registered with the gateway and its public IP is published; the message contains the IP | not served, or not yet |

Wait for a Service:

    kubectl -n NAMESPACE wait --for=condition=SERVING service/NAME

Both conditions can be `True`: a live Service that is being changed, or whose change is blocked, is still served.
`lastTransitionTime` changes with the status, not with the reason. Sluice does not change the conditions of other
controllers, and removes its own when it no longer serves the Service. An egress has no object and so no conditions:
`sluice explain egress/NAME` shows the same reasons.

While Azure has not been listed completely, or the gateway cannot be used, `SERVING` keeps its status.

## Reasons

`PROVISIONING` has the reason of the row. `SERVING` has `Provisioned` while it is `True`, and the reason of `PROVISIONING`
while it is `False`. `sluice explain CODE` prints the page of a code.

| reason | code | `PROVISIONING` | meaning | impact | what to do |
|---|---|---|---|---|---|
";

const TAIL: &str = "
A pause that Azure requests is shown as `Throttled` from 30 s on.

## Trouble

A Service is in trouble when its desired state is not programmed for longer than ordinary work takes. `PROVISIONING` is
then `True` with the reason. If the problem concerns addresses or a deletion, the message says so first:

| what | first sentence of the message | from when on |
|---|---|---|
| the spec, or an unmanaged resource with the required name | that of the reason | at once; an unresolved port counts as trouble after 1 min |
| the Azure resources | that of the reason | the gateway service is parked, its operations failed three times in a row, Azure requested a pause of 30 s or more, or Azure has differed from the desired state for 5 min |
| the gateway | that of the reason | the gateway or its subnet cannot be used, or its creation is parked |
| the state of Azure | that of the reason | a list at start-up has failed for 30 s |
| the tags | that of the reason | the tags of the load balancer cannot be written, or were removed a second time |
| the addresses | ADDRESSES | address updates have failed for 30 s; one has not ended after 60 s (`Throttled` while it waits for a pause or the call budget); Azure rejects addresses; or nodes have had no InternalIP of the IP family of their pods for 1 min (`InvalidSpec`) |
| a held deletion | that of the reason | the mass-deletion guard holds it |
| the deletion | DELETION | operations or address updates fail as above, an operation has not ended after 5 min, or the deletion waits for addresses longer than `sluice.deletion.reportAfter` |

A Service that has differed from the desired state for 5 min has the reason of its last failure. Without a failure it has
`Throttled` while Azure requests pauses, and `AzureUnavailable` if its operation has been in Azure for that long. If it
waits for a free slot or for the call budget, it keeps its current reason (`Provisioning`, `Updating`, `Draining` or
`Deleting`), so that a bulk load writes no condition twice; it counts as trouble all the same, and `sluice explain` names
what it waits for. A success restarts the 5 min.

`SERVING` is `False` with the same reason when no address of the Service is programmed. The message of a problem ends with
the commands that show its details and the page of its code. It contains no value that changes with a retry, so retries do
not write the status. `sluice status` and `sluice explain` show attempts, times and the last error, and
`sluice_services_in_trouble` counts by reason.

This page is generated from the table of reasons; `UPDATE_EXPECT=1 cargo test -p sluice-k8s --lib reference` updates it.
";

fn page() -> String {
    let mut text = HEAD.to_string();
    for reason in Reason::ALL.into_iter().filter(|reason| reason.stands_in_conditions()) {
        let Row { label, code, meaning, impact, action, .. } = reason.row();
        let status = if reason == Reason::Provisioned { "False" } else { "True" };
        text.push_str(&format!(
            "| `{label}` | [{code}](errors/{code}.md) | `{status}` | {meaning} | {impact} | {action} |\n"
        ));
    }
    for reason in Reason::ALL.into_iter().filter(|reason| !reason.stands_in_conditions()) {
        let (word, code) = (reason.word(), reason.code());
        text.push_str(&format!(
            "\n`{word}` ([{code}](errors/{code}.md)) is only an [event](events.md), because the status cannot be \
             written.\n"
        ));
    }
    let concern = |concern: Concern| concern.sentence().unwrap_or_default();
    (text + TAIL)
        .replace("ADDRESSES", concern(Concern::Addresses))
        .replace("DELETION", concern(Concern::Deletion))
        .replace("PROVISIONING", condition_type(ConditionKind::Provisioning))
        .replace("SERVING", condition_type(ConditionKind::Serving))
}

#[test]
fn the_page_shows_the_conditions_as_they_are() {
    let shown = std::fs::read_to_string(PAGE).unwrap_or_default();
    if shown == page() {
        return;
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(PAGE, page()).unwrap();
        return;
    }
    panic!(
        "docs/conditions.md is behind the code; run `UPDATE_EXPECT=1 cargo test -p sluice-k8s --lib reference`"
    );
}
