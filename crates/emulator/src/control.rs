//! `/_emulator/`: what Azure does not have. Looks at everything, changes anything, without a token.
//!
//! Whoever reaches the emulator may use it; that is why it listens on loopback. A page in somebody's
//! browser reaches loopback too, so requests that a page has made are refused.

mod state;

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, ORIGIN};
use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::answers;
use crate::faults::Rule;
use crate::request_log::{Entry, summary};
use crate::settings::{show_buckets, show_quota};
use crate::world::{CHANGES, Problem, Shared};

/// Where it all is.
pub(crate) const ROOT: &str = "/_emulator";
/// How many requests are shown unless asked otherwise, and at most.
const REQUESTS_SHOWN: usize = 1_000;
const REQUESTS_SHOWN_MAX: usize = 100_000;
/// How long a call may have been on its way when another was refused.
const GRACE_MS: u64 = 20;

/// What there is: method, path, job.
const INDEX: [(&str, &str, &str); 23] = [
    ("GET", "", "this list"),
    ("GET", "state", "all resources, running operations and settings"),
    ("GET", "requests", "the request log; ?after=N&limit=N&bodies=true&format=ndjson"),
    ("GET", "requests/summary", "calls by kind, 429s, calls before a Retry-After; ?after=N&graceMs=20"),
    ("DELETE", "requests", "delete the request log"),
    ("GET", "faults", "the fault rules, with the number of times that each applied"),
    (
        "POST",
        "faults",
        "add a rule or a list of rules: {\"fault\": \"throttled\", \"retryAfter\": 2, \"times\": 3, \"match\": {\"kind\": \"loadBalancers\", \"call\": \"Put\"}}",
    ),
    ("DELETE", "faults", "delete all rules"),
    ("GET", "faults/{rule}", "one rule"),
    ("DELETE", "faults/{rule}", "delete one rule"),
    (
        "POST",
        "tamper",
        "make a change as another client: {\"do\": \"delete\", \"id\": \"/subscriptions/…\"}; also put, editTags, editRules, detachSubnet, register, unregister, addAddress, removeAddress, lock, unlock, deny, allow, forbid, permit",
    ),
    ("GET", "quota", "the quotas"),
    ("POST", "quota", "change quotas: {\"publicIps\": 5}"),
    ("GET", "buckets", "the rate limits"),
    (
        "POST",
        "buckets",
        "change rate limits: {\"writes\": {\"burst\": 5, \"perSecond\": 1}}; null disables throttling",
    ),
    ("DELETE", "buckets", "disable throttling"),
    ("POST", "slow", "multiply the duration of new operations: {\"factor\": 50}"),
    ("POST", "poison", "reject each update of the gateway with this address: {\"address\": \"10.0.0.4\"}"),
    ("POST", "calm", "end all faults: rules, locks, policies, poison, slowness, endless operations"),
    ("POST", "advance", "advance the emulated clock: {\"seconds\": 60}"),
    ("POST", "tokens/expire", "expire all tokens"),
    ("POST", "reset", "delete all resources, rules and the request log, as after the first start"),
    ("GET", "health", "whether the emulator serves"),
];

/// Answers one request.
pub(crate) fn answer(world: &Shared, request: &Request<Bytes>) -> Response<Bytes> {
    let shown = if is_from_a_page(request) {
        let message = "web pages are not allowed to use the control API".to_owned();
        Err(Problem { status: StatusCode::FORBIDDEN, message })
    } else {
        route(world, request)
    };
    match shown {
        Ok(Shown::Json(value)) => answers::json(StatusCode::OK, &value),
        Ok(Shown::Lines(text)) => {
            let mut answer = Response::new(Bytes::from(text));
            let kind = HeaderValue::from_static("application/x-ndjson");
            answer.headers_mut().insert(CONTENT_TYPE, kind);
            answer
        }
        Err(Problem { status, message }) => {
            let code = status.canonical_reason().unwrap_or("Error").replace(' ', "");
            answers::json(status, &json!({"error": {"code": code, "message": message}}))
        }
    }
}

enum Shown {
    Json(Value),
    Lines(String),
}

fn route(world: &Shared, request: &Request<Bytes>) -> Result<Shown, Problem> {
    let path = request.uri().path().strip_prefix(ROOT).unwrap_or("").trim_matches('/');
    let method = request.method();
    let json = |value: Value| Ok(Shown::Json(value));
    match (method, path) {
        (&Method::GET, "") => json(index()),
        (&Method::GET, "health") => json(json!({"serving": true})),
        (&Method::GET, "state") => {
            let mut world = world.lock();
            let now = world.settle()?;
            json(state::show(world.surface.cloud(), now, world.clock.factor()))
        }
        (&Method::GET, "requests") => requests(world, request),
        (&Method::GET, "requests/summary") => {
            let after = asked(request, "after")?.unwrap_or(0);
            let grace = asked(request, "graceMs")?.unwrap_or(GRACE_MS);
            let world = world.lock();
            json(summary(world.log.after(after), world.log.counts(), grace))
        }
        (&Method::DELETE, "requests") => {
            world.lock().log.clear();
            json(json!({"done": "requests"}))
        }
        (&Method::GET, "faults") => json(world.lock().faults.show()),
        (&Method::POST, "faults") => {
            let given = body(request)?;
            // All of a list or none of it.
            let (rules, is_list) = match given {
                Value::Array(rules) => (rules, true),
                rule => (vec![rule], false),
            };
            let rules: Vec<Rule> =
                rules.into_iter().map(Rule::parse).collect::<Result<_, _>>().map_err(Problem::bad)?;
            let faults = &mut world.lock().faults;
            let mut shown = rules.into_iter().map(|rule| {
                let number = faults.add(rule);
                faults.show_one(number).unwrap_or_default()
            });
            if is_list { json(shown.collect()) } else { json(shown.next().unwrap_or_default()) }
        }
        (&Method::DELETE, "faults") => {
            world.lock().faults.clear();
            json(json!({"done": "faults"}))
        }
        (&Method::GET, "quota") => json(show_quota(world.lock().surface.cloud().quota())),
        (&Method::GET, "buckets") => json(show_buckets(world.lock().surface.cloud().buckets())),
        (&Method::DELETE, "buckets") => json(world.lock().change_now("buckets", &Value::Null)?),
        (&Method::POST, "advance") => {
            let given = body(request)?;
            let seconds = given["seconds"].as_f64().and_then(|it| Duration::try_from_secs_f64(it).ok());
            let seconds =
                seconds.ok_or_else(|| Problem::bad("expected the body {\"seconds\": NUMBER}, 0 or more"))?;
            let now = world.lock().skip(seconds)?;
            json(json!({"emulatedMs": now.as_millis()}))
        }
        (&Method::POST, "reset") => {
            world.lock().reset()?;
            json(json!({"done": "reset"}))
        }
        (&Method::POST, word) if CHANGES.contains(&word) => {
            let given = match word {
                "calm" | "tokens/expire" => Value::Null,
                _ => body(request)?,
            };
            json(world.lock().change_now(word, &given)?)
        }
        (method, path) => match path.strip_prefix("faults/") {
            Some(number) => one_rule(world, method, number).map(Shown::Json),
            None => Err(no_such(method, path)),
        },
    }
}

fn one_rule(world: &Shared, method: &Method, number: &str) -> Result<Value, Problem> {
    let missing =
        || Problem { status: StatusCode::NOT_FOUND, message: format!("fault rule {number} not found") };
    let number: u64 = number.parse().map_err(|_| missing())?;
    let faults = &mut world.lock().faults;
    let shown = faults.show_one(number).ok_or_else(missing)?;
    match *method {
        Method::GET => Ok(shown),
        Method::DELETE => {
            faults.remove(number);
            Ok(shown)
        }
        _ => Err(no_such(method, "faults/{rule}")),
    }
}

fn requests(world: &Shared, request: &Request<Bytes>) -> Result<Shown, Problem> {
    let after = asked(request, "after")?.unwrap_or(0);
    let limit = asked(request, "limit")?.unwrap_or(REQUESTS_SHOWN).min(REQUESTS_SHOWN_MAX);
    let with_bodies = asked(request, "bodies")?.unwrap_or(false);
    let is_lines = match asked::<String>(request, "format")?.as_deref() {
        None | Some("json") => false,
        Some("ndjson") => true,
        Some(other) => {
            return Err(Problem::bad(format!("format {other:?} is not supported; expected json or ndjson")));
        }
    };
    // Entries are copied, so that nobody waits while they are written out.
    let (entries, counts) = {
        let world = world.lock();
        (world.log.after(after).take(limit).cloned().collect::<Vec<Entry>>(), world.log.counts())
    };
    let shown = entries.iter().map(|entry| entry.show(with_bodies));
    if is_lines {
        return Ok(Shown::Lines(shown.map(|entry| format!("{entry}\n")).collect()));
    }
    let next = entries.last().map(|entry| entry.number).filter(|number| *number < counts.0);
    Ok(Shown::Json(json!({
        "requests": shown.collect::<Value>(),
        "next": next.map(|number| format!("{ROOT}/requests?after={number}&limit={limit}")),
        "total": counts.0,
        "dropped": counts.1,
    })))
}

fn index() -> Value {
    json!({
        "what": "the control API of the Sluice emulator",
        "calls": INDEX.iter().map(|(method, path, job)| json!({
            "call": format!("{method} {ROOT}/{path}"),
            "job": job,
        })).collect::<Value>(),
        "faults": crate::faults::words(),
    })
}

fn no_such(method: &Method, path: &str) -> Problem {
    let others: Vec<&str> = INDEX.iter().filter(|(_, it, _)| *it == path).map(|(it, ..)| *it).collect();
    if others.is_empty() {
        let known: Vec<String> = INDEX.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
        let message = format!("{ROOT}/{path} not found; known calls: {}", known.join(", "));
        return Problem { status: StatusCode::NOT_FOUND, message };
    }
    let message = format!("{ROOT}/{path} does not support {method}; use {}", others.join(" or "));
    Problem { status: StatusCode::METHOD_NOT_ALLOWED, message }
}

fn body(request: &Request<Bytes>) -> Result<Value, Problem> {
    serde_json::from_slice(request.body())
        .map_err(|problem| Problem::bad(format!("the body is not valid JSON: {problem}")))
}

/// One parameter of the query.
fn asked<T: std::str::FromStr>(request: &Request<Bytes>, name: &str) -> Result<Option<T>, Problem> {
    let query = request.uri().query().unwrap_or("");
    let given = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name);
    given
        .map(|(_, value)| {
            value
                .parse()
                .map_err(|_| Problem::bad(format!("invalid value {value:?} of the query parameter {name}")))
        })
        .transpose()
}

/// Browsers say so when a page makes a request; what a person types into the address bar is no page's.
fn is_from_a_page(request: &Request<Bytes>) -> bool {
    let site = request.headers().get("sec-fetch-site");
    request.headers().contains_key(ORIGIN) || site.is_some_and(|it| it.as_bytes() != b"none")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../CONTROL.md");

    fn table(name: &str) -> &str {
        let begin = PAGE.find(&format!("<!-- {name} -->")).expect("the page has the table");
        let end = PAGE.find(&format!("<!-- end of {name} -->")).expect("the table ends");
        &PAGE[begin..end]
    }

    /// The words in backquotes of the first column.
    fn first_column(name: &str) -> Vec<&str> {
        let cells = table(name).lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
        cells.flat_map(|cell| cell.trim_end_matches('`').split("`, `")).collect()
    }

    #[test]
    fn the_page_has_every_call_and_no_other() {
        let mut served: Vec<String> =
            INDEX.iter().map(|(method, path, _)| format!("{method} {ROOT}/{path}")).collect();
        let mut told = first_column("calls");
        served.sort();
        told.sort();
        assert_eq!(served, told);
    }

    #[test]
    fn the_page_has_every_fault_and_no_other() {
        let (mut served, mut told) = (crate::faults::words(), first_column("faults"));
        served.sort();
        told.sort();
        assert_eq!(served, told);
    }
}
