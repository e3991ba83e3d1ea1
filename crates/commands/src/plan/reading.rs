//! Reads all of Azure once, with the updaters' own lister: pages, repeats and limits are theirs.

use std::collections::BTreeMap;

use futures::stream::{FuturesUnordered, StreamExt as _};
use sluice_controller::{Azure, Clock};
use sluice_model::effect::{Cause, Listable, Listing};
use sluice_model::names::Scope;
use sluice_model::seeded::Seeded;
use sluice_model::{Action, Effect, EffectId, Event, Failure, FailureClass, Outcome, Time};
use sluice_updater::{Output, Updaters};

/// Something of Azure could not be listed.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {} from Azure: {failure}", what.phrase())]
pub struct Unreadable {
    /// What.
    pub what: Listable,
    /// Why.
    pub failure: Failure,
}

/// Lists the gateway, what it holds, and our resource group; the gateway first.
pub async fn read_azure(
    config: sluice_updater::Config,
    scope: &Scope,
    azure: &impl Azure,
    clock: &impl Clock,
) -> Result<Vec<Listing>, Unreadable> {
    let mut updaters = Updaters::new(config, scope.clone(), 0, Seeded::NONE);
    updaters.fence(Some(Time::NEVER));
    let mut open: BTreeMap<EffectId, Listable> = BTreeMap::new();
    let mut read: BTreeMap<Listable, Result<Listing, Failure>> = BTreeMap::new();
    for (number, what) in (1..).zip(Listable::ALL) {
        let id = EffectId(number);
        open.insert(id, what);
        updaters.start(clock.now(), &Effect { id, action: Action::List(what), cause: Cause::StartUp });
    }
    let mut under_way = FuturesUnordered::new();
    loop {
        while let Some(output) = updaters.next_output(clock.now()) {
            match output {
                Output::Send { call, request, .. } => {
                    under_way.push(async move { (call, azure.send(request, || true).await) });
                }
                Output::Report(Event::EffectFinished { id, outcome: Outcome::Listed { result, .. } }) => {
                    if let Some(what) = open.remove(&id) {
                        read.insert(what, result);
                    }
                }
                Output::Report(_) => {}
            }
        }
        if open.is_empty() {
            break;
        }
        let due = updaters.next_deadline().unwrap_or(Time::NEVER);
        tokio::select! {
            Some((call, reply)) = under_way.next() => updaters.replied(clock.now(), call, reply),
            () = clock.sleep_until(due) => updaters.tick(clock.now()),
        }
    }
    let no_gateway =
        matches!(read.get(&Listable::Foundation), Some(Ok(Listing::Foundation { gateway: None, .. })));
    let mut listings = Vec::new();
    for (what, result) in read {
        match result {
            Ok(listing) => listings.push(listing),
            // A gateway that does not exist has nothing in it.
            Err(failure)
                if no_gateway
                    && failure.class == FailureClass::NotFound
                    && matches!(what, Listable::Registrations | Listable::Locations) => {}
            Err(failure) => return Err(Unreadable { what, failure }),
        }
    }
    Ok(listings)
}
