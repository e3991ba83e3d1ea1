//! One request after the other: who asks, what for, and the answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, HeaderValue, USER_AGENT, WARNING};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio::sync::watch;
use tracing::debug;

use super::answer::{self, Content};
use super::negotiate::{self, Form};
use super::query::Query;
use super::route::{self, Path, Target};
use super::{discovery, listing, openapi, reviews, watching, writing};
use crate::refusal::{Cause, Refusal};
use crate::store::Store;

/// The largest body that is read; that of the real server.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(30);

/// What every request needs.
pub(crate) struct Surface {
    pub(crate) store: Store,
    pub(crate) token: String,
    /// Turns true when the server stops.
    pub(crate) stop: watch::Receiver<bool>,
}

/// A request with its body, understood as far as every verb needs it.
pub(crate) struct Asked<'a> {
    pub(crate) surface: &'a Surface,
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) query: Query,
    pub(crate) form: Form,
    pub(crate) body: Bytes,
}

/// Answers a request.
pub(crate) async fn serve(surface: Arc<Surface>, request: Request<Incoming>) -> Response<Content> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let done = async {
        let understood = route::parse(&path)?;
        if !matches!(understood, Path::Version | Path::Health) {
            surface.admit(&parts.headers)?;
        }
        let asked = Asked {
            surface: &surface,
            method: &parts.method,
            headers: &parts.headers,
            query: Query::parse(parts.uri.query().unwrap_or("")),
            form: negotiate::form(&parts.headers)?,
            body: read(body).await?,
        };
        asked.answer(understood)
    };
    let answer = done.await.unwrap_or_else(|refusal: Refusal| answer::refused(&refusal));
    debug!(method = %parts.method, uri = %parts.uri, status = answer.status().as_u16(), "answered");
    answer
}

impl Surface {
    /// Lets in whoever has the token.
    fn admit(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let said = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or("");
        let token = said.strip_prefix("Bearer ").unwrap_or("").trim();
        if bool::from(token.as_bytes().ct_eq(self.token.as_bytes())) {
            Ok(())
        } else {
            Err(Refusal::new(401, "Unauthorized", "Unauthorized"))
        }
    }
}

impl Asked<'_> {
    fn answer(&self, path: Path) -> Result<Response<Content>, Refusal> {
        let Path::Resource(target) = path else {
            if *self.method != Method::GET && *self.method != Method::HEAD {
                return Err(Refusal::method_not_allowed());
            }
            return match path {
                Path::Health => Ok(answer::text(200, "ok")),
                Path::Version => Ok(answer::json(200, &discovery::version())),
                Path::Root => Ok(answer::json(200, &discovery::root())),
                Path::Core => Ok(discovery::core(&self.form)),
                Path::Groups => Ok(discovery::groups(&self.form)),
                Path::Group(group) => Ok(answer::json(200, &discovery::group(&group))),
                Path::GroupVersion(group, version) => {
                    Ok(answer::json(200, &discovery::resources(&group, &version)))
                }
                Path::OpenApi(document) => openapi::answer(document.as_deref()),
                Path::Resource(_) => Err(Refusal::no_such_resource()),
            };
        };
        self.resource(&target)
    }

    fn resource(&self, target: &Target) -> Result<Response<Content>, Refusal> {
        let allow = |verb: &str| {
            if target.kind.allows(verb) { Ok(()) } else { Err(Refusal::method_not_allowed()) }
        };
        if let Some(sub) = &target.sub {
            return writing::part(self, target, sub);
        }
        match (self.method, &target.name) {
            (&Method::GET | &Method::HEAD, None) if self.query.flag("watch") => {
                allow("watch")?;
                watching::watch(self, target)
            }
            (&Method::GET | &Method::HEAD, None) => {
                allow("list")?;
                listing::list(self, target)
            }
            (&Method::GET | &Method::HEAD, Some(name)) => {
                allow("get")?;
                listing::get(self, target, name)
            }
            (&Method::POST, None) if reviews::is_one(target.kind) => reviews::answer(self, target),
            (&Method::POST, None) => {
                allow("create")?;
                writing::create(self, target)
            }
            (&Method::PUT, Some(name)) => {
                allow("update")?;
                writing::update(self, target, name, None)
            }
            (&Method::PATCH, Some(name)) => {
                allow("patch")?;
                writing::patch(self, target, name, None)
            }
            (&Method::DELETE, Some(name)) => {
                allow("delete")?;
                writing::delete(self, target, name)
            }
            (&Method::DELETE, None) => {
                allow("deletecollection")?;
                writing::delete_collection(self, target)
            }
            _ => Err(Refusal::method_not_allowed()),
        }
    }

    /// A header as text; empty if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// Who writes: what they say, or the first word of their program.
    pub(crate) fn manager(&self) -> String {
        match self.query.text("fieldManager") {
            "" => {
                let agent = self.header(USER_AGENT.as_str());
                let word = agent.split(['/', ' ']).next().unwrap_or("");
                if word.is_empty() { "unknown".to_owned() } else { word.to_owned() }
            }
            said => said.to_owned(),
        }
    }

    /// What the parameters of this request belong to, as the real server calls it.
    pub(crate) fn options(&self) -> &'static str {
        match self.method.as_str() {
            "POST" => "CreateOptions",
            "PUT" => "UpdateOptions",
            "PATCH" => "PatchOptions",
            "DELETE" => "DeleteOptions",
            _ => "ListOptions",
        }
    }

    /// Whether to do everything but the last step.
    pub(crate) fn dry_run(&self) -> Result<bool, Refusal> {
        let mut is_dry = false;
        for value in self.query.all("dryRun") {
            match value {
                "All" => is_dry = true,
                other => {
                    let cause = Cause::unsupported("dryRun", &json!([other]), &["All"]);
                    return Err(Refusal::invalid_options(self.options(), &cause));
                }
            }
        }
        Ok(is_dry)
    }
}

/// Adds warnings, which kubectl shows to people.
pub(crate) fn warned(mut answer: Response<Content>, warnings: &[String]) -> Response<Content> {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            answer.headers_mut().append(WARNING, value);
        }
    }
    answer
}

async fn read(mut body: Incoming) -> Result<Bytes, Refusal> {
    let reading = async {
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Refusal::bad_request("the body of the request broke off"))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > BODY_BYTES_MAX {
                let message = format!("Request entity too large: limit is {BODY_BYTES_MAX}");
                return Err(Refusal::new(413, "RequestEntityTooLarge", message));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.freeze())
    };
    let late = || Refusal::new(504, "Timeout", "the body of the request took too long to arrive");
    tokio::time::timeout(BODY_TIME, reading).await.map_err(|_| late())?
}
