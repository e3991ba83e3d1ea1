//! `docs/conditions.md`, made from the reasons and the sentences that stand in the status.

use sluice_model::kube::{Concern, ConditionKind};
use sluice_model::reason::Reason;

use super::{NO_NODE_ADDRESS, sentence};
use crate::strings::condition_type;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/conditions.md");

const HEAD: &str = "# Conditions

What stands in `status.conditions` of a Service that Sluice serves. The table is made from
`crates/model/src/reason.rs` and `crates/k8s/src/write/status.rs`; a test fails when they differ, and
`UPDATE_EXPECT=1 cargo test -p sluice-k8s --lib reference` writes it anew.

| condition | `True` | `False` |
|---|---|---|
| `PROVISIONING` | work is to be done, is under way, or is stuck; the reason says which | all is in Azure as wanted |
| `SERVING` | the Service is registered and its IP is published; the message has the IP | it is not, or not yet |

`kubectl wait --for=condition=SERVING service/NAME` waits for it. Both can be `True` at once: a live Service that is
being changed, or whose change is stuck, goes on serving. `lastTransitionTime` moves with the status, not with the
reason. Conditions of others are left as they are, and ours go when the Service is ours no longer. An egress has no
object and so no conditions: `sluice explain egress/NAME` has the same reasons.

While Azure has not been listed completely, or the gateway cannot be used, nothing is decided: what stands there about
serving stays.

## Reasons

`PROVISIONING` has the reason of its row. `SERVING` has `Provisioned` while it is `True`, and the same reason as the other
while it is `False`. The reason of a parked Service stays until it is mended; [Troubleshooting](guides/troubleshooting.md)
goes on from each.

| reason | code | `PROVISIONING` | message |
|---|---|---|---|
";

const TAIL: &str = "
A pause that Azure asks for is shown as `Throttled` from 30 seconds on; shorter ones are over before people look.

## Trouble

A Service is in trouble when its desired state is not programmed for longer than ordinary work takes. `PROVISIONING` is
then `True` with the reason, and the message says first what is not as desired:

| what | the message begins with | from when on |
|---|---|---|
| its spec, or an unmanaged resource in its place | the sentence of the reason | at once; an unresolved port counts as trouble after a minute |
| its Azure resources | the sentence of the reason | the service is parked, its operations failed three times in a row, Azure asked for a pause of 30 seconds or more, or it has differed from the desired state for 5 minutes |
| the gateway | the sentence of the reason | the gateway or its subnet cannot be used, or creating it is parked |
| the state of Azure | the sentence of the reason | a listing at start-up has failed for 30 seconds |
| its tags | the sentence of the reason | the tags of its load balancer cannot be written, or were removed a second time |
| its addresses | ADDRESSES | address updates have failed for 30 seconds, one has not ended after 60 (`Throttled` while it waits for a pause or for the call budget), Azure rejects addresses, or the node of some of them has had no address of their IP family for a minute (`InvalidSpec`: NO_NODE_ADDRESS) |
| a held deletion | the sentence of the reason | the mass-deletion guard holds it |
| its deletion | DELETION | its operations or address updates fail as above, an operation has not ended after 5 minutes, or it waits for addresses longer than `sluice.deletion.reportAfter` |

A Service that has differed from the desired state for 5 minutes has the reason of its last failure. Without a failure it
has `Throttled` while Azure asks for pauses, however short, and `AzureUnavailable` if its operation has been in Azure for
that long. If it waits for a free slot or for the call budget, it keeps its current reason (`Provisioning`, `Updating`,
`Draining`, `Deleting`), so that a bulk load writes no condition twice; it counts as trouble all the same, and
`sluice explain` says what it waits for. A success starts the 5 minutes again.

`SERVING` is `False` with the same reason when not a single address of the Service is programmed. A condition has no numbers
and none of Azure's words, so that retries do not write it again; `sluice status` and `sluice explain` have both, and
`sluice_services_in_trouble` counts by reason. All of them read the same rule.
";

fn page() -> String {
    let mut text = HEAD.to_string();
    for reason in Reason::ALL.into_iter().filter(|reason| reason.stands_in_conditions()) {
        let (word, code) = (reason.word(), reason.code());
        let status = if reason == Reason::Provisioned { "False" } else { "True" };
        text.push_str(&format!(
            "| `{word}` | [{code}](errors/{code}.md) | `{status}` | {} |\n",
            sentence(reason)
        ));
    }
    for reason in Reason::ALL.into_iter().filter(|reason| !reason.stands_in_conditions()) {
        let (word, code) = (reason.word(), reason.code());
        text.push_str(&format!(
            "\n`{word}` ([{code}](errors/{code}.md)) is an [event](events.md) alone: a status that cannot be written \
             cannot say so.\n"
        ));
    }
    let concern = |concern: Concern| concern.sentence().unwrap_or_default();
    (text + TAIL)
        .replace("NO_NODE_ADDRESS", NO_NODE_ADDRESS)
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
