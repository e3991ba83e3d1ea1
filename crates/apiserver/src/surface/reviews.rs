//! Access reviews: the token of the playground grants all permissions.

use http::Response;
use serde_json::json;

use super::answer::{self, Content};
use super::route::Target;
use super::serve::Asked;
use crate::kinds::{Kind, SELF_ACCESS_REVIEW, SELF_RULES_REVIEW};
use crate::refusal::Refusal;

/// Whether a kind is a question.
pub(crate) fn is_one(kind: &Kind) -> bool {
    *kind == SELF_ACCESS_REVIEW || *kind == SELF_RULES_REVIEW
}

/// Answers it.
pub(crate) fn answer(asked: &Asked<'_>, target: &Target) -> Result<Response<Content>, Refusal> {
    let mut review = asked.json()?;
    if !review.is_object() {
        return Err(Refusal::bad_request("the review is not a JSON object"));
    }
    review["apiVersion"] = json!(target.kind.api_version());
    review["kind"] = json!(target.kind.kind);
    review["status"] = if *target.kind == SELF_ACCESS_REVIEW {
        json!({"allowed": true, "reason": "the token of the playground grants all permissions"})
    } else {
        json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        })
    };
    Ok(answer::json(201, &review))
}
