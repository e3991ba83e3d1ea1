//! `/api/v1/…`: services, egresses, explanations, the overview and the stream of changes.

use std::sync::Arc;

use axum::extract::{Path, Query as Pairs, State};
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use sluice_engine::Explanation;
use sluice_model::{EgressName, ServiceKey, Uid};
use sluice_view::{EgressStatus, ServiceStatus, Status};

use super::access::{problem, problem_with};
use super::query::Query;
use crate::inbox::Inside;
use crate::journal::Pages;

use super::{Room, Silence, dashboard, events, overview, words};

/// Everything there is to see.
const SEE: &[&str] = &[
    "/api/v1/overview",
    "/api/v1/services?namespace=NAMESPACE&state=STATE&limit=NUMBER",
    "/api/v1/services/NAMESPACE/NAME/explain",
    "/api/v1/egresses?state=STATE&limit=NUMBER",
    "/api/v1/egresses/NAME/explain",
    "/api/v1/events?of=service/UID",
    "/",
];

/// The namespace of those whose object is gone.
const NO_NAMESPACE: &str = "-";

pub(super) fn router(room: Arc<Room>) -> Router {
    Router::new()
        .route("/api/v1/overview", get(overview))
        .route("/api/v1/services", get(services))
        .route("/api/v1/services/{namespace}/{name}/explain", get(explain_service))
        .route("/api/v1/egresses", get(egresses))
        .route("/api/v1/egresses/{name}/explain", get(explain_egress))
        .route("/api/v1/events", get(events::stream))
        .fallback(nothing_here)
        .method_not_allowed_fallback(read_only)
        .with_state(room)
}

async fn nothing_here(uri: Uri, headers: HeaderMap) -> Response {
    let path: String = uri.path().chars().take(200).collect();
    let is_browser = headers.get(ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(b"text/html"));
    if is_browser && !path.starts_with("/api/") {
        return dashboard::nothing_here(&path);
    }
    problem_with(StatusCode::NOT_FOUND, "NotFound", &format!("No endpoint at {path}."), SEE)
}

async fn read_only(method: Method) -> Response {
    let message = format!("{method} is not allowed: this API is read-only. Make changes through Kubernetes.");
    problem_with(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", &message, SEE)
}

async fn overview(State(room): State<Arc<Room>>) -> Result<Response, Silence> {
    Ok(Json(overview::overview(&room).await?).into_response())
}

async fn services(
    State(room): State<Arc<Room>>,
    Pairs(pairs): Pairs<Vec<(String, String)>>,
) -> Result<Response, Silence> {
    let query = match Query::read(&pairs, &["namespace", "state", "limit", "continue"]) {
        Ok(query) => query,
        Err(why) => return Ok(problem(StatusCode::BAD_REQUEST, "BadParameter", &why)),
    };
    let all = room.ask(|engine, _, _| engine.services()).await?;
    let today = room.parts.almanac.today();
    let asked_for = all.iter().filter_map(|seen| match words::status(&today, seen) {
        Status::Service(service) => Some(service),
        Status::Egress(_) => None,
    });
    let asked_for = asked_for
        .filter(|it| query.wants(it.progress.state))
        .filter(|it| query.namespace.is_none() || it.namespace == query.namespace);
    // The UID, since a Service may be deleted and made anew under the same name before the old one is gone.
    let place = |it: &ServiceStatus| format!("{}/{}", it.title(), it.uid);
    Ok(Json(query.page(&today, asked_for.collect(), place)).into_response())
}

async fn egresses(
    State(room): State<Arc<Room>>,
    Pairs(pairs): Pairs<Vec<(String, String)>>,
) -> Result<Response, Silence> {
    let query = match Query::read(&pairs, &["state", "limit", "continue"]) {
        Ok(query) => query,
        Err(why) => return Ok(problem(StatusCode::BAD_REQUEST, "BadParameter", &why)),
    };
    let all = room.ask(|engine, _, _| engine.services()).await?;
    let today = room.parts.almanac.today();
    let asked_for = all.iter().filter_map(|seen| match words::status(&today, seen) {
        Status::Egress(egress) => Some(egress),
        Status::Service(_) => None,
    });
    let asked_for = asked_for.filter(|it| query.wants(it.progress.state));
    Ok(Json(query.page(&today, asked_for.collect(), |it: &EgressStatus| it.name.clone())).into_response())
}

async fn explain_service(
    State(room): State<Arc<Room>>,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Response, Silence> {
    let asked_for = format!("service/{namespace}/{name}");
    Ok(explained(&room, &asked_for, find_service(&room, namespace, name).await?))
}

/// What the loop knows of one service.
pub(super) struct Found {
    pub(super) explanation: Explanation,
    pub(super) pages: Pages,
}

impl Found {
    fn of(inside: &Inside<'_>, key: &ServiceKey) -> Option<Found> {
        Some(Found { explanation: inside.engine.explain(key)?, pages: inside.journal.of(key) })
    }
}

/// The service of a name, or of a UID if its object is gone.
pub(super) async fn find_service(
    room: &Room,
    namespace: String,
    name: String,
) -> Result<Option<Found>, Silence> {
    let uid = Uid::parse(&name).ok().filter(|_| namespace == NO_NAMESPACE);
    let found = room.inquire(move |inside| -> Option<Found> {
        if let Some(uid) = uid {
            return Found::of(inside, &ServiceKey::Inbound(uid));
        }
        let all = inside.engine.services();
        let named = all.iter().filter(|seen| {
            seen.object.as_ref().is_some_and(|it| *it.namespace == *namespace && *it.name == *name)
        });
        // Of two of the same name one is on its way out; people ask for the other.
        Found::of(inside, &named.max_by_key(|seen| seen.wanted)?.key)
    });
    found.await
}

async fn explain_egress(
    State(room): State<Arc<Room>>,
    Path(name): Path<String>,
) -> Result<Response, Silence> {
    let egress = match egress_named(&name) {
        Ok(egress) => egress,
        Err(message) => return Ok(problem(StatusCode::BAD_REQUEST, "BadName", &message)),
    };
    Ok(explained(&room, &format!("egress/{name}"), find_egress(&room, egress).await?))
}

/// The egress that a name in a URL means; the error is a sentence.
pub(super) fn egress_named(name: &str) -> Result<EgressName, String> {
    if name.eq_ignore_ascii_case(EgressName::DEFAULT) {
        return Ok(EgressName::default_outbound());
    }
    EgressName::parse(name).map_err(|bad| format!("Invalid egress name: {bad}."))
}

pub(super) async fn find_egress(room: &Room, egress: EgressName) -> Result<Option<Found>, Silence> {
    room.inquire(move |inside| Found::of(inside, &ServiceKey::Outbound(egress))).await
}

/// What is said of something that is not there.
pub(super) fn unknown(asked_for: &str) -> String {
    let check = match asked_for.starts_with("egress/") {
        true => "Check that a pod carries the label of this egress.",
        false => {
            "Check that the Service exists, has type LoadBalancer and the load balancer class that Sluice serves."
        }
    };
    format!("{asked_for} not found, or not managed by Sluice. {check}")
}

fn explained(room: &Room, asked_for: &str, found: Option<Found>) -> Response {
    let Some(found) = found else {
        return problem_with(StatusCode::NOT_FOUND, "NotFound", &unknown(asked_for), SEE);
    };
    let today = room.parts.almanac.today();
    Json(words::explanation(&today, &found, room.leads(), &(room.parts.watches)())).into_response()
}
