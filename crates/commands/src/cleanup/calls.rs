//! Calls to Azure that are repeated while it asks for patience, and writes that are awaited to their end.

use std::time::Duration;

use anyhow::bail;
use sluice_controller::{Clock, Monotonic};
use sluice_model::azure::{ArmId, Tags};
use sluice_model::call::{Answer, Method, OperationState, Payload, Reply, Request};
use sluice_model::names::without_our_tags;

use crate::reach::Reached;
use crate::tags::{ANOTHER_VERSION, Retagged, retag};

/// How long one write may take.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// How often an operation is asked about, and a refused call repeated, when Azure does not say.
pub(super) const PACE: Duration = Duration::from_secs(2);

/// Sends a write and waits until its operation has ended.
pub(super) async fn done(
    reached: &Reached,
    request: Request,
    may_begin: &(impl Fn() -> bool + Send + Sync),
) -> anyhow::Result<()> {
    let clock = Monotonic::start();
    let end = clock.now() + LIMIT;
    let is_deletion = request.method == Method::Delete;
    let mut answer = send_while(reached, request, may_begin).await?;
    match &answer.payload {
        // What is gone is deleted.
        Payload::Error(_) if is_deletion && answer.status == 404 => return Ok(()),
        Payload::Error(error) => bail!("{} ({}): {}", error.code, answer.status, error.message),
        _ => {}
    }
    while let Some(operation) = answer.operation.take() {
        clock.sleep_until(clock.now() + answer.retry_after.unwrap_or(PACE)).await;
        let poll = send(reached, Request::bare(Method::Poll, operation.clone())).await?;
        match &poll.payload {
            Payload::Operation(OperationState::Succeeded) => return Ok(()),
            Payload::Operation(OperationState::Failed(error) | OperationState::Canceled(error)) => {
                bail!("{}: {}", error.code, error.message)
            }
            _ if clock.now() >= end => {
                bail!(
                    "the Azure operation did not finish within {} min; re-run to continue",
                    LIMIT.as_secs() / 60
                )
            }
            _ => answer = Answer { operation: Some(operation), ..poll },
        }
    }
    Ok(())
}

/// Takes our tags off a resource, if it is still ours, and leaves everything else of it alone.
pub(super) async fn untag(
    reached: &Reached,
    what: &str,
    id: &ArmId,
    may_begin: &(impl Fn() -> bool + Send + Sync),
) -> anyhow::Result<()> {
    let scope = reached.config.scope(&reached.cluster_id);
    let edit = |now: &Tags| match scope.owns(now) {
        true => Ok(without_our_tags(now)),
        false => Err("it has no cluster tag, or that of another cluster".to_owned()),
    };
    let send = async |request: Request| {
        let answer = send_while(reached, request, may_begin).await?;
        anyhow::Ok((answer.status, answer.payload))
    };
    match retag(what, id, edit, send).await? {
        Retagged::Done => println!("Removed the tags of this cluster from {what} {}.", id.name()),
        // Then there is nothing of ours on it.
        Retagged::Gone | Retagged::Refused(_) => {}
    }
    Ok(())
}

/// Sends one call; a refusal is an error, and a pause that Azure asks for is kept.
pub(super) async fn send(reached: &Reached, request: Request) -> anyhow::Result<Answer> {
    send_while(reached, request, &|| true).await
}

/// The same, for a write: it is not sent without the lease. That the resource is gone, or of another version,
/// is an answer.
async fn send_while(
    reached: &Reached,
    request: Request,
    may_begin: &(impl Fn() -> bool + Send + Sync),
) -> anyhow::Result<Answer> {
    let clock = Monotonic::start();
    let end = clock.now() + LIMIT;
    loop {
        if !may_begin() {
            bail!("lease lost: another replica may be active; re-run the command");
        }
        let why = match reached.azure.send_while(&request, may_begin).await {
            Reply::Answered(answer) => match (&answer.payload, answer.status) {
                (Payload::Error(error), 429 | 500..) => {
                    (answer.retry_after, format!("{}: {}", error.code, error.message))
                }
                (Payload::Error(_), 404 | ANOTHER_VERSION) => return Ok(answer),
                (Payload::Error(error), status) => bail!("{} ({status}): {}", error.code, error.message),
                _ => return Ok(answer),
            },
            Reply::NotSent(why) | Reply::Lost(why) => (None, why.to_string()),
        };
        let (pause, text) = why;
        if clock.now() >= end {
            bail!("{text}");
        }
        clock.sleep_until(clock.now() + pause.unwrap_or(PACE)).await;
    }
}
