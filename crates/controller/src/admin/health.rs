//! `/livez`, `/readyz` and `/metrics`, for probes and Prometheus.
//!
//! Alive: the loop turns. Ready: it turns, the watches have brought complete lists, and this replica
//! leads or stands by. The initial sync is shown and not asked for, or a rolling update of two
//! replicas would wait for itself.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query as Pairs, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sluice_engine::{Phase, StartUp};
use sluice_model::reason::Reason;
use sluice_view::overview::{Role, WatchLine};

use super::{Room, Silence};
use crate::metrics;
use crate::standing::Standing;

/// What OpenMetrics text is called.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn router(room: Arc<Room>) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape))
        .fallback(nothing_here)
        .method_not_allowed_fallback(read_only)
        .with_state(room)
}

async fn nothing_here() -> Response {
    plain(StatusCode::NOT_FOUND, "not found; available: /livez, /readyz, /readyz?verbose, /metrics\n".into())
}

async fn read_only() -> Response {
    plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed; use GET\n".into())
}

fn plain(status: StatusCode, text: String) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, "no-store")], text).into_response()
}

async fn livez(State(room): State<Arc<Room>>) -> Response {
    match room.ask(|_, _, tally| tally.turns).await {
        Ok(_) => plain(StatusCode::OK, "ok\n".into()),
        Err(silence) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", silence.words())),
    }
}

async fn readyz(State(room): State<Arc<Room>>, Pairs(pairs): Pairs<Vec<(String, String)>>) -> Response {
    let verbose =
        pairs.iter().any(|(name, value)| name == "verbose" && !matches!(value.as_str(), "0" | "false"));
    let asked =
        room.ask(|engine, _, _| Asked { start_up: engine.start_up(), azure: engine.listing_trouble() }).await;
    let lines = lines(&asked, &(room.parts.watches)(), &room.standing());
    let ready = lines.iter().all(|line| line.mark != Mark::Bad);
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut text = String::new();
    for line in lines {
        // Who probes without asking for more learns only what is wrong.
        if verbose || line.mark == Mark::Bad {
            text.push_str(&format!("{} {}\n", line.mark.sign(), line.text));
        }
    }
    text.push_str(if ready { "ready\n" } else { "not ready\n" });
    plain(status, text)
}

/// What the loop says.
struct Asked {
    start_up: StartUp,
    /// Why the state of Azure is not known any more.
    azure: Option<(Reason, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    Good,
    Bad,
    /// Worth knowing, and no reason not to be ready.
    Note,
}

impl Mark {
    const fn sign(self) -> &'static str {
        match self {
            Mark::Good => "[+]",
            Mark::Bad => "[-]",
            Mark::Note => "[ ]",
        }
    }

    const fn when(good: bool) -> Mark {
        if good { Mark::Good } else { Mark::Bad }
    }
}

struct Line {
    mark: Mark,
    text: String,
}

fn lines(asked: &Result<Asked, Silence>, watches: &[WatchLine], standing: &Standing) -> Vec<Line> {
    let mut lines = vec![match asked {
        Ok(_) => Line { mark: Mark::Good, text: "loop: running".into() },
        Err(silence) => Line { mark: Mark::Bad, text: format!("loop: {}", silence.words()) },
    }];
    if watches.is_empty() {
        lines.push(Line { mark: Mark::Bad, text: "watches: not started".into() });
    }
    for watch in watches {
        let state = match watch.listed {
            true => format!("listed, {}", counted(watch.objects, "object")),
            false => "not listed yet".into(),
        };
        let trouble = watch.trouble.as_ref().map(|it| format!("; {it}")).unwrap_or_default();
        // A watch that fails after its list is no reason to send the pod away, and not good either.
        let mark =
            if watch.listed && watch.trouble.is_some() { Mark::Note } else { Mark::when(watch.listed) };
        lines.push(Line { mark, text: format!("watch {}: {state}{trouble}", watch.kind) });
    }
    let who = match &standing.leader {
        Some(leader) => format!("; the leader is {leader}"),
        None => "; no leader is known".into(),
    };
    lines.push(match standing.role {
        Role::Leader => Line { mark: Mark::Good, text: "role: leader".into() },
        Role::Standby => Line { mark: Mark::Good, text: format!("role: standby{who}") },
        Role::Candidate | Role::Unknown => {
            Line { mark: Mark::Bad, text: "role: unknown; the Lease has not been read yet".into() }
        }
    });
    let (Role::Leader, Ok(Asked { start_up, azure })) = (standing.role, asked) else {
        lines.push(Line {
            mark: Mark::Note,
            text: "initial sync: starts when this replica becomes leader".into(),
        });
        return lines;
    };
    let is_done = start_up.phase == Phase::Done;
    lines.push(Line {
        mark: if is_done { Mark::Good } else { Mark::Note },
        text: format!("initial sync: {}", progress(start_up)),
    });
    // The initial sync stays done, whatever fails later.
    if let Some(trouble) = start_up.gateway_trouble.as_ref().filter(|_| is_done) {
        lines.push(Line { mark: Mark::Note, text: format!("gateway: unavailable: {trouble}") });
    }
    if let Some((_, trouble)) = azure {
        lines.push(Line { mark: Mark::Note, text: format!("azure: {trouble}") });
    }
    lines
}

/// How far the start has come, in words.
fn progress(start: &StartUp) -> String {
    let StartUp { left, gateway_trouble, .. } = start;
    match start.phase {
        Phase::Standby => "starting; leadership was just acquired".into(),
        Phase::ReadingKubernetes => "listing Kubernetes".into(),
        Phase::ReadingAzure => "listing Azure".into(),
        Phase::Gateway => match gateway_trouble {
            Some(trouble) => format!("gateway unavailable: {trouble}"),
            None => "preparing the gateway".into(),
        },
        Phase::InitialSync => format!("in progress, {} left", counted(*left as u64, "gateway service")),
        Phase::Done => "done".into(),
    }
}

/// A number and its noun: `1 object`, `2 objects`.
fn counted(many: u64, noun: &str) -> String {
    format!("{many} {noun}{}", if many == 1 { "" } else { "s" })
}

async fn scrape(State(room): State<Arc<Room>>) -> Response {
    match metrics::scrape(&room).await {
        Ok(text) => (StatusCode::OK, [(CONTENT_TYPE, OPEN_METRICS), (CACHE_CONTROL, "no-store")], text)
            .into_response(),
        Err(silence) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", silence.words())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(kind: &str, listed: bool) -> WatchLine {
        WatchLine { kind: kind.into(), listed, objects: 3, ..WatchLine::default() }
    }

    fn at(phase: Phase) -> Result<Asked, Silence> {
        let start_up = StartUp {
            phase,
            kubernetes_listed: [true; 4],
            azure_listed: [true; 6],
            gateway_trouble: None,
            found: None,
            left: 7,
        };
        Ok(Asked { start_up, azure: None })
    }

    fn is_ready(asked: Result<Asked, Silence>, watches: &[WatchLine], role: Role) -> bool {
        let standing = Standing { role, leader: None };
        lines(&asked, watches, &standing).iter().all(|line| line.mark != Mark::Bad)
    }

    #[test]
    fn ready_is_watches_synced_and_leader_or_standby_whatever_the_initial_sync_says() {
        let (all, some) = ([listed("pods", true)], [listed("pods", true), listed("nodes", false)]);
        for role in [Role::Leader, Role::Standby] {
            for phase in Phase::ALL {
                assert!(is_ready(at(phase), &all, role), "{phase:?}");
            }
            assert!(!is_ready(at(Phase::Done), &some, role));
            assert!(!is_ready(at(Phase::Done), &[], role), "no watch at all is no watch that has listed");
            assert!(!is_ready(Err(Silence::Hangs), &all, role));
            assert!(!is_ready(Err(Silence::Ended), &all, role));
        }
        assert!(!is_ready(at(Phase::Done), &all, Role::Candidate));
    }

    #[test]
    fn what_troubles_a_watch_stands_in_its_line() {
        let watch = WatchLine { trouble: Some("services is forbidden".into()), ..listed("services", false) };
        let lines = lines(&at(Phase::Done), &[watch], &Standing::default());
        assert_eq!(lines[1].text, "watch services: not listed yet; services is forbidden");
        assert_eq!(lines[1].mark, Mark::Bad);
    }

    #[test]
    fn a_watch_that_fails_after_its_list_is_not_marked_as_good_and_stays_ready() {
        let watch = WatchLine { trouble: Some("connection refused".into()), ..listed("pods", true) };
        let lines = lines(&at(Phase::Done), std::slice::from_ref(&watch), &Standing::default());
        assert_eq!(lines[1].text, "watch pods: listed, 3 objects; connection refused");
        assert_eq!(lines[1].mark, Mark::Note);
        assert!(is_ready(at(Phase::Done), &[watch], Role::Leader));
    }

    #[test]
    fn trouble_with_azure_after_the_initial_sync_has_its_lines() {
        let standing = Standing { role: Role::Leader, leader: None };
        let said = |asked: &Asked| -> Vec<String> {
            let lines = lines(
                &Ok(Asked { start_up: asked.start_up.clone(), azure: asked.azure.clone() }),
                &[],
                &standing,
            );
            lines.into_iter().skip(3).map(|line| format!("{} {}", line.mark.sign(), line.text)).collect()
        };
        let mut asked = at(Phase::Done).unwrap_or_else(|_| unreachable!());
        assert_eq!(said(&asked), ["[+] initial sync: done"]);
        asked.start_up.gateway_trouble = Some("the subnet is missing".into());
        asked.azure = Some((Reason::AzureUnavailable, "Azure's gateway cannot be listed".into()));
        assert_eq!(
            said(&asked),
            [
                "[+] initial sync: done",
                "[ ] gateway: unavailable: the subnet is missing",
                "[ ] azure: Azure's gateway cannot be listed"
            ]
        );
        asked.start_up.phase = Phase::Gateway;
        asked.azure = None;
        assert_eq!(said(&asked), ["[ ] initial sync: gateway unavailable: the subnet is missing"]);
    }
}
