//! `docs/reference/conditions.md`, generated from the table of reasons.

use sluice_model::kube::{Concern, ConditionKind};
use sluice_model::reason::{Reason, Row, Severity};

use crate::strings::condition_type;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/conditions.md");

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

With the IP, Sluice writes the annotation `sluice.dev/published-ip`, in the same request, so that a restart knows which
entry of `status.loadBalancer.ingress` is its own. An annotation that was changed by hand does no harm: it counts only if
its IP is that of the public IP of the Service.

`SERVING` keeps its status until Sluice has read all Azure resources, and while Sluice cannot use the gateway.

## Reasons

The table shows the reasons of `PROVISIONING`. The reason of `SERVING` is `Provisioned` while its status is `True`. While
its status is `False`, it has the same reason as `PROVISIONING`. `sluice explain CODE` prints the page of a code.

| reason | code | `PROVISIONING` | meaning | impact | what to do |
|---|---|---|---|---|---|
";

const TAIL: &str = "
If Azure requests a pause, the reason is `Throttled` only for pauses of 30 s or more.

## Status reasons

These reasons describe normal work. They are not errors.

### SGW0001

Sluice creates the public IP, the load balancer or NAT gateway, and the registration with the gateway. Azure needs a few
seconds for each. Addresses of pods are buffered: Sluice sends them to Azure as soon as the registration is complete.

At most `sluice.concurrency` operations (10 by default) run at the same time. Other Services and egresses wait for a slot.

What to do:

- Nothing. `sluice explain service/NAMESPACE/NAME` shows the operation and its steps.
- After 5 min without success the Service is in trouble. `sluice explain` then shows the cause of the delay: throttling,
  the call budget, no free slot, or the gateway.

### SGW0002

The Service or egress is registered with the gateway, and Sluice keeps its addresses in sync. For a Service, the
conditions `PROVISIONING=False` and `SERVING=True` have this reason.

What to do: nothing.

### SGW0003

Either the spec was changed, or the resources were changed outside Sluice. Sluice reacts to an outside change only after
two consecutive lists show it. The Service stays registered, its addresses stay in sync, and its public IP does not
change.

If the public IP was deleted in Azure, Sluice creates a new one. The IP of the Service then changes, and a Warning event
reports it.

What to do:

- Nothing, if the Service was changed on purpose.
- Otherwise find the other writer in the activity log of the load balancer or public IP in Azure.

### SGW0004

The Service was deleted or is no longer of type `LoadBalancer`, or the egress has no pod any more. Azure does not
delete a resource that addresses refer to, so Sluice first removes every address from the gateway. Deletion starts when
no address is left.

What to do:

- Nothing, as long as the number of addresses falls.
- After `sluice.deletion.reportAfter` (5 min by default) a Warning event names the addresses that block the deletion. If
  address updates fail, `sluice status --trouble` shows the cause.

### SGW0005

All addresses are removed. Sluice deletes the rest in this order:

- Service: the reference in the gateway, the load balancer, the registration, the public IP.
- Egress: the reference in the gateway, the registration, the NAT gateway, the public IPs.

The finalizer `sluice.dev/cleanup` is removed from the Service last. Each step can be repeated, so a restart is safe.

What to do:

- Nothing. If a step fails, `sluice explain service/NAMESPACE/NAME` shows the error, and Sluice retries until it succeeds.
- For a Service whose object no longer exists, run `sluice explain service/-/UID`. `sluice status` lists it.

## Trouble

A Service is in trouble when a change is blocked, keeps failing, or takes much longer than usual. `PROVISIONING` is then
`True` with the reason. A Service is in trouble in these cases:

| subject | in trouble when |
|---|---|
| spec | Sluice rejects the spec, or a port has been unresolved for 1 min |
| unmanaged resource | an unmanaged resource has the required name |
| Azure resources | the gateway service is parked (its retries are suspended) |
| | its operations failed three times in a row |
| | Azure requested a pause of 30 s or more |
| | Azure has differed from the desired state for 5 min |
| gateway | Sluice cannot use the gateway or its subnet, or the creation of the gateway is parked |
| state of Azure | a list at start-up has failed for 30 s |
| tags | Sluice cannot write the tags of the load balancer, or another tool removed them twice |
| addresses | address updates have failed for 30 s |
| | one address update has not ended after 60 s; the reason is `Throttled` if it waits for a pause or the call budget |
| | Azure rejects addresses |
| | nodes have had no InternalIP of the IP family of their pods for 1 min; the reason is `InvalidSpec` |
| held deletion | the mass-deletion guard holds the deletion |
| deletion | operations or address updates fail as above, or an operation has not ended after 5 min |
| | the deletion waits for addresses longer than `sluice.deletion.reportAfter` |

The message of `PROVISIONING` contains what happened, with the answer of Azure if there is one. The message of `SERVING`
contains the meaning of the reason, and so does that of `PROVISIONING` if no detail is known. If the problem concerns
addresses or a deletion, the message starts with `ADDRESSES` or `DELETION`

If Azure has differed from the desired state for 5 min, the reason depends on the cause:

| cause | reason |
|---|---|
| an attempt failed | the reason of the last failure |
| Azure requests pauses | `Throttled` |
| an operation has been running in Azure for 5 min | `AzureUnavailable` |
| the Service waits for a free slot or for the call budget | unchanged: `Provisioning`, `Updating`, `Draining` or `Deleting` |

In the last case, `sluice explain` shows what the Service waits for. The unchanged reason avoids status writes for many new
Services. Each success restarts the 5 min.

If no address of the Service is programmed, `SERVING` is `False` with the same reason. The message of a problem ends with
two commands, which show the details and the page of the code. A retry with the same answer does not write the status: the
message stays if the answer differs only in numbers and IDs, or if the reason is `AzureUnavailable` again. `sluice status` and
`sluice explain` show attempts, times and the last error. The metric `sluice_services_in_trouble` counts by reason.

This page is generated from the table of reasons; `UPDATE_EXPECT=1 cargo test -p sluice-k8s --lib reference` updates it.
";

/// The code of a reason, with a link to its page; a status has a section of this page instead.
fn link(reason: Reason) -> String {
    let Row { label, code, severity, .. } = reason.row();
    match severity {
        Severity::Status => format!("[{code}](#{})", format!("{code}-{label}").to_lowercase()),
        _ => format!("[{code}](errors/{code}.md)"),
    }
}

fn page() -> String {
    let mut text = HEAD.to_string();
    for reason in Reason::ALL.into_iter().filter(|reason| reason.stands_in_conditions()) {
        let Row { label, meaning, impact, action, .. } = reason.row();
        let link = link(reason);
        let status = if reason == Reason::Provisioned { "False" } else { "True" };
        text.push_str(&format!("| `{label}` | {link} | `{status}` | {meaning} | {impact} | {action} |\n"));
    }
    for reason in Reason::ALL.into_iter().filter(|reason| !reason.stands_in_conditions()) {
        let (word, link) = (reason.word(), link(reason));
        text.push_str(&format!(
            "\n`{word}` ({link}) is only an [event](events.md), because the status cannot be \
             written.\n"
        ));
    }
    text.push_str(TAIL);
    for Row { label, code, meaning, .. } in Reason::ALL.map(|reason| *reason.row()) {
        text = text.replace(&format!("### {code}\n"), &format!("### {code}: {label}\n\n{meaning}\n"));
    }
    let concern = |concern: Concern| concern.sentence().unwrap_or_default();
    text.replace("ADDRESSES", concern(Concern::Addresses))
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
        "docs/reference/conditions.md is behind the code; run `UPDATE_EXPECT=1 cargo test -p sluice-k8s --lib reference`"
    );
}
