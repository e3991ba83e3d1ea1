//! The service gateway goes last, when nothing is in it any more. What is not ours stays served: as long
//! as anything is in it, the gateway stays, and its subnet attached.

use std::time::Duration;

use crate::reach::Reached;
use anyhow::{Context as _, bail};
use sluice_controller::{Clock, Monotonic};
use sluice_model::azure::{ArmId, SubnetBody};
use sluice_model::call::{Answer, Body, Method, OperationState, Payload, Reply, Request};
use sluice_model::effect::Listing;
use sluice_model::names::Scope;

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

/// What would still be in the gateway when all of ours is gone, in words; none if nothing.
pub(super) fn left_in(after: &sluice_cloud::Cloud, scope: &Scope) -> Option<String> {
    let (state, gateway) = (after.state(), scope.gateway_id());
    let names = state.registrations(&gateway).map(|it| it.name.to_string()).collect();
    in_words(names, state.locations(&gateway).count())
}

/// The same, of what was listed.
fn left_in_listings(listings: &[Listing]) -> Option<String> {
    let (mut names, mut locations) = (Vec::new(), 0);
    for listing in listings {
        match listing {
            Listing::Registrations(all) => names.extend(all.iter().map(|it| it.name.to_string())),
            Listing::Locations(all) => locations += all.len(),
            _ => {}
        }
    }
    in_words(names, locations)
}

fn in_words(names: Vec<String>, locations: usize) -> Option<String> {
    let registered = format!("{} is registered with it and not ours", names.join(", "));
    match (names.is_empty(), locations) {
        (true, 0) => None,
        (true, count) => Some(format!("it has {count} address locations that are not ours")),
        (false, 0) => Some(registered),
        (false, count) => Some(format!("{registered}, and {count} address locations are in it")),
    }
}

/// Detaches the subnet and deletes the gateway, while we may; if anything is in it that is not ours, it
/// does neither and says what.
pub(super) async fn remove(
    reached: &Reached,
    gateway: OurGateway,
    may_begin: impl Fn() -> bool + Send + Sync,
) -> anyhow::Result<Option<String>> {
    // Somebody may have come since the plan was made.
    if let Some(left) = left_in_listings(&reached.read().await.map_err(|failure| failure.error)?.azure) {
        return Ok(Some(left));
    }
    let read = send(reached, Request::bare(Method::Get, gateway.subnet.clone())).await?;
    if let Payload::Subnet(subnet) = read.payload
        && subnet.gateway.as_ref() == Some(&gateway.id)
    {
        println!("Detaching subnet {} …", gateway.subnet.name());
        let body = Body::Subnet(SubnetBody { gateway: None, rest: subnet.rest });
        let mut request = Request::with(Method::Put, gateway.subnet.clone(), body);
        request.if_match = Some(subnet.etag);
        done(reached, request, &may_begin).await.context("the subnet cannot be detached")?;
    }
    println!("Deleting the service gateway {} …", gateway.id.name());
    let delete = Request::bare(Method::Delete, gateway.id);
    done(reached, delete, &may_begin).await.context("the gateway cannot be deleted")?;
    Ok(None)
}

/// Sends a write and waits until its operation has ended.
async fn done(
    reached: &Reached,
    request: Request,
    may_begin: &(impl Fn() -> bool + Send + Sync),
) -> anyhow::Result<()> {
    let clock = Monotonic::start();
    let end = clock.now() + LIMIT;
    let mut answer = send_while(reached, request, may_begin).await?;
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
    send_while(reached, request, &|| true).await
}

/// The same, for a write: it is not sent without the lease.
async fn send_while(
    reached: &Reached,
    request: Request,
    may_begin: &(impl Fn() -> bool + Send + Sync),
) -> anyhow::Result<Answer> {
    let clock = Monotonic::start();
    let end = clock.now() + LIMIT;
    loop {
        if !may_begin() {
            bail!("the lease is lost, and another may be at work: come again");
        }
        let why = match reached.azure.send_while(&request, may_begin).await {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_with_anything_in_it_is_named_as_one_that_stays_and_an_empty_one_is_not() {
        assert_eq!(in_words(Vec::new(), 0), None);
        assert_eq!(
            left_in_listings(&[Listing::Registrations(Vec::new()), Listing::Locations(Vec::new())]),
            None
        );
        let left = in_words(vec!["theirs".to_owned()], 2).unwrap();
        assert_eq!(left, "theirs is registered with it and not ours, and 2 address locations are in it");
        assert!(in_words(Vec::new(), 1).unwrap().contains("1 address locations"));
    }
}
