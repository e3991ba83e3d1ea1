//! OpenAPI version 3: the index, and a document for each group and version.

use http::Response;

use super::answer::Content;
use crate::refusal::Refusal;

pub(crate) fn answer(_: Option<&str>) -> Result<Response<Content>, Refusal> {
    Err(Refusal::not_in_the_playground("OpenAPI"))
}
