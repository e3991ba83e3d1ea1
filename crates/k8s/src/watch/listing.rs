//! Everything there is, once: for `plan` and `doctor`.

use kube::Client;
use sluice_model::event::Event;
use sluice_model::kube::Kind;

use super::cycle::{Answer, Cycle, Turn};
use super::gathered::Gathered;
use super::kinds::{Context, Nodes, Pods, Services, Slices, Watched};
use super::requests;
use super::trouble::Setback;
use super::wire::Page;
use crate::convert::Selection;

/// A list whose tokens expired so often is given up.
const EXPIRED_MAX: u32 = 5;

/// A kind that could not be listed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{trouble}")]
pub struct ListError {
    /// Which.
    pub kind: Kind,
    /// Why, and what to do, as a sentence.
    pub trouble: String,
    /// It may pass by itself, so that it is worth another try.
    pub is_passing: bool,
    /// The permission to list is missing.
    pub is_denied: bool,
}

/// Everything that the lists brought.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// One complete list of each kind, as the watches would tell it.
    pub events: Vec<Event>,
    /// What cannot be read and is missing from the lists: a sentence about each.
    pub skipped: Vec<(Kind, String)>,
}

/// One complete list of each kind. Nothing is tried twice, except that a list which took too long is begun
/// anew.
pub async fn list_all(client: &Client, selection: &Selection) -> Result<Listed, ListError> {
    let (services, slices, nodes, pods) = futures::try_join!(
        list::<Services>(client, selection),
        list::<Slices>(client, selection),
        list::<Nodes>(client, selection),
        list::<Pods>(client, selection),
    )?;
    let (events, skipped): (Vec<Event>, Vec<_>) = [services, slices, nodes, pods].into_iter().unzip();
    Ok(Listed { events, skipped: skipped.concat() })
}

type Skipped = Vec<(Kind, String)>;

async fn list<K: Watched>(client: &Client, selection: &Selection) -> Result<(Event, Skipped), ListError> {
    let failed = |trouble: String, is_passing, is_denied| {
        Err(ListError { kind: K::KIND, trouble, is_passing, is_denied })
    };
    let mut context = Context { selection: selection.clone(), words: Default::default() };
    let mut cycle = Cycle::new(false);
    let mut gathered = Gathered::<K>::default();
    let mut skipped = Skipped::new();
    let mut expired = 0;
    loop {
        let ask = cycle.ask();
        if ask.begins_list() {
            gathered = Gathered::default();
            skipped.clear();
        }
        let setback = match requests::page::<K>(client, &ask).await {
            Err(setback) => setback,
            Ok(bytes) => match Page::read(&bytes) {
                Err(garbled) => Setback::garbled::<K>(&ask, garbled),
                Ok(page) => {
                    for item in &page.items {
                        match super::kinds::read::<K>(item, &mut context) {
                            Ok(object) => gathered.add(object),
                            Err(why) => {
                                tracing::warn!(kind = K::RESOURCE, error = why.as_str(), "object skipped");
                                skipped.push((K::KIND, why));
                            }
                        }
                    }
                    let turn = cycle.heard(Answer::Page { version: page.version, next: page.next });
                    if let Turn::Complete { version } = turn {
                        let objects = K::relist(gathered.take());
                        return Ok((Event::Relisted { version, objects }, skipped));
                    }
                    continue;
                }
            },
        };
        if let Some(sentence) = setback.sentence {
            return failed(sentence, setback.is_passing, setback.is_denied);
        }
        expired += 1;
        if expired >= EXPIRED_MAX {
            let sentence = format!(
                "the list of {} expired before it was complete; retry when the API server is less busy",
                K::RESOURCE
            );
            return failed(sentence, false, false);
        }
        cycle.heard(setback.answer);
    }
}
