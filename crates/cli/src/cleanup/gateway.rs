//! The service gateway goes last, when nothing is in it any more.

use std::time::Duration;

use anyhow::{Context as _, bail};
use sluice_controller::{Clock, Monotonic};
use sluice_model::azure::{ArmId, SubnetBody};
use sluice_model::call::{Answer, Body, Method, OperationState, Payload, Reply, Request};

use crate::plan::Reached;

/// How long the gateway's end may take.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// How often an operation is asked about, and a refused call repeated, when Azure does not say.
const PACE: Duration = Duration::from_secs(2);

/// A gateway that carries our tag.
#[derive(Clone, Debug)]
pub(super) struct OurGateway {
    pub(super) id: ArmId,
    pub(super) subnet: ArmId,
}

/// The gateway, if it is there and ours.
pub(super) async fn ours(reached: &Reached) -> anyhow::Result<Option<OurGateway>> {
    let scope = reached.config.scope(&reached.cluster_id);
    let id = scope.gateway_id();
    match send(reached, Request::bare(Method::Get, id.clone())).await?.payload {
        Payload::Gateway(gateway) if scope.owns(&gateway.meta.tags) => {
            Ok(Some(OurGateway { id, subnet: scope.subnet_id() }))
        }
        _ => Ok(None),
    }
}

/// Detaches the subnet and deletes the gateway.
pub(super) async fn remove(reached: &Reached, gateway: OurGateway) -> anyhow::Result<()> {
    let read = send(reached, Request::bare(Method::Get, gateway.subnet.clone())).await?;
    if let Payload::Subnet(subnet) = read.payload
        && subnet.gateway.as_ref() == Some(&gateway.id)
    {
        println!("Detaching subnet {} …", gateway.subnet.name());
        let body = Body::Subnet(SubnetBody { gateway: None, rest: subnet.rest });
        let mut request = Request::with(Method::Put, gateway.subnet.clone(), body);
        request.if_match = Some(subnet.etag);
        done(reached, request).await.context("the subnet cannot be detached")?;
    }
    println!("Deleting the service gateway {} …", gateway.id.name());
    done(reached, Request::bare(Method::Delete, gateway.id)).await.context("the gateway cannot be deleted")
}

/// Sends a write and waits until its operation has ended.
async fn done(reached: &Reached, request: Request) -> anyhow::Result<()> {
    let clock = Monotonic::start();
    let end = clock.now() + LIMIT;
    let mut answer = send(reached, request).await?;
    while let Some(operation) = answer.operation.take() {
        clock.sleep_until(clock.now() + answer.retry_after.unwrap_or(PACE)).await;
        let poll = send(reached, Request::bare(Method::Poll, operation.clone())).await?;
        match &poll.payload {
            Payload::Operation(OperationState::Succeeded) => return Ok(()),
            Payload::Operation(OperationState::Failed(error) | OperationState::Canceled(error)) => {
                bail!("{}: {}", error.code, error.message)
            }
            _ if clock.now() >= end => {
                bail!("Azure's operation did not end within {} min", LIMIT.as_secs() / 60)
            }
            _ => answer = Answer { operation: Some(operation), ..poll },
        }
    }
    Ok(())
}

/// Sends one call; a refusal is an error, and a pause that Azure asks for is kept.
async fn send(reached: &Reached, request: Request) -> anyhow::Result<Answer> {
    let clock = Monotonic::start();
    let end = clock.now() + LIMIT;
    loop {
        let why = match reached.azure.send(&request).await {
            Reply::Answered(answer) => match (&answer.payload, answer.status) {
                (Payload::Error(error), 429 | 500..) => {
                    (answer.retry_after, format!("{}: {}", error.code, error.message))
                }
                (Payload::Error(_), 404) => return Ok(answer),
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
