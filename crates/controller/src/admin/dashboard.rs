//! `/`: the dashboard's pages, written by `sluice-dashboard` from the same views as `/api/v1/…`.
//!
//! A page is written when it is asked for. The part that pages ask for again and again is kept for a
//! moment, so that many who look cost the loop as much as one. Assets have the hash of their content
//! in their name and are kept by browsers for ever; everything else is asked for with its tag.
//!
//! The charts need a past: [`Admin::keep_history`](super::Admin::keep_history) takes a sample every
//! few seconds, and that is all that the loop is asked when nobody looks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query as Pairs, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH,
    REFERRER_POLICY,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sluice_dashboard::{Asset, Detail, Filter, Front, History, POLICY, Sample, assets};
use sluice_engine::Engine;
use sluice_model::Time;
use sluice_view::{EgressStatus, Overview, ServiceStatus, Status};

use super::{ANSWER_LIMIT, Room, Silence, api, overview, words};
use crate::clock::Clock as _;
use crate::metrics::Facts;

/// How long a look serves all who ask, although something has happened since.
const STALE_MAX: Duration = Duration::from_secs(1);

/// How long it serves them when nothing has: ages go on.
const QUIET_MAX: Duration = Duration::from_secs(4);

/// A year, as long as anybody keeps anything.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// What the pages need beside the loop.
#[derive(Default)]
pub(super) struct Memory {
    history: Mutex<History>,
    /// Whoever asks the loop holds this meanwhile, so that all others wait for that one answer.
    look: tokio::sync::Mutex<Option<Arc<Look>>>,
}

/// How everything stood at one moment.
struct Look {
    at: Time,
    /// The loop's turn.
    turn: u64,
    overview: Overview,
    services: Vec<ServiceStatus>,
    egresses: Vec<EgressStatus>,
}

pub(super) fn router(room: Arc<Room>) -> Router {
    Router::new()
        .route("/", get(front))
        .route("/fragments/summary", get(summary))
        .route("/services/{namespace}/{name}", get(service))
        .route("/egresses/{name}", get(egress))
        .route("/assets/{name}", get(asset))
        .with_state(room)
}

async fn front(
    State(room): State<Arc<Room>>,
    Pairs(pairs): Pairs<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Response {
    let filter = Filter::read(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    match room.look(Duration::ZERO).await {
        Ok(look) => shown(&headers, room.written(&look, &filter, sluice_dashboard::page)),
        Err(silence) => silent(silence),
    }
}

async fn summary(State(room): State<Arc<Room>>, headers: HeaderMap) -> Response {
    match room.look(STALE_MAX).await {
        Ok(look) => shown(&headers, room.written(&look, &Filter::default(), sluice_dashboard::summary)),
        Err(silence) => silent(silence),
    }
}

async fn service(
    State(room): State<Arc<Room>>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let asked_for = format!("service/{namespace}/{name}");
    let found = api::find_service(&room, namespace, name).await;
    detail(&room, &headers, &asked_for, found).await
}

async fn egress(State(room): State<Arc<Room>>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    let asked_for = format!("egress/{name}");
    let found = match api::egress_named(&name) {
        Ok(egress) => api::find_egress(&room, egress).await,
        Err(_) => Ok(None),
    };
    detail(&room, &headers, &asked_for, found).await
}

async fn detail(
    room: &Room,
    headers: &HeaderMap,
    asked_for: &str,
    found: Result<Option<api::Found>, Silence>,
) -> Response {
    let (found, overview) = match (found, overview::overview(room).await) {
        (Ok(found), Ok(overview)) => (found, overview),
        (Err(silence), _) | (_, Err(silence)) => return silent(silence),
    };
    let Some(found) = found else {
        let page = sluice_dashboard::message("Not found", &api::unknown(asked_for), &["/"]);
        return (StatusCode::NOT_FOUND, shown(headers, page)).into_response();
    };
    let explanation =
        words::explanation(&room.parts.almanac.today(), &found, room.leads(), &overview.watches);
    shown(headers, sluice_dashboard::detail(&Detail { overview: &overview, explanation: &explanation }))
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = Asset::named(&name) else {
        // A page of another version names it; whoever asks for that page again gets the names of this one.
        let page = sluice_dashboard::message("Not found", "This version has no such file.", &["/"]);
        return (StatusCode::NOT_FOUND, shown(&headers, page)).into_response();
    };
    tagged(&headers, asset.content_type, FOR_EVER, &asset.etag(), asset.body.into())
}

/// A page for browsers when there is nothing at a path.
pub(super) fn nothing_here(path: &str) -> Response {
    let page = sluice_dashboard::message("Not found", &format!("No page at {path}."), &["/"]);
    (StatusCode::NOT_FOUND, shown(&HeaderMap::new(), page)).into_response()
}

fn silent(silence: Silence) -> Response {
    let text = format!("No answer: {}. Check the controller log, then reload this page.", silence.words());
    let page = sluice_dashboard::message("No answer", &text, &[]);
    (StatusCode::SERVICE_UNAVAILABLE, shown(&HeaderMap::new(), page)).into_response()
}

fn shown(headers: &HeaderMap, page: String) -> Response {
    let tag = format!("\"{:016x}\"", assets::hash(page.as_bytes()));
    tagged(headers, "text/html; charset=utf-8", "private, no-cache", &tag, page)
}

/// An answer with its tag; without its body if whoever asks has that already.
fn tagged(
    asked: &HeaderMap,
    content_type: &'static str,
    keep: &'static str,
    tag: &str,
    body: String,
) -> Response {
    let known = asked.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let is_known =
        known.is_some_and(|known| known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag));
    let mut answer = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => body.into_response(),
    };
    let headers = answer.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, keep),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    answer
}

impl Room {
    fn written(&self, look: &Look, filter: &Filter, write: impl FnOnce(&Front<'_>) -> String) -> String {
        // A copy, since writing a long page takes a while, and others write theirs.
        let history = self.memory.history.lock().unwrap_or_else(PoisonError::into_inner).clone();
        write(&Front {
            overview: &look.overview,
            services: &look.services,
            egresses: &look.egresses,
            history: &history,
            filter,
        })
    }

    /// How everything stands, or stood so long ago at most if something has happened since.
    async fn look(&self, stale_max: Duration) -> Result<Arc<Look>, Silence> {
        let asked = self.clock.now();
        let mut kept = tokio::select! {
            // Who has waited so long does not begin to ask a loop that hangs.
            biased;
            () = self.clock.sleep_until(asked + ANSWER_LIMIT) => return Err(Silence::Hangs),
            kept = self.memory.look.lock() => kept,
        };
        let (now, turn) = (self.clock.now(), *self.parts.handle.turns().borrow());
        if let Some(look) = &*kept {
            let is_fresh = now < look.at + if look.turn == turn { QUIET_MAX } else { stale_max };
            // What was asked for after us is as good as what we would ask for.
            if look.at > asked || (!stale_max.is_zero() && is_fresh) {
                return Ok(Arc::clone(look));
            }
        }
        let (overview, all) = overview::overview_and(self, Engine::services).await?;
        let today = self.parts.almanac.today();
        let (mut services, mut egresses) = (Vec::new(), Vec::new());
        for seen in &all {
            match words::status(&today, seen) {
                Status::Service(service) => services.push(service),
                Status::Egress(egress) => egresses.push(egress),
            }
        }
        let look = Arc::new(Look { at: now, turn, overview, services, egresses });
        *kept = Some(Arc::clone(&look));
        Ok(look)
    }

    /// Takes samples for ever.
    pub(super) async fn keep_history(&self) {
        loop {
            // A loop that does not answer leaves a gap, and is told of elsewhere.
            if let Ok(facts) = Facts::gather(self).await {
                let sample = sample(self.clock.now(), &facts);
                self.memory.history.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
            }
            self.clock.sleep_until(self.clock.now() + History::PACE).await;
        }
    }
}

fn sample(now: Time, facts: &Facts) -> Sample {
    let Facts { numbers, counters, gauges, window_limits, .. } = facts;
    let used = |calls: u32, limit: u32| if limit == 0 { 0.0 } else { f64::from(calls) / f64::from(limit) };
    let gates = [
        &numbers.reads_gate,
        &numbers.service_writes_gate,
        &numbers.location_writes_gate,
        &numbers.deletes_gate,
    ];
    Sample {
        at: now.since(Time::ZERO),
        reads: numbers.gets + numbers.lists + numbers.polls,
        writes: numbers.puts
            + numbers.tag_patches
            + numbers.deletes
            + numbers.service_commits
            + numbers.location_syncs,
        reads_used: used(numbers.reads_in_window, window_limits.reads),
        writes_used: used(numbers.writes_in_window, window_limits.writes),
        buffered: gauges.buffered_endpoints + gauges.buffered_pods,
        promoted: counters.pod_promotions + counters.endpoint_buffer.count,
        syncs: counters.syncs.count,
        syncs_ms: counters.syncs.sum_ms,
        confirmed: counters.addresses_programmed.count,
        confirmed_ms: counters.addresses_programmed.sum_ms,
        queued: gates.iter().map(|gate| gate.queued as u64).sum(),
        waiting: facts.slots_waiting,
        working: facts.slots_working,
    }
}
