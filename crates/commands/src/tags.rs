//! Changes the tags of one resource, as it is at that moment.
//!
//! Between the plan and somebody's yes the world goes on. So the resource is read right before it is written,
//! and written only if it is still that version: tags of others are kept.

use anyhow::{Context as _, bail};
use sluice_model::azure::{ArmId, Tags};
use sluice_model::call::{Body, Method, Payload, Request};

/// How often a resource is read again that somebody writes all the time.
const TRIES: u32 = 5;
/// The status that says: it is another version by now.
pub(crate) const ANOTHER_VERSION: u16 = 412;

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Retagged {
    /// It carries the tags that it should.
    Done,
    /// It does not exist any more.
    Gone,
    /// The tags that it carries now speak against it; why.
    Refused(String),
}

/// Reads the resource and gives it the tags that `edit` makes of those that it carries. `send` makes one
/// call; a 404 and a 412 are answers to it and no errors.
pub(crate) async fn retag(
    what: &str,
    id: &ArmId,
    edit: impl Fn(&Tags) -> Result<Tags, String>,
    send: impl AsyncFn(Request) -> anyhow::Result<(u16, Payload)>,
) -> anyhow::Result<Retagged> {
    let named = || format!("{what} {}", id.name());
    for _ in 0..TRIES {
        let (_, payload) = send(Request::bare(Method::Get, id.clone())).await.with_context(named)?;
        let Some(meta) = payload.meta() else { return Ok(Retagged::Gone) };
        let tags = match edit(&meta.tags) {
            Ok(tags) if tags == meta.tags => return Ok(Retagged::Done),
            Ok(tags) => tags,
            Err(why) => return Ok(Retagged::Refused(why)),
        };
        let mut request = Request::with(Method::PatchTags, id.clone(), Body::Tags(tags));
        request.if_match = Some(meta.etag.clone());
        match send(request).await.with_context(named)? {
            (ANOTHER_VERSION, _) => {}
            (404, _) => return Ok(Retagged::Gone),
            _ => return Ok(Retagged::Done),
        }
    }
    bail!("{} is being modified by another client; re-run the command later", named())
}
