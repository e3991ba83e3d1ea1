//! An HTTP answer as a reply.
//!
//! The status decides who is asked first. With 2xx the body must be what the method promises;
//! otherwise it is searched for an error, and one is made up if there is none.
//!
//! ```text
//! Get, List       the resource or the page          nothing else will do
//! Put, PatchTags  the resource                      with 202, or with an operation, nothing is fine
//! Delete, POST    nothing, or how it stands         an error in the body decides, whatever the status
//! Poll            how it stands                     or, behind a `Location`, nothing, or the resource
//! ```

use alloc::format;
use alloc::string::String;

use serde_json::Value;
use sluice_model::azure::{ArmId, ETag, Gateway, LoadBalancer, NatGateway, PublicIp, Subnet};
use sluice_model::call::{Answer, ArmError, Method, OperationState, Payload, Reply, Request};

use crate::bodies::container::ContainerOutline;
use crate::bodies::gateway::GatewayOutline;
use crate::bodies::load_balancer::LoadBalancerOutline;
use crate::bodies::locations::LocationOutline;
use crate::bodies::nat_gateway::NatGatewayOutline;
use crate::bodies::public_ip::PublicIpOutline;
use crate::bodies::services::RegistrationOutline;
use crate::bodies::subnet::SubnetOutline;
use crate::bodies::{self, Misread, Outline};
use crate::headers::Headers;
use crate::place::{Kind, Place, place};
use crate::request::verb;
use crate::{Dialect, HttpAnswer, error, excerpt, url};

/// Longer bodies are neither errors nor states of operations.
const SMALL_BODY_MAX: usize = 4 << 20;

pub(crate) fn read(dialect: &Dialect, request: &Request, answer: HttpAnswer<'_>) -> Reply {
    let headers = Headers(answer.headers);
    let incoming = Incoming {
        status: answer.status,
        headers,
        body: trimmed(answer.body),
        bytes: answer.body.len(),
        operation: headers.operation(&dialect.endpoint, request.method, answer.status),
    };
    let payload = match answer.status {
        200..=299 => incoming.accepted(request),
        status if status < 200 => Err(Misread::Malformed(String::from("not a final HTTP status"))),
        _ => Ok(incoming.refused(request)),
    };
    match payload {
        Ok(payload) => Reply::Answered(Answer {
            status: answer.status,
            payload,
            operation: incoming.operation,
            retry_after: headers.retry_after(answer.unix_time),
            remaining: headers.remaining(request.method.bucket()),
        }),
        Err(misread) => Reply::Lost(lost(dialect, request, &incoming, &misread).into()),
    }
}

/// What is said about an answer that nobody understands.
fn lost(dialect: &Dialect, request: &Request, incoming: &Incoming<'_>, misread: &Misread) -> String {
    let (Misread::Another(why) | Misread::Malformed(why)) = misread;
    let doubt = match request.method {
        Method::Get | Method::List | Method::Poll => "",
        _ => "; the change may or may not have been made",
    };
    format!(
        "{} answered {} to {} {} with an unexpected body: {why}{doubt}; {}",
        url::host(&dialect.endpoint),
        incoming.status,
        verb(request.method),
        url::without_query(request.target.as_str()),
        excerpt::describe(incoming.headers, incoming.body),
    )
}

/// White space is nothing, and so is `null`.
fn trimmed(body: &[u8]) -> &[u8] {
    if matches!(body.trim_ascii(), b"" | b"null") { &[] } else { body }
}

/// The parts of an answer that the payload is made of.
struct Incoming<'a> {
    status: u16,
    headers: Headers<'a>,
    /// The body, empty if there is nothing in it.
    body: &'a [u8],
    /// How long it was.
    bytes: usize,
    /// Where the operation behind it can be followed.
    operation: Option<ArmId>,
}

impl Incoming<'_> {
    fn accepted(&self, request: &Request) -> Result<Payload, Misread> {
        self.must_be_whole()?;
        match request.method {
            Method::Get => self.resource(request),
            Method::List => self.or_error(self.page(request)),
            Method::Put | Method::PatchTags if self.body.is_empty() => match self.status {
                200 | 201 if self.operation.is_none() => Err(nothing("the resource")),
                _ => Ok(Payload::None),
            },
            Method::Put | Method::PatchTags => match self.resource(request) {
                Err(Misread::Another(_)) if self.status == 202 => Ok(Payload::None),
                payload => payload,
            },
            Method::Delete | Method::UpdateServices | Method::UpdateLocations => self.done(),
            Method::Poll => self.progress(request),
        }
    }

    /// A body that never came looks like one that was never meant, but its length was promised.
    fn must_be_whole(&self) -> Result<(), Misread> {
        match self.headers.first("Content-Length") {
            Some(promised) if self.bytes == 0 && promised.bytes().any(|b| b != b'0') => {
                Err(Misread::Malformed(format!("Content-Length is {promised}, but no body arrived")))
            }
            _ => Ok(()),
        }
    }

    /// The resource that was read or written.
    fn resource(&self, request: &Request) -> Result<Payload, Misread> {
        if self.body.is_empty() {
            return Err(nothing("the resource"));
        }
        let Some(Place::One(kind)) = place(&request.target) else {
            return Err(Misread::Malformed(String::from("the target is not a known resource type")));
        };
        self.or_error(self.one(kind, Some(&request.target))).map_err(|misread| match misread {
            Misread::Another(why) => Misread::Another(format!("not {}: {why}", kind.words())),
            misread => misread,
        })
    }

    fn one(&self, kind: Kind, target: Option<&ArmId>) -> Result<Payload, Misread> {
        let body = self.body;
        Ok(match kind {
            Kind::Group | Kind::VirtualNetwork => {
                Payload::Container(self.named::<ContainerOutline>(body, target)?)
            }
            Kind::Subnet => Payload::Subnet(self.named::<SubnetOutline<'_>>(body, target)?),
            Kind::PublicIp => Payload::PublicIp(self.named::<PublicIpOutline>(body, target)?),
            Kind::LoadBalancer => Payload::LoadBalancer(self.named::<LoadBalancerOutline>(body, target)?),
            Kind::NatGateway => Payload::NatGateway(self.named::<NatGatewayOutline>(body, target)?),
            Kind::Gateway => Payload::Gateway(self.named::<GatewayOutline<'_>>(body, target)?),
        })
    }

    /// One resource, and the one that was asked for.
    fn named<'b, O: Outline<'b>>(&self, body: &'b [u8], target: Option<&ArmId>) -> Result<O::Model, Misread>
    where
        O::Model: Named,
    {
        let mut found = bodies::one::<O>(body)?;
        if let Some(target) = target.filter(|target| *target != found.id()) {
            let (found, target) = (found.id(), target);
            return Err(Misread::Malformed(format!("it describes {found} instead of {target}")));
        }
        if let (Some(etag), Some(header)) = (found.etag_mut(), self.headers.first("ETag"))
            && etag.0.is_empty()
        {
            *etag = ETag(header.into());
        }
        Ok(found)
    }

    fn page(&self, request: &Request) -> Result<Payload, Misread> {
        let body = self.body;
        if body.is_empty() {
            return Err(nothing("a list"));
        }
        Ok(match place(&request.target) {
            Some(Place::All(Kind::PublicIp)) => Payload::PublicIps(bodies::page::<PublicIpOutline>(body)?),
            Some(Place::All(Kind::LoadBalancer)) => {
                Payload::LoadBalancers(bodies::page::<LoadBalancerOutline>(body)?)
            }
            Some(Place::All(Kind::NatGateway)) => {
                Payload::NatGateways(bodies::page::<NatGatewayOutline>(body)?)
            }
            Some(Place::All(Kind::Gateway)) => Payload::Gateways(bodies::page::<GatewayOutline<'_>>(body)?),
            Some(Place::All(Kind::VirtualNetwork)) => {
                Payload::Networks(bodies::page::<ContainerOutline>(body)?)
            }
            Some(Place::All(Kind::Subnet)) => Payload::Subnets(bodies::page::<SubnetOutline<'_>>(body)?),
            Some(Place::Services) => Payload::Registrations(bodies::page::<RegistrationOutline>(body)?),
            Some(Place::Locations) => Payload::Locations(bodies::page::<LocationOutline>(body)?),
            _ => return Err(Misread::Malformed(String::from("the target is not a known list"))),
        })
    }

    /// What is not the thing that was asked for may be an error with a friendly status.
    fn or_error(&self, payload: Result<Payload, Misread>) -> Result<Payload, Misread> {
        match payload {
            Err(Misread::Another(why)) => {
                match self.value().ok().and_then(|value| error::in_body(self.status, &value)) {
                    Some(error) => Ok(Payload::Error(error)),
                    None => Err(Misread::Another(why)),
                }
            }
            payload => payload,
        }
    }

    /// The answer to something that was to be done: how it stands, an error, or nothing.
    fn done(&self) -> Result<Payload, Misread> {
        if self.body.is_empty() {
            return Ok(Payload::None);
        }
        let value = self.value()?;
        Ok(match (word(&value), error::in_body(self.status, &value)) {
            (Some(Word::Failed), error) => failed(error),
            (Some(Word::Canceled), error) => canceled(error),
            (_, Some(error)) => Payload::Error(error),
            (Some(Word::Succeeded), None) => Payload::Operation(OperationState::Succeeded),
            (Some(Word::Other), None) => Payload::Operation(OperationState::Running),
            (None, None) => Payload::None,
        })
    }

    /// The answer to a poll.
    fn progress(&self, request: &Request) -> Result<Payload, Misread> {
        let shows_status = shows_status(&request.target);
        if self.body.is_empty() {
            return match self.status {
                200 if shows_status => Err(nothing("an operation status")),
                _ => Ok(Payload::None),
            };
        }
        let value = self.value()?;
        let Some(document) = value.as_object() else {
            return Err(Misread::Malformed(String::from("expected an operation object")));
        };
        match (word(&value), error::in_body(self.status, &value)) {
            (Some(Word::Failed), error) => return Ok(failed(error)),
            (Some(Word::Canceled), error) => return Ok(canceled(error)),
            // It cannot have succeeded with an error.
            (Some(Word::Succeeded), Some(error)) => return Ok(failed(Some(error))),
            (Some(Word::Succeeded), None) => return Ok(Payload::Operation(OperationState::Succeeded)),
            (Some(Word::Other), _) => return Ok(Payload::Operation(OperationState::Running)),
            (None, Some(error)) => return Ok(Payload::Error(error)),
            (None, None) => {}
        }
        let id = error::field(document, "id").and_then(Value::as_str).map(ArmId::new);
        if let Some(Place::One(kind)) = id.as_ref().and_then(place) {
            return self.one(kind, None);
        }
        // Where a status is shown, none means not yet; elsewhere any result is one.
        if self.status == 202 || shows_status {
            return Ok(Payload::Operation(OperationState::Running));
        }
        Ok(Payload::None)
    }

    /// The answer of somebody who says no.
    fn refused(&self, request: &Request) -> Payload {
        let is_redirect = matches!(self.status, 300..=399);
        let value = self.value().ok().filter(|_| !is_redirect);
        if let Some(value) = &value {
            let error = error::in_refusal(self.status, value);
            match word(value).filter(|_| request.method == Method::Poll) {
                Some(Word::Failed) => return failed(error),
                Some(Word::Canceled) => return canceled(error),
                _ => {}
            }
            if let Some(error) = error {
                return Payload::Error(error);
            }
        }
        Payload::Error(error::made_up(self.status, self.headers, self.body))
    }

    /// The body as a tree, for what is small.
    fn value(&self) -> Result<Value, Misread> {
        if self.body.len() > SMALL_BODY_MAX {
            return Err(Misread::Malformed(String::from("too large for an error or an operation status")));
        }
        bodies::parse(self.body)
    }
}

fn nothing(expected: &str) -> Misread {
    Misread::Malformed(format!("expected {expected}"))
}

/// Whether an address shows how an operation stands, as `Azure-AsyncOperation` does. Behind others
/// comes the result and nothing but the result.
fn shows_status(operation: &ArmId) -> bool {
    let path = operation.as_str().split(['?', '#']).next().unwrap_or_default();
    let statuses = ["operations", "operationStatuses", "operationsStatus"];
    path.split('/').any(|part| statuses.iter().any(|word| word.eq_ignore_ascii_case(part)))
}

/// The words for how an operation stands.
enum Word {
    Succeeded,
    Failed,
    Canceled,
    /// `InProgress`, or one that we do not know.
    Other,
}

fn word(value: &Value) -> Option<Word> {
    let word = error::field(value.as_object()?, "status")?.as_str()?;
    let is = |known: &str| word.eq_ignore_ascii_case(known);
    Some(match () {
        () if is("Succeeded") => Word::Succeeded,
        () if is("Failed") => Word::Failed,
        () if is("Canceled") || is("Cancelled") => Word::Canceled,
        () => Word::Other,
    })
}

fn failed(error: Option<ArmError>) -> Payload {
    let unsaid = || unexplained("OperationFailed", "the operation failed; Azure gave no reason");
    Payload::Operation(OperationState::Failed(error.unwrap_or_else(unsaid)))
}

fn canceled(error: Option<ArmError>) -> Payload {
    let unsaid = || unexplained("OperationCanceled", "the operation was canceled; Azure gave no reason");
    Payload::Operation(OperationState::Canceled(error.unwrap_or_else(unsaid)))
}

fn unexplained(code: &str, message: &str) -> ArmError {
    ArmError { code: code.into(), message: message.into() }
}

/// What has an id, and may have an etag.
trait Named {
    fn id(&self) -> &ArmId;
    fn etag_mut(&mut self) -> Option<&mut ETag>;
}

macro_rules! named {
    ($($kind:ty: $id:ident $(. $inner_id:ident)?, $etag:ident $(. $inner_etag:ident)?;)*) => {$(
        impl Named for $kind {
            fn id(&self) -> &ArmId {
                &self.$id $(. $inner_id)?
            }

            fn etag_mut(&mut self) -> Option<&mut ETag> {
                Some(&mut self.$etag $(. $inner_etag)?)
            }
        }
    )*};
}

named! {
    PublicIp: meta.id, meta.etag;
    LoadBalancer: meta.id, meta.etag;
    NatGateway: meta.id, meta.etag;
    Gateway: meta.id, meta.etag;
    Subnet: id, etag;
}

impl Named for ArmId {
    fn id(&self) -> &ArmId {
        self
    }

    fn etag_mut(&mut self) -> Option<&mut ETag> {
        None
    }
}
