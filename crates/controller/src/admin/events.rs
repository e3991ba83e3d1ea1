//! `/api/v1/events`: first how everything stands, then what changes, as server-sent events.
//!
//! Nothing is queued for a reader: it has seen everything up to some number of a change, and is given
//! what is beyond it as it stands now. So a slow reader gets fewer and larger steps.
//!
//! An id names the process and the number of the change, so that a reader that comes back with
//! `Last-Event-ID` is given what it missed, or everything if that is too long ago or was another
//! process. The stream ends with an event `goodbye` that says why: the loop has ended, or the reader
//! takes nothing for too long.
//!
//! With `?of=service/UID` or `?of=egress/NAME` it is about that one only; `?after=ID` is for readers
//! that cannot send `Last-Event-ID` with their first request, as an `EventSource` cannot.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query as Pairs, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use sluice_engine::{Engine, ServiceView};
use sluice_model::{ServiceKey, Time, Uid};
use sluice_view::{Delta, Goodbye, Removed, Status};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::access::problem;
use super::{Room, STREAMS_MAX, Silence, api, words};
use crate::clock::Clock;

/// The shortest time between two looks for one stream.
const PACE: Duration = Duration::from_millis(250);

/// Whoever takes nothing for so long is sent away.
const PATIENCE: Duration = Duration::from_secs(15);

/// A comment that keeps the connection open, and finds out whether anybody is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) async fn stream(
    State(room): State<Arc<Room>>,
    Pairs(pairs): Pairs<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Response {
    let of = match pairs.iter().find(|(name, _)| name == "of").map(|(_, of)| key_of(of)) {
        None => None,
        Some(Some(key)) => Some(key),
        Some(None) => {
            let message = "Invalid parameter \"of\": specify service/UID or egress/NAME, or omit it for all.";
            return problem(StatusCode::BAD_REQUEST, "BadParameter", message);
        }
    };
    let Ok(place) = Arc::clone(&room.streams).try_acquire_owned() else {
        let message =
            format!("All {STREAMS_MAX} event streams are in use; close one, or poll /api/v1/services.");
        return problem(StatusCode::SERVICE_UNAVAILABLE, "TooManyStreams", &message);
    };
    let mut turns = room.parts.handle.turns();
    // The first look needs no change.
    turns.mark_changed();
    let last_id = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = pairs.iter().find(|(name, _)| name == "after").map(|(_, id)| id.as_str());
    // A browser that comes back by itself sends what it has seen since it first asked.
    let last_id = last_id.or(after);
    let seen = last_id.and_then(|id| room.number_in(id));
    let reader =
        Reader { room, of, turns, seen, handed_over: None, looked: None, is_over: false, _place: place };
    let events = unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok::<Event, Infallible>(event), reader))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive")).into_response()
}

/// Reads `service/UID` or `egress/NAME`.
fn key_of(text: &str) -> Option<ServiceKey> {
    match text.split_once('/')? {
        ("service", uid) => Uid::parse(uid).ok().map(ServiceKey::Inbound),
        ("egress", name) => api::egress_named(name).ok().map(ServiceKey::Outbound),
        _ => None,
    }
}

/// One open stream.
struct Reader {
    room: Arc<Room>,
    /// The only one that it is about.
    of: Option<ServiceKey>,
    turns: watch::Receiver<u64>,
    seen: Option<u64>,
    /// When the last event was handed over.
    handed_over: Option<Time>,
    /// When the loop was last asked.
    looked: Option<Time>,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl Reader {
    async fn next(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        let asked = self.room.clock.now();
        // We are asked for the next event as soon as there is room for it on the way to the reader.
        if self.handed_over.is_some_and(|at| asked > at + PATIENCE) {
            tracing::debug!("event stream closed: client too slow");
            let message = format!(
                "The client read nothing for {} s. Reconnect with Last-Event-ID.",
                PATIENCE.as_secs()
            );
            return Some(self.goodbye("TooSlow", message));
        }
        loop {
            if self.turns.changed().await.is_err() {
                return Some(self.goodbye(
                    "LoopEnded",
                    "The control loop has stopped; connect to the new leader.".into(),
                ));
            }
            if let Some(at) = self.looked {
                self.room.clock.sleep_until(at + PACE).await;
            }
            self.turns.mark_unchanged();
            self.looked = Some(self.room.clock.now());
            let (seen, of) = (self.seen, self.of.clone());
            match self.room.ask(move |engine, _, _| Step::beyond(seen, of.as_ref(), engine)).await {
                Ok(step) => {
                    if let Some(news) = step.taken(&mut self.seen) {
                        return Some(self.hand_over(news));
                    }
                }
                Err(Silence::Ended) => {
                    return Some(self.goodbye(
                        "LoopEnded",
                        "The control loop has stopped; connect to the new leader.".into(),
                    ));
                }
                // It was waited for long enough that this does not turn in circles.
                Err(Silence::Hangs) => self.turns.mark_changed(),
            }
        }
    }

    fn hand_over(&mut self, step: Step) -> Event {
        let id = self.room.id_of(step.number);
        self.handed_over = Some(self.room.clock.now());
        let delta = self.room.delta(&step);
        Event::default()
            .id(id)
            .event(delta.event())
            .json_data(delta)
            .unwrap_or_else(|_| Event::default().comment("change could not be encoded"))
    }

    fn goodbye(&mut self, reason: &str, message: String) -> Event {
        self.is_over = true;
        let goodbye = Goodbye { reason: reason.into(), message };
        Event::default()
            .event(Goodbye::EVENT)
            .json_data(goodbye)
            .unwrap_or_else(|_| Event::default().comment("goodbye"))
    }
}

/// What lies beyond a number.
struct Step {
    /// It is all there is.
    complete: bool,
    /// Services as they stand now.
    services: Vec<ServiceView>,
    /// Services that are gone.
    gone: Vec<ServiceKey>,
    /// What has been seen with this.
    number: u64,
}

impl Step {
    /// Everything beyond a number, or everything.
    fn beyond(seen: Option<u64>, of: Option<&ServiceKey>, engine: &Engine) -> Step {
        let number = engine.change_number();
        let Some(mut changed) = seen.and_then(|seen| engine.changed_since(seen)) else {
            let services = match of {
                Some(key) => engine.view_of(key).into_iter().collect(),
                None => engine.services(),
            };
            return Step { complete: true, services, gone: Vec::new(), number };
        };
        changed.retain(|key| of.is_none_or(|of| of == key));
        changed.sort_unstable();
        changed.dedup();
        let (mut services, mut gone) = (Vec::new(), Vec::new());
        for key in changed {
            match engine.view_of(&key) {
                Some(view) => services.push(view),
                None => gone.push(key),
            }
        }
        Step { complete: false, services, gone, number }
    }

    /// Notes what has been seen with this, and gives it back if there is something to tell. What others
    /// changed is noted too, so that it is not looked through again and again.
    fn taken(self, seen: &mut Option<u64>) -> Option<Step> {
        *seen = Some(self.number);
        (self.complete || !self.services.is_empty() || !self.gone.is_empty()).then_some(self)
    }
}

impl Room {
    fn delta(&self, step: &Step) -> Delta {
        let today = self.parts.almanac.today();
        let mut delta = Delta { at: today.now(), complete: step.complete, ..Delta::default() };
        for seen in &step.services {
            match words::status(&today, seen) {
                Status::Service(service) => delta.services.push(service),
                Status::Egress(egress) => delta.egresses.push(egress),
            }
        }
        delta.removed = step
            .gone
            .iter()
            .map(|key| match key {
                ServiceKey::Inbound(uid) => Removed::Service { uid: uid.to_string() },
                ServiceKey::Outbound(egress) => Removed::Egress { name: egress.to_string() },
            })
            .collect();
        delta
    }

    /// The process by the moment of its start, and the number.
    fn id_of(&self, number: u64) -> String {
        format!("{:x}-{number}", self.process())
    }

    fn number_in(&self, id: &str) -> Option<u64> {
        let (process, number) = id.split_once('-')?;
        (process == format!("{:x}", self.process())).then(|| number.parse().ok())?
    }

    fn process(&self) -> u64 {
        (self.parts.almanac.begun_seconds() * 1_000.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_others_are_not_told_and_not_looked_through_again() {
        let others = |complete| Step { complete, services: Vec::new(), gone: Vec::new(), number: 9 };
        let mut seen = Some(3);
        assert!(others(false).taken(&mut seen).is_none());
        assert_eq!(seen, Some(9));
        let mut seen = None;
        assert!(others(true).taken(&mut seen).is_some(), "that there is nothing is news at first");
        assert_eq!(seen, Some(9));
    }
}
